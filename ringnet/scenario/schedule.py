"""The schedule that a scenario names: built by ringnet, read from a file, or made by a user's function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from ringnet.collectives import ALGORITHMS, Schedule, Step
from ringnet.documents.document import Path
from ringnet.errors import Fault, InputError
from ringnet.formats.msccl import load_msccl
from ringnet.formats.python_hook import load_function
from ringnet.scenario.checks.finding import Finding
from ringnet.scenario.files.folder import ScenarioFolder, digest
from ringnet.scenario.files.network_file import channel_orders
from ringnet.scenario.keys.algorithm import WHICH, AlgorithmKeys, parameters_of
from ringnet.scenario.keys.model import Keys


def schedule_of(keys: Keys, place: ScenarioFolder) -> Schedule:
    """Return who sends what to whom.

    Raises
    ------
    InputError, ScheduleError
        What the algorithm says of its parameters, or what is wrong with the file or the function.
    """
    algorithm = keys.algorithm
    if isinstance(algorithm, str) or algorithm.name:
        told = _of_channels(keys) | parameters_of(algorithm)
        return ALGORITHMS[keys.algorithm_name].build(keys.workers, keys.collective, **told)
    if algorithm.file:
        file = place.find(algorithm.file)
        return _read(file, digest(file))
    build = load_function(str(algorithm.python), place.folder, allowed=place.allow_python)
    schedule = build(keys.workers, keys.collective, **(algorithm.parameters or {}))
    return replace(schedule, make_steps=_AtKey(schedule.make_steps))


@dataclass(frozen=True)
class _AtKey:
    """The steps of a user's function: they are made long after the scenario is read, and errors still name its key."""

    make_steps: Callable[[], Iterator[Step]]

    def __call__(self) -> Iterator[Step]:
        try:
            yield from self.make_steps()
        except InputError as error:
            raise InputError(*map(self._fault, error.faults)) from error

    @staticmethod
    def _fault(fault: Fault) -> Fault:
        message = ": ".join(filter(None, (_place_of(fault), fault.message)))
        return replace(fault, message=message, path="algorithm.python", file="", line=None)


def _of_channels(keys: Keys) -> dict[str, Any]:
    """Return what a file says of channels: the order of each ring, and how many there are if nobody else says it."""
    orders = channel_orders(keys)
    return {"orders": orders, "n_channels": len(orders)} if orders else {}


def schedule_beside(keys: Keys, algorithm: str | None, n_workers: int, collective: str) -> Schedule:
    """Return the schedule of another job: of its own algorithm, or of the scenario's with its parameters."""
    told = {} if algorithm else parameters_of(keys.algorithm)
    return ALGORITHMS[algorithm or keys.algorithm_name].build(n_workers, collective, **told)


@lru_cache(maxsize=16)
def _read(file: FilePath, content: str) -> Schedule:
    """Read a file of this content once: a run asks for its schedule several times."""
    return load_msccl(file)


def file_names(algorithm: str | AlgorithmKeys) -> list[str]:
    """Return the names of the files that an algorithm comes from."""
    if isinstance(algorithm, str):
        return []
    python = algorithm.python.rpartition(":")[0] if algorithm.python else None
    return [name for name in (algorithm.file, python) if name]


def check_schedule(keys: Keys, place: ScenarioFolder) -> Iterator[Finding]:
    """Return why there is no such schedule: parameters that do not fit N, a file that cannot be read."""
    if isinstance(keys.algorithm, str):
        return
    which = next(key for key in WHICH if getattr(keys.algorithm, key))
    path = ("algorithm",) if which == "name" else ("algorithm", which)
    if which == "name" and not _is_known(keys):
        return
    try:
        schedule = schedule_of(keys, place)
    except InputError as error:
        causes = (("workers",), ("collective",))
        for fault in error.faults:
            yield _of_python(fault, path, causes) if which == "python" else _of_file(fault, path, causes)
        return
    yield from _others(keys, schedule, path)


def _of_file(fault: Fault, path: Path, causes: tuple[Path, ...]) -> Finding:
    message = ": ".join(filter(None, (_place_of(fault), fault.message, fault.value)))
    return Finding(path, message, fault.right, fault.nearest, causes)


def _of_python(fault: Fault, path: Path, causes: tuple[Path, ...]) -> Finding:
    """Tell what a function says in its own words: what stands at the key is named in them where it matters."""
    message = ": ".join(filter(None, (_place_of(fault), fault.message)))
    return Finding(path, message, fault.right, fault.nearest, causes, value=fault.value)


def _is_known(keys: Keys) -> bool:
    """Whether the algorithm knows the collective and its parameters; if not, that is told elsewhere."""
    known = ALGORITHMS[keys.algorithm_name]
    return (
        keys.collective in known.collectives
        and parameters_of(keys.algorithm).keys() <= known.parameters.keys()
    )


def _place_of(fault: Fault) -> str:
    """Say in which line it is, of which file where that is the user's own."""
    if fault.line is None:
        return ""
    return f"{FilePath(fault.file).name}:{fault.line}" if fault.file.endswith(".py") else f"line {fault.line}"


def _others(keys: Keys, schedule: Schedule, path: tuple[str, ...]) -> Iterator[Finding]:
    """Tell of a file that is the schedule of other workers or of another collective."""
    if schedule.n_workers != keys.workers:
        message = f"the schedule is that of {schedule.n_workers} workers"
        yield Finding(("workers",), message, str(schedule.n_workers), causes=(path,))
    if schedule.collective != keys.collective:
        message = f"the schedule is that of {schedule.collective}"
        yield Finding(("collective",), message, schedule.collective, causes=(path,))
