"""A run once more, for its time alone: with other links or workers, or with latencies next to those it has.

The latter says how far a time is known. Under fair sharing each flow's end depends on all that it has met: over
thousands of starts and ends a difference of the last digit grows, as in any chaos, until flows meet others than before.
No simulator knows more digits of such a time, and the network itself, whose latencies are no better known, has no more
to give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Thread

import numpy as np

from ringnet.analysis.critical_path import CriticalPath, critical_path, why_no_path
from ringnet.analysis.derivatives import Derivatives, derivatives_along, why_no_derivatives
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.upgrades import ROUNDING, Upgrade
from ringnet.array_types import FloatArray
from ringnet.engines import ENGINES, KEEP_TRANSFERS
from ringnet.engines.arrays import look_for_rounds, why_not_recurrence
from ringnet.engines.events import run_jobs
from ringnet.engines.trace import Trace
from ringnet.networks import BySize, Network
from ringnet.networks.network import Sharing
from ringnet.runs.engine import engine_of, sharing_of
from ringnet.runs.parts import RunParts, jobs_of
from ringnet.runs.work import BOTH_WAYS, BUDGETED, FREE_S, ONE_S, SHARE, engine_s
from ringnet.units import format_seconds

#: Events of a transfer: under fifo sharing for each link that it crosses.
EVENTS_EACH = 2
#: Share of an upgrade by which a slope is found: small beside what changes the path, large beside rounding.
LITTLE = 1e-5
#: Share by which what is gained by a little may part from what is lost by as little the other way.
BENT = 1e-3


@dataclass(frozen=True)
class SimulatedAgain:
    """Simulates a run again with an upgrade: call it.

    Parameters
    ----------
    parts : RunParts
        Of the run; its network and routes stay, but for what the upgrade changes.
    sharing : {"fifo", "fair"}
        How links are shared in the run.
    ran : str
        The engine of the run.
    took : Trace, optional
        Of the run: what a simulation costs is counted by it.
    """

    parts: RunParts
    sharing: Sharing
    ran: str
    took: Trace | None = None

    def __call__(self, upgrade: Upgrade) -> float:
        """Return the makespan with the upgrade, in seconds."""
        return makespan_s(self.trace(self.engine, upgrade))

    def trace(self, engine: str, upgrade: Upgrade, keep_transfers: int | None = None) -> Trace:
        """Return the trace with the upgrade, by an engine that is exact."""
        parts = self.parts
        workers = upgrade.of_workers(parts.workers)
        if parts.is_alone:
            network = replace(upgrade.of_network(parts.network_of_run), sharing=self.sharing)
            schedule, chunk_bytes = parts.schedule, parts.chunk_bytes
            if parts.fitted is not None and upgrade:
                schedule, chunk_bytes = parts.fitted(network, workers)
            what, run = (schedule, network, workers, chunk_bytes), ENGINES[engine].run
            if engine == "recurrence":
                # What fits itself anew is another schedule, and at other times links may serve in another order.
                looked = look_for_rounds(*what)
                run = ENGINES["events"].run if isinstance(looked, str) else partial(run, exact=looked)
            return run(*what, None, keep_transfers=keep_transfers)
        everybody = (replace(parts, workers=workers), *parts.others)
        jobs = [replace(job, network=upgrade.of_network(job.network)) for job in jobs_of(everybody)]
        jobs[0] = replace(jobs[0], keep_transfers=keep_transfers)
        return run_jobs(jobs, upgrade.of_network(parts.network), parts.traffic)[0]

    def path(self) -> tuple[CriticalPath | None, Derivatives | str]:
        """Return the path that ended last, of the run as it is, if it can be walked; and the derivatives, or why none.

        Where both are unknown beforehand, nothing is simulated.
        """
        parts, network = self.parts, replace(self.parts.network_of_run, sharing=self.sharing)
        if reason := why_no_path(network, parts.workers, None):
            return None, reason
        trace = self.trace(self.ran, Upgrade(), KEEP_TRANSFERS)
        if reason := why_no_path(network, parts.workers, trace):
            return None, reason
        found = critical_path(parts.schedule, network, parts.workers, parts.chunk_bytes, trace)
        fits = "" if parts.fitted is None else f"{parts.schedule.algorithm} fits itself to the numbers"
        reason = fits or why_no_derivatives(network, parts.workers, trace)
        return found, reason or derivatives_along(found, parts.schedule, network)

    def slope_s(self, upgrade: Upgrade) -> float | None:
        """Return what an upgrade would gain if the time went on as it does now: by a little of it, either way.

        None where the time does not go on alike either way: another path ends last then, or other flows meet.
        """
        parts = self.parts
        either = [upgrade.part(parts.network_of_run, parts.workers, share) for share in (-LITTLE, LITTLE)]
        if None in either:
            return None
        before_s, now_s, after_s = (self(one) for one in (either[0], Upgrade(), either[1]) if one is not None)
        slope_s = (before_s - after_s) / (2 * LITTLE)
        is_bent = abs(before_s - 2 * now_s + after_s) > BENT * abs(before_s - after_s) + ROUNDING * now_s
        return None if is_bent else slope_s

    @cached_property
    def engine(self) -> str:
        """The engine that runs: the fastest that is exact, whichever ran before, since all conclude the same."""
        parts, network = self.parts, self.parts.network_of_run
        if not parts.is_alone:
            return "events"
        chosen = parts.choice.name if parts.engine in ENGINES else self.ran
        if chosen != "events" or self.sharing == "fair":
            return chosen
        network = replace(network, sharing="fifo")
        return "events" if why_not_recurrence(parts.schedule, network, parts.workers) else "recurrence"

    @cached_property
    def cost_s(self) -> float:
        """What a simulation costs of the budget, in seconds; counted, not timed, and alike whichever engine ran."""
        schedule, took = self.parts.schedule, self.took
        # What ran may have been the arrays: their steps are counted by the schedule.
        ran = {} if took is None else took.counts
        counts: dict[str, float] = {name: ran[name] for name in ("events", "settlements", "rates") if name in ran}
        if took is not None and self.parts.network.part_bytes is None:
            n_moved = took.n_transfers if self.sharing == "fair" else took.links["transfers"].sum()
            counts["events"] = EVENTS_EACH * int(n_moved)
        return engine_s(self.engine, counts, schedule.n_steps, schedule.n_transfers, BUDGETED)

    @property
    def affordable(self) -> int:
        """How many simulations an answer may cost beside its run."""
        if not self.parts.schedule.n_transfers:
            return 0
        return max(int(FREE_S / self.cost_s + SHARE), int(self.cost_s <= ONE_S[self.sharing]))


def makespan_of(parts: RunParts) -> float:
    """Return the makespan of a run, in seconds, where nothing else is asked of it; errors are those of its engine."""
    engine = engine_of(parts)
    return SimulatedAgain(parts, sharing_of(parts, engine), engine)(Upgrade())


#: By what share latencies differ, at most, and from which share on the time does: more than the digits that are shown.
NUDGE, TOLD = 1e-12, 1e-6


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
        # One of two values each: what starts together on like routes comes at a few times then, not each at its own.
        moved = np.random.default_rng(0).choice([-NUDGE, NUDGE], network.n_links)
        for way in (1, -1) if parts.schedule.n_transfers <= BOTH_WAYS else (1,):
            other = _with_latencies(network, 1 + way * moved)
            what = (parts.schedule, other, parts.workers, parts.chunk_bytes)
            self._found_s.append(makespan_s(ENGINES["compiled"].run(*what, keep_transfers=None)))

    def moved_share(self, time_s: float) -> float | None:
        """Return by how much of it the time moves; None where that is nothing that need be said."""
        self._thread.join()
        share = max((abs(found_s / time_s - 1) for found_s in self._found_s), default=0.0)
        return share if share > TOLD else None


def _with_latencies(network: Network, times: FloatArray) -> Network:
    """Return a network with other latencies: of each link so many times those it has."""
    behaviours = dict(network.behaviours)
    for link, one in network.behaviours.items():
        if isinstance(one, BySize):
            pieces = (replace(piece, latency_s=piece.latency_s * times[link]) for piece in one.pieces)
            behaviours[link] = replace(one, pieces=tuple(pieces))
    return replace(network, latency_s=network.latency_s * times, behaviours=behaviours)


def moved_note(time_s: float, share: float) -> str:
    """Say that a time is not known better, and why."""
    return (
        f"the time is known to about {format_seconds(share * time_s)}: latencies that differ by {NUDGE:g} of "
        "themselves move it so far, for flows that share links fairly meet others then; compare no designs by less"
    )
