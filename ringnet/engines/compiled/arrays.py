"""The arrays of a run of the compiled loop: made for it, refilled with steps, emptied of rows, and grown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines import columns as at
from ringnet.engines.columns import ACTOR, ARRIVAL, HEAD_COMES, KINDS, NORMAL, TRANSFERS_AT_ONCE, schedule
from ringnet.engines.compiled.actors import ENTERS
from ringnet.engines.trace import TransferRows, Workers
from ringnet.networks import Network

#: Flows that there is place for at first, for each actor.
FLOWS_OF_ACTOR = 2


class UsedRoutes:
    """The routes that a schedule uses, numbered, and the links on them, numbered among themselves.

    Attributes
    ----------
    links : ndarray of int64, shape (n_used,)
        The number in the network of each link.
    """

    def __init__(self, schedule_: Schedule, network: Network) -> None:
        self.n_members = schedule_.n_members
        src, dst = schedule_.pairs
        self.pairs = src * self.n_members + dst
        joined, firsts = network.joined_routes(src, dst)
        self.lengths = np.diff(firsts)
        self.links, self.on_routes = np.unique(joined, return_inverse=True)
        self.src, self.firsts = src, firsts
        self.bandwidth_Bps = bandwidth_Bps = network.bandwidth_Bps[self.links]
        self.latency_s = np.zeros(len(src))
        for hop in range(self.lengths.max(initial=0)):  # added up from the left, as the events do
            within = np.flatnonzero(self.lengths > hop)
            self.latency_s[within] += network.latency_s[joined[firsts[within] + hop]]
        self.rate_Bps: FloatArray = np.zeros(0)
        if len(src):
            self.rate_Bps = np.minimum.reduceat(bandwidth_Bps[self.on_routes], firsts[:-1])

    def by_sender(self, places: IntArray | slice) -> tuple[IntArray, IntArray]:
        """Return who sends over which link: the link of each such account, and the accounts at places of routes."""
        senders = np.repeat(self.src, self.lengths)[places]
        used, accounts = np.unique(self.on_routes[places] * self.n_members + senders, return_inverse=True)
        return used // self.n_members, accounts.astype(np.int64)

    def where_own_meet(self) -> IntArray:
        """Return the places of routes where flows of the sender alone may be held: all that its first link leaves open.

        Where all that a worker sends begins on one link, no link behind it that can carry as much is ever full of its.
        """
        places = np.arange(len(self.on_routes))
        first = self.on_routes[self.firsts[:-1]]
        least, most = np.full(self.n_members, len(self.links)), np.full(self.n_members, -1)
        np.minimum.at(least, self.src, first)
        np.maximum.at(most, self.src, first)
        begins_alike = np.repeat((least == most)[self.src], self.lengths)
        first_Bps = np.repeat(self.bandwidth_Bps[first], self.lengths)
        is_first = places == np.repeat(self.firsts[:-1], self.lengths)
        return np.flatnonzero(is_first | ~begins_alike | (self.bandwidth_Bps[self.on_routes] < first_Bps))

    def of(self, step: Step) -> IntArray:
        """Return the number of the route of each row of a step."""
        found: IntArray = np.searchsorted(self.pairs, step.src * self.n_members + step.dst)
        return found


class StepColumns(NamedTuple):
    """What is alike for steps with the same columns: routes, actors, and the order of sends and of what is owed."""

    route: IntArray
    src: IntArray
    sends: IntArray
    owed: IntArray
    n_sends: IntArray
    n_owed: IntArray


class LoadedSteps:
    """The steps of a schedule that some actor has not left yet, as the loop has them."""

    def __init__(self, schedule_: Schedule, routes: UsedRoutes, chunk_bytes: IntArray) -> None:
        self.schedule, self.routes, self.chunk_bytes = schedule_, routes, chunk_bytes
        self.coming: Iterator[Step] = schedule_.steps()
        self.n_actors = schedule_.n_workers * schedule_.n_channels
        self._last: tuple[tuple[IntArray, ...], StepColumns] | None = None

    def load(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Drop the steps that all actors have left, and load more."""
        count = whole[at.COUNT]
        self._drop(real, whole)
        made, n_made = [], 0
        held = len(whole[at.BYTES])
        for step in self.coming:
            made.append((step, self._columns(step)))
            n_made += len(step)
            if n_made >= max(TRANSFERS_AT_ONCE, held):
                break
        for name in at.REAL_OF_TRANSFER:
            real[name] = np.concatenate([real[name], np.full(n_made, np.inf)])
        more = np.zeros(n_made * at.N_ON_PATH)
        real[at.TRANSFER_PATH] = np.concatenate([real[at.TRANSFER_PATH], more])
        for name in at.NOBODY_OF_TRANSFER:
            whole[name] = np.concatenate([whole[name], np.full(n_made, at.NOBODY)])
        static = {
            at.BYTES: [step.sizes(self.chunk_bytes) for step, _ in made],
            at.SRC: [columns.src for _, columns in made],
            at.ROUTE: [columns.route for _, columns in made],
            at.REDUCES: [np.full(len(step), step.op == "reduce", dtype=np.int64) for step, _ in made],
        }
        for name in at.WHOLE_OF_TRANSFER:
            parts = static.get(name, [np.zeros(n_made, dtype=np.int64)])
            whole[name] = np.concatenate([whole[name], *parts])
        firsts = held + np.cumsum([0, *(len(step) for step, _ in made)])[:-1]
        lists = ((at.FIRST_SEND, at.SENDS, "sends", "n_sends"), (at.FIRST_OWED, at.OWED, "owed", "n_owed"))
        for first, listed, rows, numbers in lists:
            order = [getattr(columns, rows) + begin for (_, columns), begin in zip(made, firsts, strict=True)]
            whole[listed] = np.concatenate([whole[listed], *order])
            lengths = np.concatenate([getattr(columns, numbers) for _, columns in made])
            whole[first] = np.concatenate([whole[first], whole[first][-1] + np.cumsum(lengths)])
        most = max(int((columns.n_sends + columns.n_owed).max()) for _, columns in made)
        count[at.MOST_OF_STEP] = max(int(count[at.MOST_OF_STEP]), most)
        count[at.LOADED_STEPS] += len(made)

    def _columns(self, step: Step) -> StepColumns:
        """Return what is alike for steps with the same columns; remembered, as those of a ring share theirs."""
        given = (step.src, step.dst, step.channel, step.receiving_channel)
        if self._last is None or any(a is not b for a, b in zip(given, self._last[0], strict=True)):
            src = step.src * self.schedule.n_channels + step.channel
            dst = step.dst * self.schedule.n_channels + step.receiving_channel
            made = StepColumns(
                self.routes.of(step),
                src,
                np.argsort(src, kind="stable"),
                np.lexsort((step.src, dst)),
                np.bincount(src, minlength=self.n_actors),
                np.bincount(dst, minlength=self.n_actors),
            )
            self._last = given, made
        return self._last[1]

    def _drop(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Drop what all have left, and number the transfers that stay from 0 again, wherever they are named."""
        count = whole[at.COUNT]
        left = int(whole[at.STEP].min()) - int(count[at.FIRST_STEP])
        n_gone = int(whole[at.FIRST_SEND][left * self.n_actors])
        for name in (*at.REAL_OF_TRANSFER, at.TRANSFER_PATH):
            each = at.N_ON_PATH if name == at.TRANSFER_PATH else 1
            real[name] = real[name][n_gone * each :]
        for name in (*at.WHOLE_OF_TRANSFER, *at.NOBODY_OF_TRANSFER):
            whole[name] = whole[name][n_gone:]
        for first, listed in ((at.FIRST_SEND, at.SENDS), (at.FIRST_OWED, at.OWED)):
            whole[first] = whole[first][left * self.n_actors :] - n_gone
            whole[listed] = whole[listed][n_gone:] - n_gone
        # Where actors are in those lists, in the middle of a step; who is to begin one sets it anew.
        whole[at.PLACE] -= n_gone
        for name in (at.NEXT_IN_QUEUE, at.PREVIOUS_IN_QUEUE, at.FIRST_QUEUED, at.LAST_QUEUED):
            whole[name][whole[name] != at.NOBODY] -= n_gone
        whole[at.TRANSFER_OF] -= n_gone
        is_transfer = np.isin(whole[at.EVENT_WHAT] % KINDS, (ARRIVAL, HEAD_COMES))
        whole[at.EVENT_WHAT][is_transfer] -= KINDS * n_gone
        count[at.FIRST_TRANSFER] += n_gone
        count[at.FIRST_STEP] += left


def first_arrays(
    schedule_: Schedule, network: Network, workers: Workers, routes: UsedRoutes, rows: TransferRows | None
) -> tuple[list[FloatArray], list[IntArray]]:
    """Return the arrays of a run that has not begun, without steps."""
    n_workers, n_channels = schedule_.n_workers, schedule_.n_channels
    n_actors, n_links = n_workers * n_channels, len(routes.links)
    n_flows, most_hops = FLOWS_OF_ACTOR * n_actors, int(routes.lengths.max(initial=1))
    real = [np.zeros(0) for _ in range(at.N_REAL)]
    whole = [np.zeros(0, dtype=np.int64) for _ in range(at.N_WHOLE)]
    sizes = (
        (at.REAL_OF_WORKER, at.WHOLE_OF_WORKER, n_workers),
        (at.REAL_OF_FLOW, at.WHOLE_OF_FLOW, n_flows),
        (at.REAL_OF_LINK, at.WHOLE_OF_LINK, n_links),
        ((), at.WHOLE_OF_ACTOR, n_actors),
        ((at.WORKER_PATH, at.PROCESSOR_PATH), (), n_workers * at.N_ON_PATH),
        ((at.ACTOR_PATH,), (), n_actors * at.N_ON_PATH),
        ((at.EVENT_TIME,), (at.EVENT_KEY, at.EVENT_WHAT), n_actors),
        ((), at.LISTS_OF_LINKS, n_links),
        ((), at.NODES, n_flows * most_hops),
        ((at.RISES_TO,), (at.RISING_KEY, at.RISING_WHAT), n_flows + n_links),
        ((), (at.FIRST_SEND, at.FIRST_OWED), 1),
    )
    _size(real, whole, sizes)
    for name in at.NOBODY_OF_LINK:
        whole[name] = np.full(n_links, at.NOBODY)
    real[at.CLOCK] = np.array([0.0, np.inf])
    real[at.ROUTE_LATENCY], real[at.ROUTE_RATE] = routes.latency_s, routes.rate_Bps
    real[at.CAPACITY] = network.bandwidth_Bps[routes.links]
    real[at.LATENCY] = network.latency_s[routes.links]
    whole[at.FIRST_LINK] = np.concatenate(([0], np.cumsum(routes.lengths)))
    whole[at.LINKS], whole[at.FREE_FLOWS] = routes.on_routes.astype(np.int64), np.arange(n_flows)
    whole[at.ASLEEP][:] = 1
    count = whole[at.COUNT] = np.zeros(len(at.COUNTS), dtype=np.int64)
    count[[at.N_WORKERS, at.N_CHANNELS, at.N_STEPS]] = n_workers, n_channels, schedule_.n_steps
    count[[at.MOST_HOPS, at.N_FREE]] = most_hops, n_flows
    count[at.IS_FAIR], count[at.IS_CUT_THROUGH] = (
        network.sharing == "fair",
        network.switching == "cut-through",
    )
    if not count[at.IS_FAIR]:
        accounts, whole[at.ACCOUNTS] = routes.by_sender(slice(None))
        real[at.ACCOUNT_WORKED] = np.zeros(len(accounts))
    count[at.IS_RENDEZVOUS] = workers.sends == "rendezvous"
    count[at.KEEPS_WAITS] = True
    if rows is not None:
        real[at.TIMES_ROWS] = rows.times.reshape(-1)
        count[[at.KEEPS_TIMES, at.KEEPS_SERVICES]] = True
        count[at.KEEPS_RATES] = rows.whole and network.sharing == "fair"
    _set_workers(workers, real, whole)
    return real, whole


def lone_arrays(routes: UsedRoutes, whole: list[IntArray]) -> tuple[list[FloatArray], list[IntArray]]:
    """Return the arrays in which each sender's flows are alone; without links unless links are shared fairly."""
    lone_real = [np.zeros(0) for _ in range(at.N_REAL)]
    lone_whole = [np.zeros(0, dtype=np.int64) for _ in range(at.N_WHOLE)]
    count = lone_whole[at.COUNT] = np.zeros(len(at.COUNTS), dtype=np.int64)
    if whole[at.COUNT][at.IS_FAIR]:
        places = routes.where_own_meet()
        link, lone_whole[at.LINKS] = routes.by_sender(places)
        lone_whole[at.FIRST_LINK] = np.searchsorted(places, whole[at.FIRST_LINK])
        count[at.MOST_HOPS] = np.diff(lone_whole[at.FIRST_LINK]).max(initial=1)
        n_links = len(link)
        _size(lone_real, lone_whole, [(at.REAL_OF_LINK, at.WHOLE_OF_LINK, n_links), ((), at.LISTS_OF_LINKS, n_links)])
        lone_real[at.CAPACITY] = routes.bandwidth_Bps[link]
        for name in at.NOBODY_OF_LINK:
            lone_whole[name] = np.full(n_links, at.NOBODY)
    return lone_real, lone_whole


def _size(
    real: list[FloatArray], whole: list[IntArray], sizes: Iterable[tuple[Iterable[int], Iterable[int], int]]
) -> None:
    """Make arrays of zeros."""
    for reals, wholes, size in sizes:
        for name in reals:
            real[name] = np.zeros(size, dtype=np.float64)
        for name in wholes:
            whole[name] = np.zeros(size, dtype=np.int64)


def _set_workers(workers: Workers, real: list[FloatArray], whole: list[IntArray]) -> None:
    """Let every actor begin when its worker has launched."""
    count = whole[at.COUNT]
    real[at.LAST][:] = workers.launched_s
    real[at.OVERHEAD_SPENT][:] = workers.launch_s
    real[at.SEND_COST][:], real[at.RECV_COST][:] = workers.send_overhead_s, workers.recv_overhead_s
    real[at.REDUCE_RATE][:] = workers.reduce_Bps
    waited_s = workers.start_s - workers.start_s.min()
    for part, seconds in ((at.ON_WAITING, waited_s), (at.ON_OVERHEAD, workers.launch_s)):
        real[at.WORKER_PATH][part :: at.N_ON_PATH] = seconds
        real[at.ACTOR_PATH][part :: at.N_ON_PATH] = np.repeat(seconds, int(count[at.N_CHANNELS]))
    whole[at.PHASE][:] = ENTERS
    for actor, launched_s in enumerate(np.repeat(workers.launched_s, int(count[at.N_CHANNELS])).tolist()):
        schedule(real, whole, launched_s, NORMAL, KINDS * actor + ACTOR)
