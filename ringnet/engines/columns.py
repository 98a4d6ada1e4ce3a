"""Where loops over columns keep what, and in which order: tables of arrays, and heaps and chains in them.

A loop takes two tables, of arrays of floats and of whole numbers, ``real`` and ``whole``: ``real[RATE][flow]`` is the
rate of a flow, for ``RATE`` is the number of its array in its table. Things are numbered: workers, actors (a worker on
a channel, ``worker * n_channels + channel``), links, routes, flows (by a place that is taken again once a flow has
ended), and transfers, by their place in the window of the steps that some actor has not left yet. Numba takes the names
here as constants. `ringnet.engines.max_min` knows flows, routes and links only, and runs over lists as well. Two more
tables, ``lone_real`` and ``lone_whole``, have the flows once more, each sender's on links of its own: what they would
do if no other sender's were there.
"""

from __future__ import annotations

from typing import Any

# -- real: one array of float64 for each name; ``_OF_`` are the arrays with an entry for each of something.
CLOCK = 0
(SEND_COST, RECV_COST, REDUCE_RATE, BUSY_UNTIL, LAST, OVERHEAD_SPENT, REDUCING_SPENT) = REAL_OF_WORKER = range(1, 8)
#: Parts of a path for each worker, its processor, each actor and transfer: see ``N_ON_PATH``.
WORKER_PATH, PROCESSOR_PATH, ACTOR_PATH, TRANSFER_PATH = range(8, 12)
(POSTED, ENTERED, RELEASED, STARTED, SENT, ARRIVED, HEAD, TAIL, LOST, OWN_LOST, HAD_SERVED) = REAL_OF_TRANSFER = range(
    12, 23
)
ROUTE_LATENCY, ROUTE_RATE = 23, 24
#: ``LONE_END``: when it would have ended, had its sender's flows alone been there.
(RATE, OLD_RATE, CEILING, LEFT, FLOW_SINCE, LONE_END) = REAL_OF_FLOW = range(25, 31)
(CAPACITY, LATENCY, OCCUPIED, QUEUED_FOR, LINK_SINCE, FREE, HELD, UNFILLED, LARGEST, LOWEST, LEAST) = REAL_OF_LINK = (
    range(31, 42)
)
#: An account is a link for one sender (fifo): how long it has worked for it.
ACCOUNT_WORKED = 42
#: What heaps are ordered by: when what happens, which flow ends when, and at which rate a flow or link stops rising.
EVENT_TIME, PREDICTED, RISES_TO = range(43, 46)
TIMES_ROWS, SERVICE_ROWS, RATE_ROWS, WAIT_ROWS = range(46, 50)
N_REAL = 50

# -- whole: one array of int64 for each name.
COUNT = 0
(LAST_CHANNEL, SENT_BYTES, RECEIVED_BYTES) = WHOLE_OF_WORKER = range(1, 4)
(STEP, PHASE, PLACE) = WHOLE_OF_ACTOR = range(4, 7)
(BYTES, SRC, ROUTE, REDUCES, AWAITED, HOP, QUEUED) = WHOLE_OF_TRANSFER = range(7, 14)
#: Of a transfer, too: numbers of others, or nobody.
(FIRST_WAITER, SECOND_WAITER, NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE) = NOBODY_OF_TRANSFER = range(14, 18)
#: By actor's step (of the steps that are loaded): where its sends, and what it is owed, begin among those of all.
FIRST_SEND, FIRST_OWED, SENDS, OWED = range(18, 22)
#: Where the links of each route begin among those of all; and beside each link the account of the route's sender.
FIRST_LINK, LINKS, ACCOUNTS = range(22, 25)
#: ``PREDICTION`` is the number of what was last predicted of its end.
(TRANSFER_OF, ROUTE_OF, HELD_BY, STOP, IN_POOL, FREE_FLOWS, POOL, COMING, GOING, PREDICTION) = WHOLE_OF_FLOW = range(
    25, 35
)
#: The flows on each link, in the order in which they came: a chain of nodes, ``flow * most_hops + hop``.
NEXT_ON, PREVIOUS_ON = NODES = range(35, 37)
(
    N_ON, LONGEST, N_FLOWS, LINK_BYTES, LINK_TRANSFERS, ASLEEP, N_QUEUED, N_RISING, SEEN, USED_AT, IS_FULL,
) = WHOLE_OF_LINK = range(37, 48)  # fmt: skip
TOUCHED, RISING_LINKS, CHANGED = LISTS_OF_LINKS = range(48, 51)
(FIRST_ON, LAST_ON, FIRST_QUEUED, LAST_QUEUED, SERVES) = NOBODY_OF_LINK = range(51, 56)
#: Chains: where the first and the last member of each is, and for each member the next one and the previous one.
CHAIN_ON, CHAIN_OF_QUEUE = (
    (FIRST_ON, LAST_ON, NEXT_ON, PREVIOUS_ON),
    (FIRST_QUEUED, LAST_QUEUED, NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE),
)
EVENT_KEY, EVENT_WHAT, END_NUMBER, END_FLOW, RISING_KEY, RISING_WHAT = range(56, 62)
N_WHOLE = 62

