"""JSON: what nccl-tests writes with ``-J``, rccl-tests with ``-Z json``, and lists of plain rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.csv_table import Columns, read_rows
from ringnet.formats.logs.evidence import TableEvidence, answers_of
from ringnet.formats.logs.log import Log, LogText, Measurement, Notes, collective_name
from ringnet.formats.logs.nccl_tests import forced_only

_ROW = re.compile(r'\{\s*"(?:size|numCycle|name)"\s*:')
_FORCED = re.compile(r"NCCL_(ALGO|PROTO)=(\S+)")

Report: TypeAlias = Mapping[str, Any]


def is_json(text: LogText) -> bool:
    """Tell whether the file starts as JSON does, and its first bracket is not a launcher's."""
    head = text.content()[:4096].lstrip()
    return bool(re.match(r'\{\s*"|\[\s*(?:\{|$)', head))


def read_json(text: LogText) -> Log:
    """Read a report; one that was cut off as far as it goes.

    Raises
    ------
    InputError
        It holds no measurement.
    """
    notes = Notes()
    report, rows = _parts(text, notes)
    measured = [row for row in rows if isinstance(row, Mapping)]
    is_nccl = any(_is_nccl(row) for row in measured)
    found = _measurements(report, measured, notes) if is_nccl else _plain_rows(measured, notes, text)
    if not found:
        right = "the report of nccl-tests -J, of rccl-tests -Z json, or a list of rows"
        raise InputError(Fault("the JSON holds no measurements", file=str(text.path), right=right))
    devices = sorted({str(device.get("device_info", "")) for device in _devices(report)} - {""})
    return Log(text.path, "nccl-tests JSON" if is_nccl else "JSON", tuple(found), notes.remarks(), tuple(devices))


def _parts(text: LogText, notes: Notes) -> tuple[Report, list[Any]]:
    """Return the report and its rows; where it is not whole, the rows that are."""
    content = text.content()
    try:
        report = json.loads(content)
    except (ValueError, RecursionError):
        notes.say("the JSON is not one whole document: every row that is whole is used")
        return _recovered(content), list(_whole_rows(content))
    if isinstance(report, Mapping):
        rows = report.get("results", report.get("rows", [report]))
        return report, rows if isinstance(rows, list) else []
    return {}, report if isinstance(report, list) else []


def _whole_rows(content: str) -> Iterator[Any]:
    decoder, end = json.JSONDecoder(), 0
    for match in _ROW.finditer(content):
        if match.start() >= end:
            try:
                row, end = decoder.raw_decode(content, match.start())
            except (ValueError, RecursionError):
                continue
            yield row


def _recovered(content: str) -> Report:
    """Return what a cut-off report says before its rows: arguments, environment, configuration."""
    found: dict[str, Any] = {}
    for key in ("args", "env", "config"):
        match = re.search(rf'"{key}"\s*:\s*(?=[\[{{])', content)
        if match:
            try:
                found[key], _ = json.JSONDecoder().raw_decode(content, match.end())
            except (ValueError, RecursionError):
                continue
    return found


def _is_nccl(row: Any) -> bool:
    return isinstance(row, Mapping) and "size" in row and ("out_of_place" in row or "in_place" in row)


def _devices(report: Report) -> list[Mapping[str, Any]]:
    config = report.get("config")
    devices = config.get("devices") if isinstance(config, Mapping) else report.get("devices")
    return [device for device in devices if isinstance(device, Mapping)] if isinstance(devices, list) else []


def _measurements(report: Report, rows: list[Mapping[str, Any]], notes: Notes) -> list[Measurement]:
    """Return the rows of nccl-tests, with what the report says of all of them."""
    devices = _devices(report)
    ranks, hosts = ({device.get(key) for device in devices} for key in ("rank", "hostname"))
    # Without MPI the report lists one device of a process that drives several: not all of them, then.
    config = report.get("config")
    per_process = config.get("ngpus", 1) if isinstance(config, Mapping) else 1
    are_all_listed = len(ranks) > 1 or (len(ranks) == 1 and per_process == 1)
    args = report.get("args")
    program = str(args[0]) if isinstance(args, list) and args else ""
    bandwidths = [_bandwidths(row) for row in rows if _is_nccl(row)]
    evidence = TableEvidence(
        collective_name(program.rpartition("/")[2].removesuffix("_mpi")),
        len(ranks) if are_all_listed else None,
        reduces=any(redop not in ("", "none") for _, _, redop in bandwidths),
        pairs=tuple((alg, bus) for alg, bus, _ in bandwidths if alg and bus),
    )
    ((collective, n_workers, is_n_sure),) = answers_of([evidence], notes)
    env = report.get("env")
    forced = dict(_FORCED.findall("\n".join(map(str, env)))) if isinstance(env, list) else {}
    common: dict[str, Any] = {
        "collective": collective,
        "n_workers": n_workers,
        "is_n_sure": is_n_sure,
        "n_nodes": len(hosts) if len(ranks) == n_workers else None,
        "algorithm": forced_only(forced.get("ALGO", "")),
        "protocol": forced_only(forced.get("PROTO", "")),
    }
    found = [_measurement(row, notes, place) for place, row in enumerate(rows, 1) if _is_nccl(row)]
    return [replace(row, **common) for row in found if row is not None]


def _measurement(row: Mapping[str, Any], notes: Notes, place: int) -> Measurement | None:
    first = _half(row, "out_of_place", "in_place")
    time, in_place = (_real(half.get("time", half.get("cpu_time"))) for half in (first, _half(row, "in_place")))
    size = _real(row.get("size"))
    if not time or size is None or time < 0 or size < 0:
        notes.say(f"row {place} has no size or no time: left out")
        return None
    algbw, busbw, redop = _bandwidths(row)
    wrong = _real(first.get("nwrong"))
    return Measurement(
        message_bytes=int(size),
        time_s=time * 1e-6,
        in_place_s=in_place * 1e-6 if in_place else None,
        dtype=str(row.get("type") or ""),
        redop=redop,
        algbw_Bps=None if algbw is None else algbw * 1e9,
        busbw_Bps=None if busbw is None else busbw * 1e9,
        wrong=f"{wrong:g}" if wrong else "",
    )


def _bandwidths(row: Mapping[str, Any]) -> tuple[float | None, float | None, str]:
    """Return algbw and busbw in GB/s as printed, and the reduction of a row."""
    half = _half(row, "out_of_place", "in_place")
    return _real(half.get("alg_bw")), _real(half.get("bus_bw")), str(row.get("redop") or "")


def _half(row: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((row[name] for name in names if isinstance(row.get(name), Mapping)), {})


def _real(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _plain_rows(rows: list[Mapping[str, Any]], notes: Notes, text: LogText) -> list[Measurement]:
    columns = Columns(list(rows[0]) if rows else [])
    if not columns.is_log:
        return []
    out = [row for row in rows if str(columns.get(row, "in_place") or 0).lower() not in ("1", "true")]
    if len(out) < len(rows):
        notes.say(f"{len(rows) - len(out)} rows measured in place: left out, those out of place are taken")
    if columns.unit is None and "algBw" in rows[0]:
        columns.unit = "us"  # rccl-tests names none and means microseconds
    return read_rows(enumerate(out or rows, 1), columns, notes, str(text.path))
