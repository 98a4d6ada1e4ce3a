"""What the compiled loop knows: it does the one thing that SimPy's processes do too, where nothing else goes on."""

from __future__ import annotations

import numpy as np

from ringnet.collectives import Schedule
from ringnet.engines.trace import Workers
from ringnet.networks import BySize, Network, beyond


def why_not_compiled(schedule: Schedule, network: Network, workers: Workers) -> str | None:
    """Return why the compiled loop does not do this run; None where it does."""
    if schedule.n_switches:
        return "switches reduce what comes to them"
    if reason := beyond(network, [BySize], fair=True, window=True, packets=True) or workers.beyond:
        return reason
    if not np.isfinite(workers.start_s).all():
        return f"worker {int(np.argmax(~np.isfinite(workers.start_s)))} never starts"
    return None
