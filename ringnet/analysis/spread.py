"""How the times of many runs are spread: median, mean and percentiles, each with the interval that it is known to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, inf, sqrt
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ringnet.analysis.frames import Table
from ringnet.array_types import FloatArray

#: The share of all draws that each percentile is above; the mean is none.
FIGURES: Mapping[str, float | None] = MappingProxyType(
    {"median": 0.5, "mean": None, "p5": 0.05, "p95": 0.95, "p99": 0.99}
)
#: What each is, in words.
FIGURE_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "median": "median",
        "mean": "mean",
        "p5": "5th percentile",
        "p95": "95th percentile",
        "p99": "99th percentile",
    }
)
#: How sure an interval is.
CONFIDENCE = 0.95


class Figure(NamedTuple):
    """A figure of many runs, and the interval that holds the true one in 95 of 100 cases.

    An end that so few runs do not tell is NaN.
    """

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share of the figure; infinite where an end of it is not known."""
        known = self.value and not np.isnan(self.high - self.low)
        return (self.high - self.low) / 2 / self.value if known else inf


def figures(values: Sequence[float] | FloatArray) -> dict[str, Figure]:
    """Return each of `FIGURES` of some values, at least one.

    Notes
    -----
    The interval of the mean is Student's. That of a percentile goes from one of the sorted values to another: how many
    of n values are below the true percentile is binomial, whatever the distribution is (David and Nagaraja, *Order
    Statistics*, 3rd ed., 7.1).

    Examples
    --------
    >>> found = figures(np.arange(1.0, 101.0))
    >>> [round(number, 2) for number in found["mean"]]
    [50.5, 44.74, 56.26]
    >>> tuple(map(float, found["median"])), float(found["p99"].high)
    ((50.5, 41.0, 61.0), nan)
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    return {name: _mean(ordered) if share is None else _percentile(ordered, share) for name, share in FIGURES.items()}


def _mean(values: FloatArray) -> Figure:
    mean, half = float(values.mean()), half_width_of_mean(values)
    return Figure(mean, mean - half, mean + half)


def half_width_of_mean(values: FloatArray) -> float:
    """Return half of Student's interval of a mean; NaN for a single value.

    >>> round(half_width_of_mean(np.array([1.0, 2.0, 3.0])), 3)  # 4.303 / sqrt(3)
    2.484
    """
    from scipy.special import stdtrit  # noqa: PLC0415 -- a quarter of a second, for repeated runs alone

    n = len(values)
    return float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * values.std(ddof=1) / sqrt(n)) if n > 1 else float("nan")


def _percentile(ordered: FloatArray, share: float) -> Figure:
    n = len(ordered)
    low, high = _ranks(n, share)
    return Figure(
        float(np.quantile(ordered, share, method="median_unbiased")),
        float(ordered[low - 1]) if low > 0 else float("nan"),
        float(ordered[high - 1]) if high <= n else float("nan"),
    )


@lru_cache(maxsize=1024)
def _ranks(n: int, share: float) -> tuple[int, int]:
    """Return which of n sorted values, counted from 1, enclose a percentile in 95 of 100 cases, and in few more.

    0 and n + 1 stand for ends that are not known.
    """
    from scipy.stats import binom  # noqa: PLC0415 -- half a second, for repeated runs alone

    tail = (1 - CONFIDENCE) / 2
    low, high = int(binom.ppf(tail, n, share)), int(binom.ppf(1 - tail, n, share)) + 1
    # Both ends hold more than they need: of the one that can do without the outermost value, it goes.
    chances = {at: float(binom.pmf(at, n, share)) for at in (low, high - 1)}
    spare = float(binom.cdf(high - 1, n, share) - binom.cdf(low - 1, n, share)) - CONFIDENCE
    if chances[low] <= spare and (low > 0) and (chances[low] >= chances[high - 1] or chances[high - 1] > spare):
        return low + 1, high
    return (low, high - 1) if chances[high - 1] <= spare and high <= n else (low, high)


class MeanDifference(NamedTuple):
    """By how much one design takes longer than another in the mean, and the interval of that."""

    mean: float
    low: float
    high: float


def difference(longer: FloatArray, shorter: FloatArray) -> MeanDifference:
    """Return the mean of the differences, run by run, and Student's interval: of runs under the same chance.

    >>> difference(np.array([3.0, 4.0, 5.0]), np.array([1.0, 2.0, 3.0]))
    MeanDifference(mean=2.0, low=2.0, high=2.0)
    """
    apart = longer - shorter
    mean, half = float(apart.mean()), half_width_of_mean(apart)
    return MeanDifference(mean, mean - half, mean + half)


def runs_wanted(n_runs: int, half_width: float, wanted: float) -> float:
    """Return roughly how many runs an interval takes to be so narrow: it shrinks with the root of their number.

    >>> runs_wanted(100, 0.04, 0.01)
    1600
    """
    return ceil(n_runs * (half_width / wanted) ** 2) if half_width < inf else inf


def spread_columns(times_s: FloatArray) -> dict[str, float | int | None]:
    """Return what a summary says of many runs: how many, and each figure with its interval; None for no end of one."""
    found: dict[str, float | int | None] = {"n_runs": len(times_s)}
    for name, figure in figures(times_s).items():
        ends = {"": figure.value, "_low": figure.low, "_high": figure.high}
        found |= {f"{name}{end}_s": None if np.isnan(value) else value for end, value in ends.items()}
    return found


def run_table(times_s: FloatArray, row: Mapping[str, Any]) -> Table:
    """Return a row for each run: its number, its time, and the bandwidths that follow; ``row`` is a summary's."""
    with np.errstate(divide="ignore"):
        algbw_Bps = np.where(times_s > 0, row["message_bytes"] / times_s, np.nan)
    bus = row["busbw_Bps"] / row["algbw_Bps"] if row.get("algbw_Bps") else np.nan
    columns = {"makespan_s": times_s, "algbw_Bps": algbw_Bps, "busbw_Bps": algbw_Bps * bus}
    return {"run": np.arange(len(times_s)), **columns}
