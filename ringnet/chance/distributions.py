"""Distributions of times and rates: each is told by its mean, and drawn by its quantiles.

One uniform number makes one draw, by the inverse of the distribution function. So what is drawn keeps its place in a
stream whatever the distribution is, and two designs that differ in a mean or a spread meet the same luck: where one
draws a large number the other does (Law, *Simulation Modeling and Analysis*, 5th ed., 11.2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from typing import ClassVar, Protocol

import numpy as np

from ringnet.array_types import FloatArray

#: The least uniform number that is taken, so that no quantile is infinite; the largest is below one by itself.
LEAST_UNIFORM = 2.0**-54
#: The largest is below one by so much.
BELOW_ONE = 1.0 - 2.0**-53
#: Of gamma distributions: normal quantiles of a table, as far as uniform numbers of 53 bits lead, and the least shape
#: whose own do not vanish there.
END, STEP, LEAST_SHAPE = 8.5, 1 / 256, 0.1
#: Of a bounded Pareto distribution: what the bound may be above the least value, as a logarithm.
LEAST_LOG_SPAN, MOST_LOG_SPAN = 1e-9, 690.0


class Distribution(Protocol):
    """How a number above or at zero is distributed: ``mean`` of what is drawn, and ``least`` and ``most`` of it."""

    @property
    def mean(self) -> float:
        """The mean of what is drawn."""

    @property
    def least(self) -> float:
        """No draw is below it."""

    @property
    def most(self) -> float:
        """No draw is above it; infinite where there is no bound."""

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the values that a ``share`` of all draws is below: ndarray of float64, of any shape, within (0, 1)."""


def lost_of(share: float, n: int, probability: float) -> int:
    """Return how many of ``n`` are lost, each with a probability: so few or fewer are in that share of all cases.

    >>> [lost_of(share, 100, 0.01) for share in (0.3, 0.5, 0.9)]
    [0, 1, 2]
    """
    from scipy.special import bdtr, bdtrik  # noqa: PLC0415 -- see `Lognormal`

    if share <= (1 - probability) ** n:
        return 0
    return _least(float(bdtrik(share, n, probability)), lambda k: bool(bdtr(k, n, probability) >= share))


def lost_until(share: float, n: int, probability: float) -> int:
    """Return how many are lost until ``n`` have come, those sent again among them; ``share`` as in `lost_of`.

    >>> [lost_until(share, 10, 0.5) for share in (0.1, 0.5, 0.9)]
    [5, 9, 16]
    """
    from scipy.special import nbdtr, nbdtrik  # noqa: PLC0415 -- see `Lognormal`

    if share <= (1 - probability) ** n:
        return 0
    kept = 1 - probability
    return _least(float(nbdtrik(share, n, kept)), lambda k: bool(nbdtr(k, n, kept) >= share))


def _least(guess: float, is_enough: Callable[[int], bool]) -> int:
    """Return the least whole number that is enough, from one that is about it."""
    k = max(round(guess), 0)
    while k and is_enough(k - 1):
        k -= 1
    while not is_enough(k):
        k += 1
    return k


class AnyAboveZero:
    """What may come as close to zero, and be as large, as you like."""

    least: ClassVar[float] = 0.0
    most: ClassVar[float] = inf


@dataclass(frozen=True)
class Fixed:
    """Always the same value: what a mixture is made of."""

    value: float

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the value."""
        return np.full(share.shape, self.value)

    @cached_property
    def mean(self) -> float:
        """The value."""
        return self.value

    @property
    def least(self) -> float:
        """The value."""
        return self.value

    @property
    def most(self) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True)
class Exponential(AnyAboveZero):
    """What has no memory: the time to the next of events that come at random.

    >>> Exponential(2.0).quantile(np.array([0.5])).round(6).tolist()  # ln 4
    [1.386294]
    """

    mean: float

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return -mean ln(1 - share)."""
        return np.asarray(-self.mean * np.log1p(-share))


