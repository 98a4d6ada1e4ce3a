"""The three simplest networks: a ring of private links, one switch, a private link between every two workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringnet.errors import Fault, NetworkError
from ringnet.networks.link_names import LinkNames
from ringnet.networks.network import Network, RouteFormula, link_array
from ringnet.networks.topology import LinkColumns, place_names


def ring(n_workers: int, bandwidth_Bps: float, latency_s: float) -> Network:
    """N links ``i->(i+1) mod N``, one way; N=1 has none.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.

    Examples
    --------
    >>> list(ring(3, bandwidth_Bps=50e9, latency_s=5e-7).names)
    ['0->1', '1->2', '2->0']
    """
    n_links = n_workers if n_workers > 1 else 0
    start = np.arange(n_links)

    def links(src: Any, dst: Any) -> tuple[Any]:
        astray = dst != (src + 1) % n_workers
        if np.count_nonzero(astray):
            start, end = (int(np.atleast_1d(ends)[np.argmax(astray)]) for ends in (src, dst))
            raise NetworkError(
                f"a ring has a link from worker {start} to worker {(start + 1) % n_workers} only, not to {end}"
            )
        return (src,)

    return Network(
        topology="ring",
        n_workers=n_workers,
        names=LinkNames(tuple(map(str, range(n_links))), start, np.roll(start, -1)),
        bandwidth_Bps=link_array(bandwidth_Bps, n_links),
        latency_s=link_array(latency_s, n_links),
        find_route=RouteFormula(links),
        find_groups=dict,
    )


def switch(n_workers: int, bandwidth_Bps: float, latency_s: float) -> Network:
    """2N links: ``i->switch`` and ``switch->i`` for every worker i; every route takes two of them.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds; a route waits twice the latency.

    Examples
    --------
    >>> network = switch(2, bandwidth_Bps=50e9, latency_s=5e-7)
    >>> [network.names[link] for link in network.route(0, 1)]
    ['0->switch', 'switch->1']
    """
    up = [f"{worker}->switch" for worker in range(n_workers)]
    down = [f"switch->{worker}" for worker in range(n_workers)]

    return Network(
        topology="switch",
        n_workers=n_workers,
        names=(*up, *down),
        bandwidth_Bps=link_array(bandwidth_Bps, 2 * n_workers),
        latency_s=link_array(latency_s, 2 * n_workers),
        find_route=RouteFormula(lambda src, dst: (src, n_workers + dst)),
        find_groups=dict,
    )


#: Links of a network that is made: beyond, their names alone fill a memory.
MOST_LINKS = 100_000_000


def pairs(n_workers: int) -> int:
    """Return how many links lead from every worker to every other."""
    return n_workers * max(n_workers - 1, 0)


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
    if pairs(n_workers) > MOST_LINKS:
        message = f"{n_workers:,} workers, each linked to every other, take {pairs(n_workers):.2g} links"
        raise NetworkError(Fault(message, "topology", right=f"at most {MOST_LINKS:,} links, or topology: switch"))
    start = np.repeat(np.arange(n_workers), others)
    end = np.tile(np.arange(others), n_workers)
    end += end >= start

    routes = RouteFormula(lambda src, dst: (src * others + dst - (dst > src),))
    links = LinkColumns.of(place_names(n_workers, n_workers), [(start, end)], [(bandwidth_Bps, latency_s)])
    return links.network("fully-connected", n_workers, routes)
