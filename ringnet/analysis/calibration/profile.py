"""What a calibration comes to: the links of a machine, others that fit about as well, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringnet.analysis.calibration.machine import (
    LAUNCH,
    LAUNCH_LARGE,
    LAUNCH_MEDIUM,
    Family,
)
from ringnet.analysis.calibration.samples import Setting
from ringnet.array_types import FloatArray
from ringnet.units import counted

#: What verdicts begin with that say nothing to beware of.
_NO_CAUTION = ("well determined", "described", "ways")


@dataclass(frozen=True)
class Curve:
    """Measured times of one setting, by rising size; they never fall.

    Parameters
    ----------
    setting : Setting
    message_bytes, time_s : tuple of float
    scatter : float
        Relative standard deviation of single measurements about the curve.
    """

    setting: Setting
    message_bytes: tuple[float, ...]
    time_s: tuple[float, ...]
    scatter: float

    def log_time(self, log_bytes: FloatArray) -> FloatArray:
        """Return the natural logarithm of the time, straight between sizes and the same beyond them."""
        return np.interp(log_bytes, np.log(self.message_bytes), np.log(self.time_s))


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
    family : Family
        The library, its algorithms, and how many rails a node has at most.
    parameters : tuple of float
        One for each of `machine.PARAMETERS`, in seconds, bytes per second, or as a ratio.
    alternatives : tuple of tuple of float
        Natural logarithms, relative to the parameters, of others that fit about as well: drawn from how sure each is.
    curves : tuple of Curve
        What was measured, by setting.
    line_weight : float
        How much a straight line in log2 N through the measured N, for each size, counts beyond the largest; told by
        predicting the largest from the others. The rest is the links.
    verdicts : tuple of str
    sources : tuple of SourceFile
    """

    family: Family
    parameters: tuple[float, ...]
    alternatives: tuple[tuple[float, ...], ...]
    curves: tuple[Curve, ...]
    line_weight: float = 0.0
    verdicts: tuple[str, ...] = ()
    sources: tuple[SourceFile, ...] = ()

    @property
    def collective(self) -> str:
        """Which collective was measured."""
        return self.family.collective

    @property
    def logs(self) -> FloatArray:
        """Natural logarithms of the parameters."""
        return np.log(self.parameters)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What N and nodes were measured."""
        return tuple(curve.setting for curve in self.curves)

    @property
    def smallest_bytes(self) -> int:
        """Smallest message that was measured."""
        return int(min(curve.message_bytes[0] for curve in self.curves))

    @property
    def largest_bytes(self) -> int:
        """Largest message that was measured."""
        return int(max(curve.message_bytes[-1] for curve in self.curves))

    def launch_s(self, way: int) -> float:
        """Return what a collective takes once, whatever its size, in one of the ways of the family."""
        ratio = (None, LAUNCH_MEDIUM, LAUNCH_LARGE)[self.family.ways[way].protocol]
        return self.parameters[LAUNCH] * (1.0 if ratio is None else self.parameters[ratio])

    @property
    def _most_on_a_node(self) -> int:
        return max((-(-s.n_workers // s.n_nodes) for s in self.settings if s.n_nodes), default=0)

    def nodes_for(self, n_workers: int) -> int:
        """Return on how many nodes N workers sit, as many on each as in the logs; 0 if they do not say."""
        per_node = self._most_on_a_node
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
        if any(s.n_nodes > 1 for s in settings) and not any(s.n_nodes > 1 for s in self.settings):
            said.append(
                "no log crosses nodes: what links between them take is what such machines usually have, within a "
                f"factor of four; nodes of {counted(self._most_on_a_node, 'worker')} are taken, as in the logs, where "
                "nodes are not given"
            )
        fills = {s.per_node for s in self.settings if s.n_nodes > 1}
        others = sorted({s.per_node for s in settings if s.n_nodes > 1 and fills and s.per_node not in fills})
        if others and len(fills) == 1:
            said.append(
                f"measured with {_number(fills)} workers a node only: with {_number(others)} each worker is taken "
                "to have a card of its own"
            )
        return said


def _number(values: Sequence[float] | set[float]) -> str:
    return " or ".join(f"{value:.3g}" for value in sorted(values))