@dataclass(frozen=True)
class Lognormal(AnyAboveZero):
    """What many small factors make: its logarithm is normal; ``cv`` is the standard deviation by the mean.

    >>> Lognormal(5.0, 0.75).quantile(np.array([0.5])).tolist()  # mean / sqrt(1 + cv^2)
    [4.0]
    """

    mean: float
    cv: float

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return exp(mu + sigma z), z the standard normal's."""
        from scipy.special import ndtri  # noqa: PLC0415 -- a quarter of a second, for runs that draw alone

        variance = log1p(self.cv**2)
        median = self.mean / sqrt(1 + self.cv**2)
        return np.asarray(median * np.exp(sqrt(variance) * ndtri(share)))


@dataclass(frozen=True)
class Gamma(AnyAboveZero):
    """A sum of waits: shape 1 / cv^2; with ``cv`` 1 it is exponential."""

    mean: float
    cv: float

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the inverse of the regularised incomplete gamma function, scaled."""
        from scipy.special import gammaincinv, ndtri  # noqa: PLC0415 -- see `Lognormal`

        shape, scale = self.cv**-2, self.mean * self.cv**2
        if shape < LEAST_SHAPE:
            return np.asarray(scale * gammaincinv(shape, share))
        # Ten times as fast, good to eleven digits: a cubic spline over even steps of the standard normal's quantile.
        cubic, square, slope, level = _log_gamma_quantile(shape)
        place = (ndtri(share) + END) / STEP
        at = place.astype(np.int64)
        beyond = (place - at) * STEP
        log_value = ((cubic[at] * beyond + square[at]) * beyond + slope[at]) * beyond + level[at]
        return np.asarray(scale * np.exp(log_value))


@lru_cache(maxsize=64)
def _log_gamma_quantile(shape: float) -> tuple[FloatArray, ...]:
    """Return the coefficients of a spline from normal quantiles to the logarithms of a gamma distribution's."""
    from scipy.interpolate import CubicSpline  # noqa: PLC0415 -- see `Lognormal`
    from scipy.special import gammainccinv, gammaincinv, ndtr  # noqa: PLC0415 -- see `Lognormal`

    z = np.arange(round(2 * END / STEP) + 1) * STEP - END
    values = np.where(z < 0, gammaincinv(shape, ndtr(z)), gammainccinv(shape, ndtr(-z)))
    return tuple(np.ascontiguousarray(row) for row in CubicSpline(z, np.log(values)).c)


@dataclass(frozen=True)
class NormalAboveZero(AnyAboveZero):
    """A normal distribution of which what lies below zero is never drawn.

    Parameters
    ----------
    centre, sd : float
        Mean and standard deviation before the cut.
    """

    centre: float
    sd: float

    @cached_property
    def _cut(self) -> float:
        from scipy.special import ndtr  # noqa: PLC0415 -- see `Lognormal`

        return float(ndtr(-self.centre / self.sd))

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the normal quantile of the share among what is left."""
        from scipy.special import ndtri  # noqa: PLC0415 -- see `Lognormal`

        z = ndtri(np.minimum(self._cut + share * (1 - self._cut), BELOW_ONE))
        return np.maximum(self.centre + self.sd * z, 0.0)

    @cached_property
    def mean(self) -> float:
        """The mean of what is left: a little above the centre."""
        density = exp(-0.5 * (self.centre / self.sd) ** 2) / sqrt(2 * np.pi)
        return self.centre + self.sd * density / (1 - self._cut)


@dataclass(frozen=True)
class BoundedPareto:
    """Heavy tails up to a bound: of what exceeds x a share of 2^-shape exceeds 2x, and nothing exceeds a bound.

    Parameters
    ----------
    mean, shape, bound : float
        The least value follows from them.

    Examples
    --------
    >>> pareto = BoundedPareto(2.0, 1.5, 1000.0)
    >>> float(pareto.quantile((np.arange(100_000) + 0.5) / 100_000).mean().round(3))
    2.0
    """

    mean: float
    shape: float
    bound: float

    @cached_property
    def least(self) -> float:
        """The value that makes the mean what it is to be."""
        from scipy.optimize import brentq  # noqa: PLC0415 -- see `Lognormal`

        def excess(log_span: float) -> float:
            return self._mean_share(log_span) - self.mean / self.bound

        return self.bound * exp(-brentq(excess, LEAST_LOG_SPAN, MOST_LOG_SPAN, xtol=1e-13))

    @property
    def exists(self) -> bool:
        """Whether any least value leads to the mean: with a small shape most draws are near the bound."""
        return self._mean_share(MOST_LOG_SPAN) < self.mean / self.bound < self._mean_share(LEAST_LOG_SPAN)

    def _mean_share(self, log_span: float) -> float:
        """Return the mean by the bound, where the bound is so many times the least value, as a logarithm."""
        ratio = _mean_of_decay((self.shape - 1) * log_span) / _mean_of_decay(self.shape * log_span)
        return exp(-log_span) * ratio

    @property
    def most(self) -> float:
        """The bound."""
        return self.bound

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return least (1 - share (1 - (least / bound)^shape))^(-1 / shape)."""
        left = -expm1(-self.shape * log(self.bound / self.least))
        return np.minimum(self.least * (1 - share * left) ** (-1 / self.shape), self.bound)


