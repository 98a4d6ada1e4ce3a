"""Logs of collective benchmarks: a new format is one file with two functions, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.csvlog import is_csv, read_csv
from ringnet.formats.logs.json_log import is_json, read_json
from ringnet.formats.logs.log import Log, Measurement, Remark, flag_outliers
from ringnet.formats.logs.nccl import is_nccl, read_nccl
from ringnet.formats.logs.osu import is_osu, read_osu
from ringnet.formats.logs.text import MOST_BYTES, Text, open_text
from ringnet.units import format_bytes

__all__ = ["FORMATS", "Log", "Measurement", "Remark", "read_log"]


class Format(NamedTuple):
    """A line of the registry: whether a text is of this format, and how it is read."""

    accepts: Callable[[Text], bool]
    read: Callable[[Text], Log]


#: The order matters: a row of nccl-tests is found in any text, a CSV needs only a line of names.
FORMATS: dict[str, Format] = {
    "JSON": Format(is_json, read_json),
    "OSU": Format(lambda text: is_osu(text.lines()), read_osu),
    "nccl-tests": Format(lambda text: is_nccl(text.lines()), read_nccl),
    "CSV": Format(is_csv, read_csv),
}
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
_KNOWN = "what nccl-tests or rccl-tests print, their JSON, an OSU collective, or CSV with sizes and times"


def read_log(path: Path | str) -> Log:
    """Read a log of any known format.

    Parameters
    ----------
    path : path

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
    chosen = next((form for form in FORMATS.values() if form.accepts(text)), None)
    if chosen is None:
        raise InputError(_not_known(text))
    log = chosen.read(text)
    rows = flag_outliers(log.measurements)
    return replace(
        log, measurements=tuple(rows), remarks=(*log.remarks, *_about(rows, text)), sha256=text.sha256()
    )


def _not_known(text: Text) -> Fault:
    head = text.content()[:65536]
    tool = next((name for word, name in _OTHER_TOOLS.items() if word in head), "")
    what = f"this is a log of {tool}" if tool else "no table of a benchmark that is known is in it"
    read = (
        f" (the first {format_bytes(MOST_BYTES)} of {format_bytes(text.n_bytes)} were read)"
        if text.is_cut
        else ""
    )
    return Fault(what + read, file=str(text.path), right=_KNOWN)


def _about(rows: list[Measurement], text: Text) -> list[Remark]:
    """Return what is to be said of a log of any format."""
    empty = [row for row in rows if not row.message_bytes]
    said = (
        [Remark(f"{len(empty)} row(s) of zero bytes: they move nothing, and no fit uses them", empty[0].line)]
        if empty
        else []
    )
    for row in rows:
        if row.is_outlier:
            said.append(Remark(f"an outlier at {format_bytes(row.message_bytes)}: no fit uses it", row.line))
        if row.wrong:
            said.append(Remark(f"wrong values at {format_bytes(row.message_bytes)}: {row.wrong}", row.line))
    if text.is_cut:
        size = format_bytes(text.n_bytes)
        said.append(Remark(f"the file has {size}: only the first {format_bytes(MOST_BYTES)} are read"))
    return said
