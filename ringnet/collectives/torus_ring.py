"""The 2-D ring on a torus: along rows and columns, half of the buffer beginning with each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_GATHER,
    SCATTER_GATHER,
    Schedule,
    Step,
    divisor_near_root,
    make_schedule,
    make_step,
    source_and_target,
)
from ringnet.errors import Fault, InputError


def torus_ring(n_workers: int, collective: str = "all-reduce", n_rows: int = 0) -> Schedule:
    """All-reduce, reduce-scatter or all-gather by rings along both dimensions of a torus.

    One half of the buffer is scattered along the rows and then, what each worker has of it, along the
    columns; the other half the other way round, at the same time. The all-gather goes the same way back.
    Worker i is in row i // (N / n_rows).

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    n_rows : int
        R, a divisor of N; 0 for the largest that is not above the square root of N.

    Returns
    -------
    Schedule
        2N chunks, a channel for each half; R + C - 2 steps a phase and half, C = N/R.

    Raises
    ------
    InputError
        Rows that do not come out even.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase. On a square torus (R = C) in which both dimensions have links
    of their own, a phase takes 2(R-1) alpha + (N-1)/N S beta / 2: with a reduction the worker's processor is
    shared by the halves, see `ringnet.analysis.formulas.torus_ring_s`. Jain and Sabharwal, *Optimal
    bucket algorithms for large MPI collectives on torus interconnects*, ICS 2010, in one direction of each
    dimension.

    Examples
    --------
    >>> [len(step) for step in torus_ring(4, "reduce-scatter").steps()]
    [8, 8]
    """
    n_rows = n_rows or divisor_near_root(n_workers)
    if n_rows < 1 or n_workers % n_rows:
        message = f"{n_workers} workers do not fill this many rows"
        raise InputError(Fault(message, value=str(n_rows), right="a divisor of the number of workers"))
    grid = np.arange(n_workers).reshape(n_rows, -1)
    halves = [_Half(grid, 0), _Half(grid.T, 1)]
    return make_schedule(
        "torus-ring",
        collective,
        n_workers,
        2 * n_workers,
        partial(_steps, halves, SCATTER_GATHER[collective]),
        n_channels=2,
        parameters={"n_rows": n_rows},
        **source_and_target(collective, np.concatenate([half.owner() for half in halves])),
    )


def _steps(halves: Sequence[_Half], phases: tuple[str, ...]) -> Iterator[Step]:
    for phase in phases:
        for step in range(len(halves[0])):
            columns = np.concatenate([half.step(phase, step) for half in halves], axis=1)
            src, dst, chunk, count, channel = columns
            yield make_step(phase, step, src, dst, chunk, channel, count=count)


class _Half:
    """One half: along the second axis of its grid first; worker (r, c) ends with piece (c+1, r+1)."""

    def __init__(self, grid: IntArray, channel: int) -> None:
        self.grid, self.channel = grid, channel
        self.n_rows, self.n_columns = grid.shape
        self.row, self.column = (index.ravel() for index in np.indices(grid.shape))

    def __len__(self) -> int:
        return int(self.n_rows + self.n_columns - 2)

    def owner(self) -> IntArray:
        """Return who ends a reduce-scatter with each piece."""
        return np.roll(self.grid, (1, 1), axis=(0, 1)).T.ravel()

    def step(self, phase: str, step: int) -> IntArray:
        """Return the columns src, dst, chunk, count, channel of a step."""
        gathers = phase == ALL_GATHER
        first, within = (self.n_rows - 1, self._down) if gathers else (self.n_columns - 1, self._along)
        then = self._along if gathers else self._down
        dst, chunk, count = within(step, ahead=int(gathers)) if step < first else then(step - first, ahead=int(gathers))
        rows = np.full(self.grid.size, count), np.full(self.grid.size, self.channel)
        return np.stack((self.grid.ravel(), dst, chunk + self.channel * self.grid.size, *rows))

    def _along(self, step: int, ahead: int) -> tuple[IntArray, IntArray, int]:
        """To the next column: a whole set of the pieces of one column."""
        dst = np.roll(self.grid, -1, axis=1).ravel()
        return dst, (self.column - step + ahead) % self.n_columns * self.n_rows, self.n_rows

    def _down(self, step: int, ahead: int) -> tuple[IntArray, IntArray, int]:
        """To the next row: one piece of the set that the worker's column has."""
        dst = np.roll(self.grid, -1, axis=0).ravel()
        mine = (self.column + 1) % self.n_columns * self.n_rows
        return dst, mine + (self.row - step + ahead) % self.n_rows, 1
