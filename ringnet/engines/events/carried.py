"""What links carry, as they see it: transfers, the parts into which they are cut, and other traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from ringnet.engines.events.clock import Clock
from ringnet.networks import Behaviour
from ringnet.networks.behaviour import NEVER


class OtherSeconds(NamedTuple):
    """Seconds of a path that are neither latency nor bandwidth; they change seldom, so that paths share them.

    ``own_queueing`` is what of ``queueing`` was behind transfers of the same sender.
    """

    queueing: float = 0.0
    waiting: float = 0.0
    overhead: float = 0.0
    reducing: float = 0.0
    own_queueing: float = 0.0

    def plus(
        self,
        queueing: float = 0.0,
        overhead: float = 0.0,
        reducing: float = 0.0,
        waiting: float = 0.0,
        own_queueing: float = 0.0,
    ) -> OtherSeconds:
        """Return a longer path's."""
        return OtherSeconds(
            self.queueing + queueing,
            self.waiting + waiting,
            self.overhead + overhead,
            self.reducing + reducing,
            self.own_queueing + own_queueing,
        )


#: Seconds of a path by part: latency, bandwidth, and the others.
PathSeconds: TypeAlias = tuple[float, float, OtherSeconds]


class Entrance(Protocol):
    """A link, as far as what goes on to it knows it."""

    def enter(self, carried: Carried) -> None:
        """Take what has its head here now."""


class RouteAhead(Protocol):
    """A route, as far as links know it; ``owner`` is the number of a job, or of other traffic after all jobs."""

    owner: int

    @property
    def links(self) -> Sequence[Entrance]:
        """The links, in order."""


class Carried(Protocol):
    """What links carry: a transfer, a part of one, or the traffic of no worker.

    ``hop`` is the link of the route where it is, ``head_s`` and ``tail_s`` say when its head and its tail come there,
    ``had_s`` for how long the link had served its sender's by then. ``queued`` says whether it had to wait, ``counts``
    what it counts among the transfers of a link; ``drawn`` is what links did that do something of its own for each
    transfer, in the order of its route.
    """

    bytes: int
    hop: int
    head_s: float
    tail_s: float
    had_s: float
    started_s: float
    sent_s: float
    queued: bool
    counts: int
    drawn: tuple[Behaviour, ...]

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
    def route(self) -> RouteAhead:
        """Where it goes."""

    @property
    def whole(self) -> Undivided:
        """The transfer that it is a part of, or a part of a part; itself if it is none."""

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Take note of its arrival, now or soon."""

    def start_over(self, now_s: float, back_s: float, path: PathSeconds | None) -> None:
        """Start only now, after the credit that came back, by ``path`` and in ``back_s``."""


class Undivided(Carried, Protocol):
    """What is no part of another.

    ``lost_s`` is what it, with all its parts, has waited for links or (fair) lost by sharing them; ``own_lost_s`` how
    much of that went to transfers of the same sender.
    """

    lost_s: float
    own_lost_s: float


class Part:
    """Some bytes of a transfer. The whole has started with its first part, and has arrived when all parts have.

    A part may be cut again, as a slot of a window into packets; ``offset`` says where it stands in the transfer.
    """

    had_s: float
    __slots__ = (
        "bytes", "counts", "cut_from", "drawn", "had_s", "head_s", "hop", "last", "missing", "number", "offset",
        "on_arrival", "queued", "sent_s", "started_s", "tail_s", "whole",
    )  # fmt: skip

    def __init__(
        self, cut_from: Carried, n_bytes: int, number: int, offset: int, missing: list[int], *, last: bool
    ) -> None:
        self.cut_from, self.bytes, self.number, self.offset = cut_from, n_bytes, number, offset
        #: How many parts have not arrived, one number for all: one that is sent again comes after the last.
        self.missing = missing
        self.whole: Undivided = cut_from.whole
        self.last = last
        self.counts = cut_from.counts if last else 0
        self.hop = 0
        self.queued = False
        self.drawn: tuple[Behaviour, ...] = ()
        self.started_s = self.sent_s = self.head_s = self.tail_s = NEVER
        self.on_arrival: Callable[[float], None] | None = None

    @property
    def src(self) -> int:
        """Who sends the whole."""
        return self.whole.src

    @property
    def channel(self) -> int:
        """On which channel."""
        return self.whole.channel

    @property
    def index(self) -> int:
        """Where it stands in the schedule."""
        return self.whole.index

    @property
    def route(self) -> RouteAhead:
        """Where it goes."""
        return self.whole.route

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Tell what it was cut from, if this is the first of it, or the last to arrive."""
        cut_from = self.cut_from
        cut_from.queued = cut_from.queued or self.queued
        if not self.number:
            cut_from.started_s = self.started_s
        if self.on_arrival is not None:
            self.on_arrival(arrived_s)
        self.missing[0] -= 1
        if not self.missing[0]:
            cut_from.sent_s = self.sent_s
            cut_from.arrives(clock, arrived_s)

    def start_over(self, now_s: float, back_s: float, path: PathSeconds | None) -> None:
        """Start only now: the whole does, if this is the first of it."""
        if not self.number:
            self.cut_from.start_over(now_s, back_s, path)

    def __lt__(self, other: Part) -> bool:
        """Whether it comes first, of two parts of one transfer that reach a link at the same time."""
        return self.offset < other.offset


def cut(carried: Carried, part_bytes: int, header_bytes: int = 0) -> Iterator[Part]:
    """Yield the parts of a transfer: of ``part_bytes`` each but the last, and a header more; one if it is empty."""
    n_parts = max(1, -(-carried.bytes // part_bytes))
    first, missing = carried.offset if isinstance(carried, Part) else 0, [n_parts]
    for number in range(n_parts):
        n_bytes = min(part_bytes, carried.bytes - number * part_bytes)
        offset = first + number * part_bytes
        yield Part(carried, n_bytes + header_bytes, number, offset, missing, last=number == n_parts - 1)
