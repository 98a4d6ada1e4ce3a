"""What no run can beat: the bound of a schedule on a network, and that of a collective whatever the algorithm.

The second goes by *cuts*. A partition puts the nodes of a network into groups: each worker by itself, the hosts, the
leaves, the two sides of a dumbbell. Whatever the algorithm, some bytes must come into each group and go out of it, and
some over all groups together, and the links over the border of a group carry no more than their capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.errors import some
from ringnet.networks import Network
from ringnet.networks.behaviour import NEVER
from ringnet.networks.link_names import LinkNames

#: Of nodes that are in no group.
OUTSIDE = -1
#: Workers up to which narrow cuts are searched for: two searches of some milliseconds for each.
MOST_SEARCHED = 64
#: Steps of the largest bandwidth in which a search counts: 32-bit flows of a thousand such links add up.
FINEST = 1_000_000
#: Workers of a side that are named.
MOST_NAMED = 4


def schedule_bound_s(link_bytes: IntArray, network: Network, start_s: float = 0.0) -> float:
    """Return the largest, over links, of the bytes routed over it by its bandwidth: no run of the schedule beats it.

    Parameters
    ----------
    link_bytes : ndarray of int64, shape (n_links,)
        Bytes that cross each link in the whole run.
    network : Network
        The capacity of a link whose bandwidth changes is integrated from ``start_s`` on; of one that treats sizes
        differently, the most that it gives to any size.
    start_s : float
        When the first worker starts.
    """
    alone_s = link_bytes / peak_bandwidths(network)
    for link, behaviour in network.behaviours.items():
        alone_s[link] = behaviour.least_s(float(link_bytes[link]), start_s)
    return float(alone_s.max(initial=0.0))


class Bound(NamedTuple):
    """The least time of a collective in seconds, and in words the cut that says so: ``"into worker 3"``."""

    seconds: float
    cut: str


class Late(NamedTuple):
    """The last worker to start, and by how much later than the first."""

    worker: int
    by_s: float


class Cuts:
    """The partitions of a network that may bound what runs on it.

    Parameters
    ----------
    network : Network
    starts_s : float or ndarray of float, shape (n_workers,)
        When workers start: capacities that change are integrated from the first of them on.

    Notes
    -----
    Of each partition into k groups of workers:

    - *into a group* must come every chunk that it is to hold and that others contribute to, once at least: what comes
      in is at best the sum of all that the others have;
    - *out of a group* must go every chunk that it contributes to and that others are to hold, once at least;
    - *between the groups* a chunk to which c groups contribute and which h are to hold crosses c - 1 borders for its c
      values to meet, if nothing is reduced on the way, and one for each holder that is not where they met. Where
      switches reduce that are in none of the groups, values meet there, and go on from there to several groups at once:
      then this is no bound.

    Where every worker has a part in every chunk, what comes into a group, and what goes out of that of the last worker
    to start, must do so once that worker has started.

    So an all-reduce of S bytes takes S / (the capacity into or out of any group), and 2(k-1) S / (the capacity of all
    links that leave a group), if that is more; where a switch between the workers reduces, S / (the capacity of the
    narrowest worker) is left, about half of it. What algorithms do without such switches is held against that, too. For
    groups of one worker each: Patarasuk and Yuan, JPDC 69 (2009). Of
    two groups it is the cut of Ford and Fulkerson (1956). Of networks whose groups nobody has named, the narrowest cuts
    between a worker and each other one are found by maximum flow.

    Examples
    --------
    Two hosts of two workers, with one card of 10 bytes per second each:

    >>> from ringnet.collectives import ALGORITHMS
    >>> from ringnet.networks import TOPOLOGIES, Inside
    >>> hosts = TOPOLOGIES["nodes"].build(4, 10.0, 0.0, workers_per_host=2, inside=Inside("switch", 100.0, 0.0))
    >>> Cuts(hosts).bound(ALGORITHMS["ring"].build(4, "all-reduce"), np.full(4, 100))
    Bound(seconds=40.0, cut='between the hosts')
    """

    def __init__(self, network: Network, starts_s: FloatArray | float = 0.0) -> None:
        starts_s = np.broadcast_to(starts_s, network.n_workers)
        start_s, last = float(starts_s.min()), int(starts_s.argmax())
        self.late = Late(last, float(starts_s[last]) - start_s)
        borders = _Borders(network, start_s)
        workers = {network.node(worker): f"worker {worker}" for worker in range(network.n_workers)}
        named = _narrow_cuts(borders) if network.find_groups is None else network.find_groups().items()
        found = [borders.partition(*each) for each in [("workers", workers), *named]]
        self.partitions = [partition for partition in found if partition is not None]

    def bound(self, schedule: Schedule, chunk_bytes: IntArray) -> Bound:
        """Return the time that no algorithm beats for the collective of a schedule, of which only its ends count.

        Parameters
        ----------
        schedule : Schedule
        chunk_bytes : ndarray of int64, shape (n_chunks,)

        Returns
        -------
        Bound
            Of cuts that say the same the first; 0 seconds where nothing need move.
        """
        found = [partition.bound(schedule, chunk_bytes, self.late) for partition in self.partitions]
        return max(found, key=lambda bound: bound.seconds, default=Bound(0.0, ""))


def collective_bound(
    schedule: Schedule, network: Network, chunk_bytes: IntArray, starts_s: FloatArray | float = 0.0
) -> Bound:
    """Return the time that no algorithm for a collective beats on a network: see `Cuts`."""
    return Cuts(network, starts_s).bound(schedule, chunk_bytes)


@dataclass(frozen=True)
class Capacity:
    """What some links carry together, or several sets of links each: constant from each of some times on.

    Parameters
    ----------
    times_s : ndarray, shape (n_times,)
        Ascending, the first one the start.
    rate_Bps : ndarray, shape (n_times, n_sets)
    """

    times_s: FloatArray
    rate_Bps: FloatArray

    def least_s(self, n_bytes: FloatArray | IntArray) -> FloatArray:
        """Return the seconds in which each set carries so many bytes, shape (n_sets,); infinite if it never does."""
        with np.errstate(divide="ignore", invalid="ignore"):
            least_s = np.where(n_bytes > 0, n_bytes / self.rate_Bps[-1], 0.0)
        if len(self.times_s) == 1:
            return least_s
        # Backwards: what is not carried before a change takes its time from the change on.
        lasts_s = np.diff(self.times_s)
        carried = np.concatenate(
            [np.zeros((1, self.rate_Bps.shape[1])), np.cumsum(self.rate_Bps[:-1] * lasts_s[:, None], axis=0)]
        )
        at = (carried < n_bytes).sum(axis=0) - 1
        sets = np.arange(len(at))
        with np.errstate(divide="ignore", invalid="ignore"):
            in_time_s = self.times_s[at] - self.times_s[0] + (n_bytes - carried[at, sets]) / self.rate_Bps[at, sets]
        return np.where(n_bytes > 0, in_time_s, 0.0)


@dataclass(frozen=True)
class Partition:
    """Workers in groups, and what the links over the borders of the groups carry.

    Parameters
    ----------
    kind : str
        What the groups are: ``"hosts"``.
    names : sequence of str
        Of each group: ``"host h3"``.
    group : ndarray of int64, shape (n_workers,)
        The group of each worker.
    into, out, across : Capacity
        Of the links into each group, out of it, and of all of these; a link of both directions counts once in the last.
    all_into, all_out : Capacity
        Of all links that lead into some group, and of those out of one.
    meets_outside : bool
        Whether some switch that is in none of the groups reduces.
    """

    kind: str
    names: Sequence[str]
    group: IntArray
    into: Capacity
    out: Capacity
    across: Capacity | None
    all_into: Capacity
    all_out: Capacity
    meets_outside: bool

    def bound(self, schedule: Schedule, chunk_bytes: IntArray, late: Late) -> Bound:
        """Return what `Cuts.bound` does, over this partition."""
        source, target = (
            np.where(who == EVERY_WORKER, EVERY_WORKER, self.group[who]) for who in (schedule.source, schedule.target)
        )
        n_groups = len(self.names)
        into, out = (_must_come(*ends, chunk_bytes, n_groups) for ends in ((source, target), (target, source)))
        contributors, holders = (np.where(who == EVERY_WORKER, n_groups, 1) for who in (source, target))
        apart = (source != EVERY_WORKER) & (target != EVERY_WORKER) & (source != target)
        between = ((contributors - 1 + holders - 1 + apart) * chunk_bytes).sum()
        between_s = max(float(way.least_s(between)[0]) for way in (self.all_into, self.all_out))
        found = [] if self.meets_outside else [Bound(between_s, f"between the {self.kind}")]
        ways = [("into", self.into, into), ("out of", self.out, out)]
        if self.across is not None:
            ways.append(("into and out of", self.across, into + out))
        for way, capacity, n_bytes in ways:
            least_s = capacity.least_s(n_bytes)
            worst = int(least_s.argmax())
            found.append(Bound(float(least_s[worst]), f"{way} {self.names[worst]}"))
            is_late = np.arange(n_groups) == self.group[late.worker]
            waits = (is_late if way == "out of" else ~is_late) & (n_bytes > 0)
            # What a capacity that changes carries from then on is not worked out: without that it is a bound, too.
            is_known = len(capacity.times_s) == 1 and way != "into and out of"
            if late.by_s and is_known and waits.any() and (schedule.source == EVERY_WORKER).all():
                worst = int(np.where(waits, least_s, -1.0).argmax())
                when = f"once worker {late.worker} has started"
                found.append(Bound(late.by_s + float(least_s[worst]), f"{way} {self.names[worst]} {when}"))
        return max(found, key=lambda bound: bound.seconds)


def _must_come(source: IntArray, target: IntArray, chunk_bytes: IntArray, n_groups: int) -> IntArray:
    """Return the bytes of the chunks that each group is meant to get and that some other group has a part in."""
    alone = source == target
    for_all = target == EVERY_WORKER
    own = for_all & (source != EVERY_WORKER)
    single = ~for_all & ~alone
    into = np.bincount(target[single], chunk_bytes[single], minlength=n_groups)
    less = np.bincount(source[own], chunk_bytes[own], minlength=n_groups)
    must_come: IntArray = (chunk_bytes[for_all].sum() + into - less).astype(np.int64)
    return must_come


class _Borders:
    """The links of a network as columns of node numbers, those of the workers first.

    A link that carries both directions is a row for each.
    """

    def __init__(self, network: Network, start_s: float) -> None:
        self.n_workers, self.n_links = network.n_workers, network.n_links
        self.nodes = {network.node(worker): worker for worker in range(network.n_workers)}
        start, end = self._ends(network)
        # Names that are made from two columns have one way each.
        named = () if isinstance(network.names, LinkNames) else range(network.n_links)
        both = np.array([link for link in named if network.is_half_duplex(link)], dtype=np.int64)
        self.link = np.concatenate([np.arange(network.n_links), both])
        self.start, self.end = np.concatenate([start, end[both]]), np.concatenate([end, start[both]])
        self.half_duplex = bool(len(both))
        self.times_s, self.rate_Bps = _rates(network, start_s)
        self.reducing = network.reduce_Bps.keys() & self.nodes.keys()

    def _ends(self, network: Network) -> tuple[IntArray, IntArray]:
        """Return the number of the node where each link starts, and where it ends; number the nodes that are new."""
        links = network.link_ends
        number = np.array([self.nodes.setdefault(node, len(self.nodes)) for node in links.nodes], np.int64)
        return number[links.start], number[links.end]

    def partition(self, kind: str, groups: Mapping[str, str]) -> Partition | None:
        """Return the partition of nodes into groups; None if the workers are all in one.

        A worker that has no group makes one of its own; a switch that has none, or one without workers, is in none.
        """
        of_node = [
            groups.get(node, f"worker {number}" if number < self.n_workers else "")
            for node, number in self.nodes.items()
        ]
        names = list(dict.fromkeys(of_node[: self.n_workers]))
        if len(names) < 2:  # noqa: PLR2004 -- all together
            return None
        number = {name: place for place, name in enumerate(names)}
        group = np.array([number.get(name, OUTSIDE) for name in of_node])
        start, end = group[self.start], group[self.end]
        into, out = (start != end) & (end != OUTSIDE), (start != end) & (start != OUTSIDE)
        across = None
        if self.half_duplex:
            # A link of both directions is in both columns of its group, and carries no more for that.
            both = np.concatenate([[self.link[into], end[into]], [self.link[out], start[out]]], axis=1)
            links, sets = np.unique(both, axis=1)
            across = self._capacity(links, sets, len(names))
        return Partition(
            kind,
            names,
            group[: self.n_workers],
            into=self._capacity(self.link[into], end[into], len(names)),
            out=self._capacity(self.link[out], start[out], len(names)),
            across=across,
            all_into=self._together(into),
            all_out=self._together(out),
            meets_outside=any(group[self.nodes[node]] == OUTSIDE for node in self.reducing),
        )

    def _together(self, rows: BoolArray) -> Capacity:
        crossing = np.zeros(self.n_links, dtype=bool)
        crossing[self.link[rows]] = True
        links = np.flatnonzero(crossing)
        return self._capacity(links, np.zeros_like(links), 1)

    def _capacity(self, links: IntArray, sets: IntArray, n_sets: int) -> Capacity:
        """Return what some links carry, added up by the set that each is in."""
        rates = [np.bincount(sets, rate_Bps[links], minlength=n_sets) for rate_Bps in self.rate_Bps]
        return Capacity(self.times_s, np.array(rates))


def _rates(network: Network, start_s: float) -> tuple[FloatArray, FloatArray]:
    """Return the times from which capacities are constant, and what each link carries at best from each of them on."""
    changing = [one for one in set(network.behaviours.values()) if one.next_change_s(start_s) < NEVER]
    times = {start_s}
    for behaviour in changing:
        at_s = start_s
        while (at_s := behaviour.next_change_s(at_s)) < NEVER:
            times.add(at_s)
    rates = np.tile(network.bandwidth_Bps, (len(times), 1))
    for link, behaviour in network.behaviours.items():
        rates[:, link] = [behaviour.peak_at(at_s) for at_s in sorted(times)]
    return np.array(sorted(times)), rates


def _narrow_cuts(borders: _Borders) -> list[tuple[str, Mapping[str, str]]]:
    """Return the sides of the narrowest cuts between the first worker and each other one, and what all of them part.

    Minimal cuts by maximum flow, in both directions (Dinic's algorithm). Rates are rounded for the search alone.
    """
    if borders.n_workers > MOST_SEARCHED or not len(borders.link):
        return []
    from scipy.sparse import csr_array  # noqa: PLC0415 -- a fifth of a second, for listed cables only
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # noqa: PLC0415

    n_nodes, rate_Bps = len(borders.nodes), borders.rate_Bps.max(axis=0)[borders.link]
    rounded = np.maximum(1, np.rint(rate_Bps / rate_Bps.max() * FINEST)).astype(np.int32)
    graph = csr_array((rounded, (borders.start, borders.end)), shape=(n_nodes, n_nodes))
    sides: dict[bytes, BoolArray] = {}
    for worker in range(1, borders.n_workers):
        for source, sink in ((0, worker), (worker, 0)):
            left = graph - maximum_flow(graph, source, sink).flow
            left.eliminate_zeros()
            side = np.zeros(n_nodes, dtype=bool)
            side[breadth_first_order(left, source, return_predecessors=False)] = True
            side = side if side[0] else ~side
            sides.setdefault(side.tobytes(), side)
    cuts = np.array([*sides.values()])
    parts = ("parts that narrow cuts make", _named(borders, cuts))
    return [*(("sides of a narrow cut", _named(borders, cut[None])) for cut in cuts), parts]


def _named(borders: _Borders, sides: BoolArray) -> dict[str, str]:
    """Return the part of each node, named by its workers; ``sides``, of shape (n_cuts, n_nodes), make the parts."""
    _, part = np.unique(sides, axis=1, return_inverse=True)
    names = {}
    for number in range(part.max() + 1):
        workers = np.flatnonzero(part[: borders.n_workers] == number).tolist()
        names[number] = f"worker{'s' * (len(workers) > 1)} {some(workers, MOST_NAMED)}"
    return {node: names[int(part[number])] for node, number in borders.nodes.items()}


def peak_bandwidths(network: Network) -> FloatArray:
    """Return the most that each link ever gives to any transfer, shape (n_links,), bytes/s."""
    most = network.bandwidth_Bps.copy()
    for link, behaviour in network.behaviours.items():
        most[link] = behaviour.peak()
    return most
