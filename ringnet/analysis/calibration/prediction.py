"""Times that were not measured, each with a range, and how far beyond the measurements it lies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringnet.analysis.calibration.models import HOP, PASSES, BoolArray, FloatArray, Setting, at, design
from ringnet.analysis.calibration.profile import Boundary, BoundaryLaw, Profile

#: A range holds nine in ten, were errors normal.
_Z = 1.645
#: Relative error for each doubling of the size beyond what was measured.
_SIZE_DRIFT = 0.03
#: A regime that is less likely than that does not widen a range.
_UNLIKELY = 0.05


@dataclass(frozen=True)
class Prediction:
    """Predicted times.

    Parameters
    ----------
    setting : Setting
    message_bytes, time_s, low_s, high_s : ndarray of float64, shape (n,)
        Nine in ten measurements should lie from low to high.
    is_beyond : ndarray of bool, shape (n,)
        Whether N or the size is outside what was measured.
    regime : ndarray of int64, shape (n,)
        The likeliest.
    """

    setting: Setting
    message_bytes: FloatArray
    time_s: FloatArray
    low_s: FloatArray
    high_s: FloatArray
    is_beyond: BoolArray
    regime: np.typing.NDArray[np.int64]


def predict(profile: Profile, setting: Setting, message_bytes: FloatArray) -> Prediction:
    """Predict a collective's time.

    Parameters
    ----------
    profile : Profile
    setting : Setting
        How many workers, on how many nodes.
    message_bytes : ndarray of float64, shape (n,)
    """
    logs = np.log(regime_times(profile, setting, message_bytes))
    weights = regime_weights(profile, setting, message_bytes)
    time_s = np.exp((weights * logs).sum(axis=0))
    low, high = _range(profile, setting, message_bytes, logs, weights)
    is_known = any(setting.n_workers == known.n_workers for known in profile.settings)
    inside = (message_bytes >= profile.smallest_bytes) & (message_bytes <= profile.largest_bytes)
    return Prediction(
        setting,
        message_bytes,
        time_s,
        np.minimum(low, time_s),
        np.maximum(high, time_s),
        ~inside | (not is_known and not _is_between(profile, setting)),
        weights.argmax(axis=0),
    )


def _is_between(profile: Profile, setting: Setting) -> bool:
    known = [each.n_workers for each in profile.settings]
    return min(known) <= setting.n_workers <= max(known)


def regime_times(profile: Profile, setting: Setting, sizes: FloatArray) -> FloatArray:
    """Return the time in each regime, shape (n_regimes, n)."""
    rows, passes = at(setting, sizes), PASSES[profile.collective]
    times = [design(regime.model, rows, passes) @ regime.parameters for regime in profile.regimes]
    return np.maximum(np.array(times), np.finfo(float).tiny)


def regime_weights(profile: Profile, setting: Setting, sizes: FloatArray) -> FloatArray:
    """Return how likely each regime is at each size, shape (n_regimes, n)."""
    reached = [np.ones(len(sizes))]
    for low, high in changeovers(profile, setting):
        ramp = np.clip((np.log(np.maximum(sizes, 1.0)) - low) / (high - low), 0.0, 1.0)
        reached.append(np.minimum(ramp, reached[-1]))
    levels = np.array([*reached, np.zeros(len(sizes))])
    return np.asarray(levels[:-1] - levels[1:])


def _end(ends: tuple[Boundary, ...], setting: Setting) -> Boundary | None:
    same = [end for end in ends if end.setting == setting]
    return same[0] if same else None


def changeovers(profile: Profile, setting: Setting) -> list[tuple[float, float]]:
    """Return for each regime but the last from where to where the next takes over, in logarithms of the message."""
    pairs = zip(profile.regimes, profile.laws(), strict=False)
    return [_changeover(_end(regime.ends, setting), law, setting) for regime, law in pairs]


def _changeover(end: Boundary | None, law: BoundaryLaw, setting: Setting) -> tuple[float, float]:
    """Return between which sizes the next regime becomes likelier from 0 to 1, straight in logarithms."""
    if end is not None and end.is_seen:
        return float(np.log(end.last_bytes)), float(np.log(end.first_bytes))
    half = law.spread(setting.n_workers)
    middle = law.at(setting.n_workers)
    if end is not None and end.last_bytes > 0:
        middle = max(middle, float(np.log(end.last_bytes)) + half)
    if end is not None and np.isfinite(end.first_bytes):
        middle = min(middle, float(np.log(end.first_bytes)) - half)
    return middle - half, middle + half


def _range(
    profile: Profile, setting: Setting, sizes: FloatArray, logs: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the range over every regime that may be at work, each with its own uncertainty."""
    scatter = np.array([regime.scatter for regime in profile.regimes])[:, None]
    sigma = np.sqrt(scatter**2 + _beyond(profile, setting, sizes) ** 2)
    possible = weights > _UNLIKELY
    lowest = np.minimum(logs, _other_split(profile, setting, sizes, logs))
    low = np.where(possible, lowest - _Z * sigma, np.inf).min(axis=0)
    high = np.where(possible, logs + _Z * sigma, -np.inf).max(axis=0)
    return np.exp(low), np.exp(high)


def _beyond(profile: Profile, setting: Setting, sizes: FloatArray) -> FloatArray:
    """Return the relative error for what lies between measurement and prediction: in N, and in size."""
    known = [each.n_workers for each in profile.settings]
    doublings = min(abs(np.log2(setting.n_workers / n)) for n in known)
    capped = np.clip(sizes, max(profile.smallest_bytes, 1), max(profile.largest_bytes, 1))
    size_doublings = np.abs(np.log2(np.maximum(sizes, 1.0) / capped))
    return np.asarray(np.hypot(profile.drift * doublings, _SIZE_DRIFT * size_doublings))


def _other_split(profile: Profile, setting: Setting, sizes: FloatArray, logs: FloatArray) -> FloatArray:
    """Return the times if all latency were launch, not hops: one N cannot tell, a range covers both."""
    if profile.is_split or setting in profile.settings:
        return logs
    known = at(profile.settings[0], sizes)
    here, passes = at(setting, sizes), PASSES[profile.collective]
    times = []
    for regime in profile.regimes:
        there, new = (design(regime.model, rows, passes) for rows in (known, here))
        new[:, HOP] = there[:, HOP]
        times.append(new @ regime.parameters)
    return np.log(np.maximum(np.array(times), np.finfo(float).tiny))
