"""The answer in words, for a terminal or a page: short lines and a short table, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from ringnet.reporting.columns import PARTS
from ringnet.reporting.sweeps import short, telling
from ringnet.units import format_bytes, format_count, format_rate, format_seconds

Row: TypeAlias = Mapping[str, Any]

#: Relative difference up to which what a worker sent is what the algorithm says.
_ROUNDING = 1e-9
#: Files that are named one by one.
_NAMED_FILES = 4


class Table(NamedTuple):
    """Heads and rows of text, to be laid out by whoever shows them."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def answer(row: Row, made_of: str = "") -> list[tuple[str, str]]:
    """Return the answer of one run, as labels and values; what does not apply is left out.

    Parameters
    ----------
    row : mapping
        A row of the summary, as `Result.summary` or as read back.
    made_of : str, optional
        What the time is made of, in words; by default put together from the shares of the row.

    Examples
    --------
    >>> answer({"makespan_s": 2.36e-3, "algbw_Bps": 28.4e9, "sum_ok": None})
    [('time', '2.36 ms'), ('algbw', '28.4 GB/s'), ('sum', 'not verified: no payload was carried')]
    """
    known = {key: value for key, value in row.items() if not _is_missing(value)}
    lines = [(label, say(known)) for label, say in _LINES]
    lines[_MADE_OF] = ("made of", made_of or _made_of(known))
    return [(label, value) for label, value in lines if value]


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or value != value  # noqa: PLR0124 -- not a NaN


def _formatted(key: str, form: Callable[[Any], str]) -> Callable[[Row], str]:
    return lambda row: form(row[key]) if key in row else ""


def _bound(row: Row) -> str:
    if "bound_share" not in row:
        return ""
    bound = format_seconds(row["collective_bound_s"])
    return f"{_percent(row['bound_share'])} (no algorithm takes less than {bound} here)"


def _closed_form(row: Row) -> str:
    return f"{format_seconds(row['closed_form_s'])}" if row.get("closed_form_s") else ""


def _percent(share: float) -> str:
    """Write a share; what is not quite all, or not quite nothing, is not said to be so.

    >>> _percent(0.934), _percent(0.99999), _percent(1.0), _percent(0.00064), _percent(1e-7)
    ('93.4 %', '99.9 %', '100 %', '0.064 %', 'under 0.001 %')
    """
    percent = min(100 * share, 99.9) if share < 1 else 100 * share
    if 0 < percent < 0.001:  # noqa: PLR2004 -- shorter than it would be exact
        return "under 0.001 %"
    return f"{percent:.1f} %".replace(".0 %", " %") if percent >= 1 else f"{percent:.2g} %"


def _made_of(row: Row) -> str:
    """Say what the time is made of, the largest part first."""
    shares = {part: row.get(f"{part}_share", 0.0) for part in PARTS}
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{100 * share:.0f} % {part}" for part, share in ranked if share >= 0.005)  # noqa: PLR2004


def _slowest(row: Row) -> str:
    if "slowest_link" not in row:
        return ""
    busy = row.get("slowest_link_utilisation")
    said = [row["slowest_link"], f"busy {_percent(busy)} of the time" if busy is not None else ""]
    queue = row.get("longest_queue", 0)
    return ", ".join(filter(None, [*said, f"longest queue {queue}" if queue else ""]))


def _traffic(row: Row) -> str:
    sent, expected = row.get("bytes_sent_per_worker"), row.get("expected_bytes_per_worker")
    if sent is None or expected is None:
        return "" if sent is None else format_bytes(sent)
    if abs(sent - expected) <= _ROUNDING * expected:
        return f"{format_bytes(sent)}, as expected"
    return f"{format_count(sent)} B at most; {expected:,.6g} B if all chunks were alike"


def _verified(row: Row) -> str:
    if "sum_ok" not in row:
        return "not verified: no payload was carried"
    count = format_count(int(row.get("verified_elements", 0)))
    if not row["sum_ok"]:
        return f"WRONG: see the error ({count} elements compared)"
    return f"right: {count} elements verified{_rounding(row)}"


def _rounding(row: Row) -> str:
    if not row.get("max_abs_error"):
        return ""
    error = f"{row['max_abs_error']:.3g}"
    if "max_error_share" not in row:
        return f", largest error {error}"
    return f", largest error {error} ({_percent(row['max_error_share'])} of what rounding allows)"


_LINES: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("time", _formatted("makespan_s", format_seconds)),
    ("algbw", _formatted("algbw_Bps", format_rate)),
    ("busbw", _formatted("busbw_Bps", format_rate)),
    ("of the bound", _bound),
    ("closed form", _closed_form),
    ("made of", _made_of),
    ("slowest link", _slowest),
    ("sent per worker", _traffic),
    ("sum", _verified),
    ("error", _formatted("error", str)),
)
_MADE_OF = [label for label, _ in _LINES].index("made of")


def written(folder: Path | str, files: Sequence[str]) -> str:
    """Say which files were written, in one line.

    >>> written("reports/run", ["summary.csv", "run.json"])
    'reports/run: summary.csv, run.json'
    """
    shown = ", ".join(files[:_NAMED_FILES])
    more = f" and {len(files) - _NAMED_FILES} more" if len(files) > _NAMED_FILES else ""
    return f"{folder}: {shown}{more}"


def sweep_table(summary: pd.DataFrame) -> Table:
    """Return a short table of a sweep: what varies, then time, bandwidths, share of the bound, sum.

    Parameters
    ----------
    summary : DataFrame
        As in `Results.summary`.
    """
    keys = telling(summary)
    heads = (
        *(_HEADS.get(key, short(key)) for key in keys),
        "time",
        "algbw",
        "busbw",
        "of bound",
        "mostly",
        "sum",
    )
    rows = summary.to_dict("records")
    return Table(heads, tuple((*(_setting(key, row[key]) for key in keys), *_outcome(row)) for row in rows))


_HEADS = {"n_workers": "N", "message_bytes": "message"}


def _setting(key: str, value: Any) -> str:
    return format_bytes(value) if key == "message_bytes" else "" if _is_missing(value) else str(value)


def _outcome(row: Mapping[Any, Any]) -> tuple[str, ...]:
    known = {key: value for key, value in row.items() if not _is_missing(value)}
    if "error" in known:
        return ("failed", "", "", "", str(known["error"]), "")
    said = dict(answer(known))
    share = _percent(known["bound_share"]) if "bound_share" in known else ""
    mostly = _made_of(known).partition(",")[0]
    verdict = {None: "not verified", True: "right", False: "WRONG"}[known.get("sum_ok")]
    return (said.get("time", ""), said.get("algbw", ""), said.get("busbw", ""), share, mostly, verdict)
