"""Rings side by side: each passes all workers in its own order, with its own chunks, on its own channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ringnet.collectives.making import ALL_GATHER, ends, frozen
from ringnet.collectives.schedule import IntArray, Op, Step


class Loops:
    """Some rings through the same workers.

    Parameters
    ----------
    orders : ndarray of int64, shape (n_loops, n_workers)
        The workers in the order in which each ring passes them; ring q works on chunks q N .. q N + N - 1.

    Notes
    -----
    In step s the worker at place p sends chunk p - s (reduce-scatter) or p + 1 - s (all-gather) of its ring,
    mod N, to the one at place p + 1. After the reduce-scatter the worker at place p has chunk p + 1 complete.
    """

    def __init__(self, orders: IntArray) -> None:
        self.n_loops, self.n_workers = orders.shape
        self._src, self._dst = frozen(orders.ravel()), frozen(np.roll(orders, -1, axis=1).ravel())
        self._channel = frozen(np.repeat(np.arange(self.n_loops), self.n_workers))
        self._place = frozen(np.tile(np.arange(self.n_workers), self.n_loops))
        self._first = frozen(self._channel * self.n_workers)
        self._owner = frozen(np.roll(orders, 1, axis=1).ravel())

    def steps(self, phases: Sequence[str]) -> Iterator[Step]:
        """Yield the steps of some phases, all rings at once."""
        for phase in phases:
            op: Op = "copy" if phase == ALL_GATHER else "reduce"
            for step in range(self.n_workers - 1):
                chunk = self._chunks(int(phase == ALL_GATHER) - step)
                yield Step(phase, step, op, self._src, self._dst, chunk, self._channel)

    def ends(self, collective: str) -> dict[str, Any]:
        """Return source and target of the schedule."""
        return ends(collective, self._owner, len(self._owner))

    def _chunks(self, ahead: int) -> IntArray:
        chunk: IntArray = (self._place + ahead) % self.n_workers + self._first
        chunk.flags.writeable = False
        return chunk
