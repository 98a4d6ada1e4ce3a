"""A profile as links that a simulated ring can run on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.models import (
    BETWEEN,
    BETWEEN_BYTES,
    HOP,
    INSIDE_BYTES,
    LAUNCH,
    PASSES,
    Setting,
    at,
    design,
)
from ringnet.analysis.calibration.prediction import (
    changeovers,
    regime_times,
    regime_weights,
)
from ringnet.analysis.calibration.profile import Profile

#: Where one regime takes over from another, the curve of a prediction is followed by so many lines for each
#: doubling of the size; they touch it at every power of two, and leave it by a few parts in a thousand between.
_LINES_PER_DOUBLING = 8
_TINY = 1e-6


class LinkPiece(NamedTuple):
    """What a link does with transfers of up to ``up_to_bytes``; infinite for the last piece."""

    up_to_bytes: float
    latency_s: float
    bandwidth_Bps: float


class HostPiece(NamedTuple):
    """The same of a hop inside a host and of one between hosts."""

    inside: LinkPiece
    between: LinkPiece


class _Line(NamedTuple):
    """The time of a collective over some sizes of the message: ``fixed_s + per_byte_s x message``."""

    up_to_bytes: float
    fixed_s: float
    per_byte_s: float
    regime: int | None


def ring_link(profile: Profile, setting: Setting) -> tuple[LinkPiece, ...]:
    """Return the link on which a uniform ring takes the times of a profile.

    Parameters
    ----------
    profile : Profile
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
    return tuple(_as_hop(line, profile, setting) for line in _lines(profile, setting))


def host_links(profile: Profile, setting: Setting) -> tuple[HostPiece, ...]:
    """Return the links of a ring over hosts, inside them and between.

    Where the machine ran as a ring they differ as its hops were found to, the launch spread over all. Where it ran as
    a tree, or may have, all hops are alike: a ring as fast as what was measured.
    """
    found = []
    for line in _lines(profile, setting):
        alike = _as_hop(line, profile, setting)
        is_ring = line.regime is not None and profile.regimes[line.regime].model == "ring"
        found.append(
            _apart(alike, profile, setting, line.regime or 0) if is_ring else HostPiece(alike, alike)
        )
    return tuple(found)


def n_hops(profile: Profile, setting: Setting) -> float:
    """Return the hops of a ring, over which the launch is spread: N-1 for each time the data goes round."""
    return PASSES[profile.collective] * (setting.n_workers - 1)


def _as_hop(line: _Line, profile: Profile, setting: Setting) -> LinkPiece:
    n, hops = setting.n_workers, n_hops(profile, setting)
    bandwidth_Bps = hops / (n * line.per_byte_s) if line.per_byte_s > 0 else math.inf
    return LinkPiece(line.up_to_bytes / n, line.fixed_s / hops, bandwidth_Bps)


def _apart(alike: LinkPiece, profile: Profile, setting: Setting, regime: int) -> HostPiece:
    parameters = profile.regimes[regime].parameters
    latency_s = float(parameters[HOP] + parameters[LAUNCH] / n_hops(profile, setting))
    inside, between = (
        1 / per_byte if per_byte > 0 else alike.bandwidth_Bps
        for per_byte in parameters[[INSIDE_BYTES, BETWEEN_BYTES]].tolist()
    )
    return HostPiece(
        LinkPiece(alike.up_to_bytes, latency_s, inside),
        LinkPiece(alike.up_to_bytes, latency_s + float(parameters[BETWEEN]), between),
    )


def _lines(profile: Profile, setting: Setting) -> Iterator[_Line]:
    """Yield lines that follow the predicted time, by rising size: one where a single regime is at work.

    Only the last may cost nothing per byte: a link that lets small transfers through for nothing has no bound.
    """
    edges = sorted({edge for both in changeovers(profile, setting) for edge in both})
    fastest = min(
        filter(None, (_line_of(profile, setting, k).per_byte_s for k in range(len(profile.regimes)))),
        default=0.0,
    )
    for low, high in pairwise([-math.inf, *edges, math.inf]):
        middle = np.array([math.exp(_middle(low, high))])
        weights = regime_weights(profile, setting, middle)[:, 0]
        line = _line_of(profile, setting, int(weights.argmax()))
        if weights.max() == 1.0 and (line.per_byte_s > 0 or math.isinf(high)):
            yield line._replace(up_to_bytes=math.exp(high) if high < math.inf else high)
        else:
            curve = _Curve(profile, setting, max(low, 0.0), high, fastest)
            yield from curve.tangents(_LINES_PER_DOUBLING if weights.max() < 1.0 else 1)


def _middle(low: float, high: float) -> float:
    if math.isinf(low):
        return 0.0 if math.isinf(high) else high - 1.0
    return low + 1.0 if math.isinf(high) else (low + high) / 2


def _line_of(profile: Profile, setting: Setting, regime: int) -> _Line:
    row = at(setting, np.array([1.0]))
    found = profile.regimes[regime]
    terms = design(found.model, row, PASSES[profile.collective])[0] * found.parameters
    fixed_s = float(terms[[LAUNCH, HOP, BETWEEN]].sum())
    return _Line(math.inf, fixed_s, float(terms[[INSIDE_BYTES, BETWEEN_BYTES]].sum()), regime)


class _Curve(NamedTuple):
    """The predicted time between two sizes, by their logarithms, and what a byte costs at least."""

    profile: Profile
    setting: Setting
    low: float
    high: float
    least_per_byte_s: float

    def tangents(self, per_doubling: int) -> Iterator[_Line]:
        """Yield lines that touch it at powers of two."""
        step = math.log(2) / per_doubling
        for knot in range(math.floor(self.low / step), math.ceil(self.high / step) + 1):
            up_to = min((knot + 0.5) * step, self.high)
            if up_to > self.low and (knot - 0.5) * step < self.high:
                yield self._tangent(min(max(knot * step, self.low), self.high), up_to)

    def _tangent(self, log_bytes: float, up_to: float) -> _Line:
        around = np.clip(log_bytes + np.array([-_TINY, 0.0, _TINY]), self.low, self.high)
        times, weights = (
            f(self.profile, self.setting, np.exp(around)) for f in (regime_times, regime_weights)
        )
        logs = (np.log(times) * weights).sum(axis=0)
        time_s, n_bytes = math.exp(float(logs[1])), math.exp(log_bytes)
        growth = float((logs[2] - logs[0]) / (around[2] - around[0]))
        # Neither part of a link is negative: a steeper curve goes through zero, a falling one is as good as flat.
        growth = min(max(growth, self.least_per_byte_s * n_bytes / time_s), 1.0)
        return _Line(math.exp(up_to), time_s * (1 - growth), time_s * growth / n_bytes, None)
