"""The loop that is compiled: one event after another, as SimPy's clock has them."""

from __future__ import annotations

from typing import Any

from ringnet.engines import columns as at
from ringnet.engines.columns import ACTOR, ARRIVAL, CREDIT, HEAD_COMES, KINDS, pop
from ringnet.engines.compiled.actors import NEEDS_ROOM, NEEDS_STEP, go_on, wake
from ringnet.engines.compiled.fair import settle_flows
from ringnet.engines.compiled.links import serve_next
from ringnet.engines.compiled.routes import credit_comes, has_room, head_comes

INFINITE = float("inf")
#: Why the loop comes back: nothing is left to happen; a step is to be loaded; an array is full; it was enough for now.
ENDED, WANTS_STEPS, WANTS_ROOM, PAUSED = range(4)
#: Events, settlements and rates worked out after which it pauses: some tenths of a second, for a user who interrupts.
ENOUGH = 1_000_000


def advance(real: Any, whole: Any, lone_real: Any, lone_whole: Any) -> int:
    """Let happen what happens, from where the arrays stand; return why it stops.

    Parameters
    ----------
    real, whole, lone_real, lone_whole : sequence of ndarray of float64, and of int64
        As `ringnet.engines.columns` numbers them; changed in place. Compiled, pointers to their data.
    """
    count, clock = whole[at.COUNT], real[at.CLOCK]
    enough = count[at.N_PROCESSED] + count[at.N_FILLED] + ENOUGH
    while True:
        while count[at.READY] != at.NOBODY:
            if not has_room(whole):
                return WANTS_ROOM
            came = go_on(real, whole, count[at.READY])
            if came == NEEDS_STEP:
                return WANTS_STEPS
            if came == NEEDS_ROOM:
                return WANTS_ROOM
            wake(whole, count[at.NEXT_READY])
        if not has_room(whole):
            return WANTS_ROOM
        if count[at.N_PROCESSED] + count[at.N_FILLED] >= enough:
            return PAUSED
        count[at.N_PROCESSED] += 1
        if count[at.N_EVENTS] and real[at.EVENT_TIME][0] <= clock[at.ALARM]:
            clock[at.NOW] = real[at.EVENT_TIME][0]
            what = whole[at.EVENT_WHAT][0]
            pop(real[at.EVENT_TIME], whole[at.EVENT_KEY], whole[at.EVENT_WHAT], count[at.N_EVENTS])
            count[at.N_EVENTS] -= 1
            happen(real, whole, what % KINDS, what // KINDS)
        elif clock[at.ALARM] != INFINITE:
            clock[at.NOW] = clock[at.ALARM]
            settle_flows(real, whole, lone_real, lone_whole)
        else:
            return ENDED


def happen(real: Any, whole: Any, kind: int, number: int) -> None:
    """Let an event happen; who goes on by it is ready then."""
    if kind == ACTOR:
        wake(whole, number)
    elif kind == ARRIVAL:
        wake(whole, whole[at.FIRST_WAITER][number])
    elif kind == CREDIT:
        credit_comes(real, whole, number)
    elif kind == HEAD_COMES:
        head_comes(real, whole, number)
    else:
        serve_next(real, whole, number)
