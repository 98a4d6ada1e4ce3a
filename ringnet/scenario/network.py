"""The keys of the network to a `Network`: its shape, its links, its routes, and where the workers sit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from ringnet.array_types import BoolArray
from ringnet.chance import Draws, Scaled, stream
from ringnet.engines.events import Traffic
from ringnet.errors import Fault, NetworkError
from ringnet.networks import (
    TOPOLOGIES,
    Behaviour,
    ByChance,
    BySize,
    Cable,
    Inside,
    LinkChange,
    LinkNumbers,
    LinkSource,
    LinkSources,
    Network,
    OverTime,
    Packets,
    Piece,
    Window,
    best_order,
    change_links,
    change_nodes,
    ecmp,
    find_links,
    find_switches,
    interleaved,
    links_at,
    placed,
    with_routes,
)
from ringnet.networks.behaviour import ANY_SIZE, NEVER
from ringnet.scenario.drawn import OF_LINKS, distribution_of, drawn_values, mean_of
from ringnet.scenario.files.links import link_file
from ringnet.scenario.files.network_file import network_of, ring_order
from ringnet.scenario.keys.drawn import DrawnRate, DrawnSeconds
from ringnet.scenario.keys.jobs_and_traffic import TrafficKeys
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.links import ChangeList, LinkExceptionKeys, RegimeList
from ringnet.scenario.keys.model import COPYING, Keys
from ringnet.scenario.keys.network import NetworkKeys, OrderFile
from ringnet.scenario.keys.topology import BetweenKeys, CableKeys, InsideKeys, parameters_of
from ringnet.scenario.measured_links import STANDARD, Measured, measured
from ringnet.scenario.trouble import in_trouble


def n_places(keys: Keys) -> int:
    """Return the places for workers that the network has: as many as all jobs have workers, unless it says."""
    if keys.network.places is not None:
        return keys.network.places
    sizes = (job.n_workers for job in keys.jobs if isinstance(job.workers, int) or not job.follows)
    # Jobs that follow others are mostly at places that these have.
    named = (max(job.workers) + 1 for job in keys.jobs if isinstance(job.workers, tuple) and job.follows)
    return max(keys.workers + sum(sizes), *named, 1)


def shape(keys: NetworkKeys, places: int) -> Network:
    """Return the network as its topology has it; `NetworkError` for parameters that make none."""
    if isinstance(keys.file, FoundFile):
        return _of_file(keys.file, places)
    rule = STANDARD if link_file(keys) else (mean_of(keys.bandwidth_Bps), mean_of(keys.latency_s))
    return _of_topology(keys.topology, tuple(parameters_of(keys).items()), places, *rule)


def _build(
    topology: str, given: tuple[tuple[str, Any], ...], places: int, bandwidth_Bps: float, latency_s: float
) -> Network:
    parameters = {name: _plain(name, value) for name, value in given}
    return TOPOLOGIES[topology].build_bounded(places, bandwidth_Bps, latency_s, **parameters)


_of_file, _of_topology = lru_cache(maxsize=2)(network_of), lru_cache(maxsize=2)(_build)


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as the networks know it."""
    if isinstance(value, InsideKeys):
        own = STANDARD if link_file(value) else (value.bandwidth_Bps, value.latency_s)
        card, socket = (
            None if one is None else LinkNumbers(one.bandwidth_Bps, one.latency_s) for one in (value.card, value.socket)
        )
        return Inside(value.shape, *own, card=card, sockets=value.sockets, socket=socket)
    if isinstance(value, BetweenKeys):
        return partial(_between, value, name)
    if isinstance(value, tuple) and value and isinstance(value[0], CableKeys):
        return [Cable(one.start, one.end, one.bandwidth_Bps, one.latency_s, one.duplex) for one in value]
    return value


def _between(keys: BetweenKeys, name: str, places: int, bandwidth_Bps: float, latency_s: float) -> Network:
    with _faults_at(name):
        return _build(keys.topology, tuple(parameters_of(keys).items()), places, bandwidth_Bps, latency_s)


class Hardware(NamedTuple):
    """The network that all jobs share, whose workers are the places.

    ``too_slow_inside``: measured links inside hosts take longer than was measured for a whole way between hosts.
    """

    network: Network
    too_slow_inside: bool


