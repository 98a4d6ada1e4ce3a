"""Sweeps and files in words, for a terminal or a page: a short table and short lines, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ringnet.analysis.words import answer, is_missing, made_of_words, percent
from ringnet.reporting.sweeps import short, telling
from ringnet.units import format_bytes

#: Files that are named one by one.
_NAMED_FILES = 4


class Table(NamedTuple):
    """Heads and rows of text, to be laid out by whoever shows them."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


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
    said = [(*(_setting(key, row[key]) for key in keys), *_outcome(row)) for row in rows]
    if "is_beyond" not in summary:
        return Table(heads, tuple(said))
    beyond = ["extrapolated" if row["is_beyond"] is True else "" for row in rows]
    return Table((*heads, "links"), tuple((*one, mark) for one, mark in zip(said, beyond, strict=True)))


_HEADS = {"n_workers": "N", "message_bytes": "message"}


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
    return (said.get("time", ""), said.get("algbw", ""), said.get("busbw", ""), share, mostly, verdict)
