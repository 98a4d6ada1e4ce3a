"""The critical path: from the end of the worker that ended last back through what really bound each moment.

Engines leave flat facts: when each transfer was posted, arrived and was applied, and when each link served it. Every
one of these times is the latest of a few others plus something of its own, so that going back from the end, always to
the latest, finds the chain that the time of the run is made of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.path_records import (
    NONE,
    PathRecords,
    Service,
    StepTransfers,
    WindowCredits,
    move_columns,
)
from ringnet.analysis.sharers import ChunkSharers, ProcessorSharers
from ringnet.collectives import Schedule
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import Columns, Led, Trace, Workers
from ringnet.errors import InputError
from ringnet.networks import BySize, Network, OverTime, beyond

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


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
    """

    from_s: float
    to_s: float
    part: str
    worker: int = NONE
    link: int = NONE
    transfer: int = NONE
    queue: str = ""
    queued_s: float = 0.0


@dataclass(frozen=True)
class CriticalPath:
    """What the time of a run is made of, piece by piece.

    Parameters
    ----------
    pieces : tuple of PathPiece
        In order of time: each starts where the one before it ends, the first with the first worker, the last ends with
        the last one.
    """

    pieces: tuple[PathPiece, ...]
    #: ``phase, step, chunk, src, dst, bytes`` of each transfer that a piece is of, in the order of ``transfers``.
    moved: Columns = field(compare=False, repr=False)
    transfers: IntArray = field(compare=False, repr=False)

    def of_pieces(self, name: str) -> list[Any]:
        """Return for each piece what a column of ``moved`` says of its transfer; None of a start or a launch."""
        cells = [*self.moved[name].tolist(), None]
        return [cells[place] for place in self._places]

    @cached_property
    def _places(self) -> list[int]:
        """Where the transfer of each piece is in ``transfers``; after the last for what is of none."""
        transfers = np.array([piece.transfer for piece in self.pieces], dtype=np.int64)
        places = np.searchsorted(self.transfers, transfers)
        found: list[int] = np.where(transfers == NONE, len(self.transfers), places).tolist()
        return found

    @property
    def starter(self) -> int:
        """The worker whose start the path leaves."""
        return self.pieces[0].worker

    def part_s(self, part: str) -> float:
        """Return how long all pieces of a part take."""
        return sum(piece.to_s - piece.from_s for piece in self.pieces if piece.part == part)

    def seconds(self, n_links: int, n_workers: int) -> tuple[FloatArray, FloatArray]:
        """Return how long the path is on the way through each link, latency apart, and at each worker."""
        on_links, at_workers = np.zeros(n_links), np.zeros(n_workers)
        for piece in self.pieces:
            if piece.link != NONE and piece.part != "latency":
                on_links[piece.link] += piece.to_s - piece.from_s
            elif NONE < piece.worker < n_workers:
                at_workers[piece.worker] += piece.to_s - piece.from_s
        return on_links, at_workers


def why_no_path(network: Network, workers: Workers, trace: Trace | None) -> str | None:
    """Return why the path of a run cannot be walked, in words, as far as that is known before it; None where it can."""
    if reason := beyond(network, (BySize, OverTime), fair=True, window=True, packets=True) or workers.chance:
        return reason
    if trace is None or trace.recall is not None:
        return None
    if trace.transfers is None:
        return f"transfer rows are left out: {trace.n_transfers:,} transfers are more than are kept unasked"
    if trace.services is None:
        return "rows of services were not kept"
    return None


