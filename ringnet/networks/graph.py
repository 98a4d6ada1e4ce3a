"""Shortest routes over any links: by hops, with a fixed tie-break, or one of the equal ones for each flow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ringnet.errors import Fault, NetworkError, closest
from ringnet.networks.network import MOST_EQUAL_ROUTES, Network, Route

if TYPE_CHECKING:
    import networkx as nx

#: Trees of distances that are kept: one per worker that something is sent to.
KEPT_TREES = 4096
#: Links among which the nearest name is looked for.
SEARCHED = 4096


class Arc(NamedTuple):
    """One way over a link: where it leads, and the link's number."""

    to: str
    link: int


class Graph:
    """The links of a network as arcs between nodes; a half-duplex link is an arc each way.

    Parameters
    ----------
    network : Network
        Its links, and the nodes at which its workers are; its routes are not looked at.

    Attributes
    ----------
    arcs : mapping of str to list of Arc
        The ways out of each node, in the order of the links.
    backwards : networkx.DiGraph
        The nodes, and an edge against each arc: from its end to its start.
    """

    def __init__(self, network: Network) -> None:
        import networkx as nx  # noqa: PLC0415 -- takes a fifth of a second, and most networks know their routes

        self.arcs: dict[str, list[Arc]] = defaultdict(list)
        self.backwards: nx.DiGraph[str] = nx.DiGraph()
        self.backwards.add_nodes_from(map(network.node, range(network.n_workers)))
        for link in range(network.n_links):
            start, end = network.ends(link)
            for one, other in [(start, end), (end, start)][: 1 + network.is_half_duplex(link)]:
                self.arcs[one].append(Arc(other, link))
                self.backwards.add_edge(other, one)
        # Hops to a goal from every node that has a way there.
        self.hops_to = lru_cache(KEPT_TREES)(partial(nx.single_source_shortest_path_length, self.backwards))

    def reached_from(self, start: str) -> set[str]:
        """Return the nodes to which a way leads from ``start``, without itself."""
        import networkx as nx  # noqa: PLC0415 -- as above

        return nx.ancestors(self.backwards, start)

    def route(self, src: str, dst: str, choose: Callable[[int, int], int]) -> Route | None:
        """Return a shortest route; None where there is none.

        Parameters
        ----------
        src, dst : str
            Nodes.
        choose : callable
            ``choose(hop, n)`` picks one of n next links of equally short routes, in the order of their numbers.
        """
        hops, here = self.hops_to(dst), src
        links: list[int] = []
        if src not in hops:
            return None
        while here != dst:
            nearer = [arc for arc in self.arcs[here] if hops.get(arc.to, hops[here]) < hops[here]]
            here, link = nearer[choose(len(links), len(nearer))]
            links.append(link)
        return tuple(links)

    def equal_routes(self, src: str, dst: str) -> list[Route]:
        """Return all shortest routes between two nodes, at most `MOST_EQUAL_ROUTES`, in the order of their links."""
        hops = self.hops_to(dst)
        begun: list[tuple[str, Route]] = [(src, ())] if src in hops else []
        for _ in range(hops.get(src, 0)):
            begun = [
                (arc.to, (*links, arc.link))
                for here, links in begun
                for arc in self.arcs[here]
                if hops.get(arc.to, hops[here]) < hops[here]
            ][:MOST_EQUAL_ROUTES]
        return [links for _, links in begun]


def shortest(network: Network, graph: Graph) -> Network:
    """Return the network with routes that are shortest by hops; of equal ones, those over the links listed first."""
    return replace(network, find_route=_finder(network, graph, lambda _src, _dst: lambda _hop, _n: 0))


def ecmp(network: Network, seed: int = 0) -> Network:
    """Return the network with one of the shortest routes for each pair of workers, by a hash of the pair and the seed.

    All that one worker sends to another takes the same route, as equal-cost multi-path routing by flow has it.

    Parameters
    ----------
    network : Network
        Its links; its own routes are not looked at.
    seed : int
        Another one spreads the pairs another way.

    Examples
    --------
    >>> from ringnet.networks.datacenter import leaf_spine
    >>> network = ecmp(leaf_spine(4, 50e9, 5e-7, leaves=2, spines=8), seed=1)
    >>> [network.names[link] for link in network.route(0, 3)]
    ['0->leaf0', 'leaf0->spine2', 'spine2->leaf1', 'leaf1->3']
    """
    graph = Graph(network)

    def choose(src: str, dst: str) -> Callable[[int, int], int]:
        def of_hop(hop: int, n: int) -> int:
            drawn = blake2b(f"{seed} {src} {dst} {hop}".encode(), digest_size=8).digest()
            return int.from_bytes(drawn, "little") % n

        return of_hop

    def equal_routes(src: int, dst: int) -> list[Route]:
        return graph.equal_routes(network.node(src), network.node(dst))

    return replace(network, find_route=_finder(network, graph, choose), find_equal_routes=equal_routes)


