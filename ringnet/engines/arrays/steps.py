"""The recurrence: whole steps of a schedule at a time, for one run or for many side by side.

Where each link serves one actor and gets its transfers in the order of the schedule, nothing depends on what happens
elsewhere at the same time: ``start = max(head, free)``, ``free = start + n / B``, ``ready = max(ready, arrival)``. The
sums and maxima are those of the `events` engine in the same order, so that the times are the same to the last bit.

For many runs every array has a trailing axis, an entry for each; the rounds are the same for all of them. Paths, waits
and rows, for which nobody asks then, are noted for one run only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines.arrays.notes import LinkNotes, Parts, Paths
from ringnet.engines.arrays.recall import Choices
from ringnet.engines.arrays.rounds import (
    Hop,
    Index,
    ReceiveRound,
    RoundMaker,
    SendRound,
    put,
)
from ringnet.engines.trace import ServiceRows, TransferRows, Workers
from ringnet.networks import Network

#: Of so many notes at once there is room at the least: looking which may be dropped costs as much as some of them.
MANY_USES = 16
#: Bytes of each row, or of all of them alike.
Bytes: TypeAlias = FloatArray | int


@dataclass
class Arrivals:
    """Transfers of a step or a round, one entry per row: when they arrive, and what their path is made of."""

    time_s: FloatArray
    path: Parts


class CarriedBytes:
    """What the rows of the steps with the same rounds carried in all."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n_steps = self._alike = 0
        self._by_row = np.zeros(shape)

    def add(self, n_bytes: Bytes, n_steps: int = 1) -> None:
        """Add one more step, or several alike."""
        self.n_steps += n_steps
        if isinstance(n_bytes, int):
            self._alike += n_steps * n_bytes
        else:
            self._by_row += n_steps * n_bytes

    @property
    def by_row(self) -> IntArray:
        """Bytes of each row."""
        return self._by_row.astype(np.int64) + self._alike


