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
from ringnet.array_types import FloatArray

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
    """The time of a collective over some sizes of the message: ``launch_s + fixed_s + per_byte_s x message``."""

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

    It is that of the algorithm and protocol that is the fastest by the machine's links; where less was measured than
    their launch and hops take, it has its share of that.
    """
    return next(line.launch_s for line in _lines(profile, setting) if message_bytes <= line.up_to_bytes)


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
    """Return lines that follow the predicted time, by rising size, as few as are close to it, each of one way."""
    first = math.log2(max(profile.smallest_bytes, 1))
    # So far that time is proportional to bytes.
    last = math.log2(profile.largest_bytes) + _DOUBLINGS_BEYOND
    each = _KNOTS_PER_DOUBLING
    # Powers of two, of which most that was measured is, are knots to the last bit: lines are exact where they end.
    sizes = np.exp2(np.arange(math.floor(first * each), math.ceil(last * each) + 1) / each)
    found = predict(profile, setting, sizes)
    times, ways = found.time_s, found.way
    # No size is faster by the byte than the largest: else a bound would hold for links that are nowhere.
    least_s = float(times[-1] - times[-2]) / float(sizes[-1] - sizes[-2])
    nothing_s = profile.family.times(profile.logs, at(setting, np.zeros(1)))[:, 0]
    lines: list[_Line] = []
    start, first_of_way = 0, 0
    while start < len(sizes) - 1:
        way = int(ways[start + 1])
        first_of_way = first_of_way if lines and way == ways[start] else start + 1
        others = np.flatnonzero(ways[start + 1 :] != way)
        end = start + 1 + int(others[0]) if len(others) else len(sizes)
        # Of the least time of its way it has the share that it has of launch and hops: times are above it.
        launch_s = profile.launch_s(way) * min(1.0, float(times[first_of_way]) / float(nothing_s[way]))
        stop = _reach(sizes[:end], times, start, launch_s, least_s)
        fixed_s, per_byte_s = _through(sizes, times, start, stop, launch_s, least_s)
        is_last = stop == len(sizes) - 1
        lines.append(_Line(math.inf if is_last else float(sizes[stop]), launch_s, fixed_s, per_byte_s))
        start = stop
    return tuple(lines)


def _reach(sizes: FloatArray, times: FloatArray, start: int, launch_s: float, least_s: float) -> int:
    """Return up to which knot one line stays close to the times."""
    stop = start + 1
    while stop + 1 < len(sizes):
        fixed_s, per_byte_s = _through(sizes, times, start, stop + 1, launch_s, least_s)
        inner = slice(start, stop + 2)
        line = launch_s + fixed_s + per_byte_s * sizes[inner]
        if np.abs(line / times[inner] - 1).max() > _CLOSE:
            break
        stop += 1
    return stop


def _through(
    sizes: FloatArray, times: FloatArray, start: int, stop: int, launch_s: float, least_s: float
) -> tuple[float, float]:
    """Return a line without the launch from one knot to another: a byte takes ``least_s``, and no part is negative."""
    per_byte_s = (times[stop] - times[start]) / (sizes[stop] - sizes[start])
    rest_s = times[stop] - launch_s
    per_byte_s = min(max(per_byte_s, least_s), rest_s / sizes[stop])
    return float(rest_s - per_byte_s * sizes[stop]), float(per_byte_s)
