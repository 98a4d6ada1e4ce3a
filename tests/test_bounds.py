"""What no run can beat: bounds worked out by hand, and held by runs that reach them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.bounds import Cuts, collective_bound, schedule_bound_s
from ringnet.collectives import ALGORITHMS
from ringnet.engines.events import run_events
from ringnet.engines.trace import Workers
from ringnet.networks import TOPOLOGIES, Cable, Inside, LinkChange, OverTime
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads


def bound_of(run):
    return collective_bound(run.schedule, run.network, run.chunk_bytes).seconds


def worker_capacities(network):
    """What the links out of each worker, and into it, carry together."""
    of_workers = Cuts(network).partitions[0]
    return of_workers.out.rate_Bps[0], of_workers.into.rate_Bps[0]


# ------------------------------------------------------------------------------------------ of the schedule


def test_the_link_that_needs_longest_for_its_bytes_bounds_the_schedule(case):
    network = case(3, links={"1->2": LinkChange(10.0)}).network
    assert schedule_bound_s(np.array([100, 100, 300]), network) == 10.0
    assert schedule_bound_s(np.array([1000, 20, 300]), network) == 10.0
    assert schedule_bound_s(np.array([100, 20, 300]), network) == 3.0


def test_without_links_or_bytes_nothing_is_bounded(case):
    assert schedule_bound_s(np.zeros(0), case(1).network) == 0.0
    assert schedule_bound_s(np.zeros(3), case(3).network) == 0.0


# ---------------------------------------------------------------------------------------- of the collective

EVEN, UNEVEN = [100, 100, 100], [0, 800, 400]
SLOW_UP, SLOW_DOWN = {"0->switch": LinkChange(50.0)}, {"switch->0": LinkChange(50.0)}
SLOW_LINK = {"0->1": LinkChange(10.0)}
ALL_UP = {f"{worker}->switch": LinkChange(50.0) for worker in range(3)}

WORKED = [
    # Uniform: (N-1)/N of the message a phase, S = 300 bytes: 2 x 2/3 x 300 / 100.
    ("ring", "all-reduce", EVEN, {}, 4.0),
    ("ring", "reduce-scatter", EVEN, {}, 2.0),
    ("ring", "all-gather", EVEN, {}, 2.0),
    ("switch", "all-reduce", EVEN, {}, 4.0),
    # All 300 bytes leave worker 0 at 10 B/s; in one phase only what it does not keep, or what 1 lacks.
    ("ring", "all-reduce", EVEN, SLOW_LINK, 30.0),
    ("ring", "reduce-scatter", EVEN, SLOW_LINK, 20.0),
    ("ring", "all-gather", EVEN, SLOW_LINK, 20.0),
    # Of 1200 bytes: 2 x 2 x 1200 / 300 over all; worker 2 keeps an empty chunk and has everything to send.
    ("ring", "all-reduce", UNEVEN, {}, 16.0),
    ("ring", "reduce-scatter", UNEVEN, {}, 12.0),
    ("ring", "all-gather", UNEVEN, {}, 12.0),
    # 300 bytes up at 50 B/s; 300 down at 50 B/s; four times 300 over 150 B/s of all three.
    ("switch", "all-reduce", EVEN, SLOW_UP, 6.0),
    ("switch", "all-reduce", EVEN, SLOW_DOWN, 6.0),
    ("switch", "all-reduce", EVEN, ALL_UP, 8.0),
    # Worker 0 sends the 200 bytes that it does not keep; or gets 100 bytes, and all together get 2 x 300.
    ("switch", "reduce-scatter", EVEN, SLOW_UP, 4.0),
    ("switch", "reduce-scatter", EVEN, SLOW_DOWN, 2.4),  # into 250 B/s
    ("switch", "all-gather", EVEN, SLOW_UP, 2.4),
    ("switch", "all-gather", EVEN, SLOW_DOWN, 4.0),
]


@pytest.mark.parametrize(("topology", "collective", "chunk_bytes", "links", "bound_s"), WORKED)
def test_bounds_worked_out_by_hand(case, topology, collective, chunk_bytes, links, bound_s):
    run = case(3, chunk_bytes, collective=collective, topology=topology, links=links)
    assert bound_of(run) == pytest.approx(bound_s, rel=1e-15, abs=0)


@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_one_worker_is_not_bounded(case, topology, collective):
    assert bound_of(case(1, topology=topology, collective=collective)) == 0.0


ONE_CHUNK = [
    # One chunk of 100 bytes among three workers: who contributes, who must hold it (-1: all).
    (1, 2, 1.0),  # sent
    (1, 1, 0.0),  # where it is already
    (1, -1, 1.0),  # broadcast
    (-1, 2, 1.0),  # reduced
    (-1, -1, 4 / 3),  # both, over all: 4 x 100 bytes over 300 B/s
]


@pytest.mark.parametrize(("source", "target", "bound_s"), ONE_CHUNK)
def test_other_collectives_are_bounded_by_their_ends(case, custom, source, target, bound_s):
    schedule = custom(3, [(0, 1, 0)], source=np.array([source]), target=np.array([target]))
    assert bound_of(case(3, schedule=schedule)) == pytest.approx(bound_s, rel=1e-15, abs=0)


def test_chunks_of_different_ends_add_up(case, custom):
    """300 bytes for all from all, 100 from worker 1 to worker 2: 4 x 300 + 100 bytes over 300 B/s."""
    ends = {"source": np.array([-1, 1]), "target": np.array([-1, 2])}
    schedule = custom(3, [(0, 1, 0), (1, 2, 1)], **ends)
    assert bound_of(case(3, [300, 100], schedule=schedule)) == pytest.approx(13 / 3, rel=1e-15, abs=0)


def test_a_chunk_sent_past_a_fast_worker_counts_where_it_must_go(case, custom):
    schedule = custom(3, [(0, 1, 0)], source=np.array([1]), target=np.array([2]))
    slow = {"0->1": LinkChange(1.0), "2->0": LinkChange(1.0), "1->2": LinkChange(50.0)}
    assert bound_of(case(3, schedule=schedule, links=slow)) == 2.0


def test_capacities_add_up_the_links_of_a_worker(case):
    switch = case(3, topology="switch", links=SLOW_UP).network
    out_Bps, in_Bps = worker_capacities(switch)
    assert (out_Bps.tolist(), in_Bps.tolist()) == ([50.0, 100.0, 100.0], [100.0, 100.0, 100.0])
    two_cables = replace(
        case(2).network,
        names=("0->a", "0->b", "a->1", "b->1", "1->0", "a->b"),
        bandwidth_Bps=np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
    )
    out_Bps, in_Bps = worker_capacities(two_cables)
    assert (out_Bps.tolist(), in_Bps.tolist()) == ([3.0, 16.0], [16.0, 12.0])


@given(st.lists(st.tuples(*[st.integers(1, 100)] * 2, st.integers(0, 1000)), min_size=2, max_size=9))
def test_all_reduce_is_bounded_as_patarasuk_and_yuan_say(case, rows):
    """The larger of S / (smallest capacity) and 2(N-1) S / (sum of capacities), out or in."""
    links = {f"{worker}->switch": LinkChange(up) for worker, (up, _, _) in enumerate(rows)}
    links |= {f"switch->{worker}": LinkChange(down) for worker, (_, down, _) in enumerate(rows)}
    ups, downs, chunks = zip(*rows, strict=True)
    run = case(len(rows), list(chunks), topology="switch", links=links)
    of_each = sum(chunks) / min(*ups, *downs)
    of_all = 2 * (len(rows) - 1) * sum(chunks) / min(sum(ups), sum(downs))
    assert bound_of(run) == pytest.approx(max(of_each, of_all), rel=1e-12, abs=0)


@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
@pytest.mark.parametrize("n_workers", [2, 3, 8])
def test_a_uniform_ring_without_latency_reaches_both_bounds(case, n_workers, collective):
    """The ring is bandwidth-optimal, so that neither bound may be any higher."""
    run = case(n_workers, collective=collective, latency_s=0.0)
    trace = run.run()
    makespan_s = float(trace.workers["end_s"].max())
    assert bound_of(run) == pytest.approx(makespan_s, rel=1e-12, abs=0)
    assert schedule_bound_s(trace.links["bytes"], run.network) == pytest.approx(makespan_s, rel=1e-12, abs=0)


def test_a_slow_link_alone_is_what_an_eager_ring_takes_in_the_end(case):
    """Its bytes over its bandwidth, and the schedule's bound is reached; the collective's is lower."""
    run = case(3, latency_s=0.0, links={"0->1": LinkChange(25.0)})
    trace = run.run()
    assert trace.workers["end_s"].max() == schedule_bound_s(trace.links["bytes"], run.network) == 16.0
    assert bound_of(run) == 12.0


# -------------------------------------------------------------------------------------------- of whole cuts


def built(topology, n_workers, **parameters):
    return TOPOLOGIES[topology].build(n_workers, 100.0, 0.0, **parameters)


def bound_on(network, collective="all-reduce", message_bytes=1200, start_s=0.0):
    algorithm = {"all-to-all": "pairwise", "broadcast": "binomial-tree", "reduce": "binomial-tree"}.get(
        collective, "ring"
    )
    schedule = ALGORITHMS[algorithm].build(network.n_workers, collective)
    return collective_bound(schedule, network, schedule.chunk_sizes(message_bytes), start_s)


def hosts(n_workers, per_host, nics=1, **more):
    inside = Inside("switch", 1000.0, 0.0)
    return built("nodes", n_workers, workers_per_host=per_host, inside=inside, nics=nics, **more)


def dumbbell(trunk_Bps, duplex="full"):
    cables = [Cable(str(worker), "a" if worker < 4 else "b") for worker in range(8)]
    cables.append(Cable("a", "b", bandwidth_Bps=trunk_Bps, duplex=duplex))
    return built("custom", 8, cables=cables, switches=["a", "b"])


def bus(n_workers):
    cables = [Cable(str(worker), "hub", duplex="half") for worker in range(n_workers)]
    return built("custom", n_workers, cables=cables, switches=["hub"])


#: Of all-reduces of 1200 bytes; links of 100 bytes per second, 1000 inside hosts.
CUTS = [
    # Two hosts: 1200 bytes each way through a card, however fast the inside is.
    (hosts(2, 1), (12.0, "between the cards")),
    # Two cards a host carry twice as much; four hosts: 2 x 3/4 of it through each.
    (hosts(8, 4, nics=2), (6.0, "between the hosts")),
    (hosts(8, 2), (18.0, "between the hosts")),
    # Eight workers alike take 2 x 7/8 x 1200 / 100, which the trunk must be narrower than 57 B/s to exceed.
    (dumbbell(60.0), (21.0, "between the workers")),
    (dumbbell(40.0), (30.0, "between the sides of a narrow cut")),
    # A trunk that carries both ways on one link has 2400 bytes to carry.
    (dumbbell(80.0, "half"), (30.0, "between the sides of a narrow cut")),
    # A link of 100 for both ways takes the 1200 bytes that come in and the 1200 that go out.
    (bus(3), (24.0, "into and out of worker 0")),
    # Leaves of four with an uplink of 25, as their workers are four times oversubscribed by sixteen.
    (built("leaf-spine", 16, leaves=4, oversubscription=16.0), (72.0, "between the leaves")),
]


@pytest.mark.parametrize(("network", "expected"), CUTS, ids=[f"{seconds:g} s {cut}" for _, (seconds, cut) in CUTS])
def test_the_narrowest_cut_bounds_an_all_reduce_and_is_named(network, expected):
    bound = bound_on(network)
    assert bound.seconds == pytest.approx(expected[0], rel=1e-12, abs=0)
    assert bound.cut == expected[1]


@pytest.mark.parametrize(
    ("collective", "bound_s"),
    [
        # Half of it must come into each of two hosts; all of it into the host without the root, or out of it.
        ("reduce-scatter", 6.0),
        ("all-gather", 6.0),
        ("broadcast", 12.0),
        ("reduce", 12.0),
        # A quarter of the buffers of two workers: 2 x 2 x 300 bytes.
        ("all-to-all", 12.0),
    ],
)
def test_what_other_collectives_must_bring_over_a_cut(collective, bound_s):
    assert bound_on(hosts(4, 2), collective).seconds == pytest.approx(bound_s, rel=1e-12, abs=0)


def test_half_of_an_all_to_all_crosses_the_middle_of_a_torus():
    """Of 16 workers in a ring of 2 x 8, 8 send half of their 1600 bytes over two times two cables of 100 B/s."""
    bound = bound_on(built("torus", 16, sides=[8, 2]), "all-to-all", 1600)
    assert bound == (8 * 800 / 400, "between the halves of side 1")


def test_capacity_that_changes_is_integrated_over_a_cut():
    """Two cards of a host; one stops at 3 s: 600 bytes have gone by then, and 100 B/s are left for 600 more."""
    network = hosts(4, 2, nics=2)
    stops = {network.names.index("h0/nic0->switch"): OverTime(100.0, 0.0, ((3.0, 0.0),))}
    assert bound_on(replace(network, behaviours=stops)).seconds == pytest.approx(9.0, rel=1e-12, abs=0)
    assert bound_on(replace(network, behaviours=stops), start_s=2.0).seconds == pytest.approx(11.0, rel=1e-12, abs=0)
    assert bound_on(network).seconds == pytest.approx(6.0, rel=1e-12, abs=0)


def test_what_a_cut_never_carries_takes_for_ever():
    dead = {0: OverTime(100.0, 0.0, ((3.0, 0.0),))}
    assert bound_on(replace(built("ring", 3), behaviours=dead)).seconds == np.inf


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 50)), max_size=12), st.data())
def test_a_searched_cut_is_never_above_what_some_algorithm_takes(edges, data):
    """On random trees and more of cables: each algorithm that has its routes runs no faster than the bound."""
    n_workers = data.draw(st.integers(2, 6))
    above = [data.draw(st.integers(0, node - 1)) for node in range(1, 10)]
    pairs = {(node, up): data.draw(st.integers(1, 50)) for node, up in enumerate(above, start=1)}
    pairs |= {(a, b): rate for a, b, rate in edges if a > b}
    name = [str(node) if node < n_workers else f"s{node}" for node in range(10)]
    cables = [Cable(name[a], name[b], bandwidth_Bps=float(rate)) for (a, b), rate in pairs.items()]
    network = built("custom", n_workers, cables=cables, switches=name[n_workers:])
    bound = bound_on(network)
    for algorithm in ("ring", "direct", "recursive-doubling"):
        schedule = ALGORITHMS[algorithm].build(n_workers, "all-reduce")
        trace = run_events(schedule, network, Workers.alike(n_workers), schedule.chunk_sizes(1200))
        assert float(trace.workers["end_s"].max()) >= bound.seconds * (1 - 1e-12)


@pytest.mark.parametrize(("topology", "links_each"), [("fully-connected", 3), ("switch", 1)])
def test_what_waits_for_a_late_worker_is_no_more_than_any_algorithm_takes(topology, links_each):
    text = f"""{{scenario_version: 1, workers: 4, message: 4 MiB, payload: none,
        worker: {{exceptions: {{2: {{start: 300 us}}}}}},
        network: {{topology: {topology}, bandwidth: 10 GB/s, latency: 0 s}}}}"""
    for collective in ("all-reduce", "reduce-scatter", "all-gather", "reduce"):
        plain = (name for name, one in ALGORITHMS.items() if not one.in_switches)
        for name in (one for one in plain if collective in ALGORITHMS[one].collectives):
            row = simulate(loads(text, [f"algorithm={name}", f"collective={collective}"])).summary
            assert row["bound_share"] <= 1 + 1e-12, (name, collective)
            if collective == "all-reduce":
                assert "once worker 2 has started" in row["bound_cut"]
                least_s = 300e-6 + 2**22 / (10e9 * links_each)
                assert row["collective_bound_s"] == pytest.approx(least_s, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("link", "least_s", "cut"),
    [
        ("0->switch", 2**22 / 1e9, "out of worker 0"),  # which may send before the last one has started
        ("switch->0", 300e-6 + 2**22 / 1e9, "into worker 0 once worker 2 has started"),
        ("2->switch", 300e-6 + 2**22 / 1e9, "out of worker 2 once worker 2 has started"),
    ],
)
def test_only_what_bears_a_late_worker_waits_for_it(link, least_s, cut):
    text = f"""{{scenario_version: 1, workers: 4, message: 4 MiB, payload: none,
        worker: {{exceptions: {{2: {{start: 300 us}}}}}},
        network: {{topology: switch, bandwidth: 10 GB/s, latency: 0 s, links: {{{link}: {{bandwidth: 1 GB/s}}}}}}}}"""
    row = simulate(loads(text)).summary
    assert (row["collective_bound_s"], row["bound_cut"]) == (pytest.approx(least_s, rel=1e-9, abs=0), cut)
