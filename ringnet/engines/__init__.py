"""Engines: when it moves. Each takes a schedule, a network and a payload, and returns a `Trace`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines.arrays import look_at_channels, look_for_rounds, run_recurrence, why_not_recurrence
from ringnet.engines.compiled import run_compiled, why_not_compiled
from ringnet.engines.events import run_events
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.engines.trace import KEEP_TRANSFERS, PATH_PARTS, Trace, Workers
from ringnet.errors import DeadlockError
from ringnet.networks import Network


def _run_compiled(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, *payload: Any, **options: Any
) -> Trace:
    """Run the compiled loop; where nobody can move any more, the events say who waits for whom."""
    try:
        return run_compiled(schedule, network, workers, chunk_bytes, *payload, **options)
    except DeadlockError:
        run_events(schedule, network, workers, chunk_bytes)
        raise


class Engine(NamedTuple):
    """A line of the registry: what runs, one line about it, and what it says of runs that it refuses.

    ``why_not`` takes a schedule, a network, workers and the bytes of each chunk, and returns a reason, or None where
    the engine does the run.
    """

    run: Callable[..., Trace]
    summary: str
    why_not: Callable[[Schedule, Network, Workers, IntArray], str | None]
    refusal: str


ENGINES: dict[str, Engine] = {
    "events": Engine(
        run_events,
        "SimPy processes for workers and links, transfer by transfer: the reference",
        lambda *_: None,
        "the events do not know this",
    ),
    "recurrence": Engine(
        run_recurrence,
        "whole steps at a time: the same times, far faster, where it is exact",
        why_not_recurrence,
        "the recurrence is not exact here",
    ),
    "compiled": Engine(
        _run_compiled,
        "the events as one loop of machine code: the same times, faster, also where links are shared",
        lambda schedule, network, workers, _: why_not_compiled(schedule, network, workers),
        "the compiled loop does not know this",
    ),
}

#: Transfers from which `choose_engine` looks for a faster engine than SimPy's. Stepping whole arrays is faster from
#: a few milliseconds on. To load the compiled loop takes some tenths of a second, and so does SimPy for so many
#: transfers, or a quarter of them where links are shared fairly.
MANY_STEPPED, MANY_SHARED, MANY_TRANSFERS = 400, 2_500, 10_000


class Choice(NamedTuple):
    """An engine by name, why it was chosen, and what runs: with all that was made of the run to choose it."""

    name: str
    reason: str
    run: Callable[..., Trace]


def choose_engine(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
) -> Choice:
    """Choose an engine for some runs: SimPy's events where they are small, the fastest that does the same elsewhere.

    Parameters
    ----------
    schedule, network, workers : Schedule, Network, Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,), or (n_runs, n_chunks)
        Bytes that each chunk is charged for, in each run where they are several.
    """
    n_runs, part_bytes = len(np.atleast_2d(chunk_bytes)), network.part_bytes
    n_transfers = n_runs * schedule.n_transfers
    how_many = f"{n_transfers:,} transfers"
    if part_bytes is not None and chunk_bytes.size:
        n_transfers *= max(1, -(-int(chunk_bytes.mean()) // part_bytes))
        how_many = f"{n_transfers:,} parts of transfers"
    few = Choice("events", f"{how_many} are few", run_events)
    if n_transfers < MANY_STEPPED:
        return few
    looked = look_for_rounds(schedule, network, workers)
    if not isinstance(looked, str):
        run = partial(run_recurrence, exact=looked)
        return Choice("recurrence", f"{how_many} are many, and it is exact here", run)
    sharing = resolve_sharing(network, [Sending(0, schedule, network)])
    if n_transfers < (MANY_TRANSFERS if sharing == "fifo" else MANY_SHARED):
        return few
    unknown = why_not_compiled(schedule, network, workers)
    if unknown is None:
        reason = f"{how_many} are many, and the recurrence is not exact here: {looked}"
        return Choice("compiled", reason, partial(_run_compiled, shared=[]) if n_runs > 1 else _run_compiled)
    met = look_at_channels(schedule, network, workers, chunk_bytes)
    if met is not None:
        run = partial(run_recurrence, exact=met)
        return Choice("recurrence", f"{how_many} are many, and each link serves channels in their order here", run)
    reasons = looked if unknown == looked else f"{looked}; nor does the compiled loop know this: {unknown}"
    return Choice("events", f"the recurrence is not exact here: {reasons}", run_events)


__all__ = [
    "ENGINES",
    "KEEP_TRANSFERS",
    "MANY_SHARED",
    "MANY_STEPPED",
    "MANY_TRANSFERS",
    "PATH_PARTS",
    "Choice",
    "Engine",
    "Trace",
    "Workers",
    "choose_engine",
]
