"""How busy links were over time: what each carried, in bins of one length.

Engines leave rows of what links served and when; each is spread evenly over its span, and cut where bins end.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.frames import Table
from ringnet.engines.trace import FLOW, Columns, Trace
from ringnet.networks import BySize, Network, OverTime, beyond

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

#: Bins of a run, at the most, and links that are kept: those that were busy longest.
MOST_BINS, MOST_LINKS = 100, 100
#: First digits of the length of a bin, as a person would choose it.
ROUND = (1.0, 2.0, 5.0, 10.0)
#: Rows times bins that are spread at once.
AT_ONCE = 1 << 20


class Served(NamedTuple):
    """What links carried: arrays of shape (n_rows,), each row spread evenly over its span."""

    link: IntArray
    from_s: FloatArray
    to_s: FloatArray
    n_bytes: FloatArray
    busy_s: FloatArray

    def of(self, rows: NDArray[Any]) -> Served:
        """Return some of the rows."""
        return Served(
            self.link[rows], self.from_s[rows], self.to_s[rows], self.n_bytes[rows], self.busy_s[rows]
        )


def utilisation_table(trace: Trace, network: Network) -> Table | None:
    """Return how busy each link was in each bin of the run, by link, those that were busy longest first.

    Parameters
    ----------
    trace : Trace
    network : Network
        With the sharing of the run.

    Returns
    -------
    dict or None
        ``link, from_s, to_s, bytes, utilisation``, as ``utilisation.csv`` has them. None where nothing was carried, or
        where it is not known when.

    Notes
    -----
    What is under way over a link for some time is spread evenly over that time: under cut-through a link that is held
    by a slower one before it carries its bytes at the rate of that one. Where a bandwidth changes meanwhile, it is
    spread as the bandwidth is.
    """
    served = _served(trace, network)
    if served is None or not served.n_bytes.any():
        return None
    first_s = float(trace.workers["start_s"].min()) if trace.until_s is None else 0.0
    last_s = float(trace.workers["end_s"].max()) if trace.until_s is None else trace.until_s
    if last_s <= first_s:
        return None
    edges_s = bin_edges_s(first_s, last_s)
    busy_s = trace.links["busy_s"]
    used = np.flatnonzero(trace.links["bytes"])
    links = used[np.argsort(-busy_s[used], kind="stable")][:MOST_LINKS]
    n_bytes, busy_s = _in_bins(served, links, network.n_links, edges_s)
    n_bins = len(edges_s) - 1
    shares = busy_s / np.diff(edges_s)
    return {
        "link": np.repeat(np.array(network.names, dtype=object)[links], n_bins),
        "from_s": np.tile(edges_s[:-1], len(links)),
        "to_s": np.tile(edges_s[1:], len(links)),
        "bytes": n_bytes.ravel(),
        "utilisation": shares.ravel(),
    }


def bin_edges_s(first_s: float, last_s: float) -> FloatArray:
    """Return the ends of bins of a round length, as short as `MOST_BINS` allow; the last one may be shorter.

    >>> bin_edges_s(0.0, 0.95).round(9)[[0, 1, -2, -1]].tolist()
    [0.0, 0.01, 0.94, 0.95]
    """
    least_s = (last_s - first_s) / MOST_BINS
    power_s = 10.0 ** np.floor(np.log10(least_s))
    length_s = next(digit * power_s for digit in ROUND if digit * power_s >= least_s * (1 - 1e-9))
    # An end that differs by rounding from that of a whole bin makes no bin of its own.
    n_whole = int(np.ceil((last_s - first_s) / length_s - 1e-6))
    edges_s: FloatArray = first_s + np.arange(n_whole + 1) * length_s
    edges_s[-1] = last_s
    return edges_s


def _served(trace: Trace, network: Network) -> Served | None:
    """Return what links carried; None where that is not kept, or not known of one of them."""
    if beyond(network, (BySize, OverTime), fair=True, window=True, packets=True):
        return None
    if trace.services is None or trace.transfers is None:
        return None
    if (trace.services["hop"] == FLOW).any():
        return None if trace.rates is None else _at_rates(trace.rates, network)
    return _in_services(trace, network)


def _at_rates(rates: Columns, network: Network) -> Served:
    busy_s = rates["bytes"] / network.bandwidth_Bps[rates["link"]]
    whole = Served(rates["link"], rates["from_s"], rates["to_s"], rates["bytes"], busy_s)
    return _cut_at_changes(whole, network, evenly=True)


def _in_services(trace: Trace, network: Network) -> Served | None:
    services, transfers = trace.services, trace.transfers
    assert services is not None
    assert transfers is not None
    link, n_bytes, start_s = services["link"], services["bytes"], services["start_s"]
    busy_s = n_bytes / network.bandwidth_Bps[link]
    in_parts = network.packets is not None or network.window is not None
    for number, behaviour in network.behaviours.items():
        rows = np.flatnonzero(link == number)
        own = services["owner"][rows] == trace.job
        if in_parts and type(behaviour) is BySize and not own.all():
            return None  # of which size the transfers of others are is not kept
        sizes = n_bytes[rows]
        sizes[own] = transfers["bytes"][services["transfer"][rows[own]]]
        columns = (start_s[rows].tolist(), n_bytes[rows].tolist(), sizes.tolist())
        busy_s[rows] = [behaviour.service_s(*row) for row in zip(*columns, strict=True)]
    whole = Served(link, start_s, services["end_s"], n_bytes.astype(np.float64), busy_s)
    return _cut_at_changes(whole, network, evenly=False)


def _cut_at_changes(served: Served, network: Network, *, evenly: bool) -> Served:
    """Cut rows where the bandwidth of their link changes.

    ``evenly`` says whether bytes moved at one rate all the same; if not, they moved as the bandwidth let them, and the
    link was busy evenly.
    """
    cuts = {link: one for link, one in network.behaviours.items() if type(one) is OverTime}
    rows = np.flatnonzero(np.isin(served.link, [*cuts]))
    if not len(rows):
        return served
    made: list[tuple[float, ...]] = []
    for link, from_s, to_s, n_bytes, busy_s in zip(
        *(column[rows].tolist() for column in served), strict=True
    ):
        changes = cuts[link].changes
        ends_s = np.array([from_s, *(time_s for time_s, _ in changes if from_s < time_s < to_s), to_s])
        passed_s = np.diff(ends_s)
        rates_Bps = np.array([cuts[link].offer(0.0, time_s).bandwidth_Bps for time_s in ends_s[:-1]])
        by_time = passed_s / passed_s.sum() if to_s > from_s else np.ones(1)
        could = passed_s * rates_Bps
        bytes_each = n_bytes * (by_time if evenly or not could.any() else could / could.sum())
        busy_each = bytes_each / np.where(rates_Bps > 0, rates_Bps, np.inf) if evenly else busy_s * by_time
        made += zip([link] * len(passed_s), ends_s[:-1], ends_s[1:], bytes_each, busy_each, strict=True)
    cut = [np.array(column) for column in zip(*made, strict=True)]
    whole = np.delete(np.arange(len(served.link)), rows)
    return Served(*(np.concatenate((old[whole], new)) for old, new in zip(served, cut, strict=True)))


def _in_bins(
    served: Served, links: IntArray, n_links: int, edges_s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bytes, and the seconds that it was busy, of each of some links in each bin: (n_links, n_bins)."""
    place = np.full(n_links, -1)
    place[links] = np.arange(len(links))
    kept = served.of(place[served.link] >= 0)
    n_bins = len(edges_s) - 1
    first = np.clip(np.searchsorted(edges_s, kept.from_s, "right") - 1, 0, n_bins - 1)
    last = np.clip(np.searchsorted(edges_s, kept.to_s, "left") - 1, 0, n_bins - 1)
    last = np.maximum(first, last)
    sums = np.zeros((2, len(links) * n_bins))
    n_pieces = np.cumsum(last - first + 1)
    for block in np.split(
        np.arange(len(first)), np.searchsorted(n_pieces, range(AT_ONCE, n_pieces[-1], AT_ONCE))
    ):
        n_each = (last - first + 1)[block]
        rows = np.repeat(block, n_each)
        bins = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
        span_s = (kept.to_s - kept.from_s)[rows]
        inside_s = np.minimum(kept.to_s[rows], edges_s[bins + 1]) - np.maximum(
            kept.from_s[rows], edges_s[bins]
        )
        # What fits into one bin is not divided: rounding could leave a span of no length.
        share = np.where(np.repeat(n_each, n_each) == 1, 1.0, inside_s / np.where(span_s > 0, span_s, 1.0))
        cells = place[kept.link[rows]] * n_bins + bins
        for kind, column in enumerate((kept.n_bytes, kept.busy_s)):
            sums[kind] += np.bincount(cells, share * column[rows], sums.shape[1])
    return sums[0].reshape(-1, n_bins), sums[1].reshape(-1, n_bins)
