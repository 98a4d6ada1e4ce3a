"""A profile as links that a simulated ring can run on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.models import BETWEEN, HOP, LAUNCH, PASSES, design
from ringnet.analysis.calibration.profile import Profile
from ringnet.analysis.calibration.samples import Setting, at


class LinkPiece(NamedTuple):
    """What a link does with transfers of up to ``up_to_bytes``; infinite for the last piece."""

    up_to_bytes: float
    latency_s: float
    bandwidth_Bps: float


def ring_link(profile: Profile, setting: Setting) -> tuple[LinkPiece, ...]:
    """Return the link on which a uniform ring takes the times of a profile.

    Parameters
    ----------
    profile : Profile
        Of all-reduce.
    setting : Setting
        How many workers, on how many nodes.

    Returns
    -------
    tuple of LinkPiece
        By rising size of one transfer, a message over N. The launch is spread over the hops, and so is what a tree
        takes: the ring on these links is as fast as what was measured, not made as it was.

    Notes
    -----
    A ring takes ``hops x (latency + message / N / bandwidth)``, hops = 2(N-1); a regime takes ``a + b x message``. So
    ``latency = a / hops`` and ``bandwidth = hops / (N b)``.
    """
    n, row = setting.n_workers, at(setting, np.array([1.0]))
    passes = PASSES[profile.collective]
    hops = passes * (n - 1)
    pieces = []
    for regime, up_to in zip(profile.regimes, _ends(profile, setting), strict=True):
        terms = design(regime.model, row, passes)[0] * regime.parameters
        fixed = float(terms[[LAUNCH, HOP, BETWEEN]].sum())
        per_byte = float(terms.sum()) - fixed
        pieces.append(LinkPiece(up_to / n, fixed / hops, hops / (n * per_byte) if per_byte > 0 else math.inf))
    return tuple(pieces)


def _ends(profile: Profile, setting: Setting) -> list[float]:
    """Return up to how large a message each regime reaches."""
    ends = []
    for regime, law in zip(profile.regimes, profile.laws(), strict=False):
        seen = next((end for end in regime.ends if end.setting == setting and end.is_seen), None)
        ends.append(math.exp(seen.middle_log if seen else law.at(setting.n_workers)))
    return [*np.maximum.accumulate(ends).tolist(), math.inf]
