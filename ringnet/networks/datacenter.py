"""Networks of many switches, as data centres and supercomputers have them: leaf-spine, fat tree, dragonfly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Groups, LinkSource, LinkSources, Network, Route
from ringnet.networks.topology import LinkColumns, TopologyParameter, place_names


def leaf_spine(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    leaves: Annotated[int | None, TopologyParameter("leaves; hosts_per_leaf gives it too", 2)] = None,
    hosts_per_leaf: Annotated[
        int | Sequence[int] | None,
        TopologyParameter("places for workers on a leaf, on each leaf where they differ; leaves gives it too", 4),
    ] = None,
    spines: Annotated[int, TopologyParameter("spines; 1 if left out", 2)] = 1,
    oversubscription: Annotated[
        float,
        TopologyParameter(
            "what the workers of a leaf can send over what its links to the spines carry; 1 if left out", 4
        ),
    ] = 1.0,
) -> Network:
    """Workers fill the leaves in order: where these are alike worker i is on leaf ``i // hosts_per_leaf``.

    A route between two leaves takes the spine ``dst % spines``, as static routing by destination does.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link between a worker and its leaf, in bytes per second and seconds; the latency of all links.
    leaves : int, optional
    hosts_per_leaf : int or sequence of int, optional
        One of them gives the other.
    spines : int
    oversubscription : float
        What the workers of a leaf can send, over what its links to the spines can carry: these have
        ``hosts_per_leaf * bandwidth / (spines * oversubscription)`` each, by the places of their own leaf.

    Raises
    ------
    NetworkError
        If the leaves have no room for the workers, neither leaves nor hosts per leaf are given, or the ratio is zero.

    Examples
    --------
    >>> network = leaf_spine(4, 50e9, 5e-7, leaves=2, spines=2, oversubscription=2)
    >>> [network.names[link] for link in network.route(0, 3)]
    ['0->leaf0', 'leaf0->spine1', 'spine1->leaf1', 'leaf1->3']
    """
    if oversubscription <= 0:
        raise NetworkError(Fault("a ratio is more than zero", "oversubscription", right="4"))
    sizes = _leaf_sizes(n_workers, leaves, hosts_per_leaf)
    n_leaves, n_places = len(sizes), sum(sizes)
    on_leaf = np.repeat(np.arange(n_leaves), sizes)
    nodes = [*place_names(n_workers, n_places), *(f"leaf{i}" for i in range(n_leaves))]
    nodes += [f"spine{i}" for i in range(spines)]
    own = bandwidth_Bps, latency_s
    hosts, leaf = np.arange(n_places), on_leaf + n_places
    trunks = Trunks.of(sizes, spines, oversubscription, own)
    ends, rates = trunks.links(n_places, n_places + n_leaves)
    links = LinkColumns.of(nodes, [(hosts, leaf), (leaf, hosts), *ends], [own, own, *rates])
    leaf_of = on_leaf.tolist()

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        between = trunks.between(leaf_of[src], leaf_of[dst], dst % spines)
        return (src, *(2 * n_places + link for link in between), n_places + dst)

    def find_groups() -> Groups:
        of_places = {nodes[place]: f"leaf{leaf_of[place]}" for place in range(n_places)}
        return {"leaves": of_places | {f"leaf{i}": f"leaf{i}" for i in range(n_leaves)}}

    made = links.network("leaf-spine", n_workers, find_route, find_groups)
    return replace(made, given_sources=trunks.sources(2 * n_places, own))


class Trunks(NamedTuple):
    """The links between leaves and spines, those up first, by leaf and then by spine.

    Parameters
    ----------
    n_leaves, n_spines : int
    rates : sequence of (bandwidth_Bps, latency_s)
        Of each link of each leaf.
    """

    n_leaves: int
    n_spines: int
    rates: Sequence[tuple[float, float]]

    @classmethod
    def of(cls, sizes: Sequence[int], n_spines: int, oversubscription: float, own: tuple[float, float]) -> Trunks:
        """Return trunks that carry what the places of each leaf send, over the stated ratio."""
        bandwidth_Bps, latency_s = own
        rates = [(size * bandwidth_Bps / (n_spines * oversubscription), latency_s) for size in sizes]
        return cls(len(sizes), n_spines, rates)

    def links(
        self, first_leaf: int, first_spine: int
    ) -> tuple[list[tuple[IntArray, IntArray]], list[tuple[float, float]]]:
        """Return the ends of the links of each leaf, and their rates, as `LinkColumns` takes them."""
        spines = np.arange(first_spine, first_spine + self.n_spines)
        up = [(np.full(self.n_spines, first_leaf + leaf), spines) for leaf in range(self.n_leaves)]
        return [*up, *((end, start) for start, end in up)], [*self.rates, *self.rates]

    def between(self, leaf: int, other: int, spine: int) -> tuple[int, ...]:
        """Return the numbers among these links of those from one leaf over a spine to another."""
        if leaf == other:
            return ()
        return leaf * self.n_spines + spine, (self.n_leaves + other) * self.n_spines + spine

    def sources(self, n_before: int, own: tuple[float, float]) -> LinkSources:
        """Return where the numbers of links of their places come from, and after them those of the trunks."""
        found = LinkSources.alike(n_before + 2 * self.n_leaves * self.n_spines)
        as_own = np.repeat([rate == own for rate in self.rates] * 2, self.n_spines)
        found.bandwidth[n_before:] = np.where(as_own, LinkSource.RULE, LinkSource.SCALED)
        return found


def leaf_spine_links(
    n_workers: int,
    *,
    leaves: int | None = None,
    hosts_per_leaf: int | Sequence[int] | None = None,
    spines: int = 1,
    oversubscription: float = 1,
) -> int:
    """Return how many links a leaf-spine has: of places, and between leaves and spines."""
    if isinstance(hosts_per_leaf, Sequence):
        return 2 * (sum(hosts_per_leaf) + len(hosts_per_leaf) * spines)
    per_leaf = hosts_per_leaf or -(-n_workers // (leaves or 1))
    n_leaves = leaves or -(-n_workers // per_leaf)
    return 2 * n_leaves * (per_leaf + spines)


def fat_tree_links(n_workers: int, *, k: int) -> int:
    """Return how many links a fat tree has: six groups of as many as there are places."""
    return 6 * (k**3 // 4)


def dragonfly_links(n_workers: int, *, groups: int, routers_per_group: int, hosts_per_router: int) -> int:
    """Return how many links a dragonfly has: of places, inside groups and between them."""
    inside = routers_per_group * (2 * hosts_per_router + routers_per_group - 1)
    return groups * (inside + groups - 1)


def _leaf_sizes(n_workers: int, leaves: int | None, hosts_per_leaf: int | Sequence[int] | None) -> list[int]:
    """Return the places on each leaf."""
    if leaves is None and hosts_per_leaf is None:
        raise NetworkError(Fault("a leaf-spine needs leaves or hosts_per_leaf", "leaves", right="leaves: 2"))
    if hosts_per_leaf is None:
        hosts_per_leaf = max(1, -(-n_workers // (leaves or 1)))
    if isinstance(hosts_per_leaf, int):
        sizes = [hosts_per_leaf] * (max(1, -(-n_workers // hosts_per_leaf)) if leaves is None else leaves)
        what = f"{len(sizes)} leaves of {hosts_per_leaf}"
    else:
        sizes, what = [*hosts_per_leaf], f"leaves of {', '.join(map(str, hosts_per_leaf))}"
        if leaves not in (None, len(sizes)):
            message = f"{leaves} leaves, and the places of {len(sizes)} are listed"
            raise NetworkError(Fault(message, "leaves", right="the key left out"))
    if sum(sizes) < n_workers:
        message = f"{what} have {sum(sizes)} places, and {n_workers} are needed"
        raise NetworkError(Fault(message, "leaves", right="more leaves"))
    return sizes


def fat_tree(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    k: Annotated[int, TopologyParameter("ports of a switch, even", 4, least=2, most=128)],
) -> Network:
    """K pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, and k^3/4 places for workers, filled in order.

    Up a route goes by its destination d: to aggregation switch ``d % (k/2)`` of the pod, then to core
    ``d // (k/2) % (k/2)`` of those above it (d-mod-k, as static routing by destination does), so that workers next to
    each other take ways of their own.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.
    k : int
        Ports of a switch; even.

    Raises
    ------
    NetworkError
        If k is odd, or the places are too few for the workers.

    Examples
    --------
    >>> network = fat_tree(16, 50e9, 5e-7, k=4)
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->edge0', 'edge0->agg1', 'agg1->core2', 'core2->agg3', 'agg3->edge2', 'edge2->5']
    """
    if k % 2 or k < 2:  # noqa: PLR2004
        message = "a fat tree has switches with an even number of ports"
        raise NetworkError(Fault(message, "k", value=str(k), right=str(max(2, k + k % 2))))
    half, n_places = k // 2, k**3 // 4
    if n_places < n_workers:
        message = f"a fat tree of k={k} has {n_places} places, and {n_workers} are needed"
        least = next(k for k in range(2, 2**12, 2) if k**3 // 4 >= n_workers)
        raise NetworkError(Fault(message, "k", right=f"at least {least}"))
    links = _fat_tree_links(n_workers, k, (bandwidth_Bps, latency_s))
    # Each of the six groups of links, three up and three down, is as large as there are places.
    per_pod = half * half

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        agg, core = dst % half, dst // half % half
        links = [src]
        if src // half != dst // half:
            links.append(n_places + src // half * half + agg)
            if src // per_pod != dst // per_pod:
                links.append(2 * n_places + (src // per_pod * half + agg) * half + core)
                links.append(5 * n_places + (dst // per_pod * half + agg) * half + core)
            links.append(4 * n_places + dst // half * half + agg)
        return (*links, 3 * n_places + dst)

    def find_groups() -> Groups:
        places = links.nodes[:n_places]
        edges = {place: f"edge{number // half}" for number, place in enumerate(places)}
        pods = {place: f"pod {number // per_pod}" for number, place in enumerate(places)}
        # Each pod has k/2 edge and k/2 aggregation switches, numbered pod by pod.
        inside = {f"{level}{i}": f"pod {i // half}" for level in ("edge", "agg") for i in range(k * half)}
        return {"edge switches": edges | {edge: edge for edge in edges.values()}, "pods": pods | inside}

    return links.network("fat-tree", n_workers, find_route, find_groups)


def _fat_tree_links(n_workers: int, k: int, rate: tuple[float, float]) -> LinkColumns:
    half, n_places, n_edges = k // 2, k**3 // 4, k * k // 2
    every = np.arange(n_places)
    edge = n_places + every // half
    low = n_places + every // half, n_places + n_edges + every // half**2 * half + every % half
    # Aggregation switch a of a pod has the cores a * k/2 to (a + 1) * k/2 - 1.
    agg = every // half
    high = n_places + n_edges + agg, n_places + 2 * n_edges + agg % half * half + every % half
    up: list[tuple[IntArray, IntArray]] = [(every, edge), low, high]
    nodes = [*place_names(n_workers, n_places)]
    for level, size in (("edge", n_edges), ("agg", n_edges), ("core", half * half)):
        nodes += [f"{level}{number}" for number in range(size)]
    return LinkColumns.of(nodes, [*up, *((end, start) for start, end in up)], [rate] * 6)


def dragonfly(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    groups: Annotated[int, TopologyParameter("groups of routers", 3)],
    routers_per_group: Annotated[int, TopologyParameter("routers of a group", 2)],
    hosts_per_router: Annotated[int, TopologyParameter("places for workers at a router", 2)],
) -> Network:
    """Workers fill the routers in order; minimal routes: inside the group, over one global link, inside the other.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds. A rule for global ones names both groups, ``g0/*->g1/*``:
        ``g*->g*`` is also those inside a group.
    groups, routers_per_group, hosts_per_router : int
        Group i has its cable to group j at router ``((j - i - 1) mod groups) // h``, where each router has
        ``h = ceil((groups - 1) / routers_per_group)`` of them.

    Raises
    ------
    NetworkError
        If the places are too few for the workers.

    Examples
    --------
    >>> network = dragonfly(6, 50e9, 5e-7, groups=3, routers_per_group=2, hosts_per_router=1)
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->g0/r0', 'g0/r0->g0/r1', 'g0/r1->g2/r0', 'g2/r0->g2/r1', 'g2/r1->5']
    """
    n_routers, n_places = groups * routers_per_group, groups * routers_per_group * hosts_per_router
    if n_places < n_workers:
        message = f"{n_routers} routers of {hosts_per_router} have {n_places} places, and {n_workers} are needed"
        raise NetworkError(Fault(message, "groups", right="more groups"))
    each = max(1, -(-(groups - 1) // routers_per_group))

    def gate(group: int, other: int) -> int:
        return group * routers_per_group + (other - group - 1) % groups // each

    hosts, own = np.arange(n_places), np.arange(n_places) // hosts_per_router
    local = [
        (group * routers_per_group + a, group * routers_per_group + b)
        for group in range(groups)
        for a in range(routers_per_group)
        for b in range(routers_per_group)
        if a != b
    ]
    far = [(gate(a, b), gate(b, a)) for a in range(groups) for b in range(groups) if a != b]
    between = np.array(local + far, dtype=np.int64).reshape(-1, 2).T
    number = {pair: 2 * n_places + link for link, pair in enumerate(local + far)}
    routers = [f"g{group}/r{router}" for group in range(groups) for router in range(routers_per_group)]
    ends = [(hosts, own + n_places), (own + n_places, hosts), (between[0] + n_places, between[1] + n_places)]
    links = LinkColumns.of([*place_names(n_workers, n_places), *routers], ends, [(bandwidth_Bps, latency_s)] * 3)

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        a, b = src // hosts_per_router, dst // hosts_per_router
        one, other = a // routers_per_group, b // routers_per_group
        stops = [a, b] if one == other else [a, gate(one, other), gate(other, one), b]
        hops = (pair for pair in pairwise(stops) if pair[0] != pair[1])
        return (src, *(number[pair] for pair in hops), n_places + dst)

    def find_groups() -> Groups:
        router = dict(zip(links.nodes, [*np.array(routers)[own].tolist(), *routers], strict=True))
        of_routers = {node: f"router {name}" for node, name in router.items()}
        return {
            "routers": of_routers,
            "groups": {node: f"group {name.partition('/')[0]}" for node, name in router.items()},
        }

    return links.network("dragonfly", n_workers, find_route, find_groups)
