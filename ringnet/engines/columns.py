"""Where loops over columns keep what, and in which order: tables of arrays, and heaps and chains in them.

A loop takes two tables, of arrays of floats and of whole numbers, ``real`` and ``whole``: ``real[RATE][flow]`` is the
rate of a flow, for ``RATE`` is the number of its array in its table. Things are numbered: workers, actors (a worker on
a channel, ``worker * n_channels + channel``), links, routes, flows (by a place that is taken again once a flow has
ended), and transfers and their parts, by place in the window of the steps that some actor has not left yet. Numba takes
the names here as constants. `ringnet.engines.max_min` knows flows, routes and links only, and runs over lists as well.
Two more tables, ``lone_real`` and ``lone_whole``, have the flows once more, each sender's on links of its own: what
they would do if no other sender's were there.
"""

from __future__ import annotations

from typing import Any

# -- real: one array of float64 for each name; ``_OF_`` are the arrays with an entry for each of something.
CLOCK = 0
(SEND_COST, RECV_COST, REDUCE_RATE, BUSY_UNTIL, LAST, OVERHEAD_SPENT, REDUCING_SPENT) = REAL_OF_WORKER = range(1, 8)
#: Parts of a path for each worker, its processor, each actor and transfer, and what gives credit: see ``N_ON_PATH``.
WORKER_PATH, PROCESSOR_PATH, ACTOR_PATH, TRANSFER_PATH, CREDIT_PATH = range(8, 13)
(POSTED, ENTERED, RELEASED, STARTED, SENT, ARRIVED) = REAL_OF_TRANSFER = range(13, 19)
(LOST, OWN_LOST) = LOSSES_OF_TRANSFER = range(19, 21)
(HEAD, TAIL, HAD_SERVED) = REAL_OF_PART = range(21, 24)
#: Where transfers come to links in parts, by transfer and hop: when the last part was done, and what the link had
#: served by then of the same sender.
(LEFT_AT, LEFT_WORKED) = REAL_OF_CROSSING = range(24, 26)
#: A use is a post or an apply of a transfer, ``2 * transfer`` and one more: when it was done.
USED_AT = 26
#: By route: the latency of all its links, less than nothing where it is not the same for all sizes; their least
#: bandwidth; the latency of the way back.
(ROUTE_LATENCY, ROUTE_RATE, BACK_LATENCY) = REAL_OF_ROUTE = range(27, 30)
#: ``LONE_END``: when it would have ended, had its sender's flows alone been there; NaN where that is not looked at.
(RATE, OLD_RATE, CEILING, LEFT, FLOW_SINCE, FLOW_STARTED, FLOW_LOST, LONE_END) = REAL_OF_FLOW = range(30, 38)
(CAPACITY, OCCUPIED, QUEUED_FOR, LINK_SINCE, FREE, BUSY, HELD, UNFILLED, LARGEST, LOWEST, LEAST) = REAL_OF_LINK = range(
    38, 49
)
#: What a link does with transfers up to a size: one piece after another, the last without limit.
PIECE_UP_TO, PIECE_RATE, PIECE_LATENCY = range(49, 52)
#: An account is a link for one sender (fifo): how long it has worked for it.
ACCOUNT_WORKED = 52
#: When an actor began to wait for others to use a chunk.
SINCE = 53
#: What heaps are ordered by: when what happens, which flow ends when, and at which rate a flow or link stops rising.
EVENT_TIME, PREDICTED, RISES_TO = range(54, 57)
TIMES_ROWS, SERVICE_ROWS, RATE_ROWS, WAIT_ROWS = range(57, 61)
N_REAL = 61

