"""The schedule that a scenario names: built by ringnet, read from a file, or made by a user's function."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from ringnet.collectives import ALGORITHMS, Schedule, Step
from ringnet.collectives.sizes import largest_that
from ringnet.errors import Fault, InputError
from ringnet.formats.python_hook import checked_schedule, files_opened, load_function
from ringnet.scenario.files.folder import ScenarioFolder, digest
from ringnet.scenario.files.network_file import channel_orders
from ringnet.scenario.keys.algorithm import AlgorithmKeys, parameters_of
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.topology import workers_per_host


def schedule_of(keys: Keys, home: ScenarioFolder, read: Mapping[str, Any] = MappingProxyType({})) -> Schedule:
    """Return who sends what to whom.

    Parameters
    ----------
    keys : Keys
    home : ScenarioFolder
    read : mapping of str to object, optional
        Parameters of the algorithm that were read off the network; those of the keys are stronger.

    Raises
    ------
    InputError, ScheduleError
        What the algorithm says of its parameters, or what is wrong with the file or the function.
    """
    algorithm = keys.algorithm
    if isinstance(algorithm, str) or algorithm.name:
        given = {**read, **_of_channels(keys), **parameters_of(algorithm)}
        try:
            return _built(keys.algorithm_name, keys.workers, keys.collective, **given)
        except InputError as error:
            raise InputError(*(_of_hosts(one, keys, given) for one in error.faults)) from error
    if algorithm.file:
        file = home.find(algorithm.file)
        return _read(file, digest(file))
    if home.schedule is not None:
        return checked_schedule(home.schedule, str(algorithm.python), keys.workers, keys.collective)
    build = load_function(str(algorithm.python), home.folder, allowed=home.allow_python)
    schedule = build(keys.workers, keys.collective, **(algorithm.parameters or {}))
    return replace(schedule, make_steps=_AtKey(schedule.make_steps))


def _of_hosts(fault: Fault, keys: Keys, given: Mapping[str, Any]) -> Fault:
    """Tell of too many workers as of hosts, whole ones, where these are what the scenario says."""
    each, hosts = workers_per_host(keys.network), keys.hosts or 0
    if fault.path != "workers" or not each or hosts * each != keys.workers:
        return fault

    def fits(hosts: int) -> bool:
        size = ALGORITHMS[keys.algorithm_name].size_of(hosts * each, keys.collective, **given)
        return size is None or size.is_bearable

    most = largest_that(fits, hosts)
    if not 0 < most < hosts:  # it is not their number that is too large
        return fault
    return replace(fault, path="hosts", value=str(hosts), right=f"at most {most}")


@lru_cache(maxsize=16)
def _built(algorithm: str, n_workers: int, collective: str, **parameters: Any) -> Schedule:
    """Build, and let it be proved, once what the points of a sweep share."""
    with naming(algorithm):
        return ALGORITHMS[algorithm].build(n_workers, collective, **parameters)


@contextmanager
def naming(algorithm: str) -> Iterator[None]:
    """Name the algorithm in what is said of the number of workers: another one may do with as many."""
    try:
        yield
    except InputError as error:
        faults = (
            replace(one, message=f"with {algorithm} {one.message}") if one.path == "workers" else one
            for one in error.faults
        )
        raise InputError(*faults) from error


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
        message = ": ".join(filter(None, (line_of(fault), fault.message)))
        return replace(fault, message=message, path="algorithm.python", file="", line=None)


def _of_channels(keys: Keys) -> dict[str, Any]:
    """Return what a file says of channels: the order of each ring, and how many there are if nobody else says it."""
    orders = channel_orders(keys.network, keys.algorithm_name)
    return {"orders": orders, "n_channels": len(orders)} if orders else {}


def schedule_beside(
    keys: Keys,
    algorithm: str | None,
    n_workers: int,
    collective: str,
    read: Mapping[str, Any] = MappingProxyType({}),
) -> Schedule:
    """Return the schedule of another job: of its own algorithm, or of the scenario's with its parameters.

    ``read`` are parameters that were read off its network, as in `schedule_of`.
    """
    given = {**read, **({} if algorithm else parameters_of(keys.algorithm))}
    return ALGORITHMS[algorithm or keys.algorithm_name].build(n_workers, collective, **given)


@lru_cache(maxsize=16)
def _read(file: FilePath, content: str) -> Schedule:
    """Read a file of this content once: a run asks for its schedule several times."""
    from ringnet.formats.msccl import load_msccl  # noqa: PLC0415 -- few scenarios have such a file

    return load_msccl(file)


def file_names(algorithm: str | AlgorithmKeys) -> list[str]:
    """Return the names of the files that an algorithm comes from."""
    if isinstance(algorithm, str):
        return []
    python = algorithm.python.rpartition(":")[0] if algorithm.python else None
    return [name for name in (algorithm.file, python) if name]


def files_read(keys: Keys, home: ScenarioFolder) -> set[str]:
    """Return the files that a user's function reads while it makes the steps, seen from the scenario's folder.

    What it takes from elsewhere (the network, the clock, the environment) cannot be known.
    """
    if isinstance(keys.algorithm, str) or not keys.algorithm.python or home.schedule is not None:
        return set()
    folder = home.folder.resolve()
    with files_opened(folder) as found, suppress(InputError):  # what is wrong is told where it is run
        schedule = schedule_of(keys, home)
        for number, _ in enumerate(schedule.steps()):
            if number > schedule.n_steps:  # more than it says, which is told there too
                break
    return {os.path.relpath(file, folder) for file in found}


def content_of(schedule: Schedule) -> str:
    """Return the SHA-256 of all that a schedule says, in hexadecimal."""
    sizes = (
        schedule.n_workers,
        schedule.n_chunks,
        schedule.n_channels,
        schedule.n_buffers,
        schedule.n_switches,
    )
    content = hashlib.sha256(repr((schedule.algorithm, schedule.collective, sizes)).encode())
    for array in (schedule.source, schedule.target):
        content.update(array.tobytes())
    for step in schedule.steps():
        content.update(repr((step.phase, step.step, step.op, len(step))).encode())
        for column in (step.src, step.dst, step.chunk, step.channel, step.to_channel, step.count):
            content.update(b"-" if column is None else column.tobytes())
    return content.hexdigest()


def line_of(fault: Fault) -> str:
    """Say in which line it is, of which file where that is the user's own."""
    if fault.line is None:
        return ""
    return f"{FilePath(fault.file).name}:{fault.line}" if fault.file.endswith(".py") else f"line {fault.line}"
