"""The critical path: from the end of the worker that ended last back through what really bound each moment.

Engines leave flat facts: when each transfer was posted, arrived and was applied, and when each link served it. Every
one of these times is the latest of a few others plus something of its own, so that going back from the end, always to
the latest, finds the chain that the time of the run is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.sharers import ChunkSharers, ProcessorSharers
from ringnet.collectives import Schedule, Step
from ringnet.engines.sharing import resolve_sharing, used_routes
from ringnet.engines.trace import FLOW, ROUNDING, Columns, Trace, Workers
from ringnet.errors import InputError
from ringnet.networks import BySize, Network, OverTime, beyond

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

#: Stands for no worker, no link, no transfer.
NONE = -1


class PathPiece(NamedTuple):
    """A piece of a path: from when to when, and what it was that took the time.

    Parameters
    ----------
    from_s, to_s : float
        Seconds from the start of the run; a piece may be empty, as of a latency of zero.
    part : str
        One of `ringnet.engines.PATH_PARTS`.
    worker : int
        Whose overhead, reduction or late start it is, switches numbered after workers; `NONE` for pieces on links.
    link : int
        Which link's latency or bandwidth it is; `NONE` for pieces of workers.
    transfer : int
        Row of the transfer; `NONE` for a late start.
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

    @property
    def starter(self) -> int:
        """The worker whose start the path leaves."""
        return self.pieces[0].worker

    @property
    def is_whole(self) -> bool:
        """Whether every piece is what a link or a worker took, none a wait for what is not known further."""
        return all(piece.part != "queueing" for piece in self.pieces)


