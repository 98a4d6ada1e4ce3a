"""Times that were not measured, each with a range, and how far beyond the measurements they lie.

What was measured comes back as it was; elsewhere the links say by what factor the time differs from the nearest setting
that was measured. Ranges hold nine in ten: the spread over links that fit about as well, the scatter of what was
measured, and, calibrated on public logs, what a model of so few parameters misses: the more, the further N is, and
the rougher the measured times are about this size, where a library goes from one way to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ringnet.analysis.calibration.machine import LIBRARIES
from ringnet.analysis.calibration.profile import Curve, Profile
from ringnet.analysis.calibration.samples import Setting, at
from ringnet.array_types import BoolArray, FloatArray, IntArray

#: A range holds nine in ten, were errors normal.
_Z = 1.645
#: Standard deviations of the logarithm: away from what was measured, and for each doubling of N or nodes; of the
#: roughness; for each doubling of the size beyond what was measured.
_AWAY, _DOUBLING, _ROUGH, _SIZE = 0.03, 0.05, 0.25, 0.03
#: Links that fit as well agree too much with each other, as all are of one model: by so many of their own deviations,
#: and by no more than so much. What only a prior tells, as links between nodes that no log crosses, is as unsure as
#: that prior.
_TOO_ALIKE, _MOST_TOO_ALIKE = 1.4, 0.4
#: Beyond what was measured, processes that share a host's memory and cards are so many times further off than GPUs.
_ON_HOST = 1.5
#: Times are known at so many sizes for each doubling, and straight between them in logarithms.
_KNOTS_PER_DOUBLING = 4
_LARGEST_LOG2 = 50
_ROUGH_DOUBLINGS = 2
#: A line through that many N or more is worth a look beyond them.
FEWEST_FOR_LINE = 3
#: So many times and more are said as a whole number, and so much less as a fraction.
_ROUNDED = 100


@dataclass(frozen=True)
class Prediction:
    """Predicted times.

    Parameters
    ----------
    setting : Setting
    message_bytes, time_s, low_s, high_s : ndarray of float64, shape (n,)
        Nine in ten measurements should lie from low to high.
    way : ndarray of int64, shape (n,)
        Which algorithm and protocol is the fastest by the links: an index of the family's ways.
    distance : tuple of str, of length n
        In words how far the setting and the size are from what was measured; empty where they are within.
    """

    setting: Setting
    message_bytes: FloatArray
    time_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray
    way: IntArray
    distance: tuple[str, ...]

    @property
    def is_beyond(self) -> BoolArray:
        """Whether the setting or the size is outside what was measured, shape (n,)."""
        return np.array([bool(words) for words in self.distance])


def predict(profile: Profile, setting: Setting, message_bytes: FloatArray) -> Prediction:
    """Predict a collective's time.

    Parameters
    ----------
    profile : Profile
    setting : Setting
        How many workers, on how many nodes.
    message_bytes : ndarray of float64, shape (n,)
    """
    logs = np.log(np.maximum(message_bytes, 1.0))
    knots, times, *sigmas = _curve(profile, setting)
    time, down, up = (np.interp(logs, knots, column) for column in (times, *sigmas))
    ways = profile.family.offers(profile.logs, at(setting, message_bytes)).argmin(axis=0)
    return Prediction(
        setting,
        message_bytes,
        np.exp(time),
        np.exp(time - _Z * down),
        np.exp(time + _Z * up),
        ways,
        _distances(profile, setting, message_bytes),
    )


def _distances(profile: Profile, setting: Setting, message_bytes: FloatArray) -> tuple[str, ...]:
    """Return in words how far a setting and each size are outside of what was measured; empty where they are inside.

    Sizes are those of the setting itself, if it was measured.
    """
    known = profile.settings
    measured: dict[str, tuple[list[float], float]] = {
        "N": ([float(one.n_workers) for one in known], setting.n_workers),
        "nodes": ([float(one.n_nodes) for one in known if one.n_nodes], setting.n_nodes),
        "workers a node": ([one.per_node for one in known if one.n_nodes], setting.per_node if setting.n_nodes else 0),
    }
    of_setting = {} if setting in known else measured
    curves = [curve for curve in profile.curves if curve.setting == setting] or profile.curves
    sizes = [size for curve in curves for size in (curve.message_bytes[0], curve.message_bytes[-1])]
    return tuple(_outside({**of_setting, "message": (sizes, size)}) for size in message_bytes.tolist())


def _outside(measured: Mapping[str, tuple[Sequence[float], float]]) -> str:
    """Return in words by how many times a value is above the largest that was measured, or below the smallest."""
    told: dict[str, list[str]] = {}
    for what, (values, value) in measured.items():
        if not values or value <= 0 or min(values) <= value <= max(values):
            continue
        times, end = (value / max(values), "largest") if value > max(values) else (value / min(values), "smallest")
        if times < 1 / _ROUNDED:
            factor = f"1/{1 / times:,.0f} of the {end}"
        else:
            factor = f"{times:,.0f}x the {end}" if times >= _ROUNDED else f"{times:.3g}x the {end}"
        told.setdefault(factor, []).append(what)
    return ", ".join(f"{factor} {' and '.join(which)}" for factor, which in told.items())


@lru_cache(maxsize=256)
def _curve(profile: Profile, setting: Setting) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return logarithms of sizes, of times that never fall, and the standard deviations of those, down and up."""
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 -- a tenth of a second, for profiles only

    knots = _knots(profile)
    middle = _log_times(profile, profile.logs, setting, knots)
    times = np.maximum(isotonic_regression(middle).x, _floor(profile, setting, knots))
    return knots, times, *_spread(profile, setting, knots, middle)


