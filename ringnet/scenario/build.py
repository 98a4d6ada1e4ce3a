"""A scenario to the parts that the engines and the verification work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.engines.trace import Workers
from ringnet.networks import TOPOLOGIES, LinkChange, Network, change_links, change_workers
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.reductions import Reduction, make_reduction
from ringnet.payload.sources import RampSource, RandomSource, Source, message_elements
from ringnet.scenario.checks import COPYING, reduction_of
from ringnet.scenario.files import open_files
from ringnet.scenario.model import LinkException
from ringnet.scenario.scenario import Scenario

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
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


def build(scenario: Scenario) -> Parts:
    """Build the parts of one run; of a sweep, those of its first point.

    Raises
    ------
    InputError
        A file of data that was there when the scenario was loaded is not there any more.
    """
    schedule, dtype = build_schedule(scenario), DTYPES[scenario.dtype]
    sizes = chunk_sizes(scenario, schedule)
    reduces = scenario.collective not in COPYING
    return Parts(
        schedule=schedule,
        network=build_network(scenario),
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
    )


def build_schedule(scenario: Scenario) -> Schedule:
    """Return who sends what to whom."""
    return ALGORITHMS[scenario.algorithm].build(scenario.workers, scenario.collective)


def chunk_sizes(scenario: Scenario, schedule: Schedule) -> IntArray:
    """Return the elements of each chunk."""
    return schedule.chunk_sizes(message_elements(scenario.message_bytes, DTYPES[scenario.dtype]))


def build_network(scenario: Scenario) -> Network:
    """Return the network; exceptions of links are stronger than those of workers."""
    keys = scenario.network
    network = TOPOLOGIES[keys.topology].build(scenario.workers, keys.bandwidth_Bps, keys.latency_s)
    network = change_workers(network, {int(worker): _change(one) for worker, one in keys.links_of.items()})
    network = change_links(network, {link: _change(one) for link, one in keys.links.items()})
    return replace(network, switching=keys.switching, sharing=keys.sharing)


def _change(exception: LinkException) -> LinkChange:
    return LinkChange(exception.bandwidth_Bps, exception.latency_s)


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
