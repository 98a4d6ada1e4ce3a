"""Predictions of other N beside simpler ones: the same bus bandwidth, a line in log2 N, a ring of one latency and rate.

The times are those of ``tests/data/series.csv``, which names their sources. From one N of a machine each other N is
predicted; from the smallest two, three, ... each that is larger. Losing to a simpler prediction is to be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ringnet.analysis.calibration import Profile, Samples, Setting, predict
from ringnet.analysis.calibration.fit import fit
from ringnet.analysis.calibration.machine import UNNAMED
from ringnet.analysis.calibration.prediction import log_line
from ringnet.analysis.calibration.profile import Curve

SERIES = Path(__file__).parent / "data" / "series.csv"


class Machine(NamedTuple):
    """Measured times, and who ran the collective."""

    samples: Samples
    libraries: tuple[str, ...]


class Score(NamedTuple):
    """Relative errors of one setting that was predicted, by each method, and what is to be said of the range."""

    ringnet: float
    same_busbw: float
    line: float
    alpha_beta: float
    covered: float
    width: float
    times_largest: float


@cache
def machines() -> dict[str, Machine]:
    """Return every machine of the file, by name."""
    table = pd.read_csv(SERIES, comment="#", keep_default_na=False)
    found = {}
    for name, rows in table.groupby("machine", sort=False):
        columns = {key: rows[key].to_numpy() for key in ("n_workers", "n_nodes", "message_bytes", "time_us")}
        samples = Samples(
            columns["n_workers"],
            columns["n_nodes"],
            columns["message_bytes"].astype(float),
            columns["time_us"] / 1e6,
            np.zeros(len(rows), dtype=np.int64),
            (name,),
        )
        library = rows["library"].iloc[0]
        found[name] = Machine(samples, (library,) if library else UNNAMED)
    return found


@cache
def profile_of(machine: str, chosen: tuple[Setting, ...]) -> Profile:
    """Return a profile of some settings of a machine."""
    return fit(samples_of(machine, chosen), libraries=machines()[machine].libraries).profile


def samples_of(machine: str, chosen: tuple[Setting, ...]) -> Samples:
    samples = machines()[machine].samples
    return samples.where(np.any([samples.of(setting) for setting in chosen], axis=0))


def from_one(machine: str) -> Iterator[Score]:
    """Yield how well each N is predicted from each other."""
    for known, wanted in permutations(machines()[machine].samples.settings, 2):
        yield score(machine, (known,), wanted)


def from_several(machine: str) -> Iterator[Score]:
    """Yield how well each N is predicted from the smallest two, three, ... below it."""
    settings = machines()[machine].samples.settings
    for count in range(2, len(settings)):
        for wanted in settings[count:]:
            yield score(machine, settings[:count], wanted)


@cache
def score(machine: str, known: tuple[Setting, ...], wanted: Setting) -> Score:
    """Return how far off every method is, the median over sizes."""
    truth, train = samples_of(machine, (wanted,)), samples_of(machine, known)
    profile = profile_of(machine, known)
    guess = predict(profile, wanted, truth.message_bytes)
    others = (
        same_busbw(profile.curves, wanted, truth),
        line(profile.curves, wanted, truth),
        alpha_beta(train, truth),
    )
    errors = [float(np.median(np.abs(times / truth.time_s - 1))) for times in (guess.time_s, *others)]
    inside = (truth.time_s >= guess.low_s) & (truth.time_s <= guess.high_s)
    width = float(np.median(guess.high_s / guess.low_s))
    return Score(*errors, float(inside.mean()), width, wanted.n_workers / max(one.n_workers for one in known))


def same_busbw(curves: tuple[Curve, ...], wanted: Setting, truth: Samples) -> np.ndarray:
    """Return the times at the bus bandwidth of the nearest N."""
    near = min(curves, key=lambda curve: abs(np.log2(curve.setting.n_workers / wanted.n_workers)))
    moved = [(setting.n_workers - 1) / setting.n_workers for setting in (wanted, near.setting)]
    return np.exp(near.log_time(np.log(truth.message_bytes))) * moved[0] / moved[1]


def line(curves: tuple[Curve, ...], wanted: Setting, truth: Samples) -> np.ndarray:
    """Return the times on a line in log2 N for each size; of one N, its times."""
    sizes = np.log(truth.message_bytes)
    if len({curve.setting.n_workers for curve in curves}) == 1:
        return np.exp(curves[0].log_time(sizes))
    return np.exp(log_line(curves, wanted, sizes))


def alpha_beta(train: Samples, truth: Samples) -> np.ndarray:
    """Return the times of a ring with one latency and one bandwidth, fitted to relative errors."""

    def columns(rows: Samples) -> np.ndarray:
        n = rows.n_workers.astype(float)
        return np.stack([2 * (n - 1), 2 * (n - 1) / n * rows.message_bytes], axis=1)

    relative = columns(train) / train.time_s[:, None]
    scale = np.maximum(np.linalg.norm(relative, axis=0), 1e-300)
    return columns(truth) @ (nnls(relative / scale, np.ones(len(train)))[0] / scale)
