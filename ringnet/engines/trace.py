"""What a run leaves behind: flat columns, written while it ran, no metric computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Rows by column name; every array has one entry per row.
Columns: TypeAlias = dict[str, NDArray[Any]]
Sends: TypeAlias = Literal["eager", "rendezvous"]
#: Told once, before the first transfer, how many there are in all, and whom to ask how many have been applied: a
#: function that any thread may call.
Watch: TypeAlias = "Callable[[int, Callable[[], int]], None]"

#: What the time on a path is made of, in the order of the columns ``path_<part>_s`` of `Trace.workers`.
PATH_PARTS = ("latency", "bandwidth", "queueing", "waiting", "overhead", "reducing")

#: Transfer rows that are kept unless more are asked for.
KEEP_TRANSFERS = 200_000


@dataclass(frozen=True)
class Workers:
    """How each worker behaves. All arrays have shape (n_workers,).

    Parameters
    ----------
    start_s : ndarray
        When the worker enters its first step; ``inf`` for one that never does.
    send_overhead_s, recv_overhead_s : ndarray
        Time of the worker's processor for each transfer sent, and for each received.
    reduce_Bps : ndarray
        Bytes reduced per second; ``inf`` where reducing is free.
    sends : {"eager", "rendezvous"}
        Whether a sender goes on at once, or transfers start when both sides are in the step and end it for both.
    """

    start_s: NDArray[np.float64]
    send_overhead_s: NDArray[np.float64]
    recv_overhead_s: NDArray[np.float64]
    reduce_Bps: NDArray[np.float64]
    sends: Sends = "eager"

    @classmethod
    def alike(
        cls,
        n_workers: int,
        *,
        start_s: float = 0.0,
        send_overhead_s: float = 0.0,
        recv_overhead_s: float = 0.0,
        reduce_Bps: float = np.inf,
        sends: Sends = "eager",
    ) -> Workers:
        """Return ``n_workers`` workers that behave alike; by default all start at 0 and cost nothing."""
        values = (start_s, send_overhead_s, recv_overhead_s, reduce_Bps)
        start, send, recv, reduce = (np.full(n_workers, value) for value in values)
        return cls(start, send, recv, reduce, sends)


@dataclass(frozen=True)
class Trace:
    """Flat rows of one run; all times in seconds from the start of the run.

    Parameters
    ----------
    engine : str
        Which engine wrote it.
    transfers : dict of str to ndarray, or None
        One row per transfer, by (step of the whole schedule, channel, src, dst): ``phase, step, channel, op, src, dst,
        chunk, bytes, posted_s, started_s, sent_s, arrived_s, applied_s``. ``sent_s`` is when the tail leaves the first
        link. None when there were more than were to be kept.
    links : dict of str to ndarray
        One row per link: ``bytes, transfers, busy_s, occupied_s, longest_queue, queued_s``. ``busy_s`` is bytes served
        over bandwidth, ``occupied_s`` also counts being held by a slower link upstream, ``queued_s`` is the time that
        all transfers together waited for it; under fair sharing, what they took longer, because it kept them from
        having more, than alone on their routes.
    workers : dict of str to ndarray
        One row per worker: ``start_s, end_s, sent_bytes, received_bytes, waiting_s, overhead_s, reducing_s``, and
        ``path_<part>_s`` for each of `PATH_PARTS`: what the path that ended last at this worker is made of, from the
        start of the first worker. The parts add up to ``end_s`` less that start.
    n_transfers : int
        All transfers, kept or not.
    counts : dict of str to int
        Work done by the engine, by name (``events``): for tests and benchmarks; it does not jitter.
    waits : dict of str to ndarray or None
        One row per wait: ``link, owner, from_s, to_s``; ``owner`` is the number of a job, or of other traffic, counted
        on after the jobs. Under fair sharing whatever comes first to a link does not wait, the others do until it has
        gone. None where they were too many to be kept.
    until_s : float or None
        When the last link had something to do, of whoever's; None where there is one job and nothing else.
    values : list of ndarray or None
        What the receiver held after each transfer, in the order of ``transfers``; for small runs that ask for it.
    """

    engine: str
    transfers: Columns | None
    links: Columns
    workers: Columns
    n_transfers: int
    counts: dict[str, int] = field(default_factory=dict)
    values: list[NDArray[Any]] | None = None
    until_s: float | None = None
    waits: Columns | None = None
