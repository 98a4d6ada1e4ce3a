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

from ringnet.analysis.calibration import (
    Curve,
    Profile,
    Setting,
    SourceFile,
    predict,
    ring_launch_s,
    ring_link,
)
from ringnet.analysis.calibration.machine import NAMES, Family
from ringnet.analysis.calibration.samples import at
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
FAMILY = Family("gpu", ("ring", "tree"))
VALUES = (
    5e-6,
    2.5,
    2.0,
    0.7e-6,
    2.0,
    9.0,
    3e-6,
    1.8,
    1.25,
    3.25,
    120e9,
    5.5e9,
    0.03,
    0.4,
    0.25,
    1.0,
    2.0**18,
    1e4,
)
#: What was measured is a tenth more than the links say.
CURVES = tuple(
    Curve(
        setting,
        tuple(SIZES[:24]),
        tuple(1.1 * np.exp(FAMILY.log_time(np.log(VALUES), at(setting, SIZES[:24])))),
        0.02,
    )
    for setting in SETTINGS
)
PROFILE = Profile(
    family=FAMILY,
    parameters=VALUES,
    alternatives=((0.1,) * 18, (-0.1,) * 17 + (0.0,)),
    curves=CURVES,
    verdicts=("well determined: to 2 %",),
    sources=(SourceFile("a.txt", "ab" * 32, 24),),
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGNET_DEBUG", "")
    monkeypatch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib")))
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
    found = read_profile("p.yaml")
    assert replace(found, parameters=(), curves=()) == replace(PROFILE, parameters=(), curves=())
    assert found.parameters == pytest.approx(PROFILE.parameters, rel=1e-6)
    for one, other in zip(found.curves, PROFILE.curves, strict=True):
        assert (one.setting, one.message_bytes) == (other.setting, other.message_bytes)
        assert one.time_s == pytest.approx(other.time_s, rel=1e-6)
    Path("again.yaml").write_text(profile_text(found))
    assert read_profile("again.yaml") == found


def test_a_profile_from_before_the_rule_of_mpi_is_read():
    text = profile_text(PROFILE)
    Path("now.yaml").write_text(text)
    Path("before.yaml").write_text(text.replace(" 0.1\n- ", "\n- ", 1))
    now, before = (read_profile(f"{name}.yaml").alternatives for name in ("now", "before"))
    assert before == ((*now[0][:-1], 0.0), *now[1:])


def test_a_profile_is_text_with_units():
    document = yaml.safe_load(profile_text(PROFILE))
    assert document["ringnet_profile"] == 3
    links = document["links"]
    assert (links["launch"], links["hop_between"], links["bandwidth_inside"]) == ("5 us", "3 us", "120 GB/s")
    assert (links["share_small"], document["rails"]) == (0.03, "each worker")
    assert set(NAMES) - set(links) == {"bandwidth_of_the_switch", "largest_doubled"}
    assert document["measured"][1]["sizes"].startswith("4 8 16 ")
    switched = replace(PROFILE, family=Family("gpu", ("ring", "switch"), 4.0))
    document = yaml.safe_load(profile_text(switched))
    assert (document["rails"], document["links"]["bandwidth_of_the_switch"]) == (4.0, "1e-09 GB/s")
    Path("s.yaml").write_text(profile_text(switched))
    assert read_profile("s.yaml").family == switched.family


@pytest.mark.parametrize("scatter", [0.02, 12.0, 1e9])
def test_whatever_is_written_is_read(scatter):
    wild = replace(
        PROFILE,
        parameters=tuple(value * factor for value, factor in zip(VALUES, [1e3, 900, 1e-3] * 6, strict=False)),
        alternatives=((20.0, -20.0) * 9,),
        curves=tuple(replace(curve, scatter=scatter) for curve in CURVES),
        verdicts=("not described: a\nb: c # d",),
    )
    Path("wild.yaml").write_text(profile_text(wild))
    assert read_profile("wild.yaml").verdicts == wild.verdicts


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("ringnet_profile",), 7, "a version that is not known; got 7; right would be: 3"),
        (("ringnet_profile",), True, "a version that is not known"),
        (("ringnet_profile",), 2, "made anew from the same logs: ringnet calibrate a.txt --out edited.yaml"),
        (("collective",), "alltoall", "collective: a known name is wanted; got alltoall"),
        (
            ("library",),
            "horovod",
            "library: a known name is wanted; got horovod; right would be: gpu, mpi, neu",
        ),
        (("algorithms",), ["spiral"], "algorithms of gpu are wanted; got spiral"),
        (("algorithms",), [], "algorithms of gpu are wanted; got none"),
        (("algorithms",), ["ring", "switch"], "links.bandwidth_of_the_switch: the key is missing"),
        (("rails",), 0, "a number from 1 on is wanted"),
        (("rails",), "many", "a number from 1 on is wanted"),
        (("links",), 3, "links: a mapping is wanted"),
        (("links", "launch"), 5, "links.launch: a time needs a unit"),
        (("links", "launch"), "-5 us", "must not be negative"),
        (("links", "launch"), "0 us", "it takes some time"),
        (("links", "launch"), "nan us", "links.launch"),
        (("links", "launch"), None, "links.launch: the key is missing"),
        (("links", "bandwidth_inside"), "0 GB/s", "more than zero"),
        (("links", "bandwidth_inside"), "fast", "this should be a rate"),
        (("links", "chunk_of_tree"), "0 B", "one byte at least"),
        (("links", "share_small"), -1, "links.share_small: a number from"),
        (("links", "share_small"), float("nan"), "links.share_small: a number from"),
        (("links", "lunch"), "5 us", "there is no such key; did you mean launch?"),
        (("measured",), 3, "a list of mappings"),
        (("measured",), [], "what was measured is missing"),
        (("measured", 0, "workers"), 0, "measured[0].workers: a whole number from 2"),
        (("measured", 0, "nodes"), 99, "more nodes than workers"),
        (("measured", 0, "sizes"), "4 8", "measured[0].times_us: 2 numbers"),
        (("measured", 0, "sizes"), "4 x", "measured[0].sizes: numbers with spaces"),
        (("measured", 1, "times_us"), "4 inf", "measured[1].times_us: 24 numbers with spaces"),
        (("measured", 0, "scatter"), -1, "a number from 0 to 50"),
        (("measured", 0), {"workers": 8, "nodes": 2, "scatter": 0, "sizes": 4, "times_us": 5}, "here twice"),
        (("measured", 0), {"workers": 4, "scatter": 0, "sizes": "4 4", "times_us": "5 5"}, "sizes rise"),
        (("measured", 0), {"workers": 4, "scatter": 0, "sizes": "4 8", "times_us": "5 4"}, "never fall"),
        (("line_weight",), 2, "line_weight: a number from 0 to 1"),
        (("alternatives",), "1 2", "a list of texts"),
        (("alternatives", 0), "1 2", "alternatives[0]: 18 logarithms"),
        (("alternatives", 0), "1e9 " * 17, "alternatives[0]: 18 logarithms"),
        (("sources",), {"a": 1}, "a list of mappings"),
        (("sources", 0, "file"), 5, "sources[0].file: a text is wanted; got 5"),
        (("verdicts",), "good", "verdicts: a list of texts is wanted"),
        (("regimes",), [], "regimes: there is no such key"),
    ],
)
def test_a_profile_edited_into_nonsense_is_told_where(path, value, words):
    told = edited(*path, value=value)
    assert words in told
    assert re.match(r"edited.yaml:\d+: ", told)


