"""Everyone to everyone: all at once, a step for each distance, or by powers of two."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ringnet.collectives.schedule import (
    ALL_GATHER,
    ALL_TO_ALL,
    SCATTER_GATHER,
    Schedule,
    Step,
    make_schedule,
    make_step,
    source_and_target,
)


def direct(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """All-reduce, reduce-scatter, all-gather or all-to-all, every worker to every other at once.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather", "all-to-all"}

    Returns
    -------
    Schedule
        N chunks, chunk i of worker i, one step of N(N-1) transfers a phase. For an all-to-all N x N chunks:
        chunk i N + j goes from worker i to worker j, and S is the buffer of one worker, cut into N.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase. Where every two workers have a link of their own, a phase
    takes alpha + c beta, and the reduce-scatter (N-1) c gamma more, c = S/N; through one port of a worker it
    takes alpha + (N-1) c beta. Algorithm "linear" of reduce-scatter and all-gather in Thakur, Rabenseifner
    and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA 19 (2005); *allpairs* in
    MSCCL.

    Examples
    --------
    >>> [(step.phase, len(step)) for step in direct(4).steps()]
    [('reduce-scatter', 12), ('all-gather', 12)]
    """
    if collective == ALL_TO_ALL:
        return all_to_all("direct", n_workers, partial(_direct_all_to_all, n_workers))
    steps = partial(_direct_steps, n_workers, SCATTER_GATHER[collective])
    ends = source_and_target(collective, np.arange(n_workers))
    return make_schedule("direct", collective, n_workers, n_workers, steps, **ends)


def all_to_all(algorithm: str, n_workers: int, steps: partial[Iterator[Step]]) -> Schedule:
    """Return an all-to-all of some steps: chunk i N + j starts at worker i and must end at worker j."""
    n_chunks = n_workers * n_workers
    source, target = np.divmod(np.arange(n_chunks), n_workers)
    return make_schedule(
        algorithm,
        ALL_TO_ALL,
        n_workers,
        n_chunks,
        steps,
        source=source,
        target=target,
        n_buffers=n_workers,
    )


def _direct_steps(n_workers: int, phases: tuple[str, ...]) -> Iterator[Step]:
    if n_workers > 1:
        src, dst = _every_pair(n_workers)
        for phase in phases:
            yield make_step(phase, 0, src, dst, src if phase == ALL_GATHER else dst)


def _direct_all_to_all(n_workers: int) -> Iterator[Step]:
    if n_workers > 1:
        src, dst = _every_pair(n_workers)
        yield make_step(ALL_TO_ALL, 0, src, dst, src * n_workers + dst)


def _every_pair(n_workers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return senders and receivers, each sender's from its right-hand neighbour on: no two begin with the same one."""
    src = np.repeat(np.arange(n_workers), n_workers - 1)
    return src, (src + np.tile(np.arange(1, n_workers), n_workers)) % n_workers


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
    return all_to_all("pairwise", n_workers, partial(_pairwise_steps, n_workers))


def _pairwise_steps(n_workers: int) -> Iterator[Step]:
    src = np.arange(n_workers)
    for step in range(n_workers - 1):
        dst = (src + step + 1) % n_workers
        yield make_step(ALL_TO_ALL, step, src, dst, src * n_workers + dst)


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
    return all_to_all("bruck", n_workers, partial(_bruck_steps, n_workers))


def _bruck_steps(n_workers: int) -> Iterator[Step]:
    source, target = np.divmod(np.arange(n_workers * n_workers), n_workers)
    way = (target - source) % n_workers
    for step in range((n_workers - 1).bit_length()):
        hop = 1 << step
        moving = np.flatnonzero(way & hop)
        src = (source[moving] + way[moving] % hop) % n_workers
        order = np.argsort(src, kind="stable")
        yield make_step(ALL_TO_ALL, step, src[order], (src[order] + hop) % n_workers, moving[order])
