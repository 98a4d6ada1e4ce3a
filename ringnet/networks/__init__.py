"""Networks: links, topologies, routes. A new topology is one file with one function, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

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


class Parameter(NamedTuple):
    """What a topology takes beside workers, bandwidth and latency: in a few words, and whether it must be given."""

    meaning: str
    required: bool = False


class Topology(NamedTuple):
    """A line of the registry: what builds the network, one line about it, and its parameters by keyword."""

    build: Callable[..., Network]
    summary: str
    parameters: Mapping[str, Parameter] = {}


_SIDES = {"sides": Parameter("workers along each dimension, the first varies fastest", required=True)}

TOPOLOGIES: dict[str, Topology] = {
    "custom": Topology(
        custom,
        "switches and cables as they are listed",
        {
            "switches": Parameter("names of the nodes that are no workers"),
            "cables": Parameter("what joins them", required=True),
        },
    ),
    "dragonfly": Topology(
        dragonfly,
        "groups of routers, fully connected inside, with a cable between every two groups",
        {
            "groups": Parameter("groups of routers", required=True),
            "routers_per_group": Parameter("routers of a group", required=True),
            "hosts_per_router": Parameter("places for workers at a router", required=True),
        },
    ),
    "fat-tree": Topology(
        fat_tree,
        "three levels of switches with k ports, and k^3/4 places for workers",
        {"k": Parameter("ports of a switch, even", required=True)},
    ),
    "fully-connected": Topology(fully_connected, "a private link from every worker to every other"),
    "leaf-spine": Topology(
        leaf_spine,
        "workers on leaves, and every leaf with a cable to every spine",
        {
            "leaves": Parameter("leaves; hosts_per_leaf gives it too"),
            "hosts_per_leaf": Parameter("places for workers on a leaf; leaves gives it too"),
            "spines": Parameter("spines; 1 if left out"),
            "oversubscription": Parameter(
                "what the workers of a leaf can send over what its links to the spines carry; 1 if left out"
            ),
        },
    ),
    "mesh": Topology(mesh, "a grid of workers in two or three dimensions", _SIDES),
    "nodes": Topology(
        nodes,
        "hosts with several workers each, a fast inside, and network cards into another topology",
        {
            "workers_per_host": Parameter("workers of a host", required=True),
            "inside": Parameter(
                "what joins them: a switch, a ring, or a PCIe tree with a shared root", required=True
            ),
            "nics": Parameter("network cards of a host; 1 if left out"),
            "between": Parameter("topology that joins the cards; a switch if left out"),
        },
    ),
    "ring": Topology(ring, "a private link from every worker to its right-hand neighbour"),
    "switch": Topology(switch, "one switch; every worker has a link up to it and a link down from it"),
    "torus": Topology(
        torus, "a grid of workers in two or three dimensions whose rows close to rings", _SIDES
    ),
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
    "OverTime",
    "Packets",
    "Parameter",
    "Piece",
    "Preset",
    "Topology",
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
