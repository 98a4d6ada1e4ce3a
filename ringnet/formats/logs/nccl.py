"""What nccl-tests and rccl-tests print, 2016 to today, as launchers and libraries leave it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.deduce import settled, time_unit
from ringnet.formats.logs.log import Log, Measurement, Notes, collective_name
from ringnet.formats.logs.nccl_rows import (
    Body,
    Head,
    Layout,
    bodies,
    is_continuation,
    layout_of,
    leading_numbers,
    split_row,
    without_launcher,
)
from ringnet.formats.logs.text import Text

_TEST = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv)_perf(?:_mpi)?\b"
)
_STARTS = re.compile(r"Collective test starting: (\w+)")
_ENDS = re.compile(r"Avg bus bandwidth|Collective test concluded")
_OPTIONS = re.compile(r"\bnThread \d+ nGpus \d+")
_RANK = re.compile(
    r"#?\s*\bRank\s+(\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+(\d+)\s+)?(?:on\s+(\S+)|uses)\s+device\s+\d+\s+(?:\[[^\]]*\]\s*)?(.*)"
)
_N_RANKS = re.compile(r"NCCL INFO.*\bnranks (\d+)\b")
_FORCED = re.compile(r"\bNCCL_(ALGO|PROTO)(?:\s*=\s*|\s+set by environment to\s+)[\"']?(\^?[A-Za-z0-9,]+)")
_ELIDED = re.compile(r"^\s*(?:\.\.\.|\u2026)\s*$")


class Row(NamedTuple):
    """A row as printed, times in the unit of its table."""

    head: Head
    out: Body
    in_place: Body | None
    line: int


@dataclass
class Section:
    """One table and what was printed before it."""

    collective: str = ""
    layout: Layout | None = None
    unit: str = ""
    rows: list[Row] = field(default_factory=list)
    ranks: list[tuple[int, str, str]] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)
    n_ranks: set[int] = field(default_factory=set)
    forced: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False


def is_nccl(lines: Iterable[tuple[int, str]]) -> bool:
    """Tell whether there is a row or the heading of a table in it."""
    return any(split_row(without_launcher(line)) or layout_of(line) for _, line in lines)


def read_nccl(text: Text) -> Log:
    """Read the tables of a log.

    Raises
    ------
    InputError
        No table has a row that is whole; or every process of the launch was a world of its own.
    """
    notes = Notes()
    sections = [section for section in _sections(text.lines(), notes) if section.rows]
    if not sections:
        message = "there is a heading of nccl-tests, but no row that is whole"
        raise InputError(
            Fault(message, file=str(text.path), right="a log in which the benchmark came to its first size")
        )
    sound = [section for section in sections if not _why_broken(section)]
    if not sound:
        raise InputError(Fault(_why_broken(sections[0]), file=str(text.path), right=_RELAUNCH))
    for section in sections:
        if section not in sound:
            notes.say(f"a table is left out: {_why_broken(section)}", section.rows[0].line)
    rows = [row for section in sound for row in _measurements(section, notes)]
    if not rows:
        message, line = "no row has a time above zero: nothing was measured", sound[0].rows[0].line
        raise InputError(
            Fault(message, file=str(text.path), line=line, right="a log of a run that took some time")
        )
    devices = sorted(set().union(*(section.devices for section in sound)))
    return Log(text.path, "nccl-tests", tuple(rows), notes.sayings(), tuple(devices))


_RELAUNCH = "one world of all ranks: nccl-tests built with MPI=1 and started by the same MPI's mpirun"


def _sections(lines: Iterator[tuple[int, str]], notes: Notes) -> list[Section]:
    sections, waiting = [Section()], None
    for number, raw in lines:
        line = without_launcher(raw)
        if _begins(line, sections[-1]):
            sections.append(_next(sections[-1], is_same_run=layout_of(line) is not None))
        waiting = _read_line(sections[-1], number, line, waiting, notes)
    if waiting:
        notes.say("the last row is cut off: left out", waiting[2])
    if sections[-1].rows and not sections[-1].is_whole:
        notes.say(
            "the log ends before its table does: it is used as far as it goes", sections[-1].rows[-1].line
        )
    return sections


def _begins(line: str, section: Section) -> bool:
    """Tell whether a line belongs to the next run: it names a test, states options or heads a table anew."""
    if section.rows:
        return bool(_STARTS.search(line) or _OPTIONS.search(line) or layout_of(line))
    return False


def _next(before: Section, is_same_run: bool) -> Section:
    """Start a section; what was set for a whole job holds on, and for a heading printed again all but the rows."""
    if is_same_run:
        return replace(before, rows=[], is_whole=False)
    return Section(forced=dict(before.forced))


_Waiting = tuple[Head, str, int]


def _read_line(
    section: Section, number: int, line: str, waiting: _Waiting | None, notes: Notes
) -> _Waiting | None:
    """Take in a line; return the first half of a row that was cut in two, until its rest comes."""
    row = split_row(line)
    if row:
        return _read_row(section, number, *row, notes)
    if waiting:
        head, rest, first = waiting
        if is_continuation(line) and _add_row(section, first, head, f"{rest} {line}"):
            notes.say("a row was cut in two by something printed into it: put together again", first)
            return None
    _read_fact(section, number, line, notes)
    return waiting


def _read_row(section: Section, number: int, head: Head, rest: str, notes: Notes) -> _Waiting | None:
    if _add_row(section, number, head, rest):
        return None
    notes.say("a row without its times: left out unless its rest follows", number)
    return head, leading_numbers(rest), number


def _add_row(section: Section, number: int, head: Head, rest: str) -> bool:
    halves = bodies(rest, section.layout)
    if halves:
        section.rows.append(Row(head, halves[0], halves[1] if len(halves) > 1 else None, number))
    return bool(halves)


def _read_fact(section: Section, number: int, line: str, notes: Notes) -> None:
    section.layout = layout_of(line) or section.layout
    if section.layout and not section.unit and "GB/s" in line:
        section.unit = next((unit for unit in ("us", "ms") if f"({unit})" in line), "")
    if _ELIDED.match(line):
        notes.say("rows were left out by whoever kept this log", number)
    name = _STARTS.search(line) or _TEST.search(line)
    if name and not section.rows:
        section.collective = collective_name(name[1])
    for key, value in _FORCED.findall(line) if "NCCL_" in line else ():
        section.forced[key] = value
    _read_rank(section, line)
    section.is_whole |= bool(section.rows and _ENDS.search(line))


def _read_rank(section: Section, line: str) -> None:
    # Looked for before it is parsed: NCCL's own chatter can be a million lines.
    rank = _RANK.search(line) if "device" in line else None
    total = _N_RANKS.search(line) if "nranks" in line else None
    if rank and not section.rows:
        section.ranks.append((int(rank[1]), rank[3] or "", rank[2] or ""))
        section.devices.add(rank[4].strip())
    if total:
        section.n_ranks.add(int(total[1]))


def _why_broken(section: Section) -> str:
    """Say why no row of a section measured what it should; empty if nothing speaks against it."""
    moved = [row.out for row in section.rows if (row.out.algbw or 0.0) >= 0.1]  # noqa: PLR2004 -- GB/s, two digits
    if moved and all(body.busbw == 0.0 for body in moved):
        return "busbw is 0.00 in every row: each process ran alone, in a world of one rank, and moved nothing"
    firsts = [rank for rank in section.ranks if rank[0] == 0]
    if len(set(firsts)) > 1:
        return f"{len(firsts)} processes say they are rank 0: each ran alone, in a world of its own"
    if len(section.ranks) == 1 and not moved:
        return "there is a single rank: nothing was moved between workers"
    return ""


def _measurements(section: Section, notes: Notes) -> list[Measurement]:
    scale = time_unit(section.unit, [(row.head.size, row.out) for row in section.rows], notes)
    collective, n_workers = settled(
        section.collective,
        _listed(section, notes),
        [(row.out.algbw, row.out.busbw, row.head.redop) for row in section.rows],
        notes,
    )
    hosts = {host for _, host, _ in section.ranks if host}
    is_complete = bool(hosts) and len({rank for rank, _, _ in section.ranks}) == n_workers
    return [
        _measurement(row, scale, collective, n_workers, len(hosts) if is_complete else None, section.forced)
        for row in section.rows
        if _is_finite(row, notes)
    ]


def _listed(section: Section, notes: Notes) -> int | None:
    """Return N as the log states it: by its list of ranks, or by what NCCL says of its communicator."""
    listed = len({rank for rank, _, _ in section.ranks})
    stated = max(section.n_ranks, default=0)
    if listed and stated and listed != stated:
        notes.say(
            f"the list of ranks has {listed}, NCCL speaks of {stated}: {stated} is taken, the list may be cut"
        )
    return stated or listed or None


def _is_finite(row: Row, notes: Notes) -> bool:
    is_finite = 0.0 < row.out.time < float("inf")
    if not is_finite:
        notes.say(f"a time of {row.out.time:g}: left out", row.line)
    return is_finite


def _measurement(
    row: Row,
    scale: float,
    collective: str,
    n_workers: int | None,
    n_nodes: int | None,
    forced: dict[str, str],
) -> Measurement:
    giga = 1e9
    in_place = row.in_place.time if row.in_place and row.in_place.time > 0 else None
    return Measurement(
        message_bytes=row.head.size,
        time_s=row.out.time * scale,
        in_place_s=None if in_place is None else in_place * scale,
        n_workers=n_workers,
        n_nodes=n_nodes,
        collective=collective,
        dtype=row.head.dtype,
        redop=row.head.redop,
        algbw_Bps=None if row.out.algbw is None else row.out.algbw * giga,
        busbw_Bps=None if row.out.busbw is None else row.out.busbw * giga,
        algorithm=forced_only(forced.get("ALGO", "")),
        protocol=forced_only(forced.get("PROTO", "")),
        wrong=row.out.wrong,
        line=row.line,
    )


def forced_only(value: str) -> str:
    """Return a forced algorithm or protocol; a choice among several forces none.

    >>> forced_only("Ring"), forced_only("Ring,Tree"), forced_only("^NVLS")
    ('Ring', '', '')
    """
    return "" if "," in value or value.startswith("^") else value
