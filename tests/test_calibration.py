"""Calibration on made-up machines whose truth is known: what can be told is told, and what cannot is said."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize._numdiff import approx_derivative

from ringnet.analysis.calibration import Samples, Setting, calibrate, predict
from ringnet.analysis.calibration.calibration import bands_of
from ringnet.analysis.calibration.fit import _Search, fit, hold_out_workers
from ringnet.analysis.calibration.machine import LIBRARIES, NAMES, PARAMETERS, Family, algorithms_of
from ringnet.analysis.calibration.samples import at

SIZES = 4.0 * 2.0 ** np.arange(24)
#: A machine as they are, of nodes of four with a card for each worker.
MACHINE = {
    "launch": 6e-6, "launch_medium": 2.0, "launch_large": 1.5, "hop_inside": 0.7e-6, "hop_inside_medium": 2.5,
    "hop_inside_large": 6.0, "hop_between": 3e-6, "hop_between_of_tree": 1.8, "hop_between_medium": 1.6,
    "hop_between_large": 3.7, "bandwidth_inside": 120e9, "bandwidth_of_a_rail": 6e9, "share_small": 0.1,
    "share_medium": 0.6, "share_of_tree": 0.5, "bandwidth_of_the_switch": 250e9, "chunk_of_tree": 256e3,
    "largest_doubled": 1e4,
}  # fmt: skip
GPU = Family("gpu", ("ring", "tree"))
RING = Family("gpu", ("ring",))


def logs_of(**changed):
    return np.log([{**MACHINE, **changed}[name] for name in NAMES])


def by(family=GPU, **changed):
    """Return what a machine takes, in some ways."""
    return lambda rows: np.exp(family.log_time(logs_of(**changed), rows))


def measured(settings, times, sizes=SIZES, noise=0.0, seed=1):
    """Make samples: a log per setting, times by a function of rows."""
    parts = [at(setting, np.asarray(sizes, dtype=float)) for setting in settings]
    log = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    names = tuple(f"{setting}.txt" for setting in settings)
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("n_workers", "n_nodes", "message_bytes")
    }
    rows = Samples(**columns, time_s=np.ones(len(log)), log=log, names=names)
    error = np.exp(noise * np.random.default_rng(seed).standard_normal(len(log)))
    return Samples(**columns, time_s=times(rows) * error, log=log, names=names)


CLUSTER = [Setting(4, 1), Setting(8, 2), Setting(16, 4), Setting(32, 8)]
ONE_NODE = [Setting(n, 1) for n in (2, 3, 4, 6, 8)]


def gpu(samples, **options):
    return fit(samples, libraries=("gpu",), **options)


@cache
def of_the_cluster():
    """What is measured on it, nearly right, and what comes of that."""
    samples = measured(CLUSTER, by(), noise=0.01)
    return samples, calibrate(samples, libraries=("gpu",))


@pytest.mark.parametrize("family", [GPU, Family("mpi", LIBRARIES["mpi"].algorithms)])
def test_slopes_are_those_of_one_parameter_after_the_other(family):
    search = _Search(measured(CLUSTER, by()), family)
    slopes = search._slopes(logs_of(), 0.05)
    assert (slopes == approx_derivative(search._errors, logs_of(), "2-point", args=(0.05,))).all()


def test_the_links_of_a_machine_are_found():
    found = gpu(measured(CLUSTER, by()))
    links = dict(zip(NAMES, found.profile.parameters, strict=True))
    for name, within in (("launch", 0.15), ("hop_inside", 0.3), ("hop_between", 0.15)):
        assert links[name] == pytest.approx(MACHINE[name], rel=within), name
    for name in ("bandwidth_inside", "bandwidth_of_a_rail"):
        assert links[name] == pytest.approx(MACHINE[name], rel=0.05), name
    assert np.abs(found.errors_of_links()).max() < 0.05


@settings(max_examples=4)
@given(
    st.floats(3e-6, 2e-5),
    st.floats(3e-7, 3e-6),
    st.floats(1e-6, 1e-5),
    st.floats(20e9, 4e11),
    st.floats(2e9, 4e10),
)
def test_other_n_are_foretold_on_machines_of_many_kinds(launch, inside, between, bandwidth, rail):
    truth = by(
        launch=launch,
        hop_inside=inside,
        hop_between=between,
        bandwidth_inside=bandwidth,
        bandwidth_of_a_rail=rail,
    )
    found = gpu(measured(CLUSTER[:3], truth, noise=0.01))
    new = Setting(64, 16)
    guess = predict(found.profile, new, SIZES)
    off = np.abs(guess.time_s / truth(at(new, SIZES)) - 1)
    assert np.median(off) < 0.1
    assert ((truth(at(new, SIZES)) >= guess.low_s) & (truth(at(new, SIZES)) <= guess.high_s)).mean() >= 0.75


def test_one_log_foretells_the_next_n_of_machines_as_they_are():
    """Machines that are drawn as the priors expect them: nine in ten of the times should be within the ranges."""
    draw = np.random.default_rng(5)
    off, inside = [], []
    for _ in range(6):
        names = ("launch", "hop_inside", "hop_between", "hop_between_of_tree", "bandwidth_of_a_rail")
        truth = by(**{name: MACHINE[name] * np.exp(0.5 * draw.standard_normal()) for name in names})
        new = Setting(16, 4)
        told = truth(at(new, SIZES))
        guess = predict(gpu(measured([Setting(8, 2)], truth, noise=0.01)).profile, new, SIZES)
        off.append(np.median(np.abs(guess.time_s / told - 1)))
        inside.append(((told >= guess.low_s) & (told <= guess.high_s)).mean())
    assert np.median(off) < 0.2
    assert np.mean(inside) >= 0.8


def test_rails_of_one_two_and_four_workers_a_node_foretell_eight():
    """Bus bandwidths of two hosts that were published, by GPUs of a host with a card each."""
    told = {1: 48.8e9, 2: 98e9, 4: 196e9, 8: 345e9}
    sizes = 2.0 ** np.arange(20, 33)

    def times(rows):
        per_node = rows.n_workers / rows.n_nodes
        rates = np.array([told[int(one)] for one in per_node])
        return 60e-6 + 2 * (rows.n_workers - 1) / rows.n_workers * rows.message_bytes / rates

    found = calibrate(measured([Setting(2 * n, 2) for n in (1, 2, 4)], times, sizes=sizes), libraries=("gpu",))
    assert found.profile.family.most_rails == np.inf
    guess = predict(found.profile, Setting(16, 2), sizes[-1:]).time_s[0]
    busbw = 2 * 15 / 16 * sizes[-1] / guess
    assert busbw == pytest.approx(345e9, rel=0.2)


def test_cards_that_workers_of_a_node_share_are_seen():
    shared = Family("gpu", ("ring", "tree"), 2.0)
    found = gpu(measured([Setting(n * m, m) for n in (1, 2, 4) for m in (2, 4)], by(shared), noise=0.01))
    assert found.profile.family.most_rails == 2.0
    new = Setting(16, 2)
    assert predict(found.profile, new, SIZES[-1:]).time_s == pytest.approx(by(shared)(at(new, SIZES[-1:])), rel=0.1)


def test_a_switch_that_reduces_is_seen_by_bus_bandwidth_alone():
    switched = Family("gpu", ("ring", "tree", "switch"))
    fast = {"bandwidth_inside": 370e9, "bandwidth_of_the_switch": 275e9}
    sizes = 2.0 ** np.arange(3, 34)
    found = calibrate(measured([Setting(8, 1)], by(switched, **fast), sizes=sizes, noise=0.01), libraries=("gpu",))
    assert "switch" in found.profile.family.algorithms
    assert "ways: a switch reduces" in [verdict.name for verdict in found.verdicts]
    assert bands_of(found.profile)[-1].way == "switch, Simple"
    # The sum in the switch takes each worker's message once: as long with fewer workers, where a ring is faster.
    guess = predict(found.profile, Setting(6, 1), sizes[-1:]).time_s[0]
    assert guess == pytest.approx(by(switched, **fast)(at(Setting(6, 1), sizes[-1:]))[0], rel=0.1)
    plain = measured([Setting(8, 1)], by(bandwidth_inside=360e9), sizes=sizes)
    assert "switch" not in gpu(plain).profile.family.algorithms
    assert "switch" not in algorithms_of(
        "gpu", measured([Setting(8, 1)], by(switched, **fast), sizes=sizes), "all_gather"
    )


def test_who_ran_it_is_told_by_what_fits_where_the_log_does_not_say():
    mpi = Family("mpi", LIBRARIES["mpi"].algorithms)
    usual = {one.name: one.mpi[0] for one in PARAMETERS if one.mpi[0]}
    slow = {**usual, "bandwidth_inside": 6e9, "bandwidth_of_a_rail": 1e9}
    found = fit(measured(CLUSTER, by(mpi, **slow), noise=0.01))
    assert found.profile.family.library == "mpi"
    assert np.median(np.abs(found.errors_of_links())) < 0.05


def test_ways_change_from_tree_to_ring_and_say_how_clearly():
    _, found = of_the_cluster()
    bands = [band for band in bands_of(found.profile) if band.setting == CLUSTER[-1]]
    assert bands[0].way.startswith("tree, ")
    assert bands[-1].way == "ring, Simple"
    assert bands[-1].ahead > 1.5
    assert bands[-1].sure == 1.0
    text = {verdict.name: verdict.text for verdict in found.verdicts}
    assert text["ways"].startswith("at N=32 on 8 nodes tree, ")


def test_what_was_forced_is_taken_as_it_is():
    found = fit(measured(CLUSTER, by(RING)), libraries=("gpu",), algorithms=("ring",))
    assert found.profile.family.algorithms == ("ring",)
    assert {way.algorithm for way in found.profile.family.ways} == {"ring"}


def test_one_outlier_moves_a_fit_little():
    samples = measured(CLUSTER, by(), noise=0.005)
    before = gpu(samples).profile.parameters
    samples.time_s[60] *= 10
    after = gpu(samples).profile.parameters
    assert np.abs(np.log(after) - np.log(before)).max() < 0.1


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        (SIZES[:8], "bandwidth not identifiable"),
        (SIZES[18:] * 1000, "latency not identifiable"),
        (SIZES[8:9], "bandwidth not identifiable"),
    ],
)
def test_what_the_sizes_do_not_tell_is_said(sizes, verdict):
    found = calibrate(measured([Setting(8, 1)], by(), sizes=sizes, noise=0.01), libraries=("gpu",))
    names = [each.name for each in found.verdicts]
    assert verdict in names
    assert "well determined" not in names
    assert "one N only" in names


def test_small_messages_leave_large_ones_open():
    found = gpu(measured([Setting(8, 1)], by(), sizes=SIZES[:8])).profile
    guess = predict(found, Setting(16, 2), np.array([2.0**30]))
    assert guess.high_s[0] / guess.low_s[0] > 20
    assert guess.low_s[0] < by()(at(Setting(16, 2), np.array([2.0**30])))[0] < guess.high_s[0]
    same = predict(found, Setting(8, 1), np.array([2.0**30]))
    assert same.low_s[0] < by()(at(Setting(8, 1), np.array([2.0**30])))[0] < same.high_s[0]


@pytest.mark.parametrize("is_inside_large", [True, False])
def test_links_of_one_kind_are_not_told_by_the_messages_of_another(is_inside_large):
    """One host was measured with large messages and two with small ones, or the other way round."""
    large, small = SIZES[18:], SIZES[:8]
    pairs = [
        (Setting(8, 1), large if is_inside_large else small),
        (Setting(16, 2), small if is_inside_large else large),
    ]
    parts = [measured([setting], by(), sizes=sizes, noise=0.01) for setting, sizes in pairs]
    log = np.repeat([0, 1], [len(part) for part in parts])
    names = ("n_workers", "n_nodes", "message_bytes", "time_s")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    found = calibrate(Samples(**columns, log=log, names=("one", "two")), libraries=("gpu",))
    asked = Setting(32, 4) if is_inside_large else Setting(4, 1)
    guess, truth = predict(found.profile, asked, large), by()(at(asked, large))
    assert ((guess.low_s < truth) & (truth < guess.high_s)).all()
    (told,) = [each.text for each in found.verdicts if each.name == "bandwidth not identifiable"]
    where = "between nodes" if is_inside_large else "inside a node"
    assert told.startswith(f"the largest message {where} has 512 B, and bytes are at most ")


def test_few_times_are_no_evidence_for_links_that_meet_them():
    for n_sizes, name in ((5, "few points"), (6, "described")):
        found = calibrate(measured([Setting(8, 1)], by(), sizes=SIZES[::4][:n_sizes]), libraries=("gpu",))
        assert {each.name for each in found.verdicts} & {"few points", "described"} == {name}


def test_mpi_doubles_up_to_a_size_and_has_a_ring_beyond_whatever_is_faster():
    """Open MPI's rule: 10,000 bytes. On 128 workers a ring of 16 KiB takes many times what doubling would."""
    mpi = Family("mpi", LIBRARIES["mpi"].algorithms)
    rows = at(Setting(128, 32), SIZES)
    logs = logs_of(largest_doubled=1e4)
    taken = [mpi.ways[way].algorithm for way in mpi.offers(logs, rows).argmin(axis=0)]
    assert taken == ["doubling" if size < 1e4 else "ring" for size in SIZES]
    doubling = min(time for way, time in zip(mpi.ways, mpi.times(logs, rows)[:, 12], strict=True) if way[0] != "ring")
    assert np.exp(mpi.log_time(logs, rows))[12] > 1.5 * doubling


