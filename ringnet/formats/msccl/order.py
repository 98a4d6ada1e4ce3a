"""Messages to steps: on which channel each gpu sends and receives them, and in what order all of it can be told."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ringnet.collectives.schedule import IntArray, Step, frozen
from ringnet.errors import ScheduleError
from ringnet.formats.msccl.document import Block, refuse
from ringnet.formats.msccl.flow import Access, Carried, Flow
from ringnet.formats.msccl.machine import Clock, Done

#: Phase of a step, by what its receivers do.
PHASES = {"reduce": "reduce", "copy": "copy"}


@dataclass(eq=False)
class Row:
    """A transfer to be: chunks of one message that lie side by side and of which the same becomes."""

    parts: list[Carried]
    channel: int = 0
    to_channel: int = 0
    slot: int = 0

    @property
    def op(self) -> str:
        """What its receiver does."""
        return self.parts[0].op

    @property
    def sent(self) -> Done:
        """What sends it."""
        return self.parts[0].sent

    @property
    def received(self) -> Done:
        """What receives it."""
        received = self.parts[0].received
        assert received is not None  # or the run would have said so
        return received


def make_rows(carried: Sequence[Carried]) -> list[Row]:
    """Put together what goes as one transfer, in the order of the run."""
    rows: list[Row] = []
    for part in carried:
        last = rows[-1].parts[-1] if rows else None
        follows = (
            last is not None
            and last.sent is part.sent
            and last.op == part.op
            and part.chunk == last.chunk + 1
        )
        if follows:
            rows[-1].parts.append(part)
        else:
            rows.append(Row([part]))
    return rows


# ------------------------------------------------------------------------------------------------------- channels


@dataclass(eq=False)
class _Lane:
    """A channel of one gpu: all that must be done before what comes next may be put on it, and its rows in order."""

    number: int
    needs: Clock
    events: list[tuple[Row, bool]] = field(default_factory=list)


def put_in_order(
    rows: list[Row], run: Sequence[Done], flow: Flow, file: str
) -> tuple[list[_Lane], list[Step]]:
    """Return the channels of all gpus and the steps of all rows.

    Raises
    ------
    ScheduleError
        Rows of which each would be in an earlier step than the other.
    """
    written = written_channels(rows, run)
    if written is not None:
        return written, make_steps(rows, written, flow, file)
    try:
        lanes = assign_channels(rows, _Channels(run))
        return lanes, make_steps(rows, lanes, flow, file)
    except ScheduleError:
        # Receives that need not come after a send of their channel; it waits for its chunk, wherever it is.
        lanes = assign_channels(rows, _Channels(run, flow))
        return lanes, make_steps(rows, lanes, flow, file)


def written_channels(rows: Sequence[Row], run: Sequence[Done]) -> list[_Lane] | None:
    """Return the channels that ringnet itself wrote to the file; None where it did not, or its waits say otherwise."""
    if any(done.block.lane is None for done in run):
        return None
    lanes: dict[tuple[int, int], _Lane] = {}
    when = {done: place for place, done in enumerate(run)}
    for row in sorted(rows, key=lambda row: when[row.received]):
        lane = _written_lane(lanes, row.received.block)
        last = lane.events[-1][0].received if lane.events else row.received
        if row.parts[0].applied is not row.received or not (
            last is row.received or row.received.comes_after(last)
        ):
            return None
        lane.events.append((row, True))
        row.to_channel = lane.number
    sends: dict[_Lane, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        lane = _written_lane(lanes, row.sent.block)
        row.channel = lane.number
        # Receives of a channel come one after another: those before a send are the first so many.
        first = bisect_left(lane.events, True, key=lambda event: not row.sent.comes_after(event[0].received))
        sends[lane][first].append(row)
    for lane in lanes.values():
        received, lane.events = lane.events, []
        for place, one in enumerate([*received, None]):
            lane.events += [(row, False) for row in sends[lane][place]]
            lane.events += [one] if one else []
    return list(lanes.values())


def _written_lane(lanes: dict[tuple[int, int], _Lane], block: Block) -> _Lane:
    number = block.lane or 0
    return lanes.setdefault((block.gpu, number), _Lane(number, np.zeros(0, dtype=np.int32)))


def assign_channels(rows: Sequence[Row], channels: _Channels) -> list[_Lane]:
    """Put each send and each receive on a channel of its gpu.

    A thread block is a channel; blocks of which one waits for the other share one where the file says itself
    that all that is on it comes first, so that nothing waits that need not.
    """
    sends: dict[Done, list[Row]] = defaultdict(list)
    receives: dict[Done, list[Row]] = defaultdict(list)
    for row in rows:
        sends[row.sent].append(row)
        receives[row.received].append(row)
    for done in channels.run:
        for row in receives[done]:
            row.to_channel = channels.put(done, row, receives=True)
        for row in sends[done]:
            row.channel = channels.put(done, row, receives=False)
        channels.note(done)
    return channels.lanes


class _Channels:
    """Channels being filled; with a ``flow``, sends make way for receives that need not come after them."""

    def __init__(self, run: Sequence[Done], flow: Flow | None = None) -> None:
        self.run, self.flow = run, flow
        self.before, self.after = _waits(run)
        self.n_blocks = len(run[0].before) if run else 0
        self.lanes: list[_Lane] = []
        self.of_gpu: dict[int, list[_Lane]] = defaultdict(list)
        self.last: dict[tuple[int, int], list[_Lane]] = {}  # by block and step: the lanes to go on from

    def put(self, done: Done, row: Row, *, receives: bool) -> int:
        """Put one event on a lane, and return its channel."""
        lane = self._lane(done, row, receives=receives)
        for other in self._in_the_way(lane, done) if receives and self.flow is not None else ():
            lane.events.remove((other, False))
            other.channel = self._lane(other.sent, other, receives=False, not_on=lane).number
        return lane.number

    def _in_the_way(self, lane: _Lane, done: Done) -> list[Row]:
        """Return the sends that were put on a lane before a receive and need not be: it would wait for their step."""
        sends = []
        for row, receives in reversed(lane.events[:-1]):
            if receives:
                break
            if row.sent is not done and not done.comes_after(row.sent) and self._waits_for_chunks(row):
                sends.append(row)
        return sends[::-1]

    def _waits_for_chunks(self, row: Row) -> bool:
        """Whether all that a send waits for comes before what was last done to its chunks."""
        assert self.flow is not None  # or nothing makes way
        known = np.zeros(self.n_blocks, dtype=np.int32)
        for part in row.parts:
            changes = (one for one in self.flow.accesses[row.sent.block.gpu, part.chunk] if one.changes)
            applied = [one.carried.applied for one in changes if one.carried.applied is not None]
            for done in applied:
                if row.sent.comes_after(done):
                    np.maximum(known, self.after[done], out=known)
        return bool((self.before[row.sent] <= known).all())

    def _lane(self, done: Done, row: Row, *, receives: bool, not_on: _Lane | None = None) -> _Lane:
        """Put one event on a lane where all comes first that comes before it for sure, or on a new one."""
        before = (self.before if receives or done.received is None else self.after)[done]
        fitting = (one for one in self._candidates(done) if one is not not_on and (one.needs <= before).all())
        lane = next(fitting, None)
        if lane is None:
            lane = _Lane(len(self.of_gpu[done.block.gpu]), np.zeros(self.n_blocks, dtype=np.int32))
            self.of_gpu[done.block.gpu].append(lane)
            self.lanes.append(lane)
        applied = [self.after[part.applied] for part in row.parts if part.applied is not None]
        needs = applied if receives else [before]
        for clock in needs:
            lane.needs = np.maximum(lane.needs, clock)
        lane.events.append((row, receives))
        key = (done.place, done.number)
        gone = {id(lane), id(not_on)}
        self.last[key] = [lane, *(other for other in self.last.get(key, []) if id(other) not in gone)]
        return lane

    def note(self, done: Done) -> None:
        """Remember for what comes later where an operation leads on from, even one that sends nothing itself."""
        key = (done.place, done.number)
        if key not in self.last:
            self.last[key] = self._candidates(done)

    def _candidates(self, done: Done) -> list[_Lane]:
        """Return the lanes that an operation could go on from: of what it waits for, then of its own block.

        To wait for a send of another block is to wait for the chunk, which needs no channel in common.
        """
        found = list(self.last.get((done.place, done.number), []))
        mine = [one for one in done.follows if one.place == done.place]
        others = [one for one in done.follows if one is not done.received and one.operation.kind != "s"]
        for one in [*(one for one in others if one not in mine), *mine]:
            found += self.last.get((one.place, one.number), [])
        return list(dict.fromkeys(found))


def _waits(run: Sequence[Done]) -> tuple[dict[Done, Clock], dict[Done, Clock]]:
    """Return for each operation what is received and added for sure before and after it; a send takes no time."""
    before: dict[Done, Clock] = {}
    after: dict[Done, Clock] = {}
    for done in run:
        before[done] = np.zeros_like(done.before)
        for one in done.follows:
            np.maximum(before[done], after[one], out=before[done])
        after[done] = before[done]
        if done.operation.kind not in {"s", "nop"}:
            after[done] = before[done].copy()
            after[done][done.place] = done.number + 1
    return before, after


# ---------------------------------------------------------------------------------------------------------- order


def make_steps(rows: list[Row], lanes: Sequence[_Lane], flow: Flow, file: str) -> list[Step]:
    """Put all rows in steps: as early as what comes before them allows, one operation a step."""
    number = {row: place for place, row in enumerate(rows)}
    row_of = {part: number[row] for row in rows for part in row.parts}
    edges = sorted({*_lane_edges(lanes, number), *_chunk_edges(flow, row_of)})
    for row, slot in zip(rows, _slots(rows, edges, file), strict=True):
        row.slot = slot
    by_slot = defaultdict(list)
    for row in rows:
        by_slot[row.slot].append(row)
    count: dict[str, int] = defaultdict(int)
    steps = []
    for slot in sorted(by_slot):
        op = by_slot[slot][0].op
        steps.append(_step(by_slot[slot], count[op]))
        count[op] += 1
    return steps


def _lane_edges(lanes: Sequence[_Lane], number: dict[Row, int]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of rows of a channel, and whether the second is in a later step: a send after a receive is.

    What follows a send may be in the same, and a receive that follows another, if that is the order in which
    a channel takes what a step owes it: by source. Of two sends only those have an order that the file gives one.
    """
    for lane in lanes:
        received: Row | None = None
        sends: list[Row] = []
        for row, receives in lane.events:
            b = number[row]
            if received is not None:
                a = number[received]
                in_order = receives and (received.sent.block.gpu, a) < (row.sent.block.gpu, b)
                yield a, b, int(not in_order)
            if receives:
                yield from ((number[send], b, 0) for send in sends if send is not row)
                received, sends = row, []
            else:
                yield from ((number[send], b, 0) for send in sends[-1:] if row.sent.comes_after(send.sent))
                sends.append(row)


