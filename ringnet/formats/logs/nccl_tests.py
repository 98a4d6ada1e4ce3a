"""What nccl-tests and rccl-tests print, 2016 to today, whatever else launchers and libraries printed into it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import (
    Log,
    LogText,
    Measurement,
    Notes,
    collective_and_workers,
    collective_name,
    time_unit,
)

_RELAUNCH = "one world of all ranks: nccl-tests built with MPI=1 and started by the same MPI's mpirun"


def is_nccl(text: LogText) -> bool:
    """Tell whether there is a row or the heading of a table in it."""
    return any(split_row(without_launcher(line)) or heading_of(line) for _, line in text.lines())


def read_nccl(text: LogText) -> Log:
    """Read the tables of a log.

    Raises
    ------
    InputError
        No table has a row that is whole; or every process of the launch was a world of its own.
    """
    notes, file = Notes(), str(text.path)
    sections = [section for section in _sections(text.lines(), notes) if section.rows]
    if not sections:
        message = "there is a heading of nccl-tests, but no row that is whole"
        right = "a log in which the benchmark came to its first size"
        raise InputError(Fault(message, file=file, right=right))
    sound = [section for section in sections if not _why_broken(section)]
    if not sound:
        raise InputError(Fault(_why_broken(sections[0]), file=file, right=_RELAUNCH))
    for section in sections:
        if section not in sound:
            notes.say(f"a table is left out: {_why_broken(section)}", section.rows[0].line)
    rows = [row for section in sound for row in _measurements(section, notes)]
    if not rows:
        message, line = "no row has a time above zero: nothing was measured", sound[0].rows[0].line
        right = "a log of a run that took some time"
        raise InputError(Fault(message, file=file, line=line, right=right))
    devices = sorted(set().union(*(section.devices for section in sound)))
    return Log(text.path, "nccl-tests", tuple(rows), notes.remarks(), tuple(devices))


# -------------------------------------------------------------------------------------------- a row of a table

_TYPES = (
    r"float|double|half|bfloat16|u?int(?:8|32|64)?|char|float(?:8|16|32|64)\w*|f8e\w+|fp8\w*|b?f(?:p?\d\d)"
)
_ROW_HEAD = re.compile(
    rf"(?<![\w.])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<dtype>{_TYPES})(?![\w.])(?:\s+(?P<redop>[a-z]+\d?)(?![\w.]))?"
)
_LAUNCHERS = re.compile(
    r"\[\d+,\d+\](?:\[[^\]]*\])?<std\w+>:|\[\d+\](?=\s*\d+\s+\d+\s+[a-z])|(?:(?<=^)|(?<=\s))\d+:(?=\s)"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)|N/A", re.IGNORECASE)
#: A column as ringnet calls it, by what headings have called it.
_COLUMNS = {"cputime": "time", "error": "check", "res": "check", "delta": "check"}
#: Half of a row where the heading is lost.
_USUAL_HALF = ("time", "algbw", "busbw", "check")
#: Errors of floats stay far below, counts of wrong elements start here.
_WRONG = 0.01


class Heading(NamedTuple):
    """Columns of a table: whether there is a root, and what each half of a row holds."""

    has_root: bool | None
    halves: tuple[tuple[str, ...], ...]


class RowHead(NamedTuple):
    """The first columns of a row."""

    size: int
    dtype: str
    redop: str


class RowHalf(NamedTuple):
    """Out of place or in place: time and bandwidths as printed, and what the check of the values found."""

    time: float
    algbw: float | None
    busbw: float | None
    wrong: str


def without_launcher(line: str) -> str:
    """Take out what launchers put before lines, also in the middle of one.

    >>> without_launcher("[1,0]<stdout>:   8   2  float  sum  -1[1,0]<stdout>:  12.9").split()
    ['8', '2', 'float', 'sum', '-1', '12.9']
    """
    return _LAUNCHERS.sub(" ", line)


def heading_of(line: str) -> Heading | None:
    """Read the heading of a table, with or without its ``#``; None if the line is none.

    >>> heading_of("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong").has_root
    True
    """
    if "algbw" not in line:
        return None
    words = line.replace("#wrong", "check").replace("#", " ").split()
    words = [_COLUMNS.get(word, word) for word in words]
    start = next((place for place, word in enumerate(words) if word in ("size", "bytes")), len(words))
    words = [word for word in words[start:] if word != "timestamp"]
    starts = [place for place, word in enumerate(words) if word == "time"]
    if "algbw" not in words or not starts:
        return None
    ends = [*starts[1:], len(words)]
    halves = tuple(tuple(words[first:last]) for first, last in zip(starts, ends, strict=True))
    return Heading("root" in words, halves)


def split_row(line: str) -> tuple[RowHead, str] | None:
    """Find the first columns of a row anywhere in a line; return them and the rest of the line, or None."""
    match = _ROW_HEAD.search(line)
    if not match:
        return None
    return RowHead(int(match["size"]), match["dtype"], match["redop"] or ""), line[match.end() :]


def halves_of(rest: str, heading: Heading | None) -> list[RowHalf]:
    """Read the halves of a row that are whole: two, one, or none of a row that was cut.

    Parameters
    ----------
    rest : str
        What follows the first columns.
    heading : Heading or None
        None where it is lost: the number of columns tells.
    """
    numbers = _leading_numbers(rest)
    if heading is None:
        n_halves = 2 if len(numbers) >= 2 * len(_USUAL_HALF) else 1
        heading = Heading(len(numbers) % 4 == 1, n_halves * (_USUAL_HALF,))
    if _has_root(numbers, heading):
        numbers = numbers[1:]
    found: list[RowHalf] = []
    for columns in heading.halves:
        if len(numbers) < len(columns):
            break
        found.append(_half(dict(zip(columns, numbers, strict=False))))
        numbers = numbers[len(columns) :]
    return found


def _leading_numbers(rest: str) -> list[str]:
    numbers: list[str] = []
    for word in rest.split():
        if not _NUMBER.fullmatch(word):
            break
        numbers.append(word)
    return numbers


def _has_root(numbers: Sequence[str], heading: Heading) -> bool:
    n_columns = sum(map(len, heading.halves))
    # All-reduce of 2019 to 2021 prints no root, whatever a heading of another era says: count.
    if len(numbers) in (n_columns, n_columns + 1):
        return len(numbers) == n_columns + 1
    return bool(heading.has_root) and bool(numbers) and numbers[0].lstrip("-").isdigit()


def _half(cells: dict[str, str]) -> RowHalf:
    time, algbw, busbw, check = (
        None if cells.get(name, "N/A") == "N/A" else float(cells[name]) for name in _USUAL_HALF
    )
    # Until 2022 the column is the largest error of a float, then the number of wrong elements.
    wrong = cells["check"] if not (check or 0.0) < _WRONG else ""
    return RowHalf(math.nan if time is None else time, algbw, busbw, wrong)


# ------------------------------------------------------------------------------- the tables, and what stands around

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
#: Numbers that a line holds at least that goes on with a row which was cut in two.
_FEWEST_LEFT = 2


class PrintedRow(NamedTuple):
    """A row as printed, times in the unit of its table."""

    head: RowHead
    out: RowHalf
    in_place: RowHalf | None
    line: int


class CutRow(NamedTuple):
    """The first half of a row that was cut in two, until its rest comes."""

    head: RowHead
    numbers: str
    line: int


@dataclass
class Section:
    """One table and what was printed before it; ``ranks`` are rank, host and process of each."""

    collective: str = ""
    heading: Heading | None = None
    unit: str = ""
    rows: list[PrintedRow] = field(default_factory=list)
    ranks: list[tuple[int, str, str]] = field(default_factory=list)
    devices: set[str] = field(default_factory=set)
    n_ranks: set[int] = field(default_factory=set)
    forced: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False

    def add_row(self, line: int, head: RowHead, rest: str) -> bool:
        """Add a row if it is whole, and tell whether it is."""
        halves = halves_of(rest, self.heading)
        if halves:
            self.rows.append(PrintedRow(head, halves[0], halves[1] if len(halves) > 1 else None, line))
        return bool(halves)


def _sections(lines: Iterator[tuple[int, str]], notes: Notes) -> list[Section]:
    section, cut = Section(), None
    sections = [section]
    for number, raw in lines:
        line = without_launcher(raw)
        if section.rows and heading_of(line):  # printed again: all but the rows holds on
            section = replace(section, rows=[], is_whole=False)
            sections.append(section)
        elif section.rows and (_STARTS.search(line) or _OPTIONS.search(line)):  # the next run of one job
            section = Section(forced=dict(section.forced))
            sections.append(section)
        cut = _read_line(section, number, line, cut, notes)
    if cut:
        notes.say("the last row is cut off: left out", cut.line)
    if section.rows and not section.is_whole:
        message = "the log ends before its table does: it is used as far as it goes"
        notes.say(message, section.rows[-1].line)
    return sections


def _read_line(section: Section, number: int, line: str, cut: CutRow | None, notes: Notes) -> CutRow | None:
    """Take in a line; return a row that was cut, as long as its rest is missing."""
    row = split_row(line)
    if row:
        head, rest = row
        if section.add_row(number, head, rest):
            return None
        notes.say("a row without its times: left out unless its rest follows", number)
        return CutRow(head, " ".join(_leading_numbers(rest)), number)
    words = line.split() if cut else []
    is_rest = len(words) >= _FEWEST_LEFT and all(_NUMBER.fullmatch(word) for word in words)
    if cut and is_rest and section.add_row(cut.line, cut.head, f"{cut.numbers} {line}"):
        notes.say("a row was cut in two by something printed into it: put together again", cut.line)
        return None
    _read_fact(section, number, line, notes)
    return cut


def _read_fact(section: Section, number: int, line: str, notes: Notes) -> None:
    """Take in what a line says of the table that follows or that it belongs to."""
    section.heading = heading_of(line) or section.heading
    if section.heading and not section.unit and "GB/s" in line:
        section.unit = next((unit for unit in ("us", "ms") if f"({unit})" in line), "")
    if _ELIDED.match(line):
        notes.say("rows were left out by whoever kept this log", number)
    name = _STARTS.search(line) or _TEST.search(line)
    if name and not section.rows:
        section.collective = collective_name(name[1])
    for key, value in _FORCED.findall(line) if "NCCL_" in line else ():
        section.forced[key] = value
    # Looked for before it is parsed: NCCL's own chatter can be a million lines.
    rank = _RANK.search(line) if "device" in line else None
    n_ranks = _N_RANKS.search(line) if "nranks" in line else None
    if rank and not section.rows:
        section.ranks.append((int(rank[1]), rank[3] or "", rank[2] or ""))
        section.devices.add(rank[4].strip())
    if n_ranks:
        section.n_ranks.add(int(n_ranks[1]))
    section.is_whole |= bool(section.rows and _ENDS.search(line))


def _why_broken(section: Section) -> str:
    """Say why no row of a section measured what it should; empty if nothing speaks against it."""
    moved = [row.out for row in section.rows if (row.out.algbw or 0.0) >= 0.1]  # noqa: PLR2004 -- GB/s, two digits
    if moved and all(half.busbw == 0.0 for half in moved):
        return "busbw is 0.00 in every row: each process ran alone, in a world of one rank, and moved nothing"
    firsts = [rank for rank in section.ranks if rank[0] == 0]
    if len(set(firsts)) > 1:
        return f"{len(firsts)} processes say they are rank 0: each ran alone, in a world of its own"
    if len(section.ranks) == 1 and not moved:
        return "there is a single rank: nothing was moved between workers"
    return ""


# ------------------------------------------------------------------------------------------------- measurements


def _measurements(section: Section, notes: Notes) -> Iterator[Measurement]:
    printed = [(row.head.size, row.out.algbw, row.out.time) for row in section.rows]
    unit_s = time_unit(section.unit, printed, notes)
    ranks = {rank for rank, _, _ in section.ranks}
    bandwidths = [(row.out.algbw, row.out.busbw, row.head.redop) for row in section.rows]
    n_stated = _stated_workers(section, len(ranks), notes)
    collective, n_workers = collective_and_workers(section.collective, n_stated, bandwidths, notes)
    hosts = {host for _, host, _ in section.ranks if host}
    n_nodes = len(hosts) if hosts and len(ranks) == n_workers else None
    for row in section.rows:
        if not 0.0 < row.out.time < math.inf:
            notes.say(f"a time of {row.out.time:g}: left out", row.line)
            continue
        in_place = row.in_place.time if row.in_place and row.in_place.time > 0 else None
        yield Measurement(
            message_bytes=row.head.size,
            time_s=row.out.time * unit_s,
            in_place_s=None if in_place is None else in_place * unit_s,
            n_workers=n_workers,
            n_nodes=n_nodes,
            collective=collective,
            dtype=row.head.dtype,
            redop=row.head.redop,
            algbw_Bps=None if row.out.algbw is None else row.out.algbw * 1e9,
            busbw_Bps=None if row.out.busbw is None else row.out.busbw * 1e9,
            algorithm=forced_only(section.forced.get("ALGO", "")),
            protocol=forced_only(section.forced.get("PROTO", "")),
            wrong=row.out.wrong,
            line=row.line,
        )


def _stated_workers(section: Section, n_listed: int, notes: Notes) -> int | None:
    """Return N as the log states it: by its list of ranks, or by what NCCL says of its communicator."""
    stated = max(section.n_ranks, default=0)
    if n_listed and stated and n_listed != stated:
        message = f"the list of ranks has {n_listed}, NCCL speaks of {stated}: {stated} is taken"
        notes.say(f"{message}, the list may be cut")
    return stated or n_listed or None


def forced_only(value: str) -> str:
    """Return a forced algorithm or protocol; a choice among several forces none.

    >>> forced_only("Ring"), forced_only("Ring,Tree"), forced_only("^NVLS")
    ('Ring', '', '')
    """
    return "" if "," in value or value.startswith("^") else value
