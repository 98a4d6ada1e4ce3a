"""Measured times as columns, and models of them: a launch, hops and bytes, one design matrix per algorithm.

Every model is linear in five parameters that are never negative, the columns of a design:

    time = launch + hops x latency + hops between nodes x extra latency + bytes / bandwidth

where bytes cross links inside nodes (a job on one node) or between them (a job on several, whose slower links
set the pace). A hop between nodes takes at least as long as one inside. The counts of hops are NCCL's
(``src/graph/tuning.cc``): a ring has 2(N-1) hops, 2(nodes-1) of them between nodes; a tree
2(workers per node - 1) + 2 log2(nodes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Columns of a design, and of every array of parameters.
LAUNCH, HOP, BETWEEN, INSIDE_BYTES, BETWEEN_BYTES = range(5)
N_PARAMETERS = 5
#: How often the data goes round: all-reduce is a reduce-scatter and an all-gather.
PASSES = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}


class Setting(NamedTuple):
    """How many workers on how many nodes; 0 nodes where nobody says."""

    n_workers: int
    n_nodes: int

    def __str__(self) -> str:
        return f"N={self.n_workers}" + (
            f" on {self.n_nodes} node{'s' * (self.n_nodes > 1)}" if self.n_nodes else ""
        )


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
    def is_one_setting(self) -> bool:
        """Whether all rows are of one N on as many nodes."""
        return bool((self.n_workers == self.n_workers[:1]).all() and (self.n_nodes == self.n_nodes[:1]).all())

    @property
    def is_one_size(self) -> bool:
        """Whether all rows are of one size."""
        return bool((self.message_bytes == self.message_bytes[:1]).all())

    def where(self, chosen: BoolArray | IntArray) -> Samples:
        """Return some of the rows, by mask or by index; the logs keep their numbers."""
        columns: dict[str, Any] = {
            f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "names"
        }
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

    @cached_property
    def groups(self) -> tuple[IntArray, ...]:
        """For each setting, the indices of its rows in order of size."""
        found = [np.flatnonzero(self.of(setting)) for setting in self.settings]
        return tuple(rows[np.argsort(self.message_bytes[rows], kind="stable")] for rows in found)


def at(setting: Setting, message_bytes: FloatArray) -> Samples:
    """Return rows without times, to predict them."""
    n = len(message_bytes)
    full = np.full(n, 0, dtype=np.int64)
    return Samples(full + setting.n_workers, full + setting.n_nodes, message_bytes, np.ones(n), full, ("",))


class Counts(NamedTuple):
    """Hops inside and between nodes, and bytes over a link per byte of the message, for one pass."""

    inside: FloatArray
    between: FloatArray
    share: FloatArray


class Model(NamedTuple):
    """A line of the registry: what counts, and one line about it."""

    hops: Callable[[FloatArray, FloatArray, FloatArray], Counts]
    summary: str


def _ring(n: FloatArray, nodes: FloatArray, _: FloatArray) -> Counts:
    return Counts((n - 1) - (nodes - 1), nodes - 1, (n - 1) / n)


def _tree(_: FloatArray, nodes: FloatArray, per_node: FloatArray) -> Counts:
    # A chain inside a node, a binary tree across; chunks follow each other, so bytes count once each way.
    return Counts(per_node - 1, np.log2(nodes), np.ones_like(nodes))


def _doubling(_: FloatArray, nodes: FloatArray, per_node: FloatArray) -> Counts:
    # The whole message at each of log2 N exchanges: recursive doubling, or a tree without pipelining.
    return Counts(np.log2(per_node), np.log2(nodes), np.log2(per_node * nodes))


#: In order of preference where data cannot tell two apart.
MODELS: dict[str, Model] = {
    "ring": Model(_ring, "2(N-1) hops, 2(N-1)/N of the message over every link"),
    "tree": Model(_tree, "hops grow as log2 of the nodes, chunks are pipelined"),
    "doubling": Model(_doubling, "log2 N hops, the whole message at each"),
}


def design(model: str, samples: Samples, passes: float = 2.0) -> FloatArray:
    """Return the design matrix of a model.

    Returns
    -------
    ndarray of float64, shape (n, 5)
        Multiplied by launch (s), latency (s), extra latency between nodes (s), seconds per byte inside and
        between nodes, it gives times.

    Examples
    --------
    >>> from ringnet.analysis.calibration.models import Setting, at
    >>> design("ring", at(Setting(8, 2), np.array([8.0]))).tolist()
    [[1.0, 14.0, 2.0, 0.0, 14.0]]
    """
    n = samples.n_workers.astype(np.float64)
    # Where nobody says how workers sit, every hop is of one kind: a node each, all counted as inside.
    is_known = samples.n_nodes > 0
    nodes = np.where(is_known, samples.n_nodes, n).astype(np.float64)
    counts = MODELS[model].hops(n, nodes, n / nodes)
    hops = passes * (counts.inside + counts.between)
    between = np.where(is_known, passes * counts.between, 0.0)
    moved = passes * counts.share * samples.message_bytes
    is_between = is_known & (samples.n_nodes > 1)
    return np.stack(
        [np.ones_like(n), hops, between, np.where(is_between, 0.0, moved), np.where(is_between, moved, 0.0)],
        axis=1,
    )
