"""What one worker of a ring does, step by step: taken from the schedule that the simulator runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringnet.collectives import Schedule
from ringnet.collectives.schedule import Op, Step
from ringnet.payload.dtypes import Array


class Move(NamedTuple):
    """One step of one worker: the chunk that it sends, and the one that it receives to do ``op`` with."""

    op: Op
    sends: int
    receives: int


def moves_of(schedule: Schedule, worker: int) -> list[Move]:
    """Return what ``worker`` does in each step of a ring.

    Examples
    --------
    >>> from ringnet.collectives.rings import ring
    >>> [tuple(move) for move in moves_of(ring(2), 0)]
    [('reduce', 0, 1), ('copy', 1, 0)]
    """
    return [_move(step, worker) for step in schedule.steps()]


def _move(step: Step, worker: int) -> Move:
    sent, received = step.chunk[step.src == worker], step.chunk[step.dst == worker]
    return Move(step.op, int(sent[0]), int(received[0]))


def cut(buffer: Array, n_chunks: int) -> list[Array]:
    """Cut a buffer as the definition does; the chunks are views.

    >>> [chunk.tolist() for chunk in cut(np.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    return np.array_split(buffer, n_chunks)
