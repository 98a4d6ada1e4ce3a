"""What each message carries and what becomes of it: the values in the cells, followed from operation to operation.

A schedule of ringnet knows one value of a chunk at each worker; a file has buffers, and may keep what it
receives in scratch until it adds it. So a receive whose value waits somewhere is a reduce that is done when
the value is added, or a copy done when it is first used; what needs two values of a chunk at one gpu at once
is refused.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ringnet.collectives.schedule import Op
from ringnet.errors import Fault, ScheduleError
from ringnet.formats.msccl.document import SHOWN, Cell, refuse
from ringnet.formats.msccl.ends import Ends
from ringnet.formats.msccl.machine import Done


@dataclass(eq=False)
class Carried:
    """One chunk of one message: sent by one operation, received by another, applied by that or by a third."""

    chunk: int
    sent: Done
    received: Done | None = None
    op: Op = "copy"
    applied: Done | None = None


@dataclass(frozen=True)
class Value:
    """What a cell holds: the worker's value of a chunk as it was after so many changes, or what has just come."""

    chunk: int
    version: int
    waiting: Carried | None = None


@dataclass(frozen=True)
class Access:
    """A chunk of a worker read by a send, or changed by what was received; in the order of the run."""

    carried: Carried
    changes: bool


@dataclass
class Flow:
    """All that is carried, and what happens to each chunk of each gpu, in order."""

    carried: list[Carried] = field(default_factory=list)
    accesses: dict[tuple[int, int], list[Access]] = field(default_factory=lambda: defaultdict(list))


def follow(run: list[Done], ends: Ends, file: str) -> Flow:
    """Follow every value through a run.

    Raises
    ------
    ScheduleError
        A cell that nobody wrote is read, accesses race, chunks are mixed, or two values of a chunk are needed
        at once.
    """
    flow = _Follower(ends, file)
    for done in run:
        flow.do(done)
    flow.end()
    return flow.flow


