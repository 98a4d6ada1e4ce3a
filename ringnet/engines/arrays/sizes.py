"""The recurrence over many message sizes at once: the times of one schedule, an array entry for each size.

What a comparison asks is when a run ends, for forty sizes of the same schedule. The plans of the steps are the same for
all of them, so that every array of the `recurrence` engine gets a second axis. The sums and maxima are the same in the
same order, and so are the times, to the last bit; rows, paths and queues, which nobody asks for, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.arrays.exactness import chunks_are_shared, why_not_exact
from ringnet.engines.arrays.rounds import Hop, Index, Plan, Planner, Receives, Sends, as_index, put
from ringnet.engines.arrays.waits import StepWaits, Waits
from ringnet.engines.trace import Workers
from ringnet.networks import Network

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

#: Links, or chunks of all workers, times sizes that are held at once; more sizes are done block after block.
MOST_HELD = 1 << 25
#: Transfers whose steps are held while all sizes are done; those of more are made again for each block.
MOST_KEPT = 10_000_000
#: Workers times sizes: what a step works on stays in the caches of a processor.
CACHED = 1 << 13


class Times(NamedTuple):
    """What came of each size: when the last worker ended, and what each link carried.

    Parameters
    ----------
    makespan_s : ndarray of float64, shape (n_sizes,)
    busiest_link : ndarray of int64, shape (n_sizes,)
        The link that was busy longest; the first of equals.
    busiest_bytes : ndarray of int64, shape (n_sizes,)
        The bytes that crossed it.
    exact : ndarray of bool, shape (n_sizes,)
        Whether every link served its transfers in the order that was supposed; if not, the times count for nothing.
    """

    makespan_s: FloatArray
    busiest_link: IntArray
    busiest_bytes: IntArray
    exact: NDArray[np.bool_]


@dataclass(frozen=True)
class _Hop:
    """A link of each route: see `ringnet.engines.arrays.rounds.Hop`; links are numbered among those that are used."""

    within: IntArray | None
    links: Index
    bandwidth_Bps: FloatArray
    latency_s: FloatArray


@dataclass(frozen=True)
class _Batch:
    """Sends of one channel, at most one of each worker; ``carried`` counts the bytes of each row."""

    rows: Index
    lanes: Index
    receivers: IntArray
    channel: int
    hops: list[_Hop]
    carried: IntArray


def why_not_at_once(schedule: Schedule, network: Network, workers: Workers, planner: Planner) -> str | None:
    """Return why sizes must be run one by one, with SimPy's events; None where `run_sizes` can do them."""
    return why_not_exact(schedule, network, workers, planner, channels_may_meet=True)


