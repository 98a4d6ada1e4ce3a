"""``ringnet numerics``: what rounding does to the result, by algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ringnet.cli.answers import note
from ringnet.cli.comparing import counts, names
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.progress import waiting
from ringnet.cli.wishes import file_name
from ringnet.reporting.folder import check_target
from ringnet.reporting.studies import write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.study.numerics import DTYPES_SHOWN, Numerics, numerics
from ringnet.study.record import run_info


@dataclass(frozen=True)
class NumericsWishes:
    """The options of ``ringnet numerics``, by the names that they have there."""

    algorithms: str | None = None
    workers: str | None = None
    dtypes: str | None = None
    accumulate: str | None = None
    out: Path | None = None
    json: bool = False
    quiet: bool = False
    plots: bool = True


def study_rounding(scenario: Scenario, wishes: NumericsWishes) -> int:
    """Work it out, write and print it."""
    folder = wishes.out or Path("reports") / f"{file_name(scenario.name)}-numerics"
    check_target(folder)
    wanted = wishes.algorithms
    with waiting("adding in every order", wishes.quiet or wishes.json):
        found = numerics(
            scenario,
            wanted if wanted in {None, "all"} else names(str(wanted), "--algorithms"),
            None if wishes.workers is None else counts(wishes.workers, "--workers"),
            DTYPES_SHOWN if wishes.dtypes is None else [one.strip() for one in wishes.dtypes.split(",")],
            wishes.accumulate,
        )
        files = _write(scenario, found, wishes, folder)
    if wishes.json:
        table = found.table.astype(object).where(found.table.notna(), None)
        print_json({"points": table.to_dict("records"), "notes": list(found.notes)})
    elif not wishes.quiet:
        _print(found)
        print_table([("written", files)])
    for sentence in () if wishes.quiet else (*scenario.notes, *found.notes):
        note(sentence)
    return 0


def _write(scenario: Scenario, found: Numerics, wishes: NumericsWishes, folder: Path) -> str:
    seed = None if scenario.files else scenario.seed
    info = run_info(scenario, folder, seed, found.notes)
    files = write_study(
        folder, info, {"numerics": found.table}, _figures(scenario, found) if wishes.plots else {}
    )
    return written(files.folder, files.files)


def _figures(scenario: Scenario, found: Numerics) -> dict[str, Any]:
    from ringnet.reporting.plots.numerics import error_by_algorithm  # noqa: PLC0415 -- brings matplotlib

    if not (found.table["rms_error"] > 0).any():
        return {}
    return {"error-by-algorithm": partial(error_by_algorithm, scenario.name, found.table)}


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
