"""Profiles on disk, predictions from them, and the three commands: logs, calibrate, predict."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from ringnet.analysis.calibration import MODELS, Profile, Regime, Setting, SourceFile, predict, ring_link
from ringnet.analysis.calibration.profile import Boundary
from ringnet.cli import app
from ringnet.cli.options import sizes_of
from ringnet.collectives.rings import ring as ring_schedule
from ringnet.engines import ENGINES, Workers
from ringnet.errors import InputError
from ringnet.formats.profiles import profile_text, read_profile
from ringnet.networks import BySize, Piece
from ringnet.networks.basic import ring

DATA = Path(__file__).parent / "data" / "logs"
SIZES = 4.0 * 2.0 ** np.arange(26)
SETTINGS = (Setting(4, 1), Setting(8, 2))
PROFILE = Profile(
    collective="all_reduce",
    regimes=(
        Regime(
            "doubling", 8e-6, 2e-6, 5.5e-6, None, 1.25e9, 0.02, 20, {"launch": 0.1, "latency": 0.02},
            (Boundary(SETTINGS[0], 16384.0, 32768.0), Boundary(SETTINGS[1], 0.0, 65536.0)),
        ),
        Regime("ring", 0.0, 6e-6, None, float("inf"), 20e9, 0.05, 30),
    ),
    settings=SETTINGS,
    smallest_bytes=4,
    largest_bytes=1 << 25,
    is_split=True,
    drift=0.1,
    has_drift=True,
    verdicts=("well determined: to 2 %",),
    sources=(SourceFile("a.txt", "ab" * 32, 24),),
)  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGNET_DEBUG", "")
    monkeypatch.setenv(
        "MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
    )
    Path("p.yaml").write_text(profile_text(PROFILE))


@pytest.fixture
def ringnet():
    """Run the command line in this process."""
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


def edited(*path, value):
    """Write the profile with one value changed, and return what is said of it."""
    document = yaml.safe_load(profile_text(PROFILE))
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    Path("edited.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(InputError) as caught:
        read_profile("edited.yaml")
    return str(caught.value)


def test_a_profile_comes_back_as_it_was_written():
    assert read_profile("p.yaml") == PROFILE


def test_a_profile_is_text_with_units():
    document = yaml.safe_load(profile_text(PROFILE))
    assert document["ringnet_profile"] == 1
    regime = document["regimes"][0]
    assert (regime["launch"], regime["latency_between_nodes"]) == ("8 us", "5.5 us")
    assert (regime["bandwidth_between_nodes"], regime["up_to"]) == ("1.25 GB/s", "5793 B")
    assert document["regimes"][1]["bandwidth"] == "unlimited"
    assert "up_to" not in document["regimes"][1]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("ringnet_profile",), 7, "a version that is not known"),
        (("collective",), "alltoall", "collective: a known name is wanted; got alltoall"),
        (("regimes",), [], "one regime at least"),
        (("regimes", 0, "latency"), 5, "regimes[0].latency: a time needs a unit"),
        (("regimes", 0, "latency"), "-5 us", "must not be negative"),
        (("regimes", 0, "latency"), None, "regimes[0].latency"),
        (("regimes", 1, "bandwidth"), "0 GB/s", "more than zero"),
        (("regimes", 1, "bandwidth"), "fast", "this should be a rate"),
        (("regimes", 0, "model"), "spiral", "got spiral; right would be: ring, tree, doubling"),
        (("regimes", 0, "scatter"), -1, "a relative error from 0 to 10"),
        (("regimes", 0, "scatter"), float("nan"), "a relative error from 0 to 10"),
        (("regimes", 0, "points"), "many", "regimes[0].points: a whole number"),
        (("regimes", 0, "ends"), "later", "a list of mappings"),
        (("regimes", 0, "ends", 0, "after"), "1 GiB", "ends before it ends"),
        (("regimes", 0, "ends", 0, "workers"), 0, "regimes[0].ends[0].workers: a whole number from 2"),
        (("measured",), 3, "measured: a mapping is wanted"),
        (("measured", "settings"), [], "what was measured is missing"),
        (("measured", "settings", 0, "nodes"), 99, "more nodes than workers"),
        (("measured", "smallest"), "1 GiB", "the smallest size is above the largest"),
        (("launch_told_from_hops",), "perhaps", "true or false is wanted"),
        (("sources",), {"a": 1}, "a list of mappings"),
        (("sources", 0, "file"), 5, "sources[0].file: a text is wanted; got 5"),
        (("verdicts",), "good", "verdicts: a list of texts is wanted"),
        (("ringnet_profile",), True, "a version that is not known"),
        (("regimes", 0, "latancy"), "5 us", "there is no such key; did you mean latency?"),
        (("regimes", 0, "launch"), None, "regimes[0].launch: the key is missing"),
        (("regimes", 0, "latency"), "nan us", "regimes[0].latency"),
        (("regimes", 0, "latency_between_nodes"), "1 us", "no faster than one inside"),
        (("regimes", 0, "bandwidth_between_nodes"), None, "one of bandwidth and bandwidth_between_nodes"),
        (("regimes", 0, "up_to"), "1 MiB", "ends says otherwise"),
        (("regimes", 0, "ends", 0, "workers"), 6, "not among those measured; got N=6"),
        (
            ("regimes", 0, "ends", 0),
            {"workers": 8, "nodes": 2, "after": "1 KiB"},
            "this setting is here twice",
        ),
        (("regimes", 0, "ends"), None, "only the last regime has no end"),
        (
            ("regimes", 1, "ends"),
            [{"workers": 4, "nodes": 1, "after": "1 MiB"}],
            "the last regime has no end",
        ),
    ],
)
def test_a_profile_edited_into_nonsense_is_told_where(path, value, words):
    told = edited(*path, value=value)
    assert words in told
    assert re.match(r"edited.yaml:\d+: ", told)


def test_the_line_is_that_of_the_value():
    text = profile_text(PROFILE).replace("latency: 2 us", "latency: -2 us")
    Path("edited.yaml").write_text(text)
    line = 1 + text.splitlines().index("  latency: -2 us")
    with pytest.raises(
        InputError, match=rf"edited.yaml:{line}: regimes\[0\].latency: a time must not be negative"
    ):
        read_profile("edited.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("collective: all_reduce\ncollective: all_gather\n", ":4: collective: the key is here twice"),
        ("a: &x [1]\nb: *x\n", ":3: anchors, aliases and tags are not read"),
        ("a: [\n", ":3: the text is not readable as YAML"),
        ("a: " + "[" * 50, ":3: the text is not readable as YAML: nested deeper than 12 levels"),
    ],
)
def test_yaml_that_is_not_read(text, words):
    Path("edited.yaml").write_text(f"# one\nringnet_profile: 1\n{text}")
    with pytest.raises(InputError, match=re.escape(words)):
        read_profile("edited.yaml")


def test_a_regime_in_which_nothing_takes_time():
    free = replace(PROFILE.regimes[1], latency_s=0.0, between_bandwidth_Bps=float("inf"))
    Path("edited.yaml").write_text(profile_text(replace(PROFILE, regimes=(PROFILE.regimes[0], free))))
    with pytest.raises(InputError, match="nothing takes any time"):
        read_profile("edited.yaml")


def test_every_mistake_is_told_at_once():
    document = yaml.safe_load(profile_text(PROFILE))
    document["regimes"][0]["latency"] = 5
    document["regimes"][1]["model"] = "spiral"
    document["error_per_doubling"] = "much"
    Path("edited.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(InputError) as caught:
        read_profile("edited.yaml")
    assert {fault.path for fault in caught.value.faults} == {
        "regimes[0].latency",
        "regimes[1].model",
        "error_per_doubling",
    }


@pytest.mark.parametrize(
    "text", ["", "a: 1\n", "[1, 2]", "{", "\x00", "!!python/object:os.system {}", "x" * 2**21]
)
def test_what_is_no_profile(text):
    Path("edited.yaml").write_text(text)
    with pytest.raises(InputError):
        read_profile("edited.yaml")


def test_regimes_out_of_order_are_told():
    late = replace(PROFILE.regimes[0], ends=(Boundary(SETTINGS[0], 2.0**20, 2.0**21),))
    early = replace(PROFILE.regimes[0], ends=(Boundary(SETTINGS[0], 2.0**10, 2.0**11),))
    Path("edited.yaml").write_text(profile_text(replace(PROFILE, regimes=(late, early, PROFILE.regimes[1]))))
    with pytest.raises(InputError, match="follow each other by size"):
        read_profile("edited.yaml")


def test_at_a_measured_setting_the_regime_is_the_one_that_was_found():
    found = predict(PROFILE, SETTINGS[0], SIZES)
    assert found.regime.tolist() == [0] * 13 + [1] * 13
    assert not found.is_beyond[:24].any()
    assert found.is_beyond[24:].all()


@pytest.mark.parametrize(
    "setting", [Setting(2, 1), *SETTINGS, Setting(16, 4), Setting(1024, 256), Setting(12, 3)]
)
def test_a_range_holds_its_prediction_and_grows_with_distance(setting):
    found = predict(PROFILE, setting, SIZES)
    assert (found.low_s <= found.time_s).all()
    assert (found.time_s <= found.high_s).all()
    assert np.isfinite([found.low_s, found.high_s]).all()
    near = predict(PROFILE, SETTINGS[1], SIZES)
    if setting.n_workers > 8:
        assert np.median(found.high_s / found.low_s) > np.median(near.high_s / near.low_s)


def test_n_between_measured_ones_is_not_beyond():
    wider = replace(PROFILE, settings=(Setting(4, 1), Setting(16, 4)))
    assert not predict(wider, Setting(8, 2), SIZES[:20]).is_beyond.any()
    assert predict(wider, Setting(32, 8), SIZES[:20]).is_beyond.all()


def test_what_one_regime_was_not_measured_for_comes_from_its_neighbour():
    inside = replace(PROFILE.regimes[1], bandwidth_Bps=10e9, between_bandwidth_Bps=None)
    assert inside.parameters[4] == pytest.approx(1e-10)
    assert PROFILE.regimes[0].parameters[3] == pytest.approx(1 / 1.25e9)
    assert set(MODELS) == {"ring", "tree", "doubling"}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("message_bytes", [1024, 8192, 65536, 2**20, 2**25])
def test_a_simulated_ring_on_the_links_of_a_profile_takes_its_times(setting, message_bytes):
    pieces = ring_link(PROFILE, setting)
    n = setting.n_workers
    last = pieces[-1]
    network = replace(
        ring(n, last.bandwidth_Bps, last.latency_s),
        behaviours=dict.fromkeys(
            range(n), BySize(tuple(Piece(p.up_to_bytes, p.bandwidth_Bps, p.latency_s) for p in pieces))
        ),
    )
    chunks = np.full(n, message_bytes // n)
    trace = ENGINES["events"].run(ring_schedule(n), network, Workers.alike(n), chunks)
    assert max(trace.workers["end_s"]) == pytest.approx(
        predict(PROFILE, setting, np.array([float(message_bytes)])).time_s[0]
    )


@pytest.mark.parametrize("text", ["", "2..1", "1KiB..", "1GiB..1KiB", "0 B", "1 KiB,x", "6.4"])
def test_sizes_that_are_none(text):
    with pytest.raises(InputError):
        sizes_of([text], least=1)


def test_predict_prints_a_table_with_ranges_and_marks_what_is_beyond(ringnet):
    result = ringnet("predict", "p.yaml", "--workers", 8, "--workers", 64, "--sizes", "16KiB..64MiB")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.startswith(("8 ", "64 "))]
    assert len(lines) == 2 * 13
    assert "extrapolated" not in lines[0]
    assert "extrapolated" in lines[12]  # 64 MiB is beyond 32 MiB
    assert all("extrapolated" in line for line in lines[13:])


def test_several_values_stand_between_commas_or_in_options_of_their_own(ringnet):
    sizes = ("--sizes", "16KiB,32KiB..64KiB"), ("--sizes", "16KiB", "--sizes", "32KiB..64KiB")
    one, other = (
        ringnet("predict", "p.yaml", *workers, *given).stdout
        for workers, given in zip(
            (("--workers", "64, 8"), ("--workers", 8, "--workers", 64)), sizes, strict=True
        )
    )
    assert one == other
    assert len([line for line in one.splitlines() if line.startswith(("8 ", "64 "))]) == 6


def test_predict_in_json_and_files(ringnet):
    result = ringnet("predict", "p.yaml", "--workers", 16, "--csv", "t.csv", "--plot", "t.svg", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["predictions"]
    assert [row["message_bytes"] for row in rows] == [1024 << k for k in range(21)]
    assert list(pd.read_csv("t.csv")["predicted_s"]) == pytest.approx([row["predicted_s"] for row in rows])
    assert Path("t.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    "arguments",
    [
        ("none.yaml", "--workers", 8),
        ("p.yaml", "--workers", 8, "--sizes", "big"),
        ("p.yaml", "--workers", 1),
        ("p.yaml", "--workers", 4, "--nodes", 8),
    ],
)
def test_predict_refuses_with_exit_code_2_and_no_traceback(ringnet, arguments):
    result = ringnet("predict", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_logs_shows_what_is_there_and_what_is_wrong(ringnet):
    result = ringnet("logs", *sorted(DATA.glob("*.txt")), DATA / "report.json")
    assert result.exit_code == 2
    assert "each process ran alone" in result.output
    assert "nccl-2019.txt" in result.stdout
    document = json.loads(ringnet("logs", DATA / "nccl-2019.txt", "--json").stdout)
    (series,) = document["logs"][0]["series"]
    assert (series["n_workers"], series["n_nodes"], series["n_points"]) == (4, 2, 8)


def test_calibrate_writes_a_profile_that_predict_reads(ringnet):
    Path("out").mkdir()
    result = ringnet("calibrate", DATA / "nccl-2019.txt", "--out", "out/m.yaml", "--csv", "m.csv")
    assert result.exit_code == 0, result.output
    assert "one N only" in result.stdout
    assert Path("out/m.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv("m.csv")) == 8
    assert read_profile("out/m.yaml").sources[0].file == "nccl-2019.txt"
    assert ringnet("predict", "out/m.yaml", "--workers", 8).exit_code == 0


def test_calibrate_in_json(ringnet):
    document = json.loads(ringnet("calibrate", DATA / "nccl-2019.txt", "--json").stdout)
    (log,) = document["logs"]
    assert log["n_points"] == 8
    assert 0 <= log["median_relative_error"] <= log["worst_relative_error"] < 0.2
    assert document["verdict"] == document["verdicts"][0]["name"]
    assert sum(band["n_points"] for band in document["bands"]) == 8
    assert document["bands"][-1]["up_to_bytes"] is None or document["bands"][-1]["up_to_bytes"] >= 2**20
    assert list(Path().glob("*.png")) == []


def test_n_is_asked_for_and_taken(ringnet):
    asked = ringnet("calibrate", DATA / "osu.txt")
    assert asked.exit_code == 2
    assert "--workers N" in asked.output
    for given in ("8", "osu.txt=8", "4,osu.txt=8"):
        document = json.loads(ringnet("calibrate", DATA / "osu.txt", "--workers", given, "--json").stdout)
        assert document["logs"][0]["n_workers"] == 8
    assert ringnet("calibrate", DATA / "osu.txt", "--workers", "other.txt=8").exit_code == 2
    assert ringnet("calibrate", DATA / "osu.txt", "--workers", "1").exit_code == 2


def test_n_of_a_log_with_a_comma_in_its_name(ringnet):
    Path("a,b.txt").write_bytes((DATA / "osu.txt").read_bytes())
    document = json.loads(ringnet("logs", "a,b.txt", "--workers", "a,b.txt=8", "--json").stdout)
    assert [series["n_workers"] for series in document["logs"][0]["series"]] == [8]


def test_every_bad_file_is_told_at_once_and_nothing_is_written(ringnet):
    Path("x.bin").write_bytes(b"\x00\x01")
    result = ringnet("calibrate", "x.bin", DATA / "broken-launch.txt", DATA / "osu.txt", "--out", "m.yaml")
    assert result.exit_code == 2
    assert "binary" in result.output
    assert "each process ran alone" in result.output
    assert not Path("m.yaml").exists()


def test_a_collective_that_is_not_in_the_log(ringnet):
    result = ringnet("calibrate", DATA / "nccl-2019.txt", "--collective", "all_gather")
    assert result.exit_code == 2
    assert "no all_gather of more than zero bytes in it; got all_reduce" in result.output
    assert (
        "no model of this collective"
        in ringnet("calibrate", DATA / "nccl-2019.txt", "--collective", "x").output
    )


@pytest.mark.parametrize("command", ["logs", "calibrate"])
def test_a_log_given_twice_counts_once(ringnet, command):
    log, other = DATA / "nccl-2019.txt", Path("again.txt")
    other.write_bytes(log.read_bytes())
    result = ringnet(command, log, other, log, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout == ringnet(command, log, "--json").stdout
    assert [line.partition(" is left out")[0] for line in result.stderr.splitlines()] == [
        "Note: again.txt",
        f"Note: {log}",
    ]


def test_two_tools_in_one_calibration_are_said(ringnet):
    result = ringnet("calibrate", DATA / "nccl-2019.txt", DATA / "osu.txt", "--workers", 4, "--json")
    names = [verdict["name"] for verdict in json.loads(result.stdout)["verdicts"]]
    assert "two machines" in names
