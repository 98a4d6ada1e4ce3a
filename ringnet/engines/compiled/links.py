"""Links of the compiled loop: under fair sharing all flows move at once, under fifo each link serves one after another.

What `ringnet.engines.events.fair` and `ringnet.engines.events.links` say, in columns and in the same order.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import (
    ARRIVAL,
    HEAD_COMES,
    KINDS,
    LAST_PRIORITY,
    LINK,
    NORMAL,
    pop,
    push,
    put_in,
    schedule,
    take_out,
)
from ringnet.engines.max_min import settle
from ringnet.engines.tolerances import OWN_ALL, ROUNDING, SAME_TIME

INFINITE = float("inf")
#: Stands for the hop of what is on all links of its route at once.
FLOW = -1


def has_room(whole: Any) -> bool:
    """Whether whatever one event brings has room in all arrays that grow."""
    count = whole[at.COUNT]
    n_flows = count[at.N_STREAMS] + count[at.N_COMING] + 1
    return bool(
        count[at.N_EVENTS] + n_flows + count[at.MOST_OF_STEP] <= count[at.ROOM_EVENTS]
        and 2 * n_flows <= count[at.ROOM_ENDS]
        and count[at.N_FREE] > 0
        and count[at.N_SERVICES] + n_flows <= count[at.ROOM_SERVICES]
        and count[at.N_RATES] + 2 * n_flows <= count[at.ROOM_RATES]
        and count[at.N_WAITS] + n_flows * count[at.MOST_HOPS] <= count[at.ROOM_WAITS]
    )


def alone_s(real: Any, whole: Any, transfer: int) -> float:
    """Return the seconds that a transfer takes on its route beside the latency when nothing else is on it."""
    count, route = whole[at.COUNT], whole[at.ROUTE][transfer]
    if count[at.IS_FAIR] or count[at.IS_CUT_THROUGH]:
        whole_s: float = whole[at.BYTES][transfer] / real[at.ROUTE_RATE][route]
        return whole_s
    total_s = 0.0
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        total_s += whole[at.BYTES][transfer] / real[at.CAPACITY][whole[at.LINKS][place]]
    return total_s


def own_part_s(real: Any, transfer: int, queued_s: float) -> float:
    """Return what of a transfer's queueing was behind its sender's own: `ringnet.engines.tolerances.own_part_s`."""
    lost_s: float = real[at.LOST][transfer]
    own_lost_s: float = real[at.OWN_LOST][transfer]
    most_s = max(queued_s, lost_s)
    if most_s - own_lost_s <= max(OWN_ALL * most_s, ROUNDING * real[at.ARRIVED][transfer]):
        return queued_s
    return own_lost_s * queued_s / most_s if queued_s < lost_s else own_lost_s


def enter_route(real: Any, whole: Any, transfer: int) -> None:
    """Let a transfer go on to the network now; under fair sharing the whole latency comes first."""
    now_s, count = real[at.CLOCK][at.NOW], whole[at.COUNT]
    real[at.LOST][transfer] = real[at.OWN_LOST][transfer] = 0.0
    if count[at.IS_FAIR]:
        whole[at.QUEUED][transfer] = 1
        real[at.HEAD][transfer] = now_s
        head_s = now_s + real[at.ROUTE_LATENCY][whole[at.ROUTE][transfer]]
        schedule(real, whole, head_s, NORMAL, KINDS * transfer + HEAD_COMES)
    else:
        join_queue(real, whole, whole[at.LINKS][whole[at.FIRST_LINK][whole[at.ROUTE][transfer]]], transfer)


def head_comes(real: Any, whole: Any, transfer: int) -> None:
    """Let the head of a transfer come to its next link, or (fair) start to move on all of them."""
    if whole[at.COUNT][at.IS_FAIR]:
        start_flow(real, whole, transfer)
    else:
        first = whole[at.FIRST_LINK][whole[at.ROUTE][transfer]]
        join_queue(real, whole, whole[at.LINKS][first + whole[at.HOP][transfer]], transfer)


def arrive(real: Any, whole: Any, transfer: int, arrived_s: float) -> None:
    """Set the time of an arrival, and let it happen if somebody waits for it already."""
    real[at.ARRIVED][transfer] = arrived_s
    if whole[at.AWAITED][transfer]:
        schedule(real, whole, arrived_s, NORMAL, KINDS * transfer + ARRIVAL)


def start_flow(real: Any, whole: Any, transfer: int) -> None:
    """Start a flow; one without bytes is there at once."""
    count, now_s, route = whole[at.COUNT], real[at.CLOCK][at.NOW], whole[at.ROUTE][transfer]
    real[at.STARTED][transfer] = now_s
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        whole[at.LINK_BYTES][link] += whole[at.BYTES][transfer]
        whole[at.LINK_TRANSFERS][link] += 1
    if not whole[at.BYTES][transfer]:
        write_flow(real, whole, transfer, at.NOBODY, 0.0)
        real[at.SENT][transfer] = now_s
        arrive(real, whole, transfer, now_s)
        return
    count[at.N_FREE] -= 1
    flow = whole[at.FREE_FLOWS][count[at.N_FREE]]
    whole[at.TRANSFER_OF][flow], whole[at.ROUTE_OF][flow] = transfer, route
    real[at.CEILING][flow], real[at.LEFT][flow] = real[at.ROUTE_RATE][route], whole[at.BYTES][transfer]
    real[at.LONE_END][flow] = INFINITE
    come(real, whole, flow, now_s)
    real[at.CLOCK][at.ALARM] = min(real[at.CLOCK][at.ALARM], now_s)


def come(real: Any, whole: Any, flow: int, now_s: float) -> None:
    """Let a flow, of which it is known what moves over which route, be one of those that come now."""
    count = whole[at.COUNT]
    real[at.RATE][flow], real[at.FLOW_SINCE][flow] = 0.0, now_s
    whole[at.HELD_BY][flow] = whole[at.STOP][flow] = whole[at.PREDICTION][flow] = at.NOBODY
    whole[at.COMING][count[at.N_COMING]] = flow
    count[at.N_COMING] += 1


def settle_flows(real: Any, whole: Any, lone_real: Any, lone_whole: Any) -> None:
    """Work out rates anew: some flows end now, some start."""
    count, now_s = whole[at.COUNT], real[at.CLOCK][at.NOW]
    real[at.CLOCK][at.ALARM] = INFINITE
    count[at.N_SETTLEMENTS] += 1
    take_ended(real, whole, now_s)
    count[at.N_STREAMS] += count[at.N_COMING] - count[at.N_GOING]
    go_on_alone(real, whole, lone_real, lone_whole)
    settle(real, whole)
    if count[at.N_ENDS] + count[at.N_POOL] > count[at.ROOM_ENDS]:
        drop_stale(real, whole)
    for place in range(count[at.N_POOL]):
        flow = whole[at.POOL][place]
        if real[at.RATE][flow] != real[at.OLD_RATE][flow]:
            lose(real, whole, flow, max(real[at.OLD_RATE][flow], 0.0), now_s)
            whole[at.HELD_BY][flow] = whole[at.STOP][flow]
            moved = moved_bytes(real, flow, now_s)
            if moved:
                write_rate(real, whole, flow, now_s, moved)
            predict(real, whole, flow, now_s)
    for place in range(count[at.N_COMING]):
        note_flows(real, whole, whole[at.COMING][place], now_s)
    for place in range(count[at.N_GOING]):
        note_flows(real, whole, whole[at.GOING][place], now_s)
    for place in range(count[at.N_GOING]):
        end_flow(real, whole, whole[at.GOING][place], now_s)
    count[at.N_COMING] = count[at.N_GOING] = 0
    if count[at.N_STREAMS]:
        real[at.CLOCK][at.ALARM] = next_end(real, whole)


def go_on_alone(real: Any, whole: Any, lone_real: Any, lone_whole: Any) -> None:
    """Go on to now with what each sender's flows would do if nobody else's were there, and to those that come now."""
    count, lone, now_s = whole[at.COUNT], lone_whole[at.COUNT], real[at.CLOCK][at.NOW]
    end_s = next_end(lone_real, lone_whole)
    while end_s < now_s * (1 - SAME_TIME):
        take_ended(lone_real, lone_whole, end_s)
        settle_alone(real, whole, lone_real, lone_whole, end_s)
        end_s = next_end(lone_real, lone_whole)
    take_ended(lone_real, lone_whole, now_s)
    for place in range(count[at.N_COMING]):
        flow = whole[at.COMING][place]
        lone_whole[at.ROUTE_OF][flow] = whole[at.ROUTE_OF][flow]
        lone_real[at.CEILING][flow], lone_real[at.LEFT][flow] = real[at.CEILING][flow], real[at.LEFT][flow]
        come(lone_real, lone_whole, flow, now_s)
    if lone[at.N_COMING] or lone[at.N_GOING]:
        settle_alone(real, whole, lone_real, lone_whole, now_s)


def settle_alone(real: Any, whole: Any, lone_real: Any, lone_whole: Any, now_s: float) -> None:
    """Work out rates anew of those that are alone, and note of those that end when they do."""
    lone = lone_whole[at.COUNT]
    for place in range(lone[at.N_GOING]):
        flow = lone_whole[at.GOING][place]
        real[at.LONE_END][flow] = now_s
        if whole[at.ROUTE_OF][flow] == at.NOBODY:
            free_flow(whole, flow)
    settle(lone_real, lone_whole)
    if lone[at.N_ENDS] + lone[at.N_POOL] > lone[at.ROOM_ENDS]:
        drop_stale(lone_real, lone_whole)
    for place in range(lone[at.N_POOL]):
        flow = lone_whole[at.POOL][place]
        if lone_real[at.RATE][flow] != lone_real[at.OLD_RATE][flow]:
            predict(lone_real, lone_whole, flow, now_s)
    lone[at.N_COMING] = lone[at.N_GOING] = 0


def free_flow(whole: Any, flow: int) -> None:
    """Let another flow take the place of one that is over, and alone would be."""
    count = whole[at.COUNT]
    whole[at.FREE_FLOWS][count[at.N_FREE]] = flow
    count[at.N_FREE] += 1


def take_ended(real: Any, whole: Any, now_s: float) -> None:
    """Find the flows that end now."""
    count = whole[at.COUNT]
    while next_end(real, whole) <= now_s * (1 + SAME_TIME):
        flow = whole[at.END_FLOW][0]
        whole[at.PREDICTION][flow] = at.NOBODY
        whole[at.GOING][count[at.N_GOING]] = flow
        count[at.N_GOING] += 1


def next_end(real: Any, whole: Any) -> float:
    """Return when the next flow ends; what was predicted for other rates is dropped."""
    count = whole[at.COUNT]
    while count[at.N_ENDS]:
        if whole[at.END_NUMBER][0] == whole[at.PREDICTION][whole[at.END_FLOW][0]]:
            end_s: float = real[at.PREDICTED][0]
            return end_s
        pop(real[at.PREDICTED], whole[at.END_NUMBER], whole[at.END_FLOW], count[at.N_ENDS])
        count[at.N_ENDS] -= 1
    return INFINITE


def drop_stale(real: Any, whole: Any) -> None:
    """Drop all that was predicted for other rates, so that there is no more than one end for each flow."""
    count = whole[at.COUNT]
    times_s, numbers, flows, n_ends = (
        real[at.PREDICTED],
        whole[at.END_NUMBER],
        whole[at.END_FLOW],
        count[at.N_ENDS],
    )
    count[at.N_ENDS] = 0
    for place in range(n_ends):
        if numbers[place] == whole[at.PREDICTION][flows[place]]:
            push(times_s, numbers, flows, count[at.N_ENDS], times_s[place], numbers[place], flows[place])
            count[at.N_ENDS] += 1


def predict(real: Any, whole: Any, flow: int, now_s: float) -> None:
    """Predict the end of a flow whose rate is new; as long as the rate stays no rounding creeps into it."""
    count = whole[at.COUNT]
    real[at.LEFT][flow] -= moved_bytes(real, flow, now_s)
    real[at.FLOW_SINCE][flow] = now_s
    rate_Bps = real[at.RATE][flow]
    end_s = now_s + real[at.LEFT][flow] / rate_Bps if rate_Bps else INFINITE
    number = whole[at.PREDICTION][flow] = count[at.NEXT_END_NUMBER]
    push(
        real[at.PREDICTED], whole[at.END_NUMBER], whole[at.END_FLOW],
        count[at.N_ENDS], end_s, number, flow,
    )  # fmt: skip
    count[at.NEXT_END_NUMBER] += 1
    count[at.N_ENDS] += 1


def moved_bytes(real: Any, flow: int, now_s: float) -> float:
    """Return what a flow has moved at the rate that it had before."""
    before_Bps = max(real[at.OLD_RATE][flow], 0.0)
    moved: float = min(before_Bps * (now_s - real[at.FLOW_SINCE][flow]), real[at.LEFT][flow])
    return moved


def lose(real: Any, whole: Any, flow: int, rate_Bps: float, now_s: float) -> None:
    """Put down what a flow has lost since its rate last changed to the link that kept it from having more."""
    link = whole[at.HELD_BY][flow]
    if link == at.NOBODY or not real[at.CEILING][flow]:
        return
    lost_s = (now_s - real[at.FLOW_SINCE][flow]) * (1.0 - rate_Bps / real[at.CEILING][flow])
    if lost_s > ROUNDING * now_s:
        real[at.QUEUED_FOR][link] += lost_s
        real[at.LOST][whole[at.TRANSFER_OF][flow]] += lost_s


def to_others_s(real: Any, flow: int, transfer: int, now_s: float) -> float:
    """Return what a flow has lost to other senders now that it ends: what it took longer than without them."""
    lost_s: float = real[at.LOST][transfer]
    later_s: float = now_s - real[at.LONE_END][flow] if lost_s else 0.0
    if later_s <= OWN_ALL * (now_s - real[at.STARTED][transfer]):
        return 0.0
    return lost_s if lost_s - later_s <= OWN_ALL * lost_s else later_s


def note_flows(real: Any, whole: Any, flow: int, now_s: float) -> None:
    """Bring the counters of the links of a flow up to date."""
    route = whole[at.ROUTE_OF][flow]
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        passed_s = now_s - real[at.LINK_SINCE][link]
        real[at.LINK_SINCE][link] = now_s
        if whole[at.N_FLOWS][link]:
            real[at.OCCUPIED][link] += passed_s
        if passed_s > ROUNDING * now_s:
            whole[at.LONGEST][link] = max(whole[at.LONGEST][link], whole[at.N_FLOWS][link] - 1)
        whole[at.N_FLOWS][link] = whole[at.N_ON][link]


def end_flow(real: Any, whole: Any, flow: int, now_s: float) -> None:
    """Let a flow leave and its transfer arrive."""
    transfer, route = whole[at.TRANSFER_OF][flow], whole[at.ROUTE_OF][flow]
    lose(real, whole, flow, real[at.RATE][flow], now_s)
    write_rate(real, whole, flow, now_s, real[at.LEFT][flow])
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        write_wait(real, whole, whole[at.LINKS][place], real[at.STARTED][transfer], now_s)
    others_s = to_others_s(real, flow, transfer, now_s)
    real[at.OWN_LOST][transfer] = real[at.LOST][transfer] - others_s
    write_flow(real, whole, transfer, whole[at.HELD_BY][flow], others_s)
    whole[at.ROUTE_OF][flow] = at.NOBODY
    if real[at.LONE_END][flow] != INFINITE:
        free_flow(whole, flow)
    real[at.SENT][transfer] = now_s
    arrive(real, whole, transfer, now_s)


def write_flow(real: Any, whole: Any, transfer: int, held_by: int, others_s: float) -> None:
    """Write down a flow that has ended, with the link that held it back; alone, the narrowest of its route."""
    if not whole[at.COUNT][at.KEEPS_SERVICES]:
        return
    route = whole[at.ROUTE][transfer]
    if held_by == at.NOBODY:
        held_by = whole[at.LINKS][whole[at.FIRST_LINK][route]]
        for place in range(whole[at.FIRST_LINK][route] + 1, whole[at.FIRST_LINK][route + 1]):
            if real[at.CAPACITY][whole[at.LINKS][place]] < real[at.CAPACITY][held_by]:
                held_by = whole[at.LINKS][place]
    times_s = real[at.HEAD][transfer], real[at.STARTED][transfer], real[at.CLOCK][at.NOW]
    write_service(real, whole, transfer, held_by, FLOW, (*times_s, others_s))


def write_service(
    real: Any, whole: Any, transfer: int, link: int, hop: int, seconds: tuple[float, float, float, float]
) -> None:
    """Write down a service: when the head came, when it started, when it ended; (fair) what others had of it."""
    count, rows = whole[at.COUNT], real[at.SERVICE_ROWS]
    if count[at.KEEPS_SERVICES]:
        cell = count[at.N_SERVICES] * at.SERVICE_CELLS
        rows[cell], rows[cell + 1], rows[cell + 2] = transfer + count[at.FIRST_TRANSFER], link, hop
        rows[cell + 3], rows[cell + 4] = whole[at.BYTES][transfer], seconds[0]
        rows[cell + 5], rows[cell + 6], rows[cell + 7] = seconds[1], seconds[2], seconds[3]
        count[at.N_SERVICES] += 1


def write_rate(real: Any, whole: Any, flow: int, now_s: float, moved: float) -> None:
    """Write down what a flow has moved cell an even rate until now."""
    count, rows = whole[at.COUNT], real[at.RATE_ROWS]
    if count[at.KEEPS_RATES]:
        cell = count[at.N_RATES] * at.RATE_CELLS
        rows[cell], rows[cell + 1] = whole[at.ROUTE_OF][flow], real[at.FLOW_SINCE][flow]
        rows[cell + 2], rows[cell + 3] = now_s, moved
        count[at.N_RATES] += 1


def write_wait(real: Any, whole: Any, link: int, from_s: float, to_s: float) -> None:
    """Write down from when to when something waited for a link; under fair sharing, was on it."""
    count, rows = whole[at.COUNT], real[at.WAIT_ROWS]
    if count[at.KEEPS_WAITS] and to_s > from_s:
        cell = count[at.N_WAITS] * at.WAIT_CELLS
        rows[cell], rows[cell + 1], rows[cell + 2] = link, from_s, to_s
        count[at.N_WAITS] += 1


def join_queue(real: Any, whole: Any, link: int, transfer: int) -> None:
    """Queue what has its head here now, and wake the link for it."""
    now_s = real[at.HEAD][transfer] = real[at.CLOCK][at.NOW]
    before = whole[at.LAST_QUEUED][link]
    while before != at.NOBODY and real[at.HEAD][before] == now_s and comes_first(whole, transfer, before):
        before = whole[at.PREVIOUS_IN_QUEUE][before]
    put_in(whole, at.CHAIN_OF_QUEUE, link, transfer, before)
    whole[at.N_QUEUED][link] += 1
    account = whole[at.ACCOUNTS][whole[at.FIRST_LINK][whole[at.ROUTE][transfer]] + whole[at.HOP][transfer]]
    real[at.HAD_SERVED][transfer] = real[at.ACCOUNT_WORKED][account]
    if real[at.FREE][link] > now_s and whole[at.SERVES][link] == account:
        real[at.HAD_SERVED][transfer] -= real[at.FREE][link] - now_s
    if real[at.FREE][link] > now_s:
        note_queue(whole, link, now_s, real[at.FREE][link])
    if whole[at.ASLEEP][link]:
        whole[at.ASLEEP][link] = 0
        wake_s = max(now_s, real[at.FREE][link])
        schedule(real, whole, wake_s, LAST_PRIORITY + whole[at.HOP][transfer], KINDS * link + LINK)


def comes_first(whole: Any, one: int, other: int) -> bool:
    """Whether one of two transfers that come at the same time is served first: by sender, channel, place."""
    n_channels = whole[at.COUNT][at.N_CHANNELS]
    sender, channel = whole[at.SRC][one] // n_channels, whole[at.SRC][one] % n_channels
    its_sender, its_channel = whole[at.SRC][other] // n_channels, whole[at.SRC][other] % n_channels
    if sender != its_sender:
        return bool(sender < its_sender)
    return bool(channel < its_channel or (channel == its_channel and one < other))


def note_queue(whole: Any, link: int, from_s: float, to_s: float) -> None:
    """Note how many wait for a while, if they are more than ever."""
    if to_s - from_s > ROUNDING * to_s:
        whole[at.LONGEST][link] = max(whole[at.LONGEST][link], whole[at.N_QUEUED][link])


def serve_next(real: Any, whole: Any, link: int) -> None:
    """Serve the first that waits from now on, and let the link wake for the next."""
    transfer = whole[at.FIRST_QUEUED][link]
    after = whole[at.NEXT_IN_QUEUE][transfer]
    take_out(whole, at.CHAIN_OF_QUEUE, link, transfer)
    whole[at.N_QUEUED][link] -= 1
    serve(real, whole, link, transfer)
    if after == at.NOBODY:
        whole[at.ASLEEP][link] = 1
    else:
        priority = LAST_PRIORITY + whole[at.HOP][after]
        schedule(real, whole, real[at.FREE][link], priority, KINDS * link + LINK)


def serve(real: Any, whole: Any, link: int, transfer: int) -> None:
    """Serve a transfer from now on; then its head reaches the next link, or its tail the receiver."""
    count, start_s, hop = whole[at.COUNT], real[at.CLOCK][at.NOW], whole[at.HOP][transfer]
    busy_s = whole[at.BYTES][transfer] / real[at.CAPACITY][link]
    end_s = start_s + busy_s
    if hop == 0:
        real[at.STARTED][transfer], real[at.SENT][transfer] = start_s, end_s
    elif count[at.IS_CUT_THROUGH]:
        end_s = max(end_s, real[at.TAIL][transfer])
        real[at.HELD][link] += (end_s - start_s) - busy_s
    real[at.FREE][link] = end_s
    whole[at.LINK_TRANSFERS][link] += 1
    whole[at.LINK_BYTES][link] += whole[at.BYTES][transfer]
    head_s, route = real[at.HEAD][transfer], whole[at.ROUTE][transfer]
    account = whole[at.ACCOUNTS][whole[at.FIRST_LINK][route] + hop]
    if start_s > head_s:
        whole[at.QUEUED][transfer] = 1
        if start_s - head_s > ROUNDING * start_s:
            lost_s = start_s - head_s
            real[at.QUEUED_FOR][link] += lost_s
            write_wait(real, whole, link, head_s, start_s)
            others_s = lost_s - (real[at.ACCOUNT_WORKED][account] - real[at.HAD_SERVED][transfer])
            real[at.LOST][transfer] += lost_s
            real[at.OWN_LOST][transfer] += lost_s - others_s if others_s > ROUNDING * start_s else lost_s
    whole[at.SERVES][link] = account
    real[at.ACCOUNT_WORKED][account] += end_s - start_s
    if whole[at.N_QUEUED][link] and end_s > start_s:
        note_queue(whole, link, start_s, end_s)
    write_service(real, whole, transfer, link, hop, (head_s, start_s, end_s, 0.0))
    real[at.TAIL][transfer] = end_s + real[at.LATENCY][link]
    whole[at.HOP][transfer] += 1
    if whole[at.FIRST_LINK][route] + whole[at.HOP][transfer] == whole[at.FIRST_LINK][route + 1]:
        arrive(real, whole, transfer, real[at.TAIL][transfer])
    else:
        next_s = start_s + real[at.LATENCY][link] if count[at.IS_CUT_THROUGH] else real[at.TAIL][transfer]
        schedule(real, whole, next_s, NORMAL, KINDS * transfer + HEAD_COMES)
