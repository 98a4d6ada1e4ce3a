"""What a calibration comes to: parameters of every regime, where it ends, how far to trust it.

Where one regime ends and the next begins moves with N, at ``c x N^growth`` bytes. A library switches by predicted
time or by bytes per worker. Either way a switch to or from a ring comes at sizes that grow about as N does, since
the ring's latency does; a switch between trees does not move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ringnet.analysis.calibration.models import (
    BETWEEN,
    BETWEEN_BYTES,
    HOP,
    INSIDE_BYTES,
    LAUNCH,
    N_PARAMETERS,
    FloatArray,
    IntArray,
    Samples,
    Setting,
)

#: How sure the expected growth is, and by how much a single boundary strays: natural logarithms.
_GROWTH_SD, _STRAY_SD = 0.3, 0.5
#: Loss of a boundary that strays by one standard deviation: that of one row that is 3 % off.
_STRAIN = 1e-3
#: What verdicts begin with that say nothing to beware of.
_NO_CAUTION = ("well determined", "follows a ring")


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


@dataclass(frozen=True)
class Regime:
    """Sizes in which one protocol or algorithm is at work.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    launch_s, latency_s : float
        Once per collective; per hop inside a node, or per hop where nobody says which are inside.
    between_latency_s : float or None
        Per hop between nodes; None where no log has such hops.
    bandwidth_Bps, between_bandwidth_Bps : float or None
        Of a link inside a node, and between nodes; infinite where bytes cost nothing that could be seen, None
        where nothing was measured.
    scatter : float
        Relative standard deviation of what was measured about the fit.
    n_points : int
    errors : dict of str to float
        Relative standard error of each parameter by its name; one that is missing was not determined.
    ends : tuple of Boundary
        Where it ends, in each setting; empty for the last.
    """

    model: str
    launch_s: float
    latency_s: float
    between_latency_s: float | None
    bandwidth_Bps: float | None
    between_bandwidth_Bps: float | None
    scatter: float
    n_points: int
    errors: dict[str, float] = field(default_factory=dict)
    ends: tuple[Boundary, ...] = ()

    @property
    def parameters(self) -> FloatArray:
        """Return the parameters as columns of a design; what was not measured is taken from its neighbour."""
        found = np.zeros(N_PARAMETERS)
        between = self.latency_s if self.between_latency_s is None else self.between_latency_s
        found[LAUNCH], found[HOP], found[BETWEEN] = (
            self.launch_s,
            self.latency_s,
            max(between - self.latency_s, 0.0),
        )
        inside, outside = self.bandwidth_Bps, self.between_bandwidth_Bps
        found[INSIDE_BYTES] = 1 / (inside or outside or math.inf)
        found[BETWEEN_BYTES] = 1 / (outside or inside or math.inf)
        return found

    def up_to_bytes(self) -> float:
        """Return up to how many bytes of a ring's transfer it reaches: geometric mean over settings."""
        seen = [end.middle_log - math.log(end.setting.n_workers) for end in self.ends if end.is_seen]
        return math.exp(sum(seen) / len(seen)) if seen else math.inf


@dataclass(frozen=True)
class SourceFile:
    """A file that a profile was made from."""

    file: str
    sha256: str
    n_points: int


@dataclass(frozen=True)
class Profile:
    """A calibrated machine.

    Parameters
    ----------
    collective : str
    regimes : tuple of Regime
        By rising size.
    settings : tuple of Setting
        N and nodes that were measured.
    smallest_bytes, largest_bytes : int
        Of the messages that were measured.
    is_split : bool
        Whether logs of several N told the launch from the hops.
    drift : float
        Relative error for each doubling of N beyond what was measured.
    has_drift : bool
        Whether held-out N told it; else it is a guess.
    verdicts : tuple of str
    sources : tuple of SourceFile
    """

    collective: str
    regimes: tuple[Regime, ...]
    settings: tuple[Setting, ...]
    smallest_bytes: int
    largest_bytes: int
    is_split: bool
    drift: float
    has_drift: bool
    verdicts: tuple[str, ...] = ()
    sources: tuple[SourceFile, ...] = ()

    def laws(self) -> list[BoundaryLaw]:
        """Return where each regime but the last ends, for any N."""
        pairs = zip(self.regimes[:-1], self.regimes[1:], strict=True)
        return [boundary_law(below.ends, (below.model, above.model)) for below, above in pairs]

    def nodes_for(self, n_workers: int) -> int:
        """Return on how many nodes N workers sit, as many on each as in the logs; 0 if they do not say."""
        per_node = max((-(-s.n_workers // s.n_nodes) for s in self.settings if s.n_nodes), default=0)
        return -(-n_workers // per_node) if per_node else 0

    def setting_for(self, n_workers: int) -> Setting:
        """Return N workers on as many nodes as they were measured on, else as full nodes as in the logs."""
        known = next((each.n_nodes for each in self.settings if each.n_workers == n_workers), 0)
        return Setting(n_workers, known or self.nodes_for(n_workers))

    @property
    def knows_nodes(self) -> bool:
        """Whether any log said on how many nodes it ran."""
        return any(setting.n_nodes for setting in self.settings)

    def cautions(self, settings: Sequence[Setting]) -> list[str]:
        """Return what to bear in mind of predictions: what could not be told, as far as it matters there."""
        said = [verdict for verdict in self.verdicts if not verdict.startswith(_NO_CAUTION)]
        crosses = any(setting.n_nodes > 1 for setting in settings)
        if crosses and not any(setting.n_nodes > 1 for setting in self.settings):
            said.append("no log crosses nodes: links between them are taken to be as fast as those inside")
        if not self.has_drift:
            said.append(f"no log told how errors grow with N: {self.drift:.0%} for each doubling is a guess")
        return said
