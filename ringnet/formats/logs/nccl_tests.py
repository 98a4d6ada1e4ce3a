"""What nccl-tests and rccl-tests print, 2016 to today, whatever else launchers and libraries printed into it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.formats.logs.evidence import TableAnswer, TableEvidence, answers_of, parts_of, time_unit
from ringnet.formats.logs.log import Log, LogText, Measurement, Notes, collective_name
from ringnet.formats.logs.printed_rows import (
    NUMBER,
    Heading,
    RowHalf,
    RowHead,
    halves_of,
    heading_of,
    leading_numbers,
    split_row,
    without_launcher,
)
from ringnet.formats.logs.tables import Condition, TableKey, numbers_of

_RELAUNCH = "one world of all ranks: nccl-tests built with MPI=1 and started by the same MPI's mpirun"
_NCCOM = "nccom-test"


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
    rows = _measured(sound, notes)
    if not rows:
        message, line = "no row has a time above zero: nothing was measured", sound[0].rows[0].line
        right = "a log of a run that took some time"
        raise InputError(Fault(message, file=file, line=line, right=right))
    devices = sorted(set().union(*(section.devices for section in sound)))
    is_nccom = any(section.is_nccom for section in sound)
    return Log(text.path, _NCCOM if is_nccom else "nccl-tests", tuple(rows), notes.remarks(), tuple(devices))


# ------------------------------------------------------------------------------- the tables, and what stands around

_TEST = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv)_perf(?:_mpi)?\b")
_STARTS = re.compile(r"Collective test starting: (\w+)")
_ENDS = re.compile(r"Avg bus bandwidth|Collective test concluded")
_OPTIONS = re.compile(r"\bnThread \d+ nGpus \d+")
_RANK = re.compile(
    r"#?\s*\bRank\s+(\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+(\d+)\s+)?(?:on\s+(\S+)|uses)\s+device\s+\d+\s+(?:\[[^\]]*\]\s*)?(.*)"
)
_N_RANKS = re.compile(r"NCCL INFO.*\bnranks (\d+)\b")
_VARIABLE = re.compile(
    r"\b(?:NCCL|RCCL)_(?!DEBUG)([A-Z0-9_]+)(?:\s*=\s*|\s+set by environment to\s+)[\"']?(\^?[\w,.:/;^-]+)"
)
_LAUNCH = re.compile(r"(?:^|[\s/])(?:mpirun|mpiexec|srun|torchrun|prun|jsrun|aprun)\s|_perf(?:_mpi)?\s+-|nccom-test\s")
#: A line that somebody put above a table: ``=== with the plug-in ===``, ``## NVLS off``, ``without GDR:``.
_TITLE = re.compile(
    r"\s*(?:(?:[=*~>+-]{2,}|#{2,})\s*(?P<ruled>[^\s=*~>+#-].*?)|(?P<named>[A-Za-z][^:|#]{1,78}):)\s*[=*~<+#-]*\s*"
)
#: nccom-test's command: how many ranks, and which collective.
_NCCOM_COMMAND = re.compile(
    r"nccom-test\b.*?\s-{1,2}(?:r|nworkers)[ =]?(\d+)\b.*?\b(allr|allg|redsct|alltoall|bcast|sendrecv)\b"
)
_NCCOM_NAMES = {"allr": "all_reduce", "allg": "all_gather", "redsct": "reduce_scatter", "bcast": "broadcast"}
#: How a run says that it came to nothing.
_ABORTED = re.compile(
    r"Test \w+ failure|MPI_ABORT|exited on signal|Segmentation fault|srun: error|non-zero exit|ABORT", re.I
)
_ELIDED = re.compile(r"^\s*(?:\.\.\.|\u2026)\s*$")
#: Numbers that a line holds at least that goes on with a row which was cut in two.
_FEWEST_LEFT = 2


class PrintedRow(NamedTuple):
    """A row as printed, times in the unit of its table; ``out`` is in place where that alone was measured."""

    head: RowHead
    root: int | None
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
    """One table and what was printed before it.

    ``ranks`` are rank, host and process of each; ``n_lists`` counts lists of ranks before that one. ``exported`` holds
    for the runs that follow, too.
    """

    collective: str = ""
    heading: Heading | None = None
    unit: str = ""
    rows: list[PrintedRow] = field(default_factory=list)
    ranks: list[tuple[int, str, str]] = field(default_factory=list)
    n_lists: int = 0
    devices: set[str] = field(default_factory=set)
    n_ranks: set[int] = field(default_factory=set)
    title: str = ""
    launch: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False
    is_nccom: bool = False

    def add_row(self, line: int, head: RowHead, rest: str) -> bool:
        """Add a row if it is whole, and tell whether it is."""
        root, halves = halves_of(rest, self.heading)
        if halves:
            in_place = halves[1] if len(halves) > 1 else None
            out = in_place if in_place and math.isnan(halves[0].time) else halves[0]
            self.rows.append(PrintedRow(head, root, out, in_place, line))
        return bool(halves)

    def next_run(self) -> Section:
        """Return what holds on for the next run of one job."""
        return Section(environment=dict(self.exported), exported=dict(self.exported))

    def list_rank(self, rank: int, host: str, process: str) -> None:
        """Take in a line of the list of ranks; that of a run which came to no row is not that of the next."""
        if rank == 0 and len({known for known, _, _ in self.ranks}) > 1:
            self.ranks.clear()
            self.n_lists += 1
        self.ranks.append((rank, host, process))


def _sections(lines: Iterator[tuple[int, str]], notes: Notes) -> list[Section]:
    section, cut = Section(), None
    sections = [section]
    for number, raw in lines:
        line = without_launcher(raw)
        if section.rows and heading_of(line):  # printed again: all but the rows holds on
            section = replace(section, rows=[], is_whole=False)
            sections.append(section)
        elif section.rows and _starts_run(line):
            section = section.next_run()
            sections.append(section)
        cut = _read_line(section, number, line, cut, notes)
    if cut:
        notes.say("the last row is cut off: left out", cut.line)
    if section.rows and not section.is_whole and not section.is_nccom:
        message = "the log ends before its table does: it is used as far as it goes"
        notes.say(message, section.rows[-1].line)
    return sections


def _starts_run(line: str) -> bool:
    """Whether a line after rows is of the next run: its command, its first words, or what somebody calls it."""
    return bool(
        _STARTS.search(line) or _OPTIONS.search(line) or _LAUNCH.search(line) or _title_of(line)
    ) and not split_row(line)


def _title_of(line: str) -> str:
    """Return what somebody wrote above a table; empty for a line of a benchmark or of NCCL.

    >>> _title_of("=== with the plug-in ==="), _title_of("# Using devices"), _title_of("host:1:2 [0] NCCL INFO x:")
    ('with the plug-in', '', '')
    """
    match = None if "NCCL" in line and "INFO" in line else _TITLE.fullmatch(line)
    return (match["ruled"] or match["named"] or "").strip() if match and not _ENDS.search(line) else ""


def _read_line(section: Section, number: int, line: str, cut: CutRow | None, notes: Notes) -> CutRow | None:
    """Take in a line; return a row that was cut, as long as its rest is missing."""
    row = split_row(line)
    if row:
        head, rest = row
        if section.add_row(number, head, rest):
            return None
        notes.say("a row without its times: left out unless its rest follows", number)
        return CutRow(head, " ".join(leading_numbers(rest)), number)
    words = line.split() if cut else []
    is_rest = len(words) >= _FEWEST_LEFT and all(NUMBER.fullmatch(word) for word in words)
    if cut and is_rest and section.add_row(cut.line, cut.head, f"{cut.numbers} {line}"):
        notes.say("a row was cut in two by something printed into it: put together again", cut.line)
        return None
    _read_fact(section, number, line, notes)
    return cut


def _read_fact(section: Section, number: int, line: str, notes: Notes) -> None:
    """Take in what a line says of the table that follows or that it belongs to."""
    if heading := heading_of(line):
        section.heading = heading
        section.is_nccom = "size(B)" in line
    if section.heading and not section.unit and "GB/s" in line:
        section.unit = next((unit for unit in ("us", "ms") if f"({unit})" in line), "")
    if (section.heading or section.rows) and not section.is_whole and _ELIDED.match(line):
        notes.say("rows were left out by whoever kept this log", number)
    section.is_whole |= bool(section.rows and _ENDS.search(line))
    # Looked for before it is parsed: NCCL's own chatter can be a million lines.
    if "nranks" in line and (n_ranks := _N_RANKS.search(line)):
        section.n_ranks.add(int(n_ranks[1]))
    if not section.rows:
        _read_launch(section, line)


def _read_launch(section: Section, line: str) -> None:
    """Take in what a line before the rows says of how the run was started, and of its ranks."""
    name = _STARTS.search(line) or _TEST.search(line)
    if name:
        section.collective = collective_name(name[1])
    if command := _NCCOM_COMMAND.search(line):
        section.n_ranks.add(int(command[1]))
        section.collective = _NCCOM_NAMES.get(command[2], command[2])
    is_launch = bool(_LAUNCH.search(line)) and not line.lstrip().startswith("#")
    if is_launch:
        section.launch = line.strip()
    found = dict(_VARIABLE.findall(line)) if "CCL_" in line else {}
    section.environment |= found
    if not is_launch and "INFO" not in line:
        section.exported |= found
    section.title = _title_of(line) or section.title
    if "device" in line and (rank := _RANK.search(line)):
        section.list_rank(int(rank[1]), rank[3] or "", rank[2] or "")
        section.devices.add(rank[4].strip())
    elif section.ranks and _ABORTED.search(line):
        section.ranks.clear()


def _why_broken(section: Section) -> str:
    """Say why no row of a section measured what it should; empty if nothing speaks against it."""
    moved = [row.out for row in section.rows if (row.out.algbw or 0.0) >= 0.1]  # noqa: PLR2004 -- GB/s, two digits
    if moved and all(half.busbw == 0.0 for half in moved):
        return "busbw is 0.00 in every row: each process ran alone, in a world of one rank, and moved nothing"
    n_firsts = len({rank for rank in section.ranks if rank[0] == 0})
    # Where a list of ranks comes again, a run came to nothing before this one, or two print their rows by turns.
    if section.n_lists and len({row.head.size for row in section.rows}) < len(section.rows):
        n_firsts += section.n_lists
    if n_firsts > 1:
        return f"{n_firsts} processes say they are rank 0: each ran alone, in a world of its own"
    if len(section.ranks) == n_firsts == 1 and not moved:
        return "there is a single rank: nothing was moved between workers"
    return ""


# ------------------------------------------------------------------------------------------------- measurements


def _measured(sections: Sequence[Section], notes: Notes) -> list[Measurement]:
    """Return the rows of all tables: tables that are alike say together of which collective and N they are."""
    answers = answers_of([_evidence(section, notes) for section in sections], notes)
    conditions = [Condition(one.title, one.environment, one.launch) for one in sections]
    keys = [
        TableKey(*answer[:2], _forced(section), condition, {row.head.size for row in section.rows})
        for section, answer, condition in zip(sections, answers, conditions, strict=True)
    ]
    parts = zip(sections, answers, numbers_of(keys), conditions, strict=True)
    return [
        replace(row, table=number, condition=str(condition))
        for section, answer, number, condition in parts
        for row in _measurements(section, answer, notes)
    ]


def _evidence(section: Section, notes: Notes) -> TableEvidence:
    rows = section.rows
    ranks = {rank for rank, _, _ in section.ranks}
    n_least = max(ranks, default=-1) + 1
    is_cut = n_least > len(ranks)
    stated = max(section.n_ranks, default=0)
    if ranks and stated and n_least != stated:
        message = f"the list of ranks has {len(ranks)}, NCCL speaks of {stated}: {stated} is taken"
        notes.say(f"{message}, the list may be cut")
    return TableEvidence(
        section.collective,
        stated or (None if is_cut else n_least) or None,
        n_least if is_cut else 0,
        reduces=None if section.is_nccom else any(row.head.redop not in ("", "none") for row in rows),
        has_root=any((row.root if row.root is not None else -1) >= 0 for row in rows),
        n_parts=parts_of([(row.head.size, row.head.n_elements, row.head.dtype) for row in rows]),
        pairs=tuple((row.out.algbw, row.out.busbw) for row in rows if row.out.algbw and row.out.busbw),
    )


def _forced(section: Section) -> tuple[str, str]:
    algorithm, protocol = (forced_only(section.environment.get(name, "")) for name in ("ALGO", "PROTO"))
    return algorithm, protocol


def _measurements(section: Section, answer: TableAnswer, notes: Notes) -> Iterator[Measurement]:
    printed = [(row.head.size, row.out.algbw, row.out.time) for row in section.rows]
    unit_s = time_unit(section.unit, printed, notes)
    hosts = {host for _, host, _ in section.ranks if host}
    are_all_listed = len({rank for rank, _, _ in section.ranks}) == answer.n_workers
    algorithm, protocol = _forced(section)
    for row in section.rows:
        if not 0.0 < row.out.time < math.inf:
            notes.say(f"a time of {row.out.time:g}: left out", row.line)
            continue
        in_place = row.in_place.time if row.in_place and row.in_place.time > 0 else None
        yield Measurement(
            message_bytes=row.head.size,
            time_s=row.out.time * unit_s,
            in_place_s=None if in_place is None else in_place * unit_s,
            is_in_place=row.out is row.in_place,
            n_workers=answer.n_workers,
            n_nodes=len(hosts) if hosts and are_all_listed else None,
            collective=answer.collective,
            dtype=row.head.dtype,
            redop=row.head.redop,
            algbw_Bps=None if row.out.algbw is None else row.out.algbw * 1e9,
            busbw_Bps=None if row.out.busbw is None else row.out.busbw * 1e9,
            algorithm=algorithm,
            protocol=protocol,
            wrong=row.out.wrong,
            line=row.line,
            is_n_sure=answer.is_sure,
            n_least=max((rank for rank, _, _ in section.ranks), default=-1) + 1,
        )


def forced_only(value: str) -> str:
    """Return a forced algorithm or protocol; a choice among several forces none.

    >>> forced_only("Ring"), forced_only("Ring,Tree"), forced_only("^NVLS")
    ('Ring', '', '')
    """
    return "" if "," in value or value.startswith("^") else value