def test_the_line_is_that_of_the_value():
    text = profile_text(PROFILE).replace("launch: 5 us", "launch: -2 us")
    Path("edited.yaml").write_text(text)
    line = 1 + text.splitlines().index("  launch: -2 us")
    with pytest.raises(InputError, match=rf"edited.yaml:{line}: links.launch: a time must not be negative"):
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
    Path("edited.yaml").write_text(f"# one\nringnet_profile: 3\n{text}")
    with pytest.raises(InputError, match=re.escape(words)):
        read_profile("edited.yaml")


def test_every_mistake_is_told_at_once():
    document = yaml.safe_load(profile_text(PROFILE))
    document["links"]["launch"] = 5
    document["library"] = "horovod"
    document["line_weight"] = "much"
    Path("edited.yaml").write_text(yaml.safe_dump(document))
    with pytest.raises(InputError) as caught:
        read_profile("edited.yaml")
    assert {fault.path for fault in caught.value.faults} == {"links.launch", "library", "line_weight"}


# ----------------------------------------------------------------------------------------------------- predictions


@pytest.mark.parametrize("curve", CURVES)
def test_what_was_measured_comes_back(curve):
    found = predict(PROFILE, curve.setting, np.array(curve.message_bytes))
    assert found.time_s == pytest.approx(curve.time_s, rel=1e-9, abs=0)
    assert (found.high_s / found.low_s).max() == pytest.approx(np.exp(2 * 1.645 * 0.02))
    assert not found.is_beyond.any()


