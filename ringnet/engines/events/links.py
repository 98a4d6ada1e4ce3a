"""Links of the `events` engine under fifo sharing: each is a SimPy process that serves one thing after another."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
import simpy

from ringnet.engines.events.carried import Carried
from ringnet.engines.events.clock import LAST, Clock, Process
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import Columns, LinkWaits, ServiceRows
from ringnet.networks import Behaviour, Constant, Network
from ringnet.networks.behaviour import ANY_SIZE, NEVER

#: A queue is ordered by when the head came, then by sender, channel and place in the schedule.
Queued: TypeAlias = tuple[float, int, int, int, Carried]


class PartsByTransfer:
    """Of which transfers the parts are that come to a link: parts of one do not wait for each other, they follow."""

    def __init__(self) -> None:
        self.n_queued: dict[Carried, int] = {}
        #: When the last part of each was done, and what the link had served by then of the same sender.
        self.left: dict[Carried, tuple[float, float]] = {}
        self.served: Carried | None = None

    def comes(self, carried: Carried) -> None:
        """Note that something has come."""
        self.n_queued[carried.whole] = self.n_queued.get(carried.whole, 0) + 1

    def goes(self, carried: Carried) -> None:
        """Note that the link serves something now."""
        whole = self.served = carried.whole
        self.n_queued[whole] -= 1
        if not self.n_queued[whole]:
            del self.n_queued[whole]

    def is_served(self, carried: Carried, end_s: float, own_s: float) -> None:
        """Note until when it serves that, and how long it will then have served the same sender."""
        if carried.counts:
            self.left.pop(carried.whole, None)
        else:
            self.left[carried.whole] = end_s, own_s

    def n_waiting(self) -> int:
        """Return the transfers that wait, none of whose parts is being served."""
        return len(self.n_queued) - (self.served in self.n_queued)

    def waits_since(self, carried: Carried) -> tuple[float, float]:
        """Return since when something waits for others: since it came, or since the part before it has gone.

        Beside it is for how long the link had served the same sender then.
        """
        return max((carried.head_s, carried.had_s), self.left.get(carried.whole, (0.0, 0.0)))


#: Who sends something: the number of the job, or of other traffic, and of the worker.
Sender: TypeAlias = tuple[int, int]


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
        self.behaviour = None if type(behaviour) is Constant else behaviour
        if self.behaviour is None:
            self.bandwidth_Bps, self.latency_s = behaviour.offer(ANY_SIZE, clock.now)
        self.queue: list[Queued] = []
        self.asleep: simpy.Event | None = None
        self.free_s = clock.now
        self.bytes = self.transfers = self.longest_queue = 0
        self.busy_s = self.held_s = self.queued_s = 0.0
        #: For how long each sender's have been served, to the end of the last; and whose that is.
        self.served_s: dict[Sender, float] = {}
        self.serves: Sender | None = None
        #: Where transfers come in parts: of which they are.
        self.parts: PartsByTransfer | None = None
        #: Where it is to be kept who waited: there, under the link's number.
        self.number, self.waits = 0, LinkWaits(most=0)
        #: The same for what it serves; None where that is not kept.
        self.services: ServiceRows | None = None
        clock.process(self.serve())

    def enter(self, carried: Carried) -> None:
        """Queue what has its head here now, and wake the link for it."""
        now = carried.head_s = self.clock.now
        heappush(self.queue, (now, carried.src, carried.channel, carried.index, carried))
        if self.parts is not None:
            self.parts.comes(carried)
        if self.free_s > now and len(self.queue) > self.longest_queue:
            self._note_queue(now, self.free_s)
        sender = carried.route.owner, carried.src
        carried.had_s = self.served_s.get(sender, 0.0)
        if self.free_s > now and sender == self.serves:
            carried.had_s -= self.free_s - now
        if self.asleep is not None:
            # Later links of a route choose later: without latency a head comes on at the time of its service.
            self.clock.at(now if now > self.free_s else self.free_s, self.asleep, LAST + carried.hop)
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

    def pass_on(self, carried: Carried) -> None:
        """Serve something from now on; then its head reaches the next link, or its tail the receiver."""
        start_s = self.clock.now
        if self.parts is not None:
            self.parts.goes(carried)
        if self.behaviour is None:
            busy_s, latency_s = carried.bytes / self.bandwidth_Bps, self.latency_s
        else:
            busy_s, latency_s = self._asked(self.behaviour, carried, start_s)
            if busy_s == NEVER:
                # It stays here, and so does all that comes after it; later links do not wait for it.
                self.free_s = NEVER
                return
            self.busy_s += busy_s
        end_s = start_s + busy_s
        if carried.hop == 0:
            carried.started_s, carried.sent_s = start_s, end_s
        elif self.cut_through:
            end_s = max(end_s, carried.tail_s)
            self.held_s += (end_s - start_s) - busy_s
        self.free_s = end_s
        self.transfers += carried.counts
        self.bytes += carried.bytes
        sender = carried.route.owner, carried.src
        own_s = self.served_s.get(sender, 0.0)
        if start_s > carried.head_s:
            self._note_wait(carried, start_s, own_s)
        self.serves, self.served_s[sender] = sender, own_s + (end_s - start_s)
        if self.queue and end_s > start_s and len(self.queue) > self.longest_queue:
            self._note_queue(start_s, end_s)
        if self.parts is not None:
            self.parts.is_served(carried, end_s, self.served_s[sender])
        if self.services is not None:
            what = carried.index, carried.route.owner, self.number, carried.hop, carried.bytes
            self.services.add((*what, carried.head_s, start_s, end_s, 0.0))
        carried.tail_s = end_s + latency_s
        carried.hop += 1
        if carried.hop == len(carried.route.links):
            carried.arrives(self.clock, carried.tail_s)
        else:
            self.hand_on(carried, start_s + latency_s if self.cut_through else carried.tail_s)

    def _asked(self, behaviour: Behaviour, carried: Carried, start_s: float) -> tuple[float, float]:
        """Ask what the link does: return how long it serves something, and its latency; none where that never ends."""
        own = behaviour.of_transfer(self.transfers)
        if own is not behaviour:
            carried.drawn = (*carried.drawn, own)
        busy_s = own.service_s(start_s, carried.bytes, carried.whole.bytes)
        return busy_s, 0.0 if busy_s == NEVER else own.offer(carried.whole.bytes, start_s).latency_s

    def _note_queue(self, from_s: float, to_s: float) -> None:
        """Note how many wait for a while, if they are more than ever."""
        if to_s - from_s <= ROUNDING * to_s:
            return
        n_waiting = len(self.queue) if self.parts is None else self.parts.n_waiting()
        self.longest_queue = max(self.longest_queue, n_waiting)

    def _note_wait(self, carried: Carried, start_s: float, own_s: float) -> None:
        """Note that something had to wait until now: for how long, and also behind its sender's, ``own_s`` in all."""
        carried.queued = True
        since_s, had_s = carried.head_s, carried.had_s
        if self.parts is not None:
            since_s, had_s = self.parts.waits_since(carried)
        lost_s, whole = start_s - since_s, carried.whole
        if lost_s > ROUNDING * start_s:
            self.queued_s += lost_s
            self.waits.add(self.number, carried.route.owner, since_s, start_s)
            others_s = lost_s - (own_s - had_s)
            whole.lost_s += lost_s
            whole.own_lost_s += lost_s - others_s if others_s > ROUNDING * start_s else lost_s

    def hand_on(self, carried: Carried, head_s: float) -> None:
        """Let the head reach the next link at ``head_s``."""
        following = carried.route.links[carried.hop]
        head = self.clock.wake_at(head_s)
        head.callbacks.append(lambda _: following.enter(carried))


