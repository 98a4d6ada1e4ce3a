"""Studies of algorithms, in parts: each is computed, kept and found again as a point of a sweep is."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from ringnet.collectives import ALGORITHMS
from ringnet.collectives.proof import check
from ringnet.documents.document import Mark
from ringnet.documents.document import Path as KeyPath
from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError, unknown
from ringnet.runs.parts import build_schedule
from ringnet.scenario import Scenario
from ringnet.scenario.build.scenario import single
from ringnet.scenario.checks.collective import check_algorithm
from ringnet.scenario.checks.schedule import check_schedule
from ringnet.scenario.drawn import what_is_drawn
from ringnet.scenario.keys.algorithm import AlgorithmKeys, label_of
from ringnet.scenario.schedule import file_names
from ringnet.study import local
from ringnet.study.cost import n_cores
from ringnet.study.outcome import (
    Done,
    OnResult,
    Outcome,
    Say,
    Simulate,
    Store,
    Task,
    carry_out,
    finished,
    once,
)

#: Keys that change nothing of what comes out of a part.
_UNREAD = {"name", "report", "sweep", "compare", "payload", "engine"}


@dataclass(frozen=True)
class PartOptions:
    """How the parts of a study are computed and kept, and who hears of them: see `ringnet.study.run_points`."""

    processes: int | None = None
    cache_dir: Path | None = None
    fresh: bool = False
    on_result: OnResult = lambda outcome: None
    say: Say = lambda sentence: None


class Planned(Protocol):
    """A study before it is run."""

    @property
    def parts(self) -> Sequence[object]:
        """What is computed at most, each a point of its progress."""


class StudyPart(NamedTuple):
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


def run_parts(parts: Sequence[StudyPart], how: PartOptions) -> list[Outcome]:
    """Return the outcome of every part, in their order; parts of one key are computed once.

    Raises
    ------
    InputError
        A number of processes below 1.
    """
    say = once(how.say)
    store = Store(how.cache_dir and how.cache_dir.absolute(), how.fresh, say)
    tasks = {part.key: Task(part.key, part.scenario, part.do, store.path(part.key)) for part in parts}
    compute = partial(
        _computed,
        costs={part.key: part.most_s for part in parts},
        processes=local.checked_processes(how.processes),
        say=say,
    )
    found: dict[str, Outcome] = {}
    with closing(finished([*tasks.values()], store, compute)) as done:
        for key, outcome in done:
            found[key] = outcome
            how.on_result(outcome)
    return [found[part.key] for part in parts]


def _computed(tasks: list[Task], costs: Mapping[str, float], processes: int | None, say: Say) -> Generator[Done]:
    """Yield every outcome; the longest come first, so that no process is left alone with one at the end."""
    most = sum(costs[task.key] for task in tasks)
    is_small = len(tasks) == 1 or most < local.SMALL_S
    n_processes = 1 if is_small else processes or n_cores()
    if n_processes == 1:
        yield from map(carry_out, tasks)
    else:
        longest_first = sorted(tasks, key=lambda task: -costs[task.key])
        yield from local.in_processes(longest_first, n_processes, say, short=most < local.SHORT_S)


# What a study is made of.


class StudyPlan(NamedTuple):
    """What a study of algorithms is made of: a part for each algorithm at each N, and what was left out of it.

    ``remarks`` are what else is to be said where something comes of it; ``guesses`` say of some N and sizes why what
    comes of them is no ground for a recommendation.
    """

    parts: list[StudyPart]
    notes: list[str]
    remarks: tuple[str, ...] = ()
    guesses: Mapping[tuple[int, int], str] = MappingProxyType({})


def left_out(label: str, n_workers: int, reason: str) -> str:
    """Say that an algorithm is not part of a study."""
    return f"{label} is left out with {n_workers} workers: {reason}"


def workers_of(scenario: Scenario) -> list[int]:
    """Return the numbers of workers of a comparison, ascending."""
    if scenario.compare is not None and scenario.compare.workers is not None:
        return sorted(set(scenario.compare.workers))
    return sorted({point.scenario.workers for point in scenario.iter_points()})


def named_algorithms(algorithms: str | Sequence[str] | None) -> str | list[str] | None:
    """Return algorithms that are asked for, each once; ``all``, and None where the scenario says, as they are.

    Raises
    ------
    InputError
        At ``algorithms``, with every name that no algorithm has, or for ``all`` beside others.
    """
    if algorithms is None or algorithms == "all":
        return algorithms
    names = [algorithms] if isinstance(algorithms, str) else [*algorithms]
    others = [clip(str(name)) for name in names if name not in ALGORITHMS]
    if "all" in others:
        value = ", ".join(map(str, names))
        raise InputError(Fault("all stands alone", "algorithms", value=clip(value), right="all"))
    known = ("all", *ALGORITHMS)
    if others:
        raise InputError(*(unknown("there is no such algorithm", name, known, "algorithms") for name in others))
    if not names:
        raise InputError(Fault("no algorithm is named", "algorithms", right=", ".join(known)))
    return list(dict.fromkeys(names))


def algorithms_of(scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None) -> list[str | AlgorithmKeys]:
    """Return what is compared.

    ``all`` stands for every algorithm that knows the collective, those that reduce in switches where switches do.
    """
    if wanted is None:
        wanted = scenario.compare.algorithms if scenario.compare is not None else "all"
    if isinstance(wanted, str):
        known = {name: one for name, one in ALGORITHMS.items() if scenario.collective in one.collectives}
        reduces = scenario.network.reduction is not None
        return [name for name, one in known.items() if reduces or not one.in_switches]
    return list(wanted)


def algorithm_points(
    scenario: Scenario, wanted: str | Sequence[str | AlgorithmKeys] | None, n_workers: int
) -> tuple[list[Scenario], list[str]]:
    """Return the scenarios of the algorithms at one N, and for those that cannot be there a sentence each."""
    points: list[Scenario] = []
    notes: list[str] = []
    for keys in {label_of(keys): keys for keys in algorithms_of(scenario, wanted)}.values():
        try:
            points.append(_with_algorithm(points[0], keys) if points else _point(scenario, n_workers, keys))
        except InputError as error:
            reason = "; ".join(fault.message for fault in error.faults)
            notes.append(left_out(label_of(keys), n_workers, reason))
    for point in points:
        if file_names(point.algorithm):  # what somebody else wrote is refused before anything is done
            check(build_schedule(point))
    return points, notes


def _point(scenario: Scenario, n_workers: int, keys: str | AlgorithmKeys) -> Scenario:
    """Return the scenario of one algorithm at one N; what that orphans is left out of it."""
    mark: dict[KeyPath, Mark] = {(): Mark("--set", origin="set")}
    given = keys if isinstance(keys, str) else keys.model_dump(mode="json", exclude_none=True)
    unread = [("data",), ("compare",), ("training",), *([] if what_is_drawn(scenario) else [("seed",)])]
    document = scenario.base.drop(unread)
    changes = {
        "workers": n_workers,
        "algorithm": given,
        "payload": "none",
        "message": "0 B",
        "dtype": scenario.dtype,
    }
    if scenario.training is not None and scenario.reduce == "weighted-mean":  # by numbers of examples
        changes["reduce"] = "mean"
    for key, value in changes.items():
        document = document.put((key,), value, mark)
    return single(document, scenario.home)


def _with_algorithm(point: Scenario, keys: str | AlgorithmKeys) -> Scenario:
    """Return the same point with another algorithm: checking a network of a million links anew takes seconds."""
    other = point.model_copy(update={"algorithm": keys})
    findings = [*check_algorithm(other), *check_schedule(other, point.home)]
    if findings:
        raise InputError(*(Fault(one.message, "algorithm", right=one.right) for one in findings))
    return other
