"""Transfers, from post to apply, and the steps of a schedule as the workers meet them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import count, repeat
from typing import Any

import simpy

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines.events.carried import PathSeconds
from ringnet.engines.events.clock import Clock
from ringnet.engines.events.routes import JobRoutes, Route
from ringnet.engines.tolerances import own_part_s
from ringnet.networks import Behaviour
from ringnet.networks.behaviour import NEVER


class Transfer:
    """One chunk, or some side by side, on the way: who, what, when. A time that is not known yet is ``inf``."""

    #: What it counts among the transfers of a link.
    counts = 1

    # The last four are set only where channels share a worker's chunks: see `ChunkOrder`.
    __slots__ = (
        "apply_after",
        "applying",
        "arrival",
        "arrived_s",
        "bytes",
        "channel",
        "chunk",
        "chunks",
        "data",
        "drawn",
        "dst",
        "entered_s",
        "had_s",
        "head_s",
        "hop",
        "index",
        "lost_s",
        "own_lost_s",
        "path",
        "post_after",
        "posted_s",
        "posting",
        "queued",
        "reduce",
        "released_s",
        "route",
        "sent_s",
        "src",
        "started_s",
        "step",
        "tail_s",
    )  # fmt: skip
    had_s: float
    head_s: float
    path: PathSeconds
    released_s: float
    sent_s: float
    started_s: float
    tail_s: float
    apply_after: tuple[ChunkUse, ...]
    applying: ChunkUse
    post_after: tuple[ChunkUse, ...]
    posting: ChunkUse

    def __init__(
        self,
        index: int,
        step: Step,
        row: tuple[int, int, int, int],
        n_bytes: int,
        route: Route,
        n_chunks: int = 1,
    ) -> None:
        self.index, self.step = index, step
        self.src, self.dst, self.chunk, self.channel = row
        self.chunks = range(self.chunk, self.chunk + n_chunks)
        self.bytes, self.route = n_bytes, route
        self.reduce = step.op == "reduce"
        self.posted_s = self.entered_s = self.arrived_s = NEVER
        self.arrival: simpy.Event | None = None
        self.hop = 0
        self.queued = False
        self.lost_s = self.own_lost_s = 0.0
        self.drawn: tuple[Behaviour, ...] = ()
        self.data: Any = None

    @property
    def whole(self) -> Transfer:
        """Itself: it is no part of another."""
        return self

    def __lt__(self, other: Transfer) -> bool:
        """Whether it comes first, of two of different jobs that are alike in all that orders a queue."""
        return self.route.owner < other.route.owner

    def wait(self, clock: Clock) -> simpy.Event:
        """Return the event of its arrival, made when somebody first waits for it."""
        if self.arrival is None:
            self.arrival = simpy.Event(clock)
            if self.arrived_s != NEVER:
                clock.at(self.arrived_s, self.arrival)
        return self.arrival

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Set the time of its arrival, and let it happen if somebody waits for it already."""
        self.arrived_s = arrived_s
        if self.arrival is not None:
            clock.at(arrived_s, self.arrival)

    def start_over(self, now_s: float, back_s: float, path: PathSeconds | None) -> None:
        """Start only now: the path goes back to who gave the credit, or has queued if that came from its own parts."""
        if now_s <= self.released_s:
            return
        latency, bandwidth, others = self.path if path is None else path
        queued_s = now_s - self.released_s if path is None else 0.0
        self.path = latency + (back_s if path is not None else 0.0), bandwidth, others.plus(queueing=queued_s)
        self.released_s = now_s

    def arrived_path(self) -> PathSeconds:
        """Return what the path that ends with this arrival is made of."""
        latency, bandwidth, others = self.path
        route_s = self.route.latency_s
        if route_s is None:
            route_s = self.route.alone(self.bytes, self.released_s, self.drawn)[0]
            route_s = min(route_s, self.arrived_s - self.released_s)  # another path may have been shorter
        moving_s = self.arrived_s - self.released_s - route_s
        if not self.queued:
            # Alone on its way, all that is not latency is bandwidth: exact; a difference would leave rounding dust.
            return latency + route_s, bandwidth + moving_s, others
        idle_s = min(moving_s, self.route.alone(self.bytes, self.released_s, self.drawn)[1])
        queued_s = moving_s - idle_s
        own_s = own_part_s(queued_s, self.lost_s, self.own_lost_s, self.arrived_s)
        return latency + route_s, bandwidth + idle_s, others.plus(queueing=queued_s, own_queueing=own_s)


class ChunkUse:
    """A post or an apply that others may have to wait for: done or not, since when, and by what path."""

    __slots__ = ("actor", "event", "path", "time_s", "transfer")

    def __init__(self, transfer: Transfer, actor: int) -> None:
        self.transfer, self.actor = transfer, actor
        self.time_s = NEVER
        self.path: PathSeconds
        self.event: simpy.Event | None = None

    def done(self, clock: Clock, path: PathSeconds) -> None:
        """Note that it is done now, and wake who waits for it."""
        self.time_s, self.path = clock.now, path
        if self.event is not None:
            clock.at(clock.now, self.event)

    def wait(self, clock: Clock) -> simpy.Event:
        """Return the event of its being done."""
        if self.event is None:
            self.event = simpy.Event(clock)
        return self.event


