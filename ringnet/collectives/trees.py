"""Pipelined trees: slices go up to the root and down again, level by level, up and down at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ringnet.collectives.making import REDUCE, make_step
from ringnet.collectives.schedule import IntArray, Step

#: The parent of a root.
NOBODY = -1


class Trees:
    """Some trees over the same workers, each with slices of its own.

    Parameters
    ----------
    parents : sequence of ndarray of int64, shape (n_workers,)
        The parent of each worker, -1 for the root; one for each tree.
    n_slices : int
        k: tree q works on chunks q k .. q k + k-1.
    phases : sequence of str
        ``"reduce"``, ``"broadcast"`` or both. Each has a channel of its own in each tree, so that they
        overlap in time.

    Notes
    -----
    In slot t a worker at depth d sends slice t - (D - d) to its parent, D the depth of the deepest, and so
    waits for the next slice of its children; and it gets slice t - (D + d - 1) from its parent.
    """

    def __init__(self, parents: Sequence[IntArray], n_slices: int, phases: Sequence[str]) -> None:
        self.parents, self.n_slices, self.phases = parents, n_slices, phases
        self.depths = [depths(parent) for parent in parents]
        self.depth = max(int(depth.max()) for depth in self.depths)

    @property
    def n_channels(self) -> int:
        """Channels in all."""
        return len(self.parents) * len(self.phases)

    def steps(self) -> Iterator[Step]:
        """Yield the steps slot by slot, in each the reduce before the broadcast."""
        number = dict.fromkeys(self.phases, 0)
        for slot in range(self.n_slices + 2 * self.depth - 1 if self.depth else 0):
            for channel, phase in enumerate(self.phases):
                rows = np.concatenate(
                    [self._rows(tree, phase, channel, slot) for tree in range(len(self.parents))]
                )
                if len(rows):
                    yield make_step(phase, number[phase], *rows.T)
                    number[phase] += 1

    def _rows(self, tree: int, phase: str, channel: int, slot: int) -> IntArray:
        """Return rows (src, dst, chunk, channel) of a tree in a slot."""
        parent, depth = self.parents[tree], self.depths[tree]
        part = slot - (self.depth - depth if phase == REDUCE else self.depth + depth - 1)
        child = np.flatnonzero((part >= 0) & (part < self.n_slices) & (parent != NOBODY))
        ends = (child, parent[child]) if phase == REDUCE else (parent[child], child)
        on = np.full(len(child), tree * len(self.phases) + channel)
        return np.column_stack((*ends, part[child] + tree * self.n_slices, on))


def depths(parent: IntArray) -> IntArray:
    """Return the depth of each worker, 0 for the root.

    >>> depths(np.array([-1, 0, 0, 1])).tolist()
    [0, 1, 1, 2]
    """
    depth, above = np.zeros(len(parent), dtype=np.int64), parent
    while (above != NOBODY).any():
        depth += above != NOBODY
        above = np.where(above == NOBODY, NOBODY, parent[above])
    return depth
