"""Networks: links, topologies, routes. A new topology is one file with one function, and one line here."""

from __future__ import annotations

from typing import Any

from ringnet.errors import Fault, NetworkError, unknown
from ringnet.networks.basic import fully_connected, pairs, ring, switch
from ringnet.networks.behaviour import (
    Behaviour,
    ByChance,
    BySize,
    Constant,
    DrawnBandwidth,
    DrawnLatency,
    OverTime,
    Piece,
)
from ringnet.networks.custom import Cable, custom
from ringnet.networks.datacenter import (
    dragonfly,
    dragonfly_links,
    fat_tree,
    fat_tree_links,
    leaf_spine,
    leaf_spine_links,
)
from ringnet.networks.exceptions import (
    LinkChange,
    change_links,
    change_nodes,
    find_links,
    group_names,
    links_at,
)
from ringnet.networks.graph import around, ecmp, walk, with_routes
from ringnet.networks.grid import mesh, torus
from ringnet.networks.inside import Inside, LinkNumbers
from ringnet.networks.network import (
    LinkSource,
    LinkSources,
    Network,
    Packets,
    Window,
    beyond,
    dying_links,
    in_run,
    settled,
)
from ringnet.networks.nodes import nodes
from ringnet.networks.placement import best_order, interleaved, placed, ring_load
from ringnet.networks.presets import PRESETS
from ringnet.networks.rails import rails, rails_links
from ringnet.networks.reduction import find_switches
from ringnet.networks.shape import TRAITS, NetworkShape, Trait, is_card
from ringnet.networks.topology import NetworkBuilder, Topology, TopologyParameter
from ringnet.networks.trouble import FailsOver, InTrouble, Lossy, Span, TroubledDraws, Whiles, fails_over

TOPOLOGIES: dict[str, Topology] = {
    "custom": Topology(custom, "switches and cables as they are listed", n_way=2),
    "dragonfly": Topology(
        dragonfly,
        "groups of routers, fully connected inside, with a cable between every two groups",
        n_way=2,
        n_links=dragonfly_links,
    ),
    "fat-tree": Topology(
        fat_tree,
        "three levels of switches with k ports, and k^3/4 places for workers",
        n_way=2,
        n_links=fat_tree_links,
    ),
    "fully-connected": Topology(
        fully_connected,
        "a private link from every worker to every other",
        has_single_links=True,
        n_links=pairs,
    ),
    "leaf-spine": Topology(
        leaf_spine,
        "workers on leaves, and every leaf with a cable to every spine",
        n_way=2,
        n_links=leaf_spine_links,
    ),
    "mesh": Topology(mesh, "a grid of workers in two or three dimensions"),
    "nodes": Topology(nodes, "hosts with several workers each, a fast inside, and network cards into another topology"),
    "rails": Topology(
        rails,
        "card k of every host on leaf k, and the leaves joined by spines or not",
        n_way=2,
        n_links=rails_links,
    ),
    "ring": Topology(ring, "a private link from every worker to its right-hand neighbour", has_single_links=True),
    "switch": Topology(switch, "one switch; every worker has a link up to it and a link down from it", n_way=2),
    "torus": Topology(torus, "a grid of workers in two or three dimensions whose rows close to rings"),
}


def make_network(topology: str, n_workers: int, bandwidth_Bps: float, latency_s: float, **parameters: Any) -> Network:
    """Build a network by the name of its topology.

    Parameters
    ----------
    topology : str
        One of ``ringnet list topologies``.
    n_workers : int
        Workers that it joins.
    bandwidth_Bps, latency_s : float
        Of every link that the topology does not say other of: bytes per second, seconds.
    **parameters
        What the topology takes beside: ``sides`` of a torus, ``leaves`` of a leaf-spine, and so on.

    Returns
    -------
    Network

    Raises
    ------
    NetworkError
        For an unknown topology or parameter, for one that is missing, and for what the topology cannot be.

    Examples
    --------
    >>> network = make_network("leaf-spine", 4, bandwidth_Bps=50e9, latency_s=5e-7, leaves=2)
    >>> [network.names[link] for link in network.route(0, 3)]
    ['0->leaf0', 'leaf0->spine0', 'spine0->leaf1', 'leaf1->3']
    """
    if topology not in TOPOLOGIES:
        raise NetworkError(unknown("there is no such topology", topology, TOPOLOGIES))
    kind = TOPOLOGIES[topology]
    faults = [
        Fault(f"a {topology} has no such parameter", value=name, right=", ".join(kind.parameters) or "none")
        for name in parameters
        if name not in kind.parameters
    ]
    faults += [
        Fault(f"a {topology} needs {name}: {parameter.meaning}")
        for name, parameter in kind.parameters.items()
        if parameter.required and name not in parameters
    ]
    if faults:
        raise NetworkError(*faults)
    return kind.build_bounded(n_workers, bandwidth_Bps, latency_s, **parameters)


__all__ = [
    "PRESETS",
    "TOPOLOGIES",
    "TRAITS",
    "Behaviour",
    "ByChance",
    "BySize",
    "Cable",
    "Constant",
    "DrawnBandwidth",
    "DrawnLatency",
    "FailsOver",
    "InTrouble",
    "Inside",
    "LinkChange",
    "LinkNumbers",
    "LinkSource",
    "LinkSources",
    "Lossy",
    "Network",
    "NetworkBuilder",
    "NetworkShape",
    "OverTime",
    "Packets",
    "Piece",
    "Span",
    "Topology",
    "TopologyParameter",
    "Trait",
    "TroubledDraws",
    "Whiles",
    "Window",
    "around",
    "best_order",
    "beyond",
    "change_links",
    "change_nodes",
    "dying_links",
    "ecmp",
    "fails_over",
    "find_links",
    "find_switches",
    "group_names",
    "in_run",
    "interleaved",
    "is_card",
    "links_at",
    "make_network",
    "placed",
    "ring_load",
    "settled",
    "walk",
    "with_routes",
]
