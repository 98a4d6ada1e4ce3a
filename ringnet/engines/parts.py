"""Transfers cut into parts that move on their own: packets, and what a window lets through at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ringnet.engines.clock import Clock

if TYPE_CHECKING:
    from ringnet.engines.routes import Route
    from ringnet.engines.transfer import Moving, Path


class Part:
    """Some bytes of a transfer. The whole has started with its first part, is sent and has arrived with its last.

    A part may be cut again, as a slot of a window into packets; ``offset`` says where it stands in the transfer.
    """

    __slots__ = (
        "bytes", "head_s", "hop", "last", "number", "offset", "on_arrival", "queued", "sent_s", "started_s", "tail_s",
        "whole", "whole_of",
    )  # fmt: skip

    def __init__(self, whole_of: Moving, n_bytes: int, number: int, offset: int, *, last: bool) -> None:
        self.whole_of, self.bytes, self.number, self.offset = whole_of, n_bytes, number, offset
        self.last = last
        self.whole = whole_of.whole if last else 0
        self.hop = 0
        self.queued = False
        self.started_s = self.sent_s = self.head_s = self.tail_s = float("inf")
        self.on_arrival: Callable[[float], None] | None = None

    @property
    def src(self) -> int:
        """Who sends the whole."""
        return self.whole_of.src

    @property
    def channel(self) -> int:
        """On which channel."""
        return self.whole_of.channel

    @property
    def index(self) -> int:
        """Where it stands in the schedule."""
        return self.whole_of.index

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole."""
        return self.whole_of.size_bytes

    @property
    def route(self) -> Route:
        """Where it goes."""
        return self.whole_of.route

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Tell the whole, if this is the first or the last of it."""
        whole = self.whole_of
        whole.queued = whole.queued or self.queued
        if not self.number:
            whole.started_s = self.started_s
        if self.on_arrival is not None:
            self.on_arrival(arrived_s)
        if self.last:
            whole.sent_s = self.sent_s
            whole.arrives(clock, arrived_s)

    def start_over(self, now_s: float, back_s: float, path: Path | None) -> None:
        """Start only now: the whole does, if this is the first of it."""
        if not self.number:
            self.whole_of.start_over(now_s, back_s, path)

    def __lt__(self, other: Part) -> bool:
        """Whether it comes first, of two parts of one transfer that reach a link at the same time."""
        return self.offset < other.offset


def cut(whole: Moving, part_bytes: int, header_bytes: int = 0) -> Iterator[Part]:
    """Yield the parts of a transfer: of ``part_bytes`` each but the last, and a header more; one if it is empty."""
    n_parts = max(1, -(-whole.bytes // part_bytes))
    first = whole.offset if isinstance(whole, Part) else 0
    for number in range(n_parts):
        n_bytes = min(part_bytes, whole.bytes - number * part_bytes)
        offset = first + number * part_bytes
        yield Part(whole, n_bytes + header_bytes, number, offset, last=number == n_parts - 1)


def whole_of(moving: Moving) -> Moving:
    """Return the transfer that something is a part of, or a part of a part; itself if it is none."""
    while isinstance(moving, Part):
        moving = moving.whole_of
    return moving


class Wholes:
    """Of which transfers the parts are that come to a link: parts of one do not wait for each other, they follow."""

    def __init__(self) -> None:
        self.n_queued: dict[Moving, int] = {}
        self.left_s: dict[Moving, float] = {}
        self.served: Moving | None = None

    def comes(self, moving: Moving) -> None:
        """Note that something has come."""
        whole = whole_of(moving)
        self.n_queued[whole] = self.n_queued.get(whole, 0) + 1

    def goes(self, moving: Moving) -> None:
        """Note that the link serves something now."""
        whole = self.served = whole_of(moving)
        self.n_queued[whole] -= 1
        if not self.n_queued[whole]:
            del self.n_queued[whole]

    def is_served(self, moving: Moving, end_s: float) -> None:
        """Note until when it serves that."""
        if moving.whole:
            self.left_s.pop(whole_of(moving), None)
        else:
            self.left_s[whole_of(moving)] = end_s

    def n_waiting(self) -> int:
        """Return the transfers that wait, none of whose parts is being served."""
        return len(self.n_queued) - (self.served in self.n_queued)

    def waits_since(self, moving: Moving) -> float:
        """Return since when something waits for others: since it came, or since the part before it has gone."""
        return max(moving.head_s, self.left_s.get(whole_of(moving), 0.0))
