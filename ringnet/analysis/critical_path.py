"""The critical path: from the end of the worker that ended last back through what really bound each moment.

Engines leave flat facts: when each transfer was posted, arrived and was applied, and when each link served it. Every
one of these times is the latest of a few others plus something of its own, so that going back from the end, always to
the latest, finds the chain that the time of the run is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ringnet.analysis.path_records import (
    NONE,
    PathRecords,
    Service,
    StepTransfers,
    WindowCredits,
    move_columns,
)
from ringnet.analysis.sharers import ChunkSharers, FlowSharers, ProcessorSharers
from ringnet.array_types import Array, BoolArray, FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import MOST_SERVICES, Columns, Led, Trace, Workers, schedule_columns
from ringnet.errors import InputError
from ringnet.networks import BySize, Network, OverTime, beyond


class PathPiece(NamedTuple):
    """A piece of a path: from when to when, and what it was that took the time.

    Parameters
    ----------
    from_s, to_s : float
        Seconds from the start of the run; a piece may be empty, as of a latency of zero.
    part : str
        One of `ringnet.engines.PATH_PARTS`.
    worker : int
        Whose overhead, reduction, launch or late start it is, switches numbered after workers; `NONE` for pieces on
        links.
    link : int
        Which link's latency or bandwidth it is; `NONE` for pieces of workers, for the latency of a whole route under
        fair sharing, and for that of the way back of a window's credit.
    transfer : int
        Row of the transfer; `NONE` for a late start, and for a launch, which is an overhead.
    queue : str
        Whether the next transfer on the path waited for this one to leave a link: ``own`` if both are the same
        worker's (which is bandwidth by another name), ``others`` if not; of a piece of queueing, whose it waited for.
    queued_s : float
        How long that one waited.
    behind : int
        Row of the transfer that it waited for: the one that the link served before or, of a flow, that of another
        sender which was on the link with it for the longest time; `NONE` if it is none of this run.
    owner : int
        The number of the job, or of other traffic, whose it is if it is none of this run; `NONE` where unknown.
    """

    from_s: float
    to_s: float
    part: str
    worker: int = NONE
    link: int = NONE
    transfer: int = NONE
    queue: str = ""
    queued_s: float = 0.0
    behind: int = NONE
    owner: int = NONE


@dataclass(frozen=True, eq=False)
class CriticalPath:
    """What the time of a run is made of, piece by piece.

    Parameters
    ----------
    columns : dict of str to ndarray, shape (n_pieces,)
        Pieces as columns, by the names of `PathPiece`, in order of time: each starts where the one before it ends, the
        first with the first worker, the last ends with the last one.
    moved : dict of str to ndarray
        ``phase, step, chunk, src, dst, bytes`` of each transfer that a piece is of, or that was waited for, in the
        order of ``transfers``.
    transfers : ndarray of int64
        Their rows, each once, ascending.
    """

    columns: Columns
    moved: Columns
    transfers: IntArray

    @cached_property
    def pieces(self) -> tuple[PathPiece, ...]:
        """The pieces one by one."""
        columns = [self.columns[name].tolist() for name in PathPiece._fields]
        return tuple(map(PathPiece, *columns))

    def of_pieces(self, name: str, none: int | None = None) -> Array:
        """Return for each piece what a column of ``moved`` says of its transfer; ``none`` of a start or a launch."""
        return self._cells(name, self._places, none)

    def behind(self, name: str) -> Array:
        """Return for each piece what a column of ``moved`` says of the transfer that was waited for; None of none."""
        return self._cells(name, self._places_ahead, None)

    def _cells(self, name: str, places: IntArray, none: int | None) -> Array:
        column = self.moved[name]
        if places.max(initial=NONE) < len(column):
            return column[places]
        cells = np.empty(len(column) + 1, dtype=object if none is None else column.dtype)
        cells[:-1], cells[-1] = column, none
        return cells[places]

    @cached_property
    def _places(self) -> IntArray:
        return self._placed("transfer")

    @cached_property
    def _places_ahead(self) -> IntArray:
        return self._placed("behind")

    def _placed(self, name: str) -> IntArray:
        """Return where the transfer of each piece is in ``transfers``; after the last for what is of none."""
        transfers = self.columns[name]
        places = np.searchsorted(self.transfers, transfers)
        return np.where(transfers == NONE, len(self.transfers), places)

    @property
    def starter(self) -> int:
        """The worker whose start the path leaves."""
        return int(self.columns["worker"][0])

    @cached_property
    def lasts_s(self) -> FloatArray:
        """How long each piece lasts, shape (n_pieces,)."""
        lasts_s: FloatArray = self.columns["to_s"] - self.columns["from_s"]
        return lasts_s

    def part_s(self, part: str) -> float:
        """Return how long all pieces of a part take."""
        total_s: float = sum(self.lasts_s[self.columns["part"] == part].tolist())
        return total_s

    def queued_behind(self) -> dict[tuple[int | None, int], float]:
        """Return how long the path queued behind others: by worker and owner, as pieces have them, longest first."""
        found: dict[tuple[int | None, int], float] = {}
        others = np.flatnonzero(self.columns["queue"] == "others").tolist()
        in_front, owner, queued_s = self.behind("src"), self.columns["owner"], self.columns["queued_s"]
        for row in others:
            who = in_front[row], int(owner[row])
            found[who] = found.get(who, 0.0) + float(queued_s[row])
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def seconds(self, n_links: int, n_workers: int) -> tuple[FloatArray, FloatArray]:
        """Return how long the path is on the way through each link, latency apart, and at each worker."""
        link, worker = self.columns["link"], self.columns["worker"]
        through = (link != NONE) & (self.columns["part"] != "latency")
        within = ~through & (worker > NONE) & (worker < n_workers)
        on_links: FloatArray = np.bincount(link[through], self.lasts_s[through], n_links).astype(np.float64)
        at_workers = np.bincount(worker[within], self.lasts_s[within], n_workers).astype(np.float64)
        return on_links, at_workers


def why_no_path(network: Network, workers: Workers, trace: Trace | None) -> str | None:
    """Return why the path of a run cannot be walked, in words, as far as that is known before it; None where it can."""
    if reason := beyond(network, (BySize, OverTime), fair=True, window=True, packets=True) or workers.chance:
        return reason
    if trace is None or trace.recall is not None:
        return None
    if trace.times is None:
        return f"times of transfers are left out: {trace.n_transfers:,} transfers are more than are kept unasked"
    if trace.services is None:
        return f"transfers crossed links more than {MOST_SERVICES:,} times, which is more than is kept"
    return None


def critical_path(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    trace: Trace,
    *,
    behind_others: bool = True,
) -> CriticalPath:
    """Return the path that ended last.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    trace : Trace
        What a run of the other four left behind, with its rows or with what makes them again.
    behind_others : bool
        Whether the path goes on with what a link served before, also where another worker sent that; else the wait is a
        piece of queueing, and the path goes on with the transfer that waited.

    Raises
    ------
    InputError
        If it cannot be walked; it says why. See `why_no_path`.

    Notes
    -----
    Where two things end at the same time either is a path, and one rule says which is told, whatever ran and for the
    columns ``path_<part>_s`` alike: the end of the first worker, and there of its last channel; what arrives before
    what its receiver did until then, that before uses of the chunk by other channels (the last apply, then posts by
    step and channel), those before the processor; the sender of a rendezvous before its receiver; what was applied
    before the arrival of what was sent; a head before what its link served until then, a tail that came before the
    bytes that passed.

    A transfer that waited for a link goes back to the one that the link served before it: that is where time can be
    won. What other jobs and other traffic did before is not known: there the wait itself is a piece, of queueing, and
    the path goes on with the transfer that waited. Under fair sharing a transfer is one piece of latency, one of
    bandwidth and one of queueing, which is what it lost to flows of other senders, under the name of the link that kept
    it from having more in the end; what it lost to those of its own sender is bandwidth. Packets of a transfer
    that follow each other over a link are one piece; what waits for a window's credit goes back to what gave it: the
    arrival of an earlier slot, or an apply, and from there the latency of the way back.
    """
    if reason := why_no_path(network, workers, trace):
        raise InputError(f"there is no critical path: {reason}")
    if trace.recall is not None:
        return _made_again(trace.recall(), schedule, network, workers, chunk_bytes, trace)
    walk = _Walk(schedule, network, workers, chunk_bytes, trace, behind_others)
    pieces = zip(*reversed(walk.pieces()), strict=True)
    kinds = (float, float, object, *[np.int64] * 3, object, float, np.int64, np.int64)
    columns = {
        name: np.array(cells, dtype=kind) for name, cells, kind in zip(PathPiece._fields, pieces, kinds, strict=True)
    }
    transfers = np.unique((columns["transfer"], columns["behind"]))
    transfers = transfers[transfers != NONE]
    return CriticalPath(columns, walk.transfers.columns(transfers.tolist()), transfers)


def _made_again(
    led: Led, schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, trace: Trace
) -> CriticalPath:
    """Return the path over all that was passed, in order: each time is the one before it and what that took.

    These are the sums that the run itself made, one addition after the other, so that the last one is its end, to the
    last bit.
    """
    # The last was passed first; before all others the start.
    names = ("latency", "bandwidth", "post", "apply", "queue")
    code = {name: number for number, name in enumerate(names)}.__getitem__
    coded = np.fromiter(map(code, led.what[-2::-1]), dtype=np.int64, count=len(led.what) - 1)
    step, row, at = np.array([led.step, led.row, led.at])[:, -2::-1]
    worker = at // schedule.n_channels
    moved, place, reduces = _moved(step, row, schedule, chunk_bytes)
    n_bytes, starter = moved.moved["bytes"][place], led.at[-1] // schedule.n_channels
    is_latency, is_bandwidth, is_post, is_apply, is_queue = (coded == number for number in range(len(names)))
    reduces &= is_apply
    takes_s, overhead_s, reducing_s = np.zeros((3, len(coded)))
    takes_s[is_latency] = network.latency_s[at[is_latency]]
    takes_s[is_bandwidth] = n_bytes[is_bandwidth] / network.bandwidth_Bps[at[is_bandwidth]]
    takes_s[is_post] = workers.send_overhead_s[worker[is_post]]
    overhead_s[is_apply] = workers.recv_overhead_s[worker[is_apply]]
    reducing_s[reduces] = n_bytes[reduces] / workers.reduce_Bps[worker[reduces]]
    takes_s[is_apply] = overhead_s[is_apply] + reducing_s[is_apply]
    first_s = [float(trace.workers["start_s"].min()), float(workers.start_s[starter])]
    if workers.launch_s[starter]:
        first_s.append(float(workers.launched_s[starter]))
    times_s = np.cumsum(np.concatenate((first_s[-1:], takes_s)))
    from_s, to_s = times_s[:-1], times_s[1:]
    # An apply that reduces is two pieces, a queue is none but a note.
    parted_s = np.where(reducing_s != 0, np.minimum(from_s + overhead_s, to_s), to_s)
    pieces = np.repeat(np.arange(len(coded)), np.where(is_queue, 0, 1 + reduces))
    second = np.diff(pieces, prepend=NONE) == 0
    at_link = (is_latency | is_bandwidth)[pieces]
    # What is posted or applied is overhead, but for the second piece of an apply.
    parts = np.array((*names[:2], "overhead", "reducing"), dtype=object)
    columns = {
        "from_s": np.where(second, parted_s[pieces], from_s[pieces]),
        "to_s": np.where(second | ~is_apply[pieces], to_s[pieces], parted_s[pieces]),
        "part": parts[np.where(second, 3, np.minimum(coded[pieces], 2))],
        "worker": np.where(at_link, NONE, worker[pieces]),
        "link": np.where(at_link, at[pieces], NONE),
        "transfer": moved.transfers[place][pieces],
        "queue": np.full(len(pieces), "", dtype=object),
        "queued_s": np.zeros(len(pieces)),
        **{name: np.full(len(pieces), NONE) for name in ("behind", "owner")},
    }
    n_first = len(first_s) - 1
    before = PathPiece(0.0, 0.0, "", starter)._asdict() | {
        "from_s": first_s[:-1], "to_s": first_s[1:], "part": ["waiting", "overhead"][:n_first],
    }  # fmt: skip
    columns = {
        name: np.concatenate((np.array(np.broadcast_to(before[name], n_first), dtype=column.dtype), column))
        for name, column in columns.items()
    }
    ends = n_first + np.searchsorted(pieces, np.flatnonzero(is_queue))
    # What is passed before a queue, in time, is of the transfer that the link served before.
    ahead = moved.transfers[place][np.flatnonzero(is_queue) - 1]
    _note_own_queues(columns, ends, np.array(led.waited_s)[-2::-1][is_queue], to_s[is_queue], ahead)
    return replace(moved, columns=columns)


def _note_own_queues(
    columns: Columns, ends: IntArray, waited_s: FloatArray, now_s: FloatArray, ahead: IntArray
) -> None:
    """Note that what came after so many pieces waited for the one before it that lasts, of the same sender."""
    lasts = np.flatnonzero(columns["to_s"] > columns["from_s"])
    places = np.searchsorted(lasts, ends) - 1
    notes = (places >= 0) & ~(waited_s <= ROUNDING * now_s)  # how long is not always known
    places, first = np.unique(lasts[places[notes]], return_index=True)
    columns["queue"][places] = "own"
    columns["queued_s"][places] = waited_s[notes][first]
    columns["behind"][places] = ahead[notes][first]


def _moved(
    steps: IntArray, rows: IntArray, schedule: Schedule, chunk_bytes: IntArray
) -> tuple[CriticalPath, IntArray, BoolArray]:
    """Look up transfers by step and row, in one go through the schedule.

    Returns a path of no pieces that has them; which of these each is, and whether it is reduced.
    """
    width = int(rows.max(initial=0)) + 1
    keys, place = np.unique(steps * width + rows, return_inverse=True)
    wanted = iter((keys % width).tolist())
    counts = np.bincount(keys // width, minlength=schedule.n_steps).tolist()
    cells, transfers, before = list[Any](), list[int](), 0
    for step, count in zip(schedule.steps(), counts, strict=True):
        for row in islice(wanted, count):
            chunks = 1 if step.count is None else step.count.item(row)
            ends = step.chunk.item(row), step.src.item(row), step.dst.item(row)
            cells += (step.phase, step.step, *ends, chunks, step.op == "reduce")
            transfers.append(before + row)
        before += len(step)
    *found, n_chunks, is_reduced = (cells[name::7] for name in range(7))
    until, first = np.concatenate(([0], np.cumsum(chunk_bytes))), np.array(found[2], dtype=np.int64)
    n_bytes = until[first + np.array(n_chunks, dtype=np.int64)] - until[first]
    moved = move_columns([*found, n_bytes.tolist()])
    path = CriticalPath({}, moved, np.array(transfers, dtype=np.int64))
    return path, place, np.array(is_reduced, dtype=np.bool_)[place]


class Queued(NamedTuple):
    """What the next piece that is put down tells of who waited, as `PathPiece` has it."""

    queue: str = ""
    queued_s: float = 0.0
    behind: int = NONE
    owner: int = NONE


NO_QUEUE = Queued()


class Came(NamedTuple):
    """Something that happened, and how to go on back from it."""

    time_s: float
    back: Callable[..., Came | None]
    of: tuple[Any, ...] = ()


class _Walk:
    """The way back. Each method that takes it further puts down pieces, and returns what came before."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        trace: Trace,
        behind_others: bool,
    ) -> None:
        self.behind_others = behind_others
        self.schedule, self.workers = schedule, workers.with_switches(schedule, network)
        self.starts_s, self.ends_s = trace.workers["start_s"], trace.workers["end_s"]
        self.launched_s = self.workers.launched_s.tolist()
        self.rendezvous = workers.sends == "rendezvous"
        self.cut_through = network.switching == "cut-through"
        self.transfers = StepTransfers(schedule, chunk_bytes)
        self.records = PathRecords(network, trace, self.transfers)
        self.chunks = self.processors = self.credits = None
        if schedule.n_channels > 1 and schedule.channels_share_chunks:
            self.chunks = ChunkSharers(schedule)
        all_s = self.workers.send_overhead_s + self.workers.recv_overhead_s + 1 / self.workers.reduce_Bps
        queues_at_processors = schedule.n_channels > 1 and all_s.any()
        if queues_at_processors or network.window is not None:
            rows = trace.transfers
            if rows is None:
                assert trace.times is not None
                rows = schedule_columns(schedule, chunk_bytes) | trace.times
            self.processors = ProcessorSharers(self.workers, rows) if queues_at_processors else None
            self.credits = WindowCredits(network, self.records, rows) if network.window else None
        self._pieces: list[PathPiece] = []
        self._queue = NO_QUEUE

    @cached_property
    def sharers(self) -> FlowSharers:
        """Who was on a link with a flow; asked for where one lost time to others."""
        return FlowSharers(self.schedule, self.records)

    def pieces(self) -> list[PathPiece]:
        """Return the pieces, the last first."""
        worker = int(self.ends_s.argmax())
        self.now_s = float(self.ends_s[worker])
        first = worker * self.schedule.n_channels
        actors = range(first, first + self.schedule.n_channels)
        came: Came | None = self._latest([self._ready(actor, self.schedule.n_steps) for actor in reversed(actors)])
        while came is not None:
            came = came.back(*came.of)
        return self._pieces

    def _put(self, from_s: float, part: str, **of: Any) -> None:
        """Put down a piece from ``from_s`` to where the walk is, which goes on from there."""
        if self._goes_on(part, of):
            self._pieces[-1] = self._pieces[-1]._replace(from_s=from_s)
            self.now_s = from_s
            return
        if from_s < self.now_s and self._queue.queue:
            of |= self._queue._asdict()
            self._queue = NO_QUEUE
        self._pieces.append(PathPiece(from_s, self.now_s, part, **of))
        self.now_s = from_s

    def _put_work(self, from_s: float, part: str, *, worker: int, transfer: int = NONE) -> None:
        """Put down what a processor did: of a worker in trouble with the pauses between, in which it waits."""
        pace = self.workers.paces.get(worker)
        for begin_s, end_s in reversed(pace.pauses() if pace is not None else []):
            if begin_s < self.now_s and end_s > from_s:
                self._put(min(max(end_s, from_s), self.now_s), part, worker=worker, transfer=transfer)
                self._put(max(begin_s, from_s), "waiting", worker=worker, transfer=transfer)
        self._put(from_s, part, worker=worker, transfer=transfer)

    def _goes_on(self, part: str, of: dict[str, Any]) -> bool:
        """Whether a piece is of the same transfer over the same link as the one after it: of two parts of it."""
        if part != "bandwidth" or not self._pieces or self._queue.queue:
            return False
        last = self._pieces[-1]
        return (last.part, last.link, last.transfer) == (part, of["link"], of["transfer"])

    @staticmethod
    def _latest(came: list[Came]) -> Came:
        return max(came, key=lambda one: one.time_s)

    # ---------------------------------------------------------------------------------------------- workers

    def _ready(self, actor: int, step: int) -> Came:
        """When an actor is ready for a step: since the last one before it in which it had something to do."""
        for before in range(step - 1, -1, -1):
            if self.transfers.sends(actor, before) or self.transfers.owed(actor, before):
                return self._left(actor, before)
        worker = actor // self.schedule.n_channels
        return Came(self.launched_s[worker], self._start, (worker,))

    def _left(self, actor: int, step: int) -> Came:
        """When an actor left a step: in a rendezvous not before its own sends have arrived."""
        sends, owed = self.transfers.sends(actor, step), self.transfers.owed(actor, step)
        came = [self._applied(owed[-1]) if owed else self._posted(sends[-1])]
        if self.rendezvous:
            came += map(self._arrived, sends)
        latest, worker = self._latest(came), actor // self.schedule.n_channels
        if not self.rendezvous or worker not in self.workers.paces:
            return latest
        able_s = self.workers.paces[worker].end_s(latest.time_s, 0.0)
        return Came(able_s, self._resume, (worker, latest)) if able_s > latest.time_s else latest

    def _resume(self, worker: int, came: Came) -> Came:
        """Go back from the end of a pause, in which a worker left no step."""
        self._put(came.time_s, "waiting", worker=worker)
        return came

    def _posted(self, transfer: int) -> Came:
        return Came(self.records.time_s("posted_s", transfer), self._post, (transfer,))

    def _applied(self, transfer: int) -> Came:
        return Came(self.records.time_s("applied_s", transfer), self._apply, (transfer,))

    def _arrived(self, transfer: int) -> Came:
        return Came(self.records.time_s("arrived_s", transfer), self._arrival, (transfer,))

    def _start(self, worker: int) -> None:
        """Go back over the launch of a worker, and to the start of the first one."""
        if self.workers.launch_s[worker]:
            self._put_work(float(self.workers.start_s[worker]), "overhead", worker=worker)
        self._put(float(self.starts_s.min()), "waiting", worker=worker)

    def _post(self, transfer: int) -> Came:
        """Go back from a post: by the overhead of its sender to what the sender did before."""
        step, (actor, _) = self.transfers.step_of(transfer), self.transfers.actors(transfer)
        sends = self.transfers.sends(actor, step)
        place = sends.index(transfer)
        came = [self._posted(sends[place - 1]) if place else self._ready(actor, step)]
        if self.chunks is not None:
            came += self._uses(self.chunks.before_post(transfer))
        if self.processors is not None:
            came += self._uses(self.processors.before_post(transfer))
        begun = self._latest(came)
        self._put_work(begun.time_s, "overhead", worker=self.transfers.src(transfer), transfer=transfer)
        return begun

    def _apply(self, transfer: int) -> Came:
        """Go back from an apply: by reduction and overhead to the arrival, or to what the receiver did before."""
        step, (_, actor) = self.transfers.step_of(transfer), self.transfers.actors(transfer)
        worker = actor // self.schedule.n_channels
        owed, sends = self.transfers.owed(actor, step), self.transfers.sends(actor, step)
        place = owed.index(transfer)
        came = [self._arrived(transfer)]
        if place:
            came.append(self._applied(owed[place - 1]))
        else:
            came.append(self._posted(sends[-1]) if sends else self._ready(actor, step))
        if self.chunks is not None:
            came += self._uses(self.chunks.before_apply(transfer))
        if self.processors is not None:
            came += self._uses(self.processors.before_apply(transfer))
        begun = self._latest(came)
        if self.transfers.step(step).op == "reduce":
            reducing_s = float(self.transfers.n_bytes(transfer) / self.workers.reduce_Bps[worker])
            overhead_s = float(self.workers.recv_overhead_s[worker])
            pace = self.workers.paces.get(worker)
            reduced_s = begun.time_s + overhead_s if pace is None else pace.end_s(begun.time_s, overhead_s)
            reduced_s = reduced_s if reducing_s else self.now_s
            self._put_work(min(reduced_s, self.now_s), "reducing", worker=worker, transfer=transfer)
        self._put_work(begun.time_s, "overhead", worker=worker, transfer=transfer)
        return begun

    def _uses(self, uses: list[tuple[str, int]]) -> Iterator[Came]:
        for what, transfer in uses:
            yield self._posted(transfer) if what == "post" else self._applied(transfer)

    # ------------------------------------------------------------------------------------------------ links

    def _arrival(self, transfer: int) -> Came:
        last = self.records.of(transfer, self.records.last_hop(transfer))[-1]
        return self._flow(last) if self.records.is_flow(last) else self._tail(last)

    def _flow(self, at: Service) -> Came:
        """Go back from the end of a flow: over its bytes to when it began, and over the latency to when it was sent.

        What it lost to flows of other senders is told as one piece of queueing, whenever that was.
        """
        start_s, transfer, number = (
            self.records.start_s(at),
            self.records.transfer(at),
            self.records.number(at),
        )
        if others_s := self.records.others_s(at):
            self._queue = Queued("others", others_s, *self.sharers.longest(at))
            self._put(max(self.now_s - others_s, start_s), "queueing", **self._on_link(at))
        self._put(start_s, "bandwidth", **self._on_link(at))
        before = self.records.of(transfer)[number - 1] if number else None
        if before is not None and self.records.end_s(before) == start_s:  # parts of a transfer follow each other
            return Came(start_s, self._flow, (before,))
        entered = self._entered(at)
        self._put(entered.time_s, "latency", transfer=transfer)
        return entered

    def _tail(self, at: Service) -> Came:
        """From when a tail has crossed a link back to when it left the link's start: the latency."""
        end_s = self.records.end_s(at)
        self._put(end_s, "latency", **self._on_link(at))
        return Came(end_s, self._end, (at,))

    def _on_link(self, at: Service) -> dict[str, int]:
        return {"link": self.records.link(at), "transfer": self.records.transfer(at)}

    def _end(self, at: Service) -> Came:
        """Go back from the end of a service: all bytes have passed, and under cut-through the tail has come."""
        before = self.records.hop_before(at) if self.cut_through else None
        if before is not None and self.records.tail_s(before) >= self.records.end_s(at):
            return self._tail(before)
        start_s = self.records.start_s(at)
        self._put(start_s, "bandwidth", **self._on_link(at))
        return Came(start_s, self._begin, (at,))

    def _begin(self, at: Service) -> Came:
        """Go back from the begin of a service: the head has come, and the link is free."""
        head_s, start_s = self.records.head_s(at), self.records.start_s(at)
        ahead = self.records.ahead_of(at) if start_s > head_s else None
        if ahead is not None and self.records.is_ours(ahead) and (self.behind_others or self._is_own(ahead, at)):
            self._note_queue(at, ahead, start_s - head_s)
            return Came(self.records.end_s(ahead), self._end, (ahead,))
        if start_s - head_s > ROUNDING * start_s:
            owner = NONE if ahead is None else self.records.owner(ahead)
            self._queue = Queued("others", start_s - head_s, NONE, owner)
            self._put(head_s, "queueing", **self._on_link(at))
        before = self.records.hop_before(at)
        if before is None:
            return self._entered(at)
        if not self.cut_through:
            return self._tail(before)
        self._put(self.records.start_s(before), "latency", **self._on_link(before))
        return Came(self.now_s, self._begin, (before,))

    def _note_queue(self, at: Service, ahead: Service, waited_s: float) -> None:
        """Note that a service waited for the one ahead; parts of one transfer do not wait for each other."""
        waits = waited_s > ROUNDING * self.records.start_s(at)
        if waits and self.records.transfer(at) != self.records.transfer(ahead):
            whose = "own" if self._is_own(ahead, at) else "others"
            self._queue = Queued(whose, waited_s, self.records.transfer(ahead))

    def _is_own(self, ahead: Service, at: Service) -> bool:
        one, other = (self.transfers.src(self.records.transfer(service)) for service in (ahead, at))
        return one == other

    def _entered(self, at: Service) -> Came:
        """Go back from when a transfer, or a part of it, went on to its route: released, and given credit."""
        transfer, entered_s = self.records.transfer(at), self.records.head_s(at)
        released = self._released(transfer)
        if self.credits is None or entered_s <= released.time_s:
            return released
        gave = self.credits.gave(transfer, entered_s)
        if gave is None:  # nothing is known of it but that it waited
            self._put(released.time_s, "queueing", transfer=transfer)
            return released
        other, arrived = gave
        came = self._applied(other) if arrived is None else self._slot_arrived(arrived)
        self._put(came.time_s, "latency", transfer=transfer)
        return came

    def _slot_arrived(self, at: Service) -> Came:
        if self.records.is_flow(at):
            return Came(self.records.end_s(at), self._flow, (at,))
        return Came(self.records.tail_s(at), self._tail, (at,))

    def _released(self, transfer: int) -> Came:
        """Return since when a transfer is at its first link: it is posted, and (rendezvous) its receiver is there."""
        posted = self._posted(transfer)
        if not self.rendezvous:
            return posted
        _, receiver = self.transfers.actors(transfer)
        entered = self._ready(receiver, self.transfers.step_of(transfer))
        return self._latest([posted, entered])
