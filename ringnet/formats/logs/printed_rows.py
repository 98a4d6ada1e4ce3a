"""A line of a table of nccl-tests, 2016 to today: what launchers put into it, its heading, its columns."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

_TYPES = r"float|double|half|bfloat16|u?int(?:8|32|64)?|char|float(?:8|16|32|64)\w*|f8e\w+|fp8\w*|b?f(?:p?\d\d)"
_ROW_HEAD = re.compile(
    rf"(?<![\w.])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<dtype>{_TYPES})(?![\w.])(?:\s+(?P<redop>[a-z]+\d?)(?![\w.]))?"
)
#: Tags of Open MPI (``[1,0]<stdout>:``, ``[prterun-host-1@1,0]<stdout>:``), of others (``[0]``), of Slurm (``0: ``).
_LAUNCHERS = re.compile(r"\[(?:[\w.:-]+@)?\d+,\d+\](?:\[[^\]]*\])?<std\w+>:|\[\d+\](?!:)|(?:(?<=^)|(?<=\s))\d+:(?=\s)")
#: The line of dashes under the heading of a Markdown table.
_RULE = re.compile(r"\|[\s|:-]+")
#: A number of a row, or what stands for one.
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)|N/A", re.IGNORECASE)
#: A column as ringnet calls it, by what headings have called it.
_COLUMNS = {"cputime": "time", "error": "check", "res": "check", "delta": "check"}
#: How every half of a row starts, and one where the heading is lost.
_MEASURED = ("time", "algbw", "busbw")
_USUAL_HALF = (*_MEASURED, "check")
#: Errors of floats stay far below, counts of wrong elements start here.
_WRONG = 0.01


class Heading(NamedTuple):
    """Columns of a table: whether there is a root, and what each half of a row holds."""

    has_root: bool | None
    halves: tuple[tuple[str, ...], ...]


class RowHead(NamedTuple):
    """The first columns of a row."""

    size: int
    n_elements: int
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

    A row of a Markdown table becomes one of a plain one.

    >>> without_launcher("[1,0]<stdout>:   8   2  float  sum  -1[1,0]<stdout>:  12.9").split()
    ['8', '2', 'float', 'sum', '-1', '12.9']
    >>> without_launcher("| 8 | 2 | float |").split()
    ['8', '2', 'float']
    """
    line = _LAUNCHERS.sub(" ", line)
    if not line.lstrip().startswith("|"):
        return line
    return "" if _RULE.fullmatch(line.strip()) else line.replace("|", " ")


#: What stands before the times in any heading of any year, in lower case.
_FIRST_COLUMNS = {"size", "bytes", "count", "n", "elements", "type", "dtype", "redop", "op", "root"}
_UNIT = re.compile(r"\([^)]*\)")


def heading_of(line: str) -> Heading | None:
    """Read the heading of a table, with or without its ``#``; None if the line is none.

    >>> heading_of("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong").has_root
    True
    >>> heading_of("size(B) count(elems) type time(us) algbw(GB/s) busbw(GB/s)").halves
    (('time', 'algbw', 'busbw'),)
    >>> heading_of("the time and algbw of each size are below") is None
    True
    """
    if "algbw" not in line:
        return None
    words = _UNIT.sub(" ", line).replace("#wrong", "check").replace("#", " ").split()
    words = [_COLUMNS.get(word, word) for word in words if word != "timestamp"]
    start = next((place for place, word in enumerate(words) if word in ("size", "bytes")), len(words))
    words = words[start:]
    starts = [place for place, word in enumerate(words) if word == "time"]
    if not starts or not _FIRST_COLUMNS.issuperset(word.lower() for word in words[: starts[0]]):
        return None
    ends = [*starts[1:], len(words)]
    halves = tuple(tuple(words[first:last]) for first, last in zip(starts, ends, strict=True))
    are_whole = all(half[: len(_MEASURED)] == _MEASURED for half in halves)
    return Heading("root" in words, halves) if are_whole else None


def split_row(line: str) -> tuple[RowHead, str] | None:
    """Find the first columns of a row anywhere in a line; return them and the rest of the line, or None."""
    match = _ROW_HEAD.search(line)
    if not match:
        return None
    head = RowHead(int(match["size"]), int(match["count"]), match["dtype"], match["redop"] or "")
    return head, line[match.end() :]


def halves_of(rest: str, heading: Heading | None) -> tuple[int | None, list[RowHalf]]:
    """Read the root, None where there is no such column, and the halves of a row that are whole: two, one, or none.

    Parameters
    ----------
    rest : str
        What follows the first columns.
    heading : Heading or None
        None where it is lost: the number of columns tells.
    """
    numbers = leading_numbers(rest)
    if heading is None:
        n_halves = 2 if len(numbers) >= 2 * len(_USUAL_HALF) else 1
        heading = Heading(len(numbers) % 4 == 1, n_halves * (_USUAL_HALF,))
    root = None
    if _has_root(numbers, heading):
        root = int(numbers[0]) if numbers[0].lstrip("+-").isdigit() else None
        numbers = numbers[1:]
    found: list[RowHalf] = []
    for columns in heading.halves:
        if len(numbers) < len(columns):
            break
        found.append(_half(dict(zip(columns, numbers, strict=False))))
        numbers = numbers[len(columns) :]
    return root, found


def leading_numbers(rest: str) -> list[str]:
    """Return the numbers that a text starts with, as they are written."""
    numbers: list[str] = []
    for word in rest.split():
        if not NUMBER.fullmatch(word):
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
    wrong = cells.get("check", "") if not (check or 0.0) < _WRONG else ""
    return RowHalf(math.nan if time is None else time, algbw, busbw, wrong)
