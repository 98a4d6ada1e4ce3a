"""How the `recurrence` engine steps whole arrays: which rows go together, and which lanes and links they touch.

A lane is one worker on one channel, numbered ``worker * n_channels + channel``. Rows of a step are stepped in rounds: a
round of sends has at most one row of each lane, a round of receives at most one row for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.networks import Network

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
#: What picks entries of an array: a slice (a view, no copy) where they are consecutive.
Index: TypeAlias = slice | IntArray

#: Bytes of each row, or of all of them alike.
Bytes: TypeAlias = IntArray | int

#: Runs of consecutive rows up to which copying runs is faster than picking rows.
FEW_RUNS = 4


@dataclass
class Hop:
    """One link of each route: ``links`` serve the rows ``within`` a round; None stands for all rows."""

    within: IntArray | None
    links: IntArray
    bandwidth_Bps: FloatArray
    latency_s: FloatArray

    def __post_init__(self) -> None:
        self.at = as_index(self.links)


@dataclass
class Sends:
    """One round of sends: at most one row of each lane, so at most one on each link."""

    rows: IntArray
    lanes: IntArray
    receivers: IntArray
    hops: list[Hop]

    def __post_init__(self) -> None:
        self.at = as_index(self.lanes)
        self.latency_s = np.zeros(len(self.rows))
        for hop in self.hops:
            self.latency_s[hop.within if hop.within is not None else slice(None)] += hop.latency_s


@dataclass
class Receives:
    """One round of receives: ``rows`` of the step, applied by ``lanes``, each at most once."""

    rows: IntArray
    lanes: IntArray

    def __post_init__(self) -> None:
        self.at = as_index(self.lanes)
        ends = [0, *(np.flatnonzero(np.diff(self.rows) != 1) + 1).tolist(), len(self.rows)]
        runs = [slice(int(self.rows[a]), int(self.rows[b - 1]) + 1) for a, b in pairwise(ends)]
        self._runs = runs if len(runs) <= FEW_RUNS else None

    def gather(self, values: FloatArray) -> FloatArray:
        """Return the values of ``rows``, copied; run by run where they are a few, as those of a ring are."""
        if self._runs is None:
            return values.take(self.rows)
        return np.concatenate([values[run] for run in self._runs])


@dataclass
class Plan:
    """The rounds of a step, and the columns that it was made for.

    ``uses`` counts the steps that had this plan, `row_bytes` the bytes of each of its rows over all of them.
    """

    src: IntArray
    dst: IntArray
    channel: IntArray
    receiving_channel: IntArray
    sends: list[Sends]
    receives: list[Receives]

    def __post_init__(self) -> None:
        self.uses = 0
        self._bytes_alike = 0
        self._row_bytes = np.zeros(len(self.src), dtype=np.int64)

    def use(self, n_bytes: Bytes) -> None:
        """Count one more step, and the bytes of its rows."""
        self.uses += 1
        if isinstance(n_bytes, int):
            self._bytes_alike += n_bytes
        else:
            self._row_bytes += n_bytes

    @property
    def row_bytes(self) -> IntArray:
        """Bytes of each row over all steps, shape (n_rows,)."""
        return self._row_bytes + self._bytes_alike

    @property
    def simple(self) -> bool:
        """Whether one round of each does: no lane sends or receives twice in the step."""
        return len(self.sends) == len(self.receives) == 1

    def fits(self, step: Step) -> bool:
        """Whether another step moves between the same workers."""
        mine = (self.src, self.dst, self.channel, self.receiving_channel)
        return all(map(_same, mine, (step.src, step.dst, step.channel, step.receiving_channel)))


class Planner:
    """Makes the plan of each step; steps that move between the same workers share one."""

    def __init__(self, schedule: Schedule, network: Network) -> None:
        self.n_channels = schedule.n_channels
        self.network = network
        self._last: Plan | None = None
        self._plans: dict[bytes, Plan] = {}
        self._routes: dict[tuple[int, int], tuple[int, ...]] = {}

    def plan(self, step: Step) -> Plan:
        """Return the plan of a step."""
        if self._last is None or not self._last.fits(step):
            self._last = self._find(step)
        # Also where they were equal and not the same: the next step is likely to share these very columns.
        self._last.src, self._last.dst = step.src, step.dst
        self._last.channel, self._last.receiving_channel = step.channel, step.receiving_channel
        return self._last

    def plans(self) -> list[Plan]:
        """Return every plan made so far."""
        return list(self._plans.values())

    def _find(self, step: Step) -> Plan:
        key = np.concatenate((step.src, step.dst, step.channel, step.receiving_channel)).tobytes()
        if key not in self._plans:
            self._plans[key] = self._make(step)
        return self._plans[key]

    def _make(self, step: Step) -> Plan:
        src = step.src * self.n_channels + step.channel
        dst = step.dst * self.n_channels + step.receiving_channel
        sends = [self._sends(step, rows, src, dst) for rows in _rounds(src, np.arange(len(src)))]
        receives = [
            Receives(rows[np.argsort(dst[rows])], np.sort(dst[rows])) for rows in _rounds(dst, step.src)
        ]
        return Plan(step.src, step.dst, step.channel, step.receiving_channel, sends, receives)

    def _sends(self, step: Step, rows: IntArray, src: IntArray, dst: IntArray) -> Sends:
        routes = [
            self._route(*pair) for pair in zip(step.src[rows].tolist(), step.dst[rows].tolist(), strict=True)
        ]
        hops = [self._hop(routes, place) for place in range(max(map(len, routes)))]
        return Sends(rows, src[rows], dst[rows], hops)

    def _hop(self, routes: list[tuple[int, ...]], place: int) -> Hop:
        within = np.array([row for row, route in enumerate(routes) if len(route) > place])
        links = np.array([routes[row][place] for row in within])
        whole = None if len(within) == len(routes) else within
        return Hop(whole, links, self.network.bandwidth_Bps[links], self.network.latency_s[links])

    def _route(self, src: int, dst: int) -> tuple[int, ...]:
        if (src, dst) not in self._routes:
            self._routes[src, dst] = self.network.route(src, dst)
        return self._routes[src, dst]


def _same(a: IntArray, b: IntArray) -> bool:
    # Steps of a ring share their columns, which nobody can write: no need to look into them.
    return (a is b and not a.flags.writeable) or np.array_equal(a, b)


def as_index(places: IntArray) -> Index:
    """Return what picks ``places`` of an array: a slice, which makes a view, where they are consecutive."""
    if len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _rounds(lanes: IntArray, order: IntArray) -> list[IntArray]:
    """Split rows so that no lane stands twice in a round: its first row, by ``order``, in the first, and so on."""
    rows = np.lexsort((order, lanes))
    begins = np.flatnonzero(np.diff(lanes[rows], prepend=-1))
    turn = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows)))
    by_turn = rows[np.lexsort((rows, turn))]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]) if len(rows) else []


def put(values: FloatArray, rows: IntArray | None, new: FloatArray) -> FloatArray:
    """Return ``values`` with ``new`` in some rows; ``new`` itself where that is all of them."""
    if rows is None:
        return new
    values = values.copy()
    values[rows] = new
    return values
