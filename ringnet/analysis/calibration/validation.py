"""Cross-validation: leave out each N, then every third size, fit the rest, and see what was left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringnet.analysis.calibration.fit import Fit, fit, predicted
from ringnet.analysis.calibration.samples import BoolArray, FloatArray, Samples

_FOLDS = 3
#: Settings and sizes of which one can be left out.
_FEWEST_SETTINGS, _FEWEST_SIZES = 3, 6


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
