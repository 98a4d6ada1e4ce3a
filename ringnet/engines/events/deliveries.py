"""What is sent again: over links that lose packets or fail, attempt by attempt until everything has arrived."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ringnet.chance import lost_of, lost_until
from ringnet.engines.events.carried import Carried, Part, PathSeconds, RouteAhead, Undivided
from ringnet.engines.events.clock import Clock
from ringnet.engines.trace import Columns
from ringnet.errors import Fault, NetworkError
from ringnet.networks import Behaviour, FailsOver, Lossy, Network, around, dying_links, fails_over
from ringnet.networks.behaviour import NEVER
from ringnet.networks.network import Route as LinkNumbers

Enter: TypeAlias = Callable[[Carried], None]


class Attempt:
    """Some packets of a transfer, or of a part of one, on their way: sent once; what is lost of them, in the next one.

    The ``unit`` that it is an attempt to send is what the links would carry if nothing were lost. ``lost`` of its
    ``n_packets`` do not arrive; ``own_bytes`` are theirs, without what is sent again behind them.
    """

    had_s: float
    __slots__ = (
        "bytes",
        "counts",
        "drawn",
        "had_s",
        "head_s",
        "hop",
        "is_dropped",
        "is_first",
        "lost",
        "n_packets",
        "own_bytes",
        "queued",
        "route",
        "sender",
        "sent_s",
        "started_s",
        "tail_s",
        "unit",
    )  # fmt: skip

    def __init__(
        self, sender: _Sender, unit: Carried, n_packets: int, own_bytes: int, lost: int, *, is_first: bool
    ) -> None:
        self.sender, self.unit, self.n_packets, self.lost = sender, unit, n_packets, lost
        self.bytes = self.own_bytes = own_bytes
        self.route = sender.way.route
        self.counts = 0 if lost else unit.counts
        self.hop = 0
        self.is_first, self.is_dropped = is_first, False
        self.queued = bool(lost) or not is_first
        self.drawn: tuple[Behaviour, ...] = ()
        self.started_s = self.sent_s = self.head_s = self.tail_s = NEVER

    @property
    def src(self) -> int:
        """Who sends it."""
        return self.unit.src

    @property
    def channel(self) -> int:
        """On which channel."""
        return self.unit.channel

    @property
    def index(self) -> int:
        """Where it stands in the schedule."""
        return self.unit.index

    @property
    def whole(self) -> Undivided:
        """The transfer that it belongs to."""
        return self.unit.whole

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Take note of its arrival."""
        unit = self.unit
        unit.queued = unit.queued or self.queued
        if self.is_first:
            unit.started_s = self.started_s
        self.sender.arrived(self, arrived_s)

    def start_over(self, now_s: float, back_s: float, path: PathSeconds | None) -> None:
        """No window holds it: it holds its unit."""

    def __lt__(self, other: Attempt) -> bool:
        """Whether it comes first, of two that are alike in all that orders a queue."""
        return self._order() < other._order()

    def _order(self) -> tuple[int, int]:
        offset = self.unit.offset if isinstance(self.unit, Part) else 0
        return self.route.owner, offset


class Losses(NamedTuple):
    """A lossy link while a run goes on: each try to send something takes one of its random numbers."""

    link: int
    behaviour: Lossy
    numbers: np.random.Generator

    def lost(self, n_packets: int) -> int:
        """Return how many of some packets are lost now."""
        return lost_of(self.numbers.random(), n_packets, self.behaviour.probability)

    def resent(self, n_packets: int) -> int:
        """Return how many are lost until so many have come, those lost anew among them."""
        return lost_until(self.numbers.random(), n_packets, self.behaviour.probability)


class WayOver(NamedTuple):
    """Some links, the route over them as links know it, and what lets something start there."""

    links: LinkNumbers
    route: RouteAhead
    enter: Enter


class Deliveries:
    """All links of a network that lose packets or fail, and what has been sent again because of them.

    Parameters
    ----------
    clock : Clock
    network : Network
    drop : callable, optional
        Called with what stands for ever at a link that has failed, where it is not simply left there.
    """

    def __init__(self, clock: Clock, network: Network, drop: Callable[[Attempt], None] = lambda _: None) -> None:
        self.clock, self.network, self.drop = clock, network, drop
        self.losses = {
            link: Losses(link, behaviour, behaviour.generator())
            for link, behaviour in network.behaviours.items()
            if isinstance(behaviour, Lossy)
        }
        self.failing: dict[int, FailsOver] = {}
        for link, behaviour in network.behaviours.items():
            if (failing := fails_over(behaviour)) is not None:
                self.failing[link] = failing
        self.lost_packets = np.zeros(network.n_links, dtype=np.int64)
        self.resent_bytes = np.zeros(network.n_links, dtype=np.int64)

    @cached_property
    def around(self) -> Callable[[LinkNumbers], LinkNumbers | None]:
        """What finds the way around the links that fail and those that die."""
        return around(self.network, dying_links(self.network))

    def over(self, way: WayOver, make_way: Callable[[LinkNumbers], WayOver], *, whole: bool = False) -> Enter:
        """Return what sends something over some links until it has arrived.

        Parameters
        ----------
        way : WayOver
        make_way : callable
            Returns the way over other links.
        whole : bool
            Whether what is sent are packets already.

        Raises
        ------
        NetworkError
            A link fails over, and there is no other path.
        """
        own = {*way.links}
        if own.isdisjoint(self.losses) and own.isdisjoint(self.failing):
            return way.enter
        other = None
        if not own.isdisjoint(self.failing):
            found = self.around(way.links)
            if found is None:
                name = self.network.names[min(own & self.failing.keys())]
                message = f"there is no other path for what goes over {name}"
                raise NetworkError(Fault(message, right="no fails_over"))
            other = make_way(found)
        return _Sender(self, way, other, whole=whole).send

    def columns(self) -> Columns:
        """Return ``lost_packets`` and ``resent_bytes`` of each link; nothing where nothing is sent again."""
        if not self.losses and not self.failing:
            return {}
        return {"lost_packets": self.lost_packets, "resent_bytes": self.resent_bytes}


