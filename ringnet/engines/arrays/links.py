"""Links of the `recurrence` engine: when each is free again, and what they have done, in whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringnet.engines.arrays.rounds import Bytes, FloatArray, Hop, IntArray, Plan
from ringnet.engines.trace import ROUNDING, Columns, LinkWaits
from ringnet.networks import Network


class Services:
    """All links of a network, first in first out.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.cut_through = network.switching == "cut-through"
        self.free_s = np.zeros(network.n_links)
        self.queued_s, self.held_s = np.zeros(network.n_links), np.zeros(network.n_links)
        self.queues = Queues(network.n_links)
        self.delays = LinkWaits()
        self._busy: dict[int, tuple[int, FloatArray]] = {}

    def serve(
        self, hop: Hop, head_s: FloatArray, tail_s: FloatArray | None, n_bytes: Bytes
    ) -> tuple[FloatArray, ...]:
        """Serve one transfer on each link of a hop.

        Parameters
        ----------
        hop : Hop
        head_s : ndarray, shape (n_rows,)
            When each transfer's head comes.
        tail_s : ndarray, shape (n_rows,), or None
            When its tail comes, for all links but the first.
        n_bytes : int or ndarray

        Returns
        -------
        start_s, end_s : ndarray, shape (n_rows,)
        """
        start_s = np.maximum(head_s, self.free_s[hop.at])
        busy_s = self.busy_s(hop, n_bytes)
        end_s = start_s + busy_s
        if tail_s is not None and self.cut_through:
            np.maximum(end_s, tail_s, out=end_s)
            self.held_s[hop.at] += (end_s - start_s) - busy_s
        self.free_s[hop.at] = end_s
        return start_s, end_s

    def note_waits(self, hop: Hop, head_s: FloatArray, start_s: FloatArray) -> bool:
        """Note which transfers of a hop had to wait for their link; return whether any had."""
        if not (start_s > head_s).any():
            self.queues.clear(hop.links)
            return False
        waits = start_s - head_s > ROUNDING * start_s
        self.queued_s[hop.at] += np.where(waits, start_s - head_s, 0.0)
        self.delays.add_rows(hop.links[waits], head_s[waits], start_s[waits])
        self.queues.serve(hop.links, head_s, start_s, waits)
        return True

    def busy_s(self, hop: Hop, n_bytes: Bytes) -> FloatArray:
        """Return how long each link of a hop takes for its bytes; remembered where all rows have as many."""
        if not isinstance(n_bytes, int):
            return n_bytes / hop.bandwidth_Bps
        if id(hop) not in self._busy or self._busy[id(hop)][0] != n_bytes:
            self._busy[id(hop)] = n_bytes, n_bytes / hop.bandwidth_Bps
        return self._busy[id(hop)][1]

    def columns(self, plans: list[Plan]) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        n_links = self.network.n_links
        transfers, n_bytes = np.zeros(n_links, dtype=np.int64), np.zeros(n_links, dtype=np.int64)
        for plan in plans:
            row_bytes = plan.row_bytes
            for sends in plan.sends:
                for hop in sends.hops:
                    rows = sends.rows if hop.within is None else sends.rows[hop.within]
                    transfers[hop.links] += plan.uses
                    n_bytes[hop.links] += row_bytes[rows]
        busy_s = n_bytes / self.network.bandwidth_Bps
        return {
            "bytes": n_bytes,
            "transfers": transfers,
            "busy_s": busy_s,
            "occupied_s": busy_s + self.held_s,
            "longest_queue": self.queues.longest,
            "queued_s": self.queued_s,
        }


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
