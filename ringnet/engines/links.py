"""Links of the `events` engine under fifo sharing: each is a SimPy process that serves one thing after another."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import simpy

from ringnet.engines.clock import LAST, Clock, Process
from ringnet.engines.delays import ROUNDING, Delays
from ringnet.engines.parts import Wholes
from ringnet.engines.trace import Columns
from ringnet.networks import Behaviour, Constant, Network
from ringnet.networks.behaviour import ANY_SIZE, NEVER

if TYPE_CHECKING:
    from ringnet.engines.transfer import Moving

#: A queue is ordered by when the head came, then by sender, channel and place in the schedule.
Queued: TypeAlias = "tuple[float, int, int, int, Moving]"


class Link:
    """One direction of a cable. Its process sleeps while nothing is queued.

    Parameters
    ----------
    clock : Clock
    behaviour : Behaviour
    cut_through : bool
        Whether the head goes on before the tail has come.
    """

    def __init__(self, clock: Clock, behaviour: Behaviour, *, cut_through: bool) -> None:
        self.clock, self.cut_through = clock, cut_through
        # Most links are constant: their two numbers are at hand, and the others are asked.
        self.bandwidth_Bps, self.latency_s = behaviour.offer(ANY_SIZE, clock.now)
        self.behaviour = None if type(behaviour) is Constant else behaviour
        self.queue: list[Queued] = []
        self.asleep: simpy.Event | None = None
        self.free_s = clock.now
        self.bytes = self.transfers = self.longest_queue = 0
        self.busy_s = self.occupied_s = self.queued_s = 0.0
        #: Where transfers come in parts: of which they are.
        self.wholes: Wholes | None = None
        #: Where it is to be kept who waited: there, under the link's number.
        self.number, self.delays = 0, Delays(most=0)
        clock.process(self.serve())

    def enter(self, moving: Moving) -> None:
        """Queue what has its head here now, and wake the link for it."""
        now = moving.head_s = self.clock.now
        heappush(self.queue, (now, moving.src, moving.channel, moving.index, moving))
        if self.wholes is not None:
            self.wholes.comes(moving)
        if self.free_s > now and len(self.queue) > self.longest_queue:
            self._note_queue(now, self.free_s)
        if self.asleep is not None:
            # Later links of a route choose later: without latency a head comes on at the time of its service.
            self.clock.at(now if now > self.free_s else self.free_s, self.asleep, LAST + moving.hop)
            self.asleep = None

    def serve(self) -> Process:
        """Sleep until there is something to do and the link is free, then serve the first; until one never ends."""
        clock, queue = self.clock, self.queue
        while self.free_s != NEVER:
            if queue:
                yield clock.wake_at(self.free_s, LAST + queue[0][-1].hop)
            else:
                self.asleep = simpy.Event(clock)
                yield self.asleep
            self.pass_on(heappop(queue)[-1])

    def pass_on(self, moving: Moving) -> None:
        """Serve something from now on; then its head reaches the next link, or its tail the receiver."""
        start_s = self.clock.now
        if self.wholes is not None:
            self.wholes.goes(moving)
        if self.behaviour is None:
            busy_s, latency_s = moving.bytes / self.bandwidth_Bps, self.latency_s
        else:
            busy_s = self.behaviour.service_s(start_s, moving.bytes, moving.size_bytes)
            if busy_s == NEVER:
                # It stays here, and so does all that comes after it; later links do not wait for it.
                self.free_s = NEVER
                return
            latency_s = self.behaviour.offer(moving.size_bytes, start_s).latency_s
        end_s = start_s + busy_s
        if moving.hop == 0:
            moving.started_s, moving.sent_s = start_s, end_s
        elif self.cut_through and moving.tail_s > end_s:
            end_s = moving.tail_s
        self.free_s = end_s
        self.busy_s += busy_s
        self.occupied_s += end_s - start_s
        self.transfers += moving.whole
        self.bytes += moving.bytes
        if start_s > moving.head_s:
            self._note_wait(moving, start_s)
        if self.queue and end_s > start_s and len(self.queue) > self.longest_queue:
            self._note_queue(start_s, end_s)
        if self.wholes is not None:
            self.wholes.is_served(moving, end_s)
        moving.tail_s = end_s + latency_s
        moving.hop += 1
        if moving.hop == len(moving.route.links):
            moving.arrives(self.clock, moving.tail_s)
        else:
            self.hand_on(moving, start_s + latency_s if self.cut_through else moving.tail_s)

    def _note_queue(self, from_s: float, to_s: float) -> None:
        """Note how many wait for a while, if they are more than ever."""
        if to_s - from_s <= ROUNDING * to_s:
            return
        n_waiting = len(self.queue) if self.wholes is None else self.wholes.n_waiting()
        self.longest_queue = max(self.longest_queue, n_waiting)

    def _note_wait(self, moving: Moving, start_s: float) -> None:
        """Note that something had to wait until now, and for how long."""
        moving.queued = True
        since_s = moving.head_s if self.wholes is None else self.wholes.waits_since(moving)
        if start_s - since_s > ROUNDING * start_s:
            self.queued_s += start_s - since_s
            self.delays.add(self.number, moving.route.job, since_s, start_s)

    def hand_on(self, moving: Moving, head_s: float) -> None:
        """Let the head reach the next link at ``head_s``."""
        following = moving.route.links[moving.hop]
        head = self.clock.wake_at(head_s)
        head.callbacks.append(lambda _: following.enter(moving))


def make_link(clock: Clock, network: Network, number: int, delays: Delays) -> Link:
    """Return a link of a network; who waits for it is kept in ``delays``."""
    link = Link(clock, network.behaviour(number), cut_through=network.switching == "cut-through")
    link.number, link.delays = number, delays
    if network.packets is not None or (network.window is not None and network.window.bytes is not None):
        link.wholes = Wholes()
    return link


def link_columns(links: Mapping[int, Link], n_links: int) -> Columns:
    """Return one row per link, as `Trace.links` has them: of zeros for those that nobody used."""
    kinds: dict[str, type] = {"bytes": int, "transfers": int, "longest_queue": int}
    kinds |= {"busy_s": float, "occupied_s": float, "queued_s": float}
    columns: Columns = {name: np.zeros(n_links, dtype=kind) for name, kind in kinds.items()}
    for name, column in columns.items():
        column[[*links]] = [getattr(link, name) for link in links.values()]
    return columns
