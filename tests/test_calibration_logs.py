"""Calibration on real logs, held against the figures that it promises. The logs are not part of ringnet."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ringnet.analysis.calibration import Setting, calibrate, predict
from ringnet.analysis.calibration.calibration import bands_of
from ringnet.analysis.calibration.fit import fit, hold_out_sizes
from ringnet.analysis.calibration.machine import INSIDE_RATE
from ringnet.errors import InputError
from ringnet.formats.logs import read_log
from ringnet.formats.logs.log import Notes
from ringnet.formats.logs.samples import algorithms_of, complete, libraries_of, samples_of

#: N of the logs that do not say theirs, from their names.
OSU_WORKERS = {"13": 4, "14": 8, "15": 32, "16": 128}


def _folder() -> Path | None:
    """Find the logs: where RINGNET_LOGS says, or in ``shared/reference/nccl`` beside the repository."""
    named = os.environ.get("RINGNET_LOGS")
    beside = [parent / "shared" / "reference" / "nccl" for parent in Path(__file__).resolve().parents]
    return next((path for path in ([Path(named)] if named else beside) if path.is_dir()), None)


FOLDER = _folder()
pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="no shared/reference/nccl beside the repository; RINGNET_LOGS names another"
)


def log(start):
    (path,) = sorted(FOLDER.glob(f"{start}-*"))
    n = OSU_WORKERS.get(start)
    return complete(read_log(path), {"": n} if n else {}, {})


def samples(*starts):
    return samples_of([log(start) for start in starts], "all_reduce", Notes())


def libraries(*starts):
    return libraries_of([log(start) for start in starts])


def fitted(*starts):
    return fit(samples(*starts), libraries=libraries(*starts))


def calibrated(*starts):
    return calibrate(samples(*starts), libraries=libraries(*starts))


@cache
def single(start):
    return fitted(start)


SMALL_AND_LARGE = ["01", "02", "03", "04", "05", "06", "13", "14", "15", "16", "27", "29", "30", "32", "37"]


@pytest.mark.parametrize(
    ("start", "n_workers", "n_nodes", "n_rows"),
    [
        ("01", 4, 1, 24),
        ("06", 128, 32, 24),
        ("27", 8, 1, 34),
        ("29", 16, None, 29),
        ("30", 16, None, 32),
        ("31", 16, None, 7),
        ("32", 8, None, 32),
        ("37", 4, 1, 26),
        ("45", 8, 1, 50),
    ],
)
def test_every_log_says_its_n_and_loses_no_row(start, n_workers, n_nodes, n_rows):
    found = log(start).measurements
    assert {(row.n_workers, row.n_nodes) for row in found} == {(n_workers, n_nodes)}
    assert len(found) == n_rows


def test_the_index_of_the_folder_is_no_log():
    with pytest.raises(InputError, match=r"no table of a benchmark|NCCL itself"):
        read_log(FOLDER / "index.csv")


def test_five_collectives_in_one_file():
    assert log("45").collectives == ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")


def test_fits_of_single_logs_keep_their_promise():
    errors = [np.abs(single(start).errors()) for start in SMALL_AND_LARGE]
    assert np.median([np.median(each) for each in errors]) <= 0.013
    assert np.median([each.max() for each in errors]) <= 0.09
    links = [np.median(np.abs(single(start).errors_of_links())) for start in SMALL_AND_LARGE]
    assert np.median(links) <= 0.06


def test_two_sizes_that_are_far_off_do_not_hide_the_others():
    assert np.median(np.abs(single("16").errors_of_links())) <= 0.15


def test_logs_of_osu_together():
    nodes = {"13": 1, "14": 2, "15": 8, "16": 32}
    logs = [complete(log(start), {}, {"": n}) for start, n in nodes.items()]
    found = calibrate(samples_of(logs, "all_reduce", Notes()), libraries=libraries_of(logs))
    assert found.profile.family.library == "mpi"
    assert found.errors_of_curves().median <= 0.013
    assert found.held_out_sizes().median <= 0.07
    verdicts = {verdict.name: verdict.text for verdict in found.verdicts}
    assert "16-abci-osu-v-cpu-32n128r.txt is " in verdicts["not described"]  # two sizes of it are far off


def test_held_out_sizes_keep_their_promise():
    medians = []
    for start in SMALL_AND_LARGE:
        held = hold_out_sizes(single(start))
        medians.append(np.median(np.abs(np.expm1(np.concatenate([each.errors for each in held])))))
    assert np.median(medians) <= 0.04


@pytest.fixture(scope="module")
def series():
    """Calibrate on N = 4, 8, 16 and 32 of the V100 series."""
    return calibrated("01", "02", "03", "04")


def test_a_series_fits_and_holds_out_as_promised(series):
    medians = [series.errors_of_log(index).median for index in range(4)]
    assert np.median(medians) <= 0.04
    assert series.held_out_sizes().median <= 0.04
    found = {verdict.name: verdict.text for verdict in series.verdicts}
    assert [*found][:2] == ["well determined", "not described"]
    said = found["not described"]
    assert said.startswith("01-")
    assert said.count("(median)") == 1  # of four logs, one size of one
    assert "bad run in a series" not in found


@pytest.mark.parametrize(("start", "n_workers", "within"), [("05", 64, 0.03), ("06", 128, 0.05)])
def test_unseen_n_is_predicted_as_promised(series, start, n_workers, within):
    truth = samples(start)
    guess = predict(series.profile, Setting(n_workers, n_workers // 4), truth.message_bytes)
    assert np.median(np.abs(guess.time_s / truth.time_s - 1)) <= within
    assert ((truth.time_s >= guess.low_s) & (truth.time_s <= guess.high_s)).mean() >= 0.8
    assert guess.is_beyond.all()
    # A range that holds all would say nothing.
    assert np.median(guess.high_s / guess.low_s) < {64: 1.6, 128: 2.5}[n_workers]


def test_two_n_foretell_a_third():
    truth = samples("04")
    guess = predict(fitted("01", "02").profile, Setting(32, 8), truth.message_bytes)
    assert np.median(np.abs(guess.time_s / truth.time_s - 1)) <= 0.12


def test_one_log_foretells_another_n_twice_as_well_as_its_bus_bandwidth():
    starts = ("01", "02", "03", "04", "05", "06")
    found, plain = [], []
    for one, other in permutations(starts, 2):
        known, truth = samples(one), samples(other)
        (setting,), (had,) = truth.settings, known.settings
        guess = predict(single(one).profile, setting, truth.message_bytes)
        found.append(np.median(np.abs(guess.time_s / truth.time_s - 1)))
        moved = [2 * (each.n_workers - 1) / each.n_workers for each in (setting, had)]
        same = np.exp(np.interp(np.log(truth.message_bytes), np.log(known.message_bytes), np.log(known.time_s)))
        plain.append(np.median(np.abs(same * moved[0] / moved[1] / truth.time_s - 1)))
    assert np.median(found) <= 0.22
    assert np.median(found) <= np.median(plain) / 2


@pytest.mark.parametrize(("chosen", "within"), [((2, 8), 0.1), (range(2, 9), 0.05)])
def test_the_latency_of_a_forced_ring_by_n(chosen, within):
    whole = replace(samples("78"), n_nodes=np.ones(7, dtype=np.int64))
    found = fit(whole.where(np.isin(whole.n_workers, list(chosen))), libraries=("gpu",), algorithms=("ring",))
    times = [predict(found.profile, Setting(int(n), 1), whole.message_bytes[:1]).time_s[0] for n in whole.n_workers]
    assert np.abs(np.array(times) / whole.time_s - 1).max() <= within


def test_a_log_of_another_machine_among_others_is_said():
    assert "two machines" in [verdict.name for verdict in calibrated("01", "37").verdicts]


def test_a_bad_run_in_the_series_is_named():
    whole = samples("01", "02", "03", "04", "05")
    bad = replace(whole, time_s=np.where(whole.n_workers == 16, 2.0, 1.0) * whole.time_s)
    text = {verdict.name: verdict.text for verdict in calibrate(bad, libraries=("gpu",)).verdicts}
    assert "N=16" in text["bad run in a series"]


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        ("45", "latency not identifiable"),
        ("79", "latency not identifiable"),
        ("78", "bandwidth not identifiable"),
    ],
)
def test_what_a_log_does_not_tell(start, verdict):
    assert verdict in [each.name for each in calibrated(start).verdicts]


def test_a_switch_that_reduces_is_seen_in_a_log():
    found = calibrated("32")
    assert "ways: a switch reduces" in [verdict.name for verdict in found.verdicts]
    # It is the large messages that take it, and the ring beside it is no faster than NVLink.
    assert bands_of(found.profile)[-1].way == "switch, Simple"
    assert found.profile.parameters[INSIDE_RATE] < 450e9
    assert "switch" not in single("27").profile.family.algorithms
    assert algorithms_of([log("32")], "all_reduce") == ()
