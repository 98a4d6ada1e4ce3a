"""Any schedule of ringnet as MSCCL's XML: each channel of a worker becomes one thread block for each pair of peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import EVERY_WORKER, Schedule, Step
from ringnet.errors import Fault, ScheduleError
from ringnet.formats.msccl.dataflow import COLLECTIVES, BufferLayout, make_layout
from ringnet.formats.msccl.thread_blocks import Cell, TransferRow

#: Transfers beyond which a file would be too long for anybody to read.
MAX_TRANSFERS = 200_000

#: Protocols of NCCL, and how many sends a connection holds until they are received; the one for large messages first.
#: MSCCL cuts the eight slots of a connection into steps of four for ``Simple``, and uses them one by one for ``LL``.
DEPTHS = {"Simple": 2, "LL": 8}

_MSCCL_NAMES = {ours: theirs for theirs, ours in reversed(COLLECTIVES.items())}


def dumps_msccl(schedule: Schedule) -> str:
    """Return a schedule as the text of a file.

    Returns
    -------
    str
        In place, but for an all-to-all. Chunks of a collective in which each worker has its own are numbered
        by worker, as MSCCL wants them; a transfer whose chunks do not lie side by side then becomes several.

    Raises
    ------
    ScheduleError
        Too many transfers, workers that do not all have as many chunks of their own, or a schedule that would wait for
        itself on connections that hold a few sends only.

    Notes
    -----
    Where two sends at once to each connection are enough (`DEPTHS`) the protocol is ``Simple``; blocks that send and
    receive are taken apart for it if need be; ``LL`` where that is not enough.
    Only the types ``s``, ``r``, ``rrc``, ``cpy`` and ``nop`` are used. A step waits (``depid``) for what comes before
    it on the same channel, and for what has happened to its chunks on other channels.

    Beside MSCCL's attributes, which say nothing of the order in which what may go at once is posted, nor of what is one
    transfer, there are some that MSCCL passes over: ``lane`` of a ``tb``, the channel of the worker; ``turn`` and
    ``row`` of a step that sends, the step of the schedule and the transfer, and ``chunk`` and ``chunks``, the first
    chunk of the transfer and how many, as the schedule numbers them; ``own`` of a ``gpu``, its chunks as the schedule
    numbers them. By these `loads_msccl` returns the same schedule, row for row.
    """
    if schedule.n_switches:
        message = f"MSCCL knows GPUs only, and {schedule.algorithm} takes switches that reduce"
        raise ScheduleError(Fault(message, right="an algorithm without switches"))
    if schedule.n_transfers > MAX_TRANSFERS:
        right = f"at most {MAX_TRANSFERS} transfers"
        raise ScheduleError(Fault("the schedule is too long for a file", value=str(schedule.n_transfers), right=right))
    layout, order = _numbered(schedule)
    for (proto, depth), is_apart in product(DEPTHS.items(), (False, True)):
        gpus = [_GpuDraft(worker, layout) for worker in range(schedule.n_workers)]
        _Drafter(schedule, gpus, make_numbering(order), is_apart=is_apart).write()
        if _ends_with(depth, gpus):
            return "\n".join(_lines(schedule, layout, gpus, proto, order)) + "\n"
    most = max(DEPTHS.values())
    message = f"a connection of MSCCL holds {most} sends at most, and with so few this schedule waits for itself"
    raise ScheduleError(Fault(message, right="fewer slices or chunks, or another algorithm"))


def _ends_with(depth: int, gpus: Sequence[_GpuDraft]) -> bool:
    """Whether all steps are done where a connection holds so many sends that nobody has received yet.

    Blocks do their steps in order, beside each other; a step that can be done stays so until it is, so that one order
    of trying tells for all.
    """
    held: dict[tuple[int, int, int], int] = defaultdict(int)
    blocks = [(gpu, block) for gpu in gpus for block in gpu.blocks]
    done = {id(block): 0 for _, block in blocks}
    moved = True
    while moved:
        moved = False
        for gpu, block in blocks:
            coming = (block.receive, gpu.worker, block.channel)
            going = (gpu.worker, block.send, block.channel)
            for step in block.steps[done[id(block)] :]:
                other, number = step.waits_for
                may = other < 0 or done[id(gpu.blocks[other])] > number
                may = may and (step.kind != "s" or held[going] < depth)
                if not may or (step.kind in {"r", "rrc"} and not held[coming]):
                    break
                held[going] += step.kind == "s"
                held[coming] -= step.kind in {"r", "rrc"}
                done[id(block)] += 1
                moved = True
    return all(done[id(block)] == len(block.steps) for _, block in blocks)


def _numbered(schedule: Schedule) -> tuple[BufferLayout, IntArray]:
    """Return the layout of the collective in MSCCL's order, and the chunks of the schedule in that order."""
    collective, n_workers = schedule.collective, schedule.n_workers
    owner = schedule.source if collective in {"all-gather", "all-to-all", "broadcast"} else schedule.target
    if collective == "all-to-all":
        owner = schedule.source * n_workers + schedule.target
    order = np.argsort(owner, kind="stable")
    each = {"all-to-all": n_workers * n_workers, "all-gather": n_workers, "reduce-scatter": n_workers}
    root = int(owner[0]) if collective in {"broadcast", "reduce"} else 0
    in_place = collective != "all-to-all"
    n_each = schedule.n_chunks // each.get(collective, 1)
    layout = make_layout(collective, n_workers, n_each, root, in_place=in_place)
    if not (
        np.array_equal(layout.source, schedule.source[order]) and np.array_equal(layout.target, schedule.target[order])
    ):
        raise ScheduleError(Fault(f"workers do not all have as many chunks of this {collective}"))
    return layout, order


