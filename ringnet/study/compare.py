"""Many algorithms on one network, over sizes and numbers of workers: which is fastest where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.winners import with_ranks
from ringnet.collectives import ALGORITHMS
from ringnet.collectives.proof import check
from ringnet.documents.document import Mark, Path
from ringnet.errors import Fault, InputError, StudyError
from ringnet.reporting.columns import TABLES
from ringnet.runs.notes import about_others
from ringnet.runs.parts import build_schedule
from ringnet.scenario import Scenario
from ringnet.scenario.build.scenario import single
from ringnet.scenario.checks.collective import check_algorithm
from ringnet.scenario.keys.algorithm import AlgorithmKeys, label_of, parameters_of
from ringnet.scenario.schedule import check_schedule, file_names
from ringnet.study.cost import TRANSFERS_PER_S
from ringnet.study.parts import Means, Part, key_of, run_parts
from ringnet.study.timing import Timing

#: Sizes where the scenario has no sweep over message: so many, from the first to the last, by equal factors.
N_SIZES, FIRST_BYTES, LAST_BYTES = 40, 1 << 10, 1 << 30
#: Bytes that sizes are rounded to, so that every dtype divides them.
ALIGNED_BYTES = 8
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
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What a study of algorithms is made of: a part for each algorithm at each N, and what was left out of it.

    ``remarks`` are what else is to be said where something comes of it.
    """

    parts: list[Part]
    notes: list[str]
    remarks: tuple[str, ...] = ()


def compare(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmKeys] | None = None,
    workers: Sequence[int] | None = None,
    *,
    jobs: int | None = None,
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

    Raises
    ------
    InputError
        A sweep over other keys; an algorithm that does not know the collective; none that can run.
    """
    return compare_parts(plan_comparison(scenario, algorithms, workers), Means(jobs))


def compare_parts(plan: Plan, means: Means) -> Comparison:
    """Time what is planned.

    Raises
    ------
    InputError, StudyError
        None of the algorithms can run; of none something came.
    """
    outcomes = run_parts(plan.parts, means)
    notes, rows, failed = [*plan.notes], [], []
    for part, outcome in zip(plan.parts, outcomes, strict=True):
        where = f"{part.label} with {part.scenario.workers} workers"
        if not outcome.ok:
            failed.append(f"{where}: {outcome.error}")
        elif outcome.summary["left_out"] is not None:
            notes.append(left_out(part.label, part.scenario.workers, outcome.summary["left_out"]))
        rows += outcome.summary.get("rows", [])
    if not rows:
        raise StudyError("\n".join(failed)) if failed else InputError(*map(Fault, notes))
    table = with_ranks(pd.DataFrame(rows))
    order = ["n_workers", "message_bytes", "rank"]
    table = table.sort_values(order, kind="stable", ignore_index=True)[list(COLUMNS)]
    return Comparison(table, (*notes, *plan.remarks, *_about_sends(plan, table)), tuple(failed))


def _about_sends(plan: Plan, table: pd.DataFrame) -> list[str]:
    """Say it where the fastest has all its sends at once, and they are free, as they are to no real worker."""
    wins = (table["rank"] == 1) & (table["algorithm"] == "direct") & (table["n_workers"] > 2)  # noqa: PLR2004 -- one send
    if plan.parts[0].scenario.worker.send_overhead_s or not wins.any():
        return []
    return [
        "sends take no time of a worker here, which favours direct with its N-1 at once: worker.send_overhead, for "
        "example 1 us, says what each takes"
    ]


def left_out(label: str, n_workers: int, reason: str) -> str:
    """Say that an algorithm is not part of a study."""
    return f"{label} is left out with {n_workers} workers: {reason}"


def plan_comparison(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmKeys] | None = None,
    workers: Sequence[int] | None = None,
) -> Plan:
    """Return what a comparison is made of, for each N each algorithm.

    Raises
    ------
    InputError
        As `compare`; a schedule from a file that does not do what its collective says.
    """
    _refuse_other_keys(scenario)
    sizes = tuple(sizes_of(scenario))
    plan = Plan([], [], tuple(about_others(scenario)))
    for n_workers in workers or workers_of(scenario):
        points, missing = algorithm_points(scenario, algorithms, n_workers)
        plan.parts.extend(_part(point, sizes) for point in points)
        plan.notes.extend(missing)
    return plan


def _part(point: Scenario, sizes: tuple[int, ...]) -> Part:
    label, schedule = label_of(point.algorithm), build_schedule(point)
    most_s = len(sizes) * schedule.n_transfers / TRANSFERS_PER_S["events"]
    return Part(label, key_of(point, "compare", label, sizes), point, Timing(label, sizes), most_s)


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
    scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None
) -> list[str | AlgorithmKeys]:
    """Return what is compared; ``all`` stands for every algorithm that knows the collective."""
    if wanted is None:
        wanted = scenario.compare.algorithms if scenario.compare is not None else "all"
    if isinstance(wanted, str):
        return [name for name, one in ALGORITHMS.items() if scenario.collective in one.collectives]
    return list(wanted)


def algorithm_points(
    scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None, n_workers: int
) -> tuple[list[Scenario], list[str]]:
    """Return the scenarios of the algorithms at one N, and for those that cannot be there a sentence each."""
    points: list[Scenario] = []
    notes: list[str] = []
    for keys in {label_of(keys): keys for keys in algorithms_of(scenario, wanted)}.values():
        try:
            points.append(_with_algorithm(points[0], keys) if points else _point(scenario, n_workers, keys))
        except InputError as error:
            reason = "; ".join(fault.message for fault in error.faults)
            notes.append(left_out(label_of(keys), n_workers, reason))
    for point in points:
        if file_names(point.algorithm):  # what somebody else wrote is refused before anything is done
            check(build_schedule(point))
    return points, notes


def _point(scenario: Scenario, n_workers: int, keys: str | AlgorithmKeys) -> Scenario:
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


def _with_algorithm(point: Scenario, keys: str | AlgorithmKeys) -> Scenario:
    """Return the same point with another algorithm: checking a network of a million links anew takes seconds."""
    other = point.model_copy(update={"algorithm": keys})
    findings = [*check_algorithm(other), *check_schedule(other, point.place)]
    if findings:
        raise InputError(*(Fault(one.message, "algorithm", right=one.right) for one in findings))
    return other


def channels_of(scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None) -> dict[str, int]:
    """Return the channels that algorithms of a comparison were told to have, by their labels."""
    told = {label_of(keys): parameters_of(keys) for keys in algorithms_of(scenario, wanted)}
    return {label: one["n_channels"] for label, one in told.items() if "n_channels" in one}
