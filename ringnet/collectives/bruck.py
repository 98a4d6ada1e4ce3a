"""Bruck's all-to-all: blocks travel by powers of two, in as few steps as there can be with one port."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ringnet.collectives.direct import exchange
from ringnet.collectives.making import ALL_TO_ALL, make_step
from ringnet.collectives.schedule import Schedule, Step


def bruck(n_workers: int, collective: str = ALL_TO_ALL) -> Schedule:
    """All-to-all by Bruck's algorithm: in step s blocks whose way has bit s set move 2^s to the right.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-to-all"}

    Returns
    -------
    Schedule
        N x N chunks: chunk i N + j goes from worker i to worker j, and S is the buffer of one worker, cut
        into N. Ceil(log2 N) steps. The blocks of a step are transfers of their own, since they do not lie
        side by side.

    Notes
    -----
    It takes ceil(log2 N) alpha + n beta S/N, n the bits set in all numbers below N. For N a power of two each
    worker sends S/2 bytes a step, and that is log2 N (alpha + beta S/2): fewer steps than the pairwise exchange
    for more bytes. Bruck, Ho, Kipnis, Upfal and Weathersby, *Efficient algorithms for all-to-all communications
    in multiport message-passing systems*, IEEE TPDS 8 (1997).

    Examples
    --------
    >>> [len(step) for step in bruck(8).steps()]
    [32, 32, 32]
    """
    if collective != ALL_TO_ALL:
        raise KeyError(collective)
    return exchange("bruck", n_workers, partial(_steps, n_workers))


def _steps(n_workers: int) -> Iterator[Step]:
    source, target = np.divmod(np.arange(n_workers * n_workers), n_workers)
    way = (target - source) % n_workers
    for step in range((n_workers - 1).bit_length()):
        hop = 1 << step
        moving = np.flatnonzero(way & hop)
        src = (source[moving] + way[moving] % hop) % n_workers
        order = np.argsort(src, kind="stable")
        yield make_step(ALL_TO_ALL, step, src[order], (src[order] + hop) % n_workers, moving[order])
