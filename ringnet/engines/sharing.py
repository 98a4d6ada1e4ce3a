"""Which way links are shared where the network leaves it open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

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
    seen: set[int] = set()
    before = None
    for step in schedule.steps():
        # Steps of a ring share their columns: no need to look at them again.
        if before is not None and step.src is before.src and step.dst is before.dst:
            continue
        before = step
        for pair in np.unique(step.src * schedule.n_members + step.dst).tolist():
            if pair not in seen:
                seen.add(pair)
                src, dst = divmod(pair, schedule.n_members)
                yield (job, src), network.route(src, dst)
