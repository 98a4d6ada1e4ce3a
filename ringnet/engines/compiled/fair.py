"""Links of the compiled loop that are shared fairly: all flows move at once, each at its max-min fair rate.

What `ringnet.engines.events.fair` says, in columns and in the same order.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import pop, push
from ringnet.engines.compiled.links import arrive, is_first, is_last, piece_of, write_service, write_wait
from ringnet.engines.max_min import settle
from ringnet.engines.tolerances import ROUNDING, SAME_TIME, to_others_s

INFINITE, NAN = float("inf"), float("nan")
#: Stands for the hop of what is on all links of its route at once.
FLOW = -1


def start_in_turn(real: Any, whole: Any, part: int) -> None:
    """Let the head of a part come to all links; it starts at once, or once the part before it has ended."""
    transfer = whole[at.TRANSFER][part]
    whole[at.N_CAME][transfer] += 1
    if whole[at.N_CAME][transfer] == whole[at.N_MOVED][transfer] + 1:
        start_flow(real, whole, part)


def route_rate_Bps(real: Any, whole: Any, transfer: int) -> float:  # noqa: N802 -- the unit
    """Return the most that the links of a transfer's route ever give to its size."""
    route = whole[at.ROUTE][transfer]
    if real[at.ROUTE_LATENCY][route] >= 0:  # the same for all sizes, as most are
        same_Bps: float = real[at.ROUTE_RATE][route]
        return same_Bps
    least_Bps = INFINITE
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        piece = piece_of(real, whole, whole[at.LINKS][place], whole[at.BYTES][transfer])
        least_Bps = min(least_Bps, real[at.PIECE_RATE][piece])
    return least_Bps


def start_flow(real: Any, whole: Any, part: int) -> None:
    """Start a flow; one without bytes is there at once."""
    count, now_s, transfer = whole[at.COUNT], real[at.CLOCK][at.NOW], whole[at.TRANSFER][part]
    route, n_bytes = whole[at.ROUTE][transfer], whole[at.PART_BYTES][part]
    if is_first(whole, part):
        real[at.STARTED][transfer] = now_s
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        link = whole[at.LINKS][place]
        whole[at.LINK_BYTES][link] += n_bytes
        whole[at.LINK_TRANSFERS][link] += is_last(whole, part)
    if not n_bytes:
        write_flow(real, whole, part, at.NOBODY, now_s, 0.0)
        real[at.SENT][transfer] = now_s
        arrive(real, whole, part, now_s)
        return
    count[at.N_FREE] -= 1
    flow = whole[at.FREE_FLOWS][count[at.N_FREE]]
    whole[at.PART_OF][flow], whole[at.ROUTE_OF][flow] = part, route
    real[at.CEILING][flow], real[at.LEFT][flow] = route_rate_Bps(real, whole, transfer), n_bytes
    real[at.FLOW_LOST][flow], real[at.FLOW_STARTED][flow], real[at.LONE_END][flow] = 0.0, now_s, NAN
    if count[at.KEEPS_OWN]:
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
    for place in range(count[at.N_GOING]):
        follow(real, whole, whole[at.PART_OF][whole[at.GOING][place]])
    count[at.N_STREAMS] += count[at.N_COMING] - count[at.N_GOING]
    if count[at.KEEPS_OWN]:
        go_on_alone(real, whole, lone_real, lone_whole)
    settle(real, whole)
    make_room_for_ends(real, whole)
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
    make_room_for_ends(lone_real, lone_whole)
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


def follow(real: Any, whole: Any, part: int) -> None:
    """Start, after a part that ends, the next one of its transfer if that has come."""
    transfer = whole[at.TRANSFER][part]
    whole[at.N_MOVED][transfer] += 1
    if whole[at.N_CAME][transfer] > whole[at.N_MOVED][transfer]:
        start_flow(real, whole, part + 1)


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


def make_room_for_ends(real: Any, whole: Any) -> None:
    """Where ends of all rates that are new do not fit, drop those predicted for other rates: one is left of a flow."""
    count = whole[at.COUNT]
    if count[at.N_ENDS] + count[at.N_POOL] <= count[at.ROOM_ENDS]:
        return
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
        real[at.FLOW_LOST][flow] += lost_s


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
    part, route = whole[at.PART_OF][flow], whole[at.ROUTE_OF][flow]
    transfer = whole[at.TRANSFER][part]
    lose(real, whole, flow, real[at.RATE][flow], now_s)
    write_rate(real, whole, flow, now_s, real[at.LEFT][flow])
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        write_wait(real, whole, whole[at.LINKS][place], real[at.FLOW_STARTED][flow], now_s)
    others_s = to_others_s(real[at.FLOW_LOST][flow], real[at.FLOW_STARTED][flow], now_s, real[at.LONE_END][flow])
    real[at.LOST][transfer] += real[at.FLOW_LOST][flow]
    real[at.OWN_LOST][transfer] += real[at.FLOW_LOST][flow] - others_s
    write_flow(real, whole, part, whole[at.HELD_BY][flow], real[at.FLOW_STARTED][flow], others_s)
    whole[at.ROUTE_OF][flow] = at.NOBODY
    if real[at.LONE_END][flow] != INFINITE:
        free_flow(whole, flow)
    real[at.SENT][transfer] = now_s
    arrive(real, whole, part, now_s)


def write_flow(real: Any, whole: Any, part: int, held_by: int, started_s: float, others_s: float) -> None:
    """Write down a flow that has ended, with the link that held it back; alone, the narrowest of its route."""
    if not whole[at.COUNT][at.KEEPS_SERVICES]:
        return
    route = whole[at.ROUTE][whole[at.TRANSFER][part]]
    if held_by == at.NOBODY:
        held_by = whole[at.LINKS][whole[at.FIRST_LINK][route]]
        for place in range(whole[at.FIRST_LINK][route] + 1, whole[at.FIRST_LINK][route + 1]):
            if real[at.CAPACITY][whole[at.LINKS][place]] < real[at.CAPACITY][held_by]:
                held_by = whole[at.LINKS][place]
    times_s = real[at.HEAD][part], started_s, real[at.CLOCK][at.NOW]
    write_service(real, whole, part, held_by, FLOW, (*times_s, others_s))


def write_rate(real: Any, whole: Any, flow: int, now_s: float, moved: float) -> None:
    """Write down what a flow has moved at an even rate until now."""
    count, rows = whole[at.COUNT], real[at.RATE_ROWS]
    if count[at.KEEPS_RATES]:
        cell = count[at.N_RATES] * at.RATE_CELLS
        rows[cell], rows[cell + 1] = whole[at.ROUTE_OF][flow], real[at.FLOW_SINCE][flow]
        rows[cell + 2], rows[cell + 3] = now_s, moved
        count[at.N_RATES] += 1
