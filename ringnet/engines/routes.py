"""Routes of the `events` engine: how a transfer takes the links from its sender to its receiver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ringnet.engines.arbiter import Arbiter, Stream
from ringnet.engines.clock import Clock
from ringnet.engines.delays import Delays
from ringnet.engines.links import Link, link_columns, make_link
from ringnet.engines.parts import cut
from ringnet.engines.trace import Columns
from ringnet.engines.window import Credit
from ringnet.errors import Fault, InputError
from ringnet.networks import Behaviour, BySize, Constant, Network, OverTime, beyond
from ringnet.networks.behaviour import ANY_SIZE, NEVER

if TYPE_CHECKING:
    from ringnet.engines.transfer import Moving


class Route:
    """The way from one worker to another, and what it takes when nothing else is on it.

    Parameters
    ----------
    links : tuple of Link
        Under fair sharing none: the arbiter has them.
    latency_s : float or None
        Of all links; None where it is not the same for all transfers.
    alone : callable
        Of some bytes that start at some time and meet no others: the latency, and the seconds beside it.
    enter : callable
        Lets a transfer start.
    """

    __slots__ = ("alone", "behaviours", "credit", "enter", "job", "latency_s", "links")

    def __init__(
        self,
        links: tuple[Link, ...],
        latency_s: float | None,
        alone: Callable[[int, float], tuple[float, float]],
        enter: Callable[[Moving], None],
    ) -> None:
        self.links, self.latency_s, self.alone, self.enter = links, latency_s, alone, enter
        #: The window of the connection, if it has one; and which of several jobs, or of other traffic, uses the route.
        self.credit: Credit | None = None
        self.job = 0
        #: What its links do, where that may change.
        self.behaviours: Sequence[Behaviour] = ()

    def serves(self, now_s: float, hop: int) -> bool:
        """Whether its links, from one of them on, still serve at some time."""
        return all(behaviour.service_s(now_s, 1, 1) != NEVER for behaviour in self.behaviours[hop:])


class Wires:
    """All links of a network, whoever uses them."""

    def __init__(self, clock: Clock, network: Network) -> None:
        self.clock, self.network = clock, network

    def along(self, links: tuple[int, ...]) -> Route:
        """Return the route over some links, by their numbers."""
        raise AssertionError("each kind of wires makes its routes")

    def _latency_s(self, behaviours: Sequence[Behaviour]) -> float | None:
        """Return the latency of some links together; None where it is not the same for all transfers."""
        if all(type(behaviour) is Constant for behaviour in behaviours):
            return sum(behaviour.offer(ANY_SIZE, 0.0).latency_s for behaviour in behaviours)
        return None

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        raise AssertionError("each kind of wires has its columns")

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        raise AssertionError("each kind of wires knows who waited")

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        raise AssertionError("each kind of wires knows when it was busy")


class Ways:
    """The routes of one job, each made once.

    Parameters
    ----------
    wires : Wires
    network : Network
        Its routes are between the workers of this job.
    job : int
        Which of several jobs on the same links it is; equal times are served by it last.
    """

    def __init__(self, wires: Wires, network: Network, job: int) -> None:
        self.wires, self.network, self.job = wires, network, job
        self._routes: dict[tuple[int, int], Route] = {}

    def route(self, src: int, dst: int) -> Route:
        """Return the route from worker ``src`` to worker ``dst``; made once."""
        if (src, dst) not in self._routes:
            route = self._routes[src, dst] = self.wires.along(self.network.route(src, dst))
            route.job = self.job
            if self.network.behaviours:
                route.behaviours = [self.network.behaviour(link) for link in self.network.route(src, dst)]
            if self.network.window is not None:
                if reason := beyond(self.network, (BySize, OverTime), fair=True, window=True, packets=True):
                    raise InputError(Fault(f"a window's credit cannot come back here: {reason}"))
                back = [self.network.behaviour(link) for link in self.network.route(dst, src)]
                back_s = sum(behaviour.offer(0, 0.0).latency_s for behaviour in back)
                self._add_window(route, Credit(self.wires.clock, self.network.window, back_s))
        return self._routes[src, dst]

    @staticmethod
    def _add_window(route: Route, credit: Credit) -> None:
        enter_at_once = route.enter
        route.credit, route.enter = credit, lambda moving: credit.ask(moving, enter_at_once)


class FifoWires(Wires):
    """Links that serve one thing after another."""

    def __init__(self, clock: Clock, network: Network) -> None:
        super().__init__(clock, network)
        #: Made when a route first takes them: of a million links a ring uses a thousand.
        self.links: dict[int, Link] = {}
        self.delays = Delays()

    def along(self, links: tuple[int, ...]) -> Route:
        """Return the route over some links, by their numbers."""
        behaviours = [self.network.behaviour(link) for link in links]
        hands_on_whole = self.network.switching != "cut-through"

        def alone(n_bytes: int, start_s: float) -> tuple[float, float]:
            latency_s = services_s = longest_s = 0.0
            for behaviour in behaviours:
                head_s = start_s + latency_s + (services_s if hands_on_whole else 0.0)
                service_s = behaviour.service_s(head_s, n_bytes, n_bytes)
                services_s, longest_s = services_s + service_s, max(longest_s, service_s)
                latency_s += behaviour.offer(n_bytes, head_s).latency_s
            return latency_s, services_s if hands_on_whole else longest_s

        on_way = tuple(map(self._link, links))
        enter = on_way[0].enter if self.network.packets is None else self._enter_in_packets
        return Route(on_way, self._latency_s(behaviours), alone, enter)

    def _link(self, number: int) -> Link:
        if number not in self.links:
            self.links[number] = make_link(self.clock, self.network, number, self.delays)
        return self.links[number]

    def _enter_in_packets(self, moving: Moving) -> None:
        packets = self.network.packets
        assert packets is not None
        for part in cut(moving, packets.bytes, packets.header_bytes):
            part.route.links[0].enter(part)

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        return link_columns(self.links, self.network.n_links)

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        return self.delays.columns()

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        return max((link.free_s for link in self.links.values() if link.free_s != NEVER), default=0.0)


class FairWires(Wires):
    """Links that share themselves fairly among all that is on them."""

    def __init__(self, clock: Clock, network: Network) -> None:
        super().__init__(clock, network)
        if reason := beyond(network, (BySize, OverTime), fair=True, window=True, packets=True):
            raise InputError(Fault(f"links cannot be shared fairly here: {reason}", right="sharing: fifo"))
        self.arbiter = Arbiter(clock, network)

    def along(self, links: tuple[int, ...]) -> Route:
        """Return the route over some links, by their numbers."""
        behaviours = [self.network.behaviour(link) for link in links]
        route_s = self._latency_s(behaviours)
        most_Bps = min(behaviour.peak() for behaviour in behaviours)

        def latency(n_bytes: int, start_s: float) -> float:
            return sum(behaviour.offer(n_bytes, start_s).latency_s for behaviour in behaviours)

        def alone(n_bytes: int, start_s: float) -> tuple[float, float]:
            latency_s = latency(n_bytes, start_s)
            return latency_s, narrowest_s(behaviours, start_s + latency_s, n_bytes)

        def enter(moving: Moving) -> None:
            # The whole latency first, then the bytes at a fair rate.
            moving.queued = True
            latency_s, cap_Bps = route_s, most_Bps
            if latency_s is None:
                latency_s = latency(moving.size_bytes, self.clock.now)
                cap_Bps = min(cap_of(behaviour, moving.size_bytes) for behaviour in behaviours)
            stream = Stream(moving, links, self._charged(moving.bytes), cap_Bps)
            head = self.clock.wake_at(self.clock.now + latency_s)
            head.callbacks.append(lambda _: self.arbiter.enter(stream))

        return Route((), route_s, alone, enter)

    def _charged(self, n_bytes: int) -> int:
        packets = self.network.packets
        return n_bytes if packets is None else n_bytes + packets.header_bytes * -(-n_bytes // packets.bytes)

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        return self.arbiter.columns()

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        return self.arbiter.waits()

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        return self.arbiter.last_s()


def cap_of(behaviour: Behaviour, n_bytes: int) -> float:
    """Return the bytes per second that a link gives to no transfer of a size, whenever that is."""
    return behaviour.offer(n_bytes, 0.0).bandwidth_Bps if isinstance(behaviour, BySize) else behaviour.peak()


def narrowest_s(behaviours: Sequence[Behaviour], start_s: float, n_bytes: int) -> float:
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


def make_wires(clock: Clock, network: Network) -> Wires:
    """Return the wires of a network whose sharing is known: fifo or fair."""
    return FairWires(clock, network) if network.sharing == "fair" else FifoWires(clock, network)
