"""A schedule file as thread blocks: read with suspicion, then run without a clock to see what comes before what."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.documents.xml_tree import XmlElement, XmlKind, parse_xml
from ringnet.errors import Fault, InputError, ScheduleError

#: Limits of what a file may say, each far beyond any that is known.
MAX_GPUS, MAX_CHUNKS, MAX_STEPS = 4096, 1 << 16, 1 << 18
#: Chunks of all gpus together.
MAX_CELLS = 1 << 22
#: Bytes of a message, as twelve digits hold them.
MAX_BYTES = 10**11
#: Steps times blocks, up to which what comes before what is worked out.
MAX_CLOCK_CELLS = 1 << 27
#: Mistakes that are listed one by one.
_SHOWN = 8

SCHEDULE_XML = XmlKind(
    n_bytes=64 << 20,
    n_elements=2 * MAX_STEPS,
    depth=4,
    inside={"algo": "", "gpu": "algo", "tb": "gpu", "copy": "gpu", "step": "tb"},
)
#: Types of steps that receive, and that send.
RECEIVES, SENDS = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"}), frozenset({"s", "rcs", "rrs", "rrcs"})
TYPES = (*sorted(RECEIVES | SENDS), "cpy", "re", "nop")
BUFFERS = ("i", "o", "s")

#: A cell: one chunk of a buffer, ``("i", 3)``.
Cell: TypeAlias = tuple[str, int]


class TransferRow(NamedTuple):
    """What a step sends, as ringnet's writer adds it to a file: step of the schedule, row in it, chunks of the row."""

    turn: int
    row: int
    chunk: int
    chunks: int


@dataclass(frozen=True)
class Operation:
    """A step of a thread block: what it does to which cells, and which step of another block it waits for.

    ``row`` is there in a file of ringnet's.
    """

    kind: str
    src: Cell
    dst: Cell
    count: int
    waits_for: tuple[int, int] | None
    line: int = field(compare=False)
    row: TransferRow | None = None


@dataclass(frozen=True)
class ThreadBlock:
    """A thread block: whom it sends to and receives from (None: nobody), on which channel, and its steps in order.

    ``worker_channel`` is that of a schedule of ringnet, which its writer adds to the file; None elsewhere.
    """

    gpu: int
    number: int
    send: int | None
    receive: int | None
    channel: int
    operations: tuple[Operation, ...]
    line: int = field(compare=False)
    worker_channel: int | None = None

    def __str__(self) -> str:
        return f"gpu {self.gpu} block {self.number}"


@dataclass(frozen=True)
class ScheduleFile:
    """A whole file, with its numbers checked but nothing said of what it does.

    ``root`` is that of a broadcast or reduce; ``own`` is what ringnet's writer says of the chunks of each gpu.
    ``copies`` are what each gpu copies from its input to its output before all else, pairs of chunks. ``bytes_for`` are
    the smallest and the largest message that the file is for; None where it does not say.
    """

    name: str
    collective: str
    n_gpus: int
    n_chunks: int
    in_place: bool
    root: int
    blocks: tuple[ThreadBlock, ...]
    own: tuple[str, ...]
    copies: tuple[tuple[tuple[int, int], ...], ...] = ()
    bytes_for: tuple[int | None, int | None] = (None, None)


def parse_schedule(text: bytes, file: str) -> ScheduleFile:
    """Read the text of a file.

    Raises
    ------
    ScheduleError
        With every mistake: line, element, value and what would be right. Also for a text that is too long,
        that is not XML, or that declares a document type or entities.
    """
    try:
        top = parse_xml(text, file, SCHEDULE_XML)
    except InputError as error:
        raise ScheduleError(*(replace(fault, path="") for fault in error.faults)) from error
    return _FileReader(file).read(top)


def refuse(file: str, line: int | None, message: str, value: str = "", right: str = "") -> NoReturn:
    """Raise one fault."""
    raise ScheduleError(Fault(message, file=file, line=line, value=value, right=right))


def raise_all(faults: Sequence[Fault]) -> None:
    """Raise what was found, if anything was: the first few, and how many more there are."""
    if faults:
        more = [Fault(f"and {len(faults) - _SHOWN} more")] if len(faults) > _SHOWN else []
        raise ScheduleError(*faults[:_SHOWN], *more)


