"""The inside of a host: its workers and its network cards, and the links that join them, in four shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal, NamedTuple, TypeAlias, get_args

from ringnet.networks.network import ONE_WAY

InsideShape: TypeAlias = Literal["switch", "ring", "mesh", "pcie"]
#: What a link inside a host is: one of those that join its workers, one to a card, one between sockets.
InsideKind: TypeAlias = Literal["inside", "card", "socket"]
INSIDE_KINDS: tuple[InsideKind, ...] = get_args(InsideKind)


class LinkNumbers(NamedTuple):
    """Bandwidth (bytes/s) and latency (s) of some links."""

    bandwidth_Bps: float
    latency_s: float


@dataclass(frozen=True)
class Inside:
    """The inside of a host.

    Parameters
    ----------
    shape : {"switch", "ring", "mesh", "pcie"}
    bandwidth_Bps, latency_s : float
        Of every link in it that ``card`` and ``socket`` do not say other of, in bytes per second and seconds.
    card : LinkNumbers, optional
        Of the links to its network cards.
    sockets : int or sequence of int
        Sockets over which workers and cards are spread in order; or the socket of each worker.
    socket : LinkNumbers, optional
        Of the links between two sockets; needed where there are several.
    """

    shape: InsideShape
    bandwidth_Bps: float
    latency_s: float
    card: LinkNumbers | None = None
    sockets: int | tuple[int, ...] = 1
    socket: LinkNumbers | None = None

    def numbers(self, kind: InsideKind) -> LinkNumbers:
        """Return bandwidth and latency of links of a kind."""
        own = {"card": self.card, "socket": self.socket}.get(kind)
        return own or LinkNumbers(self.bandwidth_Bps, self.latency_s)

    @property
    def n_sockets(self) -> int:
        """Sockets of a host."""
        return self.sockets if isinstance(self.sockets, int) else max(self.sockets) + 1

    def socket_of(self, worker: int, size: int) -> int:
        """Return the socket of a worker of a host with ``size`` workers."""
        return worker * self.sockets // size if isinstance(self.sockets, int) else self.sockets[worker]


@dataclass(frozen=True)
class Host:
    """A host: its workers, and the card that each of them uses.

    Parameters
    ----------
    number : int
    first : int
        Number of its first worker.
    cards : tuple of int
        By worker, which of the host's cards.
    n_cards : int
    first_card : int
        Its place among the cards of all hosts.
    """

    number: int
    first: int
    cards: tuple[int, ...]
    n_cards: int
    first_card: int

    @property
    def size(self) -> int:
        """Its workers."""
        return len(self.cards)

    @property
    def workers(self) -> list[str]:
        """The names of its workers."""
        return [str(self.first + place) for place in range(self.size)]

    def node(self, name: str) -> str:
        """Return the name of a node in it: ``"h0/nic1"``."""
        return f"h{self.number}/{name}"

    def card(self, worker: int) -> str:
        """Return the name of the card that a worker of it uses."""
        return self.node(f"nic{self.cards[worker]}")

    def card_place(self, worker: int) -> int:
        """Return that card's place among the cards of all hosts."""
        return self.first_card + self.cards[worker]


class HostLinks(NamedTuple):
    """Links inside a host by name, each with its kind, and the route between two of its nodes by their names."""

    kinds: dict[str, InsideKind]
    route: Callable[[str, str], list[str]]


def _hops(*stops: str) -> list[str]:
    return [f"{one}{ONE_WAY}{other}" for one, other in pairwise(stops)]


def _both_ways(kind: InsideKind, pairs: Iterable[tuple[str, str]]) -> dict[str, InsideKind]:
    return {name: kind for one, other in pairs for name in (*_hops(one, other), *_hops(other, one))}


def _with_cards(
    host: Host, inside: Inside, pairs: Iterable[tuple[str, str]], between: Callable[[int, int], Iterable[str]]
) -> HostLinks:
    """Return the links between ``pairs`` of nodes, and one from each worker to its card, where no PCIe switch is drawn.

    A way between two workers, by their places, goes over the nodes ``between`` them; one to a card at another socket
    goes over both sockets.
    """
    place_of = {name: place for place, name in enumerate(host.workers)}
    links = _both_ways("inside", pairs)
    to_card: dict[str, list[str]] = {}
    for name, worker in place_of.items():
        own, other = inside.socket_of(worker, host.size), host.cards[worker] * inside.n_sockets // host.n_cards
        sockets = [host.node(f"socket{socket}") for socket in (own, other)] if own != other else []
        to_card[name] = [name, *sockets, host.card(worker)]
        for hop, pair in enumerate(pairwise(to_card[name])):
            links |= _both_ways("socket" if hop == 1 else "card", [pair])

    def route(src: str, dst: str) -> list[str]:
        if src == dst:
            return []
        if src in place_of and dst in place_of:
            return _hops(src, *between(place_of[src], place_of[dst]), dst)
        return _hops(*to_card[src]) if src in to_card else _hops(*reversed(to_card[dst]))

    return HostLinks(links, route)


def _switch(host: Host, inside: Inside) -> HostLinks:
    centre = host.node("switch")
    pairs = [(name, centre) for name in host.workers] if host.size > 1 else []
    return _with_cards(host, inside, pairs, lambda src, dst: [centre])


def _ring(host: Host, inside: Inside) -> HostLinks:
    workers, size = host.workers, host.size
    pairs = [(name, workers[(place + 1) % size]) for place, name in enumerate(workers)]

    def between(src: int, dst: int) -> list[str]:
        distance = (dst - src) % size
        way, hops = (1, distance) if 2 * distance <= size else (-1, size - distance)
        return [workers[(src + way * hop) % size] for hop in range(1, hops)]

    # Two workers have one cable.
    return _with_cards(host, inside, pairs if size > 2 else pairs[: size - 1], between)  # noqa: PLR2004


def _mesh(host: Host, inside: Inside) -> HostLinks:
    return _with_cards(host, inside, combinations(host.workers, 2), lambda src, dst: [])


def _pcie(host: Host, inside: Inside) -> HostLinks:
    n_cards, n_sockets = host.n_cards, inside.n_sockets
    n_switches = max(n_cards, n_sockets)
    # Workers and cards hang at the switches in order, whichever card a worker uses.
    parents = {name: host.node(f"pcie{place * n_switches // host.size}") for place, name in enumerate(host.workers)}
    parents |= {host.node(f"nic{one}"): host.node(f"pcie{one * n_switches // n_cards}") for one in range(n_cards)}
    roots = [host.node("root" if n_sockets == 1 else f"root{socket}") for socket in range(n_sockets)]
    root_of = {host.node(f"pcie{one}"): roots[one * n_sockets // n_switches] for one in range(n_switches)}
    links: dict[str, InsideKind] = {}
    for node, parent in parents.items():
        links |= _both_ways("card" if "/" in node else "inside", [(node, parent)])
    if n_switches > 1:
        links |= _both_ways("inside", [*root_of.items()])
        links |= _both_ways("socket", [*combinations(roots, 2)])

    def route(src: str, dst: str) -> list[str]:
        if src == dst:
            return []
        one, other = parents[src], parents[dst]
        over = [one] if one == other else [one, *dict.fromkeys((root_of[one], root_of[other])), other]
        return _hops(src, *over, dst)

    return HostLinks(links, route)


INSIDES: dict[str, Callable[[Host, Inside], HostLinks]] = {
    "switch": _switch,
    "ring": _ring,
    "mesh": _mesh,
    "pcie": _pcie,
}
