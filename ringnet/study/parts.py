"""Studies that are no sweep, in parts: each is computed, kept and found again as a point of a sweep is."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ringnet.scenario import Scenario
from ringnet.study import local
from ringnet.study.kept import Store
from ringnet.study.outcome import Outcome, Simulate
from ringnet.study.points import OnResult, Say, checked_jobs, finished, once
from ringnet.study.task import Done, Task, carry_out

#: Keys that change nothing of what comes out of a part.
_UNREAD = {"name", "report", "sweep", "compare", "payload", "engine"}


@dataclass(frozen=True)
class Means:
    """How the parts of a study are computed, kept and told of: see `ringnet.study.run_points`."""

    jobs: int | None = None
    cache_dir: Path | None = None
    fresh: bool = False
    on_result: OnResult = lambda outcome: None
    say: Say = lambda sentence: None


class Part(NamedTuple):
    """One part of a study.

    Parameters
    ----------
    label : str
        What it is about, for a person.
    key : str
        Of `key_of`: equal keys mean equal outcomes.
    scenario : Scenario
    do : callable
        Called with the scenario, in another process; returns an `Outcome`.
    most_s : float
        Roughly how long it takes at most, in seconds.
    """

    label: str
    key: str
    scenario: Scenario
    do: Simulate
    most_s: float


def key_of(scenario: Scenario, *more: object) -> str:
    """Return a hash of what a scenario says, of the content of its files, and of what else counts."""
    said = scenario.model_dump(mode="json", exclude=_UNREAD)
    whole = json.dumps([said, scenario.inputs(), more], sort_keys=True)
    return sha256(whole.encode()).hexdigest()


def run_parts(parts: Sequence[Part], means: Means) -> list[Outcome]:
    """Return the outcome of every part, in their order; parts of one key are computed once.

    Raises
    ------
    InputError
        A number of jobs below 1.
    """
    say = once(means.say)
    store = Store(means.cache_dir and means.cache_dir.absolute(), means.fresh, say)
    tasks = {part.key: Task(part.key, part.scenario, part.do, store.path(part.key)) for part in parts}
    compute = partial(
        _computed,
        costs={part.key: part.most_s for part in parts},
        n_jobs=checked_jobs(means.jobs),
        say=say,
    )
    found: dict[str, Outcome] = {}
    with closing(finished([*tasks.values()], store, compute)) as done:
        for key, outcome in done:
            found[key] = outcome
            means.on_result(outcome)
    return [found[part.key] for part in parts]


def _computed(tasks: list[Task], costs: Mapping[str, float], n_jobs: int, say: Say) -> Generator[Done]:
    """Yield every outcome; the longest come first, so that no process is left alone with one at the end."""
    if n_jobs == 1 or len(tasks) == 1 or sum(costs[task.key] for task in tasks) < local.SMALL_S:
        yield from map(carry_out, tasks)
    else:
        yield from local.in_processes(sorted(tasks, key=lambda task: -costs[task.key]), n_jobs, say)
