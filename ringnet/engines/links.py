"""Links of the `events` engine: each is a SimPy process that serves whole transfers, first in first out."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
import simpy

from ringnet.engines.clock import LAST, Clock
from ringnet.engines.trace import Columns
from ringnet.engines.transfer import Transfer
from ringnet.networks import Network

#: A queue is ordered by when the head came, then by sender, channel and place in the schedule.
Queued: TypeAlias = tuple[float, int, int, int, Transfer]


class Link:
    """One direction of a cable. Its process sleeps while nothing is queued.

    Parameters
    ----------
    clock : Clock
    bandwidth_Bps, latency_s : float
    cut_through : bool
        Whether the head goes on before the tail has come.
    """

    def __init__(self, clock: Clock, bandwidth_Bps: float, latency_s: float, *, cut_through: bool) -> None:
        self.clock = clock
        self.bandwidth_Bps, self.latency_s, self.cut_through = bandwidth_Bps, latency_s, cut_through
        self.queue: list[Queued] = []
        self.asleep: simpy.Event | None = None
        self.free_s = 0.0
        self.bytes = self.transfers = self.longest_queue = 0
        self.busy_s = self.occupied_s = self.queued_s = 0.0
        clock.process(self.serve())

    def enter(self, transfer: Transfer) -> None:
        """Queue a transfer whose head is here now, and wake the link for it."""
        now = transfer.head_s = self.clock.now
        heappush(self.queue, (now, transfer.src, transfer.channel, transfer.index, transfer))
        if self.free_s > now and len(self.queue) > self.longest_queue:
            self.longest_queue = len(self.queue)
        if self.asleep is not None:
            # Later links of a route choose later: without latency a head comes on at the time of its service.
            self.clock.at(now if now > self.free_s else self.free_s, self.asleep, LAST + transfer.hop)
            self.asleep = None

    def serve(self) -> Iterator[simpy.Event]:
        """Serve for ever: sleep until there is something to do and the link is free, then serve the first."""
        clock, queue = self.clock, self.queue
        while True:
            if queue:
                yield clock.wake_at(self.free_s, LAST + queue[0][-1].hop)
            else:
                self.asleep = simpy.Event(clock)
                yield self.asleep
            self.pass_on(heappop(queue)[-1])

    def pass_on(self, transfer: Transfer) -> None:
        """Serve one transfer from now on; then its head reaches the next link, or its tail the receiver."""
        start_s = self.clock.now
        busy_s = transfer.bytes / self.bandwidth_Bps
        end_s = start_s + busy_s
        if transfer.hop == 0:
            transfer.started_s, transfer.sent_s = start_s, end_s
        elif self.cut_through and transfer.tail_s > end_s:
            end_s = transfer.tail_s
        self.free_s = end_s
        self.busy_s += busy_s
        self.occupied_s += end_s - start_s
        self.transfers += 1
        self.bytes += transfer.bytes
        if start_s > transfer.head_s:
            transfer.queued = True
            self.queued_s += start_s - transfer.head_s
        if self.queue and end_s > start_s and len(self.queue) > self.longest_queue:
            self.longest_queue = len(self.queue)
        transfer.tail_s = end_s + self.latency_s
        transfer.hop += 1
        if transfer.hop == len(transfer.route.links):
            transfer.arrives(self.clock, transfer.tail_s)
        else:
            self.hand_on(transfer, start_s + self.latency_s if self.cut_through else transfer.tail_s)

    def hand_on(self, transfer: Transfer, head_s: float) -> None:
        """Let the head reach the next link at ``head_s``."""
        following = transfer.route.links[transfer.hop]
        head = self.clock.wake_at(head_s)
        head.callbacks.append(lambda _: following.enter(transfer))


class Route:
    """The links from one worker to another, and what they take when nothing else is on them."""

    __slots__ = ("cut_through", "latency_s", "links")

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.links = links
        self.latency_s = sum(link.latency_s for link in links)
        self.cut_through = links[0].cut_through

    def idle_s(self, n_bytes: int) -> float:
        """Seconds that ``n_bytes`` occupy an idle route, latency apart."""
        times = [n_bytes / link.bandwidth_Bps for link in self.links]
        return max(times) if self.cut_through else sum(times)


class Wires:
    """All links of a network, and the routes over them."""

    def __init__(self, clock: Clock, network: Network) -> None:
        cut_through = network.switching == "cut-through"
        self.network = network
        self.links = [
            Link(clock, bandwidth_Bps, latency_s, cut_through=cut_through)
            for bandwidth_Bps, latency_s in zip(
                network.bandwidth_Bps.tolist(), network.latency_s.tolist(), strict=True
            )
        ]
        self.routes: dict[tuple[int, int], Route] = {}

    def route(self, src: int, dst: int) -> Route:
        """Return the route from worker ``src`` to worker ``dst``; made once."""
        if (src, dst) not in self.routes:
            self.routes[src, dst] = Route(tuple(self.links[link] for link in self.network.route(src, dst)))
        return self.routes[src, dst]

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        names = ("bytes", "transfers", "busy_s", "occupied_s", "longest_queue", "queued_s")
        return {name: np.array([getattr(link, name) for link in self.links]) for name in names}
