"""Many algorithms on one network, over sizes and numbers of workers: which is fastest where.

No payload is carried: each schedule is proven by `check`, once, and then timed at every size. What a size shares with
the others is worked out once: routes, plans, the order of service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray

from ringnet.analysis.bounds import collective_bound_s, worker_capacities
from ringnet.analysis.metrics import BUS_FACTORS, makespan_s
from ringnet.analysis.winners import with_ranks
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.collectives.check import check
from ringnet.engines import ENGINES, Trace, Workers
from ringnet.engines.many_sizes import Times, run_sizes, why_not_at_once
from ringnet.engines.plans import Planner
from ringnet.errors import Fault, InputError, NetworkError
from ringnet.networks import Network
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.sources import message_elements
from ringnet.scenario import Scenario
from ringnet.scenario.about_links import about_others
from ringnet.scenario.algorithms import AlgorithmSettings, label_of, parameters_of
from ringnet.scenario.build import build, build_schedule
from ringnet.scenario.checks import check_algorithm
from ringnet.scenario.document import Mark, Path
from ringnet.scenario.scenario import single
from ringnet.scenario.schedules import check_schedule

IntArray: TypeAlias = NDArray[np.int64]

#: Sizes where the scenario has no sweep over message: so many, from the first to the last, by equal factors.
N_SIZES, FIRST_BYTES, LAST_BYTES = 40, 1 << 10, 1 << 30
#: Bytes that sizes are rounded to, so that every dtype divides them.
ALIGNED_BYTES = 8
#: Swept keys that a comparison reads.
READ = ("message", "workers")

COLUMNS = (
    "n_workers",
    "message_bytes",
    "algorithm",
    "makespan_s",
    "algbw_Bps",
    "busbw_Bps",
    "bound_share",
    "busiest_link",
    "busiest_link_bytes",
    "rank",
    "engine",
)


class Comparison(NamedTuple):
    """What came of a comparison.

    Parameters
    ----------
    table : DataFrame
        A row per N, size and algorithm; see `COLUMNS`.
    notes : tuple of str
        Which algorithms were left out, and why.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """One algorithm at one N, to be timed at some sizes: a scenario without payload and sweep."""

    label: str
    scenario: Scenario
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Timed:
    """What came of a task: rows, or why the algorithm cannot run there."""

    rows: list[dict[str, Any]]
    left_out: str | None = None


def compare(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmSettings] | None = None,
    workers: Sequence[int] | None = None,
    *,
    jobs: int | None = None,
    on_done: Callable[[], object] = lambda: None,
) -> Comparison:
    """Time algorithms over the sizes and the numbers of workers of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Its sweep over message gives the sizes (40 from 1 KiB to 1 GiB without one), its sweep over workers, or
        ``compare: {workers: ...}``, the numbers of workers.
    algorithms : "all", sequence of algorithms, optional
        As ``compare: {algorithms: ...}`` has them, which counts if this is left out.
    workers : sequence of int, optional
        Stronger than the scenario's.
    jobs : int, optional
        Processes; as many as there are cores if left out.
    on_done : callable
        Called after each algorithm and N.

    Raises
    ------
    InputError
        A sweep over other keys; an algorithm that does not know the collective; none that can run.
    """
    tasks, notes = make_tasks(scenario, algorithms, workers)
    rows: list[dict[str, Any]] = []
    for task, timed in zip(tasks, _carried_out(tasks, jobs or int(cpu_count()), on_done), strict=True):
        if timed.left_out is not None:
            notes.append(f"{task.label} is left out with {task.scenario.workers} workers: {timed.left_out}")
        rows += timed.rows
    if not rows:
        raise InputError(*(Fault(note) for note in notes))
    table = with_ranks(pd.DataFrame(rows))
    order = ["n_workers", "message_bytes", "rank"]
    notes += about_others(scenario)
    return Comparison(table.sort_values(order, kind="stable", ignore_index=True)[list(COLUMNS)], tuple(notes))


def make_tasks(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmSettings] | None,
    workers: Sequence[int] | None,
) -> tuple[list[Task], list[str]]:
    """Return what a comparison is made of, for each N each algorithm, and what is left out of it."""
    _refuse_other_keys(scenario)
    sizes = tuple(sizes_of(scenario))
    tasks, notes = [], []
    for n_workers in workers or workers_of(scenario):
        points, left_out = algorithm_points(scenario, algorithms, n_workers)
        tasks += [Task(label_of(point.algorithm), point, sizes) for point in points]
        notes += left_out
    return tasks, notes


def _refuse_other_keys(scenario: Scenario) -> None:
    others = [path for path in scenario.swept if path not in READ]
    crowd = [key for key in ("jobs", "background") if getattr(scenario, key)]
    if crowd:
        message = "a comparison has the network to itself"
        raise InputError(*(Fault(message, key, right="leave the key out") for key in crowd))
    if others:
        message = "a comparison is over message and workers"
        raise InputError(*(Fault(message, f"sweep: {path}", right="one value") for path in others))


def sizes_of(scenario: Scenario) -> list[int]:
    """Return the message sizes of a comparison, ascending, in bytes."""
    if "message" in scenario.swept:
        return sorted({point.scenario.message_bytes for point in scenario.iter_points()})
    spread = np.geomspace(FIRST_BYTES, LAST_BYTES, N_SIZES) / ALIGNED_BYTES
    return sorted({int(size) * ALIGNED_BYTES for size in np.rint(spread)})


