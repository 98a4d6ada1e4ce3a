"""Closed forms of the ring collectives on a uniform network: what the engines are compared with, never built on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule
from ringnet.engines.trace import Workers
from ringnet.networks import Network


@dataclass(frozen=True)
class Hop:
    """What one transfer of a ring costs, the same for every worker and link.

    Parameters
    ----------
    alpha_s : float
        Seconds per transfer, whatever its size.
    beta_s_per_byte : float
        Seconds per byte on the way.
    gamma_s_per_byte : float
        Seconds per byte reduced.
    """

    alpha_s: float
    beta_s_per_byte: float
    gamma_s_per_byte: float = 0.0


def ring_reduce_scatter_s(n_workers: int, largest_chunk_bytes: int, hop: Hop) -> float:
    """Return (N-1)(alpha + c (beta + gamma)) seconds, c the bytes of the largest chunk.

    >>> ring_reduce_scatter_s(4, 1000, Hop(alpha_s=2.0, beta_s_per_byte=0.5))
    1506.0
    """
    per_byte = hop.beta_s_per_byte + hop.gamma_s_per_byte
    return (n_workers - 1) * (hop.alpha_s + largest_chunk_bytes * per_byte)


def ring_all_gather_s(n_workers: int, largest_chunk_bytes: int, hop: Hop) -> float:
    """Return (N-1)(alpha + c beta) seconds, c the bytes of the largest chunk: a copy is free."""
    return (n_workers - 1) * (hop.alpha_s + largest_chunk_bytes * hop.beta_s_per_byte)


def ring_all_reduce_s(n_workers: int, largest_chunk_bytes: int, hop: Hop) -> float:
    """Return the time of both phases: 2(N-1)(alpha + c beta) + (N-1) c gamma seconds.

    Nothing is lost to chunks of different sizes: the largest chunk is on its way in every step of both phases.

    >>> ring_all_reduce_s(4, 1000, Hop(alpha_s=2.0, beta_s_per_byte=0.5))
    3012.0
    """
    scatter = ring_reduce_scatter_s(n_workers, largest_chunk_bytes, hop)
    return scatter + ring_all_gather_s(n_workers, largest_chunk_bytes, hop)


#: By collective.
RING_CLOSED_FORMS = {
    "all-reduce": ring_all_reduce_s,
    "reduce-scatter": ring_reduce_scatter_s,
    "all-gather": ring_all_gather_s,
}


def closed_form_s(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: NDArray[np.int64]
) -> float | None:
    """Return the closed form of this run in seconds, or None where there is none: links or workers differ."""
    if schedule.algorithm != "ring" or schedule.n_workers == 1:
        return None
    hop = uniform_hop(network, workers)
    if hop is None:
        return None
    return RING_CLOSED_FORMS[schedule.collective](schedule.n_workers, int(chunk_bytes.max()), hop)


def uniform_hop(network: Network, workers: Workers) -> Hop | None:
    """Return what a transfer to the right-hand neighbour costs, if that is the same all around; None otherwise.

    It is the same if all workers are alike, and the routes are equally long, share no link and are made of links alike.
    """
    n_workers = network.n_workers
    if network.pieces or network.profiles or network.window is not None or network.packets is not None:
        return None
    routes = np.array(
        [network.route(worker, (worker + 1) % n_workers) for worker in range(n_workers)], dtype=object
    )
    if routes.ndim != 2 or len(np.unique(routes)) < routes.size:  # noqa: PLR2004 -- ragged: not equally long
        return None
    links = routes.ravel().astype(np.int64)
    bandwidth_Bps, latency_s = network.bandwidth_Bps[links], network.latency_s[links]
    of_workers = (workers.start_s, workers.send_overhead_s, workers.recv_overhead_s, workers.reduce_Bps)
    if not all(map(_alike, (bandwidth_Bps, latency_s, *of_workers))):
        return None
    n_links = routes.shape[1]
    # Under fair sharing a transfer has all its links at once, whatever the switching.
    whole = network.switching == "store-and-forward" and network.sharing != "fair"
    served = n_links if whole else 1
    overhead_s = workers.send_overhead_s[0] + workers.recv_overhead_s[0]
    return Hop(
        alpha_s=float(overhead_s + n_links * latency_s[0]),
        beta_s_per_byte=float(served / bandwidth_Bps[0]),
        gamma_s_per_byte=float(1 / workers.reduce_Bps[0]),
    )


def _alike(values: NDArray[np.float64]) -> bool:
    return bool((values == values[0]).all())
