"""Traffic of no worker: what other jobs put on the links, as far as a run of this one is concerned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ringnet.engines.clock import Clock, Process
from ringnet.engines.routes import Route, Wires
from ringnet.engines.transfer import Path

#: Numbers of bursts start here in the order of equal times: after the transfers of all workers.
AFTER_WORKERS = 1 << 62


@dataclass(frozen=True)
class Traffic:
    """Bursts of bytes over some links, again and again until the workers are done, or a given number of times.

    Parameters
    ----------
    name : str
    links : tuple of int
        Numbers of the links that it crosses, in order.
    burst_bytes : int
        Bytes of each burst.
    start_s : float
        When the first one starts.
    every_s : float or None
        From one start to the next; None for one burst only. A constant stream of R bytes/s is bursts of b bytes every
        b / R seconds.
    stop_s : float
        No burst starts from then on.
    """

    name: str
    links: tuple[int, ...]
    burst_bytes: int
    start_s: float = 0.0
    every_s: float | None = None
    stop_s: float = float("inf")


class Burst:
    """One burst on its way: moves as a transfer does, and nobody waits for it."""

    __slots__ = (
        "bytes",
        "channel",
        "head_s",
        "hop",
        "index",
        "queued",
        "route",
        "sent_s",
        "src",
        "started_s",
        "tail_s",
    )
    whole = 1

    def __init__(self, traffic: Traffic, order: int, number: int, route: Route) -> None:
        self.src, self.channel, self.index = AFTER_WORKERS + order, 0, number
        self.bytes, self.route = traffic.burst_bytes, route
        self.hop, self.queued = 0, False
        self.started_s = self.sent_s = self.head_s = self.tail_s = float("inf")

    @property
    def size_bytes(self) -> int:
        """Bytes of the burst."""
        return self.bytes

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Nobody waits for it."""

    def start_over(self, now_s: float, back_s: float, path: Path | None) -> None:
        """No window holds it."""


class Place(NamedTuple):
    """Where some traffic stands among what runs: among all traffic, and (by name) among jobs and traffic."""

    order: int
    owner: int


def send(clock: Clock, wires: Wires, traffic: Traffic, place: Place, is_over: Callable[[], bool]) -> Process:
    """Send bursts (a SimPy process) until ``is_over``."""
    route = wires.along(traffic.links)
    route.job = place.owner
    start_s, number = traffic.start_s, 0
    while start_s < traffic.stop_s:
        yield clock.wake_at(start_s)
        if is_over():
            return
        route.enter(Burst(traffic, place.order, number, route))
        if traffic.every_s is None:
            return
        number += 1
        # Each start from the first one, so that no rounding adds up.
        start_s = traffic.start_s + number * traffic.every_s
