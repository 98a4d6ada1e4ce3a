"""What the compiled loop knows: it does the one thing that SimPy's processes do too, where nothing else goes on."""

from __future__ import annotations

import numpy as np

from ringnet.collectives import Schedule
from ringnet.engines.trace import Workers
from ringnet.networks import Network, beyond


def why_not_compiled(schedule: Schedule, network: Network, workers: Workers) -> str | None:
    """Return why the compiled loop does not do this run; None where it does."""
    if schedule.n_switches:
        return "switches reduce what comes to them"
    if reason := beyond(network, fair=True) or workers.beyond:
        return reason
    if not np.isfinite(workers.start_s).all():
        return f"worker {int(np.argmax(~np.isfinite(workers.start_s)))} never starts"
    return "several channels of a worker share its chunks" if _shares_chunks(schedule) else None


def _shares_chunks(schedule: Schedule) -> bool:
    """Whether channels of a worker have to do with one chunk, and may so have to wait for each other."""
    if schedule.n_channels == 1:
        return False
    channel = np.full((schedule.n_workers, schedule.n_chunks), -1, dtype=np.int32)
    for step in schedule.moves():
        for worker, channels in ((step.src, step.channel), (step.dst, step.receiving_channel)):
            new = channel[worker, step.chunk] < 0
            channel[worker[new], step.chunk[new]] = channels[new]
            if (channel[worker, step.chunk] != channels).any():
                return True
    return False
