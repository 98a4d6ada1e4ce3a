"""Errors of rounding by algorithm, element type and number of workers; whose results are the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.replay import exact_result, rounded, rounding_error
from ringnet.array_types import Array
from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.errors import Fault, InputError, StudyError, unknown
from ringnet.payload import RandomSource, Reduction, Source, make_reduction
from ringnet.payload.dtypes import DTYPES, ITEMSIZES, DType, bits_of, is_float
from ringnet.payload.sources import message_elements
from ringnet.reporting.columns import TABLES
from ringnet.runs.parts import build_schedule, build_source
from ringnet.scenario import Scenario
from ringnet.scenario.checks.collective import reduces_in_switches, reduction_of
from ringnet.scenario.keys.algorithm import AlgorithmKeys, label_of
from ringnet.scenario.keys.model import COPYING
from ringnet.study.outcome import Outcome
from ringnet.study.parts import (
    PartOptions,
    StudyPart,
    StudyPlan,
    algorithm_points,
    key_of,
    run_parts,
    workers_of,
)

#: Element types that are looked at where nobody says otherwise.
DTYPES_SHOWN = ("float32", "float16", "bfloat16")
#: Elements of all workers together; of a larger message only so much is looked at.
MOST_ELEMENTS = 1 << 22


#: Elements that a slow core adds in a second, and what a transfer takes beside.
ELEMENTS_PER_S, TRANSFER_S = 50e6, 20e-6
#: From this factor between errors on, a sentence says so.
WORTH_TELLING = 1.1
#: Keys that tell rows of different data or types apart.
_GROUP = ["n_workers", "dtype", "accumulation"]

#: Element types, each with the type of its partial sums where that is another.
Kinds = tuple[tuple[str, str | None], ...]


class Numerics(NamedTuple):
    """What came of it: a row per N, element type and algorithm, sentences about them, and what went wrong.

    Columns as `ringnet.reporting.columns.TABLES` has them. Equal numbers of ``result`` within one N, element type and
    accumulation are the same bits; ``changes_with_size`` says whether the first half of the message comes out with
    other bits when it is reduced on its own.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...] = ()


def plan_numerics(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmKeys] | None,
    workers: Sequence[int] | None,
    dtypes: Sequence[str],
    accumulate: str | None,
) -> StudyPlan:
    """Return what there is to do, for each N each algorithm, and what is to be said of it beforehand.

    Raises
    ------
    InputError
        As `ringnet.numerics`.
    """
    _refuse(scenario, workers, dtypes, accumulate)
    kinds = _kinds(dtypes, accumulate)
    plan = StudyPlan([], [])
    if accumulate and all(partial is None for _, partial in kinds):
        plan.notes.append(f"no element type is narrower than {accumulate}: nothing is accumulated in it")
    for n_workers in workers or workers_of(scenario):
        points, missing = algorithm_points(scenario, algorithms, n_workers)
        plan.notes.extend([*missing, *_cut(scenario, n_workers)])
        plan.parts.extend(_part(scenario, point, kinds) for point in points)
    keys = scenario.network.reduction
    takers = dict.fromkeys(part.label for part in plan.parts if reduces_in_switches(part.scenario.algorithm_name))
    if keys is not None and keys.accumulate is not None and takers:
        plan.notes.append(f"{', '.join(takers)}: switches sum in {keys.accumulate}, where that is wider")
    return plan


