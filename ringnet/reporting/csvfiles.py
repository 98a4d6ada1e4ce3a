"""Tables as CSV: the same bytes on every run, empty cells for what is missing, numbers that round-trip."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import TABLES, Kind, kind_of
from ringnet.reporting.kinds import AnySeries, typed


def write_table(frame: pd.DataFrame, path: Path) -> None:
    r"""Write a frame as CSV: shortest numbers that round-trip, ``true``/``false``, ``\n``, UTF-8.

    Parameters
    ----------
    frame : DataFrame
        Its index is not written.
    path : Path
        The file; replaced if it is there.
    """
    columns = [_cells(frame[name]) for name in frame.columns]
    lines = [",".join(map(format_cell, frame.columns)), *map(",".join, zip(*columns, strict=True))]
    # newline="" keeps "\n" as it is, on every system.
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write("\n".join(lines) + "\n")


def _cells(column: AnySeries) -> list[str]:
    """Write the cells of a column; the two usual kinds without a look at each value."""
    if column.dtype == np.float64:
        return [repr(value) if value == value else "" for value in column.tolist()]  # noqa: PLR0124 -- not a NaN
    if column.dtype == np.int64:
        return list(map(str, column.tolist()))
    return list(map(lru_cache(typed=True)(format_cell), column.tolist()))


def format_cell(value: Any) -> str:
    """Write one value as a cell, quoted where it must be.

    >>> [format_cell(value) for value in (None, float("nan"), True, 0.1, 3, "a", "a,b")]
    ['', '', 'true', '0.1', '3', 'a', '"a,b"']
    """
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 -- not a NaN
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if set(text) & set(',"\r\n') else text


def read_table(path: Path, table: str) -> pd.DataFrame:
    """Read a table that `write_table` wrote, with the types of `typed_frame`.

    Parameters
    ----------
    path : Path
    table : str
        Which of `TABLES` it is; columns beyond the known ones are kept.

    Raises
    ------
    ResultsError
        A file that is not there or is no table, a missing column, a cell not of its kind (with its line).
    """
    frame = _read_text(path)
    missing = [name for name in TABLES[table] if name not in frame.columns]
    if missing:
        raise ResultsError(*(Fault("a column is missing", name, str(path)) for name in missing))
    return pd.DataFrame({name: _column(frame[name], kind_of(table, name), path) for name in frame.columns})


def _read_text(path: Path) -> pd.DataFrame:
    """Read every cell as text, so that a scenario called ``NA`` keeps its name."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            heads, *rows = list(csv.reader(file, strict=True)) or [[]]
    except FileNotFoundError:
        raise ResultsError(Fault("a table that run.json lists is not there", file=str(path))) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(Fault(f"this table cannot be read: {error}", file=str(path))) from None
    for number, row in enumerate(rows):
        if len(row) != len(heads):
            message = f"a row has {len(row)} cells, and the first line {len(heads)}"
            raise ResultsError(Fault(message, file=str(path), line=number + 2))
    columns = zip(*rows, strict=True) if rows else [()] * len(heads)
    return pd.DataFrame(dict(zip(heads, map(list, columns), strict=True)), dtype=object)


def _column(cells: AnySeries, kind: Kind, path: Path) -> AnySeries:
    try:
        return typed(cells, kind)
    except ValueError:
        raise ResultsError(_bad_cell(cells, kind, path)) from None


def _bad_cell(cells: AnySeries, kind: Kind, path: Path) -> Fault:
    """Find the first cell that is not of its kind; line 1 of the file holds the names."""
    row = next(row for row in range(len(cells)) if not _is_of(cells[row : row + 1], kind))
    right = "true or false" if kind == "truth" else "a number, or an empty cell"
    return Fault("a cell cannot be read", str(cells.name), str(path), row + 2, repr(cells[row]), right)


def _is_of(cells: AnySeries, kind: Kind) -> bool:
    try:
        typed(cells, kind)
    except ValueError:
        return False
    return True