def critical_path(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, trace: Trace
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
    if trace.transfers is None and trace.recall is not None:
        led = trace.recall()
        led.reverse()
        return _made_again(
            led, schedule, network, workers, chunk_bytes, float(trace.workers["start_s"].min())
        )
    walk = _Walk(schedule, network, workers, chunk_bytes, trace)
    pieces = tuple(reversed(walk.pieces()))
    transfers = np.unique([piece.transfer for piece in pieces if piece.transfer != NONE]).astype(np.int64)
    return CriticalPath(pieces, walk.transfers.columns(transfers.tolist()), transfers)


def _made_again(
    led: list[Led],
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    start_s: float,
) -> CriticalPath:
    """Return the path over all that was passed, in order: each time is the one before it and what that took.

    These are the sums that the run itself made, so that the last one is its end, to the last bit.
    """
    moved = _moved(led, schedule, chunk_bytes)
    n_channels, pieces, now_s = schedule.n_channels, list[PathPiece](), start_s
    bandwidth_Bps, latency_s = network.bandwidth_Bps.tolist(), network.latency_s.tolist()
    send_s, recv_s = workers.send_overhead_s.tolist(), workers.recv_overhead_s.tolist()
    reduce_Bps = workers.reduce_Bps.tolist()
    for what, step, row, at, waited_s in led:
        worker, then_s = at // n_channels, now_s
        if what == "start":
            now_s = float(workers.start_s[worker])
            pieces.append(PathPiece(then_s, now_s, "waiting", worker))
            if workers.launch_s[worker]:
                then_s, now_s = now_s, float(workers.launched_s[worker])
                pieces.append(PathPiece(then_s, now_s, "overhead", worker))
            continue
        transfer, n_bytes, reduces = moved.of[step, row]
        if what == "latency":
            now_s += latency_s[at]
            pieces.append(PathPiece(then_s, now_s, what, NONE, at, transfer))
        elif what == "bandwidth":
            now_s += n_bytes / bandwidth_Bps[at]
            pieces.append(PathPiece(then_s, now_s, what, NONE, at, transfer))
        elif what == "queue":
            _note_own_queue(pieces, waited_s, now_s)
        elif what == "post":
            now_s += send_s[worker]
            pieces.append(PathPiece(then_s, now_s, "overhead", worker, NONE, transfer))
        else:
            overhead_s = recv_s[worker]
            reducing_s = n_bytes / reduce_Bps[worker] if reduces else 0.0
            now_s += overhead_s + reducing_s
            reduced_s = min(then_s + overhead_s, now_s) if reducing_s else now_s
            pieces.append(PathPiece(then_s, reduced_s, "overhead", worker, NONE, transfer))
            if reduces:
                pieces.append(PathPiece(reduced_s, now_s, "reducing", worker, NONE, transfer))
    return CriticalPath(tuple(pieces), moved.columns, moved.transfers)


def _note_own_queue(pieces: list[PathPiece], waited_s: float, now_s: float) -> None:
    """Note that what comes now waited for the transfer before it, of the same sender, to leave a link."""
    if waited_s <= ROUNDING * now_s:
        return
    for place in range(len(pieces) - 1, -1, -1):
        if pieces[place].to_s > pieces[place].from_s:
            if not pieces[place].queue:
                pieces[place] = pieces[place]._replace(queue="own", queued_s=waited_s)
            return


class _OfPath(NamedTuple):
    """The transfers of a path: number, bytes and whether it is reduced by step and row; `CriticalPath` has the rest."""

    of: dict[tuple[int, int], tuple[int, int, bool]]
    columns: Columns
    transfers: IntArray


def _moved(led: list[Led], schedule: Schedule, chunk_bytes: IntArray) -> _OfPath:
    """Look up the transfers of a path, in one go through the schedule."""
    rows: dict[int, set[int]] = defaultdict(set)
    for one in led:
        if one.row != NONE:
            rows[one.step].add(one.row)
    found, cells, first = dict[tuple[int, int], tuple[int, int, bool]](), list[tuple[Any, ...]](), 0
    for number, step in enumerate(schedule.steps()):
        for row in sorted(rows.get(number, ())):
            chunk, count = int(step.chunk[row]), 1 if step.count is None else int(step.count[row])
            n_bytes = int(chunk_bytes[chunk]) if count == 1 else int(chunk_bytes[chunk : chunk + count].sum())
            found[number, row] = first + row, n_bytes, step.op == "reduce"
            cells.append((step.phase, step.step, chunk, int(step.src[row]), int(step.dst[row]), n_bytes))
        first += len(step)
    return _OfPath(
        found, move_columns(cells), np.array([number for number, *_ in found.values()], dtype=np.int64)
    )


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
    ) -> None:
        self.schedule, self.workers = schedule, workers.with_switches(schedule, network)
        self.starts_s, self.ends_s = trace.workers["start_s"], trace.workers["end_s"]
        self.launched_s = self.workers.launched_s.tolist()
        self.rendezvous = workers.sends == "rendezvous"
        self.cut_through = network.switching == "cut-through"
        self.transfers = StepTransfers(schedule, chunk_bytes)
        self.records = PathRecords(network, trace, self.transfers)
        self.chunks = self.processors = self.credits = None
        assert trace.transfers is not None
        if schedule.n_channels > 1:
            self.chunks = ChunkSharers(schedule) if schedule.channels_share_chunks else None
            self.processors = ProcessorSharers(self.workers, trace.transfers)
        if network.window is not None:
            self.credits = WindowCredits(network, self.records, trace.transfers)
        self._pieces: list[PathPiece] = []
        self._queue: tuple[str, float] = "", 0.0

    def pieces(self) -> list[PathPiece]:
        """Return the pieces, the last first."""
        worker = int(self.ends_s.argmax())
        self.now_s = float(self.ends_s[worker])
        first = worker * self.schedule.n_channels
        actors = range(first, first + self.schedule.n_channels)
        came: Came | None = self._latest(
            [self._ready(actor, self.schedule.n_steps) for actor in reversed(actors)]
        )
        while came is not None:
            came = came.back(*came.of)
        return self._pieces

    def _put(self, from_s: float, part: str, **of: Any) -> None:
        """Put down a piece from ``from_s`` to where the walk is, which goes on from there."""
        if self._goes_on(part, of):
            self._pieces[-1] = self._pieces[-1]._replace(from_s=from_s)
            self.now_s = from_s
            return
        if from_s < self.now_s and self._queue[0]:
            of |= dict(zip(("queue", "queued_s"), self._queue, strict=True))
            self._queue = "", 0.0
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
        if part != "bandwidth" or not self._pieces or self._queue[0]:
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
            self._queue = "others", others_s
            self._put(max(self.now_s - others_s, start_s), "queueing", **self._on_link(at))
        self._put(start_s, "bandwidth", **self._on_link(at))
        before = self.records.of(transfer)[number - 1] if number else None
        if (
            before is not None and self.records.end_s(before) == start_s
        ):  # parts of a transfer follow each other
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
        if ahead is not None and self.records.is_ours(ahead):
            self._note_queue(at, ahead, start_s - head_s)
            return Came(self.records.end_s(ahead), self._end, (ahead,))
        if start_s - head_s > ROUNDING * start_s:
            self._queue = "others", start_s - head_s
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
            self._queue = "own" if self._sender(at) == self._sender(ahead) else "others", waited_s

    def _sender(self, at: Service) -> int:
        return self.transfers.src(self.records.transfer(at))

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
