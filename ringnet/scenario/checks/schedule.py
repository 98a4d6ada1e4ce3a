"""Why there is no such schedule: parameters that do not fit N, a file or a function that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.documents.document import Path
from ringnet.errors import Fault, InputError
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.algorithm import WHICH, parameters_of
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.schedule import line_of, schedule_of


def check_schedule(keys: Keys, home: ScenarioFolder) -> Iterator[Mistake]:
    """Return why there is no such schedule: parameters that do not fit N, a file that cannot be read."""
    is_name = isinstance(keys.algorithm, str)
    which = "name" if is_name else next(key for key in WHICH if getattr(keys.algorithm, key))
    path = ("algorithm",) if which == "name" else ("algorithm", which)
    causes = (("workers",), ("collective",))
    if which == "name" and not _is_known(keys):
        return
    try:
        if is_name:  # whose defaults suit any N; a sweep checks thousands of them
            ALGORITHMS[keys.algorithm_name].check_size(keys.workers, keys.collective)
            return
        schedule = schedule_of(keys, home)
    except InputError as error:
        for fault in error.faults:
            if which == "name" and fault.path:
                yield _of_parameter(fault, keys)
            else:
                yield _of_python(fault, path, causes) if which == "python" else _of_file(fault, path, causes)
        return
    yield from _others(keys, schedule, path)


def _of_parameter(fault: Fault, keys: Keys) -> Mistake:
    """Tell of a parameter, of the number of workers, or of the algorithm where its parameter is left out."""
    causes = (("algorithm",), ("collective",), ("workers",))
    if fault.path == "workers":
        return Mistake(("workers",), f"with {keys.algorithm_name} {fault.message}", fault.right, "", causes)
    return Mistake(("algorithm", fault.path), fault.message, fault.right, "", causes)


def _of_file(fault: Fault, path: Path, causes: tuple[Path, ...]) -> Mistake:
    message = ": ".join(filter(None, (line_of(fault), fault.message, fault.value)))
    return Mistake(path, message, fault.right, fault.nearest, causes)


def _of_python(fault: Fault, path: Path, causes: tuple[Path, ...]) -> Mistake:
    """Tell what a function says in its own words: what stands at the key is named in them where it matters."""
    message = ": ".join(filter(None, (line_of(fault), fault.message)))
    return Mistake(path, message, fault.right, fault.nearest, causes, value=fault.value)


def _is_known(keys: Keys) -> bool:
    """Whether the algorithm knows the collective and its parameters; if not, that is told elsewhere."""
    known = ALGORITHMS[keys.algorithm_name]
    return (
        keys.collective in known.collectives
        and parameters_of(keys.algorithm).keys() <= known.parameters.keys()
    )


def _others(keys: Keys, schedule: Schedule, path: tuple[str, ...]) -> Iterator[Mistake]:
    """Tell of a file that is the schedule of other workers or of another collective."""
    if schedule.n_workers != keys.workers:
        message = f"the schedule is that of {schedule.n_workers} workers"
        yield Mistake(("workers",), message, str(schedule.n_workers), causes=(path,))
    if schedule.collective != keys.collective:
        message = f"the schedule is that of {schedule.collective}"
        yield Mistake(("collective",), message, schedule.collective, causes=(path,))
