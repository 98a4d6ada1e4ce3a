"""Routes of the compiled loop: how what is sent takes the links to its receiver, all at once or through a window.

What `ringnet.engines.events.routes` says, in columns and in the same order.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import HEAD_COMES, KINDS, NORMAL, put_in, schedule, take_out
from ringnet.engines.compiled.fair import route_rate_Bps, start_in_turn
from ringnet.engines.compiled.links import join_queue, piece_of


def has_room(whole: Any) -> bool:
    """Whether whatever one event brings has room in all arrays that grow."""
    count = whole[at.COUNT]
    n_flows = count[at.N_STREAMS] + count[at.N_COMING] + 1
    return bool(
        count[at.N_EVENTS] + n_flows + count[at.MOST_OF_STEP] + count[at.N_HELD] <= count[at.ROOM_EVENTS]
        and 2 * n_flows <= count[at.ROOM_ENDS]
        and count[at.N_FREE] > (count[at.N_STREAMS] if count[at.SERVES_PARTS] else 0)
        and count[at.N_SERVICES] + n_flows <= count[at.ROOM_SERVICES]
        and count[at.N_RATES] + 2 * n_flows <= count[at.ROOM_RATES]
        and count[at.N_WAITS] + n_flows * count[at.MOST_HOPS] <= count[at.ROOM_WAITS]
    )


def latency_s(real: Any, whole: Any, transfer: int) -> float:
    """Return the latency of a transfer's route, which may be another one for each size."""
    route = whole[at.ROUTE][transfer]
    total_s: float = real[at.ROUTE_LATENCY][route]
    if total_s < 0:
        total_s = 0.0
        for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
            piece = piece_of(real, whole, whole[at.LINKS][place], whole[at.BYTES][transfer])
            total_s += real[at.PIECE_LATENCY][piece]
    return total_s


def alone_s(real: Any, whole: Any, transfer: int) -> float:
    """Return the seconds that a transfer takes on its route beside the latency when nothing else is on it."""
    count, route, n_bytes = whole[at.COUNT], whole[at.ROUTE][transfer], whole[at.BYTES][transfer]
    if count[at.IS_FAIR] or count[at.IS_CUT_THROUGH]:
        whole_s: float = n_bytes / route_rate_Bps(real, whole, transfer)
        return whole_s
    total_s = 0.0
    for place in range(whole[at.FIRST_LINK][route], whole[at.FIRST_LINK][route + 1]):
        total_s += n_bytes / real[at.PIECE_RATE][piece_of(real, whole, whole[at.LINKS][place], n_bytes)]
    return total_s


def start(real: Any, whole: Any, transfer: int) -> None:
    """Let a transfer go on to the network now: all its parts, or as many as there is credit for."""
    if not whole[at.COUNT][at.HAS_WINDOW]:
        for part in range(whole[at.FIRST_PART][transfer], whole[at.FIRST_PART][transfer + 1]):
            enter(real, whole, part)
        return
    route = whole[at.ROUTE][transfer]
    put_in(whole, at.CHAIN_OF_HELD, route, transfer, whole[at.LAST_HELD][route])
    n_parts = whole[at.FIRST_PART][transfer + 1] - whole[at.FIRST_PART][transfer]
    whole[at.COUNT][at.N_HELD] += n_parts
    let_go(real, whole, route, at.NOBODY)


def enter(real: Any, whole: Any, part: int) -> None:
    """Let a part have its head at the first link now; under fair sharing the whole latency comes first."""
    now_s, transfer = real[at.CLOCK][at.NOW], whole[at.TRANSFER][part]
    if whole[at.COUNT][at.IS_FAIR]:
        whole[at.QUEUED][transfer] = 1
        real[at.HEAD][part] = now_s
        schedule(real, whole, now_s + latency_s(real, whole, transfer), NORMAL, KINDS * part + HEAD_COMES)
    else:
        join_queue(real, whole, whole[at.LINKS][whole[at.FIRST_LINK][whole[at.ROUTE][transfer]]], part)


