"""CSV, and tables with named columns in general: few columns, many spellings, units in names and cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import Log, LogText, Measurement, Notes, collective_name

_SEPARATORS = ",;\t|"
#: The line of dashes under the names of a Markdown table.
_RULE = re.compile(r"\|?[\s|:-]*-[\s|:-]*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"\d+,\d+")
#: Lines in which the names of the columns are looked for.
_LOOKED_AT = 50


def is_csv(text: LogText) -> bool:
    """Tell whether there is a line of column names that a log could have."""
    return _heading(text) is not None


def read_csv(text: LogText) -> Log:
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
        why = "; ".join(remark.text for remark in notes.remarks())
        message = "the table has no row with a size and a time"
        raise InputError(Fault(message, file=str(text.path), line=first, value=why))
    if "collective" not in columns.of:
        notes.say("the collective is not named: all_reduce is assumed")
    if "bytes" not in columns.of and "elements" in columns.of and not columns.elements_are_floats:
        notes.say("sizes are in elements: taken times the bytes of the type, 4 where none is named")
    if len({row.algorithm for row in rows}) > 1:
        notes.say("rows are of several algorithms: each regime of a fit may have one of its own")
    return Log(text.path, "CSV", tuple(rows), notes.remarks())


def _heading(text: LogText) -> tuple[int, str, list[str]] | None:
    for number, line in text.lines():
        if number > _LOOKED_AT:
            return None
        for separator in _SEPARATORS:
            names = _cells(line.lstrip("\ufeff#"), separator)
            if len(names) > 1 and Columns(names).is_log:
                return number, separator, names
    return None


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|":
        line = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _rows(
    text: LogText, first: int, separator: str, names: list[str], notes: Notes
) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in text.lines():
        if number <= first or not line.strip() or line.lstrip().startswith("#"):
            continue
        if separator == "|" and _RULE.fullmatch(line.strip()):
            continue
        cells = _cells(line, separator)
        if len(cells) == len(names):
            yield number, dict(zip(names, _without_commas(cells, separator, notes, number), strict=True))
        else:
            notes.say(f"a row of {len(cells)} columns under {len(names)} names: left out", number)


def _without_commas(cells: list[str], separator: str, notes: Notes, number: int) -> list[str]:
    """Return cells with the commas in numbers read: thousands where commas part the columns, else decimal points."""
    pattern, sign, what = (
        (_THOUSANDS, "", "part thousands") if separator == "," else (_DECIMAL, ".", "be decimal points")
    )
    read = [cell.replace(",", sign) if pattern.fullmatch(cell) else cell for cell in cells]
    if read != cells:
        notes.say(f"commas inside numbers are taken to {what}", number)
    return read


# ---------------------------------------------------------------------------------------- tables with named columns

#: Columns by ringnet's names, and how others spell them: lower case, letters and digits alone.
_SPELLINGS = {
    "bytes": "bytes|size|sizeb|sizebytes|messagebytes|messagesize|messagesizebytes|msgsize|msgbytes|nbytes|b",
    "elements": "count|elements|nelements|sizefloats|floats|numelements|counte|countelements|n",
    "workers": "ranks|nranks|gpus|ngpus|workers|nworkers|worldsize|np|nprocs|procs|numranks|numgpus",
    "nodes": "nodes|nnodes|hosts|nhosts|numnodes",
    "per_node": "gpuspernode|rankspernode|ppn|taskspernode|workerspernode|procspernode",
    "collective": "collective|coll|op|operation|test|name|benchmark",
    "dtype": "dtype|type|datatype",
    "redop": "redop|reduction|reduceop",
    "algorithm": "algorithm|algo|implementation",
    "protocol": "protocol|proto",
    "in_place": "inplace|isinplace",
    "algbw": "algbw|algbwgbs|algbandwidth|oopalgbw",
    "busbw": "busbw|busbwgbs|busbandwidth|oopbusbw",
}
_COLUMN = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split("|")}
_TIME = re.compile(
    r"(?:(?:time|makespan|latency|elapsed|duration|median|mean|average|avg|measured|ooptime|outofplacetime)(?:time|latency)?"
    r"(?P<unit>us|usec|ms|msec|s|sec|ns|seconds)?|(?P<bare>us|usec|ms|msec|seconds|ns))"
)
_SIZE = re.compile(r"(?:message|msg)?(?:size)?(?:in)?(?P<unit>[kmg]i?b)")
_SIZE_NAME = re.compile(
    r"(?:message|msg|buffer|buf|data|payload|transfer|tensor|total)?(?:size|length|len|bytes)(?:in)?(?:bytes|byte|b)?"
)
#: What in the name of a column speaks of a size.
_OF_SIZE = re.compile(r"size|byte|length|msg|message|buffer", re.I)
_BYTES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
}
_SECONDS_WORDS = "|".join(sorted(_SECONDS, key=len, reverse=True))
_TIMED = re.compile(rf"(?P<number>\d+\.?\d*(?:e[+-]?\d+)?)\s*(?P<unit>{_SECONDS_WORDS}|\u00b5s|\u03bcs)")
_SIZED = re.compile(r"(?P<number>\d+\.?\d*)\s*(?P<unit>b|[kmg]i?b?)")
_ELEMENT_BYTES = {
    "int8": 1, "uint8": 1, "char": 1, "half": 2, "float16": 2, "bfloat16": 2,
    "int64": 8, "uint64": 8, "double": 8, "float64": 8,
}  # fmt: skip
_FLOAT32 = 4
#: Sizes and counts below that are whole numbers in a float.
_MOST = 2**53
_TOLERANCE = 0.2
#: Columns of how many there were.
_COUNTS = ("workers", "nodes", "per_node")
_NOTHING = frozenset({"", "-", "--", "?", "n/a", "na", "nan", "none", "null"})

#: A row: what stands in it, by the name of the column.
Cells: TypeAlias = Mapping[str, Any]


class Columns:
    """Which column of a table holds what."""

    def __init__(self, names: Sequence[str]) -> None:
        self.of: dict[str, str] = {}
        self.names = list(names)
        self.unit: str | None = None
        self.scale = 1
        self.elements_are_floats = any("float" in name.lower() for name in names)
        for name in names:
            self._place(name)

    @property
    def is_log(self) -> bool:
        """Whether there is a time in it, and what it was taken of."""
        return "time" in self.of and ("bytes" in self.of or "elements" in self.of or "workers" in self.of)

    def _place(self, name: str) -> None:
        bare = re.sub(r"[^a-z0-9]", "", name.lower())
        if (sized := _SIZE.fullmatch(bare)) and "bytes" not in self.of:
            self.of["bytes"] = name
            self.scale = _BYTES[sized["unit"]]
        elif bare in _COLUMN:
            self.of.setdefault(_COLUMN[bare], name)
        elif _SIZE_NAME.fullmatch(bare):
            self.of.setdefault("bytes", name)
        elif (time := _TIME.fullmatch(bare)) and "time" not in self.of:
            self.of["time"] = name
            self.unit = time["unit"] or time["bare"]

    def get(self, row: Cells, column: str) -> Any:
        """Return a cell, None where there is no such column or nothing in it."""
        cell = row.get(self.of[column]) if column in self.of else None
        return None if cell is None or (isinstance(cell, str) and not cell.strip()) else cell


def read_rows(rows: Iterable[tuple[int, Cells]], columns: Columns, notes: Notes, file: str) -> list[Measurement]:
    """Turn the rows of a table into measurements; a row that is no measurement is left out with a remark.

    Parameters
    ----------
    rows : iterable of (int, mapping)
        Line of the row, and its cells by column.
    columns : Columns
    notes : Notes
    file : str

    Raises
    ------
    InputError
        No column or row says in which unit times are.
    """
    kept = list(rows)
    unit_s = _time_unit(kept, columns, notes, file)
    if "bytes" not in columns.of and "elements" not in columns.of:
        if unread := [name for name in columns.names if _OF_SIZE.search(name)]:
            right = "size_bytes, size_KiB or size_MiB as the name of the column of message sizes"
            raise InputError(Fault("a column that is not understood", file=file, value=unread[0], right=right))
        notes.say("no column of message sizes: read as pure latency, of a message of next to nothing")
    if columns.scale in (10**3, 10**6, 10**9):
        notes.say(f"sizes are headed {columns.of['bytes']}: taken as {columns.scale:,} bytes each")
    found = (_measurement(line, row, columns, unit_s, notes) for line, row in kept)
    return [row for row in found if row is not None]


def _time_unit(rows: Sequence[tuple[int, Cells]], columns: Columns, notes: Notes, file: str) -> float:
    if columns.unit or (rows and all(_timed(columns.get(row, "time")) is not None for _, row in rows)):
        return _SECONDS[columns.unit or "s"]
    for _, row in rows:
        size, alg, time = (_number(columns.get(row, column)) for column in ("bytes", "algbw", "time"))
        if size and alg and time and alg >= 0.05:  # noqa: PLR2004 -- two digits behind the point say enough from here
            implied = size / (alg * 1e9 * time)
            unit = next((u for u in ("us", "ms", "s") if abs(implied / _SECONDS[u] - 1) < _TOLERANCE), "")
            if unit:
                notes.say(f"no unit of time is stated: {unit}, as size over algbw says")
                return _SECONDS[unit]
    right = "time_us, time_ms or time_s as the name of the column"
    raise InputError(Fault("no unit of time is stated", file=file, value=columns.of["time"], right=right))


def _measurement(line: int, row: Cells, columns: Columns, unit_s: float, notes: Notes) -> Measurement | None:
    cell = columns.get(row, "time")
    stated_s, number = _timed(cell), _number(cell)
    time_s = stated_s if number is None else number * unit_s
    if time_s is None or not 0.0 < time_s < float("inf"):
        notes.say(f"a time of {'nothing' if cell is None else cell}: left out", line)
        return None
    size = _bytes(row, columns, notes)
    if size is None or size < 0:
        notes.say("a size that is no number of bytes: left out", line)
        return None
    counts: list[int | None] = []
    for name in _COUNTS:
        said = columns.get(row, name)
        whole = _whole(said)
        counts.append(whole if whole and whole > 0 else None)
        if counts[-1] is None and str(said or "").strip().casefold() not in _NOTHING:
            notes.say(f"{columns.of[name]} of {said}: no whole number from 1 on, and not used", line)
    n_workers, n_nodes, per_node = counts
    algbw, busbw = (_number(columns.get(row, name)) for name in ("algbw", "busbw"))
    text = {
        name: str(columns.get(row, name) or "") for name in ("collective", "dtype", "redop", "algorithm", "protocol")
    }
    return Measurement(
        message_bytes=size,
        time_s=time_s,
        n_workers=n_workers or (n_nodes * per_node if n_nodes and per_node else None),
        n_nodes=n_nodes,
        collective=collective_name(text["collective"]) if text["collective"] else "all_reduce",
        dtype=text["dtype"],
        redop=text["redop"],
        algbw_Bps=None if algbw is None else algbw * 1e9,
        busbw_Bps=None if busbw is None else busbw * 1e9,
        algorithm=text["algorithm"],
        protocol=text["protocol"],
        line=line,
    )


def _timed(cell: Any) -> float | None:
    """Return the seconds of a cell that says its unit; None for any other."""
    match = _TIMED.fullmatch(str(cell).strip().lower())
    return (
        float(match["number"]) * _SECONDS[match["unit"].replace("\u00b5", "u").replace("\u03bc", "u")]
        if match
        else None
    )


def _sized(cell: Any, notes: Notes) -> float | None:
    """Return the bytes of a cell that says its unit; None for any other."""
    match = _SIZED.fullmatch(str(cell).strip().lower())
    if not match:
        return None
    unit = f"{match['unit']}b".replace("bb", "b")
    if unit == "b":
        return float(match["number"])
    if match["unit"] == unit:
        if "i" not in unit:
            notes.say(f"sizes say {unit[0].upper()}B: taken as {_BYTES[unit]:,} bytes each")
        return float(match["number"]) * _BYTES[unit]
    factor = _BYTES[f"{match['unit'][0]}ib"]
    notes.say(f"sizes say {match['unit'].upper()}: taken as {factor:,} bytes each, as benchmarks' options mean it")
    return float(match["number"]) * factor


def _bytes(row: Cells, columns: Columns, notes: Notes) -> int | None:
    if "bytes" in columns.of:
        cell = columns.get(row, "bytes")
        size = _number(cell)
        return _whole(_sized(cell, notes)) if size is None else _whole(size * columns.scale)
    if "elements" not in columns.of:
        return 1
    n_elements = _whole(columns.get(row, "elements"))
    width = _FLOAT32 if columns.elements_are_floats else _ELEMENT_BYTES.get(str(columns.get(row, "dtype")), _FLOAT32)
    return None if n_elements is None else n_elements * width


def _number(cell: Any) -> float | None:
    try:
        return None if cell is None or isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        return None


def _whole(cell: Any) -> int | None:
    number = _number(cell)
    return int(number) if number is not None and abs(number) < _MOST and number.is_integer() else None
