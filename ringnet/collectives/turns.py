"""Transfers of one step that reach the same cell: taken one after another, by sender, as workers apply them."""

from __future__ import annotations

import numpy as np

from ringnet.collectives.schedule import IntArray


def split_turns(src: IntArray, cell: IntArray) -> list[IntArray]:
    """Split the rows of a step so that no cell is reached twice in one turn.

    Parameters
    ----------
    src : ndarray of int64, shape (n,)
        Who sends each row; of the rows of one cell, the lower sender's comes in an earlier turn.
    cell : ndarray of int64, shape (n,)
        What it reaches.

    Returns
    -------
    list of ndarray of int64
        Rows of each turn.

    Examples
    --------
    >>> [turn.tolist() for turn in split_turns(np.array([3, 0, 1]), np.array([5, 7, 5]))]
    [[2, 1], [0]]
    """
    order = np.lexsort((src, cell))
    ranked = cell[order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1))
    turn = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    by_turn = order[np.argsort(turn, kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])
