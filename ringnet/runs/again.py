"""A run once more with other links or workers, for its makespan alone: no payload, no rows, no proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ringnet.analysis.derivatives import Derivatives, derivatives
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.upgrades import Upgrade
from ringnet.engines import ENGINES, KEEP_TRANSFERS
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.events import run_jobs
from ringnet.errors import InputError
from ringnet.networks import BySize, beyond
from ringnet.networks.network import Sharing
from ringnet.runs.engine import engine_of, sharing_of
from ringnet.runs.parts import RunParts, jobs_of

#: What simulating transfers again costs, in transfers of SimPy under fifo sharing (some 10 us): under fair sharing
#: rates are worked out anew with every start and end, in machine code too; stepping whole arrays costs by the step,
#: little by the transfer.
FAIR_COST, COMPILED_COST, STEP_COST, ARRAY_COST = 4.0, 0.4, 3.0, 0.001
#: What an answer may cost beside its run, in the same unit: a tenth of a second, or a tenth of what the run takes.
FREE, SHARE = 10_000, 0.1
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
        parts = self.parts
        workers = upgrade.of_workers(parts.workers)
        if parts.is_alone:
            network = replace(upgrade.of_network(parts.network_of_run), sharing=self.sharing)
            what = (parts.schedule, network, workers, parts.chunk_bytes, None)
            return makespan_s(ENGINES[self.engine].run(*what, keep_transfers=0))
        everybody = (replace(parts, workers=workers), *parts.others)
        jobs = [replace(job, network=upgrade.of_network(job.network)) for job in jobs_of(everybody)]
        return makespan_s(run_jobs(jobs, upgrade.of_network(parts.network), parts.traffic)[0])

    def derivatives(self) -> Derivatives | str:
        """Return the derivatives of the time, as the run is; or why there are none."""
        parts, network = self.parts, replace(self.parts.network_of_run, sharing=self.sharing)
        if not parts.is_alone:
            return "others share the links"
        if (
            reason := beyond(network, (BySize,)) or parts.workers.beyond
        ):  # before the run is simulated in vain
            return reason
        what = (parts.schedule, network, parts.workers, parts.chunk_bytes)
        trace = ENGINES[self.ran].run(*what, None, keep_transfers=KEEP_TRANSFERS)
        try:
            return derivatives(*what, trace)
        except InputError as error:
            return str(error)

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
