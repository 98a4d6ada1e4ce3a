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
    """One cell for each chunk, numbered from a worker's own; so are the contributors, the bits of an integer."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.n = schedule, schedule.n_workers
        self.source, self.target = (_offset(chunks) for chunks in (schedule.source, schedule.target))
        self.cells = {cell: 1 for cell in range(self.n) if self.source in (None, cell)}

    def check(self) -> None:
        """Check what worker 0 sends in each step, and what it ends with."""
        for step in self.schedule.steps():
            self._apply(step)
        everyone = (1 << self.n) - 1
        gaps = []
        for cell in range(self.n) if self.target is None else [self.target]:
            wanted = everyone if self.source is None else 1 << ((cell - self.source) % self.n)
            if missing := wanted & ~self.cells.get(cell, 0):
                gaps.append(Gap(0, cell, _bits(missing)))
        _raise_gaps(self.schedule, gaps[:SHOWN], len(gaps))

    def _apply(self, step: Step) -> None:
        """Let worker 0 send; what its receiver does, worker 0 does too."""
        distance, chunk = int(step.dst[0]), int(step.chunk[0])
        sent, place = self._turned(self.cells.get(chunk, 0), distance), (chunk - distance) % self.n
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


def _offset(holder: IntArray) -> int | None:
    """Which chunk, numbered from its own, each worker starts or ends with; None where that is every chunk."""
    return None if (holder == EVERY_WORKER).all() else int(-holder[0]) % len(holder)


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
    """Whether every worker does the same, seen from its own place."""
    around = np.arange(2 * schedule.n_workers) % schedule.n_workers
    ends = (schedule.source, schedule.target)
    if not all(_turns(chunks, around) or (chunks == EVERY_WORKER).all() for chunks in ends):
        return False
    return schedule.n_chunks == schedule.n_workers and all(
        step.count is None
        and all(_turns(column, around) for column in (step.src, step.dst, step.chunk))
        and step.src[0] == 0
        for step in schedule.steps()
    )


def _turns(column: IntArray, around: IntArray) -> bool:
    """Whether a column counts up by one around the workers."""
    n_workers = len(around) // 2
    return len(column) == n_workers and bool((column == around[int(column[0]) :][:n_workers]).all())
