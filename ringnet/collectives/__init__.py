"""Collectives: schedules as plain data. A new algorithm is one file with one function, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringnet.collectives.ring import ring
from ringnet.collectives.schedule import EVERY_WORKER, Schedule, Step, split_sizes


class Algorithm(NamedTuple):
    """A line of the registry: what builds the schedule, the collectives that it knows, and one line about it."""

    build: Callable[[int, str], Schedule]
    collectives: tuple[str, ...]
    summary: str


ALGORITHMS: dict[str, Algorithm] = {
    "ring": Algorithm(
        ring, ("all-reduce", "reduce-scatter", "all-gather"), "one ring in one direction, 2(N-1) steps"
    ),
}

#: Every collective that some algorithm knows, sorted.
COLLECTIVES = tuple(sorted({name for algorithm in ALGORITHMS.values() for name in algorithm.collectives}))

__all__ = ["ALGORITHMS", "COLLECTIVES", "EVERY_WORKER", "Algorithm", "Schedule", "Step", "split_sizes"]