def _part(scenario: Scenario, point: Scenario, kinds: Kinds) -> StudyPart:
    label, n_workers = label_of(point.algorithm), point.workers
    schedule, whole = build_schedule(point), key_of(scenario, n_workers)
    added = 3 * n_workers * min(_n_elements(scenario), MOST_ELEMENTS // n_workers)
    most_s = len(kinds) * (added / ELEMENTS_PER_S + TRANSFER_S * schedule.n_transfers)
    key = key_of(point, "numerics", label, kinds, whole)
    return StudyPart(label, key, point, Rounding(label, kinds, _Data(whole, scenario, n_workers)), most_s)


def numerics_parts(plan: StudyPlan, how: PartOptions) -> Numerics:
    """Work out what is planned.

    Raises
    ------
    InputError, StudyError
        None of the algorithms can be there; of none something came.
    """
    if not plan.parts:
        raise InputError(*map(Fault, plan.notes))
    outcomes = run_parts(plan.parts, how)
    rows = [row for outcome in outcomes for row in outcome.summary.get("rows", [])]
    failed = [
        f"{part.label} with {part.scenario.workers} workers: {outcome.error}"
        for part, outcome in zip(plan.parts, outcomes, strict=True)
        if not outcome.ok
    ]
    if not rows:
        raise StudyError("\n".join(failed))
    table = _numbered(pd.DataFrame(rows))
    return Numerics(table, (*plan.notes, *_sentences(table)), tuple(failed))


def _numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by N and element type, with numbers for the digests of results."""
    order = {kind: place for place, kind in enumerate(dict.fromkeys(map(tuple, frame[_GROUP].to_numpy())))}
    place = [order[tuple(kind)] for kind in frame[_GROUP].to_numpy()]
    frame = frame.assign(place=place).sort_values(["n_workers", "place"], kind="stable", ignore_index=True)
    numbers = [pd.factorize(rows["result"])[0] + 1 for _, rows in frame.groupby(_GROUP, sort=False)]
    return frame.assign(result=np.concatenate(numbers))[list(TABLES["numerics"])]


def _refuse(scenario: Scenario, workers: Sequence[int] | None, dtypes: Sequence[str], accumulate: str | None) -> None:
    faults = []
    if scenario.collective in COPYING:
        faults.append(Fault(f"{scenario.collective} adds nothing", "collective", right="all-reduce"))
    for path, names in (("dtypes", dtypes), ("accumulate", [accumulate] if accumulate else [])):
        known = [name for name, dtype in DTYPES.items() if is_float(dtype)]
        message = "there is no such floating-point type"
        faults += [unknown(message, name, known, path) for name in names if name not in known]
    if not dtypes:
        faults.append(Fault("no element type is named", "dtypes", right=", ".join(DTYPES_SHOWN)))
    if scenario.files and list(workers or workers_of(scenario)) != [scenario.workers]:
        message, right = f"the data is that of {scenario.workers} workers", str(scenario.workers)
        value = ", ".join(map(str, workers or workers_of(scenario)))
        faults.append(Fault(message, "workers", value=value, right=right))
    if faults:
        raise InputError(*faults)


def _kinds(dtypes: Sequence[str], accumulate: str | None) -> Kinds:
    kinds: list[tuple[str, str | None]] = []
    for name in dict.fromkeys(dtypes):
        kinds.append((name, None))
        if accumulate and ITEMSIZES[name] < ITEMSIZES[accumulate]:
            kinds.append((name, accumulate))
    return tuple(kinds)


def _cut(scenario: Scenario, n_workers: int) -> Iterator[str]:
    """Say that only the beginning of a large message is looked at."""
    whole, most = _n_elements(scenario), MOST_ELEMENTS // n_workers
    if whole > most:
        looked_at = f"the first {most:,} of {whole:,} elements are looked at, as a message of its own"
        yield f"with {n_workers} workers {looked_at}"


def _n_elements(scenario: Scenario) -> int:
    return message_elements(scenario.message_bytes, DTYPES[scenario.dtype])


@dataclass(frozen=True)
class _Data:
    """What all workers hold at the start, known by a hash of what it comes from."""

    key: str
    scenario: Scenario = field(compare=False)
    n_workers: int


@lru_cache(maxsize=1)
def _values(data: _Data) -> Array:
    """Return the data of all workers, shape (n_workers, n_elements), in the type that it has."""
    scenario, n_workers = data.scenario, data.n_workers
    source: Source
    if scenario.files:
        source = build_source(scenario)
    else:
        n_elements, product = _n_elements(scenario), scenario.reduce == "prod"
        source = RandomSource(n_workers, n_elements, DTYPES["float64"], seed=scenario.seed, for_product=product)
    n_elements = min(source.n_elements, MOST_ELEMENTS // n_workers)
    values = np.stack([source.read(worker, 0, n_elements) for worker in range(n_workers)])
    values.flags.writeable = False
    return values


@dataclass(frozen=True)
class Rounding:
    """Replays the algorithm of a scenario on some data, in each element type; ``label`` names it in the table."""

    label: str
    kinds: Kinds
    data: _Data

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return ``rows`` of the table, with a digest of each result where the table has a number."""
        schedule = build_schedule(scenario)
        check(schedule)
        reduction = make_reduction(*_reduction(self.data.scenario, self.data.n_workers))
        rows = []
        for dtype, accumulate in self.kinds:
            with np.errstate(all="ignore"):
                values = _values(self.data).astype(DTYPES[dtype])
            head = {
                "n_workers": self.data.n_workers,
                "dtype": dtype,
                "accumulation": accumulate or dtype,
                "algorithm": self.label,
            }
            wide = _in_switches(scenario, DTYPES[accumulate or dtype])
            rows.append(head | _row(schedule, reduction, values, accumulate, wide))
        return Outcome({"rows": rows})


def _reduction(scenario: Scenario, n_workers: int) -> tuple[str, int, tuple[float, ...] | None]:
    name, _, weights = reduction_of(scenario)
    return name, n_workers, weights


def _in_switches(scenario: Scenario, carried: DType) -> DType | None:
    """Return the type in which switches sum what is carried, where they are said to have one that is wider."""
    keys = scenario.network.reduction
    wide = None if keys is None or keys.accumulate is None else DTYPES[keys.accumulate]
    return wide if wide is not None and wide.itemsize > carried.itemsize else None


def _row(
    schedule: Schedule, reduction: Reduction, values: Array, accumulate: str | None, in_switches: DType | None
) -> dict[str, Any]:
    partial = DTYPES[accumulate] if accumulate else None
    whole = rounded(schedule, reduction, values, partial, in_switches)
    off = rounding_error(whole.result, exact_result(reduction, values))
    half = values.shape[1] // 2
    changes = None
    if half:
        alone = rounded(schedule, reduction, values[:, :half], partial, in_switches).result
        changes = bool((bits_of(alone) != bits_of(whole.result[:half])).any())
    return {
        "n_elements": values.shape[1],
        **off._asdict(),
        "workers_agree": whole.agree,
        "result": sha256(whole.result.tobytes()).hexdigest(),
        "changes_with_size": changes,
    }


def _sentences(table: pd.DataFrame) -> Iterator[str]:
    """Say what a reader should know of the whole table."""
    groups = table.groupby(["n_workers", "dtype", "accumulation"], sort=False)["result"]
    most = int(groups.max().max())
    if most > 1:
        yield f"the result depends on the algorithm: up to {most} different ones for the same data"
    else:
        yield "all algorithms give the same bits"
    yield from _least_and_most(table)
    agree = bool(table["workers_agree"].all())
    yield "all workers hold the same bits" if agree else "the workers of some algorithms hold different bits"
    changing = sorted({str(name) for name in table.loc[table["changes_with_size"] == True, "algorithm"]})  # noqa: E712 -- may be None
    if changing:
        yield f"the bits of an element change with the message size for {', '.join(changing)}"


def _least_and_most(table: pd.DataFrame) -> Iterator[str]:
    """Say whose errors are the least and whose the most, where that differs, for the most workers."""
    most = table[table["n_workers"] == table["n_workers"].max()]
    for (n_workers, dtype, accumulation), rows in most.groupby(_GROUP, sort=False):
        errors = rows.set_index("algorithm")["rms_error"].astype(float)
        if not np.isfinite(errors).all() or errors.min() <= 0 or errors.max() < errors.min() * WORTH_TELLING:
            continue
        kind = str(dtype) if dtype == accumulation else f"{dtype} summed in {accumulation}"
        least, worst = errors.idxmin(), errors.idxmax()
        factor = f"{errors.max() / errors.min():.3g} times"
        yield f"with {n_workers} workers in {kind} the errors of {worst} are {factor} those of {least}"
