"""Switches that reduce: a tree of them, and those inside hosts with workers that take a share of the buffer each.

The switches of a schedule are members without data of their own, numbered after the workers. That they are switches of
a network, and which, is not known here: a network numbers its own the same way (`ringnet.networks.reduction`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    SCATTER_GATHER,
    UP_DOWN,
    Schedule,
    Step,
    check_node_size,
    make_schedule,
    make_step,
    source_and_target,
)
from ringnet.collectives.trees import NOBODY, PipelinedTrees, depths, double_tree_parents
from ringnet.errors import Fault, InputError


def sharp(
    n_workers: int,
    collective: str = ALL_REDUCE,
    n_slices: int = 16,
    root: int = 0,
    switch_above: Sequence[int] = (),
) -> Schedule:
    """Reduce up a tree of switches and multicast down it: each adds what comes from below, as SHARP does.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "broadcast", "reduce"}
    n_slices : int
        k, at least 1: parts of the buffer, which follow each other through the tree.
    root : int
        The worker where a broadcast starts and a reduce ends.
    switch_above : sequence of int
        By worker and then by switch the number of the switch above it, -1 for the topmost; one switch above all
        workers if left out.

    Returns
    -------
    Schedule
        k chunks; channel 0 up, channel 1 down in an all-reduce.

    Raises
    ------
    InputError
        The switches above make no tree with all workers as its leaves.

    Notes
    -----
    Each worker sends S bytes and receives S, whatever N: half of what a ring of many moves. On one switch whose links
    take alpha and beta, and which adds at once, an all-reduce takes 2 alpha + (S + d) beta, d the largest slice: the
    buffer up, and the last slice down.

    Graham et al., *Scalable Hierarchical Aggregation Protocol (SHArP)*, COMHPC 2016.

    Examples
    --------
    Two workers on each of two leaves, with a spine above:

    >>> schedule = sharp(4, n_slices=1, switch_above=[0, 0, 1, 1, 2, 2, -1])
    >>> [(step.phase, step.src.tolist(), step.dst.tolist()) for step in schedule.steps()][:2]
    [('reduce', [0, 1, 2, 3], [4, 4, 5, 5]), ('reduce', [4, 5], [6, 6])]
    """
    above = np.array(tuple(switch_above) or (*(0,) * n_workers, NOBODY), dtype=np.int64)
    n_switches = len(above) - n_workers
    _check_tree(above, n_workers, n_switches)
    parent = np.where(above == NOBODY, NOBODY, above + n_workers)
    if collective != ALL_REDUCE:
        parent = _hung_from(parent, root, n_workers)
    if n_workers == 1:  # nothing moves
        parent, n_switches = parent[:1] * 0 + NOBODY, 0
    trees = PipelinedTrees([parent], n_slices, UP_DOWN[collective], n_switches)
    return trees.schedule("sharp", collective, n_slices=n_slices, root=root, switch_above=tuple(switch_above))


def _check_tree(above: IntArray, n_workers: int, n_switches: int) -> None:
    """Refuse what is no tree of switches with the workers, and only these, as its leaves: `InputError`."""
    path, right = "switch_above", "one entry for each worker, then for each switch; -1 for the topmost"
    tops = np.flatnonzero(above == NOBODY)
    if n_switches < 1 or len(tops) != 1 or tops[0] < n_workers or above.max() >= n_switches:
        raise InputError(Fault("no tree of switches above all workers", path, value=_shown(above), right=right))
    here = np.arange(len(above))
    for _ in range(n_switches + 1):
        here = np.where(here == tops[0], here, above[here] + n_workers)
    if (here != tops[0]).any() or len(np.unique(above)) != n_switches + 1:
        raise InputError(Fault("no tree of switches above all workers", path, value=_shown(above), right=right))


def _shown(above: IntArray) -> str:
    return str(above.tolist()) if len(above) <= 16 else f"{len(above)} entries"  # noqa: PLR2004 -- a line


def _hung_from(parent: IntArray, root: int, n_workers: int) -> IntArray:
    """Return the same tree with another member as its root."""
    hung, here, below = parent.copy(), root, NOBODY
    while here != NOBODY:
        hung[here], below, here = below, here, int(parent[here])
    # A topmost switch above a single one has nothing more to do.
    while len(idle := np.setdiff1d(np.flatnonzero(hung[n_workers:] != NOBODY) + n_workers, hung)):
        hung[idle] = NOBODY
    return hung


# Workers under a switch take a share of the buffer each.

#: Slices that a worker has sent up before it waits for its share of the first: enough to keep its link busy, and few
#: enough that what it sends back does not stand behind the whole buffer.
AHEAD = 2
#: Channels: of a share on its way back to the switch, of slices up, of shares down, of slices down; then of the trees,
#: up and down each.
GATHER, UP, SCATTER, DOWN, TREES = range(5)


def nvls(n_workers: int, collective: str = ALL_REDUCE, n_slices: int = 16) -> Schedule:
    """Reduce in one switch, a share for each worker, and multicast what the workers send back: NVLink SHARP.

    Parameters
    ----------
    n_workers : int
        N, at least 1, all at one switch.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    n_slices : int
        k, at least 1: parts of the buffer, which follow each other.

    Returns
    -------
    Schedule
        k N chunks; worker i has share i of each slice, chunks i, N + i, 2N + i and so on.

    Notes
    -----
    The switch reads S bytes of every worker, adds them, and gives each worker the sum of its share; that is the
    reduce-scatter. Each worker sends its share back, and the switch multicasts it to all; that is the all-gather. So
    each link carries S (1 + 1/N) each way in an all-reduce, which takes little more than S (1 + 1/N) beta with enough
    slices. Small messages take few: every slice waits twice for the latency of both links.

    That is how NCCL's NVLS uses ``multimem.ld_reduce`` and ``multimem.st`` (``all_reduce.h`` in its ``src/device``).
    Klenk, Jiang, Thorson and Dennison, *An in-network architecture for accelerating shared-memory
    multiprocessor collectives*, ISCA 2020.

    Examples
    --------
    >>> [(step.phase, step.src.tolist(), step.dst.tolist()) for step in nvls(2, n_slices=1).steps()]
    [('reduce', [0, 1], [2, 2]), ('scatter', [2, 2], [0, 1]), ('gather', [0, 1], [2, 2]), ('broadcast', [2, 2], [0, 1])]
    """
    shares = _Shares(n_workers, n_workers, n_slices, [np.array([NOBODY])])
    return shares.schedule("nvls", collective, {"n_slices": n_slices})


def nvls_tree(n_workers: int, collective: str = ALL_REDUCE, n_slices: int = 16, node_size: int = 0) -> Schedule:
    """Reduce in the switch of each host, along two trees for each share across hosts, and multicast in the hosts.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce"}
    n_slices : int
        k, at least 1: parts of the buffer, which follow each other, and take one tree and the other by turns.
    node_size : int
        g: workers 0 to g-1 are at one switch, and so on; a divisor of N, 0 for all at one.

    Returns
    -------
    Schedule
        k g chunks; the i-th worker of each switch has share i of each slice.

    Raises
    ------
    InputError
        Switches with so many workers do not come out even.

    Notes
    -----
    Inside each host as `nvls`, S (1 + 1/g) bytes each way through each worker's link; across the hosts each worker
    sends and gets about 2 S/g, along the trees of `double_binary_tree` over the hosts. NCCL's NVLSTree does the same.

    Examples
    --------
    >>> schedule = nvls_tree(4, n_slices=1, node_size=2)
    >>> schedule.n_switches, [step.phase for step in schedule.steps()]
    (2, ['reduce', 'scatter', 'reduce across', 'broadcast across', 'gather', 'broadcast'])
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    size = node_size or n_workers
    check_node_size(n_workers, size)
    shares = _Shares(n_workers, size, n_slices, double_tree_parents(n_workers // size))
    return shares.schedule("nvls-tree", collective, {"n_slices": n_slices, "node_size": size})


@dataclass(frozen=True)
class _Shares:
    """Slices of which the i-th worker of each switch takes share i: chunk ``k g + i`` is share i of slice k.

    Parameters
    ----------
    n_workers : int
    size : int
        g: workers of each switch.
    n_slices : int
    trees : sequence of ndarray of int64, shape (n_workers / g,)
        Over the switches the parent of each, -1 for the root; slices take them by turns.
    """

    n_workers: int
    size: int
    n_slices: int
    trees: Sequence[IntArray]

    def schedule(self, algorithm: str, collective: str, parameters: dict[str, object]) -> Schedule:
        """Return the schedule of a collective."""
        n_chunks, moves = self.n_slices * self.size, self.n_workers > 1
        return make_schedule(
            algorithm,
            collective,
            self.n_workers,
            n_chunks,
            partial(self._steps, SCATTER_GATHER[collective]) if moves else [],
            n_channels=TREES + 2 * len(self.trees) * (self.n_workers > self.size),
            n_switches=self.n_workers // self.size if moves else 0,
            parameters=parameters,
            **source_and_target(collective, np.arange(n_chunks) % self.size),
        )

    def _steps(self, phases: Sequence[str]) -> Iterator[Step]:
        """Yield slice after slice; what goes up is ahead of what comes back."""
        worker = np.arange(self.n_workers)
        switch, share = self.n_workers + worker // self.size, worker % self.size
        ahead = AHEAD if REDUCE_SCATTER in phases else 0
        for slot in range(self.n_slices + ahead):
            back, first = slot - ahead, (slot - ahead) * self.size
            if REDUCE_SCATTER in phases and back >= 0:
                yield make_step("scatter", back, switch, worker, first + share, SCATTER, to_channel=UP, op="copy")
                yield from self._across(back, worker, first + share)
            if ALL_GATHER in phases and back >= 0:
                yield make_step("gather", back, worker, switch, first + share, GATHER, op="copy")
                yield make_step("broadcast", back, switch, worker, first, DOWN, count=self.size, op="copy")
            if REDUCE_SCATTER in phases and slot < self.n_slices:
                yield make_step("reduce", slot, worker, switch, slot * self.size, UP, count=self.size)

    def _across(self, slice_: int, worker: IntArray, chunk: IntArray) -> Iterator[Step]:
        """Yield what a slice does along its tree over the switches: level by level up, and down again."""
        q = slice_ % len(self.trees)
        parent = self.trees[q]
        depth = depths(parent)
        deepest = int(depth.max())
        of_worker = depth[worker // self.size]
        above = parent[worker // self.size] * self.size + worker % self.size
        for number, level in enumerate(range(deepest, 0, -1)):
            at, step = of_worker == level, slice_ * deepest + number
            yield make_step("reduce across", step, worker[at], above[at], chunk[at], TREES + 2 * q)
        for number, level in enumerate(range(1, deepest + 1)):
            at, step = of_worker == level, slice_ * deepest + number
            yield make_step("broadcast across", step, above[at], worker[at], chunk[at], TREES + 2 * q + 1)
