"""Links of the `recurrence` engine: when each is free again, and what they have done, in whole arrays."""

from __future__ import annotations

import numpy as np

from ringnet.engines.delays import ROUNDING, Delays
from ringnet.engines.plans import Bytes, FloatArray, Hop, Plan
from ringnet.engines.queues import Queues
from ringnet.engines.trace import Columns
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
        self.delays = Delays()
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
