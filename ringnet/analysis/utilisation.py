"""How busy links were over time, and traffic that asks for more than they carry.

Engines leave rows of what links served and when; each is spread evenly over its span, and cut where bins end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ringnet.analysis.frames import Table
from ringnet.analysis.metrics import charged_bytes
from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.engines.events import Traffic
from ringnet.engines.trace import FLOW, Columns, Trace
from ringnet.networks import Behaviour, BySize, Network, OverTime, beyond
from ringnet.networks.behaviour import ANY_SIZE, NEVER
from ringnet.units import format_rate, format_seconds

#: Bins of a run, at the most, and links that are kept: those that were busy longest.
MOST_BINS, MOST_LINKS = 100, 100
#: First digits of the length of a bin, as a person would choose it.
ROUND = (1.0, 2.0, 5.0, 10.0)
#: Rows times bins that are spread at once.
AT_ONCE = 1 << 17


class Served(NamedTuple):
    """What links carried: arrays of shape (n_rows,), each row spread evenly over its span."""

    link: IntArray
    from_s: FloatArray
    to_s: FloatArray
    n_bytes: FloatArray
    busy_s: FloatArray

    def of(self, rows: Array) -> Served:
        """Return some of the rows."""
        return Served(self.link[rows], self.from_s[rows], self.to_s[rows], self.n_bytes[rows], self.busy_s[rows])


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
    served, used = _served(trace, network), np.flatnonzero(trace.links["bytes"])
    if served is None or not len(used):
        return None
    first_s = float(trace.workers["start_s"].min()) if trace.until_s is None else 0.0
    last_s = float(trace.workers["end_s"].max()) if trace.until_s is None else trace.until_s
    if last_s <= first_s:
        return None
    edges_s = bin_edges_s(first_s, last_s)
    busy_s = trace.links["busy_s"]
    links = used[np.argsort(-busy_s[used], kind="stable")][:MOST_LINKS]
    n_bytes, busy_s = _in_bins(served, links, network.n_links, edges_s)
    n_bins = len(edges_s) - 1
    shares = busy_s / np.diff(edges_s)
    names = np.array([network.names[link] for link in links.tolist()], dtype=object)
    return {
        "link": np.repeat(names, n_bins),
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


def _served(trace: Trace, network: Network) -> Iterable[Served] | None:
    """Return what links carried, in blocks; None where that is not kept, or not known of one of them."""
    if beyond(network, (BySize, OverTime), fair=True, window=True, packets=True):
        return None
    if trace.services is None or trace.transfers is None:
        return None
    if (trace.services["hop"] == FLOW).any():
        return None if trace.rates is None else (_at_rates(rows, network) for rows in trace.rates.on_links())
    whole = _in_services(trace, network)
    return None if whole is None else [whole]


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
    for link, from_s, to_s, n_bytes, busy_s in zip(*(column[rows].tolist() for column in served), strict=True):
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
    served: Iterable[Served], links: IntArray, n_links: int, edges_s: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the bytes, and the seconds that it was busy, of each of some links in each bin: (n_links, n_bins)."""
    place = np.full(n_links, -1)
    place[links] = np.arange(len(links))
    n_bins = len(edges_s) - 1
    sums = np.zeros((2, len(links) * n_bins))
    for rows in served:
        _add_to_bins(sums, rows.of(place[rows.link] >= 0), place, edges_s)
    return sums[0].reshape(-1, n_bins), sums[1].reshape(-1, n_bins)


def _add_to_bins(sums: FloatArray, kept: Served, place: IntArray, edges_s: FloatArray) -> None:
    """Add rows to the bytes and busy seconds of the bins of their links, shape (2, n_links * n_bins)."""
    n_bins = len(edges_s) - 1
    first = np.clip(np.searchsorted(edges_s, kept.from_s, "right") - 1, 0, n_bins - 1)
    last = np.clip(np.searchsorted(edges_s, kept.to_s, "left") - 1, 0, n_bins - 1)
    last = np.maximum(first, last)
    n_pieces = np.cumsum(last - first + 1)
    cuts = np.searchsorted(n_pieces, range(AT_ONCE, int(n_pieces[-1:].sum()), AT_ONCE))
    for block in np.split(np.arange(len(first)), cuts):
        n_each = (last - first + 1)[block]
        rows = np.repeat(block, n_each)
        bins = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
        span_s = (kept.to_s - kept.from_s)[rows]
        inside_s = np.minimum(kept.to_s[rows], edges_s[bins + 1]) - np.maximum(kept.from_s[rows], edges_s[bins])
        # What fits into one bin is not divided: rounding could leave a span of no length.
        share = np.where(np.repeat(n_each, n_each) == 1, 1.0, inside_s / np.where(span_s > 0, span_s, 1.0))
        cells = place[kept.link[rows]] * n_bins + bins
        for kind, column in enumerate((kept.n_bytes, kept.busy_s)):
            sums[kind] += np.bincount(cells, share * column[rows], sums.shape[1])


