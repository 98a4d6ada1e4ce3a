"""Fair sharing in the `events` engine: one process for all links gives each flow its max-min fair rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import simpy

from ringnet.engines.events.carried import Carried
from ringnet.engines.events.clock import LAST, Clock, Process
from ringnet.engines.events.deliveries import Attempt, whole_of
from ringnet.engines.max_min import Flow, Shares
from ringnet.engines.tolerances import ROUNDING, SAME_TIME, to_others_s
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

NOTHING, NAN = -1, float("nan")
#: Ends for each flow that are kept, of which all but the last are predicted for other rates than it has now.
MOST_STALE = 8


class EndingFlow(Flow):
    """A flow that ends: how many bytes are left of it since when, and the number of what was last predicted of that."""

    __slots__ = ("left", "prediction", "since_s")

    def __init__(self, links: Sequence[int], cap_Bps: float, n_bytes: int, now_s: float) -> None:
        super().__init__(links, cap_Bps)
        self.left, self.since_s, self.prediction = float(n_bytes), now_s, NOTHING

    def moved(self, now_s: float) -> float:
        """Return the bytes that it has moved at the rate that it had before."""
        return min(self.before_Bps * (now_s - self.since_s), self.left)


OneFlow = TypeVar("OneFlow", bound=EndingFlow)


class Ends(Generic[OneFlow]):
    """When flows will end. What was predicted for other rates than they have now stays until it is looked at."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, OneFlow]] = []
        self.numbers = count()

    def predict(self, flow: OneFlow, now_s: float) -> None:
        """Predict the end of a flow whose rate is new; as long as the rate stays no rounding creeps into it."""
        flow.left -= flow.moved(now_s)
        flow.since_s = now_s
        end_s = now_s + flow.left / flow.rate_Bps if flow.rate_Bps else NEVER
        flow.prediction = next(self.numbers)
        heappush(self.heap, (end_s, flow.prediction, flow))

    def next_s(self) -> float:
        """Return when the next flow ends."""
        while self.heap and self.heap[0][1] != self.heap[0][2].prediction:
            heappop(self.heap)
        return self.heap[0][0] if self.heap else NEVER

    def take(self, now_s: float) -> list[OneFlow]:
        """Take out the flows that end now."""
        ended = []
        while self.next_s() <= now_s * (1 + SAME_TIME):
            flow = heappop(self.heap)[-1]
            flow.prediction = NOTHING
            ended.append(flow)
        return ended

    def drop_stale(self, n_flows: int) -> None:
        """Drop what was predicted for other rates, where it is much more than what was not."""
        if len(self.heap) > MOST_STALE * (n_flows + 1):
            self.heap = [end for end in self.heap if end[1] == end[2].prediction]
            heapify(self.heap)


#: Links of senders: the number of a job, or traffic, of the worker, and of the link.
OwnLinks: TypeAlias = Set[tuple[int, int, int]]


class LoneFlow(EndingFlow):
    """A flow as it would go on if only its sender's were there; and when it would have ended."""

    __slots__ = ("ended_s",)
    ended_s: float


class LoneSenders:
    """What each sender's flows would do if nobody else were on their links, begun when they really began.

    The rule is the same; each sender has links of its own, and nobody waits for what happens here: it is looked at when
    something really starts, ends or changes.

    Parameters
    ----------
    capacity_Bps : list of float
        Of each link now.
    never_full : set of (int, int, int)
        What no sender's flows alone can fill: `where_own_meet`.
    """

    def __init__(self, capacity_Bps: list[float], never_full: OwnLinks) -> None:
        self.capacity_Bps, self.never_full = capacity_Bps, never_full
        self.shares, self.ends = Shares([], most_hops=len(capacity_Bps)), Ends[LoneFlow]()
        #: Of each link those that senders have in place of it: by the number of the job, or traffic, and of the worker.
        self.links: dict[int, dict[tuple[int, int], int]] = {}
        self.n_flows = 0

    def _start(self, stream: Stream, now_s: float) -> LoneFlow:
        sender = stream.carried.route.owner, stream.carried.src
        links = []
        for link in stream.links:
            if (*sender, link) in self.never_full:
                continue
            of_senders = self.links.setdefault(link, {})
            if sender not in of_senders:
                of_senders[sender] = self.shares.add_links([self.capacity_Bps[link]])
            links.append(of_senders[sender])
        stream.alone = LoneFlow(links, stream.cap_Bps, stream.n_bytes, now_s)
        stream.alone.ended_s = NEVER
        return stream.alone

    def settle(self, now_s: float, coming: Iterable[Stream], dropped: Iterable[Stream], changed: Iterable[int]) -> None:
        """Go on to now, to what really starts now, what will not move any more and to links that change."""
        while (end_s := self.ends.next_s()) < now_s * (1 - SAME_TIME):
            self._settle_at(end_s, [], self.ends.take(end_s), [])
        going = self.ends.take(now_s)
        going += [stream.alone for stream in dropped if stream.alone and stream.alone.ended_s == NEVER]
        started = [self._start(stream, now_s) for stream in coming]
        changes = [(link, number) for link in changed for number in self.links.get(link, {}).values()]
        for link, number in changes:
            self.shares.capacity_Bps[number] = self.capacity_Bps[link]
        if started or going or changes:
            self._settle_at(now_s, started, going, [number for _, number in changes])

    def _settle_at(self, now_s: float, coming: list[LoneFlow], going: list[LoneFlow], changed: list[int]) -> None:
        self.n_flows += len(coming) - len(going)
        for flow in going:
            flow.ended_s, flow.prediction = now_s, NOTHING
        self.ends.drop_stale(self.n_flows)
        for changed_flow in self.shares.settle(coming, going, changed):
            assert isinstance(changed_flow, LoneFlow)
            self.ends.predict(changed_flow, now_s)


