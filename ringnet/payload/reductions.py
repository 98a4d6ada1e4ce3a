"""What happens to two contributions that meet, and what is done to each worker's data before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ringnet.array_types import Array
from ringnet.errors import Fault, InputError
from ringnet.payload.bounds import ExtremeOracle, IntegerOracle, Oracle, ProductOracle, SumOracle
from ringnet.payload.dtypes import DType, is_float


@dataclass(frozen=True)
class Reduction:
    """A way to combine the workers' contributions, element by element.

    A mean is a sum of data that each worker has scaled before it sends anything (NCCL's ``PreMulSum``): x
    times w_i / sum(w), the factor and the product each rounded to the element type.

    Parameters
    ----------
    name : str
        As in the scenario and in the tables.
    ufunc : numpy.ufunc
        Combines two arrays: the receiver's own first, what came in second.
    bounds : type
        Kind of `Oracle` that knows what floating-point results should be, and how far rounding can take them.
    summary : str
        One line about it.
    weighting : {"none", "equal", "given"}
        Whether workers scale their data, all by one factor or by weights that the user gives.
    scales : tuple of float, or None
        The factor w_i / sum(w) of each worker; None where nothing is scaled.
    """

    name: str
    ufunc: np.ufunc
    bounds: type[Oracle]
    summary: str
    weighting: Literal["none", "equal", "given"] = "none"
    scales: tuple[float, ...] | None = None

    def combine(self, own: Array, incoming: Array, out: Array | None = None) -> Array:
        """Combine what a worker holds with what came in; into ``out`` where given, which may be ``own``."""
        result: Array = self.ufunc(own, incoming, out=out)
        return result

    def prepare(self, values: Array, worker: int) -> Array:
        """Scale the data of ``worker`` in place, where this reduction scales; return ``values``."""
        if self.scales is not None:
            np.multiply(values, values.dtype.type(self.scales[worker]), out=values)
        return values

    def oracle(self, dtype: DType, n_workers: int) -> Oracle:
        """Return what knows the results of ``n_workers`` contributions of type ``dtype``."""
        kind = self.bounds if is_float(dtype) else IntegerOracle
        return kind(self.ufunc, dtype, n_workers, self.scales)


#: Every reduction by name, before it knows its workers: see `make_reduction`.
REDUCTIONS: dict[str, Reduction] = {
    reduction.name: reduction
    for reduction in (
        Reduction("sum", np.add, SumOracle, "the sum over all workers"),
        Reduction("mean", np.add, SumOracle, "the mean: each worker scales by 1/N, then the sum", "equal"),
        Reduction(
            "weighted-mean",
            np.add,
            SumOracle,
            "scaled by each worker's share of the weights, then summed",
            "given",
        ),
        Reduction("max", np.maximum, ExtremeOracle, "the largest value"),
        Reduction("min", np.minimum, ExtremeOracle, "the smallest value"),
        Reduction("prod", np.multiply, ProductOracle, "the product over all workers"),
    )
}


def make_reduction(name: str, n_workers: int, weights: Sequence[float] | None = None) -> Reduction:
    """Return the reduction ``name`` for ``n_workers`` workers.

    Parameters
    ----------
    name : str
        A key of `REDUCTIONS`.
    n_workers : int
    weights : sequence of float, optional
        One number per worker, not negative and not all zero: for ``weighted-mean``, and for no other.

    Raises
    ------
    InputError
        With every mistake at once: unknown name, weights missing, unwanted, of the wrong number, negative,
        not finite or all zero.

    Examples
    --------
    >>> make_reduction("weighted-mean", 2, [1, 3]).scales
    (0.25, 0.75)
    """
    if name not in REDUCTIONS:
        raise InputError(Fault("unknown reduction", value=name, right=" | ".join(REDUCTIONS)))
    kind = REDUCTIONS[name]
    faults = _weight_faults(kind, n_workers, weights)
    if faults:
        raise InputError(*faults)
    if kind.weighting == "none":
        return kind
    return replace(kind, scales=_shares([1.0] * n_workers if weights is None else weights))


def check_dtype(reduction: Reduction, dtype: DType) -> None:
    """Refuse a mean of integers.

    Raises
    ------
    InputError
        Where the reduction scales its input and ``dtype`` holds integers: the scaled values would all be cut
        to zero.
    """
    if reduction.weighting != "none" and not is_float(dtype):
        right = "reduce: sum, or a floating-point dtype"
        raise InputError(Fault(f"a {reduction.name} of integers is not an integer", value=dtype.name, right=right))


def _shares(weights: Sequence[float]) -> tuple[float, ...]:
    # Dividing by the largest first keeps the sum of huge weights finite.
    largest = max(weights)
    total = math.fsum(weight / largest for weight in weights)
    return tuple(weight / largest / total for weight in weights)


def _weight_faults(kind: Reduction, n_workers: int, weights: Sequence[float] | None) -> list[Fault]:
    given = kind.weighting == "given"
    if weights is None:
        right = f"weights: one number for each of the {n_workers} workers"
        return [Fault(f"a {kind.name} needs weights", right=right)] if given else []
    if not given:
        return [Fault(f"{kind.name} takes no weights", value=str(list(weights)), right="reduce: weighted-mean")]
    return _bad_weights(n_workers, weights)


def _bad_weights(n_workers: int, weights: Sequence[float]) -> list[Fault]:
    faults = []
    if len(weights) != n_workers:
        faults.append(Fault("weights of the wrong number", value=str(len(weights)), right=f"{n_workers} weights"))
    faults += [
        Fault(f"weight of worker {worker} is not a finite number from 0 up", value=str(weight), right="1")
        for worker, weight in enumerate(weights)
        if not (math.isfinite(weight) and weight >= 0)
    ]
    if not faults and not any(weights):
        faults.append(Fault("all weights are zero", value=str(list(weights)), right="at least one above 0"))
    return faults
