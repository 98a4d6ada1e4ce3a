"""The text of the OSU micro-benchmarks: size, average latency, and with ``-f`` some more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import ASKED, Log, LogText, Measurement, Notes, collective_name
from ringnet.formats.logs.printed_rows import without_launcher
from ringnet.formats.logs.tables import Condition, TableKey, numbers_of

#: Collectives whose size is, in the logs of OSU, that of a part.
PER_RANK = ("all_gather", "alltoall")
_TITLE = re.compile(
    r"#?\s*\bOSU\s+(?:(?:MPI|NCCL|RCCL|XCCL|UPC|OpenSHMEM)(?:-[A-Z]+)*\s+)?(.+?)\s+(?:Latency\s+|Bandwidth\s+)?Test\b",
    re.I,
)
#: The command that starts so many ranks of an OSU benchmark.
_COMMAND = re.compile(
    r"\b(?:mpirun|mpiexec|mpirun_rsh|srun|prun|jsrun)\b.*?\s-{1,2}(?:np|n|ntasks)[ =]?(\d+)\b.*\bosu_\w+"
)
_COLUMNS = re.compile(r"#?\s*\bSize\s+(?:(?:Avg )?Lat|Overall)", re.I)
#: The column of a non-blocking benchmark for what the collective takes without the computation beside it.
_PURE = re.compile(r"Overall.*(?=Pure Comm)", re.I)
_NON_BLOCKING = re.compile(r"^non-?blocking\s+", re.I)
#: Size, times and what else ``-f`` prints, and with ``-c`` whether the values were right.
_ROW = re.compile(r"^\s*(\d+)((?:\s+[\d.]+)+)(?:\s+(pass|fail))?\s*$", re.I)


def is_osu(text: LogText) -> bool:
    """Tell whether there is the title or the heading of an OSU benchmark in it."""
    return any(_TITLE.search(line) or _COLUMNS.search(line) for _, line in text.lines())


class OsuTable(NamedTuple):
    """What stands above rows: the benchmark in OSU's words, the collective, its line, and what a command says."""

    title: str
    collective: str
    line: int
    n_workers: int | None = None
    launch: str = ""
    is_non_blocking: bool = False


def read_osu(text: LogText) -> Log:
    """Read the rows of every collective in it; N is there only where the command that ran it is.

    Raises
    ------
    InputError
        It is of benchmarks that are no collectives, or has no row.
    """
    notes = Notes()
    found = list(_rows(text))
    rows = [row for table, row in found if table.collective]
    others = sorted({table for table, _ in found if not table.collective}, key=lambda table: table.line)
    if not rows:
        raise InputError(_no_rows(text, others))
    for table in others:
        notes.say(f"OSU's {table.title} is no collective: left out", table.line)
    if any(not table.title for table, _ in found):
        notes.say("the benchmark's title is lost: all_reduce is assumed")
    if any(row.collective in PER_RANK for row in rows):
        notes.say("OSU counts what a rank gives to each other one: with N the size is taken times N, the whole buffer")
    stated = sorted({row.n_workers for row in rows if row.n_workers})
    if stated:
        notes.say(f"N={', '.join(map(str, stated))}, by the command that stands in the log")
    if any(row.n_workers is None for row in rows):
        notes.say(f"N is not in the logs of OSU: {ASKED}")
    if any(table.is_non_blocking for table, _ in found):
        notes.say(
            "non-blocking collectives beside a computation: the time of the communication alone is taken (Pure Comm.)"
        )
    return Log(text.path, "OSU", tuple(_numbered(found)), notes.remarks())


def _numbered(found: Sequence[tuple[OsuTable, Measurement]]) -> Iterator[Measurement]:
    """Yield the rows of collectives, each with the number of its table."""
    kept = [(table, row) for table, row in found if table.collective]
    keys = [
        TableKey(row.collective, row.n_workers, ("", ""), Condition(launch=table.launch), {row.message_bytes})
        for table, row in kept
    ]
    for (table, row), number in zip(kept, numbers_of(keys), strict=True):
        yield replace(row, table=number, condition=str(Condition(launch=table.launch)))


def _rows(text: LogText) -> Iterator[tuple[OsuTable, Measurement]]:
    table, n_workers, launch, place = OsuTable("", "all_reduce", 0), None, "", 0
    for number, raw in text.lines():
        line = without_launcher(raw)
        command, title, row = _COMMAND.search(line), _TITLE.search(line), _ROW.match(line)
        if command:
            n_workers, launch = int(command[1]), line.strip()
        if title:
            bare = _NON_BLOCKING.sub("", title[1])
            table = OsuTable(title[1], collective_name(bare), number, n_workers, launch, bare != title[1])
            n_workers, launch, place = None, "", 0
        elif _COLUMNS.search(line):
            before = _PURE.search(line)
            place = before[0].count("(") if before else 0
            table = table._replace(is_non_blocking=table.is_non_blocking or bool(before))
        elif row and place < len(times := row[2].split()):
            whole = int(row[1]) * ((table.n_workers or 1) if table.collective in PER_RANK else 1)
            yield (
                table,
                Measurement(
                    message_bytes=whole,
                    time_s=float(times[place]) * 1e-6,
                    n_workers=table.n_workers,
                    collective=table.collective,
                    wrong="validation failed" if (row[3] or "").lower() == "fail" else "",
                    line=number,
                ),
            )


def _no_rows(text: LogText, others: Sequence[OsuTable]) -> Fault:
    if not others:
        return Fault("a log of the OSU benchmarks without a row", file=str(text.path))
    first, right = others[0], "osu_allreduce, or another collective"
    return Fault(f"OSU's {first.title} is no collective", file=str(text.path), line=first.line, right=right)