def why_no_path(network: Network, trace: Trace) -> str | None:
    """Return why the path of a run cannot be walked, in words; None where it can."""
    if reason := beyond(network, (BySize, OverTime), fair=True):
        return reason
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
        What a run of the other four left behind, with its rows.

    Raises
    ------
    InputError
        If it cannot be walked; it says why. See `why_no_path`.

    Notes
    -----
    Where two things end at the same time either is the path; a transfer that arrives is preferred to a worker that is
    ready for it. A transfer that waited for a link goes back to the one that the link served before it: that is where
    time can be won. What other jobs and other traffic did before is not known: there the wait itself is a piece, of
    queueing, and the path goes on with the transfer that waited. Under fair sharing a transfer is one piece of latency
    and one of bandwidth, under the name of the link that kept it from having more in the end, shared or not.
    """
    if reason := why_no_path(network, trace):
        raise InputError(f"there is no critical path: {reason}")
    walk = _Walk(schedule, network, workers, chunk_bytes, trace)
    return CriticalPath(tuple(reversed(walk.pieces())))


def own_part_of_queueing(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, trace: Trace
) -> float | None:
    """Return how much of the queueing on the path that ended last was behind transfers of the same sender, 0 to 1.

    Parameters are those of `critical_path`. Here the path goes on with the transfer that waited, as the columns
    ``path_<part>_s`` have it, and each wait is parted by whom the link served meanwhile.

    Returns
    -------
    float or None
        None where nothing waited, or where nobody knows.
    """
    if network.window is None and trace.until_s is None and used_by_one_each(schedule, network):
        return 1.0
    if why_no_path(network, trace):
        return None
    walk = _Walk(schedule, network, workers, chunk_bytes, trace, goes_to_who_blocks=False)
    walk.pieces()
    own_s, all_s = walk.waited_s
    return own_s / all_s if all_s else None


def used_by_one_each(schedule: Schedule, network: Network) -> bool:
    """Whether every link carries the transfers of one sender only."""
    return resolve_sharing(replace(network, sharing="auto"), used_routes(0, schedule, network)) == "fifo"


class Came(NamedTuple):
    """Something that happened, and how to go on back from it."""

    time_s: float
    back: Callable[..., Came | None]
    of: tuple[int, ...] = ()


class _Walk:
    """The way back. Each method that takes it further puts down pieces, and returns what came before."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        trace: Trace,
        *,
        goes_to_who_blocks: bool = True,
    ) -> None:
        self.goes_to_who_blocks = goes_to_who_blocks
        #: Where it does not: seconds waited behind transfers of the same sender, and behind anything.
        self.waited_s = np.zeros(2)
        assert trace.transfers is not None
        assert trace.services is not None
        self.schedule, self.network, self.trace = schedule, network, trace
        self.workers = workers = workers.with_switches(schedule, network)
        self.rows, self.ends_s = trace.transfers, trace.workers["end_s"]
        self.rendezvous = workers.sends == "rendezvous"
        self.cut_through = network.switching == "cut-through"
        self.program = _Program(schedule)
        self.services = _Services(trace.services, network, self.rows["bytes"], trace.job)
        self.chunks = ChunkSharers(schedule) if schedule.n_channels > 1 else None
        self.processors = ProcessorSharers(workers, self.rows) if schedule.n_channels > 1 else None
        self._pieces: list[PathPiece] = []
        self._queue: tuple[str, float] = "", 0.0

    def pieces(self) -> list[PathPiece]:
        """Return the pieces, the last first."""
        worker = int(self.ends_s.argmax())
        self.now_s = float(self.ends_s[worker])
        actors = range(worker * self.schedule.n_channels, (worker + 1) * self.schedule.n_channels)
        came: Came | None = self._latest([self._ready(actor, self.schedule.n_steps) for actor in actors])
        while came is not None:
            came = came.back(*came.of)
        return self._pieces

    def _put(self, from_s: float, part: str, **of: Any) -> None:
        """Put down a piece from ``from_s`` to where the walk is, which goes on from there."""
        if from_s < self.now_s and self._queue[0]:
            of |= dict(zip(("queue", "queued_s"), self._queue, strict=True))
            self._queue = "", 0.0
        self._pieces.append(PathPiece(from_s, self.now_s, part, **of))
        self.now_s = from_s

    @staticmethod
    def _latest(came: list[Came]) -> Came:
        return max(came, key=lambda one: one.time_s)

    # ---------------------------------------------------------------------------------------------- workers

    def _ready(self, actor: int, step: int) -> Came:
        """When an actor is ready for a step: since the last one before it in which it had something to do."""
        for before in range(step - 1, -1, -1):
            if self.program.sends(actor, before) or self.program.owed(actor, before):
                return self._left(actor, before)
        worker = actor // self.schedule.n_channels
        return Came(float(self.workers.start_s[worker]), self._start, (worker,))

    def _left(self, actor: int, step: int) -> Came:
        """When an actor left a step: in a rendezvous not before its own sends have arrived."""
        sends, owed = self.program.sends(actor, step), self.program.owed(actor, step)
        came = [self._applied(owed[-1]) if owed else self._posted(sends[-1])]
        if self.rendezvous:
            came += map(self._arrived, sends)
        return self._latest(came)

    def _posted(self, transfer: int) -> Came:
        return Came(float(self.rows["posted_s"][transfer]), self._post, (transfer,))

    def _applied(self, transfer: int) -> Came:
        return Came(float(self.rows["applied_s"][transfer]), self._apply, (transfer,))

    def _arrived(self, transfer: int) -> Came:
        return Came(float(self.rows["arrived_s"][transfer]), self._arrival, (transfer,))

    def _start(self, worker: int) -> None:
        self._put(float(self.workers.start_s.min()), "waiting", worker=worker)

    def _post(self, transfer: int) -> Came:
        """Go back from a post: by the overhead of its sender to what the sender did before."""
        step, (actor, _) = self.program.step_of(transfer), self.program.actors(transfer)
        sends = self.program.sends(actor, step)
        place = sends.index(transfer)
        came = [self._posted(sends[place - 1]) if place else self._ready(actor, step)]
        if self.chunks is not None and self.processors is not None:
            came += self._uses(self.chunks.before_post(transfer))
            came += self._uses(self.processors.before_post(transfer))
        begun = self._latest(came)
        self._put(begun.time_s, "overhead", worker=int(self.rows["src"][transfer]), transfer=transfer)
        return begun

    def _apply(self, transfer: int) -> Came:
        """Go back from an apply: by reduction and overhead to the arrival, or to what the receiver did before."""
        worker, step = int(self.rows["dst"][transfer]), self.program.step_of(transfer)
        _, actor = self.program.actors(transfer)
        owed, sends = self.program.owed(actor, step), self.program.sends(actor, step)
        place = owed.index(transfer)
        came = [self._arrived(transfer)]
        if place:
            came.append(self._applied(owed[place - 1]))
        else:
            came.append(self._posted(sends[-1]) if sends else self._ready(actor, step))
        if self.chunks is not None and self.processors is not None:
            came += self._uses(self.chunks.before_apply(transfer))
            came += self._uses(self.processors.before_apply(transfer))
        begun = self._latest(came)
        if self.rows["op"][transfer] == "reduce":
            reducing_s = float(self.rows["bytes"][transfer] / self.workers.reduce_Bps[worker])
            overhead_s = float(self.workers.recv_overhead_s[worker])
            reduced_s = begun.time_s + overhead_s if reducing_s else self.now_s
            self._put(min(reduced_s, self.now_s), "reducing", worker=worker, transfer=transfer)
        self._put(begun.time_s, "overhead", worker=worker, transfer=transfer)
        return begun

    def _uses(self, uses: list[tuple[str, int]]) -> Iterator[Came]:
        for what, transfer in uses:
            yield self._posted(transfer) if what == "post" else self._applied(transfer)

    # ------------------------------------------------------------------------------------------------ links

    def _arrival(self, transfer: int) -> Came:
        row = self.services.last_of(transfer)
        if not self.services.is_flow(row):
            return self._tail(row)
        self._put(self.services.start_s(row), "bandwidth", **self._on_link(row))
        released = self._released(transfer)
        self._put(released.time_s, "latency", transfer=transfer)
        return released

    def _tail(self, row: int) -> Came:
        """From when a tail has crossed a link back to when it left the link's start: the latency."""
        end_s = self.services.end_s(row)
        self._put(end_s, "latency", **self._on_link(row))
        return Came(end_s, self._end, (row,))

    def _on_link(self, row: int) -> dict[str, int]:
        return {"link": self.services.link(row), "transfer": self.services.transfer(row)}

    def _end(self, row: int) -> Came:
        """Go back from the end of a service: all bytes have passed, and under cut-through the tail has come."""
        before = self.services.hop_before(row)
        if (
            self.cut_through
            and before is not None
            and self.services.tail_s(before) >= self.services.end_s(row)
        ):
            return self._tail(before)
        start_s = self.services.start_s(row)
        self._put(start_s, "bandwidth", **self._on_link(row))
        return Came(start_s, self._begin, (row,))

    def _begin(self, row: int) -> Came:
        """Go back from the begin of a service: the head has come, and the link is free."""
        head_s, start_s = self.services.head_s(row), self.services.start_s(row)
        if start_s - head_s > ROUNDING * start_s and not self.goes_to_who_blocks:
            self.waited_s += self._behind(row)
            self._put(head_s, "queueing", **self._on_link(row))
        elif start_s - head_s > ROUNDING * start_s:
            ahead = self.services.ahead_of(row)
            if self.services.is_ours(ahead):
                same = self._sender(row) == self._sender(ahead)
                self._queue = "own" if same else "others", start_s - head_s
                return Came(self.services.end_s(ahead), self._end, (ahead,))
            self._queue = "others", start_s - head_s
            self._put(head_s, "queueing", **self._on_link(row))
        before = self.services.hop_before(row)
        if before is None:
            return self._released(self.services.transfer(row))
        if not self.cut_through:
            return self._tail(before)
        self._put(self.services.start_s(before), "latency", **self._on_link(before))
        return Came(self.now_s, self._begin, (before,))

    def _behind(self, row: int) -> FloatArray:
        """Return how long a service waited for others of the same sender, and in all."""
        own_s, head_s = 0.0, self.services.head_s(row)
        ahead = self.services.ahead_of(row)
        while ahead != NONE and self.services.end_s(ahead) > head_s:
            if self.services.is_ours(ahead) and self._sender(row) == self._sender(ahead):
                own_s += self.services.end_s(ahead) - max(self.services.start_s(ahead), head_s)
            ahead = self.services.ahead_of(ahead)
        all_s = self.services.start_s(row) - head_s
        return np.array([min(own_s, all_s), all_s])

    def _sender(self, row: int) -> int:
        return int(self.rows["src"][self.services.transfer(row)])

    def _released(self, transfer: int) -> Came:
        """Return since when a transfer is at its first link: it is posted, and (rendezvous) its receiver is there."""
        posted = self._posted(transfer)
        if not self.rendezvous:
            return posted
        _, receiver = self.program.actors(transfer)
        entered = self._ready(receiver, self.program.step_of(transfer))
        return self._latest([posted, entered])


