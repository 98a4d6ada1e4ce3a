"""Errors of rounding by algorithm, element type and number of workers; whose results are the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.rounding import error, reference, rounded
from ringnet.collectives import Schedule
from ringnet.collectives.check import check
from ringnet.errors import Fault, InputError
from ringnet.payload import RandomSource, Reduction, Source, make_reduction
from ringnet.payload.dtypes import DTYPES, Array, bits_of, is_float
from ringnet.payload.sources import message_elements
from ringnet.scenario import Scenario
from ringnet.scenario.algorithms import AlgorithmSettings, label_of
from ringnet.scenario.build import build_schedule, build_source
from ringnet.scenario.checks import COPYING, reduction_of
from ringnet.study.compare import algorithm_points, workers_of

#: Element types that are looked at where nobody says otherwise.
DTYPES_SHOWN = ("float32", "float16", "bfloat16")
#: Elements of all workers together; of a larger message only so much is looked at.
MOST_ELEMENTS = 1 << 22


class Numerics(NamedTuple):
    """What came of it: a row per N, element type and algorithm, and sentences about them."""

    table: pd.DataFrame
    notes: tuple[str, ...]


def numerics(
    scenario: Scenario,
    algorithms: str | Sequence[str | AlgorithmSettings] | None = None,
    workers: Sequence[int] | None = None,
    dtypes: Sequence[str] = DTYPES_SHOWN,
    accumulate: str | None = None,
) -> Numerics:
    """Replay algorithms without time on the same data, and compare what comes out.

    Parameters
    ----------
    scenario : Scenario
        Its data and reduction count: the same numbers, rounded to each element type. Of random data the numbers are
        drawn once, in float64.
    algorithms, workers : optional
        As for `ringnet.study.compare.compare`.
    dtypes : sequence of str
    accumulate : str, optional
        An element type: types that are narrower get a second row each, with all partial sums in this type.

    Returns
    -------
    Numerics
        Columns ``n_workers, dtype, accumulation, algorithm, n_elements, max_abs_error, rms_error, relative_rms_error,
        workers_agree, result, changes_with_size``. Equal numbers of ``result`` within one N, element type and
        accumulation are the same bits; ``changes_with_size`` says whether the first half of the message comes out with
        other bits when it is reduced on its own.

    Raises
    ------
    InputError
        A collective that reduces nothing, element types that are not floating point.
    """
    _refuse(scenario, dtypes, accumulate)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for n_workers in _workers(scenario, workers):
        points, left_out = algorithm_points(scenario, algorithms, n_workers)
        notes += left_out
        schedules = {label_of(point.algorithm): build_schedule(point) for point in points}
        for schedule in schedules.values():
            check(schedule)
        rows += _rows_of(scenario, n_workers, schedules, _kinds(dtypes, accumulate))
    table = pd.DataFrame(rows)
    return Numerics(table, (*notes, *_sentences(table)))


def _workers(scenario: Scenario, workers: Sequence[int] | None) -> Sequence[int]:
    """Return the numbers of workers; of the user's own data that many as there are."""
    return [scenario.workers] if scenario.files else (workers or workers_of(scenario))


def _refuse(scenario: Scenario, dtypes: Sequence[str], accumulate: str | None) -> None:
    faults = []
    if scenario.collective in COPYING:
        faults.append(Fault(f"{scenario.collective} adds nothing", "collective", right="all-reduce"))
    for name in (*dtypes, *([accumulate] if accumulate else [])):
        if name not in DTYPES or not is_float(DTYPES[name]):
            right = ", ".join(name for name, dtype in DTYPES.items() if is_float(dtype))
            faults.append(Fault("there is no such floating-point type", "--dtypes", value=name, right=right))
    if faults:
        raise InputError(*faults)


def _kinds(dtypes: Sequence[str], accumulate: str | None) -> list[tuple[str, str | None]]:
    """Return element types, each with the type of its partial sums where that is another."""
    kinds: list[tuple[str, str | None]] = []
    for name in dtypes:
        kinds.append((name, None))
        if accumulate and DTYPES[name].itemsize < DTYPES[accumulate].itemsize:
            kinds.append((name, accumulate))
    return kinds


def _rows_of(
    scenario: Scenario, n_workers: int, schedules: dict[str, Schedule], kinds: list[tuple[str, str | None]]
) -> Iterator[dict[str, Any]]:
    wide = _values(scenario, n_workers)
    reduction = make_reduction(*_reduction(scenario, n_workers))
    for dtype, accumulate in kinds:
        with np.errstate(all="ignore"):
            values = wide.astype(DTYPES[dtype])
        seen: dict[bytes, int] = {}
        for label, schedule in schedules.items():
            found = _row(schedule, reduction, values, accumulate, seen)
            head = {
                "n_workers": n_workers,
                "dtype": dtype,
                "accumulation": accumulate or dtype,
                "algorithm": label,
            }
            yield head | found


def _reduction(scenario: Scenario, n_workers: int) -> tuple[str, int, tuple[float, ...] | None]:
    name, _, weights = reduction_of(scenario)
    return name, n_workers, weights


def _values(scenario: Scenario, n_workers: int) -> Array:
    """Return the data of all workers, shape (n_workers, n_elements), in the type that it has."""
    source: Source
    if scenario.files:
        source = build_source(scenario)
    else:
        n_elements = message_elements(scenario.message_bytes, DTYPES[scenario.dtype])
        product = scenario.reduce == "prod"
        source = RandomSource(
            n_workers, n_elements, DTYPES["float64"], seed=scenario.seed, for_product=product
        )
    n_elements = min(source.n_elements, MOST_ELEMENTS // n_workers)
    return np.stack([source.read(worker, 0, n_elements) for worker in range(n_workers)])


def _row(
    schedule: Schedule, reduction: Reduction, values: Array, accumulate: str | None, seen: dict[bytes, int]
) -> dict[str, Any]:
    partial = DTYPES[accumulate] if accumulate else None
    whole = rounded(schedule, reduction, values, partial)
    off = error(whole.result, reference(reduction, values))
    half = values.shape[1] // 2
    changes = None
    if half:
        alone = rounded(schedule, reduction, values[:, :half], partial).result
        changes = bool((bits_of(alone) != bits_of(whole.result[:half])).any())
    return {
        "n_elements": values.shape[1],
        **off._asdict(),
        "workers_agree": whole.agree,
        "result": seen.setdefault(whole.result.tobytes(), len(seen) + 1),
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
    agree = bool(table["workers_agree"].all())
    yield "all workers hold the same bits" if agree else "the workers of some algorithms hold different bits"
    changing = sorted({str(name) for name in table.loc[table["changes_with_size"] == True, "algorithm"]})  # noqa: E712 -- may be None
    if changing:
        yield f"the bits of an element change with the message size for {', '.join(changing)}"
