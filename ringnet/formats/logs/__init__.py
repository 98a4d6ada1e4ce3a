"""Logs of collective benchmarks: a new format is one file with two functions, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.csv_table import is_csv, read_csv
from ringnet.formats.logs.gloo import is_gloo, read_gloo
from ringnet.formats.logs.json_report import is_json, read_json
from ringnet.formats.logs.log import MOST_BYTES, Log, LogText, Measurement, Remark, open_text
from ringnet.formats.logs.nccl_tests import is_nccl, read_nccl
from ringnet.formats.logs.osu import is_osu, read_osu
from ringnet.formats.logs.tables import MOST_TABLES
from ringnet.units import format_bytes

__all__ = ["FORMATS", "Log", "Measurement", "Remark", "flag_outliers", "read_log"]


class LogFormat(NamedTuple):
    """A line of the registry: whether a text is of this format, and how it is read."""

    accepts: Callable[[LogText], bool]
    read: Callable[[LogText], Log]


#: The order matters: a row of nccl-tests is found in any text, a CSV needs only a line of names.
FORMATS: dict[str, LogFormat] = {
    "JSON": LogFormat(is_json, read_json),
    "OSU": LogFormat(is_osu, read_osu),
    "gloo": LogFormat(is_gloo, read_gloo),
    "nccl-tests": LogFormat(is_nccl, read_nccl),
    "CSV": LogFormat(is_csv, read_csv),
}
#: What other tools' logs are, by a word in them.
_OTHER_TOOLS = {
    "ib_write_bw": "perftest",
    "ib_send_lat": "perftest",
    "RDMA_Write": "perftest",
    "Intel(R) MPI Benchmarks": "the Intel MPI Benchmarks",
    "[ ID] Interval": "iperf",
    "iperf": "iperf",
    "nvbandwidth": "nvbandwidth",
    "NCCL INFO": "NCCL itself, without a benchmark's table",
}
_KNOWN = (
    "what nccl-tests, rccl-tests or nccom-test print, their JSON, an OSU collective, gloo's benchmark, or CSV with "
    "sizes and times"
)


def read_log(path: Path | str, *, in_place: bool = False) -> Log:
    """Read a log of any known format.

    Parameters
    ----------
    path : path
    in_place : bool
        Take the times measured in place, where there are any, for those out of place.

    Returns
    -------
    Log
        With outliers marked, and everything that was found wrong among its remarks.

    Raises
    ------
    InputError
        It is none, or nothing in it was measured; says what it is instead, if that is known.
    """
    text = open_text(Path(path))
    found = next((known for known in FORMATS.values() if known.accepts(text)), None)
    if found is None:
        raise InputError(_not_known(text))
    log = found.read(text)
    if any(row.table > MOST_TABLES for row in log.measurements):
        message = f"over {MOST_TABLES} tables are in it"
        raise InputError(Fault(message, file=str(text.path), right="a file of the runs that matter"))
    measured = [_in_place(row) for row in log.measurements] if in_place else log.measurements
    rows = flag_outliers(measured)
    remarks = (*log.remarks, *_remarks_on(rows, text))
    return replace(log, measurements=tuple(rows), remarks=remarks, sha256=text.sha256())


def _in_place(row: Measurement) -> Measurement:
    return replace(row, time_s=row.in_place_s, is_in_place=True) if row.in_place_s else row


def _not_known(text: LogText) -> Fault:
    head = text.content()[:65536]
    tool = next((name for word, name in _OTHER_TOOLS.items() if word in head), "")
    what = f"this is a log of {tool}" if tool else "no table of a benchmark that is known is in it"
    if text.is_cut:
        what += f" (the first {format_bytes(MOST_BYTES)} of {format_bytes(text.n_bytes)} were read)"
    return Fault(what, file=str(text.path), right=_KNOWN)


def _remarks_on(rows: Sequence[Measurement], text: LogText) -> Iterator[Remark]:
    """Yield what is to be said of a log of any format."""
    empty = [row for row in rows if not row.message_bytes]
    if empty:
        yield Remark(f"{len(empty)} row(s) of zero bytes: they move nothing, and no fit uses them", empty[0].line)
    firsts = {(row.table, row.collective): row for row in reversed([row for row in rows if row.message_bytes])}
    for row in rows:
        is_first = firsts.get((row.table, row.collective)) is row
        what = f"{'a cold start' if is_first else 'an outlier'} at {format_bytes(row.message_bytes)}"
        if row.is_outlier:
            yield Remark(f"{what}: no fit uses it", row.line)
        if row.is_rescued:
            yield Remark(f"{what}: the time in place is taken, which is like those beside it", row.line)
        if row.wrong:
            yield Remark(f"wrong values at {format_bytes(row.message_bytes)}: {row.wrong}", row.line)
    if text.is_cut:
        size = format_bytes(text.n_bytes)
        yield Remark(f"the file has {size}: only the first {format_bytes(MOST_BYTES)} are read")


#: A time above so many times those of the sizes on either side is an outlier.
_OUTLIER = 1.5


def flag_outliers(rows: Sequence[Measurement]) -> list[Measurement]:
    """Mark the rows whose time is far above those of the next smaller and the next larger size.

    The largest size has none above it and is never marked; only rows of one series are compared. Where the time in
    place is like those of the neighbours, it is taken, and the row is of use.

    Parameters
    ----------
    rows : sequence of Measurement
        In order of size within each series.
    """
    series: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(rows):
        series.setdefault((row.table, row.collective, row.n_workers, row.n_nodes, row.dtype), []).append(place)
    flagged = list(rows)
    for places in series.values():
        for at, place in enumerate(places):
            before, after = places[max(at - 1, 0) : at], places[at + 1 : at + 2]
            flagged[place] = _flagged(rows[place], [rows[one] for one in before], [rows[one] for one in after])
    return flagged


def _flagged(row: Measurement, before: Sequence[Measurement], after: Sequence[Measurement]) -> Measurement:
    """Return a row, marked if it is an outlier beside those before and after it."""
    beside = (*before, *after)
    sizes = [one.message_bytes for one in (*before, row, *after)]
    most_s = _OUTLIER * max((one.time_s for one in beside), default=0.0)
    if not after or sizes != sorted(sizes) or row.time_s <= most_s:
        return row
    if row.in_place_s and row.in_place_s <= most_s and not row.is_in_place:
        return replace(row, time_s=row.in_place_s, is_in_place=True, is_rescued=True)
    return replace(row, is_outlier=True)
