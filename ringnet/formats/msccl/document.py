"""The text of a schedule file, read with suspicion: bounded, no entities, every mistake with line and element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from ringnet.documents.xml_tree import XmlElement, XmlKind, parse_xml
from ringnet.errors import Fault, InputError, ScheduleError

#: Limits of what a file may say, each far beyond any that is known.
MAX_GPUS, MAX_CHUNKS, MAX_STEPS = 4096, 1 << 16, 1 << 18
#: Chunks of all gpus together.
MAX_CELLS = 1 << 22
#: Mistakes that are told one by one.
SHOWN = 8

SCHEDULE_XML = XmlKind(
    n_bytes=64 << 20,
    n_elements=2 * MAX_STEPS,
    depth=4,
    inside={"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"},
)
#: Types of steps that receive, and that send.
RECEIVES, SENDS = frozenset({"r", "rcs", "rrc", "rrs", "rrcs"}), frozenset({"s", "rcs", "rrs", "rrcs"})
TYPES = (*sorted(RECEIVES | SENDS), "cpy", "re", "nop")
BUFFERS = ("i", "o", "s")

#: A cell: one chunk of a buffer, ``("i", 3)``.
Cell = tuple[str, int]


@dataclass(frozen=True)
class Operation:
    """A step of a thread block: what it does to which cells, and which step of another block it waits for."""

    kind: str
    src: Cell
    dst: Cell
    count: int
    waits_for: tuple[int, int] | None
    line: int


@dataclass(frozen=True)
class Block:
    """A thread block: whom it sends to and receives from (None: nobody), on which channel, and its steps in order.

    ``lane`` is the channel of the worker in a schedule of ringnet, which its writer adds to the file; None elsewhere.
    """

    gpu: int
    number: int
    send: int | None
    receive: int | None
    channel: int
    operations: tuple[Operation, ...]
    line: int
    lane: int | None = None

    def __str__(self) -> str:
        return f"gpu {self.gpu} block {self.number}"


@dataclass(frozen=True)
class Document:
    """A whole file, with its numbers checked but nothing said of what it does.

    ``sizes[gpu]`` has the chunks of its three buffers; ``root`` is that of a broadcast or reduce.
    """

    name: str
    collective: str
    n_gpus: int
    n_chunks: int
    in_place: bool
    root: int
    sizes: tuple[Mapping[str, int], ...]
    blocks: tuple[Block, ...]


def parse(text: bytes, file: str) -> Document:
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
    return _Reader(file).document(top)


def refuse(file: str, line: int | None, message: str, value: str = "", right: str = "") -> NoReturn:
    """Raise one fault."""
    raise ScheduleError(Fault(message, file=file, line=line, value=value, right=right))


class _Reader:
    """Turns elements into a document, and collects what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def document(self, algo: XmlElement) -> Document:
        n_gpus = self.number(algo, "ngpus", 1, MAX_GPUS)
        n_chunks = self.number(algo, "nchunksperloop", 1, MAX_CHUNKS)
        if n_gpus * n_chunks > MAX_CELLS:
            value, right = f"{n_gpus} gpus of {n_chunks} chunks", f"at most {MAX_CELLS} in all"
            self.fault(algo, "too many chunks", value, right)
            self.stop()
        root = self.number(algo, "root", 0, max(0, n_gpus - 1), "0")
        gpus = {self.number(gpu, "id", 0, n_gpus - 1): gpu for gpu in algo.children}
        if not self.faults and (len(gpus) != n_gpus or len(algo.children) != n_gpus):
            self.fault(
                algo, f"there is not one gpu for each of {n_gpus}", f"{len(algo.children)} gpu elements"
            )
        sizes = tuple(self.buffers(gpus[gpu]) for gpu in sorted(gpus))
        self.stop()
        blocks = tuple(
            block for gpu in range(n_gpus) for block in self.blocks(gpu, gpus[gpu], n_gpus, sizes[gpu])
        )
        self.stop()
        name, collective = algo.attributes.get("name", "msccl"), algo.attributes.get("coll", "")
        in_place = algo.attributes.get("inplace", "0") == "1"
        return Document(name, collective, n_gpus, n_chunks, in_place, root, sizes, blocks)

    def buffers(self, gpu: XmlElement) -> Mapping[str, int]:
        return {buffer: self.number(gpu, f"{buffer}_chunks", 0, MAX_CHUNKS) for buffer in BUFFERS}

    def blocks(self, gpu: int, element: XmlElement, n_gpus: int, sizes: Mapping[str, int]) -> Iterator[Block]:
        for place, tb in enumerate(element.children):
            if self.number(tb, "id", 0, MAX_STEPS) != place:
                self.fault(tb, "thread blocks are not numbered from 0 up", tb.attributes["id"], str(place))
            send, receive = (self.number(tb, end, -1, n_gpus - 1) for end in ("send", "recv"))
            peers = {
                end: None if gpu_there < 0 else gpu_there for end, gpu_there in (("s", send), ("r", receive))
            }
            steps = tuple(
                self.operation(step, number, element, peers) for number, step in enumerate(tb.children)
            )
            if gpu in (send, receive):
                self.fault(tb, "a thread block whose peer is its own gpu", str(gpu))
            channel = self.number(tb, "chan", 0, MAX_STEPS)
            lane = self.number(tb, "lane", -1, MAX_STEPS, "-1")
            ends = peers["s"], peers["r"]
            block = Block(gpu, place, *ends, channel, steps, tb.line, None if lane < 0 else lane)
            self.cells(block, sizes)
            yield block

    def operation(
        self, step: XmlElement, number: int, gpu: XmlElement, peers: Mapping[str, int | None]
    ) -> Operation:
        if self.number(step, "s", 0, MAX_STEPS) != number:
            self.fault(step, "steps are not numbered from 0 up", step.attributes["s"], str(number))
        kind = step.attributes.get("type", "")
        if kind not in TYPES:
            self.fault(step, "a type of step that there is not", kind, " | ".join(TYPES))
        for end, kinds, what in (("s", SENDS, "sends"), ("r", RECEIVES, "receives")):
            if kind in kinds and peers[end] is None:
                self.fault(step, f"a step of type {kind} {what} in a block without a peer for it")
        cells = [self.cell(step, end, kind) for end in ("src", "dst")]
        count = self.number(step, "cnt", 0 if kind == "nop" else 1, MAX_CHUNKS)
        return Operation(kind, cells[0], cells[1], count, self.wait(step, gpu), step.line)

    def cell(self, step: XmlElement, end: str, kind: str) -> Cell:
        buffer = step.attributes.get(f"{end}buf", "")
        if buffer not in BUFFERS:
            self.fault(step, f"{end}buf is no buffer", buffer, " | ".join(BUFFERS))
        return buffer, self.number(step, f"{end}off", -1 if kind == "nop" else 0, MAX_CHUNKS)

    def wait(self, step: XmlElement, gpu: XmlElement) -> tuple[int, int] | None:
        block = self.number(step, "depid", -1, len(gpu.children) - 1, "-1")
        if block < 0:
            return None
        return block, self.number(step, "deps", 0, len(gpu.children[block].children) - 1, "-1")

    def cells(self, block: Block, sizes: Mapping[str, int]) -> None:
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
            self.fault(
                element, f"{name} is no whole number in range", text or "nothing", f"{least} to {most}"
            )
            return least
        return value

    def fault(self, element: XmlElement, message: str, value: str = "", right: str = "") -> None:
        self.faults.append(Fault(message, f"<{element.tag}>", self.file, element.line, value, right))

    def stop(self) -> None:
        """Raise what has been found."""
        if self.faults:
            more = [Fault(f"and {len(self.faults) - SHOWN} more")] if len(self.faults) > SHOWN else []
            raise ScheduleError(*self.faults[:SHOWN], *more)
