"""Which way links are shared where the network leaves it open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringnet.collectives import Schedule
from ringnet.networks import Network
from ringnet.networks.network import Route, Sharing

#: Whoever sends over a link: a job's number and a worker of it, or background traffic by name.
Sender = tuple[int | str, int]


def resolve_sharing(network: Network, routes: Iterable[tuple[Sender, Route]]) -> Sharing:
    """Return ``fair`` if any link carries what more than one sender sends, ``fifo`` otherwise; unless the network says.

    Parameters
    ----------
    network : Network
    routes : iterable of (sender, route)
        All that will be used.
    """
    if network.sharing != "auto":
        return network.sharing
    owner: dict[int, Sender] = {}
    for sender, route in routes:
        for link in route:
            if owner.setdefault(link, sender) != sender:
                return "fair"
    return "fifo"


def used_routes(job: int, schedule: Schedule, network: Network) -> Iterator[tuple[Sender, Route]]:
    """Yield every route that a schedule uses once, with its sender."""
    for src, dst in zip(*(ends.tolist() for ends in schedule.pairs), strict=True):
        yield (job, src), network.route(src, dst)
