"""``ringnet compare``: algorithms against each other, in a table, plots and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from ringnet.analysis.winners import WORTH, Crossover, WinningRange, advice, crossovers, ranges
from ringnet.cli import options
from ringnet.cli.printing import note, print_table, say
from ringnet.cli.studies import (
    StudyOptions,
    asked_algorithms,
    carried_through,
    compared,
    records,
    study,
    told,
)
from ringnet.cli.targets import check_targets
from ringnet.errors import Fault, InputError
from ringnet.reporting.atomic import write_text
from ringnet.scenario import Scenario
from ringnet.scenario.keys.topology import hosts_differ, workers_per_host
from ringnet.study.compare import Comparison, channels_of, compare_parts, plan_comparison, time_beforehand
from ringnet.study.nccl import tuner_text
from ringnet.units import format_rate, format_seconds, format_size

EXAMPLE = "ringnet compare scenario.yaml --algorithms ring,direct --workers 8,64"

#: Sizes that a person is shown for each N; the table on disk has all of them.
SHOWN_SIZES = 8


@study
def command(
    asked: StudyOptions,
    algorithms: options.Algorithms = None,
    workers: options.WorkerCounts = None,
    tuner: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the choice for NCCL's example tuner plug-in.")
    ] = None,
) -> int:
    """Compare algorithms over message sizes: which one to use, from which size on, and by how much."""
    check_targets({"--tuner": tuner}, [asked.source])
    scenario = asked.read()
    names, counts = asked_algorithms(algorithms), options.worker_counts_of(workers or ()) or None
    asked.check(scenario, {"--tuner": tuner})
    plan = plan_comparison(scenario, names, counts)
    note(*time_beforehand(plan, asked.processes), quiet=asked.quiet)
    found, points = carried_through(len(plan.parts), partial(compare_parts, plan), asked)
    text, notes = _tuner_text(scenario, found, names) if tuner else ("", [])
    tables = {"compare": found.table}
    if meetings := crossovers(found.table):
        tables["crossovers"] = pd.DataFrame(meetings, columns=Crossover._fields)
    lines = asked.write(
        scenario,
        tables,
        [*advice(found.table), *found.notes, *found.failed],
        compared=compared(scenario, names, counts),
    )
    if tuner:
        write_text(tuner, text)
        lines.append(("tuner", str(tuner)))
    said = (*scenario.notes, *found.notes, *notes)
    return told(
        asked,
        lambda: document(found),
        lambda: _print(found),
        [points, *lines],
        notes=said,
        failed=found.failed,
    )


def _tuner_text(scenario: Scenario, found: Comparison, algorithms: str | list[str] | None) -> tuple[str, list[str]]:
    if hosts_differ(scenario.network):
        message = "hosts differ in size: a line of NCCL's tuner is for so many nodes alike"
        raise InputError(Fault(message, "--tuner", right="hosts alike"))
    channels = channels_of(scenario, algorithms)
    return tuner_text(found.table, scenario.collective, channels, workers_per_host(scenario.network))


def document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data: rows by the columns of their tables."""
    return {
        "points": records(found.table),
        "crossovers": [one._asdict() for one in crossovers(found.table)],
        "advice": advice(found.table),
        "notes": list(found.notes),
        "failed": list(found.failed),
    }


def _print(found: Comparison) -> None:
    parts, n_sizes = ranges(found.table), found.table["message_bytes"].nunique()
    for n_workers, rows in found.table.groupby("n_workers"):
        sizes = rows["message_bytes"].drop_duplicates()
        shown = sizes.iloc[np.unique(np.linspace(0, len(sizes) - 1, SHOWN_SIZES).round().astype(int))]
        heads = ("N", "size", "fastest", "time", "busbw", "of the bound", "next", "slowest")
        here = [part for part in parts if part.n_workers == n_workers]
        guessed = [(n_workers, size) in found.guesses for size in shown]
        sizes_of_rows = (rows[rows["message_bytes"] == size] for size in shown)
        lines = zip(sizes_of_rows, guessed, strict=True)
        print_table([heads, *(_line(one, here, is_guess) for one, is_guess in lines)])
        say()
    if n_sizes > SHOWN_SIZES:
        say(f"{SHOWN_SIZES} of {n_sizes} sizes are shown, compare.csv has all")
        say()
    for one in crossovers(found.table):
        low, high = format_size(one.between_low_bytes), format_size(one.between_high_bytes)
        say(f"N={one.n_workers}: {one.faster_above} overtakes {one.slower_above} between {low} and {high}")
    for sentence in advice(found.table):
        say(sentence)


def _line(rows: pd.DataFrame, parts: Sequence[WinningRange], is_guess: bool) -> Sequence[str]:
    """Return a line of the table: the algorithm to use, and the next that is slower by more than nobody minds."""
    size, last = int(rows["message_bytes"].iloc[0]), rows.iloc[-1]
    names = [part.algorithm for part in parts if part.first_bytes <= size <= part.last_bytes]
    first = next((row for _, row in rows.iterrows() if row["algorithm"] in names), rows.iloc[0])
    slower = rows[rows["makespan_s"] > first["makespan_s"] * (1 + WORTH)]
    following = slower.iloc[0] if len(slower) else None
    timed = pd.notna(first["busbw_Bps"])
    return (
        str(first["n_workers"]),
        format_size(size),
        f"{first['algorithm']}{', a guess' if is_guess else ''}",
        format_seconds(first["makespan_s"]),
        format_rate(first["busbw_Bps"]) if timed else "",
        f"{100 * first['bound_share']:.3g} %" if timed and not is_guess else "",  # of such links no bound is known
        "" if following is None else _next(following, first),
        f"{last['algorithm']} {format_seconds(last['makespan_s'])}",
    )


def _next(following: pd.Series[Any], first: pd.Series[Any]) -> str:
    """Name the next algorithm and its time; of repeated runs, by how much more that is, and how well it is known."""
    said = f"{following['algorithm']} {format_seconds(following['makespan_s'])}"
    if "behind_low_s" not in following or pd.isna(following["behind_low_s"]) or first["behind_s"] > 0:
        return said
    low, high = (format_seconds(max(following[f"behind_{end}_s"], 0.0)) for end in ("low", "high"))
    return f"{said}, {low} to {high} more" if following["behind_low_s"] > 0 else f"{said}, or no more"
