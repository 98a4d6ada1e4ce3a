"""A scenario to the parts that the engines and the verification work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines import Choice, choose_engine
from ringnet.engines.events import Job, Traffic
from ringnet.engines.trace import Workers
from ringnet.networks import TOPOLOGIES, Network, NetworkShape, in_run, settled
from ringnet.payload.dtypes import DTYPES, ITEMSIZES, DType
from ringnet.payload.reductions import Reduction, make_reduction
from ringnet.payload.sources import RampSource, RandomSource, Source, message_elements
from ringnet.runs.shapes import NOTHING, ReadOff, open_traits, read_off
from ringnet.runs.worker_parts import build_workers, workers_beside
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import reduction_of
from ringnet.scenario.files.completing import open_files
from ringnet.scenario.files.network_file import channel_orders
from ringnet.scenario.keys import topology as topology_keys
from ringnet.scenario.keys.algorithm import parameters_of
from ringnet.scenario.keys.model import COPYING
from ringnet.scenario.network import bursts, hardware, n_places, ordered, seated, seats
from ringnet.scenario.schedule import schedule_beside, schedule_of

#: Links for each place from which they are what takes the memory.
MANY_LINKS = 64


@dataclass(frozen=True)
class Site:
    """The network of a run as each of its jobs sees it, the scenario's own first, and what else is on its links.

    ``flows`` are that: for each key of background its bursts. ``too_slow_inside`` says that measured links inside hosts
    take longer than was measured for a whole way between hosts.
    """

    networks: tuple[Network, ...]
    flows: tuple[tuple[Traffic, ...], ...]
    too_slow_inside: bool


@dataclass(frozen=True)
class RunParts:
    """Everything that one run is made of, each part made once.

    Parameters
    ----------
    schedule : Schedule
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
    make_site : callable
        Returns the `Site`, made once for all jobs: only after the memory for its links was asked for.
    number : int
        Which of the networks of the site is for this job.
    others : tuple of RunParts
        The other jobs on the same network.
    after : tuple of int
        Numbers of the jobs that end before this one starts, 0 for the scenario's own.
    is_alone : bool
        Whether nothing else is on the network.
    engine : str
        The one that the scenario names, or ``"auto"``.
    is_ring : bool
        Whether each transfer is one chunk of a ring.
    n_pair_links : int
        Links of a network that may have far more than workers; 0 for others, whose workers have few each.
    read : ReadOff
        What the algorithm takes from the network.
    fitted : callable or None
        Of an algorithm that gives workers more or less by bandwidths or starts that it reads: returns the schedule and
        the bytes of its chunks for other ones.
    run : int or None
        Where something is drawn, of which run this is; None for none.
    accumulate : numpy.dtype or None
        Type of sums in switches until they are sent on; None for that of the elements.
    """

    schedule: Schedule
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
    name: str
    message_bytes: int
    make_site: Callable[[], Site]
    number: int = 0
    others: tuple[RunParts, ...] = ()
    after: tuple[int, ...] = ()
    is_alone: bool = True
    engine: str = "auto"
    is_ring: bool = False
    n_pair_links: int = 0
    read: ReadOff = NOTHING
    fitted: Callable[[Network, Workers], tuple[Schedule, IntArray]] | None = None
    run: int | None = 0
    accumulate: DType | None = None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows of its transfers are kept."""
        return self.schedule.n_transfers <= self.keep_transfers

    @property
    def network(self) -> Network:
        """Over what it moves; made when it is first asked for."""
        return self.make_site().networks[self.number]

    def in_run(self, run: int) -> RunParts:
        """Return the parts of a run, of those for which none was chosen: all draws are made, nothing else anew."""
        site = self.make_site()
        networks = tuple(in_run(network, run) for network in site.networks)
        return self._at(run, replace(site, networks=networks))

    def _at(self, run: int, site: Site) -> RunParts:
        others = tuple(one._at(run, site) for one in self.others)
        workers = self.workers.in_run(run)
        return replace(self, workers=workers, make_site=lambda: site, others=others, run=run)

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """What else is on the links of the network: all bursts of all flows."""
        return tuple(chain.from_iterable(self.make_site().flows))

    @cached_property
    def network_of_run(self) -> Network:
        """The network as the transfers of this run see it, without what its links do with other sizes.

        Those of a ring differ by an element, so that links which treat sizes differently mostly treat all alike.
        """
        if not self.is_ring or not self.is_alone or not self.network.behaviours:
            return self.network
        return settled(self.network, int(self.chunk_bytes.min()), int(self.chunk_bytes.max()))

    @cached_property
    def shape(self) -> NetworkShape:
        """What the numbers of the workers say of the network: of a million hosts it takes seconds to find."""
        return self.network.shape

    @cached_property
    def choice(self) -> Choice:
        """The engine that suits the run, were it alone; of a hundred thousand channels it takes seconds to find."""
        return choose_engine(self.schedule, self.network_of_run, self.workers, self.chunk_bytes)


