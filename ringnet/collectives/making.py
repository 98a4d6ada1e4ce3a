"""What algorithms are built with: steps from arrays and numbers, schedules that count themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Op, Schedule, Step

REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"
ALL_REDUCE, BROADCAST, REDUCE, ALL_TO_ALL = "all-reduce", "broadcast", "reduce", "all-to-all"

#: The phases of a collective that scatters sums, gathers them, or does one after the other.
SCATTER_GATHER: dict[str, tuple[str, ...]] = {
    ALL_REDUCE: (REDUCE_SCATTER, ALL_GATHER),
    REDUCE_SCATTER: (REDUCE_SCATTER,),
    ALL_GATHER: (ALL_GATHER,),
}
#: The phases of a collective that reduces to one worker, broadcasts from it, or does one after the other.
UP_DOWN: dict[str, tuple[str, ...]] = {
    ALL_REDUCE: (REDUCE, BROADCAST),
    REDUCE: (REDUCE,),
    BROADCAST: (BROADCAST,),
}


def frozen(values: ArrayLike) -> IntArray:
    """Return an array of int64 that cannot be written: what columns of steps are."""
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def make_step(
    phase: str,
    number: int,
    src: ArrayLike,
    dst: ArrayLike,
    chunk: ArrayLike,
    channel: ArrayLike = 0,
    **more: ArrayLike,
) -> Step:
    """Return a step; a number stands for a whole column, and the phase says whether receivers reduce.

    Parameters
    ----------
    phase : str
        A name that starts with ``reduce`` reduces, any other copies.
    number : int
    src, dst, chunk, channel : array_like of int
    more : array_like of int
        ``to_channel``, ``count``.

    Examples
    --------
    >>> make_step("reduce", 0, [1, 2], 0, 5).chunk.tolist()
    [5, 5]
    """
    src = np.atleast_1d(np.asarray(src, dtype=np.int64))
    columns = [frozen(np.broadcast_to(column, src.shape)) for column in (src, dst, chunk, channel)]
    others = {name: frozen(np.broadcast_to(column, src.shape)) for name, column in more.items()}
    op: Op = "reduce" if phase.startswith("reduce") else "copy"
    return Step(phase, number, op, *columns, **others)


def make_schedule(
    algorithm: str,
    collective: str,
    n_workers: int,
    n_chunks: int,
    make_steps: Callable[[], Iterator[Step]],
    **more: Any,
) -> Schedule:
    """Return a schedule, its steps and transfers counted; every worker is source and target by default."""
    lengths = [len(step) for step in make_steps()]
    everyone = frozen(np.full(n_chunks, EVERY_WORKER))
    return Schedule(
        algorithm=algorithm,
        collective=collective,
        n_workers=n_workers,
        n_chunks=n_chunks,
        n_steps=len(lengths),
        n_transfers=sum(lengths),
        make_steps=make_steps,
        **({"source": everyone, "target": everyone} | more),
    )


def ends(collective: str, owner: ArrayLike, n_chunks: int) -> dict[str, Any]:
    """Return source and target where one worker holds a chunk alone at one end of the collective: ``owner``.

    >>> {name: workers.tolist() for name, workers in ends("reduce-scatter", [1, 0], 2).items()}
    {'source': [-1, -1], 'target': [1, 0]}
    """
    alone, everyone = (frozen(np.broadcast_to(who, n_chunks)) for who in (owner, EVERY_WORKER))
    return {
        "source": alone if collective in {ALL_GATHER, BROADCAST} else everyone,
        "target": alone if collective in {REDUCE_SCATTER, REDUCE} else everyone,
    }
