"""Rails: card k of every host on leaf k, with spines between the leaves or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.datacenter import Trunks
from ringnet.networks.network import Groups, Network, Route
from ringnet.networks.shape import RAILS
from ringnet.networks.topology import LinkColumns, TopologyParameter, each_of, place_names


def rails(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    rails: Annotated[int, TopologyParameter("rails: the cards of a host", 8)],
    hosts_per_rack: Annotated[
        int | Sequence[int] | None,
        TopologyParameter(
            "hosts that share the leaves of a rack, one for each rail; of each rack where they differ; all hosts if "
            "left out",
            4,
        ),
    ] = None,
    spines: Annotated[int | None, TopologyParameter("spines; none, for rails only, if left out", 2)] = None,
    oversubscription: Annotated[
        float,
        TopologyParameter(
            "what the workers of a leaf can send over what its links to the spines carry; 1 if left out", 4
        ),
    ] = 1.0,
) -> Network:
    """Place p is card ``p % rails`` of host ``p // rails``; card k of the hosts of a rack is on one leaf.

    Without spines there is no way from one rail to another (rail-only); a host of `nodes` hands over to its worker on
    the other rail. With them a route between two leaves takes a spine by its destination: ``(host + rail) % spines``.

    Parameters
    ----------
    n_workers : int
        A whole number of hosts, with ``rails`` cards each.
    bandwidth_Bps, latency_s : float
        Of every link between a card and its leaf, in bytes per second and seconds; the latency of all links.
    rails : int
    hosts_per_rack : int or sequence of int, optional
    spines : int, optional
    oversubscription : float
        What the cards on a leaf can send, over what its links to the spines can carry.

    Raises
    ------
    NetworkError
        If the cards are no whole number of hosts, the racks have no room for the hosts, or racks have no spine.

    Notes
    -----
    Rail-optimised: NVIDIA DGX SuperPOD reference architectures. Rail-only: Wang et al., "Rail-only", arXiv 2307.12169.

    Examples
    --------
    >>> network = rails(4, 50e9, 5e-7, rails=2)
    >>> [network.names[link] for link in network.route(1, 3)]
    ['1->rail1', 'rail1->3']
    """
    sizes, n_spines = _racks(n_workers, rails, hosts_per_rack), spines or 0
    if oversubscription <= 0:
        raise NetworkError(Fault("a ratio is more than zero", "oversubscription", right="4"))
    if len(sizes) > 1 and not n_spines:
        message = f"{len(sizes)} racks have no way to each other without a spine"
        raise NetworkError(Fault(message, "spines", right="spines: 1, or all hosts in one rack"))
    n_places, n_leaves = sum(sizes) * rails, len(sizes) * rails
    place = np.arange(n_places)
    rack, rail = np.repeat(np.arange(len(sizes)), [size * rails for size in sizes]), place % rails
    on_leaf = rack * rails + rail
    names = [f"r{leaf // rails}/rail{leaf % rails}" for leaf in range(n_leaves)]
    leaves = names if len(sizes) > 1 else [f"rail{leaf}" for leaf in range(n_leaves)]
    nodes = [*place_names(n_workers, n_places), *leaves, *(f"spine{i}" for i in range(n_spines))]
    own, leaf_of = (bandwidth_Bps, latency_s), on_leaf.tolist()
    trunks = Trunks.of([size for size in sizes for _ in range(rails)], max(n_spines, 1), oversubscription, own)
    ends, rates = trunks.links(n_places, n_places + n_leaves) if n_spines else ([], [])
    up = place, n_places + on_leaf
    links = LinkColumns.of(nodes, [up, up[::-1], *ends], [own, own, *rates])

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        one, other = leaf_of[src], leaf_of[dst]
        if one != other and not n_spines:
            message = f"rails without a spine have no way from rail {src % rails} to rail {dst % rails}"
            raise NetworkError(Fault(message, right="spines: 1, or workers of one host that are on both rails"))
        between = trunks.between(one, other, (dst // rails + dst % rails) % max(n_spines, 1))
        return (src, *(2 * n_places + link for link in between), n_places + dst)

    def find_groups() -> Groups:
        of_rail = {node: f"rail{number % rails}" for number, node in enumerate([*nodes[:n_places], *leaves])}
        of_rack = {nodes[number]: f"rack{rack[number]}" for number in range(n_places)}
        of_rack |= {leaf: f"rack{number // rails}" for number, leaf in enumerate(leaves)}
        return {RAILS: of_rail} | ({"racks": of_rack} if len(sizes) > 1 else {})

    made = links.network("rails", n_workers, find_route, find_groups)
    return replace(made, given_sources=trunks.sources(2 * n_places, own)) if n_spines else made


def rails_links(
    n_workers: int,
    *,
    rails: int,
    hosts_per_rack: int | Sequence[int] | None = None,
    spines: int | None = None,
    oversubscription: float = 1,
) -> int:
    """Return how many links rails have: of cards, and between leaves and spines."""
    sizes = each_of(hosts_per_rack or max(n_workers // rails, 1), -(-n_workers // rails))
    return 2 * rails * (sum(sizes) + len(sizes) * (spines or 0))


def _racks(n_workers: int, rails: int, hosts_per_rack: int | Sequence[int] | None) -> list[int]:
    """Return the hosts of each rack."""
    n_hosts = n_workers // rails
    if n_workers % rails or not n_hosts:
        message = f"{n_workers} cards are no whole number of hosts with one on each of {rails} rails"
        raise NetworkError(Fault(message, "rails", right="as many as a host has cards"))
    sizes = each_of(hosts_per_rack or n_hosts, n_hosts)
    if sum(sizes) < n_hosts:
        message = f"racks of {', '.join(map(str, sizes))} have room for {sum(sizes)} hosts, not for {n_hosts}"
        raise NetworkError(Fault(message, "hosts_per_rack", right="more racks"))
    return sizes
