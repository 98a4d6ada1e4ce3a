"""The text of gloo's benchmark: elements, quantiles of the time, and what it was run on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import ASKED, Log, LogText, Measurement, Notes, collective_name
from ringnet.formats.logs.printed_rows import without_launcher
from ringnet.formats.logs.tables import Condition, TableKey, numbers_of

_HEADING = re.compile(r"\belements\s+min \((us|ms|ns)\)\s+p50 \(\1\)\s+p99 ")
_ROW = re.compile(r"^\s*(\d+)\s+\d+\s+(\d+)\s+\d+\s+\d+\s+([\d.]+)\s+\d+\s*$")
_ALGORITHM = re.compile(r"^\s*Algorithm:\s+(\w+)")
_PROCESSES = re.compile(r"\bprocesses=(\d+)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}
#: gloo's benchmark sums floats, unless it is told to take halves.
_FLOAT, _HALF = 4, 2


def is_gloo(text: LogText) -> bool:
    """Tell whether there is the heading of gloo's benchmark in it."""
    return any(_HEADING.search(line) for _, line in text.lines())


def read_gloo(text: LogText) -> Log:
    """Read the median time of every row.

    Raises
    ------
    InputError
        It has no row of a collective that is known.
    """
    notes = Notes()
    rows = [*_rows(text, notes)]
    if not rows:
        right = "allreduce, allgather, broadcast, reduce or alltoall"
        raise InputError(Fault("a log of gloo without a row of a collective", file=str(text.path), right=right))
    notes.say("gloo prints quantiles of the time: the median is taken")
    if any(row.n_workers is None for row in rows):
        notes.say(f"N is not in the log: {ASKED}")
    return Log(text.path, "gloo", tuple(rows), notes.remarks())


def _rows(text: LogText, notes: Notes) -> Iterator[Measurement]:
    found: list[Measurement] = []
    algorithm, n_workers, unit_s = "", None, 1e-6
    for number, raw in text.lines():
        line = without_launcher(raw)
        if named := _ALGORITHM.match(line):
            algorithm = named[1]
        if processes := _PROCESSES.search(line):
            n_workers = int(processes[1])
        if heading := _HEADING.search(line):
            unit_s = _SECONDS[heading[1]]
        row = _ROW.match(line)
        collective = _collective(algorithm)
        if row and not collective:
            notes.say(f"gloo's {algorithm or 'benchmark without a name'} is no collective that is known", number)
        elif row and int(row[2]):
            n_bytes = int(row[1]) * _width(row, unit_s)
            timed = Measurement(n_bytes, int(row[2]) * unit_s, n_workers=n_workers, collective=collective)
            found.append(replace(timed, algorithm=algorithm, dtype="float", line=number))
    keys = [
        TableKey(row.collective, row.n_workers, (row.algorithm, ""), Condition(row.algorithm), {row.message_bytes})
        for row in found
    ]
    for one, table in zip(found, numbers_of(keys), strict=True):
        yield replace(one, table=table, condition=one.algorithm)


def _collective(algorithm: str) -> str:
    """Return the collective of an algorithm of gloo, which starts with its name.

    >>> _collective("allreduce_ring_chunked"), _collective("new_allreduce_ring"), _collective("barrier_all_to_all")
    ('all_reduce', 'all_reduce', '')
    """
    first, _, rest = algorithm.removeprefix("new_").removeprefix("cuda_").partition("_")
    return collective_name(f"{first}_{rest}") or collective_name(first)


def _width(row: re.Match[str], unit_s: float) -> int:
    """Return bytes of an element: elements over time make the rate that is printed in GB/s."""
    rate = float(row[3]) * 1e9 * int(row[2]) * unit_s / max(int(row[1]), 1)
    return _HALF if 0 < rate < (_FLOAT + _HALF) / 2 else _FLOAT
