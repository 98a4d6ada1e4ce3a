"""Which way links are shared where the network leaves it open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.networks import Network
from ringnet.networks.network import Sharing

#: Senders of a job are numbered from its own number times this on, those of traffic from -1 down.
MOST_SENDERS = 1 << 40
NOBODY = np.iinfo(np.int64).min


class Sending(NamedTuple):
    """What one job sends: the number of the job, what moves, and over which routes."""

    job: int
    schedule: Schedule
    network: Network


def resolve_sharing(
    network: Network, jobs: Iterable[Sending], traffic: Iterable[tuple[str, Sequence[int]]] = ()
) -> Sharing:
    """Return ``fair`` if any link carries what more than one sender sends, ``fifo`` otherwise; unless the network says.

    Parameters
    ----------
    network : Network
    jobs : iterable of Sending
        A worker of each is a sender.
    traffic : iterable of (str, sequence of int)
        The name of each sender that is in no job, and links that it uses.
    """
    if network.sharing != "auto":
        return network.sharing
    sender = np.full(network.n_links, NOBODY)
    names: dict[str, int] = {}
    rows: list[tuple[IntArray | int, IntArray]] = [
        (names.setdefault(name, -1 - len(names)), np.array(links, dtype=np.int64)) for name, links in traffic
    ]
    for job, schedule, over in jobs:
        src, dst = schedule.pairs
        hops = over.hops(src, dst)
        rows += [(job * MOST_SENDERS + (src if within is None else src[within]), links) for within, links in hops]
    for senders, links in rows:
        new = sender[links] == NOBODY
        sender[links] = np.where(new, senders, sender[links])
        if (sender[links] != senders).any():
            return "fair"
    return "fifo"
