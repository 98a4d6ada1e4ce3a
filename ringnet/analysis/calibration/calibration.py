"""The whole of a calibration: the fit, what held-out data says of it, what it may be trusted with, and the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.fit import Fit, HeldOut, drift_of, fit, hold_out_sizes, hold_out_workers
from ringnet.analysis.calibration.models import (
    BETWEEN,
    HOP,
    LAUNCH,
    MODELS,
    PASSES,
    FloatArray,
    Samples,
    Setting,
    design,
)
from ringnet.analysis.calibration.profile import Profile, Regime, SourceFile
from ringnet.analysis.calibration.regimes import independent
from ringnet.units import format_bytes

WELL = "well determined"
LOOSE = "loosely determined"
NO_LATENCY = "latency not identifiable"
NO_BANDWIDTH = "bandwidth not identifiable"
RING = "follows a ring"
NO_RING = "does not follow a ring"
ONE_N = "one N only"
ONE_KIND = "hops not told apart"
BAD_RUN = "bad run in a series"
TWO_MACHINES = "two machines"

#: Share of a time that a part must reach somewhere for its parameter to be told.
_TOLD = 0.5
#: Relative standard error up to which a parameter is well determined.
_SURE = 0.25
#: Median relative error up to which a fit describes what was measured.
_CLOSE = 0.05
#: Difference of the information criterion from which one model is clearly better.
_CLEARLY = 10.0
#: A held-out N that is so far off (a factor), and so many times further than every other, is a bad run.
_OFF, _FURTHER = 1.25, 2.0
_FEWEST_FOR_BAD = 4
#: With fewer N, launch and latency fit any model.
_FEWEST_TO_REFUTE = 3
#: Two logs of one setting that differ by more are of two machines, or of two states of one.
_DIFFER = 1.3
_KIB, _MIB = 2.0**10, 2.0**20
#: Where the bands of the table of errors end, in bytes of the message.
_BANDS = (_KIB, 64 * _KIB, _MIB, 64 * _MIB, float("inf"))


@dataclass(frozen=True)
class CalibrationVerdict:
    """One finding: its name, which programs may ask for, and a sentence."""

    name: str
    text: str


def verdicts(whole: Fit, held_out: Sequence[HeldOut]) -> list[CalibrationVerdict]:
    """Return the findings about a fit, the judgement of its parameters first.

    Parameters
    ----------
    whole : Fit
    held_out : sequence of HeldOut
        Each N in turn.
    """
    missing = _not_told(whole)
    return [
        *(missing or _well(whole)),
        _model(whole),
        *_one_kind(whole),
        *_bad_run(whole, held_out),
        *_differ(whole.samples),
    ]


def _parts(whole: Fit) -> tuple[FloatArray, FloatArray]:
    """Return, for every row, the share of its time that is latency, and that is bytes."""
    samples, passes = whole.samples, PASSES[whole.profile.collective]
    latency, total = np.empty(len(samples)), np.empty(len(samples))
    for index, regime in enumerate(whole.profile.regimes):
        rows = whole.cut.labels == index
        terms = design(regime.model, samples.where(rows), passes) * regime.parameters
        latency[rows], total[rows] = terms[:, [LAUNCH, HOP, BETWEEN]].sum(axis=1), terms.sum(axis=1)
    share = latency / np.maximum(total, np.finfo(float).tiny)
    return share, 1 - share


def _not_told(whole: Fit) -> list[CalibrationVerdict]:
    latency, moved = _parts(whole)
    smallest, largest = (format_bytes(each(whole.samples.message_bytes)) for each in (np.min, np.max))
    if whole.samples.is_one_size:
        text = f"all messages have {smallest}: one size cannot tell latency from bandwidth"
        few = [] if whole.samples.message_bytes.max() <= 1 else [CalibrationVerdict(NO_LATENCY, text)]
        return [*few, CalibrationVerdict(NO_BANDWIDTH, f"{text}; other sizes are a guess")]
    found = []
    if latency.max() < _TOLD:
        text = f"the smallest message has {smallest}, and latency is at most {latency.max():.0%} of any time"
        found.append(CalibrationVerdict(NO_LATENCY, f"{text}: measure smaller ones"))
    if moved.max() < _TOLD:
        text = f"the largest message has {largest}, and bytes are at most {moved.max():.0%} of any time"
        found.append(CalibrationVerdict(NO_BANDWIDTH, f"{text}: measure larger ones"))
    return found


def _well(whole: Fit) -> list[CalibrationVerdict]:
    first, last = whole.profile.regimes[0], whole.profile.regimes[-1]
    latency = [
        error for name, error in first.errors.items() if name.startswith("latency") or name == "launch"
    ]
    bandwidth = [error for name, error in last.errors.items() if name.startswith("bandwidth")]
    off = float(np.median(np.abs(whole.errors())))
    if off > _CLOSE:
        return [
            CalibrationVerdict(
                LOOSE, f"the fit is {off:.1%} off (median): the regimes do not describe what was measured"
            )
        ]
    if not latency or not bandwidth or min(latency) > _SURE or min(bandwidth) > _SURE:
        text = "both latency and bandwidth are seen, but scatter leaves one unsure by more than a quarter"
        return [CalibrationVerdict(LOOSE, text)]
    text = f"latency to {min(latency):.1%} and bandwidth to {min(bandwidth):.1%} (standard errors)"
    return [CalibrationVerdict(WELL, text)]


def _model(whole: Fit) -> CalibrationVerdict:
    n_counts = len({setting.n_workers for setting in whole.profile.settings})
    if n_counts == 1:
        text = "one N cannot tell a ring from a tree, nor the launch from the hops: other N are a guess"
        return CalibrationVerdict(ONE_N, text)
    models = [regime.model for regime in whole.profile.regimes]
    if set(models) == {"ring"} and n_counts < _FEWEST_TO_REFUTE:
        return CalibrationVerdict(RING, "as far as two N can tell, which most models fit")
    if set(models) == {"ring"}:
        return CalibrationVerdict(RING, "2(N-1) hops and 2(N-1)/N of the message in every size regime")
    if set(whole.models) != {"ring"} and _ring_does(whole):
        return CalibrationVerdict(RING, "no other model is clearly better")
    return CalibrationVerdict(NO_RING, _instead(whole, models))


def _one_kind(whole: Fit) -> list[CalibrationVerdict]:
    """Say it where as many workers sit on every node: hops between nodes then go with all hops."""
    samples = whole.samples
    crosses = bool((samples.n_nodes > 1).any()) and not samples.is_one_setting
    columns = design("ring", samples)[:, [LAUNCH, HOP, BETWEEN]]
    if not crosses or len(independent(columns)) == columns.shape[1]:
        return []
    text = "every node holds as many workers: hops inside and between nodes, and the launch, go together"
    return [CalibrationVerdict(ONE_KIND, text)]


def _ring_does(whole: Fit) -> bool:
    ring = fit(whole.samples, whole.profile.collective, models=("ring",), quick=True)
    return min(ring.criteria.values()) - min(whole.criteria.values()) < _CLEARLY


def _instead(whole: Fit, models: Sequence[str]) -> str:
    largest = whole.profile.settings[-1]
    said = [f"{regime.model}{_up_to(regime, largest)}" for regime in whole.profile.regimes]
    which = (
        "the minimum of ring and tree, by protocol" if "ring" in models else "a tree: latency grows as log2"
    )
    return f"{which} (at N={largest.n_workers}: {', then '.join(said)})"


def _up_to(regime: Regime, setting: Setting) -> str:
    last = next((end.last_bytes for end in regime.ends if end.setting == setting), 0.0)
    return f" up to {format_bytes(round(last))}" if last else ""


def _bad_run(whole: Fit, held_out: Sequence[HeldOut]) -> list[CalibrationVerdict]:
    """Find the one N that the others contradict.

    The ends of a series are judged by extrapolation, which is no ground for blame.
    """
    inner = [each for each in held_out if not each.is_edge]
    if len(held_out) < _FEWEST_FOR_BAD or not inner:
        return []
    shifts = np.array([float(np.median(each.errors)) for each in inner])
    worst = int(np.abs(shifts).argmax())
    others = np.delete(np.abs(shifts), worst)
    if abs(shifts[worst]) < np.log(_OFF) or (len(others) and abs(shifts[worst]) < _FURTHER * others.max()):
        return []
    factor = np.exp(abs(shifts[worst]))
    way = "slower" if shifts[worst] < 0 else "faster"
    return [
        CalibrationVerdict(
            BAD_RUN, f"{inner[worst].what} is {factor:.2f} times {way} than all other N make of it"
        )
    ]


def _differ(samples: Samples) -> list[CalibrationVerdict]:
    """Find pairs of logs that measured the same and do not agree."""
    found = []
    for setting in samples.settings:
        rows = samples.of(setting)
        for one, other in combinations(sorted(set(samples.log[rows].tolist())), 2):
            ratio = _ratio(
                samples.where(rows & (samples.log == one)), samples.where(rows & (samples.log == other))
            )
            if ratio > _DIFFER:
                pair = f"{samples.names[one]} and {samples.names[other]}"
                text = f"{pair} both have {setting} and differ by {ratio:.2f} times"
                found.append(CalibrationVerdict(TWO_MACHINES, text))
    return found


def _ratio(one: Samples, other: Samples) -> float:
    """Return by what factor the times of sizes that both have differ, typically; 1 if they share none."""
    _, first, second = np.intersect1d(one.message_bytes, other.message_bytes, return_indices=True)
    if not len(first):
        return 1.0
    return float(np.exp(np.median(np.abs(np.log(one.time_s[first] / other.time_s[second])))))


class Errors(NamedTuple):
    """Relative errors of some rows, without their sign."""

    n_points: int
    median: float
    worst: float


@dataclass(frozen=True)
class Calibration:
    """A fit and everything that is to be said of it.

    Parameters
    ----------
    fit : Fit
    profile : Profile
        Complete: with drift, verdicts and sources.
    held_workers, held_sizes : tuple of HeldOut
    verdicts : tuple of CalibrationVerdict
    """

    fit: Fit
    profile: Profile
    held_workers: tuple[HeldOut, ...]
    held_sizes: tuple[HeldOut, ...]
    verdicts: tuple[CalibrationVerdict, ...]

    def errors_of_log(self, log: int) -> Errors:
        """Return the errors of the fit in one log."""
        return _errors(np.abs(self.fit.errors()[self.fit.samples.log == log]))

    def errors_by_band(self) -> list[tuple[float, float, Errors]]:
        """Return the errors of the fit by bands of message size: from, to, errors; no empty band."""
        sizes, errors = self.fit.samples.message_bytes, np.abs(self.fit.errors())
        found = []
        for low, high in zip((0.0, *_BANDS), _BANDS, strict=False):
            rows = (sizes > low) & (sizes <= high)
            if rows.any():
                found.append((low, high, _errors(errors[rows])))
        return found

    def held_out_sizes(self) -> Errors | None:
        """Return the errors of all held-out sizes together."""
        return _together(self.held_sizes)


def _errors(errors: np.typing.NDArray[np.float64]) -> Errors:
    return Errors(len(errors), float(np.median(errors)), float(errors.max()))


def _together(held_out: Sequence[HeldOut]) -> Errors | None:
    if not held_out:
        return None
    return _errors(np.abs(np.expm1(np.concatenate([each.errors for each in held_out]))))


def calibrate(
    samples: Samples,
    collective: str = "all_reduce",
    *,
    models: Sequence[str] = tuple(MODELS),
    sources: Sequence[SourceFile] = (),
    more: Sequence[CalibrationVerdict] = (),
) -> Calibration:
    """Calibrate: fit, cross-validate, judge.

    Parameters
    ----------
    samples : Samples
    collective : str
    models : sequence of str
        What a regime may be.
    sources : sequence of SourceFile
        The files, to be named in the profile.
    more : sequence of CalibrationVerdict
        Findings about the files themselves.
    """
    whole = fit(samples, collective, models=models)
    workers, sizes = hold_out_workers(whole), hold_out_sizes(whole)
    found = (*verdicts(whole, workers), *more)
    drift = drift_of(workers)
    profile = replace(
        whole.profile,
        drift=whole.profile.drift if drift is None else drift,
        has_drift=drift is not None,
        verdicts=tuple(f"{verdict.name}: {verdict.text}" for verdict in found),
        sources=tuple(sources),
    )
    return Calibration(whole, profile, tuple(workers), tuple(sizes), found)
