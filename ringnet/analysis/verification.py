"""Is the result right? Two independent checks of every element that every worker holds in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ringnet.analysis.replay import Moves, moves_by_chunk, replay_chunk, replay_table
from ringnet.array_types import Array, BoolArray, IntArray
from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.payload import PackedPayload, Payload, Reduction, Source, SwitchSums, payload_text
from ringnet.payload.blocks import LARGE, Block, Layout, contributions, parallel, prepare
from ringnet.payload.bounds import Expected, ExtremeOracle, Judgement, Oracle, judge
from ringnet.payload.dtypes import DType, bits_of, is_float

#: A bound above this share of sum |x| tells nothing about a result.
TELLING = 0.1

#: What can be wrong, what tells most first.
CHECKS = ("missing", "replay", "overflow", "bound")


@dataclass(frozen=True)
class Mismatch:
    """The first element that is wrong, and which check says so.

    Parameters
    ----------
    worker, chunk, element : int
        The element is counted from the start of the whole buffer.
    check : {"missing", "replay", "bound", "overflow"}
        Nothing held; not what the schedule replayed without time gives; further from the float64 (or exact)
        result than rounding can take it; infinite or NaN though the input is finite.
    got, expected : str
        Both values, with all digits.
    """

    worker: int
    chunk: int
    element: int
    check: str
    got: str
    expected: str

    def __str__(self) -> str:
        place = f"worker {self.worker}, chunk {self.chunk}, element {self.element}"
        return f"{place}: got {self.got}, expected {self.expected} ({self.check})"

    def order(self) -> tuple[int, int, int, int]:
        """Return what to sort by: the place, then the check that tells most."""
        return self.worker, self.chunk, self.element, CHECKS.index(self.check)


@dataclass(frozen=True)
class Verdict:
    """What verification found.

    Parameters
    ----------
    payload : str
        ``full``, ``first 16 elements`` (of each chunk), or ``none``.
    verified_elements : int
        Elements times the workers that must hold them.
    max_abs_error : float or None
        Largest error against a float64 (or exact integer) result, overflowed elements aside.
    max_error_share : float or None
        Largest error as a share of its bound; None where there is no bound.
    sum_ok : bool or None
        Whether both checks hold for every element and nothing has overflowed; None without a payload.
    workers_agree : bool or None
        Whether all workers that must hold an element hold the same bits.
    replay_ok, bound_ok : bool or None
        The first and the second check on their own.
    bound_tells : bool
        False where the bound is over a tenth of sum abs(x): low precision, many workers.
    wrapped : bool
        An exact integer result does not fit its type; what is held is exact modulo 2^bits.
    overflowed : bool
        A floating-point result is infinite or NaN though the input is finite.
    n_nonfinite_inputs : int
        Infinities and NaN in the data, which are summed as IEEE 754 says.
    mismatch : Mismatch or None
        The first thing wrong.
    notes : tuple of str
        What a reader should know, as sentences without a full stop.
    """

    payload: str
    verified_elements: int = 0
    max_abs_error: float | None = None
    max_error_share: float | None = None
    sum_ok: bool | None = None
    workers_agree: bool | None = None
    replay_ok: bool | None = None
    bound_ok: bool | None = None
    bound_tells: bool = True
    wrapped: bool = False
    overflowed: bool = False
    n_nonfinite_inputs: int = 0
    mismatch: Mismatch | None = None
    notes: tuple[str, ...] = ()


def verify(
    schedule: Schedule,
    payload: Payload | PackedPayload | None,
    source: Source | None,
    reduction: Reduction,
    chunk_sizes: IntArray,
    carry: int | None = None,
    *,
    accumulate: DType | None = None,
) -> Verdict:
    """Check every carried element of every worker that must hold it in the end.

    First, bit for bit, against the schedule replayed without time in the same element type and order; second,
    against a float64 (or exact integer) result, within a bound on what rounding can do
    (`ringnet.payload.bounds`). The input is made or read again in blocks, so that no second copy of it is
    ever held.

    Parameters
    ----------
    schedule : Schedule
    payload : Payload, PackedPayload or None
        After the run; None if byte counts alone were moved.
    source : Source or None
        What the payload was made from.
    reduction : Reduction
    chunk_sizes : ndarray of int64, shape (n_chunks,)
        Elements of each chunk.
    carry : int, optional
        Elements of each chunk that were carried; all if None.
    accumulate : numpy.dtype, optional
        Type of sums in switches until they are sent on; that of the elements if left out.
    """
    if payload is None or source is None:
        return Verdict(payload_text(None, carried=False))
    layout = Layout.of(schedule.n_workers, chunk_sizes, schedule.source, carry, source.n_elements)
    check = _Check(schedule, payload, source, reduction, layout, accumulate)
    found = _merged(parallel(check.block, check.blocks()))
    factor = check.oracle.factor if (schedule.source == EVERY_WORKER).any() else 0.0
    return _with_notes(_verdict(found, factor, payload_text(carry)), source.dtype, schedule.n_workers)


def outputs(schedule: Schedule, payload: Payload | PackedPayload, source: Source) -> list[Array]:
    """Return the results, to be saved.

    Returns
    -------
    list of ndarray
        Where every worker must hold every chunk, the one array that all share, in the shape of the user's
        data (flat if only the first elements of each chunk were carried). Otherwise one flat array per
        worker: the chunks that it must hold, in order.
    """
    if not (schedule.target == EVERY_WORKER).all():
        mine = (np.flatnonzero(schedule.target == worker) for worker in range(schedule.n_workers))
        return [_joined(payload, worker, chunks.tolist()) for worker, chunks in enumerate(mine)]
    whole = _joined(payload, 0, range(schedule.n_chunks))
    return [whole.reshape(source.shape) if whole.size == source.n_elements else whole]


def _joined(payload: Payload | PackedPayload, worker: int, chunks: Sequence[int]) -> Array:
    held = [payload.held(worker, chunk) for chunk in chunks]
    return np.concatenate([np.empty(0, payload.dtype), *(part for part in held if part is not None)])


@dataclass
class _Tally:
    """What one block, or all of them together, came to."""

    verified: int = 0
    max_abs_error: float = 0.0
    max_share: float = 0.0
    agree: bool = True
    wrapped: bool = False
    n_nonfinite: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)

    def add(self, judgement: Judgement) -> None:
        self.max_abs_error = max(self.max_abs_error, judgement.max_abs_error)
        self.max_share = max(self.max_share, judgement.max_share)


class _Check:
    """Both checks, block by block; blocks are independent of each other."""

    def __init__(
        self,
        schedule: Schedule,
        payload: Payload | PackedPayload,
        source: Source,
        reduction: Reduction,
        layout: Layout,
        accumulate: DType | None = None,
    ) -> None:
        self.schedule, self.payload, self.source = schedule, payload, source
        self.reduction, self.layout, self.accumulate = reduction, layout, accumulate
        self.oracle = reduction.oracle(source.dtype, layout.n_workers)
        # A chunk that starts at one worker is only copied.
        self._copied = ExtremeOracle(np.maximum, source.dtype, 1)
        large = np.flatnonzero(layout.sizes >= LARGE).tolist()
        self._moves: dict[int, list[Moves]] = moves_by_chunk(schedule, large)

    def blocks(self) -> Iterator[Block]:
        yield from self.layout.large_blocks(self.source.dtype.itemsize)
        yield from self.layout.small_blocks(self.source.dtype.itemsize)

    def block(self, block: Block) -> _Tally:
        with np.errstate(all="ignore"):
            values = contributions(self.source, self.layout, block)
            oracle: Oracle = self.oracle if block.everyone else self._copied
            expected = oracle.expected(values)
            if block.everyone:
                prepare(self.reduction, values)
            return self._compared(block, expected, self._replayed(block, values))

    def _replayed(self, block: Block, values: Array) -> ExpectedRows:
        n_workers, moves = self.layout.n_workers, self._moves.get(int(block.chunks[0]))
        if moves is not None:
            rows = list(values) if block.everyone else [np.zeros_like(values[0])] * n_workers
            if not block.everyone:
                rows[int(self.layout.holders[block.chunks[0]])] = values[0]
            replay_chunk(moves, rows, self.reduction.ufunc, SwitchSums(self.schedule.n_switches, self.accumulate))
            return lambda position, workers: _stacked([rows[worker] for worker in workers])
        shape = (n_workers, len(block.chunks), block.width)
        table = values.reshape(shape) if block.everyone else np.zeros(shape, values.dtype)
        if not block.everyone:
            table[self.layout.holders[block.chunks], range(len(block.chunks))] = values.reshape(shape[1:])
        replay_table(self.schedule, block.chunks, table, self.reduction.ufunc, self.accumulate)
        return lambda position, workers: _rows(table[:, position], workers)

    def _compared(self, block: Block, expected: Expected, want: ExpectedRows) -> _Tally:
        tally = _Tally(wrapped=expected.wrapped, n_nonfinite=expected.n_nonfinite)
        for position, chunk in enumerate(block.chunks.tolist()):
            part = expected.part(slice(position * block.width, (position + 1) * block.width))
            one = _Chunk(tally, chunk, int(self.layout.offsets[chunk]) + block.start, part)
            first = None
            for workers, held in self.payload.distinct(chunk, self.schedule.holders(chunk)):
                if held is None:
                    one.missing(workers)
                    continue
                got = np.atleast_2d(held[..., block.start : block.start + block.width])
                first = got[0] if first is None else first
                one.compare(workers, got, want(position, workers), first)
        return tally


#: Called with a chunk's position in a block, and workers: what these should hold, a row each or one for all.
ExpectedRows: TypeAlias = Callable[[int, list[int]], Array]


@dataclass(frozen=True)
class _Chunk:
    """One chunk of a block: compares what is held of it, and reports into ``tally``."""

    tally: _Tally
    chunk: int
    element: int
    expected: Expected

    def missing(self, workers: list[int]) -> None:
        value = str(self.expected.value[0])
        self.tally.mismatches.append(Mismatch(workers[0], self.chunk, self.element, "missing", "nothing", value))

    def compare(self, workers: list[int], got: Array, want: Array, first: Array) -> None:
        """Compare what ``workers`` hold, one row each or one for all, with the replay; judge it."""
        self.tally.verified += len(workers) * got.shape[1]
        self._report(unlike(got, want), "replay", workers, got, want)
        alike = len(got) == 1 or not unlike(got, got[0]).any()
        self.tally.agree &= alike and not unlike(got[0], first).any()
        for row, worker in zip(got[:1] if alike else got, workers, strict=False):
            self._judge(worker, row)

    def _judge(self, worker: int, row: Array) -> None:
        judgement = judge(row, self.expected)
        self.tally.add(judgement)
        self._report(judgement.wrong, "bound", [worker], row, self.expected.value)
        self._report(judgement.overflowed, "overflow", [worker], row, self.expected.value)

    def _report(self, mask: BoolArray | None, check: str, workers: list[int], got: Array, expected: Array) -> None:
        if mask is None or not mask.any():
            return
        row, column = np.argwhere(np.atleast_2d(mask))[0].tolist()
        values = (str(np.broadcast_to(x, np.atleast_2d(mask).shape)[row, column]) for x in (got, expected))
        self.tally.mismatches.append(Mismatch(workers[row], self.chunk, self.element + column, check, *values))


def unlike(got: Array, want: Array) -> BoolArray:
    """Return where the bits differ; any NaN is like any other, as NumPy's additions give it either sign."""
    differ: BoolArray = bits_of(got) != bits_of(want)
    if is_float(got.dtype) and differ.any():
        differ &= ~(np.isnan(got) & np.isnan(want))
    return differ


