"""Links as they were measured: ``link: {file: profile.yaml}``, what `ringnet calibrate` wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ringnet.analysis.calibration import HostPiece, LinkPiece, Profile, Setting, host_links, ring_link
from ringnet.documents.document import Document, Mark, Path, path_text
from ringnet.errors import Fault, InputError, NetworkError
from ringnet.formats.profiles import read_profile
from ringnet.networks import Network, Piece
from ringnet.scenario.checks.finding import Finding, unread
from ringnet.scenario.files.network_file import FoundFile
from ringnet.scenario.keys.kinds import quantity_text
from ringnet.scenario.keys.links import LinkFile
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import inside_of, workers_per_host

if TYPE_CHECKING:
    from ringnet.scenario.files.folder import ScenarioFolder
    from ringnet.scenario.keys.model import Keys

#: Where a profile may stand: for the links of the network, and for those inside hosts.
NETWORK: Path = ("network", "link")
INSIDE: Path = ("network", "inside", "link")
PATHS: tuple[Path, ...] = (NETWORK, INSIDE)
#: Bandwidth and latency that a topology is built with in place of measured ones, far below any real ones: they show
#: which links are measured ones, and by what factor a link is faster than its neighbours.
_LABEL_BPS, _REAL_BPS = 2.0**-20, 1.0
_LABELS_S: dict[Path, float] = {NETWORK: 2.0**-100, INSIDE: 2.0**-101}

Pieces: TypeAlias = Mapping[int, tuple[Piece, ...]]


def with_link_profiles(document: Document, place: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the profiles that it names found, and what is wrong with them."""
    faults: list[Fault] = []
    for path in PATHS:
        if isinstance(document.get(path), dict):
            document, wrong = _with_profile(document, path, place)
            faults += wrong
    return document, faults


def _with_profile(document: Document, path: Path, place: ScenarioFolder) -> tuple[Document, list[Fault]]:
    name, key = document.get((*path, "file")), (*path, "file")
    given = {
        (*path[:-1], "bandwidth"): quantity_text(_LABEL_BPS, "bytes_per_second"),
        (*path[:-1], "latency"): quantity_text(_LABELS_S[path], "seconds"),
    }
    missing = {one: text for one, text in given.items() if not document.has(one)}
    broken = replace(document, broken=document.broken | missing.keys())
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return broken, []
    try:
        found = FoundFile.of(name, place.find(name))
        _read(found.stamp)
    except InputError as error:
        faults = [_told(fault, name, key, document) for fault in error.faults]
        return replace(broken, broken=broken.broken | {key}), faults
    at: dict[Path, Mark] = {(): replace(document.mark(key), path=path_text(key))}
    document = document.put(key, found, {(): document.mark(key)})
    for one, text in missing.items():
        document = document.put(one, text, at)
    return document, []


@lru_cache(maxsize=64)
def _read(stamp: tuple[str, int, int]) -> Profile:
    """Read a profile; time and size only say when to read it again."""
    return read_profile(stamp[0])


def _told(fault: Fault, name: str, key: Path, document: Document) -> Fault:
    """Tell the fault of a profile at the key that names it, with the profile's own line and path."""
    where = f"{name}:{fault.line}" if fault.line else name
    message = ": ".join(filter(None, (where, fault.path, fault.message)))
    return document.fault(key, message, value=fault.value, right=fault.right)


def profile_of(keys: NetworkKeys, path: Path) -> Profile | None:
    """Return the profile that stands at ``path``; None where there is none."""
    around = keys if path == NETWORK else inside_of(keys)
    link = around.link if around else None
    if around is None or not isinstance(link, LinkFile) or not isinstance(link.file, FoundFile):
        return None
    # Where both stand beside it nothing is left to say, which `check_link_profiles` finds.
    is_read = around.bandwidth_Bps < _REAL_BPS or around.latency_s == _LABELS_S[path]
    return _read(link.file.stamp) if is_read else None


def link_files(keys: NetworkKeys) -> list[str]:
    """Return the names of the profiles, as the scenario has them."""
    inside = inside_of(keys)
    links = (keys.link, inside.link if inside else None)
    return [link.file for link in links if isinstance(link, LinkFile)]


def check_link_profiles(keys: Keys) -> Iterator[Finding]:
    """Find keys that a profile leaves nothing to say for."""
    network = keys.network
    inside = inside_of(network)
    for path, link in ((NETWORK, network.link), (INSIDE, inside.link if inside else None)):
        names = (
            ["bandwidth", "latency", "regimes", "profile"] if path == NETWORK else ["bandwidth", "latency"]
        )
        for name in names if isinstance(link, LinkFile) and network.file is None else ():
            key = (*path[:-1], name)
            yield unread(key, "the profile says what the links do", path, right="links: exceptions")


