"""Actors of the compiled loop: a worker on a channel does its steps in order: `ringnet.engines.events.workers`.

Where a SimPy process waits in the middle of a function, an actor here notes where it is: its phase, and the place of
the transfer that it is at.
"""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import ACTOR, ARRIVAL, CREDIT, KINDS, NORMAL, schedule
from ringnet.engines.compiled.routes import alone_s, copy_path, has_room, latency_s, start
from ringnet.engines.tolerances import own_part_s

INFINITE = float("inf")
#: Where an actor is in its step, and what it waits for, if anything.
(
    ENTERS, POSTS, MAY_POST, HAS_SPENT_TO_POST, RECEIVES, HAS_WAITED, MAY_APPLY, HAS_SPENT_TO_APPLY,
    OUTLASTS, HAS_OUTLASTED, DONE,
) = range(11)  # fmt: skip
#: What `go_on` returns: the actor waits or is done; its next step has not been loaded; some array is full.
WAITS, NEEDS_STEP, NEEDS_ROOM = range(3)


def go_on(real: Any, whole: Any, actor: int) -> int:
    """Let an actor do what it can now."""
    while True:
        phase = whole[at.PHASE][actor]
        if phase == ENTERS:
            if whole[at.STEP][actor] == whole[at.COUNT][at.N_STEPS]:
                finish(real, whole, actor)
                return WAITS
            if whole[at.STEP][actor] == whole[at.COUNT][at.LOADED_STEPS]:
                return NEEDS_STEP
            if not has_room(whole):
                return NEEDS_ROOM
            if whole[at.COUNT][at.IS_RENDEZVOUS]:
                enter(real, whole, actor)
            begin(whole, actor, POSTS, at.FIRST_SEND)
        elif phase in (POSTS, MAY_POST, HAS_SPENT_TO_POST):
            if posts(real, whole, actor):
                return WAITS
        elif phase in (RECEIVES, HAS_WAITED, MAY_APPLY, HAS_SPENT_TO_APPLY):
            if receives(real, whole, actor):
                return WAITS
        elif outlasts(real, whole, actor):
            return WAITS


def begin(whole: Any, actor: int, phase: int, first: int) -> None:
    """Begin with the first transfer of those that the actor sends, or is owed, in its step."""
    whole[at.PHASE][actor] = phase
    whole[at.PLACE][actor] = whole[first][step_of(whole, actor)]


def step_of(whole: Any, actor: int) -> int:
    """Return where the step of an actor stands in the columns of the steps that are loaded."""
    count = whole[at.COUNT]
    n_actors = count[at.N_WORKERS] * count[at.N_CHANNELS]
    place: int = (whole[at.STEP][actor] - count[at.FIRST_STEP]) * n_actors + actor
    return place


def enter(real: Any, whole: Any, actor: int) -> None:
    """Rendezvous: be in the step; what was posted before starts now, and its path is that of who came last."""
    now_s, here = real[at.CLOCK][at.NOW], step_of(whole, actor)
    for place in range(whole[at.FIRST_OWED][here], whole[at.FIRST_OWED][here + 1]):
        transfer = whole[at.OWED][place]
        real[at.ENTERED][transfer] = now_s
        if real[at.POSTED][transfer] != INFINITE:
            real[at.RELEASED][transfer] = now_s
            if now_s > real[at.POSTED][transfer]:
                copy_path(real[at.ACTOR_PATH], actor, real[at.TRANSFER_PATH], transfer)
            start(real, whole, transfer)


