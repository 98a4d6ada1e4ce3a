"""Every topology: its links, its routes, what holds for runs over it, placement and ring order, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise, permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringnet.analysis.bounds import Cuts, collective_bound, schedule_bound_s
from ringnet.collectives import ALGORITHMS
from ringnet.engines import Workers
from ringnet.engines.events import run_events
from ringnet.errors import NetworkError
from ringnet.networks import (
    TOPOLOGIES,
    Cable,
    Inside,
    LinkChange,
    LinkNumbers,
    Network,
    best_order,
    change_links,
    change_nodes,
    ecmp,
    interleaved,
    placed,
    with_routes,
)
from ringnet.networks.graph import Graph
from ringnet.networks.rails import rails
from ringnet.runs.notes import order_advice
from ringnet.runs.parts import build as build_parts
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

RATE = {"bandwidth_Bps": 100.0, "latency_s": 0.5}
STAR = {"switches": ["hub"], "cables": [Cable(str(worker), "hub") for worker in range(8)]}
BUS = {"switches": ["a", "b"], "cables": [Cable("a", "b", 300.0, duplex="half")]}
BUS["cables"] += [Cable(str(worker), "ab"[worker // 4]) for worker in range(8)]
FAST = Inside("switch", 900.0, 0.25)

#: Eight workers on each.
SHAPES: dict[str, tuple[str, dict]] = {
    "ring": ("ring", {}),
    "switch": ("switch", {}),
    "fully connected": ("fully-connected", {}),
    "torus 4x2": ("torus", {"sides": [4, 2]}),
    "torus 2x2x2": ("torus", {"sides": [2, 2, 2]}),
    "torus 8x1": ("torus", {"sides": [8, 1]}),
    "mesh 2x4": ("mesh", {"sides": [2, 4]}),
    "mesh 2x2x2": ("mesh", {"sides": [2, 2, 2]}),
    "leaf-spine": ("leaf-spine", {"leaves": 2, "spines": 2, "oversubscription": 2.0}),
    "leaf-spine, unequal": ("leaf-spine", {"hosts_per_leaf": [6, 2], "spines": 2}),
    "leaf-spine, not full": ("leaf-spine", {"hosts_per_leaf": 3}),
    "fat tree": ("fat-tree", {"k": 4}),
    "dragonfly": ("dragonfly", {"groups": 3, "routers_per_group": 2, "hosts_per_router": 2}),
    "nodes, switch": ("nodes", {"workers_per_host": 4, "inside": FAST}),
    "nodes, ring": ("nodes", {"workers_per_host": 4, "inside": replace(FAST, shape="ring"), "nics": 2}),
    "nodes, pcie": ("nodes", {"workers_per_host": 4, "inside": replace(FAST, shape="pcie"), "nics": 2}),
    "nodes, pairs": ("nodes", {"workers_per_host": 2, "inside": replace(FAST, shape="ring")}),
    "nodes, on rails": (
        "nodes",
        {"workers_per_host": 4, "inside": FAST, "nics": 4, "between": partial(rails, rails=4)},
    ),
    "nodes, two sockets": (
        "nodes",
        {"workers_per_host": 4, "inside": replace(FAST, sockets=2, socket=LinkNumbers(50.0, 0.5))},
    ),
    "nodes, two roots": (
        "nodes",
        {
            "workers_per_host": 4,
            "inside": replace(FAST, shape="pcie", sockets=2, socket=LinkNumbers(50.0, 0.5)),
        },
    ),
    "nodes, unequal": ("nodes", {"workers_per_host": [6, 2], "inside": FAST, "nics": [2, 1]}),
    "rails": ("rails", {"rails": 4, "spines": 2}),
    "rails, two racks": ("rails", {"rails": 2, "spines": 1, "hosts_per_rack": [3, 1]}),
    "custom star": ("custom", STAR),
    "custom bus": ("custom", BUS),
}
#: All but the ring, which has no other routes than to the next.
ROUTED = sorted(set(SHAPES) - {"ring"})


def build(shape: str) -> Network:
    name, parameters = SHAPES[shape]
    return TOPOLOGIES[name].build(8, **RATE, **parameters)


def names(network: Network, src: int, dst: int) -> list[str]:
    return [network.names[link] for link in network.route(src, dst)]


def faults(name: str, n_workers: int = 8, **parameters: object) -> list[str]:
    with pytest.raises(NetworkError) as caught:
        TOPOLOGIES[name].build(n_workers, **RATE, **parameters)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------------------------- links and routes


@pytest.mark.parametrize("shape", SHAPES)
def test_every_link_has_a_name_of_its_own(shape):
    network = build(shape)
    assert len(set(network.names)) == network.n_links == len(network.bandwidth_Bps) == len(network.latency_s)
    assert network.topology == SHAPES[shape][0]
    assert {str(worker) for worker in range(8)} <= set(network.nodes)
    assert all(network.names[link] in network.names for link in range(network.n_links))


@pytest.mark.parametrize("shape", ROUTED)
def test_routes_connect_what_they_say(shape):
    network = build(shape)
    for src, dst in permutations(range(8), 2):
        here = str(src)
        for link in network.route(src, dst):
            start, end = network.ends(link)
            assert here == start or (network.is_half_duplex(link) and here == end)
            here = end if here == start else start
        assert here == str(dst)


@pytest.mark.parametrize("shape", ROUTED)
def test_routes_are_shortest_by_hops(shape):
    network = build(shape)
    graph = Graph(network)
    for src, dst in permutations(range(8), 2):
        shortest = graph.hops_to(str(dst))[str(src)]
        if shape.startswith("nodes, ring"):  # a card is no way between the workers of a host
            assert len(network.route(src, dst)) >= shortest
        else:
            assert len(network.route(src, dst)) == shortest
        assert network.route(src, dst) == network.route(src, dst)
        assert len(set(network.route(src, dst))) == len(network.route(src, dst))


@pytest.mark.parametrize("shape", ROUTED)
def test_no_way_leads_from_a_worker_to_itself(shape):
    assert build(shape).route(3, 3) == () or shape == "switch"


def test_a_thousand_workers_fully_connected_take_columns_and_no_names():
    network = TOPOLOGIES["fully-connected"].build(1024, **RATE)
    assert network.n_links == 1024 * 1023
    assert names(network, 5, 7) == ["5->7"]
    assert names(network, 1023, 0) == ["1023->0"]
    assert network.names[:2] == ("0->1", "0->2")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.booleans(), st.data())
def test_grids_take_the_dimensions_in_order(sides, closed, data):
    n_workers = prod(sides)
    network = TOPOLOGIES["torus" if closed else "mesh"].build(n_workers, **RATE, sides=sides)
    src, dst = (data.draw(st.integers(0, n_workers - 1)) for _ in "ab")
    weights = [prod(sides[:axis]) for axis in range(len(sides))]
    stops = [src, *(int(network.ends(link)[1]) for link in network.route(src, dst))]
    axes = [next(axis for axis, w in enumerate(weights) if a // w % sides[axis] != b // w % sides[axis])
            for a, b in pairwise(stops)]  # fmt: skip
    assert axes == sorted(axes)
    hops = [abs(src // w % side - dst // w % side) for w, side in zip(weights, sides, strict=True)]
    least = [min(hop, side - hop) if closed else hop for hop, side in zip(hops, sides, strict=True)]
    assert [axes.count(axis) for axis in range(len(sides))] == least
    assert stops[-1] == dst


def test_uplinks_carry_what_the_ratio_leaves():
    network = TOPOLOGIES["leaf-spine"].build(8, **RATE, hosts_per_leaf=4, spines=2, oversubscription=4)
    rates = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    assert rates["0->leaf0"] == rates["leaf1->7"] == 100.0
    assert rates["leaf0->spine1"] == rates["spine0->leaf1"] == 4 * 100.0 / (2 * 4)


def test_a_fat_tree_gives_neighbours_ways_of_their_own():
    network = TOPOLOGIES["fat-tree"].build(16, **RATE, k=4)
    assert network.n_links == 6 * 16
    used = Counter(link for src in range(16) for link in network.route(src, (src + 4) % 16))
    assert set(used.values()) == {1}


def test_places_beyond_the_workers_stay_empty():
    network = build("fat tree")
    assert [node for node in network.nodes if node.startswith("free")] == [f"free{i}" for i in range(8, 16)]


def test_hosts_share_cards_and_the_root():
    network = build("nodes, pcie")
    assert names(network, 0, 3) == ["0->h0/pcie0", "h0/pcie0->h0/root", "h0/root->h0/pcie1", "h0/pcie1->3"]
    over = ["h0/pcie0->h0/nic0", "h0/nic0->switch", "switch->h1/nic1", "h1/nic1->h1/pcie1"]
    assert names(network, 1, 7) == ["1->h0/pcie0", *over, "h1/pcie1->7"]
    rates = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    assert (rates["1->h0/pcie0"], rates["h0/nic0->switch"]) == (900.0, 100.0)


def test_cards_go_into_any_other_network():
    def between(n: int, bandwidth_Bps: float, latency_s: float) -> Network:
        return TOPOLOGIES["leaf-spine"].build(n, bandwidth_Bps, latency_s, leaves=2)

    network = TOPOLOGIES["nodes"].build(8, **RATE, workers_per_host=2, inside=FAST, between=between)
    up, down = ["0->h0/nic0", "h0/nic0->leaf0", "leaf0->spine0"], ["leaf1->h3/nic0", "h3/nic0->7"]
    assert names(network, 0, 7) == [*up, "spine0->leaf1", *down]


def test_a_custom_network_takes_the_cables_listed_first():
    cables = [Cable("0", "b"), Cable("b", "1"), Cable("0", "a"), Cable("a", "1", 7.0, 0.0)]
    network = TOPOLOGIES["custom"].build(2, **RATE, cables=cables, switches=["a", "b"])
    assert names(network, 0, 1) == ["0->b", "b->1"]
    assert network.bandwidth_Bps.tolist() == [100.0] * 6 + [7.0] * 2
    assert network.latency_s.tolist() == [0.5] * 6 + [0.0] * 2


def test_a_half_duplex_cable_is_one_link_for_both_directions():
    network = build("custom bus")
    assert names(network, 0, 4) == ["0->a", "a<->b", "b->4"]
    assert names(network, 4, 0) == ["4->b", "a<->b", "a->0"]
    cables = [Cable("0", "1", duplex="half"), Cable("0", "2"), Cable("1", "2", duplex="one-way")]
    small = TOPOLOGIES["custom"].build(3, **RATE, cables=cables)
    workers = Cuts(small).partitions[0]
    assert [way.rate_Bps[0].tolist() for way in (workers.out, workers.into)] == [
        [200, 200, 100],
        [200, 100, 200],
    ]
    changed = change_nodes(small, {"1": LinkChange(7.0)})
    assert changed.bandwidth_Bps.tolist() == [7.0, 100.0, 100.0, 7.0]


# ------------------------------------------------------------------------------------- unequal links, routes


def test_links_are_changed_by_rule_and_then_by_name():
    network = build("leaf-spine")
    changed = change_links(network, {"leaf1->spine0": LinkChange(5.0), "leaf*->spine*": LinkChange(7.0)})
    rates = dict(zip(network.names, changed.bandwidth_Bps.tolist(), strict=True))
    assert [rates[f"leaf{leaf}->spine{spine}"] for leaf, spine in product(range(2), repeat=2)] == [7, 7, 5, 7]
    assert rates["spine0->leaf0"] == 100.0
    with pytest.raises(NetworkError, match=r"no such link; got leef"):
        change_links(network, {"leef*->*": LinkChange(5.0)})


def test_flows_spread_over_equal_ways_by_seed():
    network = TOPOLOGIES["leaf-spine"].build(64, **RATE, leaves=2, spines=4)

    def spines(seed: int) -> list[str]:
        spread = ecmp(network, seed)
        return [spread.ends(spread.route(src, src + 32)[1])[1] for src in range(32)]

    assert spines(1) == spines(1) != spines(2)
    assert set(spines(1)) == {f"spine{i}" for i in range(4)}


@pytest.mark.parametrize("shape", ROUTED)
def test_ecmp_is_as_short(shape):
    network, spread = build(shape), ecmp(build(shape), seed=3)
    for src, dst in permutations(range(8), 2):
        assert len(spread.route(src, dst)) <= len(network.route(src, dst))


def test_routes_may_be_listed():
    network = build("torus 4x2")
    other = with_routes(network, {(0, 1): ("0->4", "4->5", "5->1")})
    assert names(other, 0, 1) == ["0->4", "4->5", "5->1"]
    assert names(other, 1, 0) == names(network, 1, 0)


@pytest.mark.parametrize(
    ("route", "said"),
    [
        (("0->4", "4->9"), "0->1: the route goes over 4->9, a link that is not there; did you mean 4->7?"),
        (
            ("0->4", "4->0", "0->4", "4->0", "0->1"),
            "0->1: the route goes over 0->4 twice; right would be: each link once",
        ),
        (
            ("0->4", "5->1"),
            "0->1: the route is at 4 before 5->1; right would be: a link from 4",
        ),
        (("0->4", "4->5"), "0->1: the route ends at 5, not at 1"),
    ],
)
def test_a_listed_route_that_leads_elsewhere(route, said):
    with pytest.raises(NetworkError) as caught:
        with_routes(build("torus 4x2"), {(0, 1): route})
    assert str(caught.value) == said


# ------------------------------------------------------------------------------------------ runs over them


def run(network: Network, sends: str = "eager", n_bytes: int = 1000):
    schedule = ALGORITHMS["ring"].build(network.n_workers, "all-reduce")
    chunk_bytes = np.full(schedule.n_chunks, n_bytes) + np.arange(schedule.n_chunks)
    return (
        schedule,
        chunk_bytes,
        run_events(schedule, network, Workers.alike(network.n_workers, sends=sends), chunk_bytes),
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
def test_what_is_sent_is_received_once_and_no_link_is_over_100_percent(shape, sharing, sends):
    network = replace(build(shape), sharing=sharing)
    schedule, chunk_bytes, trace = run(network, sends)
    rows, makespan_s = trace.transfers, trace.workers["end_s"].max()
    assert trace.workers["sent_bytes"].sum() == trace.workers["received_bytes"].sum() == rows["bytes"].sum()
    crossed = np.zeros(network.n_links, dtype=int)
    for src, dst, n_bytes in zip(*(rows[name].tolist() for name in ("src", "dst", "bytes")), strict=True):
        crossed[list(network.route(src, dst))] += n_bytes
    assert trace.links["bytes"].tolist() == crossed.tolist()
    assert (trace.links["busy_s"] <= makespan_s * (1 + 1e-12)).all()
    assert schedule_bound_s(trace.links["bytes"], network) <= makespan_s * (1 + 1e-12)
    assert collective_bound(schedule, network, chunk_bytes).seconds <= makespan_s * (1 + 1e-12)


# -------------------------------------------------------------------------------------- placement and order


def two_leaves(oversubscription: float = 1.0, n_workers: int = 8) -> Network:
    return TOPOLOGIES["leaf-spine"].build(n_workers, **RATE, leaves=2, oversubscription=oversubscription)


def worst(network: Network) -> float:
    n = network.n_workers
    load = np.zeros(network.n_links)
    for worker in range(n):
        load[list(network.route(worker, (worker + 1) % n))] += 1
    return float((load / network.bandwidth_Bps).max())


def test_workers_sit_where_they_are_placed():
    network = placed(two_leaves(), [7, 0])
    assert (network.n_workers, network.node(0), network.node(1)) == (2, "7", "0")
    assert names(network, 0, 1)[0] == "7->leaf1"
    workers = Cuts(change_links(network, {"7->leaf1": LinkChange(5.0)})).partitions[0]
    assert workers.out.rate_Bps.tolist() == [[5.0, 100.0]]
    assert workers.into.rate_Bps.tolist() == [[100.0, 100.0]]


def test_placing_twice_is_placing_by_both():
    network = placed(placed(two_leaves(), [1, 3, 5, 7]), [3, 0])
    assert [network.node(worker) for worker in range(2)] == ["7", "1"]
    assert names(network, 0, 1) == names(two_leaves(), 7, 1)


def test_a_place_that_is_not_there_or_taken():
    with pytest.raises(NetworkError) as caught:
        placed(two_leaves(), [0, 8, 1, 0])
    assert [fault.message for fault in caught.value.faults] == [
        "the leaf-spine has no such place",
        "the place is taken already",
    ]


def test_interleaved_places_go_round_the_groups():
    assert interleaved(two_leaves(n_workers=5), 5) == [0, 3, 1, 4, 2]
    assert interleaved(build("nodes, ring"), 6) == [0, 4, 1, 5, 2, 6]
    assert interleaved(build("dragonfly"), 8) == [0, 4, 1, 5, 2, 6, 3, 7]
    for shape in ("switch", "torus 4x2", "fully connected"):
        with pytest.raises(NetworkError, match="no groups of places"):
            interleaved(build(shape), 8)


def test_the_best_order_undoes_interleaving():
    apart = placed(two_leaves(4.0), interleaved(two_leaves(), 8))
    assert worst(apart) == 4 * worst(two_leaves(4.0))
    assert worst(placed(apart, best_order(apart))) == worst(two_leaves(4.0))


@given(st.integers(2, 6), st.randoms(use_true_random=False), st.sampled_from([1.0, 2.0, 4.0]))
def test_the_best_order_of_a_few_is_as_good_as_any(n_workers, random, ratio):
    seats = random.sample(range(8), n_workers)
    network = change_links(placed(two_leaves(ratio), seats), {"leaf0->spine0": LinkChange(random.choice([5.0, 60.0]))})
    every = [placed(network, [0, *rest]) for rest in permutations(range(1, n_workers))]
    assert worst(placed(network, best_order(network))) == pytest.approx(min(map(worst, every)))


@settings(max_examples=5)
@given(st.randoms(use_true_random=False))
def test_the_best_order_of_many_is_never_worse_than_as_numbered(random):
    seats = random.sample(range(12), 12)
    network = placed(TOPOLOGIES["torus"].build(12, **RATE, sides=[4, 3]), seats)
    order = best_order(network)
    assert sorted(order) == [*range(12)]
    assert worst(placed(network, order)) <= worst(network)


def test_many_workers_on_leaves_get_a_ring_that_crosses_once():
    network = placed(two_leaves(4.0, 32), interleaved(two_leaves(4.0, 32), 32))
    assert worst(placed(network, best_order(network))) == worst(two_leaves(4.0, 32))


@pytest.mark.parametrize(
    "behaviour",
    [
        "profile: [{at: 1 us, bandwidth: 1 GB/s}]",
        "regimes: [{up_to: 1 MiB, bandwidth: 1 GB/s, latency: 1 us}]",
    ],
)
def test_the_best_order_counts_what_links_give_at_that_size_and_time(behaviour):
    """A ring over links of all pairs goes around the one that becomes slow, or is slow for chunks of this size."""
    text = f"""
    scenario_version: 1
    workers: 4
    message: 1 MiB
    network:
      {{topology: fully-connected, bandwidth: 50 GB/s, latency: 1 us, sharing: fifo, links: {{0->1: {{{behaviour}}}}}}}
    """
    as_numbered, best = (simulate(loads(text, [f"network.order={order}"])) for order in ("numbered", "best"))
    assert as_numbered.summary["makespan_s"] > 10 * best.summary["makespan_s"]
    assert best.links.set_index("link")["transfers"]["0->1"] == 0
    (advice,) = (order_advice(one, build_parts(one).network) for one in [loads(text)])
    assert advice is not None
    assert "network.order: best" in advice


def test_a_one_way_ring_has_one_order():
    network = TOPOLOGIES["ring"].build(5, **RATE)
    assert best_order(network) == [0, 1, 2, 3, 4]


# ---------------------------------------------------------------------------------------------- what is refused


def test_sides_that_do_not_multiply():
    said = ["sides: a torus of 4 x 4 has 16 places, and 8 are needed; right would be: sides: [4, 2]"]
    assert faults("torus", sides=[4, 4]) == said
    assert "8 are needed" in faults("mesh", sides=[2, 2])[0]


@pytest.mark.parametrize(
    ("topology", "parameters", "said"),
    [
        ("fat-tree", {"k": 3}, "an even number of ports"),
        ("fat-tree", {"k": 2}, "2 places, and 8 are needed; right would be: at least 4"),
        ("leaf-spine", {"leaves": 2, "hosts_per_leaf": 3}, "6 places, and 8 are needed"),
        ("leaf-spine", {}, "needs leaves or hosts_per_leaf"),
        ("leaf-spine", {"leaves": 2, "oversubscription": 0.0}, "a ratio is more than zero"),
        (
            "dragonfly",
            {"groups": 2, "routers_per_group": 1, "hosts_per_router": 3},
            "6 places, and 8 are needed",
        ),
        ("nodes", {"workers_per_host": 3, "inside": FAST}, "no whole number of hosts"),
        ("nodes", {"workers_per_host": 2, "inside": FAST, "nics": 3}, "3 cards are more"),
    ],
)
def test_a_shape_without_room(topology, parameters, said):
    (fault,) = faults(topology, **parameters)
    assert said in fault


def test_every_mistake_in_cables_at_once():
    cables = [Cable("0", "hub"), Cable("1", "hup"), Cable("0", "hub"), Cable("2", "2"), Cable("hub", "0")]
    nodes = "a worker from 0 to 2, or one of switches: [hub, hub]"
    assert faults("custom", 3, cables=cables, switches=["hub", "hub"]) == [
        "switches.1: the switch is listed twice; got hub; right would be: a name of its own",
        f"cables.1.to: there is no such node; got hup; right would be: {nodes}; did you mean hub?",
        "cables.2: the link 0->hub is listed twice; right would be: each link once",
        "cables.3: a cable joins two nodes, not 2 to itself; right would be: {from: 0, to: 1}",
        "cables.4: the link hub->0 is listed twice; right would be: each link once",
    ]


def test_a_half_duplex_cable_is_the_same_from_its_other_end():
    cables = [Cable("0", "1", duplex="half"), Cable("1", "0", duplex="half")]
    assert faults("custom", 2, cables=cables) == [
        "cables.1: the link 1<->0 is listed twice; right would be: each link once"
    ]


def test_workers_without_a_way():
    cables = [Cable("0", "hub"), Cable("1", "hub", duplex="one-way"), Cable("2", "3")]
    assert faults("custom", 4, cables=cables, switches=["hub"]) == [
        "cables: no way leads from worker 0 to worker 1; right would be: a cable from 0",
        "cables: no way leads from worker 2 to worker 0; right would be: a cable from 2",
        "cables: no way leads from worker 3 to worker 0; right would be: a cable from 3",
    ]
