"""Tables as CSV: columns of one type, the same bytes on every run, empty cells, numbers that round-trip.

A column is an array of int64 or float64, or a list of plain values with None for an empty cell. Data frames are made of
them where somebody asks for one: a run is written without pandas.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ringnet.analysis.answer import is_missing
from ringnet.analysis.frames import Table
from ringnet.array_types import Array
from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import NEVER_EMPTY, TABLES, Kind, kind_of

if TYPE_CHECKING:
    import pandas as pd

#: One column of a table.
Cells: TypeAlias = "Array | list[Any]"

#: Tables in which each of something has one row; what it is.
ONE_ROW_EACH = {"links": "link", "workers": "worker"}
#: Tables in which everything that a column names has as many rows.
AS_MANY_ROWS = {"utilisation": "link"}
#: Finds a character that a cell cannot hold as it is.
must_be_quoted = re.compile('[,"\r\n]').search
#: Rows whose cells are in memory together while a table is written.
ROWS_AT_ONCE = 1 << 16
#: Types of cells that are looked at all at once.
_NEVER_NAN = {str, int, bool, NoneType}
_TRUTHS = {"true": True, "false": False, True: True, False: False}


@dataclass(frozen=True, eq=False, repr=False)
class RunTables:
    """The tables of a run or a sweep as data frames, None for one that there is not; see `Results`."""

    summary: pd.DataFrame
    links: pd.DataFrame | None = None
    workers: pd.DataFrame | None = None
    transfers: pd.DataFrame | None = None
    states: pd.DataFrame | None = None
    jobs: pd.DataFrame | None = None
    runs: pd.DataFrame | None = None
    queues: pd.DataFrame | None = None
    utilisation: pd.DataFrame | None = None
    path: pd.DataFrame | None = None
    training: pd.DataFrame | None = None
    divergence: pd.DataFrame | None = None
    step_states: pd.DataFrame | None = None
    routes: pd.DataFrame | None = None
    trouble: pd.DataFrame | None = None

    @property
    def finished(self) -> pd.DataFrame:
        """Rows of the summary that have an answer."""
        return self.summary[self.summary["error"].isna() & self.summary["makespan_s"].notna()]


def typed_table(table: Table | pd.DataFrame, name: str) -> Table:
    """Return a table with its columns in their order, each of the type that its kind asks for.

    Numbers are float64, integers int64 (or a list, where one is missing), truths and text lists. ``ValueError`` for a
    cell that is not of its kind.

    >>> typed_table({"n_workers": ["2", "3"], "makespan_s": ["0.5", ""], "sum_ok": ["true", ""]}, "summary")
    {'n_workers': array([2, 3]), 'makespan_s': array([0.5, nan]), 'sum_ok': [True, None]}
    """
    columns = {str(column): cells for column, cells in table.items()}
    names = [one for one in TABLES[name] if one in columns]
    names += [one for one in columns if one not in TABLES[name]]
    return {one: typed(columns[one], kind_of(name, one)) for one in names}


def frame_of(table: Table, name: str) -> pd.DataFrame:
    """Return a table of typed columns as a data frame.

    Integers with a gap and truths are nullable there, text is ``str`` or ``None``.
    """
    import pandas as pd  # noqa: PLC0415 -- as said above

    def series(cells: Cells, kind: Kind) -> Any:
        if not isinstance(cells, list):
            return cells
        # An array of objects would become a column of `str`, and None a NaN.
        return pd.Series(cells, dtype=_DTYPES[kind])

    return pd.DataFrame({column: series(cells, kind_of(name, column)) for column, cells in table.items()})


#: Of columns that are lists.
_DTYPES: dict[Kind, Any] = {"text": object, "integer": "Int64", "truth": "boolean"}


def typed_frame(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a data frame with the columns of `typed_table`.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"n_workers": ["2", "3"], "makespan_s": ["0.5", ""], "sum_ok": ["true", ""]})
    >>> typed_frame(frame, "summary").dtypes.astype(str).tolist()
    ['int64', 'float64', 'boolean']
    """
    return frame_of(typed_table(frame, name), name)


