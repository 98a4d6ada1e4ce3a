"""Words in pictures: under which settings a run was made, and what had to be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ringnet.reporting.sweeps import describe, is_varied, telling

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


def settings(rows: pd.DataFrame, *more: str) -> str:
    """Say what all points have in common: ``ring all-reduce, N = 8, 64 MiB, ring network, fifo, eager``."""
    fixed = {name: rows[name].iloc[0] for name in rows.columns if not is_varied(rows[name])}
    said = [" ".join(str(fixed[name]) for name in ("algorithm", "collective") if name in fixed)]
    said += [describe(name, fixed[name]) for name in ("n_workers", "message_bytes") if name in fixed]
    said += [f"{fixed['topology']} network"] if fixed.get("topology") else []
    said += [str(fixed[name]) for name in ("switching", "sharing", "sends") if fixed.get(name)]
    return ", ".join(filter(None, [*said, *more]))


def point_labels(rows: pd.DataFrame) -> list[str]:
    """Say of each point what tells it from the others."""
    keys = telling(rows)
    return [", ".join(describe(key, row[key]) for key in keys) for row in rows.to_dict("records")]


def some(items: Sequence[T], most: int, what: str) -> tuple[list[T], str]:
    """Return at most so many items, evenly chosen from first to last, and a word if some are left out.

    >>> some(range(10), 4, "lines")
    ([0, 3, 6, 9], '4 of 10 lines shown')
    """
    if len(items) <= most:
        return list(items), ""
    chosen = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[index] for index in chosen], f"{most} of {len(items)} {what} shown"


def clipped(text: str, width: int) -> str:
    """Shorten a text in its middle, where names differ least.

    >>> clipped("nodes.leaf12->spine3", 12)
    'nodes.…pine3'
    """
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"
