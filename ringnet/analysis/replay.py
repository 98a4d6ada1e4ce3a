"""A schedule without time, step by step: what every worker holds in the end, and what rounding did to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.collectives.schedule import IntArray, Op, Step
from ringnet.payload import Reduction
from ringnet.payload.blocks import prepare
from ringnet.payload.buffers import conflict_free_batches
from ringnet.payload.dtypes import Array, DType, bits_of


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


class Rounded(NamedTuple):
    """What all workers hold in the end.

    Parameters
    ----------
    result : ndarray, shape (n_elements,)
        Of each element, what the first worker holds that must hold it.
    agree : bool
        Whether all workers that must hold an element hold the same bits.
    """

    result: Array
    agree: bool


class RoundingError(NamedTuple):
    """How far a result is from its float64 reference, also as a share of the reference's size (root mean square)."""

    max_abs_error: float
    rms_error: float
    relative_rms_error: float | None


def rounded(
    schedule: Schedule, reduction: Reduction, values: Array, accumulate: DType | None = None
) -> Rounded:
    """Run a schedule without time on all workers' buffers.

    Parameters
    ----------
    schedule : Schedule
        A collective that reduces: every worker has a part in every chunk.
    reduction : Reduction
    values : ndarray, shape (n_workers, n_elements)
        Of the type that results are in.
    accumulate : numpy.dtype, optional
        Type of every partial result, on the way and at the workers; rounded to that of the values in the end.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> from ringnet.payload import make_reduction
    >>> values = np.array([[1, 2], [3, 4]], dtype=np.float32)
    >>> rounded(ALGORITHMS["ring"].build(2, "all-reduce"), make_reduction("sum", 2), values)
    Rounded(result=array([4., 6.], dtype=float32), agree=True)
    """
    sizes = schedule.chunk_sizes(values.shape[1])
    width = max(int(sizes.max(initial=0)), 1)
    # Elements stand at their place in a chunk; what is beyond its end is nobody's.
    chunk = np.repeat(np.arange(schedule.n_chunks), sizes)
    place = np.arange(values.shape[1]) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    with np.errstate(all="ignore"):
        carried = values.astype(accumulate or values.dtype)
        prepare(reduction, carried)
        table = np.zeros((schedule.n_workers, schedule.n_chunks, width), dtype=carried.dtype)
        table[:, chunk, place] = carried
        replay_table(schedule, np.arange(schedule.n_chunks), table, reduction.ufunc)
        held = table[:, chunk, place].astype(values.dtype)
    first = np.where(schedule.target == EVERY_WORKER, 0, schedule.target)[chunk]
    result = held[first, np.arange(held.shape[1])]
    must = (schedule.target == EVERY_WORKER)[chunk]
    agree = bool((bits_of(held[:, must]) == bits_of(result[must])).all())
    return Rounded(result, agree)


def exact_result(reduction: Reduction, values: Array) -> NDArray[np.float64]:
    """Return the result in float64, of the values as they are in their own type; shape (n_elements,)."""
    wide = values.astype(np.float64)
    prepare(reduction, wide)
    result: NDArray[np.float64] = reduction.ufunc.reduce(wide, axis=0)
    return result


def rounding_error(result: Array, exact: NDArray[np.float64]) -> RoundingError:
    """Compare a result with its reference.

    >>> rounding_error(np.array([1.0, 2.5]), np.array([1.0, 2.0])).max_abs_error
    0.5
    """
    if not len(exact):
        return RoundingError(0.0, 0.0, None)
    with np.errstate(all="ignore"):
        off = result.astype(np.float64) - exact
        rms, size = (float(np.sqrt(np.mean(part**2))) for part in (off, exact))
    return RoundingError(float(np.abs(off).max()), rms, rms / size if size else None)
