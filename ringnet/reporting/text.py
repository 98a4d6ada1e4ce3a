"""Sweeps and files in words: short tables and lines as plain data, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ringnet.analysis.answer import (
    answer,
    caption_html,
    is_missing,
    list_html,
    made_of_words,
    percent,
    row_html,
)
from ringnet.analysis.frames import Table, rows_of
from ringnet.errors import some_and_more
from ringnet.reporting.sweeps import distinguishing, short
from ringnet.units import format_bytes, format_seconds

if TYPE_CHECKING:
    import pandas as pd

AnyRow: TypeAlias = Mapping[Any, Any]
#: Files that are named one by one.
_NAMED_FILES = 4
_HEADS = {"n_workers": "N", "message_bytes": "message"}
_OUTCOME = ("time", "algbw", "busbw", "of bound", "mostly", "sum")


class TextTable(NamedTuple):
    """Heads and rows of text, for a terminal or a page to lay out."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def written(folder: Path | str, files: Sequence[str]) -> str:
    """Say which files were written, in one line.

    >>> written("reports/run", ["summary.csv", "run.json"])
    'reports/run: summary.csv, run.json'
    """
    return f"{folder}: {some_and_more(files, _NAMED_FILES)}"


def sweep_table(summary: pd.DataFrame, jobs: pd.DataFrame | None = None) -> TextTable:
    """Return a short table of a sweep: what varies, then time, bandwidths, share of the bound, sum.

    Parameters
    ----------
    summary, jobs : DataFrame
        As in `Results`; with jobs, a point has a row for each.
    """
    keys, more = distinguishing(summary), [one for one in _OF_SOME_SWEEPS if one.column in summary]
    named = () if jobs is None else ("job",)
    heads = [*(_HEADS.get(key, short(key)) for key in keys), *named, *_OUTCOME]
    heads += [head for one in more for head in one.heads]
    rows = [
        (
            *(_setting(key, point[key]) for key in keys),
            *job,
            *_outcome(row),
            *(cell for one in more for cell in one.cells(point)),
        )
        for place, point in enumerate(summary.to_dict("records"))
        for job, row in _of_jobs(jobs, place, point)
    ]
    return TextTable(tuple(heads), tuple(rows))


def _of_jobs(jobs: pd.DataFrame | None, place: int, point: AnyRow) -> list[tuple[tuple[str, ...], AnyRow]]:
    """Return the rows of a point, each with the name of its job where there are jobs."""
    if jobs is None:
        return [((), point)]
    rows: list[AnyRow] = [*jobs[jobs["point"] == place].to_dict("records")]
    return [((str(row.get("job", "")),), row) for row in rows or [point]]


def _spread(point: AnyRow) -> tuple[str, ...]:
    """Return of repeated runs the mean, and what nine of ten take."""
    if is_missing(point["n_runs"]):
        return "", ""
    mean, low, high = (format_seconds(point[f"{name}_s"]) for name in ("mean", "p5", "p95"))
    return mean, f"{low} to {high}"


def _trained(point: AnyRow) -> tuple[str, ...]:
    """Return of a training the digits that its gradients share with one process's, and the loss."""
    cells = (("gradient_digits", "{:.1f}"), ("loss", "{:.6g}"))
    return tuple("" if is_missing(point[key]) else form.format(point[key]) for key, form in cells)


class _MoreColumns(NamedTuple):
    """Columns of a table that some sweeps have: what the summary has then, their heads, and the cells of a point."""

    column: str
    heads: tuple[str, ...]
    cells: Callable[[AnyRow], tuple[str, ...]]


_OF_SOME_SWEEPS = (
    _MoreColumns("is_beyond", ("links",), lambda point: ("extrapolated" if point["is_beyond"] is True else "",)),
    _MoreColumns("shape", ("shape",), lambda point: (_setting("shape", point["shape"]),)),
    _MoreColumns("n_runs", ("mean", "p5 to p95"), _spread),
    _MoreColumns("training_steps", ("digits", "loss"), _trained),
)


def job_lines(jobs: Table | None) -> list[tuple[str, str]]:
    """Return a line for each job but the first, the scenario's own: its name, and what came of it."""
    lines = []
    for row in rows_of(jobs)[1:]:
        time, _, busbw, share, mostly, verdict = _outcome(row)
        said = [time, busbw, f"{share} of the bound" if share else "", mostly, f"sum {verdict}"]
        lines.append((f"job {row['job']}", ", ".join(filter(None, said))))
    return lines


def _setting(key: str, value: Any) -> str:
    return format_bytes(value) if key == "message_bytes" else "" if is_missing(value) else str(value)


def _outcome(row: Mapping[Any, Any]) -> tuple[str, ...]:
    known = {key: value for key, value in row.items() if not is_missing(value)}
    if "error" in known:
        return ("failed", "", "", "", str(known["error"]), "")
    said = dict(answer(known))
    share = percent(known["bound_share"]) if "bound_share" in known else ""
    mostly = made_of_words(known).partition(",")[0]
    verdict = {None: "not verified", True: "right", False: "WRONG"}[known.get("sum_ok")]
    time = format_seconds(known["makespan_s"]) if "makespan_s" in known else ""
    return (time, said.get("algbw", ""), said.get("busbw", ""), share, mostly, verdict)


def sweep_html(summary: pd.DataFrame, notes: Iterable[str] = ()) -> str:
    """Return a sweep as a table with one row per point.

    Parameters
    ----------
    summary : DataFrame
        As in `Results.summary`.
    notes : iterable of str
        What a person should know to read the numbers.
    """
    table = sweep_table(summary)
    head, rows = row_html("th", table.heads), "".join(row_html("td", row) for row in table.rows)
    body = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<div>{caption_html(summary['name'].iloc[0])}{body}{list_html(notes)}</div>"
