"""``network: {link: {file: profile.yaml}}``: links as they were measured."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ringnet
from ringnet.analysis.calibration import Profile, Regime, Setting, SourceFile, predict
from ringnet.analysis.calibration.profile import Boundary
from ringnet.errors import InputError
from ringnet.formats.profiles import profile_text, read_profile
from ringnet.runs.engine import engine_for
from ringnet.runs.parts import build
from ringnet.study.compare import compare

#: The links of a real machine, as they are shipped: small messages over trees, large ones around a ring.
REAL = Path(__file__).parents[1] / "scenarios" / "data" / "v100-profile.yaml"
SETTINGS = (Setting(4, 0), Setting(8, 0))
#: A machine that is a ring at all sizes, with two protocols.
PROFILE = Profile(
    collective="all_reduce",
    regimes=(
        Regime(
            "ring", 8e-6, 2e-6, None, 1e9, None, 0.02, 20, {},
            (Boundary(SETTINGS[0], 16384.0, 32768.0), Boundary(SETTINGS[1], 32768.0, 65536.0)),
        ),
        Regime("ring", 20e-6, 6e-6, None, 20e9, None, 0.05, 30),
    ),
    settings=SETTINGS,
    smallest_bytes=64,
    largest_bytes=1 << 25,
    is_split=True,
    drift=0.1,
    has_drift=True,
    sources=(SourceFile("a.txt", "ab" * 32, 24),),
)  # fmt: skip
TEXT = "{scenario_version: 1, workers: 8, message: 1 MiB, payload: none, network: {link: {file: p.yaml}}}"
INSIDE = "{topology: nodes, workers_per_host: 4, link: {file: real.yaml}, inside: {link: {file: real.yaml}}}"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(profile_text(PROFILE))
    shutil.copy(REAL, "real.yaml")


def scenario(*overrides, **options):
    return ringnet.loads(TEXT, overrides, **options)


def makespan_s(*overrides):
    return ringnet.simulate(scenario(*overrides)).summary["makespan_s"]


def predicted_s(profile, setting, n_bytes):
    return predict(profile, setting, np.array([float(n_bytes)])).time_s[0]


def faults(*overrides, **options):
    with pytest.raises(InputError) as caught:
        scenario(*overrides, **options)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------------------- the times of a profile


@pytest.mark.parametrize("topology", ["ring", "switch", "fully-connected"])
@pytest.mark.parametrize("n", [4, 8, 16, 128])
@pytest.mark.parametrize("kib", [1, 16, 32, 64, 1024, 2**20])
def test_a_ring_takes_what_predict_says(topology, n, kib):
    found = makespan_s(f"workers={n}", f"message={kib} KiB", f"network.topology={topology}")
    assert found == pytest.approx(predicted_s(PROFILE, PROFILE.setting_for(n), kib * 1024), rel=1e-9)


@pytest.mark.parametrize(("n", "nodes"), [(4, 1), (32, 8), (64, 16), (128, 32)])
@pytest.mark.parametrize("kib", [1, 4, 64, 1024, 32768])
def test_where_the_machine_ran_a_tree_the_ring_takes_as_long(n, nodes, kib):
    found = makespan_s("network.link.file=real.yaml", f"workers={n}", f"message={kib} KiB")
    assert found == pytest.approx(predicted_s(read_profile(REAL), Setting(n, nodes), kib * 1024), rel=1e-9)


def test_between_powers_of_two_it_is_close_where_one_protocol_takes_over_from_another():
    for elements in np.unique(np.geomspace(16, 2**24, 60).astype(int)).tolist():
        found = makespan_s(f"message={elements * 4 * 8} B")
        assert found == pytest.approx(predicted_s(PROFILE, SETTINGS[1], elements * 32), rel=0.02)


def test_the_other_passes_take_a_half():
    whole = makespan_s()
    assert makespan_s("collective=all-gather") == pytest.approx(whole / 2)


def test_a_large_run_has_the_faster_engine_and_the_same_times():
    large = scenario("workers=256", "message=4 MiB")
    assert engine_for(build(large)).name == "recurrence"
    times = {
        makespan_s("workers=256", "message=4 MiB", f"engine={name}") for name in ("events", "recurrence")
    }
    assert len(times) == 1


def test_one_worker_takes_no_time():
    assert makespan_s("workers=1") == 0


# --------------------------------------------------------------------------------------------------- hosts


def test_inside_and_between_hosts():
    network = build(scenario(f"network={INSIDE}", "workers=32", "message=32 MiB")).network
    ends = {name: network.names.index(name) for name in ("0->h0/switch", "h0/nic0->switch")}
    regime = read_profile(REAL).regimes[-1]
    inside, between = (network.bandwidth_Bps[link] for link in ends.values())
    assert (inside, between) == pytest.approx((regime.bandwidth_Bps, regime.between_bandwidth_Bps))
    way = [network.latency_s[link] for link in network.route(3, 4)]
    assert sum(way) == pytest.approx(regime.between_latency_s + regime.launch_s / 62)
    assert sum(network.latency_s[link] for link in network.route(0, 1)) == pytest.approx(
        regime.latency_s + regime.launch_s / 62
    )


@pytest.mark.parametrize("kib", [1, 4, 16])
def test_over_hosts_a_tree_is_met_exactly(kib):
    found = makespan_s(f"network={INSIDE}", "workers=32", f"message={kib} KiB")
    assert found == pytest.approx(predicted_s(read_profile(REAL), Setting(32, 8), kib * 1024), rel=1e-9)


def test_a_single_host_is_one():
    found = makespan_s(f"network={INSIDE}", "workers=4", "message=1 MiB")
    assert found == pytest.approx(predicted_s(read_profile(REAL), Setting(4, 1), 2**20), rel=1e-9)


def test_a_ring_over_hosts_may_be_faster_than_measured_and_says_so():
    run = ringnet.simulate(scenario(f"network={INSIDE}", "workers=32", "message=8 MiB"))
    assert run.summary["makespan_s"] < predicted_s(read_profile(REAL), Setting(32, 8), 2**23)
    assert any("topology: switch keeps to it" in note for note in run.notes)
    tree = ringnet.simulate(scenario(f"network={INSIDE}", "workers=32", "message=1 KiB"))
    assert not any("topology: switch keeps to it" in note for note in tree.notes)


def test_a_comparison_of_algorithms_says_what_the_links_are():
    plain = compare(scenario("network.topology=switch"), ["ring", "direct"])
    assert any("what other algorithms take on them is a guess" in note for note in plain.notes)


def test_slow_links_inside_hosts_are_said():
    network = INSIDE.replace(
        "inside: {link: {file: real.yaml}}", "inside: {bandwidth: 50 GB/s, latency: 20 us}"
    )
    notes = ringnet.simulate(scenario(f"network={network}", "workers=32")).notes
    assert any("the links inside them take longer than was measured" in note for note in notes)


# ------------------------------------------------------------------------------------- what a scenario changes


def test_an_exception_holds_for_every_size_and_keeps_the_rest():
    for size, own in (("1 KiB", 0), ("1 MiB", 1)):
        network = build(scenario(f"message={size}", "network.links.3->4.latency=1 ms")).network
        assert {one.latency_s for one in network.behaviours[3].pieces} == {1e-3}
        assert network.latency_s[3] == 1e-3
        assert {one.bandwidth_Bps for one in network.behaviours[3].pieces} == {
            one.bandwidth_Bps for one in network.behaviours[4].pieces
        }
        slow = makespan_s(f"message={size}", "network.links.3->4.latency=1 ms")
        assert slow > makespan_s(f"message={size}") + 1e-3, own


def test_links_that_a_topology_makes_wider_stay_so():
    network = build(
        scenario("network.topology=leaf-spine", "network.leaves=2", "network.oversubscription=4")
    ).network
    up, trunk = (network.names.index(name) for name in ("0->leaf0", "leaf0->spine0"))
    assert network.bandwidth_Bps[trunk] == pytest.approx(network.bandwidth_Bps[up])
    assert network.bandwidth_Bps[up] == pytest.approx(20e9)


def test_a_cable_keeps_the_number_that_it_has_of_its_own():
    cables = "[{from: 0, to: 1}, {from: 1, to: 2, bandwidth: 1 GB/s}, {from: 2, to: 0, latency: 1 ms}]"
    text = f"network={{topology: custom, link: {{file: p.yaml}}, cables: {cables}}}"
    network = build(scenario(text, "workers=3")).network
    links = [network.names.index(name) for name in ("0->1", "1->2", "2->0")]
    assert network.bandwidth_Bps[links].tolist() == pytest.approx([20e9, 1e9, 20e9])
    assert network.latency_s[links][2] == 1e-3
    assert network.latency_s[links][0] == network.latency_s[links][1] < 1e-4
    every = cables.replace("to: 1}", "to: 1, bandwidth: 1 GB/s, latency: 1 us}")
    every = every.replace("1 GB/s}", "1 GB/s, latency: 1 us}").replace("1 ms}", "1 ms, bandwidth: 1 GB/s}")
    (fault,) = faults(text.replace(cables, every), "workers=3")
    assert "network.link: no link of this network takes it" in fault


# ------------------------------------------------------------------------------------------- what is reported


def test_what_is_beyond_is_marked_and_told():
    within, beyond = (ringnet.simulate(scenario(f"workers={n}")) for n in (8, 64))
    assert (within.summary["is_beyond"], beyond.summary["is_beyond"]) == (False, True)
    assert "1 MiB at N=8 is within what was measured, N=4 to 8, 64 B to 32 MiB" in within.notes[0]
    assert "is extrapolated beyond what was measured" in beyond.notes[0]
    assert "the launch, 20 us for each collective, is spread over the 14 hops" in within.notes[1]
    tree = ringnet.simulate(scenario("network.link.file=real.yaml", "message=1 KiB")).notes
    assert any("log2 N of them, at this size: the links make a ring take as long" in note for note in tree)
    other = ringnet.simulate(
        scenario("algorithm=direct", "collective=reduce-scatter", "network.topology=switch")
    )
    assert any("takes what was measured: direct on them is a guess" in note for note in other.notes)
    assert any("measured on all-reduce" in note for note in other.notes)


def test_the_tables_have_what_links_do_with_the_sizes_of_the_run():
    small, large = (ringnet.simulate(scenario(f"message={size}")) for size in ("1 KiB", "1 MiB"))
    assert small.links["bandwidth_Bps"][0] == pytest.approx(1e9)
    assert large.links["bandwidth_Bps"][0] == pytest.approx(20e9)
    # Another algorithm may send larger transfers, at the rate of those.
    assert small.summary["collective_bound_s"] == pytest.approx(2 * 7 / 8 * 1024 / 20e9)
    for run in (small, large):
        assert run.summary["closed_form_s"] == pytest.approx(run.summary["makespan_s"], rel=1e-12)
        assert (
            run.summary["collective_bound_s"] <= run.summary["schedule_bound_s"] < run.summary["makespan_s"]
        )


def test_another_job_shares_the_links_and_their_pieces():
    jobs = "[{workers: 8, message: 1 KiB}]"
    beside = [f"jobs={jobs}", "network.topology=switch", "message=1 KiB"]
    run = ringnet.simulate(scenario(*beside))
    assert run.jobs["makespan_s"].tolist() == pytest.approx([makespan_s("message=1 KiB")] * 2, rel=0.02)


def test_a_sweep_marks_each_of_its_points(tmp_path):
    swept = "sweep={over: {workers: [4, 64]}}"
    results = ringnet.run(scenario(swept), out=tmp_path / "out")
    assert results.summary["is_beyond"].tolist() == [False, True]
    assert "true" in (tmp_path / "out" / "summary.csv").read_text()


def test_without_measured_links_there_is_no_such_column():
    plain = TEXT.replace("link: {file: p.yaml}", "bandwidth: 1 GB/s, latency: 1 us")
    assert "is_beyond" not in ringnet.simulate(ringnet.loads(plain)).summary


# ----------------------------------------------------------------------------------- what stands in a document


def test_a_document_names_the_file_and_repeats_the_run(tmp_path):
    first = scenario()
    document = first.document()
    assert document["network"]["link"] == {"file": "p.yaml"}
    assert "bandwidth" not in document["network"]
    again = ringnet.loads(json.dumps(document), folder=tmp_path)
    assert again.document() == document
    assert ringnet.simulate(again).summary == ringnet.simulate(first).summary
    assert list(first.inputs()) == ["p.yaml"]
    nodes = scenario(f"network={INSIDE}").document()["network"]
    assert nodes["inside"] == {"shape": "switch", "link": {"file": "real.yaml"}, "sockets": 1}


def test_another_profile_is_another_run():
    before = scenario().key()
    Path("p.yaml").write_text(profile_text(replace(PROFILE, drift=0.2)))
    assert scenario().key() != before


@pytest.mark.parametrize(
    "over", ["network.link.file: [p.yaml, real.yaml]", "network.link: [{file: p.yaml}, {file: real.yaml}]"]
)
def test_profiles_can_be_swept(over):
    swept = scenario(f"sweep={{over: {{{over}}}}}")
    times = [ringnet.simulate(point.scenario).summary["makespan_s"] for point in swept.points()]
    assert times[0] != times[1]
    assert list(swept.inputs()) == ["p.yaml", "real.yaml"]


def test_a_profile_and_a_preset_can_be_swept():
    swept = scenario("sweep={over: {network.link: [{file: p.yaml}, nvlink4]}}")
    assert [set(ringnet.simulate(point.scenario).summary) > {"is_beyond"} for point in swept.points()] == [
        True,
        False,
    ]


# --------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("network.link.file=none.yaml", "network.link.file: none.yaml: the file cannot be read"),
        ("network.link.file=../p.yaml", "the file lies outside the scenario's folder"),
        ("network.link={}", "network.link"),
        ("network.link.file=5", "network.link.file: text is wanted"),
        ("network.link.size=5", "network.link.size: there is no such key"),
        ("network.link=nvlink9", "there is no such preset of a link"),
    ],
)
def test_a_mistake_is_told_at_its_key(override, words):
    assert any(words in fault for fault in faults(override)), faults(override)


def test_a_broken_profile_is_told_with_its_own_line():
    Path("p.yaml").write_text(profile_text(PROFILE).replace("latency: 2 us", "latency: -2 us"))
    (fault,) = faults()
    assert fault.startswith("<text>:1: network.link.file: p.yaml:22: regimes[0].latency: a time must not be")


def test_keys_that_the_profile_makes_unread_are_refused():
    text = TEXT.replace(
        "p.yaml}", "p.yaml}, bandwidth: 1 GB/s, regimes: [{up_to: 1 KiB, bandwidth: 1 GB/s, latency: 0 s}]"
    )
    with pytest.raises(InputError) as caught:
        ringnet.loads(text)
    told = [str(fault) for fault in caught.value.faults]
    assert [fault.split(": ")[1] for fault in told] == ["network.bandwidth", "network.regimes"]
    assert "the key is never read: the profile says what the links do" in told[0]


def test_keys_that_an_override_orphaned_are_left_out_with_a_note():
    plain = TEXT.replace("link: {file: p.yaml}", "bandwidth: 1 GB/s, latency: 1 us")
    changed = ringnet.loads(plain, ["network.link={file: p.yaml}"])
    assert [note.partition(":")[0] for note in changed.notes] == ["network.bandwidth", "network.latency"]
    assert ringnet.simulate(changed).summary["makespan_s"] == makespan_s()


def test_a_profile_that_knows_no_bandwidth_carries_nothing():
    last = replace(PROFILE.regimes[1], bandwidth_Bps=float("inf"))
    Path("p.yaml").write_text(profile_text(replace(PROFILE, regimes=(PROFILE.regimes[0], last))))
    (fault,) = faults()
    assert "network.link: the profile knows no bandwidth: it was made from small messages only" in fault


def test_a_first_regime_that_costs_nothing_per_byte_leaves_a_bound():
    first = replace(PROFILE.regimes[0], bandwidth_Bps=float("inf"))
    free = replace(PROFILE, regimes=(first, PROFILE.regimes[1]))
    Path("p.yaml").write_text(profile_text(free))
    for kib in (1, 4, 16):
        assert makespan_s(f"message={kib} KiB") == pytest.approx(predicted_s(free, SETTINGS[1], kib * 1024))
    summary = ringnet.simulate(scenario()).summary
    assert summary["collective_bound_s"] > 0
