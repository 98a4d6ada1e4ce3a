"""A scenario to the parts that the engines and the verification work with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule
from ringnet.engines.background import Traffic
from ringnet.engines.trace import Workers
from ringnet.errors import Fault, InputError
from ringnet.networks import Network
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.reductions import Reduction, make_reduction
from ringnet.payload.sources import RampSource, RandomSource, Source, message_elements
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import COPYING, reduction_of
from ringnet.scenario.files.folder import open_files
from ringnet.scenario.keys.jobs_and_traffic import JobKeys, TrafficKeys
from ringnet.scenario.network import hardware, ordered, seated, seats
from ringnet.scenario.schedule import schedule_beside, schedule_of
from ringnet.units import format_rate

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
    traffic : tuple of Traffic
        What else is on its links.
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
    traffic: tuple[Traffic, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether nothing else is on the network."""
        return not self.others and not self.traffic


def build(scenario: Scenario) -> RunParts:
    """Build the parts of one run; of a sweep, those of its first point.

    Raises
    ------
    InputError
        A file of data that was there when the scenario was loaded is not there any more; other traffic that never
        ends asks for more than its links carry.
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
        traffic=_background(scenario, whole),
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


def traffic(one: TrafficKeys, number: int, network: Network) -> list[Traffic]:
    """Return bursts as the engine has them; of traffic that is on and off, one row for each burst of a period.

    >>> from ringnet.networks.basic import switch
    >>> keys = {"from": 0, "to": 1, "burst": "1 MB", "rate": "1 GB/s", "on": "2 ms", "off": "3 ms"}
    >>> made = traffic(TrafficKeys.model_validate(keys), 1, switch(2, 50e9, 5e-7))
    >>> [(row.start_s, row.every_s) for row in made]
    [(0.0, 0.005), (0.001, 0.005)]
    """
    links = _links(one, network)
    name, stop_s = one.name or f"traffic {number}", np.inf if one.stop_s is None else one.stop_s
    if one.rate_Bps is None:
        return [Traffic(name, links, one.burst_bytes, one.begin_s)]
    gap_s = one.burst_bytes / one.rate_Bps
    if one.on_s is None or one.off_s is None:
        return [Traffic(name, links, one.burst_bytes, one.begin_s, gap_s, stop_s)]
    period_s, n_bursts = one.on_s + one.off_s, round(one.on_s / gap_s)
    return [
        Traffic(name, links, one.burst_bytes, one.begin_s + burst * gap_s, period_s, stop_s)
        for burst in range(n_bursts)
    ]


def about_traffic(parts: RunParts) -> list[str]:
    """Return a sentence on each traffic that asks, in the mean, for more than its links carry: its queue only grows."""
    return [
        f"{name}: {sentence} until it stops" for name, sentence in _overloads(parts.traffic, parts.network)
    ]


def _background(scenario: Scenario, network: Network) -> tuple[Traffic, ...]:
    """Return the other traffic; refuse what grows a queue for ever: all that shares its links would never end."""
    bursts = {
        f"background[{place}].rate": traffic(one, place + 1, network)
        for place, one in enumerate(scenario.background)
    }
    faults = [
        Fault(sentence, path, right="a lower rate, or a stop")
        for path, made in bursts.items()
        for _, sentence in _overloads([one for one in made if np.isinf(one.stop_s)], network)
    ]
    if faults:
        raise InputError(*faults)
    return tuple(chain.from_iterable(bursts.values()))


def _overloads(traffic: Sequence[Traffic], network: Network) -> Iterator[tuple[str, str]]:
    """Yield traffic that asks, in the mean, for more than a link carries, with a sentence on it."""
    asked_Bps: dict[tuple[str, tuple[int, ...]], float] = {}
    for one in traffic:
        if one.every_s is not None:
            key = one.name, one.links
            asked_Bps[key] = asked_Bps.get(key, 0.0) + one.burst_bytes / one.every_s
    for (name, links), rate_Bps in asked_Bps.items():
        narrowest = min(links, key=network.bandwidth_Bps.__getitem__)
        most_Bps = float(network.bandwidth_Bps[narrowest])
        if rate_Bps > most_Bps * (1 + 1e-9):
            link, carried = network.names[narrowest], format_rate(most_Bps)
            yield (
                name,
                f"{format_rate(rate_Bps)} are more than {link} carries, {carried}: its queue only grows",
            )


def _links(one: TrafficKeys, network: Network) -> tuple[int, ...]:
    if one.links is None:
        return network.route(int(one.start or 0), int(one.end or 0))
    numbers = {name: link for link, name in enumerate(network.names)}
    return tuple(numbers[name] for name in one.links)


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
