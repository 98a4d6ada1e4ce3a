"""Over what it moves: links with a bandwidth and a latency, and the route of each pair of workers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.errors import NetworkError
from ringnet.networks.behaviour import NEVER, Behaviour, BySize, Constant
from ringnet.networks.link_names import LinkNames
from ringnet.networks.reduction import ReducingSwitches, reducing_switches
from ringnet.networks.shape import NetworkShape

Route: TypeAlias = tuple[int, ...]
#: The links that many routes cross first, second and so on: which of the routes go so far (None: all), and the links.
Hops: TypeAlias = "list[tuple[IntArray | None, IntArray]]"
#: Sets of pairs whose routes are kept.
KEPT_HOPS = 2
Switching: TypeAlias = Literal["cut-through", "store-and-forward"]
Sharing: TypeAlias = Literal["fifo", "fair", "auto"]
#: By kind of group the group of each node, the widest kind last: ``{"hosts": {"0": "host h0"}}``.
Groups: TypeAlias = "Mapping[str, Mapping[str, str]]"

#: Between the ends in the name of a link, and in that of one which carries both directions.
ONE_WAY, BOTH_WAYS = "->", "<->"
#: Slots of a window, as NCCL has in its buffers (``NCCL_STEPS`` in its ``device.h``).
WINDOW_SLOTS = 8
#: Routes of equal cost that are looked at for one pair of workers.
MOST_EQUAL_ROUTES = 256


class LinkSource(IntEnum):
    """Where the bandwidth or the latency of a link comes from."""

    #: What a scenario says of all links.
    RULE = 0
    #: A multiple of that, as of a trunk.
    SCALED = 1
    #: What is said of the links inside hosts.
    INSIDE = 2
    #: The link itself: a cable with numbers of its own, or an exception.
    OWN = 3


@dataclass(frozen=True)
class LinkSources:
    """Where the numbers of each link come from, as `LinkSource`: two columns, ndarray of int8, shape (n_links,)."""

    bandwidth: NDArray[np.int8]
    latency: NDArray[np.int8]

    @classmethod
    def alike(cls, n_links: int, source: LinkSource = LinkSource.RULE) -> LinkSources:
        """Return that all numbers of all links come from the same."""
        return cls(*(np.full(n_links, source, dtype=np.int8) for _ in range(2)))

    def __add__(self, other: LinkSources) -> LinkSources:
        """Return the sources of links, and after them of others."""
        return LinkSources(
            np.concatenate([self.bandwidth, other.bandwidth]), np.concatenate([self.latency, other.latency])
        )

    @property
    def as_the_rule(self) -> BoolArray:
        """Which links have bandwidth and latency of the rule for all."""
        return np.asarray((self.bandwidth == LinkSource.RULE) & (self.latency == LinkSource.RULE))


@dataclass(frozen=True)
class Window:
    """How much a sender may have under way to one receiver: bytes, or transfers, that have no credit yet."""

    bytes: int | None = None
    transfers: int | None = None

    @property
    def slot_bytes(self) -> int:
        """Bytes that it lets through at a time; see `WINDOW_SLOTS`."""
        return max((self.bytes or 0) // WINDOW_SLOTS, 1)


@dataclass(frozen=True)
class Packets:
    """What transfers are cut into under fifo sharing; each packet's header is charged to links."""

    bytes: int
    header_bytes: int = 0


@dataclass(frozen=True)
class RouteFormula:
    """Routes by arithmetic: what finds one for two workers finds those of arrays of workers, too.

    Parameters
    ----------
    links : callable
        ``links(src, dst)`` gives the links of a route, in order; for arrays, of shape (n_pairs,), those that all routes
        cross first, second and so on. `NetworkError` if there is no way.
    """

    links: Callable[[Any, Any], tuple[Any, ...]]

    def __call__(self, src: int, dst: int) -> Route:
        """Return the links from one worker to another; none from a worker to itself."""
        return () if src == dst else self.links(src, dst)


class FoundHops:
    """The links of many routes that were found one by one: those of the pairs asked for last, for whoever asks next."""

    def __init__(self) -> None:
        self._last: list[tuple[Callable[[int, int], Route], IntArray, IntArray, Hops]] = []

    def of(self, find_route: Callable[[int, int], Route], src: IntArray, dst: IntArray) -> Hops:
        """Return the links of routes hop by hop, as `Network.hops` does; nobody can write them."""
        for find, one, other, hops in self._last:
            if find is find_route and np.array_equal(one, src) and np.array_equal(other, dst):
                return hops
        found = _hops([find_route(*pair) for pair in zip(src.tolist(), dst.tolist(), strict=True)])
        self._last = [(find_route, src.copy(), dst.copy(), found), *self._last[: KEPT_HOPS - 1]]
        return found


