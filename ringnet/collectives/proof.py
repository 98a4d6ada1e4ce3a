"""Proof, before any clock starts, that a schedule does what its collective says.

First its columns: whether every number makes sense. Then what moves: sets of contributions, a whole step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import BoolArray, IntArray
from ringnet.collectives import one_owner
from ringnet.collectives.one_for_all import BadTransfer, Gap, OneForAll, root
from ringnet.collectives.schedule import EVERY_WORKER, AlikeSteps, Op, Schedule, Step, make_step, member_name
from ringnet.errors import Fault, ScheduleError, some
from ringnet.payload.buffers import conflict_free_batches

BitSets: TypeAlias = NDArray[np.unsignedinteger[Any]]

#: Bits of a word of such a set.
WORD = 64
#: Faults that are listed; the rest is counted.
SHOWN = 8
OPS = get_args(Op)
#: By collective: whether every worker contributes to each chunk, and whether every worker must end with it.
ENDS = {
    "all-gather": (False, True),
    "all-reduce": (True, True),
    "all-to-all": (False, False),
    "broadcast": (False, True),
    "reduce": (True, False),
    "reduce-scatter": (True, False),
}


def check(schedule: Schedule) -> None:
    """Prove that every worker that must hold a chunk ends with every contribution to it exactly once.

    Parameters
    ----------
    schedule : Schedule

    Raises
    ------
    ScheduleError
        Says which worker, chunk and step is wrong: a worker or chunk that there is not, a chunk that its
        sender does not hold yet, a contribution added twice, a chunk that ends incomplete, a count that
        does not hold.

    Notes
    -----
    A cell is one chunk at one worker; its value is the set of workers whose data is in it. A copy replaces a
    set, a reduce unites two that must be disjoint; a switch starts with nothing, and what it reduces first it takes as
    it is. In a schedule that looks the same from every worker (a
    ring does), one worker's cells stand for all, and their sets are workers in a row: see
    `ringnet.collectives.one_for_all`. Where nobody uses again what it has sent to be added, sets need not be kept:
    see `ringnet.collectives.one_owner`.

    That is all that can go wrong: each transfer has one sender and one receiver, so that no message is left
    over, and steps come in one order, so that no wait is for anything later than itself.

    Examples
    --------
    >>> from ringnet.collectives.rings import ring
    >>> check(ring(5))
    """
    if not schedule.proved:
        _prove(schedule)
        object.__setattr__(schedule, "proved", True)


def _prove(schedule: Schedule) -> None:
    one = OneForAll(schedule)
    check_columns(schedule, one.take)
    if one.stands_for_all:
        if one.wrong is not None:
            _raise_at(*one.wrong, schedule.n_workers)
        gaps = one.gaps()
        _raise_gaps(schedule, gaps[:SHOWN], len(gaps))
        return
    if one_owner.is_sound(schedule):
        return
    gaps, n_gaps = [], 0
    for chunks in blocks_of_chunks(schedule):
        sets = ContributionSets(schedule, chunks)
        for step in schedule.moves():
            if (wrong := sets.apply(step)) is not None:
                _raise_at(step, wrong, schedule.n_workers)
        n_more, more = sets.gaps(SHOWN)
        n_gaps, gaps = n_gaps + n_more, gaps + more
    _raise_gaps(schedule, sorted(gaps, key=lambda gap: (gap.chunk, gap.worker)), n_gaps)


def _raise_at(step: Step, wrong: BadTransfer, n_workers: int) -> NoReturn:
    refuse(f"{at(step)}: {member_name(wrong.member, n_workers)} sends chunk {wrong.chunk}, {wrong.what}")


def _raise_gaps(schedule: Schedule, gaps: list[Gap], n_gaps: int) -> None:
    """Raise a fault for each of the first few gaps, and say how many more there are; nothing if there are none."""
    if n_gaps:
        more = [Fault(f"and {n_gaps - SHOWN} more")] if n_gaps > SHOWN else []
        raise ScheduleError(*(_incomplete(schedule, gap) for gap in gaps[:SHOWN]), *more)


def _incomplete(schedule: Schedule, gap: Gap) -> Fault:
    came = [step for step in schedule.moves() if ((step.dst == gap.worker) & (step.chunk == gap.chunk)).any()]
    lacks = f"worker {gap.worker} ends chunk {gap.chunk} without the contribution of worker(s)"
    last = f"it last received the chunk in {at(came[-1])}" if came else "it never received the chunk"
    return Fault(f"{lacks} {some(gap.missing, SHOWN)}; {last}")


# What the columns say.


def check_columns(schedule: Schedule, each: Callable[[Step], None] = lambda step: None) -> None:
    """Check every number of a schedule: lengths, ranges, counts, and what its collective says of its ends.

    Parameters
    ----------
    schedule : Schedule
    each : callable, optional
        Called with each step once its numbers are known to make sense.

    Raises
    ------
    ScheduleError
        Says what is wrong, in which step, and what would be right.
    """
    _check_ends(schedule)
    n_steps = n_transfers = 0
    columns = _Columns(schedule)
    alike = _as_said(schedule.make_steps) if isinstance(schedule.make_steps, AlikeSteps) else None
    for step in schedule.steps():
        columns.check(step)
        each(step)
        n_steps += 1
        n_transfers += len(step)
        if alike is not None and not step.moves_as(next(alike, NO_STEP)):
            refuse(f"{at(step)}: it does not move as those before it, as the schedule says")
    if (n_steps, n_transfers) != (schedule.n_steps, schedule.n_transfers):
        said = f"{schedule.n_steps} steps and {schedule.n_transfers} transfers"
        refuse("the schedule does not have what it says", said, f"{n_steps} steps and {n_transfers} transfers")


def _as_said(steps: AlikeSteps) -> Iterator[Step]:
    """Yield for each step the one that it moves as, by what the schedule says of itself."""
    for first, n_alike in steps.runs():
        yield from repeat(first, n_alike)


def refuse(message: str, value: str = "", right: str = "") -> NoReturn:
    """Raise one fault."""
    raise ScheduleError(Fault(message, value=value, right=right))


def at(step: Step) -> str:
    """Name a step: ``all-gather step 3``."""
    return f"{step.phase} step {step.step}"


def _check_ends(schedule: Schedule) -> None:
    """Check that each chunk has a source and a target, and that they are those of the collective."""
    for name, workers in (("source", schedule.source), ("target", schedule.target)):
        if len(workers) != schedule.n_chunks:
            refuse(f"there is not one {name} for each chunk", str(len(workers)), str(schedule.n_chunks))
        _check_range(f"a {name}", workers, EVERY_WORKER, schedule.n_workers)
    for name, everyone in zip(("source", "target"), ENDS.get(schedule.collective, ()), strict=False):
        workers = getattr(schedule, name)
        for chunk in np.flatnonzero((workers == EVERY_WORKER) != everyone)[:1].tolist():
            what = f"the {name} of chunk {chunk} is not that of {schedule.collective}"
            refuse(what, str(workers[chunk]), f"{EVERY_WORKER}, every worker" if everyone else "one worker")


class _Columns:
    """Checks the columns of steps; what nobody can write, and steps share, is looked at once."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._limits = {
            "src": schedule.n_members,
            "dst": schedule.n_members,
            "chunk": schedule.n_chunks,
            "channel": schedule.n_channels,
            "to_channel": schedule.n_channels,
        }
        self._known: dict[str, IntArray] = {}
        self._before: Step | None = None

    def check(self, step: Step) -> None:
        """Check one step."""
        before, self._before = self._before, step
        if before is not None and step.moves_as(before) and step.chunk.base is self._known.get("chunk", self):
            return
        if step.op not in OPS:
            refuse(f"{at(step)}: an op that there is not", step.op, " or ".join(OPS))
        for name, limit in self._limits.items():
            column = step.receiving_channel if name == "to_channel" else getattr(step, name)
            if len(column) != len(step):
                refuse(f"{at(step)}: columns of unequal length", f"{name} has {len(column)}, src {len(step)}")
            whole = root(column)
            if self._known.get(name) is whole:
                continue
            if whole is None or not _is_within(whole, 0, limit):
                _check_range(f"{at(step)}: {name}", column, 0, limit)
            else:
                self._known[name] = whole
        if step.count is not None:
            _check_counts(self.schedule, step, step.count)
        if (to_itself := step.src == step.dst).any():
            member, chunk = int(step.src[to_itself][0]), step.chunk[to_itself][0]
            refuse(f"{at(step)}: {member_name(member, self.schedule.n_workers)} sends chunk {chunk} to itself")