def _mean_of_decay(span: float) -> float:
    """Return (1 - e^-span) / span."""
    return -expm1(-span) / span if span else 1.0


@dataclass(frozen=True)
class Shifted:
    """What is never below some value: that, and something drawn more."""

    by: float
    more: Distribution

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the quantile of what is more, shifted."""
        return self.by + self.more.quantile(share)

    @cached_property
    def mean(self) -> float:
        """Both together."""
        return self.by + self.more.mean

    @property
    def least(self) -> float:
        """The shift, and the least of what is more."""
        return self.by + self.more.least

    @property
    def most(self) -> float:
        """The shift, and the most of what is more."""
        return self.by + self.more.most


@dataclass(frozen=True)
class Scaled:
    """So many times what is drawn."""

    by: float
    one: Distribution

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the quantile, scaled."""
        return self.by * self.one.quantile(share)

    @property
    def mean(self) -> float:
        """So many times the mean."""
        return self.by * self.one.mean

    @property
    def least(self) -> float:
        """So many times the least."""
        return self.by * self.one.least

    @property
    def most(self) -> float:
        """So many times the most."""
        return self.by * self.one.most


@dataclass(frozen=True)
class Mixture:
    """Now one distribution, now another.

    Parameters
    ----------
    parts : tuple of (probability, Distribution)
        The probabilities add up to one.

    Examples
    --------
    2 ms in one of ten draws, and 5 us otherwise:

    >>> mostly = Mixture(((0.9, Fixed(5e-6)), (0.1, Fixed(2e-3))))
    >>> mostly.quantile(np.array([0.5, 0.899, 0.901])).tolist(), round(mostly.mean, 9)
    ([5e-06, 5e-06, 0.002], 0.0002045)
    """

    parts: tuple[tuple[float, Distribution], ...]

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the quantile of that part which the share falls to, at its place within the part."""
        ends = np.cumsum([probability for probability, _ in self.parts])
        chosen = np.minimum(np.searchsorted(ends, share, side="right"), len(self.parts) - 1)
        values = np.empty(share.shape)
        for place, (probability, part) in enumerate(self.parts):
            mine = chosen == place
            within = (share[mine] - (ends[place] - probability)) / probability
            values[mine] = part.quantile(np.clip(within, LEAST_UNIFORM, BELOW_ONE))
        return values

    @cached_property
    def mean(self) -> float:
        """The mean of the parts, by probability."""
        return sum(probability * part.mean for probability, part in self.parts)

    @property
    def least(self) -> float:
        """The least of any part."""
        return min(part.least for _, part in self.parts)

    @property
    def most(self) -> float:
        """The most of any part."""
        return max(part.most for _, part in self.parts)


@dataclass(frozen=True)
class Sample:
    """Values that were measured, each as likely as it was found: ascending, one at least."""

    values: tuple[float, ...]

    @cached_property
    def _column(self) -> FloatArray:
        return np.array(self.values)

    def quantile(self, share: FloatArray) -> FloatArray:
        """Return the value at that place."""
        return np.asarray(self._column[(share * len(self.values)).astype(np.int64)])

    @cached_property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self._column.mean())

    @property
    def least(self) -> float:
        """The first."""
        return self.values[0]

    @property
    def most(self) -> float:
        """The last."""
        return self.values[-1]
