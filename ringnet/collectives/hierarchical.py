"""Two levels: reduce inside each node, all-reduce across the nodes, hand the result out inside nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_GATHER,
    ALL_REDUCE,
    BROADCAST,
    EVERY_WORKER,
    REDUCE,
    REDUCE_SCATTER,
    Schedule,
    Step,
    check_node_size,
    divisor_near_root,
    frozen,
    make_schedule,
    source_and_target,
)
from ringnet.errors import Fault, InputError

_ORDERS: Mapping[str, tuple[str, ...]] = {
    ALL_REDUCE: ("up", "across", "down"),
    REDUCE_SCATTER: ("up", "across"),
    ALL_GATHER: ("across", "down"),
}

#: What a level is built with: called with the workers of a group and a collective.
Build = Callable[[int, str], Schedule]


class Level(Protocol):
    """An algorithm as one of the two levels uses it: a line of the registry is one."""

    @property
    def build(self) -> Callable[..., Schedule]:
        """What builds a schedule for the workers of a group."""
        ...

    @property
    def collectives(self) -> tuple[str, ...]:
        """The collectives that it knows."""
        ...


def hierarchical(
    n_workers: int,
    collective: str = ALL_REDUCE,
    node_size: int = 0,
    inner: str = "ring",
    outer: str = "ring",
    *,
    levels: Mapping[str, Level],
) -> Schedule:
    """All-reduce, reduce-scatter or all-gather by one algorithm inside nodes and another across them.

    An all-reduce is a reduce-scatter inside each node, an all-reduce among the workers of all nodes that then
    hold the same part, and an all-gather inside each node. Where ``inner`` knows no reduce-scatter, it is a
    reduce to the first worker of the node, an all-reduce among those, and a broadcast.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    node_size : int
        g: workers 0 to g-1 are a node, and so on. A divisor of N; 0 for the largest that is not above its
        square root.
    inner, outer : str
        Names of the algorithms inside nodes and across them.
    levels : mapping of str to Level
        What the names stand for.

    Returns
    -------
    Schedule
        Each chunk of the inner schedule is cut into those of the outer one.

    Raises
    ------
    InputError
        Nodes of this size do not come out even, or an algorithm does not know what its level asks of it.

    Notes
    -----
    With rings at both levels each worker sends 2 (g-1)/g S bytes inside its node and 2 (m-1)/m S/g across, m
    = N/g nodes, in 2(g-1) + 2(m-1) steps; the time is the sum of those of the levels, the outer one for S/g
    (S after a reduce). Cho, Finkler, Serrano, Kung and Hunter, *BlueConnect*, SysML 2019; NCCL's tree is a
    chain inside nodes and a tree across.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> for step in ALGORITHMS["hierarchical"].build(4, "all-reduce", node_size=2).steps():
    ...     print(step.phase, step.src.tolist(), step.dst.tolist())
    reduce-scatter inside nodes [0, 1, 2, 3] [1, 0, 3, 2]
    reduce-scatter across nodes [1, 3, 0, 2] [3, 1, 2, 0]
    all-gather across nodes [1, 3, 0, 2] [3, 1, 2, 0]
    all-gather inside nodes [0, 1, 2, 3] [1, 0, 3, 2]
    """
    size = node_size or divisor_near_root(n_workers)
    check_node_size(n_workers, size)
    across = _known(outer, collective, levels)(n_workers // size, collective)
    up, down = (_known(inner, way, levels)(size, way) for way in _ways(inner, collective, levels))
    parts: dict[str, _InsideNodes | _AcrossNodes] = {
        "up": _InsideNodes(up, across.n_chunks, n_workers // size),
        "across": _AcrossNodes(up.target, across, size),
        "down": _InsideNodes(down, across.n_chunks, n_workers // size),
    }
    order = [parts[name] for name in _ORDERS[collective]]
    return make_schedule(
        "hierarchical",
        collective,
        n_workers,
        up.n_chunks * across.n_chunks,
        partial(_steps, order),
        n_channels=max(part.schedule.n_channels for part in order),
        parameters={"node_size": size, "inner": inner, "outer": outer},
        **source_and_target(collective, _owner(up.target, across, collective, size)),
    )


def _ways(inner: str, collective: str, levels: Mapping[str, Level]) -> tuple[str, str]:
    """Return the collective inside nodes on the way up, and on the way down."""
    scatters = inner not in levels or REDUCE_SCATTER in levels[inner].collectives
    return (REDUCE_SCATTER, ALL_GATHER) if scatters or collective != ALL_REDUCE else (REDUCE, BROADCAST)


def _known(name: str, collective: str, levels: Mapping[str, Level]) -> Build:
    if name not in levels or collective not in levels[name].collectives:
        right = " | ".join(known for known, level in levels.items() if collective in level.collectives)
        raise InputError(Fault(f"no such algorithm has {collective}, as this level needs", value=name, right=right))
    return levels[name].build


def _steps(levels: list[_InsideNodes | _AcrossNodes]) -> Iterator[Step]:
    for level in levels:
        yield from level.steps()


def _owner(holder: IntArray, across: Schedule, collective: str, node_size: int) -> IntArray:
    """Return the worker that alone holds each chunk at one end; nothing that counts in an all-reduce."""
    node = across.source if collective == ALL_GATHER else across.target
    return (np.where(node == EVERY_WORKER, 0, node)[None, :] * node_size + holder[:, None]).ravel()


@dataclass(frozen=True)
class _InsideNodes:
    """The same schedule inside each node; each of its chunks is ``finer`` chunks here."""

    schedule: Schedule
    finer: int
    n_nodes: int

    def steps(self) -> Iterator[Step]:
        """Yield its steps, for all nodes at once."""
        for step in self.schedule.steps():
            first = np.repeat(np.arange(self.n_nodes) * self.schedule.n_workers, len(step))
            columns = {name: frozen(np.tile(column, self.n_nodes)) for name, column in _columns(step).items()}
            columns |= {name: frozen(columns[name] + first) for name in ("src", "dst")}
            columns |= {name: frozen(columns[name] * self.finer) for name in ("chunk", "count")}
            yield Step(f"{step.phase} inside nodes", step.step, step.op, **columns)


@dataclass(frozen=True)
class _AcrossNodes:
    """The same schedule across the nodes for each chunk of the inner one, among the workers that hold it."""

    holder: IntArray
    schedule: Schedule
    node_size: int

    def steps(self) -> Iterator[Step]:
        """Yield its steps, for all chunks of the inner schedule at once."""
        for step in self.schedule.steps():
            n_inner = len(self.holder)
            columns = {name: frozen(np.tile(column, n_inner)) for name, column in _columns(step).items()}
            local = np.repeat(self.holder, len(step))
            columns |= {name: frozen(columns[name] * self.node_size + local) for name in ("src", "dst")}
            part = np.repeat(np.arange(n_inner) * self.schedule.n_chunks, len(step))
            columns["chunk"] = frozen(columns["chunk"] + part)
            yield Step(f"{step.phase} across nodes", step.step, step.op, **columns)


def _columns(step: Step) -> dict[str, IntArray]:
    return {
        "src": step.src,
        "dst": step.dst,
        "chunk": step.chunk,
        "channel": step.channel,
        "to_channel": step.receiving_channel,
        "count": np.ones_like(step.src) if step.count is None else step.count,
    }
