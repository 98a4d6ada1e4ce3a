"""What a run would gain from a little less of everything: derivatives of its time, read off its critical path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringnet.analysis.critical_path import CriticalPath, critical_path
from ringnet.analysis.path_records import NONE
from ringnet.array_types import Array, BoolArray, FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.trace import FLOW, Trace, Workers
from ringnet.errors import InputError
from ringnet.networks import BySize, Network, beyond


@dataclass(frozen=True)
class Derivatives:
    """By how much the end of the last worker moves with each number of the network and the workers.

    Parameters
    ----------
    latency : ndarray of float64, shape (n_links,)
        Seconds per second of a link's latency: how often the path crosses it.
    inverse_bandwidth : ndarray of float64, shape (n_links,)
        Seconds per second/byte of one by a link's bandwidth: the bytes that the path waits for there.
    start, launch, send_overhead, recv_overhead : ndarray of float64, shape (n_workers,)
        Seconds per second of a worker's start, of its launch, of its overhead for each transfer sent, and received.
    inverse_reduce_rate : ndarray of float64, shape (n_workers,)
        Seconds per second/byte of one by the rate at which a worker reduces: the bytes that the path waits for there.
    inverse_switch_rate : ndarray of float64, shape (n_switches,)
        The same of the switches of the schedule.
    """

    latency: FloatArray
    inverse_bandwidth: FloatArray
    start: FloatArray
    launch: FloatArray
    send_overhead: FloatArray
    recv_overhead: FloatArray
    inverse_reduce_rate: FloatArray
    inverse_switch_rate: FloatArray


def why_no_derivatives(network: Network, workers: Workers, trace: Trace) -> str | None:
    """Return why a run has no derivatives, in words, as far as that is known before its path is; None where it has."""
    if reason := beyond(network, (BySize,)) or workers.beyond:
        return reason
    if trace.until_s is not None:
        return "others share the links"
    if trace.services is not None and (trace.services["hop"] == FLOW).any():
        return "links are shared fairly"
    return None


def derivatives(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, trace: Trace
) -> Derivatives:
    """Return the derivatives of the time at which the last worker ends.

    Parameters
    ----------
    schedule : Schedule
    network : Network
        As the run had it: links with one bandwidth and latency, or with some for each size.
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    trace : Trace
        What a run of the other four left behind, with its rows.

    Raises
    ------
    InputError
        If there are none, with the reason: links that are shared fairly, have packets, a window, or a bandwidth that
        changes; others on the links; rows of transfers that were not kept.

    Notes
    -----
    Every time of a run is the latest of some others, plus a latency, bytes by a bandwidth, an overhead, or bytes by a
    rate of reduction: sums and maxima only. So the end is the largest of many sums, one for each path, each linear in
    starts, launches, latencies, overheads, and ones by bandwidths and rates: a max-plus polynomial (Baccelli, Cohen,
    Olsder and Quadrat, *Synchronization and Linearity*, 1992), convex and piecewise linear in all of them together. The
    path that ended last is the largest sum; what it says is the derivative wherever no other path is as long, and
    otherwise one of the subgradients: between what is gained by less and lost by more. By convexity the gain from an
    improvement is never more than the derivative times the improvement; it is less as soon as another path becomes the
    longest.

    All this is for one order in which links serve what comes to them from several senders, and processors their
    channels: where an improvement lets another transfer come first, the time may jump either way.

    The makespan is that end less the start of the first worker.
    """
    if reason := why_no_derivatives(network, workers, trace):
        raise InputError(f"there are no derivatives: {reason}")
    path = critical_path(schedule, network, workers, chunk_bytes, trace)
    return derivatives_along(path, schedule, network)


def derivatives_along(path: CriticalPath, schedule: Schedule, network: Network) -> Derivatives:
    """Return the derivatives that a path says, of a run that has some: see `derivatives`."""
    n_workers, part = schedule.n_workers, path.columns["part"]
    worker, link = path.columns["worker"], path.columns["link"]
    n_bytes, src = (path.of_pieces(name, NONE) for name in ("bytes", "src"))

    def sums(of: Array, where: BoolArray, n: int, weights: IntArray | None = None) -> FloatArray:
        weights = None if weights is None else weights[where]
        return np.bincount(of[where], weights, n).astype(np.float64)

    # The path leaves the start of a worker, late or not, and goes over its launch.
    start = np.arange(n_workers) == path.starter
    # Switches are numbered after the workers, and have no overheads.
    of_transfer = (part == "overhead") & (src != NONE) & (worker < n_workers)
    reduced = sums(worker, part == "reducing", n_workers + schedule.n_switches, n_bytes)
    return Derivatives(
        latency=sums(link, part == "latency", network.n_links),
        inverse_bandwidth=sums(link, part == "bandwidth", network.n_links, n_bytes),
        start=start.astype(np.float64),
        launch=start.astype(np.float64),
        send_overhead=sums(worker, of_transfer & (src == worker), n_workers),
        recv_overhead=sums(worker, of_transfer & (src != worker), n_workers),
        inverse_reduce_rate=reduced[:n_workers],
        inverse_switch_rate=reduced[n_workers:],
    )
