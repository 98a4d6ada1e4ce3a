"""Which rows of a step can be done at once, by whom and over which links.

An actor is one worker on one channel, numbered ``worker * n_channels + channel``. Rows of a step are done in rounds: a
round of sends has at most one row of each actor, and of each worker where its channels meet on a link; a round of
receives has at most one row for each actor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.networks import Network

#: What picks entries of an array: a slice (a view, no copy) where they are as far from each other each.
Index: TypeAlias = slice | IntArray

#: Stands for no actor, channel or link.
NOBODY = -1
#: Runs of consecutive rows up to which copying runs is faster than picking rows.
FEW_RUNS = 4


@dataclass
class Hop:
    """One link of each route: ``links`` serve the rows ``within`` a round; None stands for all rows.

    ``at`` picks them among the links that are used; see `RoundMaker.used_links`.
    """

    within: IntArray | None
    links: IntArray
    bandwidth_Bps: FloatArray
    latency_s: FloatArray
    at: Index = field(default_factory=lambda: slice(0))

    @property
    def rows(self) -> Index:
        """What picks its rows among those of the round."""
        return slice(None) if self.within is None else self.within


@dataclass
class SendRound:
    """One round of sends: at most one row on each link."""

    rows: Index
    actors: IntArray
    receivers: IntArray
    hops: list[Hop]

    def __post_init__(self) -> None:
        self.at = as_index(self.actors)
        self.latency_s = np.zeros(len(self.actors))
        for hop in self.hops:
            self.latency_s[hop.rows] += hop.latency_s

    def channels_of_links(self, n_channels: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the links of each hop, and which channel sends over each."""
        for hop in self.hops:
            yield hop.links, self.actors[hop.rows] % n_channels


@dataclass
class ReceiveRound:
    """One round of receives: ``rows`` of the step, applied by ``actors``, each at most once."""

    rows: IntArray
    actors: IntArray

    def __post_init__(self) -> None:
        self.at = as_index(self.actors)
        breaks = (np.flatnonzero(np.diff(self.rows) != 1) + 1)[:FEW_RUNS].tolist()
        ends = [0, *breaks, len(self.rows)]
        runs = [slice(int(self.rows[a]), int(self.rows[b - 1]) + 1) for a, b in pairwise(ends)]
        self._runs = runs if len(breaks) < FEW_RUNS else None

    def gather(self, values: FloatArray) -> FloatArray:
        """Return the values of ``rows``, copied; run by run where they are a few, as those of a ring are."""
        if self._runs is None:
            return values.take(self.rows, axis=0)
        return np.concatenate([values[run] for run in self._runs])


@dataclass
class Rounds:
    """The rounds of a step, which are made when they are asked for, and the columns that they are made for."""

    src: IntArray
    dst: IntArray
    channel: IntArray
    receiving_channel: IntArray
    make: Callable[[Rounds], tuple[list[SendRound], list[ReceiveRound]]]

    @cached_property
    def _made(self) -> tuple[list[SendRound], list[ReceiveRound]]:
        return self.make(self)

    @property
    def sends(self) -> list[SendRound]:
        """The rounds of sends, in order."""
        return self._made[0]

    @property
    def receives(self) -> list[ReceiveRound]:
        """The rounds of receives, in order."""
        return self._made[1]

    def __len__(self) -> int:
        return len(self.src)

    def fits(self, step: Step) -> bool:
        """Whether another step moves between the same workers."""
        mine = (self.src, self.dst, self.channel, self.receiving_channel)
        return all(map(_same, mine, (step.src, step.dst, step.channel, step.receiving_channel)))


