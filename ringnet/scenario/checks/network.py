"""Keys of the network, of jobs and of other traffic that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import combinations

from ringnet.documents.document import Path, in_flow
from ringnet.errors import NetworkError, closest, some
from ringnet.networks import TOPOLOGIES, Network, group_names, links_at
from ringnet.networks.network import WINDOW_SLOTS
from ringnet.scenario.checks.drawn import is_right
from ringnet.scenario.checks.mistake import Mistake, no_such_worker, unread
from ringnet.scenario.drawn import drawn_values
from ringnet.scenario.files.links import INSIDE, NETWORK, link_files
from ringnet.scenario.files.network_file import NETWORK_FILE, OF_CHANNELS, ORDER_FILE, reading_of
from ringnet.scenario.keys.base import MOST_WORKERS
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.links import BEHAVIOUR_KEYS, LinkExceptionKeys, LinkFile
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import BetweenKeys, inside_of, parameter_names, parameters_of
from ringnet.scenario.network import (
    hardware,
    n_places,
    ordered,
    seated,
    seats,
    shape,
)
from ringnet.units import counted, format_bytes


def check_network_file(keys: Keys) -> Iterator[Mistake]:
    """Find keys that a network file leaves nothing to say for."""
    if keys.network.file is None:
        return
    names = ["topology", "link", "bandwidth", "latency", *BEHAVIOUR_KEYS]
    for name in [*names, *parameter_names()]:
        yield unread(("network", name), "the file says what the network is", NETWORK_FILE, right="links: exceptions")
    if keys.network.routes == "ecmp":
        message = "the network of a file has its own routes"
        right = "routes listed, or left out"
        yield Mistake(("network", "routes"), message, right, causes=(NETWORK_FILE,))


def check_link_profiles(keys: Keys) -> Iterator[Mistake]:
    """Find keys that a profile leaves nothing to say for."""
    network = keys.network
    inside = inside_of(network)
    for path, link in ((NETWORK, network.link), (INSIDE, inside.link if inside else None)):
        names = ["bandwidth", "latency", *BEHAVIOUR_KEYS] if path == NETWORK else ["bandwidth", "latency"]
        for name in names if isinstance(link, LinkFile) and network.file is None else ():
            key = (*path[:-1], name)
            yield unread(key, "the profile says what the links do", path, right="links: exceptions")


def check_order_file(keys: Keys) -> Iterator[Mistake]:
    """Find a file without orders or for other workers, and what it leaves nothing to say for."""
    reading = reading_of(keys.network)
    if reading is None:
        return
    if not reading.orders:
        message = f"this is the {reading.kind}: it has links, and no order of rings"
        yield Mistake(ORDER_FILE, message, "NCCL's graph file; network: {file: ...} takes this one")
    elif reading.n_workers != keys.workers:
        has = f"the scenario has {counted(keys.workers, 'worker')}"
        message = f"the file is for {counted(reading.n_workers, 'worker')}, {has}"
        yield Mistake(ORDER_FILE, message, f"workers: {reading.n_workers}", causes=(("workers",),))
    if keys.algorithm_name == OF_CHANNELS:
        for name in ("strides", "node_size"):
            message = "the file says the order of each ring"
            yield unread(("algorithm", name), message, ORDER_FILE, right="order: numbered")


#: Packets or slots of windows that a run may have: minutes.
MOST_PARTS = 10_000_000


def _parameters(keys: Keys) -> Iterator[Mistake]:
    if keys.network.file is not None:
        return
    yield from _parameters_of(keys.network.topology, keys.network, ("network",), n_places(keys))


def _parameters_of(topology: str, given: NetworkKeys | BetweenKeys, at: Path, places: int) -> Iterator[Mistake]:
    known, there = TOPOLOGIES[topology].parameters, parameters_of(given)
    cause = (*at, "topology")
    for name, value in there.items():
        if isinstance(value, BetweenKeys):
            yield from _parameters_of(value.topology, value, (*at, name), places)
        if name not in known:
            having = [one for one, line in TOPOLOGIES.items() if name in line.parameters]
            message = (
                f"topology {topology} has no {name}: {' and '.join(having)} {'have' if len(having) > 1 else 'has'}"
            )
            yield Mistake((*at, name), message, f"topology: {having[0]}", causes=(cause,), unread=True)
    for name, parameter in known.items():
        if parameter.required and name not in there:
            message = f"the key is missing: topology {topology} needs it"
            right = parameter.fitting(places) if parameter.fitting else parameter.example
            yield Mistake((*at, name), message, f"{name}: {in_flow(right)}", causes=(cause,))


def shape_of(keys: Keys) -> tuple[Network | None, list[Mistake]]:
    """Return the network without exceptions, or what keeps its parameters from making one."""
    is_lost = keys.network.file is not None and not isinstance(keys.network.file, FoundFile)
    if is_lost or not is_right(keys) or [*_parameters(keys)] or n_places(keys) > MOST_WORKERS:
        return None, []
    try:
        return shape(keys.network, n_places(keys)), []
    except NetworkError as error:
        workers = "hosts" if keys.hosts else "workers"
        found = _mistakes_of(error, ("network",), ("workers",), ("network", "topology"))
        # Of too many workers it is told where their number is said.
        return None, [replace(one, path=(workers,)) if one.path == ("network", "workers") else one for one in found]


def _mistakes_of(error: NetworkError, at: Path, *causes: Path) -> list[Mistake]:
    return [Mistake((*at, *_parts(one.path)), one.message, one.right, one.nearest, causes) for one in error.faults]


def _parts(path: str) -> Path:
    head, sign, rest = path.partition(".")
    if head in ("links", "links_of", "routes"):  # a name follows
        return (head, rest) if sign else (head,)
    return tuple(int(part) if part.isdecimal() else part for part in path.split(".")) if path else ()


def _network_is_whole(keys: Keys) -> Iterator[Mistake]:
    """Find what keeps the keys from making a network in which everybody has a place."""
    plain = keys.network.file is None and not TOPOLOGIES[keys.network.topology].parameters
    if (plain and not _is_special(keys)) or not is_right(keys):
        return
    made, findings = shape_of(keys)
    yield from findings
    if made is None or not _is_special(keys):
        return
    if [*_exceptions(keys)] or [*_ascending(keys)]:
        return
    causes: tuple[Path, ...] = (("workers",), ("network", "topology"))
    try:
        whole = hardware(keys).network
        yield from _behaviour_is_for_some(keys, whole)
        own, *others = seats(keys, whole)
        network = seated(whole, own, "placement")
        if len(network.places or own) == keys.workers and not [*_orders(keys)]:
            network = ordered(keys, network)
            yield from _ring_has_ways(keys, network)
    except NetworkError as error:
        yield from _mistakes_of(error, ("network",), *causes)
        return
    for number, places in enumerate(others):
        try:
            seated(whole, places, "workers")
        except NetworkError as error:
            yield from _mistakes_of(error, ("jobs", number), *causes)


def _behaviour_is_for_some(keys: Keys, network: Network) -> Iterator[Mistake]:
    """Find what links are to do where no link is as the rule."""
    given = keys.network.file is None and not link_files(keys.network)
    if given and not network.sources.as_the_rule.any():
        for key in BEHAVIOUR_KEYS:
            message = "no link has the network's bandwidth and latency"
            yield unread(("network", key), message, ("network", "links"), right=f"{key} of single links")


def _is_special(keys: Keys) -> bool:
    """Whether more than a shape is to be made: a sweep checks thousands of plain ones."""
    network = keys.network
    plain = network.routes == "shortest" and network.placement == network.order == "numbered" and not network.places
    around: list[NetworkKeys | LinkExceptionKeys] = [
        network,
        *network.links.values(),
        *network.links_of.values(),
    ]
    behave = any(one.behaviours() for one in around)
    behave = behave or bool(link_files(network)) or any(not one.is_trouble for one in drawn_values(keys))
    reduces = network.reduction is not None
    return not plain or behave or reduces or bool(keys.jobs) or bool(keys.background)


def _ring_has_ways(keys: Keys, network: Network) -> Iterator[Mistake]:
    if keys.algorithm != "ring" or keys.jobs or network.topology != "ring" or network.n_workers == 1:
        return
    for worker in range(network.n_workers):
        try:
            network.route(worker, (worker + 1) % network.n_workers)
        except NetworkError:
            key = "order" if keys.network.order != "numbered" else "placement"
            key = key if keys.network.placement != "numbered" or key == "order" else "places"
            message = "a ring has ways to right-hand neighbours only, and these workers are none"
            yield Mistake(("network", key), message, "topology: switch", causes=(("network", "topology"),))
            return


def _placement(keys: Keys) -> Iterator[Mistake]:
    placement = keys.network.placement
    if isinstance(placement, tuple) and len(placement) != keys.workers:
        message = f"{len(placement)} places for {counted(keys.workers, 'worker')}"
        right = "one place for each worker, numbered, or interleaved"
        yield Mistake(("network", "placement"), message, right, causes=(("workers",),))


def _orders(keys: Keys) -> Iterator[Mistake]:
    order, path = keys.network.order, ("network", "order")
    if order != "numbered" and "ring" not in keys.algorithm_name:
        message = f"{keys.algorithm_name} has no ring"
        yield unread(path, message, ("algorithm",), right="algorithm: ring")
    if isinstance(order, tuple) and sorted(order) != [*range(keys.workers)]:
        right = f"each of 0 to {keys.workers - 1} once"
        yield Mistake(path, f"this is no order of {counted(keys.workers, 'worker')}", right, causes=(("workers",),))
    yield from check_order_file(keys)


def _exceptions(keys: Keys) -> Iterator[Mistake]:
    yield from _links_are_there(keys)
    yield from _nodes_are_there(keys)
    yield from _links_set_once(keys)


def _links_are_there(keys: Keys) -> Iterator[Mistake]:
    given = keys.network.links
    made = shape_of(keys)[0] if given else None
    if made is None:
        return
    names = dict.fromkeys(made.names)
    for name in given:
        yield from no_such_link(("network", "links", name), name, made, names, unread=True)


def no_such_link(
    path: Path, name: str, made: Network, names: Collection[str], *, unread: bool = False
) -> Iterator[Mistake]:
    """Find a link that is not among those of a network, ``names``, or a pattern that fits none of them."""
    if name not in names and not ("*" in name and any(fnmatchcase(one, name) for one in names)):
        message = f"the {made.topology} network of {counted(made.n_workers, 'worker')} has no such link"
        causes = ("workers",), ("network", "topology")
        yield Mistake(path, message, some(names), nearest_link(name, names), causes, unread=unread)


def nearest_link(name: str, names: Iterable[str]) -> str:
    """Return a link that starts where ``name`` does, or ends there; a million others are not compared."""
    start, _, end = name.partition("->")
    for near in (
        [one for one in names if one.startswith(f"{start}->")],
        [one for one in names if one.endswith(f"->{end}")],
    ):
        if near:
            return closest(name, near) or near[0]
    return ""


def _nodes_are_there(keys: Keys) -> Iterator[Mistake]:
    places, given = n_places(keys), keys.network.links_of
    made = None if all(map(str.isdecimal, given)) else shape_of(keys)[0]
    named = [] if made is None else [key for key in given if not key.isdecimal()]
    touching = {} if made is None else links_at(made, named)
    for key in given:
        path = ("network", "links_of", key)
        if key.isdecimal():
            yield from no_such_worker(path, int(key), places, unread=True)
        elif made is not None and key in touching and not touching[key]:
            message = f"the {made.topology} network of {counted(made.n_workers, 'worker')} has no such node"
            known = [*group_names(made), *(node for node in made.nodes if not node.isdecimal())]
            right, nearest = some([f"0 to {places - 1}", *known]), closest(key, known)
            causes = ("workers",), ("network", "topology")
            yield Mistake(path, message, right, nearest, causes, unread=True)


def _links_set_once(keys: Keys) -> Iterator[Mistake]:
    """Refuse to let the order settle a link between two nodes, or of two rules, that say otherwise."""
    changes = keys.network.links_of
    made = shape_of(keys)[0] if len(changes) > 1 else None
    first: dict[int, str] = {}
    for name, links in links_at(made, changes).items() if made else ():
        assert made is not None
        for link in links:
            other = first.setdefault(link, name)
            if changes[other] != changes[name] and made.names[link] not in keys.network.links:
                message = f"links_of.{other} says otherwise of link {made.names[link]}"
                causes = ("network", "links_of", other), ("workers",)
                path, right = ("network", "links_of", name), f"links: {{{made.names[link]}: ...}} beside it"
                yield Mistake(path, message, right, causes=causes)
                break
    yield from _rules_agree(keys)


def _rules_agree(keys: Keys) -> Iterator[Mistake]:
    rules = [name for name in keys.network.links if "*" in name]
    made = shape_of(keys)[0] if len(rules) > 1 else None
    for place, rule in enumerate(rules if made else ()):
        assert made is not None
        for other in rules[:place]:
            both = (one for one in made.names if fnmatchcase(one, rule) and fnmatchcase(one, other))
            name = next((one for one in both if one not in keys.network.links), None)
            if name is not None and keys.network.links[rule] != keys.network.links[other]:
                message = f"links.{other} says otherwise of link {name}"
                right = "rules that fit no link in common"
                yield Mistake(("network", "links", rule), message, right, causes=(("network", "links", other),))


def _ascending(keys: Keys) -> Iterator[Mistake]:
    """Find lists of regimes and profiles that do not ascend, and the two on one link."""
    network = keys.network
    around: list[tuple[Path, NetworkKeys | LinkExceptionKeys]] = [(("network",), network)]
    for key, exceptions in (("links_of", network.links_of), ("links", network.links)):
        around += [(("network", key, name), one) for name, one in exceptions.items()]
    for path, one in around:
        sizes = [regime.up_to_bytes for regime in one.regimes or ()]
        times = [change.at_s for change in one.profile or ()]
        yield from _not_above((*path, "regimes"), "up_to", sizes)
        yield from _not_above((*path, "profile"), "at", times)
        for key, other in combinations(one.behaviours(), 2):
            right = f"{key} or {other}"
            yield Mistake((*path, other), "a link has one of these", right, causes=((*path, key),))


def _not_above(path: Path, key: str, values: Sequence[float]) -> Iterator[Mistake]:
    for place in range(1, len(values)):
        if values[place] <= values[place - 1]:
            yield Mistake((*path, place, key), "each is above the one before", "ascending values")


def _parts_are_not_too_many(keys: Keys) -> Iterator[Mistake]:
    """Find packets and windows so small that their number is beyond what can be simulated."""
    network = keys.network
    window = network.window if isinstance(network.window, int) else None
    chunk_bytes = keys.message_bytes / keys.workers
    for key, part in (("packet", network.packet), ("window", window)):
        if not part or part >= chunk_bytes:
            continue
        slots = 1 if key == "packet" else WINDOW_SLOTS
        # A ring's bytes, roughly those of any algorithm.
        n_parts = 2 * (keys.workers - 1) * keys.message_bytes / max(part // slots, 1)
        if n_parts > MOST_PARTS:
            message = f"the transfers would move in some {n_parts:.2g} parts, more than {MOST_PARTS:,}"
            least = -(-slots * 2 * (keys.workers - 1) * keys.message_bytes // MOST_PARTS)
            yield Mistake(("network", key), message, f"at least {format_bytes(least)}", causes=(("message",),))


def _unread_in_network(keys: Keys) -> Iterator[Mistake]:
    network, fair = keys.network, keys.network.sharing == "fair"
    sharing = ("network", "sharing")
    if network.file is None and TOPOLOGIES[network.topology].has_single_links and network.routes == "shortest":
        message = f"every route of a {network.topology} is a single link"
        yield unread(("network", "switching"), message, ("network", "topology"), right="topology: switch")
    elif fair:
        message = "under fair sharing a transfer has all its links at once"
        yield unread(("network", "switching"), message, sharing, right="sharing: fifo")
    if network.routes != "ecmp":
        yield unread(("network", "route_seed"), "only ecmp draws routes", ("network", "routes"), right="routes: ecmp")
    if network.header is not None and network.packet is None:
        yield unread(("network", "header"), "there are no packets", ("network", "packet"), right="packet: 4 KiB")
    if fair and network.packet is not None and not network.header:
        yield unread(("network", "packet"), "under fair sharing only headers count", sharing, right="sharing: fifo")
    for key, size in (("packet", network.packet), ("window", network.window)):
        if size == 0:
            yield Mistake(("network", key), "nothing would ever move", "1 MiB")


def _hosts_are_read(keys: Keys) -> Iterator[Mistake]:
    """Find what is said of sockets and cards and has no effect."""
    network, inside = keys.network, inside_of(keys.network)
    if inside is None:
        return
    if inside.sockets == 1:
        at = ("network", "inside", "socket")
        yield unread(at, "a host has one socket", ("network", "inside", "sockets"), right="sockets: 2")
    if network.routes == "ecmp" and inside.shape == "pcie":
        message = "ecmp takes the nearest card of a PCIe tree, whoever is to use it"
        yield unread(("network", "affinity"), message, ("network", "routes"), right="routes: shortest")


def _machine_is_read(keys: Keys) -> Iterator[Mistake]:
    """Find hosts of no machine, and of one that has none."""
    if keys.machine is None:
        yield unread(("hosts",), "hosts are those of a machine", ("machine",), right="machine: dgx-h100")
    elif keys.network.file is not None or getattr(keys.network, "sides", None) is not None:
        message = "this network has no hosts"
        yield unread(("hosts",), message, ("machine",), ("network",), right="network.sides")


def _credit_has_a_way(keys: Keys) -> Iterator[Mistake]:
    network = keys.network
    is_ring = network.file is None and network.topology == "ring"
    one_way = is_ring and network.routes != "ecmp" and n_places(keys) > 2  # noqa: PLR2004
    if one_way and network.window is not None:
        message = "the links of a ring lead one way: credit has no way back"
        yield Mistake(
            ("network", "window"), message, "topology: switch", causes=(("network", "topology"), ("workers",))
        )


#: In the order in which they are told.
NETWORK_CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    _parameters,
    check_network_file,
    check_link_profiles,
    _network_is_whole,
    _exceptions,
    _placement,
    _orders,
    _ascending,
    _unread_in_network,
    _hosts_are_read,
    _machine_is_read,
    _credit_has_a_way,
    _parts_are_not_too_many,
)
