"""JSON: what nccl-tests writes with ``-J``, rccl-tests with ``-Z json``, and lists of plain rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.deduce import settled
from ringnet.formats.logs.log import Log, Measurement, Notes, collective_name
from ringnet.formats.logs.nccl import forced_only
from ringnet.formats.logs.table import Columns, read_rows
from ringnet.formats.logs.text import Text

_ROW = re.compile(r'\{\s*"(?:size|numCycle|name)"\s*:')
_FORCED = re.compile(r"NCCL_(ALGO|PROTO)=(\S+)")

Document = Mapping[str, Any]


def is_json(text: Text) -> bool:
    """Tell whether the file starts as JSON does, and its first bracket is not a launcher's."""
    head = text.content()[:4096].lstrip()
    return bool(re.match(r'\{\s*"|\[\s*(?:\{|$)', head))


def read_json(text: Text) -> Log:
    """Read a report; one that was cut off as far as it goes.

    Raises
    ------
    InputError
        It holds no measurement.
    """
    notes = Notes()
    document, rows = _parts(text, notes)
    measured = [row for row in rows if isinstance(row, Mapping)]
    found = (
        _nccl(document, measured, notes)
        if any(_is_nccl(row) for row in measured)
        else _plain(measured, notes, text)
    )
    if not found:
        right = "the report of nccl-tests -J, of rccl-tests -Z json, or a list of rows"
        raise InputError(Fault("the JSON holds no measurements", file=str(text.path), right=right))
    tool = "nccl-tests JSON" if any(_is_nccl(row) for row in measured) else "JSON"
    devices = sorted({str(device.get("device_info", "")) for device in _devices(document)} - {""})
    return Log(text.path, tool, tuple(found), notes.sayings(), tuple(devices))


def _parts(text: Text, notes: Notes) -> tuple[Document, list[Any]]:
    """Return the report and its rows; where it is not whole, the rows that are."""
    content = text.content()
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        notes.say("the JSON is not one whole document: every row that is whole is used")
        return _recovered(content), list(_whole_rows(content))
    if isinstance(document, Mapping):
        rows = document.get("results", document.get("rows", [document]))
        return document, rows if isinstance(rows, list) else []
    return {}, document if isinstance(document, list) else []


def _whole_rows(content: str) -> Iterator[Any]:
    decoder, end = json.JSONDecoder(), 0
    for match in _ROW.finditer(content):
        if match.start() >= end:
            try:
                row, end = decoder.raw_decode(content, match.start())
            except (ValueError, RecursionError):
                continue
            yield row


def _recovered(content: str) -> Document:
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


def _devices(document: Document) -> list[Mapping[str, Any]]:
    config = document.get("config")
    devices = config.get("devices") if isinstance(config, Mapping) else document.get("devices")
    return [device for device in devices if isinstance(device, Mapping)] if isinstance(devices, list) else []


def _nccl(document: Document, rows: list[Mapping[str, Any]], notes: Notes) -> list[Measurement]:
    devices = _devices(document)
    printed = [_printed(row) for row in rows if _is_nccl(row)]
    ranks = {device.get("rank") for device in devices}
    collective, n_workers = settled(
        _named(document), len(ranks) if _all_listed(document, ranks) else None, printed, notes
    )
    hosts = {device.get("hostname") for device in devices}
    made = [_row(row, notes, place) for place, row in enumerate(rows, 1) if _is_nccl(row)]
    n_nodes = len(hosts) if len(ranks) == n_workers else None
    algorithm, protocol = _forced(document)
    common = Common(collective, n_workers, n_nodes, algorithm, protocol)
    return [common.put_into(row) for row in made if row is not None]


class Common(NamedTuple):
    """What a report says of all its rows."""

    collective: str
    n_workers: int | None
    n_nodes: int | None
    algorithm: str
    protocol: str

    def put_into(self, row: Measurement) -> Measurement:
        """Return the row with it."""
        return replace(
            row,
            collective=self.collective,
            n_workers=self.n_workers,
            n_nodes=self.n_nodes,
            algorithm=self.algorithm,
            protocol=self.protocol,
        )


def _all_listed(document: Document, ranks: set[Any]) -> bool:
    """Without MPI the report lists one device of a process that drives several: not all of them, then."""
    config = document.get("config")
    per_process = config.get("ngpus", 1) if isinstance(config, Mapping) else 1
    return len(ranks) > 1 or (len(ranks) == 1 and per_process == 1)


def _named(document: Document) -> str:
    args = document.get("args")
    program = str(args[0]) if isinstance(args, list) and args else ""
    return collective_name(program.rpartition("/")[2].removesuffix("_mpi"))


def _forced(document: Document) -> tuple[str, str]:
    env = document.get("env")
    found = dict(_FORCED.findall("\n".join(map(str, env)))) if isinstance(env, list) else {}
    return forced_only(found.get("ALGO", "")), forced_only(found.get("PROTO", ""))


def _half(row: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((row[name] for name in names if isinstance(row.get(name), Mapping)), {})


def _printed(row: Mapping[str, Any]) -> tuple[float | None, float | None, str]:
    half = _half(row, "out_of_place", "in_place")
    return _real(half.get("alg_bw")), _real(half.get("bus_bw")), str(row.get("redop") or "")


def _row(row: Mapping[str, Any], notes: Notes, place: int) -> Measurement | None:
    first = _half(row, "out_of_place", "in_place")
    time, in_place = (
        _real(half.get("time", half.get("cpu_time"))) for half in (first, _half(row, "in_place"))
    )
    size, algbw, busbw = _real(row.get("size")), _real(first.get("alg_bw")), _real(first.get("bus_bw"))
    if not time or size is None or time < 0 or size < 0:
        notes.say(f"row {place} has no size or no time: left out")
        return None
    wrong = _real(first.get("nwrong"))
    return Measurement(
        message_bytes=int(size),
        time_s=time * 1e-6,
        in_place_s=in_place * 1e-6 if in_place else None,
        dtype=str(row.get("type") or ""),
        redop=str(row.get("redop") or ""),
        algbw_Bps=None if algbw is None else algbw * 1e9,
        busbw_Bps=None if busbw is None else busbw * 1e9,
        wrong=f"{wrong:g}" if wrong else "",
    )


def _real(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _plain(rows: list[Mapping[str, Any]], notes: Notes, text: Text) -> list[Measurement]:
    columns = Columns(list(rows[0]) if rows else [])
    if not columns.is_log:
        return []
    out = [row for row in rows if str(columns.get(row, "in_place") or 0).lower() not in ("1", "true")]
    if len(out) < len(rows):
        notes.say(f"{len(rows) - len(out)} rows measured in place: left out, those out of place are taken")
    if columns.unit is None and "algBw" in rows[0]:
        columns.unit = "us"  # rccl-tests names none and means microseconds
    return read_rows(enumerate(out or rows, 1), columns, notes, str(text.path))
