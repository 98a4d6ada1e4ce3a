"""Where the compiled loop keeps what: arrays of floats and of whole numbers, each a column of one kind of thing.

The loop takes two tables of arrays, ``real`` and ``whole``: ``real[RATE][flow]`` is the rate of a flow, for ``RATE`` is
the number of its array in its table. Things are numbered: workers, actors (a worker on a channel, ``worker * n_channels
+ channel``), links, routes, flows (by a place that is taken again once a flow has ended), and transfers, by their place
in the window of the steps that some actor has not left yet. Numba takes the names here as constants.
"""

from __future__ import annotations

# -- real: one array of float64 for each name; ``_OF_`` are the arrays with an entry for each of something.
CLOCK = 0
(SEND_COST, RECV_COST, REDUCE_RATE, BUSY_UNTIL, LAST, OVERHEAD_SPENT, REDUCING_SPENT) = REAL_OF_WORKER = (
    range(1, 8)
)
#: Parts of a path for each worker, its processor, each actor and transfer: see ``N_ON_PATH``.
WORKER_PATH, PROCESSOR_PATH, ACTOR_PATH, TRANSFER_PATH = range(8, 12)
(POSTED, ENTERED, RELEASED, STARTED, SENT, ARRIVED, HEAD, TAIL, LOST, OWN_LOST, HAD_SERVED) = (
    REAL_OF_TRANSFER
) = range(12, 23)
ROUTE_LATENCY, ROUTE_RATE = 23, 24
(RATE, BEFORE, CEILING, LEFT, FLOW_SINCE, END, OLD_RATE, TOP) = REAL_OF_FLOW = range(25, 33)
#: By node, ``flow * most_hops + hop``: how long the link would have worked for the sender alone when the flow began.
HAD_WORKED = 33
(CAPACITY, LATENCY, OCCUPIED, QUEUED_FOR, LINK_SINCE, FREE, HELD, UNFILLED, LARGEST, LOWEST) = (
    REAL_OF_LINK
) = range(34, 44)
#: An account is a link for one sender: how long it has worked for it (fair: would have, were nobody else on it), and
#: (fair) for how much longer it would.
(ACCOUNT_WORKED, ACCOUNT_LEFT, ACCOUNT_SINCE) = REAL_OF_ACCOUNT = range(44, 47)
EVENT_TIME, PREDICTED = 47, 48
TIMES_ROWS, SERVICE_ROWS, RATE_ROWS, WAIT_ROWS = range(49, 53)
N_REAL = 53

# -- whole: one array of int64 for each name.
COUNT = 0
(LAST_CHANNEL, SENT_BYTES, RECEIVED_BYTES) = WHOLE_OF_WORKER = range(1, 4)
(STEP, PHASE, PLACE) = WHOLE_OF_ACTOR = range(4, 7)
(BYTES, SRC, ROUTE, REDUCES, AWAITED, HOP, QUEUED) = WHOLE_OF_TRANSFER = range(7, 14)
#: Of a transfer, too: numbers of others, or nobody.
(FIRST_WAITER, SECOND_WAITER, FLOW_OF, NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE) = NOBODY_OF_TRANSFER = range(14, 19)
#: By actor's step (of the steps that are loaded): where its sends, and what it is owed, begin among those of all.
FIRST_SEND, FIRST_OWED, SENDS, OWED = range(19, 23)
#: Where the links of each route begin among those of all; and beside each link the account of the route's sender.
FIRST_LINK, LINKS, ACCOUNTS = 23, 24, 25
(TRANSFER_OF, ROUTE_OF, HELD_BY, STOP, IN_POOL, FREE_FLOWS, POOL, COMING, GOING, RISING_FLOWS) = (
    WHOLE_OF_FLOW
) = range(26, 36)
#: The flows on each link, in the order in which they came: a chain of nodes, ``flow * most_hops + hop``.
NEXT_ON, PREVIOUS_ON = NODES = range(36, 38)
(
    N_ON, LONGEST, N_FLOWS, LINK_BYTES, LINK_TRANSFERS, ASLEEP, N_QUEUED, N_RISING, SEEN, USED_AT, IS_FULL,
) = WHOLE_OF_LINK = range(38, 49)  # fmt: skip
TOUCHED, RISING_LINKS = LISTS_OF_LINKS = range(49, 51)
(FIRST_ON, LAST_ON, FIRST_QUEUED, LAST_QUEUED, SERVES) = NOBODY_OF_LINK = range(51, 56)
#: Chains: where the first and the last member of each is, and for each member the next one and the previous one.
CHAIN_ON, CHAIN_OF_QUEUE = (
    (FIRST_ON, LAST_ON, NEXT_ON, PREVIOUS_ON),
    (FIRST_QUEUED, LAST_QUEUED, NEXT_IN_QUEUE, PREVIOUS_IN_QUEUE),
)
EVENT_KEY, EVENT_WHAT, END_NUMBER, END_TRANSFER = range(56, 60)
N_WHOLE = 60

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
    N_STREAMS, N_COMING, N_GOING, N_POOL, N_TOUCHED, N_FREE, N_SETTLEMENTS, N_FILLED,
    STAMP, USE_STAMP,
    N_SERVICES, ROOM_SERVICES, N_RATES, ROOM_RATES, N_WAITS, ROOM_WAITS,
) = COUNTS = range(43)  # fmt: skip

#: No actor, flow, link or transfer.
NOBODY = -1
#: Parts of a path that are kept: those of `ringnet.engines.trace.PATH_PARTS` but bandwidth, which is what they leave;
#: and what of queueing is behind the same sender's.
ON_LATENCY, ON_QUEUEING, ON_WAITING, ON_OVERHEAD, ON_REDUCING, ON_OWN_QUEUEING = range(6)
N_ON_PATH = 6
#: Cells of a row of times, of a service, of a span at an even rate (route, from, to, bytes), of a wait.
TIMES_CELLS, SERVICE_CELLS, RATE_CELLS, WAIT_CELLS = 5, 8, 4, 3
