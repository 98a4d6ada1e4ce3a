"""A private link from every worker to every other."""

from __future__ import annotations

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Network, Route
from ringnet.networks.wiring import place_names, wired, wires

#: Links of a network that is made: beyond, their names alone fill a memory.
MOST_LINKS = 100_000_000


def fully_connected(n_workers: int, bandwidth_Bps: float, latency_s: float) -> Network:
    """N(N-1) links ``i->j``, by sender and then by receiver.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.

    Raises
    ------
    NetworkError
        More links than a memory holds.

    Examples
    --------
    >>> list(fully_connected(3, bandwidth_Bps=50e9, latency_s=5e-7).names)
    ['0->1', '0->2', '1->0', '1->2', '2->0', '2->1']
    """
    others = max(n_workers - 1, 0)
    if n_workers * others > MOST_LINKS:
        message = f"{n_workers:,} workers, each linked to every other, take {n_workers * others:.2g} links"
        raise NetworkError(
            Fault(message, "topology", right=f"at most {MOST_LINKS:,} links, or topology: switch")
        )
    start = np.repeat(np.arange(n_workers), others)
    end = np.tile(np.arange(others), n_workers)
    end += end >= start

    def find_route(src: int, dst: int) -> Route:
        return () if src == dst else (src * others + dst - (dst > src),)

    made = wires(place_names(n_workers, n_workers), [(start, end)], [(bandwidth_Bps, latency_s)])
    return wired("fully-connected", n_workers, made, find_route)
