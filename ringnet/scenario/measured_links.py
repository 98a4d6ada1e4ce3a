"""Measured links in a network: what a profile says, spread over the links of each hop.

Calibration is imported where a scenario has such links: few have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks import LinkSource, Network, Piece
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.scenario.drawn import mean_of
from ringnet.scenario.files.links import INSIDE, NETWORK, profile_of
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.topology import cards_of, hosts_differ, workers_per_host

if TYPE_CHECKING:
    from ringnet.analysis.calibration import HostPiece, LinkPiece, Profile, Setting

Pieces: TypeAlias = Mapping[int, tuple[Piece, ...]]
#: Bandwidth and latency that a topology is built with where its links were measured: a bandwidth is then the factor by
#: which a link is faster than its neighbours.
STANDARD = (1.0, 0.0)


class _Way(NamedTuple):
    """Links of a hop between hosts: those inside them that may be measured, and those between that are.

    ``own_s`` is the latency of all those on the way that have one, to cards and between sockets among them.
    """

    inside: int
    outside: int
    own_s: float


@dataclass(frozen=True)
class Measured:
    """A network with measured links.

    Parameters
    ----------
    network : Network
        Its columns hold what links do with the largest transfers.
    pieces : mapping of int to tuple of Piece
        What they do with smaller ones.
    too_slow_inside : bool
        Whether the hops inside hosts, of which a way between hosts has some, take longer than was measured between.
    """

    network: Network
    pieces: Pieces = field(default_factory=dict)
    too_slow_inside: bool = False

    def pieces_of(self, changed: Network) -> dict[int, tuple[Piece, ...]]:
        """Return the pieces where some links were changed since: numbers of a link's own hold for every size."""
        own_rate = changed.sources.bandwidth == LinkSource.OWN
        own_delay = changed.sources.latency == LinkSource.OWN
        found = dict(self.pieces)
        for link in np.flatnonzero(own_rate | own_delay).tolist():
            if link in found:
                rate = float(changed.bandwidth_Bps[link]) if own_rate[link] else None
                delay = float(changed.latency_s[link]) if own_delay[link] else None
                found[link] = tuple(_changed(piece, rate, delay) for piece in found[link])
        return found


def _changed(piece: Piece, bandwidth_Bps: float | None, latency_s: float | None) -> Piece:
    return Piece(
        piece.up_to_bytes,
        piece.bandwidth_Bps if bandwidth_Bps is None else bandwidth_Bps,
        piece.latency_s if latency_s is None else latency_s,
    )


