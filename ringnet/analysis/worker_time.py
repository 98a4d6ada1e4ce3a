"""What each worker did with its time: something of its own moved, its processor worked, it waited, or it was done.

Engines leave rows of transfers and of services on links; here they become intervals of each worker, and these are
swept once in the order of time. Every moment counts once, so that the parts add up to the worker's time, whatever the
number of channels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import Columns, Trace, Workers
from ringnet.networks import BySize, FailsOver, Lossy, Network, OverTime, beyond

#: What a moment is counted as: the first of these that holds; the last where none of the others does.
PAUSED, WORKS, MOVES, QUEUES, LATE = range(5)


class Intervals(NamedTuple):
    """Spans of time of workers, all of one kind; arrays of shape (n_intervals,)."""

    worker: IntArray
    from_s: FloatArray
    to_s: FloatArray


def worker_time(trace: Trace, network: Network, workers: Workers) -> Columns:
    """Return what each worker of the first job did with its time in the run.

    Parameters
    ----------
    trace : Trace
    network : Network
        With the sharing of the run.
    workers : Workers
        And switches, of a schedule with some.

    Returns
    -------
    dict of str to ndarray, shape (n_workers,)
        ``moving_s, late_partner_s, busy_link_s, waiting_s, idle_end_s``. With ``overhead_s`` and ``reducing_s`` of the
        trace, and without ``waiting_s``, which is the two before it, they add up to the end of the last worker less the
        worker's own start; where workers pause, with ``paused_s``, too. NaN, but for the idle end, where the rows that
        it takes are not kept, or something of its own is drawn for each transfer, which rows do not say.

    Notes
    -----
    A moment between start and end of a worker counts as the first of these that holds: its processor stands still, in
    trouble; its processor works; something
    of its own moves; something of its own stands at a busy link; it waits for a partner, from whom nothing is on its
    way yet. What a worker sends moves as long as its first link serves it (in a rendezvous, which the sender stays for,
    until it arrives); what it receives moves whenever a link serves it or it is in flight. Under fair sharing nothing
    stands: flows move, if slowly. A transfer that waits for credit or for its receiver is not on its way.
    """
    start_s, end_s = trace.workers["start_s"], trace.workers["end_s"]
    unknown = np.full(len(start_s), np.nan)
    idle = {"idle_end_s": end_s.max(initial=-np.inf) - end_s}
    known = (BySize, OverTime, Lossy, FailsOver)
    drawn = beyond(network, known, fair=True, window=True, packets=True) or workers.chance
    if trace.transfers is None or trace.services is None or drawn:
        names = ["moving_s", "late_partner_s", "busy_link_s", "waiting_s"]
        names += ["paused_s"] if workers.paces else []
        return {**dict.fromkeys(names, unknown), **idle}
    mine = trace.services["owner"] == trace.job
    own = trace.services if mine.all() else {name: one[mine] for name, one in trace.services.items()}
    moving, queueing = _on_links(trace.transfers, own, network, workers.sends == "rendezvous")
    works = _processor(trace.transfers, workers)
    still = _pauses(workers)
    kinds = tuple(_of_workers(kind, len(start_s)) for kind in (still, works, moving, queueing))
    parts = _swept(kinds, start_s, end_s)
    return {
        **({"paused_s": parts[:, PAUSED]} if workers.paces else {}),
        "moving_s": parts[:, MOVES],
        "late_partner_s": parts[:, LATE],
        "busy_link_s": parts[:, QUEUES],
        "waiting_s": parts[:, LATE] + parts[:, QUEUES],
        **idle,
    }


def _of_workers(kind: Intervals, n_workers: int) -> Intervals:
    """Leave out what switches do: it is nobody's time."""
    own = kind.worker < n_workers
    return kind if own.all() else Intervals(kind.worker[own], kind.from_s[own], kind.to_s[own])


def _processor(rows: Columns, workers: Workers) -> Intervals:
    """Return when processors work: a launch from the start on, an overhead until its post, the rest until its apply."""
    posting_s = workers.send_overhead_s[rows["src"]]
    reducing_s = np.where(rows["op"] == "reduce", rows["bytes"] / workers.reduce_Bps[rows["dst"]], 0.0)
    applying_s = workers.recv_overhead_s[rows["dst"]] + reducing_s
    launching = np.flatnonzero(workers.launch_s)
    who = np.concatenate([rows["src"], rows["dst"], launching])
    work_s = np.concatenate([posting_s, applying_s, workers.launch_s[launching]])
    ends_s = np.concatenate([rows["posted_s"], rows["applied_s"], workers.launched_s[launching]])
    begins_s, n_rows = ends_s - work_s, len(rows["src"]) + len(rows["dst"])
    begins_s[n_rows:] = workers.start_s[launching]
    for worker, pace in workers.paces.items():
        for row in np.flatnonzero(who[:n_rows] == worker).tolist():
            begins_s[row] = pace.begin_s(float(ends_s[row]), float(work_s[row]))
    return Intervals(who, begins_s, ends_s)


def _pauses(workers: Workers) -> Intervals:
    """Return when processors stand still."""
    found = [(worker, *pause) for worker, pace in workers.paces.items() for pause in pace.pauses()]
    who, from_s, to_s = zip(*found, strict=True) if found else ((), (), ())
    return Intervals(
        np.array(who, dtype=np.int64), np.array(from_s, dtype=np.float64), np.array(to_s, dtype=np.float64)
    )


