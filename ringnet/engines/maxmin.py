"""Max-min fair rates by progressive filling: pure arithmetic, no clock."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

#: Rates that differ by less than this share are filled up together.
TOGETHER = 1e-12


def max_min_rates(routes: IntArray, capacity_Bps: FloatArray, caps_Bps: FloatArray | None = None) -> FloatArray:
    """Return the rate of each flow such that none can have more without taking from one that has no more than it.

    Parameters
    ----------
    routes : ndarray of int64, shape (n_flows, most_links)
        Links of each flow; ``n_links`` stands where a route has fewer.
    capacity_Bps : ndarray, shape (n_links + 1,)
        Bytes per second of each link; the last, for no link, is ``inf``.
    caps_Bps : ndarray, shape (n_flows,), optional
        What each flow cannot exceed by itself.

    Returns
    -------
    ndarray, shape (n_flows,)
        Bytes per second.

    Notes
    -----
    All rates rise together until a link is full; its flows keep what they have, the others go on rising. Bertsekas and
    Gallager, *Data Networks*, section 6.5.2. At most as many rounds as there are links and caps, each of work
    proportional to the flows left: flows x links in all.

    Examples
    --------
    Two flows share link 0, of which one also crosses the narrow link 1:

    >>> max_min_rates(np.array([[0, 2], [0, 1]]), np.array([10.0, 2.0, np.inf])).tolist()
    [8.0, 2.0]
    """
    rates = np.zeros(len(routes))
    left_Bps = capacity_Bps.copy()
    counts = np.bincount(routes.ravel(), minlength=len(capacity_Bps))
    open_flows = np.arange(len(routes))
    while len(open_flows):
        share = _share(left_Bps, counts)
        possible = share[routes[open_flows]].min(axis=1)
        if caps_Bps is not None:
            possible = np.minimum(possible, caps_Bps[open_flows])
        level = possible.min()
        full = possible <= level * (1 + TOGETHER)
        filled = open_flows[full]
        rates[filled] = level
        open_flows = open_flows[~full]
        if len(open_flows):
            gone = np.bincount(routes[filled].ravel(), minlength=len(capacity_Bps))
            counts = counts - gone
            left_Bps[:-1] -= gone[:-1] * level
    return rates


def _share(left_Bps: FloatArray, counts: IntArray) -> FloatArray:
    share = np.full(len(counts), np.inf)
    np.divide(left_Bps, counts, out=share, where=counts > 0)
    share[-1] = np.inf
    return share