def setting_of(keys: Keys, profile: Profile) -> Setting:
    """Return as what a profile sees the workers: on the hosts of the network, or on nodes as full as in its logs."""
    n_workers, per_host = max(keys.workers, 2), workers_per_host(keys.network)
    found = profile.setting_for(n_workers)
    if per_host is None:
        return found
    return found._replace(n_nodes=-(-n_workers // per_host) if profile.knows_nodes else 0)


def launch_of(keys: Keys, message_bytes: int) -> float:
    """Return what a collective of that size takes once at each worker, in the mean: as is said, or as was measured."""
    profile = profile_of(keys.network, NETWORK) or profile_of(keys.network, INSIDE)
    if keys.worker.launch_s is not None or keys.network.file is not None or profile is None:
        return mean_of(keys.worker.launch_s)
    from ringnet.analysis.calibration import ring_launch_s  # noqa: PLC0415 -- as said above

    setting, each = setting_of(keys, profile), ITEMSIZES[keys.dtype]
    # Links know the largest chunk, of which all may be.
    return ring_launch_s(profile, setting, -(-message_bytes // (each * keys.workers)) * each * keys.workers)


def measured(network: Network, keys: Keys) -> Measured:
    """Return a network that was built with `STANDARD` numbers where links were measured, with the measured ones.

    Raises
    ------
    NetworkError
        At ``link``: no link takes the profile, or it has no bandwidth, or hosts differ in size.
    """
    inside, outside = (profile_of(keys.network, path) for path in (INSIDE, NETWORK))
    if keys.network.file is not None or (inside is None and outside is None):
        return Measured(network)
    if hosts_differ(keys.network):
        path = "link" if inside is None else "inside.link"
        raise NetworkError(Fault("hosts differ in size: a profile is of hosts alike", path, right="hosts alike"))
    host, way = _ways(network, keys)
    inner: tuple[LinkPiece, ...] = ()
    found = Measured(network)
    if inside is not None:
        pieces = _pieces_of(inside, keys)
        inner = tuple(_spread(piece.inside, 0.0, host) for piece in pieces)
        found = _placed(found, LinkSource.INSIDE, inner, "inside.link")
    if outside is not None:
        cards = cards_of(keys.network)  # each has its part of what all those of a host have together
        pieces_between = (piece.between for piece in _pieces_of(outside, keys))
        hops = [hop._replace(bandwidth_Bps=hop.bandwidth_Bps / cards) for hop in pieces_between]
        each_s = [_at(inner, hop.up_to_bytes).latency_s if inner else 0.0 for hop in hops]
        taken_s = [way.own_s + way.inside * measured_s for measured_s in each_s]
        outer = tuple(_spread(hop, taken, way.outside) for hop, taken in zip(hops, taken_s, strict=True))
        late = any(taken > hop.latency_s * (1 + 1e-9) for hop, taken in zip(hops, taken_s, strict=True))
        found = replace(_placed(found, LinkSource.RULE, outer, "link"), too_slow_inside=late)
    return found


def _ways(network: Network, keys: Keys) -> tuple[int, _Way]:
    """Return the links of a hop inside a host, and those of a hop between hosts; without hosts, from place 0 to 1."""
    per_host = workers_per_host(keys.network) or 1
    host = len(network.route(0, 1)) if 1 < per_host <= network.n_workers else 0
    if per_host >= network.n_workers:  # nobody to go to
        return host, _Way(0, 1, 0.0)
    route = [*network.route(per_host - 1, per_host)]
    sources = network.sources.latency[route]
    # Links that are measured were built with `STANDARD` numbers: without latency.
    own_s = float(network.latency_s[route][sources != LinkSource.RULE].sum())
    outside = int((sources == LinkSource.RULE).sum())
    return host, _Way(int((sources == LinkSource.INSIDE).sum()), max(outside, 1), own_s)


def _pieces_of(profile: Profile, keys: Keys) -> tuple[HostPiece, ...]:
    from ringnet.analysis.calibration import HostPiece, host_links, ring_link  # noqa: PLC0415 -- as said above

    setting = setting_of(keys, profile)
    if workers_per_host(keys.network) is not None:
        return host_links(profile, setting)
    return tuple(HostPiece(piece, piece) for piece in ring_link(profile, setting))


def _at(pieces: tuple[LinkPiece, ...], up_to_bytes: float) -> LinkPiece:
    return next(piece for piece in pieces if up_to_bytes <= piece.up_to_bytes)


def _spread(hop: LinkPiece, taken_s: float, n_links: int) -> LinkPiece:
    """Return each of the links of a hop, of whose latency others take some."""
    latency_s = max(hop.latency_s - taken_s, 0.0) / n_links if n_links else 0.0
    return hop._replace(latency_s=latency_s)


def _placed(found: Measured, source: LinkSource, each: tuple[LinkPiece, ...], path: str) -> Measured:
    """Put measured links in place of those whose numbers come from ``source``."""
    network, sources = found.network, found.network.sources
    multiples = (source, LinkSource.SCALED) if source == LinkSource.RULE else (source,)
    takes_rate, takes_delay = np.isin(sources.bandwidth, multiples), sources.latency == source
    links = takes_rate | takes_delay
    if not links.any() and network.n_links:
        raise NetworkError(Fault("no link of this network takes it", path, right="the key left out"))
    bandwidth_Bps, latency_s = network.bandwidth_Bps.copy(), network.latency_s.copy()
    pieces = dict(found.pieces)

    @lru_cache
    def made(rate: float, takes_rate: bool, delay: float | None) -> tuple[Piece, ...]:
        return tuple(
            Piece(
                piece.up_to_bytes,
                rate * piece.bandwidth_Bps if takes_rate else rate,
                piece.latency_s if delay is None else delay,
            )
            for piece in each
        )

    for link in np.flatnonzero(links).tolist():
        delay = None if takes_delay[link] else float(latency_s[link])
        whole = made(float(bandwidth_Bps[link]), bool(takes_rate[link]), delay)
        bandwidth_Bps[link], latency_s[link] = whole[-1].bandwidth_Bps, whole[-1].latency_s
        if len(whole) > 1:
            pieces[link] = whole[:-1]
    return Measured(replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s), pieces)