def test_elsewhere_the_links_say_by_what_factor_it_differs():
    new = Setting(16, 4)
    links = np.exp(FAMILY.log_time(np.log(VALUES), at(new, SIZES)))
    assert predict(PROFILE, new, SIZES).time_s == pytest.approx(1.1 * links, rel=0.02)


def test_sizes_that_were_not_measured_are_beyond():
    found = predict(PROFILE, SETTINGS[0], SIZES)
    assert not found.is_beyond[:24].any()
    assert found.is_beyond[24:].all()


@pytest.mark.parametrize("setting", [Setting(2, 1), *SETTINGS, Setting(16, 4), Setting(1024, 256), Setting(12, 3)])
def test_a_range_holds_its_prediction_and_grows_with_distance(setting):
    found = predict(PROFILE, setting, SIZES)
    assert (found.low_s <= found.time_s).all()
    assert (found.time_s <= found.high_s).all()
    assert np.isfinite([found.low_s, found.high_s]).all()
    near = predict(PROFILE, SETTINGS[1], SIZES)
    if setting.n_workers > 8:
        assert np.median(found.high_s / found.low_s) > np.median(near.high_s / near.low_s)


@pytest.mark.parametrize("setting", [Setting(3, 1), SETTINGS[1], Setting(16, 2), Setting(512, 128)])
def test_time_never_falls_with_the_size(setting):
    # Curves that fall against the links: the residual of small messages is carried to large ones.
    rough = tuple(
        replace(
            curve,
            time_s=tuple(np.maximum.accumulate([t * (1.5 if 8 < k < 14 else 1) for k, t in enumerate(curve.time_s)])),
        )
        for curve in CURVES
    )
    sizes = np.sort(np.random.default_rng(4).integers(1, 2**26, 300)).astype(float)
    times = predict(replace(PROFILE, curves=rough), setting, sizes).time_s
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("setting", [Setting(16, 2), Setting(16, 4), Setting(9, 9), Setting(8, 8)])
def test_no_time_is_below_that_of_fewer_workers(setting):
    free = replace(
        PROFILE,
        parameters=(*VALUES[:3], *(1e-9,) * 1, *VALUES[4:6], 1e-9, *VALUES[7:11], 500e9, *VALUES[12:]),
    )
    smaller = [curve for curve in CURVES if curve.setting.n_nodes <= setting.n_nodes]
    if setting.per_node > 4:
        smaller = smaller[:1]  # more rails: those of a single node only
    times = predict(free, setting, SIZES[:24]).time_s
    for curve in smaller:
        assert (times >= np.array(curve.time_s) * (1 - 1e-9)).all()


def test_a_line_in_n_goes_on_with_the_bytes_beyond_the_sizes_that_were_measured():
    third = replace(CURVES[1], setting=Setting(16, 4), time_s=tuple(1.3 * np.array(CURVES[1].time_s)))
    lined = replace(PROFILE, curves=(*CURVES, third), line_weight=0.8)
    large = 2.0 ** np.array([27, 30, 34])
    times = predict(lined, Setting(32, 8), large).time_s
    assert times[1:] / times[:-1] == pytest.approx([8, 16], rel=0.05)
    known = predict(lined, Setting(32, 8), SIZES[:1]).time_s[0]
    line = np.polyval(np.polyfit([2, 3, 4], [c.time_s[0] for c in lined.curves], 1), 5)
    links = predict(replace(lined, line_weight=0.0), Setting(32, 8), SIZES[:1]).time_s[0]
    assert known == pytest.approx(links**0.2 * line**0.8, rel=0.01)


def test_n_between_measured_ones_is_not_beyond():
    wider = replace(PROFILE, curves=(CURVES[0], replace(CURVES[1], setting=Setting(16, 4))))
    assert not predict(wider, Setting(8, 2), SIZES[:20]).is_beyond.any()
    assert predict(wider, Setting(32, 8), SIZES[:20]).is_beyond.all()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting(8, 2), ""),
        (Setting(256, 64), "32x the largest N and nodes"),
        (Setting(2, 1), "0.5x the smallest N and workers a node"),
        (Setting(8, 8), "4x the largest nodes, 0.25x the smallest workers a node"),
        (Setting(16, 2), "2x the largest N and workers a node"),
    ],
)
def test_how_far_a_setting_is_from_what_was_measured(setting, words):
    found = predict(PROFILE, setting, SIZES[:3])
    assert found.distance == (words,) * 3
    assert found.is_beyond.tolist() == [bool(words)] * 3


