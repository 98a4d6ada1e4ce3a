"""Switches that reduce: times by hand and by a recurrence, sums in the switch, bounds, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.bounds import Cuts, collective_bound
from ringnet.analysis.derivatives import derivatives
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.replay import rounded
from ringnet.analysis.verification import verify
from ringnet.collectives import ALGORITHMS, make_schedule, make_step
from ringnet.collectives.proof import check
from ringnet.engines.events import Job, run_events, run_jobs
from ringnet.engines.trace import Workers
from ringnet.errors import DeadlockError, InputError, NetworkError, ScheduleError
from ringnet.formats.goal import dumps_goal
from ringnet.formats.msccl import dumps_msccl
from ringnet.networks import TOPOLOGIES, Inside, LinkChange, change_links, make_network, placed
from ringnet.networks.custom import Cable
from ringnet.networks.network import Network
from ringnet.payload import RandomSource, SwitchSums, make_reduction
from ringnet.payload.files import ArraySource
from ringnet.payload.tamper import Tamper, make_payload
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.study.parts import algorithms_of

FREE = float("inf")


def reducing(network: Network, *names: str, rate: float = FREE) -> Network:
    """The network with some switches that reduce, by default all that are there."""
    nodes = names or tuple(node for node in network.nodes if not node.isdecimal() and "nic" not in node)
    return replace(network, reduce_Bps=dict.fromkeys(nodes, rate))


def one_switch(n_workers: int, bandwidth_Bps: float = 1.0, latency_s: float = 0.0, **more: float) -> Network:
    return reducing(TOPOLOGIES["switch"].build(n_workers, bandwidth_Bps, latency_s), **more)


def seconds(name: str, network: Network, n_bytes: int, **parameters: object) -> float:
    """The makespan of an all-reduce of so many bytes, which are elements of one byte each."""
    schedule = ALGORITHMS[name].build(network.n_workers, "all-reduce", **parameters)
    check(schedule)
    workers = Workers.alike(network.n_workers)
    return makespan_s(run_events(schedule, network, workers, schedule.chunk_sizes(n_bytes), keep_transfers=0))


# ------------------------------------------------------------------------------------------------ times by hand


def test_sharp_takes_the_buffer_up_and_the_last_slice_down() -> None:
    assert seconds("sharp", one_switch(2), 8, n_slices=1) == 16.0
    assert seconds("sharp", one_switch(2), 8, n_slices=4) == 8 + 2
    assert seconds("sharp", one_switch(5, latency_s=3.0), 8, n_slices=4) == 2 * 3 + 8 + 2


def test_a_switch_adds_all_that_comes_in_at_its_rate() -> None:
    """Three workers' 8 bytes at 4 bytes a second, after they have come and before they go."""
    assert seconds("sharp", one_switch(3, rate=4.0), 8, n_slices=1) == 8 + 3 * 8 / 4 + 8


def test_nvls_takes_a_share_down_and_up_between() -> None:
    assert seconds("nvls", one_switch(2), 8, n_slices=1) == 8 + 4 + 4 + 8
    assert seconds("nvls", one_switch(4, latency_s=1.0), 8, n_slices=1) == 4 * 1 + 8 + 2 + 2 + 8


@pytest.mark.parametrize("n_workers", [2, 5, 8])
def test_nvls_comes_to_one_and_one_nth_of_the_buffer(n_workers: int) -> None:
    """S (1 + 1/N) beta with ever more slices, each link carrying just that each way."""
    ideal = 1 + 1 / n_workers
    for n_slices in (16, 64):
        took = seconds("nvls", one_switch(n_workers), 1 << 20, n_slices=n_slices) / (1 << 20)
        assert ideal <= took <= ideal + 3.5 / n_slices
    schedule = ALGORITHMS["nvls"].build(n_workers, "all-reduce")
    trace = run_events(schedule, one_switch(n_workers), Workers.alike(n_workers), schedule.chunk_sizes(16 * 840))
    assert trace.links["bytes"].tolist() == [round(16 * 840 * ideal)] * (2 * n_workers)


