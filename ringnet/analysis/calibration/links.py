"""A profile as links that a simulated ring can run on.

With the launch, which workers take once, the links take the predicted time for every size. Along a ring what is left
is spread over all hops alike; over hosts, hops inside and between are in proportion to each other as the machine's
links are, and their common factor is such that a ring over hosts takes the predicted time. Where the machine runs a
ring, that factor is about one, and the links are the machine's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.machine import (
    BETWEEN,
    BETWEEN_LARGE,
    BETWEEN_MEDIUM,
    INSIDE,
    INSIDE_LARGE,
    INSIDE_MEDIUM,
    INSIDE_RATE,
    RAIL_RATE,
)
from ringnet.analysis.calibration.prediction import predict
from ringnet.analysis.calibration.profile import Profile
from ringnet.analysis.calibration.samples import PASSES, Setting, at

#: Lines follow the predicted times to so much of them, and touch them so often for each doubling at most.
_CLOSE = 0.002
_KNOTS_PER_DOUBLING = 4
#: Lines go on for so many doublings beyond what was measured.
_DOUBLINGS_BEYOND = 8
#: An interval is halved so often.
_HALVINGS = 40


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
    """The time of a collective over some sizes of the message: ``launch_s + fixed_s + per_byte_s x message``.

    All three are as the machine's are to each other, by its fastest way at the last of the sizes.
    """

    up_to_bytes: float
    launch_s: float
    fixed_s: float
    per_byte_s: float


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
        By rising size of one transfer, a message over N. What a tree takes is spread over the hops: the ring on these
        links is then as fast as what was measured, not made as it was.

    Notes
    -----
    A ring takes ``launch + hops x (latency + message / N / bandwidth)``, hops = 2(N-1); a line is
    ``launch + a + b x message``. So ``latency = a / hops`` and ``bandwidth = hops / (N b)``.
    """
    n, hops = setting.n_workers, n_hops(profile, setting)
    return tuple(
        LinkPiece(line.up_to_bytes / n, line.fixed_s / hops, hops / (n * line.per_byte_s))
        for line in _lines(profile, setting)
    )


def ring_launch_s(profile: Profile, setting: Setting, message_bytes: float) -> float:
    """Return what a collective of that size takes once, beside the links of `ring_link` and `host_links`, in seconds.

    It is that of the algorithm and protocol that is the fastest by the machine's links, by as much more or less as the
    predicted time is. Where one protocol takes over from another no line follows the time: the launch makes up for it,
    up to twice what it is and down to nothing.
    """
    line = next(line for line in _lines(profile, setting) if message_bytes <= line.up_to_bytes)
    time_s = float(predict(profile, setting, np.array([message_bytes], dtype=float)).time_s[0])
    return min(max(time_s - line.fixed_s - line.per_byte_s * message_bytes, 0.0), 2 * line.launch_s)


def host_links(profile: Profile, setting: Setting) -> tuple[HostPiece, ...]:
    """Return the links of a ring over hosts, inside them and between, on which it takes the times of a profile.

    What leaves a host has all its rails together: a scenario with several cards gives each its part.
    """
    alike = ring_link(profile, setting)
    if setting.n_nodes <= 1 or setting.per_node <= 1:
        return tuple(HostPiece(piece, piece) for piece in alike)
    most_Bps = alike[-1].bandwidth_Bps
    return tuple(_apart(piece, size, profile, setting, most_Bps) for piece, size in _in_parts(alike))


def _in_parts(pieces: Sequence[LinkPiece]) -> Iterator[tuple[LinkPiece, float]]:
    """Yield pieces of half a doubling each, with a size in the middle: over hosts a line holds no further than that."""
    low = pieces[0].up_to_bytes / 2
    for piece in pieces[:-1]:
        while low < piece.up_to_bytes:
            high = min(math.sqrt(2) * low, piece.up_to_bytes)
            yield piece._replace(up_to_bytes=high), math.sqrt(low * high)
            low = high
    yield pieces[-1], 4 * low


def n_hops(profile: Profile, setting: Setting) -> float:
    """Return the hops of a ring: N-1 for each time the data goes round."""
    return PASSES[profile.collective] * (setting.n_workers - 1)