class Stream(EndingFlow):
    """A flow that really moves, and what."""

    links: tuple[int, ...]
    __slots__ = ("alone", "carried", "held_by", "lost_s", "n_bytes", "posted_s")

    def __init__(self, carried: Carried, links: tuple[int, ...], n_bytes: int, cap_Bps: float, posted_s: float) -> None:
        super().__init__(links, cap_Bps, n_bytes, 0.0)
        #: ``posted_s``: when it went on to the network, before the latency of its route.
        self.carried, self.n_bytes, self.posted_s = carried, n_bytes, posted_s
        #: The link that has kept it from having more since then.
        self.held_by: int | None = None
        #: What it has lost, in seconds: by `LinkUse.queued_s`.
        self.lost_s = 0.0
        #: What it would do with its sender's flows alone, where that is looked at.
        self.alone: LoneFlow | None = None


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
    own : set of (int, int, int) or None
        To find what flows lose to others of their own sender: see `LoneSenders`.
    """

    def __init__(
        self, clock: Clock, network: Network, services: ServiceRows | None = None, own: OwnLinks | None = frozenset()
    ) -> None:
        self.clock, self.network, self.services = clock, network, services
        self.shares = Shares(network.bandwidth_Bps.tolist())
        self.uses = [LinkUse() for _ in range(network.n_links)]
        self.lone = None if own is None else LoneSenders(self.shares.capacity_Bps, own)
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
        self.ends = Ends[Stream]()
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
                self._wake_at(min(self.ends.next_s(), self.changes[0][0] if self.changes else NEVER))

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
        going, changed = self.ends.take(now_s), self._changed(now_s)
        coming, self.coming = [*self.coming, *self._followers(going)], []
        dropped, self.dropped = self.dropped, []
        self.n_streams += len(coming) - len(going) - len(dropped)
        self.ends.drop_stale(self.n_streams)
        if self.lone is not None:
            self.lone.settle(now_s, coming, dropped, changed)
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

    def _changed(self, now_s: float) -> list[int]:
        links = []
        while self.changes and self.changes[0][0] <= now_s:
            _, link = heappop(self.changes)
            behaviour = self.network.behaviours[link]
            self.shares.capacity_Bps[link] = behaviour.offer(ANY_SIZE, now_s).bandwidth_Bps
            links.append(link)
            if (change_s := behaviour.next_change_s(now_s)) != NEVER:
                heappush(self.changes, (change_s, link))
        return links

    def _predict(self, stream: Stream, now_s: float) -> None:
        """Take note that the rate of a stream is new."""
        self._lose(stream, stream.before_Bps, now_s)
        stream.held_by = stream.stop
        if self.rates is not None and (moved := stream.moved(now_s)):
            self.rates.add(stream.links, stream.since_s, now_s, moved)
        self.ends.predict(stream, now_s)

    def _arrive(self, stream: Stream) -> None:
        carried, held_by = stream.carried, stream.held_by
        alone_s = NAN if stream.alone is None else stream.alone.ended_s
        others_s = to_others_s(stream.lost_s, carried.started_s, self.clock.now, alone_s)
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
