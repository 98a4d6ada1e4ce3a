"""From measurements to a profile: the likeliest links, how sure they are, and cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ringnet.analysis.calibration.machine import (
    BETWEEN,
    LAUNCH,
    N_PARAMETERS,
    UNNAMED,
    Family,
    algorithms_of,
    prior_for,
)
from ringnet.analysis.calibration.prediction import FEWEST_FOR_LINE, common_sizes, log_line, predict
from ringnet.analysis.calibration.profile import Curve, Profile
from ringnet.analysis.calibration.samples import Samples, Setting
from ringnet.array_types import BoolArray, FloatArray

#: Single times scatter by at least so much about their curve, whatever they seem to, and the links miss as much.
_LEAST_SCATTER = 0.02
#: Relative error that the links are first expected to have, and the most that is then taken for it.
_MISFIT, _MOST_MISFIT = 0.06, 0.1
_N_ALTERNATIVES, _STEPS_OF_ALTERNATIVE = 40, 8
_ROUNDS = 3
_MOST_STEPS = 60
#: Relative change of a parameter by which slopes are told: the root of what a float can tell apart.
_STEP = float(np.finfo(float).eps ** 0.5)
#: Other starts of the search: launch and hops between nodes by these factors.
_STARTS = ((1.0, 1.0), (0.4, 2.5))
_FOLDS = 3
#: Settings and sizes of which one can be left out.
_FEWEST_SETTINGS, FEWEST_SIZES = 3, 6
#: A relative error that is as good as none when two predictions are weighed.
_NOTHING = 0.01
#: How clearly the better of the two is preferred; and of how many sizes it takes to believe half of that: a law of the
#: links holds further out than a line, so with few sizes to tell them apart they are believed.
_WEIGHING, _SIZES_FOR_HALF = 4, 4


@dataclass(frozen=True)
class Fit:
    """A profile with what it was fitted to.

    Parameters
    ----------
    samples : Samples
    profile : Profile
        Without verdicts and sources.
    deviations : ndarray of float64, shape (18,)
        Relative standard error of every parameter.
    prior_deviations : ndarray of float64, shape (18,)
        The same before anything was measured: a parameter that is no surer was not told.
    """

    samples: Samples
    profile: Profile
    deviations: FloatArray
    prior_deviations: FloatArray

    def errors(self) -> FloatArray:
        """Return the relative error of every row: what the profile predicts over what was measured, less one."""
        return predicted(self.profile, self.samples) / self.samples.time_s - 1

    def errors_of_links(self) -> FloatArray:
        """Return the same of the links alone, without what is carried over from the measurements."""
        own = self.profile.family.log_time(self.profile.logs, self.samples)
        return np.asarray(np.exp(own) / self.samples.time_s - 1)


def predicted(profile: Profile, samples: Samples) -> FloatArray:
    """Return what a profile predicts for every row."""
    times = np.empty(len(samples))
    for setting in samples.settings:
        rows = samples.of(setting)
        times[rows] = predict(profile, setting, samples.message_bytes[rows]).time_s
    return times


def fit(
    samples: Samples,
    collective: str = "all_reduce",
    *,
    libraries: Sequence[str] = UNNAMED,
    algorithms: Sequence[str] = (),
    near: Profile | None = None,
) -> Fit:
    """Fit a profile.

    Parameters
    ----------
    samples : Samples
        One row at least.
    collective : str
        One of `PASSES`.
    libraries : sequence of str
        Who may have run it; the one that fits better is taken.
    algorithms : sequence of str
        Fewer where some were forced; by default all that a library has.
    near : Profile, optional
        A fit to about the same, to start from: nothing but its library and its rails is tried.
    """
    if near:
        tried = [_Search(samples, near.family).best([near.logs])]
    else:
        tried = []
        for library in libraries:
            names = algorithms_of(library, samples, collective, algorithms)
            for rails in _rails(samples):
                search = _Search(samples, Family(library, names, rails, collective))
                tried.append(search.best([search.start(*factors) for factors in _STARTS]))
    found = min(tried, key=lambda one: one.cost)
    curves = tuple(curve_of(samples, setting) for setting in samples.settings)
    profile = Profile(
        family=found.family,
        parameters=tuple(np.exp(found.logs).tolist()),
        alternatives=() if near else _alternatives(found, _Search(samples, found.family)),
        curves=curves,
    )
    whole = Fit(samples, profile, np.sqrt(np.diag(found.covariance)), found.prior_deviations)
    return whole if near else replace(whole, profile=replace(profile, line_weight=_line_weight(whole)))


def _rails(samples: Samples) -> list[float]:
    """Return how many rails a node may have: one for each worker, or as many as some measured number of workers."""
    crossing = [setting for setting in samples.settings if setting.n_nodes > 1]
    fills = sorted({setting.per_node for setting in crossing})
    return [np.inf, *fills[:-1]]


def curve_of(samples: Samples, setting: Setting) -> Curve:
    """Return the times of one setting: the median of a size, and never less than of a smaller one."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 -- those who run on a profile do not fit one

    rows = samples.where(samples.of(setting))
    sizes = np.unique(rows.message_bytes)
    logs = np.log(rows.time_s)
    times = isotonic_regression([float(np.median(logs[rows.message_bytes == size])) for size in sizes]).x
    off = np.abs(np.interp(rows.message_bytes, sizes, times) - logs)
    scatter = max(float(np.quantile(off, 0.9)) / 1.645, _LEAST_SCATTER)
    return Curve(setting, tuple(sizes.tolist()), tuple(np.exp(times).tolist()), scatter)


