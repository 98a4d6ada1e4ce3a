"""Who holds how many contributions to each chunk while a run goes on, from its table of transfers alone.

A result tells what was sent, not what a schedule meant by it. So the rows are followed step by step from what each
worker holds at the start, and what comes out is shown only if it is what the collective promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import split_sizes
from ringnet.collectives.schedule import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER
from ringnet.payload.dtypes import ITEMSIZES

if TYPE_CHECKING:
    import pandas as pd

    from ringnet.reporting.tables import RunTables

#: Workers, elements of each and steps of which the states can be read.
MOST_WORKERS, MOST_ELEMENTS, MOST_STEPS = 16, 16, 62
#: Workers and switches, times chunks: far more cells than anybody looks at, and a bound for what is read from disk.
MOST_CELLS = 1 << 22
#: Where every worker has its own contribution to each chunk, and a chunk is complete when it has those of all.
COMBINING = (ALL_REDUCE, REDUCE_SCATTER, REDUCE)


@dataclass(frozen=True)
class Holdings:
    """What workers hold, in numbers of contributions.

    Parameters
    ----------
    first : ndarray of int64, shape (n_nodes, n_chunks)
        At the start; workers, and after them switches that reduce.
    complete : int
        Contributions of a complete chunk.
    carried : ndarray of int64, shape (n_transfers,)
        Contributions to each of its chunks that a transfer carries: the receiver adds them to its own, or copies.
    count : ndarray of int64, shape (n_transfers,)
        Chunks that a transfer carries, one after another from its first.
    sizes : ndarray of int64, shape (n_chunks,)
        Elements of each chunk.
    """

    first: IntArray
    complete: int
    carried: IntArray
    count: IntArray
    sizes: IntArray


class _NotKept(Exception):  # noqa: N818 -- a promise, not an error: the caller turns it into words
    """The rows do not lead from what the collective starts with to what it promises."""


def holdings(
    transfers: pd.DataFrame, collective: str, n_workers: int, n_elements: int, itemsize: int
) -> Holdings | str:
    """Follow the transfers of a run, step by step.

    Parameters
    ----------
    transfers : DataFrame
        In the order of the schedule, as ``transfers.csv`` has them.
    collective : str
    n_workers : int
    n_elements, itemsize : int
        Elements of a worker's buffer, and bytes of each.

    Returns
    -------
    Holdings or str
        Or a sentence that says why that cannot be told.
    """
    n_nodes = max(n_workers, int(transfers[["src", "dst"]].to_numpy().max()) + 1)
    try:
        sizes, count = _cut(transfers, collective, n_workers, n_elements, itemsize)
        if n_nodes * len(sizes) > MOST_CELLS:
            return f"{n_nodes:,} workers times {len(sizes):,} chunks are too many to be shown"
        first = _first(transfers, collective, (n_workers, n_nodes, len(sizes)), count)
        complete = n_workers if collective in COMBINING else 1
        held, carried = _followed(transfers, first, count)
        _check_promise(held[:n_workers], collective, complete)
    except _NotKept:
        return "what each worker holds cannot be told: the rows of transfers.csv do not lead to what is promised"
    return Holdings(first, complete, carried, count, sizes)


def _cut(
    transfers: pd.DataFrame, collective: str, n_workers: int, n_elements: int, itemsize: int
) -> tuple[IntArray, IntArray]:
    """Return the sizes of the chunks, and how many each transfer carries: the number that explains all their bytes."""
    first, carried = (transfers[name].to_numpy(np.int64) for name in ("chunk", "bytes"))
    n_seen, n_buffers = int(first.max()) + 1, n_workers if collective == ALL_TO_ALL else 1
    least = carried[carried > 0].min(initial=max(1, n_elements * itemsize))
    # Where one transfer carries several chunks, the last of them need not be the first of any.
    likely = [n_seen, n_workers, round(n_elements * itemsize / int(least)), 2 * n_workers]
    for n_each in dict.fromkeys([n_workers] if collective == ALL_TO_ALL else likely):
        if not n_seen <= n_each * n_buffers <= MOST_CELLS:
            continue
        sizes = np.tile(split_sizes(n_elements, n_each), n_buffers)
        ends = np.concatenate(([0], np.cumsum(sizes * itemsize)))
        last = np.searchsorted(ends, ends[first] + carried)
        if (ends[np.minimum(last, len(sizes))] == ends[first] + carried).all():
            return sizes, np.where(carried > 0, last - first, 1)
    raise _NotKept


def _first(transfers: pd.DataFrame, collective: str, shape: tuple[int, int, int], count: IntArray) -> IntArray:
    """Return what everybody holds at the start: its own of everything, or what it sends before anything came."""
    n_workers, n_nodes, n_chunks = shape
    first = np.zeros((n_nodes, n_chunks), dtype=np.int64)
    if collective in COMBINING:
        first[:n_workers] = 1
        return first
    if collective == ALL_TO_ALL:
        first[np.arange(n_chunks) // n_workers, np.arange(n_chunks)] = 1
        return first
    came = np.zeros((n_nodes, n_chunks), dtype=bool)
    for src, dst, chunk, _, _ in _steps(transfers, count):
        own = ~came[src, chunk] & (src < n_workers)
        first[src[own], chunk[own]] = 1
        came[dst, chunk] = True
    return first


def _steps(transfers: pd.DataFrame, count: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray, IntArray, bool]]:
    """Yield sender, receiver, chunk and place of the row of all that one step moves, and whether it is added."""
    names = ["phase", "step", "op"]
    begins = (transfers[names] != transfers[names].shift()).any(axis=1).to_numpy().nonzero()[0].tolist()
    columns = [transfers[name].to_numpy(np.int64) for name in ("src", "dst", "chunk")]
    reduces = (transfers["op"] == "reduce").to_numpy()
    for begin, end in zip(begins, [*begins[1:], len(transfers)], strict=True):
        here = count[begin:end]
        place = begin + np.repeat(np.arange(end - begin), here)
        nth = np.arange(len(place)) - np.repeat(np.cumsum(here) - here, here)
        src, dst, chunk = (column[place] for column in columns)
        yield src, dst, chunk + nth, place, bool(reduces[begin])


def _followed(transfers: pd.DataFrame, first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return what everybody holds in the end, and what each transfer carried."""
    held, carried = first.copy(), np.zeros(len(transfers), dtype=np.int64)
    for src, dst, chunk, place, is_added in _steps(transfers, count):
        taken = held[src, chunk]
        carried[place] = taken
        if (carried[place] != taken).any():  # chunks of one transfer that are not alike
            raise _NotKept
        if is_added:
            np.add.at(held, (dst, chunk), taken)
        else:
            held[dst, chunk] = taken
    return held, carried