class _ChunkUses:
    """One chunk of one worker: its last apply, and the posts since."""

    __slots__ = ("applied", "posted")

    def __init__(self) -> None:
        self.applied: ChunkUse | None = None
        self.posted: list[ChunkUse] = []


class ChunkOrder:
    """Finds for each post and apply, in the order of the schedule, which uses by other actors come before it."""

    def __init__(self) -> None:
        self._uses: defaultdict[tuple[int, int], _ChunkUses] = defaultdict(_ChunkUses)

    def add(self, sends: list[list[Transfer]], owed: list[list[Transfer]]) -> None:
        """Take in one step: what each actor sends and is owed. All is sent before anything is applied."""
        for actor, transfers in enumerate(sends):
            for transfer in transfers:
                self._post(transfer, actor)
        # By source, on whichever actor: a worker's chunk is the same sum then as in a replay without actors.
        applies = [(transfer.src, actor, transfer) for actor, transfers in enumerate(owed) for transfer in transfers]
        for _, actor, transfer in sorted(applies, key=lambda apply: apply[0]):
            self._apply(transfer, actor)

    def _post(self, transfer: Transfer, actor: int) -> None:
        """Let a send come after the last apply to its chunks."""
        uses = [self._uses[transfer.src, chunk] for chunk in transfer.chunks]
        transfer.posting = ChunkUse(transfer, actor)
        transfer.post_after = _others(actor, [use.applied for use in uses])
        for use in uses:
            use.posted.append(transfer.posting)

    def _apply(self, transfer: Transfer, actor: int) -> None:
        """Let an apply come after the last one to its chunks, and after all that was sent of them since."""
        uses = [self._uses[transfer.dst, chunk] for chunk in transfer.chunks]
        transfer.applying = ChunkUse(transfer, actor)
        transfer.apply_after = _others(actor, [one for use in uses for one in (use.applied, *use.posted)])
        for use in uses:
            use.applied, use.posted = transfer.applying, []


def _others(actor: int, uses: list[ChunkUse | None]) -> tuple[ChunkUse, ...]:
    """Return the uses by other actors: those of the same actor come in order by themselves."""
    return tuple(use for use in uses if use is not None and use.actor != actor)


class OpenStep:
    """One step that some actors have not left yet.

    An actor is one worker, or switch, on one channel, numbered ``worker * n_channels + channel``.
    """

    __slots__ = ("n_inside", "owed", "sends")

    def __init__(self, n_actors: int) -> None:
        self.sends: list[list[Transfer]] = [[] for _ in range(n_actors)]
        self.owed: list[list[Transfer]] = [[] for _ in range(n_actors)]
        self.n_inside = n_actors


class Program:
    """All steps, each made when the first actor comes to it and dropped when the last has left.

    Parameters
    ----------
    schedule : Schedule
    chunk_bytes : ndarray of int64, shape (n_chunks,)
        Bytes that each chunk is charged for.
    routes : JobRoutes
    """

    def __init__(self, schedule: Schedule, chunk_bytes: IntArray, routes: JobRoutes) -> None:
        self.schedule, self.chunk_bytes, self.routes = schedule, chunk_bytes, routes
        self.n_actors = schedule.n_members * schedule.n_channels
        #: Who the numbers of members are: how many are workers, and the names of the switches after them, if any.
        switches = routes.network.switches.names if schedule.n_switches else ()
        self.members = (schedule.n_workers, switches) if switches else ()
        self._coming = schedule.steps()
        self._index = count()
        #: Whether posts and applies may have to wait for those of other channels.
        self.is_ordered = schedule.channels_share_chunks
        self._order = ChunkOrder() if self.is_ordered else None
        self._open: deque[OpenStep] = deque()
        self._first = 0

    def of(self, actor: int) -> Iterator[tuple[list[Transfer], list[Transfer]]]:
        """Yield for each step what an actor sends and what it is owed, the latter by source."""
        for number in range(self.schedule.n_steps):
            if number == self._first + len(self._open):
                self._open.append(self._make(next(self._coming)))
            step = self._open[number - self._first]
            yield step.sends[actor], step.owed[actor]
            step.n_inside -= 1
            while self._open and not self._open[0].n_inside:
                self._open.popleft()
                self._first += 1

    def _make(self, step: Step) -> OpenStep:
        made = OpenStep(self.n_actors)
        n_channels, route = self.schedule.n_channels, self.routes.route
        columns = (step.src, step.dst, step.chunk, step.channel, step.receiving_channel)
        rows = zip(*(column.tolist() for column in (*columns, step.sizes(self.chunk_bytes))), strict=True)
        counts = repeat(1) if step.count is None else step.count.tolist()
        for (src, dst, chunk, channel, to, n_bytes), n_chunks in zip(rows, counts, strict=False):
            row, way = (src, dst, chunk, channel), route(src, dst)
            transfer = Transfer(next(self._index), step, row, n_bytes, way, n_chunks)
            made.sends[src * n_channels + channel].append(transfer)
            made.owed[dst * n_channels + to].append(transfer)
        for owed in made.owed:
            if len(owed) > 1:
                owed.sort(key=lambda transfer: transfer.src)
        if self._order is not None:
            self._order.add(made.sends, made.owed)
        return made
