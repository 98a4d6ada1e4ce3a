"""The order of what happens to a chunk that several channels of a worker share, for the `recurrence` engine."""

from __future__ import annotations

import numpy as np

from ringnet.engines.arrays.paths import Parts, Paths
from ringnet.engines.arrays.rounds import FloatArray, Index, IntArray


class Done:
    """When the last post, or the last apply, of each cell was done, and by what path. A cell is a chunk of a worker."""

    def __init__(self, n_cells: int) -> None:
        self.time_s = np.full(n_cells, -np.inf)
        self.path: Parts = {}

    def note(self, cells: IntArray, time_s: FloatArray, path: Parts) -> None:
        """Note what is done now; of several that count together the latest."""
        later = time_s > self.time_s[cells]
        # In order, the earliest last: of two lanes at one cell the later one stays.
        order = np.flatnonzero(later)[np.argsort(time_s[later], kind="stable")]
        self.time_s[cells[order]] = time_s[order]
        for part, seconds in path.items():
            self.path.setdefault(part, np.zeros(len(self.time_s)))[cells[order]] = seconds[order]


class SharedChunks:
    """Lets lanes wait for what other lanes have to do first with the same chunk.

    Parameters
    ----------
    n_cells : int
        Workers times chunks.
    ready_s : ndarray, shape (n_lanes,)
        When each lane is ready; changed in place.
    paths : Paths
        Of the lanes; changed in place.
    """

    def __init__(self, n_cells: int, ready_s: FloatArray, paths: Paths) -> None:
        self.ready_s, self.paths = ready_s, paths
        self.applied, self.posted = Done(n_cells), Done(n_cells)

    def before_posts(self, lanes: Index, cells: IntArray) -> None:
        """Let posts come after the last apply to their chunk."""
        self._give_way(lanes, cells, self.applied)

    def after_posts(self, lanes: Index, cells: IntArray) -> None:
        """Note posts, which are done now."""
        self.posted.note(cells, self.ready_s[lanes], self.paths.leave(lanes, copy=True))

    def before_applies(self, lanes: Index, cells: IntArray) -> None:
        """Let applies come after the last one to their chunk, and after all posts of the chunk since."""
        self._give_way(lanes, cells, self.applied)
        self._give_way(lanes, cells, self.posted)

    def after_applies(self, lanes: Index, cells: IntArray) -> None:
        """Note applies, which are done now."""
        self.applied.note(cells, self.ready_s[lanes], self.paths.leave(lanes, copy=True))
        self.posted.time_s[cells] = -np.inf

    def _give_way(self, lanes: Index, cells: IntArray, done: Done) -> None:
        ready_s, done_s = self.ready_s[lanes], done.time_s[cells]
        self.paths.arrive(
            lanes, done_s > ready_s, {part: seconds[cells] for part, seconds in done.path.items()}
        )
        self.ready_s[lanes] = np.maximum(ready_s, done_s)