def posts(real: Any, whole: Any, actor: int) -> bool:
    """Post what the step sends; return whether the actor waits for others, or for its processor."""
    worker = actor // whole[at.COUNT][at.N_CHANNELS]
    end = whole[at.FIRST_SEND][step_of(whole, actor) + 1]
    while whole[at.PLACE][actor] < end:
        transfer = whole[at.SENDS][whole[at.PLACE][actor]]
        if whole[at.PHASE][actor] != HAS_SPENT_TO_POST:
            if whole[at.COUNT][at.SHARES_CHUNKS] and gives_way(real, whole, actor, 2 * transfer, MAY_POST):
                return True
            if real[at.SEND_COST][worker]:
                whole[at.PHASE][actor] = HAS_SPENT_TO_POST
                spend(real, whole, actor, real[at.SEND_COST][worker], 0.0)
                return True
        whole[at.PHASE][actor] = POSTS
        whole[at.PLACE][actor] += 1
        real[at.POSTED][transfer] = real[at.RELEASED][transfer] = real[at.CLOCK][at.NOW]
        copy_path(real[at.ACTOR_PATH], actor, real[at.TRANSFER_PATH], transfer)
        whole[at.SENT_BYTES][worker] += whole[at.BYTES][transfer]
        if whole[at.COUNT][at.SHARES_CHUNKS]:
            use(real, whole, actor, 2 * transfer)
        if not whole[at.COUNT][at.IS_RENDEZVOUS] or real[at.ENTERED][transfer] != INFINITE:
            start(real, whole, transfer)
    begin(whole, actor, RECEIVES, at.FIRST_OWED)
    return False


def receives(real: Any, whole: Any, actor: int) -> bool:
    """Apply what the step owes, by source; return whether the actor waits: for an arrival, others or its processor."""
    worker, now_s = actor // whole[at.COUNT][at.N_CHANNELS], real[at.CLOCK][at.NOW]
    end = whole[at.FIRST_OWED][step_of(whole, actor) + 1]
    while whole[at.PLACE][actor] < end:
        transfer = whole[at.OWED][whole[at.PLACE][actor]]
        if whole[at.PHASE][actor] == RECEIVES:
            if real[at.ARRIVED][transfer] > now_s:
                whole[at.PHASE][actor] = HAS_WAITED
                wait(real, whole, actor, transfer)
                return True
            if real[at.ARRIVED][transfer] == now_s:
                take_path(real, whole, actor, transfer)
        elif whole[at.PHASE][actor] == HAS_WAITED:
            take_path(real, whole, actor, transfer)
        if whole[at.PHASE][actor] != HAS_SPENT_TO_APPLY:
            if whole[at.COUNT][at.SHARES_CHUNKS] and gives_way(real, whole, actor, 2 * transfer + 1, MAY_APPLY):
                return True
            rate_Bps = real[at.REDUCE_RATE][worker]
            if real[at.RECV_COST][worker] > 0 or (whole[at.REDUCES][transfer] != 0 and rate_Bps != INFINITE):
                whole[at.PHASE][actor] = HAS_SPENT_TO_APPLY
                reducing_s = whole[at.BYTES][transfer] / rate_Bps if whole[at.REDUCES][transfer] else 0.0
                spend(real, whole, actor, real[at.RECV_COST][worker], reducing_s)
                return True
        apply(real, whole, actor, transfer)
        whole[at.PHASE][actor] = RECEIVES
        whole[at.PLACE][actor] += 1
    if whole[at.COUNT][at.IS_RENDEZVOUS]:
        begin(whole, actor, OUTLASTS, at.FIRST_SEND)
    else:
        whole[at.PHASE][actor] = ENTERS
        whole[at.STEP][actor] += 1
    return False


def outlasts(real: Any, whole: Any, actor: int) -> bool:
    """Rendezvous: stay in the step until its own sends have arrived; return whether the actor waits for one."""
    end = whole[at.FIRST_SEND][step_of(whole, actor) + 1]
    while whole[at.PLACE][actor] < end:
        transfer = whole[at.SENDS][whole[at.PLACE][actor]]
        if whole[at.PHASE][actor] == HAS_OUTLASTED:
            take_path(real, whole, actor, transfer)
            whole[at.PHASE][actor] = OUTLASTS
        elif real[at.ARRIVED][transfer] > real[at.CLOCK][at.NOW]:
            whole[at.PHASE][actor] = HAS_OUTLASTED
            wait(real, whole, actor, transfer)
            return True
        whole[at.PLACE][actor] += 1
    whole[at.PHASE][actor] = ENTERS
    whole[at.STEP][actor] += 1
    return False


