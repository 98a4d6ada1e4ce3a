"""One step of a schedule for many sizes of the message at once, compiled: see `ringnet.engines.arrays.sizes`.

Rows are done one after the other, each for all sizes: what a row needs of an actor, a link or a chunk is so many floats
side by side, which the processor takes several at a time. A cell is a chunk of a worker. Where several channels of a
worker have to do with its chunks, a cell that somebody may have to wait for has a slot: when it was last used.

Where links are shared fairly, a row is a flow at its rate: the least, over its links, of their bandwidth for each row
of the step. That is its max-min share from its start to its end as long as three things hold, which are looked at. On
a link, flows of other steps are over when it starts: so none ever has more flows than rows of a step, and can carry
them. It has a link that holds it to its rate: all rows of the step over that one have the same, and fill it. And these
all start and end together: so none of them could ever have more without another having less.
"""

from __future__ import annotations

from typing import Any

# -- real: arrays of float64, with an entry for each size of each actor, link, row, chunk or slot.
(READY, ENTERED, FREE, LAST_HEAD, CARRIED, ARRIVED, CHUNK_BYTES, BYTES_BEFORE, APPLIED, POSTED) = range(10)
#: One entry for each link or actor; for each size.
(BANDWIDTH, LATENCY, SEND_COST, RECV_COST, REDUCE_RATE) = range(10, 15)
(ROW_BYTES, HEAD) = OF_SIZES = range(15, 17)
#: Of flows, for each link and size: when all are over so far; in this step, when the first one starts and ends.
(OVER, FIRST_HEAD, FIRST_END) = range(17, 20)
#: Of flows, for each row: its rate, and the latency of its route.
(RATE, ROUTE_LATENCY) = OF_FLOWS = range(20, 22)
N_REAL = 22

# -- whole: arrays of int64. Of a step: who sends what, in which order, over which links, to whom.
#: Of flows, for each of ``LINKS``, whether it may hold the row to its rate; for each row, whether to look at that.
(CHUNK, COUNT, SENDS, RECEIVES, SENDER, RECEIVER, FIRST_LINK, LINKS, HOLDS, LOOKED_AT) = OF_STEP = range(10)
#: By cell its slots, of the last apply and of posts since; by slot its cell, as ``SLOT`` numbers it.
(SLOT, APPLIED_CELL, POSTED_CELL) = range(10, 13)
#: By link the actor whose head came last; by size whether it is exact.
(LAST_ACTOR, EXACT) = range(13, 15)
#: By link the last step in which something flows over it; for each size whether its flows then part.
(LAST_STEP, PART) = range(15, 17)
NUMBERS = 17
N_WHOLE = 18

#: In ``whole[NUMBERS]``: what a run is, what a step is, and how many slots are taken, and how many there are.
(
    N_SIZES, N_ACTORS, N_CHANNELS, N_CHUNKS, IS_CUT_THROUGH, IS_RENDEZVOUS, ACTORS_MEET, SHARES_CHUNKS, COSTS,
    N_ROWS, HAS_COUNTS, REDUCES, N_APPLIED, N_POSTED, MOST_SLOTS, IS_FAIR, STEP,
) = ALL_NUMBERS = range(17)  # fmt: skip

#: The step is done; slots may run out in it, and it has not begun.
DONE, WANTS_SLOTS = range(2)
#: No cell has this slot.
NO_SLOT = 0
INFINITE = float("inf")


