"""``ringnet diff``: two folders of results, and what differs between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, print_table, say
from ringnet.reporting.results import Difference, diff_results
from ringnet.reporting.storage import read_results
from ringnet.units import format_bytes, format_rate, format_seconds

EXAMPLE = "ringnet diff reports/before reports/after"

#: Rows of a comparison that a person is shown; ``--json`` has all of them.
SHOWN_ROWS = 60

#: How a cell is written, by the end of its column's name.
_FORMS: dict[str, Callable[[Any], str]] = {
    "_s": format_seconds,
    "_s_max": format_seconds,
    "_Bps": format_rate,
    "_bytes": format_bytes,
    "_share": lambda share: f"{100 * share:.4g} %",
    "_utilisation": lambda share: f"{100 * share:.4g} %",
}


def command(
    first: Annotated[Path, typer.Argument(metavar="RESULTS_A", help="A folder of results that run wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RESULTS_B", help="Another one.")],
    as_json: options.Json = False,
) -> int:
    """Show what was changed, and what that changed in the answer."""
    found = diff_results(read_results(first), read_results(second))
    if as_json:
        print_json({name: frame.to_dict("records") for name, frame in found._asdict().items()})
    else:
        _print(found)
    return 0


def _print(found: Difference) -> None:
    changed = [(row["path"], _cell("", row["a"]), "->", _cell("", row["b"])) for row in _rows(found.scenario)]
    _print_part("changed in the scenario", changed)
    _print_part("changed in the answer", [_answer_row(row) for row in _rows(found.answer)])
    for name, points in (("first", found.only_a), ("second", found.only_b)):
        if len(points):
            _print_part(f"points of the {name} only", [_settings(row) for row in _rows(points)])


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _print_part(title: str, rows: Sequence[Sequence[str]]) -> None:
    say(title if rows else f"{title}: nothing")
    if rows:
        print_table(rows[:SHOWN_ROWS], indent="  ")
    if len(rows) > SHOWN_ROWS:
        say(f"  ... and {len(rows) - SHOWN_ROWS} more; --json shows them all")


def _answer_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a line: which point, what, from, to, and by which factor."""
    column, a, b, ratio = (row[key] for key in ("column", "a", "b", "ratio"))
    point = _settings({key: value for key, value in row.items() if key not in ("column", "a", "b", "ratio")})
    factor = "" if ratio is None else f"x {ratio:.4g}"
    return *point, column, _cell(column, a), "->", _cell(column, b), factor


def _settings(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in row.items())


def _cell(column: str, value: Any) -> str:
    """Write a cell for a person.

    >>> _cell("makespan_s", 2.36e-3), _cell("bound_share", 0.5), _cell("error", None)
    ('2.36 ms', '50 %', 'none')
    """
    if value is None:
        return "none"
    form = next((form for end, form in _FORMS.items() if column.endswith(end)), None)
    if form is None or isinstance(value, str):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return form(value)
