"""The fast engine: the same times from a max-plus recurrence over whole arrays, one step of the schedule after another.

Where each link serves one lane and gets its transfers in the order of the schedule, nothing depends on what happens
elsewhere at the same time: ``start = max(head, free)``, ``free = start + n / B``, ``ready = max(ready, arrival)``. The
sums and maxima are those of the `events` engine in the same order, so that the times are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.arrays.chunks import SharedChunks
from ringnet.engines.arrays.exactness import chunks_are_shared, why_not_exact
from ringnet.engines.arrays.links import Services
from ringnet.engines.arrays.paths import Parts, Paths
from ringnet.engines.arrays.rounds import (
    Bytes,
    FloatArray,
    Index,
    IntArray,
    Plan,
    Planner,
    Receives,
    Sends,
    put,
)
from ringnet.engines.trace import (
    KEEP_TRANSFERS,
    Columns,
    Trace,
    TransferRows,
    Watch,
    Workers,
    schedule_columns,
)
from ringnet.errors import InputError
from ringnet.networks import Network
from ringnet.payload import PackedPayload, Payload


def run_recurrence(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: NDArray[np.int64],
    payload: Payload | PackedPayload | None = None,
    *,
    keep_transfers: int = KEEP_TRANSFERS,
    keep_values: bool = False,
    watch: Watch | None = None,
) -> Trace:
    """Run a schedule on a network, whole steps at a time.

    Parameters and returns are those of `ringnet.engines.events.run_events`; the payload may be packed too, which is
    faster where little of each chunk is carried.

    Raises
    ------
    InputError
        If the times of the run do not follow from such a recurrence; it names the condition.
    NetworkError
        If the schedule sends where the network has no route.
    """
    planner = Planner(schedule, network)
    if reason := why_not_exact(schedule, network, workers, planner):
        raise InputError(f"the recurrence engine is not exact here: {reason}; engine: events is")
    rows = None
    if schedule.n_transfers <= keep_transfers:
        rows = TransferRows(schedule.n_transfers, payload if keep_values else None)
    run = _Recurrence(schedule, network, workers, chunk_bytes, rows)
    move_payload = stepper(payload, rows)
    if watch is not None:
        watch(schedule.n_transfers, lambda: run.first_row)
    for step in schedule.steps():
        run.step(planner.plan(step), step)
        move_payload(step)
    plans = planner.plans()
    return Trace(
        engine="recurrence",
        transfers=None if rows is None else schedule_columns(schedule, chunk_bytes) | rows.columns(),
        links=run.services.columns(plans),
        waits=run.services.delays.columns(),
        workers=run.worker_columns(plans, schedule.n_channels),
        n_transfers=schedule.n_transfers,
        counts={"steps": schedule.n_steps},
        values=None if rows is None else rows.values(),
    )


@dataclass
class Flight:
    """Transfers of a step or a round, one entry per row: when they arrive, and what their path is made of."""

    arrived_s: FloatArray
    path: Parts


class _Recurrence:
    """When each lane is ready for its next step, and what came of the steps so far."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        rows: TransferRows | None,
    ) -> None:
        self.chunk_bytes, self.rows, self.first_row = chunk_bytes, rows, 0
        self.same_bytes = int(chunk_bytes[0]) if (chunk_bytes == chunk_bytes[0]).all() else None
        self.rendezvous = workers.sends == "rendezvous"
        each = np.repeat(np.arange(schedule.n_workers), schedule.n_channels)
        self.start_s, self.ready_s = workers.start_s[each], workers.start_s[each]
        self.send_s, self.recv_s = workers.send_overhead_s[each], workers.recv_overhead_s[each]
        self.reduce_Bps = workers.reduce_Bps[each]
        self.overhead_s, self.reducing_s = np.zeros(len(each)), np.zeros(len(each))
        self.send_costs, self.recv_costs = bool(self.send_s.any()), bool(self.recv_s.any())
        self.reduce_costs = bool(np.isfinite(self.reduce_Bps).any())
        self.services = Services(network)
        self.paths = self._paths()
        self.n_chunks, self.shared = schedule.n_chunks, None
        if chunks_are_shared(schedule):
            self.shared = SharedChunks(schedule.n_workers * schedule.n_chunks, self.ready_s, self.paths)

    def _paths(self) -> Paths:
        """Keep from the start what can be more than zero; queueing joins when it first occurs."""
        paths = Paths(len(self.start_s))
        paths.keep("latency")
        if np.ptp(self.start_s):
            paths.keep("waiting")[:] = self.start_s - self.start_s.min()
        if self.send_costs or self.recv_costs:
            paths.keep("overhead")
        if self.reduce_costs:
            paths.keep("reducing")
        return paths

    def step(self, plan: Plan, step: Step) -> None:
        """Do one step: all its sends, then all its receives, then (rendezvous) wait for its own sends."""
        n_bytes: Bytes = step.sizes(self.chunk_bytes)
        if step.count is None and self.same_bytes is not None:
            n_bytes = self.same_bytes
        plan.use(n_bytes)
        self.current = step
        flight = self._send_all(plan, n_bytes)
        for receives in plan.receives:
            self._receive(receives, flight, n_bytes)
        for sends in plan.sends if self.rendezvous else ():
            self._outlast(sends, flight)
        self.first_row += len(step)

    def _send_all(self, plan: Plan, n_bytes: Bytes) -> Flight:
        entered = (
            Flight(self.ready_s.copy(), self.paths.leave(slice(None), copy=True)) if self.rendezvous else None
        )
        # In a simple plan each part of the paths is read before it is written, so that views do.
        copy = self.rendezvous or not plan.simple
        if plan.simple:
            return self._send(plan.sends[0], n_bytes, entered, copy=copy)
        whole = Flight(np.zeros(len(plan.src)), {})
        for sends in plan.sends:
            flight = self._send(sends, _of_rows(n_bytes, sends.rows), entered, copy=copy)
            whole.arrived_s[sends.rows] = flight.arrived_s
            for part, seconds in flight.path.items():
                whole.path.setdefault(part, np.zeros(len(plan.src)))[sends.rows] = seconds
        return whole

    def _send(self, sends: Sends, n_bytes: Bytes, entered: Flight | None, *, copy: bool) -> Flight:
        """Post one round of sends and let the links serve it."""
        if self.shared is not None:
            self.shared.before_posts(sends.at, self._cells(self.current.src, sends.rows))
        if self.send_costs:
            self._spend(sends.at, "overhead", self.overhead_s, self.send_s[sends.at])
        if self.shared is not None:
            self.shared.after_posts(sends.at, self._cells(self.current.src, sends.rows))
        posted_s, path = self.ready_s[sends.at], self.paths.leave(sends.at, copy=copy)
        released_s = posted_s
        if entered is not None:
            released_s = self._match(sends, posted_s, path, entered)
        start_s, sent_s, arrived_s, queued = self._cross(sends, released_s, n_bytes)
        if queued is not None:
            moving_s = arrived_s - released_s - sends.latency_s
            queueing_s = np.where(queued, moving_s - np.minimum(moving_s, self._idle_s(sends, n_bytes)), 0.0)
            path["queueing"] = path.get("queueing", 0.0) + queueing_s
        path["latency"] = path["latency"] + sends.latency_s
        if self.rows is not None:
            self.rows.times[self.first_row + sends.rows, :4] = np.column_stack(
                (posted_s, start_s, sent_s, arrived_s)
            )
        return Flight(arrived_s, path)

    def _match(self, sends: Sends, posted_s: FloatArray, path: Parts, entered: Flight) -> FloatArray:
        """Rendezvous: start when both sides are in the step; the path goes back to whoever came last."""
        came_s = entered.arrived_s[sends.receivers]
        last = came_s > posted_s
        for part, seconds in entered.path.items():
            path[part] = np.where(last, seconds[sends.receivers], path[part])
        return np.maximum(posted_s, came_s)

    def _cross(
        self, sends: Sends, head_s: FloatArray, n_bytes: Bytes
    ) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_] | None]:
        """Cross all links; return when each transfer started, was sent, arrived, whether it queued (None: none)."""
        services, latency_first = self.services, self.services.cut_through
        queued = None
        start_s = sent_s = tail_s = head_s
        for place, hop in enumerate(sends.hops):
            rows = slice(None) if hop.within is None else hop.within
            came_s = head_s[rows]
            start, end = services.serve(hop, came_s, tail_s[rows] if place else None, _of_rows(n_bytes, rows))
            if services.note_waits(hop, came_s, start):
                queued = np.zeros(len(sends.rows), dtype=bool) if queued is None else queued
                queued[rows] |= start > came_s
            if not place:
                start_s, sent_s = start, end
            tail_s = put(tail_s, hop.within, end + hop.latency_s)
            head_s = (
                put(head_s, hop.within, start + hop.latency_s)
                if latency_first and len(sends.hops) > 1
                else tail_s
            )
        return start_s, sent_s, tail_s, queued

    def _idle_s(self, sends: Sends, n_bytes: Bytes) -> FloatArray:
        """Seconds that the bytes of each row would take on an idle route, latency apart."""
        idle_s = np.zeros(len(sends.rows))
        join = np.maximum if self.services.cut_through else np.add
        for hop in sends.hops:
            rows = slice(None) if hop.within is None else hop.within
            idle_s[rows] = join(idle_s[rows], self.services.busy_s(hop, _of_rows(n_bytes, rows)))
        return idle_s

    def _cells(self, workers: IntArray, rows: IntArray) -> IntArray:
        """Return the cell of each of some rows: worker times chunks, plus chunk."""
        return workers[rows] * self.n_chunks + self.current.chunk[rows]

    def _receive(self, receives: Receives, flight: Flight, n_bytes: Bytes) -> None:
        """Apply one round of receives, each when it has arrived and its lane is ready for it."""
        reduces = self.current.op == "reduce"
        arrived_s, at = receives.gather(flight.arrived_s), receives.at
        ready_s = self.ready_s[at]
        arriving = {part: receives.gather(seconds) for part, seconds in flight.path.items()}
        self.paths.arrive(at, arrived_s >= ready_s, arriving)
        self.ready_s[at] = np.maximum(ready_s, arrived_s)
        if self.shared is not None:
            self.shared.before_applies(at, self._cells(self.current.dst, receives.rows))
        if self.recv_costs or (reduces and self.reduce_costs):
            self._apply(at, _of_rows(n_bytes, receives.rows) if reduces else 0)
        if self.shared is not None:
            self.shared.after_applies(at, self._cells(self.current.dst, receives.rows))
        if self.rows is not None:
            self.rows.times[self.first_row + receives.rows, 4] = self.ready_s[at]

    def _apply(self, at: Index, n_bytes: Bytes) -> None:
        """Spend the receive overhead and the reduction in one go, as the processor does."""
        recv_s, reducing_s = self.recv_s[at], n_bytes / self.reduce_Bps[at]
        self.ready_s[at] += recv_s + reducing_s
        self.overhead_s[at] += recv_s
        self.reducing_s[at] += reducing_s
        if self.recv_costs:
            self.paths.keep("overhead")[at] += recv_s
        if self.reduce_costs:
            self.paths.keep("reducing")[at] += reducing_s

    def _spend(self, at: Index, part: str, total_s: FloatArray, seconds: FloatArray) -> None:
        self.ready_s[at] += seconds
        total_s[at] += seconds
        self.paths.keep(part)[at] += seconds

    def _outlast(self, sends: Sends, flight: Flight) -> None:
        """Rendezvous: a step lasts until the lane's own sends have arrived."""
        arrived_s = flight.arrived_s[sends.rows]
        later = arrived_s > self.ready_s[sends.at]
        self.paths.arrive(
            sends.at, later, {part: seconds[sends.rows] for part, seconds in flight.path.items()}
        )
        self.ready_s[sends.at] = np.maximum(self.ready_s[sends.at], arrived_s)

    def worker_columns(self, plans: list[Plan], n_channels: int) -> Columns:
        """Return one row per worker, as `Trace.workers` has them."""
        sent, received = (
            np.zeros(len(self.ready_s), dtype=np.int64),
            np.zeros(len(self.ready_s), dtype=np.int64),
        )
        for plan in plans:
            row_bytes = plan.row_bytes
            for sends in plan.sends:
                sent[sends.lanes] += row_bytes[sends.rows]
            for receives in plan.receives:
                received[receives.lanes] += row_bytes[receives.rows]
        waiting_s = np.maximum(self.ready_s - self.start_s - self.overhead_s - self.reducing_s, 0.0)
        sums = (sent, received, waiting_s, self.overhead_s, self.reducing_s)
        names = ("sent_bytes", "received_bytes", "waiting_s", "overhead_s", "reducing_s")
        by_lane = self.ready_s.reshape(-1, n_channels)
        # Of lanes that end at the same time the last counts.
        last = n_channels - 1 - by_lane[:, ::-1].argmax(axis=1)
        lanes = np.arange(len(by_lane)) * n_channels + last
        return {
            "start_s": self.start_s[lanes],
            "end_s": self.ready_s[lanes],
            **{
                name: total.reshape(-1, n_channels).sum(axis=1)
                for name, total in zip(names, sums, strict=True)
            },
            **self.paths.columns(lanes, self.ready_s[lanes] - self.start_s.min()),
        }