def test_across_hosts_each_share_goes_along_two_trees() -> None:
    """Two hosts of two: each card carries its share once each way, and nothing else."""
    hosts = make_network("nodes", 4, 1.0, 0.0, workers_per_host=2, nics=2, inside=Inside("switch", 8.0, 0.0))
    network = reducing(hosts, "h0/switch", "h1/switch")
    schedule = ALGORITHMS["nvls-tree"].build(4, "all-reduce", n_slices=2, node_size=2)
    trace = run_events(schedule, network, Workers.alike(4), schedule.chunk_sizes(80))
    carried = dict(zip(network.names, trace.links["bytes"].tolist(), strict=True))
    assert {carried[name] for name in carried if "nic" in name and "switch" in name} == {40}
    assert {carried[f"{worker}->h{worker // 2}/switch"] for worker in range(4)} == {80 + 40}


# ------------------------------------------------------- any tree, by a recurrence of its own, with unequal links


def tree_network(parents: list[int], n_workers: int, rates_Bps: list[float], rate: float) -> Network:
    """Workers and switches as a tree of cables; the parent of each member but the last, by number."""

    def name(member: int) -> str:
        return str(member) if member < n_workers else f"s{member - n_workers}"

    cables = [Cable(name(child), name(parent)) for child, parent in enumerate(parents)]
    switches = [name(member) for member in range(n_workers, len(parents) + 1)]
    network = TOPOLOGIES["custom"].build(n_workers, 1.0, 0.25, switches=switches, cables=cables)
    changes = {link: LinkChange(bandwidth) for link, bandwidth in zip(network.names, rates_Bps, strict=False)}
    return reducing(change_links(network, changes), rate=rate)


def sharp_by_hand(network: Network, sizes: list[int]) -> float:
    """The end of an all-reduce along the tree that the network says: a sum of maxima, slice by slice."""
    n, above = network.n_workers, network.switches.above
    bandwidth, latency = network.bandwidth_Bps, network.latency_s
    number = {name: link for link, name in enumerate(network.names)}
    names = [*map(str, range(n)), *network.switches.names]
    link_up = [number[f"{name}->{names[n + up]}"] if up >= 0 else -1 for name, up in zip(names, above, strict=True)]
    link_down = [number[f"{names[n + up]}->{name}"] if up >= 0 else -1 for name, up in zip(names, above, strict=True)]
    free = np.zeros(len(bandwidth))
    works_until = np.zeros(len(names))
    below = {n + up: [member for member, its in enumerate(above) if its == up] for up in set(above) if up >= 0}

    def over(link: int, ready: float, size: int) -> float:
        free[link] = max(ready, free[link]) + size / bandwidth[link]
        return free[link] + latency[link]

    def sum_at(member: int, size: int) -> float:
        """When a slice has been added at a member: those of its children in their order, one after another."""
        for child in below.get(member, []):
            works_until[member] = max(works_until[member], over(link_up[child], sum_at(child, size), size))
            works_until[member] += size / network.reduce_Bps[names[member]]
        return float(works_until[member])

    def down_from(member: int, ready: float, size: int) -> float:
        return max(
            [down_from(child, over(link_down[child], ready, size), size) for child in below.get(member, [])] or [ready]
        )

    top = n + above[n:].index(-1)
    sums = [sum_at(top, size) for size in sizes]
    return max(down_from(top, ready, size) for ready, size in zip(sums, sizes, strict=True))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], int]:
    """Parents of workers and switches, every switch with something below it."""
    n_switches = draw(st.integers(1, 4))
    n_workers = draw(st.integers(max(2, n_switches), 8))
    # Each switch has one worker at least; switches hang on later ones.
    of_workers = [
        *range(n_switches),
        *(draw(st.integers(0, n_switches - 1)) for _ in range(n_workers - n_switches)),
    ]
    of_switches = [draw(st.integers(switch + 1, n_switches - 1)) for switch in range(n_switches - 1)]
    return [n_workers + switch for switch in (*of_workers, *of_switches)], n_workers


