"""A trace as tables: a row per link, per worker, per change of a queue, per worker and step of a worked example.

A table is its columns by name, as arrays, or as lists of plain values with None for an empty cell. pandas makes a frame
of them when somebody asks for one: it takes longer to import than most runs take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.path_records import NONE
from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.trace import Columns, Trace
from ringnet.networks import Network

if TYPE_CHECKING:
    import pandas as pd

    from ringnet.analysis.critical_path import CriticalPath

#: Columns by name.
Table: TypeAlias = dict[str, Any]

#: Before the name of a job, in the columns that say what it put on each link.
BYTES_OF = "bytes of "
#: Before the name of a job, or of other traffic, in the columns that say who waits.
WAITING_OF = "waiting of "
#: Links that are kept, those with most queueing; changes up to which each is a row; spans of time otherwise.
MOST_LINKS, MOST_CHANGES, N_SPANS = 12, 2000, 1000


def as_frame(table: Table) -> pd.DataFrame:
    """Return a table as a data frame; an empty cell of a list is `pandas.NA`.

    >>> as_frame({"worker": [0, None], "link": ["0->1", "1->0"]})["worker"].tolist()
    [0, <NA>]
    """
    import pandas as pd  # noqa: PLC0415 -- as said above

    def cells(column: Any) -> Any:
        if isinstance(column, list):
            return [pd.NA if cell is None else cell for cell in column]
        return pd.Series(column, dtype=column.dtype)  # what is an object stays one

    return pd.DataFrame({name: cells(column) for name, column in table.items()})


def of_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of some rows; a cell that a row does not have is empty.

    >>> {name: column.tolist() for name, column in of_rows([{"a": 1}, {"a": 2, "b": "x"}]).items()}
    {'a': [1, 2], 'b': [None, 'x']}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: object_array([row.get(name) for row in rows]) for name in names}


def rows_of(table: Table | None) -> list[dict[str, Any]]:
    """Return the rows of a table, cells by column; none of no table."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)] if table else []


