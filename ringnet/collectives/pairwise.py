"""Pairwise exchange: an all-to-all in N-1 steps, one block out and one in for every worker in each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ringnet.collectives.direct import exchange
from ringnet.collectives.making import ALL_TO_ALL, make_step
from ringnet.collectives.schedule import Schedule, Step


def pairwise(n_workers: int, collective: str = ALL_TO_ALL) -> Schedule:
    """All-to-all by pairwise exchange: in step s worker i sends to worker i + s + 1, mod N.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-to-all"}

    Returns
    -------
    Schedule
        N x N chunks: chunk i N + j goes from worker i to worker j, and S is the buffer of one worker, cut
        into N. N-1 steps of N transfers.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes. With one port for each worker it takes (N-1)(alpha + beta S/N).
    Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA 19
    (2005): the algorithm for long messages.

    Examples
    --------
    >>> [step.chunk.tolist() for step in pairwise(3).steps()]
    [[1, 5, 6], [2, 3, 7]]
    """
    if collective != ALL_TO_ALL:
        raise KeyError(collective)
    return exchange("pairwise", n_workers, partial(_steps, n_workers))


def _steps(n_workers: int) -> Iterator[Step]:
    src = np.arange(n_workers)
    for step in range(n_workers - 1):
        dst = (src + step + 1) % n_workers
        yield make_step(ALL_TO_ALL, step, src, dst, src * n_workers + dst)
