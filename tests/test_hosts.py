"""Hosts as they are bought: cards on rails, shared, at another socket; hosts that differ; exceptions of any of them."""

from __future__ import annotations

from functools import partial

import pytest

from ringnet.analysis.bounds import Cuts
from ringnet.errors import InputError, NetworkError
from ringnet.networks import PRESETS, Inside, LinkChange, LinkNumbers, change_nodes, links_at, make_network
from ringnet.networks.datacenter import leaf_spine
from ringnet.networks.rails import rails
from ringnet.runs.parts import build_site
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

RATE = {"bandwidth_Bps": 10.0, "latency_s": 1.0}
FAST = Inside("switch", 100.0, 0.25)


def hosts(n_workers=8, per_host=4, inside=FAST, **more):
    return make_network("nodes", n_workers, **RATE, workers_per_host=per_host, inside=inside, **more)


def way(network, src, dst):
    return [network.names[link] for link in network.route(src, dst)]


def refusal(*args, **more):
    with pytest.raises(NetworkError) as caught:
        hosts(*args, **more)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------ rails


def test_card_k_of_every_host_is_on_leaf_k():
    network = hosts(nics=4, between=partial(rails, rails=4))
    assert way(network, 2, 6) == ["2->h0/nic2", "h0/nic2->rail2", "rail2->h1/nic2", "h1/nic2->6"]


def test_without_a_spine_a_transfer_changes_its_rail_inside_the_sender():
    network = hosts(nics=4, between=partial(rails, rails=4))
    over = ["3->h0/nic3", "h0/nic3->rail3", "rail3->h1/nic3", "h1/nic3->7"]
    assert way(network, 0, 7) == ["0->h0/switch", "h0/switch->3", *over]


def test_where_the_sender_has_no_worker_on_that_rail_it_changes_inside_the_receiver():
    network = hosts(6, [4, 2], nics=[2, 2], between=partial(rails, rails=2), inside=Inside("ring", 100.0, 0.25))
    # Worker 3 has card 1 and worker 4 card 0: worker 0 or 1 of the sender has card 0.
    assert way(network, 3, 4)[:2] == ["3->0", "0->h0/nic0"]


def test_with_a_spine_it_goes_over_that():
    network = hosts(nics=4, between=partial(rails, rails=4, spines=2))
    assert way(network, 0, 7) == [
        "0->h0/nic0", "h0/nic0->rail0", "rail0->spine0", "spine0->rail3", "rail3->h1/nic3", "h1/nic3->7",
    ]  # fmt: skip


def test_racks_have_leaves_of_their_own_and_keep_the_stated_ratio():
    network = hosts(32, 4, nics=4, between=partial(rails, rails=4, spines=2, hosts_per_rack=[6, 2], oversubscription=2))
    assert way(network, 0, 28)[1:-1] == [
        "h0/nic0->r0/rail0", "r0/rail0->spine1", "spine1->r1/rail0", "r1/rail0->h7/nic0",
    ]  # fmt: skip
    rate = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    # Of a leaf's cards, at 10 bytes/s each, half goes up over two spines.
    assert (rate["r0/rail0->spine0"], rate["spine1->r1/rail3"]) == (6 * 10 / 4, 2 * 10 / 4)


def test_the_flows_of_one_rail_are_spread_over_the_spines():
    network = rails(32, **RATE, rails=4, spines=2, hosts_per_rack=4)
    ups = [way(network, 4 * host, 4 * (host + 4))[1] for host in range(4)]
    assert sorted(ups) == ["r0/rail0->spine0", "r0/rail0->spine0", "r0/rail0->spine1", "r0/rail0->spine1"]


def test_leaves_that_differ_keep_the_stated_ratio():
    network = hosts(8, 1, between=partial(leaf_spine, hosts_per_leaf=[6, 2], oversubscription=3))
    rate = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    assert (rate["leaf0->spine0"], rate["spine0->leaf1"]) == (20.0, pytest.approx(20 / 3))
    cut = next(one for one in Cuts(network).partitions if one.kind == "leaves")
    assert cut.out.rate_Bps[0].tolist() == [20.0, pytest.approx(20 / 3)]


def test_rings_on_the_rails_take_what_the_closed_form_says():
    """Two hosts of four, a ring on each of four rails: the bytes of each cross once each way, S/4 of them."""
    text = """{scenario_version: 1, workers: 8, message: 8 MB, payload: none,
      algorithm: {name: channel-ring, n_channels: 4, node_size: 4},
      network: {topology: nodes, workers_per_host: 4, nics: 4, bandwidth: 1 GB/s, latency: 0 s,
                inside: {bandwidth: 1 TB/s, latency: 0 s}, between: {topology: rails, rails: 4}}}"""
    # 2(N-1)/N of a quarter of the buffer over each card.
    found = simulate(loads(text)).summary["makespan_s"]
    assert found == pytest.approx(2 * 7 / 8 * 2e6 / 1e9, rel=0.02)