class _Sender:
    """Who sends over a route until all has arrived; if a link of it fails, over another one."""

    def __init__(self, deliveries: Deliveries, way: WayOver, other: WayOver | None, *, whole: bool) -> None:
        self.deliveries, self.whole = deliveries, whole
        #: Attempts under way, in the order in which they were made.
        self.flying: dict[Attempt, None] = {}
        self._takes(way)
        failing = [deliveries.failing[link] for link in way.links if link in deliveries.failing]
        if other is not None:
            fails = deliveries.clock.wake_at(
                max(min(one.fails_s + one.after_s for one in failing), deliveries.clock.now)
            )
            fails.callbacks.append(lambda _: self._fails_over(other))

    def _takes(self, way: WayOver) -> None:
        """Send over some way from now on."""
        self.way, self.links = way, [*way.links]
        lossy = [self.deliveries.losses[link] for link in way.links if link in self.deliveries.losses]
        #: Links after a loss on which a sender goes back, and those on which it waits.
        self.goes_back = [one for one in lossy if one.behaviour.timeout_s is None]
        self.waits = [one for one in lossy if one.behaviour.timeout_s is not None]
        self.timeout_s = max((one.behaviour.timeout_s or 0.0 for one in self.waits), default=0.0)
        #: How much is lost at a time; None where all of what is sent is.
        sizes = [] if self.whole else [one.behaviour.packet_bytes for one in lossy]
        self.packet_bytes = max(sizes, default=None)

    def send(self, unit: Carried) -> None:
        """Send something for the first time."""
        self._all_of(unit, is_first=True)

    def _all_of(self, unit: Carried, *, is_first: bool) -> None:
        """Send all of something, and behind it what is sent again behind a packet that was lost."""
        packet_bytes = unit.bytes if self.packet_bytes is None else min(self.packet_bytes, unit.bytes)
        n_packets = max(1, -(-unit.bytes // packet_bytes)) if packet_bytes else 1
        again_bytes = 0
        for one in self.goes_back:
            n_lost = one.resent(n_packets)
            self.deliveries.lost_packets[one.link] += n_lost
            again_bytes += n_lost * one.behaviour.go_back * packet_bytes
        self.deliveries.resent_bytes[self.links] += again_bytes
        self._attempt(unit, n_packets, unit.bytes, again_bytes, is_first=is_first)

    def _attempt(
        self, unit: Carried, n_packets: int, own_bytes: int, again_bytes: int = 0, *, is_first: bool = False
    ) -> None:
        """Send some packets of a unit, of ``own_bytes``; what was to be sent again is behind them."""
        left = n_packets
        for one in self.waits:
            n_lost = one.lost(left)
            self.deliveries.lost_packets[one.link] += n_lost
            left -= n_lost
        attempt = Attempt(self, unit, n_packets, own_bytes, n_packets - left, is_first=is_first)
        attempt.bytes += again_bytes
        self.flying[attempt] = None
        self.way.enter(attempt)

    def arrived(self, attempt: Attempt, arrived_s: float) -> None:
        """Hand over what is there whole, or send again what was lost, once that is known."""
        unit, clock = attempt.unit, self.deliveries.clock
        del self.flying[attempt]
        if not attempt.lost:
            unit.sent_s = attempt.sent_s
            unit.arrives(clock, arrived_s)
            return
        # Which of them were lost is not drawn: their mean size, of which only the last may be smaller.
        n_bytes = round(attempt.own_bytes * attempt.lost / attempt.n_packets)
        again = clock.wake_at(max(attempt.sent_s + self.timeout_s, clock.now))
        again.callbacks.append(lambda _: self._again(unit, attempt.lost, n_bytes))

    def _again(self, unit: Carried, n_packets: int, n_bytes: int) -> None:
        self.deliveries.resent_bytes[self.links] += n_bytes
        self._attempt(unit, n_packets, n_bytes)

    def _fails_over(self, other: WayOver) -> None:
        """Take another way, for what comes and for all that stands at the link that has failed, or before it."""
        failing, now_s = self.deliveries.failing, self.deliveries.clock.now
        dead = [at for at, link in enumerate(self.links) if link in failing and failing[link].fails_s <= now_s]
        stands = [attempt for attempt in self.flying if attempt.hop <= dead[-1]]
        is_fifo = bool(self.way.route.links)
        other.route.owner = self.way.route.owner
        for attempt in stands:
            del self.flying[attempt]
            attempt.is_dropped, attempt.counts = True, 0
            self.deliveries.drop(attempt)
            # Under fifo it will have crossed the links before the one that failed; flows have all links at once.
            if attempt.is_first and attempt.started_s != NEVER:
                attempt.unit.started_s = attempt.started_s
            if is_fifo or attempt.started_s != NEVER:
                first = next(at for at in dead if at >= attempt.hop)
                crossed = self.links[:first] if is_fifo else self.links
                self.deliveries.resent_bytes[crossed] += attempt.bytes
        self._takes(other)
        for attempt in stands:
            self._all_of(attempt.unit, is_first=attempt.is_first and attempt.started_s == NEVER)


def whole_of(carried: Carried) -> Carried | None:
    """Return what a part of something is cut from; None for what is whole."""
    if isinstance(carried, Attempt):
        return whole_of(carried.unit)
    return carried.cut_from if isinstance(carried, Part) else None
