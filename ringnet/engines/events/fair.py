"""Fair sharing in the `events` engine: one process for all links gives each flow its max-min fair rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import count

import numpy as np
import simpy

from ringnet.engines.events.carried import Carried
from ringnet.engines.events.clock import LAST, Clock, Process
from ringnet.engines.events.deliveries import Attempt, whole_of
from ringnet.engines.max_min import Flow, Shares
from ringnet.engines.tolerances import OWN_ALL, ROUNDING, SAME_TIME
from ringnet.engines.trace import (
    FLOW,
    Columns,
    LinkWaits,
    RateRows,
    ServiceRows,
    beyond_the_first,
)
from ringnet.networks import Network
from ringnet.networks.behaviour import ANY_SIZE, NEVER

NOTHING = -1
#: Ends for each flow that are kept, of which all but the last are predicted for other rates than it has now.
MOST_STALE = 8


class Stream(Flow):
    """A flow that ends: what it moves, how many bytes are left of it since when, and when it will so end."""

    links: tuple[int, ...]
    __slots__ = (
        "alone", "carried", "held_by", "left", "lost_s", "n_bytes", "posted_s", "prediction", "since_s",
    )  # fmt: skip

    def __init__(self, carried: Carried, links: tuple[int, ...], n_bytes: int, cap_Bps: float, posted_s: float) -> None:
        super().__init__(links, cap_Bps)
        #: ``posted_s``: when it went on to the network, before the latency of its route.
        self.carried, self.n_bytes, self.posted_s = carried, n_bytes, posted_s
        self.left = float(n_bytes)
        self.since_s = 0.0
        #: The number of what was last predicted of its end.
        self.prediction = NOTHING
        #: The link that has kept it from having more since then.
        self.held_by: int | None = None
        #: Each of its links as if its sender alone were there, and how long that had worked when this began to move.
        self.alone: list[tuple[Account, float]] = []
        #: What it has lost, in seconds: by `LinkUse.queued_s`.
        self.lost_s = 0.0

    def to_others_s(self, now_s: float) -> float:
        """Return what it has lost to other senders until now: how long its sender alone would have left all links idle.

        Where its sender alone would be at work on a link all the time, it has lost to its own what it has lost; where
        they stand in each other's way because others made them slow, it has not.
        """
        passed_s = now_s - self.carried.started_s
        idle_s = passed_s - max((one.up_to(now_s) - had_s for one, had_s in self.alone), default=passed_s)
        if idle_s <= OWN_ALL * passed_s:
            return 0.0
        return self.lost_s if self.lost_s - idle_s <= OWN_ALL * self.lost_s else idle_s


class Account:
    """One link as if one sender alone were on it: how long it would have worked, and for how much longer it would."""

    __slots__ = ("left_s", "since_s", "worked_s")

    def __init__(self) -> None:
        self.left_s = self.since_s = self.worked_s = 0.0

    def up_to(self, now_s: float) -> float:
        """Return how long it would have worked until now."""
        worked_s = min(now_s - self.since_s, self.left_s)
        self.left_s -= worked_s
        self.since_s = now_s
        self.worked_s += worked_s
        return self.worked_s


class LinkUse:
    """What one link has done: counters that are brought up to date when the flows on it change.

    ``queued_s`` is what flows took longer, because this link kept them from having more, than alone on their routes.
    """

    __slots__ = ("bytes", "longest", "n_flows", "occupied_s", "queued_s", "since_s", "transfers")

    def __init__(self) -> None:
        self.bytes = self.transfers = self.longest = self.n_flows = 0
        self.occupied_s = self.queued_s = self.since_s = 0.0

    def now_has(self, n_flows: int, now_s: float) -> None:
        """Add up the time since the last change in which the link had a flow."""
        passed_s, self.since_s = now_s - self.since_s, now_s
        if self.n_flows:
            self.occupied_s += passed_s
        if passed_s > ROUNDING * now_s:
            self.longest = max(self.longest, self.n_flows - 1)
        self.n_flows = n_flows


class Arbiter:
    """All streams on all links. Rates change when one starts or ends or a capacity changes; what coincides, once.

    Parameters
    ----------
    clock : Clock
    network : Network
    services : ServiceRows or None
        Where each transfer is written down.
    """

    def __init__(self, clock: Clock, network: Network, services: ServiceRows | None = None) -> None:
        self.clock, self.network, self.services = clock, network, services
        self.shares = Shares(network.bandwidth_Bps.tolist())
        self.uses = [LinkUse() for _ in range(network.n_links)]
        #: Of each link, by who sends: the number of the job, or of other traffic, and of the worker.
        self.accounts: list[dict[tuple[int, int], Account]] = [{} for _ in range(network.n_links)]
        self.rates = None if services is None else RateRows()
        #: From when to when each flow was on each link.
        self.flows = LinkWaits()
        #: Parts of a transfer that have come, in order: they move one after another.
        self.lines: dict[Carried, deque[Stream]] = {}
        #: When each link that changes will next do so.
        self.changes = [
            (change_s, link)
            for link, behaviour in network.behaviours.items()
            if (change_s := behaviour.next_change_s(-NEVER)) != NEVER
        ]
        heapify(self.changes)
        #: Seconds that these links were busy, and up to when that is known.
        self.busy_s = {link: 0.0 for _, link in self.changes}
        self.settled_s = 0.0
        self.coming: list[Stream] = []
        #: What will not move any more, and is to be taken out.
        self.dropped: list[Stream] = []
        self.ends: list[tuple[float, int, Stream]] = []
        self.numbers = count()
        self.n_streams = self.settlements = 0
        self.alarm, self.alarm_s = simpy.Event(clock), NEVER
        clock.process(self.run())

    def enter(self, stream: Stream) -> None:
        """Let a stream start now, or (a part) once the part before it has ended.

        One without bytes is there at once, unless nothing moves on one of its links.
        """
        carried = stream.carried
        if isinstance(carried, Attempt) and carried.is_dropped:
            return
        if (cut_from := whole_of(carried)) is not None:
            line = self.lines.setdefault(cut_from, deque())
            line.append(stream)
            if len(line) > 1:
                return
        self._start(stream)
        if stream.n_bytes or self._rests(stream.links):
            self.coming.append(stream)
            self._wake_at(self.clock.now)
        else:
            self._arrive(stream)

    def drop(self, attempt: Attempt) -> None:
        """Take out what would stand on its links for ever, with all that stands in line behind it."""
        if (cut_from := whole_of(attempt)) is not None:
            self.lines.pop(cut_from, None)
        self.coming = [stream for stream in self.coming if stream.carried is not attempt]
        streams = [flow for flow in self.shares.on(attempt.sender.links[0]) if isinstance(flow, Stream)]
        self.dropped += [stream for stream in streams if stream.carried is attempt]
        self._wake_at(self.clock.now)

    def _rests(self, links: Sequence[int]) -> bool:
        """Whether nothing moves now on one of some links."""
        return any(
            not self.network.behaviours[link].offer(ANY_SIZE, self.clock.now).bandwidth_Bps
            for link in links
            if link in self.busy_s
        )

    def _start(self, stream: Stream) -> None:
        carried = stream.carried
        carried.started_s = stream.since_s = self.clock.now
        sender = carried.route.owner, carried.src
        for link in stream.links:
            account = self.accounts[link].setdefault(sender, Account())
            stream.alone.append((account, account.up_to(self.clock.now)))
            if capacity_Bps := self.shares.capacity_Bps[link]:
                account.left_s += stream.n_bytes / capacity_Bps
        for link in stream.links:
            self.uses[link].bytes += stream.n_bytes
            self.uses[link].transfers += carried.counts

    def run(self) -> Process:
        """Settle whenever something starts, ends or changes."""
        while True:
            yield self.alarm
            self.alarm, self.alarm_s = simpy.Event(self.clock), NEVER
            self._settle(self.clock.now)
            # A change of capacity matters only while something moves; the next to start sees to those that passed.
            if self.n_streams:
                self._wake_at(min(self._next_end_s(), self.changes[0][0] if self.changes else NEVER))

    def _wake_at(self, time_s: float) -> None:
        if time_s >= self.alarm_s:
            return
        # An alarm that was set for later still comes, with nobody listening.
        stale, self.alarm, self.alarm_s = self.alarm, simpy.Event(self.clock), time_s
        self.alarm.callbacks, stale.callbacks = stale.callbacks, []
        self.clock.at(time_s, self.alarm, LAST)

    def _settle(self, now_s: float) -> None:
        self.settlements += 1
        self._serve(now_s)
        going, changed = self._ended(now_s), self._changed(now_s)
        coming, self.coming = [*self.coming, *self._followers(going)], []
        dropped, self.dropped = self.dropped, []
        self.n_streams += len(coming) - len(going) - len(dropped)
        if len(self.ends) > MOST_STALE * (self.n_streams + 1):
            self.ends = [end for end in self.ends if end[1] == end[2].prediction]
            heapify(self.ends)
        for flow in self.shares.settle(coming, [*going, *dropped], changed):
            assert isinstance(flow, Stream)
            self._predict(flow, now_s)
        for link in dict.fromkeys(link for stream in [*coming, *going, *dropped] for link in stream.links):
            self.uses[link].now_has(self.shares.n_on(link), now_s)
        for stream in dropped:
            stream.prediction = NOTHING
            self.flows.add_all(stream.links, stream.carried.route.owner, stream.carried.started_s, now_s)
        for stream in going:
            self._leave(stream, now_s)
            self._arrive(stream)

    def _followers(self, going: list[Stream]) -> list[Stream]:
        """Start, of transfers in parts, those that come after the parts that end."""
        followers = []
        for stream in going:
            cut_from = whole_of(stream.carried)
            if cut_from is not None and cut_from in self.lines:
                line = self.lines[cut_from]
                line.popleft()
                if line:
                    self._start(line[0])
                    followers.append(line[0])
                else:
                    del self.lines[cut_from]
        return followers

    def _leave(self, stream: Stream, now_s: float) -> None:
        """Write down what has ended: what it lost last, and when it was on its links."""
        self._lose(stream, stream.rate_Bps, now_s)
        if self.rates is not None:
            self.rates.add(stream.links, stream.since_s, now_s, stream.left)
        owner = stream.carried.route.owner
        self.flows.add_all(stream.links, owner, stream.carried.started_s, now_s)

    def _lose(self, stream: Stream, rate_Bps: float, now_s: float) -> None:
        """Put down what a stream has lost since its rate last changed to the link that kept it from having more."""
        if stream.held_by is None:
            return
        alone_Bps = stream.cap_Bps
        if self.busy_s:
            alone_Bps = min(alone_Bps, *(self.shares.capacity_Bps[link] for link in stream.links))
        if not alone_Bps:
            return
        lost_s = (now_s - stream.since_s) * (1.0 - rate_Bps / alone_Bps)
        if lost_s > ROUNDING * now_s:
            self.uses[stream.held_by].queued_s += lost_s
            stream.lost_s += lost_s

    def _serve(self, now_s: float) -> None:
        """Add up how busy the links are whose bandwidth changes: of others the bytes say it."""
        passed_s, self.settled_s = now_s - self.settled_s, now_s
        for link in self.busy_s:
            rate_Bps = sum(flow.rate_Bps for flow in self.shares.on(link))
            if rate_Bps:
                self.busy_s[link] += passed_s * rate_Bps / self.shares.capacity_Bps[link]

    def _ended(self, now_s: float) -> list[Stream]:
        """Take out the streams that end now."""
        ended = []
        while self._next_end_s() <= now_s * (1 + SAME_TIME):
            stream = heappop(self.ends)[-1]
            stream.prediction = NOTHING
            ended.append(stream)
        return ended

    def _next_end_s(self) -> float:
        """Return when the next stream ends; what was predicted for other rates is dropped."""
        while self.ends and self.ends[0][1] != self.ends[0][2].prediction:
            heappop(self.ends)
        return self.ends[0][0] if self.ends else NEVER

    def _changed(self, now_s: float) -> list[int]:
        links = []
        while self.changes and self.changes[0][0] <= now_s:
            _, link = heappop(self.changes)
            behaviour = self.network.behaviours[link]
            before_Bps, after_Bps = (
                self.shares.capacity_Bps[link],
                behaviour.offer(ANY_SIZE, now_s).bandwidth_Bps,
            )
            for account in self.accounts[link].values():
                account.up_to(now_s)
                account.left_s *= before_Bps / after_Bps if before_Bps and after_Bps else 1.0
            self.shares.capacity_Bps[link] = after_Bps
            links.append(link)
            if (change_s := behaviour.next_change_s(now_s)) != NEVER:
                heappush(self.changes, (change_s, link))
        return links

    def _predict(self, stream: Stream, now_s: float) -> None:
        """Predict the end of a stream whose rate is new; as long as the rate stays no rounding creeps into it."""
        self._lose(stream, stream.before_Bps, now_s)
        stream.held_by = stream.stop
        moved = min(stream.before_Bps * (now_s - stream.since_s), stream.left)
        if self.rates is not None and moved:
            self.rates.add(stream.links, stream.since_s, now_s, moved)
        stream.left -= moved
        stream.since_s = now_s
        end_s = now_s + stream.left / stream.rate_Bps if stream.rate_Bps else NEVER
        stream.prediction = next(self.numbers)
        heappush(self.ends, (end_s, stream.prediction, stream))

    def _arrive(self, stream: Stream) -> None:
        carried, held_by = stream.carried, stream.held_by
        others_s = stream.to_others_s(self.clock.now)
        carried.whole.lost_s += stream.lost_s
        carried.whole.own_lost_s += stream.lost_s - others_s
        if self.services is not None:
            if held_by is None:  # alone on its route, or on the narrowest link of it
                held_by = min(stream.links, key=self.shares.capacity_Bps.__getitem__)
            times_s = stream.posted_s, carried.started_s, self.clock.now, others_s
            self.services.add((carried.index, carried.route.owner, held_by, FLOW, stream.n_bytes, *times_s))
        stream.carried.sent_s = self.clock.now
        stream.carried.arrives(self.clock, self.clock.now)

    def waits(self) -> Columns | None:
        """Return from when to when each flow was not the first on a link; None if there were too many."""
        flows = self.flows.columns()
        return flows and beyond_the_first(flows)

    def columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them."""
        names = ("bytes", "transfers", "occupied_s", "longest", "queued_s")
        found = {name: np.array([getattr(use, name) for use in self.uses]) for name in names}
        busy_s = found["bytes"] / self.network.bandwidth_Bps
        busy_s[[*self.busy_s]] = [*self.busy_s.values()]
        return {
            "bytes": found["bytes"],
            "transfers": found["transfers"],
            "busy_s": busy_s,
            "occupied_s": found["occupied_s"],
            "longest_queue": found["longest"],
            "queued_s": found["queued_s"],
        }

    def last_s(self) -> float:
        """Return when the last link had something to do."""
        return max((use.since_s for use in self.uses), default=0.0)