def make_numbering(order: IntArray) -> IntArray:
    """Return the number in a file of each chunk of a schedule, by the chunks of the schedule in the file's order."""
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number


class _TransferEnd(NamedTuple):
    """One transfer as one of its ends sees it, or a part of one."""

    receives: bool
    reduces: bool
    peer: int
    chunks: list[int]
    row: TransferRow


@dataclass(eq=False)
class _StepDraft:
    """A step of a thread block, as it will stand in the file."""

    kind: str
    src: Cell
    dst: Cell
    count: int
    waits_for: tuple[int, int] = (-1, -1)
    row: TransferRow | None = None
    awaited: bool = False


@dataclass(eq=False)
class _BlockDraft:
    """A thread block being written."""

    number: int
    channel: int
    worker_channel: int
    send: int = -1
    receive: int = -1
    steps: list[_StepDraft] = field(default_factory=list)


class _StepPlace(NamedTuple):
    """A step by block and number."""

    block: _BlockDraft
    step: int


class _GpuDraft:
    """A gpu being written: its blocks, and where it has each chunk."""

    def __init__(self, worker: int, layout: BufferLayout) -> None:
        self.worker, self.layout = worker, layout
        self.blocks: list[_BlockDraft] = []
        self.homes = {chunk: cell for cell, chunk in layout.chunks_at_start(worker).items()}
        self.at_end = layout.cells_at_end(worker)
        self.n_scratch = 0

    def home(self, chunk: int) -> Cell:
        """Return the cell of a chunk: where it starts or ends, or a cell of scratch on its way."""
        if chunk not in self.homes:
            self.homes[chunk] = self.at_end.get(chunk) or ("s", self.n_scratch)
            self.n_scratch += self.homes[chunk][0] == "s"
        return self.homes[chunk]

    def runs(self, chunks: Iterable[int]) -> list[list[int]]:
        """Split chunks into runs whose cells lie side by side, here and in the numbering."""
        runs: list[list[int]] = []
        for chunk in chunks:
            buffer, offset = self.home(chunk)
            last = self.home(runs[-1][-1]) if runs else None
            if runs and last == (buffer, offset - 1) and runs[-1][-1] == chunk - 1:
                runs[-1].append(chunk)
            else:
                runs.append([chunk])
        return runs

    def sizes(self) -> dict[str, int]:
        """Return the chunks of each buffer."""
        n_each, n_chunks = self.layout.each, self.layout.n_chunks
        n_own = self.layout.n_gpus * n_each
        mine = {
            "all-gather": {"i": n_each, "o": n_chunks},
            "reduce-scatter": {"i": n_chunks, "o": n_each},
            "all-to-all": {"i": n_own, "o": n_own},
        }.get(self.layout.collective, {"i": n_chunks, "o": 0})
        return mine | {"s": self.n_scratch}


