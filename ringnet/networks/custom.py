"""Nodes and links as they are listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np

from ringnet.errors import Fault, NetworkError, closest
from ringnet.networks.graph import Graph, shortest
from ringnet.networks.network import BOTH_WAYS, ONE_WAY, LinkSource, LinkSources, Network
from ringnet.networks.topology import TopologyParameter

Duplex: TypeAlias = Literal["full", "half", "one-way"]


@dataclass(frozen=True)
class Cable:
    """A cable between two nodes.

    Parameters
    ----------
    start, end : str
        A worker's place by its number, or a switch by its name.
    bandwidth_Bps, latency_s : float or None
        Of each link; None for what holds for every link.
    duplex : {"full", "half", "one-way"}
        Two links, one link that carries both directions, or one link from start to end.
    """

    start: str
    end: str
    bandwidth_Bps: float | None = None
    latency_s: float | None = None
    duplex: Duplex = "full"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its links."""
        there = f"{self.start}{ONE_WAY}{self.end}"
        if self.duplex == "full":
            return there, f"{self.end}{ONE_WAY}{self.start}"
        return (there,) if self.duplex == "one-way" else (f"{self.start}{BOTH_WAYS}{self.end}",)


def custom(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    cables: Annotated[Sequence[Cable], TopologyParameter("what joins them", [{"from": 0, "to": 1}])],
    switches: Annotated[
        Sequence[str], TopologyParameter("names of the nodes that are no workers", ["leaf0", "leaf1"])
    ] = (),
) -> Network:
    """Cables between workers and switches; routes are shortest by hops; of equal ones, over the cables listed first.

    Parameters
    ----------
    n_workers : int
        Places, ``0`` to ``n_workers - 1``; each needs a way to every other.
    bandwidth_Bps, latency_s : float
        Of every link whose cable says nothing else, in bytes per second and seconds.
    cables : sequence of Cable
    switches : sequence of str
        Names of the nodes that are no workers.

    Raises
    ------
    NetworkError
        For every cable from or to a node that does not exist, from a node to itself, or listed twice; for every worker
        that has no way to or from the others.

    Examples
    --------
    >>> cables = [Cable("0", "hub"), Cable("1", "hub", duplex="half")]
    >>> custom(2, 50e9, 5e-7, cables=cables, switches=["hub"]).names
    ('0->hub', 'hub->0', '1<->hub')
    """
    if faults := [*_faults(n_workers, cables, switches)]:
        raise NetworkError(*faults)
    each = [(name, cable) for cable in cables for name in cable.names]
    network = Network(
        topology="custom",
        n_workers=n_workers,
        names=tuple(name for name, _ in each),
        bandwidth_Bps=np.array(
            [bandwidth_Bps if cable.bandwidth_Bps is None else cable.bandwidth_Bps for _, cable in each],
            dtype=np.float64,
        ),
        latency_s=np.array(
            [latency_s if cable.latency_s is None else cable.latency_s for _, cable in each], dtype=np.float64
        ),
        find_route=lambda _src, _dst: (),
    )
    sources = LinkSources.alike(network.n_links)
    sources.bandwidth[network.bandwidth_Bps != bandwidth_Bps] = LinkSource.OWN
    sources.latency[network.latency_s != latency_s] = LinkSource.OWN
    network = replace(network, given_sources=sources)
    graph = Graph(network)
    if faults := [*_apart(n_workers, graph)]:
        raise NetworkError(*faults)
    return shortest(network, graph)


def _faults(n_workers: int, cables: Sequence[Cable], switches: Sequence[str]) -> list[Fault]:
    known = [*map(str, range(n_workers)), *switches]
    faults = [
        Fault(_taken(name, n_workers), f"switches.{place}", value=name, right="a name of its own")
        for place, name in enumerate(switches)
        if name in known[: n_workers + place]
    ]
    seen: set[str] = set()
    for place, cable in enumerate(cables):
        path = f"cables.{place}"
        for end, node in (("from", cable.start), ("to", cable.end)):
            if node not in known:
                at, near = f"{path}.{end}", closest(node, switches)
                right = f"a worker from 0 to {n_workers - 1}, or one of switches: [{', '.join(switches)}]"
                faults.append(Fault("there is no such node", at, value=node, right=right, nearest=near))
        if cable.start == cable.end:
            faults.append(
                Fault(f"a cable joins two nodes, not {cable.start} to itself", path, right="{from: 0, to: 1}")
            )
        links = {name for one in _both(cable) for name in one.names}
        if seen & links:
            faults.append(Fault(f"the link {cable.names[0]} is listed twice", path, right="each link once"))
        seen |= {*cable.names}
    return faults


def _taken(name: str, n_workers: int) -> str:
    is_worker = name.isdecimal() and int(name) < n_workers
    return "this is the number of a worker's place" if is_worker else "the switch is listed twice"


def _both(cable: Cable) -> tuple[Cable, Cable]:
    """Return the cable as written, and from its other end: a half-duplex one is the same."""
    other = Cable(cable.end, cable.start, duplex=cable.duplex)
    return (cable, other) if cable.duplex == "half" else (cable, cable)


def _apart(n_workers: int, graph: Graph) -> list[Fault]:
    """Name the workers that worker 0 has no way to or from: if there are none, all have a way to all."""
    have_a_way, are_reached = graph.hops_to("0"), graph.reached_from("0")
    faults = []
    for worker in map(str, range(1, n_workers)):
        if worker not in have_a_way:
            faults.append((worker, "0"))
        elif worker not in are_reached:
            faults.append(("0", worker))
    return [
        Fault(f"no way leads from worker {one} to worker {other}", "cables", right=f"a cable from {one}")
        for one, other in faults
    ]
