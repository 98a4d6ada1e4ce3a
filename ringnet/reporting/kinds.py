"""Columns brought to one type by their kind, whether they come from an engine or from a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ringnet.reporting.columns import TABLES, Kind, kind_of

AnySeries: TypeAlias = "pd.Series[Any]"

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


def typed(cells: AnySeries, kind: Kind) -> AnySeries:
    """Return one column with the type that its kind asks for; ``ValueError`` for a cell that is not of it."""
    return _CASTS[kind](cells.reset_index(drop=True))


def _missing(cells: AnySeries) -> AnySeries:
    return cells.isna() | (cells == "")


def _numbers(cells: AnySeries) -> AnySeries:
    if cells.dtype == np.float64:
        return cells
    return cells.astype(object).mask(_missing(cells), np.nan).astype(np.float64)


def _integers(cells: AnySeries) -> AnySeries:
    """Whole numbers, exact however large; what is not whole comes as float."""
    if cells.dtype == np.int64:
        return cells
    missing = _missing(cells)
    try:
        whole = [pd.NA if gone else _whole(cell) for cell, gone in zip(cells, missing, strict=True)]
        return pd.Series(whole, dtype="Int64" if missing.any() else "int64", name=cells.name)
    except (ValueError, OverflowError):
        return _numbers(cells)


def _whole(cell: Any) -> int:
    if not isinstance(cell, str) and cell != int(cell):
        raise ValueError(cell)
    return int(cell)


def _values(cells: AnySeries) -> AnySeries:
    """Elements of a buffer: whole numbers where their type is, else floats, as short as in their type."""
    texts = [str(cell) for cell in cells.to_numpy()]
    try:
        return pd.Series([int(text) for text in texts], dtype="int64", name=cells.name)
    except ValueError:
        return pd.Series([float(text) for text in texts], dtype="float64", name=cells.name)


def _truths(cells: AnySeries) -> AnySeries:
    missing = _missing(cells)
    if not (missing | cells.isin(list(_TRUTHS))).all():
        raise ValueError(cells.name)
    known = [pd.NA if gone else _TRUTHS[cell] for cell, gone in zip(cells, missing, strict=True)]
    return pd.Series(known, dtype="boolean", name=cells.name)


def _text(cells: AnySeries) -> AnySeries:
    known = [None if gone else str(cell) for cell, gone in zip(cells, _missing(cells), strict=True)]
    return pd.Series(known, dtype=object, name=cells.name)


_CASTS: dict[Kind, Callable[[AnySeries], AnySeries]] = {
    "text": _text,
    "integer": _integers,
    "number": _numbers,
    "truth": _truths,
    "value": _values,
}