def head_comes(real: Any, whole: Any, part: int) -> None:
    """Let the head of a part come to its next link, or (fair) to all of them."""
    if whole[at.COUNT][at.IS_FAIR]:
        start_in_turn(real, whole, part)
    else:
        first = whole[at.FIRST_LINK][whole[at.ROUTE][whole[at.TRANSFER][part]]]
        join_queue(real, whole, whole[at.LINKS][first + whole[at.HOP][part]], part)


def slot_bytes(whole: Any, transfer: int, slot: int) -> int:
    """Return the bytes of a slot of a transfer, by its number."""
    of_slot = whole[at.COUNT][at.SLOT_BYTES]
    n_bytes: int = min(whole[at.BYTES][transfer] - slot * of_slot, of_slot)
    return n_bytes


def let_go(real: Any, whole: Any, route: int, giver: int) -> None:
    """Start what there is credit for; where some had to come back first, the path goes back to who gave it."""
    count = whole[at.COUNT]
    while whole[at.FIRST_HELD][route] != at.NOBODY:
        transfer = whole[at.FIRST_HELD][route]
        first = whole[at.FIRST_PART][transfer] + whole[at.N_LET_GO][transfer]
        end = min(first + count[at.PARTS_OF_SLOT], whole[at.FIRST_PART][transfer + 1])
        n_bytes = slot_bytes(whole, transfer, whole[at.N_LET_GO][transfer] // count[at.PARTS_OF_SLOT])
        is_last = end == whole[at.FIRST_PART][transfer + 1]
        if count[at.WINDOW_TRANSFERS] and whole[at.TRANSFERS_OUT][route] + is_last > count[at.WINDOW_TRANSFERS]:
            return
        out = whole[at.BYTES_OUT][route]
        if count[at.WINDOW_BYTES] and out and out + n_bytes > count[at.WINDOW_BYTES]:
            return
        if is_last:
            take_out(whole, at.CHAIN_OF_HELD, route, transfer)
        whole[at.BYTES_OUT][route] += n_bytes
        whole[at.TRANSFERS_OUT][route] += is_last
        if whole[at.N_LET_GO][transfer]:
            # What waited for the credit of its own earlier slots was not under way all the time.
            whole[at.QUEUED][transfer] = 1
        elif real[at.CLOCK][at.NOW] > real[at.RELEASED][transfer]:
            start_over(real, whole, transfer, giver)
        whole[at.N_LET_GO][transfer] += end - first
        count[at.N_HELD] -= end - first
        for part in range(first, end):
            enter(real, whole, part)


def start_over(real: Any, whole: Any, transfer: int, giver: int) -> None:
    """Start only now: the path goes back to who gave the credit, or has queued if that came from its own parts."""
    now_s, path, first = real[at.CLOCK][at.NOW], real[at.TRANSFER_PATH], transfer * at.N_ON_PATH
    if giver == at.NOBODY:
        path[first + at.ON_QUEUEING] += now_s - real[at.RELEASED][transfer]
    else:
        copy_path(real[at.CREDIT_PATH], giver, path, transfer)
        path[first + at.ON_LATENCY] += real[at.BACK_LATENCY][whole[at.ROUTE][transfer]]
    real[at.RELEASED][transfer] = now_s


def credit_comes(real: Any, whole: Any, part: int) -> None:
    """Take back the credit of a slot that has been applied, by its last part, and of a transfer with its last slot."""
    transfer = whole[at.TRANSFER][part]
    route, first = whole[at.ROUTE][transfer], whole[at.FIRST_PART][transfer]
    is_last = part + 1 == whole[at.FIRST_PART][transfer + 1]
    whole[at.BYTES_OUT][route] -= slot_bytes(whole, transfer, (part - first) // whole[at.COUNT][at.PARTS_OF_SLOT])
    whole[at.TRANSFERS_OUT][route] -= is_last
    let_go(real, whole, route, transfer if is_last else at.NOBODY)


def copy_path(paths: Any, one: int, to_paths: Any, other: int) -> None:
    """Copy a path, all its parts."""
    for part in range(at.N_ON_PATH):
        to_paths[other * at.N_ON_PATH + part] = paths[one * at.N_ON_PATH + part]