@dataclass(frozen=True)
class _Found:
    family: Family
    logs: FloatArray
    covariance: FloatArray
    prior_deviations: FloatArray
    misfit: float
    cost: float


class _Search:
    """Look for the likeliest logarithms of the parameters: relative errors under a robust loss, and the prior."""

    def __init__(self, samples: Samples, family: Family) -> None:
        self.samples, self.family = samples, family
        self.prior = prior_for(family, samples)
        self.measured, self.counts = np.log(samples.time_s), family.counts(samples)

    def start(self, launch: float, between: float) -> FloatArray:
        """Return the center of the prior, the launch and the hops between nodes times some factors."""
        logs = self.prior.center.copy()
        logs[LAUNCH] = min(np.log(self.samples.time_s.min() / 2), logs[LAUNCH] + 1) + np.log(launch)
        logs[BETWEEN] += np.log(between)
        return logs

    def best(self, starts: Sequence[FloatArray]) -> _Found:
        """Return the best of what is found from some starts; the misfit is estimated on the way."""
        tried = []
        for logs in starts:
            misfit = _MISFIT
            for _ in range(_ROUNDS):
                logs, jacobian, cost = self._solve(logs, misfit)  # noqa: PLW2901 -- nearer each time
                off = np.abs(self.family.log_time(logs, self.counts) - self.measured)
                # Costs are compared as likelihoods: a smaller misfit has its price in every row.
                cost += len(off) * np.log(misfit)
                misfit = float(np.clip(1.48 * np.median(off), _LEAST_SCATTER, _MOST_MISFIT))
            tried.append((cost, logs, jacobian, misfit))
        cost, solved, jacobian, misfit = min(tried, key=lambda one: one[0])
        covariance = np.asarray(np.linalg.inv(jacobian.T @ jacobian), dtype=np.float64)
        return _Found(self.family, solved, covariance, self.prior.deviation, misfit, cost)

    def shifted(self, found: _Found, shifts: FloatArray) -> FloatArray:
        """Return what fits best where each measurement, and then each prior, is off by so many of its deviations."""
        from scipy.optimize import least_squares  # noqa: PLC0415 -- those who run on a profile do not fit one

        def errors(logs: FloatArray) -> FloatArray:
            return self._errors(logs, found.misfit) + shifts

        slopes = partial(self._slopes, misfit=found.misfit)
        return np.asarray(least_squares(errors, found.logs, slopes, max_nfev=_STEPS_OF_ALTERNATIVE).x)

    def _errors(self, logs: FloatArray, misfit: float) -> FloatArray:
        """Return what is squared: shape (n + 18,), and of several machines, columns of ``logs``, (k, n + 18)."""
        off = (self.family.log_time(logs, self.counts) - self.measured) / misfit
        from_prior = (logs.T - self.prior.center) / self.prior.deviation
        return np.concatenate([_robust(off), from_prior], axis=-1)

    def _slopes(self, logs: FloatArray, misfit: float) -> FloatArray:
        """Return how the errors go with each parameter: all machines a little beside this one at once."""
        beside = logs[:, None] + np.diag(_STEP * np.where(logs < 0, -1, 1) * np.maximum(1.0, np.abs(logs)))
        rise = self._errors(beside, misfit) - self._errors(logs, misfit)
        slopes: FloatArray = (rise / (np.diag(beside) - logs)[:, None]).T
        return slopes

    def _solve(self, start: FloatArray, misfit: float) -> tuple[FloatArray, FloatArray, float]:
        from scipy.optimize import least_squares  # noqa: PLC0415 -- those who run on a profile do not fit one

        solved = least_squares(self._errors, start, self._slopes, max_nfev=_MOST_STEPS, args=(misfit,))
        return np.asarray(solved.x), np.asarray(solved.jac), float(solved.cost)