@given(trees(), st.data())
def test_any_tree_sums_right_in_the_time_of_the_recurrence(tree: tuple[list[int], int], data: st.DataObject) -> None:
    parents, n_workers = tree
    drawn = st.floats(0.5, 20.0)
    rates = data.draw(st.lists(drawn, min_size=2 * len(parents), max_size=2 * len(parents)))
    network = tree_network(parents, n_workers, rates, data.draw(st.sampled_from([FREE, 3.0, 40.0])))
    switches = network.switches
    assert switches.is_tree
    n_elements, n_slices = data.draw(st.integers(0, 40)), data.draw(st.integers(1, 6))
    dtype = np.dtype(data.draw(st.sampled_from(["int32", "float32", "float16"])))
    reduction = make_reduction(data.draw(st.sampled_from(["sum", "max", "min"])), n_workers)
    for collective in ("all-reduce", "reduce", "broadcast"):
        root = data.draw(st.integers(0, n_workers - 1))
        build = ALGORITHMS["sharp"].build
        schedule = build(n_workers, collective, n_slices=n_slices, root=root, switch_above=switches.above)
        check(schedule)
        source = RandomSource(n_workers, n_elements, dtype, seed=3)
        sizes, sums = schedule.chunk_sizes(n_elements), SwitchSums(schedule.n_switches)
        payload = make_payload(source, reduction, sizes, schedule.source, switches=sums)
        chunk_bytes = sizes * dtype.itemsize
        trace = run_events(schedule, network, Workers.alike(n_workers), chunk_bytes, payload)
        verdict = verify(schedule, payload, source, reduction, sizes)
        assert verdict.sum_ok, verdict.mismatch
        assert verdict.verified_elements == n_elements * (1 if collective == "reduce" else n_workers)
        took_s = makespan_s(trace)
        assert collective_bound(schedule, network, chunk_bytes).seconds <= took_s * (1 + 1e-12)
        if collective == "all-reduce":
            assert took_s == pytest.approx(sharp_by_hand(network, chunk_bytes.tolist()), rel=1e-12, abs=0)


# ------------------------------------------------------------------------------------------------ networks

SHAPES = [
    ("switch", 5, {}, ("switch",), (0,) * 5 + (-1,)),
    ("leaf-spine", 4, {"leaves": 2, "spines": 3}, ("leaf0", "leaf1", "spine0"), (0, 0, 1, 1, 2, 2, -1)),
    ("leaf-spine", 4, {"leaves": 1}, ("leaf0",), (0, 0, 0, 0, -1)),
    ("fat-tree", 4, {"k": 4}, ("edge0", "edge1"), None),
    ("dragonfly", 8, {"groups": 2, "routers_per_group": 2, "hosts_per_router": 2}, None, None),
]


@pytest.mark.parametrize(("topology", "n_workers", "parameters", "names", "above"), SHAPES)
def test_switches_are_found_in_every_topology_that_has_some(
    topology: str,
    n_workers: int,
    parameters: dict[str, int],
    names: tuple[str, ...] | None,
    above: tuple[int, ...] | None,
) -> None:
    network = reducing(make_network(topology, n_workers, 1e9, 1e-6, **parameters))
    switches = network.switches
    assert switches.is_tree
    if above is not None:
        assert (switches.names, switches.above) == (names, above)
    schedule = ALGORITHMS["sharp"].build(n_workers, "all-reduce", switch_above=switches.above)
    check(schedule)
    for step in schedule.steps():
        for pair in zip(step.src.tolist(), step.dst.tolist(), strict=True):
            links = network.route(*pair)
            ends = [network.node(m) if m < n_workers else switches.names[m - n_workers] for m in pair]
            assert [network.ends(links[0])[0], network.ends(links[-1])[1]] == ends
    assert run_events(schedule, network, Workers.alike(n_workers), schedule.chunk_sizes(64)).n_transfers


