"""What led to the end of a run: wherever a step waits for one of two, a bit says which it was.

A bit costs next to nothing while whole steps are done, and steps that go on alike share theirs. Going back along them
from the end needs no times: those of a path follow from where it begins.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.engines.arrays.rounds import Index, Rounds
from ringnet.engines.trace import MOST_ROWS, Led

#: Bytes of all bits together, and steps: a path has some pieces for each, which take longer than steps that are leapt.
MOST_BYTES, MOST_STEPS = 1 << 26, 1 << 16
#: Bytes of what is noted of a transfer, at the most, and of the pieces of a path for each step.
NOTED_BYTES, STEP_BYTES = 0.5, 2_000
#: Stands for no row, and for no place in a round.
NONE = -1
#: Rounds whose places are held at once.
HELD = 16


class _Bits(NamedTuple):
    """What was noted of a step, in its order: a bit for each row of a round, or for each of a hop that it has."""

    rounds: int
    packed: tuple[bytes, ...]


class Choices:
    """Notes which of two came later, step by step.

    Of each round of sends, in a rendezvous, whether the receiver came after the sender; of each of its links whether
    it served something else when the head came and, under cut-through from the second link on, whether the tail came
    no earlier than all bytes had passed. Of each round of receives whether the transfer came no earlier than its
    receiver was ready. Last, in a rendezvous, of each round of sends whether it arrived after all else was done.

    Parameters
    ----------
    cut_through, rendezvous : bool
    """

    def __init__(self, *, cut_through: bool, rendezvous: bool) -> None:
        self.cut_through, self.rendezvous = cut_through, rendezvous
        self.made: list[Rounds] = []
        self.steps: list[_Bits] = []
        self._number: dict[int, int] = {}
        self._known: dict[_Bits, _Bits] = {}
        self._now: list[bytes] = []
        self._n_bytes = 0
        #: How long what waited for a link had to, in the order of the bits; and where those of a step begin.
        self.waited_s, self.first_wait = array("d"), dict[int, int]()

    def note(self, later: BoolArray) -> None:
        """Note which of two came later for the rows of a round, or of a hop."""
        self._now.append(np.packbits(later).tobytes())

    def note_waits(self, waits: BoolArray | None, head_s: FloatArray, start_s: FloatArray) -> None:
        """Note which of the rows of a hop found their link busy (None: none), and how long they waited."""
        if waits is None:
            self._now.append(bytes(-(-len(start_s) // 8)))
            return
        self.note(waits)
        if len(self.waited_s) <= MOST_ROWS:
            self.first_wait.setdefault(len(self.steps), len(self.waited_s))
            self.waited_s.frombytes((start_s - head_s)[waits].tobytes())

    def end_step(self, rounds: Rounds) -> None:
        """End a step; one like an earlier one takes no memory."""
        if id(rounds) not in self._number:
            self._number[id(rounds)] = len(self.made)
            self.made.append(rounds)
        bits = _Bits(self._number[id(rounds)], tuple(self._now))
        self._now = []
        if bits not in self._known:
            self._n_bytes += sum(map(len, bits.packed))
        if self.are_kept:
            self.steps.append(self._known.setdefault(bits, bits))
        elif self.steps:
            self._known.clear()
            self.steps.clear()

    def repeat(self, n_steps: int, times: int) -> None:
        """Note that the last steps come again, so many times: nothing waits in them."""
        if self.are_kept:
            self.steps += self.steps[-n_steps:] * times

    @property
    def are_kept(self) -> bool:
        """Whether they are few enough to be kept."""
        return self._n_bytes <= MOST_BYTES


class _RowPlaces:
    """Where in the rounds of a step actors, rows and links are."""

    def __init__(self, rounds: Rounds, n_actors: int, *, cut_through: bool, rendezvous: bool) -> None:
        self.rounds, n_rows = rounds, len(rounds.src)
        self.sent = [_inverse(sends.actors, n_actors) for sends in rounds.sends]
        self.owed = [_inverse(receives.actors, n_actors) for receives in rounds.receives]
        #: Of each row in which round it is sent, and its place there.
        self.round_of, self.at = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
        self.within = list[list[IntArray | None]]()
        #: Where the bits of the links of each round of sends begin; and all that say whether something waited.
        self.first_bits, self.waits = list[int](), list[int]()
        n_bits = 0
        for number, sends in enumerate(rounds.sends):
            self.round_of[sends.rows] = number
            self.at[sends.rows] = np.arange(len(sends.actors))
            places = [None if hop.within is None else _inverse(hop.within, len(sends.actors)) for hop in sends.hops]
            self.within.append(places)
            self.first_bits.append(n_bits + rendezvous)
            n_hops = len(sends.hops)
            self.waits += [n_bits + rendezvous + hop * (1 + cut_through) for hop in range(n_hops)]
            n_bits += rendezvous + n_hops + max(n_hops - 1, 0) * cut_through
        self.first_of_receives = n_bits
        self.first_of_ends = n_bits + len(rounds.receives)

    @staticmethod
    def last(rounds: list[IntArray], actor: int) -> int:
        """Return the last of some rounds that an actor is in; `NONE` if it is in none."""
        for number in range(len(rounds) - 1, NONE, -1):
            if rounds[number][actor] != NONE:
                return number
        return NONE

    def row(self, number: int, at: int) -> int:
        """Return the row of a place in a round of sends."""
        rows = self.rounds.sends[number].rows
        return at * (rows.step or 1) + (rows.start or 0) if isinstance(rows, slice) else int(rows[at])

    def last_hop(self, number: int, at: int) -> int:
        """Return the last link that a row of a round crosses."""
        last = len(self.within[number]) - 1
        while self.on_hop(number, last, at) == NONE:
            last -= 1
        return last

    def on_hop(self, number: int, hop: int, at: int) -> int:
        """Return the place of a row of a round among those of one of its hops; `NONE` if its route is shorter."""
        if hop >= len(self.within[number]):
            return NONE
        within = self.within[number][hop]
        return at if within is None else int(within[at])


def _inverse(places: Index | IntArray, n: int) -> IntArray:
    found = np.full(n, NONE, dtype=np.int64)
    found[places] = np.arange(len(found[places]))
    return found


#: How to go on: by what, from what.
Where: TypeAlias = "tuple[Callable[..., Where | None], *tuple[int, ...]]"


class WayBack:
    """Goes back from the end of a run, always to what came last; of two at once to a transfer, or a head, that came.

    Each method puts down in ``led`` what it passes, and returns how to go on; None at the start.

    Parameters
    ----------
    choices : Choices
        Of all steps.
    n_actors : int
    """

    def __init__(self, choices: Choices, n_actors: int) -> None:
        self.choices = choices
        #: The fields of `Led`, of one thing after the other: many tuples would keep the garbage collector busy.
        self.led: list[Any] = []
        how = {"cut_through": choices.cut_through, "rendezvous": choices.rendezvous}
        self._made = lru_cache(maxsize=HELD)(lambda number: _RowPlaces(choices.made[number], n_actors, **how))
        # A step is asked for several times, one after the other.
        self._places: Callable[[int], _RowPlaces] = lru_cache(maxsize=2)(
            lambda step: self._made(choices.steps[step].rounds)
        )

    def of(self, actor: int) -> Led:
        """Return what led to the end of an actor."""
        where = self._ready(actor, len(self.choices.steps))
        while where is not None:
            where = where[0](*where[1:])
        n_fields = len(Led._fields)
        return Led(*(self.led[place::n_fields] for place in range(n_fields)))

    def _bit(self, step: int, which: int, place: int) -> int:
        return self.choices.steps[step].packed[which][place >> 3] >> (7 - (place & 7)) & 1

    def _ready(self, actor: int, step: int) -> Where | None:
        """Go on from when an actor was ready for a step: it left the last one in which it had something to do."""
        for before in range(step - 1, -1, -1):
            places = self._places(before)
            sent, owed = places.sent, places.owed
            if (sent and sent[0][actor] != NONE) or (owed and owed[0][actor] != NONE):
                return self._left(actor, before)
        self.led += ("start", NONE, NONE, actor, 0.0)
        return None

    def _left(self, actor: int, step: int) -> Where:
        places = self._places(step)
        sent, owed = places.last(places.sent, actor), places.last(places.owed, actor)
        for number in range(sent, NONE, -1) if self.choices.rendezvous else ():
            at = int(places.sent[number][actor])
            if self._bit(step, places.first_of_ends + number, at):
                return self._arrived, step, number, at
        return (self._applied, actor, step, owed) if owed != NONE else (self._posted, actor, step, sent)

    def _applied(self, actor: int, step: int, number: int) -> Where | None:
        places = self._places(step)
        at = int(places.owed[number][actor])
        row = int(places.rounds.receives[number].rows[at])
        self.led += ("apply", step, row, actor, 0.0)
        if self._bit(step, places.first_of_receives + number, at):
            return self._arrived, step, int(places.round_of[row]), int(places.at[row])
        if number:
            return self._applied, actor, step, number - 1
        sent = places.last(places.sent, actor)
        return (self._posted, actor, step, sent) if sent != NONE else self._ready(actor, step)

    def _posted(self, actor: int, step: int, number: int) -> Where | None:
        places = self._places(step)
        self.led += ("post", step, places.row(number, int(places.sent[number][actor])), actor, 0.0)
        return (self._posted, actor, step, number - 1) if number else self._ready(actor, step)

    def _arrived(self, step: int, number: int, at: int) -> Where | None:
        return self._tail(step, number, at, self._places(step).last_hop(number, at))

    def _tail(self, step: int, number: int, at: int, hop: int) -> Where | None:
        """Go back over a latency, from when a tail has crossed a link."""
        self._put("latency", step, number, at, hop)
        return self._end(step, number, at, hop)

    def _put(self, what: str, step: int, number: int, at: int, hop: int) -> int:
        """Put down a link that a row of a round crosses; return which link."""
        places = self._places(step)
        link = int(places.rounds.sends[number].hops[hop].links[places.on_hop(number, hop, at)])
        self.led += (what, step, places.row(number, at), link, 0.0)
        return link

    def _end(self, step: int, number: int, at: int, hop: int) -> Where | None:
        """Go back from the end of a service: to when its tail came, or over its bytes to its begin."""
        places = self._places(step)
        if hop and self.choices.cut_through:
            which = places.first_bits[number] + 2 * hop - 1
            if self._bit(step, which, places.on_hop(number, hop, at)):
                return self._tail(step, number, at, hop - 1)
        link = self._put("bandwidth", step, number, at, hop)
        return self._begin(step, number, at, hop, link)

    def _begin(self, step: int, number: int, at: int, hop: int, link: int = NONE) -> Where | None:
        """Go back from the begin of a service: to what the link served before, or to where its head came from."""
        places, cut_through = self._places(step), self.choices.cut_through
        which = places.first_bits[number] + (2 * hop if cut_through else hop)
        place = places.on_hop(number, hop, at)
        if self._bit(step, which, place):
            link = int(places.rounds.sends[number].hops[hop].links[place])
            self.led += ("queue", step, places.row(number, at), link, self._waited_s(step, which, place))
            return self._ahead(step, number, int(places.rounds.sends[number].actors[at]), hop, link)
        if hop:
            if not cut_through:
                return self._tail(step, number, at, hop - 1)
            self._put("latency", step, number, at, hop - 1)
            return self._begin(step, number, at, hop - 1)
        sends = places.rounds.sends[number]
        if self.choices.rendezvous and self._bit(step, places.first_bits[number] - 1, at):
            return self._ready(int(sends.receivers[at]), step)
        return self._posted, int(sends.actors[at]), step, number

    def _ahead(self, step: int, number: int, actor: int, hop: int, link: int) -> Where:
        """Return the end of what a link served before: it serves one actor, always on the same hop."""
        places = self._places(step)
        while True:
            for before in range(number - 1, NONE, -1):
                at = int(places.sent[before][actor])
                place = NONE if at == NONE else places.on_hop(before, hop, at)
                if place != NONE and places.rounds.sends[before].hops[hop].links[place] == link:
                    return self._end, step, before, at, hop
            step -= 1
            places = self._places(step)
            number = len(places.sent)

    def _waited_s(self, step: int, which: int, place: int) -> float:
        """Return how long something waited for its link; NaN where nobody knows any more."""
        choices, places = self.choices, self._places(step)
        first = choices.first_wait.get(step)
        if first is None:
            return nan
        packed = choices.steps[step].packed
        n_before = sum(int.from_bytes(packed[other]).bit_count() for other in places.waits if other < which)
        n_before += int.from_bytes(packed[which][: place // 8 + 1]).bit_count()
        n_before -= (packed[which][place // 8] & (0xFF >> (place % 8))).bit_count()
        at = first + n_before
        return choices.waited_s[at] if at < len(choices.waited_s) else nan
