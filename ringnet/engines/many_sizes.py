"""The recurrence over many message sizes at once: the times of one schedule, an array entry for each size.

What a comparison asks is when a run ends, for forty sizes of the same schedule. The plans of the steps are the same for
all of them, so that every array of the `recurrence` engine gets a second axis. The sums and maxima are the same in the
same order, and so are the times, to the last bit; rows, paths and queues, which nobody asks for, are left out.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.exactness import chunks_are_shared
from ringnet.engines.plans import Index, Plan, Planner, Receives, Sends
from ringnet.engines.trace import Workers
from ringnet.networks import Network

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

#: Numbers of links times sizes that are held at once; more sizes are done one block after another.
MOST_HELD = 1 << 23


class Times(NamedTuple):
    """What came of each size: when the last worker ended, and what each link carried.

    Parameters
    ----------
    makespan_s : ndarray of float64, shape (n_sizes,)
    busiest_link : ndarray of int64, shape (n_sizes,)
        The link that was busy longest; the first of equals.
    busiest_bytes : ndarray of int64, shape (n_sizes,)
        The bytes that crossed it.
    """

    makespan_s: FloatArray
    busiest_link: IntArray
    busiest_bytes: IntArray


def why_not_at_once(schedule: Schedule) -> str | None:
    """Return why the sizes of a schedule for which the recurrence is exact must be run one by one; None if not so."""
    return "several channels share chunks" if chunks_are_shared(schedule) else None


def run_sizes(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    planner: Planner | None = None,
) -> Times:
    """Run a schedule on a network once for each of many sizes.

    Parameters
    ----------
    schedule : Schedule
        The recurrence is exact for it, and `why_not_at_once` has nothing against it.
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_sizes, n_chunks)
        Bytes that each chunk is charged for, a row for each size.
    planner : Planner, optional
        One that may have plans already.
    """
    planner = planner or Planner(schedule, network)
    at_once = max(1, MOST_HELD // max(network.n_links, schedule.n_workers * schedule.n_channels))
    blocks = [chunk_bytes[first : first + at_once] for first in range(0, len(chunk_bytes), at_once)]
    found = [_Sizes(schedule, network, workers, block, planner).run() for block in blocks]
    return Times(*map(np.concatenate, zip(*found, strict=True)))


class _Sizes:
    """When each lane is ready for its next step, and each link free again, for all sizes; the last axis is sizes."""

    def __init__(
        self, schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, planner: Planner
    ) -> None:
        self.schedule, self.network, self.planner = schedule, network, planner
        self.n_sizes = len(chunk_bytes)
        self.chunk_bytes = np.ascontiguousarray(chunk_bytes.T)
        self.before = np.concatenate(
            (np.zeros((1, self.n_sizes), np.int64), np.cumsum(self.chunk_bytes, axis=0))
        )
        self.cut_through = network.switching == "cut-through"
        self.rendezvous = workers.sends == "rendezvous"
        each = np.repeat(np.arange(schedule.n_workers), schedule.n_channels)
        self.start_s = float(workers.start_s.min())
        self.ready_s = np.repeat(workers.start_s[each][:, None], self.n_sizes, axis=1)
        self.send_s, self.recv_s = (
            workers.send_overhead_s[each][:, None],
            workers.recv_overhead_s[each][:, None],
        )
        self.reduce_Bps = workers.reduce_Bps[each][:, None]
        self.send_costs, self.recv_costs = bool(self.send_s.any()), bool(self.recv_s.any())
        self.reduce_costs = bool(np.isfinite(self.reduce_Bps).any())
        self.free_s = np.zeros((network.n_links, self.n_sizes))
        self.link_bytes = np.zeros((network.n_links, self.n_sizes), dtype=np.int64)

    def run(self) -> Times:
        for step in self.schedule.steps():
            self._step(self.planner.plan(step), step)
        busy_s = self.link_bytes / self.network.bandwidth_Bps[:, None]
        busiest = busy_s.argmax(axis=0) if len(busy_s) else np.zeros(self.n_sizes, dtype=np.int64)
        n_bytes = self.link_bytes[busiest, np.arange(self.n_sizes)] if len(busy_s) else busiest
        return Times(self.ready_s.max(axis=0) - self.start_s, busiest, n_bytes)

    def _step(self, plan: Plan, step: Step) -> None:
        n_bytes = self._bytes(step)
        entered_s = self.ready_s.copy() if self.rendezvous else None
        arrived_s = np.empty((len(step), self.n_sizes))
        for sends in plan.sends:
            rows = _as_index(sends.rows, len(step))
            arrived_s[rows] = self._send(sends, n_bytes[rows], entered_s)
        reduces = step.op == "reduce" and self.reduce_costs
        for receives in plan.receives:
            self._receive(receives, arrived_s, n_bytes if reduces else None)
        for sends in plan.sends if self.rendezvous else ():
            self.ready_s[sends.at] = np.maximum(self.ready_s[sends.at], arrived_s[sends.rows])

    def _bytes(self, step: Step) -> IntArray:
        if step.count is None:
            return self.chunk_bytes[step.chunk]
        carried: IntArray = self.before[step.chunk + step.count] - self.before[step.chunk]
        return carried

    def _send(self, sends: Sends, n_bytes: IntArray, entered_s: FloatArray | None) -> FloatArray:
        """Post one round of sends and let the links serve it; return when each arrives."""
        if self.send_costs:
            self.ready_s[sends.at] += self.send_s[sends.at]
        head_s = self.ready_s[sends.at]
        if entered_s is not None:
            head_s = np.maximum(head_s, entered_s[sends.receivers])
        tail_s = head_s
        for place, hop in enumerate(sends.hops):
            rows = slice(None) if hop.within is None else hop.within
            carried, latency_s = n_bytes[rows], hop.latency_s[:, None]
            start_s = np.maximum(head_s[rows], self.free_s[hop.at])
            end_s = carried / hop.bandwidth_Bps[:, None]
            end_s += start_s
            if place and self.cut_through:
                np.maximum(end_s, tail_s[rows], out=end_s)
            self.free_s[hop.at] = end_s
            self.link_bytes[hop.at] += carried
            tail_s = _put(tail_s, hop.within, end_s + latency_s)
            goes_on = self.cut_through and len(sends.hops) > 1
            head_s = _put(head_s, hop.within, start_s + latency_s) if goes_on else tail_s
        return tail_s

    def _receive(self, receives: Receives, arrived_s: FloatArray, reduced: IntArray | None) -> None:
        """Apply one round of receives; ``reduced`` are the bytes of the step's rows where reducing takes time."""
        at = receives.at
        self.ready_s[at] = np.maximum(self.ready_s[at], arrived_s[receives.rows])
        if self.recv_costs or reduced is not None:
            reducing_s = 0.0 if reduced is None else reduced[receives.rows] / self.reduce_Bps[at]
            self.ready_s[at] += self.recv_s[at] + reducing_s


def _as_index(rows: IntArray, n_rows: int) -> Index:
    """Return what picks rows of a step: all of them without a copy where that is the whole step."""
    return slice(None) if len(rows) == n_rows else rows


def _put(values: FloatArray, rows: IntArray | None, new: FloatArray) -> FloatArray:
    """Return ``values`` with ``new`` in some rows; ``new`` itself where that is all of them."""
    if rows is None:
        return new
    values = values.copy()
    values[rows] = new
    return values