class _Follower:
    def __init__(self, ends: Ends, file: str) -> None:
        self.ends, self.file, self.flow = ends, file, Flow()
        self.cells: dict[tuple[int, Cell], Value] = {
            (gpu, cell): Value(chunk, 0)
            for gpu in range(ends.n_gpus)
            for cell, chunk in ends.first(gpu).items()
        }
        self.versions: dict[tuple[int, int], int] = {
            (gpu, value.chunk): 0 for (gpu, _), value in self.cells.items()
        }
        self.wrote: dict[tuple[int, Cell], Done] = {}
        self.read: dict[tuple[int, Cell], list[Done]] = defaultdict(list)
        self.messages: dict[Done, list[Carried]] = defaultdict(list)

    def do(self, done: Done) -> None:
        """Do one operation, cell by cell."""
        kind, gpu = done.operation.kind, done.block.gpu
        if kind == "nop":
            return
        incoming = self._incoming(done)
        for k in range(done.operation.count):
            src, dst = (
                self.ends.place(gpu, (cell[0], cell[1] + k))
                for cell in (done.operation.src, done.operation.dst)
            )
            if kind == "s":
                self._send(done, self._take(done, src))
            elif kind == "cpy":
                self._put(done, dst, self._take(done, src))
            elif kind == "re":
                self._put(done, dst, self._add(done, self._take(done, dst), self._take(done, src)))
            else:
                self._receive(done, src, dst, incoming[k])

    def _receive(self, done: Done, src: Cell, dst: Cell, came: Value) -> None:
        """Receive one chunk, and send it on if that is what the operation does."""
        kind = done.operation.kind
        if kind.startswith("rr"):
            came = self._add(done, self._take(done, src), came)
        elif (
            kind == "rcs"
            or (done.block.gpu, came.chunk) not in self.versions
            or self._is_home(done, dst, came)
        ):
            came = self._copied(done, came)
        if kind != "rrs":
            self._put(done, dst, came)
        if kind.endswith("s"):
            self._send(done, came)

    def _is_home(self, done: Done, cell: Cell, came: Value) -> bool:
        """Whether a cell holds the worker's value of the chunk that came, which is overwritten then."""
        gpu = done.block.gpu
        value = self.cells.get((gpu, cell))
        return value is not None and value == Value(came.chunk, self.versions[gpu, came.chunk])

    def _incoming(self, done: Done) -> list[Value]:
        """Return what the message brings, each chunk waiting for what becomes of it."""
        if done.received is None:
            return []
        message = self.messages[done.received]
        if len(message) != done.operation.count:
            what = f"{done} receives {done.operation.count} chunks where {done.received} sends {len(message)}"
            refuse(self.file, done.operation.line, what)
        for carried in message:
            carried.received = done
        return [Value(carried.chunk, -1, carried) for carried in message]

    def _take(self, done: Done, cell: Cell) -> Value:
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

    def _put(self, done: Done, cell: Cell, value: Value) -> None:
        """Write a cell."""
        at = (done.block.gpu, cell)
        self._check_race(done, [self.wrote.get(at), *self.read.pop(at, [])], cell)
        self.wrote[at] = done
        self.cells[at] = value

    def _check_race(self, done: Done, others: list[Done | None], cell: Cell) -> None:
        for other in others:
            if other is not None and other is not done and not done.comes_after(other):
                what = f"{done} and {other} race for {cell[0]}[{cell[1]}]: nothing says which comes first"
                refuse(self.file, done.operation.line, what, right="a depid and deps that do")

    def _send(self, done: Done, value: Value) -> None:
        """Send a value, which must be the worker's own."""
        value = self._copied(done, value)
        if value.version != self.versions[done.block.gpu, value.chunk]:
            self._two_values(done, value)
        carried = Carried(value.chunk, done)
        self.messages[done].append(carried)
        self.flow.carried.append(carried)
        self.flow.accesses[done.block.gpu, value.chunk].append(Access(carried, changes=False))

    def _copied(self, done: Done, value: Value) -> Value:
        """Make what came the worker's value of the chunk."""
        if value.waiting is None:
            return value
        return self._changed(done, value.waiting, "copy")

    def _add(self, done: Done, own: Value, other: Value) -> Value:
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

    def _changed(self, done: Done, carried: Carried, op: Op) -> Value:
        gpu = done.block.gpu
        if carried.applied is not None:
            self._two_values(done, Value(carried.chunk, -1))
        carried.op, carried.applied = op, done
        self.flow.accesses[gpu, carried.chunk].append(Access(carried, changes=True))
        self.versions[gpu, carried.chunk] = self.versions.get((gpu, carried.chunk), -1) + 1
        value = Value(carried.chunk, self.versions[gpu, carried.chunk])
        # Cells that wait with the same message hold the same value from here on.
        if op == "copy":
            same = [at for at, held in self.cells.items() if held.waiting is carried]
            self.cells |= dict.fromkeys(same, value)
        return value

    def _two_values(self, done: Done, value: Value) -> None:
        what = f"{done} needs two values of chunk {value.chunk} at gpu {done.block.gpu} at once"
        right = "schedules in which a worker has one value of each chunk"
        refuse(self.file, done.operation.line, what, right=right)

    def end(self) -> None:
        """Take what still waits in the output as copied; refuse what was received for nothing, and stale output."""
        faults = []
        for gpu in range(self.ends.n_gpus):
            for chunk, cell in self.ends.last(gpu).items():
                value = self.cells.get((gpu, cell))
                waiting = None if value is None else value.waiting
                if waiting is not None and waiting.applied is None and waiting.received is not None:
                    value = self._changed(waiting.received, waiting, "copy")
                if value is None or (value.chunk, value.version) != (chunk, self.versions.get((gpu, chunk))):
                    held = "nothing" if value is None else f"an older value, or one of chunk {value.chunk}"
                    message = (
                        f"gpu {gpu} ends with {held} in {cell[0]}[{cell[1]}], where chunk {chunk} must be"
                    )
                    faults.append(Fault(message, file=self.file))
        for carried in self.flow.carried:
            if carried.applied is None and carried.received is not None:
                message = f"what {carried.received} receives of chunk {carried.chunk} is never used"
                faults.append(Fault(message, file=self.file, line=carried.received.operation.line))
        if faults:
            more = [Fault(f"and {len(faults) - SHOWN} more")] if len(faults) > SHOWN else []
            raise ScheduleError(*faults[:SHOWN], *more)