def do_step(real: Any, whole: Any) -> int:
    """Do one step: all its sends, then all its receives, then (rendezvous) wait for its own sends.

    Parameters
    ----------
    real, whole : sequence of ndarray of float64, and of int64
        As numbered above; changed in place. Compiled, pointers to their data.
    """
    number = whole[NUMBERS]
    n_rows, is_rendezvous = number[N_ROWS], number[IS_RENDEZVOUS]
    if number[SHARES_CHUNKS] and not has_slots(real, whole):
        return WANTS_SLOTS
    if is_rendezvous:
        ready, entered = real[READY], real[ENTERED]
        for place in range(number[N_ACTORS] * number[N_SIZES]):
            entered[place] = ready[place]
    for place in range(n_rows):
        send(real, whole, whole[SENDS][place])
    if number[IS_FAIR]:
        look_at_flows(real, whole)
        number[STEP] += 1
    for place in range(n_rows):
        receive(real, whole, whole[RECEIVES][place])
    if is_rendezvous:
        for row in range(n_rows):
            wait_for(real, whole[SENDER][row], ARRIVED, row, number[N_SIZES])
    return DONE


def later(one_s: float, other_s: float) -> float:
    """Return the later of two times."""
    return one_s if one_s > other_s else other_s


def wait_for(real: Any, actor: int, what: int, place: int, n: int) -> None:
    """Let an actor not be ready before something, of which there is a time for each size."""
    keep_later(real[READY], actor * n, real[what], place * n, n)


def keep_later(kept_s: Any, at: int, other_s: Any, there: int, n: int) -> None:
    """Keep the later of some times and of others, size by size."""
    for size in range(n):
        kept_s[at + size] = later(kept_s[at + size], other_s[there + size])