def workers_of(scenario: Scenario) -> list[int]:
    """Return the numbers of workers of a comparison, ascending."""
    if scenario.compare is not None and scenario.compare.workers is not None:
        return sorted(set(scenario.compare.workers))
    return sorted({point.scenario.workers for point in scenario.iter_points()})


def algorithms_of(
    scenario: Scenario, wanted: str | Sequence[str | AlgorithmSettings] | None
) -> list[str | AlgorithmSettings]:
    """Return what is compared; ``all`` stands for every algorithm that knows the collective."""
    if wanted is None:
        wanted = scenario.compare.algorithms if scenario.compare is not None else "all"
    if isinstance(wanted, str):
        return [name for name, one in ALGORITHMS.items() if scenario.collective in one.collectives]
    return list(wanted)


def algorithm_points(
    scenario: Scenario, wanted: str | Sequence[str | AlgorithmSettings] | None, n_workers: int
) -> tuple[list[Scenario], list[str]]:
    """Return the scenarios of the algorithms at one N, and for those that cannot be there a sentence each."""
    points: list[Scenario] = []
    notes: list[str] = []
    for keys in algorithms_of(scenario, wanted):
        try:
            points.append(_with_algorithm(points[0], keys) if points else _point(scenario, n_workers, keys))
        except InputError as error:
            reason = "; ".join(fault.message for fault in error.faults)
            notes.append(f"{label_of(keys)} is left out with {n_workers} workers: {reason}")
    return points, notes


def _point(scenario: Scenario, n_workers: int, keys: str | AlgorithmSettings) -> Scenario:
    """Return the scenario of one algorithm at one N; what that orphans is left out of it."""
    mark: dict[Path, Mark] = {(): Mark("--set", origin="set")}
    given = keys if isinstance(keys, str) else keys.model_dump(mode="json", exclude_none=True)
    document = scenario.base.drop([("data",), ("seed",), ("compare",)])
    changes = {
        "workers": n_workers,
        "algorithm": given,
        "payload": "none",
        "message": "0 B",
        "dtype": scenario.dtype,
    }
    for key, value in changes.items():
        document = document.put((key,), value, mark)
    return single(document, scenario.place)


def _with_algorithm(point: Scenario, keys: str | AlgorithmSettings) -> Scenario:
    """Return the same point with another algorithm: checking a network of a million links anew takes seconds."""
    other = point.model_copy(update={"algorithm": keys})
    findings = [*check_algorithm(other), *check_schedule(other, point.place)]
    if findings:
        raise InputError(*(Fault(one.message, "algorithm", right=one.right) for one in findings))
    return other


def _carried_out(tasks: list[Task], jobs: int, on_done: Callable[[], object]) -> Iterator[Timed]:
    if jobs == 1 or len(tasks) == 1:
        for task in tasks:
            yield carry_out(task)
            on_done()
        return
    # The longest first, so that no process is left alone with one at the end.
    order = sorted(range(len(tasks)), key=lambda place: -_cost(tasks[place]))
    found: dict[int, Timed] = {}
    parallel = Parallel(jobs, "loky", return_as="generator", max_nbytes=None)
    for place, timed in zip(
        order, parallel(delayed(carry_out)(tasks[place]) for place in order), strict=True
    ):
        found[place] = timed
        on_done()
    yield from (found[place] for place in range(len(tasks)))


def _cost(task: Task) -> int:
    return build_schedule(task.scenario).n_transfers


def carry_out(task: Task) -> Timed:
    """Check a schedule and time it at every size; say why if it cannot run there."""
    try:
        return Timed(_rows(task))
    except (NetworkError, InputError) as error:
        return Timed([], "; ".join(fault.message for fault in error.faults) or str(error))


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
    """What all algorithms of one N run on, and the capacities out of workers and into them."""

    network: Network
    workers: Workers
    capacities: tuple[NDArray[np.float64], NDArray[np.float64]]


@lru_cache(maxsize=1)
def _ground(where: _Where) -> _Ground:
    parts = build(where.scenario)
    return _Ground(parts.network, parts.workers, worker_capacities(parts.network))


def _rows(task: Task) -> list[dict[str, Any]]:
    schedule, (network, workers, capacities) = (
        build_schedule(task.scenario),
        _ground(_Where.of(task.scenario)),
    )
    check(schedule)
    dtype = DTYPES[task.scenario.dtype]
    elements = [message_elements(size, dtype) for size in task.sizes]
    chunk_bytes = np.array([schedule.chunk_sizes(n) * dtype.itemsize for n in elements])
    engines, times = _times(schedule, network, workers, chunk_bytes)
    bounds_s = [collective_bound_s(schedule, network, row, capacities) for row in chunk_bytes]
    columns = zip(engines, task.sizes, *(column.tolist() for column in times[:3]), bounds_s, strict=True)
    return [_row(task, schedule, network, *column) for column in columns]


def _row(  # noqa: PLR0913, PLR0917 -- what a row is made of
    task: Task,
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
        n_bytes = trace.links["bytes"]
        busiest = int((n_bytes / network.bandwidth_Bps).argmax()) if len(n_bytes) else 0
        found.append((makespan_s(trace), busiest, int(n_bytes[busiest]) if len(n_bytes) else 0, True))
    return Times(*map(np.array, zip(*found, strict=True)))


def channels_of(scenario: Scenario, wanted: str | Sequence[str | AlgorithmSettings] | None) -> dict[str, int]:
    """Return the channels that algorithms of a comparison were told to have, by their labels."""
    told = {label_of(keys): parameters_of(keys) for keys in algorithms_of(scenario, wanted)}
    return {label: one["n_channels"] for label, one in told.items() if "n_channels" in one}
