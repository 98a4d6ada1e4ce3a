"""Points on the cores of this machine, as many at once as memory allows.

A long sweep goes through joblib's processes, which start afresh; a short one through doubles of this process, where the
system makes such: they have imported what they need. Neither is imported by one run, which needs no processes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from typing import NamedTuple

from ringnet.errors import Fault, InputError
from ringnet.runs.memory import available_bytes, estimate
from ringnet.runs.parts import build
from ringnet.runs.work import LEAST_S
from ringnet.study.cost import most_s, n_cores
from ringnet.study.outcome import Done, Task, carry_out, quietly

#: A sweep that takes less is not worth other processes: they take half as long to start.
SMALL_S = 2.0
#: One that takes longer than this is worth processes that start afresh, whatever the program around does.
SHORT_S = 30.0
#: How often a process looks whether the one that started it still lives.
WATCH_S = 0.1

KILLED = "the process that computed it was killed: out of memory?"


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


def at_once(tasks: list[Sized], n_processes: int, memory_bytes: int) -> list[tuple[int, list[Task]]]:
    """Group tasks by how many of their size fit into memory at once, at least 1 and at most ``n_processes``."""

    def fitting(one: Sized) -> int:
        return max(1, min(n_processes, memory_bytes // max(1, one.memory_bytes)))

    return [(width, [one.task for one in group]) for width, group in groupby(tasks, key=fitting)]


def checked_processes(processes: int | None) -> int | None:
    """Return how many points shall run at once, if somebody says so.

    Raises
    ------
    InputError
        Fewer than one.
    """
    if processes is not None and (not isinstance(processes, int) or processes < 1):
        raise InputError(Fault("no point can be run", "jobs", value=str(processes), right="1 or more"))
    return processes


def on_this_machine(tasks: list[Task], processes: int | None, say: Callable[[str], None]) -> Generator[Done]:
    """Yield every task's outcome as it is finished, ``processes`` (or all cores) at a time if memory allows."""
    if processes == 1 or len(tasks) == 1:
        yield from map(carry_out, tasks)
        return
    largest_first = sized(tasks)
    most = sum(one.most_s for one in largest_first)
    n_processes = 1 if most < SMALL_S else processes or n_cores()
    for width, group in at_once(largest_first, n_processes, available_bytes()):
        if width == 1:
            yield from map(carry_out, group)
        else:
            yield from in_processes(group, width, say, short=most < SHORT_S)


def in_processes(
    tasks: list[Task], n_processes: int, say: Callable[[str], None], *, short: bool = False
) -> Iterator[Done]:
    """Yield every task's outcome as it is finished, ``n_processes`` at a time, each in a process of its own.

    A process that is killed takes only its own point with it: what is left is tried one by one until the
    point that kills its process shows itself as an error, and then side by side again.
    """
    left = {task.key: task for task in tasks}
    while left:
        try:
            side_by_side = _in_doubles if short and sys.platform == "linux" else _side_by_side
            yield from _striking_off(left, side_by_side(list(left.values()), n_processes))
        except _KilledError:
            say("a process that computed points was killed; trying the points that are left one by one")
            yield from _striking_off(left, _until_one_is_killed(list(left.values())))


def _striking_off(left: dict[str, Task], done: Generator[Done]) -> Iterator[Done]:
    with closing(done):
        for key, outcome in done:
            del left[key]
            yield key, outcome


def _until_one_is_killed(tasks: list[Task]) -> Generator[Done]:
    for task in tasks:
        try:
            yield from _side_by_side([task], 2)
        except _KilledError:
            yield task.lost(KILLED)
            return


class _KilledError(Exception):
    """A process that computed points is gone."""


def _side_by_side(tasks: list[Task], n_processes: int) -> Generator[Done]:
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 -- a run by itself needs no processes

    from joblib import Parallel, delayed  # noqa: PLC0415

    if os.name == "posix":
        _start_trackers()  # these let Ctrl-C through again as they start: not after it is held
    begin = {"initializer": _begin, "initargs": (os.getpid(),)}
    parallel = Parallel(n_processes, "loky", return_as="generator_unordered", max_nbytes=None, **begin)
    with quietly(), ExitStack() as stack:
        try:
            with _ctrl_c_held():
                done = stack.enter_context(closing(parallel(delayed(carry_out)(task) for task in tasks)))
            yield from done
        except BrokenProcessPool as error:
            raise _KilledError from error


def _in_doubles(tasks: list[Task], n_processes: int) -> Generator[Done]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: PLC0415 -- as above
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    others = {*active_children()}
    pool = ProcessPoolExecutor(n_processes, get_context("fork"), _begin_double, (os.getpid(), tasks))
    with quietly(), pool:
        with _ctrl_c_held():
            done = [pool.submit(_carry_out, number) for number in range(len(tasks))]
        try:
            for one in as_completed(done):
                yield one.result()
        except BrokenProcessPool as error:
            raise _KilledError from error
        except BaseException:  # nobody waits for the points that are under way
            for double in {*active_children()} - others:
                double.kill()
            raise


#: Of a double: the tasks of the process that it is a double of, so that a number stands for each; nothing is sent.
_tasks: list[Task] = []


def _begin_double(parent: int, tasks: list[Task]) -> None:
    _begin(parent)
    _tasks[:] = tasks


def _carry_out(number: int) -> Done:
    return carry_out(_tasks[number])


@contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Hold Ctrl-C back, here and, from their very start, in the processes that are started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_trackers() -> None:
    """Start what clears up after processes; what it has to say of those that were killed is for nobody's terminal."""
    from multiprocessing import resource_tracker  # noqa: PLC0415

    from joblib.externals.loky.backend import resource_tracker as loky_tracker  # noqa: PLC0415

    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        for tracker in (resource_tracker, loky_tracker):
            tracker.ensure_running()
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _begin(parent: int) -> None:
    """Begin a process that computes points: it leaves Ctrl-C to its parent, and ends soon after that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
