"""``ringnet whatif``: which of several changes of a scenario buys most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ringnet.analysis.answer import percent
from ringnet.cli import options
from ringnet.cli.printing import print_table
from ringnet.cli.studies import StudyOptions, carried_through, records, study, told
from ringnet.errors import Fault, InputError
from ringnet.study.whatif import TODAY, WhatIf, WhatIfPlan, changed_scenarios, read_changes, whatif_parts
from ringnet.units import format_seconds

EXAMPLE = "ringnet whatif scenario.yaml --if 'network.bandwidth=100 GB/s' --if 'network.latency=1 us'"


@study
def command(
    asked: StudyOptions,
    changes: options.WhatIfs = None,
    file: Annotated[
        Path | None,
        typer.Option("--changes", metavar="FILE", help="A YAML file with changes: whatif: [A, [B, C]]."),
    ] = None,
) -> int:
    """Say which change buys most: a scenario with each of several changes, ranked."""
    wanted = [*(changes or ()), *(read_changes(str(file)) if file else ())]
    if not wanted:
        right = "--if 'network.bandwidth=100 GB/s'"
        raise InputError(Fault("there is no change to try", "--if", right=right))
    plan = WhatIfPlan(changed_scenarios(asked.read, wanted))
    today = plan.scenarios[0].scenario
    asked.check(today, read=[file] if file else [])
    found, points = carried_through(plan, whatif_parts, asked)
    said = [*found.notes, *found.failed]
    lines = asked.write(today, {"whatif": found.table}, said, changes=found.table["change"].tolist())
    document = {"changes": records(found.table), "notes": list(found.notes), "failed": list(found.failed)}
    notes = (*today.notes, *found.notes)
    return told(
        asked, lambda: document, lambda: _print(found), [points, *lines], notes=notes, failed=found.failed
    )


def _print(found: WhatIf) -> None:
    heads = ("", "change", "time", "gain", "cause")
    print_table([heads, *(_line(row) for row in found.table.to_dict("records"))])


def _line(row: dict[Any, Any]) -> tuple[str, ...]:
    if not pd.isna(row["error"]):
        return "", row["change"], "no answer", "", ""
    time = format_seconds(row["makespan_s"])
    if row["change"] == TODAY:
        return "", TODAY, time, "", ""
    gain_s, share = row["gain_s"], row["gain_share"]
    gain = "nothing"
    if gain_s:
        of_today = "" if pd.isna(share) else f" ({percent(abs(share))})"
        gain = f"{format_seconds(abs(gain_s))} {'less' if gain_s > 0 else 'more'}{of_today}{_how_sure(row)}"
    return str(row["rank"]), row["change"], time, gain, row["cause"]


def _how_sure(row: dict[Any, Any]) -> str:
    """Say how well a gain of repeated runs is known; nothing where a single run has it."""
    low, high = (row.get(f"gain_{end}_s") for end in ("low", "high"))
    if pd.isna(low) or pd.isna(high):
        return ""
    if low <= 0 <= high:
        return f", which may be none ({format_seconds(max(-low, high))} either way, 95 % sure)"
    ends = sorted((abs(low), abs(high)))
    if format_seconds(ends[0]) == format_seconds(ends[1]):
        return ", known to that digit"
    return f", {format_seconds(ends[0])} to {format_seconds(ends[1])} (95 % sure)"
