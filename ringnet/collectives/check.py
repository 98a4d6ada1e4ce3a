"""Proof, before any clock starts, that a schedule does what its collective says: by sets, moved about."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ringnet.collectives.columns import at, check_columns, refuse
from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Schedule, Step
from ringnet.collectives.sets import Gap, Sets, Wrong, blocks
from ringnet.errors import Fault, ScheduleError

#: Faults that are told one by one; the rest is counted.
SHOWN = 8


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
    set, a reduce unites two that must be disjoint. In a schedule that looks the same from every worker (a
    ring does), one worker's cells stand for all: N sets instead of N squared.

    That is all that can go wrong: each transfer has one sender and one receiver, so that no message is left
    over, and steps come in one order, so that no wait is for anything later than itself.

    Examples
    --------
    >>> from ringnet.collectives.ring import ring
    >>> check(ring(5))
    """
    check_columns(schedule)
    if _same_for_all(schedule):
        _OneForAll(schedule).check()
        return
    gaps: list[Gap] = []
    n_gaps = 0
    for chunks in blocks(schedule):
        sets = Sets(schedule, chunks)
        for step in schedule.moves():
            if (wrong := sets.apply(step)) is not None:
                _raise_at(step, wrong)
        n_more, more = sets.gaps(SHOWN)
        n_gaps, gaps = n_gaps + n_more, gaps + more
    _raise_gaps(schedule, sorted(gaps, key=lambda gap: (gap.chunk, gap.worker)), n_gaps)


def _raise_at(step: Step, wrong: Wrong) -> NoReturn:
    refuse(f"{at(step)}: worker {wrong.worker} sends chunk {wrong.chunk}, {wrong.what}")


class _OneForAll:
    """Worker 0's cells, by chunk, stand for all; contributors are the bits of an integer, bit d for worker d.

    Worker w has the same in chunk c + k w, k the chunks of a worker, of contributors that are w further.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.n = schedule, schedule.n_workers
        self.each = schedule.n_chunks // schedule.n_workers
        self.cells = dict.fromkeys(_held_by_first(schedule.source), 1)

    def check(self) -> None:
        """Check what worker 0 sends in each step, and what it ends with."""
        for step in self.schedule.steps():
            self._apply(step)
        everyone = (1 << self.n) - 1
        gaps = []
        for cell in _held_by_first(self.schedule.target):
            source = int(self.schedule.source[cell])
            wanted = everyone if source == EVERY_WORKER else 1 << source
            if missing := wanted & ~self.cells.get(cell, 0):
                gaps.append(Gap(0, cell, _bits(missing)))
        _raise_gaps(self.schedule, gaps[:SHOWN], len(gaps))

    def _apply(self, step: Step) -> None:
        """Let worker 0 send; what its receiver does, worker 0 does too."""
        distance, chunk = int(step.dst[0]), int(step.chunk[0])
        sent = self._turned(self.cells.get(chunk, 0), distance)
        place = (chunk - distance * self.each) % self.schedule.n_chunks
        own = self.cells.get(place, 0)
        if not sent:
            _raise_at(step, Wrong(0, chunk, "which it does not hold yet"))
        if step.op == "reduce" and not own:
            _raise_at(step, Wrong(0, chunk, "to be reduced where there is nothing of it yet"))
        if step.op == "reduce" and own & sent:
            twice = _bits(own & sent)[0]
            what = f"whose receiver already has the contribution of worker {twice}"
            _raise_at(step, Wrong(0, chunk, what))
        self.cells[place] = own | sent if step.op == "reduce" else sent

    def _turned(self, contributors: int, turn: int) -> int:
        """Return the set, its members numbered from a worker that is ``turn`` places to the right."""
        return (contributors >> turn) | ((contributors << (self.n - turn)) & ((1 << self.n) - 1))


def _held_by_first(holder: IntArray) -> list[int]:
    """Return the chunks that worker 0 starts or ends with."""
    chunks: list[int] = np.flatnonzero((holder == EVERY_WORKER) | (holder == 0)).tolist()
    return chunks


def _raise_gaps(schedule: Schedule, gaps: list[Gap], n_gaps: int) -> None:
    """Raise what is not whole, if anything is: the first few, and how many more."""
    if n_gaps:
        more = [Fault(f"and {n_gaps - SHOWN} more")] if n_gaps > SHOWN else []
        raise ScheduleError(*(_incomplete(schedule, gap) for gap in gaps[:SHOWN]), *more)


def _incomplete(schedule: Schedule, gap: Gap) -> Fault:
    came = [step for step in schedule.moves() if ((step.dst == gap.worker) & (step.chunk == gap.chunk)).any()]
    lacks = f"worker {gap.worker} ends chunk {gap.chunk} without the contribution of worker(s)"
    last = f"it last received the chunk in {at(came[-1])}" if came else "it never received the chunk"
    shown = ", ".join(map(str, gap.missing[:SHOWN])) + (", ..." if len(gap.missing) > SHOWN else "")
    return Fault(f"{lacks} {shown}; {last}")


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _same_for_all(schedule: Schedule) -> bool:
    """Whether every worker does the same, seen from its own place: with as many chunks further as it has itself."""
    n_workers = schedule.n_workers
    each, rest = divmod(schedule.n_chunks, n_workers)
    if (
        rest
        or not each
        or not all(_owned(ends, each, n_workers) for ends in (schedule.source, schedule.target))
    ):
        return False
    worker = np.arange(n_workers)
    return all(
        step.count is None
        and len(step) == n_workers
        and bool((step.src == worker).all())
        and _turns(step.dst, 1, n_workers)
        and _turns(step.chunk, each, schedule.n_chunks)
        for step in schedule.steps()
    )


def _owned(holder: IntArray, each: int, n_workers: int) -> bool:
    """Whether all chunks are every worker's, or each worker has those of the one before, so many further on."""
    everyone = bool((holder == EVERY_WORKER).all())
    return everyone or bool((np.roll(holder, -each) == (holder + 1) % n_workers).all())


def _turns(column: IntArray, by: int, modulus: int) -> bool:
    """Whether a column counts up by so many around the workers."""
    around = (int(column[0]) + by * np.arange(len(column))) % modulus
    return bool((column == around).all())