def _check_promise(held: IntArray, collective: str, complete: int) -> None:
    """Hold what the workers have in the end against what the collective promises; nothing is counted twice."""
    whole = held == complete
    kept = {
        ALL_REDUCE: whole.all(),
        ALL_GATHER: whole.all(),
        BROADCAST: whole.all(),
        REDUCE: whole.all(axis=1).any(),
        REDUCE_SCATTER: whole.any(axis=0).all(),
        ALL_TO_ALL: whole[np.arange(whole.shape[1]) % len(held), np.arange(whole.shape[1])].all(),
    }
    if not kept.get(collective, False) or (held > complete).any():
        raise _NotKept


# Of a single run, for pictures of its buffers.


class Sent(NamedTuple):
    """A transfer: when it went, which chunks, and how many contributions to each of them, to be added or to stay."""

    phase: str
    step: int
    src: int
    dst: int
    chunks: range
    started_s: float
    applied_s: float
    carried: int
    adds: bool

    def apply(self, held: IntArray) -> None:
        """Change what its receiver holds, in an array of shape (n_workers, n_chunks)."""
        mine = held[self.dst, self.chunks.start : self.chunks.stop]
        mine[:] = mine + self.carried if self.adds else self.carried


def holding(results: RunTables) -> Holdings | None:
    """Follow the transfers of a single run; None where the table does not say enough, as where switches reduce."""
    transfers, row = results.transfers, results.summary.iloc[0]
    n_workers, itemsize = int(row["n_workers"]), ITEMSIZES.get(str(row["dtype"]), 0)
    if transfers is None or transfers.empty or not itemsize or row["collective"] == ALL_TO_ALL:
        return None
    if transfers[["src", "dst"]].to_numpy().max() >= n_workers:
        return None
    n_elements = int(row["message_bytes"]) // itemsize
    found = holdings(transfers, str(row["collective"]), n_workers, n_elements, itemsize)
    return None if isinstance(found, str) else found


def has_readable_states(results: RunTables) -> bool:
    """Whether there are states of few enough workers and elements, and all transfers between them."""
    frame = results.states
    if frame is None or results.transfers is None or results.transfers.empty:
        return False
    n_elements = sum(name not in ("phase", "step", "worker") for name in frame.columns)
    n_steps = len(frame[["phase", "step"]].drop_duplicates())
    few = frame["worker"].nunique() <= MOST_WORKERS and n_elements <= MOST_ELEMENTS and n_steps <= MOST_STEPS
    return few and holding(results) is not None


def sent(transfers: pd.DataFrame, found: Holdings) -> list[Sent]:
    """Return the transfers in the order in which they are applied."""
    rows = zip(transfers.to_dict("records"), found.carried.tolist(), found.count.tolist(), strict=True)
    every = [
        Sent(
            one["phase"],
            one["step"],
            one["src"],
            one["dst"],
            range(one["chunk"], one["chunk"] + count),
            one["started_s"],
            one["applied_s"],
            carried,
            one["op"] == "reduce",
        )
        for one, carried, count in rows
    ]
    return sorted(every, key=lambda one: one.applied_s)


def elements_of(found: Holdings) -> list[range]:
    """Return which elements of a buffer each chunk is."""
    ends = np.cumsum(found.sizes).tolist()
    return [range(end - size, end) for size, end in zip(found.sizes.tolist(), ends, strict=True)]