def _check_counts(schedule: Schedule, step: Step, count: IntArray) -> None:
    if len(count) != len(step):
        refuse(f"{at(step)}: columns of unequal length", f"count has {len(count)}, src {len(step)}")
    _check_range(f"{at(step)}: a count", count, 1, schedule.n_chunks + 1)
    _check_range(f"{at(step)}: the last chunk of a transfer", step.chunk + count - 1, 0, schedule.n_chunks)


def _check_range(what: str, numbers: IntArray, first: int, limit: int) -> None:
    if not _is_within(numbers, first, limit):
        wrong = numbers[(numbers < first) | (numbers >= limit)][0]
        refuse(f"{what} that there is not", str(wrong), f"{first} to {limit - 1}")


def _is_within(numbers: IntArray, first: int, limit: int) -> bool:
    return not len(numbers) or bool(first <= numbers.min() and numbers.max() < limit)


# What moves: sets of contributions, for any schedule.


def blocks_of_chunks(schedule: Schedule) -> Iterator[IntArray]:
    """Cut the chunks into blocks that fit: those of one worker each, and those of all, apart."""
    for chunks in (
        np.flatnonzero(schedule.source == EVERY_WORKER),
        np.flatnonzero(schedule.source != EVERY_WORKER),
    ):
        if len(chunks):
            each = schedule.n_members * _n_words(schedule, chunks) * (WORD // 8)
            n_blocks = -(-len(chunks) * each // one_owner.BLOCK_BYTES)
            yield from np.array_split(chunks, min(n_blocks, len(chunks)))


def _n_words(schedule: Schedule, chunks: IntArray) -> int:
    return -(-schedule.n_workers // WORD) if schedule.source[chunks[0]] == EVERY_WORKER else 1


#: Nothing moves as this one does.
NO_STEP = make_step("", 0, 0, 0, 0)


class ContributionSets:
    """The contributions to some chunks at every worker and switch, as bits; of one worker's chunks: there or not.

    Parameters
    ----------
    schedule : Schedule
    chunks : ndarray of int64, shape (n,)
        All with every worker as their source, or none.
    """

    def __init__(self, schedule: Schedule, chunks: IntArray) -> None:
        self.schedule, self.chunks = schedule, chunks
        self.place = np.full(schedule.n_chunks, -1)
        self.place[chunks] = np.arange(len(chunks))
        shape = (schedule.n_members, len(chunks), _n_words(schedule, chunks))
        self.table: BitSets = np.zeros(shape, dtype=np.uint64)
        self.source = schedule.source[chunks]
        self.whole = self._start()
        self.cells = self.table.reshape(-1, shape[2])
        #: Whether each cell has any contribution.
        self.holds: BoolArray = self.cells[:, 0] != 0
        if self.source[0] == EVERY_WORKER:
            self.holds[: schedule.n_workers * len(chunks)] = True

    def _start(self) -> BitSets:
        """Give every worker its own contribution, and return the set of all."""
        if self.source[0] != EVERY_WORKER:
            self.table[self.source, np.arange(len(self.chunks))] = 1
            return np.ones(1, dtype=np.uint64)
        worker = np.arange(self.schedule.n_workers)
        own = np.uint64(1) << (worker % WORD).astype(np.uint64)
        self.table[worker, :, worker // WORD] = own[:, None]
        whole: BitSets = np.bitwise_or.reduceat(own, np.arange(0, len(worker), WORD))
        return whole

    def apply(self, step: Step) -> BadTransfer | None:
        """Move the sets of one step, all as they were before it; return the first transfer that cannot be."""
        column = self.place[step.chunk]
        mine = column >= 0
        src, dst, column = step.src[mine], step.dst[mine], column[mine]
        out_of, into = src * len(self.chunks) + column, dst * len(self.chunks) + column
        sent = self.cells.take(out_of, axis=0)
        found = [
            BadTransfer(int(src[k]), int(column[k]), "which it does not hold yet")
            for k in _first(~self.holds[out_of], src)
        ]
        # Each of some cells is written once if no worker receives twice or no chunk moves twice: quick to see.
        one_each = len(dst) == 0 or any(np.bincount(where).max() <= 1 for where in (dst, column, into))
        for batch in [slice(None)] if one_each else conflict_free_batches(src, into):
            if step.op == "reduce":
                found += self._reduce(src[batch], dst[batch], column[batch], into[batch], sent[batch])
            else:
                self.cells[into[batch]] = sent[batch]
            self.holds[into[batch]] = True
        wrong = min(found, key=lambda one: one.member, default=None)
        return None if wrong is None else wrong._replace(chunk=int(self.chunks[wrong.chunk]))

    def _reduce(
        self, src: IntArray, dst: IntArray, column: IntArray, into: IntArray, sent: BitSets
    ) -> Iterator[BadTransfer]:
        own = self.cells.take(into, axis=0)
        both = own & sent
        self.cells[into] = np.bitwise_or(own, sent, out=own)
        nothing: BoolArray = np.logical_not(self.holds[into]) & (dst < self.schedule.n_workers)
        for k in _first(nothing, src):
            yield BadTransfer(int(src[k]), int(column[k]), "to be reduced where there is nothing of it yet")
        if not both.any():  # which is much faster than row by row
            return
        for k in _first(np.asarray(both.any(axis=1)), src):
            worker = self._members(both[k], int(column[k]))[0]
            what = f"whose receiver already has the contribution of worker {worker}"
            yield BadTransfer(int(src[k]), int(column[k]), what)

    def gaps(self, shown: int) -> tuple[int, list[Gap]]:
        """Return how many cells end without all that they must hold, and the first few by chunk."""
        n_workers = self.schedule.n_workers
        if (self.table[:n_workers] == self.whole).all():
            return 0, []
        missing = self.whole & ~self.table[:n_workers]
        target = self.schedule.target[self.chunks]
        must = (target == EVERY_WORKER) | (target == np.arange(n_workers)[:, None])
        lacking = np.argwhere((missing.any(axis=2) & must).T).tolist()
        return len(lacking), [
            Gap(worker, int(self.chunks[place]), self._members(missing[worker, place], place))
            for place, worker in lacking[:shown]
        ]

    def _members(self, bits: BitSets, place: int) -> list[int]:
        """Return the workers of a set."""
        if self.source[place] != EVERY_WORKER:
            return [int(self.source[place])]
        return [
            word * WORD + bit for word, value in enumerate(bits.tolist()) for bit in range(WORD) if value >> bit & 1
        ]


def _first(wrong: BoolArray, src: IntArray) -> list[int]:
    """Return the row of the lowest sender that is wrong, if any is."""
    rows = np.flatnonzero(wrong)
    return [int(rows[np.argmin(src[rows])])] if len(rows) else []
