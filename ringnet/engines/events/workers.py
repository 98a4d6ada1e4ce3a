"""Workers of the `events` engine: a SimPy process for each channel of each worker, sharing the worker's processor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import simpy

from ringnet.engines.events.carried import OtherSeconds, PathSeconds
from ringnet.engines.events.clock import LAST, Clock, Process
from ringnet.engines.events.transfers import ChunkUse, Program, Transfer
from ringnet.engines.luck import RECV, REDUCE, SEND, LuckyProcessor
from ringnet.engines.pace import ProcessorPace
from ringnet.engines.trace import TransferRows
from ringnet.errors import Wait
from ringnet.networks.behaviour import NEVER
from ringnet.payload import Payload
from ringnet.units import format_seconds

#: A time after every other.
LAST_OF_ALL_S = 1e300


class WorkerCosts(NamedTuple):
    """A worker charges seconds per transfer sent and received, bytes reduced per second, seconds of a launch."""

    send_s: float
    recv_s: float
    reduce_Bps: float
    launch_s: float


class RunOptions(NamedTuple):
    """What all actors have in common.

    ``rendezvous``: transfers start when both sides are in the step, and end the step for both. ``rows``: where each
    transfer is written down once it is applied. ``ended``: called by each actor when it has done all its steps.
    ``patience_s``: how long an actor waits for a transfer before ``gives_up`` is called with it.
    """

    payload: Payload | None
    rendezvous: bool
    rows: TransferRows | None
    ended: Callable[[], None]
    patience_s: float
    gives_up: Callable[[Actor], None]


class Worker:
    """One worker: its processor, and what its actors have in common.

    ``sent_bytes``, ``overhead_s`` and the like add up over its actors; ``path`` is that of the actor that ended last.
    ``luck`` is what its processor does by chance, if anything.
    """

    def __init__(
        self,
        number: int,
        start_s: float,
        able_s: float,
        costs: WorkerCosts,
        first_start_s: float,
        *,
        luck: LuckyProcessor | None = None,
        pace: ProcessorPace | None = None,
    ) -> None:
        self.number, self.start_s, self.costs, self.luck = number, start_s, costs, luck
        #: Of a worker that is not always as fast.
        self.pace = pace
        self.busy_until_s = self.interrupted_s = 0.0
        #: By what path it will be so long busy.
        self.busy_path: PathSeconds = (0.0, 0.0, OtherSeconds())
        self.last = (start_s, 0)
        waits_s = start_s - first_start_s
        #: When it enters its first step, and what its processor has worked: until then the launch.
        self.able_s, self.overhead_s, self.reducing_s = able_s, costs.launch_s, 0.0
        if pace is not None and start_s != NEVER:
            self.overhead_s = pace.worked_s(start_s, able_s) if costs.launch_s else 0.0
            waits_s = able_s - first_start_s - self.overhead_s
        self.path: PathSeconds = (0.0, 0.0, OtherSeconds(waiting=waits_s, overhead=self.overhead_s))
        self.sent_bytes = self.received_bytes = self.n_applied = 0

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

    def work(
        self, pace: ProcessorPace, now_s: float, overhead_s: float, reducing_s: float
    ) -> tuple[float, float, float]:
        """Take the processor, as fast as it is then; return when overhead and reduction begin, and when both end.

        What costs nothing waits for nothing but a processor that stands still.
        """
        if not overhead_s and not reducing_s:
            able_s = pace.end_s(now_s, 0.0)
            return now_s, able_s, able_s
        begin_s = max(now_s, self.busy_until_s)
        middle_s = pace.end_s(begin_s, overhead_s)
        end_s = self.busy_until_s = pace.end_s(middle_s, reducing_s) if reducing_s else middle_s
        if end_s != NEVER:
            self.overhead_s += pace.worked_s(begin_s, middle_s)
            self.reducing_s += pace.worked_s(middle_s, end_s)
        return begin_s, middle_s, end_s

    @property
    def dies_s(self) -> float:
        """When it stops for ever."""
        return NEVER if self.pace is None else self.pace.dies_s

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

    def __init__(self, clock: Clock, worker: Worker, program: Program, channel: int, options: RunOptions) -> None:
        self.clock, self.worker, self.channel = clock, worker, channel
        self.payload, self.rendezvous, self.rows, self.ended, self.patience_s, self.gives_up = options
        self.members, self.ordered = program.members, program.is_ordered
        self.steps = program.of(worker.number * program.schedule.n_channels + channel)
        self.path = worker.path
        self.stuck_on: Transfer | None = None
        self.use: ChunkUse | None = None
        self.since_s = worker.start_s
        self.done = False
        if worker.able_s != NEVER:
            clock.process(self.run())

    def run(self) -> Process:
        """Do every step, in order."""
        clock, costs, ordered = self.clock, self.worker.costs, self.ordered
        luck, pace = self.worker.luck, self.worker.pace
        yield clock.wake_at(self.worker.able_s)
        for sends, owed in self.steps:
            if self.rendezvous:
                self.enter(owed)
            for transfer in sends:
                if ordered and transfer.post_after:
                    yield from self.give_way(transfer.post_after)
                send_s = costs.send_s if luck is None else luck.cost(SEND)
                if send_s or pace is not None:
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
                if recv_s or reduce_Bps != NEVER or pace is not None:
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
        if self.patience_s != NEVER:
            alarm = self.clock.wake_at(self.clock.now + self.patience_s, LAST)
            alarm.callbacks.append(partial(self.has_waited, transfer))
        return transfer.wait(self.clock)

    def has_waited(self, transfer: Transfer, _: simpy.Event) -> None:
        """Give up if a transfer has still not come; a dead worker gives up nothing."""
        if self.stuck_on is transfer and self.worker.dies_s > self.clock.now:
            self.gives_up(self)

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
        if self.worker.pace is not None:
            yield self.spend(0.0, 0.0)

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
        works = worker.pace is None or overhead_s or reducing_s
        if works and worker.busy_until_s > self.clock.now:  # with another channel
            self.path = worker.busy_path
        if worker.pace is not None:
            return self.spend_at(worker.pace, overhead_s, reducing_s)
        end_s = worker.occupy(self.clock.now, overhead_s + reducing_s)
        overhead_s += worker.interrupted_s
        worker.overhead_s += overhead_s
        worker.reducing_s += reducing_s
        latency, bandwidth, others = self.path
        self.path = worker.busy_path = latency, bandwidth, others.plus(0.0, overhead_s, reducing_s)
        return self.clock.wake_at(end_s)

    def spend_at(self, pace: ProcessorPace, overhead_s: float, reducing_s: float) -> simpy.Event:
        """Do the same at the worker's pace; where it dies over it, the event never comes."""
        begin_s, middle_s, end_s = self.worker.work(pace, self.clock.now, overhead_s, reducing_s)
        if end_s == NEVER:
            return simpy.Event(self.clock)
        latency, bandwidth, others = self.path
        work_s = pace.worked_s(begin_s, middle_s), pace.worked_s(middle_s, end_s)
        still_s = pace.still_s(begin_s, end_s)
        self.path = latency, bandwidth, others.plus(0.0, *work_s, still_s)
        if overhead_s or reducing_s:
            self.worker.busy_path = self.path
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
        if self.worker.dies_s <= self.clock.now:
            return False
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

    def held_up(self, transfer: Transfer, now_s: float) -> str:
        """Say what keeps a transfer that was posted from arriving from some time on; nothing where nobody knows."""
        credit = transfer.route.credit
        if credit is not None and credit.holds(transfer):
            return "its window has no credit for it"
        return transfer.route.stopped(now_s, transfer.hop)

    def stuck(self, now_s: float = LAST_OF_ALL_S) -> Wait:
        """Say whom this actor waits for, for what and since when; if it is not done at the end of the run."""
        number, transfer = self.worker.number, self.stuck_on
        if self.worker.dies_s <= now_s:
            at = format_seconds(self.worker.dies_s)
            return Wait(number, number, "", self.worker.dies_s, died=True, since=at)
        if transfer is None:
            return Wait(number, number, "its own start, which never comes", 0.0)
        what = f"chunk {transfer.chunk} in {transfer.step.phase} step {transfer.step.step}"
        whom, verb = (transfer.src, "send") if transfer.dst == number else (transfer.dst, "receive")
        cause = "" if transfer.posted_s == NEVER else self.held_up(transfer, now_s)
        wait = Wait(number, whom, f"to {verb} {what}", self.since_s, *self.members)
        return replace(wait, cause=cause, since=format_seconds(self.since_s))
