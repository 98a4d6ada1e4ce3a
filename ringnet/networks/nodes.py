"""Hosts with several workers each: a fast inside, and network cards into any of the other topologies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.basic import switch
from ringnet.networks.network import ONE_WAY, Groups, LinkSource, LinkSources, Network, Route
from ringnet.networks.shape import CARDS, HOSTS
from ringnet.networks.topology import NetworkBuilder, TopologyParameter

InsideShape: TypeAlias = Literal["switch", "ring", "pcie"]


class HostLinks(NamedTuple):
    """Links inside a host by name, and the route between two of its nodes: workers by number, cards as ``nic0``."""

    names: list[str]
    route: Callable[[str, str], list[str]]


@dataclass(frozen=True)
class Inside:
    """The inside of a host: what shape it has, and bandwidth (bytes/s) and latency (s) of every link in it."""

    shape: InsideShape
    bandwidth_Bps: float
    latency_s: float


def nodes(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    workers_per_host: Annotated[int, TopologyParameter("workers of a host", 4)],
    inside: Annotated[
        Inside,
        TopologyParameter(
            "what joins them: a switch, a ring, or a PCIe tree with a shared root",
            {"shape": "switch", "link": "nvlink4"},
        ),
    ],
    nics: Annotated[int, TopologyParameter("network cards of a host; 1 if left out", 4)] = 1,
    between: Annotated[
        NetworkBuilder,
        TopologyParameter(
            "topology that joins the cards; a switch if left out", {"topology": "leaf-spine", "leaves": 2}
        ),
    ] = switch,
) -> Network:
    """Workers fill the hosts in order; worker j of a host uses its card ``j * nics // workers_per_host``.

    Shapes of the inside:

    - ``switch``: every worker has a link to the host's switch and one back (NVSwitch), and a link to its card;
    - ``ring``: every worker has a link to both neighbours, the shorter way around is taken, and a link to its card;
    - ``pcie``: one PCIe switch for each card with its workers; all share one root, by a link up and a link down for
      each switch.

    Parameters
    ----------
    n_workers : int
        A whole number of hosts.
    bandwidth_Bps, latency_s : float
        Of every link between the hosts, in bytes per second and seconds.
    workers_per_host : int
    inside : Inside
    nics : int
        Network cards of a host.
    between : callable
        ``between(n, bandwidth_Bps, latency_s)`` builds the network of n cards.

    Raises
    ------
    NetworkError
        If the workers are no whole number of hosts, or the cards are more than the workers of a host.

    Examples
    --------
    >>> network = nodes(4, 50e9, 5e-6, workers_per_host=2, inside=Inside("switch", 450e9, 1e-6))
    >>> [network.names[link] for link in network.route(1, 2)]
    ['1->h0/nic0', 'h0/nic0->switch', 'switch->h1/nic0', 'h1/nic0->2']
    """
    _check(n_workers, workers_per_host, nics)
    n_hosts = n_workers // workers_per_host
    outer = between(n_hosts * nics, bandwidth_Bps, latency_s)
    hosts = [INSIDES[inside.shape](host, workers_per_host, nics) for host in range(n_hosts)]
    inner = [name for host in hosts for name in host.names]
    card = {str(place): f"h{place // nics}/nic{place % nics}" for place in range(n_hosts * nics)}
    named = [ONE_WAY.join(card.get(end, end) for end in outer.ends(link)) for link in range(outer.n_links)]
    number = {name: link for link, name in enumerate(inner)}

    def find_route(src: int, dst: int) -> Route:
        here, there = src // workers_per_host, dst // workers_per_host
        if here == there:
            return tuple(number[name] for name in hosts[here].route(str(src), str(dst)))
        ends = [worker % workers_per_host * nics // workers_per_host for worker in (src, dst)]
        up = hosts[here].route(str(src), f"h{here}/nic{ends[0]}")
        down = hosts[there].route(f"h{there}/nic{ends[1]}", str(dst))
        over = outer.route(here * nics + ends[0], there * nics + ends[1])
        return (*map(number.get, up), *(len(inner) + link for link in over), *map(number.get, down))  # type: ignore[arg-type]

    return Network(
        topology="nodes",
        n_workers=n_workers,
        names=(*inner, *named),
        bandwidth_Bps=np.concatenate([np.full(len(inner), inside.bandwidth_Bps), outer.bandwidth_Bps]),
        latency_s=np.concatenate([np.full(len(inner), inside.latency_s), outer.latency_s]),
        find_route=find_route,
        find_groups=partial(_groups, n_workers, workers_per_host, nics, inner, outer.find_groups),
        given_sources=LinkSources.alike(len(inner), LinkSource.INSIDE) + outer.sources,
    )


def _groups(
    n_workers: int,
    workers_per_host: int,
    nics: int,
    inner: Sequence[str],
    groups_between: Callable[[], Groups] | None,
) -> Groups:
    """Return the cards with their workers, the hosts, and what the topology between groups, where hosts lie in one."""
    n_hosts = n_workers // workers_per_host
    host = {str(worker): f"h{worker // workers_per_host}" for worker in range(n_workers)}
    host |= {node: node.partition("/")[0] for name in inner for node in name.split(ONE_WAY) if "/" in node}
    card = {
        str(
            worker
        ): f"h{worker // workers_per_host}/nic{worker % workers_per_host * nics // workers_per_host}"
        for worker in range(n_workers)
    }
    card |= {name.replace("nic", kind): name for name in {*card.values()} for kind in ("nic", "pcie")}
    groups = {
        CARDS: {node: f"card {name}" for node, name in card.items()},
        HOSTS: {node: f"host {name}" for node, name in host.items()},
    }
    for kind, between in (groups_between() if groups_between else {}).items():
        of_hosts = [{between[str(number * nics + one)] for one in range(nics)} for number in range(n_hosts)]
        if all(len(found) == 1 for found in of_hosts):
            whole = {f"h{number}": found.pop() for number, found in enumerate(of_hosts)}
            switches = {node: group for node, group in between.items() if not node.isdecimal()}
            groups[kind] = switches | {node: whole[name] for node, name in host.items()}
    return groups


def _check(n_workers: int, workers_per_host: int, nics: int) -> None:
    faults = []
    if n_workers % workers_per_host:
        message = f"{n_workers} workers are no whole number of hosts with {workers_per_host} each"
        faults.append(Fault(message, "workers_per_host", right=f"a divisor of {n_workers}"))
    if nics > workers_per_host:
        message = f"{nics} cards are more than the {workers_per_host} workers of a host"
        faults.append(Fault(message, "nics", right=f"at most {workers_per_host}"))
    if faults:
        raise NetworkError(*faults)


def _workers(host: int, size: int) -> list[str]:
    return [str(host * size + place) for place in range(size)]


def _hops(*stops: str) -> list[str]:
    return [f"{one}{ONE_WAY}{other}" for one, other in pairwise(stops)]


def _both_ways(pairs: list[tuple[str, str]]) -> list[str]:
    return [name for one, other in pairs for name in (*_hops(one, other), *_hops(other, one))]


def _cards(host: int, size: int, nics: int) -> list[tuple[str, str]]:
    """Return each worker with its card."""
    return [(name, f"h{host}/nic{place * nics // size}") for place, name in enumerate(_workers(host, size))]


def _switch(host: int, size: int, nics: int) -> HostLinks:
    centre, workers = f"h{host}/switch", _workers(host, size)
    links = _both_ways([(name, centre) for name in workers]) if size > 1 else []

    def route(src: str, dst: str) -> list[str]:
        if src == dst:
            return []
        return _hops(src, centre, dst) if src in workers and dst in workers else _hops(src, dst)

    return HostLinks(links + _both_ways(_cards(host, size, nics)), route)


def _ring(host: int, size: int, nics: int) -> HostLinks:
    workers = _workers(host, size)
    pairs = [(name, workers[(place + 1) % size]) for place, name in enumerate(workers)]
    links = _both_ways(pairs if size > 2 else pairs[: size - 1])  # noqa: PLR2004 -- two have one cable

    def route(src: str, dst: str) -> list[str]:
        if src not in workers or dst not in workers:
            return _hops(src, dst)
        first, distance = workers.index(src), (workers.index(dst) - workers.index(src)) % size
        way, hops = (1, distance) if 2 * distance <= size else (-1, size - distance)
        return _hops(*(workers[(first + way * hop) % size] for hop in range(hops + 1)))

    return HostLinks(links + _both_ways(_cards(host, size, nics)), route)


def _pcie(host: int, size: int, nics: int) -> HostLinks:
    parents = {name: f"h{host}/pcie{card.rpartition('nic')[2]}" for name, card in _cards(host, size, nics)}
    parents |= {f"h{host}/nic{card}": f"h{host}/pcie{card}" for card in range(nics)}
    root = f"h{host}/root"
    middle = dict.fromkeys(parents.values()) if nics > 1 else {}
    links = _both_ways([*parents.items(), *((one, root) for one in middle)])

    def route(src: str, dst: str) -> list[str]:
        if src == dst:
            return []
        one, other = parents[src], parents[dst]
        return _hops(src, *([one] if one == other else [one, root, other]), dst)

    return HostLinks(links, route)


INSIDES: dict[str, Callable[[int, int, int], HostLinks]] = {"switch": _switch, "ring": _ring, "pcie": _pcie}
