"""Routes: how what is sent takes the links to its receiver, under fifo and under fair sharing, and through a window."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from ringnet.engines.events.carried import Carried, Part, PathSeconds, cut
from ringnet.engines.events.clock import Clock
from ringnet.engines.events.deliveries import Deliveries, Enter, WayOver
from ringnet.engines.events.fair import Arbiter, OwnLinks, Stream
from ringnet.engines.events.links import Link, link_columns, make_link, serves_parts
from ringnet.engines.tolerances import added
from ringnet.engines.trace import Columns, LinkWaits, RateRows, ServiceRows
from ringnet.errors import Fault, InputError
from ringnet.networks import (
    Behaviour,
    BySize,
    Constant,
    DrawnLatency,
    FailsOver,
    Lossy,
    Network,
    OverTime,
    Window,
    beyond,
    fails_over,
)
from ringnet.networks.behaviour import ANY_SIZE, NEVER
from ringnet.networks.network import Route as LinkNumbers

#: What links did for one transfer that do something of its own for each; see `Carried`.
Drawn: TypeAlias = tuple[Behaviour, ...]
#: What links may do that are shared fairly, or that a window is over.
WHOLE = (BySize, OverTime, Lossy, FailsOver)


class Route:
    """The way from one worker to another, and what it takes when nothing else is on it.

    Parameters
    ----------
    links : tuple of Link
        Under fair sharing none: the arbiter has them.
    latency_s : float or None
        Of all links; None where it is not the same for all transfers.
    alone : callable
        Of some bytes that start at some time and meet no others: the latency, and the seconds beside it. Where links do
        something of its own for each transfer, it takes what they did for this one.
    enter : callable
        Lets a transfer start.
    behaviours : sequence of Behaviour
        What its links do, where that is more than being constant.
    names : sequence of str
        Of these links.
    """

    __slots__ = ("alone", "behaviours", "credit", "enter", "latency_s", "links", "names", "owner")

    def __init__(
        self,
        links: tuple[Link, ...],
        latency_s: float | None,
        alone: Callable[[int, float, Drawn], tuple[float, float]],
        enter: Enter,
        behaviours: Sequence[Behaviour],
        names: Sequence[str],
    ) -> None:
        self.links, self.latency_s, self.alone, self.enter = links, latency_s, alone, enter
        self.behaviours = () if latency_s is not None else behaviours
        self.names = names
        #: The window of the connection, if it has one; and which of several jobs, or of other traffic, uses the route.
        self.credit: Credit | None = None
        self.owner = 0

    def serves(self, now_s: float, hop: int) -> bool:
        """Whether its links, from one of them on, still serve at some time."""
        return not self.stopped(now_s, hop)

    def stopped(self, now_s: float, hop: int) -> str:
        """Say which of its links, from one of them on, carries nothing any more; nothing where all do."""
        for behaviour, name in [*zip(self.behaviours, self.names, strict=False)][hop:]:
            if behaviour.least_s(1, now_s) == NEVER and fails_over(behaviour) is None:
                return f"link {name} carries nothing any more"
        return ""


class Links(Protocol):
    """All links of a network, whoever uses them."""

    clock: Clock

    def along(self, links: LinkNumbers) -> Route:
        """Return the route over some links, by their numbers."""

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""

    def services(self) -> Columns | None:
        """Return who was served when, as `Trace.services` has it."""

    def rates(self) -> RateRows | None:
        """Return how fast what moved when, as `Trace.rates` has it."""

    def last_s(self) -> float:
        """Return when the last link had something to do."""

    def counts(self) -> dict[str, int]:
        """Return what was worked out beside events: under fair sharing how often rates were, and how many."""


class FifoLinks:
    """Links that serve one thing after another; ``keep_services`` says whether it is kept who was served when."""

    def __init__(self, clock: Clock, network: Network, *, keep_services: bool) -> None:
        own = [one for one in network.behaviours.values() if one.differs_by_transfer]
        if own and serves_parts(network):
            raise InputError(Fault(f"transfers cannot go in parts here: {own[0].meaning}", right="no packet"))
        self.clock, self.network = clock, network
        #: Made when a route first takes them: of a million links a ring uses a thousand.
        self.links: dict[int, Link] = {}
        self.who_waited = LinkWaits()
        self.deliveries = Deliveries(clock, network)
        self.served = ServiceRows() if keep_services else None

    def along(self, links: LinkNumbers) -> Route:
        """Return the route over some links, by their numbers."""
        route, in_packets = self._plain(links), self.network.packets is not None
        enter = self.deliveries.over(WayOver(links, route, route.enter), self._way, whole=in_packets)
        route.enter = partial(self._enter_in_packets, enter) if in_packets else enter
        return route

    def _way(self, links: LinkNumbers) -> WayOver:
        route = self._plain(links)
        return WayOver(links, route, route.enter)

    def _plain(self, links: LinkNumbers) -> Route:
        """Return the route over some links, on which nothing is sent again."""
        behaviours = [self.network.behaviour(link) for link in links]
        hands_on_whole = self.network.switching != "cut-through"
        bandwidths_Bps = [behaviour.peak() for behaviour in behaviours]
        same_latency_s = _same_latency_s(behaviours)

        def alone(n_bytes: int, start_s: float, drawn: Drawn) -> tuple[float, float]:
            if same_latency_s is not None:  # as most are
                services = [n_bytes / bandwidth_Bps for bandwidth_Bps in bandwidths_Bps]
                return same_latency_s, added(services) if hands_on_whole else max(services)
            latency_s = services_s = longest_s = 0.0
            for behaviour in _of_one(behaviours, drawn):
                head_s = start_s + latency_s + (services_s if hands_on_whole else 0.0)
                service_s = behaviour.service_s(head_s, n_bytes, n_bytes)
                services_s, longest_s = services_s + service_s, max(longest_s, service_s)
                latency_s += behaviour.offer(n_bytes, head_s).latency_s
            return latency_s, services_s if hands_on_whole else longest_s

        on_way = tuple(map(self._link, links))
        names = [self.network.names[link] for link in links if same_latency_s is None]
        return Route(on_way, same_latency_s, alone, on_way[0].enter, behaviours, names)

    def _link(self, number: int) -> Link:
        if number not in self.links:
            self.links[number] = make_link(self.clock, self.network, number, self.who_waited, self.served)
        return self.links[number]

    def _enter_in_packets(self, enter: Enter, carried: Carried) -> None:
        packets = self.network.packets
        assert packets is not None
        for part in cut(carried, packets.bytes, packets.header_bytes):
            enter(part)

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        return link_columns(self.links, self.network.n_links) | self.deliveries.columns()

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        return self.who_waited.columns()

    def services(self) -> Columns | None:
        """Return who was served when, as `Trace.services` has it."""
        return None if self.served is None else self.served.columns

    def rates(self) -> None:
        """Return nothing: the services say it."""

    def counts(self) -> dict[str, int]:
        """Return nothing: all is in the events."""
        return {}

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        return max((link.free_s for link in self.links.values() if link.free_s != NEVER), default=0.0)


class FairLinks:
    """Links that share themselves fairly among all that is on them; ``keep_services`` is that of `FifoLinks`.

    ``own`` says whether and how to find what flows lose to others of their own sender: see `Arbiter`.

    Raises
    ------
    InputError
        If a link does something of which it is not known what is fair.
    """

    def __init__(self, clock: Clock, network: Network, *, keep_services: bool, own: OwnLinks | None) -> None:
        if reason := beyond(network, (*WHOLE, DrawnLatency), fair=True, window=True, packets=True):
            raise InputError(Fault(f"links cannot be shared fairly here: {reason}", right="sharing: fifo"))
        self.clock, self.network = clock, network
        self.served = ServiceRows() if keep_services else None
        self.arbiter = Arbiter(clock, network, self.served, own)
        self.deliveries = Deliveries(clock, network, self.arbiter.drop)
        #: Transfers that have come to each link that draws a latency for each.
        self.n_drawn: Counter[int] = Counter()
        self.waits, self.last_s = self.arbiter.waits, self.arbiter.last_s

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        return self.arbiter.columns() | self.deliveries.columns()

    def services(self) -> Columns | None:
        """Return who moved when, as `Trace.services` has it."""
        return None if self.served is None else self.served.columns

    def rates(self) -> RateRows | None:
        """Return how fast what moved when, as `Trace.rates` has it."""
        return None if self.arbiter.rates is None else self.arbiter.rates.kept

    def counts(self) -> dict[str, int]:
        """Return how often rates were worked out, and how many in all."""
        return {"settlements": self.arbiter.settlements, "rates": self.arbiter.shares.n_filled}

    def along(self, links: LinkNumbers) -> Route:
        """Return the route over some links, by their numbers."""
        route = self._plain(links)
        route.enter = self.deliveries.over(WayOver(links, route, route.enter), self._way)
        return route

    def _way(self, links: LinkNumbers) -> WayOver:
        route = self._plain(links)
        return WayOver(links, route, route.enter)

    def _plain(self, links: LinkNumbers) -> Route:
        """Return the route over some links, on which nothing is sent again."""
        behaviours = [self.network.behaviour(link) for link in links]
        same_latency_s = _same_latency_s(behaviours)
        peak_Bps = min(behaviour.peak() for behaviour in behaviours)

        def latency(n_bytes: int, start_s: float, drawn: Drawn) -> float:
            return added(one.offer(n_bytes, start_s).latency_s for one in _of_one(behaviours, drawn))

        def alone(n_bytes: int, start_s: float, drawn: Drawn) -> tuple[float, float]:
            if same_latency_s is not None:  # as most are
                return same_latency_s, n_bytes / peak_Bps
            latency_s = latency(n_bytes, start_s, drawn)
            here = _of_one(behaviours, drawn)
            return latency_s, _narrowest_s(here, start_s + latency_s, n_bytes)

        def start(carried: Carried) -> None:
            # The whole latency first, then the bytes at a fair rate.
            carried.queued = True
            latency_s, most_Bps = same_latency_s, peak_Bps
            if latency_s is None:
                n_bytes = carried.whole.bytes
                carried.drawn = self._drawn(links)
                latency_s = latency(n_bytes, self.clock.now, carried.drawn)
                most_Bps = min(_most_Bps(behaviour, n_bytes) for behaviour in behaviours)
            stream = Stream(carried, links, self._charged(carried.bytes), most_Bps, self.clock.now)
            head = self.clock.wake_at(self.clock.now + latency_s)
            head.callbacks.append(lambda _: self.arbiter.enter(stream))

        names = [self.network.names[link] for link in links if same_latency_s is None]
        return Route((), same_latency_s, alone, start, behaviours, names)

    def _drawn(self, links: LinkNumbers) -> Drawn:
        """Return what those links do for the next transfer on them that do something of its own for each."""
        drawn = []
        for link in links:
            if self.network.behaviour(link).differs_by_transfer:
                drawn.append(self.network.behaviour(link).of_transfer(self.n_drawn[link]))
                self.n_drawn[link] += 1
        return tuple(drawn)

    def _charged(self, n_bytes: int) -> int:
        packets = self.network.packets
        return n_bytes if packets is None else n_bytes + packets.header_bytes * -(-n_bytes // packets.bytes)


def make_links(clock: Clock, network: Network, *, keep_services: bool, own: OwnLinks | None) -> Links:
    """Return the links of a network whose sharing is known: fifo or fair."""
    if network.sharing == "fair":
        return FairLinks(clock, network, keep_services=keep_services, own=own)
    return FifoLinks(clock, network, keep_services=keep_services)


def _of_one(behaviours: Sequence[Behaviour], drawn: Drawn) -> Sequence[Behaviour]:
    """Return what links do for one transfer, some of which did something of its own for it."""
    if not drawn:
        return behaviours
    own = iter(drawn)
    return [next(own) if one.differs_by_transfer else one for one in behaviours]


def _same_latency_s(behaviours: Sequence[Behaviour]) -> float | None:
    """Return the latency of some links together; None where it is not the same for all transfers."""
    if all(type(behaviour) is Constant for behaviour in behaviours):
        return added(behaviour.offer(ANY_SIZE, 0.0).latency_s for behaviour in behaviours)
    return None


def _most_Bps(behaviour: Behaviour, n_bytes: int) -> float:  # noqa: N802 -- the unit
    """Return what a link gives to no transfer of a size more of, whenever that is."""
    return behaviour.offer(n_bytes, 0.0).bandwidth_Bps if type(behaviour) is BySize else behaviour.peak()


def _narrowest_s(behaviours: Sequence[Behaviour], start_s: float, n_bytes: int) -> float:
    """Return the seconds that bytes take from ``start_s`` on over all links at once, at the narrowest's rate."""
    left, now_s = float(n_bytes), start_s
    while True:
        rate_Bps = min(behaviour.offer(n_bytes, now_s).bandwidth_Bps for behaviour in behaviours)
        change_s = min(behaviour.next_change_s(now_s) for behaviour in behaviours)
        if rate_Bps and left <= rate_Bps * (change_s - now_s):
            return now_s - start_s + left / rate_Bps
        if change_s == NEVER:
            return NEVER
        left, now_s = left - rate_Bps * (change_s - now_s), change_s


