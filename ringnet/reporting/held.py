"""Who holds how much of each chunk while a run goes on, from its table of transfers alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ringnet.array_types import IntArray

if TYPE_CHECKING:
    import pandas as pd

    from ringnet.reporting.tables import RunTables


#: Collectives that add up what every worker brings.
_ADDING = ("all-reduce", "reduce-scatter", "reduce")
#: Workers, elements of each and steps of which the states can be read.
MOST_WORKERS, MOST_ELEMENTS, MOST_STEPS = 16, 16, 62


class Sent(NamedTuple):
    """A transfer, and what becomes of its receiver.

    Parameters
    ----------
    phase, step : str, int
    src, dst : int
    chunks : range
    started_s, applied_s : float
    carried, held : ndarray of int64, shape (n_chunks of the transfer,)
        Whose parts are in each chunk, a bit for each worker: on the way, and with the receiver afterwards.
    """

    phase: str
    step: int
    src: int
    dst: int
    chunks: range
    started_s: float
    applied_s: float
    carried: IntArray
    held: IntArray


class Holding(NamedTuple):
    """What all workers hold at the start, shape (n_workers, n_chunks), a bit for each worker; and all transfers.

    ``whole`` is what a chunk is when nothing is missing from it, by chunk.
    """

    start: IntArray
    transfers: tuple[Sent, ...]
    whole: IntArray


def has_readable_states(results: RunTables) -> bool:
    """Whether there are states of few enough workers and elements, and all transfers between them."""
    frame = results.states
    if frame is None or results.transfers is None or results.transfers.empty:
        return False
    n_elements = sum(name not in ("phase", "step", "worker") for name in frame.columns)
    n_steps = len(frame[["phase", "step"]].drop_duplicates())
    few = frame["worker"].nunique() <= MOST_WORKERS and n_elements <= MOST_ELEMENTS and n_steps <= MOST_STEPS
    return few and holding(results) is not None


def holding(results: RunTables) -> Holding | None:
    """Follow every chunk through the steps; None where the table does not say enough.

    A row has the first chunk of a transfer only; how many it carries follows from its bytes. A step is simultaneous:
    what is sent is what the sender held before it.

    Parameters
    ----------
    results : RunTables
        Of a single run, with its transfers.
    """
    transfers, summary = results.transfers, results.summary.iloc[0]
    if transfers is None or transfers.empty:
        return None
    n_workers, n_chunks = int(summary["n_workers"]), int(transfers["chunk"].max()) + 1
    if transfers[["src", "dst"]].to_numpy().max() >= n_workers:
        return None
    one_chunk = int(summary["message_bytes"]) / n_chunks
    counts = np.maximum(1, np.round(transfers["bytes"] / one_chunk)) if one_chunk else np.ones(len(transfers))
    table = transfers.assign(count=np.asarray(counts, dtype=np.int64))
    if (table["chunk"] + table["count"] > n_chunks).any():
        return None
    adds = summary["collective"] in _ADDING
    start = _start(table, n_workers, n_chunks, adds=adds)
    held = start.copy()
    sent: list[Sent] = []
    for _, rows in table.groupby(["phase", "step"], sort=False):
        sent += _step(rows, held)
    whole = np.full(n_chunks, (1 << n_workers) - 1) if adds else np.bitwise_or.reduce(start, axis=0)
    arrives = (
        (held == whole).all() if summary["collective"] == "all-reduce" else (held == whole).any(axis=0).all()
    )
    return Holding(start, tuple(sorted(sent, key=lambda one: one.applied_s)), whole) if arrives else None


def _start(table: pd.DataFrame, n_workers: int, n_chunks: int, *, adds: bool) -> IntArray:
    """Give every worker its own part of every chunk; where nothing is added, all of it to whoever sends it first."""
    if adds:
        return np.repeat(1 << np.arange(n_workers, dtype=np.int64)[:, None], n_chunks, axis=1)
    start = np.zeros((n_workers, n_chunks), dtype=np.int64)
    received: set[tuple[int, int]] = set()
    for _, rows in table.groupby(["phase", "step"], sort=False):
        ways = [(one, chunk) for one in rows.to_dict("records") for chunk in _chunks(one)]
        for one, chunk in ways:
            start[one["src"], chunk] |= (one["src"], chunk) not in received
        received |= {(one["dst"], chunk) for one, chunk in ways}
    return start


def _chunks(row: Mapping[Hashable, Any]) -> range:
    return range(row["chunk"], row["chunk"] + row["count"])


def _step(rows: pd.DataFrame, held: IntArray) -> Iterator[Sent]:
    """Apply all transfers of a step to what is held; yield them."""
    before = held.copy()
    for one in rows.to_dict("records"):
        chunks = _chunks(one)
        carried = before[one["src"], chunks.start : chunks.stop].copy()
        mine = held[one["dst"], chunks.start : chunks.stop]
        mine[:] = mine | carried if one["op"] == "reduce" else carried
        ends = one["started_s"], one["applied_s"]
        yield Sent(one["phase"], one["step"], one["src"], one["dst"], chunks, *ends, carried, mine.copy())


def elements_of(n_elements: int, n_chunks: int) -> list[range]:
    """Return which elements of a buffer each chunk is.

    >>> elements_of(5, 3)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    ends = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(n_elements), n_chunks))]).tolist()
    return [range(first, last) for first, last in pairwise(ends)]
