"""How far a time is known: the same run beside it, with latencies that differ by next to nothing.

Under fair sharing each flow's end depends on all that it has met. Over thousands of starts and ends a difference of the
last digit grows, as in any chaos, until flows meet others than before: no simulator knows more digits of such a time,
and the network itself, whose latencies are no better known, has no more to give.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

import numpy as np

from ringnet.analysis.metrics import makespan_s
from ringnet.engines import ENGINES
from ringnet.runs.parts import RunParts
from ringnet.units import format_seconds

#: By what share latencies differ, at most, and from which share on the time does: more than the digits that are shown.
NUDGE, TOLD = 1e-12, 1e-6
#: Transfers up to which latencies are moved both ways: a tie may fall as it did when they are moved one way.
BOTH_WAYS = 50_000


class NudgedRuns:
    """Runs beside a run of the compiled engine, in a thread of their own; they begin at once.

    Below `ringnet.engines.MANY_SHARED` transfers, where another engine runs, 1e-12 never grew beyond 1e-11.
    """

    def __init__(self, parts: RunParts) -> None:
        self.parts = parts
        self._found_s: list[float] = []
        # A daemon: whoever interrupts the run need not wait for it.
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        parts, network = self.parts, self.parts.network_of_run
        moved = np.random.default_rng(0).uniform(-NUDGE, NUDGE, network.n_links)
        for way in (1, -1) if parts.schedule.n_transfers <= BOTH_WAYS else (1,):
            other = replace(network, latency_s=network.latency_s * (1 + way * moved))
            what = (parts.schedule, other, parts.workers, parts.chunk_bytes)
            self._found_s.append(makespan_s(ENGINES["compiled"].run(*what, keep_transfers=0)))

    def moved_share(self, time_s: float) -> float | None:
        """Return by how much of it the time moves; None where that is nothing that need be said."""
        self._thread.join()
        share = max((abs(found_s / time_s - 1) for found_s in self._found_s), default=0.0)
        return share if share > TOLD else None


def moved_note(time_s: float, share: float) -> str:
    """Say that a time is not known better, and why."""
    return (
        f"the time is known to about {format_seconds(share * time_s)}: latencies that differ by {NUDGE:g} of "
        "themselves move it so far, for flows that share links fairly meet others then; compare no designs by less"
    )
