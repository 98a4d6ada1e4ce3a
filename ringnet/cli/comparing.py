"""``ringnet compare``: algorithms against each other, in a table, plots and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from ringnet.analysis.winners import WORTH, Crossover, Range, advice, crossovers, ranges
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.studies import StudyWishes, carried_through, ended, records
from ringnet.reporting.atomic import check_target, written_file
from ringnet.reporting.storage import write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.scenario.keys.topology import workers_per_host
from ringnet.study.compare import Comparison, channels_of, compare_parts, plan_comparison
from ringnet.study.record import run_info
from ringnet.study.tuner import tuner_text
from ringnet.units import format_rate, format_seconds, format_size

#: Sizes that a person is shown for each N; the table on disk has all of them.
SHOWN_SIZES = 8


@dataclass(frozen=True)
class CompareWishes(StudyWishes):
    """The options of ``ringnet compare``, by the names that they have there."""

    tuner: Path | None = None


def compare_algorithms(scenario: Scenario, wishes: CompareWishes) -> int:
    """Compare, write and print; nothing is written where something is wrong."""
    folder = wishes.folder(scenario, "compare")
    check_target(folder)
    plan = plan_comparison(scenario, wishes.wanted(), wishes.n_workers())
    found, points = carried_through(plan, compare_parts, wishes)
    tuner, notes = _tuner(scenario, found, wishes)
    files = _write(scenario, found, wishes, folder)
    if tuner is not None and wishes.tuner is not None:
        with written_file(wishes.tuner) as path:
            path.write_text(tuner, encoding="utf-8")
    if wishes.json:
        print_json(document(found))
    elif not wishes.quiet:
        _print(found)
        tuned = [("tuner", str(wishes.tuner))] if wishes.tuner else []
        print_table([points, ("written", files), *tuned])
    return ended(found.failed, (*scenario.notes, *found.notes, *notes), wishes.quiet)


def _tuner(scenario: Scenario, found: Comparison, wishes: CompareWishes) -> tuple[str | None, list[str]]:
    if wishes.tuner is None:
        return None, []
    channels = channels_of(scenario, wishes.wanted())
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


def _write(scenario: Scenario, found: Comparison, wishes: CompareWishes, folder: Path) -> str:
    info = run_info(scenario, folder, None, [*advice(found.table), *found.notes, *found.failed])
    info["scenario"] |= {"compare": wishes.asked(scenario)}
    tables = {"compare": found.table}
    if meetings := crossovers(found.table):
        tables["crossovers"] = pd.DataFrame(meetings, columns=Crossover._fields)
    files = write_study(folder, info, tables, plots=wishes.plots)
    return written(files.folder, files.files)


def _print(found: Comparison) -> None:
    parts, n_sizes = ranges(found.table), found.table["message_bytes"].nunique()
    for n_workers, rows in found.table.groupby("n_workers"):
        sizes = rows["message_bytes"].drop_duplicates()
        shown = sizes.iloc[np.unique(np.linspace(0, len(sizes) - 1, SHOWN_SIZES).round().astype(int))]
        heads = ("N", "size", "fastest", "time", "busbw", "of the bound", "next", "slowest")
        here = [part for part in parts if part.n_workers == n_workers]
        print_table([heads, *(_line(rows[rows["message_bytes"] == size], here) for size in shown)])
        typer.echo()
    if n_sizes > SHOWN_SIZES:
        typer.echo(f"{SHOWN_SIZES} of {n_sizes} sizes are shown, compare.csv has all\n")
    for one in crossovers(found.table):
        low, high = format_size(one.between_low_bytes), format_size(one.between_high_bytes)
        typer.echo(
            f"N={one.n_workers}: {one.faster_above} overtakes {one.slower_above} between {low} and {high}"
        )
    for sentence in advice(found.table):
        typer.echo(sentence)


def _line(rows: pd.DataFrame, parts: Sequence[Range]) -> Sequence[str]:
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
        str(first["algorithm"]),
        format_seconds(first["makespan_s"]),
        format_rate(first["busbw_Bps"]) if timed else "",
        f"{100 * first['bound_share']:.3g} %" if timed else "",
        "" if following is None else f"{following['algorithm']} {format_seconds(following['makespan_s'])}",
        f"{last['algorithm']} {format_seconds(last['makespan_s'])}",
    )