class _Way(NamedTuple):
    """Links of a hop between hosts: those inside them, and those that are measured ones."""

    inside: int
    outside: int


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

    def behaviour(self, changed: Network) -> dict[int, tuple[Piece, ...]]:
        """Return the pieces where some links were changed since: a change holds for transfers of every size."""
        before, bandwidth_Bps, latency_s = self.network, changed.bandwidth_Bps, changed.latency_s
        anew = (bandwidth_Bps != before.bandwidth_Bps, latency_s != before.latency_s)
        found = dict(self.pieces)
        for link in np.flatnonzero(anew[0] | anew[1]).tolist():
            if link in found:
                rate = float(bandwidth_Bps[link]) if anew[0][link] else None
                delay = float(latency_s[link]) if anew[1][link] else None
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
    if per_host is None:
        return profile.setting_for(n_workers)
    return Setting(n_workers, -(-n_workers // per_host) if profile.knows_nodes else 0)


def measured(network: Network, keys: Keys) -> Measured:
    """Return a network that was built with labels, with measured links in their place.

    Raises
    ------
    NetworkError
        At ``link``: no link takes the profile, or it has no bandwidth.
    """
    inside, outside = (profile_of(keys.network, path) for path in (INSIDE, NETWORK))
    if keys.network.file is not None or (inside is None and outside is None):
        return Measured(network)
    host, way = _ways(network, keys)
    inner: tuple[LinkPiece, ...] = ()
    found = Measured(network)
    if inside is not None:
        pieces = _pieces_of(inside, keys)
        inner = tuple(_spread(piece.inside, 0.0, host) for piece in pieces)
        found = _placed(found, _LABELS_S[INSIDE], inner, "inside.link")
    if outside is not None:
        within = inside_of(keys.network)
        own_s = within.latency_s if within and not inner else 0.0
        hops = [piece.between for piece in _pieces_of(outside, keys)]
        taken_s = [way.inside * (_at(inner, hop.up_to_bytes).latency_s if inner else own_s) for hop in hops]
        outer = tuple(_spread(hop, taken, way.outside) for hop, taken in zip(hops, taken_s, strict=True))
        late = any(taken > hop.latency_s * (1 + 1e-9) for hop, taken in zip(hops, taken_s, strict=True))
        found = replace(_placed(found, _LABELS_S[NETWORK], outer, "link"), too_slow_inside=late)
    return found


def _ways(network: Network, keys: Keys) -> tuple[int, _Way]:
    """Return the links of a hop inside a host, and those of a hop between hosts; without hosts, from place 0 to 1."""
    per_host = workers_per_host(keys.network) or 1
    host = len(network.route(0, 1)) if 1 < per_host <= network.n_workers else 0
    if per_host >= network.n_workers:  # nobody to go to
        return host, _Way(0, 1)
    route = [*network.route(per_host - 1, per_host)]
    outside = int((network.latency_s[route] == _LABELS_S[NETWORK]).sum())
    return host, _Way(len(route) - outside, max(outside, 1))


def _pieces_of(profile: Profile, keys: Keys) -> tuple[HostPiece, ...]:
    setting = setting_of(keys, profile)
    if workers_per_host(keys.network) is not None:
        return host_links(profile, setting)
    return tuple(HostPiece(piece, piece) for piece in ring_link(profile, setting))


def _at(pieces: tuple[LinkPiece, ...], up_to_bytes: float) -> LinkPiece:
    return next(piece for piece in pieces if up_to_bytes <= piece.up_to_bytes)


def _spread(hop: LinkPiece, taken_s: float, n_links: int) -> LinkPiece:
    """Return each of the links of a hop, of whose latency others take some."""
    latency_s = max(hop.latency_s - taken_s, 0.0) / n_links if n_links else 0.0
    return LinkPiece(hop.up_to_bytes, latency_s, hop.bandwidth_Bps)


def _placed(found: Measured, label_s: float, each: tuple[LinkPiece, ...], path: str) -> Measured:
    """Put measured links where the labels are."""
    network = found.network
    own_rate = network.bandwidth_Bps >= _REAL_BPS
    own_delay = ~np.isin(network.latency_s, [*_LABELS_S.values()])
    links = (network.latency_s == label_s) | (own_delay & ~own_rate)
    if not links.any() and network.n_links:
        raise NetworkError(Fault("no link of this network takes it", path, right="the key left out"))
    if math.isinf(each[-1].bandwidth_Bps):
        message = "the profile knows no bandwidth: it was made from small messages only"
        raise NetworkError(Fault(message, path, right="a profile of larger messages too"))
    bandwidth_Bps, latency_s = network.bandwidth_Bps.copy(), network.latency_s.copy()
    pieces, made = dict(found.pieces), lru_cache(_made)
    for link in np.flatnonzero(links).tolist():
        whole = made(each, float(bandwidth_Bps[link]), float(latency_s[link]))
        bandwidth_Bps[link], latency_s[link] = whole[-1].bandwidth_Bps, whole[-1].latency_s
        if len(whole) > 1:
            pieces[link] = whole[:-1]
    return Measured(replace(network, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s), pieces)


def _made(each: tuple[LinkPiece, ...], bandwidth_Bps: float, latency_s: float) -> tuple[Piece, ...]:
    """Return the pieces of a link as it was built; a cable that has one number of its own keeps it."""
    factor = bandwidth_Bps / _LABEL_BPS if bandwidth_Bps < _REAL_BPS else None
    return tuple(
        Piece(
            piece.up_to_bytes,
            bandwidth_Bps if factor is None else factor * piece.bandwidth_Bps,
            piece.latency_s if latency_s in _LABELS_S.values() else latency_s,
        )
        for piece in each
    )
