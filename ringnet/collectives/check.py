"""Proof, before any clock starts, that a schedule does what its collective says: by sets, moved about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from ringnet.collectives.columns import at, check_columns, refuse
from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Schedule, Step
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
    A cell is one chunk at one worker; its value is the set of workers whose data is in it, held as the bits
    of an integer. A copy replaces a set, a reduce unites two that must be disjoint. In a schedule that looks
    the same from every worker (a ring does), one worker's cells stand for all: N sets instead of N squared.

    Examples
    --------
    >>> from ringnet.collectives.ring import ring
    >>> check(ring(5))
    """
    check_columns(schedule)
    view: _View = _OneForAll(schedule) if _same_for_all(schedule) else _Everyone(schedule)
    cells = view.start()
    for step in schedule.moves():
        _apply(cells, step, view)
    _raise_gaps(schedule, list(view.gaps(cells)))


class _Move(NamedTuple):
    """A transfer as its cells see it; ``turn`` numbers the contributors anew, as the receiver counts them."""

    src: int
    dst: int
    turn: int
    worker: int
    chunk: int


class _Gap(NamedTuple):
    """A chunk that a worker must hold at the end, and whose contributions it lacks: the bits of a set."""

    worker: int
    chunk: int
    missing: int


class _View(Protocol):
    """Which cells there are, and how a step moves sets among them."""

    def start(self) -> dict[int, int]: ...
    def moves(self, step: Step) -> Iterator[_Move]: ...
    def turned(self, contributors: int, turn: int) -> int: ...
    def gaps(self, cells: dict[int, int]) -> Iterator[_Gap]: ...


def _apply(cells: dict[int, int], step: Step, view: _View) -> None:
    """Move the sets of one step: all are read before any is written, since a step is simultaneous."""
    moves = sorted(view.moves(step), key=lambda move: move.worker)
    sent = [view.turned(cells.get(move.src, 0), move.turn) for move in moves]
    for move, contributors in zip(moves, sent, strict=True):
        own = cells.get(move.dst, 0)
        if not contributors:
            _raise_at(step, move, "which it does not hold yet")
        if step.op == "reduce" and not own:
            _raise_at(step, move, "to be reduced where there is nothing of it yet")
        if step.op == "reduce" and own & contributors:
            twice = next(_bits(own & contributors))
            _raise_at(step, move, f"whose receiver already has the contribution of worker {twice}")
        cells[move.dst] = own | contributors if step.op == "reduce" else contributors


def _raise_at(step: Step, move: _Move, what: str) -> NoReturn:
    refuse(f"{at(step)}: worker {move.worker} sends chunk {move.chunk}, {what}")


class _Everyone:
    """One cell for each worker and chunk."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.n_chunks = schedule.n_chunks

    def start(self) -> dict[int, int]:
        """Every worker holds its own contribution to the chunks that start with it."""
        return {
            worker * self.n_chunks + chunk: 1 << worker
            for chunk in range(self.n_chunks)
            for worker in self.schedule.contributors(chunk)
        }

    def moves(self, step: Step) -> Iterator[_Move]:
        """One move for each transfer."""
        for src, dst, chunk in zip(step.src.tolist(), step.dst.tolist(), step.chunk.tolist(), strict=True):
            yield _Move(src * self.n_chunks + chunk, dst * self.n_chunks + chunk, 0, src, chunk)

    def turned(self, contributors: int, turn: int) -> int:
        """Return the set as it is."""
        return contributors

    def gaps(self, cells: dict[int, int]) -> Iterator[_Gap]:
        """Yield each cell that ends without all that it must hold."""
        for chunk in range(self.n_chunks):
            wanted = sum(1 << worker for worker in self.schedule.contributors(chunk))
            for worker in self.schedule.holders(chunk):
                if missing := wanted & ~cells.get(worker * self.n_chunks + chunk, 0):
                    yield _Gap(worker, chunk, missing)


class _OneForAll:
    """One cell for each chunk, numbered from a worker's own; so are the contributors."""

    def __init__(self, schedule: Schedule) -> None:
        self.n = schedule.n_workers
        self.source, self.target = (_offset(chunks) for chunks in (schedule.source, schedule.target))

    def start(self) -> dict[int, int]:
        """Worker 0 holds its own contribution, the first bit."""
        return {cell: 1 for cell in range(self.n) if self.source in (None, cell)}

    def moves(self, step: Step) -> Iterator[_Move]:
        """Worker 0 sends; what its receiver does, worker 0 does too."""
        distance, chunk = int(step.dst[0]), int(step.chunk[0])
        yield _Move(chunk, (chunk - distance) % self.n, distance, 0, chunk)

    def turned(self, contributors: int, turn: int) -> int:
        """Return the set, its members numbered from a worker that is ``turn`` places to the right."""
        return (contributors >> turn) | ((contributors << (self.n - turn)) & ((1 << self.n) - 1))

    def gaps(self, cells: dict[int, int]) -> Iterator[_Gap]:
        """Yield each chunk that worker 0 ends without all that it must hold."""
        everyone = (1 << self.n) - 1
        for cell in range(self.n) if self.target is None else [self.target]:
            wanted = everyone if self.source is None else 1 << ((cell - self.source) % self.n)
            if missing := wanted & ~cells.get(cell, 0):
                yield _Gap(0, cell, missing)


def _offset(holder: IntArray) -> int | None:
    """Which chunk, numbered from its own, each worker starts or ends with; None where that is every chunk."""
    return None if (holder == EVERY_WORKER).all() else int(-holder[0]) % len(holder)


def _raise_gaps(schedule: Schedule, gaps: list[_Gap]) -> None:
    """Raise what is not whole, if anything is: the first few, and how many more."""
    if gaps:
        more = [Fault(f"and {len(gaps) - SHOWN} more")] if len(gaps) > SHOWN else []
        raise ScheduleError(*(_incomplete(schedule, gap) for gap in gaps[:SHOWN]), *more)


def _incomplete(schedule: Schedule, gap: _Gap) -> Fault:
    came = [step for step in schedule.moves() if ((step.dst == gap.worker) & (step.chunk == gap.chunk)).any()]
    lacks = f"worker {gap.worker} ends chunk {gap.chunk} without the contribution of worker(s)"
    last = f"it last received the chunk in {at(came[-1])}" if came else "it never received the chunk"
    return Fault(f"{lacks} {_named(gap.missing)}; {last}")


def _named(workers: int) -> str:
    numbers = list(_bits(workers))
    return ", ".join(map(str, numbers[:SHOWN])) + (", ..." if len(numbers) > SHOWN else "")


def _bits(mask: int) -> Iterator[int]:
    return (place for place in range(mask.bit_length()) if mask >> place & 1)


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
