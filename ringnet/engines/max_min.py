"""Max-min fair rates, kept up to date as flows come and go: only what a change reaches is computed again.

The rule stands here once, as plain loops over the columns of `ringnet.engines.columns`: SimPy's arbiter runs it over
lists, through `Shares`; Numba compiles it into the loop of the `compiled` engine.

Notes
-----
An allocation is max-min fair exactly if no link carries more than it can and every flow has a *bottleneck*: a full link
on which no flow has more than it (or it is at its own ceiling) -- Bertsekas and Gallager, *Data Networks*, section
6.5.2. So after a change it is enough to fill up anew, progressively, a pool of flows while the others stay; then
whoever is found without a bottleneck, or has more than one of the pool on the link that stops it, joins the pool. When
nobody is left to join, the allocation is the fair one. A pool can grow to all flows that are connected; filling it
takes as long as it has flows and links, but for the logarithm of a heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import pop, push, put_in, take_out
from ringnet.engines.tolerances import EQUAL_RATES

INFINITE = float("inf")
#: Where a flow is while rates are settled.
OUTSIDE, INSIDE, JOINING, RISING = range(4)


def settle(real: Any, whole: Any) -> None:
    """Take in flows that come, flows that go and links that changed; those in the pool then may have a new rate.

    What ``OLD_RATE`` says of these is the rate before, and of those that came less than nothing.
    """
    count = whole[at.COUNT]
    count[at.N_POOL] = count[at.N_TOUCHED] = 0
    count[at.STAMP] += 1
    for place in range(count[at.N_GOING]):
        flow = whole[at.GOING][place]
        leave_links(whole, flow)
    for place in range(count[at.N_COMING]):
        flow = whole[at.COMING][place]
        join_links(whole, flow)
        join_pool(whole, flow)
        real[at.OLD_RATE][flow] = -1.0
    # A link that can do less than before takes from all who are on it.
    for place in range(count[at.N_CHANGED]):
        link = whole[at.CHANGED][place]
        touch(whole, link)
        node = whole[at.FIRST_ON][link]
        while node != at.NOBODY:
            flow = node // count[at.MOST_HOPS]
            if whole[at.IN_POOL][flow] == OUTSIDE:
                join_pool(whole, flow)
                real[at.OLD_RATE][flow] = real[at.RATE][flow]
            node = whole[at.NEXT_ON][node]
    n_before = -1
    while n_before != count[at.N_POOL]:
        n_before = count[at.N_POOL]
        fill(real, whole)
        join_who_must(real, whole)
    for place in range(count[at.N_POOL]):
        whole[at.IN_POOL][whole[at.POOL][place]] = OUTSIDE


def join_links(whole: Any, flow: int) -> None:
    """Add a flow to those on each of its links, as the last."""
    route, node = whole[at.ROUTE_OF][flow], flow * whole[at.COUNT][at.MOST_HOPS]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        put_in(whole, at.CHAIN_ON, link, node, whole[at.LAST_ON][link])
        whole[at.N_ON][link] += 1
        node += 1


def leave_links(whole: Any, flow: int) -> None:
    """Take a flow from its links, and touch those that others are on."""
    route, node = whole[at.ROUTE_OF][flow], flow * whole[at.COUNT][at.MOST_HOPS]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        take_out(whole, at.CHAIN_ON, link, node)
        whole[at.N_ON][link] -= 1
        if whole[at.N_ON][link]:
            touch(whole, link)
        node += 1


def join_pool(whole: Any, flow: int) -> None:
    """Add a flow to the pool, which is to be filled again."""
    whole[at.POOL][whole[at.COUNT][at.N_POOL]] = flow
    whole[at.COUNT][at.N_POOL] += 1
    whole[at.IN_POOL][flow] = JOINING


def touch(whole: Any, link: int) -> None:
    """Note, once, a link of which flows outside the pool may now have more, or are to have less."""
    count = whole[at.COUNT]
    if whole[at.SEEN][link] != count[at.STAMP]:
        whole[at.SEEN][link] = count[at.STAMP]
        whole[at.TOUCHED][count[at.N_TOUCHED]] = link
        count[at.N_TOUCHED] += 1


def join_who_must(real: Any, whole: Any) -> None:
    """Let flows on the links touched join: whom nothing stops, or who have more than one whom their link stops.

    Who is outside the pool is still stopped by the same link unless that is touched.
    """
    count, stop, lowest = whole[at.COUNT], whole[at.STOP], real[at.LOWEST]
    count[at.LOOK_STAMP] += 1
    for place in range(count[at.N_TOUCHED]):
        link = whole[at.TOUCHED][place]
        if whole[at.LOOKED_AT][link] != count[at.LOOK_STAMP]:
            look_at(real, whole, link)
        least_Bps, largest_Bps = real[at.LEAST][link], real[at.LARGEST][link]
        is_loose = least_Bps < largest_Bps or (least_Bps != INFINITE and not whole[at.IS_FULL][link])
        if not is_loose and largest_Bps <= lowest[link]:
            continue
        node = whole[at.FIRST_ON][link]
        while node != at.NOBODY:
            flow = node // count[at.MOST_HOPS]
            if whole[at.IN_POOL][flow] == OUTSIDE and (
                real[at.RATE][flow] > lowest[link]
                or (is_loose and stop[flow] == link and not is_stopped(real, whole, flow))
            ):
                join_pool(whole, flow)
                real[at.OLD_RATE][flow] = real[at.RATE][flow]
            node = whole[at.NEXT_ON][node]


def look_at(real: Any, whole: Any, link: int) -> None:
    """Note whether a link is full, and rates on it; good until the pool is filled again.

    These are the largest of all, and the lowest that it stops of those in the pool and (``LEAST``) outside it, both
    with what rounding may do.
    """
    most_hops, following, rate, stop = (
        whole[at.COUNT][at.MOST_HOPS],
        whole[at.NEXT_ON],
        real[at.RATE],
        whole[at.STOP],
    )
    total_Bps = largest_Bps = 0.0
    lowest_Bps = least_Bps = INFINITE
    node = whole[at.FIRST_ON][link]
    while node != at.NOBODY:
        flow = node // most_hops
        rate_Bps = rate[flow]
        total_Bps += rate_Bps
        if rate_Bps > largest_Bps:  # noqa: PLR1730 -- five times as fast as ``max`` where Python runs it
            largest_Bps = rate_Bps
        if stop[flow] == link:
            where = whole[at.IN_POOL][flow]
            if where == INSIDE:
                lowest_Bps = min(lowest_Bps, rate_Bps)
            elif where == OUTSIDE:
                least_Bps = min(least_Bps, rate_Bps)
        node = following[node]
    whole[at.LOOKED_AT][link] = whole[at.COUNT][at.LOOK_STAMP]
    whole[at.IS_FULL][link] = total_Bps >= real[at.CAPACITY][link] * (1 - EQUAL_RATES)
    real[at.LARGEST][link] = largest_Bps
    real[at.LOWEST][link], real[at.LEAST][link] = (
        lowest_Bps * (1 + EQUAL_RATES),
        least_Bps * (1 + EQUAL_RATES),
    )


def is_stopped(real: Any, whole: Any, flow: int) -> bool:
    """Whether a flow has a bottleneck, and note it: its own ceiling, or a full link on which none has more."""
    rate_Bps = real[at.RATE][flow] * (1 + EQUAL_RATES)
    if rate_Bps >= real[at.CEILING][flow]:
        whole[at.STOP][flow] = at.NOBODY
        return True
    route = whole[at.ROUTE_OF][flow]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        if whole[at.LOOKED_AT][link] != whole[at.COUNT][at.LOOK_STAMP]:
            look_at(real, whole, link)
        if whole[at.IS_FULL][link] and rate_Bps >= real[at.LARGEST][link]:
            whole[at.STOP][flow] = link
            return True
    return False


def fill(real: Any, whole: Any) -> None:
    """Let the rates of the pool rise together from zero, beside the others as they are, until each is stopped.

    What stops next is at the top of a heap: a flow at its ceiling, or a link (``-1 - link``) that its flows fill. What
    a link leaves for each only grows as others stop, so that it is enough to look again when it comes to the top.
    """
    levels, keys, heap = real[at.RISES_TO], whole[at.RISING_KEY], whole[at.RISING_WHAT]
    unfilled, n_rising = real[at.UNFILLED], whole[at.N_RISING]
    whole[at.COUNT][at.N_FILLED] += whole[at.COUNT][at.N_POOL]
    n = n_pushed = begin_rising(real, whole)
    while n:
        level_Bps, what = levels[0], heap[0]
        pop(levels, keys, heap, n)
        n -= 1
        if what >= 0:
            if whole[at.IN_POOL][what] == RISING:
                stop_rising(real, whole, what, level_Bps, at.NOBODY)
            continue
        link = -1 - what
        if not n_rising[link]:
            continue
        share_Bps = unfilled[link] / n_rising[link]
        if share_Bps > level_Bps:
            push(levels, keys, heap, n, share_Bps, n_pushed, what)
            n += 1
            n_pushed += 1
            continue
        node = whole[at.FIRST_ON][link]
        while n_rising[link]:
            flow = node // whole[at.COUNT][at.MOST_HOPS]
            if whole[at.IN_POOL][flow] == RISING:
                stop_rising(real, whole, flow, share_Bps, link)
            node = whole[at.NEXT_ON][node]


def begin_rising(real: Any, whole: Any) -> int:
    """Let the flows of the pool rise; return how many flows and links are on the heap of what stops next."""
    count, n_rising, n_on, n_links, n = whole[at.COUNT], whole[at.N_RISING], whole[at.N_ON], 0, 0
    capacity, unfilled = real[at.CAPACITY], real[at.UNFILLED]
    for place in range(count[at.N_POOL]):
        flow = whole[at.POOL][place]
        whole[at.IN_POOL][flow] = RISING
        top_Bps, narrowest_Bps, route = real[at.CEILING][flow], INFINITE, whole[at.ROUTE_OF][flow]
        for hop in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
            link = whole[at.LINKS][hop]
            if n_on[link] == 1:
                if capacity[link] < top_Bps:  # noqa: PLR1730 -- as above
                    top_Bps = capacity[link]
                continue
            if capacity[link] < narrowest_Bps:  # noqa: PLR1730 -- as above
                narrowest_Bps = capacity[link]
            if not n_rising[link]:
                whole[at.RISING_LINKS][n_links] = link
                n_links += 1
            n_rising[link] += 1
        # Unless a link that others are on as well stops it first.
        if top_Bps < narrowest_Bps or narrowest_Bps == INFINITE:
            push(real[at.RISES_TO], whole[at.RISING_KEY], whole[at.RISING_WHAT], n, top_Bps, n, flow)
            n += 1
    for place in range(n_links):
        link = whole[at.RISING_LINKS][place]
        unfilled[link] = capacity[link]
        if n_rising[link] < n_on[link]:
            touch(whole, link)
            unfilled[link] -= taken_outside(real, whole, link)
        share_Bps = unfilled[link] / n_rising[link]
        push(real[at.RISES_TO], whole[at.RISING_KEY], whole[at.RISING_WHAT], n, share_Bps, n, -1 - link)
        n += 1
    return n


def taken_outside(real: Any, whole: Any, link: int) -> float:
    """Return what flows outside the pool have of a link."""
    total_Bps, node = 0.0, whole[at.FIRST_ON][link]
    while node != at.NOBODY:
        flow = node // whole[at.COUNT][at.MOST_HOPS]
        if whole[at.IN_POOL][flow] == OUTSIDE:
            total_Bps += real[at.RATE][flow]
        node = whole[at.NEXT_ON][node]
    return total_Bps


def stop_rising(real: Any, whole: Any, flow: int, level_Bps: float, stop: int) -> None:
    """Let a flow rise no further, and take what it has from what its links leave the others."""
    rate_Bps = max(level_Bps, 0.0)
    real[at.RATE][flow], whole[at.STOP][flow], whole[at.IN_POOL][flow] = rate_Bps, stop, INSIDE
    route = whole[at.ROUTE_OF][flow]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        if whole[at.N_RISING][link]:
            real[at.UNFILLED][link] -= rate_Bps
            whole[at.N_RISING][link] -= 1


class Flow:
    """Something that moves over some links at a rate.

    Parameters
    ----------
    links : sequence of int
    cap_Bps : float
        What it cannot exceed by itself, in bytes per second.
    """

    __slots__ = ("before_Bps", "cap_Bps", "links", "place", "rate_Bps", "stop")

    def __init__(self, links: Sequence[int], cap_Bps: float = INFINITE) -> None:
        self.links, self.cap_Bps = links, cap_Bps
        #: Its rate, and the one that it had before the last settlement that changed it.
        self.rate_Bps = self.before_Bps = 0.0
        #: The link that keeps it from having more; None if that is its own cap.
        self.stop: int | None = None
        #: Its number among those that are under way, which another takes once it has ended.
        self.place = at.NOBODY


class Shares:
    """The flows on some links, and their rates.

    Parameters
    ----------
    capacity_Bps : list of float
        Of each link, in bytes per second; ``Shares.capacity_Bps`` may change, if `settle` is told.
    most_hops : int, optional
        Links on a route, at most, where links are added later.

    Examples
    --------
    Two flows share link 0, of which one also crosses the narrow link 1:

    >>> shares = Shares([10.0, 2.0])
    >>> wide, narrow = Flow([0]), Flow([0, 1])
    >>> changed = shares.settle([wide, narrow], [], [])
    >>> wide.rate_Bps, narrow.rate_Bps
    (8.0, 2.0)
    """

    def __init__(self, capacity_Bps: list[float], most_hops: int | None = None) -> None:
        self.real: list[list[float]] = [[] for _ in range(at.N_REAL)]
        self.whole: list[Any] = [[] for _ in range(at.N_WHOLE)]
        self.whole[at.COUNT] = [0] * len(at.COUNTS)
        # No route crosses more links than there are; what follows whom is asked of few of all these numbers.
        self.whole[at.COUNT][at.MOST_HOPS] = max(most_hops or len(capacity_Bps), 1)
        self.whole[at.NEXT_ON], self.whole[at.PREVIOUS_ON] = {}, {}
        self.whole[at.FIRST_LINK] = [0]
        self._routes: dict[tuple[int, ...], int] = {}
        self._flows: list[Flow] = []
        self.capacity_Bps = self.real[at.CAPACITY]
        self.add_links(capacity_Bps)

    def add_links(self, capacity_Bps: Sequence[float]) -> int:
        """Add links; return the number of the first."""
        first = len(self.capacity_Bps)
        for table, names, value in (
            (self.real, (*at.REAL_OF_LINK, at.RISES_TO), 0.0),
            (self.whole, (*at.WHOLE_OF_LINK, *at.LISTS_OF_LINKS, at.RISING_KEY, at.RISING_WHAT), 0),
            (self.whole, at.NOBODY_OF_LINK, at.NOBODY),
        ):
            for name in names:
                table[name] += [value] * len(capacity_Bps)
        self.capacity_Bps[first:] = capacity_Bps
        return first

    @property
    def n_filled(self) -> int:
        """How many rates were worked out: what settling costs."""
        return int(self.whole[at.COUNT][at.N_FILLED])

    def on(self, link: int) -> list[Flow]:
        """Return the flows on a link, in the order in which they came."""
        found, node = [], self.whole[at.FIRST_ON][link]
        while node != at.NOBODY:
            found.append(self._flows[node // self.whole[at.COUNT][at.MOST_HOPS]])
            node = self.whole[at.NEXT_ON][node]
        return found

    def n_on(self, link: int) -> int:
        """Return how many flows are on a link."""
        return int(self.whole[at.N_ON][link])

    def settle(self, coming: Sequence[Flow], going: Sequence[Flow], changed: Iterable[int]) -> list[Flow]:
        """Take in flows that start, flows that end and links whose capacity has changed; return whose rate is new."""
        real, whole = self.real, self.whole
        count = whole[at.COUNT]
        for flow in coming:
            self._place(flow)
        lists = [flow.place for flow in coming], [flow.place for flow in going], [*changed]
        whole[at.COMING], whole[at.GOING], whole[at.CHANGED] = lists
        count[at.N_COMING], count[at.N_GOING], count[at.N_CHANGED] = map(len, lists)
        settle(real, whole)
        whole[at.FREE_FLOWS] += whole[at.GOING]
        new = []
        for place in whole[at.POOL][: count[at.N_POOL]]:
            before_Bps = real[at.OLD_RATE][place]
            if real[at.RATE][place] != before_Bps:
                flow, stop = self._flows[place], whole[at.STOP][place]
                flow.rate_Bps, flow.before_Bps = real[at.RATE][place], max(before_Bps, 0.0)
                flow.stop = None if stop == at.NOBODY else stop
                new.append(flow)
        return new

    def _place(self, flow: Flow) -> None:
        """Give a flow a number that is free, and columns."""
        real, whole = self.real, self.whole
        if whole[at.FREE_FLOWS]:
            flow.place = whole[at.FREE_FLOWS].pop()
            self._flows[flow.place] = flow
        else:
            flow.place = len(self._flows)
            self._flows.append(flow)
            for table, names in (
                (real, (at.RATE, at.OLD_RATE, at.CEILING, at.RISES_TO)),
                (whole, (at.ROUTE_OF, at.STOP, at.IN_POOL, at.POOL, at.RISING_KEY, at.RISING_WHAT)),
            ):
                for name in names:
                    table[name].append(0)
        route = self._routes.setdefault(tuple(flow.links), len(self._routes))
        if route == len(whole[at.FIRST_LINK]) - 1:
            whole[at.LINKS] += flow.links
            whole[at.FIRST_LINK].append(len(whole[at.LINKS]))
        whole[at.ROUTE_OF][flow.place] = route
        real[at.RATE][flow.place], real[at.CEILING][flow.place] = 0.0, flow.cap_Bps
