"""One algorithm at one N, timed at many sizes: what a part of a comparison does, in a process of its own.

No payload is carried: the schedule is proven by `check`, once, and then timed at every size. What a size shares with
the others is worked out once: routes, plans, the order of service.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.bounds import Cuts
from ringnet.analysis.metrics import ALIKE_TIME, BUS_FACTORS, makespan_s
from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.engines import ENGINES, Trace, Workers
from ringnet.engines.arrays.rounds import Planner
from ringnet.engines.arrays.sizes import Times, run_sizes, why_not_at_once
from ringnet.errors import InputError, NetworkError
from ringnet.networks import Network
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.sources import message_elements
from ringnet.runs.parts import build, build_schedule
from ringnet.scenario import Scenario
from ringnet.study.outcome import Outcome

IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Timing:
    """Times the algorithm of a scenario at some sizes, ascending, in bytes; ``label`` names it in the table."""

    label: str
    sizes: tuple[int, ...]

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return ``rows`` of the table, or none and why the algorithm is ``left_out``."""
        try:
            return Outcome({"rows": _rows(self, scenario), "left_out": None})
        except (NetworkError, InputError) as error:
            reason = "; ".join(fault.message for fault in error.faults) or str(error)
            return Outcome({"rows": [], "left_out": reason})


@dataclass(frozen=True)
class _Where:
    """Network and workers of a point, known by what the scenario says of them."""

    key: str
    scenario: Scenario = field(compare=False)

    @classmethod
    def of(cls, scenario: Scenario) -> _Where:
        keys = scenario.model_dump(mode="json", include={"network", "worker", "workers"})
        files = str(scenario.place.folder), scenario.inputs()
        return cls(json.dumps([keys, files], sort_keys=True), scenario)


class _Ground(NamedTuple):
    """What all algorithms of one N run on, and the cuts that bound them."""

    network: Network
    workers: Workers
    cuts: Cuts


@lru_cache(maxsize=1)
def _ground(where: _Where) -> _Ground:
    parts = build(where.scenario)
    return _Ground(parts.network, parts.workers, Cuts(parts.network, float(parts.workers.start_s.min())))


def _rows(task: Timing, scenario: Scenario) -> list[dict[str, Any]]:
    schedule, (network, workers, cuts) = (
        build_schedule(scenario),
        _ground(_Where.of(scenario)),
    )
    check(schedule)
    dtype = DTYPES[scenario.dtype]
    elements = [message_elements(size, dtype) for size in task.sizes]
    chunk_bytes = np.array([schedule.chunk_sizes(n) * dtype.itemsize for n in elements])
    engines, times = _times(schedule, network, workers, chunk_bytes)
    bounds_s = [cuts.bound(schedule, row).seconds for row in chunk_bytes]
    columns = zip(engines, task.sizes, *(column.tolist() for column in times[:3]), bounds_s, strict=True)
    return [_row(task, schedule, network, *column) for column in columns]


def _row(  # noqa: PLR0913, PLR0917 -- what a row is made of
    task: Timing,
    schedule: Schedule,
    network: Network,
    engine: str,
    n_bytes: int,
    time_s: float,
    link: int,
    link_bytes: int,
    bound_s: float,
) -> dict[str, Any]:
    timed = schedule.n_workers > 1 and time_s > 0
    algbw = n_bytes / time_s if timed else None
    bus = BUS_FACTORS[schedule.collective](schedule.n_workers)
    return {
        "n_workers": schedule.n_workers,
        "message_bytes": n_bytes,
        "algorithm": task.label,
        "makespan_s": time_s,
        "algbw_Bps": algbw,
        "busbw_Bps": algbw and algbw * bus,
        "bound_share": bound_s / time_s if timed else None,
        "busiest_link": network.names[link] if link_bytes else None,
        "busiest_link_bytes": link_bytes,
        "engine": engine,
    }


def _times(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray
) -> tuple[list[str], Times]:
    """Return the engine of each size and what it says: all at once where that is exact, SimPy's events elsewhere."""
    planner = Planner(schedule, network)
    if why_not_at_once(schedule, network, workers, planner) is not None:
        return ["events"] * len(chunk_bytes), _one_by_one(schedule, network, workers, chunk_bytes)
    times = run_sizes(schedule, network, workers, chunk_bytes, planner)
    others = np.flatnonzero(~times.exact)
    if len(others):
        rest = _one_by_one(schedule, network, workers, chunk_bytes[others])
        for column, values in zip(times, rest, strict=True):
            column[others] = values
    exact = set(range(len(chunk_bytes))) - set(others.tolist())
    return ["recurrence" if place in exact else "events" for place in range(len(chunk_bytes))], times


def _one_by_one(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> Times:
    found = []
    for row in chunk_bytes:
        trace: Trace = ENGINES["events"].run(schedule, network, workers, row, keep_transfers=0)
        n_bytes, busy_s = trace.links["bytes"], trace.links["busy_s"]
        # The first of those that are alike but for rounding.
        busiest = int((busy_s >= busy_s.max() * (1 - ALIKE_TIME)).argmax()) if len(n_bytes) else 0
        found.append((makespan_s(trace), busiest, int(n_bytes[busiest]) if len(n_bytes) else 0, True))
    return Times(*map(np.array, zip(*found, strict=True)))
