"""Measured times as columns, and the settings they were measured in."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.units import counted

#: How often the data goes round: all-reduce is a reduce-scatter and an all-gather.
PASSES = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}


class Setting(NamedTuple):
    """How many workers on how many nodes; 0 nodes where nobody says."""

    n_workers: int
    n_nodes: int

    def __str__(self) -> str:
        return f"N={self.n_workers}" + (f" on {counted(self.n_nodes, 'node')}" if self.n_nodes else "")

    @property
    def per_node(self) -> float:
        """Workers of a node; one where nobody says, since every hop is of one kind then."""
        return self.n_workers / self.n_nodes if self.n_nodes else 1.0


@dataclass(frozen=True)
class Samples:
    """One row per measurement.

    Parameters
    ----------
    n_workers, n_nodes : ndarray of int64, shape (n,)
        0 nodes where the log does not say; hops inside and between nodes are one kind then.
    message_bytes, time_s : ndarray of float64, shape (n,)
    log : ndarray of int64, shape (n,)
        Which of ``names`` a row comes from.
    names : tuple of str
    """

    n_workers: IntArray
    n_nodes: IntArray
    message_bytes: FloatArray
    time_s: FloatArray
    log: IntArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def is_one_size(self) -> bool:
        """Whether all rows are of one size."""
        return bool((self.message_bytes == self.message_bytes[:1]).all())

    @property
    def counts(self) -> list[int]:
        """The N that there are, in order."""
        return sorted(set(self.n_workers.tolist()))

    def where(self, chosen: BoolArray | IntArray) -> Samples:
        """Return some of the rows, by mask or by index; the logs keep their numbers."""
        columns: dict[str, Any] = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "names"}
        return replace(self, **columns)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """What N and nodes there are, in order."""
        pairs = zip(self.n_workers.tolist(), self.n_nodes.tolist(), strict=True)
        return tuple(Setting(*pair) for pair in sorted(set(pairs)))

    def of(self, setting: Setting) -> BoolArray:
        """Return which rows are of a setting."""
        rows: BoolArray = (self.n_workers == setting.n_workers) & (self.n_nodes == setting.n_nodes)
        return rows


def at(setting: Setting, message_bytes: FloatArray) -> Samples:
    """Return rows without times, to predict them."""
    n = len(message_bytes)
    full = np.full(n, 0, dtype=np.int64)
    return Samples(full + setting.n_workers, full + setting.n_nodes, message_bytes, np.ones(n), full, ("",))