def serves_parts(network: Network) -> bool:
    """Whether transfers come to the links of a network in parts."""
    return network.packets is not None or (network.window is not None and network.window.bytes is not None)


def make_link(clock: Clock, network: Network, number: int, waits: LinkWaits, services: ServiceRows | None) -> Link:
    """Return a link of a network; who waits for it is kept in ``waits``, whom it serves in ``services``."""
    link = Link(clock, network.behaviour(number), cut_through=network.switching == "cut-through")
    link.number, link.waits = number, waits
    link.services = services
    if serves_parts(network):
        link.parts = PartsByTransfer()
    return link


def link_columns(links: Mapping[int, Link], n_links: int) -> Columns:
    """Return one row per link, as `Trace.links` has them: of zeros for those that nobody used."""
    kinds: dict[str, type] = {"bytes": int, "transfers": int, "longest_queue": int}
    kinds |= {"busy_s": float, "held_s": float, "queued_s": float}
    columns: Columns = {name: np.zeros(n_links, dtype=kind) for name, kind in kinds.items()}
    for name, column in columns.items():
        column[[*links]] = [getattr(link, name) for link in links.values()]
    # Where a link is constant its bytes say how long it was busy: no sum of quotients, whose last bits would depend on
    # their order, and the other engine's number.
    for number, link in links.items():
        if link.behaviour is None:
            columns["busy_s"][number] = link.bytes / link.bandwidth_Bps
    columns["occupied_s"] = columns["busy_s"] + columns.pop("held_s")
    order = ("bytes", "transfers", "busy_s", "occupied_s", "longest_queue", "queued_s")
    return {name: columns[name] for name in order}
