"""What a result would be without rounding, and how far rounding can take it: the second, independent check.

Throughout u is the unit roundoff of the element type, eta its smallest positive number, N the number of
workers, and g(k) = k u / (1 - k u), which bounds the product of k factors (1 + d), abs(d) <= u (Higham,
*Accuracy and Stability of Numerical Algorithms*, 2nd ed., lemma 3.1). Every bound holds for any order of the
operations, and counts the rounding of the reference itself, which is computed in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringnet.array_types import Array, BoolArray, FloatArray
from ringnet.payload.dtypes import (
    DType,
    is_float,
    smallest_normal,
    smallest_subnormal,
    unit_roundoff,
    widened,
)

U64 = unit_roundoff(np.dtype(np.float64))
ETA64 = smallest_subnormal(np.dtype(np.float64))


def gamma(k: int, u: float) -> float:
    """Return g(k) = k u / (1 - k u); infinite from k u = 1 on, where nothing is bounded.

    >>> gamma(2, 0.25), gamma(4, 0.25)
    (1.0, inf)
    """
    return k * u / (1 - k * u) if k * u < 1 else np.inf


@dataclass(frozen=True)
class Expected:
    """What a block of results should be.

    Parameters
    ----------
    value : ndarray of shape (n,)
        float64, or for integers the exact value modulo 2^bits in the element type itself.
    rest : ndarray of shape (n,), or 0
        What ``value`` lacks of the exact result, where it is known.
    bound : ndarray of shape (n,), or 0
        How far from it a correct computation can end.
    n_nonfinite : int
        Infinities and NaN among the input.
    wrapped : bool
        Whether an exact result does not fit the integer type.
    """

    value: Array
    rest: FloatArray | float = 0.0
    bound: FloatArray | float = 0.0
    n_nonfinite: int = 0
    wrapped: bool = False

    def part(self, where: slice) -> Expected:
        """Return a part of the block."""
        rest = self.rest[where] if isinstance(self.rest, np.ndarray) else self.rest
        bound = self.bound[where] if isinstance(self.bound, np.ndarray) else self.bound
        return replace(self, value=self.value[where], rest=rest, bound=bound)


class Oracle(ABC):
    """Computes results a second way, from the input as the user gave it.

    Parameters
    ----------
    ufunc : numpy.ufunc
    dtype : numpy.dtype
    n_workers : int
    scales : sequence of float, or None
        Factor of each worker, for the means.
    """

    #: The bound as a multiple of its scale: sum |x|, or |prod x|.
    factor: float = 0.0

    def __init__(self, ufunc: np.ufunc, dtype: DType, n_workers: int, scales: Sequence[float] | None = None) -> None:
        self.ufunc, self.dtype, self.n_workers = ufunc, dtype, n_workers
        self.scales = None if scales is None else np.array(scales)

    def expected(self, values: Array) -> Expected:
        """Return what should come out of the contributions ``values``, shape (n_workers, n)."""
        with np.errstate(all="ignore"):  # overflow and NaN are looked for in what comes out
            return self._expected(values)

    @abstractmethod
    def _expected(self, values: Array) -> Expected: ...


class SumOracle(Oracle):
    """Sum, mean and weighted mean.

    A sum of N terms in any order is off by at most g(N-1) sum |x|; an addition that underflows is exact
    (Hauser, *Handling floating-point exceptions*, TOPLAS 18, 1996). A mean sums p = fl(x fl(w)): two more
    factors (1 + d) each, so g(N+1) sum |x w|; a product that underflows adds at most eta, a factor that
    underflows at most eta |x|, and either grows by 1 + g(N-1) < 2 on the way. One eta, not a half, since
    bfloat16 is rounded twice there.

    The reference is summed in float64, off by g(N+8) of float64 at most with the scaling; for float64 itself
    it is summed with the rounding errors carried along (Knuth's TwoSum), off by N^2 u^2, less than u: then
    only the scaling counts.
    """

    def __init__(self, ufunc: np.ufunc, dtype: DType, n_workers: int, scales: Sequence[float] | None = None) -> None:
        super().__init__(ufunc, dtype, n_workers, scales)
        roundings = n_workers - 1 if scales is None else n_workers + 1
        self._double = dtype.itemsize == np.dtype(np.float64).itemsize
        reference = (8 if scales is not None else min(1, roundings)) if self._double else n_workers + 8
        self.factor = gamma(roundings, unit_roundoff(dtype)) + gamma(reference, U64)
        self._eta = smallest_subnormal(dtype)
        self._tiny_scales = scales is not None and any(0 < abs(x) < smallest_normal(dtype) for x in scales)

    def _expected(self, values: Array) -> Expected:
        values = widened(values)
        size, value, rest = self._accumulated(values)
        if np.isfinite(size).all():
            return Expected(value, rest, self._bound(size, values))
        size = sum((np.abs(term, dtype=np.float64) for term in self._terms(values)), np.zeros(len(size)))
        return Expected(value, rest, self._bound(size, values), _count_nonfinite(values))

    def _terms(self, values: Array) -> Iterable[Array]:
        """Yield one worker's terms after the other: those of all at once would not stay in the cache."""
        if self.scales is None:
            return values
        return (np.multiply(row, x, dtype=np.float64) for row, x in zip(values, self.scales, strict=True))

    def _accumulated(self, values: Array) -> tuple[Array, FloatArray, FloatArray | float]:
        """Return sum |x| in the precision of the terms; their sum; for float64 the rounding errors made."""
        n = values.shape[1]
        size, spare = np.zeros((2, n), values.dtype if self.scales is None else np.float64)
        total, rest = np.zeros(n), np.zeros(n) if self._double else 0.0
        for term in self._terms(values):
            np.add(size, np.abs(term, out=spare), out=size)
            if self._double:
                rest += _add_exactly(total, term)
            else:
                np.add(total, term, out=total)
        return size, total, rest

    def _bound(self, size: Array, values: Array) -> FloatArray | float:
        if self.factor == 0:
            return 0.0
        # The sum of sizes is rounded, too, N times at most.
        factor = self.factor * (1 + gamma(self.n_workers, unit_roundoff(size.dtype)))
        bound = np.multiply(size, factor, dtype=np.float64)
        return bound if self.scales is None else bound + self._underflow(values)

    def _underflow(self, values: Array) -> FloatArray | float:
        inputs = np.add.reduce(np.abs(values), axis=0, dtype=np.float64) if self._tiny_scales else 0.0
        return 2 * self._eta * (self.n_workers + inputs)


class ProductOracle(Oracle):
    """Product.

    N-1 roundings: g(N-1) |prod x|. Where a partial product may underflow, each of the N-1 products is off by
    up to eta more, which the factors to come multiply by at most prod max(1, |x|), and their roundings by
    less than 2. No partial product underflows while prod min(1, |x|) is a normal number, whatever the order.
    The reference is a float64 product: g(N-1) of float64, and its own eta.
    """

    def __init__(self, ufunc: np.ufunc, dtype: DType, n_workers: int, scales: Sequence[float] | None = None) -> None:
        super().__init__(ufunc, dtype, n_workers, scales)
        self.factor = gamma(n_workers - 1, unit_roundoff(dtype)) + gamma(n_workers - 1, U64)

    def _expected(self, values: Array) -> Expected:
        wide = values.astype(np.float64)
        value = np.multiply.reduce(wide, axis=0)
        n_nonfinite = 0 if np.isfinite(value).all() else _count_nonfinite(wide)
        np.abs(wide, out=wide)
        smallest = np.multiply.reduce(np.minimum(wide, 1), axis=0)
        bound = self.factor * np.abs(value)
        low = ~(smallest >= smallest_normal(self.dtype))
        if self.n_workers > 1 and low.any():
            largest = np.multiply.reduce(np.maximum(wide[:, low], 1), axis=0)
            bound[low] += 2 * self.n_workers * (smallest_subnormal(self.dtype) + ETA64) * largest
        return Expected(value, 0.0, bound, n_nonfinite)


class ExtremeOracle(Oracle):
    """Maximum and minimum, and data that is only copied: exact."""

    def _expected(self, values: Array) -> Expected:
        values = widened(values)
        value = self.ufunc.reduce(values, axis=0).astype(np.float64)
        return Expected(value, n_nonfinite=_count_nonfinite(values))


class IntegerOracle(Oracle):
    """Any reduction of integers: exact modulo 2^bits.

    Sums and products modulo 2^64 give those modulo 2^bits. Whether the true result fits is seen from a float64
    one: where it fits, the two differ by rounding only, less than half of 2^bits for any N below 2^26; where
    not, by a multiple of 2^bits.
    """

    def _expected(self, values: Array) -> Expected:
        wide = np.uint64 if self.dtype.kind == "u" else np.int64
        value = self.ufunc.reduce(values, axis=0, dtype=wide).astype(self.dtype)
        rough = self.ufunc.reduce(values, axis=0, dtype=np.float64)
        off = np.abs(rough - value.astype(np.float64))
        return Expected(value, wrapped=bool((off >= 2.0 ** (8 * self.dtype.itemsize - 1)).any()))


@dataclass(frozen=True)
class Judgement:
    """How results compare with what was expected.

    Parameters
    ----------
    max_abs_error : float
        Largest finite error; of what has overflowed none is counted.
    max_share : float
        Largest error as a share of its bound; infinite where an exact result is wrong.
    wrong, overflowed : ndarray of bool, shape (n,), or None
        Results beyond the bound, and those that are infinite or NaN though the input is finite; None if there
        are none.
    """

    max_abs_error: float
    max_share: float
    wrong: BoolArray | None = None
    overflowed: BoolArray | None = None


@np.errstate(all="ignore")
def judge(got: Array, expected: Expected) -> Judgement:
    """Compare results with what was expected; NaN is right where NaN is, and an infinity where the same one is.

    Parameters
    ----------
    got : ndarray, shape (n,)
        Results of one worker, in the element type of the payload.
    expected : Expected
        For the same elements.
    """
    if not is_float(got.dtype):
        wrong = got != expected.value
        error = np.abs(got.astype(np.float64) - expected.value) if wrong.any() else np.zeros(1)
        return Judgement(float(error.max()), np.inf if wrong.any() else 0.0, wrong if wrong.any() else None)
    wide = widened(got)
    error = np.subtract(wide, expected.value, dtype=np.float64)
    error = np.abs(error - expected.rest if isinstance(expected.rest, np.ndarray) else error, out=error)
    share = _largest_share(error, expected.bound)
    if share <= 1:
        return Judgement(float(error.max(initial=0.0)), share)
    return _sorted_out(wide, error, expected)


def _sorted_out(got: Array, error: FloatArray, expected: Expected) -> Judgement:
    value, finite, known = expected.value, np.isfinite(got), np.isfinite(expected.value)
    same = (got == value) | (np.isnan(got) & np.isnan(value))
    if expected.n_nonfinite:
        # Where the input is infinite so is the bound; only what IEEE says will do.
        beyond = ~(same | (known & (error <= expected.bound)))
    else:
        # The reference of float64 may overflow where another order does not: then a finite result may be right.
        beyond = ~finite | (known & ~(error <= expected.bound) & ~same)
    error = np.where(same, 0.0, error)
    overflowed, wrong = beyond & ~finite, beyond & finite
    counted = np.where(np.isfinite(error) & ~overflowed, error, 0.0)
    # Where the bound is 0, what is left is an error of 0.
    shares = np.divide(counted, expected.bound, out=np.zeros_like(counted), where=counted > 0)
    return Judgement(
        float(counted.max(initial=0.0)),
        np.inf if wrong.any() else float(shares.max(initial=0.0)),
        wrong if wrong.any() else None,
        overflowed if overflowed.any() else None,
    )


def _largest_share(error: FloatArray, bound: FloatArray | float) -> float:
    """Return the largest error / bound; NaN if there is anything to sort out, such as 0 / 0."""
    if isinstance(bound, np.ndarray):
        return float((error / bound).max(initial=0.0))
    return np.nan if error.any() else 0.0


def _add_exactly(total: FloatArray, term: FloatArray) -> FloatArray:
    """Add to ``total`` in place, and return what was rounded away (Knuth's TwoSum)."""
    new = total + term
    part = new - total
    lost: FloatArray = (total - (new - part)) + (term - part)
    total[...] = new
    return lost


def _count_nonfinite(values: Array) -> int:
    return int(values.size - np.count_nonzero(np.isfinite(values)))
