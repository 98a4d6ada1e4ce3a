"""Many algorithms on one network, over sizes and numbers of workers: which is fastest where.

Each part times one algorithm at one N at many sizes, in a process of its own. No payload is carried: the schedule is
proven by `check`, once, and then timed at every size. What a size shares with the others is worked out once: routes,
plans, the order of service.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.bounds import Cuts
from ringnet.analysis.metrics import ALIKE_TIME, BUS_FACTORS, makespan_s
from ringnet.analysis.winners import with_ranks
from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.engines import Trace, Workers, choose_engine
from ringnet.engines.arrays import Times, run_sizes
from ringnet.engines.compiled import why_not_compiled
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.errors import Fault, InputError, NetworkError, StudyError
from ringnet.networks import Network
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.sources import message_elements
from ringnet.reporting.columns import OF_REPEATED_COMPARISONS, TABLES
from ringnet.runs.engine import TRANSFERS_PER_S
from ringnet.runs.notes import ring_equivalents, slices_together
from ringnet.runs.parts import build, build_schedule, read_off_network
from ringnet.runs.shapes import unread_note
from ringnet.runs.worker_parts import launches
from ringnet.scenario import Scenario
from ringnet.scenario.build.sweep import ALIGNED_BYTES
from ringnet.scenario.drawn import what_is_drawn
from ringnet.scenario.keys.algorithm import AlgorithmKeys, label_of, parameters_of
from ringnet.study.compared_runs import TIMES, require_runs, rows_of_many, told_apart
from ringnet.study.cost import in_words, n_cores
from ringnet.study.outcome import Outcome
from ringnet.study.parts import (
    PartOptions,
    StudyPart,
    StudyPlan,
    algorithm_points,
    algorithms_of,
    key_of,
    left_out,
    run_parts,
    workers_of,
)
from ringnet.units import format_size

#: Sizes where the scenario has no sweep over message: so many, from the first to the last, by equal factors.
N_SIZES, FIRST_BYTES, LAST_BYTES = 40, 1 << 10, 1 << 30
#: Seconds of a comparison from which on they are told; and of an algorithm at one N, by the slowest engine, from which
#: on a closer look is worth it.
LONG_S, LOOKED_AT_S = 60.0, 5.0
#: Transfers a second, one for each size, where the arrays time many sizes at once.
SIZES_PER_S = 30e6
#: Transfers whose steps are held while an algorithm is timed; those of more are made again by whoever goes over them.
MOST_HELD = 10_000_000
#: Swept keys that a comparison reads.
READ = ("message", "workers")


COLUMNS = tuple(TABLES["compare"])


class Comparison(NamedTuple):
    """What came of a comparison.

    Parameters
    ----------
    table : DataFrame
        A row per N, size and algorithm; see `COLUMNS`.
    notes : tuple of str
        Which algorithms were left out, and why.
    failed : tuple of str
        Which have no times because something went wrong, and what.
    guesses : mapping of (int, int) to str
        Of some N and message sizes in bytes, why their times are no ground for a recommendation.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...] = ()
    guesses: Mapping[tuple[int, int], str] = MappingProxyType({})


def compare_parts(plan: StudyPlan, how: PartOptions) -> Comparison:
    """Time what is planned.

    Raises
    ------
    InputError, StudyError
        None of the algorithms can run; of none something came.
    """
    outcomes = run_parts(plan.parts, how)
    notes, rows, failed = [*plan.notes], list[dict[str, Any]](), list[str]()
    for part, outcome in zip(plan.parts, outcomes, strict=True):
        where = f"{part.label} with {part.scenario.workers} workers"
        if not outcome.ok:
            failed.append(f"{where}: {outcome.error}")
        elif outcome.summary["left_out"] is not None:
            notes.append(left_out(part.label, part.scenario.workers, outcome.summary["left_out"]))
        rows += outcome.summary.get("rows", [])
    if not rows:
        raise StudyError("\n".join(failed)) if failed else InputError(*map(Fault, notes))
    table, columns = with_ranks(pd.DataFrame(rows)), [*COLUMNS]
    if TIMES in table:
        table, columns = told_apart(table), [*columns, *OF_REPEATED_COMPARISONS]
    order = ["n_workers", "message_bytes", "rank"]
    guesses = [plan.guesses.get(point) for point in zip(table["n_workers"], table["message_bytes"], strict=True)]
    table = table.assign(guess=pd.Series(guesses, index=table.index, dtype=object))
    table = table.sort_values(order, kind="stable", ignore_index=True)[columns]
    told = (*_about_shapes(plan, outcomes), *_about_slices(plan, outcomes), *_about_sends(plan, table))
    return Comparison(table, (*notes, *plan.remarks, *told), tuple(failed), plan.guesses)