def run_sizes(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    planner: Planner,
) -> Times:
    """Run a schedule on a network once for each of many sizes.

    Parameters
    ----------
    schedule : Schedule
        `why_not_at_once` has nothing against it.
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_sizes, n_chunks)
        Bytes that each chunk is charged for, a row for each size.
    planner : Planner
        The one that `why_not_at_once` was asked with: it has the plans of all steps.

    Notes
    -----
    A link that carries several channels of one worker is supposed to serve them in the order of the steps, and within a
    step in that of the channels. Each head that comes is looked at: where one came before its turn, or at the same time
    from a lower channel, the size is not exact.
    """
    waits = Waits(schedule) if chunks_are_shared(schedule) else None
    n_places = waits.n_places if waits else 0
    at_once = max(1, min(MOST_HELD // max(n_places, network.n_links, 1), CACHED // schedule.n_workers))
    steps = list(schedule.steps()) if schedule.n_transfers <= MOST_KEPT else None
    blocks = [chunk_bytes[first : first + at_once] for first in range(0, len(chunk_bytes), at_once)]
    found = [_Sizes(schedule, network, workers, block, planner, waits).run(steps) for block in blocks]
    return Times(*map(np.concatenate, zip(*found, strict=True)))


class _Sizes:
    """When each lane is ready for its next step, and each link free again, for all sizes; the last axis is sizes."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        planner: Planner,
        waits: Waits | None,
    ) -> None:
        self.schedule, self.network, self.planner = schedule, network, planner
        self.n_sizes, self.n_channels = len(chunk_bytes), schedule.n_channels
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
        self._number_links()
        self.batches: dict[int, list[_Batch]] = {}
        self.exact = np.ones(self.n_sizes, dtype=bool)
        self.waits = waits
        # The last row is what nobody notes: rows without a place look there.
        self.done_s = np.full((waits.n_places + 1 if waits else 0, self.n_sizes), -np.inf)

    def _number_links(self) -> None:
        """Give a number to each link that some plan uses: of a million links a ring uses a thousand."""
        hops = [hop for plan in self.planner.plans() for sends in plan.sends for hop in sends.hops]
        self.used = np.unique(np.concatenate([hop.links for hop in hops])) if hops else np.zeros(0, np.int64)
        self.number = np.zeros(self.network.n_links, dtype=np.int64)
        self.number[self.used] = np.arange(len(self.used))
        self.free_s = np.zeros((len(self.used), self.n_sizes))
        if self.n_channels > 1:
            self.last_head_s = np.full((len(self.used), self.n_sizes), -np.inf)
            self.last_channel = np.zeros(len(self.used), dtype=np.int64)

    def run(self, steps: Iterable[Step] | None) -> Times:
        """Do every step, made anew if there are none; return what came of it."""
        for number, step in enumerate(self.schedule.steps() if steps is None else steps):
            self._step(self.planner.plan(step), step, self.waits.steps[number] if self.waits else None)
        places = np.zeros(self.n_sizes, dtype=np.int64)
        n_bytes = places
        if len(self.used):
            carried = self._link_bytes()
            places = (carried / self.network.bandwidth_Bps[self.used][:, None]).argmax(axis=0)
            n_bytes = carried[places, np.arange(self.n_sizes)]
            places = self.used[places]
        return Times(self.ready_s.max(axis=0) - self.start_s, places, n_bytes, self.exact)

    def _link_bytes(self) -> IntArray:
        carried = np.zeros((len(self.used), self.n_sizes), dtype=np.int64)
        for batch in (batch for batches in self.batches.values() for batch in batches):
            for hop in batch.hops:
                carried[hop.links] += batch.carried if hop.within is None else batch.carried[hop.within]
        return carried

    def _step(self, plan: Plan, step: Step, waits: StepWaits | None) -> None:
        if id(plan) not in self.batches:
            self.batches[id(plan)] = list(self._split(plan))
        n_bytes = self._bytes(step)
        entered_s = self.ready_s.copy() if self.rendezvous else None
        arrived_s = np.empty((len(step), self.n_sizes))
        if waits is not None and len(waits.fresh):
            self.done_s[as_index(waits.fresh)] = -np.inf
        for batch in self.batches[id(plan)]:
            if waits is not None:
                self._give_way_to_post(waits, batch)
            arrived_s[batch.rows] = self._send(batch, n_bytes[batch.rows], entered_s)
        reduced = n_bytes if step.op == "reduce" and self.reduce_costs else None
        for receives in plan.receives:
            self._receive(receives, arrived_s, reduced)
            if waits is not None:
                self._give_way_to_apply(waits, receives)
        for batch in self.batches[id(plan)] if self.rendezvous else ():
            self.ready_s[batch.lanes] = np.maximum(self.ready_s[batch.lanes], arrived_s[batch.rows])

    def _split(self, plan: Plan) -> Iterator[_Batch]:
        """Split the rounds of a plan by channel, so that no link stands twice in a batch."""
        for channel in range(self.n_channels):
            for sends in plan.sends:
                mine = np.flatnonzero(sends.lanes % self.n_channels == channel)
                if len(mine):
                    yield self._batch(plan, sends, mine, channel)

    def _batch(self, plan: Plan, sends: Sends, mine: IntArray, channel: int) -> _Batch:
        whole = len(mine) == len(plan.src)
        return _Batch(
            slice(None) if whole else as_index(sends.rows[mine]),
            as_index(sends.lanes[mine]),
            sends.receivers[mine],
            channel,
            [made for hop in sends.hops if (made := self._hop(hop, mine, len(sends.rows))) is not None],
            np.zeros((len(mine), self.n_sizes), dtype=np.int64),
        )

    def _hop(self, hop: Hop, mine: IntArray, n_rows: int) -> _Hop | None:
        """Return a hop as some rows of a round have it; None where none of them goes so far."""
        place = np.full(n_rows, -1)
        place[slice(None) if hop.within is None else hop.within] = np.arange(len(hop.links))
        within = np.flatnonzero(place[mine] >= 0)
        if not len(within):
            return None
        picked = place[mine][within]
        return _Hop(
            None if len(within) == len(mine) else within,
            as_index(self.number[hop.links[picked]]),
            hop.bandwidth_Bps[picked][:, None],
            hop.latency_s[picked][:, None],
        )

    def _bytes(self, step: Step) -> IntArray:
        if step.count is None:
            return self.chunk_bytes[step.chunk]
        carried: IntArray = self.before[step.chunk + step.count] - self.before[step.chunk]
        return carried

    def _send(self, batch: _Batch, n_bytes: IntArray, entered_s: FloatArray | None) -> FloatArray:
        """Post one batch of sends and let the links serve it; return when each arrives."""
        if self.send_costs:
            self.ready_s[batch.lanes] += self.send_s[batch.lanes]
        head_s = self.ready_s[batch.lanes]
        if entered_s is not None:
            head_s = np.maximum(head_s, entered_s[batch.receivers])
        batch.carried[:] += n_bytes
        tail_s = head_s
        for place, hop in enumerate(batch.hops):
            rows = slice(None) if hop.within is None else hop.within
            if self.n_channels > 1:
                self._look(batch, hop, head_s[rows])
            start_s = np.maximum(head_s[rows], self.free_s[hop.links])
            end_s = n_bytes[rows] / hop.bandwidth_Bps
            end_s += start_s
            if place and self.cut_through:
                np.maximum(end_s, tail_s[rows], out=end_s)
            self.free_s[hop.links] = end_s
            tail_s = put(tail_s, hop.within, end_s + hop.latency_s)
            goes_on = self.cut_through and len(batch.hops) > 1
            head_s = put(head_s, hop.within, start_s + hop.latency_s) if goes_on else tail_s
        return tail_s

    def _look(self, batch: _Batch, hop: _Hop, head_s: FloatArray) -> None:
        """Look whether heads come in the order in which they are served: in time, and at equal times by channel."""
        before_s = self.last_head_s[hop.links]
        earlier = head_s < before_s
        lower = batch.channel < self.last_channel[hop.links]
        if lower.any():
            earlier |= (head_s == before_s) & lower[:, None]
        self.exact &= ~earlier.any(axis=0)
        self.last_head_s[hop.links] = head_s
        self.last_channel[hop.links] = batch.channel

    def _receive(self, receives: Receives, arrived_s: FloatArray, reduced: IntArray | None) -> None:
        """Apply one round of receives; ``reduced`` are the bytes of the step's rows where reducing takes time."""
        at = receives.at
        self.ready_s[at] = np.maximum(self.ready_s[at], arrived_s[receives.rows])
        if self.recv_costs or reduced is not None:
            reducing_s = 0.0 if reduced is None else reduced[receives.rows] / self.reduce_Bps[at]
            self.ready_s[at] += self.recv_s[at] + reducing_s

    # Where there are several channels the processor charges for nothing: posts and applies are done when they begin.

    def _give_way_to_post(self, waits: StepWaits, batch: _Batch) -> None:
        """Let posts come after the applies of other channels to their chunk, and note those that are waited for."""
        if waits.post_after is not None:
            done_s = self.done_s[waits.post_after[batch.rows]]
            self.ready_s[batch.lanes] = np.maximum(self.ready_s[batch.lanes], done_s)
        if waits.post_noted is not None:
            self._note(waits.post_noted[batch.rows], self.ready_s[batch.lanes])

    def _give_way_to_apply(self, waits: StepWaits, receives: Receives) -> None:
        """Let applies come after what other channels did with their chunk before, and note what is waited for."""
        for places in (waits.apply_after, waits.apply_after_post):
            if places is not None:
                done_s = self.done_s[places[receives.rows]]
                self.ready_s[receives.at] = np.maximum(self.ready_s[receives.at], done_s)
        if waits.apply_noted is not None:
            self._note(waits.apply_noted[receives.rows], self.ready_s[receives.at])

    def _note(self, places: IntArray, done_s: FloatArray) -> None:
        noted = places >= 0
        if not noted.all():
            places, done_s = places[noted], done_s[noted]
        at = as_index(places)
        self.done_s[at] = np.maximum(self.done_s[at], done_s)