def _on_links(rows: Columns, own: Columns, network: Network, is_rendezvous: bool) -> tuple[Intervals, Intervals]:
    """Return when something moves from or to a worker, by the services of its own transfers, and when it stands."""
    src, dst = rows["src"][own["transfer"]], rows["dst"][own["transfer"]]
    first = own["hop"] == 0
    if network.sharing == "fair":  # all links at once, after the latency of the whole route
        first = np.ones(len(src), dtype=np.bool_)
        from_s, to_s = (
            own["start_s"] - _route_latencies_s(src, dst, network, rows["bytes"][own["transfer"]]),
            own["end_s"],
        )
        sent_s = to_s
    else:
        from_s, to_s = own["start_s"], own["end_s"] + _latencies_s(own, network, rows["bytes"])
        sent_s = own["end_s"]
    first |= is_rendezvous  # in which the sender stays until all of it has arrived
    sent_s = to_s if is_rendezvous else sent_s
    sent = Intervals(src[first], from_s[first], sent_s[first])
    moving = Intervals(*(np.concatenate(pair) for pair in zip(sent, Intervals(dst, from_s, to_s), strict=True)))
    waits = own["start_s"] - own["head_s"] > ROUNDING * own["start_s"]
    if network.sharing == "fair" or not waits.any():
        none = np.zeros(0, dtype=np.int64)
        return moving, Intervals(none, none.astype(np.float64), none.astype(np.float64))
    heads_s, starts_s = own["head_s"][waits], own["start_s"][waits]
    at_first = first[waits]
    return moving, Intervals(
        np.concatenate([src[waits][at_first], dst[waits]]),
        np.concatenate([heads_s[at_first], heads_s]),
        np.concatenate([starts_s[at_first], starts_s]),
    )


def _latencies_s(services: Columns, network: Network, n_bytes: IntArray) -> FloatArray:
    """Return the latency of each service's link for its transfer."""
    latency_s: FloatArray = network.latency_s[services["link"]]
    for link, behaviour in network.behaviours.items():
        for row in np.flatnonzero(services["link"] == link).tolist():
            size, start_s = int(n_bytes[services["transfer"][row]]), float(services["start_s"][row])
            latency_s[row] = behaviour.offer(size, start_s).latency_s
    return latency_s


def _route_latencies_s(src: IntArray, dst: IntArray, network: Network, n_bytes: IntArray) -> FloatArray:
    """Return the latency of the route of each flow, for transfers of its size."""
    sizes = n_bytes if network.behaviours else np.zeros_like(n_bytes)
    flows, at = np.unique(np.stack([src, dst, sizes]), axis=1, return_inverse=True)
    each_s = np.zeros(flows.shape[1])
    for within, links in network.hops(flows[0], flows[1]):
        rows = np.arange(len(each_s)) if within is None else within
        of_hop_s = network.latency_s[links]
        for place in np.flatnonzero(np.isin(links, [*network.behaviours])).tolist():
            size = int(flows[2, rows[place]])
            of_hop_s[place] = network.behaviours[int(links[place])].offer(size, 0.0).latency_s
        each_s[rows] += of_hop_s
    latency_s: FloatArray = each_s[at.reshape(-1)]
    return latency_s


def _by_worker_and_time(worker: IntArray, time_s: FloatArray) -> IntArray:
    """Return what sorts edges; four times as fast as `numpy.lexsort` where 16 bits are enough for a worker."""
    by_time = np.argsort(time_s)
    numbers = worker.astype(np.uint16) if worker.max(initial=0) < 1 << 16 else worker
    order: IntArray = by_time[np.argsort(numbers[by_time], kind="stable")]
    return order


def _swept(kinds: tuple[Intervals, ...], start_s: FloatArray, end_s: FloatArray) -> FloatArray:
    """Return the seconds of each worker, between its start and its end, by what they count as; shape (n_workers, 5)."""
    n_workers = len(start_s)
    # A worker's start and end are edges, too, of nothing: the gaps at both ends are late.
    numbers = np.arange(n_workers)
    at, times_s, edges = [numbers, numbers], [start_s, end_s], [np.zeros(2 * n_workers, dtype=np.int8)]
    present = []
    for number, (worker, begin_s, until_s) in enumerate(kinds):
        from_s, to_s = np.maximum(begin_s, start_s[worker]), np.minimum(until_s, end_s[worker])
        lasts = to_s > from_s
        count = int(np.count_nonzero(lasts))
        if not count:
            continue
        present.append(number)
        at += [worker[lasts]] * 2
        times_s += [from_s[lasts], to_s[lasts]]
        # Begins of a kind are its number from 1 on, ends the same below zero.
        edges.append(np.repeat(np.array([number + 1, -number - 1], dtype=np.int8), count))
    every, all_s = np.concatenate(at), np.concatenate(times_s)
    order = _by_worker_and_time(every, all_s)
    worker, time_s, edge = every[order], all_s[order], np.concatenate(edges)[order]
    state = np.full(len(order), LATE, dtype=np.int8)
    for number in sorted(present, reverse=True):  # of several that hold the first counts
        changes = (edge == number + 1).view(np.int8) - (edge == -number - 1).view(np.int8)
        state[np.cumsum(changes, dtype=np.int32) > 0] = number
    passed_s = np.where(worker[1:] == worker[:-1], np.diff(time_s), 0.0)
    # A gap so short is rounding: what comes next has its time from another sum.
    state[:-1][(passed_s <= ROUNDING * time_s[1:]) & (state[:-1] >= QUEUES)] = MOVES
    cells = worker[:-1] * (LATE + 1) + state[:-1]
    seconds: FloatArray = np.bincount(cells, passed_s, n_workers * (LATE + 1)).astype(np.float64)
    return seconds.reshape(n_workers, LATE + 1)