def _hops(routes: Sequence[Route]) -> Hops:
    lengths = np.array([len(route) for route in routes], dtype=np.int64)
    found: Hops = []
    for place in range(lengths.max(initial=0)):
        within = np.flatnonzero(lengths > place)
        links = np.array([routes[row][place] for row in within.tolist()])
        within.flags.writeable = links.flags.writeable = False
        found.append((None if len(within) == len(routes) else within, links))
    return found


@dataclass(frozen=True, repr=False)
class Network:
    """Links as columns, and routes over them. A link is one direction of a cable.

    Parameters
    ----------
    topology : str
        Name, as in the registry and in the tables.
    n_workers : int
        Workers that the network joins, numbered from 0.
    names : sequence of str
        Name of each link, ``"3->4"``: where it starts and where it ends; ``"3<->4"`` is one link for both directions.
    bandwidth_Bps, latency_s : ndarray of float64, shape (n_links,)
        Bytes per second, seconds.
    find_route : callable
        ``find_route(src, dst)`` gives the links from one worker to another, in order; `NetworkError` if none. A
        `RouteFormula` where that is arithmetic.
    switching : {"cut-through", "store-and-forward"}
        When a transfer may go on to the next link: as soon as its head is there, or once it is there whole.
    sharing : {"fifo", "fair", "auto"}
        How transfers share a link.
    behaviours : mapping of int to Behaviour
        What the few links do that have more than one bandwidth and latency; for them the columns say what they offer
        the largest transfers at the start, for tables and plots.
    window : Window or None
    packets : Packets or None
    places : tuple of str or None
        By worker: the node where it sits; None for the node with its own number.
    find_groups : callable or None
        ``find_groups()`` gives the groups of nodes that the topology has: hosts, leaves, slices of a torus; none where
        the links of single workers are all there is. None where nobody knows, as of cables that are listed.
    given_sources : LinkSources or None
        Where the numbers of the links come from; None where all follow the rule for all links.
    find_equal_routes : callable or None
        ``find_equal_routes(src, dst)`` gives the routes of equal cost of which a draw took one, at most
        `MOST_EQUAL_ROUTES`; None where routes are not drawn.
    reduce_Bps : mapping of str to float
        By node, of switches that reduce: the bytes that each takes in and adds in a second, over all its links
        together; infinite where that takes no time. What it has added it can send to several at once.
    found_hops : FoundHops
        Routes that were found lately; changed copies go on with it.
    """

    topology: str
    n_workers: int
    names: Sequence[str]
    bandwidth_Bps: FloatArray
    latency_s: FloatArray
    find_route: Callable[[int, int], Route]
    switching: Switching = "cut-through"
    sharing: Sharing = "auto"
    behaviours: Mapping[int, Behaviour] = field(default_factory=dict)
    window: Window | None = None
    packets: Packets | None = None
    places: tuple[str, ...] | None = None
    find_groups: Callable[[], Groups] | None = None
    given_sources: LinkSources | None = None
    find_equal_routes: Callable[[int, int], list[Route]] | None = None
    reduce_Bps: Mapping[str, float] = field(default_factory=dict)
    found_hops: FoundHops = field(default_factory=FoundHops, compare=False)

    @property
    def sources(self) -> LinkSources:
        """Where the numbers of the links come from."""
        return self.given_sources or LinkSources.alike(self.n_links)

    def __repr__(self) -> str:
        return f"<Network {self.topology}: {self.n_workers} workers, {self.n_links} links>"

    @property
    def n_links(self) -> int:
        """Number of links; both directions of a cable count."""
        return len(self.names)

    def route(self, src: int, dst: int) -> Route:
        """Links from worker ``src`` to worker ``dst``, in order; `NetworkError` where there is no way.

        Numbers from ``n_workers`` on are those of `switches`.
        """
        if max(src, dst) >= self.n_workers and min(src, dst) >= 0 and self.reduce_Bps:
            return self.switches.route(src, dst)
        for worker in (src, dst):
            if not 0 <= worker < self.n_workers:
                raise NetworkError(f"the {self.topology} of {self.n_workers} workers has no worker {worker}")
        return self.find_route(src, dst)

    def hops(self, src: IntArray, dst: IntArray) -> Hops:
        """Return the links of many routes hop by hop: which pairs go so far (None for all), and their links.

        Parameters
        ----------
        src, dst : ndarray of int64, shape (n_pairs,)
            Two different workers each.

        Examples
        --------
        >>> from ringnet.networks.basic import switch
        >>> switch(3, 1e9, 0.0).hops(np.array([0, 1]), np.array([1, 2]))
        [(None, array([0, 1])), (None, array([4, 5]))]
        """
        # Whoever is not there is told by `route`.
        are_there = np.maximum(src, dst).max(initial=-1) < self.n_workers and np.minimum(src, dst).min(initial=0) >= 0
        if not are_there:
            return _hops([self.route(*pair) for pair in zip(src.tolist(), dst.tolist(), strict=True)])
        if isinstance(self.find_route, RouteFormula):
            return [(None, links) for links in self.find_route.links(src, dst)]
        return self.found_hops.of(self.find_route, src, dst)

    def joined_routes(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Return the links of many routes one route after another, and where each begins and the last one ends.

        Parameters
        ----------
        src, dst : ndarray of int64, shape (n_pairs,)
            Two different workers each.

        Examples
        --------
        >>> from ringnet.networks.basic import switch
        >>> switch(3, 1e9, 0.0).joined_routes(np.array([0, 1]), np.array([1, 2]))
        (array([0, 4, 1, 5]), array([0, 2, 4]))
        """
        everybody, hops = np.arange(len(src)), self.hops(src, dst)
        crossed = [everybody if within is None else within for within, _ in hops]
        first = np.zeros(len(src) + 1, dtype=np.int64)
        for some in crossed:
            first[1 + some] += 1
        np.cumsum(first, out=first)
        links = np.empty(first[-1], dtype=np.int64)
        for number, (some, (_, of_hop)) in enumerate(zip(crossed, hops, strict=True)):
            links[first[some] + number] = of_hop
        return links, first

    def equal_routes(self, src: int, dst: int) -> list[Route]:
        """Return the routes of equal cost of which a draw took one; of what is not drawn the one that there is."""
        if self.find_equal_routes is None or max(src, dst) >= self.n_workers:
            return [self.route(src, dst)]
        return self.find_equal_routes(src, dst)

    @property
    def part_bytes(self) -> int | None:
        """Bytes of the packets, or of the slots of a window, that transfers are cut into; None where in none."""
        found = [
            *([] if self.packets is None or self.sharing == "fair" else [self.packets.bytes]),
            *([] if self.window is None or self.window.bytes is None else [self.window.slot_bytes]),
        ]
        return min(found, default=None)

    @cached_property
    def switches(self) -> ReducingSwitches:
        """The switches that reduce, as the workers find them."""
        return reducing_switches(self)

    def behaviour(self, link: int) -> Behaviour:
        """Return what a link does."""
        given = self.behaviours.get(link)
        return given or Constant(float(self.bandwidth_Bps[link]), float(self.latency_s[link]))

    def ends(self, link: int) -> tuple[str, str]:
        """Where a link starts and where it ends."""
        name = self.names[link]
        start, _, end = name.partition(BOTH_WAYS if BOTH_WAYS in name else ONE_WAY)
        return start, end

    @cached_property
    def link_ends(self) -> LinkNames:
        """Where all links start and end, by number of the node."""
        if isinstance(self.names, LinkNames):
            return self.names
        return LinkNames.of([self.ends(link) for link in range(self.n_links)])

    def is_half_duplex(self, link: int) -> bool:
        """Whether a link carries both directions."""
        return BOTH_WAYS in self.names[link]

    @property
    def shape(self) -> NetworkShape:
        """What the numbers of the workers say of hosts, cards and sides, wherever the workers sit."""
        groups = {} if self.find_groups is None else self.find_groups()
        nodes = [self.node(worker) for worker in range(self.n_workers)]
        shape = NetworkShape.of(groups, nodes, self.switches if self.reduce_Bps else None)
        return replace(shape, find_neighbour_Bps=self._rates_to_next)

    def _rates_to_next(self) -> tuple[int, ...] | None:
        """Return the bandwidth from each worker to the next where all send at once; None without a way for some."""
        workers = np.arange(self.n_workers)
        try:
            links, first = self.joined_routes(workers, np.roll(workers, -1))
        except NetworkError:
            return None
        if self.n_workers == 1 or not np.diff(first).all():
            return None
        each_Bps = self.bandwidth_Bps / np.maximum(np.bincount(links, minlength=self.n_links), 1)
        return tuple(np.minimum.reduceat(each_Bps[links], first[:-1]).astype(np.int64).tolist())

    def node(self, worker: int) -> str:
        """Return the node where a worker sits: an end of its links."""
        return str(worker) if self.places is None else self.places[worker]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node that a link starts or ends at, in the order of the links."""
        links = self.link_ends
        both = np.stack([links.start, links.end], axis=1).ravel()
        first = np.unique(both, return_index=True)[1]
        return tuple(links.nodes[node] for node in both[np.sort(first)].tolist())


def beyond(
    network: Network,
    behaviours: Collection[type[Behaviour]] = (),
    *,
    fair: bool = False,
    store_and_forward: bool = True,
    window: bool = False,
    packets: bool = False,
) -> str | None:
    """Return what a network does beyond what a caller allows, in words; None where that is nothing.

    Parameters
    ----------
    network : Network
    behaviours : collection of Behaviour classes
        What links may do beside having one bandwidth and one latency: these very classes, not what derives from them.
    fair, store_and_forward, window, packets : bool
        Whether links may be shared fairly, may hand on whole transfers only, may have a window, packets.

    Examples
    --------
    >>> from ringnet.networks.basic import ring
    >>> from ringnet.networks.behaviour import OverTime
    >>> slows = replace(ring(2, 50e9, 5e-7), behaviours={1: OverTime(50e9, 5e-7, ((1.0, 10e9),))})
    >>> beyond(slows), beyond(slows, [OverTime])
    ('a bandwidth changes over time', None)
    """
    allowed = (Constant, *behaviours)
    unknown = next((one for one in network.behaviours.values() if type(one) not in allowed), None)
    found = {
        "links are shared fairly": network.sharing == "fair" and not fair,
        "" if unknown is None else unknown.meaning: unknown is not None,
        "links hand on whole transfers": network.switching == "store-and-forward" and not store_and_forward,
        "a window holds transfers back": network.window is not None and not window,
        "transfers are cut into packets": network.packets is not None and not packets,
    }
    return next((reason for reason, holds in found.items() if holds), None)


#: A time by which every link that ever dies has died.
LATE_S = 1e300


def dying_links(network: Network) -> list[int]:
    """Return the links that carry nothing any more from some time on."""
    return [link for link, one in network.behaviours.items() if one.least_s(1, LATE_S) == NEVER]


def settled(network: Network, least_bytes: int, most_bytes: int) -> Network:
    """Return the network as transfers between two sizes see it: links that treat all of these alike are constant.

    The network itself, if some link does not. What links do beside is left to them.

    >>> from ringnet.networks.basic import ring
    >>> from ringnet.networks.behaviour import Piece
    >>> small = BySize((Piece(8192, 5e9, 2e-6), Piece(float("inf"), 50e9, 5e-7)))
    >>> two = replace(ring(2, 50e9, 5e-7), behaviours={0: small, 1: small})
    >>> settled(two, 1024, 8192).bandwidth_Bps.tolist(), len(settled(two, 1024, 8193).behaviours)
    ([5000000000.0, 5000000000.0], 2)
    """
    bandwidth_Bps, latency_s = network.bandwidth_Bps.copy(), network.latency_s.copy()
    behaviours = dict(network.behaviours)
    for link, behaviour in network.behaviours.items():
        if type(behaviour) is BySize:
            if behaviour.place(least_bytes) != behaviour.place(most_bytes):
                return network
            bandwidth_Bps[link], latency_s[link] = behaviour.offer(most_bytes, 0.0)
            del behaviours[link]
    return replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s, behaviours=behaviours)


def in_run(network: Network, run: int) -> Network:
    """Return the network as it is in a run: what is drawn once is a number, what each transfer draws is that run's.

    The network itself, if nothing is drawn.
    """
    found = {link: one.in_run(run) for link, one in network.behaviours.items()}
    drawn = {link: one for link, one in found.items() if one is not network.behaviours[link]}
    if not drawn:
        return network
    bandwidth_Bps, latency_s = network.bandwidth_Bps.copy(), network.latency_s.copy()
    behaviours = dict(network.behaviours) | drawn
    for link, one in drawn.items():
        if type(one) is Constant:
            bandwidth_Bps[link], latency_s[link] = behaviours.pop(link).offer(0.0, 0.0)
    return replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s, behaviours=behaviours)


def link_array(value: float, n_links: int) -> FloatArray:
    """Return one value for every link.

    >>> link_array(5.0, 2).tolist()
    [5.0, 5.0]
    """
    return np.full(n_links, value, dtype=np.float64)