class JobRoutes:
    """The routes of one job, each made once.

    Parameters
    ----------
    links : Links
    network : Network
        Its routes are between the workers of this job.
    job : int
        Which of several jobs on the same links it is; equal times are served by it last.
    """

    def __init__(self, links: Links, network: Network, job: int) -> None:
        self.links, self.network, self.job = links, network, job
        self._routes: dict[tuple[int, int], Route] = {}
        if network.window is not None and (reason := beyond(network, WHOLE, fair=True, window=True, packets=True)):
            raise InputError(Fault(f"a window's credit cannot come back here: {reason}", "window"))

    def route(self, src: int, dst: int) -> Route:
        """Return the route from worker ``src`` to worker ``dst``."""
        if (src, dst) not in self._routes:
            route = self._routes[src, dst] = self.links.along(self.network.route(src, dst))
            route.owner = self.job
            if self.network.window is not None:
                back = [self.network.behaviour(link) for link in self.network.route(dst, src)]
                back_s = added(behaviour.offer(0, 0.0).latency_s for behaviour in back)
                route.credit = Credit(self.links.clock, self.network.window, back_s, route.enter)
                route.enter = route.credit.ask
        return self._routes[src, dst]


class Credit:
    """The window of one connection: first come first served.

    A transfer goes in slots of an eighth of the window, one after another; a slot is applied when it has arrived, the
    last one with its transfer, and its credit is back after the latency of the way back. So what is under way without
    credit slides on slot by slot, within a transfer and from one to the next: over a route of bandwidth B a window of
    W bytes gives min(B, W / (W/8B + R)), R the latency there and back: W/R where R is long.

    Parameters
    ----------
    clock : Clock
    window : Window
    back_s : float
        Latency of the route from the receiver to the sender.
    enter : callable
        Lets on to the route what there is credit for.
    """

    def __init__(self, clock: Clock, window: Window, back_s: float, enter: Enter) -> None:
        self.clock, self.window, self.back_s, self.enter = clock, window, back_s, enter
        self.bytes_out = self.transfers_out = 0
        #: Slots whose credit comes back whatever the receiver does.
        self.n_coming = 0
        self.waiting: deque[Carried] = deque()

    def ask(self, carried: Carried) -> None:
        """Let a transfer start, as far as there is credit for it now and whatever is before it."""
        parts = [carried] if self._is_a_slot(carried) else cut(carried, self.window.slot_bytes)
        for part in parts:
            if isinstance(part, Part) and not part.last:
                part.on_arrival = self._gives_back(part.bytes)
            self.waiting.append(part)
        self._let_go(None)

    def applied(self, transfer: Carried, path: PathSeconds) -> None:
        """Give back the credit of a transfer, or of the last slot of it, that has been applied now."""
        n_bytes = transfer.bytes
        last = n_bytes if self._is_a_slot(transfer) else (n_bytes - 1) % self.window.slot_bytes + 1
        self.n_coming += 1
        self._back(self.clock.now, last, 1, path)

    def holds(self, transfer: Carried) -> bool:
        """Whether a transfer, or some of it, waits for credit."""
        return any(carried.whole is transfer for carried in self.waiting)

    def _is_a_slot(self, carried: Carried) -> bool:
        return self.window.bytes is None or carried.bytes <= self.window.slot_bytes

    def _gives_back(self, n_bytes: int) -> Callable[[float], None]:
        return lambda arrived_s: self._back(arrived_s, n_bytes, 0, None)

    def _back(self, from_s: float, n_bytes: int, n_transfers: int, path: PathSeconds | None) -> None:
        back = self.clock.wake_at(from_s + self.back_s)

        def credit(_: object) -> None:
            self.bytes_out -= n_bytes
            self.transfers_out -= n_transfers
            self.n_coming -= 1
            self._let_go(path)

        back.callbacks.append(credit)

    def _let_go(self, path: PathSeconds | None) -> None:
        """Start what there is credit for; where credit had to come back first, the path goes back to who gave it."""
        while self.waiting and self._room(self.waiting[0]):
            carried = self.waiting.popleft()
            self.bytes_out += carried.bytes
            self.transfers_out += carried.counts
            self.n_coming += not carried.counts
            carried.start_over(self.clock.now, self.back_s, path)
            # What waited for the credit of its own earlier slots was not under way all the time.
            carried.queued = carried.queued or (isinstance(carried, Part) and carried.number > 0)
            self.enter(carried)

    def _room(self, carried: Carried) -> bool:
        window = self.window
        if window.transfers is not None and self.transfers_out + carried.counts > window.transfers:
            return False
        return window.bytes is None or not self.bytes_out or self.bytes_out + carried.bytes <= window.bytes