@pytest.mark.parametrize("topology", ["ring", "fully-connected", "torus", "mesh"])
def test_direct_networks_have_none(topology: str) -> None:
    sides = "sides: [2, 4], " if topology in ("torus", "mesh") else ""
    network = f"{{topology: {topology}, {sides}bandwidth: 1 GB/s, latency: 1 us, reduction: {{}}}}"
    text = f"{{scenario_version: 1, workers: 8, message: 1 KiB, network: {network}}}"
    with pytest.raises(InputError, match=f"network.reduction: a {topology} has no switches that could reduce"):
        loads(text)


def test_cards_and_what_is_inside_hosts_but_for_their_switch_do_not_reduce() -> None:
    hosts = make_network("nodes", 4, 1e9, 1e-6, workers_per_host=2, inside=Inside("switch", 1e10, 0.0))
    only = replace(hosts, reduce_Bps={"h0/switch": FREE, "h1/switch": FREE})
    assert only.switches.above == (0, 0, 1, 1, -1, -1)
    assert only.switches.why_not == "no links join h0/switch, h1/switch to one switch that reduces"
    with pytest.raises(NetworkError, match="no links join h0/switch, h1/switch"):
        seconds("sharp", only, 8)
    # Past the card: the worker's own way to the switch between the hosts.
    between = replace(hosts, reduce_Bps={"switch": FREE})
    assert between.switches.above == (0, 0, 0, 0, -1)
    assert [between.names[link] for link in between.route(3, 4)] == ["3->h1/nic0", "h1/nic0->switch"]
    assert [between.names[link] for link in between.route(4, 3)] == ["switch->h1/nic0", "h1/nic0->3"]


def test_workers_at_other_places_find_their_switches() -> None:
    leaves = make_network("leaf-spine", 4, 1e9, 1e-6, leaves=2, spines=1)
    seated = placed(reducing(leaves), [3, 0, 2])
    assert seated.switches.names == ("leaf1", "leaf0", "spine0")
    assert seated.switches.above == (0, 1, 0, 2, 2, -1)
    assert seated.shape.workers_per_switch is None
    assert reducing(leaves).shape.workers_per_switch == 2


def test_a_worker_without_a_switch_is_told() -> None:
    leaves = replace(make_network("leaf-spine", 4, 1e9, 1e-6, leaves=2, spines=1), reduce_Bps={"leaf0": FREE})
    far = [leaves.names[link] for link in leaves.route(2, 0 + 4)]  # the nearest that reduces, two switches off
    assert far == ["2->leaf1", "leaf1->spine0", "spine0->leaf0"]
    with pytest.raises(NetworkError, match="takes switches that reduce, 1 of them, and the ring has 0"):
        run_events(ALGORITHMS["nvls"].build(2), make_network("ring", 2, 1.0, 0.0), Workers.alike(2), np.full(32, 4))


# -------------------------------------------------------------------------------------------- sums in the switch


def summed(values: list[list[float]], dtype: str, accumulate: str | None = None) -> list[float]:
    """What an all-reduce by one switch makes of a few numbers of each worker, verified."""
    import ml_dtypes  # noqa: F401, PLC0415 -- bfloat16 by its name

    arrays = np.array(values, dtype=dtype)
    source, n = ArraySource(arrays), len(arrays)
    schedule = ALGORITHMS["nvls"].build(n, "all-reduce", n_slices=1)
    reduction, sizes = make_reduction("sum", n), schedule.chunk_sizes(arrays.shape[1])
    wide = None if accumulate is None else np.dtype(accumulate)
    payload = make_payload(source, reduction, sizes, schedule.source, switches=SwitchSums(1, wide))
    run_events(schedule, one_switch(n), Workers.alike(n), sizes, payload)
    verdict = verify(schedule, payload, source, reduction, sizes, accumulate=wide)
    assert verdict.sum_ok, verdict.mismatch
    if wide is not None and np.dtype(dtype).itemsize < wide.itemsize:
        # Held against sums in the type of the elements it is another order of rounding.
        assert verify(schedule, payload, source, reduction, sizes).replay_ok == (
            summed(values, dtype) == [float(x) for chunk in range(n) for x in payload.held(0, chunk)]
        )
    return [float(x) for chunk in range(n) for x in payload.held(0, chunk)]


