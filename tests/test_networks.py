"""Networks as data: which links there are, which way a transfer goes, and how exceptions change them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import NetworkError
from ringnet.networks import TOPOLOGIES, Inside, LinkChange, change_links, change_nodes, make_network

#: Topologies that take nothing but workers and what their links have.
PLAIN = sorted(name for name, topology in TOPOLOGIES.items() if not topology.parameters)


def network(topology, n_workers=4):
    return TOPOLOGIES[topology].build(n_workers, bandwidth_Bps=100.0, latency_s=0.5)


def faults(change, *arguments):
    with pytest.raises(NetworkError) as caught:
        change(*arguments)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------------------------------- by its name


def test_a_network_is_made_by_the_name_of_its_topology():
    made = make_network("torus", 6, bandwidth_Bps=100.0, latency_s=0.5, sides=[3, 2])
    assert (made.topology, made.n_workers, made.route(0, 1)) == ("torus", 6, (0,))
    assert set(made.bandwidth_Bps) == {100.0}


def test_what_cannot_be_made_is_told_all_at_once():
    unknown = faults(make_network, "torrus", 6, 100.0, 0.5)
    assert len(unknown) == 1
    assert unknown[0].endswith("did you mean torus?")
    said = faults(lambda: make_network("dragonfly", 6, 100.0, 0.5, groups=3, rotuers_per_group=2))
    assert [fault.partition(";")[0].partition(":")[0] for fault in said] == [
        "a dragonfly has no such parameter",
        "a dragonfly needs routers_per_group",
        "a dragonfly needs hosts_per_router",
    ]


# ------------------------------------------------------------------------------------------- links and routes


def test_links_of_a_ring():
    assert network("ring").names == ("0->1", "1->2", "2->3", "3->0")
    assert network("ring", 2).names == ("0->1", "1->0")
    assert network("ring", 1).names == ()


def test_links_of_a_switch():
    up, down = ("0->switch", "1->switch", "2->switch"), ("switch->0", "switch->1", "switch->2")
    assert network("switch", 3).names == up + down
    assert network("switch", 1).names == ("0->switch", "switch->0")


@pytest.mark.parametrize("topology", PLAIN)
@pytest.mark.parametrize("n_workers", [1, 2, 9])
def test_every_link_has_a_name_of_its_own_and_what_the_rule_says(topology, n_workers):
    built = network(topology, n_workers)
    assert built.topology == topology
    assert len(set(built.names)) == built.n_links
    assert built.bandwidth_Bps.tolist() == [100.0] * built.n_links
    assert built.latency_s.tolist() == [0.5] * built.n_links
    assert (built.switching, built.sharing) == ("cut-through", "auto")


@pytest.mark.parametrize(
    ("topology", "parameters"), [("switch", {}), ("torus", {"sides": [3, 2]}), ("leaf-spine", {"leaves": 2})]
)
def test_many_routes_at_once_are_those_one_by_one(topology, parameters):
    built = make_network(topology, 6, bandwidth_Bps=100.0, latency_s=0.5, **parameters)
    pairs = [(src, dst) for dst in range(6) for src in range(6) if src != dst]
    links, first = built.joined_routes(*np.array(pairs).T)
    assert [tuple(links[a:b]) for a, b in pairwise(first)] == [built.route(*pair) for pair in pairs]


def test_routes_of_a_ring():
    ring = network("ring")
    assert [ring.route(worker, (worker + 1) % 4) for worker in range(4)] == [(0,), (1,), (2,), (3,)]


def test_a_ring_has_no_other_routes():
    said = ["a ring has a link from worker 0 to worker 1 only, not to 2"]
    assert faults(network("ring").route, 0, 2) == said
    assert faults(network("ring").route, 1, 0) == ["a ring has a link from worker 1 to worker 2 only, not to 0"]


def test_routes_of_a_switch():
    switch = network("switch")
    assert [switch.names[link] for link in switch.route(3, 1)] == ["3->switch", "switch->1"]


@pytest.mark.parametrize("topology", PLAIN)
@pytest.mark.parametrize(("src", "dst", "worker"), [(4, 0, 4), (0, 5, 5), (-1, 0, -1), (3, 4, 4)])
def test_there_is_no_route_of_a_worker_that_there_is_not(topology, src, dst, worker):
    said = f"the {topology} of 4 workers has no worker {worker}"
    assert faults(network(topology).route, src, dst) == [said]


@pytest.mark.parametrize("topology", PLAIN)
def test_a_route_leads_from_its_sender_to_its_receiver(topology):
    built = network(topology)
    for worker in range(4):
        ends = [built.ends(link) for link in built.route(worker, (worker + 1) % 4)]
        assert ends[0][0] == str(worker)
        assert ends[-1][1] == str((worker + 1) % 4)
        assert all(one[1] == other[0] for one, other in pairwise(ends))


# ------------------------------------------------------------------------------------------------- exceptions


def test_an_exception_changes_what_it_says_and_no_more():
    ring = network("ring")
    changed = change_links(ring, {"1->2": LinkChange(bandwidth_Bps=7.0), "3->0": LinkChange(latency_s=0.0)})
    assert changed.bandwidth_Bps.tolist() == [100.0, 7.0, 100.0, 100.0]
    assert changed.latency_s.tolist() == [0.5, 0.5, 0.5, 0.0]
    assert changed.names == ring.names
    assert ring.bandwidth_Bps.tolist() == [100.0] * 4
    assert ring.latency_s.tolist() == [0.5] * 4


def test_a_worker_takes_all_its_links_with_it():
    changed = change_nodes(network("ring"), {"3": LinkChange(7.0)})
    assert changed.bandwidth_Bps.tolist() == [100.0, 100.0, 7.0, 7.0]  # 2->3 and 3->0
    changed = change_nodes(network("switch"), {"3": LinkChange(7.0, 2.0)})
    assert changed.bandwidth_Bps.tolist() == [100.0, 100.0, 100.0, 7.0] * 2
    assert changed.latency_s.tolist() == [0.5, 0.5, 0.5, 2.0] * 2


def test_worker_1_is_not_worker_11():
    changed = change_nodes(network("ring", 12), {"1": LinkChange(7.0)})
    assert np.flatnonzero(changed.bandwidth_Bps == 7.0).tolist() == [0, 1]  # 0->1 and 1->2


def test_a_link_of_two_changed_workers_is_as_the_later_says():
    both = {"1": LinkChange(7.0, 2.0), "2": LinkChange(8.0)}
    changed = change_nodes(network("ring"), both)
    assert changed.bandwidth_Bps.tolist() == [7.0, 8.0, 8.0, 100.0]
    assert changed.latency_s.tolist() == [2.0, 2.0, 0.5, 0.5]


def test_a_card_takes_all_its_links_with_it():
    inside = {"workers_per_host": 2, "nics": 2, "inside": Inside("switch", 400.0, 0.1)}
    two_hosts = make_network("nodes", 4, 100.0, 0.5, **inside)
    changed = change_nodes(two_hosts, {"h0/nic1": LinkChange(7.0), "switch": LinkChange(latency_s=3.0)})
    slow = [name for link, name in enumerate(changed.names) if changed.bandwidth_Bps[link] == 7.0]
    assert slow == ["1->h0/nic1", "h0/nic1->1", "h0/nic1->switch", "switch->h0/nic1"]
    late = [name for link, name in enumerate(changed.names) if changed.latency_s[link] == 3.0]
    assert late == [name for name in changed.names if "switch" in re.split("->", name)]


def test_every_node_that_is_not_there_is_named():
    wrong = {"swich": LinkChange(7.0), "switch": LinkChange(7.0), "4": LinkChange(7.0)}
    assert faults(change_nodes, network("switch"), wrong) == [
        "the switch network of 4 workers has no such node; got swich; right would be: 0 to 3, switch; "
        "did you mean switch?",
        "there is no such worker; got 4; right would be: 0 to 3",
    ]


def test_exceptions_keep_how_the_network_switches_and_shares():
    ring = replace(network("ring"), switching="store-and-forward", sharing="fifo")
    changed = change_nodes(change_links(ring, {"0->1": LinkChange(7.0)}), {"2": LinkChange(8.0)})
    assert (changed.switching, changed.sharing) == ("store-and-forward", "fifo")


def test_every_link_that_is_not_there_is_named():
    wrong = {"0->2": LinkChange(7.0), "1->2": LinkChange(8.0), "swich->1": LinkChange(9.0)}
    the_ring, right = (
        "the ring network of 4 workers has no such link",
        "right would be: 0->1, 1->2, 2->3, ...",
    )
    assert faults(change_links, network("ring"), wrong) == [
        f"{the_ring}; got 0->2; {right}; did you mean 1->2?",
        f"{the_ring}; got swich->1; {right}",
    ]
    assert faults(change_links, network("switch", 2), {"swich->1": LinkChange(9.0)}) == [
        "the switch network of 2 workers has no such link; got swich->1; "
        "right would be: 0->switch, 1->switch, switch->0, ...; did you mean switch->1?"
    ]


def test_three_links_are_shown_whole():
    (said,) = faults(change_links, network("ring", 3), {"nowhere": LinkChange(7.0)})
    assert said.endswith("right would be: 0->1, 1->2, 2->0")


def test_every_worker_that_is_not_there_is_named():
    wrong = {"-1": LinkChange(7.0), "3": LinkChange(7.0), "4": LinkChange(7.0)}
    assert faults(change_nodes, network("ring"), wrong) == [
        "there is no such worker; got -1; right would be: 0 to 3",
        "there is no such worker; got 4; right would be: 0 to 3",
    ]


class Counted(tuple):
    """Names that count how often they are read, and that cannot be searched."""

    reads = 0

    def __getitem__(self, place):
        Counted.reads += 1
        return super().__getitem__(place)

    def __contains__(self, name):
        raise AssertionError(f"searched for {name}")

    def index(self, name):
        raise AssertionError(f"searched for {name}")


def test_hundreds_of_exceptions_search_no_name_and_read_each_once():
    switch = network("switch", 512)
    switch = replace(switch, names=Counted(switch.names))
    of_links = change_links(switch, {f"switch->{worker}": LinkChange(7.0) for worker in range(512)})
    assert of_links.bandwidth_Bps.tolist() == [100.0] * 512 + [7.0] * 512
    Counted.reads = 0
    of_workers = change_nodes(switch, {str(worker): LinkChange(7.0) for worker in range(512)})
    assert of_workers.bandwidth_Bps.tolist() == [7.0] * 1024
    assert Counted.reads == 1024


def test_of_many_wrong_links_the_first_are_given_the_nearest_name():
    wrong = {f"{worker}->swich": LinkChange(7.0) for worker in range(10)}
    said = faults(change_links, network("switch", 10), wrong)
    assert len(said) == 10
    assert ["did you mean" in one for one in said] == [True] * 8 + [False] * 2


@given(st.sampled_from(PLAIN), st.integers(2, 9), st.data())
def test_changing_every_link_one_by_one_is_changing_them_at_once(topology, n_workers, data):
    built = network(topology, n_workers)
    numbers = st.lists(st.none() | st.floats(1.0, 1e9), min_size=built.n_links, max_size=built.n_links)
    changes = dict(zip(built.names, map(LinkChange, data.draw(numbers), data.draw(numbers)), strict=True))
    at_once, one_by_one = change_links(built, changes), built
    for name, change in changes.items():
        one_by_one = change_links(one_by_one, {name: change})
    assert at_once.bandwidth_Bps.tolist() == one_by_one.bandwidth_Bps.tolist()
    assert at_once.latency_s.tolist() == one_by_one.latency_s.tolist()


def test_the_registry_says_what_it_has():
    assert list(TOPOLOGIES) == sorted(TOPOLOGIES)
    assert all(topology.summary and "\n" not in topology.summary for topology in TOPOLOGIES.values())


def test_routes_that_are_found_one_by_one_are_found_once_for_the_same_pairs():
    """By whoever asks for them: an engine, the sharing of links, a bound; with other routes they are found anew."""
    asked = []
    network = make_network("switch", 4, 1e9, 0.0)
    found = replace(network, find_route=lambda src, dst: (asked.append(1), network.find_route(src, dst))[1])
    src, dst = np.arange(4), np.roll(np.arange(4), -1)
    links, _ = network.joined_routes(src, dst)
    for one in (found, replace(found, sharing="fair"), replace(found, reduce_Bps={"switch": 1e12})):
        assert one.joined_routes(src.copy(), dst.copy())[0].tolist() == links.tolist()
    assert len(asked) == 4
    others = replace(found, find_route=lambda src, dst: network.find_route(dst, src))
    assert others.joined_routes(src, dst)[0].tolist() == network.joined_routes(dst, src)[0].tolist()
