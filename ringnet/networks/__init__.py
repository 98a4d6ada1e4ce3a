"""Networks: links, topologies, routes. A new topology is one file with one function, and one line here."""

from __future__ import annotations

from ringnet.networks.basic import fully_connected, ring, switch
from ringnet.networks.behaviour import Behaviour, BySize, Constant, OverTime, Piece
from ringnet.networks.custom import Cable, custom
from ringnet.networks.datacenter import dragonfly, fat_tree, leaf_spine
from ringnet.networks.graph import ecmp, listed, walk
from ringnet.networks.grid import mesh, torus
from ringnet.networks.network import (
    LinkChange,
    Network,
    Packets,
    Window,
    beyond,
    change_links,
    change_workers,
    find_links,
    settled,
)
from ringnet.networks.nodes import Inside, nodes
from ringnet.networks.placement import best_order, interleaved, placed, ring_load
from ringnet.networks.presets import PRESETS, Preset
from ringnet.networks.topology import NetworkBuilder, Topology, TopologyParameter

TOPOLOGIES: dict[str, Topology] = {
    "custom": Topology(custom, "switches and cables as they are listed"),
    "dragonfly": Topology(
        dragonfly, "groups of routers, fully connected inside, with a cable between every two groups"
    ),
    "fat-tree": Topology(fat_tree, "three levels of switches with k ports, and k^3/4 places for workers"),
    "fully-connected": Topology(
        fully_connected, "a private link from every worker to every other", has_single_links=True
    ),
    "leaf-spine": Topology(leaf_spine, "workers on leaves, and every leaf with a cable to every spine"),
    "mesh": Topology(mesh, "a grid of workers in two or three dimensions"),
    "nodes": Topology(
        nodes, "hosts with several workers each, a fast inside, and network cards into another topology"
    ),
    "ring": Topology(
        ring, "a private link from every worker to its right-hand neighbour", has_single_links=True
    ),
    "switch": Topology(switch, "one switch; every worker has a link up to it and a link down from it"),
    "torus": Topology(torus, "a grid of workers in two or three dimensions whose rows close to rings"),
}

__all__ = [
    "PRESETS",
    "TOPOLOGIES",
    "Behaviour",
    "BySize",
    "Cable",
    "Constant",
    "Inside",
    "LinkChange",
    "Network",
    "NetworkBuilder",
    "OverTime",
    "Packets",
    "Piece",
    "Preset",
    "Topology",
    "TopologyParameter",
    "Window",
    "best_order",
    "beyond",
    "change_links",
    "change_workers",
    "ecmp",
    "find_links",
    "interleaved",
    "listed",
    "placed",
    "ring_load",
    "settled",
    "walk",
]