def _about_shapes(plan: StudyPlan, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Say which parameters of which algorithms were read off the network, and which could not be."""
    labels, counts = defaultdict[str, dict[str, None]](dict), defaultdict[str, dict[int, None]](dict)
    unread: dict[str, dict[str, None]] = defaultdict(dict)
    for part, outcome in zip(plan.parts, outcomes, strict=True):
        for phrase in outcome.summary.get("read", ()):
            labels[phrase][part.label], counts[phrase][part.scenario.workers] = None, None
        if why_not := outcome.summary.get("why_not"):
            unread[why_not][f"the shape of {part.label}"] = None
    several = len({part.scenario.workers for part in plan.parts}) > 1
    for phrase, names in labels.items():
        n = f" with {' and '.join(map(str, counts[phrase]))} workers" if several else ""
        yield f"{phrase} ({', '.join(names)}{n})"
    yield from (unread_note(names, why_not) for why_not, names in unread.items())


def _about_slices(plan: StudyPlan, outcomes: Sequence[Outcome]) -> list[str]:
    labels = defaultdict[str, dict[str, None]](dict)
    for part, outcome in zip(plan.parts, outcomes, strict=True):
        if said := outcome.summary.get("slices_together"):
            labels[said][part.label] = None
    return [f"{', '.join(names)}: {said}" for said, names in labels.items()]


def _about_sends(plan: StudyPlan, table: pd.DataFrame) -> list[str]:
    """Say it where the fastest has all its sends at once, and they are free, as they are to no real worker."""
    wins = (table["rank"] == 1) & (table["algorithm"] == "direct") & (table["n_workers"] > 2)  # noqa: PLR2004 -- one send
    if plan.parts[0].scenario.worker.send_overhead_s or not wins.any():
        return []
    return [
        "sends take no time of a worker here, which favours direct with its N-1 at once: worker.send_overhead, for "
        "example 1 us, says what each takes"
    ]


def plan_comparison(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmKeys] | None = None,
    workers: Sequence[int] | None = None,
) -> StudyPlan:
    """Return what a comparison is made of, for each N each algorithm.

    Raises
    ------
    InputError
        As `ringnet.compare`; a schedule from a file that does not do what its collective says.
    """
    _refuse_other_keys(scenario)
    require_runs(scenario)
    sizes = tuple(sizes_of(scenario))
    guesses: dict[tuple[int, int], str] = {}
    plan = StudyPlan([], [], (), guesses)
    for n_workers in workers or workers_of(scenario):
        if n_workers == 1:
            plan.notes.append("with one worker nothing moves: there is nothing to compare")
            continue
        points, missing = algorithm_points(scenario, algorithms, n_workers)
        plan.parts.extend(_part(point, sizes) for point in points)
        plan.notes.extend(missing)
        if points and len(points) > 1:  # one alone is not recommended anyway
            reasons = zip(sizes, ring_equivalents(points[0], sizes), strict=True)
            guesses |= {(n_workers, size): reason for size, reason in reasons if reason}
    return plan._replace(remarks=(*plan.remarks, *_about_guesses(guesses, sizes)))


def _about_guesses(guesses: Mapping[tuple[int, int], str], sizes: Sequence[int]) -> list[str]:
    """Say where nothing is recommended, why, and what would serve."""
    if not guesses:
        return []
    reasons = " or ".join(dict.fromkeys(guesses.values()))
    guessed = {size for _, size in guesses}
    least, most = min(guessed), max(guessed)
    where = f"from {format_size(least)} to {format_size(most)}" if least < most else f"at {format_size(least)}"
    if len(guessed) < sum(least <= size <= most for size in sizes):
        where = f"at {len(guessed)} sizes {where}"
    return [
        f"nothing is recommended {where}: the links are a ring's "
        f"equivalent there ({reasons}), on which others take less than they really would; logs of "
        "each algorithm (NCCL_ALGO=Ring, NCCL_ALGO=Tree), each with a profile and `ringnet predict`, would tell, or "
        "the bandwidth and the latency of the links themselves in place of the profile"
    ]


def _part(point: Scenario, sizes: tuple[int, ...]) -> StudyPart:
    label, schedule = label_of(point.algorithm), build_schedule(point)
    n_transfers = (point.repeat or 1) * len(sizes) * schedule.n_transfers
    most_s = n_transfers / TRANSFERS_PER_S["events"]
    if most_s > LOOKED_AT_S and not what_is_drawn(point):
        engine = _likely_engine(point, sizes)
        most_s = n_transfers / (SIZES_PER_S if engine == "recurrence" else TRANSFERS_PER_S[engine])
    return StudyPart(label, key_of(point, "compare", label, sizes), point, AlgorithmTiming(label, sizes), most_s)


def _likely_engine(point: Scenario, sizes: Sequence[int]) -> str:
    """Return the engine that times most sizes, by one of them: the times say whether flows start and end together."""
    try:
        network, workers, _ = _network_parts(_NetworkOf.of(point))
        schedule = build_schedule(point, network)
    except (NetworkError, InputError):
        return "events"  # the part itself says what is wrong
    if network.sharing == "auto" and resolve_sharing(network, [Sending(0, schedule, network)]) == "fifo":
        return "recurrence"
    # What somebody else made may be no schedule at all, until it is proven.
    if schedule.made_by is not None:
        dtype = DTYPES[point.dtype]
        elements = message_elements(sizes[len(sizes) // 2], dtype)
        with suppress(InputError):  # it follows from no such recurrence, of whatever size
            if run_sizes(schedule, network, workers, schedule.chunk_sizes(elements)[None] * dtype.itemsize).exact.all():
                return "recurrence"
    return "compiled" if why_not_compiled(schedule, network, workers) is None else "events"


def time_beforehand(plan: StudyPlan, processes: int | None) -> list[str]:
    """Say roughly how long a comparison takes, and what most of it; nothing of a short one.

    Parameters
    ----------
    plan : StudyPlan
    processes : int or None
        Processes at once; all cores otherwise.
    """
    costs = sorted(((part.most_s, part.label) for part in plan.parts), reverse=True)
    whole_s = sum(cost for cost, _ in costs)
    if whole_s <= LONG_S:
        return []
    most_s = max(whole_s / (processes or n_cores()), costs[0][0])  # no part is divided among processes
    longest = ", ".join(dict.fromkeys(label for cost, label in costs[:3] if cost > LONG_S / 3))
    return [
        f"this takes up to about {in_words(most_s)}, most of it for {longest}; `--algorithms`, or a sweep over "
        "message with fewer sizes, takes less, and what is finished is kept"
    ]


def _refuse_other_keys(scenario: Scenario) -> None:
    others = [path for path in scenario.swept if path not in READ]
    others_beside = [key for key in ("jobs", "background") if getattr(scenario, key)]
    if others_beside:
        message = "a comparison has the network to itself"
        raise InputError(*(Fault(message, key, right="leave the key out") for key in others_beside))
    if others:
        message = "a comparison is over message and workers"
        raise InputError(*(Fault(message, f"sweep: {path}", right="one value") for path in others))


def sizes_of(scenario: Scenario) -> list[int]:
    """Return the message sizes of a comparison, ascending, in bytes."""
    if "message" in scenario.swept:
        return sorted({point.scenario.message_bytes for point in scenario.iter_points()})
    spread = np.geomspace(FIRST_BYTES, LAST_BYTES, N_SIZES) / ALIGNED_BYTES
    return sorted({int(size) * ALIGNED_BYTES for size in np.rint(spread)})


def channels_of(scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None) -> dict[str, int]:
    """Return the number of channels of each algorithm of a comparison that has such a setting, by label."""
    settings = {label_of(keys): parameters_of(keys) for keys in algorithms_of(scenario, wanted)}
    return {label: one["n_channels"] for label, one in settings.items() if "n_channels" in one}


# One algorithm at one N.


@dataclass(frozen=True)
class AlgorithmTiming:
    """Times the algorithm of a scenario at some sizes, ascending, in bytes; ``label`` names it in the table."""

    label: str
    sizes: tuple[int, ...]

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return ``rows`` of the table, or none and why the algorithm is ``left_out``."""
        try:
            return Outcome({**_timed(self, scenario), "left_out": None})
        except (NetworkError, InputError) as error:
            reason = "; ".join(fault.message for fault in error.faults) or str(error)
            return Outcome({"rows": [], "left_out": reason})


@dataclass(frozen=True)
class _NetworkOf:
    """Network and workers of a point, known by what the scenario says of them."""

    key: str
    scenario: Scenario = field(compare=False)

    @classmethod
    def of(cls, scenario: Scenario) -> _NetworkOf:
        keys = scenario.model_dump(mode="json", include={"network", "worker", "workers"})
        files = str(scenario.home.folder), scenario.inputs()
        return cls(json.dumps([keys, files], sort_keys=True), scenario)


class _NetworkParts(NamedTuple):
    """What all algorithms of one N run on, and the cuts that bound them."""

    network: Network
    workers: Workers
    cuts: Cuts


@lru_cache(maxsize=1)
def _network_parts(where: _NetworkOf) -> _NetworkParts:
    parts = build(where.scenario, None)
    return _NetworkParts(parts.network, parts.workers, Cuts(parts.network, parts.workers.start_s))


def _timed(task: AlgorithmTiming, scenario: Scenario) -> dict[str, Any]:
    """Return the rows of one algorithm, and what is to be said of them."""
    network, workers, cuts = _network_parts(_NetworkOf.of(scenario))
    schedule, read = build_schedule(scenario, network), read_off_network(scenario, lambda: network)
    if schedule.n_transfers <= MOST_HELD:
        schedule = schedule.holding_steps()
    check(schedule)
    sharing = resolve_sharing(network, [Sending(0, schedule, network)])
    if what_is_drawn(scenario):
        rows = rows_of_many(task.label, task.sizes, scenario)
    else:
        rows = _rows(task, scenario, schedule, _NetworkParts(network, workers, cuts))
    return {
        "rows": rows,
        "read": list(read.phrases),
        "why_not": read.why_not,
        "slices_together": slices_together(schedule, workers, sharing),
    }


def _rows(task: AlgorithmTiming, scenario: Scenario, schedule: Schedule, on: _NetworkParts) -> list[dict[str, Any]]:
    network, workers, cuts = on
    dtype = DTYPES[scenario.dtype]
    elements = [message_elements(size, dtype) for size in task.sizes]
    chunk_bytes = np.array([schedule.chunk_sizes(n) * dtype.itemsize for n in elements])
    engines, times = _times_launched(
        schedule, network, workers, chunk_bytes, np.array([launches(scenario, size) for size in task.sizes])
    )
    bounds_s = [cuts.bound(schedule, row).seconds for row in chunk_bytes]
    columns = zip(engines, task.sizes, *(column.tolist() for column in times[:3]), bounds_s, strict=True)
    return [_row(task, schedule, network, *column) for column in columns]


def _row(  # noqa: PLR0913, PLR0917 -- what a row is made of
    task: AlgorithmTiming,
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


def _times_launched(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, launches_s: FloatArray
) -> tuple[list[str], Times]:
    """Return the engine of each size and what it says; what is launched alike at all workers goes together."""
    engines, found = np.full(len(chunk_bytes), "", dtype=object), dict[int, tuple[Any, ...]]()
    for launch_s in np.unique(launches_s, axis=0):
        at = np.flatnonzero((launches_s == launch_s).all(axis=1))
        engines[at], times = _times(schedule, network, replace(workers, launch_s=launch_s), chunk_bytes[at])
        found |= dict(zip(at.tolist(), zip(*times, strict=True), strict=True))
    return engines.tolist(), Times(*map(np.array, zip(*(found[at] for at in sorted(found)), strict=True)))


def _times(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> tuple[list[str], Times]:
    """Return the engine of each size and what it says: all at once where that is exact, one by one elsewhere."""
    try:
        times = run_sizes(schedule, network, workers, chunk_bytes)
    except InputError:
        engine, times = _one_by_one(schedule, network, workers, chunk_bytes)
        return [engine] * len(chunk_bytes), times
    others = np.flatnonzero(~times.exact)
    engines = np.full(len(chunk_bytes), "recurrence", dtype=object)
    if len(others):
        engines[others], rest = _one_by_one(schedule, network, workers, chunk_bytes[others])
        for column, values in zip(times, rest, strict=True):
            column[others] = values
    return engines.tolist(), times


def _one_by_one(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> tuple[str, Times]:
    """Return the engine that is the fastest for all of some sizes, and what it says of each."""
    chosen, found = choose_engine(schedule, network, workers, chunk_bytes), []
    network = replace(network, sharing=resolve_sharing(network, [Sending(0, schedule, network)]))
    for row in chunk_bytes:
        trace: Trace = chosen.run(schedule, network, workers, row, keep_transfers=None)
        n_bytes, busy_s = trace.links["bytes"], trace.links["busy_s"]
        # The first of those that are alike but for rounding.
        busiest = int((busy_s >= busy_s.max() * (1 - ALIKE_TIME)).argmax()) if len(n_bytes) else 0
        found.append((makespan_s(trace), busiest, int(n_bytes[busiest]) if len(n_bytes) else 0, True))
    return chosen.name, Times(*map(np.array, zip(*found, strict=True)))
