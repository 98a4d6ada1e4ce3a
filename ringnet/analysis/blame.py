"""Who holds a run back: whom to suspect, and which links are the slowest by what a second simulation says of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from ringnet.analysis.upgrades import ROUNDING, Change, Group, LinksInUse, Upgrade, role, worker_costs
from ringnet.engines.trace import Workers
from ringnet.errors import and_more
from ringnet.networks import Lossy
from ringnet.networks.behaviour import NEVER
from ringnet.networks.shape import CARDS

#: Share of the makespan that a class of links gains at twice the speed before it is said to hold the run back.
WORTH = 0.01
#: So many times what can be afforded is simulated where all are tried then, and it is known who gains most.
FOR_SURE = 2


class Again(Protocol):
    """Simulates a run again, with an upgrade."""

    def __call__(self, upgrade: Upgrade) -> float:
        """Return the makespan with the upgrade, in seconds."""

    @property
    def affordable(self) -> int:
        """How many simulations an answer may cost beside its run."""


#: Says what an upgrade gains by the path that ended last; None where that is not known.
ByPath: TypeAlias = Callable[[Upgrade], "float | None"]


class Suspect(NamedTuple):
    """Links, or workers, that may hold a run back.

    Parameters
    ----------
    kind : str
        ``link``, ``links`` (of one class, or alike in what they lack), ``card``, ``worker``, ``workers`` or ``window``.
    name : str
        For a person.
    links, workers : tuple of int
    """

    kind: str
    name: str
    links: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()


# Whom to suspect.


def suspects(links: LinksInUse, workers: Workers) -> list[Suspect]:
    """Return each link in use, class of links, network card and worker that costs something; and the window."""
    held = [] if links.network.window is None else [Suspect("window", "the window, against none")]
    return [*_of_links(links), *_of_cards(links), *_of_workers(workers), *held]


def _of_links(links: LinksInUse) -> Iterator[Suspect]:
    for found in links.classes():
        if len(found) > 1:
            numbers = links.network.bandwidth_Bps[found], links.network.latency_s[found]
            how = "all alike" if all(np.ptp(one) == 0 for one in numbers) else "a class of links"
            yield Suspect("links", f"{links.named(found)}, {how}", tuple(found))
    for group in groups_below(links):
        yield Suspect("links", f"{links.named(group)}, below their likes", group)
    told = {tuple(found) for found in links.classes()}
    for how, groups in (("both ways", links.layers()), ("those with most to do", links.most_loaded())):
        for group in groups:
            if len(group) > 1 and group not in told:
                told.add(group)
                yield Suspect("links", f"{links.named(group)}, {how}", group)
    yield from (Suspect("link", links.network.names[link], (link,)) for link in links.used)


def _of_cards(links: LinksInUse) -> Iterator[Suspect]:
    """Yield each network card with all its links; where workers have none, each worker with all of its own."""
    at: dict[str, list[int]] = defaultdict(list)
    for link in links.used:
        for node in links.network.ends(link):
            at[node].append(link)
    groups = {} if links.network.find_groups is None else links.network.find_groups()
    # Of the nodes that belong to a card the one that bears its name is the card itself.
    cards = [node for node in at if groups.get(CARDS, {}).get(node, "").endswith(f" {node}")]
    if cards:
        yield from (Suspect("card", f"card {node}", tuple(at[node])) for node in cards if len(at[node]) > 1)
        return
    for worker in range(links.network.n_workers):
        own = at.get(links.network.node(worker), [])
        if len(own) > 1:
            yield Suspect("card", f"all links of worker {links.network.node(worker)}", tuple(own))


def _of_workers(workers: Workers) -> Iterator[Suspect]:
    first_s = float(workers.start_s.min())
    costing = [
        worker
        for worker, costs in enumerate(worker_costs(workers))
        if costs.start_s > first_s
        or costs.launch_s
        or costs.send_overhead_s
        or costs.recv_overhead_s
        or costs.reduce_Bps < NEVER
    ]
    if len(costing) > 1:
        yield Suspect("workers", and_more(f"workers {costing[0]}", len(costing) - 1), workers=tuple(costing))
    yield from (Suspect("worker", f"worker {worker}", workers=(worker,)) for worker in costing)


def groups_below(links: LinksInUse) -> list[Group]:
    """Return groups of several links below their likes that lack the same, each once, the smallest first.

    Mending one of them alone may gain nothing, since the others hold the run back as before: the two directions of a
    cable; all of one class that have the same bandwidth and latency; the same with both directions.
    """
    best, network = links.below_their_likes(), links.network
    found: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for link in best:
        ends = network.ends(link)
        roles, has = tuple(map(role, ends)), network.behaviour(link)
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
    by : {"simulation", "trials", "path", "load", "likeness"}
        How that is known; by trials where others were not simulated that may gain more; by likeness where no link is
        worse than another.
    """

    links: tuple[int, ...] = ()
    change: Change = "alike"
    gain_s: float = math.nan
    by: Literal["simulation", "trials", "path", "load", "likeness"] = "likeness"