def test_a_switch_adds_in_the_order_of_its_ports_and_in_the_type_that_is_said() -> None:
    """2048 + 1 is 2048 in float16: one by one nothing is added, in float32 three are."""
    numbers = [[2048.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 2048.0]]
    assert summed(numbers, "float16") == [2048.0, 2052.0]  # (1 + 1 + 1) + 2048 = 2051, to even
    assert summed(numbers, "float16", "float32") == [2052.0, 2052.0]  # 2051 both, rounded once
    assert summed(numbers, "float32") == [2051.0, 2051.0]


@pytest.mark.parametrize("kind", ["drop", "double", "flip", "swap"])
@pytest.mark.parametrize("name", ["nvls", "nvls-tree", "sharp"])
def test_what_goes_wrong_in_a_switch_is_found(name: str, kind: str) -> None:
    schedule = ALGORITHMS[name].build(4, "all-reduce", n_slices=2)
    source, reduction = RandomSource(4, 64, np.dtype("float32"), seed=1), make_reduction("sum", 4)
    sizes, sums = schedule.chunk_sizes(64), SwitchSums(schedule.n_switches)
    tamper = Tamper(kind, 4, 1, 20)  # type: ignore[arg-type]
    payload = make_payload(source, reduction, sizes, schedule.source, tamper=tamper, switches=sums)
    run_events(schedule, one_switch(4), Workers.alike(4), 4 * sizes, payload)
    verdict = verify(schedule, payload, source, reduction, sizes)
    assert not verdict.sum_ok
    assert verdict.mismatch is not None
    assert verdict.mismatch.chunk in (0, 1, 2, 4, 5)


def test_the_proof_names_switches() -> None:
    up = make_step("reduce", 0, [0, 1], 2, 0)
    down = make_step("broadcast", 0, 2, [0, 1], 0)

    def of(*steps: object, n_switches: int = 1):
        return make_schedule("mine", "all-reduce", 2, 1, steps, n_switches=n_switches)  # type: ignore[arg-type]

    check(of(up, down))
    with pytest.raises(ScheduleError, match="broadcast step 0: switch 0 sends chunk 0, which it does not hold yet"):
        check(of(down, up))
    with pytest.raises(ScheduleError, match="receiver already has the contribution of worker 0"):
        check(of(up, up, down))
    with pytest.raises(ScheduleError, match="worker 1 ends chunk 0 without the contribution of worker"):
        check(of(up, make_step("broadcast", 0, 2, 0, 0)))
    with pytest.raises(ScheduleError, match="switch 0 sends chunk 0 to itself"):
        check(of(up, make_step("broadcast", 0, 2, 2, 0)))
    with pytest.raises(ScheduleError, match="dst that there is not; got 2"):
        check(of(up, down, n_switches=0))


# ------------------------------------------------------------------------------------------------------- bounds


def test_with_a_switch_that_reduces_the_bound_is_the_buffer() -> None:
    schedule, plain = ALGORITHMS["ring"].build(8, "all-reduce"), TOPOLOGIES["switch"].build(8, 1.0, 0.0)
    each = np.full(8, 100)
    assert collective_bound(schedule, plain, each) == (2 * 7 / 8 * 800, "between the workers")
    assert collective_bound(schedule, reducing(plain), each) == (800.0, "into worker 0")
    assert seconds("sharp", one_switch(8), 800, n_slices=100) == 800 + 8


def test_between_hosts_the_bound_is_what_it_was_if_only_their_insides_reduce() -> None:
    hosts = make_network("nodes", 4, 1.0, 0.0, workers_per_host=2, inside=Inside("switch", 100.0, 0.0))
    schedule, each = ALGORITHMS["ring"].build(4, "all-reduce"), np.full(4, 100)
    inside, everywhere = reducing(hosts, "h0/switch", "h1/switch"), reducing(hosts)
    assert Cuts(hosts).bound(schedule, each) == Cuts(inside).bound(schedule, each) == (400.0, "between the hosts")
    assert Cuts(everywhere).bound(schedule, each).seconds == 400.0  # into a host, through its card


# ------------------------------------------------------------------------------------------------- conclusions


