"""Scenarios of every network: keys to parts, runs with jobs and traffic beside, and each mistake in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ringnet.errors import InputError
from ringnet.networks import PRESETS, TOPOLOGIES, BySize, OverTime, Packets, Piece, Window
from ringnet.networks.behaviour import ANY_SIZE
from ringnet.payload import Payload
from ringnet.runs.engine import engine_for
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

HEAD = "scenario_version: 1\nname: x\nworkers: 8\nmessage: 64 KiB\n"
RATE = "bandwidth: 50 GB/s, latency: 1 us"
STAR = "switches: [hub], cables: [" + ", ".join(f"{{from: {worker}, to: hub}}" for worker in range(8)) + "]"
SHAPES = {
    "ring": "",
    "switch": "",
    "fully-connected": "",
    "torus": "sides: [4, 2]",
    "mesh": "sides: [2, 2, 2]",
    "leaf-spine": "leaves: 2, spines: 2, oversubscription: 4",
    "fat-tree": "k: 4",
    "dragonfly": "groups: 3, routers_per_group: 2, hosts_per_router: 2",
    "nodes": "workers_per_host: 4, nics: 2, inside: {shape: pcie, link: pcie4-x16}, between: {topology: ring}",
    "rails": "rails: 4, spines: 2",
    "custom": STAR,
}
TWO_LEAVES = "topology: leaf-spine, leaves: 2, oversubscription: 4"


def scenario(network: str = "", *overrides: str, rest: str = ""):
    keys = ", ".join(filter(None, (network, RATE)))
    return loads(f"{HEAD}network: {{{keys}}}\n{rest}", overrides, file="s.yaml")


def of_shape(topology: str, *overrides: str):
    return scenario(", ".join(filter(None, (f"topology: {topology}", SHAPES[topology]))), *overrides)


def faults(network: str = "", *overrides: str, rest: str = "") -> list[str]:
    with pytest.raises(InputError) as caught:
        scenario(network, *overrides, rest=rest)
    return [str(fault).partition(": ")[2] for fault in caught.value.faults]


def fault(network: str = "", *overrides: str, rest: str = "") -> str:
    (only,) = faults(network, *overrides, rest=rest)
    return only


# ----------------------------------------------------------------------------------------------- every shape


def test_every_topology_has_a_scenario_here():
    assert set(SHAPES) == set(TOPOLOGIES)


@pytest.mark.parametrize("topology", SHAPES)
@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_run_on_every_topology_is_verified_and_no_link_is_over_100_percent(topology, sharing):
    result = simulate(of_shape(topology, f"network.sharing={sharing}"))
    row, links = result.summary, result.links
    assert row["sum_ok"]
    assert (row["topology"], row["sharing"]) == (topology, sharing)
    assert links["utilisation"].max() <= 1 + 1e-12
    assert row["schedule_bound_s"] <= row["makespan_s"] * (1 + 1e-12)
    assert row["collective_bound_s"] <= row["makespan_s"] * (1 + 1e-12)
    assert result.workers["sent_bytes"].sum() == result.workers["received_bytes"].sum() == 14 * 65536


@pytest.mark.parametrize("topology", SHAPES)
def test_a_document_gives_the_same_network(topology):
    first = of_shape(topology)
    again = loads(json.dumps(first.document()))
    assert again.document() == first.document()
    assert again.key() == first.key()
    one, other = build(first).network, build(again).network
    assert list(one.names) == list(other.names)
    assert one.bandwidth_Bps.tolist() == other.bandwidth_Bps.tolist()


@pytest.mark.parametrize("topology", SHAPES)
def test_a_parameter_of_another_topology_is_a_mistake_that_names_it(topology):
    wrong = "k: 4" if topology != "fat-tree" else "sides: [4, 2]"
    key = wrong.partition(":")[0]
    keys = ", ".join(filter(None, (f"topology: {topology}", SHAPES[topology], wrong)))
    assert fault(keys).startswith(f"network.{key}: topology {topology} has no {key}: ")


def test_a_parameter_that_is_missing():
    assert fault("topology: torus") == (
        "network.sides: the key is missing: topology torus needs it; right would be: sides: [4, 2]"
    )


@pytest.mark.parametrize("topology", ["torus", "mesh"])
@pytest.mark.parametrize("n_workers", [2, 7, 12, 97, 1024])
def test_the_sides_that_are_suggested_hold(topology, n_workers):
    for wrong in (f"topology: {topology}", f"topology: {topology}, sides: [3, 3]"):
        with pytest.raises(InputError) as caught:
            scenario(wrong, f"workers={n_workers}")
        sides = str(caught.value).partition("right would be: ")[2]
        assert sides.startswith("sides: ")
        scenario(f"topology: {topology}, {sides}", f"workers={n_workers}")


def test_a_sweep_over_topologies_leaves_out_what_one_does_not_have():
    found = scenario("sides: [4, 2]", rest="sweep: {over: {network.topology: [torus, switch]}}")
    assert found.notes == ("network.sides: left out, topology switch has no sides: mesh and torus have",)
    assert [point.scenario.network.sides for point in found.points()] == [(4, 2), None]


# ------------------------------------------------------------------------------------------------- presets


def preset(rest: str, *overrides: str):
    return loads(f"{HEAD}network: {{{rest}}}\n", overrides)


def test_a_preset_gives_bandwidth_and_latency_and_may_be_overridden():
    known = PRESETS["nvlink4"]
    found = preset("link: nvlink4").network
    assert (found.bandwidth_Bps, found.latency_s) == (known.bandwidth_Bps, known.latency_s)
    assert preset("link: nvlink4, latency: 3 us").network.latency_s == 3e-6
    assert preset("link: nvlink4", "network.bandwidth=1 GB/s").network.bandwidth_Bps == 1e9
    assert "link" not in preset("link: nvlink4").document()["network"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_reads_and_writes_as_it_is(name):
    found = preset(f"link: {name}")
    again = loads(json.dumps(found.document())).network
    assert (again.bandwidth_Bps, again.latency_s) == PRESETS[name][:2]


def test_presets_in_exceptions_cables_and_hosts():
    network = build(preset("link: nvlink4, links: {2->3: {link: 10gbe}}, links_of: {5: {link: efa}}")).network
    rates = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    assert (rates["2->3"], rates["4->5"], rates["6->7"]) == (1.25e9, 12.5e9, 450e9)
    assert build(of_shape("nodes")).network.bandwidth_Bps[0] == PRESETS["pcie4-x16"].bandwidth_Bps


def test_swept_presets_give_each_point_its_own():
    text = f"{HEAD}sweep: {{over: {{network.link: [nvlink3, nvlink4]}}}}\n"
    for found in (loads(text), loads(json.dumps(loads(text).document()))):
        assert [point.scenario.network.bandwidth_Bps for point in found.points()] == [300e9, 450e9]


def test_a_preset_that_there_is_not_is_told_once():
    with pytest.raises(InputError) as caught:
        preset("link: nvlink9")
    (only,) = caught.value.faults
    assert (only.path, only.message, only.nearest) == (
        "network.link",
        "there is no such preset of a link",
        "nvlink5",
    )


def test_a_preset_that_gives_nothing():
    assert fault("link: nvlink4") == (
        "network.link: the key is never read: bandwidth and latency say it all; got nvlink4; "
        "right would be: one of the three left out"
    )


# ------------------------------------------------------------------------------- what links do, routes, places


def test_what_links_do_by_size_and_by_time():
    regimes = "regimes: [{up_to: 8 KiB, bandwidth: 5 GB/s, latency: 2 us}]"
    network = build(scenario(f"{regimes}, links: {{2->3: {{bandwidth: 7 GB/s}}}}")).network
    assert set(network.behaviours) == {0, 1, 3, 4, 5, 6, 7}  # 2->3 is no link of the rule
    assert network.behaviours[0] == BySize((Piece(8192, 5e9, 2e-6), Piece(ANY_SIZE, 50e9, 1e-6)))
    network = build(scenario("links_of: {3: {profile: [{at: 20 us, bandwidth: 10 GB/s}]}}")).network
    assert network.behaviours == dict.fromkeys((2, 3), OverTime(50e9, 1e-6, ((20e-6, 10e9),)))


def test_windows_and_packets():
    network = build(scenario("topology: switch, window: 1 MiB, packet: 4 KiB, header: 64 B")).network
    assert (network.window, network.packets) == (Window(bytes=2**20), Packets(4096, 64))
    assert build(scenario("topology: switch, window: {transfers: 4}")).network.window == Window(transfers=4)


def test_a_changing_link_is_busy_no_more_than_all_the_time():
    profile = "profile: [{at: 5 us, bandwidth: 500 GB/s}, {at: 15 us, bandwidth: 1 GB/s}]"
    for sharing in ("fifo", "fair"):
        result = simulate(scenario(profile, f"network.sharing={sharing}"))
        assert 0 < result.links["utilisation"].max() <= 1 + 1e-12
        assert result.summary["schedule_bound_s"] <= result.summary["makespan_s"] * (1 + 1e-12)
        assert result.summary["closed_form_s"] is None


def test_routes_that_are_spread_or_listed():
    keys = "topology: leaf-spine, leaves: 2, spines: 4"
    spread = build(scenario(f"{keys}, routes: ecmp, route_seed: 3")).network
    other = build(scenario(f"{keys}, routes: ecmp, route_seed: 4")).network
    assert [spread.route(src, src + 4) for src in range(4)] != [other.route(src, src + 4) for src in range(4)]
    way = "[0->leaf0, leaf0->spine3, spine3->leaf1, leaf1->4]"
    network = build(scenario(f"{keys}, routes: {{0->4: {way}}}")).network
    assert [network.names[link] for link in network.route(0, 4)][1] == "leaf0->spine3"


def makespan_s(network: str) -> float:
    return simulate(scenario(network)).summary["makespan_s"]


def test_a_ring_across_two_leaves_in_order_interleaved_and_at_best():
    in_order, apart = makespan_s(TWO_LEAVES), makespan_s(f"{TWO_LEAVES}, placement: interleaved")
    assert in_order < apart
    assert makespan_s(f"{TWO_LEAVES}, placement: interleaved, order: best") == pytest.approx(in_order)
    listed = "placement: [0, 4, 1, 5, 2, 6, 3, 7], order: [0, 2, 4, 6, 1, 3, 5, 7]"
    assert makespan_s(f"{TWO_LEAVES}, {listed}") == pytest.approx(in_order)


# --------------------------------------------------------------------------------------------- jobs and traffic

JOBS = """\
jobs:
  - {name: other, workers: 4, message: 32 KiB}
  - {workers: [1, 3, 12, 13], message: 16 KiB, collective: all-gather, start: 2 us}