class Steps:
    """When each actor is ready for its next step and each link free again, and what came of the steps so far.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,), or (n_chunks, 1) with many runs
    maker : RoundMaker
        It has made the rounds of all steps.
    rows : TransferRows or None
        Where the transfers of one size are written down.
    n_runs : int or None
        Runs that are done side by side, all of one size.

    Notes
    -----
    Where what comes to a link may overtake what was sent before it, each head that comes is looked at: a run in which
    one came before its turn is not ``exact``.
    """

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        maker: RoundMaker,
        rows: TransferRows | None = None,
        *,
        n_runs: int | None = None,
    ) -> None:
        self.schedule, self.maker, self.rows, self.first_row = schedule, maker, rows, 0
        self.services = None if rows is None else ServiceRows()
        # Floats hold whole numbers up to 2^53, and divide without being made of them each time.
        self.chunk_bytes = chunk_bytes.astype(float)
        #: The shape of what there is of each run.
        self.runs = () if n_runs is None else (n_runs,)
        same = not self.runs and (chunk_bytes == chunk_bytes[0]).all()
        self.same_bytes = int(chunk_bytes[0]) if same else None
        self.bytes_before = np.concatenate((np.zeros_like(chunk_bytes[:1]), np.cumsum(chunk_bytes, axis=0))).astype(
            float
        )
        self.cut_through, self.rendezvous = network.switching == "cut-through", workers.sends == "rendezvous"
        self.used = maker.used_links()
        self.notes = None if self.runs else LinkNotes(self.used)
        #: What is noted for a path where no rows are kept.
        self.choices: Choices | None = None
        #: How often some transfer of a hop did not start as it came.
        self.n_delayed = 0
        self._set_actors(schedule, workers)
        self.free_s = np.zeros((len(self.used), *self.runs))
        self.exact = np.ones(self.runs, dtype=bool)
        #: Whether what comes to a link after another one may overtake what was sent before it.
        self.may_overtake = False
        #: Of each link the last head that was looked at.
        self.last_head_s: FloatArray | None = None
        self.carried: dict[int, CarriedBytes] = {}
        self._busy: dict[int, tuple[int, FloatArray]] = {}
        self.shared = None
        if schedule.channels_share_chunks:
            self.shared = SharedChunks(schedule, self.ready_s, self.paths)

    def _set_actors(self, schedule: Schedule, workers: Workers) -> None:
        each = np.repeat(np.arange(schedule.n_workers), schedule.n_channels)
        self.start_s, self.launch_s = workers.start_s[each], workers.launch_s[each]
        launched_s = self._of_all_runs(workers.launched_s[each])
        self.ready_s = np.array(np.broadcast_to(launched_s, (len(each), *self.runs)), order="C")
        costs = (workers.send_overhead_s, workers.recv_overhead_s, workers.reduce_Bps)
        self.send_s, self.recv_s, self.reduce_Bps = (self._of_all_runs(column[each]) for column in costs)
        self.overhead_s, self.reducing_s = np.zeros(len(each)), np.zeros(len(each))
        self.overhead_s[:: schedule.n_channels] = workers.launch_s
        self.send_costs, self.recv_costs = bool(self.send_s.any()), bool(self.recv_s.any())
        self.reduce_costs = bool(np.isfinite(self.reduce_Bps).any())
        self.paths = Paths(len(each))
        if self.notes is not None:
            self._keep_paths()

    def _keep_paths(self) -> None:
        """Keep from the start what can be more than zero; queueing joins when it first occurs."""
        self.paths.keep("latency")
        if np.ptp(self.start_s):
            self.paths.keep("waiting")[:] = self.start_s - self.start_s.min()
        if self.send_costs or self.recv_costs or self.launch_s.any():
            self.paths.keep("overhead")[:] = self.launch_s
        if self.reduce_costs:
            self.paths.keep("reducing")

    def _of_all_runs(self, column: FloatArray) -> FloatArray:
        return column[:, None] if self.runs else column

    def do(self, step: Step) -> None:
        """Do one step: all its sends, then all its receives, then (rendezvous) wait for its own sends."""
        rounds, n_bytes = self.maker.rounds(step), self._bytes(step)
        if id(rounds) not in self.carried:
            self.carried[id(rounds)] = CarriedBytes((len(step), *self.chunk_bytes.shape[1:]))
        self.carried[id(rounds)].add(n_bytes)
        self.current, sends = step, rounds.sends
        arrivals = self._send_all(sends, n_bytes, simple=len(sends) == len(rounds.receives) == 1)
        for receives in rounds.receives:
            self._receive(receives, arrivals, n_bytes)
        for some in sends if self.rendezvous else ():
            self._outlast(some, arrivals)
        if self.choices is not None:
            self.choices.end_step(rounds)
        if self.shared is not None:
            self.shared.end_step()
        self.first_row += len(step)

    def count(self, step: Step, unit: int, times: int) -> None:
        """Count steps like the last ``unit`` that were done, so many times: times are known without doing them."""
        self.carried[id(self.maker.rounds(step))].add(self._bytes(step), unit * times)
        self.first_row += unit * times * len(step)
        if self.choices is not None:
            self.choices.repeat(unit, times)

    def _bytes(self, step: Step) -> Bytes:
        if step.count is not None:
            carried: FloatArray = self.bytes_before[step.chunk + step.count] - self.bytes_before[step.chunk]
            return carried
        return self.chunk_bytes[step.chunk] if self.same_bytes is None else self.same_bytes

    def _send_all(self, sends: list[SendRound], n_bytes: Bytes, *, simple: bool) -> Arrivals:
        entered = None
        if self.rendezvous:
            entered = Arrivals(self.ready_s.copy(), self.paths.leave(slice(None), copy=True))
        # With one round of each, each part of the paths is read before it is written, so that views do.
        copy = self.rendezvous or not simple
        if len(sends) == 1:
            return self._send(sends[0], n_bytes, entered, copy=copy)
        whole = Arrivals(np.zeros((len(self.current), *self.runs)), {})
        for some in sends:
            arrivals = self._send(some, _of_rows(n_bytes, some.rows), entered, copy=copy)
            whole.time_s[some.rows] = arrivals.time_s
            for part, seconds in arrivals.path.items():
                if part not in whole.path:
                    whole.path[part] = np.zeros(len(self.current))
                whole.path[part][some.rows] = seconds
        return whole

    def _send(self, sends: SendRound, n_bytes: Bytes, entered: Arrivals | None, *, copy: bool) -> Arrivals:
        """Post one round of sends and let the links serve it."""
        if self.shared is not None:
            cells = self._cells(self.current.src, sends.rows)
            self.shared.before_posts(sends.at, cells)
        if self.send_costs:
            self._spend(sends.at, self._send_cost_s(sends.at), 0.0)
        if self.shared is not None:
            self.shared.after_posts(sends.at, cells)
        posted_s, path = self.ready_s[sends.at], self.paths.leave(sends.at, copy=copy)
        released_s = posted_s
        if entered is not None:
            # Rendezvous: start when both sides are in the step; the path goes back to whoever came last.
            came_s = entered.time_s[sends.receivers]
            if self.choices is not None:
                self.choices.note(came_s > posted_s)
            for part, seconds in entered.path.items():
                path[part] = np.where(came_s > posted_s, seconds[sends.receivers], path[part])
            released_s = np.maximum(posted_s, came_s)
        start_s, sent_s, arrived_s, queued = self._cross(sends, released_s, n_bytes)
        if self.notes is not None:
            if queued is not None:
                moving_s = arrived_s - released_s - sends.latency_s
                idle_s = np.minimum(moving_s, self._idle_s(sends, n_bytes))
                path["queueing"] = path.get("queueing", 0.0) + np.where(queued, moving_s - idle_s, 0.0)
            path["latency"] = path["latency"] + sends.latency_s
        if self.rows is not None:
            rows = self.rows.times[self.first_row : self.first_row + len(self.current)]
            rows[sends.rows, :4] = np.column_stack((posted_s, start_s, sent_s, arrived_s))
        return Arrivals(arrived_s, path)

    def _cross(
        self, sends: SendRound, head_s: FloatArray, n_bytes: Bytes
    ) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_] | None]:
        """Cross all links; return when each transfer started, was sent, arrived, whether it queued (None: none)."""
        queued = None
        start_s = sent_s = tail_s = head_s
        for place, hop in enumerate(sends.hops):
            came_s = head_s[hop.rows]
            if self.may_overtake and place:
                self._look(hop, came_s)
            start, end = self._serve(hop, came_s, tail_s[hop.rows] if place else None, n_bytes)
            if self.notes is not None:
                later = start > came_s
                waits = later if np.count_nonzero(later) else None  # which is quicker than any()
                if self.choices is not None:
                    self.choices.note_waits(waits, came_s, start)
                self.notes.wait(hop, waits, came_s, start)
                if waits is not None:
                    self.n_delayed += 1
                    queued = np.zeros(len(sends.actors), dtype=bool) if queued is None else queued
                    queued[hop.rows] |= waits
            if self.services is not None:
                rows, of_rows = self._places(sends.rows), _of_rows(n_bytes, hop.rows)
                self.services.add_rows(rows[hop.rows], hop.links, place, of_rows, came_s, start, end, 0.0)
            if not place:
                start_s, sent_s = start, end
            latency_s = self._latency_s(hop)
            tail_s = put(tail_s, hop.within, end + latency_s)
            goes_on = self.cut_through and len(sends.hops) > 1
            head_s = put(head_s, hop.within, start + latency_s) if goes_on else tail_s
        return start_s, sent_s, tail_s, queued

    def _places(self, rows: Index) -> IntArray:
        """Return where in the rows of the run some of the step are."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self.current)))
        return rows + self.first_row

    def _serve(
        self, hop: Hop, head_s: FloatArray, tail_s: FloatArray | None, n_bytes: Bytes
    ) -> tuple[FloatArray, FloatArray]:
        """Serve one transfer on each link of a hop, from when its head comes; return when that starts and ends."""
        start_s = np.maximum(head_s, self.free_s[hop.at])
        busy_s = self._busy_s(hop, n_bytes)
        end_s = start_s + busy_s
        if tail_s is not None and self.cut_through:
            if self.choices is not None:
                self.choices.note(tail_s >= end_s)
            np.maximum(end_s, tail_s, out=end_s)
            if self.notes is not None:
                self.notes.held_s[hop.at] += (end_s - start_s) - busy_s
        self.free_s[hop.at] = end_s
        return start_s, end_s

    def _latency_s(self, hop: Hop) -> FloatArray:
        """Return the latency of each link of a hop for what it has just served."""
        return hop.latency_s

    def _send_cost_s(self, at: Index) -> FloatArray:
        """Return the overhead of some actors for what they send next."""
        return self.send_s[at]

    def _recv_cost_s(self, at: Index) -> FloatArray:
        """Return the overhead of some actors for what they receive next."""
        return self.recv_s[at]

    def _reduce_rate_Bps(self, at: Index) -> FloatArray:  # noqa: N802 -- the unit
        """Return the rate at which some actors reduce what they receive next."""
        return self.reduce_Bps[at]

    def _worked(self, at: Index, work_s: FloatArray) -> FloatArray:
        """Return when processors have worked for so long, from when they are ready on."""
        return self.ready_s[at] + work_s

    def _busy_s(self, hop: Hop, n_bytes: Bytes) -> FloatArray:
        """Return how long each link of a hop takes for its bytes; remembered where all rows have as many."""
        if not isinstance(n_bytes, int):
            busy_s: FloatArray = n_bytes[hop.rows] / hop.bandwidth_Bps
            return busy_s
        if id(hop) not in self._busy or self._busy[id(hop)][0] != n_bytes:
            self._busy[id(hop)] = n_bytes, n_bytes / hop.bandwidth_Bps
        return self._busy[id(hop)][1]

    def _idle_s(self, sends: SendRound, n_bytes: Bytes) -> FloatArray:
        """Seconds that the bytes of each row would take on an idle route, latency apart."""
        idle_s = np.zeros(len(sends.actors))
        join = np.maximum if self.cut_through else np.add
        for hop in sends.hops:
            idle_s[hop.rows] = join(idle_s[hop.rows], self._busy_s(hop, n_bytes))
        return idle_s

    def _look(self, hop: Hop, head_s: FloatArray) -> None:
        """Look whether heads come in the order in which they are served."""
        if self.last_head_s is None:
            self.last_head_s = np.full_like(self.free_s, -np.inf)
        self.exact &= ~(head_s < self.last_head_s[hop.at]).any(axis=0)
        self.last_head_s[hop.at] = head_s

    def _cells(self, workers: IntArray, rows: Index) -> IntArray:
        """Return the cell of each of some rows: worker times chunks, plus chunk."""
        cells: IntArray = workers[rows] * self.schedule.n_chunks + self.current.chunk[rows]
        return cells

    def _receive(self, receives: ReceiveRound, arrivals: Arrivals, n_bytes: Bytes) -> None:
        """Apply one round of receives, each when it has arrived and its actor is ready for it."""
        reduces = self.current.op == "reduce" and self.reduce_costs
        arrived_s, at = receives.gather(arrivals.time_s), receives.at
        ready_s = self.ready_s[at]
        came = arrived_s >= ready_s
        if self.choices is not None:
            self.choices.note(came)
        if arrivals.path:
            arriving = {part: receives.gather(seconds) for part, seconds in arrivals.path.items()}
            self.paths.arrive(at, came, arriving)
        self.ready_s[at] = np.maximum(ready_s, arrived_s)
        if self.shared is not None:
            cells = self._cells(self.current.dst, receives.rows)
            self.shared.before_applies(at, cells)
        if self.recv_costs or reduces:
            # The receive overhead and the reduction in one go, as the processor spends them.
            reducing_s = _of_rows(n_bytes, receives.rows) / self._reduce_rate_Bps(at) if reduces else 0.0
            self._spend(at, self._recv_cost_s(at), reducing_s)
        if self.shared is not None:
            self.shared.after_applies(at, cells)
        if self.rows is not None:
            self.rows.times[self.first_row + receives.rows, 4] = self.ready_s[at]

    def _spend(self, at: Index, overhead_s: FloatArray, reducing_s: FloatArray | float) -> None:
        """Let the processors of some actors work."""
        self.ready_s[at] = self._worked(at, overhead_s + reducing_s)
        if self.notes is None:
            return
        self.overhead_s[at] += overhead_s
        self.reducing_s[at] += reducing_s
        if self.send_costs or self.recv_costs:
            self.paths.keep("overhead")[at] += overhead_s
        if self.reduce_costs:
            self.paths.keep("reducing")[at] += reducing_s

    def _outlast(self, sends: SendRound, arrivals: Arrivals) -> None:
        """Rendezvous: a step lasts until the actor's own sends have arrived."""
        arrived_s = arrivals.time_s[sends.rows]
        later = arrived_s > self.ready_s[sends.at]
        if self.choices is not None:
            self.choices.note(later)
        self.paths.arrive(sends.at, later, {part: seconds[sends.rows] for part, seconds in arrivals.path.items()})
        self.ready_s[sends.at] = np.maximum(self.ready_s[sends.at], arrived_s)

    def link_bytes(self) -> tuple[IntArray, IntArray]:
        """Return the transfers that each used link carried in one run, and the bytes, shape (n_used,)."""
        n_transfers, n_bytes = (np.zeros(len(self.used), dtype=np.int64) for _ in range(2))
        for rounds in self.maker.made:
            if (carried := self.carried.get(id(rounds))) is None:
                continue
            by_row = carried.by_row
            for sends in rounds.sends:
                for hop in sends.hops:
                    n_transfers[hop.at] += carried.n_steps
                    n_bytes[hop.at] += by_row[sends.rows][hop.rows]
        return n_transfers, n_bytes

    def actor_bytes(self) -> tuple[IntArray, IntArray]:
        """Return the bytes that each actor sent and received, for one size."""
        sent, received = (np.zeros(len(self.ready_s), dtype=np.int64) for _ in range(2))
        for rounds in self.maker.made:
            if id(rounds) in self.carried:
                by_row = self.carried[id(rounds)].by_row
                for sends in rounds.sends:
                    sent[sends.actors] += by_row[sends.rows]
                for receives in rounds.receives:
                    received[receives.actors] += by_row[receives.rows]
        return sent, received