# -- whole: one array of int64 for each name.
COUNT = 0
(LAST_CHANNEL, SENT_BYTES, RECEIVED_BYTES) = WHOLE_OF_WORKER = range(1, 4)
(STEP, PHASE, PLACE, USES_PLACE) = WHOLE_OF_ACTOR = range(4, 8)
#: Who is woken after an actor, by what both wait for.
NEXT_WAITER = 8
#: ``N_LET_GO``, ``N_CAME`` and ``N_MOVED`` are parts: for which there was credit, and (fair) whose heads have come, and
#: that have moved.
(BYTES, SRC, ROUTE, REDUCES, AWAITED, QUEUED, N_LET_GO, N_CAME, N_MOVED) = WHOLE_OF_TRANSFER = range(9, 18)
#: Of a transfer, too: numbers of others, or nobody. The actors that wait for it, and what waits for credit after it.
(FIRST_WAITER, NEXT_HELD, PREVIOUS_HELD) = NOBODY_OF_TRANSFER = range(18, 21)
#: Links carry parts, of which a transfer without window and packets is one. Its parts stand one after another.
FIRST_PART = 21
(TRANSFER, PART_BYTES, HOP) = WHOLE_OF_PART = range(22, 25)
(NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE) = NOBODY_OF_PART = range(25, 27)
#: By transfer and hop, where transfers come in parts: how many are queued there.
PARTS_QUEUED = 27
#: By use: the actors that wait for it; and where the uses begin, among those of all, that are done before it.
FIRST_USER, FIRST_EARLIER, EARLIER = range(28, 31)
#: By actor's step (of the steps that are loaded): where its sends, and what it is owed, begin among those of all.
FIRST_SEND, FIRST_OWED, SENDS, OWED = range(31, 35)
#: Where the links of each route begin among those of all; and beside each link the account of the route's sender.
FIRST_LINK, LINKS, ACCOUNTS = range(35, 38)
#: By route, under a window: what is under way without credit, and which transfers wait.
(BYTES_OUT, TRANSFERS_OUT) = WHOLE_OF_ROUTE = range(38, 40)
(FIRST_HELD, LAST_HELD) = NOBODY_OF_ROUTE = range(40, 42)
#: ``PREDICTION`` is the number of what was last predicted of its end.
(PART_OF, ROUTE_OF, HELD_BY, STOP, IN_POOL, FREE_FLOWS, POOL, COMING, GOING, PREDICTION) = WHOLE_OF_FLOW = range(42, 52)
#: The flows on each link, in the order in which they came: a chain of nodes, ``flow * most_hops + hop``.
NEXT_ON, PREVIOUS_ON = NODES = range(52, 54)
(
    N_ON, LONGEST, N_FLOWS, LINK_BYTES, LINK_TRANSFERS, ASLEEP, N_QUEUED, N_QUEUED_WHOLE, N_RISING, SEEN, LOOKED_AT,
    IS_FULL,
) = WHOLE_OF_LINK = range(54, 66)  # fmt: skip
TOUCHED, RISING_LINKS, CHANGED = LISTS_OF_LINKS = range(66, 69)
#: ``SERVES`` is an account, ``SERVES_PART_OF`` the place by transfer and hop of whose part it serves.
(FIRST_ON, LAST_ON, FIRST_QUEUED, LAST_QUEUED, SERVES, SERVES_PART_OF) = NOBODY_OF_LINK = range(69, 75)
#: Where the pieces of each link begin.
FIRST_PIECE = 75
#: Chains: where the first and the last member of each is, and for each member the next one and the previous one.
CHAIN_ON, CHAIN_OF_QUEUE, CHAIN_OF_HELD = (
    (FIRST_ON, LAST_ON, NEXT_ON, PREVIOUS_ON),
    (FIRST_QUEUED, LAST_QUEUED, NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE),
    (FIRST_HELD, LAST_HELD, NEXT_HELD, PREVIOUS_HELD),
)
EVENT_KEY, EVENT_WHAT, END_NUMBER, END_FLOW, RISING_KEY, RISING_WHAT = range(76, 82)
N_WHOLE = 82

#: In ``real[CLOCK]``: the time, and when rates will next be worked out.
NOW, ALARM = range(2)
#: In ``whole[COUNT]``: what a run is, how far it is, and how much each array holds, and can hold, that grows.
#: ``SLOT_BYTES`` go at a time where a window is over, ``PARTS_OF_SLOT`` parts of a transfer.
(
    N_WORKERS, N_CHANNELS, N_STEPS, MOST_HOPS,
    IS_FAIR, IS_CUT_THROUGH, IS_RENDEZVOUS, SHARES_CHUNKS, KEEPS_TIMES, KEEPS_SERVICES, KEEPS_RATES, KEEPS_WAITS,
    KEEPS_OWN,
    HAS_WINDOW, WINDOW_BYTES, WINDOW_TRANSFERS, SLOT_BYTES, PARTS_OF_SLOT, SERVES_PARTS,
    FIRST_STEP, LOADED_STEPS, FIRST_TRANSFER, MOST_OF_STEP,
    READY, NEXT_READY, N_DONE, N_APPLIED, N_HELD,
    N_EVENTS, EVENT_NUMBER, N_PROCESSED, ROOM_EVENTS,
    N_ENDS, NEXT_END_NUMBER, ROOM_ENDS,
    N_STREAMS, N_COMING, N_GOING, N_CHANGED, N_POOL, N_TOUCHED, N_FREE, N_SETTLEMENTS, N_FILLED,
    STAMP, LOOK_STAMP,
    N_SERVICES, ROOM_SERVICES, N_RATES, ROOM_RATES, N_WAITS, ROOM_WAITS,
) = COUNTS = range(52)  # fmt: skip

#: No actor, flow, link or transfer.
NOBODY = -1
#: Parts of a path that are kept: those of `ringnet.engines.trace.PATH_PARTS` but bandwidth, which is what they leave;
#: and what of queueing is behind the same sender's.
ON_LATENCY, ON_QUEUEING, ON_WAITING, ON_OVERHEAD, ON_REDUCING, ON_OWN_QUEUEING = range(6)
N_ON_PATH = 6
#: Cells of a row of times, of a service, of a span at an even rate (route, from, to, bytes), of a wait.
TIMES_CELLS, SERVICE_CELLS, RATE_CELLS, WAIT_CELLS = 5, 8, 4, 3

#: Transfers, or their parts, that are loaded at once, at the least; and bytes of one of one part, in all columns that
#: have an entry for each.
TRANSFERS_AT_ONCE = 1 << 14
_OF_ONE = (*REAL_OF_TRANSFER, *LOSSES_OF_TRANSFER, *WHOLE_OF_TRANSFER, *NOBODY_OF_TRANSFER, FIRST_PART, SENDS, OWED)
LOADED_BYTES = 8 * (N_ON_PATH + len((*_OF_ONE, *REAL_OF_PART, *WHOLE_OF_PART, *NOBODY_OF_PART)))

#: What an event is about: an actor that goes on, an arrival that somebody waits for, a head that has come to the next
#: link (under fair sharing, to all links of its route), a link that chooses what it serves, credit that comes back for
#: a slot, by its last part. It stands for kind and number in one: ``KINDS * number + kind``.
ACTOR, ARRIVAL, HEAD_COMES, LINK, CREDIT = range(5)
KINDS = 5
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
