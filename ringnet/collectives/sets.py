"""Sets of contributions for every worker and chunk, moved about a whole step at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Schedule, Step
from ringnet.collectives.turns import split_turns

Bits: TypeAlias = NDArray[np.unsignedinteger[Any]]
Flags: TypeAlias = NDArray[np.bool_]

#: Bytes of the sets that are looked at together: some chunks of all workers.
BLOCK_BYTES = 32 << 20
WORD = 64


class Wrong(NamedTuple):
    """A transfer that cannot be: who sends which chunk, and what is wrong with that."""

    worker: int
    chunk: int
    what: str


class Gap(NamedTuple):
    """A chunk that a worker must hold at the end, and the workers whose contributions it lacks."""

    worker: int
    chunk: int
    missing: list[int]


def blocks(schedule: Schedule) -> Iterator[IntArray]:
    """Cut the chunks into blocks that fit: those of one worker each, and those of all, apart."""
    for chunks in (
        np.flatnonzero(schedule.source == EVERY_WORKER),
        np.flatnonzero(schedule.source != EVERY_WORKER),
    ):
        if len(chunks):
            each = schedule.n_workers * _n_words(schedule, chunks) * (WORD // 8)
            n_blocks = -(-len(chunks) * each // BLOCK_BYTES)
            yield from np.array_split(chunks, min(n_blocks, len(chunks)))


def _n_words(schedule: Schedule, chunks: IntArray) -> int:
    return -(-schedule.n_workers // WORD) if schedule.source[chunks[0]] == EVERY_WORKER else 1


class Sets:
    """The sets of some chunks, as bits; for chunks that start at one worker a single bit: whether it is there.

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
        shape = (schedule.n_workers, len(chunks), _n_words(schedule, chunks))
        self.table: Bits = np.zeros(shape, dtype=np.uint64)
        self.source = schedule.source[chunks]
        self.whole = self._start()
        self.cells = self.table.reshape(-1, shape[2])

    def _start(self) -> Bits:
        """Give every worker its own contribution, and return the set of all."""
        if self.source[0] != EVERY_WORKER:
            self.table[self.source, np.arange(len(self.chunks))] = 1
            return np.ones(1, dtype=np.uint64)
        worker = np.arange(self.schedule.n_workers)
        own = np.zeros((len(worker), self.table.shape[2]), dtype=np.uint64)
        own[worker, worker // WORD] = np.uint64(1) << (worker % WORD).astype(np.uint64)
        self.table[:] = own[:, None]
        whole: Bits = np.bitwise_or.reduce(own)
        return whole

    def apply(self, step: Step) -> Wrong | None:
        """Move the sets of one step, all as they were before it; return the first transfer that cannot be."""
        column = self.place[step.chunk]
        mine = column >= 0
        src, dst, column = step.src[mine], step.dst[mine], column[mine]
        sent = self.cells[src * len(self.chunks) + column]
        into = dst * len(self.chunks) + column
        found = [
            Wrong(int(src[k]), int(column[k]), "which it does not hold yet")
            for k in _first(~sent.any(axis=1), src)
        ]
        one_each = len(dst) == 0 or np.bincount(dst).max() <= 1
        for turn in [np.arange(len(src))] if one_each else split_turns(src, into):
            if step.op == "reduce":
                found += self._reduce(src[turn], column[turn], into[turn], sent[turn])
            else:
                self.cells[into[turn]] = sent[turn]
        wrong = min(found, key=lambda one: one.worker, default=None)
        return None if wrong is None else wrong._replace(chunk=int(self.chunks[wrong.chunk]))

    def _reduce(self, src: IntArray, column: IntArray, into: IntArray, sent: Bits) -> Iterator[Wrong]:
        own = self.cells[into]
        both = own & sent
        self.cells[into] = own | sent
        nothing: Flags = np.logical_not(own.any(axis=1))
        twice: Flags = np.asarray(both.any(axis=1))
        for k in _first(nothing, src):
            yield Wrong(int(src[k]), int(column[k]), "to be reduced where there is nothing of it yet")
        for k in _first(twice, src):
            worker = self._members(both[k], int(column[k]))[0]
            what = f"whose receiver already has the contribution of worker {worker}"
            yield Wrong(int(src[k]), int(column[k]), what)

    def gaps(self, shown: int) -> tuple[int, list[Gap]]:
        """Return how many cells end without all that they must hold, and the first few by chunk."""
        missing = self.whole & ~self.table
        target = self.schedule.target[self.chunks]
        must = (target == EVERY_WORKER) | (target == np.arange(len(self.table))[:, None])
        lacking = np.argwhere((missing.any(axis=2) & must).T).tolist()
        return len(lacking), [
            Gap(worker, int(self.chunks[place]), self._members(missing[worker, place], place))
            for place, worker in lacking[:shown]
        ]

    def _members(self, bits: Bits, place: int) -> list[int]:
        """Return the workers of a set."""
        if self.source[place] != EVERY_WORKER:
            return [int(self.source[place])]
        return [
            word * WORD + bit
            for word, value in enumerate(bits.tolist())
            for bit in range(WORD)
            if value >> bit & 1
        ]


def _first(wrong: Flags, src: IntArray) -> list[int]:
    """Return the row of the lowest sender that is wrong, if any is."""
    rows = np.flatnonzero(wrong)
    return [int(rows[np.argmin(src[rows])])] if len(rows) else []
