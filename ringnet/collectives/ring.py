"""The ring: each worker sends to its right-hand neighbour only, N-1 steps a phase."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Op, Schedule, Step

REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"
PHASES: dict[str, tuple[str, ...]] = {
    "all-reduce": (REDUCE_SCATTER, ALL_GATHER),
    REDUCE_SCATTER: (REDUCE_SCATTER,),
    ALL_GATHER: (ALL_GATHER,),
}


def ring(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """Ring all-reduce, reduce-scatter or all-gather in one direction.

    After reduce-scatter worker i holds the complete chunk (i+1) mod N; an all-gather on its own starts there.

    Parameters
    ----------
    n_workers : int
        N, at least 1. With N=1 there is no step.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}

    Returns
    -------
    Schedule
        N chunks, N-1 steps a phase, N transfers a step.

    Raises
    ------
    KeyError
        For any other collective.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase. On a uniform ring a phase takes (N-1)(alpha + c beta), c
    the bytes of the largest chunk, the reduce-scatter (N-1) c gamma more. Patarasuk and Yuan, *Bandwidth optimal
    all-reduce algorithms for clusters of workstations*, JPDC 69 (2009).

    Examples
    --------
    >>> step = next(ring(3).steps())
    >>> step.src.tolist(), step.dst.tolist(), step.chunk.tolist()
    ([0, 1, 2], [1, 2, 0], [0, 1, 2])
    """
    phases = PHASES[collective]
    everyone = np.full(n_workers, EVERY_WORKER, dtype=np.int64)
    owner = np.arange(-1, n_workers - 1, dtype=np.int64) % n_workers
    n_steps = len(phases) * (n_workers - 1)
    return Schedule(
        algorithm="ring",
        collective=collective,
        n_workers=n_workers,
        n_chunks=n_workers,
        n_steps=n_steps,
        n_transfers=n_steps * n_workers,
        make_steps=partial(_steps, n_workers, phases),
        source=owner if phases == (ALL_GATHER,) else everyone,
        target=owner if phases == (REDUCE_SCATTER,) else everyone,
    )


def _steps(n_workers: int, phases: tuple[str, ...]) -> Iterator[Step]:
    # Every column of every step is a view of one doubled range, so that a step of 16384 transfers costs no arithmetic.
    twice = np.arange(2 * n_workers, dtype=np.int64) % n_workers
    channel = np.zeros(n_workers, dtype=np.int64)
    twice.flags.writeable = channel.flags.writeable = False
    src, dst = _from(twice, 0), _from(twice, 1)
    for phase in phases:
        op: Op = "reduce" if phase == REDUCE_SCATTER else "copy"
        first = 0 if phase == REDUCE_SCATTER else 1
        for step in range(n_workers - 1):
            yield Step(phase, step, op, src, dst, _from(twice, first - step), channel)


def _from(twice: IntArray, start: int) -> IntArray:
    n_workers = len(twice) // 2
    return twice[start % n_workers :][:n_workers]
