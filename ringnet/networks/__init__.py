"""Networks: links, topologies, routes. A new topology is one file with one function, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringnet.networks.network import LinkChange, Network, Packets, Piece, Window, change_links, change_workers
from ringnet.networks.ring import ring
from ringnet.networks.switch import switch


class Topology(NamedTuple):
    """A line of the registry: what builds the network, and one line about it."""

    build: Callable[..., Network]
    summary: str


TOPOLOGIES: dict[str, Topology] = {
    "ring": Topology(ring, "a private link from every worker to its right-hand neighbour"),
    "switch": Topology(switch, "one switch; every worker has a link up to it and a link down from it"),
}

__all__ = [
    "TOPOLOGIES",
    "LinkChange",
    "Network",
    "Packets",
    "Piece",
    "Topology",
    "Window",
    "change_links",
    "change_workers",
]
