"""``ringnet numerics``: what rounding does to the result, by algorithm."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import pandas as pd
import typer

from ringnet.cli import options
from ringnet.cli.printing import print_table
from ringnet.cli.studies import (
    StudyOptions,
    asked_algorithms,
    carried_through,
    compared,
    records,
    study,
    told,
)
from ringnet.study.numerics import DTYPES_SHOWN, Numerics, numerics_parts, plan_numerics

EXAMPLE = "ringnet numerics scenario.yaml --algorithms all --dtypes bfloat16 --accumulate float32"


@study
def command(
    asked: StudyOptions,
    algorithms: options.Algorithms = None,
    workers: options.WorkerCounts = None,
    dtypes: Annotated[
        list[str] | None,
        typer.Option(metavar="T,T", help="Element types; float32,float16,bfloat16 otherwise."),
    ] = None,
    accumulate: Annotated[
        str | None,
        typer.Option(metavar="T", help="Show narrower types once more, with their partial sums in this one."),
    ] = None,
) -> int:
    """Show what rounding does to the sum: the error by algorithm and element type, and who holds the same bits."""
    scenario = asked.read()
    names, counts = asked_algorithms(algorithms), options.worker_counts_of(workers or ()) or None
    asked.check(scenario)
    wanted = options.values_of(dtypes, "--dtypes") if dtypes else DTYPES_SHOWN
    plan = plan_numerics(scenario, names, counts, wanted, accumulate)
    found, points = carried_through(len(plan.parts), partial(numerics_parts, plan), asked)
    lines = asked.write(
        scenario,
        {"numerics": found.table},
        [*found.notes, *found.failed],
        seed=None if scenario.files else scenario.seed,
        compared=compared(scenario, names, counts),
        options={"dtypes": [*found.table["dtype"].unique()], "accumulate": accumulate},
    )
    document = {"points": records(found.table), "notes": list(found.notes), "failed": list(found.failed)}
    notes = (*scenario.notes, *found.notes)
    return told(asked, lambda: document, lambda: _print(found), [points, *lines], notes=notes, failed=found.failed)


def _print(found: Numerics) -> None:
    heads = (
        "N",
        "type",
        "summed in",
        "algorithm",
        "largest error",
        "relative",
        "workers agree",
        "result",
        "by size",
    )
    print_table([heads, *map(_line, found.table.to_dict("records"))])


def _line(row: dict[Any, Any]) -> tuple[str, ...]:
    relative = row["relative_rms_error"]
    changes = row["changes_with_size"]
    return (
        str(row["n_workers"]),
        row["dtype"],
        row["accumulation"],
        row["algorithm"],
        f"{row['max_abs_error']:.3g}",
        "" if pd.isna(relative) else f"{relative:.3g}",
        "yes" if row["workers_agree"] else "no",
        f"#{row['result']}",
        "" if changes is None else "changes" if changes else "same",
    )