def _knots(profile: Profile) -> FloatArray:
    step = np.log(2) / _KNOTS_PER_DOUBLING
    regular = step * np.arange(_LARGEST_LOG2 * _KNOTS_PER_DOUBLING + 1)
    measured = np.log([size for curve in profile.curves for size in curve.message_bytes if size >= 1])
    return np.unique(np.concatenate([regular, measured]))


def _log_times(profile: Profile, logs: FloatArray, setting: Setting, knots: FloatArray) -> FloatArray:
    """Return what links say, by way of the nearest that was measured, and of a line through all of it beyond."""
    found = profile.family.log_time(logs, at(setting, np.exp(knots))) + _carried(profile, logs, setting, knots)
    if not profile.line_weight or setting.n_workers <= max(known.n_workers for known in profile.settings):
        return found
    # The line says nothing beyond the sizes that every curve has: there it goes on beside the links.
    common = np.clip(knots, *common_sizes(profile.curves))
    off = log_line(profile.curves, setting, common) - np.interp(common, knots, found)
    return np.asarray(found + profile.line_weight * off)


def common_sizes(curves: Sequence[Curve]) -> tuple[float, float]:
    """Return the logarithms of the smallest and the largest size that all curves have; one size if there are none."""
    first = max(float(np.log(max(curve.message_bytes[0], 1.0))) for curve in curves)
    last = min(float(np.log(max(curve.message_bytes[-1], 1.0))) for curve in curves)
    return min(first, last), max(first, last) if first <= last else min(first, last)


def log_line(curves: Sequence[Curve], setting: Setting, knots: FloatArray) -> FloatArray:
    """Return the logarithm of the time on a straight line in log2 N through the measured times of each size."""
    log_n = np.log2([curve.setting.n_workers for curve in curves])
    times = np.exp([curve.log_time(knots) for curve in curves])
    away = log_n - log_n.mean()
    slopes = away @ (times - times.mean(axis=0)) / (away @ away)
    found = times.mean(axis=0) + slopes * (np.log2(setting.n_workers) - log_n.mean())
    return np.asarray(np.log(np.maximum(found, times.min(axis=0) / 2)))


