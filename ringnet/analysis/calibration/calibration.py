"""The whole of a calibration: the fit, what held-out data says of it, verdicts, and the profile to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.fit import Fit, fit
from ringnet.analysis.calibration.models import MODELS
from ringnet.analysis.calibration.profile import Profile, Source
from ringnet.analysis.calibration.samples import Samples
from ringnet.analysis.calibration.validation import HeldOut, drift_of, hold_out_sizes, hold_out_workers
from ringnet.analysis.calibration.verdict import Verdict, verdicts

_KIB, _MIB = 2.0**10, 2.0**20
#: Where the bands of the table of errors end, in bytes of the message.
_BANDS = (_KIB, 64 * _KIB, _MIB, 64 * _MIB, float("inf"))


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
    verdicts : tuple of Verdict
    """

    fit: Fit
    profile: Profile
    held_workers: tuple[HeldOut, ...]
    held_sizes: tuple[HeldOut, ...]
    verdicts: tuple[Verdict, ...]

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
    sources: Sequence[Source] = (),
    more: Sequence[Verdict] = (),
) -> Calibration:
    """Calibrate: fit, cross-validate, judge.

    Parameters
    ----------
    samples : Samples
    collective : str
    models : sequence of str
        What a regime may be.
    sources : sequence of Source
        The files, to be named in the profile.
    more : sequence of Verdict
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