#: In ``real[CLOCK]``: the time, and when rates will next be worked out.
NOW, ALARM = range(2)
#: In ``whole[COUNT]``: what a run is, how far it is, and how much each array holds, and can hold, that grows.
(
    N_WORKERS, N_CHANNELS, N_STEPS, MOST_HOPS,
    IS_FAIR, IS_CUT_THROUGH, IS_RENDEZVOUS, KEEPS_TIMES, KEEPS_SERVICES, KEEPS_RATES, KEEPS_WAITS,
    FIRST_STEP, LOADED_STEPS, FIRST_TRANSFER, MOST_OF_STEP,
    N_READY, READY_1, READY_2, N_DONE, N_APPLIED,
    N_EVENTS, EVENT_NUMBER, N_PROCESSED, ROOM_EVENTS,
    N_ENDS, NEXT_END_NUMBER, ROOM_ENDS,
    N_STREAMS, N_COMING, N_GOING, N_CHANGED, N_POOL, N_TOUCHED, N_FREE, N_SETTLEMENTS, N_FILLED,
    STAMP, USE_STAMP,
    N_SERVICES, ROOM_SERVICES, N_RATES, ROOM_RATES, N_WAITS, ROOM_WAITS,
) = COUNTS = range(44)  # fmt: skip

#: No actor, flow, link or transfer.
NOBODY = -1
#: Parts of a path that are kept: those of `ringnet.engines.trace.PATH_PARTS` but bandwidth, which is what they leave;
#: and what of queueing is behind the same sender's.
ON_LATENCY, ON_QUEUEING, ON_WAITING, ON_OVERHEAD, ON_REDUCING, ON_OWN_QUEUEING = range(6)
N_ON_PATH = 6
#: Cells of a row of times, of a service, of a span at an even rate (route, from, to, bytes), of a wait.
TIMES_CELLS, SERVICE_CELLS, RATE_CELLS, WAIT_CELLS = 5, 8, 4, 3

#: Transfers that are loaded at once, at the least; and bytes of one, in all columns that have an entry for each.
TRANSFERS_AT_ONCE = 1 << 14
LOADED_BYTES = 8 * (
    len(REAL_OF_TRANSFER) + N_ON_PATH + len(WHOLE_OF_TRANSFER) + len(NOBODY_OF_TRANSFER) + len((SENDS, OWED))
)

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
    count = whole[COUNT]
    key = priority * ONE_PRIORITY + count[EVENT_NUMBER]
    push(real[EVENT_TIME], whole[EVENT_KEY], whole[EVENT_WHAT], count[N_EVENTS], time_s, key, what)
    count[N_EVENTS] += 1
    count[EVENT_NUMBER] += 1


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
    after = whole[first][number] if before == NOBODY else whole[following][before]
    whole[previous][member], whole[following][member] = before, after
    if before == NOBODY:
        whole[first][number] = member
    else:
        whole[following][before] = member
    if after == NOBODY:
        whole[last][number] = member
    else:
        whole[previous][after] = member


def take_out(whole: Any, chain: tuple[int, int, int, int], number: int, member: int) -> None:
    """Take a member out of a chain."""
    first, last, following, previous = chain
    before, after = whole[previous][member], whole[following][member]
    if before == NOBODY:
        whole[first][number] = after
    else:
        whole[following][before] = after
    if after == NOBODY:
        whole[last][number] = before
    else:
        whole[previous][after] = before
