"""Links and workers that are made better: what is alike, what each would become, and what the path says it gains.

A link is *as good as its best like* when it is given the highest bandwidth and the lowest latency among the links of
its class; two links are of one class when their names are the same but for the numbers, ``3->leaf0`` and ``7->leaf1``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ringnet.analysis.derivatives import Derivatives
from ringnet.array_types import FloatArray
from ringnet.engines.trace import Columns, Workers
from ringnet.networks import Behaviour, BySize, Constant, Lossy, Network, OverTime, Piece
from ringnet.networks.behaviour import ANY_SIZE, DrawnLatency, Undecided
from ringnet.networks.trouble import Wrapped

#: What links or workers become: as good as the best of their like, twice as fast, without latency.
Change: TypeAlias = Literal["alike", "twice", "no-latency"]
CHANGES: tuple[Change, ...] = ("alike", "twice", "no-latency")
#: The same in words, after "if it were" or "if they were".
IN_WORDS: dict[Change, str] = {
    "alike": "as good as its best like",
    "twice": "twice as fast",
    "no-latency": "without latency",
}
#: The same by the beginnings of the columns of ``blame.csv``.
BY_COLUMN = {change.replace("-", "_"): words for change, words in IN_WORDS.items()}
#: A gain below this share of the makespan is rounding; of gains that differ by less, the smaller change is named.
ROUNDING = 1e-9
#: Links that take this share of what the most loaded one takes are loaded like it: chunks may differ by an element.
LOADED = 0.9


class OneWorker(NamedTuple):
    """When a worker starts, and what it takes: the columns of `Workers` for one of them."""

    start_s: float
    launch_s: float
    send_overhead_s: float
    recv_overhead_s: float
    reduce_Bps: float


@dataclass(frozen=True)
class Upgrade:
    """What some links, and some workers, become; and whether the window is left out."""

    links: tuple[tuple[int, Behaviour], ...] = ()
    workers: tuple[tuple[int, OneWorker], ...] = ()
    without_window: bool = False

    def __bool__(self) -> bool:
        return bool(self.links or self.workers or self.without_window)

    def of_network(self, network: Network) -> Network:
        """Return a network with the links as they become; its routes stay.

        Examples
        --------
        >>> from ringnet.networks.basic import ring
        >>> Upgrade(((1, Constant(2.0, 0.5)),)).of_network(ring(3, 1.0, 0.5)).bandwidth_Bps.tolist()
        [1.0, 2.0, 1.0]
        """
        bandwidth_Bps, latency_s = network.bandwidth_Bps.copy(), network.latency_s.copy()
        behaviours = dict(network.behaviours)
        for link, behaviour in self.links:
            behaviours.pop(link, None)
            if isinstance(behaviour, Undecided):
                bandwidth_Bps[link] = behaviour.peak()
            else:
                bandwidth_Bps[link], latency_s[link] = behaviour.offer(ANY_SIZE, 0.0)
            if type(behaviour) is not Constant:
                behaviours[link] = behaviour
        window = None if self.without_window else network.window
        return replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s, behaviours=behaviours, window=window)

    def part(self, network: Network, workers: Workers, share: float) -> Upgrade | None:
        """Return so much of it, of network and workers as they are; below zero the same the other way.

        Latencies, times per byte, starts, launches and overheads go on evenly. None where nobody knows what is between.

        Examples
        --------
        >>> from ringnet.networks.basic import ring
        >>> twice = Upgrade(((1, Constant(2.0, 0.5)),))
        >>> twice.part(ring(3, 1.0, 0.5), Workers.alike(3), -1.0).links
        ((1, Constant(bandwidth_Bps=0.6666666666666666, latency_s=0.5)),)
        """
        links = [(link, _between(network.behaviour(link), after, share)) for link, after in self.links]
        known = tuple((link, behaviour) for link, behaviour in links if behaviour is not None)
        costs, some = worker_costs(workers), []
        for worker, then in self.workers:
            now = costs[worker]
            evenly = {
                name: getattr(now, name) + share * (getattr(then, name) - getattr(now, name))
                for name in OneWorker._fields
                if name != "reduce_Bps"
            }
            some.append(
                (
                    worker,
                    OneWorker(**evenly, reduce_Bps=_rate_between(now.reduce_Bps, then.reduce_Bps, share)),
                )
            )
        return Upgrade(known, tuple(some)) if len(known) == len(links) else None

    def of_workers(self, workers: Workers) -> Workers:
        """Return workers as they become."""
        columns = {name: getattr(workers, name).copy() for name in OneWorker._fields}
        for worker, costs in self.workers:
            for name, value in costs._asdict().items():
                columns[name][worker] = value
        return replace(workers, **columns)


def _between(before: Behaviour, after: Behaviour, share: float) -> Behaviour | None:
    """Return what is so much of the way from one behaviour to another; None where nobody knows."""
    if type(before) is not type(after):
        return None
    match before, after:
        case Constant(), Constant():
            return Constant(*_offer_between(before, after, share))
        case BySize(), BySize() if len(before.pieces) == len(after.pieces):
            pairs = zip(before.pieces, after.pieces, strict=True)
            return BySize(tuple(Piece(one.up_to_bytes, *_offer_between(one, to, share)) for one, to in pairs))
        case OverTime(), OverTime() if len(before.changes) == len(after.changes):
            changes = zip(before.changes, after.changes, strict=True)
            between = tuple((at_s, _rate_between(one, to, share)) for (at_s, one), (_, to) in changes)
            return OverTime(*_offer_between(before, after, share), between)
    return None


def _offer_between(one: Any, other: Any, share: float) -> tuple[float, float]:
    latency_s = one.latency_s + share * (other.latency_s - one.latency_s)
    return _rate_between(one.bandwidth_Bps, other.bandwidth_Bps, share), latency_s


def _rate_between(one: float, other: float, share: float) -> float:
    same = one == other or not one or not other  # both may be without limit, or stand still
    return one if same else 1.0 / ((1.0 - share) / one + share / other)


#: Links by number, ascending.
Group: TypeAlias = tuple[int, ...]


class LinksInUse:
    """The links that carried something: their classes, and what each would be if it were mended.

    Parameters
    ----------
    network : Network
    traffic : dict of str to ndarray
        As `Trace.links` has them: ``bytes, transfers, busy_s``.
    """

    def __init__(self, network: Network, traffic: Columns) -> None:
        self.network = network
        self.used: list[int] = np.flatnonzero(traffic["transfers"]).tolist()
        self._traffic = traffic
        self._best: dict[int, Behaviour] = {}

    @property
    def are_equal(self) -> bool:
        """Whether all of them have the same bandwidth and latency, and no behaviour of their own."""
        columns = (self.network.bandwidth_Bps, self.network.latency_s)
        return not self.network.behaviours and not any(np.ptp(one[self.used]) for one in columns if self.used)

    def classes(self) -> list[list[int]]:
        """Return the links by class, each class in the order of the links."""
        found = self._by_roles()
        lonely = [role for role, links in found.items() if len(links) == 1]
        for start, end in lonely:  # the two directions of the only cable of its class are alike
            back = end, start
            if back != (start, end) and len(found.get(back, ())) == 1 and (start, end) in found:
                found[back] += found.pop((start, end))
        return [sorted(links) for links in found.values()]

    def layers(self) -> list[Group]:
        """Return the links by class with both directions together: cards, trunks, links inside hosts."""
        found: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for roles, links in self._by_roles().items():
            found[tuple(sorted(roles))] += links
        layers = (tuple(sorted(links)) for links in found.values())
        return sorted(layers, key=lambda layer: layer[0])

    def _by_roles(self) -> dict[tuple[str, str], list[int]]:
        """Return the links by the roles of their ends, in order; those with the first link first."""
        ends, used = self.network.link_ends, np.array(self.used, dtype=np.int64)
        number: dict[str, int] = {}
        roles = np.array([number.setdefault(role(node), len(number)) for node in ends.nodes], np.int64)
        start, end = roles[ends.start[used]], roles[ends.end[used]]
        pairs, first, at = np.unique(start * len(number) + end, return_index=True, return_inverse=True)
        names = list(number)
        return {
            (names[pair // len(names)], names[pair % len(names)]): used[at == place].tolist()
            for pair, place in ((int(pairs[place]), place) for place in np.argsort(first).tolist())
        }

    def below_their_likes(self) -> dict[int, Behaviour]:
        """Return what each link that is not as good as its best like would become."""
        if not self._best and not self.are_equal:
            for links in self.classes():
                self._best |= dict(self._mended(links))
        return self._best

    def _mended(self, links: list[int]) -> Iterator[tuple[int, Behaviour]]:
        if self.network.behaviours.keys().isdisjoint(links):
            bandwidth_Bps, latency_s = self.network.bandwidth_Bps[links], self.network.latency_s[links]
            best = Constant(float(bandwidth_Bps.max()), float(latency_s.min()))
            would_s = (
                self._traffic["transfers"][links] * best.latency_s + self._traffic["bytes"][links] / best.bandwidth_Bps
            )
            differs = (bandwidth_Bps != best.bandwidth_Bps) | (latency_s != best.latency_s)
            gains = differs & (would_s < self._all_take_s[links] * (1 - ROUNDING))
            yield from ((links[place], best) for place in np.flatnonzero(gains))
            return
        have = {link: self.network.behaviour(link) for link in links}
        lossy = [one for one in have.values() if type(one) is Lossy]
        if len(lossy) == len(have):  # there is none without losses to be as good as
            carrying = dict(self._best_of({link: one.inner for link, one in zip(have, lossy, strict=True)}))
            fewest = min(lossy, key=lambda one: one.probability)
            for link, one in zip(have, lossy, strict=True):
                like = replace(one, inner=carrying.get(link, one.inner), probability=fewest.probability)
                if like != one:
                    yield link, like
        else:
            yield from self._best_of(have)

    def _best_of(self, have: Mapping[int, Behaviour]) -> Iterator[tuple[int, Behaviour]]:
        """Yield each of some links that another behaviour of theirs would serve better, with the best of them."""
        likes = [one for one in dict.fromkeys(have.values()) if type(one) in (BySize, OverTime)]
        constant = [one for one in have.values() if type(one) is Constant]
        if constant:
            bandwidth_Bps = max(one.bandwidth_Bps for one in constant)
            likes.insert(0, Constant(bandwidth_Bps, min(one.latency_s for one in constant)))
        for link, behaviour in have.items() if likes else ():
            would_s, place = min((self._would_take_s(link, like), at) for at, like in enumerate(likes))
            if likes[place] != behaviour and would_s < self._all_take_s[link] * (1 - ROUNDING):
                yield link, likes[place]

    @cached_property
    def _all_take_s(self) -> FloatArray:
        """What each link took for its traffic: latency for each transfer, and the bytes."""
        transfers = self._traffic["transfers"]
        latency_s = self.network.latency_s.copy()
        for link, behaviour in self.network.behaviours.items():
            if transfers[link] and not isinstance(behaviour, Undecided):
                size = float(self._traffic["bytes"][link]) / float(transfers[link])
                latency_s[link] = behaviour.offer(size, 0.0).latency_s
        return np.asarray(transfers * latency_s + self._traffic["busy_s"])

    def _would_take_s(self, link: int, behaviour: Behaviour, by_bytes: bool = False) -> float:
        """Return what a link would take if it had what a behaviour offers."""
        n_bytes, transfers = (float(self._traffic[name][link]) for name in ("bytes", "transfers"))
        size = n_bytes / transfers
        latency_s = 0.0 if by_bytes else behaviour.offer(size, 0.0).latency_s
        return transfers * latency_s + behaviour.service_s(0.0, n_bytes, size)

    def _loads_s(self, by_bytes: bool) -> FloatArray:
        """Return what each link took for its traffic: for the bytes, or with all latencies."""
        return np.asarray(self._traffic["busy_s"]) if by_bytes else self._all_take_s

    def excess_s(self, links: Iterable[int], by_bytes: bool) -> float:
        """Return how much longer the most loaded of some links takes for its traffic than its best like would."""
        best, takes_s = self.below_their_likes(), self._loads_s(by_bytes)
        return max(float(takes_s[link]) - self._would_take_s(link, best[link], by_bytes) for link in links)

    def upgrade(self, links: Iterable[int], change: Change) -> Upgrade | None:
        """Return what some links become by a change; None where it is none, or not known of what they do."""
        if change == "alike":
            best = self.below_their_likes()
            return Upgrade(tuple((link, best[link]) for link in links if link in best)) or None
        made = [(link, CHANGED[change](self.network.behaviour(link))) for link in links]
        if any(after is None for _, after in made):
            return None
        kept = ((link, after) for link, after in made if after is not None)
        return Upgrade(tuple((link, after) for link, after in kept if after != self.network.behaviour(link))) or None

    def unknown(self, links: Iterable[int]) -> str | None:
        """Return what one of some links does of which nobody knows what twice as fast is; None if all is known."""
        behaviours = (self.network.behaviour(link) for link in links)
        return next((one.meaning for one in behaviours if _scaled(one, 1.0, 1.0) is None), None)

    def load_s(self, links: Iterable[int], by_bytes: bool) -> float:
        """Return how long the most loaded of some links took for its traffic: for the bytes, or with all latencies."""
        return float(self._loads_s(by_bytes)[[*links]].max())

    @property
    def busiest_s(self) -> float:
        """How long the link was busy that was busy the longest."""
        return float(self._loads_s(by_bytes=True)[self.used].max(initial=0.0))

    def most_loaded(self) -> list[Group]:
        """Return the links that took about as long as the one that took longest: for their bytes; with latency, too.

        Latency is pipelined: where bytes hold a run back, links that are far away are no part of what does.
        """
        loads = [self._loads_s(by_bytes)[self.used] for by_bytes in (True, False)]
        used = np.array(self.used, dtype=np.int64)
        groups = [tuple(used[load >= LOADED * load.max(initial=0.0)].tolist()) for load in loads]
        return list(dict.fromkeys(groups))

    def named(self, links: Sequence[int]) -> str:
        """Return the name of the first of some links, and how many more there are.

        >>> from ringnet.networks.basic import ring
        >>> LinksInUse(ring(3, 1.0, 0.5), {"transfers": np.ones(3)}).named([0, 1, 2])
        '0->1 and 2 more'
        """
        first = self.network.names[links[0]]
        return f"{first} and {len(links) - 1} more" if len(links) > 1 else first


def role(node: str) -> str:
    """Return the name of a node without its numbers.

    >>> role("h3/nic0")
    'h#/nic#'
    """
    return "#" if node.isdecimal() else re.sub(r"\d+", "#", node)


def _scaled(behaviour: Behaviour, bandwidth: float, latency: float) -> Behaviour | None:
    """Return a behaviour with bandwidths and latencies multiplied; None where nobody knows what that is."""
    match behaviour:
        case Constant() if type(behaviour) is Constant:
            return Constant(behaviour.bandwidth_Bps * bandwidth, behaviour.latency_s * latency)
        case BySize() if type(behaviour) is BySize:
            return BySize(
                tuple(
                    replace(
                        one,
                        bandwidth_Bps=one.bandwidth_Bps * bandwidth,
                        latency_s=one.latency_s * latency,
                    )
                    for one in behaviour.pieces
                )
            )
        case OverTime() if type(behaviour) is OverTime:
            changes = tuple((time_s, rate_Bps * bandwidth) for time_s, rate_Bps in behaviour.changes)
            return OverTime(behaviour.bandwidth_Bps * bandwidth, behaviour.latency_s * latency, changes)
        case DrawnLatency():  # each transfer keeps its draw, or has no latency
            wide_Bps = behaviour.bandwidth_Bps * bandwidth
            return replace(behaviour, bandwidth_Bps=wide_Bps) if latency else Constant(wide_Bps, 0.0)
        case Wrapped():  # it loses as much as before, and fails when it did
            inner = _scaled(behaviour.inner, bandwidth, latency)
            return None if inner is None else replace(behaviour, inner=inner)
    return None


CHANGED: Mapping[str, Callable[[Behaviour], Behaviour | None]] = {
    "twice": lambda behaviour: _scaled(behaviour, 2.0, 1.0),
    "no-latency": lambda behaviour: _scaled(behaviour, 1.0, 0.0),
}


def worker_costs(workers: Workers) -> list[OneWorker]:
    """Return the columns of workers, worker by worker."""
    columns = (getattr(workers, name).tolist() for name in OneWorker._fields)
    return [OneWorker(*row) for row in zip(*columns, strict=True)]


def worker_upgrade(workers: Workers, chosen: Iterable[int], change: Change) -> Upgrade | None:
    """Return what some workers become by a change: as the best of all in each thing, or twice as fast; None if none.

    Twice as fast also halves by how much a worker starts later than the first.
    """
    costs = worker_costs(workers)
    first_s = min(one.start_s for one in costs)
    best = OneWorker(
        first_s,
        min(one.launch_s for one in costs),
        min(one.send_overhead_s for one in costs),
        min(one.recv_overhead_s for one in costs),
        max(one.reduce_Bps for one in costs),
    )

    def changed(one: OneWorker) -> OneWorker:
        if change == "alike":
            return best
        late_s = (one.start_s - first_s) / 2
        overheads_s = one.launch_s / 2, one.send_overhead_s / 2, one.recv_overhead_s / 2
        return OneWorker(first_s + late_s, *overheads_s, one.reduce_Bps * 2)

    if change == "no-latency":
        return None
    made = [(worker, changed(costs[worker])) for worker in chosen]
    return Upgrade(workers=tuple(one for one in made if one[1] != costs[one[0]])) or None


def estimated_gain_s(upgrade: Upgrade, found: Derivatives, network: Network, workers: Workers) -> float | None:
    """Return what an upgrade gains along the path that ended last, in seconds: no less than what it really gains.

    None where a link that changes has more than one bandwidth and latency.

    Notes
    -----
    The time is convex in all of these, and a derivative times a difference is what its tangent says: see
    `ringnet.analysis.derivatives.derivatives`, also for when that does not hold.
    """
    total_s = 0.0
    for link, after in upgrade.links:
        before = network.behaviour(link)
        if type(before) is not Constant or type(after) is not Constant:
            return None
        total_s += found.latency[link] * (before.latency_s - after.latency_s)
        total_s += found.inverse_bandwidth[link] * (1 / before.bandwidth_Bps - 1 / after.bandwidth_Bps)
    costs = worker_costs(workers)
    for worker, then in upgrade.workers:
        now = costs[worker]
        total_s += found.start[worker] * (now.start_s - then.start_s)
        total_s += found.launch[worker] * (now.launch_s - then.launch_s)
        total_s += found.send_overhead[worker] * (now.send_overhead_s - then.send_overhead_s)
        total_s += found.recv_overhead[worker] * (now.recv_overhead_s - then.recv_overhead_s)
        total_s += found.inverse_reduce_rate[worker] * (1 / now.reduce_Bps - 1 / then.reduce_Bps)
    return float(total_s)