def wait(real: Any, whole: Any, actor: int, transfer: int) -> None:
    """Wait for an arrival that has not come."""
    join_waiters(whole, at.FIRST_WAITER, transfer, actor)
    if not whole[at.AWAITED][transfer]:
        whole[at.AWAITED][transfer] = 1
        if real[at.ARRIVED][transfer] != INFINITE:
            schedule(real, whole, real[at.ARRIVED][transfer], NORMAL, KINDS * transfer + ARRIVAL)


def join_waiters(whole: Any, first: int, number: int, actor: int) -> None:
    """Let an actor wait for something as the last who does."""
    if whole[first][number] == at.NOBODY:
        whole[first][number] = actor
    else:
        other = whole[first][number]
        while whole[at.NEXT_WAITER][other] != at.NOBODY:
            other = whole[at.NEXT_WAITER][other]
        whole[at.NEXT_WAITER][other] = actor


def wake(whole: Any, actor: int) -> None:
    """Let an actor go on now, and after it those that wait for the same."""
    count = whole[at.COUNT]
    count[at.READY] = actor
    if actor != at.NOBODY:
        count[at.NEXT_READY] = whole[at.NEXT_WAITER][actor]
        whole[at.NEXT_WAITER][actor] = at.NOBODY


def gives_way(real: Any, whole: Any, actor: int, number: int, phase: int) -> bool:
    """Let other channels of this worker use a chunk first that do so in the schedule; return whether to wait for one.

    ``number`` is the use that comes after theirs, ``phase`` that of an actor who waits.
    """
    now_s, place = real[at.CLOCK][at.NOW], whole[at.USES_PLACE]
    if whole[at.PHASE][actor] != phase:
        whole[at.PHASE][actor] = phase
        place[actor], real[at.SINCE][actor] = whole[at.FIRST_EARLIER][number], now_s
    while place[actor] < whole[at.FIRST_EARLIER][number + 1]:
        # Those of steps that all have left are over.
        earlier = whole[at.EARLIER][place[actor]] - 2 * whole[at.COUNT][at.FIRST_TRANSFER]
        if earlier >= 0 and real[at.USED_AT][earlier] == INFINITE:
            join_waiters(whole, at.FIRST_USER, earlier, actor)
            return True
        real[at.SINCE][actor] = now_s
        place[actor] += 1
    return False


def use(real: Any, whole: Any, actor: int, number: int) -> None:
    """Note that a post or an apply is done now, and wake who waits for it: the path goes on with them."""
    now_s = real[at.USED_AT][number] = real[at.CLOCK][at.NOW]
    waiting = whole[at.FIRST_USER][number]
    if waiting != at.NOBODY:
        schedule(real, whole, now_s, NORMAL, KINDS * waiting + ACTOR)
    while waiting != at.NOBODY:
        if now_s > real[at.SINCE][waiting]:
            copy_path(real[at.ACTOR_PATH], actor, real[at.ACTOR_PATH], waiting)
        waiting = whole[at.NEXT_WAITER][waiting]