def _robust(off: FloatArray) -> FloatArray:
    """Return errors of which the squares grow linearly where they are large: an outlier pulls, not by its square."""
    soft: FloatArray = np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off**2) - 1))
    return soft


def _alternatives(found: _Found, search: _Search) -> tuple[tuple[float, ...], ...]:
    """Return parameters that fit about as well, relative to the best, in logarithms: the same for the same fit.

    Each is the best fit where measurements and priors are shifted by chance, as far as they are unsure: so latencies
    that only a sum of is measured go up and down against each other, however far priors allow.
    """
    draw, rows = np.random.default_rng(0), []
    for _ in range(_N_ALTERNATIVES):
        shifts = draw.standard_normal(len(search.measured) + N_PARAMETERS)
        rows.append(tuple(np.round(search.shifted(found, shifts) - found.logs, 4).tolist()))
    return tuple(rows)


def _line_weight(whole: Fit) -> float:
    """Return how much a line in log2 N counts beside the links: by how well each foretells the largest N."""
    counts = whole.samples.counts
    links, lines, n_sizes = [], [], 0
    for n in counts[-2:]:
        less = whole.samples.where(whole.samples.n_workers < n)
        if len(less.counts) < FEWEST_FOR_LINE - 1 or n == counts[0]:
            continue
        rest = fit(less, whole.profile.collective, near=whole.profile).profile
        for curve in whole.profile.curves:
            if curve.setting.n_workers == n:
                sizes = np.log(np.maximum(curve.message_bytes, 1.0))
                low, high = common_sizes(rest.curves)
                sizes = sizes[(sizes >= low) & (sizes <= high)]
                if not len(sizes):
                    continue
                n_sizes += len(sizes)
                truth = curve.log_time(sizes)
                guess = np.log(predict(rest, curve.setting, np.exp(sizes)).time_s)
                links.append(float(np.median(np.abs(guess - truth))))
                lines.append(float(np.median(np.abs(log_line(rest.curves, curve.setting, sizes) - truth))))
    if not links:
        return 0.0
    one, other = ((np.mean(each) + _NOTHING) ** _WEIGHING for each in (links, lines))
    return round(float(one / (one + other)) * n_sizes / (n_sizes + _SIZES_FOR_HALF), 3)


@dataclass(frozen=True)
class HeldOut:
    """Measurements that a fit to all others was asked for.

    Parameters
    ----------
    what : str
        ``N=8``, or ``sizes 1 of 3``.
    n_workers : int or None
        For a held-out N.
    is_edge : bool
        Whether it was the smallest or largest N.
    errors : ndarray of float64
        Natural logarithm of predicted over measured.
    """

    what: str
    n_workers: int | None
    is_edge: bool
    errors: FloatArray

    @property
    def median(self) -> float:
        """Median relative error, without its sign."""
        return float(np.median(np.abs(np.expm1(self.errors))))

    @property
    def worst(self) -> float:
        """Largest relative error, without its sign."""
        return float(np.abs(np.expm1(self.errors)).max())


def hold_out_workers(whole: Fit) -> list[HeldOut]:
    """Hold out each N in turn; empty with fewer than three."""
    counts = whole.samples.counts
    if len(counts) < _FEWEST_SETTINGS:
        return []
    return [
        HeldOut(f"N={n}", n, n in (counts[0], counts[-1]), _left_out(whole, whole.samples.n_workers == n))
        for n in counts
    ]


def hold_out_sizes(whole: Fit) -> list[HeldOut]:
    """Hold out each third size in turn; empty with fewer than six."""
    sizes = np.unique(whole.samples.message_bytes)
    if len(sizes) < FEWEST_SIZES:
        return []
    found = []
    for fold in range(_FOLDS):
        mask = np.isin(whole.samples.message_bytes, sizes[fold::_FOLDS])
        found.append(HeldOut(f"sizes {fold + 1} of {_FOLDS}", None, False, _left_out(whole, mask)))
    return found


def _left_out(whole: Fit, mask: BoolArray) -> FloatArray:
    other = fit(whole.samples.where(~mask), whole.profile.collective, near=whole.profile)
    left = whole.samples.where(mask)
    errors: FloatArray = np.log(predicted(other.profile, left) / left.time_s)
    return errors
