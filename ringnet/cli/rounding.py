"""``ringnet numerics``: what rounding does to the result, by algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ringnet.cli.printing import print_json, print_table
from ringnet.cli.studies import StudyWishes, carried_through, ended, records
from ringnet.reporting.atomic import check_target
from ringnet.reporting.storage import write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.study.numerics import DTYPES_SHOWN, Numerics, numerics_parts, plan_numerics
from ringnet.study.record import run_info


@dataclass(frozen=True)
class NumericsWishes(StudyWishes):
    """The options of ``ringnet numerics``, by the names that they have there."""

    dtypes: str | None = None
    accumulate: str | None = None


def study_rounding(scenario: Scenario, wishes: NumericsWishes) -> int:
    """Work it out, write and print it; nothing is written where something is wrong."""
    folder = wishes.folder(scenario, "numerics")
    check_target(folder)
    dtypes = DTYPES_SHOWN if wishes.dtypes is None else [one.strip() for one in wishes.dtypes.split(",")]
    plan = plan_numerics(scenario, wishes.wanted(), wishes.n_workers(), dtypes, wishes.accumulate)
    found, points = carried_through(plan, numerics_parts, wishes)
    files = _write(scenario, found, wishes, folder)
    if wishes.json:
        print_json({"points": records(found.table), "notes": list(found.notes), "failed": list(found.failed)})
    elif not wishes.quiet:
        _print(found)
        print_table([points, ("written", files)])
    return ended(found.failed, (*scenario.notes, *found.notes), wishes.quiet)


def _write(scenario: Scenario, found: Numerics, wishes: NumericsWishes, folder: Path) -> str:
    seed = None if scenario.files else scenario.seed
    info = run_info(scenario, folder, seed, [*found.notes, *found.failed])
    info["scenario"] |= {"compare": wishes.asked(scenario)}
    info["options"] = {"dtypes": [*found.table["dtype"].unique()], "accumulate": wishes.accumulate}
    files = write_study(folder, info, {"numerics": found.table}, plots=wishes.plots)
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
