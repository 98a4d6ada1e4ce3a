"""Exceptions: links that are not as the rule for all has them, by their own name, by a node, a host or a rail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from ringnet.errors import Fault, NetworkError, closest, some
from ringnet.networks.network import LinkSource, LinkSources, Network
from ringnet.networks.shape import RAILS

#: Unknown links for which the nearest name is looked up.
SEARCHED = 8


@dataclass(frozen=True)
class LinkChange:
    """What an exception changes of a link; ``None`` leaves it as the rule for all links has it."""

    bandwidth_Bps: float | None = None
    latency_s: float | None = None


def change_links(network: Network, changes: dict[str, LinkChange]) -> Network:
    """Return the network with some links changed, by name; `NetworkError` names every unknown one.

    A name with ``*`` is a rule for all links that it fits; rules come before single links.
    """
    if not changes:
        return network
    links = find_links(network, changes)
    return _changed(network, ((link, changes[name]) for name in links for link in links[name]))


def find_links(network: Network, names: Iterable[str]) -> dict[str, list[int]]:
    """Return the links of each name, names with ``*`` first; `NetworkError` names every one that fits none.

    >>> from ringnet.networks.basic import switch
    >>> find_links(switch(2, 50e9, 5e-7), ["0->switch", "switch->*"])
    {'switch->*': [2, 3], '0->switch': [0]}
    """
    numbers = {name: link for link, name in enumerate(network.names)}
    found = {}
    for name in sorted(names, key=lambda name: "*" not in name):
        one = [numbers[name]] if name in numbers else []
        found[name] = [link for key, link in numbers.items() if fnmatchcase(key, name)] if "*" in name else one
    if unknown := [name for name, links in found.items() if not links]:
        raise NetworkError(*_no_such_links(network, unknown))
    return found


def change_nodes(network: Network, changes: Mapping[str, LinkChange]) -> Network:
    """Return the network with every link into or out of some nodes changed; `NetworkError` names each unknown one.

    What `links_at` says of a name. A link that several of them touch becomes what is said of the later one.

    >>> from ringnet.networks.basic import switch
    >>> change_nodes(switch(2, 50e9, 5e-7), {"1": LinkChange(7.0)}).bandwidth_Bps.tolist()
    [50000000000.0, 7.0, 50000000000.0, 7.0]
    """
    if not changes:
        return network
    touching = links_at(network, changes)
    places = {str(place) for place in range(network.n_workers)}
    if unknown := [node for node, links in touching.items() if not links and node not in places]:
        raise NetworkError(*_no_such_nodes(network, unknown))
    return _changed(network, ((link, change) for node, change in changes.items() for link in touching[node]))


def links_at(network: Network, names: Iterable[str]) -> dict[str, list[int]]:
    """Return, by name, the links into and out of a node or a group of nodes; none for one that is not there.

    A name is that of a node (a worker's place by its number, a switch, a card: ``"3"``, ``"h0/nic1"``), one with ``*``
    for each node that it fits (``"h*/nic1"``, ``"h0/*"``), or that of a group (``"h0"`` for a host, ``"rail1"``,
    ``"rack0"``): the links over its border, not those inside.

    Examples
    --------
    >>> from ringnet.networks import Inside, make_network
    >>> hosts = make_network("nodes", 2, 1e9, 0.0, workers_per_host=1, inside=Inside("switch", 1e10, 0.0))
    >>> {name: [hosts.names[link] for link in links] for name, links in links_at(hosts, ["h0", "1"]).items()}
    {'h0': ['h0/nic0->switch', 'switch->h0/nic0'], '1': ['1->h1/nic0', 'h1/nic0->1']}
    """
    ends = [network.ends(link) for link in range(network.n_links)]
    nodes = dict.fromkeys(node for pair in ends for node in pair)
    groups = None
    found = {}
    for name in dict.fromkeys(names):
        if name in nodes or "*" in name:
            at = {node for node in nodes if node == name or ("*" in name and fnmatchcase(node, name))}
            found[name] = [link for link, (start, end) in enumerate(ends) if start in at or end in at]
            continue
        groups = _members(network) if groups is None else groups
        at = groups.get(name, set())
        found[name] = [link for link, (start, end) in enumerate(ends) if (start in at) != (end in at)]
    return found


def group_names(network: Network) -> list[str]:
    """Return the names of its groups of nodes, as `links_at` takes them: those that no node has."""
    nodes = {*network.nodes}
    return [name for name in _members(network) if name not in nodes]


def _members(network: Network) -> dict[str, set[str]]:
    """Return the nodes of each group by its name: ``"h0"`` of ``"host h0"``; slices and pods have none of their own."""
    members: dict[str, set[str]] = {}
    for kind, of_kind in (network.find_groups() if network.find_groups else {}).items():
        for node, group in of_kind.items():
            *words, name = group.split()
            # Of a rail its leaves: the links of its cards to these are of the rail, those inside hosts are not.
            is_of_it = kind != RAILS or node.rpartition("/")[2] == name
            if len(words) <= 1 and not name.isdecimal() and is_of_it:
                members.setdefault(name, set()).add(node)
    return members


def _no_such_nodes(network: Network, nodes: list[str]) -> Iterator[Fault]:
    names = [*group_names(network), *(node for node in network.nodes if not node.isdecimal())]
    for place, node in enumerate(nodes):
        if node.lstrip("-").isdecimal():
            yield Fault("there is no such worker", value=node, right=f"0 to {network.n_workers - 1}")
            continue
        shown = some([f"0 to {network.n_workers - 1}", *names], 4)
        nearest = closest(node, names) if place < SEARCHED else ""
        message = f"the {network.topology} network of {network.n_workers} workers has no such node"
        yield Fault(message, value=node, right=shown, nearest=nearest)


def _changed(network: Network, changes: Iterable[tuple[int, LinkChange]]) -> Network:
    bandwidth, latency, before = network.bandwidth_Bps.copy(), network.latency_s.copy(), network.sources
    sources = LinkSources(before.bandwidth.copy(), before.latency.copy())
    for link, change in changes:
        if link in network.behaviours:
            raise NetworkError(f"link {network.names[link]} is to be changed before it gets a behaviour")
        # What changes nothing is no exception: the link keeps to the rule.
        if change.bandwidth_Bps not in (None, bandwidth[link]):
            bandwidth[link], sources.bandwidth[link] = change.bandwidth_Bps, LinkSource.OWN
        if change.latency_s not in (None, latency[link]):
            latency[link], sources.latency[link] = change.latency_s, LinkSource.OWN
    return replace(network, bandwidth_Bps=bandwidth, latency_s=latency, given_sources=sources)


def _no_such_links(network: Network, names: list[str]) -> Iterator[Fault]:
    message = f"the {network.topology} network of {network.n_workers} workers has no such link"
    for place, name in enumerate(names):
        # Among thousands of links a search takes a quarter of a second: not for thousands of names.
        nearest = closest(name, network.names) if place < SEARCHED else ""
        yield Fault(message, value=name, right=some(network.names), nearest=nearest)
