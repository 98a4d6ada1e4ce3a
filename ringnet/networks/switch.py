"""One switch: every worker has a link up to it and a link down from it."""

from __future__ import annotations

from ringnet.networks.network import Network, Route, link_array


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

    def find_route(src: int, dst: int) -> Route:
        return (src, n_workers + dst)

    return Network(
        topology="switch",
        n_workers=n_workers,
        names=(*up, *down),
        bandwidth_Bps=link_array(bandwidth_Bps, 2 * n_workers),
        latency_s=link_array(latency_s, 2 * n_workers),
        find_route=find_route,
    )
