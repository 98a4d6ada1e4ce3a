"""Tables as CSV: columns of one type, the same bytes on every run, empty cells, numbers that round-trip."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ringnet.analysis.answer import is_missing
from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import TABLES, Kind, kind_of

AnySeries: TypeAlias = "pd.Series[Any]"
AnyArray: TypeAlias = "NDArray[Any] | pd.api.extensions.ExtensionArray | AnySeries"

#: Tables in which each of something has one row; what it is.
ONE_ROW_EACH = {"links": "link", "workers": "worker"}
#: Characters that a cell cannot hold as they are; rows whose cells are in memory together while a table is written.
MUST_BE_QUOTED = frozenset(',"\r\n')
ROWS_AT_ONCE = 1 << 16
_TRUTHS = {"true": True, "false": False, True: True, False: False}


def typed_frame(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return a table with its columns in their order, each of the type that its kind asks for.

    Numbers are float64, integers int64 (or nullable, where one is missing), truths nullable booleans, text is
    ``str`` or ``None``. ``ValueError`` for a cell that is not of its kind.

    >>> frame = pd.DataFrame({"n_workers": ["2", "3"], "makespan_s": ["0.5", ""], "sum_ok": ["true", ""]})
    >>> typed_frame(frame, "summary").dtypes.astype(str).tolist()
    ['int64', 'float64', 'boolean']
    """
    names = [name for name in TABLES[table] if name in frame.columns]
    names += [name for name in frame.columns if name not in TABLES[table]]
    return pd.DataFrame({name: typed(frame[name], kind_of(table, str(name))) for name in names})


def typed(cells: AnySeries, kind: Kind) -> AnyArray:
    """Return one column with the type that its kind asks for; ``ValueError`` for a cell that is not of it."""
    return _CASTS[kind](cells)


def _objects(cells: AnySeries) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Return the cells, and which of them are empty."""
    values = cells.to_numpy(dtype=object)
    missing = pd.isna(values)
    missing[~missing] = values[~missing] == ""
    return values, missing


def _numbers(cells: AnySeries) -> AnyArray:
    if cells.dtype == np.float64:
        return cells.to_numpy()
    values, missing = _objects(cells)
    return np.where(missing, np.nan, values).astype(np.float64)


def _integers(cells: AnySeries) -> AnyArray:
    """Whole numbers, exact however large; what is not whole comes as float."""
    if cells.dtype == np.int64:
        return cells.to_numpy()
    values, missing = _objects(cells)
    try:
        whole = [pd.NA if gone else _whole(cell) for cell, gone in zip(values, missing, strict=True)]
        return pd.array(whole, dtype="Int64") if missing.any() else np.array(whole, dtype=np.int64)
    except (ValueError, OverflowError):
        return _numbers(cells)


def _whole(cell: Any) -> int:
    if not isinstance(cell, str) and cell != int(cell):
        raise ValueError(cell)
    return int(cell)


def _values(cells: AnySeries) -> AnyArray:
    """Elements of a buffer: whole numbers where their type is, else floats, as short as in their type."""
    texts = [str(cell) for cell in cells.to_numpy()]
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return np.array([float(text) for text in texts], dtype=np.float64)


def _truths(cells: AnySeries) -> AnyArray:
    values, missing = _objects(cells)
    if not cells[~missing].isin(list(_TRUTHS)).all():
        raise ValueError(cells.name)
    known = [pd.NA if gone else _TRUTHS[cell] for cell, gone in zip(values, missing, strict=True)]
    return pd.array(known, dtype="boolean")


def _text(cells: AnySeries) -> AnySeries:
    if pd.api.types.infer_dtype(cells, skipna=False) == "string" and not (cells == "").any():
        return cells.astype(object)
    known = [None if gone else str(cell) for cell, gone in zip(*_objects(cells), strict=True)]
    return pd.Series(
        known, dtype=object
    )  # an array of objects would become a column of `str`, and None a NaN


_CASTS: dict[Kind, Callable[[AnySeries], AnyArray]] = {
    "text": _text,
    "integer": _integers,
    "number": _numbers,
    "truth": _truths,
    "value": _values,
}


def write_table(frame: pd.DataFrame, path: Path) -> None:
    r"""Write a frame as CSV: shortest numbers that round-trip, ``true``/``false``, ``\n``, UTF-8.

    Parameters
    ----------
    frame : DataFrame
        Its index is not written.
    path : Path
        The file; replaced if it is there.
    """
    # newline="" keeps "\n" as it is, on every system.
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(map(format_cell, frame.columns)) + "\n")
        for first in range(0, len(frame), ROWS_AT_ONCE):
            rows = frame[first : first + ROWS_AT_ONCE]
            lines = map(",".join, zip(*(_cells(rows[name]) for name in frame.columns), strict=True))
            file.write("\n".join(lines) + "\n")


def _cells(column: AnySeries) -> list[str]:
    """Write the cells of a column; the usual kinds without a look at each value, and values that repeat once."""
    if column.dtype in (np.float64, np.int64):
        # By their bits, by which 0 and -0 differ.
        places, bits = pd.factorize(column.to_numpy().view(np.int64))
        texts = [repr(one) if one == one else "" for one in bits.view(column.dtype).tolist()]  # noqa: PLR0124 -- NaN
        return texts if len(texts) == len(places) else np.array(texts, dtype=object)[places].tolist()
    cells = column.tolist()
    try:
        plain = not set("".join(cells)) & MUST_BE_QUOTED
    except TypeError:  # not all of them are text
        plain = False
    return cells if plain else list(map(lru_cache(typed=True)(format_cell), cells))


def format_cell(value: Any) -> str:
    """Write one value as a cell, quoted where it must be.

    >>> [format_cell(value) for value in (None, float("nan"), True, 0.1, 3, "a", "a,b")]
    ['', '', 'true', '0.1', '3', 'a', '"a,b"']
    """
    if is_missing(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if set(text) & MUST_BE_QUOTED else text


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
    found = pd.DataFrame({name: _column(frame[name], kind_of(table, name), path) for name in frame.columns})
    twice = [] if table not in ONE_ROW_EACH else [*found.index[found.duplicated(ONE_ROW_EACH[table])]]
    if twice:
        name, at = ONE_ROW_EACH[table], twice[0]
        raise ResultsError(Fault("a row stands twice", name, str(path), at + 2, str(found[name][at])))
    return found


def _read_text(path: Path) -> pd.DataFrame:
    """Read every cell as text, so that a scenario called ``NA`` keeps its name."""
    if path.exists() and not path.is_file():
        raise ResultsError(Fault("this is no regular file", file=str(path)))
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


def _column(cells: AnySeries, kind: Kind, path: Path) -> AnyArray:
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
