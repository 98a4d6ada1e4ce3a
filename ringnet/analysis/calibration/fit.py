"""From measurements to a profile: regimes by an information criterion, standard errors, and cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringnet.analysis.calibration.models import (
    BETWEEN,
    BETWEEN_BYTES,
    HOP,
    INSIDE_BYTES,
    LAUNCH,
    MODELS,
    PASSES,
    BoolArray,
    FloatArray,
    Samples,
    design,
)
from ringnet.analysis.calibration.prediction import predict
from ringnet.analysis.calibration.profile import Profile, Regime, boundaries_of
from ringnet.analysis.calibration.regimes import SOFT, Cut, Searcher, criterion, independent, usable

#: The most regimes: NCCL has LL, LL128 and Simple, and switches from tree to ring.
MOST_REGIMES = 4
#: Sizes of one N that a regime needs: latency, bandwidth and its end meet three exactly, and one more tells of them.
_SIZES_PER_REGIME = 4
#: Relative error for each doubling of N where no held-out N tells it.
_UNKNOWN_DRIFT = 0.25
_LEAST_SCATTER = 0.01
#: Rise of the information criterion after which more regimes are not tried.
_CLEARLY_WORSE = 10.0
_NAMES = {
    LAUNCH: "launch",
    HOP: "latency",
    BETWEEN: "latency_between_nodes",
    INSIDE_BYTES: "bandwidth",
    BETWEEN_BYTES: "bandwidth_between_nodes",
}
#: A share of the largest scaled parameter below which one is zero: the solver stays inside its bounds.
_NOTHING = 1e-6
_FOLDS = 3
#: Settings and sizes of which one can be left out.
_FEWEST_SETTINGS, _FEWEST_SIZES = 3, 6


@dataclass(frozen=True)
class Fit:
    """A profile with what it was fitted to.

    Parameters
    ----------
    samples : Samples
    profile : Profile
        Without verdicts, sources and drift.
    cut : Cut
    criteria : dict of int to float
        The information criterion of each number of regimes that was tried.
    models : tuple of str
        What a regime was allowed to be.
    """

    samples: Samples
    profile: Profile
    cut: Cut
    criteria: dict[int, float]
    models: tuple[str, ...]

    def predicted_s(self) -> FloatArray:
        """Return the fitted time of every row."""
        return predicted(self.profile, self.samples)

    def errors(self) -> FloatArray:
        """Return the relative error of every row, fitted over measured less one."""
        return self.predicted_s() / self.samples.time_s - 1


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
    models: Sequence[str] = tuple(MODELS),
    n_regimes: int | None = None,
    quick: bool = False,
) -> Fit:
    """Fit a profile.

    Parameters
    ----------
    samples : Samples
        One row at least.
    collective : str
        One of `PASSES`.
    models : sequence of str
        What a regime may be: fewer where an algorithm was forced.
    n_regimes : int, optional
        As many and no others; by default the information criterion chooses 1 to 4.
    quick : bool
        Search less.
    """
    # Models differ in how time grows with N: one N cannot tell them apart.
    allowed = tuple(models[:1]) if samples.is_one_setting else tuple(models)
    searcher = Searcher(samples, allowed, PASSES[collective])
    cuts = _cuts(searcher, [n_regimes] if n_regimes else range(1, most_regimes(samples) + 1), quick)
    criteria = {count: criterion(samples, cut) for count, cut in cuts.items()}
    best = cuts[min(criteria, key=lambda count: criteria[count])]
    return Fit(samples, _profile(samples, best, collective), best, criteria, allowed)


def _cuts(searcher: Searcher, counts: Iterable[int], quick: bool) -> dict[int, Cut]:
    """Return the best cut into each number of regimes, until one more is clearly worse."""
    cuts: dict[int, Cut] = {}
    last = np.inf
    for count in counts:
        cut = searcher.best(count, quick)
        if cut is not None:
            cuts[count] = cut
            reached = criterion(searcher.samples, cut)
            if reached > last + _CLEARLY_WORSE:
                break
            last = reached
    return cuts or {1: _only(searcher)}


def most_regimes(samples: Samples) -> int:
    """Return how many regimes the sizes of a typical N allow."""
    counts = [len(set(samples.message_bytes[rows].tolist())) for rows in samples.groups]
    return int(np.clip(np.median(counts) // _SIZES_PER_REGIME, 1, MOST_REGIMES))


def _only(searcher: Searcher) -> Cut:
    """Return the fit of one regime to too few rows for any criterion."""
    samples = searcher.samples
    model, matrix = next(iter(searcher.designs.items()))
    columns = usable(matrix, samples)
    parameters, _ = polish(matrix, samples.time_s, columns)
    return Cut(np.zeros(len(samples), dtype=np.int64), (model,), parameters[None, :], 0.0, len(columns))


def _profile(samples: Samples, cut: Cut, collective: str) -> Profile:
    regimes = [_regime(samples, cut, index, PASSES[collective]) for index in range(cut.n_regimes)]
    ended = [
        replace(each, ends=tuple(boundaries_of(samples, cut.labels, k)))
        for k, each in enumerate(regimes[:-1])
    ]
    return Profile(
        collective=collective,
        regimes=(*ended, regimes[-1]),
        settings=tuple(samples.settings),
        smallest_bytes=int(samples.message_bytes.min()),
        largest_bytes=int(samples.message_bytes.max()),
        is_split=not samples.is_one_setting,
        drift=_UNKNOWN_DRIFT,
        has_drift=False,
    )


def _regime(samples: Samples, cut: Cut, index: int, passes: float) -> Regime:
    rows = samples.where(cut.labels == index)
    matrix = design(cut.models[index], rows, passes)
    # Of columns that say the same, non-negative least squares leaves some at zero: they stay there.
    active = [column for column in usable(matrix, rows) if cut.parameters[index][column] > 0]
    parameters, errors = polish(matrix, rows.time_s, active, cut.parameters[index])
    relative = matrix @ parameters / rows.time_s - 1
    crosses = bool((rows.n_nodes > 1).any())
    return Regime(
        model=cut.models[index],
        launch_s=float(parameters[LAUNCH]),
        latency_s=float(parameters[HOP]),
        between_latency_s=float(parameters[HOP] + parameters[BETWEEN]) if crosses else None,
        bandwidth_Bps=_bandwidth(matrix, parameters, INSIDE_BYTES),
        between_bandwidth_Bps=_bandwidth(matrix, parameters, BETWEEN_BYTES),
        scatter=max(float(np.quantile(np.abs(relative), 0.9)) / 1.645, _LEAST_SCATTER),
        n_points=len(rows),
        errors=errors,
    )


def _bandwidth(matrix: FloatArray, parameters: FloatArray, column: int) -> float | None:
    if not matrix[:, column].any():
        return None
    return float(1 / parameters[column]) if parameters[column] > 0 else float("inf")


def polish(
    matrix: FloatArray, time_s: FloatArray, columns: Sequence[int], start: FloatArray | None = None
) -> tuple[FloatArray, dict[str, float]]:
    """Fit parameters to relative errors under a robust loss; return them and their relative errors.

    Parameters
    ----------
    matrix : ndarray, shape (n, 5)
    time_s : ndarray, shape (n,)
    columns : sequence of int
        Which are fitted.
    start : ndarray, shape (5,), optional

    Notes
    -----
    Standard errors are those of the Jacobian at the solution, for the parameters that are not at zero and
    that the rows tell apart; the others have none.
    """
    from scipy.optimize import least_squares  # noqa: PLC0415 -- those who run on a profile do not fit one

    relative = matrix[:, columns] / time_s[:, None]
    scale = 1 / np.linalg.norm(relative, axis=0)
    first = (
        np.full(len(columns), 0.5 / len(columns))
        if start is None
        else np.asarray(start)[list(columns)] / scale
    )
    scaled: FloatArray = relative * scale

    def errors(x: FloatArray) -> FloatArray:
        return np.asarray(scaled @ x - 1)

    def jacobian(x: FloatArray) -> FloatArray:
        return scaled

    solved = least_squares(
        errors,
        np.maximum(first, 1e-9),
        jacobian,
        bounds=(0, np.inf),
        loss="soft_l1",
        f_scale=SOFT,
    )
    found = np.where(solved.x > _NOTHING * solved.x.max(), solved.x, 0.0)
    parameters = np.zeros(matrix.shape[1])
    parameters[list(columns)] = found * scale
    return parameters, _errors(scaled, found, [_NAMES[column] for column in columns])


def _errors(scaled: FloatArray, found: FloatArray, names: Sequence[str]) -> dict[str, float]:
    active = np.flatnonzero(found)
    told = [int(active[column]) for column in independent(scaled[:, active])]
    n_left = len(scaled) - len(told)
    if n_left < 1 or len(told) < len(active):
        return {}
    residuals = scaled[:, told] @ found[told] - 1
    # Huber's sandwich would shrink outliers' say further; plain is honest about them.
    covariance = np.linalg.inv(scaled[:, told].T @ scaled[:, told]) * float(residuals @ residuals) / n_left
    return {names[k]: float(np.sqrt(covariance[i, i]) / found[k]) for i, k in enumerate(told)}


@dataclass(frozen=True)
class HeldOut:
    """Measurements that a fit to all others was asked for.

    Parameters
    ----------
    what : str
        ``N=8``, or ``sizes 1 of 3``.
    n_workers : int or None
        For a held-out N.
    doublings : float
        From the nearest N that was left, in doublings.
    is_edge : bool
        Whether it was the smallest or largest N.
    errors : ndarray of float64
        Natural logarithm of predicted over measured.
    """

    what: str
    n_workers: int | None
    doublings: float
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
    samples = whole.samples
    counts = sorted(set(samples.n_workers.tolist()))
    if len(counts) < _FEWEST_SETTINGS:
        return []
    return [_workers(whole, n, counts) for n in counts]


def _workers(whole: Fit, n: int, counts: list[int]) -> HeldOut:
    errors = _left_out(whole, whole.samples.n_workers == n)
    doublings = min(abs(np.log2(n / other)) for other in counts if other != n)
    return HeldOut(f"N={n}", n, float(doublings), n in (counts[0], counts[-1]), errors)


def hold_out_sizes(whole: Fit) -> list[HeldOut]:
    """Hold out each third size in turn; empty with fewer than six."""
    sizes = np.unique(whole.samples.message_bytes)
    if len(sizes) < _FEWEST_SIZES:
        return []
    found = []
    for fold in range(_FOLDS):
        mask = np.isin(whole.samples.message_bytes, sizes[fold::_FOLDS])
        found.append(HeldOut(f"sizes {fold + 1} of {_FOLDS}", None, 0.0, False, _left_out(whole, mask)))
    return found


def _left_out(whole: Fit, mask: BoolArray) -> FloatArray:
    kept: Samples = whole.samples.where(~mask)
    other = fit(
        kept, whole.profile.collective, models=whole.models, n_regimes=whole.cut.n_regimes, quick=True
    )
    left = whole.samples.where(mask)
    errors: FloatArray = np.log(predicted(other.profile, left) / left.time_s)
    return errors


def drift_of(held_out: list[HeldOut]) -> float | None:
    """Return the relative standard error for each doubling of N, from held-out N; None if there are none.

    The smallest N is left aside: what lies below it is one node, which tells nothing of many.
    """
    told = held_out[1:]
    if not told:
        return None
    scaled = np.concatenate([np.abs(each.errors) / max(each.doublings, 0.5) for each in told])
    return float(np.quantile(scaled, 0.8) / 1.28)