def _apart(alike: LinkPiece, n_bytes: float, profile: Profile, setting: Setting, most_Bps: float) -> HostPiece:
    """Return hops inside and between in the proportions of the machine's; a ring takes what one over equals does.

    Latencies add up along the ring: equal ones are their mean. Of bytes the slower links set the pace, while chunks
    wait for them no latency counts: their bandwidths are such that ``n_bytes`` take what they should.
    """
    values, passes = profile.parameters, PASSES[profile.collective]
    way = predict(profile, setting, np.array([max(n_bytes * setting.n_workers, 1.0)])).way[0]
    protocol = profile.family.ways[int(way)].protocol
    inside_s, between_s = values[INSIDE], values[BETWEEN]
    if protocol:
        inside_s *= values[(INSIDE_MEDIUM, INSIDE_LARGE)[protocol - 1]]
        between_s *= values[(BETWEEN_MEDIUM, BETWEEN_LARGE)[protocol - 1]]
    rails = min(setting.per_node, profile.family.most_rails)
    share = min(values[RAIL_RATE] * rails / values[INSIDE_RATE], 1.0)
    hops = n_hops(profile, setting)
    nothing_s = _ring_over_hosts_s(min(inside_s, between_s), between_s, setting, passes)
    factor = hops * alike.latency_s / nothing_s
    inside_s, between_s = min(inside_s, between_s) * factor, between_s * factor
    wanted_s = hops * (alike.latency_s + n_bytes / alike.bandwidth_Bps)
    low, high = 0.0, 2 * hops  # seconds for each byte, by what they are on equal links
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        byte_s = middle * n_bytes / alike.bandwidth_Bps
        taken_s = _ring_over_hosts_s(inside_s, between_s, setting, passes, byte_s * share, byte_s)
        low, high = (middle, high) if taken_s < wanted_s else (low, middle)
    rate = min(alike.bandwidth_Bps / high, most_Bps)
    return HostPiece(
        LinkPiece(alike.up_to_bytes, inside_s, rate / share), LinkPiece(alike.up_to_bytes, between_s, rate)
    )


def _ring_over_hosts_s(
    inside_s: float,
    between_s: float,
    setting: Setting,
    passes: float,
    served_inside_s: float = 0.0,
    served_between_s: float = 0.0,
) -> float:
    """Return what a ring over hosts takes: the longer of a chunk's way along the ring, and of a slow link's work.

    A chunk crosses ``passes x (N-1)`` links in turn; the link between hosts serves as many, then the last goes on.
    """
    n, nodes = setting.n_workers, setting.n_nodes
    hops = passes * (n - 1)
    slow = min(math.ceil(hops * nodes / n), hops)
    along_s = slow * (between_s + served_between_s) + (hops - slow) * (inside_s + served_inside_s)
    return float(max(along_s, hops * served_between_s + between_s))


@lru_cache(maxsize=256)
def _lines(profile: Profile, setting: Setting) -> tuple[_Line, ...]:
    """Return lines that meet the predicted time where they end, by rising size: as few as are close to it."""
    first = math.log2(max(profile.smallest_bytes, 1))
    # So far that time is proportional to bytes.
    last = math.log2(profile.largest_bytes) + _DOUBLINGS_BEYOND
    each = _KNOTS_PER_DOUBLING
    # Powers of two, of which most that was measured is, are knots to the last bit: lines are exact where they end.
    sizes = np.exp2(np.arange(math.floor(first * each), math.ceil(last * each) + 1) / each)
    found = predict(profile, setting, sizes)
    times_s = found.time_s
    of_ways, nothing = (
        profile.family.times(profile.logs, at(setting, n_bytes))[found.way, np.arange(len(sizes))]
        for n_bytes in (sizes, np.zeros(len(sizes)))
    )
    factor = times_s / of_ways
    launches_s = factor * [profile.launch_s(way) for way in found.way.tolist()]
    # No size is faster by the byte than the largest: else a bound would hold for links that are nowhere.
    least_s = float(times_s[-1] - times_s[-2]) / float(sizes[-1] - sizes[-2])
    rest_s = times_s - launches_s
    per_byte_s = np.minimum(np.maximum(factor * (of_ways - nothing) / sizes, least_s), rest_s / sizes)
    fixed_s = rest_s - per_byte_s * sizes
    lines: list[_Line] = []
    stop = len(sizes) - 1
    while stop > 0:
        line = launches_s[stop] + fixed_s[stop] + per_byte_s[stop] * sizes[:stop]
        off = np.flatnonzero(np.abs(line / times_s[:stop] - 1) > _CLOSE)
        up_to_bytes = float(sizes[stop]) if lines else math.inf
        lines.append(_Line(up_to_bytes, float(launches_s[stop]), float(fixed_s[stop]), float(per_byte_s[stop])))
        stop = min(int(off[-1]), stop - 1) if len(off) else 0
    return tuple(reversed(lines))
