"""Queues over time: how many transfers wait for a link, and whose they are, from who waited when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ringnet.engines.trace import Columns

FloatArray: TypeAlias = NDArray[np.float64]

#: Before the name of a job, or of other traffic, in the columns that say who waits.
WAITING_OF = "waiting of "
#: Links that are kept, those with most queueing; changes up to which each is a row; spans of time otherwise.
MOST_LINKS, MOST_CHANGES, N_SPANS = 12, 2000, 1000


def queue_frame(waits: Columns, names: Sequence[str], owners: Sequence[str]) -> pd.DataFrame | None:
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
    DataFrame or None
        ``link, time_s, waiting`` and ``waiting of <owner>``; by link, the most queueing first. Of a link with many
        changes, means over spans of time, each from its row's time on. None if nothing waited.

    Examples
    --------
    >>> waits = {"link": [0, 0], "owner": [0, 1], "from_s": [0.0, 1.0], "to_s": [2.0, 3.0]}
    >>> waits = {name: np.array(column) for name, column in waits.items()}
    >>> print(queue_frame(waits, ["0->1"], ["mine", "storage"]).to_string(index=False))
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
    frames = [_link_frame(waits, int(link), names, owners) for link in most if total_s[link] > 0]
    return pd.concat(frames, ignore_index=True)


def _link_frame(waits: Columns, link: int, names: Sequence[str], owners: Sequence[str]) -> pd.DataFrame:
    own = waits["link"] == link
    times_s, waiting = _steps(waits["owner"][own], waits["from_s"][own], waits["to_s"][own], len(owners))
    if len(times_s) > MOST_CHANGES:
        times_s, waiting = _means(times_s, waiting)
    columns: dict[str, Any] = {"link": names[link], "time_s": times_s, "waiting": waiting.sum(axis=1)}
    if len(owners) > 1:
        columns |= {f"{WAITING_OF}{name}": waiting[:, place] for place, name in enumerate(owners)}
    return pd.DataFrame(columns)


def _steps(
    owner: NDArray[np.int64], from_s: FloatArray, to_s: FloatArray, n_owners: int
) -> tuple[FloatArray, FloatArray]:
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
