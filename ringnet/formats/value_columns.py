"""Columns of quantities in a CSV file: with a unit in each cell, or one in the name of the column."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path

from ringnet.documents.text import clip, read_csv
from ringnet.errors import Fault, InputError, UnitError
from ringnet.units import Kind, parse_quantity

#: The largest file, and the most rows, that are read.
MOST_BYTES, MOST_ROWS = 64 * 2**20, 1_000_000
#: Faults that are told of one file.
MOST_FAULTS = 20
#: Endings of names that are units.
_UNITS: dict[Kind, tuple[str, ...]] = {
    "seconds": ("s", "ms", "us", "ns"),
    "bytes_per_second": ("Bps", "GBps", "MBps", "Gbps", "Mbps"),
}
_WRITTEN = {"Bps": "B/s", "GBps": "GB/s", "MBps": "MB/s", "Gbps": "Gbit/s", "Mbps": "Mbit/s"}


def read_columns(path: Path, names: Sequence[str], kind: Kind) -> list[list[float]]:
    """Read some columns of a table, in plain SI.

    Parameters
    ----------
    path : pathlib.Path
    names : sequence of str
        Of columns, with their units or without: ``latency`` finds ``latency_us``. Without any the one that there is.
    kind : str
        Of which quantity they are.

    Returns
    -------
    list of list of float
        The values of each column, row by row.

    Raises
    ------
    InputError
        Each cell that is no such quantity, with its line; columns that are not there; no rows at all.
    """
    rows = read_csv(path, MOST_BYTES, "a table")
    if len(rows) < 2:  # noqa: PLR2004 -- a line of names, and one of values
        raise InputError(Fault("the sample is empty: there are no rows below the names", file=str(path)))
    if len(rows) > MOST_ROWS:
        raise InputError(Fault(f"there are more than {MOST_ROWS:,} rows", file=str(path), value=f"{len(rows):,}"))
    heads = rows[0][1]
    at = [_place(name, heads, kind, path) for name in names or [_only(heads, path)]]
    found, faults = [], list[Fault]()
    for place in at:
        unit = _unit(heads[place], kind)
        column = []
        for number, cells in rows[1:]:
            try:
                column.append(_value(cells[place] if place < len(cells) else "", unit, kind))
            except InputError as error:
                faults += [
                    Fault(fault.message, fault.path, str(path), number, fault.value, fault.right)
                    for fault in error.faults
                ]
        found.append(column)
    if faults:
        raise InputError(*faults[:MOST_FAULTS])
    return found


def _only(heads: Sequence[str], path: Path) -> str:
    if len(heads) > 1:
        message = "the table has several columns, and nobody says which one it is"
        raise InputError(
            Fault(message, file=str(path), line=1, value=clip(", ".join(heads)), right=f"column: {heads[0]}")
        )
    return heads[0]


def _place(name: str, heads: Sequence[str], kind: Kind, path: Path) -> int:
    for place, head in enumerate(heads):
        if name == head or (_unit(head, kind) and name == head.rpartition("_")[0]):
            return place
    raise InputError(
        Fault(f"the table has no column {clip(name)}", file=str(path), line=1, right=clip(", ".join(heads)))
    )


def _unit(head: str, kind: Kind) -> str:
    """Return the unit that the name of a column ends with; nothing where it has none."""
    ending = head.rpartition("_")[2]
    return _WRITTEN.get(ending, ending) if "_" in head and ending in _UNITS[kind] else ""


def _value(cell: str, unit: str, kind: Kind) -> float:
    noun, right = ("time", "5 us") if kind == "seconds" else ("rate", "50 GB/s")
    if not unit:
        try:
            return float(parse_quantity(cell, kind))
        except UnitError as error:
            fault = error.faults[0]
            raise InputError(Fault(f"this is no {noun}: {fault.message}", value=clip(cell), right=right)) from error
    try:
        value = float(cell)
    except ValueError:
        value = nan
    if not 0 <= value < inf:
        message = f"this is no {noun} in {unit}: a number from zero up is wanted"
        raise InputError(Fault(message, value=clip(cell), right="12.5"))
    return value * float(parse_quantity(f"1 {unit}", kind))
