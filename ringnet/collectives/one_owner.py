"""The proof where each contribution is with one owner at a time: numbers of contributions stand for sets of them.

In most schedules whoever sends what is to be added does not use it again: then it has changed its owner, and nobody can
add it twice. A chunk to which N workers contribute, and that has N contributions of different owners, has them all.
"""

from __future__ import annotations

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import EVERY_WORKER, Schedule, Step

#: Bytes of what a proof keeps at a time, of some chunks at all workers.
BLOCK_BYTES = 32 << 20


def is_sound(schedule: Schedule) -> bool:
    """Whether every worker ends with every contribution once, as far as owners say: if not, it may all the same.

    Parameters
    ----------
    schedule : Schedule
        Whose columns make sense.
    """
    if schedule.n_switches:  # which add to what they have sent on already, if they have
        return False
    n_chunks = schedule.n_chunks
    n_blocks = min(-(-schedule.n_workers * n_chunks * Owners.CELL.itemsize // BLOCK_BYTES), n_chunks)
    return all(Owners(schedule, chunks).prove() for chunks in np.array_split(np.arange(n_chunks), n_blocks))


class Owners:
    """How many contributions to some chunks each worker has: above zero its own, below zero copies of so many.

    Zero is nothing, or what the worker has given away.

    Parameters
    ----------
    schedule : Schedule
    chunks : ndarray of int64, shape (n,)
        In a row.
    """

    CELL = np.dtype(np.int32)

    def __init__(self, schedule: Schedule, chunks: IntArray) -> None:
        self.schedule, self.first, self.n = schedule, int(chunks[0]), len(chunks)
        self.source, self.target = schedule.source[chunks], schedule.target[chunks]
        everybody = np.arange(schedule.n_workers)[:, None]
        self.held = ((self.source == EVERY_WORKER) | (self.source == everybody)).astype(self.CELL).ravel()

    def prove(self) -> bool:
        """Go through all steps; return whether each chunk is whole then wherever it must be."""
        if not all(map(self.apply, self.schedule.moves())):
            return False
        whole = np.where(self.source == EVERY_WORKER, self.schedule.n_workers, 1)
        must_hold = (self.target == EVERY_WORKER) | (self.target == np.arange(self.schedule.n_workers)[:, None])
        return bool(((np.abs(self.held.reshape(-1, self.n)) == whole) | ~must_hold).all())

    def apply(self, step: Step) -> bool:
        """Let the contributions of one step change their owners; return whether they can."""
        src, dst, column = step.src, step.dst, step.chunk - self.first
        if self.n < self.schedule.n_chunks:
            mine = (column >= 0) & (column < self.n)
            src, dst, column = src[mine], dst[mine], column[mine]
        out_of, into = src * self.n + column, dst * self.n + column
        sent = self.held[out_of]
        return self._reduce(out_of, into, sent) if step.op == "reduce" else self._copy(into, sent)

    def _copy(self, into: IntArray, sent: IntArray) -> bool:
        copies = -np.abs(sent)
        self.held[into] = copies
        return bool(copies.all() and (self.held[into] == copies).all())

    def _reduce(self, out_of: IntArray, into: IntArray, sent: IntArray) -> bool:
        own = self.held[into]
        if sent.min(initial=1) <= 0 or own.min(initial=1) <= 0:
            return False
        np.subtract.at(self.held, out_of, sent)
        if self.held[out_of].any():  # given away twice
            return False
        gave = self.held[into] == 0
        np.add.at(self.held, into, sent)
        if gave.any():
            # Two that exchange have the same then: one of them owns it, the other has a copy.
            one, other = out_of[gave], into[gave]
            self.held[other] = np.where(one < other, 1, -1) * (own + sent)[gave]
            there, back = np.lexsort((other, one)), np.lexsort((one, other))
            return bool((one[there] == other[back]).all() and (other[there] == one[back]).all())
        return True
