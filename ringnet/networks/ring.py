"""A private link from every worker to its right-hand neighbour."""

from __future__ import annotations

from ringnet.errors import NetworkError
from ringnet.networks.network import Network, Route, link_array


def ring(n_workers: int, bandwidth_Bps: float, latency_s: float) -> Network:
    """N links ``i->(i+1) mod N``, one way; N=1 has none.

    Parameters
    ----------
    n_workers : int
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.

    Examples
    --------
    >>> ring(3, bandwidth_Bps=50e9, latency_s=5e-7).names
    ('0->1', '1->2', '2->0')
    """
    n_links = n_workers if n_workers > 1 else 0

    def find_route(src: int, dst: int) -> Route:
        if dst != (src + 1) % n_workers:
            raise NetworkError(
                f"a ring has a link from worker {src} to worker {(src + 1) % n_workers} only, not to {dst}"
            )
        return (src,)

    return Network(
        topology="ring",
        n_workers=n_workers,
        names=tuple(f"{worker}->{(worker + 1) % n_workers}" for worker in range(n_links)),
        bandwidth_Bps=link_array(bandwidth_Bps, n_links),
        latency_s=link_array(latency_s, n_links),
        find_route=find_route,
    )
