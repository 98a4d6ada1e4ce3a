"""Links of the compiled loop, which serve one thing after another under fifo sharing; and what all links write.

What `ringnet.engines.events.links` says, in columns and in the same order.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import (
    ARRIVAL,
    CREDIT,
    HEAD_COMES,
    KINDS,
    LAST_PRIORITY,
    LINK,
    NORMAL,
    put_in,
    schedule,
    take_out,
)
from ringnet.engines.tolerances import ROUNDING

INFINITE = float("inf")


def piece_of(real: Any, whole: Any, link: int, n_bytes: int) -> int:
    """Return which piece of a link is for a size."""
    piece: int = whole[at.FIRST_PIECE][link]
    while piece + 1 < whole[at.FIRST_PIECE][link + 1] and real[at.PIECE_UP_TO][piece] < n_bytes:
        piece += 1
    return piece


def arrive(real: Any, whole: Any, part: int, arrived_s: float) -> None:
    """Set the time of an arrival, and let it happen if somebody waits for it already; credit for a slot goes back."""
    transfer = whole[at.TRANSFER][part]
    first, end = whole[at.FIRST_PART][transfer], whole[at.FIRST_PART][transfer + 1]
    if part + 1 == end:
        real[at.ARRIVED][transfer] = arrived_s
        if whole[at.AWAITED][transfer]:
            schedule(real, whole, arrived_s, NORMAL, KINDS * transfer + ARRIVAL)
    elif whole[at.COUNT][at.HAS_WINDOW] and (part + 1 - first) % whole[at.COUNT][at.PARTS_OF_SLOT] == 0:
        back_s = real[at.BACK_LATENCY][whole[at.ROUTE][transfer]]
        schedule(real, whole, arrived_s + back_s, NORMAL, KINDS * part + CREDIT)


def is_first(whole: Any, part: int) -> bool:
    """Whether a part is the first of its transfer."""
    return bool(part == whole[at.FIRST_PART][whole[at.TRANSFER][part]])


def is_last(whole: Any, part: int) -> bool:
    """Whether a part is the last of its transfer, and stands for it where transfers are counted."""
    return bool(part + 1 == whole[at.FIRST_PART][whole[at.TRANSFER][part] + 1])


def write_service(
    real: Any, whole: Any, part: int, link: int, hop: int, seconds: tuple[float, float, float, float]
) -> None:
    """Write down a service: when the head came, when it started, when it ended; (fair) what others had of it."""
    count, rows = whole[at.COUNT], real[at.SERVICE_ROWS]
    if count[at.KEEPS_SERVICES]:
        cell = count[at.N_SERVICES] * at.SERVICE_CELLS
        rows[cell], rows[cell + 1], rows[cell + 2] = whole[at.TRANSFER][part] + count[at.FIRST_TRANSFER], link, hop
        rows[cell + 3], rows[cell + 4] = whole[at.PART_BYTES][part], seconds[0]
        rows[cell + 5], rows[cell + 6], rows[cell + 7] = seconds[1], seconds[2], seconds[3]
        count[at.N_SERVICES] += 1


def write_wait(real: Any, whole: Any, link: int, from_s: float, to_s: float) -> None:
    """Write down from when to when something waited for a link; under fair sharing, was on it."""
    count, rows = whole[at.COUNT], real[at.WAIT_ROWS]
    if count[at.KEEPS_WAITS] and to_s > from_s:
        cell = count[at.N_WAITS] * at.WAIT_CELLS
        rows[cell], rows[cell + 1], rows[cell + 2] = link, from_s, to_s
        count[at.N_WAITS] += 1


def join_queue(real: Any, whole: Any, link: int, part: int) -> None:
    """Queue what has its head here now, and wake the link for it."""
    now_s = real[at.HEAD][part] = real[at.CLOCK][at.NOW]
    before = whole[at.LAST_QUEUED][link]
    while before != at.NOBODY and real[at.HEAD][before] == now_s and comes_first(whole, part, before):
        before = whole[at.PREVIOUS_IN_QUEUE][before]
    put_in(whole, at.CHAIN_OF_QUEUE, link, part, before)
    whole[at.N_QUEUED][link] += 1
    if whole[at.COUNT][at.SERVES_PARTS]:
        crossing = crossing_of(whole, part)
        whole[at.N_QUEUED_WHOLE][link] += whole[at.PARTS_QUEUED][crossing] == 0
        whole[at.PARTS_QUEUED][crossing] += 1
    account = account_of(whole, part)
    real[at.HAD_SERVED][part] = real[at.ACCOUNT_WORKED][account]
    if real[at.FREE][link] > now_s and whole[at.SERVES][link] == account:
        real[at.HAD_SERVED][part] -= real[at.FREE][link] - now_s
    if real[at.FREE][link] > now_s:
        note_queue(whole, link, now_s, real[at.FREE][link])
    if whole[at.ASLEEP][link]:
        whole[at.ASLEEP][link] = 0
        wake_s = max(now_s, real[at.FREE][link])
        schedule(real, whole, wake_s, LAST_PRIORITY + whole[at.HOP][part], KINDS * link + LINK)


def comes_first(whole: Any, one: int, other: int) -> bool:
    """Whether one of two parts that come at the same time is served first: by sender, channel, place."""
    its, others = whole[at.SRC][whole[at.TRANSFER][one]], whole[at.SRC][whole[at.TRANSFER][other]]
    return bool(its < others or (its == others and one < other))


def crossing_of(whole: Any, part: int) -> int:
    """Return the place of a part's transfer on the link where it is: by transfer and hop."""
    place: int = whole[at.TRANSFER][part] * whole[at.COUNT][at.MOST_HOPS] + whole[at.HOP][part]
    return place


