"""What a calibration may be trusted with, and what it may not, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ringnet.analysis.calibration.fit import Fit, fit
from ringnet.analysis.calibration.models import BETWEEN, HOP, LAUNCH, PASSES, design
from ringnet.analysis.calibration.profile import Regime
from ringnet.analysis.calibration.regimes import independent
from ringnet.analysis.calibration.samples import FloatArray, Samples, Setting
from ringnet.analysis.calibration.validation import HeldOut
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


@dataclass(frozen=True)
class Verdict:
    """One finding: its name, which programs may ask for, and a sentence."""

    name: str
    text: str


def verdicts(whole: Fit, held_out: Sequence[HeldOut]) -> list[Verdict]:
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


def _not_told(whole: Fit) -> list[Verdict]:
    latency, moved = _parts(whole)
    smallest, largest = (format_bytes(each(whole.samples.message_bytes)) for each in (np.min, np.max))
    if whole.samples.is_one_size:
        text = f"all messages have {smallest}: one size cannot tell latency from bandwidth"
        few = [] if whole.samples.message_bytes.max() <= 1 else [Verdict(NO_LATENCY, text)]
        return [*few, Verdict(NO_BANDWIDTH, f"{text}; other sizes are a guess")]
    found = []
    if latency.max() < _TOLD:
        text = f"the smallest message has {smallest}, and latency is at most {latency.max():.0%} of any time"
        found.append(Verdict(NO_LATENCY, f"{text}: measure smaller ones"))
    if moved.max() < _TOLD:
        text = f"the largest message has {largest}, and bytes are at most {moved.max():.0%} of any time"
        found.append(Verdict(NO_BANDWIDTH, f"{text}: measure larger ones"))
    return found


def _well(whole: Fit) -> list[Verdict]:
    first, last = whole.profile.regimes[0], whole.profile.regimes[-1]
    latency = [
        error for name, error in first.errors.items() if name.startswith("latency") or name == "launch"
    ]
    bandwidth = [error for name, error in last.errors.items() if name.startswith("bandwidth")]
    off = float(np.median(np.abs(whole.errors())))
    if off > _CLOSE:
        return [
            Verdict(
                LOOSE, f"the fit is {off:.1%} off (median): the regimes do not describe what was measured"
            )
        ]
    if not latency or not bandwidth or min(latency) > _SURE or min(bandwidth) > _SURE:
        text = "both latency and bandwidth are seen, but scatter leaves one unsure by more than a quarter"
        return [Verdict(LOOSE, text)]
    text = f"latency to {min(latency):.1%} and bandwidth to {min(bandwidth):.1%} (standard errors)"
    return [Verdict(WELL, text)]


def _model(whole: Fit) -> Verdict:
    n_counts = len({setting.n_workers for setting in whole.profile.settings})
    if n_counts == 1:
        text = "one N cannot tell a ring from a tree, nor the launch from the hops: other N are a guess"
        return Verdict(ONE_N, text)
    models = [regime.model for regime in whole.profile.regimes]
    if set(models) == {"ring"} and n_counts < _FEWEST_TO_REFUTE:
        return Verdict(RING, "as far as two N can tell, which most models fit")
    if set(models) == {"ring"}:
        return Verdict(RING, "2(N-1) hops and 2(N-1)/N of the message in every size regime")
    if set(whole.models) != {"ring"} and _ring_does(whole):
        return Verdict(RING, "no other model is clearly better")
    return Verdict(NO_RING, _instead(whole, models))


def _one_kind(whole: Fit) -> list[Verdict]:
    """Say it where as many workers sit on every node: hops between nodes then go with all hops."""
    samples = whole.samples
    crosses = bool((samples.n_nodes > 1).any()) and not samples.is_one_setting
    columns = design("ring", samples)[:, [LAUNCH, HOP, BETWEEN]]
    if not crosses or len(independent(columns)) == columns.shape[1]:
        return []
    text = "every node holds as many workers: hops inside and between nodes, and the launch, go together"
    return [Verdict(ONE_KIND, text)]


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


def _bad_run(whole: Fit, held_out: Sequence[HeldOut]) -> list[Verdict]:
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
    return [Verdict(BAD_RUN, f"{inner[worst].what} is {factor:.2f} times {way} than all other N make of it")]


def _differ(samples: Samples) -> list[Verdict]:
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
                found.append(Verdict(TWO_MACHINES, text))
    return found


def _ratio(one: Samples, other: Samples) -> float:
    """Return by what factor the times of sizes that both have differ, typically; 1 if they share none."""
    _, first, second = np.intersect1d(one.message_bytes, other.message_bytes, return_indices=True)
    if not len(first):
        return 1.0
    return float(np.exp(np.median(np.abs(np.log(one.time_s[first] / other.time_s[second])))))