def build(scenario: Scenario, run: int | None = 0) -> RunParts:
    """Build the parts of one run; of a sweep, those of its first point.

    Parameters
    ----------
    scenario : Scenario
    run : int or None
        Where something is drawn, of which run it is; None for none, which is what `RunParts.in_run` takes.

    Raises
    ------
    InputError
        A file of data that was there when the scenario was loaded is not there any more.
    """
    dtype, make_site = DTYPES[scenario.dtype], cache(partial(build_site, scenario, run))
    read = read_off_network(scenario, lambda: make_site().networks[0])
    schedule = schedule_of(scenario, scenario.home, read.parameters)
    workers, sizes, reduces = (
        build_workers(scenario),
        chunk_sizes(scenario, schedule),
        scenario.collective not in COPYING,
    )
    reduction = reduction_of(scenario) if reduces else ("sum", scenario.workers)
    return RunParts(
        schedule=schedule,
        workers=workers if run is None else workers.in_run(run),
        source=None if scenario.carry == 0 else build_source(scenario),
        reduction=make_reduction(*reduction),
        reduces=reduces,
        dtype=dtype,
        chunk_sizes=sizes,
        chunk_bytes=sizes * dtype.itemsize,
        carry=scenario.carry,
        keep_transfers=scenario.report.transfers,
        keep_values="states" in scenario.report.tables,
        name=scenario.name,
        message_bytes=scenario.message_bytes,
        make_site=make_site,
        others=tuple(_job(scenario, number, make_site, run) for number in range(1, len(scenario.jobs) + 1)),
        is_alone=not scenario.jobs and not scenario.background,
        engine=scenario.engine,
        is_ring=scenario.algorithm_name == "ring",
        n_pair_links=_pair_links(scenario),
        read=read,
        fitted=partial(_fitted, scenario) if _is_fitted(scenario) else None,
        run=run,
        accumulate=_accumulate(scenario),
    )


#: What changes with a link or a worker that is mended.
_OF_ITS_NUMBERS = {"neighbour_Bps", "latest_worker"}


def _is_fitted(scenario: Scenario) -> bool:
    open_ones = open_traits(scenario.algorithm_name, parameters_of(scenario.algorithm))
    return not _OF_ITS_NUMBERS.isdisjoint(open_ones.values())


def _fitted(scenario: Scenario, network: Network, workers: Workers) -> tuple[Schedule, IntArray]:
    read = read_off_network(scenario, lambda: network, workers)
    schedule = schedule_of(scenario, scenario.home, read.parameters)
    return schedule, chunk_sizes(scenario, schedule) * ITEMSIZES[scenario.dtype]


def _accumulate(scenario: Scenario) -> DType | None:
    keys = scenario.network.reduction
    return None if keys is None or keys.accumulate is None else DTYPES[keys.accumulate]


def _pair_links(scenario: Scenario) -> int:
    """Return how many links a network has that has far more of them than places; 0 for others."""
    keys, places = scenario.network, n_places(scenario)
    n_links = TOPOLOGIES[keys.topology].n_links if keys.file is None else None
    given = topology_keys.parameters_of(keys)
    links = 0 if n_links is None else n_links(places, **given)
    return 0 if links <= MANY_LINKS * places else links


def read_off_network(scenario: Scenario, network: Callable[[], Network], workers: Workers | None = None) -> ReadOff:
    """Return what the algorithm takes from the network and from the starts of the workers, by default the scenario's.

    Of the network that is nothing where memory is to be asked for before it is made.
    """
    is_unseen = channel_orders(scenario.network, scenario.algorithm_name) or _pair_links(scenario)

    def shape() -> NetworkShape:
        seen = NetworkShape(scenario.workers) if is_unseen else network().shape
        # The group of a step has workers of its own, who start alike.
        late = _latest(workers or build_workers(scenario)) if seen.n_workers == scenario.workers else None
        return replace(seen, latest_worker=late)

    return read_off(scenario.algorithm_name, parameters_of(scenario.algorithm), shape)


def _latest(workers: Workers) -> int | None:
    """Return the worker that starts after all others; None where several do, or nobody."""
    latest = np.flatnonzero(workers.start_s == workers.start_s.max())
    return int(latest[0]) if len(latest) == 1 and len(workers.start_s) > 1 else None


