"""A file that ringnet itself wrote, read back row for row: believed if writing the schedule again gives that file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import Op, Schedule, Step, frozen, make_schedule
from ringnet.errors import InputError
from ringnet.formats.msccl.dataflow import BufferLayout
from ringnet.formats.msccl.thread_blocks import (
    RECEIVES,
    Operation,
    ScheduleFile,
    ThreadBlock,
    TransferRow,
    parse_schedule,
)
from ringnet.formats.msccl.writer import dumps_msccl, make_numbering


def as_written(file: ScheduleFile, layout: BufferLayout) -> Schedule | None:
    """Return the schedule that a file was written from by ringnet; None if it was not, or was changed since.

    Nothing that the file says beside MSCCL's attributes is believed for itself: the schedule made of it is written
    again, and must give the same blocks, steps and waits.
    """
    sends = [operation for block in file.blocks for operation in block.operations if operation.kind == "s"]
    rows = {operation.row for operation in sends if operation.row}
    # As much is sent as the rows hold: writing them again takes no longer than the file does.
    if any(operation.row is None for operation in sends) or (
        sum(row.chunks for row in rows) != sum(operation.count for operation in sends)
    ):
        return None
    order = _order(file.own, layout.n_chunks)
    if order is None or any(row.chunk + row.chunks > layout.n_chunks for row in rows):
        return None
    number = make_numbering(order)
    schedule = make_schedule(
        file.name,
        layout.collective,
        file.n_gpus,
        layout.n_chunks,
        list(_steps(file)),
        source=frozen(layout.source[number]),
        target=frozen(layout.target[number]),
        n_channels=1 + max((block.worker_channel or 0 for block in file.blocks), default=0),
        n_buffers=layout.n_buffers,
    )
    try:
        again = parse_schedule(dumps_msccl(schedule).encode(), "")
    except InputError:  # no schedule that ringnet would have written
        return None
    return schedule if again == file else None


def _order(own: tuple[str, ...], n_chunks: int) -> IntArray | None:
    """Return the chunks of the schedule in the order of the file; None if what gpus say of theirs is no such order."""
    if not any(own):
        return np.arange(n_chunks)
    found: list[int] = []
    for series in (one for text in own for one in text.split()):
        numbers = [int(number) for number in series.split(":") if number.removeprefix("-").isdecimal()]
        if len(numbers) != 3 or len(series) > 40 or numbers[2] + len(found) > n_chunks:  # noqa: PLR2004 -- _series
            return None
        first, stride, count = numbers
        found += (first + stride * k for k in range(count))
    return np.array(found) if sorted(found) == list(range(n_chunks)) else None


class _Sent(NamedTuple):
    """A transfer of a file: its row, the worker and channel at both ends, and what its receiver does."""

    row: TransferRow
    src: int
    dst: int
    channel: int
    to_channel: int
    op: Op


def _sent(file: ScheduleFile) -> Iterator[_Sent]:
    """Yield what is sent, a part of a transfer or the whole: the k-th send on a connection is its k-th receive."""
    received: dict[tuple[int | None, int, int], list[tuple[ThreadBlock, Operation]]] = defaultdict(list)
    for block in file.blocks:
        received[block.receive, block.gpu, block.channel] += (
            (block, operation) for operation in block.operations if operation.kind in RECEIVES
        )
    for block in file.blocks:
        sends = (one.row for one in block.operations if one.kind == "s" and one.row)
        comes = received[block.gpu, -1 if block.send is None else block.send, block.channel]
        for row, (receiver, operation) in zip(sends, comes, strict=False):
            op: Op = "copy" if operation.kind == "r" else "reduce"
            ends = (block.gpu, receiver.gpu, block.worker_channel or 0, receiver.worker_channel or 0)
            yield _Sent(row, *ends, op)


def _steps(file: ScheduleFile) -> Iterator[Step]:
    """Yield the steps, each with its rows in order; of a transfer that was taken apart the first part says all."""
    turns: dict[int, dict[int, _Sent]] = defaultdict(dict)
    for one in _sent(file):
        turns[one.row.turn].setdefault(one.row.row, one)
    count: dict[Op, int] = defaultdict(int)
    for _, rows in sorted(turns.items()):
        sent = [one for _, one in sorted(rows.items())]
        chunk, n_chunks = (frozen([one.row[column] for one in sent]) for column in (2, 3))
        src, dst, channel, to_channel = (frozen([one[column] for one in sent]) for column in (1, 2, 3, 4))
        op = sent[0].op
        counts = None if (n_chunks == 1).all() else n_chunks
        yield Step(op, count[op], op, src, dst, chunk, channel, to_channel, counts)
        count[op] += 1
