"""Groups of routers that are fully connected inside, with a cable between every two groups (Kim et al., ISCA 2008)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Network, Route
from ringnet.networks.wiring import place_names, wired, wires


def dragonfly(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    groups: int,
    routers_per_group: int,
    hosts_per_router: int,
) -> Network:
    """Workers fill the routers in order; minimal routes: inside the group, over one global link, inside the other.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds; global ones may be changed by rule: ``g*->g*``.
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
        message = f"{n_routers} routers of {hosts_per_router} have places for {n_places} workers"
        raise NetworkError(Fault(f"{message}, not for {n_workers}", "groups", right="more groups"))
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
    made = wires([*place_names(n_workers, n_places), *routers], ends, [(bandwidth_Bps, latency_s)] * 3)

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        a, b = src // hosts_per_router, dst // hosts_per_router
        one, other = a // routers_per_group, b // routers_per_group
        stops = [a, b] if one == other else [a, gate(one, other), gate(other, one), b]
        hops = (pair for pair in pairwise(stops) if pair[0] != pair[1])
        return (src, *(number[pair] for pair in hops), n_places + dst)

    return wired("dragonfly", n_workers, made, find_route)
