"""Why there is no such schedule: parameters that do not fit N, a file or a function that is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.documents.document import Path
from ringnet.errors import Fault, InputError, NetworkError
from ringnet.networks import TRAITS, Network
from ringnet.scenario.checks.collective import reduces_in_switches
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.checks.network import shape_of
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.algorithm import WHICH, knows_parameters
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.network import hardware, ordered, seated, seats
from ringnet.scenario.schedule import file_names, line_of, naming, schedule_beside, schedule_of

#: Topologies in which nothing may lead from one worker to another.
ONE_WAY = ("ring", "custom")
#: Transfers of a schedule that is looked at whole, and the steps of a larger one.
MOST_LOOKED_AT, FIRST_STEPS = 2**20, 64


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
            with naming(keys.algorithm_name):
                ALGORITHMS[keys.algorithm_name].check_size(keys.workers, keys.collective)
            return
        schedule = schedule_of(keys, home)
    except InputError as error:
        for fault in error.faults:
            if which == "name" and fault.path:
                yield _of_parameter(fault)
            else:
                yield _of_python(fault, path, causes) if which == "python" else _of_file(fault, path, causes)
        return
    yield from _others(keys, schedule, path)


def check_compared(keys: Keys, home: ScenarioFolder) -> Iterator[Mistake]:
    """Return which files of what is compared are not there; whether they suit is told where each N is known."""
    compared = keys.compare.algorithms if keys.compare else ()
    for number, algorithm in enumerate(() if isinstance(compared, str) else compared):
        for name in file_names(algorithm):
            which = next(key for key in WHICH if getattr(algorithm, key))
            try:
                home.found(name)
            except InputError as error:
                for fault in error.faults:
                    yield _of_file(fault, ("compare", "algorithms", number, which), ())


def check_ways(keys: Keys, home: ScenarioFolder) -> Iterator[Mistake]:
    """Find a transfer that nothing leads from its sender to its receiver, where a topology may have no such way."""
    names = [keys.algorithm_name, *(job.algorithm or keys.algorithm_name for job in keys.jobs)]
    in_switches = any(map(reduces_in_switches, names))
    one_way = keys.network.file is None and keys.network.topology in ONE_WAY
    one_way = one_way and (keys.algorithm != "ring" or bool(keys.jobs))  # of a ring alone its network is asked
    if not (one_way or in_switches) or shape_of(keys)[0] is None:
        return
    try:
        network = hardware(keys).network
        places = seats(keys, network)
        seen = [ordered(keys, seated(network, places[0], "placement"))]
        seen += [seated(network, seat, "workers") for seat in places[1:]]
        read = [_read_off(*each) for each in zip(names, seen, strict=True)]
        schedules = [schedule_of(keys, home, read[0])] + [
            schedule_beside(keys, job.algorithm, len(seat), job.collective or keys.collective, found)
            for job, seat, found in zip(keys.jobs, places[1:], read[1:], strict=True)
        ]
    except InputError:  # which is told of the network, or of the algorithm
        return
    for number, (schedule, own) in enumerate(zip(schedules, seen, strict=True)):
        path: Path = ("network", "reduction" if reduces_in_switches(names[number]) else "topology")
        causes: tuple[Path, ...] = (("algorithm",), ("workers",)) if number == 0 else (("jobs", number - 1),)
        if missing := _without_way(schedule, own):
            message = f"{schedule.algorithm} has no way on it: {missing}"
            right = "topology: switch" + ", or algorithm: ring" * (schedule.algorithm != "ring")
            if schedule.n_switches:
                right = "switches that reduce next to all its workers, or algorithm: ring"
            yield Mistake(path, message, right, causes=causes)


def _read_off(algorithm: str, network: Network) -> dict[str, Any]:
    """Return what an algorithm that reduces in switches is told of them."""
    if not reduces_in_switches(algorithm):
        return {}
    shape, known = network.shape, ALGORITHMS[algorithm].parameters
    values = {name: TRAITS[one.trait].read(shape) for name, one in known.items() if one.trait}
    return {name: value for name, value in values.items() if value is not None}


def _without_way(schedule: Schedule, network: Network) -> str:
    """Return what is said of the first transfer without a route, of those of a large schedule's first steps."""
    known = np.zeros(0, dtype=np.int64)
    runs = schedule.runs() if schedule.n_transfers <= MOST_LOOKED_AT else islice(schedule.runs(), FIRST_STEPS)
    for step, _ in runs:
        pairs = np.setdiff1d(step.src * schedule.n_members + step.dst, known)
        known = np.concatenate([known, pairs])
        try:
            network.hops(*np.divmod(pairs, schedule.n_members))
        except NetworkError as error:
            return error.faults[0].message
    return ""


def _of_parameter(fault: Fault) -> Mistake:
    """Tell of a parameter, of the number of workers, or of the algorithm where its parameter is left out."""
    causes = (("algorithm",), ("collective",), ("workers",))
    if fault.path == "workers":
        return Mistake(("workers",), fault.message, fault.right, "", causes)
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
    return keys.collective in ALGORITHMS[keys.algorithm_name].collectives and knows_parameters(keys.algorithm)


def _others(keys: Keys, schedule: Schedule, path: tuple[str, ...]) -> Iterator[Mistake]:
    """Tell of a file that is the schedule of other workers or of another collective."""
    if schedule.n_workers != keys.workers:
        message = f"the schedule is that of {schedule.n_workers} workers"
        yield Mistake(("workers",), message, str(schedule.n_workers), causes=(path,))
    if schedule.collective != keys.collective:
        message = f"the schedule is that of {schedule.collective}"
        yield Mistake(("collective",), message, schedule.collective, causes=(path,))
