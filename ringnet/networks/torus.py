"""A grid of workers in two or three dimensions whose rows close to rings."""

from __future__ import annotations

from collections.abc import Sequence

from ringnet.networks.grid import grid
from ringnet.networks.network import Network


def torus(n_workers: int, bandwidth_Bps: float, latency_s: float, *, sides: Sequence[int]) -> Network:
    """Two links between neighbours, one each way, along every dimension, and around its ends.

    Routes go dimension by dimension, the first one first, the shorter way around; of two ways alike the one upwards.

    Parameters
    ----------
    n_workers : int
        The product of the sides.
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.
    sides : sequence of int
        Workers along each dimension; the first varies fastest: worker 1 is next to worker 0 in it. Two workers along
        a dimension have one cable, not two.

    Raises
    ------
    NetworkError
        If the sides do not multiply to the workers.

    Examples
    --------
    >>> network = torus(6, 50e9, 5e-7, sides=[3, 2])
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->2', '2->5']
    """
    return grid("torus", n_workers, (bandwidth_Bps, latency_s), sides, closed=True)
