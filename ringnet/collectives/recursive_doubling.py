"""Recursive doubling: whole buffers are exchanged with partners twice as far away in each step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ringnet.collectives.folding import Fold
from ringnet.collectives.making import ALL_REDUCE, make_schedule, make_step
from ringnet.collectives.schedule import Schedule, Step


def recursive_doubling(n_workers: int, collective: str = ALL_REDUCE) -> Schedule:
    """All-reduce by recursive doubling: in step s workers i and i xor 2^s exchange all they have.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see
        `Fold`.
    collective : {"all-reduce"}

    Returns
    -------
    Schedule
        One chunk, log2 N steps; floor(log2 N) + 2 where workers are folded.

    Notes
    -----
    Each worker sends S log2 N bytes. For a power of two it takes log2 N (alpha + S (beta + gamma)): the
    fewest steps, the most bytes. Folding makes that (m + 1) S gamma + (m + 1 or 2)(alpha + S beta), m =
    floor(log2 N), r = N - 2^m: 2 where r > 2^(m-1), else 1, since a worker with a late partner catches up.
    Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA 19
    (2005).

    Examples
    --------
    >>> [step.dst.tolist() for step in recursive_doubling(4).steps()]
    [[1, 0, 3, 2], [2, 3, 0, 1]]
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    return make_schedule("recursive-doubling", collective, n_workers, 1, partial(_steps, Fold.of(n_workers)))


def _steps(fold: Fold) -> Iterator[Step]:
    place = np.arange(len(fold.members))
    if len(fold.folded):
        yield make_step("reduce into neighbours", 0, fold.folded, fold.stand_in, 0)
    for step in range(fold.n_rounds):
        yield make_step("reduce by doubling", step, fold.members, fold.members[place ^ (1 << step)], 0)
    if len(fold.folded):
        yield make_step("copy to neighbours", 0, fold.stand_in, fold.folded, 0)