def hardware(keys: Keys) -> Hardware:
    """Return the network that all jobs share, links and routes as the keys have them.

    Raises
    ------
    NetworkError
        The paths of its faults are relative to the key ``network``.
    """
    given = keys.network
    found = measured(shape(given, n_places(keys)), keys)
    network, as_the_rule = found.network, found.network.sources
    with _faults_at("links_of"):
        network = change_nodes(network, {node: _change(one) for node, one in given.links_of.items()})
    with _faults_at("links"):
        network = change_links(network, {link: _change(one) for link, one in given.links.items()})
        network = _with_behaviour(network, given, found)
        network = _with_chance(network, keys, as_the_rule)
    network = _with_routes(network, given)
    with _faults_at("reduction"):
        network = _with_reduction(network, keys)
    network = in_trouble(network, keys) if keys.trouble else network
    window = given.window
    network = replace(
        network,
        switching=given.switching,
        sharing=given.sharing,
        packets=None if given.packet is None else Packets(given.packet, given.header or 0),
        window=None
        if window is None
        else Window(bytes=window)
        if isinstance(window, int)
        else Window(transfers=window.transfers),
    )
    return Hardware(network, found.too_slow_inside)


#: Reductions that switches make, as NVLink SHARP and SHARP have them.
IN_SWITCHES = ("sum", "mean", "weighted-mean", "max", "min")


def _with_reduction(network: Network, keys: Keys) -> Network:
    """Return the network with the switches that reduce what this scenario reduces."""
    given = keys.network.reduction
    if given is None:
        return network
    if keys.network.file is not None and given.switches is None:
        message = "a file does not say which nodes are switches that reduce"
        raise NetworkError(Fault(message, "switches", right="switches: [h*/switch]"))
    found = find_switches(network, given.switches)
    adds = given.dtypes is None or keys.dtype in given.dtypes
    if keys.collective not in COPYING and not (adds and keys.reduce in IN_SWITCHES):
        return network
    return replace(network, reduce_Bps=dict.fromkeys(found, given.reduce_Bps))


def _change(exception: LinkExceptionKeys) -> LinkChange:
    numbers = exception.bandwidth_Bps, exception.latency_s
    return LinkChange(*(None if one is None else mean_of(one) for one in numbers))


@lru_cache(maxsize=64)
def _by_size(pieces: tuple[Piece, ...], bandwidth_Bps: float, latency_s: float) -> Behaviour:
    """Return what a link does that has other numbers for smaller transfers."""
    return BySize((*pieces, Piece(ANY_SIZE, bandwidth_Bps, latency_s)))


def _regimes(regimes: RegimeList, bandwidth_Bps: float, latency_s: float) -> Behaviour:
    pieces = tuple(Piece(one.up_to_bytes, one.bandwidth_Bps, one.latency_s) for one in regimes)
    return _by_size(pieces, bandwidth_Bps, latency_s)


def _profile(profile: ChangeList, bandwidth_Bps: float, latency_s: float) -> Behaviour:
    changes = tuple((one.at_s, one.bandwidth_Bps) for one in profile)
    return OverTime(bandwidth_Bps, latency_s, changes)


#: The keys that say what links do, and what each makes of a link's own bandwidth and latency. A link has one of them.
BEHAVIOURS: dict[str, Callable[[Any, float, float], Behaviour]] = {"regimes": _regimes, "profile": _profile}


def _with_behaviour(network: Network, given: NetworkKeys, found: Measured) -> Network:
    """Add what links do: by rule, by place, by name, each stronger than the one before."""

    def own(link: int) -> tuple[float, float]:
        return float(network.bandwidth_Bps[link]), float(network.latency_s[link])

    said: dict[str, dict[int, Behaviour]] = {key: {} for key in BEHAVIOURS}
    said["regimes"] = {link: _by_size(pieces, *own(link)) for link, pieces in found.pieces_of(network).items()}
    for links, settings in _behaving(network, given):
        for key, value in settings.behaviours().items():
            said[key] |= {link: BEHAVIOURS[key](value, *own(link)) for link in links}
    for one, other in combinations(said, 2):
        if both := said[one].keys() & said[other].keys():
            message = f"a link has {one} or a {other}, not both"
            raise NetworkError(Fault(message, value=network.names[min(both)], right=f"{one} or {other}"))
    behaviours = {link: behaviour for of_links in said.values() for link, behaviour in of_links.items()}
    return replace(network, behaviours=behaviours)


