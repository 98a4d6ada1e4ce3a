"""Rows of nccl-tests and rccl-tests, whatever was printed before, into or after them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

_TYPES = (
    r"float|double|half|bfloat16|u?int(?:8|32|64)?|char|float(?:8|16|32|64)\w*|f8e\w+|fp8\w*|b?f(?:p?\d\d)"
)
_HEAD = re.compile(
    rf"(?<![\w.])(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<dtype>{_TYPES})(?![\w.])(?:\s+(?P<redop>[a-z]+\d?)(?![\w.]))?"
)
_LAUNCHERS = re.compile(
    r"\[\d+,\d+\](?:\[[^\]]*\])?<std\w+>:|\[\d+\](?=\s*\d+\s+\d+\s+[a-z])|(?:(?<=^)|(?<=\s))\d+:(?=\s)"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)|N/A", re.IGNORECASE)
_TIMES = ("time", "cputime")
#: Errors of floats stay far below, counts of wrong elements start here.
_WRONG = 0.01
#: Numbers that the rest of a row has at least.
_FEWEST_LEFT = 2
#: What a table says where its heading is lost.
_GROUP = ("time", "algbw", "busbw", "check")


class Layout(NamedTuple):
    """Columns of a table, from its heading: whether there is a root, and what each half of a row holds."""

    has_root: bool | None
    groups: tuple[tuple[str, ...], ...]


class Body(NamedTuple):
    """One half of a row: time and bandwidths as printed, and what the check of the values found."""

    time: float
    algbw: float | None
    busbw: float | None
    wrong: str


class Head(NamedTuple):
    """The first columns of a row."""

    size: int
    dtype: str
    redop: str


def without_launcher(line: str) -> str:
    """Take out what launchers put before lines, also in the middle of one.

    >>> without_launcher("[1,0]<stdout>:   8   2  float  sum  -1[1,0]<stdout>:  12.9").split()
    ['8', '2', 'float', 'sum', '-1', '12.9']
    """
    return _LAUNCHERS.sub(" ", line)


def layout_of(line: str) -> Layout | None:
    """Read the heading of a table, with or without its ``#``; None if the line is none.

    >>> layout_of("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong").has_root
    True
    """
    if "algbw" not in line:
        return None
    words = line.replace("#wrong", "check").replace("#", " ").split()
    start = next((place for place, word in enumerate(words) if word in ("size", "bytes")), None)
    if start is None or "algbw" not in words or not any(word in _TIMES for word in words):
        return None
    words = words[start:]
    starts = [place for place, word in enumerate(words) if word in _TIMES]
    groups = tuple(
        _group(words[first:last]) for first, last in zip(starts, [*starts[1:], len(words)], strict=True)
    )
    return Layout("root" in words, groups)


def _group(words: Sequence[str]) -> tuple[str, ...]:
    names = {"cputime": "time", "error": "check", "res": "check", "delta": "check", "#wrong": "check"}
    return tuple(names.get(word, word) for word in words if word != "timestamp")


def split_row(line: str) -> tuple[Head, str] | None:
    """Find the first columns of a row anywhere in a line; return them and the rest of the line, or None."""
    match = _HEAD.search(line)
    if not match:
        return None
    return Head(int(match["size"]), match["dtype"], match["redop"] or ""), line[match.end() :]


def bodies(rest: str, layout: Layout | None) -> list[Body]:
    """Read the halves of a row that are whole: two, one, or none of a row that was cut.

    Parameters
    ----------
    rest : str
        What follows the first columns.
    layout : Layout or None
        None where the heading is lost: the number of columns tells.
    """
    numbers = _numbers(rest)
    layout = layout or _guessed(numbers)
    if _has_root(numbers, layout):
        numbers = numbers[1:]
    found: list[Body] = []
    for group in layout.groups:
        if len(numbers) < len(group):
            break
        found.append(_body(dict(zip(group, numbers, strict=False))))
        numbers = numbers[len(group) :]
    return found


def is_continuation(line: str) -> bool:
    """Tell whether a line holds nothing but numbers: the rest of a row that a warning cut in two."""
    words = line.split()
    return len(words) >= _FEWEST_LEFT and all(_NUMBER.fullmatch(word) for word in words)


def leading_numbers(rest: str) -> str:
    """Return the numbers that a text starts with."""
    return " ".join(_numbers(rest))


def _numbers(rest: str) -> list[str]:
    numbers: list[str] = []
    for word in rest.split():
        if not _NUMBER.fullmatch(word):
            break
        numbers.append(word)
    return numbers


def _guessed(numbers: Sequence[str]) -> Layout:
    has_root = len(numbers) % 4 == 1
    return Layout(has_root, (_GROUP, _GROUP) if len(numbers) >= 2 * len(_GROUP) else (_GROUP,))


def _has_root(numbers: Sequence[str], layout: Layout) -> bool:
    n_columns = sum(map(len, layout.groups))
    # All-reduce of 2019 to 2021 prints no root, whatever a heading of another era says: count.
    if len(numbers) in (n_columns, n_columns + 1):
        return len(numbers) == n_columns + 1
    return bool(layout.has_root) and bool(numbers) and numbers[0].lstrip("-").isdigit()


def _body(cells: dict[str, str]) -> Body:
    time, check = _float(cells["time"]), _float(cells.get("check")) or 0.0
    # Until 2022 the column is the largest error of a float, then the number of wrong elements.
    wrong = cells["check"] if not check < _WRONG else ""
    return Body(
        math.nan if time is None else time, _float(cells.get("algbw")), _float(cells.get("busbw")), wrong
    )


def _float(cell: str | None) -> float | None:
    return None if cell is None or cell == "N/A" else float(cell)
