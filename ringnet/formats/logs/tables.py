"""The tables of a log: which rows are one run, under which conditions, and which of them are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from ringnet.documents.text import clip
from ringnet.formats.logs.log import Measurement

#: Options of a command that say which sizes it runs, not how.
_SIZES = re.compile(r"\s-{1,2}(?:b|e|f|i|minbytes|maxbytes|stepfactor|stepbytes)[ =]?[0-9][\w.]*")
#: Tables whose times differ by more than this factor, in the median over their sizes, are of different conditions.
APART = 1.25
#: Tables of one log: a day of runs has fewer, and more than a person looks through.
MOST_TABLES = 1000


class Condition(NamedTuple):
    """How a run came to be, as far as its log says: what somebody calls it, its variables, its command."""

    title: str = ""
    environment: Mapping[str, str] = {}
    launch: str = ""

    @property
    def likeness(self) -> tuple[object, ...]:
        """What two runs of one loop over sizes have in common."""
        return self.title, tuple(sorted(self.environment.items())), _SIZES.sub("", self.launch)

    def __str__(self) -> str:
        """Return it in words, empty where nothing is said."""
        variables = " ".join(f"NCCL_{name}={value}" for name, value in sorted(self.environment.items()))
        parts = [part for part in (self.title, variables) if part] or [self.launch]
        return clip(", ".join(parts))


@dataclass(frozen=True)
class TableKey:
    """What a run must share with another to be of one table with it, and its sizes, which it must not share."""

    collective: str
    n_workers: int | None
    forced: tuple[str, str]
    condition: Condition
    sizes: set[int] = field(default_factory=set)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What two runs of one table have in common."""
        return self.collective, self.n_workers, self.forced, self.condition.likeness


def numbers_of(runs: Iterable[TableKey]) -> list[int]:
    """Return the number of the table of each run, from 1, in the order of the file.

    A run goes on with the last table that is like it and has none of its sizes: a loop with one size, or some, a run.
    Beyond `MOST_TABLES` there is one number more, for all that is left.
    """
    alike: dict[tuple[object, ...], dict[int, set[int]]] = {}
    n_tables, numbers = 0, []
    for run in runs:
        number = n_tables
        if n_tables <= MOST_TABLES:
            tables = alike.setdefault(run.likeness, {})
            number = next((number for number in reversed(tables) if not run.sizes & tables[number]), n_tables + 1)
            n_tables = max(n_tables, number)
            tables.setdefault(number, set()).update(run.sizes)
        numbers.append(number)
    return numbers


def chosen(rows: Sequence[Measurement], wanted: str) -> tuple[Measurement, ...]:
    """Return the rows of a table: by its number, or by a part or a pattern of what is said of it.

    >>> rows = [Measurement(8, 1e-6, table=1, condition="plug-in"), Measurement(8, 1e-6, table=2, condition="none")]
    >>> [row.table for row in chosen(rows, "2")], [row.table for row in chosen(rows, "PLUG*")]
    ([2], [1])
    """
    if wanted.isdecimal():
        return tuple(row for row in rows if row.table == int(wanted))
    pattern = wanted.lower()
    return tuple(row for row in rows if pattern in row.condition.lower() or fnmatchcase(row.condition.lower(), pattern))


def tables_of(rows: Iterable[Measurement]) -> dict[int, list[Measurement]]:
    """Return the rows of each table, in order of its number."""
    found: dict[int, list[Measurement]] = {}
    for row in rows:
        found.setdefault(row.table, []).append(row)
    return dict(sorted(found.items()))


def times_apart(one: Sequence[Measurement], other: Sequence[Measurement]) -> float | None:
    """Return by which factor the times of two runs differ, in the median over the sizes of both; None without any.

    >>> fast, slow = ([Measurement(8, time_s), Measurement(64, 2 * time_s)] for time_s in (1e-6, 3e-6))
    >>> times_apart(fast, slow)
    3.0
    """
    first = {row.message_bytes: row.time_s for row in one if row.time_s > 0 and not row.is_outlier}
    ratios = [
        row.time_s / first[row.message_bytes]
        for row in other
        if row.message_bytes in first and row.time_s > 0 and not row.is_outlier
    ]
    if not ratios:
        return None
    ratio = median(ratios)
    return round(max(ratio, 1 / ratio), 6)
