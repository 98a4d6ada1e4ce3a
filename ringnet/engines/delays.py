"""Who waited for which link, from when to when: flat columns, written while a run goes on."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.engines.trace import Columns

FloatArray: TypeAlias = NDArray[np.float64]
#: Rows that are kept; where more come nothing is said of who waited when.
MOST_ROWS = 1_000_000
#: Waits shorter than this share of the time are none. A head that comes as its link becomes free has its time from
#: other sums than the link, which differ by some 1e-16 of it for each step; nothing that waits is over so soon.
ROUNDING = 1e-12


class Delays:
    """Waits for links, one row each.

    Parameters
    ----------
    most : int
        Rows that are kept; none of them if more come.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most = most
        self.links, self.owners = array("q"), array("q")
        self.from_s, self.to_s = array("d"), array("d")

    def add(self, link: int, owner: int, from_s: float, to_s: float) -> None:
        """Add a wait; ``owner`` is the number of a job, or of other traffic after all jobs."""
        if to_s > from_s and len(self.links) <= self.most:
            self.links.append(link)
            self.owners.append(owner)
            self.from_s.append(from_s)
            self.to_s.append(to_s)

    def add_all(self, links: Iterable[int], owner: int, from_s: float, to_s: float) -> None:
        """Add the same wait for several links."""
        for link in links:
            self.add(link, owner, from_s, to_s)

    def add_rows(self, links: NDArray[np.int64], from_s: FloatArray, to_s: FloatArray) -> None:
        """Add waits of the first job, one per entry: all arrays have shape (n_waits,)."""
        if len(self.links) <= self.most:
            self.links.frombytes(links.astype(np.int64).tobytes())
            self.owners.frombytes(np.zeros(len(links), dtype=np.int64).tobytes())
            self.from_s.frombytes(from_s.tobytes())
            self.to_s.frombytes(to_s.tobytes())

    def columns(self) -> Columns | None:
        """Return ``link, owner, from_s, to_s``; None if there were too many rows."""
        if len(self.links) > self.most:
            return None
        return {
            "link": np.array(self.links, dtype=np.int64),
            "owner": np.array(self.owners, dtype=np.int64),
            "from_s": np.array(self.from_s, dtype=np.float64),
            "to_s": np.array(self.to_s, dtype=np.float64),
        }


def beyond_the_first(flows: Columns) -> Columns:
    """Return, of flows that share links, the time in which each is not the first one on its link.

    Parameters
    ----------
    flows : dict of str to ndarray
        As `Delays.columns` has them: from when to when each flow was on each link, by end.

    Examples
    --------
    Of three flows the second waits until the first has ended, and the third until both have:

    >>> flows = {"link": [4, 4, 4], "owner": [0, 0, 0], "from_s": [0.0, 1.0, 1.5], "to_s": [2.0, 5.0, 4.0]}
    >>> waits = beyond_the_first({name: np.array(column) for name, column in flows.items()})
    >>> waits["from_s"].tolist(), waits["to_s"].tolist()
    ([1.0, 1.5], [2.0, 4.0])
    """
    order = np.lexsort((flows["from_s"], flows["link"]))
    columns = {name: column[order] for name, column in flows.items()}
    firsts = np.flatnonzero(np.diff(columns["link"], prepend=-1))
    to_s = columns["to_s"].copy()
    for first, end in pairwise([*firsts.tolist(), len(to_s)]):
        # When all that came before it have ended.
        free_s = np.maximum.accumulate(columns["to_s"][first:end])
        to_s[first] = columns["from_s"][first]
        to_s[first + 1 : end] = np.minimum(to_s[first + 1 : end], free_s[:-1])
    waits = to_s - columns["from_s"] > ROUNDING * to_s
    return {name: column[waits] for name, column in (columns | {"to_s": to_s}).items()}