def _behaving(network: Network, given: NetworkKeys) -> Iterator[tuple[list[int], NetworkKeys | LinkExceptionKeys]]:
    if given.behaviours():
        yield network.sources.as_the_rule.nonzero()[0].tolist(), given
    behaving = {node: one for node, one in given.links_of.items() if one.behaviours()}
    for node, links in links_at(network, behaving).items() if behaving else ():
        yield links, behaving[node]
    found = find_links(network, given.links) if given.links else {}
    yield from ((links, given.links[name]) for name, links in found.items())


#: Where the numbers of links come from that follow a rule: the rule itself, or a multiple of it.
_RULED = (LinkSource.RULE, LinkSource.SCALED)


def _with_chance(network: Network, keys: Keys, sources: LinkSources) -> Network:
    """Let links draw what the keys say is drawn: by rule, by place, by name, each stronger than the one before.

    ``sources`` are those of the network without exceptions.
    """
    if not any(one.whose == "link" and not one.is_trouble for one in drawn_values(keys)):
        return network
    drawn = {key: _drawers(network, keys.network, key, np.isin(getattr(sources, key), _RULED)) for key in OF_LINKS}
    means = {key: getattr(network, field) for key, field in OF_LINKS.items()}
    behaviours = dict(network.behaviours)
    for link in sorted(set[int]().union(*drawn.values())):
        if link in behaviours:
            message = "a link has regimes or a profile, or draws its numbers, not both"
            raise NetworkError(Fault(message, value=network.names[link], right="one of them"))
        numbers = [
            _draws(drawn[key][link], keys.seed, network.names[link], key, float(mean[link]))
            if link in drawn[key]
            else float(mean[link])
            for key, mean in means.items()
        ]
        behaviours[link] = ByChance(*numbers)
    return replace(network, behaviours=behaviours)


def _drawers(network: Network, given: NetworkKeys, key: str, ruled: BoolArray) -> dict[int, DrawnSeconds | DrawnRate]:
    """Return, by link, how one of its numbers is drawn; what is plainly said of a link is not."""
    field, found = OF_LINKS[key], dict[int, DrawnSeconds | DrawnRate]()
    around: list[tuple[list[int], NetworkKeys | LinkExceptionKeys]] = [(ruled.nonzero()[0].tolist(), given)]
    for node, links in links_at(network, given.links_of).items() if given.links_of else ():
        around.append((links, given.links_of[node]))
    for name, links in find_links(network, given.links).items() if given.links else ():
        around.append((links, given.links[name]))
    for links, one in around:
        value = getattr(one, field)
        for link in links:
            if isinstance(value, DrawnSeconds | DrawnRate):
                found[link] = value
            elif value is not None:
                found.pop(link, None)
    return found


def _draws(keys: DrawnSeconds | DrawnRate, seed: int, link: str, key: str, mean: float) -> Draws:
    """Return what a link draws; that of a multiple of the rule is as many times what the rule says."""
    distribution = distribution_of(keys)
    if mean != distribution.mean:
        distribution = Scaled(mean / distribution.mean, distribution)
    whose = ("run",) if keys.per == "run" else ("link", link)
    return Draws(distribution, stream(seed, *whose, key), for_each=keys.per in (None, "transfer"))


def _with_routes(network: Network, given: NetworkKeys) -> Network:
    if given.routes == "ecmp":
        return ecmp(network, given.route_seed)
    if isinstance(given.routes, str):
        return network
    pairs = {_pair(key): links for key, links in given.routes.items()}
    with _faults_at("routes"):
        return with_routes(network, pairs)


