"""What rounding does to a result: the order of additions is part of an algorithm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.replay import replay_table
from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.payload import Reduction
from ringnet.payload.blocks import prepare
from ringnet.payload.dtypes import Array, DType, bits_of


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


class Error(NamedTuple):
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


def reference(reduction: Reduction, values: Array) -> NDArray[np.float64]:
    """Return the result in float64, of the values as they are in their own type; shape (n_elements,)."""
    wide = values.astype(np.float64)
    prepare(reduction, wide)
    result: NDArray[np.float64] = reduction.ufunc.reduce(wide, axis=0)
    return result


def error(result: Array, exact: NDArray[np.float64]) -> Error:
    """Compare a result with its reference.

    >>> error(np.array([1.0, 2.5]), np.array([1.0, 2.0])).max_abs_error
    0.5
    """
    if not len(exact):
        return Error(0.0, 0.0, None)
    with np.errstate(all="ignore"):
        off = result.astype(np.float64) - exact
        rms, size = (float(np.sqrt(np.mean(part**2))) for part in (off, exact))
    return Error(float(np.abs(off).max()), rms, rms / size if size else None)