# ---------------------------------------------------------------------------------- cards, sockets, unequal


def test_affinity_says_who_uses_which_card():
    network = hosts(nics=2, affinity=[1, 0, 0, 1])
    assert way(network, 0, 5)[0::3] == ["0->h0/nic1", "h1/nic0->5"]


@pytest.mark.parametrize(("shape", "n_links", "more_s"), [("switch", 6, 0.75), ("pcie", 9, 1.0)])
def test_a_card_at_the_other_socket_costs_the_link_between_the_sockets(shape, n_links, more_s):
    inside = Inside(shape, 100.0, 0.25, sockets=2, socket=LinkNumbers(5.0, 0.5))
    network = hosts(4, 2, inside)
    near, far = network.route(0, 2), network.route(1, 2)
    slowest = [float(network.bandwidth_Bps[list(route)].min()) for route in (near, far)]
    assert slowest == [10.0, 5.0]
    assert sum(network.names[link].count("socket") + network.names[link].count("root") > 1 for link in far) == 1
    latency_s = [float(network.latency_s[list(route)].sum()) for route in (near, far)]
    assert latency_s[1] - latency_s[0] == pytest.approx(more_s)
    assert len(far) == n_links


def test_the_socket_of_each_worker_can_be_said():
    inside = Inside("switch", 100.0, 0.25, sockets=(0, 1, 1, 1), socket=LinkNumbers(5.0, 0.5))
    network = hosts(inside=inside, nics=2)
    # Card 0 is at socket 0: worker 1, which uses it, is not.
    assert [len(way(network, src, 4)) for src in range(4)] == [4, 6, 4, 4]


def test_links_to_cards_have_numbers_of_their_own():
    network = hosts(inside=Inside("switch", 100.0, 0.25, card=LinkNumbers(20.0, 0.125)))
    rate = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    assert (rate["0->h0/nic0"], rate["0->h0/switch"]) == (20.0, 100.0)


def test_hosts_that_differ():
    network = hosts(6, [4, 2], nics=[2, 1])
    assert [way(network, src, 5)[0] for src in (1, 2, 4)] == ["1->h0/nic0", "2->h0/nic1", "4->h1/switch"]
    assert (network.shape.workers_per_host, network.shape.why_not) == (None, "hosts differ in size")
    cut = next(one for one in Cuts(network).partitions if one.kind == "hosts")
    assert cut.out.rate_Bps[0].tolist() == [20.0, 10.0]


# ----------------------------------------------------------------------------------------------- exceptions


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("h1", ["h1/nic0->r0/rail0", "h1/nic1->r0/rail1", "r0/rail0->h1/nic0", "r0/rail1->h1/nic1"]),
        ("h*/nic1", 20),
        ("rail1", 16),
        ("rack1", 4),
        ("h0/*", 12),
    ],
)
def test_exceptions_by_host_card_rail_and_rack(name, links):
    network = hosts(
        12,
        2,
        Inside("switch", 100.0, 0.25),
        nics=2,
        between=partial(rails, rails=2, spines=1, hosts_per_rack=3),
    )
    found = [network.names[link] for link in links_at(network, [name])[name]]
    assert sorted(found) == links if isinstance(links, list) else len(found) == EXPECTED[name]
    # Of a rail the links at its leaves: those of workers inside hosts are not of it.
    assert all(name.rpartition("/")[2] in link for link in found) or name in ("rack1", "h0/*", "h*/nic1")
    changed = change_nodes(network, {name: LinkChange(1.0)})
    assert {changed.names[link] for link in range(changed.n_links) if changed.bandwidth_Bps[link] == 1.0} == {*found}


#: Six hosts of two, two racks, one spine: card 1 has a link to its worker and one to its leaf, each way; a rail its six
#: cards and two leaves with one spine; a rack two leaves with the spine; a host two workers, switch and cards.
EXPECTED = {"h*/nic1": 6 * 4, "rail1": 6 * 2 + 2 * 2, "rack1": 2 * 2, "h0/*": 2 * 2 + 2 * 2 + 2 * 2}


def test_no_such_group_names_the_nearest():
    with pytest.raises(NetworkError, match="did you mean h1"):
        change_nodes(hosts(), {"hh1": LinkChange(1.0)})


# -------------------------------------------------------------------------------------- latency of presets

SCENARIO = "{scenario_version: 1, workers: 4, message: 4 B, payload: none, network: {link: nvlink4, %s}}"


