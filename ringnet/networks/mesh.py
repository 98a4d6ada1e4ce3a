"""A grid of workers in two or three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ringnet.networks.grid import grid
from ringnet.networks.network import Network


def mesh(n_workers: int, bandwidth_Bps: float, latency_s: float, *, sides: Sequence[int]) -> Network:
    """Two links between neighbours, one each way, along every dimension; none around its ends.

    Routes go dimension by dimension, the first one first.

    Parameters
    ----------
    n_workers : int
        The product of the sides.
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.
    sides : sequence of int
        Workers along each dimension; the first varies fastest: worker 1 is next to worker 0 in it.

    Raises
    ------
    NetworkError
        If the sides do not multiply to the workers.

    Examples
    --------
    >>> network = mesh(6, 50e9, 5e-7, sides=[3, 2])
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->1', '1->2', '2->5']
    """
    return grid("mesh", n_workers, (bandwidth_Bps, latency_s), sides, closed=False)
