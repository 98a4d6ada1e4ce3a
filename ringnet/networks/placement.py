"""Where workers sit: which place of a network each has, and a ring order that loads no link more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import TypeAlias

import numpy as np

from ringnet.array_types import FloatArray
from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Network, Route

#: Worst load of a link, sum of the squares of all loads, hops in all: rings are compared by these, in this order.
Cost: TypeAlias = tuple[float, float, int]

#: Workers up to which every ring is tried.
EXACT = 9
#: Exchanges that are tried beyond: a second or two.
MOST_TRIES = 40_000
#: Costs that differ by less, as a share, count as equal: they are sums in another order.
ALIKE = 1e-12


def placed(network: Network, places: Sequence[int]) -> Network:
    """Return the network with worker i at place ``places[i]``; links keep the names of the places.

    Parameters
    ----------
    network : Network
        Each of its workers becomes a place.
    places : sequence of int
        One for each worker; the other places stay empty.

    Raises
    ------
    NetworkError
        For every place that does not exist, and every one that is taken twice.

    Examples
    --------
    >>> from ringnet.networks.basic import switch
    >>> network = placed(switch(4, 50e9, 5e-7), [2, 0, 3])
    >>> [network.names[link] for link in network.route(0, 1)]
    ['2->switch', 'switch->0']
    """
    chosen = tuple(places)
    if faults := [*_wrong_places(network, chosen)]:
        raise NetworkError(*faults)
    at = tuple(network.node(place) for place in chosen)
    equal_routes = network.find_equal_routes
    return replace(
        network,
        n_workers=len(chosen),
        places=at,
        find_route=lambda src, dst: network.find_route(chosen[src], chosen[dst]),
        find_equal_routes=equal_routes and (lambda src, dst: equal_routes(chosen[src], chosen[dst])),
    )


def _wrong_places(network: Network, places: Sequence[int]) -> list[Fault]:
    faults, taken = [], set[int]()
    for number, place in enumerate(places):
        if not 0 <= place < network.n_workers:
            message, right = f"the {network.topology} has no such place", f"0 to {network.n_workers - 1}"
            faults.append(Fault(message, str(number), value=str(place), right=right))
        elif place in taken:
            faults.append(Fault("the place is taken already", str(number), value=str(place)))
        taken.add(place)
    return faults


def interleaved(network: Network, n_workers: int) -> list[int]:
    """Return places that take the groups of a network in turn: the first of each, then the second of each, and so on.

    A group is all places at one leaf, host or router: those whose first links lead to one switch, or (where its name
    has a ``/``) into one host or group.

    Parameters
    ----------
    network : Network
        Its workers are the places.
    n_workers : int
        How many places are wanted.

    Raises
    ------
    NetworkError
        If the places are all in one group, or in none.

    Examples
    --------
    >>> from ringnet.networks.datacenter import leaf_spine
    >>> interleaved(leaf_spine(8, 50e9, 5e-7, leaves=2), 6)
    [0, 4, 1, 5, 2, 6]
    """
    places = {network.node(place): place for place in range(network.n_workers)}
    first: dict[str, str] = {}
    for link in range(network.n_links):
        start, end = network.ends(link)
        if start in places and end not in places:
            first.setdefault(start, end.partition("/")[0])
    groups: dict[str, list[int]] = {}
    for node, group in first.items():
        groups.setdefault(group, []).append(places[node])
    if len(groups) <= 1:
        raise NetworkError(Fault(f"the {network.topology} has no groups of places to interleave over"))
    rounds = zip_longest(*(sorted(members) for members in groups.values()))
    return [place for places in rounds for place in places if place is not None][:n_workers]


def best_order(network: Network, message_bytes: int | None = None, *, for_load: bool = False) -> list[int]:
    """Return the order of workers in a ring whose worst load of a link is least; `placed` takes it.

    The load of a link is the number of neighbours in the ring whose route crosses it, over what it gives to each of
    them: its bandwidth, or for the chunks of an all-reduce of ``message_bytes`` where that depends on size or time. Of
    rings that are equal in that, the one with the smaller sum of squared loads is better, then the one with fewer hops.
    With ``for_load`` the search ends with a ring that no other can be below in the worst load, whatever else it costs.

    Returns
    -------
    list of int
        Starts with worker 0. Never worse than as numbered.

    Notes
    -----
    Up to `EXACT` workers every ring is tried, except those that begin worse than the best so far. With more workers
    the search starts from two rings: as numbered, and from each worker to the nearest one left (fewest hops, then the
    lowest number). Both are improved by exchanging two workers and by reversing stretches (2-opt) until nothing helps
    or `MOST_TRIES` were tried, and the better one is returned. That is a heuristic: a better ring may exist.

    Examples
    --------
    >>> from ringnet.networks.datacenter import leaf_spine
    >>> network = placed(leaf_spine(4, 50e9, 5e-7, leaves=2), [0, 2, 1, 3])
    >>> best_order(network)
    [0, 1, 3, 2]
    """
    loads = _Loads(network, message_bytes)
    numbered = [*range(network.n_workers)]
    if network.n_workers <= 2:  # noqa: PLR2004 -- there is one ring only
        return numbered
    if network.n_workers <= EXACT:
        return _exact(loads, numbered)
    enough = loads.least() if for_load else 0.0
    found = [numbered]
    for order in (_nearest(loads, numbered), numbered):
        found.append(_improved(loads, order, enough))
        if loads.cost(found[-1])[0] <= enough:
            return found[-1]
    return min([numbered, *found[:0:-1]], key=loads.cost)


def ring_load(network: Network, message_bytes: int | None = None) -> float:
    """Return the worst load of a link under a ring as numbered: seconds for a byte of each neighbour that crosses it.

    Examples
    --------
    >>> from ringnet.networks.datacenter import leaf_spine
    >>> network = placed(leaf_spine(4, 1e9, 5e-7, leaves=2, spines=1, oversubscription=4.0), [0, 2, 1, 3])
    >>> ring_load(network), ring_load(placed(network, best_order(network)))
    (4e-09, 2e-09)
    """
    return _Loads(network, message_bytes).cost(range(network.n_workers))[0]


class _Loads:
    """The loads that the neighbours in a ring put on the links of a network."""

    def __init__(self, network: Network, message_bytes: int | None) -> None:
        self.network = network
        self.weight_s: FloatArray = 1.0 / network.bandwidth_Bps
        chunk_bytes = (message_bytes or 0) / network.n_workers
        between_two = 2 * (network.n_workers - 1) * chunk_bytes
        for link, behaviour in network.behaviours.items() if between_two else ():
            self.weight_s[link] = behaviour.service_s(0.0, between_two, chunk_bytes) / between_two
        self.routes: dict[tuple[int, int], Route | None] = {}

    def route(self, src: int, dst: int) -> Route | None:
        """Return the links between two neighbours; None where there is no way."""
        if (src, dst) not in self.routes:
            try:
                self.routes[src, dst] = self.network.route(src, dst)
            except NetworkError:
                self.routes[src, dst] = None
        return self.routes[src, dst]

    def hops(self, src: int, dst: int) -> float:
        """Return the hops from one worker to another; infinite where there is no way."""
        route = self.route(src, dst)
        return float("inf") if route is None else len(route)

    def least(self) -> float:
        """Return what some link has at least in every ring: of each worker's links out the one with the least."""
        outs = {self.network.node(worker): float("inf") for worker in range(self.network.n_workers)}
        for link, weight_s in enumerate(self.weight_s.tolist()):
            for end in self.network.ends(link)[: 1 + self.network.is_half_duplex(link)]:
                if end in outs:
                    outs[end] = min(outs[end], weight_s)
        return max(outs.values()) * (1 + ALIKE)

    def cost(self, order: Sequence[int]) -> Cost:
        """Return what a ring costs; infinite if it cannot be."""
        routes = [self.route(*pair) for pair in pairwise([*order, order[0]])]
        if None in routes:
            return float("inf"), float("inf"), 0
        links = np.array([link for route in routes for link in route or ()], dtype=np.int64)
        load = np.bincount(links, self.weight_s[links], minlength=len(self.weight_s))
        return float(load.max(initial=0.0)), float((load**2).sum()), len(links)