#: A rate that is above another by less than this share is the same.
SAME_RATE = 1e-9
#: Changes of a link that are looked at; what it does after the last of them counts for ever.
MOST_CHANGES = 10_000


@dataclass(frozen=True)
class Overload:
    """What some flows together ask of a link, in the mean, and what it carries, while that is less.

    ``flows`` are their numbers; ``changed_s`` is since when the link carries that, 0 if it always did; ``until_s`` is
    infinite where the queue grows for ever.
    """

    flows: tuple[int, ...]
    link: str
    asked_Bps: float
    carried_Bps: float
    changed_s: float
    until_s: float

    def __str__(self) -> str:
        since = f" from {format_seconds(self.changed_s)} on" if self.changed_s else ""
        carried = f"{self.link} carries{since}, {format_rate(self.carried_Bps)}"
        return f"{format_rate(self.asked_Bps)} are more than {carried}: its queue only grows"


def overloads(flows: Sequence[Sequence[Traffic]], network: Network) -> list[Overload]:
    """Return what is asked of links beyond what they carry: by each flow alone, then by several together.

    Parameters
    ----------
    flows : sequence of sequences of Traffic
        Each flow as bursts of one or more phases over the same links.
    network : Network
        Its links are those of the traffic. Unless it is fifo, what the links have for large transfers counts.

    Returns
    -------
    list of Overload
        For each flow, and each set of flows, the worst, and rather one for ever. A flow that overloads a link for ever
        by itself is not told again with others.
    """
    steady = {number: flow for number, flow in enumerate(flows) if flow and flow[0].every_s is not None}
    alone = [worst for number in steady if (worst := _worst({number: steady[number]}, network))]
    told = {number for one in alone for number in one.flows}
    for_ever = {number for one in alone if one.until_s == NEVER for number in one.flows}
    rest = {number: flow for number, flow in steady.items() if number not in for_ever}
    together: dict[tuple[int, ...], dict[int, Sequence[Traffic]]] = {}
    for link in dict.fromkeys(link for flow in rest.values() for link in flow[0].links):
        sharing = {number: flow for number, flow in rest.items() if link in flow[0].links}
        if len(sharing) > 1:
            together[tuple(sharing)] = sharing
    both = [worst for sharing in together.values() if (worst := _worst(sharing, network))]
    return alone + [one for one in both if one.until_s == NEVER or not told & {*one.flows}]


def _worst(flows: Mapping[int, Sequence[Traffic]], network: Network) -> Overload | None:
    """Return the worst overload of the links that all of some flows cross; None where there is none."""
    shared = set.intersection(*(set(flow[0].links) for flow in flows.values()))
    found = [one for link in sorted(shared) for one in _of_link(link, flows, network)]
    return min(found, key=lambda one: (one.until_s != NEVER, one.carried_Bps / one.asked_Bps), default=None)


def _of_link(link: int, flows: Mapping[int, Sequence[Traffic]], network: Network) -> Iterator[Overload]:
    """Yield the stretches of time in which some flows ask for more than a link carries."""
    behaviour = network.behaviour(link)
    rates_Bps = {number: _asked(flow, network) for number, flow in flows.items()}
    changes_s = {0.0, *_changes_s(behaviour)}
    begins_and_ends_s = {time_s for flow in flows.values() for time_s in (flow[0].start_s, flow[0].stop_s)}
    times_s = sorted((changes_s | begins_and_ends_s) - {NEVER})
    for at_s, until_s in zip(times_s, [*times_s[1:], NEVER], strict=True):
        going = [number for number, (one, *_) in flows.items() if one.start_s <= at_s < one.stop_s]
        asked_Bps = sum(rates_Bps[number] for number in going)
        busy = 0.0
        for number in going:
            # Under fair sharing a link's own limit is that of large transfers.
            size = flows[number][0].burst_bytes if network.sharing == "fifo" else ANY_SIZE
            carried_Bps = behaviour.offer(size, at_s).bandwidth_Bps
            busy += rates_Bps[number] / carried_Bps if carried_Bps else NEVER
        if busy > 1 + SAME_RATE:
            changed_s = max(time_s for time_s in changes_s if time_s <= at_s)
            yield Overload(tuple(going), network.names[link], asked_Bps, asked_Bps / busy, changed_s, until_s)


def _asked(flow: Sequence[Traffic], network: Network) -> float:
    """Return the bytes per second that a flow puts on a link in the mean, with the headers of packets."""
    charged = charged_bytes(network, np.array([one.burst_bytes for one in flow], dtype=np.int64))
    return float(sum(n / one.every_s for n, one in zip(charged.tolist(), flow, strict=True) if one.every_s))


def _changes_s(behaviour: Behaviour) -> Iterator[float]:
    time_s = behaviour.next_change_s(0.0)
    for _ in range(MOST_CHANGES):
        if time_s == NEVER:
            return
        yield time_s
        time_s = behaviour.next_change_s(time_s)
