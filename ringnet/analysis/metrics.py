"""What is concluded from a trace: time, what it is made of, bytes by link, and the link that holds the others back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule
from ringnet.engines.trace import PATH_PARTS, Trace
from ringnet.networks import Network

if TYPE_CHECKING:
    import pandas as pd

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

#: Bytes that busbw counts for each byte of the message, by collective: the convention of nccl-tests.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n_workers: 2 * (n_workers - 1) / n_workers,
    "reduce-scatter": lambda n_workers: (n_workers - 1) / n_workers,
    "all-gather": lambda n_workers: (n_workers - 1) / n_workers,
    "all-to-all": lambda n_workers: (n_workers - 1) / n_workers,
    "broadcast": lambda n_workers: float(n_workers > 1),
    "reduce": lambda n_workers: float(n_workers > 1),
}

#: Equal links, with as many transfers, whose bytes differ by less than this share are alike: chunks may differ by an
#: element. Of others no difference in time may be above rounding.
ALIKE_BYTES, ALIKE_TIME = 0.1, 1e-9


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
    return (
        {part: float(trace.workers[f"path_{part}_s"][last]) / total_s for part in PATH_PARTS}
        if total_s
        else {}
    )


def crossing_bytes(schedule: Schedule, network: Network, chunk_bytes: IntArray) -> IntArray:
    """Return the bytes that a schedule puts on each link of a network whose sharing is known, shape (n_links,)."""
    pairs: dict[int, int] = {}
    for step in schedule.steps():
        each = step.src * schedule.n_workers + step.dst
        carried = charged_bytes(network, step.sizes(chunk_bytes))
        for pair, n_bytes in zip(each.tolist(), carried.tolist(), strict=True):
            pairs[pair] = pairs.get(pair, 0) + n_bytes
    crossing = np.zeros(network.n_links, dtype=np.int64)
    for pair, n_bytes in pairs.items():
        crossing[[*network.route(*divmod(pair, schedule.n_workers))]] += n_bytes
    return crossing


def mean_latency_s(schedule: Schedule, network: Network, chunk_bytes: IntArray) -> FloatArray:
    """Return the latency of each link for the transfers of a schedule, in the mean where it depends on the size.

    Returns
    -------
    ndarray of float64, shape (n_links,)
        As the network has it for links that no transfer crosses.
    """
    latency_s = network.latency_s.copy()
    sums: dict[int, list[float]] = {}
    for step in schedule.steps() if network.behaviours else ():
        columns = (step.src, step.dst, step.sizes(chunk_bytes))
        for src, dst, n_bytes in zip(*(column.tolist() for column in columns), strict=True):
            for link in network.route(src, dst):
                if link in network.behaviours:
                    offer = network.behaviours[link].offer(n_bytes, 0.0)
                    sums.setdefault(link, []).append(offer.latency_s)
    for link, each_s in sums.items():
        latency_s[link] = sum(each_s) / len(each_s)
    return latency_s


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


def slowest_links(links: pd.DataFrame) -> list[int]:
    """Return the rows of the links that alone would take longest for their transfers; none if all take as long.

    ``latency_s`` is that of the transfers that a link carried: see `mean_latency_s`.

    A link alone takes its latency for each transfer and its busy time, so that one of low bandwidth is found with large
    messages and one of high latency with small ones.
    """
    used = links[links["transfers"] > 0]
    alone_s = used["busy_s"] + used["transfers"] * used["latency_s"]
    # What a link gave, whatever it says of itself: a bandwidth may change, or depend on the size.
    given_Bps = (used["bytes"] / used["busy_s"]).dropna()
    equal = _spread(given_Bps) <= ALIKE_TIME and not any(
        _spread(used[name]) for name in ("latency_s", "transfers")
    )
    if used.empty or _spread(alone_s) <= ALIKE_TIME or (equal and _spread(used["bytes"]) <= ALIKE_BYTES):
        return []
    return [int(row) for row in used.index[alone_s >= alone_s.max() * (1 - ALIKE_TIME)]]


def _spread(column: pd.Series[Any]) -> float:
    """Return by what share of the largest the smallest is below it."""
    values = column.to_numpy(dtype=np.float64)
    return float(np.ptp(values) / values.max()) if len(values) and values.max() else 0.0
