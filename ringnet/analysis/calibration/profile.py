"""What a calibration comes to: parameters of every regime, where it ends, how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ringnet.analysis.calibration.boundaries import Boundary, BoundaryLaw, boundary_law
from ringnet.analysis.calibration.models import (
    BETWEEN,
    BETWEEN_BYTES,
    HOP,
    INSIDE_BYTES,
    LAUNCH,
    N_PARAMETERS,
)
from ringnet.analysis.calibration.samples import FloatArray, Setting

#: What verdicts begin with that say nothing to beware of.
_NO_CAUTION = ("well determined", "follows a ring")


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
class Source:
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
    sources : tuple of Source
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
    sources: tuple[Source, ...] = ()

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
