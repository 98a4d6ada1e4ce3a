"""When the `recurrence` engine is exact: where the schedule alone fixes the order in which each link serves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines.arrays.rounds import NOBODY, Index, RoundMaker, Rounds
from ringnet.engines.trace import Workers
from ringnet.networks import ByChance, Network, beyond


def why_not_exact(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    maker: RoundMaker | None = None,
    *,
    channels_may_meet: bool = False,
    workers_may_meet: bool = False,
    may_draw: bool = False,
    may_share: bool = False,
) -> str | None:
    """Return why stepping whole arrays would not be exact for this run; None where it is.

    It is exact where every link carries the transfers of one actor (a worker on one channel) only, and gets all of them
    from the same link, or all as the first link of their routes: then they come in the order in which the actor posts
    them. In a rendezvous it may carry one of each step only, since its transfers start when their receivers come.
    ``maker`` makes the rounds of all steps on the way. ``channels_may_meet`` asks less, where the order of service is
    looked at by itself: one worker for each link; ``workers_may_meet`` not even that. ``may_draw`` lets links and
    workers draw their numbers, where times alone are worked out; ``may_share`` lets several flow over a link, which is
    shared fairly, where it is looked at whether they start and end together.
    """
    drawn = None if may_draw else workers.beyond
    reason = "switches reduce what comes to them" if schedule.n_switches else None
    if reason := reason or beyond(network, [ByChance] if may_draw else (), fair=may_share) or drawn:
        return reason
    maker = maker or RoundMaker(schedule, network)
    if reason := _trouble(workers):
        return reason
    if schedule.n_channels > 1 and _charges(workers):
        return f"the {schedule.n_channels} channels of a worker share a processor that charges for what they do"
    rendezvous = workers.sends == "rendezvous"
    order = _Order(network, schedule.n_channels, rendezvous=rendezvous)
    if channels_may_meet and not rendezvous:
        order.actors_as_one = schedule.n_channels
    # Where all latencies are longer than nothing, all heads of a time have come before a link chooses: see `Sizes`.
    order_is_seen = workers_may_meet and not rendezvous and bool((network.latency_s > 0).all())
    is_open = not (may_share or order_is_seen)
    if is_open and not rendezvous and order.actors_as_one == schedule.n_channels:
        # Then only who sends to whom counts, whenever that is; where not all is in order, the steps say what is not.
        src, dst = schedule.pairs
        is_open = order.conflict_of(src * schedule.n_channels, network.hops(src, dst)) is not None
        order.forget()
    last = None
    for step, _ in schedule.runs():
        rounds = maker.rounds(step)
        if is_open and rounds is not last and (reason := order.conflict(rounds)):
            return reason
        last = rounds
    # Last, since it goes through every step; most that is not exact is seen in the first.
    return _meet_in_a_step(schedule) if schedule.n_channels > 1 else None


def _trouble(workers: Workers) -> str:
    """Say what workers do that no step of arrays knows of; nothing where that is nothing."""
    if not np.isfinite(workers.start_s).all():
        return f"worker {int(np.argmax(~np.isfinite(workers.start_s)))} never starts"
    return workers.trouble or ""


def _charges(workers: Workers) -> bool:
    overheads = workers.send_overhead_s.any() or workers.recv_overhead_s.any()
    return bool(overheads or np.isfinite(workers.reduce_Bps).any())


def _meet_in_a_step(schedule: Schedule) -> str | None:
    """Say where two channels of a worker apply to the same chunk in one step.

    Or that channels share chunks and some transfer carries several: what it waits for is more than one row's.
    """
    if not schedule.channels_share_chunks:
        return None
    for moves in schedule.steps():
        if moves.count is not None:
            return "channels share chunks, and transfers carry several of them"
        if np.bincount(moves.chunk).max(initial=0) <= 1:  # as in most steps: no chunk moves twice
            continue
        order = np.lexsort((moves.receiving_channel, moves.chunk, moves.dst))
        dst, chunk, channel = moves.dst[order], moves.chunk[order], moves.receiving_channel[order]
        same = (np.diff(dst) == 0) & (np.diff(chunk) == 0) & (np.diff(channel) != 0)
        if (place := _first(same)) is not None:
            return f"two channels of worker {dst[place]} apply to its chunk {chunk[place]} in one step"
    return None


class _Order:
    """Which actor each link serves, and from which link it gets its transfers, as far as the rounds seen say."""

    def __init__(self, network: Network, n_channels: int, *, rendezvous: bool) -> None:
        self.names, self.n_channels, self.rendezvous = network.names, n_channels, rendezvous
        self.actors_as_one = 1
        self.actor, self.before = (np.full(network.n_links, NOBODY) for _ in range(2))

    def forget(self) -> None:
        """Let no link have served anybody."""
        self.actor[:] = self.before[:] = NOBODY

    def conflict(self, rounds: Rounds) -> str | None:
        """Take in the rounds of a step; return what in it leaves an order open."""
        for sends in rounds.sends:
            actors = sends.actors // self.actors_as_one * self.actors_as_one
            if reason := self.conflict_of(actors, [(hop.within, hop.links) for hop in sends.hops]):
                return reason
        return self._twice(rounds) if self.rendezvous and len(rounds.sends) > 1 else None

    def conflict_of(self, actors: IntArray, hops: Sequence[tuple[IntArray | None, IntArray]]) -> str | None:
        """Take in what some actors send, a route each; see `Network.hops`."""
        before = np.full(len(actors), NOBODY)
        for within, links in hops:
            rows: Index = slice(None) if within is None else within
            if reason := self._claim(links, actors[rows], before[rows]):
                return reason
            before[rows] = links
        return None

    def _claim(self, links: IntArray, actors: IntArray, before: IntArray) -> str | None:
        """Take links for actors, unless another actor has one of them, or gets to one in another way."""
        # From the last to the first, so that of several actors that want a new link the first has it.
        new = np.flatnonzero(self.actor[links] == NOBODY)[::-1]
        self.actor[links[new]], self.before[links[new]] = actors[new], before[new]
        if (place := _first(self.actor[links] != actors)) is not None:
            one, other = self.actor[links[place]], actors[place]
            return f"link {self.names[links[place]]} carries transfers of {self._who(int(one), int(other))}"
        if (place := _first(self.before[links] != before)) is not None:
            return f"link {self.names[links[place]]} gets the transfers of one worker over two ways"
        return None

    def _who(self, one: int, other: int) -> str:
        first, second = sorted((one // self.n_channels, other // self.n_channels))
        return f"workers {first} and {second}" if first != second else f"two channels of worker {first}"

    def _twice(self, rounds: Rounds) -> str | None:
        links = np.concatenate([hop.links for sends in rounds.sends for hop in sends.hops])
        place = _first(np.bincount(links) > 1)
        return None if place is None else f"link {self.names[place]} carries two transfers of one step in a rendezvous"


def _first(flags: NDArray[np.bool_]) -> int | None:
    return int(flags.argmax()) if flags.any() else None
