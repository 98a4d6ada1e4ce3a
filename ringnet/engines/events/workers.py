"""Workers of the `events` engine: a SimPy process for each channel of each worker, sharing the worker's processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import simpy

from ringnet.engines.events.carried import OtherSeconds, PathSeconds
from ringnet.engines.events.clock import Clock, Process
from ringnet.engines.events.transfers import ChunkUse, Program, Transfer
from ringnet.engines.luck import RECV, REDUCE, SEND, LuckyProcessor
from ringnet.engines.trace import TransferRows
from ringnet.errors import Wait
from ringnet.networks.behaviour import NEVER
from ringnet.payload import Payload


class WorkerCosts(NamedTuple):
    """What one worker's processor charges: seconds per transfer sent and received, and bytes reduced per second."""

    send_s: float
    recv_s: float
    reduce_Bps: float


class RunOptions(NamedTuple):
    """What all actors have in common.

    ``rendezvous``: transfers start when both sides are in the step, and end the step for both. ``rows``: where each
    transfer is written down once it is applied. ``ended``: called by each actor when it has done all its steps.
    """

    payload: Payload | None
    rendezvous: bool
    rows: TransferRows | None
    ended: Callable[[], None]


class Worker:
    """One worker: its processor (``shared`` if it has several actors), and what its actors have in common.

    ``sent_bytes``, ``overhead_s`` and the like add up over its actors; ``path`` is that of the actor that ended last.
    ``luck`` is what its processor does by chance, if anything.
    """

    def __init__(
        self,
        number: int,
        start_s: float,
        costs: WorkerCosts,
        first_start_s: float,
        *,
        shared: bool,
        luck: LuckyProcessor | None = None,
    ) -> None:
        self.number, self.start_s, self.costs, self.shared, self.luck = number, start_s, costs, shared, luck
        self.busy_until_s = self.interrupted_s = 0.0
        self.last = (start_s, 0)
        self.path: PathSeconds = (0.0, 0.0, OtherSeconds(waiting=start_s - first_start_s))
        self.sent_bytes = self.received_bytes = self.n_applied = 0
        self.overhead_s = self.reducing_s = 0.0

    def occupy(self, now_s: float, duration_s: float) -> float:
        """Take the processor for a while, after all that asked for it before; return when that is over."""
        begin_s = max(now_s, self.busy_until_s)
        if self.luck is None:
            self.busy_until_s = begin_s + duration_s
        else:
            self.busy_until_s = self.luck.end_s(begin_s, duration_s)
            # What noise takes is an overhead.
            self.interrupted_s = max(self.busy_until_s - begin_s - duration_s, 0.0)
        return self.busy_until_s

    def ends(self, now_s: float, path: PathSeconds, channel: int) -> None:
        """Note that an actor has done all its steps; of those that end at the same time the last channel counts."""
        if (now_s, channel) >= self.last:
            self.last, self.path = (now_s, channel), path

    @property
    def end_s(self) -> float:
        """When its last actor has done all its steps."""
        return self.last[0]


