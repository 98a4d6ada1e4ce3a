"""A schedule without time, step by step: what every worker holds in the end, and what rounding did to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.collectives.schedule import Op, Step
from ringnet.payload import Reduction, SwitchSums
from ringnet.payload.blocks import prepare
from ringnet.payload.buffers import NO_SWITCHES, conflict_free_batches
from ringnet.payload.dtypes import DType, bits_of


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


def replay_chunk(
    moves: Sequence[Moves],
    rows: list[Array],
    combine: Callable[..., Any],
    switches: SwitchSums = NO_SWITCHES,
) -> None:
    """Replay one chunk on what each worker holds of it.

    Parameters
    ----------
    moves : sequence of Moves
    rows : list of ndarray, one per worker
        Becomes what each worker holds in the end: the same array for those that copied it. The arrays given
        may be overwritten.
    combine : callable
        ``combine(own, incoming, out=None)``, a ufunc.
    switches : SwitchSums
    """
    dtype, n_workers = rows[0].dtype, len(rows)
    wide = switches.dtype or dtype
    held: list[Array | None] = [*rows, *[None] * switches.n_switches]
    shared: set[int] = set()  # whose array someone else may still refer to
    for op, sources, targets in moves:
        for src in sources:
            held[src] = _of_type(held[src], dtype)
        carried = [held[src] for src in sources]
        shared.update(sources)
        for dst, incoming in zip(targets, carried, strict=True):
            own = held[dst]
            if op == "copy" or own is None:
                held[dst] = incoming
                shared.add(dst)
                continue
            if dst >= n_workers and wide != dtype:
                held[dst] = combine(_of_type(own, wide), _of_type(incoming, wide))
            else:
                held[dst] = combine(own, incoming, out=None if dst in shared else own)
            shared.discard(dst)
    rows[:] = held[:n_workers]  # type: ignore[assignment] # a worker that starts with something holds it or more


def _of_type(array: Array | None, dtype: DType) -> Any:
    return None if array is None else array.astype(dtype, copy=False)


def replay_table(
    schedule: Schedule,
    chunks: IntArray,
    table: Array,
    combine: Callable[..., Any],
    accumulate: DType | None = None,
) -> None:
    """Replay some chunks at once on what all workers hold of them.

    Parameters
    ----------
    schedule : Schedule
    chunks : ndarray of int64, shape (n,)
    table : ndarray of shape (n_workers, n, width)
        Becomes what each worker holds in the end.
    combine : callable
        ``combine(own, incoming, out=None)``, a ufunc.
    accumulate : numpy.dtype, optional
        Type of the sums in switches until they are sent on; that of the table if left out.
    """
    place = np.full(schedule.n_chunks, -1)
    place[chunks] = np.arange(len(chunks))
    rows = table.reshape(table.shape[0] * table.shape[1], table.shape[2])
    sums = _SwitchRows(rows, schedule.n_switches * len(chunks), accumulate) if schedule.n_switches else None
    moved, own = _RowTaker(rows), _RowTaker(rows)
    for step in schedule.moves():
        sent, taken = _rows_of(step, place, len(chunks))
        incoming = moved.take(sent) if sums is None else sums.take(sent)
        for turn in _turns(step, sent, taken):
            into, came = taken[turn], incoming[turn]
            if sums is not None:
                at_worker = into < len(rows)
                sums.put(step.op, into[~at_worker], came[~at_worker], combine)
                into, came = into[at_worker], came[at_worker]
            if step.op == "reduce":
                held = own.take(into)
                came = combine(held, came, out=held)
            rows[into] = came


class _RowTaker:
    """Takes rows into the same memory again and again: fresh memory would cost more than the copy."""

    def __init__(self, rows: Array) -> None:
        self.rows, self.memory = rows, rows[:0]

    def take(self, places: IntArray) -> Array:
        """Return some rows, copied; those that were taken before are gone."""
        if len(places) > len(self.memory):
            self.memory = np.empty((len(places), self.rows.shape[1]), self.rows.dtype)
        # Places are in range; with the mode that raises NumPy would take into memory of its own first.
        return self.rows.take(places, axis=0, out=self.memory[: len(places)], mode="clip")


class _SwitchRows:
    """What switches hold: rows numbered after those of the workers, at first empty."""

    def __init__(self, rows: Array, n_rows: int, accumulate: DType | None) -> None:
        self.rows = rows
        self.sums = np.zeros((n_rows, rows.shape[1]), accumulate or rows.dtype)
        self.filled = np.zeros(n_rows, dtype=np.bool_)

    def take(self, places: IntArray) -> Array:
        """Return rows of workers and switches; what is sent of a sum is rounded, and stays so."""
        taken = np.empty((len(places), self.rows.shape[1]), self.rows.dtype)
        at_switch = places >= len(self.rows)
        taken[~at_switch] = self.rows[places[~at_switch]]
        sums = places[at_switch] - len(self.rows)
        taken[at_switch] = self.sums[sums].astype(self.rows.dtype)
        self.sums[sums] = taken[at_switch].astype(self.sums.dtype)
        return taken

    def put(self, op: Op, places: IntArray, incoming: Array, combine: Callable[..., Any]) -> None:
        """Copy or reduce into rows of switches; what comes to an empty one is its sum so far."""
        sums, wide = places - len(self.rows), incoming.astype(self.sums.dtype)
        if op == "reduce":
            again = self.filled[sums]
            wide[again] = combine(self.sums[sums[again]], wide[again])
        self.sums[sums], self.filled[sums] = wide, True


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
    schedule: Schedule,
    reduction: Reduction,
    values: Array,
    accumulate: DType | None = None,
    in_switches: DType | None = None,
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
    in_switches : numpy.dtype, optional
        Type of the sums in switches until they are sent on, where that is another.

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
        replay_table(schedule, np.arange(schedule.n_chunks), table, reduction.ufunc, in_switches)
        held = table[:, chunk, place].astype(values.dtype)
    first = np.where(schedule.target == EVERY_WORKER, 0, schedule.target)[chunk]
    result = held[first, np.arange(held.shape[1])]
    must = (schedule.target == EVERY_WORKER)[chunk]
    agree = bool((bits_of(held[:, must]) == bits_of(result[must])).all())
    return Rounded(result, agree)


def exact_result(reduction: Reduction, values: Array) -> FloatArray:
    """Return the result in float64, of the values as they are in their own type; shape (n_elements,)."""
    wide = values.astype(np.float64)
    prepare(reduction, wide)
    result: FloatArray = reduction.ufunc.reduce(wide, axis=0)
    return result


def rounding_error(result: Array, exact: FloatArray) -> RoundingError:
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
