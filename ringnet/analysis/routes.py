"""Which pairs of workers took which links: routes with their bytes, collisions of equal-cost choices, top talkers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ringnet.analysis.answer import percent
from ringnet.analysis.frames import Table, joined, object_array
from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.errors import some_and_more
from ringnet.networks import Network
from ringnet.networks.network import Route

#: Pairs of workers whose routes are kept.
MOST_PAIRS = 20_000
#: Rows that are gathered before they are added up.
GATHERED = 1 << 20


class PairTraffic(NamedTuple):
    """What each pair of workers, or switches, moved, by sender and then receiver; arrays of shape (n_pairs,)."""

    src: IntArray
    dst: IntArray
    transfers: IntArray
    bytes: IntArray


def pair_traffic(schedule: Schedule, chunk_bytes: IntArray) -> PairTraffic:
    """Return what a schedule moves between each pair of workers.

    Parameters
    ----------
    schedule : Schedule
    chunk_bytes : ndarray of int64, shape (n_chunks,)

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> moved = pair_traffic(ALGORITHMS["ring"].build(3, "all-reduce"), np.array([10, 10, 12]))
    >>> moved.src.tolist(), moved.dst.tolist(), moved.transfers.tolist(), moved.bytes.tolist()
    ([0, 1, 2], [1, 2, 0], [4, 4, 4], [42, 42, 44])
    """
    merged = _Merged(schedule.n_members)
    src = dst = np.zeros(0, dtype=np.int64)
    n_steps, n_bytes = 0, np.zeros(0, dtype=np.int64)
    if len(chunk_bytes) and (chunk_bytes == chunk_bytes[0]).all():
        # Steps of a ring share their columns: those are added up as they are.
        for step, n_alike in schedule.runs():
            merged.add(step.src, step.dst, n_alike, n_alike * step.sizes(chunk_bytes))
        return merged.traffic()
    for step in schedule.steps():
        if step.src is not src or step.dst is not dst:
            merged.add(src, dst, n_steps, n_bytes)
            src, dst, n_steps, n_bytes = step.src, step.dst, 0, np.zeros(len(step), dtype=np.int64)
        n_steps += 1
        n_bytes += step.sizes(chunk_bytes)
    merged.add(src, dst, n_steps, n_bytes)
    return merged.traffic()


class _Merged:
    """Rows of pairs, added up by pair whenever many have come."""

    def __init__(self, n_members: int) -> None:
        self.n_members, self.n_gathered = n_members, 0
        self._rows: list[IntArray] = [np.zeros((3, 0), dtype=np.int64)]

    def add(self, src: IntArray, dst: IntArray, n_transfers: int, n_bytes: IntArray) -> None:
        self._rows.append(np.stack([src * self.n_members + dst, np.full(len(src), n_transfers), n_bytes]))
        self.n_gathered += len(src)
        if self.n_gathered > GATHERED:
            self._merge()

    def _merge(self) -> None:
        pairs, transfers, n_bytes = np.concatenate(self._rows, axis=1)
        each, at = np.unique(pairs, return_inverse=True)
        merged = np.stack([each, np.zeros_like(each), np.zeros_like(each)])
        np.add.at(merged[1], at, transfers)
        np.add.at(merged[2], at, n_bytes)
        self._rows, self.n_gathered = [merged], 0

    def traffic(self) -> PairTraffic:
        self._merge()
        pairs, transfers, n_bytes = self._rows[0]
        src, dst = np.divmod(pairs, self.n_members)
        return PairTraffic(src, dst, transfers, n_bytes)


@dataclass(frozen=True)
class Collision:
    """A link that several pairs have their routes over, while one of equal cost carries nothing.

    Parameters
    ----------
    link : int
    idle : int
        The first of the links that some of these pairs could take in its place.
    pairs : tuple of (src, dst)
        Those whose routes go over the link.
    """

    link: int
    idle: int
    pairs: tuple[tuple[int, int], ...]


def collisions(network: Network, traffic: PairTraffic, link_bytes: IntArray) -> dict[int, Collision]:
    """Return, by link, where routes that were drawn from equal ones collide though another link is idle.

    Parameters
    ----------
    network : Network
        Without ``find_equal_routes`` nothing was drawn, and nothing collides.
    traffic : PairTraffic
    link_bytes : ndarray of int64, shape (n_links,)
        What crossed each link, whoever sent it.
    """
    if network.find_equal_routes is None:
        return {}
    route_of = _routes_of(network, traffic)
    over: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair, route in route_of.items():
        for link in route:
            over[link].append(pair)

    def starts(link: int) -> tuple[str, ...]:
        return network.ends(link)[: 1 + network.is_half_duplex(link)]

    # To find the equal routes of a pair is dear: they matter only where an idle link leaves the node of a shared one.
    beside_idle = {node for link in np.flatnonzero(link_bytes == 0).tolist() for node in starts(link)}
    suspected = {
        link for link, sharing in over.items() if len(sharing) > 1 and not beside_idle.isdisjoint(starts(link))
    }
    found: dict[int, Collision] = {}
    for pair, route in route_of.items():
        if suspected.isdisjoint(route):
            continue
        equal = network.equal_routes(*pair)
        for hop, link in enumerate(route):
            if link in suspected:
                siblings = {other[hop] for other in equal if other[:hop] == route[:hop]}
                idle = [other for other in siblings if not link_bytes[other]]
                if idle:
                    suspected.remove(link)
                    found[link] = Collision(link, min(idle), tuple(over[link]))
    return found


def _routes_of(network: Network, traffic: PairTraffic) -> dict[tuple[int, int], Route]:
    links, first = (column.tolist() for column in network.joined_routes(traffic.src, traffic.dst))
    pairs = zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True)
    return {pair: tuple(links[begin:end]) for pair, (begin, end) in zip(pairs, pairwise(first), strict=True)}


def spread_routes(network: Network, traffic: PairTraffic) -> dict[tuple[int, int], Route]:
    """Return, of routes drawn from equal ones, those that would have to be others for the bytes to be spread.

    Pair by pair, the most bytes first, each takes the one of its equal routes whose busiest link is then busy shortest:
    a good choice, not always the best there is.

    Parameters
    ----------
    network : Network
        With ``find_equal_routes``.
    traffic : PairTraffic
    """
    busy_s = np.zeros(network.n_links)
    moved = {}
    order = np.argsort(-traffic.bytes, kind="stable")
    for src, dst, n_bytes in zip(*(column[order].tolist() for column in (*traffic[:2], traffic.bytes)), strict=True):
        took = network.route(src, dst)

        def cost(route: Route, n_bytes: int = n_bytes, took: Route = took) -> tuple[float, float, bool]:
            after_s = busy_s[[*route]] + n_bytes / network.bandwidth_Bps[[*route]]
            return float(after_s.max(initial=0.0)), float(after_s.sum()), route != took

        best = min([took, *network.equal_routes(src, dst)], key=cost)
        busy_s[[*best]] += n_bytes / network.bandwidth_Bps[[*best]]
        if best != took:
            moved[src, dst] = best
    return moved


def route_table(jobs: Sequence[tuple[str, Network, Schedule, IntArray]], links: Table) -> Table | None:
    """Return one row per pair of workers that sent anything: its links, what it moved, where it collides.

    Parameters
    ----------
    jobs : sequence of (name, Network, Schedule, chunk_bytes)
        Each job with its own routes, and what it moves.
    links : dict
        As `ringnet.analysis.frames.link_table` has it.

    Returns
    -------
    dict or None
        None where there are more than `MOST_PAIRS` pairs.
    """
    if sum(len(schedule.pairs[0]) for _, _, schedule, _ in jobs) > MOST_PAIRS:
        return None
    moved = [(name, network, pair_traffic(schedule, sizes)) for name, network, schedule, sizes in jobs]
    return joined(
        [
            _job_routes(network, traffic, links["bytes"], links["busy_s"])
            | {"job": object_array([name] * len(traffic.src))}
            for name, network, traffic in moved
        ]
    )


def _job_routes(network: Network, traffic: PairTraffic, link_bytes: IntArray, busy_s: FloatArray) -> Table:
    found, equal = collisions(network, traffic, link_bytes), network.find_equal_routes
    rows: list[Mapping[str, Any]] = []
    routes = _routes_of(network, traffic)
    for src, dst, transfers, n_bytes in zip(*(column.tolist() for column in traffic), strict=True):
        route = routes[src, dst]
        busiest = max(route, key=lambda link: busy_s[link], default=None)
        collision = next((found[link] for link in route if link in found), None)
        rows.append(
            {
                "src": src,
                "dst": dst,
                "links": " ".join(network.names[link] for link in route),
                "transfers": transfers,
                "bytes": n_bytes,
                "busiest_link": None if busiest is None else network.names[busiest],
                "busiest_link_share": None
                if busiest is None or not link_bytes[busiest]
                else n_bytes / float(link_bytes[busiest]),
                "equal_routes": None if equal is None else len(equal(src, dst)),
                "collides_on": None if collision is None else network.names[collision.link],
                "collides_with": None if collision is None else len(collision.pairs) - 1,
                "idle_instead": None if collision is None else network.names[collision.idle],
            }
        )
    return {name: object_array([row[name] for row in rows]) for name in ROUTE_COLUMNS}


ROUTE_COLUMNS = (
    "src", "dst", "links", "transfers", "bytes", "busiest_link", "busiest_link_share", "equal_routes", "collides_on",
    "collides_with", "idle_instead",
)  # fmt: skip


def top_talkers(routes: Table, links: Table) -> str:
    """Say which link was busy longest, and whose bytes these were; nothing where it is one sender's alone.

    Parameters
    ----------
    routes, links : dict
        As `route_table` and `ringnet.analysis.frames.link_table` have them.
    """
    if not links["busy_s"].any():
        return ""
    busiest = int(links["busy_s"].argmax())
    name, carried, share = (links[column][busiest] for column in ("link", "bytes", "utilisation"))
    rows = zip(routes["src"], routes["dst"], routes["bytes"], routes["links"], strict=True)
    over = [(src, dst, n_bytes) for src, dst, n_bytes, route in rows if name in route.split(" ")]
    if len({src for src, _, _ in over}) < 2:  # noqa: PLR2004 -- what one worker sends is no crowd
        return ""
    ranked = sorted(over, key=lambda row: -row[2])
    said = [f"{src}->{dst} {percent(n_bytes / carried)}" for src, dst, n_bytes in ranked]
    busy = f"{name}, busy {percent(share)} of the time"
    return f"{busy}; of its bytes {some_and_more(said)}"
