"""Who holds a run back: the links that are alike, what can be mended, and what a second simulation says of it.

An upgrade says what some links or workers become. What it gains is the makespan today less the makespan with it, both
simulated. A link is *as good as its best like* when it is given the highest bandwidth and the lowest latency among the
links of its class; two links are of one class when their names are the same but for the numbers, ``3->leaf0`` and
``7->leaf1``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from ringnet.engines.trace import Columns, Workers
from ringnet.networks import Behaviour, BySize, Constant, Network, OverTime
from ringnet.networks.behaviour import ANY_SIZE, NEVER

#: What links or workers become: as good as the best of their like, twice as fast, without latency.
Change: TypeAlias = Literal["alike", "twice", "no-latency"]
CHANGES: tuple[Change, ...] = ("alike", "twice", "no-latency")
#: The same in words, after "if it were" or "if they were".
IN_WORDS: dict[Change, str] = {
    "alike": "as good as its best like",
    "twice": "twice as fast",
    "no-latency": "without latency",
}
#: A gain below this share of the makespan is rounding; of gains that differ by less, the smaller change is named.
ROUNDING = 1e-9
#: Links that take this share of what the most loaded one takes are loaded like it: chunks may differ by an element.
LOADED = 0.9
#: Share of the makespan that a class of links gains at twice the speed before it is said to hold the run back.
WORTH = 0.01
#: The behaviours of which it is known what twice as fast means.
SCALED = (Constant, BySize, OverTime)


class OneWorker(NamedTuple):
    """When a worker starts, and what its processor takes: the columns of `Workers` for one of them."""

    start_s: float
    send_overhead_s: float
    recv_overhead_s: float
    reduce_Bps: float


@dataclass(frozen=True)
class Upgrade:
    """What some links, and some workers, become."""

    links: tuple[tuple[int, Behaviour], ...] = ()
    workers: tuple[tuple[int, OneWorker], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.links or self.workers)

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
            bandwidth_Bps[link], latency_s[link] = behaviour.offer(ANY_SIZE, 0.0)
            behaviours.pop(link, None)
            if type(behaviour) is not Constant:
                behaviours[link] = behaviour
        return replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s, behaviours=behaviours)

    def of_workers(self, workers: Workers) -> Workers:
        """Return workers as they become."""
        columns = {name: getattr(workers, name).copy() for name in OneWorker._fields}
        for worker, costs in self.workers:
            for name, value in costs._asdict().items():
                columns[name][worker] = value
        return replace(workers, **columns)


class Again(Protocol):
    """Simulates a run again, with an upgrade."""

    def __call__(self, upgrade: Upgrade) -> float:
        """Return the makespan with the upgrade, in seconds."""

    @property
    def affordable(self) -> int:
        """How many simulations an answer may cost beside its run."""


class Suspect(NamedTuple):
    """Links, or workers, that may hold a run back.

    Parameters
    ----------
    kind : str
        ``link``, ``links`` (of one class, or alike in what they lack), ``card``, ``worker`` or ``workers``.
    name : str
        For a person.
    links, workers : tuple of int
    """

    kind: str
    name: str
    links: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()


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
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for link in self.used:
            start, end = self.network.ends(link)
            found[_role(start), _role(end)].append(link)
        lonely = [role for role, links in found.items() if len(links) == 1]
        for start, end in lonely:  # the two directions of the only cable of its class are alike
            back = end, start
            if back != (start, end) and len(found.get(back, ())) == 1 and (start, end) in found:
                found[back] += found.pop((start, end))
        return [sorted(links) for links in found.values()]

    def layers(self) -> list[list[int]]:
        """Return the links by class with both directions together: cards, trunks, links inside hosts."""
        found: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for link in self.used:
            found[tuple(sorted(map(_role, self.network.ends(link))))].append(link)
        return list(found.values())

    def below_their_likes(self) -> dict[int, Behaviour]:
        """Return what each link that is not as good as its best like would become."""
        if not self._best and not self.are_equal:
            for links in self.classes():
                self._best |= dict(self._mended(links))
        return self._best

    def _mended(self, links: Sequence[int]) -> Iterator[tuple[int, Behaviour]]:
        have = {link: self.network.behaviour(link) for link in links}
        likes = [one for one in dict.fromkeys(have.values()) if type(one) in (BySize, OverTime)]
        constant = [one for one in have.values() if type(one) is Constant]
        if constant:
            bandwidth_Bps = max(one.bandwidth_Bps for one in constant)
            likes.insert(0, Constant(bandwidth_Bps, min(one.latency_s for one in constant)))
        for link, behaviour in have.items() if likes else ():
            would_s, place = min((self._would_take_s(link, like), at) for at, like in enumerate(likes))
            if likes[place] != behaviour and would_s < self._takes_s(link) * (1 - ROUNDING):
                yield link, likes[place]

    def _takes_s(self, link: int) -> float:
        """Return what a link took for its traffic: latency each, and the bytes."""
        transfers = float(self._traffic["transfers"][link])
        size = float(self._traffic["bytes"][link]) / transfers
        latency_s = self.network.behaviour(link).offer(size, 0.0).latency_s
        return float(transfers * latency_s + self._traffic["busy_s"][link])

    def _would_take_s(self, link: int, behaviour: Behaviour) -> float:
        """Return what it would take if it had what a behaviour offers."""
        n_bytes, transfers = (float(self._traffic[name][link]) for name in ("bytes", "transfers"))
        size = n_bytes / transfers
        return transfers * behaviour.offer(size, 0.0).latency_s + behaviour.service_s(0.0, n_bytes, size)

    def excess_s(self, links: Iterable[int]) -> float:
        """Return how much longer the most loaded of some links takes for its traffic than its best like would."""
        best = self.below_their_likes()
        return max(self._takes_s(link) - self._would_take_s(link, best[link]) for link in links)

    def upgrade(self, links: Iterable[int], change: Change) -> Upgrade | None:
        """Return what some links become by a change; None where it is none, or not known of what they do."""
        if change == "alike":
            best = self.below_their_likes()
            return Upgrade(tuple((link, best[link]) for link in links if link in best)) or None
        made = [(link, CHANGED[change](self.network.behaviour(link))) for link in links]
        if any(after is None for _, after in made):
            return None
        kept = ((link, after) for link, after in made if after is not None)
        return (
            Upgrade(tuple((link, after) for link, after in kept if after != self.network.behaviour(link)))
            or None
        )

    def unknown(self, links: Iterable[int]) -> str | None:
        """Return what one of some links does of which nobody knows what twice as fast is; None if all is known."""
        behaviours = (self.network.behaviour(link) for link in links)
        return next((one.meaning for one in behaviours if type(one) not in SCALED), None)

    def most_loaded(self) -> list[int]:
        """Return the links that took about as long for their traffic as the one that took longest."""
        takes_s = {link: self._takes_s(link) for link in self.used}
        most_s = max(takes_s.values(), default=0.0)
        return [link for link, one_s in takes_s.items() if one_s >= LOADED * most_s]

    def named(self, links: Sequence[int]) -> str:
        """Return the name of the first of some links, and how many more there are.

        >>> from ringnet.networks.basic import ring
        >>> LinksInUse(ring(3, 1.0, 0.5), {"transfers": np.ones(3)}).named([0, 1, 2])
        '0->1 and 2 more'
        """
        first = self.network.names[links[0]]
        return f"{first} and {len(links) - 1} more" if len(links) > 1 else first


@lru_cache(maxsize=10_000)
def _role(node: str) -> str:
    return re.sub(r"\d+", "#", node)


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
    return None


CHANGED: Mapping[str, Callable[[Behaviour], Behaviour | None]] = {
    "twice": lambda behaviour: _scaled(behaviour, 2.0, 1.0),
    "no-latency": lambda behaviour: _scaled(behaviour, 1.0, 0.0),
}


# Whom to suspect.


def suspects(links: LinksInUse, workers: Workers) -> list[Suspect]:
    """Return each link in use, class of links, network card and worker that costs something."""
    return [*_of_links(links), *_of_cards(links), *_of_workers(workers)]


def _of_links(links: LinksInUse) -> Iterator[Suspect]:
    for found in links.classes():
        if len(found) > 1:
            yield Suspect("links", f"{links.named(found)}, all alike", tuple(found))
    for group in groups_below(links):
        yield Suspect("links", f"{links.named(group)}, below their likes", group)
    yield from (Suspect("link", links.network.names[link], (link,)) for link in links.used)


def _of_cards(links: LinksInUse) -> Iterator[Suspect]:
    """Yield each network card with all its links; where workers have none, each worker with all of its own."""
    at: dict[str, list[int]] = defaultdict(list)
    for link in links.used:
        for node in links.network.ends(link):
            at[node].append(link)
    cards = [node for node in at if re.fullmatch(r".*\bnic\d+", node)]
    if cards:
        yield from (Suspect("card", f"card {node}", tuple(at[node])) for node in cards if len(at[node]) > 1)
        return
    for worker in range(links.network.n_workers):
        found = at.get(links.network.node(worker), [])
        if len(found) > 1:
            yield Suspect("card", f"all links of worker {links.network.node(worker)}", tuple(found))


def _of_workers(workers: Workers) -> Iterator[Suspect]:
    first_s = float(workers.start_s.min())
    costing = [
        worker
        for worker, costs in enumerate(_costs(workers))
        if costs.start_s > first_s
        or costs.send_overhead_s
        or costs.recv_overhead_s
        or costs.reduce_Bps < NEVER
    ]
    if len(costing) > 1:
        yield Suspect("workers", f"workers {costing[0]} and {len(costing) - 1} more", workers=tuple(costing))
    yield from (Suspect("worker", f"worker {worker}", workers=(worker,)) for worker in costing)


def _costs(workers: Workers) -> list[OneWorker]:
    columns = (getattr(workers, name).tolist() for name in OneWorker._fields)
    return [OneWorker(*row) for row in zip(*columns, strict=True)]


def worker_upgrade(workers: Workers, chosen: Iterable[int], change: Change) -> Upgrade | None:
    """Return what some workers become by a change: as the best of all in each thing, or twice as fast; None if none.

    Twice as fast also halves by how much a worker starts later than the first.
    """
    costs = _costs(workers)
    first_s = min(one.start_s for one in costs)
    best = OneWorker(
        first_s,
        min(one.send_overhead_s for one in costs),
        min(one.recv_overhead_s for one in costs),
        max(one.reduce_Bps for one in costs),
    )

    def changed(one: OneWorker) -> OneWorker:
        if change == "alike":
            return best
        late_s = (one.start_s - first_s) / 2
        return OneWorker(
            first_s + late_s, one.send_overhead_s / 2, one.recv_overhead_s / 2, one.reduce_Bps * 2
        )

    if change == "no-latency":
        return None
    made = [(worker, changed(costs[worker])) for worker in chosen]
    return Upgrade(workers=tuple(one for one in made if one[1] != costs[one[0]])) or None


def groups_below(links: LinksInUse) -> list[tuple[int, ...]]:
    """Return groups of several links below their likes that lack the same, each once, the smallest first.

    Mending one of them alone may gain nothing, since the others hold the run back as before: the two directions of a
    cable; all of one class that have the same bandwidth and latency; the same with both directions.
    """
    best, network = links.below_their_likes(), links.network
    found: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for link in best:
        ends = network.ends(link)
        roles, has = tuple(map(_role, ends)), network.behaviour(link)
        found["cable", *sorted(ends)].append(link)
        found["class", *roles, has].append(link)
        found["both ways", *sorted(roles), has].append(link)
    several = {tuple(group) for group in found.values() if len(group) > 1}
    return sorted(several, key=lambda group: (len(group), group))


# The slowest link of a run.


class SlowestLinks(NamedTuple):
    """The links of a run that gain most, and what they gain by.

    Parameters
    ----------
    links : tuple of int
        One, or several that must change together; none where nothing gains.
    change : {"alike", "twice"}
        Whether they are to become as good as their best like or, where no such gain is to be had, twice as fast.
    gain_s : float
        By how much the makespan falls then; NaN where that was not simulated.
    """

    links: tuple[int, ...] = ()
    change: Change = "alike"
    gain_s: float = math.nan


def slowest_links(links: LinksInUse, makespan_s: float, again: Again | None = None) -> SlowestLinks:
    """Return the links that hold a run back, by simulating again what they would be.

    First the links whose mending gains most: all that are not as good as their best like are mended at once, and where
    that gains nothing, none does; then each alone, and the groups that lack the same. Where not all can be afforded,
    those that take longest beyond what their best like would take for the same traffic; where nothing can, the first of
    these is named, unconfirmed. Where no link can be mended with a gain: the class of links (both directions together)
    that gains most if it is twice as fast, if there are several classes.

    Parameters
    ----------
    links : LinksInUse
    makespan_s : float
        Of the run as it is.
    again : callable, optional
        Simulates the run with an upgrade.
    """
    if not links.used or not makespan_s:
        return SlowestLinks()
    trials = _Trials(links, makespan_s, again)
    if links.below_their_likes():
        found = trials.mended()
        if found.links:
            return found
    return trials.doubled()


class _Trials:
    """Simulations of a run again, as many as can be afforded."""

    def __init__(self, links: LinksInUse, makespan_s: float, again: Again | None) -> None:
        self.links, self.makespan_s, self.again = links, makespan_s, again
        self.affordable = 0 if again is None else again.affordable
        self.rounding_s = ROUNDING * makespan_s

    def tried(self, group: Sequence[int], change: Change) -> SlowestLinks:
        """Simulate with some links changed."""
        upgrade = self.links.upgrade(group, change)
        assert self.again is not None
        gain_s = self.makespan_s - self.again(upgrade) if upgrade else 0.0
        self.affordable -= 1
        return SlowestLinks(tuple(group), change, gain_s)

    def mended(self) -> SlowestLinks:
        """Return the links whose mending gains most; no links, and no gain, where none gains."""
        links, best = self.links, self.links.below_their_likes()
        groups = sorted(
            [*((link,) for link in best), *groups_below(links)],
            key=lambda group: (-links.excess_s(group), len(group)),
        )
        if self.affordable < min(len(groups), 2):
            return SlowestLinks(groups[0])
        whole = self.tried([*best], "alike")
        if whole.gain_s <= self.rounding_s:
            return SlowestLinks(gain_s=0.0)
        found = SlowestLinks(gain_s=self.rounding_s)
        for group in sorted(groups[: self.affordable], key=len) if len(groups) > 1 else ():
            one = self.tried(group, "alike")
            # Of groups that gain alike the smallest is named: it came first.
            found = one if one.gain_s > found.gain_s + self.rounding_s else found
            if found.gain_s >= whole.gain_s - self.rounding_s:
                break
        return found if found.links else whole

    def doubled(self) -> SlowestLinks:
        """Return the class of links, or the most loaded links, that gain most if they are twice as fast.

        None where there is one class only, and all of its links have as much to do: of these it is no news that they
        count. None either where the gain is small.
        """
        links = self.links
        layers, loaded = links.layers(), links.most_loaded()
        groups = [*(layers if len(layers) > 1 else ()), *([loaded] if loaded not in layers else ())]
        if not groups:
            return SlowestLinks(gain_s=0.0) if links.below_their_likes() else SlowestLinks()
        if self.affordable < len(groups):
            return SlowestLinks(tuple(loaded), "twice")
        tried = [self.tried(group, "twice") for group in groups]
        most_s = max(one.gain_s for one in tried)
        if most_s < WORTH * self.makespan_s:
            return SlowestLinks(gain_s=0.0)
        alike = (one for one in tried if one.gain_s >= most_s - self.rounding_s)
        return min(alike, key=lambda one: len(one.links))
