"""What each message carries and what becomes of it: the values in the cells, followed from operation to operation.

A schedule of ringnet knows one value of a chunk at each worker; a file has buffers, and may keep what it
receives in scratch until it adds it. So a receive whose value waits somewhere is a reduce that is done when
the value is added, or a copy done when it is first used; what needs two values of a chunk at one gpu at once
is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import EVERY_WORKER, Op
from ringnet.errors import Fault
from ringnet.formats.msccl.thread_blocks import Cell, Execution, ScheduleFile, raise_all, refuse

# ---------------------------------------------- which cell holds which chunk at the start and at the end: input, output

#: ringnet's name of each collective, by MSCCL's.
COLLECTIVES = {
    "allreduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "allgather": "all-gather",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}


@dataclass(frozen=True)
class BufferLayout:
    """The chunks of a collective, numbered as ringnet does, and where a gpu has them.

    Chunks of a reduce-scatter, an all-gather or an all-to-all are numbered by worker: those of worker 0
    first.

    Parameters
    ----------
    collective : str
        As ringnet calls it.
    n_gpus, each : int
        Workers, and chunks of each where each has its own.
    in_place : bool
        Whether input and output are one buffer.
    source, target : ndarray of int64, shape (n_chunks,)
    """

    collective: str
    n_gpus: int
    each: int
    in_place: bool
    source: IntArray
    target: IntArray

    @classmethod
    def of(cls, schedule: ScheduleFile, file: str) -> BufferLayout:
        """Return that of a file, by its head."""
        if schedule.collective not in COLLECTIVES:
            message, right = "a collective that ringnet does not know", " | ".join(COLLECTIVES)
            refuse(file, 1, message, schedule.collective, right)
        collective = COLLECTIVES[schedule.collective]
        each = schedule.n_chunks
        if collective in {"reduce-scatter", "all-gather", "all-to-all"}:
            each, rest = divmod(schedule.n_chunks, schedule.n_gpus)
            if rest:
                right = f"a multiple of {schedule.n_gpus} gpus"
                refuse(file, 1, "nchunksperloop does not come out even", str(schedule.n_chunks), right)
        return make_layout(collective, schedule.n_gpus, each, schedule.root, in_place=schedule.in_place)

    @property
    def n_chunks(self) -> int:
        """All chunks."""
        return len(self.source)

    @property
    def n_buffers(self) -> int:
        """Buffers that they are cut from: see `Schedule`."""
        return self.n_gpus if self.collective == "all-to-all" else 1

    def canonical(self, gpu: int, cell: Cell) -> Cell:
        """Return the one name of a cell that may have two, where input and output share memory."""
        buffer, offset = cell
        if not self.in_place or buffer == "s":
            return cell
        if self.collective == "all-gather":
            return ("o", gpu * self.each + offset) if buffer == "i" else cell
        if self.collective == "reduce-scatter":
            return ("i", gpu * self.each + offset) if buffer == "o" else cell
        return "i", offset

    def chunks_at_start(self, gpu: int) -> dict[Cell, int]:
        """Return the chunks that a gpu has at the start, by cell."""
        mine = np.flatnonzero((self.source == EVERY_WORKER) | (self.source == gpu)).tolist()
        alone = self.collective in {"all-gather", "all-to-all"}
        return {self.canonical(gpu, ("i", place if alone else chunk)): chunk for place, chunk in enumerate(mine)}

    def cells_at_end(self, gpu: int) -> dict[int, Cell]:
        """Return the cells that must hold the chunks that a gpu is to have at the end, by chunk."""
        mine = np.flatnonzero((self.target == EVERY_WORKER) | (self.target == gpu)).tolist()
        alone = self.collective in {"reduce-scatter", "all-to-all"}
        return {chunk: self.canonical(gpu, ("o", place if alone else chunk)) for place, chunk in enumerate(mine)}


def make_layout(collective: str, n_gpus: int, each: int, root: int, *, in_place: bool) -> BufferLayout:
    """Return the layout of a collective: ``each`` chunks, of each worker where each has its own."""
    own = np.repeat(np.arange(n_gpus), each)
    everyone = np.full(each, EVERY_WORKER)
    source, target = {
        "all-reduce": (everyone, everyone),
        "reduce-scatter": (np.full(len(own), EVERY_WORKER), own),
        "all-gather": (own, np.full(len(own), EVERY_WORKER)),
        "all-to-all": (np.repeat(np.arange(n_gpus), n_gpus * each), np.tile(own, n_gpus)),
        "broadcast": (np.full(each, root), everyone),
        "reduce": (everyone, np.full(each, root)),
    }[collective]
    return BufferLayout(collective, n_gpus, each, in_place, source.astype(np.int64), target.astype(np.int64))


# ------------------------------------------------------------------------------------------ followed through a run


@dataclass(eq=False)
class Delivery:
    """One chunk of one message: sent by one operation, received by another, applied by that or by a third."""

    chunk: int
    sent: Execution
    received: Execution | None = None
    op: Op = "copy"
    applied: Execution | None = None


@dataclass(frozen=True)
class CellValue:
    """What a cell holds: the worker's value of a chunk as it was after so many changes, or what has just come."""

    chunk: int
    version: int
    waiting: Delivery | None = None


