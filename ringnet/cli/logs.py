"""``ringnet logs``: what a log holds, as a table, and everything wrong with it as notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table
from ringnet.errors import Fault, InputError
from ringnet.formats.logs import Log, Measurement, read_log
from ringnet.formats.logs.samples import complete
from ringnet.formats.logs.tables import chosen, tables_of
from ringnet.units import format_bytes, format_rate, format_seconds

EXAMPLE = "ringnet logs run-8.txt run-16.txt"

_HEADS = (
    "log",
    "format",
    "collective",
    "N",
    "nodes",
    "type",
    "rows",
    "sizes",
    "times",
    "in place",
    "best busbw",
    "forced",
)

#: Of each row, for a program.
_TOLD_OF_ROWS = (
    "message_bytes", "time_s", "in_place_s", "algbw_Bps", "busbw_Bps", "dtype", "algorithm", "protocol",
    "is_outlier", "is_in_place", "wrong", "line",
)  # fmt: skip


def command(
    files: options.Logs,
    workers: options.WorkersOfLogs = None,
    nodes: options.NodesOfLogs = None,
    tables: options.TablesOfLogs = None,
    in_place: options.InPlace = False,
    as_json: options.Json = False,
) -> int:
    """Show what logs of benchmarks hold, and what is wrong with them."""
    found, faults = read_logs(files, LogOptions(workers, nodes, tables, in_place))
    if as_json:
        refused = [{"file": fault.file, "error": str(fault)} for fault in faults]
        print_json({"logs": [_document(log) for log in found], "refused": refused})
    elif found:
        are_several = any(row.table > 1 for log in found for row in log.measurements)
        heads = (_HEADS[0], "table", *_HEADS[1:], "condition") if are_several else _HEADS
        print_table([heads, *(row for log in found for row in _rows(log, are_several))])
        say_remarks(found)
    options.refuse(faults)  # the files that are no logs
    return 0


def say_remarks(logs: Sequence[Log]) -> None:
    """Say on standard error what was recovered, assumed or left out."""
    note(*(f"{log.path.name}: {remark}" for log in logs for remark in log.remarks))


class LogOptions(NamedTuple):
    """What the options of a command say of logs: N and nodes where they say none, the tables wanted, which times."""

    workers: Sequence[str] | None = None
    nodes: Sequence[str] | None = None
    tables: Sequence[str] | None = None
    in_place: bool = False


def read_logs(files: Sequence[Path], asked: LogOptions) -> tuple[list[Log], list[Fault]]:
    """Read every log once; return those that could be read, and the faults of the others.

    A log of the same content as one before it would count twice: it is left out, with a note.
    """
    given = (
        given_numbers(asked.workers or (), "--workers", files),
        given_numbers(asked.nodes or (), "--nodes", files),
    )
    wanted = _wanted_tables(asked.tables or (), files)
    found: list[Log] = []
    faults: list[Fault] = []
    for path in files:
        try:
            log = complete(read_log(path, in_place=asked.in_place), *given)
            found.append(_with_tables(log, wanted.get(path.name, wanted.get(str(path), wanted.get("")))))
        except InputError as error:
            faults += error.faults
    return _once(found), faults


def _wanted_tables(texts: Sequence[str], files: Sequence[Path]) -> dict[str, str]:
    """Return the table that is wanted of each file; the empty name is for every file."""
    known = {path.name for path in files} | {str(path) for path in files}
    parted = [text.rpartition("=") for text in texts]
    return {
        file if file in known else "": table if file in known else text
        for text, (file, _, table) in zip(texts, parted, strict=True)
    }


def _with_tables(log: Log, wanted: str | None) -> Log:
    """Return a log with the table that is wanted alone; `InputError` where it has none such."""
    if wanted is None:
        return log
    rows = chosen(log.measurements, wanted)
    if not rows:
        tables = tables_of(log.measurements)
        conditions = {number: rows[0].condition for number, rows in tables.items()}
        right = ", ".join(f"{number} ({one})" if one else f"{number}" for number, one in conditions.items())
        message = "the log has no such table"
        raise InputError(Fault(message, "--table", file=str(log.path), value=wanted, right=right))
    return replace(log, measurements=rows)


def _once(logs: Sequence[Log]) -> list[Log]:
    first: dict[str, Log] = {}
    for log in logs:
        before = first.setdefault(log.sha256, log)
        if before is not log:
            note(f"{log.path} is left out: its content is that of {before.path}, and would count twice")
    return list(first.values())


def given_numbers(texts: Sequence[str], option: str, files: Sequence[Path]) -> dict[str, int]:
    """Read ``8`` or ``file=8``, with commas between them or each in an option of its own.

    >>> given_numbers(["8,a.txt=16"], "--workers", [Path("a.txt")])
    {'': 8, 'a.txt': 16}
    """
    known = {path.name for path in files} | {str(path) for path in files} | {""}
    # The name of a file may have a comma in it.
    texts = [part for text in texts for part in ([text] if text.rpartition("=")[0] in known else text.split(","))]
    found: dict[str, int] = {}
    for text in map(str.strip, texts):
        file, _, number = text.rpartition("=")
        name, _, table = (file, "", "") if file in known else file.rpartition("#")
        is_table = file in known or table.isdecimal()
        if not number.isdecimal() or not 0 < int(number) <= 2**20 or name not in known or not is_table:
            message = "a number of workers or nodes is wanted, for all, for one file, or for one of its tables"
            right = f"{option} 8, {option} {files[0].name}=8, or {option} {files[0].name}#2=8"
            raise InputError(Fault(message, option, value=text, right=right))
        found[file] = int(number)
    return found


def _series(log: Log) -> dict[tuple[int, str, int | None, int | None], list[Measurement]]:
    found: dict[tuple[int, str, int | None, int | None], list[Measurement]] = {}
    for row in log.measurements:
        found.setdefault((row.table, row.collective, row.n_workers, row.n_nodes), []).append(row)
    return found


def _rows(log: Log, are_several: bool) -> list[tuple[str, ...]]:
    """Return a row a series; where a log has several tables, with their numbers and what is said of each."""
    return [
        (
            log.path.name,
            *([str(table)] if are_several else []),
            log.tool,
            collective or "?",
            str(n or "?"),
            str(m or "?"),
            *_facts(rows),
            *([rows[0].condition] if are_several else []),
        )
        for (table, collective, n, m), rows in _series(log).items()
    ]


def _facts(rows: Sequence[Measurement]) -> tuple[str, ...]:
    sizes, times = [row.message_bytes for row in rows], [row.time_s for row in rows]
    best = max((row.busbw_Bps or 0.0 for row in rows), default=0.0)
    forced = sorted({" ".join(filter(None, (row.algorithm, row.protocol))) for row in rows} - {""})
    return (
        ", ".join(sorted({row.dtype for row in rows} - {""})),
        str(len(rows)),
        f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))}",
        f"{format_seconds(min(times))} to {format_seconds(max(times))}",
        "too" if any(row.in_place_s for row in rows) else "",
        format_rate(best) if best else "",
        ", ".join(forced),
    )


def _document(log: Log) -> Mapping[str, Any]:
    return {
        "file": str(log.path),
        "format": log.tool,
        "sha256": log.sha256,
        "devices": list(log.devices),
        "remarks": [str(remark) for remark in log.remarks],
        "series": [
            {
                "table": table,
                "condition": rows[0].condition,
                "collective": collective,
                "n_workers": n,
                "n_nodes": m,
                "n_points": len(rows),
                "rows": [{name: getattr(row, name) for name in _TOLD_OF_ROWS} for row in rows],
            }
            for (table, collective, n, m), rows in _series(log).items()
        ],
    }
