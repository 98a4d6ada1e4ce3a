"""Proof, before any clock starts, that a schedule does what its collective says: sets of contributions, moved about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

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
        Says which worker, chunk and step is wrong: a worker or chunk that there is not, a chunk that its sender does
        not hold yet, a contribution added twice, a chunk that ends incomplete, a count that does not hold.

    Notes
    -----
    A cell is one chunk at one worker; its value is the set of workers whose data is in it, held as the bits of an
    integer. A copy replaces a set, a reduce unites two that must be disjoint. In a schedule that looks the same from
    every worker (a ring does), one worker's cells stand for all: N sets instead of N squared.

    Examples
    --------
    >>> from ringnet.collectives.ring import ring
    >>> check(ring(5))
    """
    same_for_all = _check_columns(schedule)
    view: _View = _OneForAll(schedule) if same_for_all else _Everyone(schedule)
    cells = view.start()
    for step in schedule.steps():
        _apply(cells, step, view)
    _raise(view.left_over(cells))


class _Move(NamedTuple):
    """A transfer as its cells see it; ``turn`` numbers the contributors anew, as the receiver counts them."""

    src: int
    dst: int
    turn: int
    worker: int
    chunk: int


class _View(Protocol):
    """Which cells there are, and how a step moves sets among them."""

    def start(self) -> dict[int, int]: ...
    def moves(self, step: Step) -> Iterator[_Move]: ...
    def turned(self, contributors: int, turn: int) -> int: ...
    def left_over(self, cells: dict[int, int]) -> Iterator[Fault]: ...


def _apply(cells: dict[int, int], step: Step, view: _View) -> None:
    """Move the sets of one step: all are read before any is written, since a step is simultaneous."""
    moves = sorted(view.moves(step), key=lambda move: move.worker)
    sent = [view.turned(cells.get(move.src, 0), move.turn) for move in moves]
    for move, contributors in zip(moves, sent, strict=True):
        own = cells.get(move.dst, 0)
        if not contributors:
            _raise([_fault(step, move, "sends a chunk that it does not hold yet")])
        if step.op == "reduce" and own & contributors:
            twice = next(_bits(own & contributors))
            _raise([_fault(step, move, f"sends a sum whose receiver already has the contribution of worker {twice}")])
        cells[move.dst] = own | contributors if step.op == "reduce" else contributors


def _fault(step: Step, move: _Move, what: str) -> Fault:
    return Fault(f"{step.phase} step {step.step}: worker {move.worker} {what}", value=f"chunk {move.chunk}")


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

    def turned(self, contributors: int, turn: int) -> int:  # noqa: ARG002 -- contributors keep their numbers here
        """Return the set as it is."""
        return contributors

    def left_over(self, cells: dict[int, int]) -> Iterator[Fault]:
        """Yield a fault for each cell that ends without exactly what it must hold."""
        for chunk in range(self.n_chunks):
            wanted = sum(1 << worker for worker in self.schedule.contributors(chunk))
            for worker in self.schedule.holders(chunk):
                got = cells.get(worker * self.n_chunks + chunk, 0)
                if got != wanted:
                    yield _incomplete(worker, chunk, wanted & ~got, got & ~wanted)


class _OneForAll:
    """One cell for each chunk, numbered from a worker's own; contributors are numbered from the worker too."""

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
        """Number the contributors from a worker that is ``turn`` places to the right."""
        return (contributors >> turn) | ((contributors << (self.n - turn)) & ((1 << self.n) - 1))

    def left_over(self, cells: dict[int, int]) -> Iterator[Fault]:
        """Yield a fault for each chunk that worker 0 ends without exactly what it must hold."""
        everyone = (1 << self.n) - 1
        for cell in range(self.n) if self.target is None else [self.target]:
            wanted = everyone if self.source is None else 1 << ((cell - self.source) % self.n)
            got = cells.get(cell, 0)
            if got != wanted:
                yield _incomplete(0, cell, wanted & ~got, got & ~wanted)


def _offset(holder: IntArray) -> int | None:
    """Which chunk, numbered from its own, each worker starts with or must hold; None where that is every chunk."""
    return None if (holder == EVERY_WORKER).all() else int(-holder[0]) % len(holder)


def _incomplete(worker: int, chunk: int, missing: int, wrong: int) -> Fault:
    lacks = f"without the contribution of worker(s) {_named(missing)}" if missing else ""
    excess = f"with data of worker(s) {_named(wrong)} that does not belong there" if wrong else ""
    return Fault(f"worker {worker} ends {' and '.join(filter(None, (lacks, excess)))}", value=f"chunk {chunk}")


def _named(workers: int) -> str:
    numbers = list(_bits(workers))
    return ", ".join(map(str, numbers[:SHOWN])) + (", ..." if len(numbers) > SHOWN else "")


def _bits(mask: int) -> Iterator[int]:
    return (place for place in range(mask.bit_length()) if mask >> place & 1)


def _check_columns(schedule: Schedule) -> bool:
    """Check that the columns make sense, and say whether every worker does the same, seen from its own place."""
    around = np.arange(2 * schedule.n_workers) % schedule.n_workers
    same = schedule.n_chunks == schedule.n_workers and all(
        _turns(chunks, around) or (chunks == EVERY_WORKER).all() for chunks in (schedule.source, schedule.target)
    )
    n_steps = n_transfers = 0
    for step in schedule.steps():
        _check_step(schedule, step)
        same = same and all(_turns(column, around) for column in (step.src, step.dst, step.chunk)) and step.src[0] == 0
        n_steps += 1
        n_transfers += len(step)
    if (n_steps, n_transfers) != (schedule.n_steps, schedule.n_transfers):
        said = f"{schedule.n_steps} steps and {schedule.n_transfers} transfers"
        _raise([Fault(f"the schedule says {said}", value=f"{n_steps} steps and {n_transfers} transfers")])
    return same


def _turns(column: IntArray, around: IntArray) -> bool:
    """Whether a column counts up by one around the workers."""
    n_workers = len(around) // 2
    return len(column) == n_workers and bool((column == around[int(column[0]) :][:n_workers]).all())


def _check_step(schedule: Schedule, step: Step) -> None:
    limits = {
        "src": schedule.n_workers,
        "dst": schedule.n_workers,
        "chunk": schedule.n_chunks,
        "channel": schedule.n_channels,
    }
    where = f"{step.phase} step {step.step}"
    for name, limit in limits.items():
        column = getattr(step, name)
        if len(column) != len(step):
            _raise([Fault(f"{where}: columns of unequal length", value=f"{name} has {len(column)}, src {len(step)}")])
        if len(column) and not (0 <= column.min() and column.max() < limit):
            wrong = column[(column < 0) | (column >= limit)][0]
            _raise([Fault(f"{where}: {name} that there is not", value=str(wrong), right=f"0 to {limit - 1}")])
    if (to_itself := step.src == step.dst).any():
        _raise([Fault(f"{where}: worker {step.src[to_itself][0]} sends to itself")])


def _raise(faults: Iterator[Fault] | list[Fault]) -> None:
    """Raise what is wrong, if anything is: the first few, and how many more."""
    found = list(faults)
    if not found:
        return
    more = [Fault(f"and {len(found) - SHOWN} more")] if len(found) > SHOWN else []
    raise ScheduleError(*found[:SHOWN], *more)