@dataclass(frozen=True)
class Access:
    """A chunk of a worker read by a send, or changed by what was received; in the order of the run."""

    delivery: Delivery
    changes: bool


@dataclass
class Dataflow:
    """All that is carried, and what happens to each chunk of each gpu, in order."""

    deliveries: list[Delivery] = field(default_factory=list)
    accesses: dict[tuple[int, int], list[Access]] = field(default_factory=lambda: defaultdict(list))


def follow(
    run: Sequence[Execution],
    layout: BufferLayout,
    file: str,
    copies: Sequence[Sequence[tuple[int, int]]] = (),
) -> Dataflow:
    """Follow every value through a run, before which each gpu copies some chunks from its input to its output.

    Raises
    ------
    ScheduleError
        A cell that nobody wrote is read, accesses race, chunks are mixed, or two values of a chunk are needed
        at once.
    """
    follower = _Follower(layout, file)
    follower.copy_first(copies)
    for done in run:
        follower.do(done)
    follower.end()
    return follower.flow


class _Follower:
    """The cells of all gpus while a run is followed: what each holds, who wrote it, who has read it since."""

    def __init__(self, layout: BufferLayout, file: str) -> None:
        self.layout, self.file, self.flow = layout, file, Dataflow()
        self.cells: dict[tuple[int, Cell], CellValue] = {
            (gpu, cell): CellValue(chunk, 0)
            for gpu in range(layout.n_gpus)
            for cell, chunk in layout.chunks_at_start(gpu).items()
        }
        self.versions: dict[tuple[int, int], int] = {(gpu, value.chunk): 0 for (gpu, _), value in self.cells.items()}
        self.wrote: dict[tuple[int, Cell], Execution] = {}
        self.read: dict[tuple[int, Cell], list[Execution]] = defaultdict(list)
        self.messages: dict[Execution, list[Delivery]] = defaultdict(list)

    def copy_first(self, copies: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Copy from input to output before anything is done; a copy of a gpu to itself is free."""
        for gpu, pairs in enumerate(copies):
            held = {
                self.layout.canonical(gpu, ("o", end)): self.cells.get((gpu, self.layout.canonical(gpu, ("i", start))))
                for start, end in pairs
            }
            for cell, value in held.items():
                if value is not None:
                    self.cells[gpu, cell] = value

    def do(self, done: Execution) -> None:
        """Do one operation, cell by cell."""
        kind, gpu = done.operation.kind, done.block.gpu
        if kind == "nop":
            return
        incoming = self._incoming(done)
        for k in range(done.operation.count):
            src, dst = (
                self.layout.canonical(gpu, (cell[0], cell[1] + k)) for cell in (done.operation.src, done.operation.dst)
            )
            if kind == "s":
                self._send(done, self._take(done, src))
            elif kind == "cpy":
                self._put(done, dst, self._take(done, src))
            elif kind == "re":
                self._put(done, dst, self._add(done, self._take(done, dst), self._take(done, src)))
            else:
                self._receive(done, src, dst, incoming[k])

    def _receive(self, done: Execution, src: Cell, dst: Cell, came: CellValue) -> None:
        """Receive one chunk, and send it on if that is what the operation does."""
        kind = done.operation.kind
        if kind.startswith("rr"):
            came = self._add(done, self._take(done, src), came)
        elif kind == "rcs" or (done.block.gpu, came.chunk) not in self.versions or self._is_home(done, dst, came):
            came = self._copied(done, came)
        if kind != "rrs":
            self._put(done, dst, came)
        if kind.endswith("s"):
            self._send(done, came)

    def _is_home(self, done: Execution, cell: Cell, came: CellValue) -> bool:
        """Whether a cell holds the worker's value of the chunk that came, which is overwritten then."""
        gpu = done.block.gpu
        value = self.cells.get((gpu, cell))
        return value is not None and value == CellValue(came.chunk, self.versions[gpu, came.chunk])

    def _incoming(self, done: Execution) -> list[CellValue]:
        """Return what the message brings, each chunk waiting for what becomes of it."""
        if done.received is None:
            return []
        message = self.messages[done.received]
        if len(message) != done.operation.count:
            what = f"{done} receives {done.operation.count} chunks where {done.received} sends {len(message)}"
            refuse(self.file, done.operation.line, what)
        for delivery in message:
            delivery.received = done
        return [CellValue(delivery.chunk, -1, delivery) for delivery in message]

    def _take(self, done: Execution, cell: Cell) -> CellValue:
        """Read a cell."""
        at = (done.block.gpu, cell)
        if at not in self.cells:
            what = f"{done} reads {cell[0]}[{cell[1]}], where there is nothing yet"
            refuse(self.file, done.operation.line, what)
        self._check_race(done, [self.wrote.get(at)], cell)
        self.read[at].append(done)
        value = self.cells[at]
        if value.waiting is not None and value.waiting.applied is not None:
            # It was added or copied by now: what is left of it is the worker's value if that has not changed since.
            self._two_values(done, value)
        return value

    def _put(self, done: Execution, cell: Cell, value: CellValue) -> None:
        """Write a cell."""
        at = (done.block.gpu, cell)
        self._check_race(done, [self.wrote.get(at), *self.read.pop(at, [])], cell)
        self.wrote[at] = done
        self.cells[at] = value

    def _check_race(self, done: Execution, others: list[Execution | None], cell: Cell) -> None:
        for other in others:
            if other is not None and other is not done and not done.comes_after(other):
                what = f"{done} and {other} race for {cell[0]}[{cell[1]}]: nothing says which comes first"
                refuse(self.file, done.operation.line, what, right="a depid and deps that do")

    def _send(self, done: Execution, value: CellValue) -> None:
        """Send a value, which must be the worker's own."""
        value = self._copied(done, value)
        if value.version != self.versions[done.block.gpu, value.chunk]:
            self._two_values(done, value)
        delivery = Delivery(value.chunk, done)
        self.messages[done].append(delivery)
        self.flow.deliveries.append(delivery)
        self.flow.accesses[done.block.gpu, value.chunk].append(Access(delivery, changes=False))

    def _copied(self, done: Execution, value: CellValue) -> CellValue:
        """Make what came the worker's value of the chunk."""
        if value.waiting is None:
            return value
        return self._changed(done, value.waiting, "copy")

    def _add(self, done: Execution, own: CellValue, other: CellValue) -> CellValue:
        """Add what came to what the worker has of the chunk."""
        if own.chunk != other.chunk:
            what = f"{done} adds chunk {other.chunk} to chunk {own.chunk}"
            refuse(self.file, done.operation.line, what)
        if other.waiting is None:
            own, other = other, own
        if own.waiting is not None:
            own = self._copied(done, own)
        if other.waiting is None or own.version != self.versions[done.block.gpu, own.chunk]:
            self._two_values(done, own)
        return self._changed(done, other.waiting, "reduce")  # type: ignore[arg-type]  # it is waiting, as just seen

    def _changed(self, done: Execution, delivery: Delivery, op: Op) -> CellValue:
        """Change the worker's value of a chunk by what came."""
        gpu = done.block.gpu
        if delivery.applied is not None:
            self._two_values(done, CellValue(delivery.chunk, -1))
        delivery.op, delivery.applied = op, done
        self.flow.accesses[gpu, delivery.chunk].append(Access(delivery, changes=True))
        self.versions[gpu, delivery.chunk] = self.versions.get((gpu, delivery.chunk), -1) + 1
        value = CellValue(delivery.chunk, self.versions[gpu, delivery.chunk])
        # Cells that wait with the same message hold the same value from here on.
        if op == "copy":
            same = [at for at, held in self.cells.items() if held.waiting is delivery]
            self.cells |= dict.fromkeys(same, value)
        return value

    def _two_values(self, done: Execution, value: CellValue) -> None:
        what = f"{done} needs two values of chunk {value.chunk} at gpu {done.block.gpu} at once"
        right = "schedules in which a worker has one value of each chunk"
        refuse(self.file, done.operation.line, what, right=right)

    def end(self) -> None:
        """Take what still waits in the output as copied; refuse what was received for nothing, and stale output."""
        faults = []
        for gpu in range(self.layout.n_gpus):
            for chunk, cell in self.layout.cells_at_end(gpu).items():
                value = self.cells.get((gpu, cell))
                waiting = None if value is None else value.waiting
                if waiting is not None and waiting.applied is None and waiting.received is not None:
                    value = self._changed(waiting.received, waiting, "copy")
                if value is None or (value.chunk, value.version) != (chunk, self.versions.get((gpu, chunk))):
                    held = "nothing" if value is None else f"an older value, or one of chunk {value.chunk}"
                    message = f"gpu {gpu} ends with {held} in {cell[0]}[{cell[1]}], where chunk {chunk} must be"
                    faults.append(Fault(message, file=self.file))
        for delivery in self.flow.deliveries:
            if delivery.applied is None and delivery.received is not None:
                message = f"what {delivery.received} receives of chunk {delivery.chunk} is never used"
                faults.append(Fault(message, file=self.file, line=delivery.received.operation.line))
        raise_all(faults)