def _rows(column: Array, workers: list[int]) -> Array:
    return column if len(workers) == len(column) else column[workers]


def _stacked(rows: Sequence[Array]) -> Array:
    same = all(row is rows[0] for row in rows)
    return rows[0][None] if same else np.stack(rows)


def _merged(tallies: Sequence[_Tally]) -> _Tally:
    return _Tally(
        verified=sum(tally.verified for tally in tallies),
        max_abs_error=max((tally.max_abs_error for tally in tallies), default=0.0),
        max_share=max((tally.max_share for tally in tallies), default=0.0),
        agree=all(tally.agree for tally in tallies),
        wrapped=any(tally.wrapped for tally in tallies),
        n_nonfinite=sum(tally.n_nonfinite for tally in tallies),
        mismatches=[mismatch for tally in tallies for mismatch in tally.mismatches],
    )


def _verdict(found: _Tally, factor: float, payload: str) -> Verdict:
    failed = {mismatch.check for mismatch in found.mismatches}
    return Verdict(
        payload=payload,
        verified_elements=found.verified,
        max_abs_error=found.max_abs_error,
        max_error_share=found.max_share if np.isfinite([factor, found.max_share]).all() else None,
        sum_ok=not failed,
        workers_agree=found.agree,
        replay_ok=failed.isdisjoint({"missing", "replay"}),
        bound_ok=failed.isdisjoint({"missing", "bound"}),
        bound_tells=factor <= TELLING,
        wrapped=found.wrapped,
        overflowed="overflow" in failed,
        n_nonfinite_inputs=found.n_nonfinite,
        mismatch=min(found.mismatches, key=Mismatch.order, default=None),
    )


def _with_notes(verdict: Verdict, dtype: DType, n_workers: int) -> Verdict:
    name, bits, n = dtype.name, 8 * dtype.itemsize, verdict.n_nonfinite_inputs
    notes = (
        (n, f"{n} input values are infinite or NaN; they are combined as IEEE 754 says"),
        (verdict.wrapped, f"{name} wrapped: not every result fits, all are exact modulo 2^{bits}"),
        (verdict.overflowed, f"{name} overflowed: a result is infinite or NaN though its input is finite"),
        (not verdict.bound_tells, f"the error bound tells nothing with {n_workers} workers in {name}"),
    )
    return replace(verdict, notes=tuple(note for holds, note in notes if holds))
