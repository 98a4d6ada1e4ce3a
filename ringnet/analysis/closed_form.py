"""Closed forms on a uniform network: what the engines are compared with, never built on."""

from __future__ import annotations

import numpy as np

from ringnet.analysis.formulas import FORMS, TransferCost
from ringnet.array_types import Array, IntArray
from ringnet.collectives import Schedule
from ringnet.collectives.rings import ring
from ringnet.engines.trace import Workers
from ringnet.networks import Network, beyond


def ring_reduce_scatter_s(n_workers: int, largest_chunk_bytes: int, cost: TransferCost) -> float:
    """Return (N-1)(alpha + c (beta + gamma)) seconds, c the bytes of the largest chunk.

    >>> ring_reduce_scatter_s(4, 1000, TransferCost(alpha_s=2.0, beta_s_per_byte=0.5))
    1506.0
    """
    per_byte = cost.beta_s_per_byte + cost.gamma_s_per_byte
    return (n_workers - 1) * (cost.alpha_s + largest_chunk_bytes * per_byte)


def ring_all_gather_s(n_workers: int, largest_chunk_bytes: int, cost: TransferCost) -> float:
    """Return (N-1)(alpha + c beta) seconds, c the bytes of the largest chunk: a copy is free."""
    return (n_workers - 1) * (cost.alpha_s + largest_chunk_bytes * cost.beta_s_per_byte)


def ring_all_reduce_s(n_workers: int, largest_chunk_bytes: int, cost: TransferCost) -> float:
    """Return the time of both phases: 2(N-1)(alpha + c beta) + (N-1) c gamma seconds.

    Nothing is lost to chunks of different sizes: the largest chunk is on its way in every step of both
    phases.

    >>> ring_all_reduce_s(4, 1000, TransferCost(alpha_s=2.0, beta_s_per_byte=0.5))
    3012.0
    """
    scatter = ring_reduce_scatter_s(n_workers, largest_chunk_bytes, cost)
    return scatter + ring_all_gather_s(n_workers, largest_chunk_bytes, cost)


#: By collective.
RING_CLOSED_FORMS = {
    "all-reduce": ring_all_reduce_s,
    "reduce-scatter": ring_reduce_scatter_s,
    "all-gather": ring_all_gather_s,
}


def closed_form_s(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> float | None:
    """Return the closed form of this run in seconds, or None: links, workers or chunks differ.

    What all workers launch comes before whatever the algorithm takes.
    """
    if schedule.n_workers == 1 or not _alike(workers.launch_s):
        return None
    launch_s = float(workers.launch_s[0])
    if schedule.made_by is ring:
        cost = uniform_cost(network, workers)
        largest = int(chunk_bytes.max())
        return (
            None
            if cost is None
            else launch_s + RING_CLOSED_FORMS[schedule.collective](schedule.n_workers, largest, cost)
        )
    form = FORMS.get(schedule.made_by) if schedule.made_by is not None else None
    if form is None or not _alike(chunk_bytes):
        return None
    cost = full_cost(schedule, network, workers)
    formula_s = None if cost is None else form(schedule, int(chunk_bytes[0]), cost)
    return None if formula_s is None else launch_s + formula_s


def full_cost(schedule: Schedule, network: Network, workers: Workers) -> TransferCost | None:
    """Return what a transfer of this schedule costs, if it is the same for all, each pair on its own links.

    Workers must send eagerly without overheads; links serve one transfer after another, cut through if there
    are several.
    """
    overheads = workers.send_overhead_s.any() or workers.recv_overhead_s.any()
    if workers.sends != "eager" or overheads or network.sharing == "fair":
        return None
    src, dst = schedule.pairs
    hops = network.hops(src, dst)
    several = len(hops) > 1
    return None if several and network.switching != "cut-through" else _cost(network, workers, hops)


def uniform_cost(network: Network, workers: Workers) -> TransferCost | None:
    """Return what a transfer to the right-hand neighbour costs, if it is the same all around; otherwise None.

    It is the same if all workers are alike, and the routes are equally long, share no link and are made of
    links alike.
    """
    worker = np.arange(network.n_workers)
    return _cost(network, workers, network.hops(worker, np.roll(worker, -1)))


def _cost(network: Network, workers: Workers, hops: list[tuple[IntArray | None, IntArray]]) -> TransferCost | None:
    """Return what a transfer costs over routes, hop by hop: equally long, of links alike, no two sharing one."""
    if beyond(network, fair=True) or workers.beyond:
        return None
    if not hops or any(within is not None for within, _ in hops):
        return None
    links = np.concatenate([of_hop for _, of_hop in hops])
    if np.bincount(links).max(initial=0) > 1:
        return None
    bandwidth_Bps, latency_s = network.bandwidth_Bps[links], network.latency_s[links]
    of_workers = (workers.start_s, workers.send_overhead_s, workers.recv_overhead_s, workers.reduce_Bps)
    if not all(map(_alike, (bandwidth_Bps, latency_s, *of_workers))):
        return None
    n_links = len(hops)
    # Under fair sharing a transfer has all its links at once, whatever the switching.
    whole = network.switching == "store-and-forward" and network.sharing != "fair"
    served = n_links if whole else 1
    overhead_s = workers.send_overhead_s[0] + workers.recv_overhead_s[0]
    return TransferCost(
        alpha_s=float(overhead_s + n_links * latency_s[0]),
        beta_s_per_byte=float(served / bandwidth_Bps[0]),
        gamma_s_per_byte=float(1 / workers.reduce_Bps[0]),
    )


def _alike(values: Array) -> bool:
    return bool((values == values[0]).all())
