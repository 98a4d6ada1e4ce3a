"""A schedule without time, step by step: what every worker holds in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringnet.collectives import Schedule
from ringnet.collectives.schedule import IntArray, Op, Step
from ringnet.payload.buffers import conflict_free_batches
from ringnet.payload.dtypes import Array


class Moves(NamedTuple):
    """One chunk in one step: worker ``src[k]`` sends to ``dst[k]``, in order of the sender."""

    op: Op
    src: list[int]
    dst: list[int]


def moves_by_chunk(schedule: Schedule, chunks: Sequence[int]) -> dict[int, list[Moves]]:
    """Sort the transfers of some chunks by chunk, then by step.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> moves_by_chunk(ALGORITHMS["ring"].build(3, "reduce-scatter"), [2])
    {2: [Moves(op='reduce', src=[2], dst=[0]), Moves(op='reduce', src=[0], dst=[1])]}
    """
    found: dict[int, list[Moves]] = {chunk: [] for chunk in chunks}
    if not found:
        return found
    for step in schedule.moves():
        here: dict[int, Moves] = {}
        order = np.argsort(step.src, kind="stable")
        for src, dst, chunk in zip(
            *(column[order].tolist() for column in (step.src, step.dst, step.chunk)), strict=True
        ):
            if chunk in found:
                moves = here.setdefault(chunk, Moves(step.op, [], []))
                moves.src.append(src)
                moves.dst.append(dst)
        for chunk, moves in here.items():
            found[chunk].append(moves)
    return found


def replay_chunk(moves: Sequence[Moves], rows: list[Array], combine: Callable[..., Any]) -> None:
    """Replay one chunk on what each worker holds of it.

    Parameters
    ----------
    moves : sequence of Moves
    rows : list of ndarray, one per worker
        Becomes what each worker holds in the end: the same array for those that copied it. The arrays given
        may be overwritten.
    combine : callable
        ``combine(own, incoming, out=None)``, a ufunc.
    """
    shared: set[int] = set()  # workers whose array someone else may still refer to
    for op, sources, targets in moves:
        carried = [rows[src] for src in sources]
        shared.update(sources)
        for dst, incoming in zip(targets, carried, strict=True):
            if op == "copy":
                rows[dst] = incoming
                shared.add(dst)
            else:
                own = rows[dst]
                rows[dst] = combine(own, incoming, out=None if dst in shared else own)
                shared.discard(dst)


def replay_table(schedule: Schedule, chunks: IntArray, table: Array, combine: Callable[..., Any]) -> None:
    """Replay some chunks at once on what all workers hold of them.

    Parameters
    ----------
    schedule : Schedule
    chunks : ndarray of int64, shape (n,)
    table : ndarray of shape (n_workers, n, width)
        Becomes what each worker holds in the end.
    combine : callable
        ``combine(own, incoming, out=None)``, a ufunc.
    """
    place = np.full(schedule.n_chunks, -1)
    place[chunks] = np.arange(len(chunks))
    rows = table.reshape(table.shape[0] * table.shape[1], table.shape[2])
    for step in schedule.moves():
        sent, taken = _rows_of(step, place, len(chunks))
        incoming = rows.take(sent, axis=0)
        for turn in _turns(step, sent, taken):
            into = taken[turn]
            rows[into] = (
                incoming[turn] if step.op == "copy" else combine(rows.take(into, axis=0), incoming[turn])
            )


def _rows_of(step: Step, place: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the rows that this step's transfers leave and reach."""
    column = place[step.chunk]
    src, dst = step.src, step.dst
    mine = column >= 0
    if not mine.all():
        src, dst, column = src[mine], dst[mine], column[mine]
    return src * n + column, dst * n + column


def _turns(step: Step, sent: IntArray, taken: IntArray) -> list[Any]:
    """Split transfers so that no row is reached twice in one turn; by sender, as workers apply them."""
    if np.bincount(step.dst).max(initial=0) <= 1:
        return [slice(None)]
    return conflict_free_batches(sent, taken)