def test_derivatives_of_a_switch_are_what_a_second_run_takes() -> None:
    def run(rate: float) -> tuple[float, float]:
        network = replace(one_switch(4, 1e3, 1e-3, rate=rate), sharing="fifo")
        schedule, workers = ALGORITHMS["sharp"].build(4, "all-reduce", n_slices=4), Workers.alike(4)
        sizes = schedule.chunk_sizes(4000)
        trace = run_events(schedule, network, workers, sizes)
        found = derivatives(schedule, network, workers, sizes, trace)
        assert found.send_overhead.shape == found.inverse_reduce_rate.shape == (4,)
        return makespan_s(trace), float(found.inverse_switch_rate[0])

    for rate in (2e3, 1e6):  # the rate, or the links, hold it up
        (before, slope), (after, _) = run(rate), run(1 / (1 / rate + 1e-9))
        assert (after - before) / 1e-9 == pytest.approx(slope, rel=1e-3)


def test_who_waits_for_whom_names_switches() -> None:
    workers = Workers.alike(3)
    workers.start_s[1] = np.inf
    schedule = ALGORITHMS["sharp"].build(3, "all-reduce", n_slices=1)
    with pytest.raises(DeadlockError) as caught:
        run_events(schedule, one_switch(3), workers, schedule.chunk_sizes(8))
    said = str(caught.value)
    assert "worker 0 waits for switch switch: to send chunk 0 in broadcast step 0" in said
    assert "switch switch waits for worker 1: to send chunk 0 in reduce step 0" in said


def test_what_others_write_has_no_switches() -> None:
    schedule = ALGORITHMS["nvls"].build(2, "all-reduce")
    with pytest.raises(ScheduleError, match="GOAL knows ranks only"):
        dumps_goal(schedule, schedule.chunk_sizes(64))
    with pytest.raises(ScheduleError, match="MSCCL knows GPUs only"):
        dumps_msccl(schedule)


def test_jobs_do_not_share_a_rate_unseen() -> None:
    schedule, workers = ALGORITHMS["sharp"].build(2, "all-reduce"), Workers.alike(2)

    def jobs(rate: float) -> tuple[list[Job], Network]:
        network = one_switch(4, rate=rate)
        sizes = schedule.chunk_sizes(64)
        return [Job(schedule, placed(network, at), workers, sizes) for at in ([0, 1], [2, 3])], network

    assert len(run_jobs(*jobs(FREE))) == 2
    with pytest.raises(InputError, match="several jobs share the rate of switches that reduce"):
        run_jobs(*jobs(10.0))


# --------------------------------------------------------------------------------------------------- scenarios

HEAD = "scenario_version: 1\nworkers: 8\nmessage: 64 KiB\n"
RATE = "bandwidth: 50 GB/s, latency: 1 us"
REDUCING = "topology: switch, reduction: {}"
HOSTS = "topology: nodes, workers_per_host: 4, nics: 4, inside: {shape: switch, link: nvlink4}"


def scenario(network: str, rest: str = "algorithm: nvls", *overrides: str):
    return loads(f"{HEAD}network: {{{network}, {RATE}}}\n{rest}\n", overrides, file="s.yaml")


