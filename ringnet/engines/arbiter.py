"""Fair sharing in the `events` engine: one process for all links gives each flow its max-min fair rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import simpy
from numpy.typing import NDArray

from ringnet.engines.clock import LAST, Clock
from ringnet.engines.maxmin import max_min_rates
from ringnet.engines.trace import Columns

if TYPE_CHECKING:
    from ringnet.engines.transfer import Moving
    from ringnet.networks import Network

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Ends that differ by less than this share of the time are one: what symmetry makes equal, rounding tears apart.
SAME_TIME = 1e-14


class Flow:
    """One thing that moves over links at a fair rate, from when its head has reached the far end."""

    __slots__ = ("cap_Bps", "links", "moving", "n_bytes")

    def __init__(self, moving: Moving, links: tuple[int, ...], n_bytes: int, cap_Bps: float) -> None:
        self.moving, self.links, self.n_bytes, self.cap_Bps = moving, links, n_bytes, cap_Bps


class Arbiter:
    """All flows on all links. Rates change when a flow starts or ends or a capacity changes; what coincides, once.

    Parameters
    ----------
    clock : Clock
    network : Network
    """

    def __init__(self, clock: Clock, network: Network) -> None:
        self.clock, self.network = clock, network
        n_links = network.n_links
        self.capacity_Bps = np.append(network.bandwidth_Bps, np.inf)
        self.changes = sorted(
            (time_s, link, bandwidth_Bps) for link, steps in network.profiles.items() for time_s, bandwidth_Bps in steps
        )
        self.coming: list[Flow] = []
        self.flows: list[Flow] = []
        self.routes = np.zeros((0, 1), dtype=np.int64)
        self.left, self.rate_Bps, self.since_s, self.end_s = (np.zeros(0) for _ in range(4))
        self.counts = np.zeros(n_links + 1, dtype=np.int64)
        self.bytes, self.transfers, self.longest = (np.zeros(n_links + 1, dtype=np.int64) for _ in range(3))
        self.busy_s, self.occupied_s, self.queued_s = (np.zeros(n_links + 1) for _ in range(3))
        self.settled_s = 0.0
        self.settlements = 0
        self.alarm = simpy.Event(clock)
        self.alarm_s = np.inf
        clock.process(self.run())

    def enter(self, flow: Flow) -> None:
        """Let a flow start now; one without bytes is there at once."""
        flow.moving.started_s = self.clock.now
        if not flow.n_bytes:
            self._count(flow)
            self._arrive(flow)
            return
        self.coming.append(flow)
        self._wake_at(self.clock.now)

    def run(self) -> Iterator[simpy.Event]:
        """Settle whenever something starts, ends or changes."""
        while True:
            yield self.alarm
            self.alarm, self.alarm_s = simpy.Event(self.clock), np.inf
            self._settle()
            following = min(self.end_s.min(initial=np.inf), self.changes[0][0] if self.changes else np.inf)
            # A change of capacity matters only while something moves; the next flow that starts sees to the others.
            if self.flows:
                self._wake_at(float(following))

    def _wake_at(self, time_s: float) -> None:
        if time_s >= self.alarm_s:
            return
        # An alarm that was set for later still comes, with nobody listening.
        stale, self.alarm, self.alarm_s = self.alarm, simpy.Event(self.clock), time_s
        self.alarm.callbacks, stale.callbacks = stale.callbacks, []
        self.clock.at(time_s, self.alarm, LAST)

    def _settle(self) -> None:
        now_s = self.clock.now
        self.settlements += 1
        self._note_time(now_s)
        ended = self.end_s <= now_s * (1 + SAME_TIME)
        for place in np.flatnonzero(ended).tolist():
            self._arrive(self.flows[place])
        if ended.any():
            self._keep(~ended)
        self._start(self.coming)
        self.coming = []
        while self.changes and self.changes[0][0] <= now_s:
            _, link, bandwidth_Bps = self.changes.pop(0)
            self.capacity_Bps[link] = bandwidth_Bps
        self._set_rates(now_s)

    def _note_time(self, now_s: float) -> None:
        """Add up what the links did since the last settlement."""
        passed_s, self.settled_s = now_s - self.settled_s, now_s
        if not self.flows or not passed_s:
            return
        self.occupied_s += passed_s * (self.counts > 0)
        self.queued_s += passed_s * np.maximum(self.counts - 1, 0)
        load_Bps = np.bincount(self.routes.ravel(), np.repeat(self.rate_Bps, self.routes.shape[1]), len(self.counts))
        self.busy_s += passed_s * load_Bps / self.capacity_Bps

    def _arrive(self, flow: Flow) -> None:
        flow.moving.sent_s = self.clock.now
        flow.moving.arrives(self.clock, self.clock.now)

    def _keep(self, stays: NDArray[np.bool_]) -> None:
        self.flows = [flow for flow, stay in zip(self.flows, stays.tolist(), strict=True) if stay]
        self.routes = self.routes[stays]
        self.left, self.rate_Bps = self.left[stays], self.rate_Bps[stays]
        self.since_s, self.end_s = self.since_s[stays], self.end_s[stays]

    def _start(self, flows: Sequence[Flow]) -> None:
        if not flows:
            return
        for flow in flows:
            self._count(flow)
        self.flows += flows
        most = max(self.routes.shape[1], *(len(flow.links) for flow in flows))
        none = self.network.n_links
        new = np.array([(*flow.links, *[none] * (most - len(flow.links))) for flow in flows], dtype=np.int64)
        wider = np.full((len(self.routes), most - self.routes.shape[1]), none, dtype=np.int64)
        self.routes = np.concatenate((np.concatenate((self.routes, wider), axis=1), new))
        now_s, zeros = np.full(len(flows), self.clock.now), np.zeros(len(flows))
        self.left = np.concatenate((self.left, np.array([flow.n_bytes for flow in flows], dtype=np.float64)))
        self.rate_Bps, self.since_s = np.concatenate((self.rate_Bps, zeros)), np.concatenate((self.since_s, now_s))
        self.end_s = np.concatenate((self.end_s, np.full(len(flows), np.inf)))

    def _count(self, flow: Flow) -> None:
        links = list(flow.links)
        self.bytes[links] += flow.n_bytes
        self.transfers[links] += 1

    def _set_rates(self, now_s: float) -> None:
        """Give every flow its rate; one whose rate stays keeps its end, so that no rounding creeps into it."""
        self.counts = np.bincount(self.routes.ravel(), minlength=len(self.capacity_Bps))
        self.counts[-1] = 0
        np.maximum(self.longest, self.counts - 1, out=self.longest)
        rates_Bps = max_min_rates(self.routes, self.capacity_Bps, self._caps())
        other = rates_Bps != self.rate_Bps
        moved = self.rate_Bps[other] * (now_s - self.since_s[other])
        self.left[other] = np.maximum(self.left[other] - moved, 0.0)
        self.since_s[other], self.rate_Bps[other] = now_s, rates_Bps[other]
        self.end_s[other] = now_s + self.left[other] / rates_Bps[other]

    def _caps(self) -> FloatArray | None:
        caps = np.array([flow.cap_Bps for flow in self.flows]) if self.network.pieces else None
        return caps

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        columns = {
            "bytes": self.bytes,
            "transfers": self.transfers,
            "busy_s": self.busy_s,
            "occupied_s": self.occupied_s,
            "longest_queue": self.longest,
            "queued_s": self.queued_s,
        }
        return {name: column[:-1] for name, column in columns.items()}