def slowest_links(
    links: LinksInUse, makespan_s: float, again: Again | None = None, by_path: ByPath = lambda upgrade: None
) -> SlowestLinks:
    """Return the links that hold a run back, by simulating again what they would be.

    First the links whose mending gains most: all that are not as good as their best like are mended at once, and where
    that gains nothing, none does; then each alone, and the groups that lack the same. Where not all can be afforded,
    those that gain most by the path that ended last; where that has no derivatives, those that take longest beyond what
    their best like would take for the same traffic. Where one simulation can be afforded, it is that of the first of
    these; where none can, the first by the path is named, unconfirmed, and none by its load. Where no link can be
    mended with a gain: the class of links (both directions together), or the links with most to do, that gain most at
    twice the speed.

    Parameters
    ----------
    links : LinksInUse
    makespan_s : float
        Of the run as it is.
    again : callable, optional
        Simulates the run with an upgrade.
    by_path : callable, optional
        Says what an upgrade gains by the path as it is; None where that is not known. Asked where simulations are dear.
    """
    if not links.used or not makespan_s:
        return SlowestLinks()
    trials = _Trials(links, makespan_s, again, by_path)
    if links.below_their_likes():
        found = trials.mended()
        if found.links:
            return found
    return trials.doubled()


class _Trials:
    """Simulations of a run again, as many as can be afforded."""

    def __init__(self, links: LinksInUse, makespan_s: float, again: Again | None, by_path: ByPath) -> None:
        self.links, self.makespan_s, self.again, self.by_path = links, makespan_s, again, by_path
        self.affordable = 0 if again is None else again.affordable
        self.rounding_s = ROUNDING * makespan_s
        # Latency is pipelined: where a link is busy most of the time, what it takes for its bytes is what counts.
        self.by_bytes = links.busiest_s > makespan_s / 2

    def can_try(self, n: int) -> bool:
        """Whether so many simulations may be made: as many as are affordable, or a few more that leave nothing open."""
        if 1 < self.affordable < n <= FOR_SURE * self.affordable:
            self.affordable = n
        return self.affordable >= n

    def tried(self, group: Sequence[int], change: Change) -> SlowestLinks:
        """Simulate with some links changed."""
        upgrade = self.links.upgrade(group, change)
        assert self.again is not None
        gain_s = self.makespan_s - self.again(upgrade) if upgrade else 0.0
        self.affordable -= 1
        return SlowestLinks(tuple(group), change, gain_s, "simulation")

    def told(self, groups: Sequence[Group], change: Change) -> list[SlowestLinks]:
        """Return groups without simulating, the one to suspect most first; none that gains nothing by the path."""
        upgrades = [self.links.upgrade(group, change) for group in groups]
        gains_s = [self.by_path(upgrade) if upgrade else 0.0 for upgrade in upgrades]
        known = [(gain_s, group) for gain_s, group in zip(gains_s, groups, strict=True) if gain_s is not None]
        if len(known) == len(groups):
            known.sort(key=lambda one: (-one[0], len(one[1])))
            return [SlowestLinks(group, change, most_s, "path") for most_s, group in known if most_s > self.rounding_s]
        load = self.links.excess_s if change == "alike" else self.links.load_s
        # Of those that are as full all together come first, and after them the largest: alone none of them may gain. Of
        # 128 random networks with fair sharing one trial so finds the most to be gained in 159 of 206 questions (alike
        # and twice), two in 142 of 172, four in 96 of 105; by load, the smallest alike first, in 130, 132 and 83.
        first, *others = sorted(groups, key=lambda group: (-load(group, self.by_bytes), -len(group)))
        ranked = [first, *sorted(others, key=len, reverse=True)]
        return [SlowestLinks(group, change, by="load") for group in ranked]

    def best_of(self, suspected: Sequence[SlowestLinks], least_s: float) -> SlowestLinks:
        """Return what gains most, and more than that, of as many as can be simulated; if none, the next by the path.

        None gains more than the path says: where that is less than what one gained, the others need not be simulated.
        A load alone names nobody: what takes longest need not be what others wait for.
        """
        best = SlowestLinks((), suspected[0].change if suspected else "alike", least_s)
        left = [*suspected]
        while left and self.affordable > 0 and not (left[0].by == "path" and left[0].gain_s <= best.gain_s):
            found = self.tried(left[0].links, left.pop(0).change)
            best = found if found.gain_s > best.gain_s + self.rounding_s * bool(best.links) else best
        is_open = bool(left) and not (left[0].by == "path" and left[0].gain_s <= best.gain_s)
        if best.links:
            return best._replace(by="trials") if is_open else best
        if is_open:
            return left[0]._replace(gain_s=math.nan) if left[0].by == "path" else left[0]._replace(links=())
        return best._replace(gain_s=0.0, by="simulation" if len(left) < len(suspected) else "path")

    def mended(self) -> SlowestLinks:
        """Return the links whose mending gains most; no links, and no gain, where none gains."""
        links, best = self.links, self.links.below_their_likes()
        groups = [*((link,) for link in best), *groups_below(links)]
        if not self.can_try(1 + len(groups)):
            suspected = self.told(groups, "alike")
            if self.affordable < min(len(groups), 2) or not suspected:
                return self.best_of(suspected, self.rounding_s)
            groups = [one.links for one in suspected]
        whole = self.tried([*best], "alike")
        if whole.gain_s <= self.rounding_s:
            return SlowestLinks(gain_s=0.0, by="simulation")
        found, are_all = SlowestLinks(gain_s=self.rounding_s), self.affordable >= len(groups)
        for group in sorted(groups[: self.affordable], key=len) if len(best) > 1 else ():
            one = self.tried(group, "alike")
            # Of groups that gain alike the smallest is named: it came first.
            found = one if one.gain_s > found.gain_s + self.rounding_s else found
            if found.gain_s >= whole.gain_s - self.rounding_s:
                return found
        if not found.links:
            return whole
        return found if are_all else found._replace(by="trials")

    def doubled(self) -> SlowestLinks:
        """Return the class of links, or the most loaded links, that gain most if they are twice as fast.

        None where there is one class only, and all of its links have as much to do: of these it is no news that they
        count. None either where the gain is small.
        """
        links = self.links
        layers = links.layers()
        loaded = links.most_loaded()[0 if self.by_bytes else -1]
        # Which links are the fullest is luck where packets are lost.
        by_luck = any(isinstance(one, Lossy) for one in links.network.behaviours.values())
        is_group = loaded not in layers and not by_luck
        groups = [*(layers if len(layers) > 1 else ()), *([loaded] if is_group else ())]
        mended = SlowestLinks(gain_s=0.0, by="simulation") if links.below_their_likes() else SlowestLinks()
        if not groups:
            return mended
        if not self.can_try(len(groups)):
            return self.best_of(self.told(groups, "twice"), WORTH * self.makespan_s)
        tried = [self.tried(group, "twice") for group in groups]
        most_s = max(one.gain_s for one in tried)
        if most_s < WORTH * self.makespan_s:
            return mended if len(layers) == 1 else SlowestLinks((), "twice", 0.0, "simulation")
        alike = (one for one in tried if one.gain_s >= most_s - self.rounding_s)
        return min(alike, key=lambda one: len(one.links))
