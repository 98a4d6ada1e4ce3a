"""What came of another tool's file: a network or the order of rings, and in words what was made of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ringnet.documents.xml_tree import XmlKind
from ringnet.errors import Fault, some_and_more
from ringnet.networks import Network
from ringnet.networks.network import Route

#: Far beyond what any server has.
NETWORK_XML = XmlKind(n_bytes=4 << 20, n_elements=50_000, depth=40)


@dataclass(frozen=True)
class Reading:
    """What a file says, and what it does not say.

    Parameters
    ----------
    kind : str
        Which tool's file it is.
    network : Network or None
        None where the file holds orders only.
    orders : tuple of tuple of int
        Workers along the ring of each channel; none where the file holds a network.
    understood, assumed, left_out : tuple of str
        A sentence each: what was taken from the file, what it does not say and was filled in, what is not used.
    nodes : mapping of str to str
        What a node that is no worker is in the file's own words.
    """

    kind: str
    network: Network | None = None
    orders: tuple[tuple[int, ...], ...] = ()
    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_workers(self) -> int:
        """Workers that the file is for."""
        return self.network.n_workers if self.network is not None else max(map(len, self.orders), default=0)


class Wiring:
    """Links while a network is put together: each once, by its ends."""

    def __init__(self) -> None:
        self.links: dict[tuple[str, str], tuple[float, float]] = {}

    def add(self, start: str, end: str, bandwidth_Bps: float, latency_s: float) -> None:
        """Add one direction; the same one again is the same link."""
        self.links[start, end] = bandwidth_Bps, latency_s

    def join(self, one: str, other: str, bandwidth_Bps: float, latency_s: float) -> None:
        """Add both directions of a cable."""
        self.add(one, other, bandwidth_Bps, latency_s)
        self.add(other, one, bandwidth_Bps, latency_s)

    def network(self, topology: str, n_workers: int, along: Callable[[int, int], Sequence[str]]) -> Network:
        """Return the network; ``along(src, dst)`` gives the nodes on the way from worker to worker, both ends too."""
        numbers = {ends: link for link, ends in enumerate(self.links)}
        rates = np.array([*self.links.values()], dtype=np.float64).reshape(-1, 2)

        def find_route(src: int, dst: int) -> Route:
            nodes = along(src, dst)
            return tuple(numbers[ends] for ends in pairwise(nodes))

        return Network(
            topology=topology,
            n_workers=n_workers,
            names=tuple(f"{start}->{end}" for start, end in self.links),
            bandwidth_Bps=rates[:, 0].copy(),
            latency_s=rates[:, 1].copy(),
            find_route=find_route,
        )


#: Lines that are named where one mistake stands in many.
NAMED_LINES = 5


def told_once(faults: Sequence[Fault]) -> list[Fault]:
    """Return the faults, one for all that say the same of the same element in other lines, which are named.

    >>> told_once([Fault("no number", "<gpu>", "x.xml", line, "y") for line in (3, 5)])[0].message
    'no number (also in line 5)'
    """
    alike: dict[tuple[str, ...], list[Fault]] = {}
    for fault in sorted(faults, key=lambda fault: fault.line or 0):
        alike.setdefault((fault.message, fault.path, fault.file, fault.value, fault.right), []).append(fault)
    return [replace(first, message=first.message + _also(others)) for first, *others in alike.values()]


def _also(others: Sequence[Fault]) -> str:
    lines = list(dict.fromkeys(fault.line for fault in others if fault.line is not None))
    if not lines:
        return ""
    return f" (also in line{'s' * (len(lines) > 1)} {some_and_more(lines, NAMED_LINES)})"