class _Drafter:
    """Writes the steps of all workers, in the order of the schedule."""

    def __init__(self, schedule: Schedule, gpus: list[_GpuDraft], number: IntArray, *, is_apart: bool) -> None:
        self.schedule, self.gpus, self.number, self.is_apart = schedule, gpus, number, is_apart
        self.codes: dict[tuple[int, int], int] = {}
        self.block_of: dict[tuple[int, int, int, bool, int], _BlockDraft] = {}
        self.last_receive: dict[tuple[int, int], _StepPlace] = {}
        self.applied: dict[tuple[int, int], _StepPlace] = {}
        self.posted: dict[tuple[int, int], list[_StepPlace]] = defaultdict(list)

    def write(self) -> None:
        """Write blocks, then steps: all that a step of the schedule sends, then all that it receives, by source."""
        self._make_blocks()
        steps = (step for step in self.schedule.steps() if len(step))
        for turn, step in enumerate(steps):
            rows = list(self._rows(turn, step))
            for src, dst, chunks, channels, row in rows:
                self._add(src, channels, _TransferEnd(False, False, dst, chunks, row))
            for src, dst, chunks, channels, row in sorted(rows, key=lambda row: row[0]):
                self._add(dst, channels, _TransferEnd(True, step.op == "reduce", src, chunks, row))
        for gpu in self.gpus:
            _copy_own(gpu)

    def _rows(self, turn: int, step: Step) -> Iterator[tuple[int, int, list[int], tuple[int, int], TransferRow]]:
        """Yield source, target, chunks as the file numbers them, both channels and transfer of each message."""
        columns = (step.src, step.dst, step.channel, step.receiving_channel, step.chunk)
        counts = np.ones_like(step.chunk) if step.count is None else step.count
        for row, (src, dst, channel, to_channel, first, count) in enumerate(
            zip(*(column.tolist() for column in (*columns, counts)), strict=True)
        ):
            chunks = sorted(self.number[first : first + count].tolist())
            for run in self.gpus[src].runs(chunks):
                for part in self.gpus[dst].runs(run):
                    yield src, dst, part, (channel, to_channel), TransferRow(turn, row, first, count)

    def _make_blocks(self) -> None:
        """Give each channel of a worker one block for each peer it sends to, which also receives from one if it can.

        Apart, every block either sends or receives: a full connection then keeps nobody from receiving.
        """
        peers: dict[tuple[int, int, int], tuple[dict[int, None], dict[int, None]]] = defaultdict(lambda: ({}, {}))
        for step in self.schedule.steps():
            columns = (step.src, step.dst, step.channel, step.receiving_channel)
            for src, dst, channel, to_channel in zip(*(column.tolist() for column in columns), strict=True):
                code = self.codes.setdefault((channel, to_channel), len(self.codes))
                peers[src, channel, code][0][dst] = None
                peers[dst, to_channel, code][1][src] = None
        for (worker, worker_channel, code), (receivers, senders) in sorted(peers.items()):
            gap = [-1] * (len(receivers) if self.is_apart else 0)
            for send, receive in zip_longest(receivers, [*gap, *senders], fillvalue=-1):
                block = _BlockDraft(len(self.gpus[worker].blocks), code, worker_channel, send, receive)
                self.gpus[worker].blocks.append(block)
                for peer, receives in ((send, False), (receive, True)):
                    self.block_of[worker, worker_channel, code, receives, peer] = block

    def _add(self, worker: int, channels: tuple[int, int], event: _TransferEnd) -> None:
        gpu, worker_channel = self.gpus[worker], channels[event.receives]
        block = self.block_of[worker, worker_channel, self.codes[channels], event.receives, event.peer]
        before = self._before(worker, worker_channel, event)
        here, there = gpu.home(event.chunks[0]), self.gpus[event.peer].home(event.chunks[0])
        if not event.receives:
            step = _StepDraft("s", here, there, len(event.chunks), row=event.row)
        elif event.reduces:
            step = _StepDraft("rrc", here, here, len(event.chunks))
        else:
            step = _StepDraft("r", there, here, len(event.chunks))
        place = _append(block, step, before)
        self._note(worker, worker_channel, event, place)

    def _before(self, worker: int, worker_channel: int, event: _TransferEnd) -> list[_StepPlace]:
        """Return the steps that an event comes after: the last receive on its channel, and others with its chunks."""
        found = [self.last_receive[worker, worker_channel]] if (worker, worker_channel) in self.last_receive else []
        for chunk in event.chunks:
            if (worker, chunk) in self.applied:
                found.append(self.applied[worker, chunk])
            if event.receives:
                found += self.posted[worker, chunk]
        return found

    def _note(self, worker: int, worker_channel: int, event: _TransferEnd, place: _StepPlace) -> None:
        if event.receives:
            self.last_receive[worker, worker_channel] = place
        for chunk in event.chunks:
            if event.receives:
                self.applied[worker, chunk] = place
                self.posted[worker, chunk] = []
            else:
                self.posted[worker, chunk].append(place)


