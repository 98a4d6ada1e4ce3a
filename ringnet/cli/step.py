"""``ringnet step``: the time of a training step, computation over communication; the best of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from ringnet.analysis.answer import figure_of
from ringnet.analysis.spread import FIGURE_WORDS
from ringnet.analysis.steps import StepResult, rate_text
from ringnet.cli.printing import complain, note, print_json, print_table, say
from ringnet.cli.studies import StudyOptions, carried_through, records, study
from ringnet.errors import VerificationError
from ringnet.reporting.tables import typed_frame
from ringnet.runs.advice import idle_step_advice
from ringnet.runs.step_time import simulate_step
from ringnet.scenario import Scenario
from ringnet.study.steps import plan_steps, run_steps, step_table
from ringnet.units import format_bytes, format_count, format_seconds

EXAMPLE = "ringnet step scenario.yaml --set step.bucket_cap='100 MiB'"

#: Points and errors that a person is shown; the table on disk has all of them.
SHOWN_ROWS, SHOWN_ERRORS = 40, 10
#: Collectives that a person is shown.
SHOWN_BUCKETS = 6


@study
def command(asked: StudyOptions) -> int:
    """Time a step of training, computation over communication, and say what is best of a sweep."""
    scenario = asked.read()
    asked.check(scenario)
    return _one(scenario, asked) if scenario.sweep is None else _sweep(scenario, asked)


def _one(scenario: Scenario, asked: StudyOptions) -> int:
    """Time one step: what came of it, and everything of it as a table."""
    result = simulate_step(scenario)
    tables = {"step": step_table([result.summary]), "buckets": typed_frame(result.buckets, "buckets")}
    if result.timeline is not None:
        tables["timeline"] = typed_frame(result.timeline, "timeline")
    advice = [*filter(None, [idle_step_advice(scenario, result)])]
    lines = _write(scenario, asked, tables, [*result.notes, *advice])
    if asked.json:
        print_json({"points": records(tables["step"]), "advice": advice, "notes": [*result.notes]})
    elif not asked.quiet:
        print_table([*_answer(result.summary), *_bucket_lines(result), *lines])
    note(*result.notes, *advice, quiet=asked.quiet)
    if not result.verdict.wrong:
        return 0
    complain(result.verdict.wrong)
    return VerificationError.exit_code


def _sweep(scenario: Scenario, asked: StudyOptions) -> int:
    """Time every point of a sweep, and say which is best."""
    plan = plan_steps(scenario)
    found, points = carried_through(len(plan.parts), partial(run_steps, plan), asked)
    notes = [*dict.fromkeys((*scenario.notes, *found.notes))]
    lines = _write(scenario, asked, {"step": found.table}, [*found.advice, *notes])
    if asked.json:
        print_json({"points": records(found.table), "advice": found.advice, "notes": notes})
    elif not asked.quiet:
        _print_points(found.table, scenario.swept)
        for sentence in found.advice:
            say(sentence)
        print_table([points, *lines])
    note(*notes, quiet=asked.quiet)
    for sentence in found.failed[:SHOWN_ERRORS]:
        complain(sentence)
    if len(found.failed) > SHOWN_ERRORS:
        complain(f"and {len(found.failed) - SHOWN_ERRORS} more points; see the column error of step.csv")
    return found.exit_code


def _write(
    scenario: Scenario, asked: StudyOptions, tables: Mapping[str, pd.DataFrame], notes: Sequence[str]
) -> list[tuple[str, str]]:
    is_drawn = bool(scenario.step and scenario.step.noise) or bool(tables["step"]["sum_ok"].notna().any())
    return asked.write(scenario, tables, notes, seed=scenario.seed if is_drawn else None)


def _print_points(table: pd.DataFrame, swept: Sequence[str]) -> None:
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
        *((words, said) for name, words in FIGURE_WORDS.items() if (said := figure_of(name)(row))),
        ("computation", f"{format_seconds(row['compute_s'])} of a worker{uneven}"),
        (
            "communication",
            f"{format_seconds(taken)}: {format_seconds(row['hidden_s'])} hidden under computation, "
            f"{format_seconds(row['exposed_s'])} exposed",
        ),
        *([("idle", f"{format_seconds(row['idle_s'])}, waiting for others")] if row["idle_s"] > 1e-9 * step_s else []),
        *([("numbers", _numbers(row))] if row["payload"] != "none" else []),
        ("bound", f"no algorithm makes this step take less than {format_seconds(row['bound_s'])}"),
        *speed,
        (
            "model",
            f"{row['model']}: {format_count(row['n_parameters'])} parameters, {size} of {row['dtype']}",
        ),
    ]


def _numbers(row: Mapping[str, Any]) -> str:
    """Say whether the numbers of a step are right."""
    if not (row["sum_ok"] and row["parameters_ok"]):
        return "WRONG: see the error"
    which = "" if row["payload"] == "full" else f", {row['payload']} of each chunk"
    n = format_count(row["verified_elements"])
    return f"right: {n} elements of its collectives verified{which}; parameters alike after the update, bit for bit"


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