class _FileReader:
    """Turns elements into blocks, and collects what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def read(self, algo: XmlElement) -> ScheduleFile:
        n_gpus = self.number(algo, "ngpus", 1, MAX_GPUS)
        n_chunks = self.number(algo, "nchunksperloop", 1, MAX_CHUNKS)
        if n_gpus * n_chunks > MAX_CELLS:
            value, right = f"{n_gpus} gpus of {n_chunks} chunks", f"at most {MAX_CELLS} in all"
            self.fault(algo, "too many chunks", value, right)
            raise_all(self.faults)
        root = self.number(algo, "root", 0, max(0, n_gpus - 1), "0")
        gpus = {self.number(gpu, "id", 0, n_gpus - 1): gpu for gpu in algo.children}
        if not self.faults and (len(gpus) != n_gpus or len(algo.children) != n_gpus):
            self.fault(algo, f"there is not one gpu for each of {n_gpus}", f"{len(algo.children)} gpu elements")
        sizes = [
            {buffer: self.number(gpus[gpu], f"{buffer}_chunks", 0, MAX_CHUNKS) for buffer in BUFFERS}
            for gpu in sorted(gpus)
        ]
        raise_all(self.faults)
        blocks = tuple(block for gpu in range(n_gpus) for block in self.blocks(gpu, gpus[gpu], n_gpus, sizes[gpu]))
        raise_all(self.faults)
        name, collective = algo.attributes.get("name", "msccl"), algo.attributes.get("coll", "")
        in_place = algo.attributes.get("inplace", "0") == "1"
        own = tuple(gpus[gpu].attributes.get("own", "") for gpu in range(n_gpus))
        copies = tuple(tuple(self.copies(gpus[gpu], sizes[gpu])) for gpu in range(n_gpus))
        bytes_for = self.bytes_for(algo)
        raise_all(self.faults)
        return ScheduleFile(name, collective, n_gpus, n_chunks, in_place, root, blocks, own, copies, bytes_for)

    def copies(self, gpu: XmlElement, sizes: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Yield the copies of a gpu from its input to its output, as TACCL and TE-CCL write them."""
        for copy in gpu.of("copy"):
            each = self.number(copy, "cnt", 1, MAX_CHUNKS, "1")
            ends = [self.number(copy, f"{buffer}_off", 0, MAX_CHUNKS) for buffer in ("i", "o")]
            for buffer, first in zip(("i", "o"), ends, strict=True):
                size = sizes[buffer] or (sizes["i"] if buffer == "o" else 0)
                if first + each > size:
                    message = f"a copy goes beyond buffer {buffer}"
                    self.fault(copy, message, f"chunks {first} to {first + each - 1}", f"below {size}")
                    break
            else:
                yield from zip(*(range(first, first + each) for first in ends), strict=True)

    def bytes_for(self, algo: XmlElement) -> tuple[int | None, int | None]:
        """Return the smallest and the largest message that a file says it is for."""
        least, most = (
            self.number(algo, name, 0, MAX_BYTES) if name in algo.attributes else None
            for name in ("minBytes", "maxBytes")
        )
        if least is not None and most is not None and 0 < most < least:
            self.fault(algo, "maxBytes is below minBytes", str(most), f"at least {least}")
        return least, most or None

    def blocks(self, gpu: int, element: XmlElement, n_gpus: int, sizes: Mapping[str, int]) -> Iterator[ThreadBlock]:
        tbs = [*element.of("tb")]
        for place, tb in enumerate(tbs):
            if self.number(tb, "id", 0, MAX_STEPS) != place:
                self.fault(tb, "thread blocks are not numbered from 0 up", tb.attributes["id"], str(place))
            send, receive = (self.number(tb, end, -1, n_gpus - 1) for end in ("send", "recv"))
            peers = {end: None if peer < 0 else peer for end, peer in (("s", send), ("r", receive))}
            steps = tuple(self.operation(step, number, tbs, peers) for number, step in enumerate(tb.children))
            if gpu in (send, receive):
                self.fault(tb, "a thread block whose peer is its own gpu", str(gpu))
            channel = self.number(tb, "chan", 0, MAX_STEPS)
            lane = self.number(tb, "lane", -1, MAX_STEPS, "-1")
            block = ThreadBlock(gpu, place, peers["s"], peers["r"], channel, steps, tb.line, None if lane < 0 else lane)
            self.check_cells(block, sizes)
            yield block

    def operation(
        self, step: XmlElement, number: int, tbs: Sequence[XmlElement], peers: Mapping[str, int | None]
    ) -> Operation:
        if self.number(step, "s", 0, MAX_STEPS) != number:
            self.fault(step, "steps are not numbered from 0 up", step.attributes["s"], str(number))
        kind = step.attributes.get("type", "")
        if kind not in TYPES:
            self.fault(step, "a type of step that there is not", kind, " | ".join(TYPES))
        for end, kinds, what in (("s", SENDS, "sends"), ("r", RECEIVES, "receives")):
            if kind in kinds and peers[end] is None:
                self.fault(step, f"a step of type {kind} {what} in a block without a peer for it")
        src, dst = (self.cell(step, end, kind) for end in ("src", "dst"))
        count = self.number(step, "cnt", 0 if kind == "nop" else 1, MAX_CHUNKS)
        block, waits_for = self.number(step, "depid", -1, len(tbs) - 1, "-1"), None
        if block >= 0:
            waits_for = block, self.number(step, "deps", 0, len(tbs[block].children) - 1, "-1")
        return Operation(kind, src, dst, count, waits_for, step.line, self.row(step))

    def row(self, step: XmlElement) -> TransferRow | None:
        if "turn" not in step.attributes:
            return None
        return TransferRow(*(self.number(step, name, 0, MAX_STEPS) for name in TransferRow._fields))

    def cell(self, step: XmlElement, end: str, kind: str) -> Cell:
        buffer = step.attributes.get(f"{end}buf", "")
        if buffer not in BUFFERS:
            self.fault(step, f"{end}buf is no buffer", buffer, " | ".join(BUFFERS))
        return buffer, self.number(step, f"{end}off", -1 if kind == "nop" else 0, MAX_CHUNKS)

    def check_cells(self, block: ThreadBlock, sizes: Mapping[str, int]) -> None:
        """Check that the cells of this gpu that a block touches are there."""
        for operation in block.operations:
            ends = {"src": operation.src} if operation.kind not in {"r", "rcs", "nop"} else {}
            ends |= {"dst": operation.dst} if operation.kind not in {"s", "rrs", "nop"} else {}
            for end, (buffer, offset) in ends.items():
                # In place, the output is the input.
                size = sizes.get(buffer) or (sizes["i"] if buffer == "o" else 0)
                if offset + operation.count > size:
                    message = f"{block}: {end} goes beyond buffer {buffer}"
                    value = f"chunks {offset} to {offset + operation.count - 1}"
                    self.faults.append(Fault(message, "", self.file, operation.line, value, f"below {size}"))

    def number(self, element: XmlElement, name: str, least: int, most: int, default: str = "") -> int:
        text = element.attributes.get(name, default)
        value = int(text) if len(text) < 12 and text.removeprefix("-").isdecimal() else None  # noqa: PLR2004
        if value is None or not least <= value <= most:
            self.fault(element, f"{name} is no whole number in range", text or "nothing", f"{least} to {most}")
            return least
        return value

    def fault(self, element: XmlElement, message: str, value: str = "", right: str = "") -> None:
        self.faults.append(Fault(message, f"<{element.tag}>", self.file, element.line, value, right))