def _append(block: _BlockDraft, step: _StepDraft, before: list[_StepPlace]) -> _StepPlace:
    """Add a step that waits for some others: the last in each other block, by a ``nop`` for all but one of them."""
    last: dict[_BlockDraft, int] = {}
    for place in before:
        if place.block is not block:
            last[place.block] = max(place.step, last.get(place.block, -1))
    waits = [(other.number, number) for other, number in last.items()]
    for other, number in last.items():
        other.steps[number].awaited = True
    # The wait for the receive on the same channel, the first of the list, stays with the step itself.
    for wait in reversed(waits[1:]):
        block.steps.append(_StepDraft("nop", ("i", -1), ("o", -1), 0, wait))
    step.waits_for = waits[0] if waits else (-1, -1)
    block.steps.append(step)
    return _StepPlace(block, len(block.steps) - 1)


def _copy_own(gpu: _GpuDraft) -> None:
    """Add the copy of what stays at a gpu from where it starts to where it must end, where these differ."""
    first = {chunk: cell for cell, chunk in gpu.layout.chunks_at_start(gpu.worker).items()}
    steps = [
        _StepDraft("cpy", first[chunk], cell, 1) for chunk, cell in gpu.at_end.items() if first.get(chunk, cell) != cell
    ]
    if steps:
        gpu.blocks.append(_BlockDraft(len(gpu.blocks), 0, 0, steps=steps))


def _lines(
    schedule: Schedule, layout: BufferLayout, gpus: list[_GpuDraft], proto: str, order: IntArray
) -> Iterator[str]:
    n_channels = 1 + max((block.channel for gpu in gpus for block in gpu.blocks), default=0)
    rooted = {"broadcast": schedule.source, "reduce": schedule.target}.get(schedule.collective)
    head = {
        "name": schedule.algorithm,
        "proto": proto,
        "nchannels": n_channels,
        "nchunksperloop": layout.n_chunks // (layout.n_gpus if layout.collective == "all-to-all" else 1),
        "ngpus": layout.n_gpus,
        "coll": _MSCCL_NAMES[layout.collective],
        "inplace": int(layout.in_place),
    } | ({} if rooted is None or rooted[0] == EVERY_WORKER else {"root": int(rooted[0])})
    yield f"<algo {_attributes(head)}>"
    is_renumbered = bool((order != np.arange(len(order))).any())
    own = np.split(order, len(gpus)) if is_renumbered else []
    for gpu in gpus:
        sizes = {f"{buffer}_chunks": size for buffer, size in gpu.sizes().items()}
        values: dict[str, object] = {"id": gpu.worker, **sizes}
        if is_renumbered:
            values["own"] = " ".join(_series(own[gpu.worker].tolist()))
        yield f"  <gpu {_attributes(values)}>"
        for block in gpu.blocks:
            yield from _block_lines(block)
        yield "  </gpu>"
    yield "</algo>"


def _block_lines(block: _BlockDraft) -> Iterator[str]:
    head = {
        "id": block.number,
        "send": block.send,
        "recv": block.receive,
        "chan": block.channel,
        "lane": block.worker_channel,
    }
    yield f"    <tb {_attributes(head)}>"
    for number, step in enumerate(block.steps):
        cells = {"srcbuf": step.src[0], "srcoff": step.src[1], "dstbuf": step.dst[0], "dstoff": step.dst[1]}
        waits = {"depid": step.waits_for[0], "deps": step.waits_for[1], "hasdep": int(step.awaited)}
        row = step.row._asdict() if step.row else {}
        values = {"s": number, "type": step.kind} | cells | {"cnt": step.count} | waits | row
        yield f"      <step {_attributes(values)}/>"
    yield "    </tb>"


def _series(numbers: Sequence[int]) -> Iterator[str]:
    """Yield numbers as series, ``first:stride:count``: an attribute of NCCL's XML has 255 characters at most.

    >>> " ".join(_series([0, 4, 8, 1, 2, 3]))
    '0:4:3 1:1:3'
    """
    start = 0
    while start < len(numbers):
        end = start + 1
        stride = numbers[end] - numbers[start] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == stride:
            end += 1
        yield f"{numbers[start]}:{stride}:{end - start}"
        start = end


def _attributes(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={quoteattr(str(value))}" for name, value in values.items())
