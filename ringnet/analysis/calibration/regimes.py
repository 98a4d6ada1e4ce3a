"""Cut measurements into size regimes, each with a model: protocols and algorithms switch with size.

Which regime a row is in rises with size, and for each N where one ends is free: a switch from a tree to a
ring comes later on more workers. Given the regimes, parameters are a non-negative least-squares problem each;
given parameters, the best regimes are found exactly by dynamic programming. The two alternate from many
starts, as k-means does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ringnet.analysis.calibration.models import (
    BETWEEN,
    BETWEEN_BYTES,
    HOP,
    INSIDE_BYTES,
    LAUNCH,
    N_PARAMETERS,
    BoolArray,
    FloatArray,
    IntArray,
    Samples,
    design,
)
from ringnet.analysis.calibration.profile import boundary_laws

#: Relative error from which the loss grows linearly: an outlier pulls, but not by its square.
SOFT = 0.03
#: The error of clocks and of printed digits: no fit is better than that.
_FLOOR = 2e-3
_FEWEST = 3
_MOST_MARKS = 40
#: Share of a column that must be its own.
_SAME = 1e-6
_FIRST_ROUNDS, _ROUNDS = 2, 15
#: Starts that are followed to the end.
_KEPT = 8
_WEIGHINGS = 4
#: Another model than the preferred one must be better by this factor.
_CLEARLY = 0.98
_QUANTILES, _FEW_QUANTILES = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9), (0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True)
class Cut:
    """Rows in regimes, and what was fitted to each.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        Regime of each row.
    models : tuple of str
    parameters : ndarray of float64, shape (n_regimes, 5)
    cost : float
        Sum of the robust loss over rows.
    n_free : int
        Parameters that were fitted.
    mean_error : float
        Mean of the relative errors of the rows, without their sign.
    """

    labels: IntArray
    models: tuple[str, ...]
    parameters: FloatArray
    cost: float
    n_free: int
    mean_error: float = 0.0

    @property
    def n_regimes(self) -> int:
        """Number of regimes."""
        return len(self.models)


def loss(relative: FloatArray) -> FloatArray:
    """Return the robust loss of relative errors: squares where small, linear where large."""
    return 2 * SOFT**2 * (np.sqrt(1 + (relative / SOFT) ** 2) - 1)


def usable(matrix: FloatArray, samples: Samples) -> list[int]:
    """Return which columns of a design these rows can say something about.

    Rows of one N cannot tell a launch from hops, nor hops from hops: all is put down to hops. Rows of one
    size cannot tell bytes from the rest.
    """
    chosen = [HOP, LAUNCH, BETWEEN, INSIDE_BYTES, BETWEEN_BYTES]
    if samples.is_one_setting:
        chosen = [HOP, INSIDE_BYTES, BETWEEN_BYTES]
    if samples.is_one_size:
        chosen = [column for column in chosen if column not in (INSIDE_BYTES, BETWEEN_BYTES)]
    return [column for column in chosen if matrix[:, column].any()]


def independent(matrix: FloatArray) -> list[int]:
    """Return which columns say something that those before them do not, by Gram and Schmidt's procedure.

    >>> independent(np.array([[1.0, 6, 48], [1.0, 6, 96]]))
    [0, 2]
    """
    kept: list[int] = []
    basis: list[FloatArray] = []
    for column, rest in enumerate(matrix.T):
        norm = float(np.sqrt(rest @ rest))
        for direction in basis:
            rest = rest - (rest @ direction) * direction  # noqa: PLW2901 -- what is left of the column
        left = float(np.sqrt(rest @ rest))
        if norm > 0 and left > _SAME * norm:
            kept.append(column)
            basis.append(rest / left)
    return kept


def fit_rows(
    matrix: FloatArray, time_s: FloatArray, columns: Sequence[int], rounds: int = _WEIGHINGS
) -> FloatArray:
    """Fit non-negative parameters to relative errors, reweighted so that outliers count less.

    Parameters
    ----------
    matrix : ndarray, shape (n, 5)
    time_s : ndarray, shape (n,)
    columns : sequence of int
        Which are fitted; the others are zero.
    rounds : int
        How often the rows are weighed anew; one is plain least squares.
    """
    from scipy.optimize import nnls  # noqa: PLC0415 -- those who run on a profile do not fit one

    relative = matrix[:, columns] / time_s[:, None]
    scale = np.linalg.norm(relative, axis=0)
    weights, found = np.ones(len(time_s)), np.zeros(len(columns))
    for _ in range(rounds):
        found = nnls(relative / scale * weights[:, None], weights)[0] / scale
        weights = (1 + ((relative @ found - 1) / SOFT) ** 2) ** -0.25
    parameters = np.zeros(N_PARAMETERS)
    parameters[list(columns)] = found
    return parameters


def criterion(samples: Samples, found: Cut) -> float:
    """Return the Bayesian information criterion: each boundary of each N counts as a parameter.

    Errors of real logs have long tails, and the fit is a robust one: the likelihood is that of Laplace's distribution,
    under which two sizes that are far off do not hide how well the others are met.
    """
    n = len(samples)
    n_parameters = found.n_free + (found.n_regimes - 1) * len(samples.settings)
    return float(2 * n * np.log(found.mean_error + _FLOOR) + n_parameters * np.log(n))


class Searcher:
    """Alternate between parameters and regimes.

    Parameters
    ----------
    samples : Samples
    models : sequence of str
        What a regime may be.
    passes : float
        How often the data goes round.
    """

    def __init__(self, samples: Samples, models: Sequence[str], passes: float = 2.0) -> None:
        self.samples = samples
        self.designs = {model: design(model, samples, passes) for model in models}
        self.groups = samples.groups
        matrix = next(iter(self.designs.values()))
        self.segment_costs = [_segment_costs(matrix[rows], samples.where(rows)) for rows in self.groups]

    def best(self, n_regimes: int, quick: bool = False) -> Cut | None:
        """Find the best regimes, or None where there are too few rows for so many.

        Parameters
        ----------
        n_regimes : int
        quick : bool
            Start from fewer places: for cross-validation, which fits many times.
        """
        tried = [self._settle(labels, n_regimes, _FIRST_ROUNDS) for labels in _starts(self, n_regimes, quick)]
        best = sorted((each for each in tried if each is not None), key=lambda each: each.cost)[:_KEPT]
        found = [self._settle(each.labels, n_regimes, _ROUNDS) for each in best]
        return min((each for each in found if each is not None), key=lambda each: each.cost, default=None)

    def _settle(self, labels: IntArray, n_regimes: int, rounds: int) -> Cut | None:
        """Alternate until nothing changes or so many rounds are over; None if a regime runs out of rows."""
        found = self._fit(labels, n_regimes)
        for _ in range(rounds):
            if found is None:
                return None
            before, labels = labels, self._assign(found)
            if np.array_equal(before, labels):
                break
            found = self._fit(labels, n_regimes)
        return found

    def _fit(self, labels: IntArray, n_regimes: int) -> Cut | None:
        """Fit every regime by itself, with the model that suits it."""
        fits = [self._fit_one(labels == regime) for regime in range(n_regimes)]
        if any(fit is None for fit in fits):
            return None
        models, parameters, costs, counts, errors = zip(
            *(fit for fit in fits if fit is not None), strict=True
        )
        return Cut(
            labels,
            models,
            np.array(parameters),
            float(sum(costs)) + self._strain(labels, models),
            sum(counts),
            float(sum(errors)) / len(labels),
        )

    def _fit_one(self, rows: BoolArray) -> tuple[str, FloatArray, float, int, float] | None:
        time_s, best = self.samples.time_s[rows], None
        taken = self.samples.where(rows)
        for model, matrix in self.designs.items():
            columns = usable(matrix[rows], taken)
            n_free = len(independent(matrix[rows][:, columns]))
            if len(time_s) < max(_FEWEST, n_free):
                return best
            parameters = fit_rows(matrix[rows], time_s, columns)
            relative = matrix[rows] @ parameters / time_s - 1
            cost = float(loss(relative).sum())
            if best is None or cost + len(time_s) * _FLOOR**2 < _CLEARLY * (
                best[2] + len(time_s) * _FLOOR**2
            ):
                best = (model, parameters, cost, n_free, float(np.abs(relative).sum()))
        return best

    def _assign(self, found: Cut) -> IntArray:
        """Give every row the regime that fits it best, rising with size within each N."""
        costs = np.array(
            [
                loss(self.designs[model] @ parameters / self.samples.time_s - 1)
                for model, parameters in zip(found.models, found.parameters, strict=True)
            ]
        )
        laws = boundary_laws(self.samples, found.labels, found.models)
        labels = np.empty(len(self.samples), dtype=np.int64)
        for rows in self.groups:
            sizes, n = self.samples.message_bytes[rows], int(self.samples.n_workers[rows[0]])
            strains = np.array([law.strains(sizes, n) for law in laws]).reshape(len(laws), len(sizes) + 1)
            # Rows of one size, from several logs, stay together.
            strains[:, 1:-1][:, sizes[1:] == sizes[:-1]] = np.inf
            labels[rows] = rising(costs[:, rows], strains)
        return labels

    def _strain(self, labels: IntArray, models: Sequence[str]) -> float:
        """Return by how much boundaries stray from the laws they should follow, in units of the loss."""
        if len(self.groups) == 1:
            return 0.0
        laws = boundary_laws(self.samples, labels, models)
        return sum(
            float(
                law.strains(self.samples.message_bytes[rows], int(self.samples.n_workers[rows[0]]))[
                    int((labels[rows] <= regime).sum())
                ]
            )
            for regime, law in enumerate(laws)
            for rows in self.groups
        )


def rising(costs: FloatArray, strains: FloatArray) -> IntArray:
    """Return the labels, rising along the rows, of least total cost.

    Parameters
    ----------
    costs : ndarray, shape (n_labels, n_rows)
    strains : ndarray, shape (n_labels - 1, n_rows + 1)
        What it costs that label k + 1 starts at a row.

    Examples
    --------
    >>> rising(np.array([[0.0, 0, 9, 0], [9, 9, 0, 1]]), np.zeros((1, 5))).tolist()
    [0, 0, 1, 1]
    """
    n_labels, n = costs.shape
    # total[k, j]: the first j rows cost that much under label k.
    total = np.concatenate([np.zeros((n_labels, 1)), np.cumsum(costs, axis=1)], axis=1)
    best, came_from = total[0], []
    for label in range(1, n_labels):
        gained = best + strains[label - 1] - total[label]
        least = np.minimum.accumulate(gained)
        # The earliest place at which the least so far was reached.
        is_new = np.concatenate([[True], gained[1:] < least[:-1]])
        came_from.append(np.maximum.accumulate(np.where(is_new, np.arange(n + 1), 0)))
        best = least + total[label]
    labels, end = np.zeros(n, dtype=np.int64), n
    for label in range(n_labels - 1, 0, -1):
        start = int(came_from[label - 1][end])
        labels[start:end] = label
        end = start
    return labels


def _starts(search: Searcher, n_regimes: int, quick: bool) -> Iterator[IntArray]:
    """Yield labels to start from: each N cut by itself, and common thresholds that grow with N or do not."""
    samples = search.samples
    if n_regimes == 1:
        yield np.zeros(len(samples), dtype=np.int64)
        return
    yield _each_by_itself(search, n_regimes)
    growths = (0.0, 1.0) if len(search.groups) > 1 else (0.0,)
    for growth in growths:
        place = np.log(samples.message_bytes) - growth * np.log(samples.n_workers)
        thresholds = np.quantile(place, _FEW_QUANTILES if quick else _QUANTILES)
        for chosen in combinations(thresholds, n_regimes - 1):
            yield np.searchsorted(np.array(chosen), place).astype(np.int64)


def _each_by_itself(search: Searcher, n_regimes: int) -> IntArray:
    labels = np.zeros(len(search.samples), dtype=np.int64)
    for rows, costs in zip(search.groups, search.segment_costs, strict=True):
        labels[rows] = _segments(len(rows), costs, n_regimes)
    return labels


def _segments(n: int, costs: dict[tuple[int, int], float], n_segments: int) -> IntArray:
    """Cut the rows of one N, in order of size, into segments of three rows or more: exactly."""
    n_segments = max(min(n_segments, n // _FEWEST), 1)
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for _ in range(n_segments):
        best = {
            stop: min(
                (best[start][0] + costs[start, stop], (*best[start][1], start))
                for start in best
                if (start, stop) in costs
            )
            for stop in range(n + 1)
            if any((start, stop) in costs for start in best)
        }
    starts = best[n][1] if n in best else (0,)
    return (np.searchsorted(np.array(starts), np.arange(n), side="right") - 1).astype(np.int64)


def _segment_costs(matrix: FloatArray, samples: Samples) -> dict[tuple[int, int], float]:
    """Return what every run of three or more rows of one N costs by itself, between some of its rows."""
    time_s, columns = samples.time_s, usable(matrix, samples)
    # A long log is cut at some rows only: the alternation moves the cuts to where they belong.
    marks = np.unique(np.linspace(0, len(samples), min(len(samples), _MOST_MARKS) + 1).astype(int)).tolist()
    return {
        (start, stop): _cost(matrix[start:stop], time_s[start:stop], columns)
        for start in marks
        for stop in marks
        if stop - start >= _FEWEST
    }


def _cost(matrix: FloatArray, time_s: FloatArray, columns: Sequence[int]) -> float:
    return float(loss(matrix @ fit_rows(matrix, time_s, columns, 1) / time_s - 1).sum())
