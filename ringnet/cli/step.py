"""``ringnet step``: the time of a training step, computation over communication; the best of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ringnet.analysis.steps import StepResult, best_points, rate_text
from ringnet.cli import options
from ringnet.cli.printing import complain, note, print_json, print_table, say
from ringnet.cli.studies import records
from ringnet.cli.targets import check_targets, sources_of
from ringnet.errors import DeadlockError, StudyError
from ringnet.reporting.columns import TABLES
from ringnet.reporting.storage import write_study
from ringnet.reporting.tables import typed_frame
from ringnet.reporting.text import written
from ringnet.runs.step_time import simulate_step
from ringnet.scenario import Scenario
from ringnet.study.points import run_info
from ringnet.units import format_bytes, format_count, format_seconds

EXAMPLE = "ringnet step scenario.yaml --set step.bucket_cap='100 MiB'"

#: Points and errors that a person is shown; the table on disk has all of them.
SHOWN_ROWS, SHOWN_ERRORS = 40, 10
#: Collectives that a person is shown.
SHOWN_BUCKETS = 6


def command(  # noqa: PLR0917 -- every option is a parameter
    scenario: options.ScenarioFile,
    overrides: options.Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where tables and plots go; reports/NAME-step otherwise."),
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    plots: options.Plots = True,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """Time a step of training, computation over communication, and say what is best of a sweep."""
    found = options.read_scenario(scenario, overrides, allow_outside, allow_python)
    folder = out or Path("reports") / f"{options.file_name(found.name)}-step"
    check_targets({}, sources_of(found, scenario), {"--out": folder})
    points = [*_points(found)]
    table = typed_frame(pd.DataFrame([row for row, _ in points], dtype=object), "step")
    single = points[0][1] if len(points) == 1 else None
    advice = best_points(table, found.swept)
    notes = [*dict.fromkeys(said for _, result in points if result for said in result.notes)]
    seed = found.seed if found.step and found.step.noise else None
    info = run_info(found, folder, seed, [*advice, *notes])
    files = write_study(folder, info, _tables(table, single), plots=plots)
    if as_json:
        print_json({"points": records(table), "advice": advice, "notes": notes})
    elif not quiet:
        _print(table, single, found.swept)
        for sentence in advice:
            say(sentence)
        print_table([("written", written(files.folder, files.files))])
    note(*notes, quiet=quiet)
    return _complain(table, found.swept)


def _points(scenario: Scenario) -> Any:
    """Yield the row of each point, and its result where there is one."""
    if not scenario.swept:
        result = simulate_step(scenario)
        yield result.summary, result
        return
    for point in scenario.iter_points():
        try:
            result = simulate_step(point.scenario)
        except DeadlockError as error:
            yield {"name": scenario.name, **point.swept, "error": str(error)}, None
        else:
            yield {**result.summary, **point.swept}, result


def _tables(table: pd.DataFrame, single: StepResult | None) -> dict[str, pd.DataFrame]:
    swept = [name for name in table.columns if name not in TABLES["step"]]
    tables = {"step": table.reindex(columns=[*TABLES["step"], *swept])}
    if single is not None:
        tables["buckets"] = typed_frame(single.buckets, "buckets")
        if single.timeline is not None:
            tables["timeline"] = typed_frame(single.timeline, "timeline")
    return tables


def _print(table: pd.DataFrame, single: StepResult | None, swept: Sequence[str]) -> None:
    if single is not None:
        print_table([*_answer(single.summary), *_bucket_lines(single)])
        return
    heads = (*swept, "step", "computes", "exposed", "hidden", "idle", "efficiency", "examples/s")
    rows = [_line(row, swept) for row in table.head(SHOWN_ROWS).to_dict("records")]
    print_table([heads, *rows])
    if len(table) > SHOWN_ROWS:
        say(f"... and {len(table) - SHOWN_ROWS} more in step.csv")


def _line(row: Mapping[Any, Any], swept: Sequence[str]) -> tuple[str, ...]:
    where = tuple(str(row[key]) for key in swept)
    if pd.isna(row["step_s"]):
        return (*where, "failed", "", "", "", "", "", "")
    times = (format_seconds(row[key]) for key in ("step_s", "compute_s", "exposed_s", "hidden_s", "idle_s"))
    return (*where, *times, _share(row["efficiency"]), rate_text(row["examples_per_s"]))


def _share(share: float | None) -> str:
    return "" if share is None or pd.isna(share) else f"{100 * share:.3g} %"


def _answer(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the answer of one point, line by line."""
    step_s, taken = row["step_s"], row["communication_s"]
    several = (
        f", mean of {row['n_steps']}: {format_seconds(row['step_s_min'])} to {format_seconds(row['step_s_max'])}"
        if row["n_steps"] > 1
        else ""
    )
    slowest = row["compute_s_max"]
    uneven = f", the slowest {format_seconds(slowest)}" if slowest > row["compute_s"] * (1 + 1e-9) else ""
    tokens = f", {rate_text(row['tokens_per_s'])} tokens/s" if row["tokens_per_s"] else ""
    size = format_bytes(row["gradient_bytes"])
    speed = [] if row["examples_per_s"] is None else [
        ("speed", f"{rate_text(row['examples_per_s'])} examples/s{tokens}"),
        ("efficiency", f"{_share(row['efficiency'])} of what each worker does alone"),
    ]  # fmt: skip
    return [
        ("step", f"{format_seconds(step_s)}{several}"),
        ("computation", f"{format_seconds(row['compute_s'])} of a worker{uneven}"),
        (
            "communication",
            f"{format_seconds(taken)}: {format_seconds(row['hidden_s'])} hidden under computation, "
            f"{format_seconds(row['exposed_s'])} exposed",
        ),
        *(
            [("idle", f"{format_seconds(row['idle_s'])}, waiting for others")]
            if row["idle_s"] > 1e-9 * step_s
            else []
        ),
        ("bound", f"no algorithm makes this step take less than {format_seconds(row['bound_s'])}"),
        *speed,
        (
            "model",
            f"{row['model']}: {format_count(row['n_parameters'])} parameters, {size} of {row['dtype']}",
        ),
    ]


def _bucket_lines(single: StepResult) -> list[tuple[str, str]]:
    """Return the collectives, the most exposed first."""
    table = single.buckets
    most = table.sort_values("exposed_s", ascending=False, kind="stable").head(SHOWN_BUCKETS)
    lines = [
        (
            f"{row['what']}" if row["group"] == single.summary["name"] else f"{row['group']}, {row['what']}",
            f"{row['collective']} of {format_bytes(row['bytes'])}, {format_seconds(row['start_s'])} to "
            f"{format_seconds(row['end_s'])}, {format_seconds(row['exposed_s'])} exposed",
        )
        for row in most.sort_index().to_dict("records")
    ]
    left = len(table) - len(most)
    return [*lines, *([("...", f"{left} more, less exposed, in buckets.csv")] if left else [])]


def _complain(table: pd.DataFrame, swept: Sequence[str]) -> int:
    bad = table[table["error"].notna()]
    for row in bad.head(SHOWN_ERRORS).to_dict("records"):
        complain(f"{', '.join(f'{key}={row[key]}' for key in swept)}: {row['error']}")
    return StudyError.exit_code if len(bad) else 0