def bursts(one: TrafficKeys, number: int, network: Network) -> list[Traffic]:
    """Return bursts as the engine has them; of traffic that is on and off, one row for each burst of a period.

    >>> from ringnet.networks.basic import switch
    >>> keys = {"from": 0, "to": 1, "burst": "1 MB", "rate": "1 GB/s", "on": "2 ms", "off": "3 ms"}
    >>> made = bursts(TrafficKeys.model_validate(keys), 1, switch(2, 50e9, 5e-7))
    >>> [(row.start_s, row.every_s) for row in made]
    [(0.0, 0.005), (0.001, 0.005)]
    """
    if one.links is None:
        links = network.route(int(one.start or 0), int(one.end or 0))
    else:
        numbers = {name: link for link, name in enumerate(network.names)}
        links = tuple(numbers[name] for name in one.links)
    name, stop_s = one.name or f"traffic {number}", NEVER if one.stop_s is None else one.stop_s
    if one.rate_Bps is None:
        return [Traffic(name, links, one.burst_bytes, one.begin_s)]
    gap_s = one.burst_bytes / one.rate_Bps
    if one.on_s is None or one.off_s is None:
        return [Traffic(name, links, one.burst_bytes, one.begin_s, gap_s, stop_s)]
    period_s, n_bursts = one.on_s + one.off_s, round(one.on_s / gap_s)
    return [
        Traffic(name, links, one.burst_bytes, one.begin_s + burst * gap_s, period_s, stop_s)
        for burst in range(n_bursts)
    ]


def _pair(key: str) -> tuple[int, int]:
    src, _, dst = key.partition("->")
    return int(src), int(dst)


def seats(keys: Keys, network: Network) -> list[tuple[int, ...]]:
    """Return the places of the scenario's workers, and then of each job's.

    Raises
    ------
    NetworkError
        There are too few places, or no groups to interleave over.
    """
    found = [_own_seats(keys, network)]
    for number, job in enumerate(keys.jobs):
        if isinstance(job.workers, tuple):
            found.append(job.workers)
            continue
        taken = {place for places in found for place in places}
        free = [place for place in range(network.n_workers) if place not in taken][: job.workers]
        if len(free) < job.workers:
            message = f"{job.workers} workers of job {number + 1} find {len(free)} places free"
            raise NetworkError(Fault(message, "places", right="more places"))
        found.append(tuple(free))
    return found


def _own_seats(keys: Keys, network: Network) -> tuple[int, ...]:
    if isinstance(keys.network.placement, tuple):
        return keys.network.placement
    if keys.workers > network.n_workers:
        message = f"{keys.workers} workers are more than the places"
        raise NetworkError(Fault(message, "places", right=f"at least {keys.workers}"))
    if keys.network.placement == "interleaved":
        with _faults_at("placement"):
            return tuple(interleaved(network, keys.workers))
    return tuple(range(keys.workers))


def seated(network: Network, places: tuple[int, ...], path: str) -> Network:
    """Return the network as the workers at some places see it; faults are told at ``path``."""
    if places == tuple(range(network.n_workers)):
        return network
    with _faults_at(path):
        return placed(network, places)


def ordered(keys: Keys, network: Network) -> Network:
    """Return the network with its workers in the order that the ring takes."""
    order = keys.network.order
    if isinstance(order, OrderFile):
        along = ring_order(keys.network, keys.algorithm_name)
        return network if along is None else placed(network, along)
    if order == "numbered":
        return network
    if order == "best":
        # What a link gives may depend on the size, or on when it is asked; an order is none for trouble.
        message_bytes = keys.message_bytes if network.behaviours and not keys.trouble else None
        key = as_tuples((keys.network, keys.workers, network.places, n_places(keys)))
        return placed(network, _best(_Known(key, network), message_bytes))
    with _faults_at("order"):
        return placed(network, [int(worker) for worker in order])


@dataclass(frozen=True)
class _Known:
    """A network, to be looked up by what it is made from."""

    key: Hashable
    network: Network = field(compare=False)


@lru_cache(maxsize=64)
def _best(wanted: _Known, message_bytes: int | None) -> list[int]:
    return best_order(wanted.network, message_bytes)


def as_tuples(value: Any) -> Hashable:
    """Return what a value holds as nested tuples: the same for equal values, and another for others."""
    if isinstance(value, BaseModel):
        return as_tuples(dict(value))
    if isinstance(value, dict):
        return tuple((key, as_tuples(one)) for key, one in value.items())
    return tuple(map(as_tuples, value)) if isinstance(value, tuple) else value


@contextmanager
def _faults_at(path: str) -> Iterator[None]:
    """Tell what is wrong inside at ``path``."""
    try:
        yield
    except NetworkError as error:
        raise NetworkError(
            *(replace(one, path=".".join(filter(None, (path, one.path)))) for one in error.faults)
        ) from error
