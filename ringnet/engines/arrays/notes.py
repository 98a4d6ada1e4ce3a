"""What is written down of a run of one size: what paths are made of, who waited for which link, rows of transfers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.engines.arrays.rounds import Hop, Index
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import OWN_QUEUEING, LinkWaits, path_columns

#: Seconds by part, one entry per actor or per row of a step.
Parts: TypeAlias = dict[str, FloatArray]


class Paths:
    """Seconds of the path that leads to each actor, by part.

    Only what can be more than zero in a run is kept, and bandwidth not at all: it is what the other parts leave.

    Parameters
    ----------
    n_actors : int
    """

    def __init__(self, n_actors: int) -> None:
        self.n_actors = n_actors
        self.parts: Parts = {}

    def keep(self, part: str) -> FloatArray:
        """Return a part, which is kept from now on."""
        return self.parts.setdefault(part, np.zeros(self.n_actors))

    def leave(self, actors: Index, *, copy: bool) -> Parts:
        """Return the paths of some actors; views, unless ``copy``, where ``actors`` is a slice."""
        if copy and isinstance(actors, slice):
            return {part: seconds[actors].copy() for part, seconds in self.parts.items()}
        return {part: seconds[actors] for part, seconds in self.parts.items()}

    def arrive(self, actors: Index, came: BoolArray, arriving: Parts) -> None:
        """Where ``came``, let the paths of ``actors`` go on from those that arrive."""
        for part, arrived in arriving.items():
            kept = self.keep(part)
            if isinstance(actors, slice):
                np.copyto(kept[actors], arrived, where=came)
            else:
                kept[actors[came]] = arrived[came]

    def columns(self, actors: IntArray, elapsed_s: FloatArray) -> Parts:
        """Return every part of the paths of ``actors``, which took ``elapsed_s`` in all."""
        parts = {part: seconds[actors] for part, seconds in self.parts.items()}
        if "queueing" in parts:  # here each link carries the transfers of one sender
            parts[OWN_QUEUEING] = parts["queueing"]
        return path_columns(parts, elapsed_s)


class LinkNotes:
    """What came of each link that is used: who waited for it, how long, and how long others upstream held it."""

    def __init__(self, links: IntArray) -> None:
        self.links = links
        self.queued_s, self.held_s = np.zeros(len(links)), np.zeros(len(links))
        self.queues = QueueLengths(len(links))
        self.waits = LinkWaits()

    def wait(self, hop: Hop, later: BoolArray | None, head_s: FloatArray, start_s: FloatArray) -> None:
        """Note which transfers of a hop had to wait for their link: of those that started ``later`` than they came."""
        if later is None:
            self.queues.clear(hop.at)
            return
        waits = start_s - head_s > ROUNDING * start_s
        self.queued_s[hop.at] += np.where(waits, start_s - head_s, 0.0)
        self.waits.add_rows(hop.links[waits], head_s[waits], start_s[waits])
        self.queues.serve(np.arange(len(self.links))[hop.at], head_s, start_s, waits)


class QueueLengths:
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

    def serve(self, links: IntArray, heads_s: FloatArray, starts_s: FloatArray, waits: BoolArray) -> None:
        """Note one transfer on each of ``links``: when its head came, when its service starts, whether it waits.

        All arrays have shape (n_transfers,).
        """
        self.clear(links[~waits])
        links, heads_s, starts_s = links[waits], heads_s[waits], starts_s[waits]
        self._any = True
        self._append(links, starts_s)
        self._drop(links, heads_s)
        self.longest[links] = np.maximum(self.longest[links], self._end[links] - self._first[links])

    def clear(self, links: Index) -> None:
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