def send(real: Any, whole: Any, row: int) -> None:
    """Post one row, when its actor is ready for it, and let the links serve it."""
    number, head = whole[NUMBERS], real[HEAD]
    n, actor = number[N_SIZES], whole[SENDER][row]
    if number[SHARES_CHUNKS]:
        cell = 2 * (actor // number[N_CHANNELS] * number[N_CHUNKS] + whole[CHUNK][row])
        if whole[SLOT][cell] != NO_SLOT:
            wait_for(real, actor, APPLIED, whole[SLOT][cell], n)
    ready = real[READY]
    if number[COSTS]:
        cost_s = real[SEND_COST][actor]
        for size in range(n):
            ready[actor * n + size] += cost_s
    if number[SHARES_CHUNKS]:
        number[N_POSTED] = note(real, whole, actor, POSTED, cell + 1, whole[POSTED_CELL], number[N_POSTED])
    for size in range(n):
        head[size] = ready[actor * n + size]
    if number[IS_RENDEZVOUS]:
        entered, receiver = real[ENTERED], whole[RECEIVER][row]
        for size in range(n):
            head[size] = later(head[size], entered[receiver * n + size])
    take_bytes(real, whole, row)
    if number[IS_FAIR]:
        flow(real, whole, row)
    else:
        cross(real, whole, row)


def cross(real: Any, whole: Any, row: int) -> None:
    """Let a row cross all its links, from when its head comes to the first one."""
    number, head, row_bytes, tail = whole[NUMBERS], real[HEAD], real[ROW_BYTES], real[ARRIVED]
    n, actor = number[N_SIZES], whole[SENDER][row]
    free, carried, first, end = real[FREE], real[CARRIED], whole[FIRST_LINK][row], whole[FIRST_LINK][row + 1]
    is_cut_through = number[IS_CUT_THROUGH] == 1
    if first == end:  # to a worker at the same place
        for size in range(n):
            tail[row * n + size] = head[size]
    for place in range(first, end):
        link = whole[LINKS][place]
        rate_Bps, latency_s = real[BANDWIDTH][link], real[LATENCY][link]
        if number[ACTORS_MEET]:
            look(real, whole, link, actor)
        holds = is_cut_through and place > first
        for size in range(n):
            start_s = later(head[size], free[link * n + size])
            end_s = start_s + row_bytes[size] / rate_Bps
            if holds:
                end_s = later(end_s, tail[row * n + size])
            free[link * n + size] = end_s
            tail[row * n + size] = end_s + latency_s
            head[size] = (start_s if is_cut_through else end_s) + latency_s
        for size in range(n):
            carried[link * n + size] += row_bytes[size]


def flow(real: Any, whole: Any, row: int) -> None:
    """Let a row flow over all its links at once, when its head has crossed them."""
    number, head, row_bytes, end = whole[NUMBERS], real[HEAD], real[ROW_BYTES], real[ARRIVED]
    n, rate_Bps, latency_s = number[N_SIZES], real[RATE][row], real[ROUTE_LATENCY][row]
    for size in range(n):
        head[size] += latency_s
        end[row * n + size] = head[size] + row_bytes[size] / rate_Bps
    free, over, carried = real[FREE], real[OVER], real[CARRIED]
    first_head, first_end = real[FIRST_HEAD], real[FIRST_END]
    for place in range(whole[FIRST_LINK][row], whole[FIRST_LINK][row + 1]):
        link = whole[LINKS][place]
        if whole[LAST_STEP][link] != number[STEP]:
            whole[LAST_STEP][link] = number[STEP]
            for size in range(n):
                at = link * n + size
                free[at], first_head[at], first_end[at] = over[at], head[size], end[row * n + size]
                whole[PART][at] = 0
        for size in range(n):
            at = link * n + size
            carried[at] += row_bytes[size]
            if head[size] != first_head[at] or end[row * n + size] != first_end[at]:
                whole[PART][at] = 1
            if row_bytes[size] > 0:
                if head[size] < free[at]:
                    whole[EXACT][size] = 0
                over[at] = later(over[at], end[row * n + size])


def look_at_flows(real: Any, whole: Any) -> None:
    """Look whether each row has a link that holds it to its rate all the time."""
    n = whole[NUMBERS][N_SIZES]
    for row in range(whole[NUMBERS][N_ROWS]):
        if whole[LOOKED_AT][row]:
            for size in range(n):
                is_held = False
                for place in range(whole[FIRST_LINK][row], whole[FIRST_LINK][row + 1]):
                    if whole[HOLDS][place] and not whole[PART][whole[LINKS][place] * n + size]:
                        is_held = True
                if not is_held:
                    whole[EXACT][size] = 0


def take_bytes(real: Any, whole: Any, row: int) -> None:
    """Look up the bytes of a row, for each size."""
    number, row_bytes, chunk = whole[NUMBERS], real[ROW_BYTES], whole[CHUNK][row]
    n = number[N_SIZES]
    if number[HAS_COUNTS]:
        before, end = real[BYTES_BEFORE], chunk + whole[COUNT][row]
        for size in range(n):
            row_bytes[size] = before[end * n + size] - before[chunk * n + size]
    else:
        of_chunk = real[CHUNK_BYTES]
        for size in range(n):
            row_bytes[size] = of_chunk[chunk * n + size]


def look(real: Any, whole: Any, link: int, actor: int) -> None:
    """Look whether a head comes to a link after the last one: in time, and at equal times by actor."""
    n, head, last_s = whole[NUMBERS][N_SIZES], real[HEAD], real[LAST_HEAD]
    is_lower = actor < whole[LAST_ACTOR][link]
    for size in range(n):
        if head[size] < last_s[link * n + size] or (is_lower and head[size] == last_s[link * n + size]):
            whole[EXACT][size] = 0
        last_s[link * n + size] = head[size]
    whole[LAST_ACTOR][link] = actor


def receive(real: Any, whole: Any, row: int) -> None:
    """Apply one row, when it has arrived and its actor is ready for it."""
    number, actor = whole[NUMBERS], whole[RECEIVER][row]
    n = number[N_SIZES]
    wait_for(real, actor, ARRIVED, row, n)
    if number[SHARES_CHUNKS]:
        cell = 2 * (actor // number[N_CHANNELS] * number[N_CHUNKS] + whole[CHUNK][row])
        if whole[SLOT][cell] != NO_SLOT:
            wait_for(real, actor, APPLIED, whole[SLOT][cell], n)
        if whole[SLOT][cell + 1] != NO_SLOT:
            wait_for(real, actor, POSTED, whole[SLOT][cell + 1], n)
    if number[COSTS]:
        # The receive overhead and the reduction in one go, as the processor spends them.
        take_bytes(real, whole, row)
        ready, row_bytes, cost_s = real[READY], real[ROW_BYTES], real[RECV_COST][actor]
        rate_Bps = real[REDUCE_RATE][actor] if number[REDUCES] else INFINITE
        for size in range(n):
            ready[actor * n + size] += cost_s + row_bytes[size] / rate_Bps
    if number[SHARES_CHUNKS]:
        number[N_APPLIED] = note(real, whole, actor, APPLIED, cell, whole[APPLIED_CELL], number[N_APPLIED])
        whole[SLOT][cell + 1] = NO_SLOT


# When cells were last used.


def note(  # noqa: PLR0917 -- the arrays of one kind of use
    real: Any, whole: Any, actor: int, what: int, cell: int, cell_of: Any, n_slots: int
) -> int:
    """Note that an actor uses a cell now; of several uses the latest counts. Return how many slots are taken then."""
    n, slot = whole[NUMBERS][N_SIZES], whole[SLOT][cell]
    if slot != NO_SLOT:
        keep_later(real[what], slot * n, real[READY], actor * n, n)
    elif binds(real, whole, READY, actor, actor // whole[NUMBERS][N_CHANNELS]):
        ready, used_s = real[READY], real[what]
        for size in range(n):
            used_s[n_slots * n + size] = ready[actor * n + size]
        whole[SLOT][cell], cell_of[n_slots] = n_slots, cell
        return n_slots + 1
    return n_slots


def has_slots(real: Any, whole: Any) -> bool:
    """Make sure that there is a slot for each row of the step; return whether there is, without dropping soon again."""
    number = whole[NUMBERS]
    n_rows, most, are_many = number[N_ROWS], number[MOST_SLOTS], True
    if number[N_APPLIED] + n_rows > most:
        number[N_APPLIED] = drop(real, whole, APPLIED, whole[APPLIED_CELL], number[N_APPLIED])
        are_many = 2 * (number[N_APPLIED] + n_rows) <= most
    if number[N_POSTED] + n_rows > most:
        number[N_POSTED] = drop(real, whole, POSTED, whole[POSTED_CELL], number[N_POSTED])
        are_many = are_many and 2 * (number[N_POSTED] + n_rows) <= most
    return are_many


def drop(real: Any, whole: Any, what: int, cell_of: Any, n_slots: int) -> int:
    """Drop the slots for which nobody has to wait any more; return how many are taken then."""
    number, slot_of, used_s = whole[NUMBERS], whole[SLOT], real[what]
    n, kept = number[N_SIZES], NO_SLOT + 1
    for slot in range(NO_SLOT + 1, n_slots):
        cell = cell_of[slot]
        if slot_of[cell] != slot:
            continue
        if not binds(real, whole, what, slot, cell // (2 * number[N_CHUNKS])):
            slot_of[cell] = NO_SLOT
            continue
        for size in range(n):
            used_s[kept * n + size] = used_s[slot * n + size]
        slot_of[cell], cell_of[kept] = kept, cell
        kept += 1
    return kept


def binds(real: Any, whole: Any, what: int, place: int, worker: int) -> bool:
    """Return whether some channel of a worker may be ready, at some size, before some time of all sizes."""
    number, ready, used_s = whole[NUMBERS], real[READY], real[what]
    n = number[N_SIZES]
    for actor in range(worker * number[N_CHANNELS], (worker + 1) * number[N_CHANNELS]):
        n_later = 0  # counted to the end: the processor compares several sizes at a time
        if what != READY or place != actor:
            for size in range(n):
                n_later += used_s[place * n + size] > ready[actor * n + size]
        if n_later:
            return True
    return False