def _carried(profile: Profile, logs: FloatArray, setting: Setting, knots: FloatArray) -> FloatArray:
    """Return by how much what was measured nearby differs from the links, in logarithms.

    Between two N it is in between; beyond all it is that of the nearest.
    """
    near = sorted(profile.curves, key=lambda curve: _doublings(curve.setting, setting))
    first = near[0]
    if first.setting == setting:
        return _residual(profile, logs, first, knots)
    across = [
        curve
        for curve in near
        if (curve.setting.n_workers - setting.n_workers) * (first.setting.n_workers - setting.n_workers) < 0
    ]
    if not across:
        return _residual(profile, logs, first, knots)
    one, other = (_doublings(curve.setting, setting) for curve in (first, across[0]))
    pair = [_residual(profile, logs, curve, knots) for curve in (first, across[0])]
    return (other * pair[0] + one * pair[1]) / (one + other)


def _residual(profile: Profile, logs: FloatArray, curve: Curve, knots: FloatArray) -> FloatArray:
    sizes = np.log(np.maximum(curve.message_bytes, 1.0))
    own = profile.family.log_time(logs, at(curve.setting, np.exp(sizes)))
    return np.interp(knots, sizes, np.log(curve.time_s) - own)


def _doublings(one: Setting, other: Setting) -> float:
    """Return how far two settings are from each other, in doublings of N and of nodes."""
    away = abs(np.log2(one.n_workers / other.n_workers))
    return float(away + abs(np.log2(max(one.n_nodes, 1) / max(other.n_nodes, 1))))


def _spread(profile: Profile, setting: Setting, knots: FloatArray, middle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the standard deviation of logarithms of times, of those below ``middle``, and of those above.

    What a hop takes more that nobody measured is added to what was: a time may be far longer, and not as much shorter.
    """
    nearest = min(profile.curves, key=lambda curve: _doublings(curve.setting, setting))
    capped = np.clip(knots, np.log(max(profile.smallest_bytes, 1)), np.log(max(profile.largest_bytes, 1)))
    beyond = _SIZE * np.abs(knots - capped) / np.log(2)
    residual = _residual(profile, profile.logs, nearest, knots)
    reach = _ROUGH_DOUBLINGS * np.log(2)
    rough = np.array([np.ptp(residual[np.abs(knots - knot) <= reach * (1 + 1e-9)]) for knot in knots])
    # Where this setting was measured, alternatives agree with each other; beyond its sizes they do not.
    others = [_log_times(profile, profile.logs + np.array(other), setting, knots) for other in profile.alternatives]
    off = np.array(others or [middle]) - middle
    drawn = np.sqrt(2 * np.mean(np.square([np.minimum(off, 0), np.maximum(off, 0)]), axis=1))
    alike = np.minimum(_TOO_ALIKE * drawn, _MOST_TOO_ALIKE)
    known = np.sqrt(nearest.scatter**2 + beyond**2 + drawn**2 + alike**2)
    if nearest.setting == setting:
        return known[0], known[1]
    n_away = abs(np.log2(setting.n_workers / nearest.setting.n_workers))
    nodes_away = abs(np.log2(max(setting.n_nodes, 1) / max(nearest.setting.n_nodes, 1)))
    away = _AWAY + _DOUBLING * max(n_away, nodes_away)
    if LIBRARIES[profile.family.library].on_host:
        away *= _ON_HOST
    down, up = np.hypot(known, np.hypot(away, _ROUGH * rough))
    return down, up


def _floor(profile: Profile, setting: Setting, knots: FloatArray) -> FloatArray:
    """Return what a smaller setting was measured at: no more workers on no more nodes, which can only be faster.

    More workers of a node bring rails, and may bring a switch that reduces: then a larger setting can be faster, too.
    """
    if setting in profile.settings:
        return np.full(len(knots), -np.inf)
    smaller = [
        np.where(knots < np.log(max(curve.message_bytes[0], 1.0)), -np.inf, curve.log_time(knots))
        for curve in profile.curves
        if curve.setting.n_workers <= setting.n_workers
        and curve.setting.n_nodes <= setting.n_nodes
        and (curve.setting.n_nodes == 1 or curve.setting.per_node >= setting.per_node)
        and "switch" not in profile.family.algorithms
    ]
    return np.max(smaller, axis=0) if smaller else np.full(len(knots), -np.inf)
