"""How far the combined gradient of N workers may be from that of one process that sees the whole batch.

With p_j the gradient of example j, which both compute to the same bits, the exact mean is sum(p_j) / n. Let u and v be
the unit roundoffs of the type that is all-reduced and of the parameters' type, and g(k) = k u / (1 - k u) (Higham, 2nd
ed., lemma 3.1). An element goes, in any order,

- through at most max(n_i) additions within a batch, a division and a product for its microbatch, m - 1 additions of
  microbatches, a division and a product for the worker's share: max(n_i) + m + 4 roundings of v at most;
- into the type that is all-reduced, a product with the worker's scale (itself rounded) and N - 1 additions: N + 2
  roundings of u;
- back, and through at most two products or divisions: 3 roundings of v.

So it is off by at most ((1 + g_v(max(n_i) + m + 8)) (1 + g_u(N + 2)) - 1) sum|p_j| / n, where |p_j| is the product of
the magnitudes that p_j is the rounded product of. What underflows adds at most the smallest positive number of its type
for each operation. One process adds in float64, and is off by g(n + 2) of that.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.payload.bounds import U64, gamma
from ringnet.payload.dtypes import smallest_subnormal, unit_roundoff


class Distance(NamedTuple):
    """How far a combined gradient is from the whole batch's.

    Parameters
    ----------
    error : float
        The largest difference of an element.
    share : float or None
        The largest difference as a share of its bound; None where no bound is known.
    digits : float or None
        Decimal digits that the two have in common: -log10 of the root mean square of the differences over that of the
        gradient, to a hundredth; None where they are equal or the gradient is zero.
    """

    error: float
    share: float | None
    digits: float | None


def gradient_bound(
    magnitude: Array,
    counts: IntArray,
    *,
    wire: np.dtype[Any],
    master: np.dtype[Any],
    microbatches: int,
    scale: float,
) -> Array:
    """Return the bound of this module for each element.

    Parameters
    ----------
    magnitude : ndarray of float64, shape (n_parameters,)
        sum|p_j| / n.
    counts : ndarray of int64, shape (n_workers,)
        Examples of each worker; not all zero.
    wire, master : numpy.dtype
        What is all-reduced, and what the parameters are.
    microbatches : int
    scale : float
        What the result of the all-reduce is multiplied by.
    """
    n_workers, n = len(counts), int(counts.sum())
    local = gamma(int(counts.max()) + microbatches + 8, unit_roundoff(master))
    reduced = gamma(n_workers + 2, unit_roundoff(wire))
    relative = local + reduced + local * reduced + gamma(n + 2, U64)
    relative += n * smallest_subnormal(wire)  # a share of the weights that underflows
    # Products that underflow: each worker's share, its scaled value, and what that becomes at the end.
    least = 4 * n_workers * smallest_subnormal(wire) * max(scale, 1.0)
    least += 4 * (n + n_workers + microbatches) * smallest_subnormal(master)
    return np.asarray(magnitude * relative * (1 + gamma(n + 4, U64)) + least)


def distance(combined: Array, whole: Array, bound: Array | None) -> Distance:
    """Compare a combined gradient with that of the whole batch, in float64."""
    error = np.abs(combined.astype(np.float64) - whole)
    size, root = (float(np.sqrt(np.square(values).mean())) for values in (whole, error))
    share = None
    if bound is not None:
        share = float(np.divide(error, bound, out=np.zeros_like(error), where=error > 0).max(initial=0.0))
    digits = round(-math.log10(root / size), 2) if 0 < root < math.inf and size else None
    return Distance(float(error.max(initial=0.0)), share, digits)