class RoundMaker:
    """Makes the rounds of each step; steps that move between the same workers share theirs."""

    def __init__(self, schedule: Schedule, network: Network) -> None:
        self.schedule, self.network, self.n_channels = schedule, network, schedule.n_channels
        self.made: list[Rounds] = []
        self._last: Rounds | None = None
        self._by_columns: dict[bytes, Rounds] = {}

    def rounds(self, step: Step) -> Rounds:
        """Return the rounds of a step."""
        found = self._last
        if found is None or not found.fits(step):
            found = self._last = self._find(step)
        # Also where they were equal and not the same: the next step is likely to share these very columns.
        found.src, found.dst = step.src, step.dst
        found.channel, found.receiving_channel = step.channel, step.receiving_channel
        return found

    def used_links(self) -> IntArray:
        """Return the links that the rounds made so far use, ascending, and let every hop know where its own are.

        Of a million links a ring uses a thousand: whatever is kept of each link is kept of these.
        """
        hops = [hop for rounds in self.made for sends in rounds.sends for hop in sends.hops]
        is_used = np.zeros(self.network.n_links, dtype=bool)
        for hop in hops:
            is_used[hop.links] = True
        place = np.cumsum(is_used) - 1
        for hop in hops:
            hop.at = as_index(place[hop.links])
        return np.flatnonzero(is_used)

    def actors_meet(self) -> bool:
        """Whether a link carries several actors."""
        return self._some_meet(lambda rounds: rounds.src * self.n_channels + rounds.channel)

    def workers_meet(self) -> bool:
        """Whether a link carries several workers."""
        return self._some_meet(lambda rounds: rounds.src)

    def _some_meet(self, senders_of: Callable[[Rounds], IntArray]) -> bool:
        found = np.full(self.network.n_links, NOBODY)
        for rounds in self.made:
            senders = senders_of(rounds)
            for within, links in self.network.hops(rounds.src, rounds.dst):
                here = senders if within is None else senders[within]
                found[links] = np.where(found[links] == NOBODY, here, found[links])
                if (found[links] != here).any():
                    return True
        return False

    def _find(self, step: Step) -> Rounds:
        key = np.concatenate((step.src, step.dst, step.channel, step.receiving_channel)).tobytes()
        if key not in self._by_columns:
            columns = step.src, step.dst, step.channel, step.receiving_channel
            self._by_columns[key] = Rounds(*columns, self._make)
            self.made.append(self._by_columns[key])
        return self._by_columns[key]

    def _make(self, step: Rounds) -> tuple[list[SendRound], list[ReceiveRound]]:
        src = step.src * self.n_channels + step.channel
        dst = step.dst * self.n_channels + step.receiving_channel
        sends = [self._sends(step, rows, src, dst) for rows in _split(src, np.arange(len(src)))]
        if len(step) and self.n_channels > 1 and self._meet(sends):
            # A link serves the channels of a worker in their order: a row of each worker at a time.
            order = np.argsort(np.argsort(src, kind="stable"))
            sends = [self._sends(step, rows, src, dst) for rows in _split(step.src, order)]
        receives = [ReceiveRound(rows[np.argsort(dst[rows])], np.sort(dst[rows])) for rows in _split(dst, step.src)]
        return sends, receives

    def _meet(self, sends: list[SendRound]) -> bool:
        """Whether several channels of a worker send over a link in one step."""
        found = [pair for some in sends for pair in some.channels_of_links(self.n_channels)]
        links, channels = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(links, kind="stable")
        return bool(((np.diff(links[order]) == 0) & (np.diff(channels[order]) != 0)).any())

    def _sends(self, step: Rounds, rows: IntArray, src: IntArray, dst: IntArray) -> SendRound:
        network = self.network
        hops = [
            Hop(within, links, network.bandwidth_Bps[links], network.latency_s[links])
            for within, links in network.hops(step.src[rows], step.dst[rows])
        ]
        return SendRound(_rows_of(rows, step), src[rows], dst[rows], hops)


def _rows_of(rows: IntArray, step: Rounds) -> Index:
    return slice(None) if len(rows) == len(step) else as_index(rows)


def _same(a: IntArray, b: IntArray) -> bool:
    # Steps of a ring share their columns, which nobody can write: no need to look into them.
    return (a is b and not a.flags.writeable) or np.array_equal(a, b)


def as_index(places: IntArray) -> Index:
    """Return what picks ``places`` of an array: a slice, which makes a view, where they ascend by equal steps."""
    by = int(places[1] - places[0]) if len(places) > 1 else 1
    if len(places) and by > 0 and (np.diff(places) == by).all():
        return slice(int(places[0]), int(places[-1]) + 1, by)
    return places


def _split(actors: IntArray, order: IntArray) -> list[IntArray]:
    """Split rows so that no actor stands twice in a round: its first row, by ``order``, in the first, and so on."""
    rows = np.lexsort((order, actors))
    begins = np.flatnonzero(np.diff(actors[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
    by_number = rows[np.lexsort((rows, number))]
    return np.split(by_number, np.cumsum(np.bincount(number))[:-1]) if len(rows) else []


def put(values: FloatArray, rows: IntArray | None, new: FloatArray) -> FloatArray:
    """Return ``values`` with ``new`` in some rows; ``new`` itself where that is all of them."""
    if rows is None:
        return new
    values = values.copy()
    values[rows] = new
    return values