def test_how_far_a_size_is_from_what_was_measured_at_that_setting():
    """Of 4 workers from 64 B on, of 8 up to 32 MiB: a size of which only the other has times is beyond all the same."""
    first, second = CURVES
    late = replace(PROFILE, curves=(Curve(first.setting, first.message_bytes[4:], first.time_s[4:], 0.02), second))
    sizes = np.array([4.0, 64.0, 2.0**25, 2.0**26, 2.0**33])
    far = ("2x the largest message", "256x the largest message")
    assert predict(late, SETTINGS[0], sizes).distance == ("0.0625x the smallest message", "", "", *far)
    assert predict(late, SETTINGS[1], sizes).distance == ("", "", "", *far)
    assert predict(late, Setting(16, 4), sizes[3:]).distance == (
        "2x the largest N and nodes and message",
        "2x the largest N and nodes, 256x the largest message",
    )
    large = replace(PROFILE, curves=(replace(first, message_bytes=tuple(1024 * SIZES[:24])),))
    assert predict(large, SETTINGS[0], np.array([1.0])).distance == ("1/4,096 of the smallest message",)


def test_cautions_of_what_the_logs_cannot_tell():
    one_node = replace(PROFILE, curves=CURVES[:1], verdicts=("not described: x is 46 % off", "described: well"))
    assert one_node.cautions([Setting(4, 1)]) == ["not described: x is 46 % off"]
    (said,) = [text for text in one_node.cautions([Setting(8, 2)]) if "no log crosses nodes" in text]
    assert said.endswith("nodes of 4 workers are taken, as in the logs, where nodes are not given")
    assert not PROFILE.cautions([Setting(32, 8)])
    assert any("a card of its own" in text for text in PROFILE.cautions([Setting(32, 16)]))


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
    workers = Workers.alike(n, launch_s=ring_launch_s(PROFILE, setting, message_bytes))
    trace = ENGINES["events"].run(ring_schedule(n), network, workers, chunks)
    assert max(trace.workers["end_s"]) == pytest.approx(
        predict(PROFILE, setting, np.array([float(message_bytes)])).time_s[0], rel=0.0021
    )


def test_lines_are_exact_where_they_end_also_where_the_time_hardly_grows():
    """What was measured scatters, and the time may not fall: a line through the next size would be too steep here."""
    scatter = 1 + 0.2 * np.random.default_rng(3).random(24)
    curves = (replace(one, time_s=(*np.maximum.accumulate(one.time_s * scatter),)) for one in CURVES)
    noisy = replace(PROFILE, curves=(*curves,))
    for setting in SETTINGS:
        pieces, hops = ring_link(noisy, setting), 2 * (setting.n_workers - 1)
        for size, time_s in zip(SIZES[8:], predict(noisy, setting, SIZES[8:]).time_s, strict=True):
            each, launch_s = size / setting.n_workers, ring_launch_s(noisy, setting, size)
            piece = next(one for one in pieces if each <= one.up_to_bytes)
            taken_s = launch_s + hops * (piece.latency_s + each / piece.bandwidth_Bps)
            assert taken_s == pytest.approx(time_s, rel=0.0021)


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
        for workers, given in zip((("--workers", "64, 8"), ("--workers", 8, "--workers", 64)), sizes, strict=True)
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
        ("p.yaml", "--workers", 4, "--nodes", 3),
    ],
)
def test_predict_refuses_with_exit_code_2_and_no_traceback(ringnet, arguments):
    result = ringnet("predict", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_predict_says_how_many_nodes_would_do(ringnet):
    result = ringnet("predict", "p.yaml", "--workers", 12, "--nodes", 5)
    assert "--nodes: 12 workers are not as many on each of 5 nodes; got 5; right would be: 4 or 6" in result.output


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
    assert "--workers: osu.txt does not say how many workers there were" in asked.output
    for given in ("8", "osu.txt=8", "4,osu.txt=8"):
        document = json.loads(ringnet("calibrate", DATA / "osu.txt", "--workers", given, "--json").stdout)
        assert document["logs"][0]["n_workers"] == 8
    assert "got other.txt=8" in ringnet("calibrate", DATA / "osu.txt", "--workers", "other.txt=8").output
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
    assert "no model of this collective" in ringnet("calibrate", DATA / "nccl-2019.txt", "--collective", "x").output


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