def test_every_log_that_the_links_miss_is_named():
    rough, found = of_the_cluster()
    times = rough.time_s.copy()
    jagged = (rough.n_workers == 16) & (np.arange(len(times)) % 2 == 0)
    times[jagged] *= 1.6
    text = {v.name: v.text for v in calibrate(replace(rough, time_s=times), libraries=("gpu",)).verdicts}
    assert text["not described"].startswith("N=16 on 4 nodes.txt is ")
    assert "N=8" not in text["not described"]
    good = {verdict.name for verdict in found.verdicts}
    assert "described" in good
    assert "not described" not in good


def test_as_many_workers_on_every_node_is_said_only_where_it_is_so():
    def names(settings):
        return [each.name for each in calibrate(measured(settings, by()), libraries=("gpu",)).verdicts]

    assert "hops not told apart" in [each.name for each in of_the_cluster()[1].verdicts]
    assert "hops not told apart" not in names([*CLUSTER, Setting(16, 2)])


def test_a_bad_run_in_a_series_is_named():
    samples = measured([*CLUSTER, Setting(64, 16)], by(), noise=0.01)
    samples.time_s[samples.n_workers == 16] *= 1.8
    text = {verdict.name: verdict.text for verdict in calibrate(samples, libraries=("gpu",)).verdicts}
    assert text["bad run in a series"].startswith("N=16 is 1.")
    assert "slower" in text["bad run in a series"]


