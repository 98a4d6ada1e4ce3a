"""``ringnet numerics``: what rounding does to the result, by algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.studies import StudyOptions, carried_through, ended, records
from ringnet.cli.targets import check_targets, sources_of
from ringnet.reporting.storage import write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.study.numerics import DTYPES_SHOWN, Numerics, numerics_parts, plan_numerics
from ringnet.study.points import run_info

EXAMPLE = "ringnet numerics scenario.yaml --algorithms all --dtypes bfloat16 --accumulate float32"


def command(  # noqa: PLR0913, PLR0917 -- every option is a parameter
    scenario: options.ScenarioFile,
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
    overrides: options.Overrides = None,
    out: options.StudyFolder = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    plots: options.Plots = True,
    formats: options.Formats = None,
    processes: options.Processes = None,
    fresh: options.Fresh = False,
    cache: options.Cache = None,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """Show what rounding does to the sum: the error by algorithm and element type, and who holds the same bits."""
    found = options.read_scenario(
        scenario, options.with_formats(overrides, formats), allow_outside, allow_python
    )
    names, counts = options.algorithms_of(algorithms), workers and options.worker_counts_of(workers)
    asked = StudyOptions(names, counts or None, out, as_json, quiet, plots, processes, fresh, cache)
    check_targets({}, sources_of(found, scenario), {"--out": asked.folder(found, "numerics")})
    return _study(found, asked, options.values_of(dtypes, "--dtypes") if dtypes else DTYPES_SHOWN, accumulate)


def _study(scenario: Scenario, asked: StudyOptions, dtypes: Sequence[str], accumulate: str | None) -> int:
    """Work it out, write and print it; nothing is written where something is wrong."""
    folder = asked.folder(scenario, "numerics")
    plan = plan_numerics(scenario, asked.algorithms, asked.workers, dtypes, accumulate)
    found, points = carried_through(plan, numerics_parts, asked)
    files = _write(scenario, found, asked, folder, accumulate)
    if asked.json:
        print_json({"points": records(found.table), "notes": list(found.notes), "failed": list(found.failed)})
    elif not asked.quiet:
        _print(found)
        print_table([points, ("written", files)])
    return ended(found.failed, (*scenario.notes, *found.notes), asked.quiet)


def _write(
    scenario: Scenario, found: Numerics, asked: StudyOptions, folder: Path, accumulate: str | None
) -> str:
    seed = None if scenario.files else scenario.seed
    info = run_info(scenario, folder, seed, [*found.notes, *found.failed])
    info["scenario"] |= {"compare": asked.asked(scenario)}
    info["options"] = {"dtypes": [*found.table["dtype"].unique()], "accumulate": accumulate}
    files = write_study(
        folder, info, {"numerics": found.table}, plots=asked.plots, look=scenario.report.figure.look
    )
    return written(files.folder, files.files)


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
