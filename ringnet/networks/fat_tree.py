"""The three-level fat tree of switches with k ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008)."""

from __future__ import annotations

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Network, Route
from ringnet.networks.wiring import IntArray, Wires, place_names, wired, wires


def fat_tree(n_workers: int, bandwidth_Bps: float, latency_s: float, *, k: int) -> Network:
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
        raise NetworkError(Fault("a fat tree has switches with an even number of ports", "k", value=str(k)))
    half, n_places = k // 2, k**3 // 4
    if n_places < n_workers:
        message = f"a fat tree of k={k} has places for {n_places} workers, not for {n_workers}"
        raise NetworkError(Fault(message, "k", right=f"at least {_least_k(n_workers)}"))
    made = _links(n_workers, k, (bandwidth_Bps, latency_s))
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

    return wired("fat-tree", n_workers, made, find_route)


def _links(n_workers: int, k: int, rate: tuple[float, float]) -> Wires:
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
    return wires(nodes, [*up, *((end, start) for start, end in up)], [rate] * 6)


def _least_k(n_workers: int) -> int:
    return next(k for k in range(2, 2**12, 2) if k**3 // 4 >= n_workers)