def test_a_good_series_has_no_bad_run():
    found = calibrate(measured(CLUSTER, by(), noise=0.02), libraries=("gpu",))
    assert "bad run in a series" not in [verdict.name for verdict in found.verdicts]


def test_logs_of_one_setting_that_differ_are_two_machines():
    samples = measured([Setting(8, 1), Setting(8, 1)], by())
    samples.time_s[samples.log == 1] *= 2
    text = {verdict.name: verdict.text for verdict in calibrate(samples, libraries=("gpu",)).verdicts}
    assert "differ by 2.00 times" in text["two machines"]


def test_held_out_workers_are_foretold_by_the_others():
    held = hold_out_workers(gpu(measured(ONE_NODE, by(), noise=0.01)))
    assert [each.n_workers for each in held] == [2, 3, 4, 6, 8]
    assert max(each.median for each in held) < 0.06


def test_the_same_rows_give_the_same_profile():
    samples = measured(CLUSTER[:2], by(), noise=0.02)
    first = gpu(samples).profile
    assert gpu(samples).profile == first
    order = np.random.default_rng(3).permutation(len(samples))
    again = gpu(samples.where(order)).profile
    assert again.parameters == pytest.approx(first.parameters, rel=1e-3)


def test_ranges_of_what_was_measured_hold_about_nine_in_ten():
    found = gpu(measured([Setting(8, 1)] * 3, by(), noise=0.05, seed=2)).profile
    inside = []
    for seed in range(5):
        fresh = measured([Setting(8, 1)], by(), noise=0.05, seed=100 + seed)
        guess = predict(found, Setting(8, 1), SIZES)
        inside.append((fresh.time_s >= guess.low_s) & (fresh.time_s <= guess.high_s))
    assert 0.8 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_ways_count_hops_and_bytes_as_their_definitions_say(library):
    """A ring of 8 on 2 nodes has 14 hops, 2 of them between nodes; NCCL's tree 2 x 3 inside and 2 x log2(2) between."""
    family = Family(library, LIBRARIES[library].algorithms[:2])
    unit = logs_of(
        launch=1.0, launch_medium=1.0, launch_large=1.0, hop_inside=10.0, hop_inside_medium=1.0, hop_inside_large=1.0,
        hop_between=1000.0, hop_between_of_tree=1.0, hop_between_medium=1.0, hop_between_large=1.0,
        bandwidth_inside=1e30, bandwidth_of_a_rail=1e30, share_small=1.0, share_medium=1.0, share_of_tree=1.0,
        chunk_of_tree=1.0, largest_doubled=1e4,
    )  # fmt: skip
    rows = at(Setting(8, 2), np.array([1.0]))
    times = dict(zip([way.algorithm for way in family.ways], family.times(unit, rows)[:, 0], strict=True))
    assert times["ring"] == pytest.approx(1 + 12 * 10 + 2 * 1000)
    others = {"tree": 1 + 6 * 10 + 2 * 1000, "doubling": 1 + 4 * 10 + 2 * 1000}
    other = LIBRARIES[library].algorithms[1]
    assert times[other] == pytest.approx(others[other])
    half = replace(family, collective="all_gather")
    assert half.times(unit, rows)[0, 0] == pytest.approx(1 + 6 * 10 + 1000)
    large = at(Setting(8, 2), np.array([1e6]))
    slow = unit.copy()
    slow[NAMES.index("bandwidth_of_a_rail")] = 0.0  # a byte a second on each of four rails
    expected = {"ring": 2 * 7 / 8 * 1e6 / 4, "tree": 2 * 1e6 / 4, "doubling": 3 * 1e6 / 4}
    for way, time in zip(family.ways, family.times(slow, large)[:, 0], strict=True):
        assert time == pytest.approx(expected[way.algorithm], rel=0.01)