def _of_rows(n_bytes: Bytes, rows: Index) -> Bytes:
    return n_bytes if isinstance(n_bytes, int) else n_bytes[rows]


class LastUse:
    """When the last post, or apply, of each cell was done, and by what path. A cell is a chunk of a worker."""

    def __init__(self, n_cells: int) -> None:
        self.time_s = np.full(n_cells, -np.inf)
        self.path: Parts = {}

    def of(self, cells: IntArray) -> FloatArray:
        """Return when some cells were last used; long ago where they were not."""
        return self.time_s[cells]

    def forget(self, cells: IntArray) -> None:
        """Let some cells be as never used."""
        self.time_s[cells] = -np.inf

    def note(self, cells: IntArray, time_s: FloatArray, path: Parts, rank: IntArray) -> None:
        """Note what is done now, later than all before or with it; no cell stands twice."""
        del rank
        self._keep(cells, time_s, path)

    def _keep(self, cells: IntArray, time_s: FloatArray, path: Parts) -> None:
        self.time_s[cells] = time_s
        for part, seconds in path.items():
            if part not in self.path:
                self.path[part] = np.zeros(len(self.time_s))
            self.path[part][cells] = seconds


class LastPosts(LastUse):
    """Posts of several actors, which count together: of those that are done at once the first by step and channel."""

    def __init__(self, n_cells: int) -> None:
        super().__init__(n_cells)
        self.rank = np.zeros(n_cells, dtype=np.int64)

    def note(self, cells: IntArray, time_s: FloatArray, path: Parts, rank: IntArray) -> None:
        """Note posts that are done now, of one cell as many as there are channels; ``rank`` is by step and channel."""
        counts = (time_s > self.time_s[cells]) | ((time_s == self.time_s[cells]) & (rank < self.rank[cells]))
        rows = np.flatnonzero(counts)
        # The one that counts last, so that it stays.
        order = rows[np.lexsort((-rank[rows], time_s[rows]))]
        self.rank[cells[order]] = rank[order]
        self._keep(cells[order], time_s[order], {part: seconds[order] for part, seconds in path.items()})


