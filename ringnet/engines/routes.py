"""Routes of the `events` engine: how a transfer takes the links from its sender to its receiver."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ringnet.engines.arbiter import Arbiter, Stream
from ringnet.engines.clock import Clock
from ringnet.engines.delays import Delays
from ringnet.engines.links import Link, link_columns, make_link
from ringnet.engines.parts import cut
from ringnet.engines.trace import Columns
from ringnet.engines.window import Credit
from ringnet.networks import Network
from ringnet.networks.network import Window, offers

if TYPE_CHECKING:
    from ringnet.engines.transfer import Moving


class Route:
    """The way from one worker to another for transfers of one size, and what it takes when nothing else is on it.

    Parameters
    ----------
    links : tuple of Link
        Under fair sharing none: the arbiter has them.
    latency_s : float
        Of all links.
    idle_s : callable
        Seconds that some bytes occupy the idle route, latency apart.
    enter : callable
        Lets a transfer start.
    """

    __slots__ = ("credit", "enter", "idle_s", "job", "latency_s", "links")

    def __init__(
        self,
        links: tuple[Link, ...],
        latency_s: float,
        idle_s: Callable[[int], float],
        enter: Callable[[Moving], None],
    ) -> None:
        self.links, self.latency_s, self.idle_s, self.enter = links, latency_s, idle_s, enter
        #: The window of the connection, if it has one; and which of several jobs, or of other traffic, uses the route.
        self.credit: Credit | None = None
        self.job = 0


class Wires:
    """All links of a network, whoever uses them."""

    def __init__(self, clock: Clock, network: Network) -> None:
        self.clock, self.network = clock, network

    def along(self, links: tuple[int, ...], n_bytes: int) -> Route:
        """Return the route over some links, by their numbers, for ``n_bytes``."""
        raise AssertionError("each kind of wires makes its routes")

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        raise AssertionError("each kind of wires has its columns")

    def waits(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        raise AssertionError("each kind of wires knows who waited")

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        raise AssertionError("each kind of wires knows when it was busy")

    def _latency_s(self, links: tuple[int, ...], n_bytes: int) -> float:
        return sum(offers(self.network, link, n_bytes)[1] for link in links)


class Ways:
    """The routes of one job: made once, by workers and by what their links offer for a size.

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
        self._routes: dict[tuple[int, ...], Route] = {}
        self._credits: dict[tuple[int, int], Credit] = {}

    def route(self, src: int, dst: int, n_bytes: int) -> Route:
        """Return the route from worker ``src`` to worker ``dst`` for ``n_bytes``; made once."""
        key = (src, dst, *self._sizes(src, dst, n_bytes)) if self.network.pieces else (src, dst)
        if key not in self._routes:
            route = self.wires.along(self.network.route(src, dst), n_bytes)
            route.job = self.job
            if self.network.window is not None:
                self._add_window(route, self._credit(src, dst, self.network.window))
            self._routes[key] = route
        return self._routes[key]

    def _sizes(self, src: int, dst: int, n_bytes: int) -> tuple[int, ...]:
        """Return which piece of each link of a route is for ``n_bytes``."""
        pieces = [self.network.pieces.get(link, ()) for link in self.network.route(src, dst)]
        return tuple(sum(n_bytes > piece.up_to_bytes for piece in some) for some in pieces)

    def _credit(self, src: int, dst: int, window: Window) -> Credit:
        """Return the window of a connection: one, whatever the size of what it lets through."""
        if (src, dst) not in self._credits:
            back_s = sum(offers(self.network, link, 0)[1] for link in self.network.route(dst, src))
            self._credits[src, dst] = Credit(self.wires.clock, window, back_s)
        return self._credits[src, dst]

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

    def along(self, links: tuple[int, ...], n_bytes: int) -> Route:
        """Return the route over some links, by their numbers, for ``n_bytes``."""
        bandwidths = [offers(self.network, link, n_bytes)[0] for link in links]
        join = max if self.network.switching == "cut-through" else sum

        def idle_s(n_bytes: int) -> float:
            return float(join(n_bytes / bandwidth_Bps for bandwidth_Bps in bandwidths))

        on_way = tuple(map(self._link, links))
        enter = on_way[0].enter if self.network.packets is None else self._enter_in_packets
        return Route(on_way, self._latency_s(links, n_bytes), idle_s, enter)

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
        return max((link.free_s for link in self.links.values()), default=0.0)


class FairWires(Wires):
    """Links that share themselves fairly among all that is on them."""

    def __init__(self, clock: Clock, network: Network) -> None:
        super().__init__(clock, network)
        self.arbiter = Arbiter(clock, network)

    def along(self, links: tuple[int, ...], n_bytes: int) -> Route:
        """Return the route over some links, by their numbers, for ``n_bytes``."""
        narrowest_Bps = min(offers(self.network, link, n_bytes)[0] for link in links)
        latency_s = self._latency_s(links, n_bytes)

        def enter(moving: Moving) -> None:
            # The whole latency first, then the bytes at a fair rate.
            moving.queued = True
            stream = Stream(moving, links, self._charged(moving.bytes), narrowest_Bps)
            head = self.clock.wake_at(self.clock.now + latency_s)
            head.callbacks.append(lambda _: self.arbiter.enter(stream))

        return Route((), latency_s, lambda n_bytes: n_bytes / narrowest_Bps, enter)

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


def make_wires(clock: Clock, network: Network) -> Wires:
    """Return the wires of a network whose sharing is known: fifo or fair."""
    return FairWires(clock, network) if network.sharing == "fair" else FifoWires(clock, network)
