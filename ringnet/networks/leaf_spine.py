"""Two levels of switches: workers on leaves, every leaf with a cable to every spine."""

from __future__ import annotations

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Network, Route
from ringnet.networks.wiring import place_names, wired, wires


def leaf_spine(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    leaves: int | None = None,
    hosts_per_leaf: int | None = None,
    spines: int = 1,
    oversubscription: float = 1.0,
) -> Network:
    """Workers fill the leaves in order: worker i is on leaf ``i // hosts_per_leaf``.

    A route between two leaves takes the spine ``dst % spines``, as static routing by destination does.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link between a worker and its leaf, in bytes per second and seconds; the latency of all links.
    leaves, hosts_per_leaf : int, optional
        One of them gives the other.
    spines : int
    oversubscription : float
        What the workers of a leaf can send, over what its links to the spines can carry: these have
        ``hosts_per_leaf * bandwidth / (spines * oversubscription)`` each.

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
    leaves, per_leaf = _shape(n_workers, leaves, hosts_per_leaf)
    n_places = leaves * per_leaf
    hosts, leaf = np.arange(n_places), np.arange(n_places) // per_leaf + n_places
    up, spine = (part.ravel() for part in np.divmod(np.arange(leaves * spines), spines))
    up, spine = up + n_places, spine + n_places + leaves
    nodes = [*place_names(n_workers, n_places), *(f"leaf{i}" for i in range(leaves))]
    nodes += [f"spine{i}" for i in range(spines)]
    own = bandwidth_Bps, latency_s
    trunk = per_leaf * bandwidth_Bps / (spines * oversubscription), latency_s
    made = wires(nodes, [(hosts, leaf), (leaf, hosts), (up, spine), (spine, up)], [own, own, trunk, trunk])

    def find_route(src: int, dst: int) -> Route:
        if src == dst:
            return ()
        a, b, over = src // per_leaf, dst // per_leaf, dst % spines
        between = (a * spines + over, leaves * spines + b * spines + over) if a != b else ()
        return (src, *(2 * n_places + link for link in between), n_places + dst)

    return wired("leaf-spine", n_workers, made, find_route)


def _shape(n_workers: int, leaves: int | None, hosts_per_leaf: int | None) -> tuple[int, int]:
    """Return the leaves and the places on each."""
    if leaves is None and hosts_per_leaf is None:
        raise NetworkError(Fault("a leaf-spine needs leaves or hosts_per_leaf", "leaves", right="leaves: 2"))
    if hosts_per_leaf is None:
        hosts_per_leaf = max(1, -(-n_workers // (leaves or 1)))
    if leaves is None:
        leaves = max(1, -(-n_workers // hosts_per_leaf))
    if leaves * hosts_per_leaf < n_workers:
        message = f"{leaves} leaves of {hosts_per_leaf} have places for {leaves * hosts_per_leaf} workers"
        raise NetworkError(Fault(f"{message}, not for {n_workers}", "leaves", right="more leaves"))
    return leaves, hosts_per_leaf
