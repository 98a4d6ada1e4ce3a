"""What is concluded from a trace: time, what it is made of, and bytes by link."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import PATH_PARTS, Trace
from ringnet.networks import Network

#: Bytes that busbw counts for each byte of the message, by collective: the convention of nccl-tests.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n_workers: 2 * (n_workers - 1) / n_workers,
    "reduce-scatter": lambda n_workers: (n_workers - 1) / n_workers,
    "all-gather": lambda n_workers: (n_workers - 1) / n_workers,
    "all-to-all": lambda n_workers: (n_workers - 1) / n_workers,
    "broadcast": lambda n_workers: float(n_workers > 1),
    "reduce": lambda n_workers: float(n_workers > 1),
}

#: A processor that works so many times as long as the one in the middle, and such a share of the time, stands out.
OUTSTANDING, _WORTH_A_WORD = 1.5, 0.1

#: Times that differ by less than this share are alike: no difference may be above rounding.
ALIKE_TIME = 1e-9


def makespan_s(trace: Trace) -> float:
    """Return the end of the last worker minus the start of the first, in seconds."""
    return float(trace.workers["end_s"].max() - trace.workers["start_s"].min())


def path_shares(trace: Trace) -> dict[str, float]:
    """Return what the path that ended last is made of, as shares of the makespan by part; they add up to 1.

    Going back from the worker that ended last, each moment is put down to what the path then waited for: latency and
    bandwidth of a transfer, its queueing for links, overheads and reductions of workers, or (waiting) the start of a
    worker that started late.
    """
    total_s = makespan_s(trace)
    last = int(trace.workers["end_s"].argmax())
    return {part: float(trace.workers[f"path_{part}_s"][last]) / total_s for part in PATH_PARTS} if total_s else {}


def late_start(trace: Trace) -> tuple[list[int], float]:
    """Return the worker whose late start the path that ended last begins with, and all who start with it; how late.

    No workers where it begins with none.
    """
    start_s = trace.workers["start_s"]
    waited_s = float(trace.workers["path_waiting_s"][int(trace.workers["end_s"].argmax())])
    if waited_s <= ROUNDING * makespan_s(trace):
        return [], 0.0
    late_s = start_s - start_s.min()
    first = int(np.abs(late_s - waited_s).argmin())
    with_it = np.flatnonzero(np.abs(late_s - late_s[first]) <= ROUNDING * makespan_s(trace))
    return with_it.tolist(), float(late_s[first])


def busiest_workers(trace: Trace) -> list[int]:
    """Return the workers whose processors stand out, the busiest first; none where nobody's does.

    Busy are send and receive overheads and reductions. Where more than a quarter stand out, that is the algorithm.
    """
    busy_s, total_s = trace.workers["overhead_s"] + trace.workers["reducing_s"], makespan_s(trace)
    most_s = float(busy_s.max())
    found = np.flatnonzero(busy_s > OUTSTANDING * np.median(busy_s))
    if most_s <= _WORTH_A_WORD * total_s or len(found) > max(len(busy_s) // 4, 1):
        return []
    return [int(worker) for worker in found[np.argsort(-busy_s[found], kind="stable")]]


def crossing_bytes(schedule: Schedule, network: Network, chunk_bytes: IntArray) -> IntArray:
    """Return the bytes that a schedule puts on each link of a network whose sharing is known, shape (n_links,)."""
    pairs: dict[int, int] = {}
    for step in schedule.steps():
        each = step.src * schedule.n_members + step.dst
        carried = charged_bytes(network, step.sizes(chunk_bytes))
        for pair, n_bytes in zip(each.tolist(), carried.tolist(), strict=True):
            pairs[pair] = pairs.get(pair, 0) + n_bytes
    crossing = np.zeros(network.n_links, dtype=np.int64)
    for pair, n_bytes in pairs.items():
        crossing[[*network.route(*divmod(pair, schedule.n_members))]] += n_bytes
    return crossing


def charged_bytes(network: Network, n_bytes: IntArray) -> IntArray:
    """Return what links are charged for transfers of some sizes: the bytes, and a header for each packet.

    What a window lets through at a time is cut into packets on its own. Under fifo sharing an empty transfer is one.

    >>> from dataclasses import replace
    >>> from ringnet.networks import Packets, TOPOLOGIES
    >>> network = replace(TOPOLOGIES["switch"].build(2, 1e9, 1e-6), sharing="fifo", packets=Packets(100, 8))
    >>> charged_bytes(network, np.array([0, 100, 101])).tolist()
    [8, 108, 117]
    """
    packets, window = network.packets, network.window
    if packets is None or not packets.header_bytes:
        return n_bytes
    least = 0 if network.sharing == "fair" else 1
    slot = window.slot_bytes if window is not None and window.bytes is not None else None
    slots = np.zeros_like(n_bytes) if slot is None else np.maximum(n_bytes - 1, 0) // slot
    last = n_bytes - slots * (slot or 0)
    n_packets = slots * -(-(slot or 0) // packets.bytes) + np.maximum(-(-last // packets.bytes), least)
    charged: IntArray = n_bytes + packets.header_bytes * n_packets
    return charged
