"""Where one regime ends and the next begins, and how that moves with N: at ``c x N^growth`` bytes.

A library switches by predicted time or by bytes per worker. Either way a switch to or from a ring comes at
sizes that grow about as N does, since the ring's latency does; a switch between trees does not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringnet.analysis.calibration.samples import FloatArray, IntArray, Samples, Setting

#: How sure the expected growth is, and by how much a single boundary strays: natural logarithms.
_GROWTH_SD, _STRAY_SD = 0.3, 0.5
#: Loss of a boundary that strays by one standard deviation: that of one row that is 3 % off.
_STRAIN = 1e-3


@dataclass(frozen=True)
class Boundary:
    """Where a regime ends in one setting: after ``last_bytes``, and the next has begun at ``first_bytes``.

    Zero and infinity where the setting has no size below it or above it.
    """

    setting: Setting
    last_bytes: float
    first_bytes: float

    @property
    def is_seen(self) -> bool:
        """Whether there are sizes on both sides."""
        return self.last_bytes > 0 and bool(np.isfinite(self.first_bytes))

    @property
    def middle_log(self) -> float:
        """Logarithm of the size between the two."""
        return float(np.log(self.last_bytes * self.first_bytes) / 2)


@dataclass(frozen=True)
class BoundaryLaw:
    """Where a regime ends for any N.

    Parameters
    ----------
    log_bytes : float
        Natural logarithm of the size at ``center``.
    growth : float
        Exponent of N.
    center : float
        Mean of log N over what was measured.
    n_measured : int
        Boundaries behind it; with none it says nothing.
    """

    log_bytes: float
    growth: float
    center: float
    n_measured: int

    def at(self, n_workers: int) -> float:
        """Return the natural logarithm of the size at which the regime ends."""
        return self.log_bytes + self.growth * (float(np.log(n_workers)) - self.center)

    def spread(self, n_workers: int) -> float:
        """Return the standard deviation of that logarithm."""
        away = abs(float(np.log(n_workers)) - self.center)
        return float(np.hypot(_STRAY_SD, _GROWTH_SD * away))

    def strains(self, sizes: FloatArray, n_workers: int) -> FloatArray:
        """Return what it costs that the next regime begins at each of some sizes, or after the last.

        Parameters
        ----------
        sizes : ndarray, shape (n,)
            In order.

        Returns
        -------
        ndarray, shape (n + 1,)
            A boundary outside the sizes may be anywhere there: it strains only if it should be among them.
        """
        if not self.n_measured:
            return np.zeros(len(sizes) + 1)
        logs, place = np.log(np.maximum(sizes, 1.0)), self.at(n_workers)
        away = np.zeros(len(sizes) + 1)
        away[:-1] = place - logs
        away[1:] = np.maximum(away[1:], logs - place)
        strained: FloatArray = _STRAIN * (np.maximum(away, 0.0) / _STRAY_SD) ** 2
        return strained


def boundaries_of(samples: Samples, labels: IntArray, regime: int) -> list[Boundary]:
    """Return where a regime ends in every setting."""
    found = []
    for setting, rows in zip(samples.settings, samples.groups, strict=True):
        sizes, ends = samples.message_bytes[rows], int((labels[rows] <= regime).sum())
        last = float(sizes[ends - 1]) if ends else 0.0
        found.append(Boundary(setting, last, float(sizes[ends]) if ends < len(rows) else float("inf")))
    return found


def boundary_law(boundaries: Sequence[Boundary], models: tuple[str, str]) -> BoundaryLaw:
    """Fit the law of one boundary; the growth expected of its models counts as a measurement more.

    Parameters
    ----------
    boundaries : sequence of Boundary
    models : (str, str)
        Below and above it.
    """
    boundaries = [boundary for boundary in boundaries if boundary.is_seen]
    if not boundaries:
        return BoundaryLaw(0.0, 0.0, 0.0, 0)
    logs = np.log([boundary.setting.n_workers for boundary in boundaries])
    places = np.array([boundary.middle_log for boundary in boundaries])
    expected = 1.0 if "ring" in models else 0.0
    away = logs - logs.mean()
    precision = (away @ away) / _STRAY_SD**2 + 1 / _GROWTH_SD**2
    growth = ((away @ (places - places.mean())) / _STRAY_SD**2 + expected / _GROWTH_SD**2) / precision
    return BoundaryLaw(float(places.mean()), float(growth), float(logs.mean()), len(boundaries))


def boundary_laws(samples: Samples, labels: IntArray, models: Sequence[str]) -> list[BoundaryLaw]:
    """Return the law of every boundary, in order."""
    return [
        boundary_law(boundaries_of(samples, labels, regime), (models[regime], models[regime + 1]))
        for regime in range(len(models) - 1)
    ]
