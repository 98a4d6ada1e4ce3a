"""Trees: binomial, with whole buffers; binary, and two binary ones at once, with slices that follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_REDUCE,
    EVERY_WORKER,
    REDUCE,
    UP_DOWN,
    Schedule,
    Step,
    check_node_size,
    entries,
    make_schedule,
    make_step,
    source_and_target,
)


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
    where every two workers have a link of their own; `ringnet.analysis.formulas.binomial_tree_s` has the
    form for any N. Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in
    MPICH*, IJHPCA 19 (2005).

    Examples
    --------
    >>> [(step.src.tolist(), step.dst.tolist()) for step in binomial_tree(5, "reduce").steps()]
    [([1, 3], [0, 2]), ([2], [0]), ([4], [0])]
    """
    return make_schedule(
        "binomial-tree",
        collective,
        n_workers,
        1,
        partial(_binomial_steps, n_workers, UP_DOWN[collective], root),
        parameters={"root": root},
        **source_and_target(collective, root),
    )


def _binomial_steps(n_workers: int, phases: Sequence[str], root: int) -> Iterator[Step]:
    n_rounds = (n_workers - 1).bit_length()
    for phase in phases:
        for step in range(n_rounds):
            hop = 1 << (step if phase == REDUCE else n_rounds - 1 - step)
            child = np.arange(hop, n_workers, 2 * hop)
            pair = ((child + root) % n_workers, (child - hop + root) % n_workers)
            yield make_step(phase, step, *(pair if phase == REDUCE else pair[::-1]), 0)


#: The parent of a root.
NOBODY = -1


class PipelinedTrees:
    """Trees over the same workers, each with slices of its own that follow each other through it.

    Parameters
    ----------
    parents : sequence of ndarray of int64, shape (n_workers + n_switches,)
        The parent of each worker, and of each switch where some take part, -1 for the root; one for each tree.
    n_slices : int
        k: tree q works on chunks q k .. q k + k-1.
    phases : sequence of str
        ``"reduce"``, ``"broadcast"`` or both. Each has a channel of its own in each tree, so that they
        overlap in time.
    n_switches : int
        How many of them are switches, the last ones.

    Notes
    -----
    In slot t a worker at depth d sends slice t - (D - d) to its parent, D the depth of the deepest, and so
    waits for the next slice of its children; and it gets slice t - (D + d - 1) from its parent.
    """

    def __init__(self, parents: Sequence[IntArray], n_slices: int, phases: Sequence[str], n_switches: int = 0) -> None:
        self.parents, self.n_slices, self.phases, self.n_switches = (
            np.array(parents),
            n_slices,
            phases,
            n_switches,
        )
        self.depths = depths(self.parents)
        self.depth = int(self.depths.max())

    def schedule(self, algorithm: str, collective: str, **parameters: Any) -> Schedule:
        """Return the schedule of a collective; ``root`` among the parameters is where it starts or ends."""
        return make_schedule(
            algorithm,
            collective,
            len(self.parents[0]) - self.n_switches,
            len(self.parents) * self.n_slices,
            self._steps,
            n_channels=len(self.parents) * len(self.phases),
            n_switches=self.n_switches,
            parameters=parameters,
            **source_and_target(collective, parameters.get("root", EVERY_WORKER)),
        )

    def _steps(self) -> Iterator[Step]:
        """Yield the steps slot by slot, in each the reduce before the broadcast."""
        number = dict.fromkeys(self.phases, 0)
        for slot in range(self.n_slices + 2 * self.depth - 1 if self.depth else 0):
            for channel, phase in enumerate(self.phases):
                late = self.depth - self.depths if phase == REDUCE else self.depth + self.depths - 1
                part = slot - late
                moving = (part >= 0) & (part < self.n_slices) & (self.parents != NOBODY)
                tree, child = np.nonzero(moving)
                if len(child):
                    parent = self.parents[moving]
                    src, dst = (child, parent) if phase == REDUCE else (parent, child)
                    chunk, on = part[moving] + tree * self.n_slices, tree * len(self.phases) + channel
                    yield make_step(phase, number[phase], src, dst, chunk, on)
                    number[phase] += 1


def depths(parent: IntArray) -> IntArray:
    """Return the depth of each worker, 0 for the root; of one tree, or of several in rows.

    >>> depths(np.array([-1, 0, 0, 1])).tolist()
    [0, 1, 1, 2]
    """
    depth, above = np.zeros(parent.shape, dtype=np.int64), parent
    while (above != NOBODY).any():
        depth += above != NOBODY
        above = np.where(above == NOBODY, NOBODY, np.take_along_axis(parent, above, axis=-1))
    return depth


