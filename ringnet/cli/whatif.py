"""What if: ``ringnet whatif`` ranks changes of a scenario, ``ringnet run --if`` puts one beside today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer

from ringnet.analysis.answer import is_missing, percent, slowest_name
from ringnet.cli import options
from ringnet.cli.printing import print_table
from ringnet.cli.studies import StudyOptions, carried_through, records, study, told
from ringnet.engines import PATH_PARTS
from ringnet.errors import Fault, InputError
from ringnet.study.repeat import simulate_all
from ringnet.study.whatif import (
    ROUNDING,
    STAYS,
    TODAY,
    Changed,
    WhatIf,
    WhatIfPlan,
    cause,
    changed_scenarios,
    path_seconds,
    read_changes,
    whatif_parts,
    without_payload,
)
from ringnet.units import format_rate, format_seconds

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
    found, points = carried_through(len(plan.parts), partial(whatif_parts, plan), asked)
    said = [*found.notes, *found.failed]
    lines = asked.write(today, {"whatif": found.table}, said, changes=found.table["change"].tolist())
    document = {"changes": records(found.table), "notes": list(found.notes), "failed": list(found.failed)}
    notes = (*today.notes, *found.notes)
    return told(asked, lambda: document, lambda: _print(found), [points, *lines], notes=notes, failed=found.failed)


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


# --------------------------------------------------------------------------------------------- of ``ringnet run --if``


class SideBySide(NamedTuple):
    """The row of the summary today, and the one with a change."""

    change: Changed
    today: Mapping[str, Any]
    then: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        gain_s = self.today["makespan_s"] - self.then["makespan_s"]
        said = {"change": self.change.change, "gain_s": gain_s, "cause": cause(self.today, self.then)}
        return said | {"summary": dict(self.then)}

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table: what, today, then, the difference."""
        before, after = path_seconds(self.today), path_seconds(self.then)
        parts = [
            _row(part, before.get(part, 0.0), after.get(part, 0.0), format_seconds, self.today["makespan_s"])
            for part in PATH_PARTS
            if before.get(part) or after.get(part)
        ]
        names = ["none" if is_missing(row["slowest_link"]) else slowest_name(row) for row in (self.today, self.then)]
        return [
            ("", "today", "if", "difference"),
            self._line("time", "makespan_s", format_seconds),
            *([self._line("mean", "mean_s", format_seconds)] if "mean_s" in self.today else []),
            *parts,
            self._line("algbw", "algbw_Bps", format_rate),
            self._line("busbw", "busbw_Bps", format_rate),
            ("of the bound", *(_or_none(row["bound_share"], percent) for row in (self.today, self.then)), ""),
            ("slowest link", *names, ""),
            ("because", "", "", cause(self.today, self.then)),
        ]

    def _line(self, label: str, key: str, form: Callable[[Any], str]) -> tuple[str, ...]:
        return _row(label, self.today[key], self.then.get(key, self.then["makespan_s"]), form)

    def notes(self) -> list[str]:
        """Return what a person should know of the change, and that the time stays."""
        stays = cause(self.today, self.then) == STAYS and not self.change.says_nothing_new
        return [*self.change.notes, *([f"{self.change.change} changes nothing in the time"] if stays else [])]


def side_by_side(today: Mapping[str, Any], change: Changed) -> SideBySide:
    """Simulate a changed scenario, without its payload, and put it beside the row of the summary today."""
    return SideBySide(change, today, simulate_all(change.scenario, bare=without_payload).summary)


def _or_none(value: Any, form: Callable[[Any], str]) -> str:
    return "none" if is_missing(value) else form(value)


def _row(label: str, before: Any, after: Any, form: Callable[[Any], str], of: float | None = None) -> tuple[str, ...]:
    """Return a line of the table; what differs by rounding only, ``of`` what it is a part of, is the same."""
    cells = (label, _or_none(before, form), _or_none(after, form))
    if is_missing(before) or is_missing(after):
        return (*cells, "")
    if abs(after - before) <= ROUNDING * (of or before):
        return (*cells, "the same")
    factor = f" (x {after / before:.4g})" if before else ""
    return (*cells, f"{form(abs(after - before))} {'more' if after > before else 'less'}{factor}")
