"""What the path that leads to each lane is made of, in whole arrays: for the `recurrence` engine."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.engines.arrays.rounds import FloatArray, Index, IntArray
from ringnet.engines.trace import PATH_PARTS

#: Seconds by part, one entry per lane or per row of a step.
Parts: TypeAlias = dict[str, FloatArray]


class Paths:
    """Seconds of the path that leads to each lane, by part.

    Only what can be more than zero in a run is kept, and bandwidth not at all: it is what the other parts leave.

    Parameters
    ----------
    n_lanes : int
    """

    def __init__(self, n_lanes: int) -> None:
        self.n_lanes = n_lanes
        self.parts: Parts = {}

    def keep(self, part: str) -> FloatArray:
        """Return a part, which is kept from now on."""
        return self.parts.setdefault(part, np.zeros(self.n_lanes))

    def leave(self, lanes: Index, *, copy: bool) -> Parts:
        """Return the paths of some lanes; views, unless ``copy``, where ``lanes`` is a slice."""
        if copy and isinstance(lanes, slice):
            return {part: seconds[lanes].copy() for part, seconds in self.parts.items()}
        return {part: seconds[lanes] for part, seconds in self.parts.items()}

    def arrive(self, lanes: Index, came: NDArray[np.bool_], arriving: Parts) -> None:
        """Where ``came``, let the paths of ``lanes`` go on from those that arrive."""
        for part, arrived in arriving.items():
            kept = self.keep(part)
            if isinstance(lanes, slice):
                np.copyto(kept[lanes], arrived, where=came)
            else:
                kept[lanes[came]] = arrived[came]

    def columns(self, lanes: IntArray, elapsed_s: FloatArray) -> Parts:
        """Return every part of the paths of ``lanes``, which took ``elapsed_s`` in all."""
        parts = {
            part: self.parts[part][lanes] if part in self.parts else np.zeros(len(lanes))
            for part in PATH_PARTS
        }
        parts["bandwidth"] = np.maximum(elapsed_s - sum(parts.values()), 0.0)
        return {f"path_{part}_s": parts[part] for part in PATH_PARTS}
