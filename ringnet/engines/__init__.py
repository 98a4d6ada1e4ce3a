"""Engines: when it moves. Each takes a schedule, a network and a payload, and returns a `Trace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringnet.engines.events import run_events
from ringnet.engines.trace import KEEP_TRANSFERS, PATH_PARTS, Trace, Workers


class Engine(NamedTuple):
    """A line of the registry: what runs, and one line about it."""

    run: Callable[..., Trace]
    summary: str


ENGINES: dict[str, Engine] = {
    "events": Engine(run_events, "SimPy processes for workers and links, transfer by transfer: the reference"),
}

__all__ = ["ENGINES", "KEEP_TRANSFERS", "PATH_PARTS", "Engine", "Trace", "Workers"]
