"""The binomial tree: whole buffers, log2 N steps up to the root and as many down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ringnet.collectives.making import REDUCE, UP_DOWN, ends, make_schedule, make_step
from ringnet.collectives.schedule import Schedule, Step


def binomial_tree(n_workers: int, collective: str = "all-reduce", root: int = 0) -> Schedule:
    """Reduce along a binomial tree, broadcast along it, or (all-reduce) one after the other.

    Counted from the root, worker v with lowest set bit 2^s sends to worker v - 2^s in step s of the reduce;
    the broadcast goes the same way back.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "broadcast", "reduce"}
    root : int
        Where a broadcast starts and a reduce ends.

    Returns
    -------
    Schedule
        One chunk, ceil(log2 N) steps a phase.

    Notes
    -----
    Each worker but the root sends S bytes up; inner ones send S to each child on the way down. For a power of
    two the reduce takes log2 N (alpha + S (beta + gamma)), the broadcast log2 N (alpha + S beta), and no less
    where every two workers have a link of their own; `ringnet.analysis.closed_forms.binomial_tree_s` has the
    form for any N. Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in
    MPICH*, IJHPCA 19 (2005).

    Examples
    --------
    >>> [(step.src.tolist(), step.dst.tolist()) for step in binomial_tree(5, "reduce").steps()]
    [([1, 3], [0, 2]), ([2], [0]), ([4], [0])]
    """
    steps = partial(_steps, n_workers, UP_DOWN[collective], root)
    more = ends(collective, root, 1) | {"parameters": {"root": root}}
    return make_schedule("binomial-tree", collective, n_workers, 1, steps, **more)


def _steps(n_workers: int, phases: Sequence[str], root: int) -> Iterator[Step]:
    n_rounds = (n_workers - 1).bit_length()
    for phase in phases:
        for step in range(n_rounds):
            hop = 1 << (step if phase == REDUCE else n_rounds - 1 - step)
            child = np.arange(hop, n_workers, 2 * hop)
            pair = ((child + root) % n_workers, (child - hop + root) % n_workers)
            yield make_step(phase, step, *(pair if phase == REDUCE else pair[::-1]), 0)
