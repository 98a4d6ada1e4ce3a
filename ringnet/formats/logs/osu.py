"""The text of the OSU micro-benchmarks: size, average latency, and with ``-f`` some more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import Log, Measurement, Notes, collective_name
from ringnet.formats.logs.text import Text

_TITLE = re.compile(
    r"#\s*OSU\s+(?:MPI|NCCL|RCCL|XCCL|UPC|OpenSHMEM)(?:-[A-Z]+)*\s+(.+?)\s+(?:Latency\s+|Bandwidth\s+)?Test\b",
    re.I,
)
_COLUMNS = re.compile(r"#\s*Size\s+(Avg )?Lat", re.I)
_ROW = re.compile(r"^\s*(\d+)((?:\s+[\d.]+)+)\s*$")


def is_osu(lines: Iterable[tuple[int, str]]) -> bool:
    """Tell whether there is the title or the heading of an OSU benchmark in it."""
    return any(_TITLE.search(line) or _COLUMNS.search(line) for _, line in lines)


def read_osu(text: Text) -> Log:
    """Read the rows; N is never in such a log.

    Raises
    ------
    InputError
        It is of a benchmark that is no collective, or has no row.
    """
    notes, name, rows = Notes(), "", []
    for number, line in text.lines():
        title = _TITLE.search(line)
        if title:
            name = _named(title[1], text)
        row = _ROW.match(line)
        if row and not line.lstrip().startswith("#"):
            rows.append(_measurement(int(row[1]), row[2].split(), name, number))
    if not rows:
        raise InputError(Fault("a log of the OSU benchmarks without a row", file=str(text.path)))
    if not name:
        notes.say("the benchmark's title is lost: all_reduce is assumed")
    notes.say("N is not in the logs of OSU: say it with --workers")
    return Log(text.path, "OSU", tuple(rows), notes.sayings())


def _named(title: str, text: Text) -> str:
    name = collective_name(title)
    if not name:
        right = "osu_allreduce, or another collective"
        raise InputError(Fault(f"OSU's {title} is no collective", file=str(text.path), right=right))
    return name


def _measurement(size: int, cells: list[str], name: str, number: int) -> Measurement:
    return Measurement(size, float(cells[0]) * 1e-6, collective=name or "all_reduce", line=number)