def object_array(cells: Sequence[Any]) -> NDArray[np.object_]:
    """Return cells of any kind as one column, shape (n_rows,)."""
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def joined(tables: Sequence[Table]) -> Table:
    """Return the rows of several tables with the same columns as one table."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def link_table(trace: Trace, network: Network, by_job: Mapping[str, IntArray] | None = None) -> Table:
    """Return one row per link, with its name, its ends, what it offers and what it carried, by job if there are some.

    Where others use the links too, they are utilised from the start to when the last link had something to do.
    """
    total_s = makespan_s(trace) if trace.until_s is None else trace.until_s
    ends, nodes = network.link_ends, np.array(network.link_ends.nodes, dtype=object)
    columns: Table = {
        "link": list(network.names),
        "from": nodes[ends.start],
        "to": nodes[ends.end],
        "bandwidth_Bps": network.bandwidth_Bps,
        "latency_s": network.latency_s,
        **{name: trace.links[name] for name in ("bytes", "transfers", "busy_s", "occupied_s")},
        "utilisation": trace.links["busy_s"] / total_s if total_s else np.full(network.n_links, np.nan),
        **{name: trace.links[name] for name in ("longest_queue", "queued_s")},
        "mean_wait_s": _mean_wait_s(trace),
        **{name: trace.links[name] for name in ("lost_packets", "resent_bytes") if name in trace.links},
    }
    if by_job:
        others = trace.links["bytes"] - sum(by_job.values())
        columns |= {f"{BYTES_OF}{name}": n_bytes for name, n_bytes in by_job.items()}
        columns |= {f"{BYTES_OF}other traffic": others}
    return columns


def _mean_wait_s(trace: Trace) -> FloatArray:
    """Return how long the transfers of each link waited for it in the mean; NaN where there were none."""
    queued_s, transfers = trace.links["queued_s"], trace.links["transfers"]
    mean_s: FloatArray = np.full(len(queued_s), np.nan)
    return np.divide(queued_s, transfers, out=mean_s, where=transfers > 0)


def worker_table(trace: Trace, spent: Columns, places: tuple[str, ...] | None = None) -> Table:
    """Return one row per worker; with its place, where workers do not sit at the places of their numbers.

    Parameters
    ----------
    trace : Trace
    spent : dict of str to ndarray
        As `ringnet.analysis.worker_time.worker_time` has it.
    places : tuple of str, optional
    """
    at = {} if places is None else {"place": list(places)}
    return {"worker": np.arange(len(trace.workers["end_s"])), **trace.workers, **spent, **at}


def path_table(path: CriticalPath, names: Sequence[str], owners: Sequence[str]) -> Table:
    """Return one row per piece of a path that takes time, as ``path.csv`` has them.

    Parameters
    ----------
    path : CriticalPath
    names : sequence of str
        Of the links.
    owners : sequence of str
        Of the jobs, and after them of other traffic.
    """
    lasts = path.lasts_s > 0
    pieces = {name: column[lasts] for name, column in path.columns.items()}
    path, n_pieces = replace(path, columns=pieces), len(pieces["part"])
    moved = ("phase", "step", "chunk", "src", "dst")
    behind = {name: path.behind(name) for name in moved}
    waited = np.flatnonzero((pieces["behind"] != NONE) | (pieces["owner"] != NONE))
    in_front: list[str | None] = [None] * n_pieces
    for row, owner, phase, step, chunk, src, dst in zip(
        *(column[waited].tolist() for column in (np.arange(n_pieces), pieces["owner"], *behind.values())),
        strict=True,
    ):
        in_front[row] = f"{phase} {step}: {src}->{dst}, chunk {chunk}" if owner == NONE else owners[owner]
    table = {
        **{name: pieces[name] for name in ("from_s", "to_s", "part")},
        "worker": [None if worker == NONE else worker for worker in pieces["worker"].tolist()],
        "link": [None if link == NONE else names[link] for link in pieces["link"].tolist()],
        **{name: path.of_pieces(name) for name in moved},
        "queue": pieces["queue"],
        "queued_s": np.where(pieces["queue"] == "", np.nan, pieces["queued_s"]),
        "behind_worker": behind["src"],
        "behind_transfer": in_front,
    }
    return {
        name: column.tolist() if isinstance(column, np.ndarray) and column.dtype == object else column
        for name, column in table.items()
    }


def queue_table(waits: Columns, names: Sequence[str], owners: Sequence[str]) -> Table | None:
    """Return how many transfers wait for each of the links with most queueing, a row whenever that changes.

    Parameters
    ----------
    waits : dict of str to ndarray
        As `Trace.waits` has them.
    names : sequence of str
        Of the links.
    owners : sequence of str
        Of the jobs, and after them of other traffic. Where there is one, its column would say the same again.

    Returns
    -------
    dict or None
        ``link, time_s, waiting`` and ``waiting of <owner>``; by link, the most queueing first. Of a link with many
        changes, means over spans of time, each from its row's time on. None if nothing waited.

    Examples
    --------
    >>> waits = {"link": [0, 0], "owner": [0, 1], "from_s": [0.0, 1.0], "to_s": [2.0, 3.0]}
    >>> waits = {name: np.array(column) for name, column in waits.items()}
    >>> print(as_frame(queue_table(waits, ["0->1"], ["mine", "storage"])).to_string(index=False))
    link  time_s  waiting  waiting of mine  waiting of storage
    0->1     0.0      1.0              1.0                 0.0
    0->1     1.0      2.0              1.0                 1.0
    0->1     2.0      1.0              0.0                 1.0
    0->1     3.0      0.0              0.0                 0.0
    """
    if not len(waits["link"]):
        return None
    total_s = np.bincount(waits["link"], waits["to_s"] - waits["from_s"], minlength=len(names))
    most = np.argsort(-total_s, kind="stable")[:MOST_LINKS]
    return joined([_of_link(waits, int(link), names, owners) for link in most if total_s[link] > 0])


def _of_link(waits: Columns, link: int, names: Sequence[str], owners: Sequence[str]) -> Table:
    own = waits["link"] == link
    times_s, waiting = _steps(waits["owner"][own], waits["from_s"][own], waits["to_s"][own], len(owners))
    if len(times_s) > MOST_CHANGES:
        times_s, waiting = _means(times_s, waiting)
    named = object_array([names[link]] * len(times_s))
    columns: Table = {"link": named, "time_s": times_s, "waiting": waiting.sum(axis=1)}
    if len(owners) > 1:
        columns |= {f"{WAITING_OF}{name}": waiting[:, place] for place, name in enumerate(owners)}
    return columns


def _steps(owner: IntArray, from_s: FloatArray, to_s: FloatArray, n_owners: int) -> tuple[FloatArray, FloatArray]:
    """Return the times at which anything changes, and who waits from each on, shape (n_times, n_owners)."""
    times_s, at = np.unique(np.concatenate([from_s, to_s]), return_inverse=True)
    changes = np.zeros((len(times_s), n_owners))
    np.add.at(changes, (at[: len(owner)], owner), 1.0)
    np.add.at(changes, (at[len(owner) :], owner), -1.0)
    changed = changes.any(axis=1)
    return times_s[changed], changes.cumsum(axis=0)[changed]


def _means(times_s: FloatArray, waiting: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means of steps over equal spans of time, and at the end what follows the last."""
    area = np.vstack([np.zeros(waiting.shape[1]), (np.diff(times_s)[:, None] * waiting[:-1]).cumsum(axis=0)])
    edges_s = np.linspace(times_s[0], times_s[-1], N_SPANS + 1)
    at_edges = np.column_stack([np.interp(edges_s, times_s, column) for column in area.T])
    means = np.diff(at_edges, axis=0) / np.diff(edges_s)[:, None]
    return edges_s, np.vstack([np.maximum(means, 0.0), waiting[-1]])


def state_table(schedule: Schedule, trace: Trace, first: list[Array]) -> Table:
    """Return the whole buffer of every worker at the start and after every step.

    Parameters
    ----------
    schedule : Schedule
    trace : Trace
        With ``transfers`` and ``values``.
    first : list of ndarray, shape (n_elements,)
        Buffer of each worker at the start.

    Returns
    -------
    dict of list
        Columns ``phase, step, worker, e0, e1, ...``; phase ``start`` for the rows before the first step.
    """
    assert trace.values is not None
    buffers = [buffer.copy() for buffer in first]
    sizes = schedule.chunk_sizes(len(first[0]))
    starts = ((np.cumsum(sizes) - sizes) % max(1, len(first[0]))).tolist()
    rows: list[tuple[Any, ...]] = [("start", None, worker, *buffer.tolist()) for worker, buffer in enumerate(buffers)]
    values = iter(trace.values)
    for step in schedule.steps():
        for dst, chunk in zip(step.dst.tolist(), step.chunk.tolist(), strict=True):
            value = next(values)
            buffers[dst][starts[chunk] : starts[chunk] + len(value)] = value
        rows += [(step.phase, step.step, worker, *buffer.tolist()) for worker, buffer in enumerate(buffers)]
    names = ["phase", "step", "worker", *(f"e{element}" for element in range(len(first[0])))]
    return {name: [*cells] for name, cells in zip(names, zip(*rows, strict=True), strict=True)}
