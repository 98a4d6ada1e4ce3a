"""Answers on standard output: lines and tables for a person, one JSON object for a program."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import typer

#: Rows of a sweep that a person is shown; the table on disk has all of them.
SHOWN_ROWS = 40


def print_json(document: Any) -> None:
    """Print one JSON object; a number that JSON does not have becomes null."""
    typer.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return what JSON can hold.

    >>> _plain({"a": (np.float64("nan"), 1.5)})
    {'a': [None, 1.5]}
    """
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Print rows of text, each column as wide as its widest cell, the last as it is."""
    for line in aligned(rows):
        typer.echo(f"{indent}{line}")


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay rows of text out in columns.

    >>> list(aligned([("N", "time"), ("1024", "2.36 ms")]))
    ['N     time', '1024  2.36 ms']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