@pytest.mark.parametrize(
    "network",
    [
        "topology: switch",
        "topology: ring",
        "topology: fully-connected",
        "topology: leaf-spine, leaves: 1",
        "topology: fat-tree, k: 4",
        "topology: rails, rails: 1",
        "topology: custom, switches: [a], cables: [{from: 0, to: a, link: nvlink4}, {from: 1, to: a}, "
        "{from: 2, to: a}, {from: 3, to: a}]",
        "topology: custom, cables: [{from: 0, to: 1, link: nvlink4}, {from: 1, to: 2}, "
        "{from: 2, to: 3}, {from: 3, to: 0}]",
        "topology: nodes, workers_per_host: 4, inside: {shape: switch, link: nvlink4}",
        "topology: nodes, workers_per_host: 4, inside: {shape: ring, link: nvlink4}",
    ],
)
def test_a_presets_latency_is_from_end_to_end_and_not_charged_twice_through_a_switch(network):
    made = build_site(loads(SCENARIO % network)).networks[0]
    assert made.latency_s[list(made.route(0, 1))].sum() == pytest.approx(PRESETS["nvlink4"].latency_s)


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nics": 5}, "5 cards are more than the 4 workers of a host"),
        ({"per_host": [4, 3]}, "hosts of 4 and 3 hold 7 workers, not 8"),
        ({"per_host": [6, 2], "nics": [4, 4]}, "4 cards are more than the 2 workers of host h1"),
        ({"nics": [2, 2, 2]}, "cards of 3 hosts, and there are 2"),
        ({"affinity": [0, 0]}, "cards of 2 workers, and a host has 4"),
        ({"affinity": [0, 1, 2, 3], "nics": 3}, "there is no card 3 among 3"),
        ({"affinity": [0, 0, 0, 0], "nics": 2}, "nobody uses card 1"),
        ({"per_host": [6, 2], "affinity": [0]}, "hosts differ"),
        ({"between": partial(rails, rails=2)}, "2 rails, and a host has one card"),
        ({"nics": 4, "between": partial(rails, rails=8)}, "8 rails, and a host has 4 cards"),
        ({"nics": 3, "between": partial(rails, rails=4)}, "6 cards are no whole number of hosts with one on each"),
        ({"nics": 2, "between": partial(rails, rails=2, hosts_per_rack=1)}, "2 racks have no way to each other"),
        ({"nics": 2, "between": partial(rails, rails=2, hosts_per_rack=[1])}, "have room for 1 hosts, not for 2"),
        ({"inside": Inside("switch", 1.0, 0.0, sockets=2)}, "what joins two sockets"),
        ({"inside": Inside("switch", 1.0, 0.0, sockets=8, socket=LinkNumbers(1.0, 0.0))}, "8 sockets are more"),
        ({"inside": Inside("switch", 1.0, 0.0, sockets=(0, 1), socket=LinkNumbers(1.0, 0.0))}, "sockets of 2 workers"),
        (
            {"inside": Inside("switch", 1.0, 0.0, sockets=(0, 0, 2, 2), socket=LinkNumbers(1.0, 0.0))},
            "no worker is at socket 1",
        ),
        (
            {"inside": Inside("pcie", 1.0, 0.0, sockets=(0, 1, 0, 1), socket=LinkNumbers(1.0, 0.0))},
            "switches at the sockets in order",
        ),
        ({"between": partial(leaf_spine, hosts_per_leaf=[1])}, "1 places, and 2 are needed"),
        ({"between": partial(leaf_spine, hosts_per_leaf=[1, 1], leaves=3)}, "the places of 2 are listed"),
    ],
)  # fmt: skip
def test_what_makes_no_hosts_is_refused_with_the_reason(settings, said):
    assert said in refusal(**settings)


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("inside: {link: nvlink4, sockets: 2}", "network.inside.socket: the key is missing"),
        (
            "inside: {link: nvlink4, socket: {link: pcie5-x16}}",
            "a host has one socket",
        ),
        ("inside: {link: nvlink4}, nics: [1, x]", "network.nics[1]"),
        ("inside: {link: nvlink4}, between: {topology: rails}", "network.between.rails: the key is missing"),
        ("inside: {link: nvlink4}, links_of: {h9: {latency: 1 us}}", "network.links_of.h9"),
        (
            "inside: {shape: pcie, link: pcie5-x16}, nics: 2, affinity: [1, 1, 0, 0], routes: ecmp",
            "ecmp takes the nearest card",
        ),
    ],
)
def test_a_scenario_says_where_it_is_wrong(network, said):
    text = (
        "{scenario_version: 1, workers: 8, message: 1 MiB, network: {topology: nodes, workers_per_host: 4, "
        f"bandwidth: 50 GB/s, latency: 1 us, {network}}}}}"
    )
    with pytest.raises(InputError) as caught:
        loads(text)
    assert said in str(caught.value)
