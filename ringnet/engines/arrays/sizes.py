"""A schedule at many sizes of the message at once, for the times alone: what they share is worked out once.

The sums and maxima are those of `ringnet.engines.arrays.steps`, in the same order, row after row in machine code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines.arrays import kernel as at
from ringnet.engines.arrays.rounds import RoundMaker, Rounds
from ringnet.engines.machine_code import CompiledLoop, addresses, compiled
from ringnet.engines.trace import Workers
from ringnet.networks import Network

KERNEL = CompiledLoop("ringnet.engines.arrays", ("kernel",), "do_step")
#: Floats of a column, for all sizes that are done at once; more sizes are done block after block.
MOST_HELD = 1 << 24
#: Sizes that fill a line of a processor's cache: with fewer at once, most of what is read is not used.
LEAST_AT_ONCE = 8
#: For how many steps there are slots at the least: looking which may be dropped costs as much as some of them.
SLOTS_OF_STEPS = 16


class Times(NamedTuple):
    """What came of each size: when the last worker ended, and what each link carried.

    Parameters
    ----------
    makespan_s : ndarray of float64, shape (n_sizes,)
    busiest_link : ndarray of int64, shape (n_sizes,)
        The link that was busy longest; the first of equals.
    busiest_bytes : ndarray of int64, shape (n_sizes,)
        The bytes that crossed it.
    exact : ndarray of bool, shape (n_sizes,)
        Whether every link served its transfers in the order that was supposed; if not, the times count for nothing.
    """

    makespan_s: FloatArray
    busiest_link: IntArray
    busiest_bytes: IntArray
    exact: NDArray[np.bool_]


class _Plan:
    """What steps share that move between the same workers: the order of their rows, and the links that they cross."""

    def __init__(
        self,
        rounds: Rounds,
        network: Network,
        place: IntArray,
        n_channels: int,
        *,
        is_fair: bool,
        workers_meet: bool,
    ) -> None:
        rows, actors = np.arange(len(rounds.src)), rounds.src * n_channels + rounds.channel
        links, first = network.joined_routes(rounds.src, rounds.dst)
        self.arrays = {
            # So a link that carries several is supposed to serve: channels of a worker one after the other, the lowest
            # first; of workers, by number, the first row of each, then the second of each, and so on, over all its
            # channels: what one sends queues behind what those below it do.
            at.SENDS: _in_turn(rounds.src, actors) if workers_meet else np.argsort(rounds.channel, kind="stable"),
            # By sender: so each worker applies what comes to it.
            at.RECEIVES: np.argsort(rounds.src, kind="stable"),
            at.SENDER: actors,
            at.RECEIVER: rounds.dst * n_channels + rounds.receiving_channel,
            at.FIRST_LINK: first,
            at.LINKS: place[links],
        }
        self.flows: dict[int, Array] = {}
        if is_fair:
            self._take_flows(network, links, np.repeat(rows, np.diff(first)), len(rows))
        self.addresses = addresses([*self.arrays.values()])

    def _take_flows(self, network: Network, links: IntArray, row: IntArray, n_rows: int) -> None:
        """Take each row as a flow over its links, one entry of ``links`` and of ``row`` for each that it crosses."""
        # Of the links that are crossed here alone: a network may have a million, and a schedule thousands of plans.
        crossed, at_link = np.unique(links, return_inverse=True)
        n_flows = np.bincount(at_link)
        share_Bps = (network.bandwidth_Bps[crossed] / n_flows)[at_link]
        rate_Bps = np.full(n_rows, np.inf)
        np.minimum.at(rate_Bps, row, share_Bps)
        # A link holds its rows to their rates if all of them have what it has for each.
        has_less = np.bincount(at_link, rate_Bps[row] < share_Bps) > 0
        holds = ~has_less[at_link]
        held_alone = np.bincount(row, holds & (n_flows[at_link] == 1), minlength=n_rows) > 0
        self.arrays |= {at.HOLDS: holds.astype(np.int64), at.LOOKED_AT: (~held_alone).astype(np.int64)}
        self.flows = {
            at.RATE: rate_Bps,
            at.ROUTE_LATENCY: np.bincount(row, network.latency_s[links], minlength=n_rows),
        }


def _in_turn(workers: IntArray, actors: IntArray) -> IntArray:
    """Return the order of rows by how many of its worker come before each, by channel, and then by worker."""
    order = np.argsort(actors, kind="stable")
    number = np.arange(len(order)) - np.searchsorted(workers[order], workers[order])
    turns: IntArray = order[np.argsort(number, kind="stable")]
    return turns


class Sizes:
    """The arrays of a run at many sizes, taken again for block after block of them.

    Parameters
    ----------
    schedule, network, workers : Schedule, Network, Workers
    maker : RoundMaker
        It knows the steps.
    is_fair : bool
        Whether links are shared fairly.
    """

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        maker: RoundMaker,
        *,
        is_fair: bool = False,
    ) -> None:
        self.schedule, self.network, self.workers, self.maker = schedule, network, workers, maker
        is_used = np.zeros(network.n_links, dtype=bool)
        is_used[network.joined_routes(*schedule.pairs)[0]] = True
        self.used = np.flatnonzero(is_used)
        self.bandwidth_Bps = network.bandwidth_Bps[self.used]
        self.most_rows = max(map(len, maker.made), default=0)
        self._place = np.zeros(network.n_links, dtype=np.int64)
        self._place[self.used] = np.arange(len(self.used))
        self._plans: dict[int, _Plan] = {}
        #: The largest arrays, kept from block to block: to get new memory costs more than to use it.
        self._held: dict[int, FloatArray] = {}
        self._each = np.repeat(np.arange(schedule.n_workers), schedule.n_channels)
        #: Cells of which it may be kept when they were last used.
        self.n_slots = SLOTS_OF_STEPS * self.most_rows + 1 if schedule.channels_share_chunks else 1
        self._workers_meet = not is_fair and maker.workers_meet()
        self._n = {
            at.N_ACTORS: len(self._each),
            at.N_CHANNELS: schedule.n_channels,
            at.N_CHUNKS: schedule.n_chunks,
            at.IS_CUT_THROUGH: network.switching == "cut-through",
            at.IS_RENDEZVOUS: workers.sends == "rendezvous",
            at.ACTORS_MEET: not is_fair and maker.actors_meet(),
            at.SHARES_CHUNKS: schedule.channels_share_chunks,
            at.COSTS: self._costs(),
            at.IS_FAIR: is_fair,
        }

    def _costs(self) -> bool:
        workers = self.workers
        costs = workers.send_overhead_s.any() or workers.recv_overhead_s.any()
        return bool(costs or np.isfinite(workers.reduce_Bps).any())

    @property
    def at_once(self) -> int:
        """How many sizes are best done at once."""
        longest = max(len(self.used), len(self._each), self.most_rows, self.schedule.n_chunks)
        return max(LEAST_AT_ONCE, MOST_HELD // longest)

    def run(self, steps: Iterable[Step], chunk_bytes: IntArray) -> Times:
        """Do all steps at some sizes; ``chunk_bytes`` is of shape (n_sizes, n_chunks)."""
        real, whole = self._begin(chunk_bytes)
        number, do_step = whole[at.NUMBERS], compiled(KERNEL)
        at_real, at_whole, plan = addresses(real), addresses(whole), None
        for step in steps:
            rounds = self.maker.rounds(step)
            if id(rounds) not in self._plans:
                what = rounds, self.network, self._place, self.schedule.n_channels
                is_fair = bool(self._n[at.IS_FAIR])
                self._plans[id(rounds)] = _Plan(*what, is_fair=is_fair, workers_meet=self._workers_meet)
            if plan is not self._plans[id(rounds)]:
                plan = self._plans[id(rounds)]
                at_whole[[*plan.arrays]] = plan.addresses
                for name, numbers in plan.flows.items():
                    real[name] = numbers
                    at_real[name] = numbers.ctypes.data
            chunk, count = np.ascontiguousarray(step.chunk), step.count
            at_whole[at.CHUNK] = chunk.ctypes.data
            if count is not None:
                count = np.ascontiguousarray(count)
                at_whole[at.COUNT] = count.ctypes.data
            number[[at.N_ROWS, at.HAS_COUNTS, at.REDUCES]] = len(step), count is not None, step.op == "reduce"
            while do_step(at_real, at_whole) == at.WANTS_SLOTS:
                self._more_slots(real, whole)
                at_real, at_whole[at.APPLIED_CELL :] = addresses(real), addresses(whole[at.APPLIED_CELL :])
            if not whole[at.EXACT].any():
                break
        return self._times(real, whole)

    def _begin(self, chunk_bytes: IntArray) -> tuple[list[FloatArray], list[IntArray]]:
        """Return the arrays of a block of sizes, as the kernel numbers them, before the first step."""
        n_sizes, workers, each = len(chunk_bytes), self.workers, self._each
        before = np.concatenate((np.zeros((n_sizes, 1)), np.cumsum(chunk_bytes, axis=1)), axis=1)
        n_cells = self.schedule.n_workers * self.schedule.n_chunks if self._n[at.SHARES_CHUNKS] else 0
        n_slots, n_used = self.n_slots, len(self.used)
        n_flows = n_used * n_sizes if self._n[at.IS_FAIR] else 0
        for name in (at.FREE, at.CARRIED, at.ARRIVED):
            n_cells_of = (self.most_rows if name == at.ARRIVED else n_used) * n_sizes
            if len(self._held.get(name, ())) < n_cells_of:
                self._held[name] = np.empty(n_cells_of)
            self._held[name][:] = 0
        real: dict[int, Any] = {
            **self._held,
            at.READY: np.repeat(workers.launched_s[each], n_sizes),
            at.ENTERED: np.empty(len(each) * n_sizes),
            at.LAST_HEAD: np.full(n_used * n_sizes if self._n[at.ACTORS_MEET] else 0, -np.inf),
            # Floats hold whole numbers up to 2^53, and divide without being made of them each time.
            at.CHUNK_BYTES: np.ascontiguousarray(chunk_bytes.T, dtype=float),
            at.BYTES_BEFORE: np.ascontiguousarray(before.T),
            at.APPLIED: np.empty((n_slots, n_sizes)),
            at.POSTED: np.empty((n_slots, n_sizes)),
            at.BANDWIDTH: self.bandwidth_Bps,
            at.LATENCY: self.network.latency_s[self.used],
            at.SEND_COST: workers.send_overhead_s[each],
            at.RECV_COST: workers.recv_overhead_s[each],
            at.REDUCE_RATE: workers.reduce_Bps[each],
            at.ROW_BYTES: np.empty(n_sizes),
            at.HEAD: np.empty(n_sizes),
            **dict.fromkeys(at.OF_FLOWS, np.empty(0)),
            **{name: np.zeros(n_flows) for name in (at.OVER, at.FIRST_HEAD, at.FIRST_END)},
        }
        whole: dict[int, Any] = {
            **dict.fromkeys(at.OF_STEP, np.empty(0, dtype=np.int64)),
            at.SLOT: np.full(2 * n_cells, at.NO_SLOT),
            at.APPLIED_CELL: np.empty(n_slots, dtype=np.int64),
            at.POSTED_CELL: np.empty(n_slots, dtype=np.int64),
            at.LAST_ACTOR: np.zeros(n_used, dtype=np.int64),
            at.EXACT: np.ones(n_sizes, dtype=np.int64),
            at.LAST_STEP: np.full(n_used, -1),
            at.PART: np.zeros(n_flows, dtype=np.int64),
            at.NUMBERS: np.zeros(len(at.ALL_NUMBERS), dtype=np.int64),
        }
        numbers = {
            **self._n,
            at.N_SIZES: n_sizes,
            at.MOST_SLOTS: n_slots,
            at.N_APPLIED: at.NO_SLOT + 1,
            at.N_POSTED: at.NO_SLOT + 1,
        }
        whole[at.NUMBERS][[*numbers]] = [*numbers.values()]
        return [real[name] for name in range(at.N_REAL)], [whole[name] for name in range(at.N_WHOLE)]

    def _more_slots(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Make room for four times as many slots."""
        number = whole[at.NUMBERS]
        number[at.MOST_SLOTS] = self.n_slots = 4 * self.n_slots
        for table, names in ((real, (at.APPLIED, at.POSTED)), (whole, (at.APPLIED_CELL, at.POSTED_CELL))):
            arrays: list[Any] = table
            for name, n_taken in zip(names, number[[at.N_APPLIED, at.N_POSTED]].tolist(), strict=True):
                more = np.empty((self.n_slots, *arrays[name].shape[1:]), arrays[name].dtype)
                more[:n_taken] = arrays[name][:n_taken]
                arrays[name] = more

    def _times(self, real: list[FloatArray], whole: list[IntArray]) -> Times:
        n_sizes = len(whole[at.EXACT])
        makespan_s = real[at.READY].reshape(-1, n_sizes).max(axis=0) - float(self.workers.start_s.min())
        busiest, most = np.zeros(n_sizes, dtype=np.int64), np.zeros(n_sizes)
        if len(self.used):
            carried = real[at.CARRIED][: len(self.used) * n_sizes].reshape(-1, n_sizes)
            places = [int((column / self.bandwidth_Bps).argmax()) for column in carried.T]
            busiest, most = self.used[places], carried[places, np.arange(n_sizes)]
        return Times(makespan_s, busiest, most.astype(np.int64), whole[at.EXACT] == 1)
