"""The double binary tree: half of the buffer each, a leaf of one is an inner worker of the other."""

from __future__ import annotations

import numpy as np

from ringnet.collectives.making import ALL_REDUCE, UP_DOWN, make_schedule
from ringnet.collectives.schedule import IntArray, Schedule
from ringnet.collectives.trees import NOBODY, Trees
from ringnet.errors import Fault, InputError


def double_binary_tree(
    n_workers: int, collective: str = ALL_REDUCE, n_slices: int = 4, node_size: int = 1
) -> Schedule:
    """All-reduce along two binary trees at the same time, built as NCCL builds them.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce"}
    n_slices : int
        k, at least 1: parts that each half of the buffer is cut into.
    node_size : int
        g: every g workers are one node, a chain; the trees join the heads of the chains, which are the first
        workers in the first tree and the last in the second. It must divide N.

    Returns
    -------
    Schedule
        2k chunks, k + D - 1 steps a phase, D the depth of the deeper tree; channels 0 and 1 up and down the first
        tree, 2 and 3 the second.

    Raises
    ------
    InputError
        Nodes of this size do not come out even.

    Notes
    -----
    Each worker sends about 2S bytes in all, and no more than S each way through its links: with all of its
    ports, twice the bandwidth of one tree. The depth D is about log2 N, so that with slices of d = S/2k bytes
    it takes 2D (alpha + d beta) + (k-1) d beta as long as no link serves both trees at once;
    `ringnet.analysis.closed_forms.double_tree_s` says what it is exactly. With nodes and empty slices that is
    NCCL's tree latency, 2((g-1) intra + log2(nodes) inter). Sanders, Speck and Traeff, *Two-tree algorithms
    for full bandwidth broadcast, reduction and scan*, Parallel Computing 35 (2009); NCCL,
    `src/graph/trees.cc`.

    Examples
    --------
    >>> [tree.tolist() for tree in parents(6)]
    [[-1, 2, 4, 2, 0, 4], [1, 5, 3, 1, 3, -1]]
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    if n_workers % node_size:
        message = f"{n_workers} workers do not fill nodes of this size"
        raise InputError(Fault(message, value=str(node_size), right="a divisor of the number of workers"))
    trees = Trees(parents(n_workers, node_size), n_slices, UP_DOWN[collective])
    more = {
        "n_channels": trees.n_channels,
        "parameters": {"n_slices": n_slices, "node_size": node_size},
    }
    return make_schedule("double-binary-tree", collective, n_workers, 2 * n_slices, trees.steps, **more)


def parents(n_workers: int, node_size: int = 1) -> list[IntArray]:
    """Return the parent of each worker in the first tree and in the second, -1 for the roots."""
    n_nodes = n_workers // node_size
    first = _tree(n_nodes)
    if n_nodes % 2:
        # Shifted by one node: an odd number of nodes has no mirror image in which leaves become inner nodes.
        second = np.where(np.roll(first, 1) == NOBODY, NOBODY, (np.roll(first, 1) + 1) % n_nodes)
    else:
        second = np.where(first[::-1] == NOBODY, NOBODY, n_nodes - 1 - first[::-1])
    return [_with_chains(first, node_size, head=0), _with_chains(second, node_size, head=node_size - 1)]


def _tree(n_nodes: int) -> IntArray:
    """Return the parents in NCCL's tree.

    Node v with lowest set bit b hangs on v without b but with 2b; if there is no such node, on v without b.
    """
    node = np.arange(n_nodes)
    bit = node & -node
    above = (node ^ bit) | (bit << 1)
    parent = np.where(above < n_nodes, above, node ^ bit)
    parent[0] = NOBODY
    return parent


def _with_chains(tree: IntArray, node_size: int, head: int) -> IntArray:
    """Replace each node by a chain of workers; its head hangs on the head of the parent."""
    place = np.arange(len(tree) * node_size)
    parent = place + (-1 if head == 0 else 1)
    heads = np.arange(len(tree)) * node_size + head
    parent[heads] = np.where(tree == NOBODY, NOBODY, tree * node_size + head)
    return parent
