"""What a page counts with: numbers as a run writes them, or refused, and tables as bytes that a browser unpacks."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ringnet.array_types import Array
from ringnet.documents.text import one_line
from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import OF_SOME_RUNS, TABLES

#: Of whole numbers: what a browser counts exactly, and workers, of which tables are made.
MOST, MOST_WORKERS = 2.0**53, 2**20
#: Rows of a table that a browser shows.
MOST_ROWS = 100_000


def check_cells(frame: pd.DataFrame, file: str, whole: Mapping[str, float], times: tuple[str, ...] = ()) -> None:
    """Refuse cells that are no whole number, or no time, as a run writes them.

    Parameters
    ----------
    frame : DataFrame
    file : str
        Where it was read from.
    whole : mapping of str to float
        Columns of whole numbers from 0 on, and the most that each may be.
    times : tuple of str
        Columns of finite seconds from 0 on.

    Raises
    ------
    ResultsError
        With the first such cell of the first such column.
    """
    for name in (*whole, *times):
        cells = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64, na_value=np.nan)
        bad = ~(np.isfinite(cells) & (cells >= 0))
        if name in whole:
            bad |= (cells != np.floor(cells)) | (cells > whole[name])
        if bad.any():
            at = int(bad.argmax())
            right = f"a whole number, at most {whole[name]:.15g}" if name in whole else "a time of at least 0 s"
            raise ResultsError(Fault("no run writes this", name, file, at + 2, str(frame[name].iloc[at])[:40], right))


def check_summary(frame: pd.DataFrame, file: str) -> None:
    """Refuse rows of a summary, or of a comparison, whose workers or bytes are no numbers of such."""
    most = {"n_workers": MOST_WORKERS, "message_bytes": MOST}
    if "verified_elements" in frame:
        frame, most = frame.fillna({"verified_elements": 0}), most | {"verified_elements": MOST}
    check_cells(frame, file, most)
    if not (frame["n_workers"] > 0).all():
        at = int((frame["n_workers"] > 0).argmin())
        raise ResultsError(Fault("no run writes this", "n_workers", file, at + 2, "0", "at least 1"))


#: Names that JavaScript's arrays go by, and what each is here. Whole numbers come in the first that holds them.
_WHOLE: dict[str, type[np.integer[Any]]] = {"Uint8": np.uint8, "Uint16": np.uint16, "Int32": np.int32}
#: Bytes that every array starts at a multiple of: a browser reads no array from elsewhere.
_ALIGNED = 8


class Packer:
    """Collects arrays, and says of each where it will be."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, values: Array) -> dict[str, Any]:
        """Add an array; return its type, its place and its length."""
        kind, array = _smallest(np.asarray(values))
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        place = self._size
        self._parts += [data, bytes(-len(data) % _ALIGNED)]
        self._size += len(data) + -len(data) % _ALIGNED
        return {"type": kind, "at": place, "length": len(array)}

    def table(self, name: str, frame: pd.DataFrame) -> dict[str, Any]:
        """Add the columns of a table, or its first rows if there are very many; return what a page must know of it."""
        shown = frame.head(MOST_ROWS)
        columns = [self._column(name, str(head), shown[head]) for head in shown.columns]
        return {"rows": len(shown), "of": len(frame), "columns": columns}

    def _column(self, table: str, name: str, cells: pd.Series[Any]) -> dict[str, Any]:
        known = TABLES[table].get(name) or OF_SOME_RUNS.get(name)
        told = {"name": one_line(name), "meaning": known.meaning if known else ""}
        if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_bool_dtype(cells.dtype):
            whole = cells.dtype.kind in "iu" and not cells.isna().any()
            return told | {"array": self.add(cells.to_numpy(np.int64 if whole else np.float64))}
        codes, values = pd.factorize(cells.astype(object).map(_as_text), sort=False)
        return told | {"array": self.add(codes), "values": [*values]}

    def packed(self, header: Mapping[str, Any]) -> str:
        """Return all of it as text in which nothing can be markup: compressed, in base64.

        Parameters
        ----------
        header : mapping
            What JSON can hold, with what `add` and `table` returned in its places.
        """
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 4) % _ALIGNED)
        whole = b"".join([len(text).to_bytes(4, "little"), text, *self._parts])
        return b64encode(zlib.compress(whole, 9)).decode()


def _as_text(cell: object) -> str:
    if cell is None or cell is pd.NA or cell != cell:  # noqa: PLR0124 -- not a NaN
        return ""
    return str(cell).lower() if isinstance(cell, bool | np.bool_) else one_line(str(cell))


def _smallest(values: Array) -> tuple[str, Array]:
    """Return an array in the smallest type that holds all of it, and what JavaScript calls that.

    >>> _smallest(np.array([0, 255])), _smallest(np.array([-1, 2]))
    (('Uint8', array([  0, 255], dtype=uint8)), ('Int32', array([-1,  2], dtype=int32)))
    """
    if values.dtype.kind in "iu":
        least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        for name, kind in _WHOLE.items():
            if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
                return name, values.astype(kind)
    return "Float64", values.astype(np.float64)
