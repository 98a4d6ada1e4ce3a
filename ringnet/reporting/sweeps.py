"""What a sweep varies, read from its table alone, and its rows as lines over one of the keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ringnet.array_types import FloatArray
from ringnet.errors import UnitError
from ringnet.reporting.columns import OF_SOME_RUNS, TABLES
from ringnet.units import Kind, format_bytes, parse_quantity

if TYPE_CHECKING:
    import pandas as pd

#: Inputs in the order in which they tell points apart; swept keys without a column of their own come second.
_FIRST = ("n_workers", "message_bytes")
_LATER = (
    "collective",
    "algorithm",
    "topology",
    "switching",
    "sharing",
    "sends",
    "dtype",
    "reduce",
    "payload",
)
#: Plain words for the last part of a key, where its own are none.
_WORDS = {
    "n_workers": "workers, N",
    "message_bytes": "message size",
    "nics": "network cards of a host",
    "sides": "sides of the grid",
    "k": "ports of a switch, k",
}
#: Often only follow from another key (``engine: auto``), so they come last.
_LAST = ("engine", "seed")
#: These have plots of their own, or only follow from other keys.
_ELSEWHERE = ("n_workers", "message_bytes", "engine", "seed")
_KINDS: tuple[Kind, ...] = ("number", "bytes", "seconds", "bytes_per_second")


class SweepLine(NamedTuple):
    """Points that differ in one key only, sorted by it."""

    label: str
    rows: pd.DataFrame


class Numbers(NamedTuple):
    """A swept key as numbers, and what they count."""

    numbers: FloatArray
    kind: Kind


def inputs(summary: pd.DataFrame) -> list[str]:
    """Return the columns of a summary that say what was run, the telling ones first."""
    known = {*TABLES["summary"], *OF_SOME_RUNS}
    swept = [name for name in summary.columns if name not in known]
    return [name for name in (*_FIRST, *swept, *_LATER, *_LAST) if name in summary.columns]


def varying(summary: pd.DataFrame) -> list[str]:
    """Return the inputs that have more than one value, whatever the reason."""
    return [name for name in inputs(summary) if is_varied(summary[name])]


def is_varied(column: pd.Series[Any]) -> bool:
    """Whether a column has more than one value; being missing is a value."""
    return len(column.unique()) > 1


def distinguishing(summary: pd.DataFrame) -> list[str]:
    """Return the fewest inputs, in order of preference, that tell the points apart.

    A key that only follows from others (the message of a zipped sweep, the engine of ``auto``) is not needed.
    """
    chosen: list[str] = []
    for name in varying(summary):
        if _adds(summary, chosen, name):
            chosen.append(name)
    return chosen


def _line_keys(summary: pd.DataFrame, x: str) -> list[str]:
    """Return the inputs of which each combination is a line over ``x``.

    A key that follows from ``x`` makes lines only if they have more than one point: not in a zipped sweep.
    """
    chosen: list[str] = []
    for name in varying(summary):
        if is_seed(name):
            continue
        needed = name != x and _adds(summary, [x, *chosen], name)
        useful = name not in (x, *_LAST) and _adds(summary, chosen, name)
        if needed or (useful and _adds(summary, [*chosen, name], x)):
            chosen.append(name)
    return chosen


def _adds(summary: pd.DataFrame, chosen: list[str], name: str) -> bool:
    if not chosen:
        return True
    return any(is_varied(cells) for _, cells in summary.groupby(chosen, dropna=False)[name])


def other_keys(summary: pd.DataFrame) -> list[str]:
    """Return the swept keys that have no plot of their own; words only where there is no other key."""
    every = varying(summary)
    keys = [key for key in every if key not in _ELSEWHERE]
    if {"n_workers", "message_bytes"} & set(every):
        keys = [key for key in keys if numbers(summary[key])]
    followed = {other for key in (*_FIRST, *keys) if key in every for other in going_along(summary, key)}
    others = {key for key in every if not is_seed(key)} - followed
    return [key for key in keys if key not in followed and not (is_seed(key) and others)]


def is_seed(key: str) -> bool:
    """Whether the values of a key are draws, between which there is nothing."""
    return key.rpartition(".")[2].endswith("seed")


def going_along(summary: pd.DataFrame, x: str) -> list[str]:
    """Return the keys, later ones than ``x``, that change when it does and not else: those of a zipped sweep."""
    later = varying(summary)
    return [
        name
        for name in later[later.index(x) + 1 :]
        if name not in _LAST and not _adds(summary, [x], name) and not _adds(summary, [name], x)
    ]


def typical(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Keep, of points that differ in a seed only, the one with the median of the times."""
    groups = rows.groupby(x, dropna=False)["makespan_s"]
    return rows[groups.rank(method="first") == (groups.transform("size") + 1) // 2]


def lines(summary: pd.DataFrame, x: str) -> list[SweepLine]:
    """Return the rows as lines over the key ``x``, one for each combination of the other keys that matter."""
    keys = _line_keys(summary, x)
    if not keys:
        return [SweepLine("", _sorted(summary, x))]
    counted = [key for key in keys if key in _FIRST]  # the others stay in the order of the sweep
    groups = (summary.sort_values(counted, kind="stable") if counted else summary).groupby(
        keys, dropna=False, sort=False
    )
    return [SweepLine(_label(keys, key), _sorted(rows, x)) for key, rows in groups]


def _sorted(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    found = numbers(rows[x])
    order = np.argsort(found.numbers, kind="stable") if found else np.arange(len(rows))
    return rows.iloc[order]


def _label(keys: Sequence[str], key: object) -> str:
    values = key if isinstance(key, tuple) else (key,)
    return ", ".join(describe(name, value) for name, value in zip(keys, values, strict=True))


def describe(key: str, value: object) -> str:
    """Say one setting in a few words.

    >>> describe("n_workers", 8), describe("message_bytes", 65536), describe("network.bandwidth", "50 GB/s")
    ('N = 8', '64 KiB', 'bandwidth 50 GB/s')

    What tells a list from the others names its keys itself:

    >>> describe("swept.trouble", "timeout 500 us, no go_back")
    'timeout 500 us, no go_back'
    """
    if key == "n_workers":
        return f"N = {value}"
    if key == "message_bytes":
        return format_bytes(int(str(value)))
    known = key in TABLES["summary"] and key not in ("payload", "seed")
    return str(value) if known or key.startswith("swept.") else f"{key_words(key)} {value}"


def key_words(key: str) -> str:
    """Say what a key is, for the label of an axis.

    >>> key_words("n_workers"), key_words("network.workers_per_host"), key_words("network.links.3->4.bandwidth")
    ('workers, N', 'workers per host', '3->4 bandwidth')
    >>> key_words("background.0.rate"), key_words("algorithm.n_channels")
    ('background rate', 'algorithm channels')
    """
    parts = key.split(".")
    first, last = parts[0], parts[-1]
    words = _WORDS.get(last, short(key).replace("_", " ").removeprefix("n "))
    return words if first in ("network", "worker", last) else f"{first} {words}"


def settings(rows: pd.DataFrame, *more: str) -> str:
    """Say what all points have in common: ``ring all-reduce, N = 8, 64 MiB, ring network, fifo, eager``."""
    fixed = {name: rows[name].iloc[0] for name in rows.columns if not is_varied(rows[name])}
    said = [" ".join(str(fixed[name]) for name in ("algorithm", "collective") if name in fixed)]
    said += [describe(name, fixed[name]) for name in ("n_workers", "message_bytes") if name in fixed]
    said += [f"{fixed['topology']} network"] if fixed.get("topology") else []
    said += [str(fixed[name]) for name in ("switching", "sharing", "sends") if fixed.get(name)]
    return ", ".join(filter(None, [*said, *more]))


def short(key: str) -> str:
    """Shorten the path of a key to what tells it.

    >>> short("network.bandwidth"), short("network.links.3->4.bandwidth"), short("seed")
    ('bandwidth', '3->4 bandwidth', 'seed')
    """
    *above, last = key.split(".")
    return " ".join([*above[2:], last])


def numbers(column: pd.Series[Any]) -> Numbers | None:
    """Return a swept key as numbers, whether it is written with units or without; None where it is words."""
    for kind in _KINDS:
        values = list(_parsed(column, kind))
        if len(values) == len(column):
            return Numbers(np.array(values, dtype=np.float64), kind)
    return None


def _parsed(column: pd.Series[Any], kind: Kind) -> Iterator[float]:
    """Yield numbers as long as they are of the kind; the first that is not ends it."""
    for cell in column.tolist():
        try:
            yield float(cell) if kind == "number" else parse_quantity(cell, kind)
        except (ValueError, TypeError, UnitError):
            return
