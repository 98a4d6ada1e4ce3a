"""The pipelined binary tree: slices go up and down a complete binary tree, one behind the other."""

from __future__ import annotations

import numpy as np

from ringnet.collectives.making import UP_DOWN, ends, make_schedule
from ringnet.collectives.schedule import IntArray, Schedule
from ringnet.collectives.trees import NOBODY, Trees


def binary_tree(n_workers: int, collective: str = "all-reduce", n_slices: int = 4, root: int = 0) -> Schedule:
    """Reduce along a complete binary tree, broadcast along it, or (all-reduce) both, overlapping in time.

    Counted from the root, the children of worker v are 2v + 1 and 2v + 2.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "broadcast", "reduce"}
    n_slices : int
        k, at least 1: parts that the buffer is cut into.
    root : int
        Where a broadcast starts and a reduce ends.

    Returns
    -------
    Schedule
        k chunks, k + D - 1 steps a phase, D = floor(log2 N); in an all-reduce on channel 0 up and on channel
        1 down.

    Notes
    -----
    Each worker but the root sends S bytes up; inner ones send S to each child on the way down. With slices of
    d = S/k bytes an all-reduce takes 2D (alpha + d beta) + 2D d gamma + (k-1) d max(beta, 2 gamma) for N of
    at least 3, no power of two (then one d gamma less), where every two workers have a link of their own.
    Through one port a worker, each slice takes twice the d beta on the way. Chan, Heimlich, Purkayastha and
    van de Geijn, CCPE 19 (2007); Sanders, Speck and Traeff, Parallel Computing 35 (2009).

    Examples
    --------
    >>> [step.src.tolist() for step in binary_tree(4, "reduce", n_slices=2).steps()]
    [[3], [1, 2, 3], [1, 2]]
    """
    trees = Trees([_parents(n_workers, root)], n_slices, UP_DOWN[collective])
    more = ends(collective, root, n_slices) | {
        "n_channels": trees.n_channels,
        "parameters": {"n_slices": n_slices, "root": root},
    }
    return make_schedule("binary-tree", collective, n_workers, n_slices, trees.steps, **more)


def _parents(n_workers: int, root: int) -> IntArray:
    place = (np.arange(n_workers) - root) % n_workers
    return np.where(place == 0, NOBODY, ((place - 1) // 2 + root) % n_workers)