def _of_rows(n_bytes: Bytes, rows: Index) -> Bytes:
    return n_bytes if isinstance(n_bytes, int) else n_bytes[rows]


def stepper(payload: Payload | PackedPayload | None, rows: TransferRows | None) -> Callable[[Step], None]:
    """Return what moves the payload of one step, and keeps what the receivers then hold where ``rows`` asks for it."""
    if payload is None:
        return lambda _: None
    move = _move_packed if isinstance(payload, PackedPayload) else _move_chunks

    def step_on(step: Step) -> None:
        whole, step = step, step.by_chunk()
        # The receiver applies by source, whatever the order of the rows.
        order = np.argsort(step.src, kind="stable")
        move(payload, step, order)  # type: ignore[arg-type]  # chosen by the type of this very payload
        if rows is not None:
            rows.keep_values(whole)

    return step_on


def _move_packed(payload: PackedPayload, step: Step, order: np.ndarray) -> None:
    payload.step(step.op, step.src[order], step.dst[order], step.chunk[order])


def _move_chunks(payload: Payload, step: Step, order: np.ndarray) -> None:
    rows = list(zip(*(column[order].tolist() for column in (step.src, step.dst, step.chunk)), strict=True))
    # All are sent before any is applied: a step is simultaneous.
    sent = [payload.send(src, chunk) for src, _, chunk in rows]
    apply = payload.reduce if step.op == "reduce" else payload.copy
    for (_, dst, chunk), incoming in zip(rows, sent, strict=True):
        apply(dst, chunk, incoming)
