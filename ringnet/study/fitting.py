"""How large points are, and how many of them fit side by side."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ringnet.errors import InputError
from ringnet.runs.memory import estimate
from ringnet.runs.parts import build
from ringnet.study.cost import LEAST_S, most_s
from ringnet.study.task import Task


class Sized(NamedTuple):
    """A task, the memory that it takes, and the time that it takes at most."""

    task: Task
    memory_bytes: int
    most_s: float


def sized(tasks: Iterable[Task]) -> list[Sized]:
    """Return the tasks with their size, the largest first: it would keep the others waiting at the end."""
    return sorted(map(_sized, tasks), key=lambda one: (one.memory_bytes, one.most_s), reverse=True)


def _sized(task: Task) -> Sized:
    try:
        parts = build(task.scenario)
        return Sized(task, estimate(parts).memory_bytes, most_s(parts))
    except InputError:  # a file that has gone: the point will say so itself
        return Sized(task, 0, LEAST_S)


def at_once(tasks: list[Sized], n_jobs: int, memory_bytes: int) -> list[tuple[int, list[Task]]]:
    """Group tasks by how many of their size fit into memory at once, at least 1 and at most ``n_jobs``."""

    def fitting(one: Sized) -> int:
        return max(1, min(n_jobs, memory_bytes // max(1, one.memory_bytes)))

    return [(width, [one.task for one in group]) for width, group in groupby(tasks, key=fitting)]