INSIDES = f"{HOSTS}, reduction: {{switches: ['h*/switch']}}"
WRONG = [
    ("topology: switch", "algorithm: nvls", "s.yaml:5: algorithm: nvls takes switches that reduce"),
    (REDUCING, "algorithm: sharp\nreduce: prod", "s.yaml:6: reduce: no switch makes a prod; got prod"),
    (
        REDUCING,
        "algorithm: sharp\nworker: {sends: rendezvous}",
        "s.yaml:6: worker.sends: sharp sends to switches",
    ),
    (
        "topology: switch, reduction: {dtypes: [float16, bfloat16]}",
        "algorithm: nvls",
        "algorithm: the switches of this network add float16 and bfloat16, no float32; right would be: dtype:",
    ),
    ("topology: switch, reduction: {dtypes: [float23]}", "algorithm: nvls", "network.reduction.dtypes[0]"),
    (
        "topology: switch, reduction: {switches: [swich]}",
        "algorithm: nvls",
        "network.reduction.switches[0]: no switch has such a name; got swich; right would be: switch; did you",
    ),
    ("topology: switch, reduction: {switches: []}", "algorithm: nvls", "switches: nothing stands here"),
    (
        "topology: switch, reduction: {switch: [a]}",
        "algorithm: nvls",
        "network.reduction.switch: ",
    ),
    (
        "topology: switch, reduction: {rate: 5}",
        "algorithm: nvls",
        "network.reduction.rate: a rate needs a unit",
    ),
    ("topology: switch, reduction: {accumulate: float16}", "algorithm: nvls", "does not hold every float32"),
    ("topology: switch, reduction: {accumulate: int32}", "algorithm: nvls", "does not hold every float32"),
    (
        INSIDES,
        "algorithm: nvls",
        "network.reduction: nvls has no way on it: no way for a sum in switches: no links",
    ),
    (INSIDES, "algorithm: sharp", "network.reduction: sharp has no way on it"),
    (
        f"{HOSTS}, reduction: {{switches: ['h0/nic*']}}",
        "algorithm: sharp",
        "switches[0]: no switch has such a",
    ),
    (
        REDUCING,
        "algorithm: {name: sharp, switch_above: [0, 0]}",
        "switch_above: no tree of switches above all",
    ),
    (REDUCING, "algorithm: {name: nvls-tree, node_size: 3}", "8 workers do not fill nodes of this size"),
    (REDUCING, "algorithm: {name: hierarchical, inner: nvls}", "algorithm.inner"),
    (REDUCING, "algorithm: nvls\nengine: recurrence", "not exact here: switches reduce what comes to them"),
    (
        "topology: ring, reduction: {}",
        "algorithm: nvls",
        "network.reduction: a ring has no switches that could",
    ),
]


