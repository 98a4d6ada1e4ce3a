"""``ringnet compare``: algorithms against each other, in a table, plots and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from ringnet.analysis.winners import advice, crossovers
from ringnet.cli.answers import note
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.progress import waiting
from ringnet.cli.wishes import file_name
from ringnet.collectives import ALGORITHMS
from ringnet.errors import Fault, InputError
from ringnet.reporting.folder import check_target, written_file
from ringnet.reporting.studies import write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.study.compare import Comparison, channels_of, compare
from ringnet.study.record import run_info
from ringnet.study.tuner import tuner_text
from ringnet.units import format_bytes, format_rate, format_seconds

#: Sizes that a person is shown for each N; the table on disk has all of them.
SHOWN_SIZES = 8


@dataclass(frozen=True)
class CompareWishes:
    """The options of ``ringnet compare``, by the names that they have there."""

    algorithms: str | None = None
    workers: str | None = None
    out: Path | None = None
    tuner: Path | None = None
    jobs: int | None = None
    json: bool = False
    quiet: bool = False
    plots: bool = True

    def wanted(self) -> str | list[str] | None:
        """Return the algorithms that are asked for; None for those of the scenario.

        Raises
        ------
        InputError
            Names that are no algorithms.
        """
        if self.algorithms is None or self.algorithms == "all":
            return self.algorithms
        return names(self.algorithms, "--algorithms")

    def n_workers(self) -> list[int] | None:
        """Return the numbers of workers that are asked for; None for those of the scenario."""
        return None if self.workers is None else counts(self.workers, "--workers")


def names(text: str, option: str) -> list[str]:
    """Read names of algorithms, with commas between them; `InputError` for each that is none."""
    found = [name.strip() for name in text.split(",")]
    unknown = [name for name in found if name not in ALGORITHMS]
    if unknown:
        right = f"all, or some of {', '.join(ALGORITHMS)}"
        raise InputError(
            *(Fault("there is no such algorithm", option, value=one, right=right) for one in unknown)
        )
    return list(dict.fromkeys(found))


def counts(text: str, option: str) -> list[int]:
    """Read numbers of workers, with commas between them; `InputError` for what is none."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not part.isdecimal() or not int(part)]
    if wrong:
        raise InputError(
            *(Fault("this is no number of workers", option, value=one, right="4,8,16") for one in wrong)
        )
    return sorted({int(part) for part in parts})


def compare_algorithms(scenario: Scenario, wishes: CompareWishes) -> int:
    """Compare, write and print; nothing is written where something is wrong."""
    folder = wishes.out or Path("reports") / f"{file_name(scenario.name)}-compare"
    check_target(folder)
    with (
        waiting(f"comparing algorithms on {scenario.name}", wishes.quiet)
        if not wishes.json
        else nullcontext()
    ):
        found = compare(scenario, wishes.wanted(), wishes.n_workers(), jobs=wishes.jobs)
        tuner, notes = _tuner(scenario, found, wishes)
        files = _write(scenario, found, wishes, folder)
    if tuner is not None and wishes.tuner is not None:
        with written_file(wishes.tuner) as path:
            path.write_text(tuner, encoding="utf-8")
    if wishes.json:
        print_json(document(found))
    elif not wishes.quiet:
        _print(found)
        print_table([("written", files), *([("tuner", str(wishes.tuner))] if wishes.tuner else [])])
    for sentence in () if wishes.quiet else (*scenario.notes, *found.notes, *notes):
        note(sentence)
    return 0


def _tuner(scenario: Scenario, found: Comparison, wishes: CompareWishes) -> tuple[str | None, list[str]]:
    if wishes.tuner is None:
        return None, []
    return tuner_text(found.table, scenario.collective, channels_of(scenario, wishes.wanted()))


def document(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain data: rows by the columns of their tables."""
    table = found.table.astype(object).where(found.table.notna(), None)
    return {
        "points": table.to_dict("records"),
        "crossovers": [one._asdict() for one in crossovers(found.table)],
        "advice": advice(found.table),
        "notes": list(found.notes),
    }


def _write(scenario: Scenario, found: Comparison, wishes: CompareWishes, folder: Path) -> str:
    info = run_info(scenario, folder, None, [*advice(found.table), *found.notes])
    tables = {"compare": found.table, "crossovers": pd.DataFrame(crossovers(found.table))}
    if tables["crossovers"].empty:
        del tables["crossovers"]
    files = write_study(folder, info, tables, _figures(scenario, found) if wishes.plots else {})
    return written(files.folder, files.files)


def _figures(scenario: Scenario, found: Comparison) -> dict[str, Any]:
    from ringnet.reporting.plots.compare import COMPARE_PLOTS, Compared  # noqa: PLC0415 -- brings matplotlib

    if not (found.table["makespan_s"] > 0).any() or len(found.table["message_bytes"].unique()) == 1:
        return {}
    compared = Compared(scenario.name, found.table)
    return {name: partial(draw, compared) for name, draw in COMPARE_PLOTS.items()}


def _print(found: Comparison) -> None:
    for n_workers, rows in found.table.groupby("n_workers"):
        sizes = rows["message_bytes"].drop_duplicates()
        shown = sizes.iloc[:: max(1, -(-len(sizes) // SHOWN_SIZES))]
        heads = ("N", "size", "fastest", "time", "busbw", "of the bound", "next", "slowest")
        print_table([heads, *(_line(n_workers, rows[rows["message_bytes"] == size]) for size in shown)])
        typer.echo()
    for one in crossovers(found.table):
        low, high = format_bytes(one.between_low_bytes), format_bytes(one.between_high_bytes)
        typer.echo(
            f"N={one.n_workers}: {one.faster_above} overtakes {one.slower_above} between {low} and {high}"
        )
    for sentence in advice(found.table):
        typer.echo(sentence)


def _line(n_workers: object, rows: pd.DataFrame) -> Sequence[str]:
    first, last = rows.iloc[0], rows.iloc[-1]
    following = rows.iloc[min(1, len(rows) - 1)]
    timed = pd.notna(first["busbw_Bps"])
    return (
        str(n_workers),
        format_bytes(int(first["message_bytes"])),
        str(first["algorithm"]),
        format_seconds(first["makespan_s"]),
        format_rate(first["busbw_Bps"]) if timed else "",
        f"{100 * first['bound_share']:.3g} %" if timed else "",
        f"{following['algorithm']} {format_seconds(following['makespan_s'])}",
        f"{last['algorithm']} {format_seconds(last['makespan_s'])}",
    )