class _Program:
    """Which transfers each actor sends and is owed in each step; an actor is ``worker * n_channels + channel``."""

    def __init__(self, schedule: Schedule) -> None:
        self.n_channels = schedule.n_channels
        self.steps: list[Step] = list(schedule.steps())
        self.first = np.concatenate(([0], np.cumsum([len(step) for step in self.steps], dtype=np.int64)))
        self._found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    def step_of(self, transfer: int) -> int:
        """Return the number of the step, of the whole schedule, that a transfer is in."""
        return int(np.searchsorted(self.first, transfer, side="right")) - 1

    def actors(self, transfer: int) -> tuple[int, int]:
        """Return who sends a transfer and who receives it."""
        step = self.step_of(transfer)
        row, moves = transfer - int(self.first[step]), self.steps[step]
        sender = int(moves.src[row]) * self.n_channels + int(moves.channel[row])
        return sender, int(moves.dst[row]) * self.n_channels + int(moves.receiving_channel[row])

    def sends(self, actor: int, step: int) -> list[int]:
        """Return the transfers that an actor sends in a step, in its order."""
        return self._of(actor, step)[0]

    def owed(self, actor: int, step: int) -> list[int]:
        """Return the transfers that an actor is owed in a step, in the order in which it applies them: by source."""
        return self._of(actor, step)[1]

    def _of(self, actor: int, step: int) -> tuple[list[int], list[int]]:
        if (actor, step) not in self._found:
            worker, channel = divmod(actor, self.n_channels)
            moves, first = self.steps[step], int(self.first[step])
            sends = np.flatnonzero((moves.src == worker) & (moves.channel == channel))
            owed = np.flatnonzero((moves.dst == worker) & (moves.receiving_channel == channel))
            owed = owed[np.argsort(moves.src[owed], kind="stable")]
            self._found[actor, step] = (sends + first).tolist(), (owed + first).tolist()
        return self._found[actor, step]