def _better(one: Cost, other: Cost) -> bool:
    for mine, theirs in zip(one, other, strict=True):
        if abs(mine - theirs) > ALIKE * max(abs(mine), abs(theirs)) and mine != theirs:
            return mine < theirs
    return False


def _exact(loads: _Loads, numbered: list[int]) -> list[int]:
    best, least = numbered, loads.cost(numbered)
    load = np.zeros(len(loads.weight_s))

    def search(order: list[int], left: list[int]) -> None:
        nonlocal best, least
        if not left:
            cost = loads.cost(order)
            if _better(cost, least):
                best, least = [*order], cost
            return
        for worker in left:
            route = loads.route(order[-1], worker)
            if route is None:
                continue
            links = list(route)
            load[links] += loads.weight_s[links]
            if load[links].max(initial=0.0) <= least[0] * (1 + ALIKE):
                search([*order, worker], [other for other in left if other != worker])
            load[links] -= loads.weight_s[links]

    search([0], numbered[1:])
    return best


def _nearest(loads: _Loads, numbered: list[int]) -> list[int]:
    order, left = [numbered[0]], numbered[1:]
    while left:
        here = order[-1]
        order.append(min(left, key=lambda worker: (loads.hops(here, worker), worker)))
        left.remove(order[-1])
    return order


def _improved(loads: _Loads, order: list[int], enough: float) -> list[int]:
    """Exchange and reverse until nothing helps, or the worst load is small enough."""
    least, tries, size = loads.cost(order), 0, len(order)
    found = True
    most = MOST_TRIES * EXACT // size  # a try costs as much as the ring is long
    while found and least[0] > enough:
        found = False
        for first in range(1, size - 1):
            for last in range(first + 1, size):
                for other in _neighbours(order, first, last):
                    tries += 1
                    cost = loads.cost(other)
                    if _better(cost, least):
                        order, least, found = other, cost, True
                if tries >= most or least[0] <= enough:
                    return order
    return order


def _neighbours(order: list[int], first: int, last: int) -> list[list[int]]:
    turned = [*order[:first], *order[first : last + 1][::-1], *order[last + 1 :]]
    swapped = [*order]
    swapped[first], swapped[last] = swapped[last], swapped[first]
    return [turned, swapped]
