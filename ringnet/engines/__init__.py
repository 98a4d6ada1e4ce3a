"""Engines: when it moves. Each takes a schedule, a network and a payload, and returns a `Trace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringnet.collectives import Schedule
from ringnet.engines.arrays import run_recurrence, why_not_exact
from ringnet.engines.events import run_events
from ringnet.engines.trace import KEEP_TRANSFERS, PATH_PARTS, Trace, Workers
from ringnet.networks import Network


class Engine(NamedTuple):
    """A line of the registry: what runs, and one line about it."""

    run: Callable[..., Trace]
    summary: str


ENGINES: dict[str, Engine] = {
    "events": Engine(
        run_events, "SimPy processes for workers and links, transfer by transfer: the reference"
    ),
    "recurrence": Engine(
        run_recurrence, "whole steps at a time: the same times, far faster, where it is exact"
    ),
}

#: Transfers from which `choose_engine` looks for the faster engine: below, SimPy takes a tenth of a second.
MANY_TRANSFERS = 10_000


class Choice(NamedTuple):
    """An engine by name, and why it was chosen."""

    name: str
    reason: str


def choose_engine(schedule: Schedule, network: Network, workers: Workers) -> Choice:
    """Choose the engine for a run: the recurrence where it is exact and the run is large, SimPy's events otherwise."""
    how_many = f"{schedule.n_transfers:,} transfers"
    if schedule.n_transfers < MANY_TRANSFERS:
        return Choice("events", f"{how_many} are few")
    reason = why_not_exact(schedule, network, workers)
    if reason is None:
        return Choice("recurrence", f"{how_many} are many, and it is exact here")
    return Choice("events", f"the recurrence is not exact here: {reason}")


__all__ = [
    "ENGINES",
    "KEEP_TRANSFERS",
    "MANY_TRANSFERS",
    "PATH_PARTS",
    "Choice",
    "Engine",
    "Trace",
    "Workers",
    "choose_engine",
]
