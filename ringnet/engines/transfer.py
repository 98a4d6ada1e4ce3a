"""A transfer in flight, in the `events` engine: the meeting place of its sender, its links and its receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import simpy

from ringnet.collectives import Step
from ringnet.engines.clock import Clock

if TYPE_CHECKING:
    from ringnet.engines.routes import Route
    from ringnet.engines.turns import Turn


class Others(NamedTuple):
    """Seconds of a path that are neither latency nor bandwidth; they change seldom, so that paths share them."""

    queueing: float = 0.0
    waiting: float = 0.0
    overhead: float = 0.0
    reducing: float = 0.0

    def plus(self, queueing: float = 0.0, overhead: float = 0.0, reducing: float = 0.0) -> Others:
        """Return a longer path's."""
        return Others(
            self.queueing + queueing, self.waiting, self.overhead + overhead, self.reducing + reducing
        )


#: Seconds of a path by part: latency, bandwidth, and the others.
Path: TypeAlias = tuple[float, float, Others]

UNKNOWN = float("inf")


class Moving(Protocol):
    """What links move: a transfer, a part of one, or the traffic of no worker."""

    bytes: int
    hop: int
    head_s: float
    tail_s: float
    started_s: float
    sent_s: float
    queued: bool
    whole: int

    @property
    def src(self) -> int:
        """Who sends it: the first thing that orders what comes at the same time."""

    @property
    def channel(self) -> int:
        """On which channel: the second."""

    @property
    def index(self) -> int:
        """Where it stands in the schedule: the third."""

    @property
    def route(self) -> Route:
        """Where it goes."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole transfer that it is, or belongs to."""

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Take note of its arrival, now or soon."""

    def start_over(self, now_s: float, back_s: float, path: Path | None) -> None:
        """Start only now, after the credit that came back, by ``path`` and in ``back_s``."""


class Transfer:
    """One chunk, or some side by side, on the way: who, what, when. A time that is not known yet is ``inf``."""

    #: What it counts among the transfers of a link.
    whole = 1

    # The last four are set only where channels share a worker's chunks: see `ringnet.engines.turns`.
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
        "dst",
        "entered_s",
        "head_s",
        "hop",
        "index",
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
    head_s: float
    path: Path
    released_s: float
    sent_s: float
    started_s: float
    tail_s: float
    apply_after: tuple[Turn, ...]
    applying: Turn
    post_after: tuple[Turn, ...]
    posting: Turn

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
        self.posted_s = self.entered_s = self.arrived_s = UNKNOWN
        self.arrival: simpy.Event | None = None
        self.hop = 0
        self.queued = False
        self.data: Any = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the transfer."""
        return self.bytes

    def __lt__(self, other: Transfer) -> bool:
        """Whether it comes first, of two of different jobs that are alike in all that orders a queue."""
        return self.route.job < other.route.job

    def wait(self, clock: Clock) -> simpy.Event:
        """Return the event of its arrival, made when somebody first waits for it."""
        if self.arrival is None:
            self.arrival = simpy.Event(clock)
            if self.arrived_s != UNKNOWN:
                clock.at(self.arrived_s, self.arrival)
        return self.arrival

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Set the time of its arrival, and let it happen if somebody waits for it already."""
        self.arrived_s = arrived_s
        if self.arrival is not None:
            clock.at(arrived_s, self.arrival)

    def start_over(self, now_s: float, back_s: float, path: Path | None) -> None:
        """Start only now: the path goes back to who gave the credit, or has queued if that came from its own parts."""
        if now_s <= self.released_s:
            return
        latency, bandwidth, others = self.path if path is None else path
        queued_s = now_s - self.released_s if path is None else 0.0
        self.path = latency + (back_s if path is not None else 0.0), bandwidth, others.plus(queueing=queued_s)
        self.released_s = now_s

    def arrived_path(self) -> Path:
        """Return what the path that ends with this arrival is made of."""
        latency, bandwidth, others = self.path
        route_s = self.route.latency_s
        if route_s is None:
            route_s = self.route.alone(self.bytes, self.released_s)[0]
        moving_s = self.arrived_s - self.released_s - route_s
        if not self.queued:
            # Alone on its way, all that is not latency is bandwidth: exact; a difference would leave rounding dust.
            return latency + route_s, bandwidth + moving_s, others
        idle_s = min(moving_s, self.route.alone(self.bytes, self.released_s)[1])
        return latency + route_s, bandwidth + idle_s, others.plus(queueing=moving_s - idle_s)
