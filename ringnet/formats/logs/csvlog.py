"""Plain CSV: a line of names, a line per measurement; commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import Log, Measurement, Notes
from ringnet.formats.logs.table import Columns, read_rows
from ringnet.formats.logs.text import Text

_SEPARATORS = ",;\t"
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"\d+,\d+")
#: Lines in which the names of the columns are looked for.
_LOOKED_AT = 50


def is_csv(text: Text) -> bool:
    """Tell whether there is a line of column names that a log could have."""
    return _heading(text) is not None


def read_csv(text: Text) -> Log:
    """Read a table of measurements.

    Raises
    ------
    InputError
        It has no row that is one.
    """
    heading = _heading(text)
    assert heading is not None  # is_csv was asked
    first, separator, names = heading
    notes, columns = Notes(), Columns(names)
    rows = read_rows(_rows(text, first, separator, names, notes), columns, notes, str(text.path))
    if not rows:
        said = "; ".join(remark.text for remark in notes.sayings())
        message = "the table has no row with a size and a time"
        raise InputError(Fault(message, file=str(text.path), line=first, value=said))
    _remark(rows, columns, notes)
    return Log(text.path, "CSV", tuple(rows), notes.sayings())


def _heading(text: Text) -> tuple[int, str, list[str]] | None:
    for number, line in text.lines():
        if number > _LOOKED_AT:
            return None
        for separator in _SEPARATORS:
            names = _cells(line.lstrip("\ufeff#"), separator)
            if len(names) > 1 and Columns(names).is_log:
                return number, separator, names
    return None


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _rows(
    text: Text, first: int, separator: str, names: list[str], notes: Notes
) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in text.lines():
        if number <= first or not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = _cells(line, separator)
        if len(cells) == len(names):
            yield number, dict(zip(names, _plain(cells, separator, notes, number), strict=True))
        else:
            notes.say(f"a row of {len(cells)} columns under {len(names)} names: left out", number)


def _plain(cells: list[str], separator: str, notes: Notes, number: int) -> list[str]:
    """Return cells with numbers as computers write them: by columns that commas part, a comma parts thousands."""
    if separator == ",":
        made = [cell.replace(",", "") if _THOUSANDS.fullmatch(cell) else cell for cell in cells]
        said = "commas inside numbers are taken to part thousands"
    else:
        made = [cell.replace(",", ".") if _DECIMAL.fullmatch(cell) else cell for cell in cells]
        said = "commas inside numbers are taken to be decimal points"
    if made != cells:
        notes.say(said, number)
    return made


def _remark(rows: list[Measurement], columns: Columns, notes: Notes) -> None:
    if "collective" not in columns.of:
        notes.say("the collective is not named: all_reduce is assumed")
    if "bytes" not in columns.of and "elements" in columns.of and not columns.elements_are_floats:
        notes.say("sizes are in elements: taken times the bytes of the type, 4 where none is named")
    if len({row.algorithm for row in rows}) > 1:
        notes.say("rows are of several algorithms: each regime of a fit may have one of its own")