def _job(scenario: Scenario, number: int, make_site: Callable[[], Site], run: int | None) -> RunParts:
    """Return another job: as the scenario says where it says nothing itself, without weights and exceptions."""
    job, dtype = scenario.jobs[number - 1], DTYPES[scenario.dtype]
    n_workers = job.n_workers
    collective = job.collective or scenario.collective
    given = {} if job.algorithm else parameters_of(scenario.algorithm)
    read = NOTHING
    if not _pair_links(scenario):
        name = job.algorithm or scenario.algorithm_name
        read = read_off(name, given, lambda: make_site().networks[number].shape)
    schedule = schedule_beside(scenario, job.algorithm, n_workers, collective, read.parameters)
    sizes = schedule.chunk_sizes(message_elements(job.message_bytes, dtype))
    reduces = collective not in COPYING
    reduce = "mean" if scenario.reduce == "weighted-mean" else scenario.reduce
    product = reduces and reduce == "prod"
    seed, n_elements = scenario.seed + number, int(sizes.sum())
    source = RandomSource(n_workers, n_elements, dtype, seed=seed, for_product=product)
    workers = workers_beside(scenario, number, n_workers, job.message_bytes, job.start_s)
    return RunParts(
        schedule=schedule,
        workers=workers if run is None else workers.in_run(run),
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
        make_site=make_site,
        number=number,
        after=tuple(scenario.job_names.index(name) for name in job.follows),
        is_alone=False,
        read=read,
        accumulate=_accumulate(scenario),
    )


def streams(jobs: Sequence[RunParts]) -> list[int]:
    """Return for each job the first of those that it never runs beside, on the same places: itself for most."""
    before: list[set[int]] = [set(job.after) for job in jobs]
    for _ in jobs:  # those before the ones before, and so on
        before = [earlier.union(*(before[number] for number in earlier)) for earlier in before]
    places = [[job.network.node(worker) for worker in range(job.network.n_workers)] for job in jobs]
    found, tails = [*range(len(jobs))], dict.fromkeys(range(len(jobs)), -1)
    for number in sorted(range(len(jobs)), key=lambda number: len(before[number])):
        tail = next((last for last in before[number] if tails[last] < 0 and places[last] == places[number]), None)
        if tail is not None:
            tails[tail], found[number] = number, found[tail]
    return found


def jobs_of(everybody: Sequence[RunParts]) -> list[Job]:
    """Return all jobs of a run as the engine takes them, for their times alone: without payload, rows and values."""
    return [
        Job(
            one.schedule,
            one.network,
            one.workers,
            one.chunk_bytes,
            keep_transfers=None,
            after=one.after,
            stream=stream,
        )
        for one, stream in zip(everybody, streams(everybody), strict=True)
    ]


def build_site(scenario: Scenario, run: int | None = 0) -> Site:
    """Build the network, seat all jobs on it, and lay the other traffic on its links; ``run`` is that of `build`."""
    whole, too_slow_inside = hardware(scenario)
    own, *others = seats(scenario, whole)
    first = ordered(scenario, seated(whole, own, "placement"))
    networks = (first, *(seated(whole, places, "jobs") for places in others))
    return Site(
        networks if run is None else tuple(in_run(network, run) for network in networks),
        tuple(tuple(bursts(one, number, whole)) for number, one in enumerate(scenario.background, start=1)),
        too_slow_inside,
    )


def build_schedule(scenario: Scenario, network: Network | None = None) -> Schedule:
    """Return who sends what to whom; ``network`` is that of the run, where it is at hand."""
    read = read_off_network(scenario, lambda: network or build_site(scenario).networks[0])
    return schedule_of(scenario, scenario.home, read.parameters)


def chunk_sizes(scenario: Scenario, schedule: Schedule) -> IntArray:
    """Return the elements of each chunk."""
    return schedule.chunk_sizes(message_elements(scenario.message_bytes, DTYPES[scenario.dtype]))


def build_source(scenario: Scenario) -> Source:
    """Return where the workers' numbers come from."""
    if scenario.files:
        return open_files(scenario.data, scenario.home, DTYPES[scenario.dtype])
    return MADE[str(scenario.data)](scenario, message_elements(scenario.message_bytes, DTYPES[scenario.dtype]))


def _random(scenario: Scenario, n_elements: int) -> Source:
    product = scenario.reduce == "prod" and scenario.collective not in COPYING
    return RandomSource(scenario.workers, n_elements, DTYPES[scenario.dtype], seed=scenario.seed, for_product=product)


#: Data that is made, by the name that a scenario has for it.
MADE: dict[str, Callable[[Scenario, int], Source]] = {
    "random": _random,
    "ramp": lambda scenario, n_elements: RampSource(scenario.workers, n_elements, DTYPES[scenario.dtype]),
}
