"""Rows that the compiled loop writes: taken out when their arrays are full; and room for all that grows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import FloatArray, IntArray
from ringnet.engines import columns as at
from ringnet.engines.compiled.arrays import UsedRoutes
from ringnet.engines.trace import MOST_ROWS, Columns, LinkWaits, RateRows, ServiceRows, beyond_the_first

#: Rows of each kind that are kept before they are taken out, at the least.
ROWS_AT_ONCE = 1 << 14


class WrittenRows:
    """What has been taken out so far, as a `Trace` has it."""

    def __init__(self, routes: UsedRoutes, *, is_fair: bool) -> None:
        self.links, self.is_fair = routes.links, is_fair
        self.waits, self.services, self.rates = LinkWaits(), ServiceRows(), RateRows()
        self.used = routes

    @cached_property
    def routes(self) -> IntArray:
        """The number among the rates of each route; asked where they are kept."""
        ends, links = np.cumsum(self.used.lengths), self.links[self.used.on_routes].tolist()
        by_link = (tuple(links[end - n : end]) for n, end in zip(self.used.lengths, ends, strict=True))
        return np.array([self.rates.number(route) for route in by_link], dtype=np.int64)

    def take(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Take out all rows."""
        count = whole[at.COUNT]
        link, from_s, to_s = _rows(real, count, at.WAIT_ROWS, at.N_WAITS, at.WAIT_CELLS).T
        self.waits.add_rows(self.links[link.astype(np.int64)], from_s, to_s)
        transfer, link, hop, *others = _rows(real, count, at.SERVICE_ROWS, at.N_SERVICES, at.SERVICE_CELLS).T
        self.services.add_rows(transfer, self.links[link.astype(np.int64)], hop, *others)
        if count[at.KEEPS_RATES]:
            rates = _rows(real, count, at.RATE_ROWS, at.N_RATES, at.RATE_CELLS)
            rates[:, 0] = self.routes[rates[:, 0].astype(np.int64)]
            self.rates.add_rows(rates)
        count[at.KEEPS_WAITS] &= len(self.waits.links) <= MOST_ROWS
        count[[at.N_WAITS, at.N_SERVICES, at.N_RATES]] = 0

    def who_waited(self) -> Columns | None:
        """Return who waited when, as `Trace.waits` has it."""
        waits = self.waits.columns()
        return beyond_the_first(waits) if self.is_fair and waits is not None else waits

    def even_rates(self) -> RateRows | None:
        """Return how fast what moved when, as `Trace.rates` has it."""
        return self.rates.kept if self.is_fair else None


def _rows(real: list[FloatArray], count: IntArray, name: int, n_rows: int, n_cells: int) -> FloatArray:
    """Return the rows of one kind, shape (n_rows, n_cells)."""
    n = int(count[n_rows])
    return real[name][: n * n_cells].reshape(n, n_cells).copy()


def grow(real: list[FloatArray], whole: list[IntArray]) -> None:
    """Make room for what one event can bring, in all arrays that grow; rows have been taken out."""
    count = whole[at.COUNT]
    n_flows = int(count[at.N_STREAMS] + count[at.N_COMING]) + 1
    rows = (
        (at.SERVICE_ROWS, at.ROOM_SERVICES, at.KEEPS_SERVICES, at.SERVICE_CELLS, n_flows),
        (at.RATE_ROWS, at.ROOM_RATES, at.KEEPS_RATES, at.RATE_CELLS, 2 * n_flows),
        (at.WAIT_ROWS, at.ROOM_WAITS, at.KEEPS_WAITS, at.WAIT_CELLS, n_flows * int(count[at.MOST_HOPS])),
    )
    for name, room, keeps, n_cells, needed in rows:
        if count[room] < 2 * needed:
            count[room] = max(ROWS_AT_ONCE, 4 * needed)
        if count[keeps]:  # nothing is written of the others
            real[name] = _longer(real[name], int(count[room]) * n_cells)
    heaps = (
        (
            at.EVENT_TIME,
            (at.EVENT_KEY, at.EVENT_WHAT),
            at.ROOM_EVENTS,
            count[at.N_EVENTS] + count[at.MOST_OF_STEP] + count[at.N_HELD],
        ),
        # What was predicted last for each flow, and as much again for other rates than they have now.
        (at.PREDICTED, (at.END_NUMBER, at.END_FLOW), at.ROOM_ENDS, n_flows),
    )
    for time, others, room, more in heaps:
        needed = int(more) + n_flows
        if count[room] < needed:
            count[room] = 2 * needed
            real[time] = _longer(real[time], 2 * needed)
            for other in others:
                whole[other] = _longer(whole[other], 2 * needed)
    if count[at.N_FREE] <= (count[at.N_STREAMS] if count[at.SERVES_PARTS] else 0):
        _grow_flows(real, whole)


def _grow_flows(real: list[FloatArray], whole: list[IntArray]) -> None:
    """Make room for twice as many flows."""
    count, n_flows = whole[at.COUNT], len(whole[at.ROUTE_OF])
    _make_place(real, whole, 2 * n_flows)
    n_free = int(count[at.N_FREE])
    whole[at.FREE_FLOWS][n_free : n_free + n_flows] = np.arange(n_flows, 2 * n_flows)
    count[at.N_FREE] += n_flows


def _make_place(real: list[FloatArray], whole: list[IntArray], n_flows: int) -> None:
    """Make place for so many flows."""
    for name in at.REAL_OF_FLOW:
        real[name] = _longer(real[name], n_flows)
    for name in at.WHOLE_OF_FLOW:
        whole[name] = _longer(whole[name], n_flows)
    n_nodes, n_on_heap = n_flows * int(whole[at.COUNT][at.MOST_HOPS]), n_flows + len(whole[at.N_ON])
    real[at.RISES_TO] = _longer(real[at.RISES_TO], n_on_heap)
    for name in (at.RISING_KEY, at.RISING_WHAT):
        whole[name] = _longer(whole[name], n_on_heap)
    for name in at.NODES:
        whole[name] = _longer(whole[name], n_nodes)


def grow_alone(lone_real: list[FloatArray], lone_whole: list[IntArray], n_flows: int) -> None:
    """Make place for so many flows where each sender is alone, and room for twice as many ends."""
    _make_place(lone_real, lone_whole, n_flows)
    lone_whole[at.COUNT][at.ROOM_ENDS] = 2 * n_flows
    lone_real[at.PREDICTED] = _longer(lone_real[at.PREDICTED], 2 * n_flows)
    for name in (at.END_NUMBER, at.END_FLOW):
        lone_whole[name] = _longer(lone_whole[name], 2 * n_flows)


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array of at least some length that begins as this one."""
    more = max(size - len(array), 0)
    return np.concatenate([array, np.zeros(more, dtype=array.dtype)]) if more else array
