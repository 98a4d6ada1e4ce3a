"""Max-min fair rates as flows come and go, in the compiled loop: `ringnet.engines.events.max_min`, in columns.

Each step is that of `Shares` there, in the same order, so that the rates are the same to the last bit. Functions here
are compiled by Numba as they stand, and run without it too: plain loops over the arrays of `layout`.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines.compiled import layout as at
from ringnet.engines.compiled.heap import put_in, take_out
from ringnet.engines.tolerances import EQUAL_RATES

#: Where a flow is while rates are settled.
OUTSIDE, INSIDE, RISING, JOINING = range(4)


def settle(real: Any, whole: Any) -> None:
    """Take in the flows that come and drop those that go; those in the pool then may have a new rate."""
    count = whole[at.COUNT]
    count[at.N_POOL] = 0
    forget_touched(whole)
    for place in range(count[at.N_GOING]):
        flow = whole[at.GOING][place]
        leave_links(whole, flow)
        touch_links(whole, flow)
    for place in range(count[at.N_COMING]):
        flow = whole[at.COMING][place]
        join_links(whole, flow)
        join_pool(whole, flow)
        real[at.OLD_RATE][flow] = -1.0
    grow(real, whole)
    for place in range(count[at.N_POOL]):
        flow = whole[at.POOL][place]
        whole[at.IN_POOL][flow] = OUTSIDE
        if real[at.RATE][flow] != real[at.OLD_RATE][flow]:
            real[at.BEFORE][flow] = max(real[at.OLD_RATE][flow], 0.0)


def join_links(whole: Any, flow: int) -> None:
    """Add a flow to those on each of its links, as the last."""
    route = whole[at.ROUTE_OF][flow]
    first = whole[at.FIRST_LINK][route]
    for hop in range(whole[at.FIRST_LINK][route + 1] - first):
        link, node = whole[at.LINKS][first + hop], flow * whole[at.COUNT][at.MOST_HOPS] + hop
        put_in(whole, at.CHAIN_ON, link, node, whole[at.LAST_ON][link])
        whole[at.N_ON][link] += 1


def leave_links(whole: Any, flow: int) -> None:
    """Take a flow from its links."""
    route = whole[at.ROUTE_OF][flow]
    first = whole[at.FIRST_LINK][route]
    for hop in range(whole[at.FIRST_LINK][route + 1] - first):
        link, node = whole[at.LINKS][first + hop], flow * whole[at.COUNT][at.MOST_HOPS] + hop
        take_out(whole, at.CHAIN_ON, link, node)
        whole[at.N_ON][link] -= 1


def join_pool(whole: Any, flow: int) -> None:
    """Add a flow to the pool."""
    whole[at.POOL][whole[at.COUNT][at.N_POOL]] = flow
    whole[at.COUNT][at.N_POOL] += 1
    whole[at.IN_POOL][flow] = INSIDE


def forget_touched(whole: Any) -> None:
    """Let no link be touched."""
    whole[at.COUNT][at.N_TOUCHED] = 0
    whole[at.COUNT][at.STAMP] += 1


def touch_links(whole: Any, flow: int) -> None:
    """Note the links of a flow as touched, each once."""
    count, route = whole[at.COUNT], whole[at.ROUTE_OF][flow]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        if whole[at.SEEN][link] != count[at.STAMP]:
            whole[at.SEEN][link] = count[at.STAMP]
            whole[at.TOUCHED][count[at.N_TOUCHED]] = link
            count[at.N_TOUCHED] += 1


def grow(real: Any, whole: Any) -> None:
    """Fill the pool, and let join who must, until nobody has to."""
    count = whole[at.COUNT]
    if count[at.N_POOL]:
        fill(real, whole)
        for place in range(count[at.N_POOL]):
            touch_links(whole, whole[at.POOL][place])
    while True:
        count[at.USE_STAMP] += 1
        n_before = count[at.N_POOL]
        join_without_bottleneck(real, whole)
        join_above(real, whole, n_before)
        if count[at.N_POOL] == n_before:
            return
        fill(real, whole)
        forget_touched(whole)
        for place in range(count[at.N_POOL]):
            touch_links(whole, whole[at.POOL][place])


def join_without_bottleneck(real: Any, whole: Any) -> None:
    """Let flows join, on the links touched, that nothing stops from having more."""
    for place in range(whole[at.COUNT][at.N_TOUCHED]):
        node = whole[at.FIRST_ON][whole[at.TOUCHED][place]]
        while node != at.NOBODY:
            flow = node // whole[at.COUNT][at.MOST_HOPS]
            if whole[at.IN_POOL][flow] == OUTSIDE and not is_stopped(real, whole, flow):
                join_pool(whole, flow)
                real[at.OLD_RATE][flow] = real[at.RATE][flow]
            node = whole[at.NEXT_ON][node]


def join_above(real: Any, whole: Any, n_filled: int) -> None:
    """Let flows join that have more than one that was filled on the link that stops that one."""
    forget_touched(whole)
    count = whole[at.COUNT]
    for place in range(n_filled):
        flow = whole[at.POOL][place]
        link = whole[at.STOP][flow]
        if link == at.NOBODY:
            continue
        real[at.LOWEST][link] = real[at.RATE][flow]
        if whole[at.SEEN][link] != count[at.STAMP]:
            whole[at.SEEN][link] = count[at.STAMP]
            whole[at.TOUCHED][count[at.N_TOUCHED]] = link
            count[at.N_TOUCHED] += 1
    for place in range(count[at.N_TOUCHED]):
        link = whole[at.TOUCHED][place]
        node = whole[at.FIRST_ON][link]
        while node != at.NOBODY:
            flow = node // count[at.MOST_HOPS]
            is_above = real[at.RATE][flow] > real[at.LOWEST][link] * (1 + EQUAL_RATES)
            if is_above and whole[at.IN_POOL][flow] == OUTSIDE:
                join_pool(whole, flow)
                real[at.OLD_RATE][flow] = real[at.RATE][flow]
            node = whole[at.NEXT_ON][node]


def is_stopped(real: Any, whole: Any, flow: int) -> bool:
    """Whether a flow has a bottleneck: its own ceiling, or a full link on which none has more."""
    rate_Bps = real[at.RATE][flow] * (1 + EQUAL_RATES)
    if rate_Bps >= real[at.CEILING][flow]:
        return True
    route = whole[at.ROUTE_OF][flow]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        if whole[at.USED_AT][link] != whole[at.COUNT][at.USE_STAMP]:
            look_at(real, whole, link)
        if whole[at.IS_FULL][link] and rate_Bps >= real[at.LARGEST][link]:
            return True
    return False


def look_at(real: Any, whole: Any, link: int) -> None:
    """Note whether a link is full, and the largest rate on it; good until the pool is filled again."""
    total_Bps = largest_Bps = 0.0
    node = whole[at.FIRST_ON][link]
    while node != at.NOBODY:
        rate_Bps = real[at.RATE][node // whole[at.COUNT][at.MOST_HOPS]]
        total_Bps += rate_Bps
        largest_Bps = max(largest_Bps, rate_Bps)
        node = whole[at.NEXT_ON][node]
    whole[at.USED_AT][link] = whole[at.COUNT][at.USE_STAMP]
    whole[at.IS_FULL][link] = total_Bps >= real[at.CAPACITY][link] * (1 - EQUAL_RATES)
    real[at.LARGEST][link] = largest_Bps


def fill(real: Any, whole: Any) -> None:
    """Let the rates of the pool rise together from zero, beside the others as they are, until each is stopped."""
    whole[at.COUNT][at.N_FILLED] += whole[at.COUNT][at.N_POOL]
    n_links = begin_rising(real, whole)
    flows, links, n_flows = whole[at.RISING_FLOWS], whole[at.RISING_LINKS], whole[at.COUNT][at.N_POOL]
    while True:
        level, lowest, kept = 0.0, at.NOBODY, 0
        for place in range(n_flows):
            flow = flows[place]
            if whole[at.IN_POOL][flow] == RISING:
                flows[kept] = flow
                kept += 1
                if lowest == at.NOBODY or real[at.TOP][flow] <= level:
                    level, lowest = real[at.TOP][flow], flow
        n_flows = kept
        if not n_flows:
            return
        stop, kept = at.NOBODY, 0
        for place in range(n_links):
            link = links[place]
            n = whole[at.N_RISING][link]
            if n:
                links[kept] = link
                kept += 1
                if real[at.UNFILLED][link] < level * n:
                    level, stop = real[at.UNFILLED][link] / n, link
        n_links = kept
        if stop == at.NOBODY:
            stop_rising(real, whole, lowest, level, stop)
        else:
            node = whole[at.FIRST_ON][stop]
            while node != at.NOBODY:
                flow = node // whole[at.COUNT][at.MOST_HOPS]
                if whole[at.IN_POOL][flow] == RISING:
                    stop_rising(real, whole, flow, level, stop)
                node = whole[at.NEXT_ON][node]


def begin_rising(real: Any, whole: Any) -> int:
    """Let the flows of the pool rise: what each cannot exceed, what others leave of links; return of how many links."""
    count, n_links = whole[at.COUNT], 0
    for place in range(count[at.N_POOL]):
        whole[at.IN_POOL][whole[at.POOL][place]] = RISING
    for place in range(count[at.N_POOL]):
        flow = whole[at.POOL][place]
        whole[at.RISING_FLOWS][place] = flow
        top_Bps, route = real[at.CEILING][flow], whole[at.ROUTE_OF][flow]
        for hop in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
            link = whole[at.LINKS][hop]
            if whole[at.N_ON][link] == 1:
                top_Bps = min(top_Bps, real[at.CAPACITY][link])
            elif whole[at.N_RISING][link]:
                whole[at.N_RISING][link] += 1
            else:
                whole[at.N_RISING][link] = 1
                whole[at.RISING_LINKS][n_links] = link
                n_links += 1
        real[at.TOP][flow] = top_Bps
    for place in range(n_links):
        link = whole[at.RISING_LINKS][place]
        real[at.UNFILLED][link] = real[at.CAPACITY][link]
        if whole[at.N_RISING][link] < whole[at.N_ON][link]:
            real[at.UNFILLED][link] -= taken_outside(real, whole, link)
    return n_links


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
