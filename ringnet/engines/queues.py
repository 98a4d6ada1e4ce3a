"""Longest queues of links, for the `recurrence` engine, which knows each link's times of service but has no queues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringnet.engines.delays import ROUNDING
from ringnet.engines.plans import FloatArray, IntArray


class Queues:
    """Counts, for every transfer that has to wait for a link, those that wait for it when its head comes.

    The services of a link start in the order in which heads come. So those that still wait when a head comes are the
    last before it: a ring buffer of the starts of each link is enough, emptied when one need not wait.
    """

    def __init__(self, n_links: int) -> None:
        self.longest = np.zeros(n_links, dtype=np.int64)
        self._starts = np.empty((4, n_links))
        self._first = np.zeros(n_links, dtype=np.int64)
        self._end = np.zeros(n_links, dtype=np.int64)
        self._any = False

    def serve(
        self, links: IntArray, heads_s: FloatArray, starts_s: FloatArray, waits: NDArray[np.bool_]
    ) -> None:
        """Note one transfer on each of ``links``: when its head came, when its service starts, whether it waits.

        All arrays have shape (n_transfers,).
        """
        self.clear(links[~waits])
        links, heads_s, starts_s = links[waits], heads_s[waits], starts_s[waits]
        self._any = True
        self._append(links, starts_s)
        self._drop(links, heads_s)
        self.longest[links] = np.maximum(self.longest[links], self._end[links] - self._first[links])

    def clear(self, links: IntArray) -> None:
        """Note that nothing waits any more for ``links``: their last transfer was served as it came."""
        if self._any:
            self._first[links] = self._end[links]

    def _append(self, links: IntArray, starts_s: FloatArray) -> None:
        size = len(self._starts)
        if (self._end[links] - self._first[links] == size).any():
            self._grow()
            size *= 2
        self._starts[self._end[links] % size, links] = starts_s
        self._end[links] += 1

    def _drop(self, links: IntArray, heads_s: FloatArray) -> None:
        """Drop those whose service has started when the head comes; the last, which waits itself, stays."""
        while len(links):
            started = self._starts[self._first[links] % len(self._starts), links] * (1 - ROUNDING) <= heads_s
            links, heads_s = links[started], heads_s[started]
            self._first[links] += 1

    def _grow(self) -> None:
        """Double the room, each link's starts in order from the first row."""
        size, n_links = self._starts.shape
        order = (self._first + np.arange(size)[:, None]) % size
        grown = np.empty((2 * size, n_links))
        grown[:size] = np.take_along_axis(self._starts, order, axis=0)
        self._starts = grown
        self._end -= self._first
        self._first[:] = 0