def typed(cells: Iterable[Any], kind: Kind) -> Cells:
    """Return one column with the type that its kind asks for; ``ValueError`` for a cell that is not of it."""
    return _CASTS[kind](cells)


def _plain(cells: Iterable[Any]) -> list[Any]:
    """Return the cells, None for those that are empty."""
    listed = cells.tolist() if isinstance(cells, np.ndarray) else [*cells]
    if {*map(type, listed)} <= _NEVER_NAN:
        return [None if cell == "" else cell for cell in listed] if "" in listed else listed
    return [None if is_missing(cell) or cell == "" else cell for cell in listed]


def _numbers(cells: Iterable[Any]) -> Cells:
    if getattr(cells, "dtype", None) == np.float64:
        return np.asarray(cells)
    known = [np.nan if cell is None else cell for cell in _plain(cells)]
    return np.array(known, dtype=object).astype(np.float64)


def _integers(cells: Iterable[Any]) -> Cells:
    """Whole numbers, exact however large; what is not whole comes as float."""
    if getattr(cells, "dtype", None) == np.int64:
        return np.asarray(cells)
    try:
        plain = _plain(cells)
        is_whole = {*map(type, plain)} <= {int, NoneType}
        whole = plain if is_whole else [None if cell is None else _whole(cell) for cell in plain]
        known = np.array([cell for cell in whole if cell is not None], dtype=np.int64)
        return known if len(known) == len(whole) else whole
    except (ValueError, OverflowError):
        return _numbers(cells)


def _whole(cell: Any) -> int:
    if not isinstance(cell, str) and cell != int(cell):
        raise ValueError(cell)
    return int(cell)


def _values(cells: Iterable[Any]) -> Cells:
    """Elements of a buffer: whole numbers where their type is, else floats, as short as in their type."""
    # A series would yield its numbers as Python's, longer than they are in their type.
    texts = [*map(str, cells if isinstance(cells, list) else np.asarray(cells))]
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except ValueError:
        return np.array([float(text) for text in texts], dtype=np.float64)


def _truths(cells: Iterable[Any]) -> Cells:
    known = _plain(cells)
    if {*map(type, known)} <= {bool, NoneType}:
        return known
    if any(cell is not None and cell not in _TRUTHS for cell in known):
        raise ValueError(known)
    return [None if cell is None else _TRUTHS[cell] for cell in known]


def _text(cells: Iterable[Any]) -> Cells:
    plain = _plain(cells)
    return plain if {*map(type, plain)} <= {str, NoneType} else [None if cell is None else str(cell) for cell in plain]


_CASTS: dict[Kind, Callable[[Iterable[Any]], Cells]] = {
    "text": _text,
    "integer": _integers,
    "number": _numbers,
    "truth": _truths,
    "value": _values,
}


def write_table(table: Table | pd.DataFrame, path: Path) -> None:
    r"""Write a table as CSV: shortest numbers that round-trip, ``true``/``false``, ``\n``, UTF-8.

    Parameters
    ----------
    table : dict or DataFrame
        An index is not written.
    path : Path
        The file; replaced if it is there.
    """
    columns = [_array_or_list(cells) for _, cells in table.items()]
    n_rows = len(columns[0]) if columns else 0
    # newline="" keeps "\n" as it is, on every system.
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(map(format_cell, table)) + "\n")
        for first in range(0, n_rows, ROWS_AT_ONCE):
            written = _written([cells[first : first + ROWS_AT_ONCE] for cells in columns])
            file.write("\n".join(map(",".join, zip(*written, strict=True))) + "\n")


def _array_or_list(cells: Any) -> Cells:
    is_number = getattr(cells, "dtype", None) in (np.float64, np.int64)
    return np.asarray(cells) if is_number else [*cells]


def _written(columns: list[Cells]) -> list[list[str]]:
    """Write some columns; of numbers that stand side by side several may come as one."""
    written: list[list[str]] = []
    for are_numbers, some in groupby(columns, lambda cells: isinstance(cells, np.ndarray)):
        side_by_side: list[Any] = [*some]
        written += _written_numbers(side_by_side) if are_numbers else map(_written_list, side_by_side)
    return written


