"""``network: {link: {file: profile.yaml}}``: links as they were measured."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ringnet
from ringnet.analysis.calibration import Curve, Profile, Setting, SourceFile, predict
from ringnet.analysis.calibration.machine import NAMES, Family
from ringnet.analysis.calibration.samples import at
from ringnet.errors import InputError
from ringnet.formats.profiles import profile_text, read_profile
from ringnet.runs.engine import engine_for
from ringnet.runs.parts import build
from ringnet.runs.step_parts import build_step
from ringnet.study.compare import compare_parts, plan_comparison
from ringnet.study.parts import PartOptions

#: The links of a real machine, as they are shipped: small messages over trees, large ones around a ring.
REAL = Path(__file__).parents[1] / "scenarios" / "data" / "v100-profile.yaml"
SETTINGS = (Setting(4, 0), Setting(8, 0))
#: A machine that is a ring at all sizes, on links that the logs say no more of.
VALUES = {
    "launch": 8e-6, "launch_medium": 2.0, "launch_large": 2.5, "hop_inside": 1e-6, "hop_inside_medium": 2.0,
    "hop_inside_large": 4.0, "hop_between": 2e-6, "hop_between_of_tree": 1.0, "hop_between_medium": 2.0,
    "hop_between_large": 3.0, "bandwidth_inside": 20e9, "bandwidth_of_a_rail": 20e9, "share_small": 0.05,
    "share_medium": 0.5, "share_of_tree": 0.5, "bandwidth_of_the_switch": 1.0,
    "chunk_of_tree": 2.0**18, "largest_doubled": 1e4,
}  # fmt: skip


MADE_SIZES = 64.0 * 2.0 ** np.arange(20)


def made(settings, family, values=VALUES, sizes=MADE_SIZES):
    """Return a profile of which the curves are what its links say."""
    logs = np.log([values[name] for name in NAMES])
    curves = tuple(
        Curve(setting, tuple(sizes), tuple(np.exp(family.log_time(logs, at(setting, sizes)))), 0.02)
        for setting in settings
    )
    sources = (SourceFile("a.txt", "ab" * 32, 24),)
    return Profile(family, tuple(values[name] for name in NAMES), (), curves, sources=sources)


PROFILE = made(SETTINGS, Family("gpu", ("ring",)))
TEXT = "{scenario_version: 1, workers: 8, message: 1 MiB, payload: none, network: {link: {file: p.yaml}}}"
INSIDE = "{topology: nodes, workers_per_host: 4, link: {file: real.yaml}, inside: {link: {file: real.yaml}}}"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(profile_text(PROFILE))
    shutil.copy(REAL, "real.yaml")


def compare(of, algorithms):
    return compare_parts(plan_comparison(of, algorithms), PartOptions(1))


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
@pytest.mark.parametrize("n", [4, 8, 32])
@pytest.mark.parametrize("kib", [1, 32, 1024, 2**20])
def test_a_ring_takes_what_predict_says(topology, n, kib):
    found = makespan_s(f"workers={n}", f"message={kib} KiB", f"network.topology={topology}")
    assert found == pytest.approx(predicted_s(PROFILE, PROFILE.setting_for(n), kib * 1024), rel=0.01)


@pytest.mark.parametrize(("n", "nodes"), [(4, 1), (32, 8)])
@pytest.mark.parametrize("kib", [1, 64, 1024, 32768])
def test_where_the_machine_ran_a_tree_the_ring_takes_as_long(n, nodes, kib):
    found = makespan_s("network.link.file=real.yaml", f"workers={n}", f"message={kib} KiB")
    assert found == pytest.approx(predicted_s(read_profile(REAL), Setting(n, nodes), kib * 1024), rel=0.025)


def test_between_powers_of_two_it_is_close_where_one_protocol_takes_over_from_another():
    for elements in np.unique(np.geomspace(16, 2**24, 60).astype(int)).tolist():
        found = makespan_s(f"message={elements * 4 * 8} B")
        assert found == pytest.approx(predicted_s(PROFILE, SETTINGS[1], elements * 32), rel=0.02)


def test_the_other_passes_take_a_half_once_they_are_launched():
    whole, launch_s = makespan_s(), build(scenario()).workers.launch_s[0]
    assert launch_s == pytest.approx(VALUES["launch"] * VALUES["launch_large"], rel=0.01)
    assert makespan_s("collective=all-gather") - launch_s == pytest.approx((whole - launch_s) / 2)


def test_links_are_the_machines_where_it_runs_a_ring():
    """Launch, hop and bandwidth of the protocol of each size, also where two take as long: together 8 % less."""
    protocols = ((1.0, 1.0, 0.05), (2.0, 2.0, 0.5), (2.5, 4.0, 1.0))
    seen = set()
    for elements in np.unique(np.geomspace(16, 2**24, 40).astype(int)).tolist():
        n_bytes = elements * 4 * 8
        parts = build(scenario(f"message={n_bytes} B"))
        link = parts.network.behaviour(0).offer(n_bytes / 8, 0.0)
        found = parts.workers.launch_s[0] / VALUES["launch"], link.latency_s / VALUES["hop_inside"]
        off = [np.abs(np.log([*found, link.bandwidth_Bps / 20e9]) - np.log(own)).max() for own in protocols]
        seen.add(int(np.argmin(off)))
        assert min(off) < 0.15
    assert seen == {0, 1, 2}


def test_a_launch_that_is_said_stands_in_place_of_the_measured_one():
    without = makespan_s("worker.launch=0 s")
    assert makespan_s() == pytest.approx(without + build(scenario()).workers.launch_s[0])
    exception = build(scenario("worker.exceptions={3: {launch: 1 ms}}")).workers.launch_s
    assert (exception[3], len(set(exception.tolist()))) == (1e-3, 2)
    notes = ringnet.simulate(scenario("worker.launch=1 us")).notes
    assert any("worker.launch, 1 us, stands in place of what was measured" in note for note in notes)


def test_each_size_has_its_own_launch_in_jobs_steps_and_comparisons():
    by_job = build(scenario("jobs=[{workers: 8, message: 1 KiB}]", "network.topology=switch"))
    found = [float(one.workers.launch_s[0]) for one in (by_job, *by_job.others)]
    assert found == pytest.approx([20e-6, 8e-6], rel=0.01)
    table = compare(scenario("sweep={over: {message: [1 KiB, 1 MiB]}}"), ["ring"]).table
    assert table["makespan_s"].tolist() == [makespan_s("message=1 KiB"), makespan_s()]
    drawn = ["worker.send_overhead={mean: 1 ps, distribution: exponential}", "repeat=3"]
    means = compare(scenario("sweep={over: {message: [1 KiB, 1 MiB]}}", *drawn), ["ring"]).table["makespan_s"]
    assert means.tolist() == pytest.approx(table["makespan_s"].tolist(), rel=1e-4)
    layers = "step={layers: layers.csv, first_bucket: 1 KiB, bucket_cap: 1 KiB}"
    Path("layers.csv").write_text("name,parameters,forward,backward\na,256,1 us,1 us\nb,256,1 us,1 us\n")
    parts = build_step(scenario(layers, "message=null"))
    own = parts.groups[0]
    launches = [own.collective(one).workers.launch_s[0] for one in own.program.collectives]
    assert launches == pytest.approx([8e-6] * 2, rel=0.01)


def test_a_large_run_has_the_faster_engine_and_the_same_times():
    large = scenario("workers=128", "message=4 MiB")
    assert engine_for(build(large)).name == "recurrence"
    times = {makespan_s("workers=128", "message=4 MiB", f"engine={name}") for name in ("events", "recurrence")}
    assert len(times) == 1


def test_one_worker_takes_no_time():
    assert makespan_s("workers=1") == 0


# --------------------------------------------------------------------------------------------------- hosts


def test_inside_and_between_hosts():
    network = build(scenario(f"network={INSIDE}", "workers=32", "message=32 MiB")).network
    ends = {name: network.names.index(name) for name in ("0->h0/switch", "h0/nic0->switch")}
    profile = read_profile(REAL)
    links = dict(zip(NAMES, profile.parameters, strict=True))
    inside, between = (network.bandwidth_Bps[link] for link in ends.values())
    # Four rails of a node carry less together than the links inside: by the factor that the logs tell.
    assert inside / between == pytest.approx(links["bandwidth_inside"] / links["bandwidth_of_a_rail"] / 4)
    assert between == pytest.approx(4 * links["bandwidth_of_a_rail"], rel=0.1)
    way = sum(network.latency_s[link] for link in network.route(3, 4))
    hop = sum(network.latency_s[link] for link in network.route(0, 1))
    slower = links["hop_between"] * links["hop_between_large"] / (links["hop_inside"] * links["hop_inside_large"])
    assert way / hop == pytest.approx(slower)


@pytest.mark.parametrize(("n", "nodes"), [(4, 1), (8, 2), (32, 8)])
@pytest.mark.parametrize("kib", [1, 16, 512, 8192, 32768])
def test_a_ring_over_hosts_takes_what_predict_says(n, nodes, kib):
    found = makespan_s(f"network={INSIDE}", f"workers={n}", f"message={kib} KiB")
    assert found == pytest.approx(predicted_s(read_profile(REAL), Setting(n, nodes), kib * 1024), rel=0.1)


def test_links_to_cards_and_between_sockets_are_part_of_a_measured_way():
    def way(inside):
        network = build(scenario(f"network={inside}", "workers=32", "message=32 MiB")).network
        return [(network.names[link], network.latency_s[link]) for link in network.route(3, 4)]

    own = "card: {bandwidth: 60 GB/s, latency: 300 ns}, sockets: 2, socket: {bandwidth: 20 GB/s, latency: 200 ns}"
    plain, with_own = way(INSIDE), way(INSIDE.replace("inside: {", f"inside: {{{own}, "))
    assert with_own[:2] == [("3->h0/socket1", 300e-9), ("h0/socket1->h0/socket0", 200e-9)]
    assert sum(latency for _, latency in with_own) == pytest.approx(sum(latency for _, latency in plain))


def test_hosts_that_differ_are_refused():
    nodes = "{topology: nodes, workers_per_host: [6, 2], link: {file: real.yaml}, inside: {link: nvlink4}}"
    assert any("hosts differ in size: a profile is of hosts alike" in one for one in faults(f"network={nodes}"))


def test_cards_of_a_host_part_what_they_have_together():
    def between(*more):
        network = build(scenario(f"network={INSIDE}", "workers=32", "message=32 MiB", *more)).network
        return network.bandwidth_Bps[network.names.index("h0/nic0->switch")]

    assert between("network.nics=4") == pytest.approx(between() / 4)
    run = ringnet.simulate(scenario(f"network={INSIDE}", "workers=32", "network.nics=4"))
    assert any("one ring uses one card of each node" in note for note in run.notes)


def test_a_comparison_recommends_where_the_machine_ran_a_ring_and_nowhere_else():
    plain = compare(scenario("network.topology=switch"), ["ring", "direct"])
    assert not plain.guesses
    sizes = "sweep={over: {message: [1 KiB, 32 MiB]}}"
    tree = compare(scenario(f"network={INSIDE}", "workers=32", sizes), ["ring", "direct"])
    assert set(tree.guesses) == {(32, 1024)}
    assert any("a ring's equivalent there (measured as a tree)" in note for note in tree.notes)
    mean = compare(scenario("network.link.file=real.yaml", "workers=32", sizes), ["ring", "uneven-ring"])
    assert "hops inside hosts and between them are taken to be alike" in mean.guesses[32, 2**25]


def test_slow_links_inside_hosts_are_said():
    network = INSIDE.replace("inside: {link: {file: real.yaml}}", "inside: {bandwidth: 50 GB/s, latency: 20 us}")
    notes = ringnet.simulate(scenario(f"network={network}", "workers=32")).notes
    assert any("the links inside them take longer than was measured" in note for note in notes)


# ------------------------------------------------------------------------------------- what a scenario changes


def test_an_exception_holds_for_every_size_and_keeps_the_rest():
    for size in ("1 KiB", "1 MiB"):
        network = build(scenario(f"message={size}", "network.links.3->4.latency=1 ms")).network
        assert {one.latency_s for one in network.behaviours[3].pieces} == {1e-3}
        assert network.latency_s[3] == 1e-3
        assert {one.bandwidth_Bps for one in network.behaviours[3].pieces} == {
            one.bandwidth_Bps for one in network.behaviours[4].pieces
        }
        slow = makespan_s(f"message={size}", "network.links.3->4.latency=1 ms")
        assert slow > makespan_s(f"message={size}") + 1e-3


def test_links_that_a_topology_makes_wider_stay_so():
    network = build(scenario("network.topology=leaf-spine", "network.leaves=2", "network.oversubscription=4")).network
    up, trunk = (network.names.index(name) for name in ("0->leaf0", "leaf0->spine0"))
    assert network.bandwidth_Bps[trunk] == pytest.approx(network.bandwidth_Bps[up])
    assert network.bandwidth_Bps[up] == pytest.approx(20e9, rel=0.01)


def test_a_cable_keeps_the_number_that_it_has_of_its_own():
    cables = "[{from: 0, to: 1}, {from: 1, to: 2, bandwidth: 1 GB/s}, {from: 2, to: 0, latency: 1 ms}]"
    text = f"network={{topology: custom, link: {{file: p.yaml}}, cables: {cables}}}"
    network = build(scenario(text, "workers=3")).network
    links = [network.names.index(name) for name in ("0->1", "1->2", "2->0")]
    assert network.bandwidth_Bps[links].tolist() == pytest.approx([20e9, 1e9, 20e9], rel=0.01)
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
    assert "is extrapolated beyond what was measured (8x the largest N), N=4 to 8" in beyond.notes[0]
    assert "each collective of this size takes 19.92 us to launch, as was measured" in within.notes[1]
    tree = ringnet.simulate(scenario("network.link.file=real.yaml", "message=1 KiB", "workers=32")).notes
    assert any("measured as a tree at this size: the links make a ring take as long" in note for note in tree)
    other = ringnet.simulate(
        scenario(
            "algorithm=direct",
            "collective=reduce-scatter",
            "network.topology=switch",
            "message=1 KiB",
            "network.link.file=real.yaml",
        )
    )
    assert any("direct on them is a guess" in note for note in other.notes)
    assert any("measured on all-reduce" in note for note in other.notes)


def test_the_tables_have_what_links_do_with_the_sizes_of_the_run():
    small, large = (ringnet.simulate(scenario(f"message={size}")) for size in ("1 KiB", "1 MiB"))
    # By its first protocol the machine has a twentieth of 20 GB/s, and some more where the second is as fast.
    assert small.links["bandwidth_Bps"][0] == pytest.approx(1e9, rel=0.3)
    assert large.links["bandwidth_Bps"][0] == pytest.approx(20e9, rel=0.1)
    # Another algorithm may send larger transfers, at the rate of those.
    assert small.summary["collective_bound_s"] == pytest.approx(2 * 7 / 8 * 1024 / 20e9, rel=0.01)
    for run in (small, large):
        assert run.summary["closed_form_s"] == pytest.approx(run.summary["makespan_s"], rel=1e-12, abs=0)
        bounds_s = run.summary["collective_bound_s"], run.summary["schedule_bound_s"]
        assert bounds_s[0] <= bounds_s[1] * (1 + 1e-12) < run.summary["makespan_s"]


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
    Path("p.yaml").write_text(profile_text(replace(PROFILE, line_weight=0.2)))
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
    Path("p.yaml").write_text(profile_text(PROFILE).replace("hop_between: 2 us", "hop_between: -2 us"))
    (fault,) = faults()
    assert fault.startswith("<text>:1: network.link.file: p.yaml:17: links.hop_between: a time must not be")


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


def test_a_profile_of_small_messages_only_says_so():
    verdict = "bandwidth not identifiable: the largest message has 1 KiB"
    Path("p.yaml").write_text(profile_text(replace(PROFILE, verdicts=(verdict,))))
    assert any(verdict in note for note in ringnet.simulate(scenario()).notes)


def test_a_profile_of_before_is_refused_with_the_remedy():
    Path("p.yaml").write_text("ringnet_profile: 1\nsources:\n- file: a.txt\n- file: b.txt\nregimes: []\n")
    (fault,) = faults()
    assert "p.yaml:1: ringnet_profile: a profile of an earlier ringnet" in fault
    assert "ringnet calibrate a.txt b.txt --out" in fault