class _Services:
    """Services of links, by row; those of this job's transfers also by transfer and hop."""

    def __init__(self, services: Columns, network: Network, n_bytes: IntArray, job: int) -> None:
        self.columns, self.network, self.n_bytes, self.job = services, network, n_bytes, job
        ours = np.flatnonzero(services["owner"] == job)
        n_hops = int(services["hop"][ours].max(initial=0)) + 1
        self.row = np.full((len(n_bytes), n_hops), NONE)
        self.row[services["transfer"][ours], np.maximum(services["hop"][ours], 0)] = ours
        # Those of each link stand in their order.
        order = np.argsort(services["link"], kind="stable")
        self.before = np.full(len(order), NONE)
        self.before[order[1:]] = order[:-1]

    def link(self, row: int) -> int:
        """Return which link serves."""
        return int(self.columns["link"][row])

    def transfer(self, row: int) -> int:
        """Return which transfer it serves."""
        return int(self.columns["transfer"][row])

    def is_flow(self, row: int) -> bool:
        """Whether it is all of a transfer, which shares its links with others."""
        return bool(self.columns["hop"][row] == FLOW)

    def is_ours(self, row: int) -> bool:
        """Whether it serves a transfer of this job."""
        return bool(self.columns["owner"][row] == self.job)

    def head_s(self, row: int) -> float:
        """Return when the head came."""
        return float(self.columns["head_s"][row])

    def start_s(self, row: int) -> float:
        """Return when the service begins."""
        return float(self.columns["start_s"][row])

    def end_s(self, row: int) -> float:
        """Return when it ends."""
        return float(self.columns["end_s"][row])

    def tail_s(self, row: int) -> float:
        """Return when the tail has crossed the link."""
        size, start_s = float(self.n_bytes[self.transfer(row)]), self.start_s(row)
        return self.end_s(row) + self.network.behaviour(self.link(row)).offer(size, start_s).latency_s

    def last_of(self, transfer: int) -> int:
        """Return the service on the last link of a transfer's route."""
        return int(self.row[transfer][self.row[transfer] != NONE][-1])

    def hop_before(self, row: int) -> int | None:
        """Return the service of the same transfer on the link before; None on the first."""
        hop = int(self.columns["hop"][row])
        return int(self.row[self.transfer(row), hop - 1]) if hop else None

    def ahead_of(self, row: int) -> int:
        """Return the service before, on the same link."""
        return int(self.before[row])