def _written_numbers(columns: list[Array]) -> list[list[str]]:
    """Write columns of numbers: values that repeat once, and, where they are most, rows that are those before them.

    Of the million links of a large network most carry nothing, one after another.
    """
    # By their bits, by which 0 and -0 differ.
    cells = np.array([column.view(np.int64) for column in columns])
    is_new = np.append(True, (cells[:, 1:] != cells[:, :-1]).any(axis=0))
    are_joined = 2 * is_new.sum() < len(is_new)
    if are_joined:
        cells = cells[:, is_new]
    written = [list[str]() for _ in columns]
    for dtype in {column.dtype for column in columns}:
        places = [place for place, column in enumerate(columns) if column.dtype == dtype]
        bits, inverse = np.unique(cells[places], return_inverse=True)
        texts = [repr(one) if one == one else "" for one in bits.view(dtype).tolist()]  # noqa: PLR0124 -- NaN
        columns_of_texts = np.array(texts, dtype=object)[inverse.reshape(len(places), -1)].tolist()
        for place, column in zip(places, columns_of_texts, strict=True):
            written[place] = column
    if are_joined:
        rows = np.array([*map(",".join, zip(*written, strict=True))], dtype=object)
        return [rows[np.cumsum(is_new) - 1].tolist()]
    return written


def _written_list(cells: list[Any]) -> list[str]:
    """Write the cells of a column; the usual kinds without a look at each value."""
    kinds = {*map(type, cells)}
    if kinds == {str} and not must_be_quoted("".join(cells)):
        return cells
    if kinds <= {str, int, NoneType} or kinds <= {bool, NoneType}:  # none of these is equal to one of another type
        texts = {cell: format_cell(cell) for cell in {*cells}}
        return [*map(texts.__getitem__, cells)]
    return [*map(format_cell, cells)]


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
    return '"' + text.replace('"', '""') + '"' if must_be_quoted(text) else text


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
        A file that is not there or is no table, a missing column, a cell not of its kind, or empty where none is (with
        its line).
    """
    cells = _read_text(path)
    missing = [name for name in TABLES[table] if name not in cells]
    if missing:
        raise ResultsError(*(Fault("a column is missing", name, str(path)) for name in missing))
    kinds = {name: kind_of(table, name) for name in cells}
    found = frame_of({name: _column(cells[name], name, kind, path) for name, kind in kinds.items()}, table)
    for name, excuse in NEVER_EMPTY.get(table, {}).items():
        empty = found[name].isna() & (found[excuse].isna() if excuse else True)
        if empty.any():
            raise ResultsError(Fault("a cell is empty", name, str(path), int(empty.argmax()) + 2, right="a value"))
    twice = [] if table not in ONE_ROW_EACH else [*found.index[found.duplicated(ONE_ROW_EACH[table])]]
    if twice:
        name, at = ONE_ROW_EACH[table], twice[0]
        raise ResultsError(Fault("a row stands twice", name, str(path), at + 2, str(found[name][at])))
    rows = found[AS_MANY_ROWS[table]].value_counts() if table in AS_MANY_ROWS else None
    if rows is not None and rows.min() < rows.max():
        value, right = f"{rows.min()} of {rows.idxmin()}", f"{rows.max()}, as of others"
        raise ResultsError(Fault("rows are missing", AS_MANY_ROWS[table], str(path), None, value, right))
    return found


def _read_text(path: Path) -> dict[str, list[str]]:
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
    return dict(zip(heads, map(list, columns), strict=True))


def _column(cells: list[str], name: str, kind: Kind, path: Path) -> Cells:
    try:
        return typed(cells, kind)
    except ValueError:
        raise ResultsError(_bad_cell(cells, name, kind, path)) from None


def _bad_cell(cells: list[str], name: str, kind: Kind, path: Path) -> Fault:
    """Find the first cell that is not of its kind; line 1 of the file holds the names."""
    row = next(row for row, cell in enumerate(cells) if not _is_of(cell, kind))
    right = "true or false" if kind == "truth" else "a number, or an empty cell"
    return Fault("a cell cannot be read", name, str(path), row + 2, repr(cells[row]), right)


def _is_of(cell: str, kind: Kind) -> bool:
    try:
        typed([cell], kind)
    except ValueError:
        return False
    return True
