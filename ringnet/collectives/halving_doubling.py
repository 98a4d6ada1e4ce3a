"""Recursive halving and doubling, Rabenseifner's all-reduce: half the buffer first, then a quarter."""

from __future__ import annotations

import numpy as np

from ringnet.collectives.folding import Fold
from ringnet.collectives.halving import Halving, halving_schedule
from ringnet.collectives.schedule import Schedule


def halving_doubling(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """All-reduce, reduce-scatter or all-gather by recursive halving and doubling.

    In step s of the reduce-scatter worker i exchanges S / 2^(s+1) with worker i xor 2^s: most with the
    nearest. The all-gather goes the same way back.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see
        `Fold`.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}

    Returns
    -------
    Schedule
        2^floor(log2 N) chunks (N for a collective in which each worker has its own), log2 N steps a phase;
        each transfer carries a range of chunks. Where workers are folded, one step before and one after.

    Notes
    -----
    For a power of two each worker sends (N-1)/N x S bytes a phase, and a phase takes log2 N alpha + (N-1)/N S
    beta, the reduce-scatter (N-1)/N S gamma more: the bytes of the ring in fewer steps. Otherwise with P =
    2^floor(log2 N) in place of N, and for an all-reduce 2 (alpha + S beta) + S gamma more; where each worker has
    its own chunk, the time is that of `ringnet.analysis.closed_forms.folded_halving_s`. Rabenseifner,
    *Optimization of collective reduction operations*, ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19
    (2005).

    Examples
    --------
    >>> step = next(halving_doubling(4).steps())
    >>> step.dst.tolist(), step.chunk.tolist(), step.count.tolist()
    ([1, 0, 3, 2], [2, 0, 2, 0], [2, 2, 2, 2])
    """
    fold = Fold.of(n_workers)
    return halving_schedule("halving-doubling", n_workers, collective, [halving_of(len(fold.members))], fold)


def halving_of(n_members: int) -> Halving:
    """Return who exchanges with whom among ``n_members``, a power of two: i with i xor 2^s in round s."""
    distance = 1 << np.arange(n_members.bit_length() - 1)[:, None]
    return Halving(np.arange(n_members) ^ distance)
