"""A run once more with other links or workers, for its makespan alone: no payload, no rows, no proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ringnet.analysis.critical_path import CriticalPath, critical_path, why_no_path
from ringnet.analysis.derivatives import Derivatives, derivatives_along, why_no_derivatives
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.upgrades import Upgrade
from ringnet.engines import ENGINES, KEEP_TRANSFERS
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.events import run_jobs
from ringnet.engines.trace import Trace
from ringnet.networks.network import Sharing
from ringnet.runs.engine import engine_of, sharing_of
from ringnet.runs.parts import RunParts, jobs_of

#: What simulating transfers again costs, in transfers of SimPy under fifo sharing (some 10 us): under fair sharing
#: rates are worked out anew with every start and end, in machine code too; stepping whole arrays costs by the step,
#: little by the transfer.
FAIR_COST, COMPILED_COST, STEP_COST, ARRAY_COST = 4.0, 0.4, 3.0, 0.001
#: What an answer may cost beside its run, in the same unit: a tenth of a second, or a tenth of what the run takes.
FREE, SHARE = 10_000, 0.1
#: Share of an upgrade by which a slope is found: small beside what changes the path, large beside rounding.
LITTLE = 1e-5
#: What a single simulation may cost, which confirms what is suspected first.
ONE = 25_000


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
    """

    parts: RunParts
    sharing: Sharing
    ran: str

    def __call__(self, upgrade: Upgrade) -> float:
        """Return the makespan with the upgrade, in seconds."""
        return makespan_s(self._trace(self.engine, upgrade, 0))

    def _trace(self, engine: str, upgrade: Upgrade, keep_transfers: int) -> Trace:
        parts = self.parts
        workers = upgrade.of_workers(parts.workers)
        if parts.is_alone:
            network = replace(upgrade.of_network(parts.network_of_run), sharing=self.sharing)
            schedule, chunk_bytes = parts.schedule, parts.chunk_bytes
            if parts.fitted is not None and upgrade:
                schedule, chunk_bytes = parts.fitted(network, workers)
            what = (schedule, network, workers, chunk_bytes, None)
            return ENGINES[engine].run(*what, keep_transfers=keep_transfers)
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
        trace = self._trace(self.ran, Upgrade(), KEEP_TRANSFERS)
        if reason := why_no_path(network, parts.workers, trace):
            return None, reason
        found = critical_path(parts.schedule, network, parts.workers, parts.chunk_bytes, trace)
        fits = "" if parts.fitted is None else f"{parts.schedule.algorithm} fits itself to the numbers"
        reason = fits or why_no_derivatives(network, parts.workers, trace)
        return found, reason or derivatives_along(found, parts.schedule, network)

    def slope_s(self, upgrade: Upgrade) -> float | None:
        """Return what an upgrade would gain if the time went on as it does now: by a little of it, either way."""
        parts = self.parts
        either = [upgrade.part(parts.network_of_run, parts.workers, share) for share in (-LITTLE, LITTLE)]
        if None in either:
            return None
        before_s, after_s = (self(one) for one in either if one is not None)
        return (before_s - after_s) / (2 * LITTLE)

    @cached_property
    def engine(self) -> str:
        """The engine that runs: stepping whole arrays wherever it is exact."""
        parts, network = self.parts, self.parts.network_of_run
        if self.ran != "events":
            return self.ran
        if not parts.is_alone or self.sharing == "fair" or parts.engine == "events":
            return "events"
        network = replace(network, sharing="fifo")
        return "events" if why_not_exact(parts.schedule, network, parts.workers) else "recurrence"

    @cached_property
    def cost(self) -> float:
        """What a simulation costs, in transfers of SimPy under fifo sharing."""
        n_transfers = sum(one.schedule.n_transfers for one in (self.parts, *self.parts.others))
        if self.engine == "recurrence":
            return self.parts.schedule.n_steps * STEP_COST + n_transfers * ARRAY_COST
        if self.engine == "compiled":
            return n_transfers * COMPILED_COST
        return n_transfers * (FAIR_COST if self.sharing == "fair" else 1.0)

    @property
    def affordable(self) -> int:
        """How many simulations an answer may cost beside its run; counted, not timed: a run repeats to the last bit."""
        if not self.parts.schedule.n_transfers:
            return 0
        return max(int(FREE / self.cost + SHARE), int(self.cost <= ONE))


def makespan_of(parts: RunParts) -> float:
    """Return the makespan of a run, in seconds, where nothing else is asked of it; errors are those of its engine."""
    engine = engine_of(parts)
    return SimulatedAgain(parts, sharing_of(parts, engine), engine)(Upgrade())
