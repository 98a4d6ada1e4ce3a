"""What the numbers of a table tell where its log does not: the collective, N, and the unit of its times.

Three things tell: the columns (a reduction, a root), size against count times element size, and busbw / algbw. Tables
of one file that are alike in the first two are asked together: of one size a run, a single row tells little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from ringnet.formats.logs.log import ASKED, Notes

#: ``busbw / algbw`` of each collective, as nccl-tests defines them: a function of N.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
#: Collectives whose count is, in the columns of nccl-tests, that of a part: what one rank gives or gets.
PARTED = ("all_gather", "alltoall", "reduce_scatter")
#: Half of the last digit of a bandwidth as printed, in GB/s, and a little for a rounded number.
_HALF_DIGIT = 0.00501
#: Share of the rows that must agree; one that a line was printed into may not.
_MOST_ROWS = 0.95

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
#: GB/s from which two printed digits say enough of a time.
_TELLING = 0.5
_TOLERANCE = 0.1
_NAMED_WIDTHS = {"float": 4, "double": 8, "half": 2, "char": 1, "int": 4, "uint": 4}


def element_bytes(dtype: str) -> int | None:
    """Return the bytes of an element, by any benchmark's name of its type; None for a name that says none.

    >>> [element_bytes(name) for name in ("float", "half", "bfloat16", "uint8", "fp32", "f8e4m3", "strange")]
    [4, 2, 2, 1, 4, 1, None]
    """
    if dtype in _NAMED_WIDTHS:
        return _NAMED_WIDTHS[dtype]
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits and bits[0] in ("8", "16", "32", "64") else None


class TableEvidence(NamedTuple):
    """What one table says.

    Parameters
    ----------
    stated : str
        The collective by its name, empty if there is none.
    n_listed : int or None
        N by a whole list of ranks, or by what NCCL says.
    n_least : int
        N is this at least, by a list of ranks that is cut.
    reduces : bool or None
        Whether a row names a reduction; None where no column would.
    has_root : bool
        Whether a row names a root that is a rank.
    n_parts : int or None
        How many times count x element size the size is, in every row.
    pairs : tuple of (float, float)
        algbw and busbw as printed, in GB/s.
    """

    stated: str = ""
    n_listed: int | None = None
    n_least: int = 0
    reduces: bool | None = False
    has_root: bool = False
    n_parts: int | None = None
    pairs: tuple[tuple[float, float], ...] = ()

    @property
    def likeness(self) -> tuple[object, ...]:
        """Everything but the bandwidths: tables of one likeness are of one collective and N."""
        return self[:-1]


class TableAnswer(NamedTuple):
    """The collective of a table, N, and whether that N was stated or is what columns say for sure."""

    collective: str
    n_workers: int | None
    is_sure: bool


def answers_of(tables: Sequence[TableEvidence], notes: Notes) -> list[TableAnswer]:
    """Return the collective and N of each table of a file; those that are alike are asked together."""
    pooled: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for table in tables:
        pooled.setdefault(table.likeness, []).extend(table.pairs)
    whole = {likeness: tuple(pairs) for likeness, pairs in pooled.items()}
    asked = [
        each if _is_told(together := each._replace(pairs=whole[each.likeness])) is False else together
        for each in tables
    ]
    found: dict[TableEvidence, TableAnswer] = {}
    for table in asked:
        if table not in found:
            found[table] = _answer(table, notes)
    return [found[table] for table in asked]


def _is_told(table: TableEvidence) -> bool | None:
    """Whether any N fits the bandwidths, None without any: to tables of several N none does, each is asked alone."""
    names = (table.stated,) if table.stated in BUS_FACTORS else _candidates(table)
    return any(possible_workers(table.pairs, name) for name in names) if table.pairs else None


def parts_of(rows: Sequence[tuple[int, int, str]]) -> int | None:
    """Return how many times count x element size the size of every row is; None where rows differ or do not tell.

    Parameters
    ----------
    rows : sequence of (int, int, str)
        Size in bytes, count, type.
    """
    ratios = set()
    for size, count, dtype in rows:
        part = count * (element_bytes(dtype) or 0)
        if size and part:
            ratios.add(size / part)
    ratio = ratios.pop() if len(ratios) == 1 else 0.0
    return int(ratio) if ratio >= 1 and ratio.is_integer() else None


def _answer(table: TableEvidence, notes: Notes) -> TableAnswer:
    collective = table.stated or _likely_collective(table, notes)
    return _likely_workers(table, collective, notes)


def _candidates(table: TableEvidence) -> tuple[str, ...]:
    """Return the collectives that the columns allow, the likeliest first."""
    if table.reduces is None:
        return ("all_reduce", *PARTED)
    if (table.n_parts or 0) > 1:
        return ("reduce_scatter",) if table.reduces else ("all_gather", "alltoall")
    if table.reduces:
        return ("reduce", "all_reduce") if table.has_root else ("all_reduce", "reduce_scatter", "reduce")
    return ("broadcast",) if table.has_root else ("all_gather", "alltoall", "broadcast")


def _likely_collective(table: TableEvidence, notes: Notes) -> str:
    """Return the collective that columns and bandwidths agree on, the likeliest one where they do not tell."""
    names = _candidates(table)
    n = table.n_listed or (table.n_parts if (table.n_parts or 0) > 1 else None)
    possible = {name: possible_workers(table.pairs, name) for name in names}
    fitting = [name for name in names if (n in possible[name] if n else possible[name])]
    if len(names) == 1:
        notes.say(f"the collective is not named: {names[0]}, by its columns")
    elif fitting:
        by = "" if table.reduces is None else " and its columns"
        notes.say(f"the collective is not named: {fitting[0]}, by busbw / algbw{by}")
    else:
        notes.say(f"the collective is not named, and the bandwidths do not tell it: {names[0]} is assumed")
    return next(iter(fitting), names[0])


def _likely_workers(table: TableEvidence, collective: str, notes: Notes) -> TableAnswer:
    factor = BUS_FACTORS.get(collective)
    tells = bool(factor and table.pairs and factor(2) != factor(3))
    possible = possible_workers(table.pairs, collective) if tells else []
    n_counted = table.n_parts if collective in PARTED and (table.n_parts or 0) > 1 else None
    if n := table.n_listed:
        if n_counted and n_counted != n:
            notes.say(f"size is {n_counted} times count x element size, the list of ranks has {n}: it is taken")
        elif tells and n not in possible:
            notes.say(f"busbw / algbw does not fit N={n} of the list of ranks: the list is taken")
        return TableAnswer(collective, n, is_sure=True)
    if n_counted and n_counted >= table.n_least:
        notes.say(f"N is not in the log: N={n_counted}, as size is so many times count x element size")
        return TableAnswer(collective, n_counted, is_sure=True)
    return _by_bandwidth(table, collective, possible, notes)


def _by_bandwidth(table: TableEvidence, collective: str, possible: Sequence[int], notes: Notes) -> TableAnswer:
    """Return the N that bandwidths leave, at least as many as ranks are known."""
    allowed = [n for n in possible if n >= table.n_least]
    missing = (
        f"the list of ranks is cut, there are {table.n_least} at least" if table.n_least else "N is not in the log"
    )
    if len(allowed) == 1:
        notes.say(f"{missing}: N={allowed[0]}, the only one that fits busbw / algbw in every row")
        return TableAnswer(collective, allowed[0], is_sure=False)
    range_of_n = f", and busbw / algbw allows {allowed[0]} to {allowed[-1]}" if allowed else ""
    notes.say(f"{missing}{range_of_n}: {ASKED}")
    return TableAnswer(collective, None, is_sure=False)


def possible_workers(pairs: Sequence[tuple[float, float]], collective: str, most: int = 8192) -> list[int]:
    """Return every N that printed bandwidths allow.

    Parameters
    ----------
    pairs : sequence of (float, float)
        algbw and busbw of each row, in GB/s with two digits, as nccl-tests prints them.
    collective : str

    Examples
    --------
    >>> possible_workers([(41.78, 78.33), (0.29, 0.54)], "all_reduce")
    [16]
    """
    factor = np.array([BUS_FACTORS[collective](n) for n in range(2, most + 1)])
    alg, bus = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    # Both are rounded: of a row all factors between two will do, and factors grow with N.
    with np.errstate(divide="ignore"):
        low = (bus - _HALF_DIGIT) / (alg + _HALF_DIGIT)
        high = np.where(alg > _HALF_DIGIT, (bus + _HALF_DIGIT) / (alg - _HALF_DIGIT), np.inf)
    first, end = np.searchsorted(factor, low), np.searchsorted(factor, high, "right")
    fits = np.cumsum(np.bincount(first, minlength=most) - np.bincount(np.maximum(first, end), minlength=most))
    return [int(n) + 2 for n in np.flatnonzero(fits[: most - 1] >= _MOST_ROWS * len(alg))] if len(alg) else []


def time_unit(stated: str, rows: Sequence[tuple[int, float | None, float]], notes: Notes) -> float:
    """Return seconds per unit of the times of a table: as its heading says, if size over algbw agrees.

    Parameters
    ----------
    stated : str
        ``us`` or ``ms``; empty where the heading does not say.
    rows : sequence of (int, float or None, float)
        Bytes, and algbw in GB/s and the time as printed.
    """
    ratios = [size / (algbw * 1e9 * time) for size, algbw, time in rows if algbw and time and algbw >= _TELLING]
    if not ratios:
        if not stated:
            notes.say("no unit of time is stated, and no row tells it: microseconds are assumed")
        return _SECONDS[stated or "us"]
    implied = median(ratios)
    unit = next((name for name, s in _SECONDS.items() if abs(implied / s - 1) < _TOLERANCE), "")
    if not stated:
        notes.say(f"no unit of time is stated: {unit or 'us'}, as size over algbw says")
    elif unit not in ("", stated):
        notes.say(f"times are headed ({stated}), but size over algbw makes them {unit}: {unit} is taken")
    return _SECONDS[unit or stated or "us"]