def binary_tree(
    n_workers: int,
    collective: str = "all-reduce",
    n_slices: int = 4,
    root: int = 0,
    n_channels: int = 1,
    node_size: int = 1,
) -> Schedule:
    """Reduce along a complete binary tree, broadcast along it, or (all-reduce) both, overlapping in time.

    Counted from the root, the children of worker v are 2v + 1 and 2v + 2. With nodes the tree joins them, and the
    workers of each are a chain.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "broadcast", "reduce"}
    n_slices : int
        k, at least 1: parts that the share of each channel is cut into.
    root : int
        Where a broadcast starts and a reduce ends.
    n_channels : int
        Trees beside each other, at least 1, each with its share of the buffer. Their chains begin spread over the
        workers of a node, so that with as many channels as cards each card of a node carries one.
    node_size : int
        g: every g workers are one node, a divisor of N. In an all-reduce the chains of channel 0 begin at the worker of
        each node that has the place of the root in its own; in the other collectives each chain of the root's node
        begins at the root, and goes on where the other nodes hang.

    Returns
    -------
    Schedule
        k chunks a channel, k + D - 1 steps a phase, D the depth, floor(log2 N) without nodes; in an all-reduce tree q
        is on channel 2q up and on channel 2q + 1 down.

    Raises
    ------
    InputError
        Nodes of this size do not come out even.

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
    check_node_size(n_workers, node_size)
    n_nodes, at = n_workers // node_size, root // node_size
    place = (np.arange(n_nodes) - at) % n_nodes
    nodes = np.where(place == 0, NOBODY, ((place - 1) // 2 + at) % n_nodes)
    heads = entries(n_channels, node_size)
    if collective == ALL_REDUCE:
        parents = [_with_chains(nodes, node_size, (int(head) + root) % node_size) for head in heads]
    else:
        parents = [_rooted(_with_chains(nodes, node_size, int(head)), root) for head in heads]
    parameters = {"n_slices": n_slices, "root": root, "n_channels": n_channels, "node_size": node_size}
    return PipelinedTrees(parents, n_slices, UP_DOWN[collective]).schedule("binary-tree", collective, **parameters)


def double_binary_tree(
    n_workers: int,
    collective: str = ALL_REDUCE,
    n_slices: int = 4,
    node_size: int = 1,
    n_channels: int = 1,
) -> Schedule:
    """All-reduce along two binary trees at the same time, built as NCCL builds them.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce"}
    n_slices : int
        k, at least 1: parts that each half of the share of a channel is cut into.
    node_size : int
        g: every g workers are one node, a chain; the trees join the heads of the chains, which are the first
        workers in the first tree and the last in the second. It must divide N.
    n_channels : int
        Pairs of trees beside each other, at least 1, each with its share of the buffer. The workers of a node are cut
        into as many groups, and the heads of pair q are the first and the last of group q: with a card for each group,
        card q carries pair q.

    Returns
    -------
    Schedule
        2k chunks a pair, k + D - 1 steps a phase, D the depth of the deeper tree; pair q has channels 4q and 4q + 1 up
        and down its first tree, the two after them for its second.

    Raises
    ------
    InputError
        Nodes of this size do not come out even.

    Notes
    -----
    Each worker sends about 2S bytes in all, and no more than S each way through its links: with all of its
    ports, twice the bandwidth of one tree. The depth D is about log2 N, so that with slices of d = S/2k bytes
    it takes 2D (alpha + d beta) + (k-1) d beta as long as no link serves both trees at once;
    `ringnet.analysis.formulas.double_tree_s` says what it is exactly. With nodes and empty slices that is
    NCCL's tree latency, 2((g-1) intra + log2(nodes) inter). Sanders, Speck and Traeff, *Two-tree algorithms
    for full bandwidth broadcast, reduction and scan*, Parallel Computing 35 (2009); NCCL,
    `src/graph/trees.cc`.

    Examples
    --------
    >>> [tree.tolist() for tree in double_tree_parents(6)]
    [[-1, 2, 4, 2, 0, 4], [1, 5, 3, 1, 3, -1]]
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    check_node_size(n_workers, node_size)
    trees = PipelinedTrees(double_tree_parents(n_workers, node_size, n_channels), n_slices, UP_DOWN[collective])
    parameters = {"n_slices": n_slices, "node_size": node_size, "n_channels": n_channels}
    return trees.schedule("double-binary-tree", collective, **parameters)


def double_tree_parents(n_workers: int, node_size: int = 1, n_channels: int = 1) -> list[IntArray]:
    """Return the parent of each worker in the first tree and in the second of each pair, -1 for the roots."""
    n_nodes = n_workers // node_size
    first = _nccl_tree(n_nodes)
    if n_nodes % 2:
        # Shifted by one node: an odd number of nodes has no mirror image in which leaves become inner nodes.
        second = np.where(np.roll(first, 1) == NOBODY, NOBODY, (np.roll(first, 1) + 1) % n_nodes)
    else:
        second = np.where(first[::-1] == NOBODY, NOBODY, n_nodes - 1 - first[::-1])
    heads = entries(n_channels, node_size)
    ends = (np.roll(heads, -1) - 1) % node_size
    return [
        _with_chains(tree, node_size, int(head), way)
        for begin, end in zip(heads, ends, strict=True)
        for tree, head, way in ((first, begin, 1), (second, end, -1))
    ]


def _nccl_tree(n_nodes: int) -> IntArray:
    """Return the parents in NCCL's tree.

    Node v with lowest set bit b hangs on v without b but with 2b; if there is no such node, on v without b.
    """
    node = np.arange(n_nodes)
    bit = node & -node
    above = (node ^ bit) | (bit << 1)
    parent = np.where(above < n_nodes, above, node ^ bit)
    parent[0] = NOBODY
    return parent


def _with_chains(tree: IntArray, node_size: int, head: int, way: int = 1) -> IntArray:
    """Replace each node by a chain of workers, upwards or downwards (-1) and around; its head hangs on the parent's."""
    worker = np.arange(len(tree) * node_size)
    local = worker % node_size
    parent: IntArray = worker - local + (local - way) % node_size
    heads = np.arange(len(tree)) * node_size + head
    parent[heads] = np.where(tree == NOBODY, NOBODY, tree * node_size + head)
    return parent


def _rooted(parent: IntArray, root: int) -> IntArray:
    """Return a tree of chains with a worker of the root's node as the root: before the head of its chain."""
    head = int(np.flatnonzero(parent == NOBODY)[0])
    if head != root:
        parent[parent == root] = parent[root]
        parent[head], parent[root] = root, NOBODY
    return parent
