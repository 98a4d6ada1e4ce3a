"""``ringnet logs``: what a log holds, as a table, and everything wrong with it as notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table
from ringnet.errors import Fault, InputError
from ringnet.formats.logs import Log, Measurement, read_log
from ringnet.formats.logs.samples import complete
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


def command(
    files: options.Logs,
    workers: options.WorkersOfLogs = None,
    nodes: options.NodesOfLogs = None,
    as_json: options.Json = False,
) -> int:
    """Show what logs of benchmarks hold, and what is wrong with them."""
    found, faults = read_logs(files, workers, nodes)
    if as_json:
        refused = [{"file": fault.file, "error": str(fault)} for fault in faults]
        print_json({"logs": [_document(log) for log in found], "refused": refused})
    elif found:
        print_table([_HEADS, *(row for log in found for row in _rows(log))])
        say_remarks(found)
    options.refuse(faults)  # the files that are no logs
    return 0


def say_remarks(logs: Sequence[Log]) -> None:
    """Say on standard error what was recovered, assumed or left out."""
    note(*(f"{log.path.name}: {remark}" for log in logs for remark in log.remarks))


def read_logs(
    files: Sequence[Path], workers: Sequence[str] | None, nodes: Sequence[str] | None
) -> tuple[list[Log], list[Fault]]:
    """Read every log once; return those that could be read, and the faults of the others.

    A log of the same content as one before it would count twice: it is left out, with a note.
    """
    given = (
        given_numbers(workers or (), "--workers", files),
        given_numbers(nodes or (), "--nodes", files),
    )
    found: list[Log] = []
    faults: list[Fault] = []
    for path in files:
        try:
            found.append(complete(read_log(path), *given))
        except InputError as error:
            faults += error.faults
    return _once(found), faults


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
    known = {path.name for path in files} | {str(path) for path in files}
    # The name of a file may have a comma in it.
    texts = [
        part for text in texts for part in ([text] if text.rpartition("=")[0] in known else text.split(","))
    ]
    found: dict[str, int] = {}
    for text in map(str.strip, texts):
        file, _, number = text.rpartition("=")
        if not number.isdecimal() or not 0 < int(number) <= 2**20 or (file and file not in known):
            message = "a number of workers or nodes is wanted, for all or for one file"
            right = f"{option} 8, or {option} {files[0].name}=8"
            raise InputError(Fault(message, option, value=text, right=right))
        found[file] = int(number)
    return found


def _series(log: Log) -> dict[tuple[str, int | None, int | None], list[Measurement]]:
    found: dict[tuple[str, int | None, int | None], list[Measurement]] = {}
    for row in log.measurements:
        found.setdefault((row.collective, row.n_workers, row.n_nodes), []).append(row)
    return found


def _rows(log: Log) -> list[tuple[str, ...]]:
    return [
        (log.path.name, log.tool, collective, str(n or "?"), str(m or "?"), *_facts(rows))
        for (collective, n, m), rows in _series(log).items()
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
                "collective": collective,
                "n_workers": n,
                "n_nodes": m,
                "n_points": len(rows),
                "rows": [_row(row) for row in rows],
            }
            for (collective, n, m), rows in _series(log).items()
        ],
    }


def _row(row: Measurement) -> dict[str, Any]:
    return {
        "message_bytes": row.message_bytes,
        "time_s": row.time_s,
        "in_place_s": row.in_place_s,
        "algbw_Bps": row.algbw_Bps,
        "busbw_Bps": row.busbw_Bps,
        "dtype": row.dtype,
        "algorithm": row.algorithm,
        "protocol": row.protocol,
        "is_outlier": row.is_outlier,
        "wrong": row.wrong,
        "line": row.line,
    }
