"""What the compiled loop keeps in order, in columns: heaps of what comes next, chains of who is on a link."""

from __future__ import annotations

from typing import Any

from ringnet.engines.compiled import layout as at

#: What an event is about: an actor that goes on, an arrival that somebody waits for, a head that has come to the next
#: link (under fair sharing, to all links of its route), a link that chooses what it serves. It stands for kind and
#: number in one: ``KINDS * number + kind``.
ACTOR, ARRIVAL, HEAD_COMES, LINK = range(4)
KINDS = 4
#: Links choose after everything else that happens at the same time, the later ones of a route later.
NORMAL, LAST_PRIORITY = 1, 2
#: Events are numbered below this, so that priority and number make one key.
ONE_PRIORITY = 1 << 50


def schedule(real: Any, whole: Any, time_s: float, priority: int, what: int) -> None:
    """Let an event happen at a time, after all of this time and priority that were scheduled before."""
    count = whole[at.COUNT]
    key = priority * ONE_PRIORITY + count[at.EVENT_NUMBER]
    push(
        real[at.EVENT_TIME], whole[at.EVENT_KEY], whole[at.EVENT_WHAT], count[at.N_EVENTS], time_s, key, what
    )
    count[at.N_EVENTS] += 1
    count[at.EVENT_NUMBER] += 1


def push(  # noqa: PLR0917 -- Numba has no arguments by name
    times: Any, keys: Any, values: Any, n: int, time_s: float, key: int, value: int
) -> None:
    """Add an entry to a heap of ``n``, ordered by time and key."""
    place = n
    while place:
        above = (place - 1) // 2
        if times[above] < time_s or (times[above] == time_s and keys[above] < key):
            break
        times[place], keys[place], values[place] = times[above], keys[above], values[above]
        place = above
    times[place], keys[place], values[place] = time_s, key, value


def pop(times: Any, keys: Any, values: Any, n: int) -> None:
    """Take the first entry from a heap of ``n``."""
    time_s, key, value = times[n - 1], keys[n - 1], values[n - 1]
    place, below, left = 0, 1, n - 1
    while below < left:
        other = below + 1
        if other < left and (
            times[other] < times[below] or (times[other] == times[below] and keys[other] < keys[below])
        ):
            below = other
        if time_s < times[below] or (time_s == times[below] and key < keys[below]):
            break
        times[place], keys[place], values[place] = times[below], keys[below], values[below]
        place, below = below, 2 * below + 1
    times[place], keys[place], values[place] = time_s, key, value


def put_in(whole: Any, chain: tuple[int, int, int, int], number: int, member: int, before: int) -> None:
    """Put a member into a chain, after another one or, after nobody, as the first."""
    first, last, following, previous = chain
    after = whole[first][number] if before == at.NOBODY else whole[following][before]
    whole[previous][member], whole[following][member] = before, after
    if before == at.NOBODY:
        whole[first][number] = member
    else:
        whole[following][before] = member
    if after == at.NOBODY:
        whole[last][number] = member
    else:
        whole[previous][after] = member


def take_out(whole: Any, chain: tuple[int, int, int, int], number: int, member: int) -> None:
    """Take a member out of a chain."""
    first, last, following, previous = chain
    before, after = whole[previous][member], whole[following][member]
    if before == at.NOBODY:
        whole[first][number] = after
    else:
        whole[following][before] = after
    if after == at.NOBODY:
        whole[last][number] = before
    else:
        whole[previous][after] = before