"""


def test_several_jobs_are_verified_separately_and_their_bytes_told_apart():
    result = simulate(scenario("topology: switch, places: 16", rest=JOBS))
    assert result.summary["sharing"] == "fair"
    assert result.jobs["job"].tolist() == ["x", "other", "job 2"]
    assert result.jobs["n_workers"].tolist() == [8, 4, 4]
    assert result.jobs["sum_ok"].tolist() == [True] * 3
    assert result.jobs["start_s"].tolist() == [0, 0, 2e-6]
    columns = [f"bytes of {name}" for name in ("x", "other", "job 2", "other traffic")]
    each = result.links[columns].sum().tolist()
    assert each == [2 * 14 * 65536, 2 * 6 * 32768, 2 * 3 * 16384, 0]
    assert result.links["bytes"].sum() == sum(each)
    assert result.links["utilisation"].max() <= 1 + 1e-12
    assert (result.jobs["schedule_bound_s"] <= result.jobs["makespan_s"] * (1 + 1e-12)).all()


def test_a_job_on_links_of_its_own_changes_nothing():
    alone = simulate(scenario("topology: switch"))
    beside = simulate(scenario("topology: switch", rest="jobs: [{workers: 4, message: 1 MiB}]"))
    assert beside.summary["makespan_s"] == pytest.approx(alone.summary["makespan_s"], rel=1e-12, abs=0)
    assert beside.summary["closed_form_s"] is None


def test_a_wrong_sum_of_another_job_is_the_verdict(monkeypatch):
    reduce = Payload.reduce

    def wrong(self, worker, chunk, incoming):
        # A chunk of the other job: a quarter of 1 KiB.
        reduce(self, worker, chunk, incoming + 1 if incoming.size == 64 else incoming)

    monkeypatch.setattr(Payload, "reduce", wrong)
    result = simulate(scenario("topology: switch", rest="jobs: [{name: other, workers: 4, message: 1 KiB}]"))
    assert result.verdict.sum_ok is False
    assert result.summary["sum_ok"] is False
    assert "the wrong sum is that of other" in result.notes
    assert result.jobs["sum_ok"].tolist() == [True, False]


def test_traffic_slows_a_run_while_it_is_on():
    quiet = simulate(scenario("topology: switch")).summary["makespan_s"]

    def beside(keys: str) -> float:
        rest = f"background: [{{from: 0, to: 1, burst: 16 KiB, {keys}}}]"
        result = simulate(scenario("topology: switch", rest=rest))
        assert result.links["utilisation"].max() <= 1 + 1e-12
        return result.summary["makespan_s"]

    steady, sometimes = beside("rate: 25 GB/s"), beside("rate: 25 GB/s, on: 1 us, off: 3 us")
    assert quiet < sometimes < steady
    assert beside("rate: 25 GB/s, start: 1 s") == pytest.approx(quiet)


def test_traffic_over_named_links_once():
    rest = "background: [{name: backup, links: [0->switch], burst: 1 MiB}]"
    links = simulate(scenario("topology: switch", rest=rest)).links.set_index("link")
    assert links["bytes of other traffic"].sum() == links.loc["0->switch", "bytes of other traffic"] == 2**20


# ------------------------------------------------------------------------------------------ the right engine


@pytest.mark.parametrize(
    ("network", "engine", "reason"),
    [
        ("sharing: fair", "compiled", "links are shared fairly"),
        ("profile: [{at: 20 us, bandwidth: 10 GB/s}]", "events", "a bandwidth changes over time"),
        ("topology: switch, window: 1 MiB", "compiled", "a window holds transfers back"),
        ("packet: 4 KiB", "compiled", "transfers are cut into packets"),
        (f"{TWO_LEAVES}, placement: interleaved", "compiled", "carries transfers of workers"),
    ],
)
def test_the_recurrence_refuses_what_it_cannot_do_exactly(network, engine, reason):
    with pytest.raises(InputError, match=reason):
        simulate(scenario(network, "engine=recurrence"))
    many = scenario(network, "workers=128", "message=8 KiB")
    chosen = engine_for(build(many))
    assert chosen.name == engine
    assert reason in chosen.reason


def test_links_that_treat_sizes_differently_are_exact_where_all_chunks_are_of_one_regime():
    regimes = "regimes: [{up_to: 1 KiB, bandwidth: 5 GB/s, latency: 2 us}]"
    for message in ("8 KiB", "8256 B"):  # chunks of 1 KiB, and of 1032 B
        runs = [scenario(regimes, f"message={message}", f"engine={engine}") for engine in ("events", "recurrence")]
        one, other = (simulate(run).summary["makespan_s"] for run in runs)
        assert one == other
    with pytest.raises(InputError, match="links treat sizes differently"):  # of 1028 B and of 1 KiB
        simulate(scenario(regimes, "message=8196 B", "engine=recurrence"))
    with pytest.raises(InputError, match="links treat sizes differently"):  # another algorithm, other sizes
        simulate(scenario(regimes, "message=8 KiB", "algorithm=pipelined-ring", "engine=recurrence"))


@pytest.mark.parametrize("key", ["jobs: [{workers: 2, message: 1 KiB}]", "background: [{from: 0, to: 1, burst: 1 B}]"])
def test_the_faster_engines_are_alone(key):
    assert fault("topology: switch", "engine=recurrence", rest=key).startswith(
        "engine: the recurrence is not exact here: "
    )
    assert fault("topology: switch", "engine=compiled", rest=key).startswith(
        "engine: the compiled loop does not know this: "
    )
    found = scenario("topology: switch", rest=key)
    assert engine_for(build(found))[:2] == ("events", "others share the links")


@pytest.mark.parametrize("topology", ["fully-connected", "torus"])
def test_both_engines_say_the_same_where_both_are_exact(topology):
    sides = "sides: [8, 1]" if topology == "torus" else ""
    keys = ", ".join(filter(None, (f"topology: {topology}", sides)))
    rows = [simulate(scenario(keys, f"engine={engine}")) for engine in ("events", "recurrence")]
    assert rows[0].summary["makespan_s"] == rows[1].summary["makespan_s"]
    assert np.array_equal(rows[0].links["bytes"], rows[1].links["bytes"])


def test_what_fair_sharing_does_not_read_is_said():
    result = simulate(scenario(f"{TWO_LEAVES}, placement: interleaved, switching: store-and-forward, packet: 4 KiB"))
    assert result.notes[:2] == (
        "switching: store-and-forward is not read, for links are shared fairly",
        "packet is not read: links are shared fairly, and headers are left out",
    )


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (
            "topology: torus, sides: [4, 4]",
            "network.sides: a torus of 4 x 4 has 16 places, and 8 are needed",
        ),
        ("topology: fat-tree, k: 2", "network.k: a fat tree of k=2 has 2 places, and 8 are needed"),
        ("topology: fat-tree, k: 5", "network.k: a fat tree has switches with an even number of ports"),
        (
            "topology: leaf-spine, leaves: 2, oversubscription: 0",
            "network.oversubscription: a ratio is more than",
        ),
        ("topology: switch, places: 4", "network.places: 8 workers are more than the places"),
        ("topology: switch, placement: [0, 1]", "network.placement: 2 places for 8 workers"),
        (
            "topology: switch, placement: [0, 1, 2, 3, 4, 5, 6, 6]",
            "network.placement[7]: the place is taken already",
        ),
        (
            "topology: switch, placement: [0, 1, 2, 3, 4, 5, 6, 9]",
            "network.placement[7]: the switch has no such",
        ),
        ("topology: switch, placement: interleaved", "network.placement: the switch has no groups of places"),
        (
            "placement: [1, 0, 2, 3, 4, 5, 6, 7]",
            "network.placement: a ring has ways to right-hand neighbours",
        ),
        ("order: [0, 1]", "network.order: this is no order of 8 workers"),
        (
            "topology: switch, routes: {0->1: [0->2]}",
            "network.routes.0->1: the route goes over 0->2, a link that is not there",
        ),
        ("topology: switch, routes: {0->9: [0->switch]}", "network.routes.0->9: there is no worker 9"),
        (
            "topology: switch, links: {up*->*: {latency: 1 us}}",
            "network.links.up*->*: the switch network of 8 workers has no",
        ),
        (
            "topology: custom, cables: [{from: 0, to: 1}]",
            "network.cables: no way leads from worker 2 to worker 0",
        ),
        ("header: 3 B", "network.header: the key is never read: there are no packets"),
        ("route_seed: 3", "network.route_seed: the key is never read: only ecmp draws routes"),
        ("window: 5", "network.window: a size needs a unit"),
        ("window: 1 MiB", "network.window: the links of a ring lead one way: credit has no way back"),
        ("packet: 0 B", "network.packet: nothing would ever move"),
        (
            "regimes: [{up_to: 1 KiB, bandwidth: 0 GB/s, latency: 1 us}]",
            "network.regimes[0].bandwidth: a rate must",
        ),
        (
            "profile: [{at: 1 us, bandwidth: -1 GB/s}]",
            "network.profile[0].bandwidth: a rate must not be negative",
        ),
        (
            "profile: [{at: 2 us, bandwidth: 1 GB/s}, {at: 1 us, bandwidth: 2 GB/s}]",
            "network.profile[1].at: each is above the one before",
        ),
        ("sharing: fair, switching: cut-through", "network.switching: the key is never read"),
    ],
)
def test_a_mistake_of_the_network(network, said):
    assert any(one.startswith(said) for one in faults(network))


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("jobs: [{workers: 4, message: 3 B}]", "jobs[0].message: not a whole number of float32 elements"),
        ("jobs: [{workers: [0, 99], message: 1 KiB}]", "jobs[0].workers[1]: the switch has no such place"),
        ("jobs: [{workers: [0, 0], message: 1 KiB}]", "jobs[0].workers[1]: the place is taken already"),
        ("background: [{from: 0, burst: 1 MiB}]", "background[0]: traffic goes from one place to another"),
        ("background: [{from: 0, to: 9, burst: 1 MiB}]", "background[0].to: there is no such place"),
        ("background: [{burst: 1 MiB}]", "background[0]: traffic needs from and to, or links instead"),
        (
            "background: [{links: [0->1], burst: 1 MiB}]",
            "background[0].links[0]: the traffic goes over a link",
        ),
        ("background: [{from: 0, to: 1, burst: 0 B}]", "background[0].burst: a burst has bytes"),
        (
            "background: [{from: 0, to: 1, burst: 1 B, on: 1 s, off: 1 s}]",
            "background[0].on: the key is never read",
        ),
    ],
)
def test_a_mistake_of_what_is_beside(rest, said):
    assert any(one.startswith(said) for one in faults("topology: switch", rest=rest))


def test_every_mistake_of_cables_at_once_with_its_line():
    cables = ["{from: 0, to: hup}", "{from: 9, to: hub, bandwidth: 0 GB/s}", "{from: 0, to: 0}"]
    keys = ["topology: custom", "bandwidth: 1 GB/s", "latency: 1 us", "switches: [hub]", "cables:"]
    lines = ["network:", *(f"  {key}" for key in keys), *(f"    - {cable}" for cable in cables)]
    with pytest.raises(InputError) as caught:
        loads(HEAD + "\n".join(lines))
    found = [(one.line, one.path, one.message) for one in caught.value.faults]
    assert found == [
        (11, "network.cables[0].to", "there is no such node"),
        (12, "network.cables[1].bandwidth", "a rate must be more than zero"),
        (12, "network.cables[1].from", "there is no such node"),
        (13, "network.cables[2]", "a cable joins two nodes, not 0 to itself"),
    ]