def around(network: Network, dead: Collection[int]) -> Callable[[Route], Route | None]:
    """Return what finds another route from where one begins to where it ends, without some links; None for no way.

    >>> from ringnet.networks.grid import torus
    >>> network = torus(4, 50e9, 5e-7, sides=(4,))
    >>> other = around(network, [network.names.index("0->1")])(network.route(0, 1))
    >>> [network.names[link] for link in other]
    ['0->3', '3->2', '2->1']
    """
    alive = [link for link in range(network.n_links) if link not in dead]
    graph = Graph(replace(network, names=tuple(network.names[link] for link in alive)))

    def other(route: Route) -> Route | None:
        start, end = _ends_of(network, route)
        found = graph.route(start, end, lambda _hop, _n: 0)
        return None if found is None else tuple(alive[link] for link in found)

    return other


def _ends_of(network: Network, route: Route) -> tuple[str, str]:
    """Return where a route begins and where it ends; of one link for both directions the ends as they are named."""
    for start in network.ends(route[0]):
        end, fault = walk(network, start, [network.names[link] for link in route])
        if fault is None:
            return start, end
    raise AssertionError("the links of a route follow each other")


def with_routes(network: Network, routes: dict[tuple[int, int], tuple[str, ...]]) -> Network:
    """Return the network with some routes given by the names of links.

    Parameters
    ----------
    network : Network
        Keeps its own routes for all other pairs.
    routes : mapping of (src, dst) to tuple of str
        By pair of workers: the links in order.

    Raises
    ------
    NetworkError
        For every route between workers or over links that are not there, or that does not lead from one to the other.
    """
    numbers = {name: link for link, name in enumerate(network.names)}
    faults = [fault for pair, names in routes.items() if (fault := _wrong(network, numbers, pair, names))]
    if faults:
        raise NetworkError(*faults)
    given = {pair: tuple(numbers[name] for name in names) for pair, names in routes.items()}
    return replace(network, find_route=lambda src, dst: given.get((src, dst)) or network.find_route(src, dst))


def _finder(
    network: Network, graph: Graph, choose: Callable[[str, str], Callable[[int, int], int]]
) -> Callable[[int, int], Route]:
    def find_route(src: int, dst: int) -> Route:
        start, end = network.node(src), network.node(dst)
        route = graph.route(start, end, choose(start, end))
        if route is None:
            raise NetworkError(f"no way leads from worker {src} (at {start}) to worker {dst} (at {end})")
        return route

    return find_route


def _wrong(network: Network, numbers: dict[str, int], pair: tuple[int, int], names: tuple[str, ...]) -> Fault | None:
    path = f"{pair[0]}->{pair[1]}"
    for worker in pair:
        if not 0 <= worker < network.n_workers:
            return Fault(f"there is no worker {worker}", path, right=f"0 to {network.n_workers - 1}")
    if missing := [name for name in names if name not in numbers]:
        message = f"the route goes over {missing[0]}, a link that is not there"
        near = closest(missing[0], numbers) if len(numbers) <= SEARCHED else ""
        return Fault(message, path, nearest=near)
    here, fault = walk(network, network.node(pair[0]), names)
    if fault is not None:
        return replace(fault, path=path)
    goal = network.node(pair[1])
    return None if here == goal else Fault(f"the route ends at {here}, not at {goal}", path)


def walk(network: Network, start: str, names: Sequence[str]) -> tuple[str, Fault | None]:
    """Follow links by name from a node; return where that ends, and what is wrong with them, if anything is.

    Parameters
    ----------
    network : Network
    start : str
        Node where the links begin.
    names : sequence of str
        Links of the network, in order.

    Returns
    -------
    node : str
        The last node that was reached.
    fault : Fault or None
        Why the next link does not go on from there.

    Examples
    --------
    >>> from ringnet.networks.basic import switch
    >>> walk(switch(2, 50e9, 5e-7), "0", ["0->switch", "1->switch"])[1].message
    'the route is at switch before 1->switch'
    """
    numbers = {name: link for link, name in enumerate(network.names)}
    here = start
    for place, name in enumerate(names):
        nexts = _next(network, numbers[name], here)
        if nexts is None:
            return here, Fault(f"the route is at {here} before {name}", right=f"a link from {here}")
        if name in names[:place]:
            return here, Fault(f"the route goes over {name} twice", right="each link once")
        here = nexts
    return here, None


def _next(network: Network, link: int, here: str) -> str | None:
    start, end = network.ends(link)
    if here == start:
        return end
    return start if network.is_half_duplex(link) and here == end else None
