"""The points of a sweep: what is kept is read, the rest computed, and all returned in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from joblib import cpu_count

from ringnet.errors import Fault, InputError
from ringnet.runs.simulate import simulate as run_one
from ringnet.study.kept import Store
from ringnet.study.local import here
from ringnet.study.outcome import Outcome, Simulate
from ringnet.study.rows import in_full
from ringnet.study.task import Done, Task

if TYPE_CHECKING:
    from ringnet.scenario import SweepPoint

#: What hears of each outcome, and what hears each sentence for a person.
OnResult: TypeAlias = Callable[[Outcome], None]
Say: TypeAlias = Callable[[str], None]
#: What computes tasks, on this machine or on others.
Compute: TypeAlias = Callable[[list[Task]], Generator[Done]]

#: Points that are held as scenarios at once: a grid of a million does not fit into memory.
BLOCK = 10_000


def run_points(
    points: Iterable[SweepPoint],
    *,
    jobs: int | None = None,
    cache_dir: Path | None = None,
    fresh: bool = False,
    cluster: str | None = None,
    on_result: OnResult = lambda outcome: None,
    say: Say = lambda sentence: None,
    simulate: Simulate = run_one,
) -> list[Outcome]:
    """Run every point of a sweep.

    Parameters
    ----------
    points : iterable of SweepPoint
        As `Scenario.points` or `Scenario.iter_points` return them.
    jobs : int, optional
        Points at once, at least 1: as many as there are cores if left out, fewer where memory is short. One
        job runs in this process.
    cache_dir : Path, optional
        Folder in which finished points are kept, `default_cache_dir` for one; None keeps nothing.
    fresh : bool
        Whether to compute also what is kept already.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://host:port``, on whose workers the points run instead.
    on_result, say, simulate : callable
        Called with each outcome, as they come; with each sentence for a person; with each scenario to compute.

    Returns
    -------
    list of Outcome
        In the order of the points, and the same whatever ``jobs``, ``cluster`` and what was kept.

    Raises
    ------
    InputError
        ``jobs`` is below 1, or no cluster answers.
    StudyError
        The cluster was lost; what is finished is kept.
    """
    n_jobs, left, say = checked_jobs(jobs), iter(points), once(say)
    compute: Compute = (
        partial(here, n_jobs=n_jobs, say=say) if cluster is None else partial(_there, address=cluster)
    )
    study = _Study(Store(cache_dir and cache_dir.absolute(), fresh, say), compute, simulate, on_result)
    outcomes: list[Outcome] = []
    while block := list(islice(left, BLOCK)):
        outcomes += study.run(block)
    return outcomes


def checked_jobs(jobs: int | None) -> int:
    """Return how many points run at once: as many as there are cores where nobody says."""
    if jobs is not None and jobs < 1:
        raise InputError(Fault("no point can be run", "--jobs", value=str(jobs), right="1 or more"))
    return jobs or int(cpu_count())


def once(say: Say) -> Say:
    """Return what says each sentence only the first time."""
    told: set[str] = set()

    def say_once(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            say(sentence)

    return say_once


def _there(tasks: list[Task], address: str) -> Generator[Done]:
    from ringnet.study.cluster import there  # noqa: PLC0415 -- an extra, and a second of imports

    return there(tasks, address)


@dataclass(frozen=True)
class _Study:
    """How points are run: where they are kept, what computes them, and who hears of them."""

    store: Store
    compute: Compute
    simulate: Simulate
    on_result: OnResult

    def run(self, points: list[SweepPoint]) -> list[Outcome]:
        """Run some points; those that are the same scenario, however it is written, once."""
        places = defaultdict(list)
        for place, point in enumerate(points):
            places[point.scenario.key()].append(place)
        tasks = [self._task(key, points[at[0]]) for key, at in places.items()]
        rows: dict[int, Outcome] = {}
        with closing(finished(tasks, self.store, self.compute)) as done:
            for key, outcome in done:
                for place in places[key]:
                    rows[place] = in_full(outcome, points[place])
                    self.on_result(rows[place])
        return [rows[place] for place in range(len(points))]

    def _task(self, key: str, point: SweepPoint) -> Task:
        return Task(key, point.scenario, self.simulate, self.store.path(key))


def finished(tasks: list[Task], store: Store, compute: Compute) -> Generator[Done]:
    """Yield what is kept of some tasks, then what is computed."""
    left = []
    for task in tasks:
        kept = store.find(task.key)
        if kept is None:
            left.append(task)
        else:
            yield task.key, kept
    if left:
        with closing(compute(left)) as done:
            for key, outcome in done:
                if outcome.not_kept:
                    store.say(f"points cannot be kept in {store.folder}: {outcome.not_kept}")
                yield key, outcome
