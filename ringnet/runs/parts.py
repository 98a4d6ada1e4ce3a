"""A scenario to the parts that the engines and the verification work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.overload import overloads
from ringnet.collectives import Schedule
from ringnet.engines.background import Traffic
from ringnet.engines.trace import Workers
from ringnet.networks import Network
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.reductions import Reduction, make_reduction
from ringnet.payload.sources import RampSource, RandomSource, Source, message_elements
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import COPYING, reduction_of
from ringnet.scenario.files.folder import open_files
from ringnet.scenario.keys.jobs_and_traffic import JobKeys
from ringnet.scenario.network import bursts, hardware, ordered, seated, seats
from ringnet.scenario.schedule import schedule_beside, schedule_of
from ringnet.units import format_seconds

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RunParts:
    """Everything that one run is made of.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    source : Source or None
        The data of every worker; None where no payload is carried.
    reduction : Reduction
        The sum, unused, for a collective that only copies.
    reduces : bool
        Whether the collective combines anything.
    dtype : numpy.dtype
    chunk_sizes : ndarray of int64, shape (n_chunks,)
        Elements of each chunk.
    chunk_bytes : ndarray of int64, shape (n_chunks,)
        Bytes that time is charged for.
    carry : int or None
        Elements of each chunk that are carried; None for all, 0 for no payload.
    keep_transfers : int
        Rows of transfers are kept if there are no more than this.
    keep_values : bool
        Whether the buffers after every step are wanted.
    name : str
        Of the scenario, or of the job.
    message_bytes : int
        The whole buffer of one worker.
    others : tuple of RunParts
        The other jobs on the same network.
    flows : tuple of tuples of Traffic
        What else is on its links: for each key of background its bursts.
    """

    schedule: Schedule
    network: Network
    workers: Workers
    source: Source | None
    reduction: Reduction
    reduces: bool
    dtype: DType
    chunk_sizes: IntArray
    chunk_bytes: IntArray
    carry: int | None
    keep_transfers: int
    keep_values: bool
    name: str = ""
    message_bytes: int = 0
    others: tuple[RunParts, ...] = ()
    flows: tuple[tuple[Traffic, ...], ...] = ()

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """All bursts of all flows."""
        return tuple(chain.from_iterable(self.flows))

    @property
    def alone(self) -> bool:
        """Whether nothing else is on the network."""
        return not self.others and not self.flows


def build(scenario: Scenario) -> RunParts:
    """Build the parts of one run; of a sweep, those of its first point.

    Raises
    ------
    InputError
        A file of data that was there when the scenario was loaded is not there any more.
    """
    whole = hardware(scenario)
    own, *others = seats(scenario, whole)
    schedule, dtype = build_schedule(scenario), DTYPES[scenario.dtype]
    sizes = chunk_sizes(scenario, schedule)
    reduces = scenario.collective not in COPYING
    return RunParts(
        schedule=schedule,
        network=ordered(scenario, seated(whole, own, "placement")),
        workers=build_workers(scenario),
        source=None if scenario.carry == 0 else build_source(scenario),
        reduction=make_reduction(*reduction_of(scenario))
        if reduces
        else make_reduction("sum", scenario.workers),
        reduces=reduces,
        dtype=dtype,
        chunk_sizes=sizes,
        chunk_bytes=sizes * dtype.itemsize,
        carry=scenario.carry,
        keep_transfers=scenario.report.transfers,
        keep_values="states" in scenario.report.tables,
        name=scenario.name,
        message_bytes=scenario.message_bytes,
        others=tuple(
            _job(scenario, number, job, seated(whole, places, "jobs"))
            for number, (job, places) in enumerate(zip(scenario.jobs, others, strict=True), start=1)
        ),
        flows=tuple(
            tuple(bursts(one, number, whole)) for number, one in enumerate(scenario.background, start=1)
        ),
    )


def _job(scenario: Scenario, number: int, job: JobKeys, network: Network) -> RunParts:
    """Return another job: as the scenario says where it says nothing itself, without weights and exceptions."""
    n_workers, dtype = network.n_workers, DTYPES[scenario.dtype]
    collective = job.collective or scenario.collective
    schedule = schedule_beside(scenario, job.algorithm, n_workers, collective)
    sizes = schedule.chunk_sizes(message_elements(job.message_bytes, dtype))
    reduces = collective not in COPYING
    reduce = "mean" if scenario.reduce == "weighted-mean" else scenario.reduce
    source = RandomSource(
        n_workers,
        int(sizes.sum()),
        dtype,
        seed=scenario.seed + number,
        for_product=reduces and reduce == "prod",
    )
    keys = scenario.worker
    workers = Workers.alike(
        n_workers,
        start_s=job.start_s,
        send_overhead_s=keys.send_overhead_s,
        recv_overhead_s=keys.recv_overhead_s,
        reduce_Bps=keys.reduce_Bps,
        sends=keys.sends,
    )
    return RunParts(
        schedule=schedule,
        network=network,
        workers=workers,
        source=None if scenario.carry == 0 else source,
        reduction=make_reduction(reduce if reduces else "sum", n_workers),
        reduces=reduces,
        dtype=dtype,
        chunk_sizes=sizes,
        chunk_bytes=sizes * dtype.itemsize,
        carry=scenario.carry,
        keep_transfers=0,
        keep_values=False,
        name=job.name or f"job {number}",
        message_bytes=job.message_bytes,
    )


def about_traffic(parts: RunParts) -> list[str]:
    """Return a sentence on traffic that asks, in the mean, for more than a link carries, until one of both changes."""
    notes = []
    for one in overloads(parts.flows, parts.network):
        flows = [parts.flows[number][0] for number in one.flows]
        until = (
            "it stops" if {flow.stop_s for flow in flows} == {one.until_s} else format_seconds(one.until_s)
        )
        notes.append(f"{' and '.join(flow.name for flow in flows)}: {one} until {until}")
    return notes


def build_schedule(scenario: Scenario) -> Schedule:
    """Return who sends what to whom."""
    return schedule_of(scenario, scenario.place)


def chunk_sizes(scenario: Scenario, schedule: Schedule) -> IntArray:
    """Return the elements of each chunk."""
    return schedule.chunk_sizes(message_elements(scenario.message_bytes, DTYPES[scenario.dtype]))


def build_workers(scenario: Scenario) -> Workers:
    """Return how each worker behaves."""
    keys = scenario.worker
    names = ("start_s", "send_overhead_s", "recv_overhead_s", "reduce_Bps")
    columns = {name: np.full(scenario.workers, getattr(keys, name)) for name in names}
    for worker, exception in keys.exceptions.items():
        for name in names:
            value = getattr(exception, name)
            if value is not None:
                columns[name][int(worker)] = value
    return Workers(**columns, sends=keys.sends)


def build_source(scenario: Scenario) -> Source:
    """Return where the workers' numbers come from."""
    if scenario.files:
        return open_files(scenario.data, scenario.place, DTYPES[scenario.dtype])
    return MADE[str(scenario.data)](
        scenario, message_elements(scenario.message_bytes, DTYPES[scenario.dtype])
    )


def _random(scenario: Scenario, n_elements: int) -> Source:
    product = scenario.reduce == "prod" and scenario.collective not in COPYING
    return RandomSource(
        scenario.workers, n_elements, DTYPES[scenario.dtype], seed=scenario.seed, for_product=product
    )


def _ramp(scenario: Scenario, n_elements: int) -> Source:
    return RampSource(scenario.workers, n_elements, DTYPES[scenario.dtype])


#: Data that is made, by the name that a scenario has for it.
MADE: dict[str, Callable[[Scenario, int], Source]] = {"random": _random, "ramp": _ramp}