def _chunk_edges(flow: Flow, row_of: dict[Carried, int]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of rows of a chunk, and whether the second is in a later step: a read after a change is.

    A change after a read may be in the same, and one after another change, if that is the order in which a
    step's transfers are applied: by source.
    """
    for accesses in flow.accesses.values():
        change: Access | None = None
        reads: list[Access] = []
        for access in accesses:
            if change is not None:
                in_order = access.changes and _by_source(change.carried, access.carried)
                yield row_of[change.carried], row_of[access.carried], int(not in_order)
            if access.changes:
                yield from ((row_of[read.carried], row_of[access.carried], 0) for read in reads)
                change, reads = access, []
            else:
                reads.append(access)


def _by_source(one: Carried, other: Carried) -> bool:
    return one.op == other.op and one.sent.block.gpu < other.sent.block.gpu


def _slots(rows: Sequence[Row], edges: Sequence[tuple[int, int, int]], file: str) -> list[int]:
    """Return the earliest step of each row; reduces in even ones, copies in odd ones."""
    n_rows = len(rows)
    n_groups, group = _circles(n_rows, [(a, b) for a, b, apart in edges if not apart])
    parity = np.array([row.op == "copy" for row in rows], dtype=np.int64)
    odd = np.zeros(n_groups, dtype=np.int64)
    odd[group] = parity
    if (odd[group] != parity).any():
        _no_order(rows[int(np.flatnonzero(odd[group] != parity)[0])], file)
    between: dict[int, list[tuple[int, int]]] = defaultdict(list)
    waits = np.zeros(n_groups, dtype=np.int64)
    for a, b, apart in edges:
        if group[a] == group[b]:
            if apart:
                _no_order(rows[b], file)
            continue
        between[int(group[a])].append((int(group[b]), apart))
        waits[group[b]] += 1
    slots = _longest(n_groups, between, waits, odd)
    if (slots < 0).any():
        _no_order(rows[int(np.flatnonzero(slots[group] < 0)[0])], file)
    return [int(slot) for slot in slots[group]]


def _circles(n_rows: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, IntArray]:
    """Return how many groups there are of rows that all come before each other, and the group of each row."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    from scipy.sparse import csr_array  # noqa: PLC0415 -- takes longer than most runs that need no file
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 -- the same

    matrix = csr_array((np.ones(len(pairs)), (first, second)), shape=(n_rows, n_rows))
    n_groups, group = connected_components(matrix, connection="strong")
    return int(n_groups), group.astype(np.int64)


def _longest(
    n_groups: int, between: dict[int, list[tuple[int, int]]], waits: IntArray, odd: IntArray
) -> IntArray:
    """Go through the groups in order; -1 for those in a circle."""
    slots, least = np.full(n_groups, -1), np.zeros(n_groups, dtype=np.int64)
    ready = np.flatnonzero(waits == 0).tolist()
    while ready:
        group = ready.pop()
        slots[group] = least[group] + (least[group] % 2 != odd[group])
        for other, apart in between.get(group, []):
            least[other] = max(least[other], slots[group] + apart)
            waits[other] -= 1
            if not waits[other]:
                ready.append(other)
    return slots


def _no_order(row: Row, file: str) -> None:
    message = f"{row.sent} and {row.received} cannot be put in order: what comes first for one comes last for the other"
    refuse(file, row.sent.operation.line, message)


def _step(rows: list[Row], number: int) -> Step:
    columns = [
        (
            row.sent.block.gpu,
            row.received.block.gpu,
            row.parts[0].chunk,
            row.channel,
            row.to_channel,
            len(row.parts),
        )
        for row in sorted(rows, key=lambda row: row.sent.block.gpu)
    ]
    src, dst, chunk, channel, to_channel, count = (frozen(column) for column in zip(*columns, strict=True))
    op = rows[0].parts[0].op
    return Step(
        PHASES[op], number, op, src, dst, chunk, channel, to_channel, None if (count == 1).all() else count
    )
