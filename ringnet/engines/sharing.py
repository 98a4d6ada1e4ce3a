"""Who is on the links of a network, and which way these are shared where it leaves that open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.trace import KEEP_TRANSFERS, Workers
from ringnet.networks import Network
from ringnet.networks.network import Sharing
from ringnet.payload import Payload

#: Senders of a job are numbered from its own number times this on, those of traffic from -1 down.
MOST_SENDERS = 1 << 40
NOBODY = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Job:
    """One collective among several on the same links: the parameters of `run_events`.

    ``network`` has the links of the network that all jobs share; its routes are between this job's own workers. A job
    ``after`` others, by their numbers, starts when they have ended on all their workers: the starts of its own count
    from then. ``stream`` is a number that jobs share which never run at once and are of the same workers: where links
    are shared these count once. None for a job of its own.
    """

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_bytes: IntArray
    payload: Payload | None = None
    keep_transfers: int | None = KEEP_TRANSFERS
    keep_values: bool = False
    after: tuple[int, ...] = ()
    stream: int | None = None


@dataclass(frozen=True)
class Traffic:
    """Bursts of bytes over some links, again and again until the workers are done, or a given number of times.

    Parameters
    ----------
    name : str
    links : tuple of int
        Numbers of the links that it crosses, in order.
    burst_bytes : int
        Bytes of each burst.
    start_s : float
        When the first one starts.
    every_s : float or None
        From one start to the next; None for one burst only. A constant stream of R bytes/s is bursts of b bytes every
        b / R seconds.
    stop_s : float
        No burst starts from then on.
    """

    name: str
    links: tuple[int, ...]
    burst_bytes: int
    start_s: float = 0.0
    every_s: float | None = None
    stop_s: float = float("inf")


def where_own_meet(src: IntArray, links: IntArray, firsts: IntArray, bandwidth_Bps: FloatArray) -> IntArray:
    """Return the places of routes where flows of the sender alone may hold each other.

    A link to which all of a sender's flows come by one first link is never full of them if it can carry as much.

    Parameters
    ----------
    src : ndarray of int64, shape (n_routes,)
        Who sends.
    links, firsts : ndarray of int64
        The links of the routes, one after another, and where each begins and the last one ends.
    bandwidth_Bps : ndarray of float64, shape (n_links,)

    Examples
    --------
    >>> from ringnet.networks.basic import switch
    >>> over = switch(3, 1.0, 0.0)
    >>> where_own_meet(np.array([0, 0]), *over.joined_routes(np.array([0, 0]), np.array([1, 2])), over.bandwidth_Bps)
    array([0, 2])
    """
    lengths = np.diff(firsts)
    first = np.repeat(links[firsts[:-1]], lengths)
    _, account = np.unique(np.repeat(src, lengths) * len(bandwidth_Bps) + links, return_inverse=True)
    least, most = np.full((2, len(links)), [[len(bandwidth_Bps)], [-1]])
    np.minimum.at(least, account, first)
    np.maximum.at(most, account, first)
    is_held = (least != most)[account] | (bandwidth_Bps[links] < bandwidth_Bps[first])
    return np.flatnonzero(is_held | (links == first))


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