@pytest.mark.parametrize(("network", "rest", "said"), WRONG)
def test_what_cannot_be_is_told(network: str, rest: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        simulate(scenario(network, rest))
    text = str(caught.value)
    assert said in text
    assert "Traceback" not in text
    assert text.count("\n") <= 1


MATRIX = [
    ("nvls", "all-reduce", REDUCING),
    ("nvls", "reduce-scatter", REDUCING),
    ("nvls", "all-gather", REDUCING),
    ("nvls", "all-reduce", "topology: switch, sharing: fair, reduction: {rate: 300 GB/s}"),
    ("sharp", "all-reduce", "topology: leaf-spine, leaves: 2, reduction: {rate: 300 GB/s}"),
    ("sharp", "broadcast", "topology: fat-tree, k: 4, reduction: {}"),
    (
        "sharp",
        "reduce",
        "topology: dragonfly, groups: 2, routers_per_group: 2, hosts_per_router: 2, reduction: {}",
    ),
    ("sharp", "all-reduce", "topology: switch, packet: 1 KiB, header: 16 B, window: 8 KiB, reduction: {}"),
    ("sharp", "all-reduce", f"{HOSTS}, switching: store-and-forward, reduction: {{switches: [switch]}}"),
    ("nvls-tree", "all-reduce", f"{HOSTS}, reduction: {{switches: ['h*/switch']}}"),
    ("nvls-tree", "all-reduce", f"{HOSTS}, sharing: fifo, reduction: {{switches: ['h*/switch']}}"),
]


TURNS = [
    (8, 4000, "float32", "sum"),
    (4, 36, "int32", "max"),
    (8, 0, "float32", "mean"),
    (12, 516, "float16", "sum"),
    (8, 4, "float32", "min"),
    (4, 1024, "bfloat16", "weighted-mean"),
    (16, 88, "float64", "sum"),
    (1, 16, "int32", "sum"),
]


@pytest.mark.parametrize(("algorithm", "collective", "network"), MATRIX)
def test_numbers_of_workers_sizes_and_types_by_turns(algorithm: str, collective: str, network: str) -> None:
    """The sum is right, and nothing beats a bound, whatever N, elements, reduction and type."""
    most = {"fat-tree": 16, "dragonfly": 8}
    turn = [row[0] for row in MATRIX].index(algorithm) + [row[1] for row in MATRIX].index(collective)
    for n_workers, n_bytes, dtype, reduce in TURNS[turn % 2 :: 2]:
        if any(shape in network and n_workers > n for shape, n in most.items()):
            continue
        if "nodes" in network and n_workers % 4:
            continue
        settings = [
            f"workers={n_workers}",
            f"message={n_bytes} B",
            f"dtype={dtype}",
            *([] if collective in ("all-gather", "broadcast") else [f"reduce={reduce}"]),
        ]
        if reduce == "weighted-mean" and len(settings) > 3:
            settings.append(f"weights={[*range(1, n_workers + 1)]}")
        result = simulate(scenario(network, f"algorithm: {algorithm}\ncollective: {collective}", *settings))
        assert result.verdict.sum_ok, (n_workers, dtype, result.verdict.mismatch)
        if result.summary["makespan_s"]:
            for bound in ("schedule_bound_s", "collective_bound_s"):
                assert result.summary[bound] <= result.summary["makespan_s"] * (1 + 1e-12)


def test_all_algorithms_are_those_of_switches_where_switches_reduce() -> None:
    taking = {name for name, one in ALGORITHMS.items() if one.in_switches}
    assert taking <= {*algorithms_of(scenario(REDUCING, ""), "all")}
    assert not taking & {*algorithms_of(scenario("topology: switch", ""), "all")}


def test_rounding_errors_are_those_of_the_type_in_which_switches_sum() -> None:
    """2048 + 1 + 1 + 1 is 2048 in float16, and 2052 where the switch sums in float32."""
    values, schedule = np.array([[2048], [1], [1], [1]], np.float16), ALGORITHMS["sharp"].build(4, n_slices=1)
    reduction, wide = make_reduction("sum", 4), np.dtype("float32")
    assert rounded(schedule, reduction, values).result.tolist() == [2048.0]
    assert rounded(schedule, reduction, values, None, wide).result.tolist() == [2052.0]


# ----------------------------------------------------------------------------------------- public figures

#: Bandwidths of all-reduces on NVSwitch with NVLS by number of GPUs, GB/s: of the algorithm (H100: NCCL issue 1455), or
#: of the bus, 2 (N - 1)/N of it (H200, B200, 8 GiB: stas00/ml-engineering, network/README).
H100 = {5: 258.0, 6: 265.0, 7: 270.0, 8: 273.0}
H200 = {5: 414.2, 6: 435.6, 7: 460.0, 8: 473.1}
B200 = {5: 677.8, 6: 778.2, 7: 811.2, 8: 838.0}


def of_algorithm(bus: dict[int, float]) -> dict[int, float]:
    return {n: busbw * n / (2 * (n - 1)) for n, busbw in bus.items()}


def takes(n_workers: int) -> float:
    """The time of NVLS in those of the buffer over one link: little more than 1 + 1/N."""
    return seconds("nvls", one_switch(n_workers), 1 << 20, n_slices=64) / (1 << 20)


def nvls_errors() -> np.ndarray:
    """Relative errors of the bandwidths with 7 and 8 GPUs, the links' one bandwidth calibrated on 5 and 6.

    And of 4 GiB on eight H100, 15,808 us (rakshithvasudev.github.io, inside NCCL's all-reduce), with the links of the
    first of them.
    """
    times = {n_workers: takes(n_workers) for n_workers in H100}
    errors = []
    for measured in (H100, of_algorithm(H200), of_algorithm(B200)):
        link_GBps = (measured[5] * times[5] + measured[6] * times[6]) / 2
        errors += [link_GBps / times[n] / measured[n] - 1 for n in (7, 8)]
    link_GBps = (H100[5] * times[5] + H100[6] * times[6]) / 2
    return np.array([*errors, times[8] * (4 << 30) / (link_GBps * 1e9) / 15_808e-6 - 1])


def test_nvls_is_predicted_within_four_percent_of_what_was_measured() -> None:
    assert (np.abs(nvls_errors()) < 0.04).all()
