"""The steps of a schedule as the workers of the `events` engine meet them: what each sends and is owed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.routes import Ways
from ringnet.engines.transfer import Transfer
from ringnet.engines.turns import Cells

Transfers: TypeAlias = list[Transfer]


class OpenStep:
    """One step that some lanes have not left yet.

    A lane is one worker on one channel, numbered ``worker * n_channels + channel``.
    """

    __slots__ = ("lanes_inside", "owed", "sends")

    def __init__(self, n_lanes: int) -> None:
        self.sends: list[Transfers] = [[] for _ in range(n_lanes)]
        self.owed: list[Transfers] = [[] for _ in range(n_lanes)]
        self.lanes_inside = n_lanes


class Program:
    """All steps, each made when the first lane comes to it and dropped when the last has left.

    Parameters
    ----------
    schedule : Schedule
    chunk_bytes : ndarray of int64, shape (n_chunks,)
        Bytes that each chunk is charged for.
    ways : Ways
    """

    def __init__(self, schedule: Schedule, chunk_bytes: NDArray[np.int64], ways: Ways) -> None:
        self.schedule, self.chunk_bytes, self.ways = schedule, chunk_bytes, ways
        self.n_lanes = schedule.n_workers * schedule.n_channels
        self._coming = schedule.steps()
        self._index = count()
        self._cells = Cells() if schedule.n_channels > 1 else None
        self._open: deque[OpenStep] = deque()
        self._first = 0

    def lane(self, lane: int) -> Iterator[tuple[Transfers, Transfers]]:
        """Yield for each step what a lane sends and what it is owed, the latter by source."""
        for number in range(self.schedule.n_steps):
            if number == self._first + len(self._open):
                self._open.append(self._make(next(self._coming)))
            step = self._open[number - self._first]
            yield step.sends[lane], step.owed[lane]
            step.lanes_inside -= 1
            while self._open and not self._open[0].lanes_inside:
                self._open.popleft()
                self._first += 1

    def _make(self, step: Step) -> OpenStep:
        made = OpenStep(self.n_lanes)
        n_channels, route = self.schedule.n_channels, self.ways.route
        columns = (step.src, step.dst, step.chunk, step.channel, step.receiving_channel)
        rows = zip(*(column.tolist() for column in (*columns, step.sizes(self.chunk_bytes))), strict=True)
        counts = repeat(1) if step.count is None else step.count.tolist()
        for (src, dst, chunk, channel, to, n_bytes), n_chunks in zip(rows, counts, strict=False):
            row, way = (src, dst, chunk, channel), route(src, dst)
            transfer = Transfer(next(self._index), step, row, n_bytes, way, n_chunks)
            made.sends[src * n_channels + channel].append(transfer)
            made.owed[dst * n_channels + to].append(transfer)
        for owed in made.owed:
            if len(owed) > 1:
                owed.sort(key=lambda transfer: transfer.src)
        if self._cells is not None:
            self._cells.order(made.sends, made.owed)
        return made