def account_of(whole: Any, part: int) -> int:
    """Return the account of a part's sender on the link where it is."""
    first = whole[at.FIRST_LINK][whole[at.ROUTE][whole[at.TRANSFER][part]]]
    account: int = whole[at.ACCOUNTS][first + whole[at.HOP][part]]
    return account


def note_queue(whole: Any, link: int, from_s: float, to_s: float) -> None:
    """Note how many transfers wait for a while, if they are more than ever; parts of the one that is served do not."""
    if to_s - from_s > ROUNDING * to_s:
        n_waiting = whole[at.N_QUEUED][link]
        if whole[at.COUNT][at.SERVES_PARTS]:
            n_waiting, served = whole[at.N_QUEUED_WHOLE][link], whole[at.SERVES_PART_OF][link]
            if served >= 0 and whole[at.PARTS_QUEUED][served]:
                n_waiting -= 1
        whole[at.LONGEST][link] = max(whole[at.LONGEST][link], n_waiting)


def serve_next(real: Any, whole: Any, link: int) -> None:
    """Serve the first that waits from now on, and let the link wake for the next."""
    part = whole[at.FIRST_QUEUED][link]
    after = whole[at.NEXT_IN_QUEUE][part]
    take_out(whole, at.CHAIN_OF_QUEUE, link, part)
    whole[at.N_QUEUED][link] -= 1
    if whole[at.COUNT][at.SERVES_PARTS]:
        crossing = whole[at.SERVES_PART_OF][link] = crossing_of(whole, part)
        whole[at.PARTS_QUEUED][crossing] -= 1
        whole[at.N_QUEUED_WHOLE][link] -= whole[at.PARTS_QUEUED][crossing] == 0
    serve(real, whole, link, part)
    if after == at.NOBODY:
        whole[at.ASLEEP][link] = 1
    else:
        priority = LAST_PRIORITY + whole[at.HOP][after]
        schedule(real, whole, real[at.FREE][link], priority, KINDS * link + LINK)


def serve(real: Any, whole: Any, link: int, part: int) -> None:
    """Serve a part from now on; then its head reaches the next link, or its tail the receiver."""
    count, start_s, hop = whole[at.COUNT], real[at.CLOCK][at.NOW], whole[at.HOP][part]
    transfer = whole[at.TRANSFER][part]
    piece, route = piece_of(real, whole, link, whole[at.BYTES][transfer]), whole[at.ROUTE][transfer]
    busy_s, latency_s = whole[at.PART_BYTES][part] / real[at.PIECE_RATE][piece], real[at.PIECE_LATENCY][piece]
    real[at.BUSY][link] += busy_s
    end_s = start_s + busy_s
    if hop == 0:
        if is_first(whole, part):
            real[at.STARTED][transfer] = start_s
        real[at.SENT][transfer] = end_s
    elif count[at.IS_CUT_THROUGH]:
        end_s = max(end_s, real[at.TAIL][part])
        real[at.HELD][link] += (end_s - start_s) - busy_s
    real[at.FREE][link] = end_s
    whole[at.LINK_TRANSFERS][link] += is_last(whole, part)
    whole[at.LINK_BYTES][link] += whole[at.PART_BYTES][part]
    account = account_of(whole, part)
    if start_s > real[at.HEAD][part]:
        note_wait(real, whole, link, part, account)
    whole[at.SERVES][link] = account
    real[at.ACCOUNT_WORKED][account] += end_s - start_s
    if whole[at.N_QUEUED][link] and end_s > start_s:
        note_queue(whole, link, start_s, end_s)
    if count[at.SERVES_PARTS]:
        crossing = crossing_of(whole, part)
        real[at.LEFT_AT][crossing], real[at.LEFT_WORKED][crossing] = end_s, real[at.ACCOUNT_WORKED][account]
    write_service(real, whole, part, link, hop, (real[at.HEAD][part], start_s, end_s, 0.0))
    real[at.TAIL][part] = end_s + latency_s
    whole[at.HOP][part] += 1
    if whole[at.FIRST_LINK][route] + whole[at.HOP][part] == whole[at.FIRST_LINK][route + 1]:
        arrive(real, whole, part, real[at.TAIL][part])
    else:
        next_s = start_s + latency_s if count[at.IS_CUT_THROUGH] else real[at.TAIL][part]
        schedule(real, whole, next_s, NORMAL, KINDS * part + HEAD_COMES)


def note_wait(real: Any, whole: Any, link: int, part: int, account: int) -> None:
    """Note that a part had to wait until now: for how long, and how much of that behind its sender's own."""
    start_s, transfer = real[at.CLOCK][at.NOW], whole[at.TRANSFER][part]
    whole[at.QUEUED][transfer] = 1
    since_s, had_s = real[at.HEAD][part], real[at.HAD_SERVED][part]
    if whole[at.COUNT][at.SERVES_PARTS]:  # it does not wait for the part before it, it follows
        crossing = crossing_of(whole, part)
        left_s, left_had_s = real[at.LEFT_AT][crossing], real[at.LEFT_WORKED][crossing]
        if left_s > since_s or (left_s == since_s and left_had_s > had_s):
            since_s, had_s = left_s, left_had_s
    lost_s = start_s - since_s
    if lost_s > ROUNDING * start_s:
        real[at.QUEUED_FOR][link] += lost_s
        write_wait(real, whole, link, since_s, start_s)
        others_s = lost_s - (real[at.ACCOUNT_WORKED][account] - had_s)
        real[at.LOST][transfer] += lost_s
        real[at.OWN_LOST][transfer] += lost_s - others_s if others_s > ROUNDING * start_s else lost_s