# ----------------------------------------------------------------------------- the blocks run without a clock

#: For each block, how many of its steps are sure to be done.
VectorClock: TypeAlias = NDArray[np.int32]


@dataclass(eq=False)
class Execution:
    """An operation that ran: where, and what was done before and after it for sure.

    ``follows`` are those that it waited for itself, ``received`` the one of them that sent what it received.
    """

    block: ThreadBlock
    place: int
    number: int
    operation: Operation
    before: VectorClock
    after: VectorClock
    follows: tuple[Execution, ...]
    received: Execution | None

    def comes_after(self, other: Execution) -> bool:
        """Whether the file itself says that ``other`` is done before this begins."""
        return bool(self.before[other.place] > other.number)

    def __str__(self) -> str:
        return f"{self.block} step {self.number}"


def execute(schedule: ScheduleFile, file: str) -> list[Execution]:
    """Run all blocks.

    Returns
    -------
    list of Execution
        In an order in which they can happen.

    Raises
    ------
    ScheduleError
        Two blocks share a connection, some wait for ever (and for what), or messages are never received.
    """
    return list(_Machine(schedule, file).run())


class _Machine:
    """Blocks under way: what each has done, and the messages that nobody has received yet."""

    def __init__(self, schedule: ScheduleFile, file: str) -> None:
        self.file, self.blocks = file, schedule.blocks
        self.place = {(block.gpu, block.number): place for place, block in enumerate(self.blocks)}
        n_steps = sum(len(block.operations) for block in self.blocks)
        if n_steps * len(self.blocks) > MAX_CLOCK_CELLS:
            right = f"steps times thread blocks of at most {MAX_CLOCK_CELLS}"
            refuse(file, None, "the schedule is too large", f"{n_steps} x {len(self.blocks)}", right)
        self.done: list[list[Execution]] = [[] for _ in self.blocks]
        self.under_way: dict[tuple[int, int, int], deque[Execution]] = defaultdict(deque)
        self._check_connections()

    def run(self) -> Iterator[Execution]:
        """Let each block go on as far as it can, again and again."""
        moved = True
        while moved:
            moved = False
            for place in range(len(self.blocks)):
                while (done := self._step(place)) is not None:
                    moved = True
                    yield done
        self._check_end()

    def _step(self, place: int) -> Execution | None:
        """Do the next operation of a block, if there is one and it need not wait."""
        block, number = self.blocks[place], len(self.done[place])
        if number == len(block.operations) or self._waits_for(place):
            return None
        operation = block.operations[number]
        follows = [self.done[place][-1]] if number else []
        received = self._incoming(block).popleft() if operation.kind in RECEIVES else None
        follows += [received] if received is not None else []
        if operation.waits_for is not None:
            other, step = operation.waits_for
            follows.append(self.done[self.place[block.gpu, other]][step])
        before = np.zeros(len(self.blocks), dtype=np.int32)
        for one in follows:
            np.maximum(before, one.after, out=before)
        after = before.copy()
        after[place] = number + 1
        done = Execution(block, place, number, operation, before, after, tuple(follows), received)
        self.done[place].append(done)
        if operation.kind in SENDS:
            self.under_way[block.gpu, block.send or 0, block.channel].append(done)
        return done

    def _incoming(self, block: ThreadBlock) -> deque[Execution]:
        return self.under_way[block.receive or 0, block.gpu, block.channel]

    def _waits_for(self, place: int) -> str:
        """Say what the next operation of a block still waits for; nothing if it can be done."""
        block = self.blocks[place]
        operation = block.operations[len(self.done[place])]
        if operation.waits_for is not None:
            other, step = operation.waits_for
            if len(self.done[self.place[block.gpu, other]]) <= step:
                return f"block {other} of its gpu to be through with step {step}"
        if operation.kind in RECEIVES and not self._incoming(block):
            return f"a message of gpu {block.receive} on channel {block.channel}"
        return ""

    def _check_connections(self) -> None:
        """Check that no two blocks of a gpu send to the same peer on the same channel, or receive from it."""
        sends = ((block, "send to", block.send) for block in self.blocks)
        receives = ((block, "receive from", block.receive) for block in self.blocks)
        seen: dict[tuple[str, int, int, int], ThreadBlock] = {}
        for block, what, peer in (*sends, *receives):
            if peer is None:
                continue
            first = seen.setdefault((what, block.gpu, peer, block.channel), block)
            if first is not block:
                message = f"blocks {first.number} and {block.number} of gpu {block.gpu} both {what} gpu {peer}"
                refuse(self.file, block.line, f"{message} on channel {block.channel}")

    def _check_end(self) -> None:
        faults = []
        for place, (block, done) in enumerate(zip(self.blocks, self.done, strict=True)):
            if len(done) < len(block.operations):
                message = f"{block} waits for ever in step {len(done)}: for {self._waits_for(place)}"
                faults.append(Fault(message, file=self.file, line=block.operations[len(done)].line))
        raise_all(faults)
        raise_all(
            [
                Fault(f"the message of {done} is never received", file=self.file, line=done.operation.line)
                for messages in self.under_way.values()
                for done in messages
            ]
        )
