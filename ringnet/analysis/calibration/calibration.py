"""The whole of a calibration: the fit, what held-out data says of it, what it may be trusted with, and the profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.fit import FEWEST_SIZES, Fit, HeldOut, fit, hold_out_sizes, hold_out_workers
from ringnet.analysis.calibration.machine import (
    INSIDE_RATE,
    LIBRARIES,
    RAIL_RATE,
    SWITCH_RATE,
    UNNAMED,
    bus_bandwidth,
)
from ringnet.analysis.calibration.profile import Profile, SourceFile
from ringnet.analysis.calibration.samples import Samples, Setting, at
from ringnet.array_types import FloatArray
from ringnet.units import counted, format_bytes, format_rate

WELL = "well determined"
LOOSE = "loosely determined"
NO_LATENCY = "latency not identifiable"
NO_BANDWIDTH = "bandwidth not identifiable"
DESCRIBED = "described"
NOT_DESCRIBED = "not described"
FEW_POINTS = "few points"
WAYS = "ways"
ONE_N = "one N only"
ONE_FILL = "hops not told apart"
BAD_RUN = "bad run in a series"
TWO_MACHINES = "two machines"
SWITCH = "ways: a switch reduces"

#: Share of a time that a part must reach somewhere for its parameter to be told.
_TOLD = 0.5
#: Relative standard error up to which a parameter is well determined.
_SURE = 0.25
#: Median relative error of the links up to which they describe a log, and of one size up to which nothing is said.
_CLOSE, _OFF_SIZE = 0.12, 0.4
#: A held-out N that is so far off, so many times further than those beside it, which are foretold by it and are off the
#: other way, and than all the rest, is a bad run (factors).
_OFF, _THAN_BESIDE, _THAN_REST = 1.25, 1.2, 2.0
_FEWEST_FOR_BAD = 4
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


class Band(NamedTuple):
    """Sizes of one setting in which one way is the fastest by the links.

    Parameters
    ----------
    setting : Setting
    first_bytes, last_bytes : int
    way : str
        ``tree, LL``.
    sure : float
        Share of the links that fit about as well by which the same algorithm is the fastest, 0..1.
    ahead : float
        How many times longer the best way of another algorithm takes, typically; infinite if there is no other.
    """

    setting: Setting
    first_bytes: int
    last_bytes: int
    way: str
    sure: float
    ahead: float


def bands_of(profile: Profile) -> list[Band]:
    """Return which way each band of sizes follows, in every setting, with what speaks for it."""
    return [band for curve in profile.curves for band in _bands(profile, curve.setting, curve.message_bytes)]


def _bands(profile: Profile, setting: Setting, message_bytes: Sequence[float]) -> Iterator[Band]:
    family, rows = profile.family, at(setting, np.maximum(np.array(message_bytes), 1.0))
    times = family.offers(profile.logs, rows)
    best = times.argmin(axis=0)
    algorithms = np.array([way.algorithm for way in family.ways])
    drawn = [
        algorithms[family.offers(profile.logs + np.array(one), rows).argmin(axis=0)] for one in profile.alternatives
    ]
    sure = np.mean([one == algorithms[best] for one in drawn], axis=0) if drawn else np.ones(len(best))
    edges = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist(), len(best)]
    for first, end in pairwise(edges):
        way = int(best[first])
        others = times[algorithms != algorithms[way], first:end]
        ahead = float(np.median(others.min(axis=0) / times[way, first:end])) if len(others) else np.inf
        yield Band(
            setting,
            int(message_bytes[first]),
            int(message_bytes[end - 1]),
            family.named(way),
            float(sure[first:end].mean()),
            ahead,
        )


def verdicts(whole: Fit, held_out: Sequence[HeldOut]) -> list[CalibrationVerdict]:
    """Return the findings about a fit, the judgement of its parameters first.

    Parameters
    ----------
    whole : Fit
    held_out : sequence of HeldOut
        Each N in turn.
    """
    return [
        *(_not_told(whole) or _well(whole)),
        *_described(whole),
        *_ways(whole),
        *_few(whole),
        *_bad_run(whole, held_out),
        *_differ(whole.samples),
    ]


def _parts(whole: Fit) -> tuple[FloatArray, FloatArray]:
    """Return, for every row, the share of its time that is latency, and that is bytes, by its fastest way."""
    family, logs, samples = whole.profile.family, whole.profile.logs, whole.samples
    times, way = family.times(logs, samples), family.offers(logs, samples).argmin(axis=0)
    nothing = replace(samples, message_bytes=np.zeros(len(samples)))
    rows = np.arange(len(samples))
    share = family.times(logs, nothing)[way, rows] / times[way, rows]
    return share, 1 - share


def _not_told(whole: Fit) -> list[CalibrationVerdict]:
    latency, moved = _parts(whole)
    samples = whole.samples
    smallest, largest = (format_bytes(each(samples.message_bytes)) for each in (np.min, np.max))
    if samples.is_one_size:
        text = f"all messages have {smallest}: one size cannot tell latency from bandwidth"
        is_small = bool(latency.max() >= _TOLD)
        few = [] if is_small else [CalibrationVerdict(NO_LATENCY, text)]
        return [*few, CalibrationVerdict(NO_BANDWIDTH, f"{text}; other sizes are a guess")]
    found = []
    if latency.max() < _TOLD:
        text = f"the smallest message has {smallest}, and latency is at most {latency.max():.0%} of any time"
        found.append(CalibrationVerdict(NO_LATENCY, f"{text}: measure smaller ones"))
    if moved.max() < _TOLD:
        text = f"the largest message has {largest}, and bytes are at most {moved.max():.0%} of any time"
        return [*found, CalibrationVerdict(NO_BANDWIDTH, f"{text}: measure larger ones")]
    # Links between nodes are told by what crosses them, and those inside by what does not.
    crosses = samples.n_nodes > 1
    for where, rows in (("between nodes", crosses), ("inside a node", ~crosses)):
        if rows.any() and moved[rows].max() < _TOLD:
            largest = format_bytes(samples.message_bytes[rows].max())
            text = (
                f"the largest message {where} has {largest}, and bytes are at most {moved[rows].max():.0%} of its time"
            )
            found.append(CalibrationVerdict(NO_BANDWIDTH, f"{text}: measure larger ones there"))
    return found


def _well(whole: Fit) -> list[CalibrationVerdict]:
    """Judge by the part of a time that is surest at both ends: what the smallest take, and what a byte takes."""
    rates = [INSIDE_RATE, RAIL_RATE, *([SWITCH_RATE] if "switch" in whole.profile.family.algorithms else [])]
    rate = min(float(whole.deviations[one]) for one in rates)
    smallest = whole.samples.where(whole.samples.message_bytes == whole.samples.message_bytes.min())
    drawn = [
        whole.profile.family.log_time(whole.profile.logs + np.array(one), smallest)
        for one in whole.profile.alternatives
    ]
    latency = float(np.std(drawn, axis=0).min())
    text = f"latency to {latency:.1%} and bandwidth to {rate:.1%} (standard errors of the surest)"
    if max(rate, latency) > _SURE:
        return [CalibrationVerdict(LOOSE, f"{text}: scatter leaves one unsure by more than a quarter")]
    return [CalibrationVerdict(WELL, text)]


def _described(whole: Fit) -> list[CalibrationVerdict]:
    """Say whether the links alone describe the logs: what is carried over from measurements hides what does not."""
    samples, errors = whole.samples, np.abs(whole.errors_of_links())
    bad, medians = [], []
    for index, name in enumerate(samples.names):
        rows = samples.log == index
        if not rows.any():
            continue
        median, worst = float(np.median(errors[rows])), int(np.argmax(np.where(rows, errors, -1)))
        medians.append(median)
        if median > _CLOSE or errors[worst] > _OFF_SIZE:
            at_size = f"{errors[worst]:.0%} at {format_bytes(samples.message_bytes[worst])}"
            bad.append(f"{name} is {median:.1%} off (median), {at_size}")
    if bad:
        text = f"{'; '.join(bad)}: the links alone miss it, and so may they at an N that was not measured"
        return [CalibrationVerdict(NOT_DESCRIBED, text)]
    n_points = sum(len(curve.message_bytes) for curve in whole.profile.curves)
    if n_points < FEWEST_SIZES:
        text = f"links of so many parameters meet {counted(n_points, 'time')}, right or wrong: nothing checks them"
        return [CalibrationVerdict(FEW_POINTS, text)]
    text = f"the links alone meet every log to {max(medians):.1%} (median) and every size to {errors.max():.0%}"
    return [CalibrationVerdict(DESCRIBED, text)]


def _ways(whole: Fit) -> Iterator[CalibrationVerdict]:
    """Say which way each band of sizes follows in the largest setting, and that a switch reduces if it does."""
    largest = whole.profile.settings[-1]
    bands = [band for band in bands_of(whole.profile) if band.setting == largest]
    said = []
    for band in bands:
        doubt = f", in doubt: {band.sure:.0%} of links that fit as well agree" if band.sure < 0.8 else ""  # noqa: PLR2004
        said.append(f"{band.way} up to {format_bytes(band.last_bytes)}{doubt}")
    text = f"at {largest} {'; '.join(said)}; told by latency and bandwidth alone"
    small, medium, large = LIBRARIES[whole.profile.family.library].protocols
    if small != "small":
        text = f"{text}, {small}, {medium} and {large} stand for small to large"
    yield CalibrationVerdict(WAYS, text)
    if "switch" in whole.profile.family.algorithms:
        most = float(bus_bandwidth(whole.samples).max())
        text = f"{format_rate(most)} of bus bandwidth is more than a ring gets of such links"
        yield CalibrationVerdict(SWITCH, text)


def _few(whole: Fit) -> Iterator[CalibrationVerdict]:
    """Say what too few settings leave to the priors."""
    samples = whole.samples
    crossing = [setting for setting in samples.settings if setting.n_nodes > 1]
    if len(samples.settings) == 1:
        text = (
            "one N cannot tell the launch from the hops, nor a ring from a tree: how time grows with N is what such "
            "machines usually have"
        )
        yield CalibrationVerdict(ONE_N, text)
    elif crossing and len(samples.settings) > 1 and len({setting.per_node for setting in samples.settings}) == 1:
        text = "every node holds as many workers: what a node's cards have together is told, not what each has"
        yield CalibrationVerdict(ONE_FILL, text)


def _bad_run(whole: Fit, held_out: Sequence[HeldOut]) -> list[CalibrationVerdict]:
    """Find the one N that the others contradict.

    The ends of a series are judged by extrapolation, which is no ground for blame.
    """
    if len(held_out) < _FEWEST_FOR_BAD:
        return []
    shifts = np.array([float(np.median(each.errors)) for each in held_out])
    worst = 1 + int(np.abs(shifts[1:-1]).argmax())
    # Of the ends, the one beside it may be off for being an end.
    beside = [place for place in (worst - 1, worst + 1) if 0 < place < len(shifts) - 1]
    rest = [place for place in range(1, len(shifts) - 1) if abs(place - worst) > 1]
    off = abs(shifts[worst])
    if (
        off < np.log(_OFF)
        or any(off < _THAN_BESIDE * abs(shifts[place]) for place in beside)
        or any(off < _THAN_REST * abs(shifts[place]) for place in rest)
        or any(shifts[place] * shifts[worst] > 0 for place in beside)
    ):
        return []
    factor = np.exp(abs(shifts[worst]))
    way = "slower" if shifts[worst] < 0 else "faster"
    text = f"{held_out[worst].what} is {factor:.2f} times {way} than all other N make of it"
    return [CalibrationVerdict(BAD_RUN, text)]


def _differ(samples: Samples) -> list[CalibrationVerdict]:
    """Find pairs of logs that measured the same and do not agree."""
    found = []
    for setting in samples.settings:
        rows = samples.of(setting)
        for one, other in combinations(sorted(set(samples.log[rows].tolist())), 2):
            ratio = _ratio(samples.where(rows & (samples.log == one)), samples.where(rows & (samples.log == other)))
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
        Complete: with verdicts and sources.
    held_workers, held_sizes : tuple of HeldOut
    verdicts : tuple of CalibrationVerdict
    """

    fit: Fit
    profile: Profile
    held_workers: tuple[HeldOut, ...]
    held_sizes: tuple[HeldOut, ...]
    verdicts: tuple[CalibrationVerdict, ...]

    def errors_of_log(self, log: int) -> Errors:
        """Return the errors of the links alone in one log."""
        return _errors(np.abs(self.fit.errors_of_links()[self.fit.samples.log == log]))

    def errors_by_band(self) -> list[tuple[float, float, Errors]]:
        """Return the errors of the links alone by bands of message size: from, to, errors; no empty band."""
        sizes, errors = self.fit.samples.message_bytes, np.abs(self.fit.errors_of_links())
        found = []
        for low, high in zip((0.0, *_BANDS), _BANDS, strict=False):
            rows = (sizes > low) & (sizes <= high)
            if rows.any():
                found.append((low, high, _errors(errors[rows])))
        return found

    def errors_of_curves(self) -> Errors:
        """Return the errors of what is predicted for the settings that were measured."""
        return _errors(np.abs(self.fit.errors()))

    def held_out_sizes(self) -> Errors | None:
        """Return the errors of all held-out sizes together."""
        if not self.held_sizes:
            return None
        return _errors(np.abs(np.expm1(np.concatenate([each.errors for each in self.held_sizes]))))


def _errors(errors: FloatArray) -> Errors:
    return Errors(len(errors), float(np.median(errors)), float(errors.max()))


def calibrate(
    samples: Samples,
    collective: str = "all_reduce",
    *,
    libraries: Sequence[str] = UNNAMED,
    algorithms: Sequence[str] = (),
    sources: Sequence[SourceFile] = (),
    more: Sequence[CalibrationVerdict] = (),
) -> Calibration:
    """Calibrate: fit, cross-validate, judge.

    Parameters
    ----------
    samples : Samples
    collective : str
    libraries : sequence of str
        Who may have run it.
    algorithms : sequence of str
        Those that were forced; none if the library chose.
    sources : sequence of SourceFile
        The files, to be named in the profile.
    more : sequence of CalibrationVerdict
        Findings about the files themselves.
    """
    whole = fit(samples, collective, libraries=libraries, algorithms=algorithms)
    workers, sizes = hold_out_workers(whole), hold_out_sizes(whole)
    found = (*verdicts(whole, workers), *more)
    profile = replace(
        whole.profile,
        verdicts=tuple(f"{verdict.name}: {verdict.text}" for verdict in found),
        sources=tuple(sources),
    )
    return Calibration(whole, profile, tuple(workers), tuple(sizes), found)