class RecentUse:
    """`LastUse` of many runs, of those cells alone that somebody may still have to wait for.

    No actor goes back in time: what is done before all channels of a worker are ready for what comes next need not be
    known any more. So a few rows are enough where the cells, times runs, would fill a memory.
    """

    def __init__(self, schedule: Schedule, ready_s: FloatArray) -> None:
        self.path: Parts = {}  # which nobody asks for
        self.n_chunks, self.n_runs = schedule.n_chunks, ready_s.shape[1]
        self.ready_s = ready_s.reshape(schedule.n_workers, schedule.n_channels, self.n_runs)
        #: Of each cell its row; the first row is that of all cells for which nobody waits.
        self.row = np.zeros(schedule.n_workers * schedule.n_chunks, dtype=np.int32)
        self.n_rows, self.cell, self.time_s = (
            1,
            np.zeros(1, dtype=np.int64),
            np.full((1, self.n_runs), -np.inf),
        )

    def of(self, cells: IntArray) -> FloatArray | None:
        """Return when some cells were last used, long ago where nobody need know; None where that is all of them."""
        rows = self.row.take(cells)
        return self.time_s.take(rows, axis=0) if rows.any() else None

    def forget(self, cells: IntArray) -> None:
        """Let some cells be as never used."""
        self.row[cells] = 0

    def note(self, cells: IntArray, time_s: FloatArray, path: Parts, rank: IntArray) -> None:
        """Note what is done now, by one channel: no cell stands twice; of several uses the latest counts."""
        del path, rank
        if self.n_rows + len(cells) > len(self.cell):
            self._make_room(len(cells))
        new = slice(self.n_rows, self.n_rows + len(cells))
        before_s = self.of(cells)
        self.time_s[new] = time_s if before_s is None else np.maximum(before_s, time_s)
        self.cell[new], self.row[cells] = cells, np.arange(new.start, new.stop)
        self.n_rows = new.stop

    def _make_room(self, n_more: int) -> None:
        """Drop what nobody has to wait for; take more memory where much is left."""
        rows, cells = np.arange(self.n_rows), self.cell[: self.n_rows]
        passed_s = self.ready_s.min(axis=1).take(cells // self.n_chunks, axis=0)
        binds = (self.time_s[: self.n_rows] > passed_s).any(axis=1)
        is_last = self.row.take(cells) == rows
        self.row[cells[is_last & ~binds]] = 0
        kept = np.append(0, rows[is_last & binds])
        n_held = max(len(self.cell), MANY_USES * (len(kept) + n_more))
        cell, time_s = np.zeros(n_held, dtype=np.int64), np.empty((n_held, self.n_runs))
        cell[: len(kept)], time_s[: len(kept)] = self.cell[kept], self.time_s[kept]
        self.row[cell[1 : len(kept)]] = np.arange(1, len(kept))
        self.n_rows, self.cell, self.time_s = len(kept), cell, time_s


class SharedChunks:
    """Lets actors wait for what other actors of a worker have to do first with the same chunk.

    Parameters
    ----------
    schedule : Schedule
    ready_s : ndarray, shape (n_actors,) or (n_actors, n_runs)
        When each actor is ready; changed in place.
    paths : Paths
        Of the actors; changed in place.
    """

    def __init__(self, schedule: Schedule, ready_s: FloatArray, paths: Paths) -> None:
        self.ready_s, self.paths = ready_s, paths
        #: Of each actor by step and channel.
        self.rank = np.arange(len(ready_s)) % schedule.n_channels
        self.n_channels = schedule.n_channels
        self.applied: LastUse | RecentUse
        self.posted: LastUse | RecentUse
        if ready_s.ndim > 1:
            self.applied, self.posted = RecentUse(schedule, ready_s), RecentUse(schedule, ready_s)
        else:
            n_cells = schedule.n_workers * schedule.n_chunks
            self.applied, self.posted = LastUse(n_cells), LastPosts(n_cells)

    def end_step(self) -> None:
        """Go on to the next step, whose posts count after those of this one."""
        self.rank += self.n_channels

    def before_posts(self, actors: Index, cells: IntArray) -> None:
        """Let posts come after the last apply to their chunk."""
        self._give_way(actors, cells, self.applied)

    def after_posts(self, actors: Index, cells: IntArray) -> None:
        """Note posts, which are done now."""
        self._note(self.posted, actors, cells)

    def before_applies(self, actors: Index, cells: IntArray) -> None:
        """Let applies come after the last one to their chunk, and after all posts of the chunk since."""
        self._give_way(actors, cells, self.applied)
        self._give_way(actors, cells, self.posted)

    def after_applies(self, actors: Index, cells: IntArray) -> None:
        """Note applies, which are done now."""
        self._note(self.applied, actors, cells)
        self.posted.forget(cells)

    def _note(self, last: LastUse | RecentUse, actors: Index, cells: IntArray) -> None:
        last.note(cells, self.ready_s[actors], self.paths.leave(actors, copy=True), self.rank[actors])

    def _give_way(self, actors: Index, cells: IntArray, last: LastUse | RecentUse) -> None:
        ready_s, done_s = self.ready_s[actors], last.of(cells)
        if done_s is None:
            return
        if last.path:
            path = {part: seconds[cells] for part, seconds in last.path.items()}
            self.paths.arrive(actors, done_s > ready_s, path)
        self.ready_s[actors] = np.maximum(ready_s, done_s)