def spend(real: Any, whole: Any, actor: int, overhead_s: float, reducing_s: float) -> None:
    """Take the worker's processor for an overhead and a reduction, after all that asked for it before."""
    worker, now_s = actor // whole[at.COUNT][at.N_CHANNELS], real[at.CLOCK][at.NOW]
    if real[at.BUSY_UNTIL][worker] > now_s:  # with another channel
        copy_path(real[at.PROCESSOR_PATH], worker, real[at.ACTOR_PATH], actor)
    end_s = real[at.BUSY_UNTIL][worker] = max(now_s, real[at.BUSY_UNTIL][worker]) + (overhead_s + reducing_s)
    real[at.OVERHEAD_SPENT][worker] += overhead_s
    real[at.REDUCING_SPENT][worker] += reducing_s
    path, first = real[at.ACTOR_PATH], actor * at.N_ON_PATH
    path[first + at.ON_OVERHEAD] += overhead_s
    path[first + at.ON_REDUCING] += reducing_s
    copy_path(path, actor, real[at.PROCESSOR_PATH], worker)
    schedule(real, whole, end_s, NORMAL, KINDS * actor + ACTOR)


def take_path(real: Any, whole: Any, actor: int, transfer: int) -> None:
    """Go on from an arrival: so does the path."""
    copy_path(real[at.TRANSFER_PATH], transfer, real[at.ACTOR_PATH], actor)
    path, first = real[at.ACTOR_PATH], actor * at.N_ON_PATH
    passed_s, route_s = real[at.ARRIVED][transfer] - real[at.RELEASED][transfer], latency_s(real, whole, transfer)
    if real[at.ROUTE_LATENCY][whole[at.ROUTE][transfer]] < 0:
        route_s = min(route_s, passed_s)
    if whole[at.QUEUED][transfer]:
        moving_s = passed_s - route_s
        queued_s = moving_s - min(moving_s, alone_s(real, whole, transfer))
        path[first + at.ON_QUEUEING] += queued_s
        lost_s, own_lost_s = real[at.LOST][transfer], real[at.OWN_LOST][transfer]
        path[first + at.ON_OWN_QUEUEING] += own_part_s(queued_s, lost_s, own_lost_s, real[at.ARRIVED][transfer])
    path[first + at.ON_LATENCY] += route_s


def apply(real: Any, whole: Any, actor: int, transfer: int) -> None:
    """Note that what has arrived is reduced or copied into the worker's own chunk now; its credit goes back."""
    count, now_s = whole[at.COUNT], real[at.CLOCK][at.NOW]
    whole[at.RECEIVED_BYTES][actor // count[at.N_CHANNELS]] += whole[at.BYTES][transfer]
    count[at.N_APPLIED] += 1
    if count[at.SHARES_CHUNKS]:
        use(real, whole, actor, 2 * transfer + 1)
    if count[at.HAS_WINDOW]:
        copy_path(real[at.ACTOR_PATH], actor, real[at.CREDIT_PATH], transfer)
        back_s, last = real[at.BACK_LATENCY][whole[at.ROUTE][transfer]], whole[at.FIRST_PART][transfer + 1] - 1
        schedule(real, whole, now_s + back_s, NORMAL, KINDS * last + CREDIT)
    if count[at.KEEPS_TIMES]:
        rows, cell = real[at.TIMES_ROWS], (transfer + count[at.FIRST_TRANSFER]) * at.TIMES_CELLS
        rows[cell], rows[cell + 1] = real[at.POSTED][transfer], real[at.STARTED][transfer]
        rows[cell + 2], rows[cell + 3] = real[at.SENT][transfer], real[at.ARRIVED][transfer]
        rows[cell + 4] = now_s


def finish(real: Any, whole: Any, actor: int) -> None:
    """Note that an actor has done all its steps; of those that end at the same time the last channel counts."""
    n_channels, now_s = whole[at.COUNT][at.N_CHANNELS], real[at.CLOCK][at.NOW]
    worker, channel = actor // n_channels, actor % n_channels
    last_s = real[at.LAST][worker]
    if now_s > last_s or (now_s == last_s and channel >= whole[at.LAST_CHANNEL][worker]):
        real[at.LAST][worker], whole[at.LAST_CHANNEL][worker] = now_s, channel
        copy_path(real[at.ACTOR_PATH], actor, real[at.WORKER_PATH], worker)
    whole[at.PHASE][actor] = DONE
    whole[at.COUNT][at.N_DONE] += 1
