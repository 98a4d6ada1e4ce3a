"""What no run can beat: the bound of a schedule on a network, and that of a collective whatever the algorithm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import EVERY_WORKER, Schedule
from ringnet.networks import Network

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def schedule_bound_s(link_bytes: IntArray, network: Network, start_s: float = 0.0) -> float:
    """Return the largest, over links, of the bytes routed over it by its bandwidth: no run of the schedule beats it.

    Parameters
    ----------
    link_bytes : ndarray of int64, shape (n_links,)
        Bytes that cross each link in the whole run.
    network : Network
        The capacity of a link whose bandwidth changes is integrated from ``start_s`` on; of one that treats sizes
        differently, the most that it gives to any size.
    start_s : float
        When the first worker starts.
    """
    alone_s = link_bytes / peak_bandwidths(network)
    for link, behaviour in network.behaviours.items():
        alone_s[link] = behaviour.least_s(float(link_bytes[link]), start_s)
    return float(alone_s.max(initial=0.0))


def collective_bound_s(
    schedule: Schedule,
    network: Network,
    chunk_bytes: IntArray,
    capacities: tuple[FloatArray, FloatArray] | None = None,
) -> float:
    """Return the time that no algorithm for this collective beats on this network, without reduction inside it.

    Parameters
    ----------
    schedule : Schedule
        Only its collective counts: which workers contribute to each chunk, and which must hold it at the end.
    network : Network
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    capacities : tuple of ndarray, optional
        What `worker_capacities` says of the network, for who asks about many messages.

    Returns
    -------
    float
        Seconds; 0 where nothing need move.

    Notes
    -----
    For each worker, and for all together:

    - *into a worker* must come every chunk that it is to hold and that others contribute to, once at least: what
      comes in is at best the sum of all that the others have;
    - *out of a worker* must go every chunk that it contributes to and that others are to hold, once at least;
    - *over all*, a chunk with k contributors and h holders takes k - 1 transfers for its k values to meet, if
      nothing is reduced on the way, and one for each holder that is not where they met.

    For all-reduce of S bytes that is the larger of S / (smallest capacity into or out of any worker) and
    2(N-1) S / (sum of the capacities out of the workers, or into them). Patarasuk and Yuan, JPDC 69 (2009).
    """
    if schedule.n_workers == 1:
        return 0.0
    out_Bps, in_Bps = capacities or worker_capacities(network)
    source, target = schedule.source, schedule.target
    in_bytes = _must_come(source, target, chunk_bytes, schedule.n_workers)
    out_bytes = _must_come(target, source, chunk_bytes, schedule.n_workers)
    contributors, holders = (np.where(who == EVERY_WORKER, schedule.n_workers, 1) for who in (source, target))
    apart = (source != EVERY_WORKER) & (target != EVERY_WORKER) & (source != target)
    total = ((contributors - 1 + holders - 1 + apart) * chunk_bytes).sum()
    each = max((in_bytes / in_Bps).max(), (out_bytes / out_Bps).max())
    return float(max(each, total / min(out_Bps.sum(), in_Bps.sum())))


def worker_capacities(network: Network) -> tuple[FloatArray, FloatArray]:
    """Return the summed bandwidth of the links out of each worker, and into it; shape (n_workers,), bytes/s."""
    out_Bps, in_Bps = np.zeros(network.n_workers), np.zeros(network.n_workers)
    numbers = {network.node(worker): worker for worker in range(network.n_workers)}
    capacity_Bps = peak_bandwidths(network)
    for link in range(network.n_links):
        ends = network.ends(link)
        for start, end in (ends, ends[::-1]) if network.is_half_duplex(link) else (ends,):
            if start in numbers:
                out_Bps[numbers[start]] += capacity_Bps[link]
            if end in numbers:
                in_Bps[numbers[end]] += capacity_Bps[link]
    return out_Bps, in_Bps


def peak_bandwidths(network: Network) -> FloatArray:
    """Return the most that each link ever gives to any transfer, shape (n_links,), bytes/s."""
    most = network.bandwidth_Bps.copy()
    for link, behaviour in network.behaviours.items():
        most[link] = behaviour.peak()
    return most


def _must_come(source: IntArray, target: IntArray, chunk_bytes: IntArray, n_workers: int) -> IntArray:
    """Return the bytes of the chunks that each worker is meant to get and that some other worker has a part in."""
    alone = source == target
    for_all = target == EVERY_WORKER
    own = for_all & (source != EVERY_WORKER)
    single = ~for_all & ~alone
    into = np.bincount(target[single], chunk_bytes[single], minlength=n_workers)
    less = np.bincount(source[own], chunk_bytes[own], minlength=n_workers)
    must_come: IntArray = (chunk_bytes[for_all].sum() + into - less).astype(np.int64)
    return must_come