class Actor:
    """One worker on one channel: step by step it posts, waits, applies and goes on.

    Parameters
    ----------
    clock : Clock
    worker : Worker
    program : Program
    channel : int
    options : RunOptions
    """

    def __init__(
        self, clock: Clock, worker: Worker, program: Program, channel: int, options: RunOptions
    ) -> None:
        self.clock, self.worker, self.channel = clock, worker, channel
        self.payload, self.rendezvous, self.rows, self.ended = options
        self.members, self.ordered = program.members, program.is_ordered
        self.steps = program.of(worker.number * program.schedule.n_channels + channel)
        self.path = worker.path
        self.stuck_on: Transfer | None = None
        self.use: ChunkUse | None = None
        self.since_s = worker.start_s
        self.done = False
        if worker.start_s != NEVER:
            clock.process(self.run())

    def run(self) -> Process:
        """Do every step, in order."""
        clock, costs, ordered, luck = self.clock, self.worker.costs, self.ordered, self.worker.luck
        yield clock.wake_at(self.worker.start_s)
        for sends, owed in self.steps:
            if self.rendezvous:
                self.enter(owed)
            for transfer in sends:
                if ordered and transfer.post_after:
                    yield from self.give_way(transfer.post_after)
                send_s = costs.send_s if luck is None else luck.cost(SEND)
                if send_s:
                    yield self.spend(send_s, 0.0)
                self.post(transfer)
            for transfer in owed:
                if transfer.arrived_s > clock.now:
                    yield self.wait(transfer)
                    self.waited(transfer)
                elif transfer.arrived_s == clock.now:
                    self.path = transfer.arrived_path()
                if ordered and transfer.apply_after:
                    yield from self.give_way(transfer.apply_after)
                recv_s, reduce_Bps = costs.recv_s, costs.reduce_Bps if transfer.reduce else NEVER
                if luck is not None:
                    recv_s = luck.cost(RECV)
                    reduce_Bps = luck.cost(REDUCE) if transfer.reduce else NEVER
                if recv_s or reduce_Bps != NEVER:
                    yield self.spend(recv_s, transfer.bytes / reduce_Bps)
                self.apply(transfer)
            if self.rendezvous:
                yield from self.outlast(sends)
        self.done = True
        self.worker.ends(clock.now, self.path, self.channel)
        self.ended()

    def enter(self, owed: list[Transfer]) -> None:
        """Rendezvous: be in the step; what was posted before starts now, and its path is that of who came last."""
        now = self.clock.now
        for transfer in owed:
            transfer.entered_s = now
            if transfer.posted_s != NEVER:
                transfer.released_s = now
                if now > transfer.posted_s:
                    transfer.path = self.path
                transfer.route.enter(transfer)

    def post(self, transfer: Transfer) -> None:
        """Hand a transfer over: to its first link, or (rendezvous) to the step if the receiver is not in it yet."""
        transfer.posted_s = transfer.released_s = self.clock.now
        transfer.path = self.path
        self.worker.sent_bytes += transfer.bytes
        if self.payload is not None:
            transfer.data = [self.payload.send(transfer.src, chunk) for chunk in transfer.chunks]
        if self.ordered:
            transfer.posting.done(self.clock, self.path)
        if not self.rendezvous or transfer.entered_s != NEVER:
            transfer.route.enter(transfer)

    def wait(self, transfer: Transfer) -> simpy.Event:
        """Return the event of an arrival that has not come, and remember what this actor is stuck on."""
        self.stuck_on, self.since_s = transfer, self.clock.now
        return transfer.wait(self.clock)

    def waited(self, transfer: Transfer) -> None:
        """Go on from an arrival: so does the path."""
        self.stuck_on = None
        self.path = transfer.arrived_path()

    def outlast(self, sends: list[Transfer]) -> Process:
        """Rendezvous: stay in the step until its own sends have arrived."""
        for transfer in sends:
            if transfer.arrived_s > self.clock.now:
                yield self.wait(transfer)
                self.waited(transfer)

    def give_way(self, uses: tuple[ChunkUse, ...]) -> Process:
        """Let other channels of this worker do first what comes first in the schedule."""
        for use in uses:
            ready_s = self.clock.now
            if use.time_s > ready_s:
                self.stuck_on, self.since_s, self.use = use.transfer, ready_s, use
                yield use.wait(self.clock)
                self.stuck_on = self.use = None
            if use.time_s > ready_s:
                self.path = use.path

    def spend(self, overhead_s: float, reducing_s: float) -> simpy.Event:
        """Take the worker's processor for an overhead and a reduction; return the event of their end."""
        worker = self.worker
        end_s = worker.occupy(self.clock.now, overhead_s + reducing_s)
        overhead_s += worker.interrupted_s
        worker.overhead_s += overhead_s
        worker.reducing_s += reducing_s
        latency, bandwidth, others = self.path
        queued_s = end_s - self.clock.now - overhead_s - reducing_s if worker.shared else 0.0
        self.path = latency, bandwidth, others.plus(queued_s, overhead_s, reducing_s)
        return self.clock.wake_at(end_s)

    def apply(self, transfer: Transfer) -> None:
        """Reduce or copy what has arrived into the worker's own chunk."""
        self.worker.received_bytes += transfer.bytes
        self.worker.n_applied += 1
        if self.payload is not None:
            operation = self.payload.reduce if transfer.reduce else self.payload.copy
            for chunk, data in zip(transfer.chunks, transfer.data, strict=True):
                operation(transfer.dst, chunk, data)
        if self.ordered:
            transfer.applying.done(self.clock, self.path)
        if transfer.route.credit is not None:
            transfer.route.credit.applied(transfer, self.path)
        if self.rows is not None:
            times_s = (
                transfer.posted_s,
                transfer.started_s,
                transfer.sent_s,
                transfer.arrived_s,
                self.clock.now,
            )
            self.rows.add(transfer.index, times_s, transfer.dst, transfer.chunks)

    def can_move(self) -> bool:
        """Whether this actor goes on without any other: its processor works, or what it waits for is on its way."""
        transfer = self.stuck_on
        if self.done or transfer is None:
            return not self.done and self.worker.start_s != NEVER
        if self.use is not None:
            return self.use.time_s != NEVER
        if transfer.arrived_s != NEVER:
            return True
        credit = transfer.route.credit
        begun = transfer.posted_s != NEVER and (not self.rendezvous or transfer.entered_s != NEVER)
        if credit is not None and credit.holds(transfer):
            begun = credit.n_coming > 0
        return begun and transfer.route.serves(self.clock.now, transfer.hop)

    def stuck(self) -> Wait:
        """Say whom this actor waits for, for what and since when; if it is not done at the end of the run."""
        number, transfer = self.worker.number, self.stuck_on
        if transfer is None:
            return Wait(number, number, "its own start, which never comes", 0.0)
        what = f"chunk {transfer.chunk} in {transfer.step.phase} step {transfer.step.step}"
        if transfer.dst == number:
            return Wait(number, transfer.src, f"to send {what}", self.since_s, *self.members)
        return Wait(number, transfer.dst, f"to receive {what}", self.since_s, *self.members)
