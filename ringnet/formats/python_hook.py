"""A user's own algorithm: a function in a Python file, run only when the user has said that it may be."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ringnet.collectives import Schedule, Step
from ringnet.errors import Fault, InputError

#: The right form of what names a function, and of a column of numbers.
FORM, _ARRAY = "my_ring.py:my_ring", "np.array([0, 1], dtype=np.int64)"
_SIZES = ("n_workers", "n_chunks", "n_steps", "n_transfers", "n_channels", "n_buffers")
_AT_LEAST_ONE = {"n_workers", "n_chunks", "n_channels", "n_buffers"}
_COLUMNS = ("src", "dst", "chunk", "channel", "to_channel", "count")


def load_function(name: str, folder: Path, *, allowed: bool) -> Callable[..., Schedule]:
    """Load the function that a scenario names.

    Parameters
    ----------
    name : str
        ``file.py:function``, the file in ``folder`` or below it.
    folder : Path
        The folder of the scenario.
    allowed : bool
        Whether the user passed ``--allow-python``: the file is code, and may do whatever the user may.

    Returns
    -------
    callable
        ``function(n_workers, collective, **parameters)``: checks that what the user's function returns is a
        `Schedule` for so many workers and this collective, and turns what it raises into an `InputError`.

    Raises
    ------
    InputError
        Not allowed; no such form, file or function; a file outside the folder; a file that fails when it is
        run.
    """
    return _checked(find_function(name, folder, allowed=allowed), name)


def find_function(name: str, folder: Path, *, allowed: bool, right: str = FORM) -> Callable[..., Any]:
    """Return a function of a user's file, which is run for it.

    Parameters
    ----------
    name, folder, allowed
        As for `load_function`.
    right : str
        An example of the right form.

    Raises
    ------
    InputError
        As for `load_function`, but nothing is said of what the function returns.
    """
    file, _, function_name = name.rpartition(":")
    if not file.endswith(".py") or not function_name.isidentifier():
        raise InputError(Fault("no Python function is named so", value=name, right=right))
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(Fault("the file is outside the scenario's folder", value=file, right=right))
    if not allowed:
        message = "a scenario that runs a Python file is only run if you allow it, since the file may do anything"
        raise InputError(Fault(message, value=name, right="--allow-python (allow_python=True)"))
    if not path.is_file():
        raise InputError(Fault("there is no such file", value=str(path)))
    function: Callable[..., Any] | None = getattr(_run_file(path), function_name, None)
    if function is None or not callable(function):
        raise InputError(Fault("the file has no such function", file=str(path), value=function_name))
    return function


def called(function: Callable[..., Any], name: str, *given: Any) -> Any:
    """Call a user's function; what it raises becomes an `InputError` with the line of its file."""
    try:
        return function(*given)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(_fault_of(error, name)) from error


def _run_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ringnet_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(Fault("the file is no Python file", value=str(path)))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up by name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise InputError(_fault_of(error, path.name)) from error
    return module


def _checked(function: Callable[..., Any], name: str) -> Callable[..., Schedule]:
    def build(n_workers: int, collective: str, **parameters: Any) -> Schedule:
        _check_call(function, name, (n_workers, collective), parameters)
        try:
            schedule = function(n_workers, collective, **parameters)
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(_fault_of(error, name)) from error
        if not isinstance(schedule, Schedule):
            right = "a ringnet.Schedule"
            raise InputError(Fault(f"{name} returns no schedule", value=_kind_of(schedule), right=right))
        return checked_schedule(schedule, name, n_workers, collective)

    return build


def checked_schedule(schedule: Schedule, name: str, n_workers: int, collective: str) -> Schedule:
    """Return the schedule of a user; what goes wrong while its steps are made is told as the user's mistake.

    Raises
    ------
    InputError
        Sizes of another type, or other workers or another collective than is wanted.
    """
    _check_sizes(schedule, name)
    if (schedule.n_workers, schedule.collective) != (n_workers, collective):
        value = f"{schedule.collective} of {schedule.n_workers} workers"
        right = f"{collective} of {n_workers} workers"
        raise InputError(Fault(f"{name} returns the schedule of something else", value=value, right=right))
    return replace(schedule, make_steps=_Guarded(schedule.make_steps, name))


def _check_call(function: Callable[..., Any], name: str, given: tuple[int, str], parameters: Mapping[str, Any]) -> None:
    """Check that a function can be called so; one that cannot say what it takes is called anyway."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given, **parameters)
    except TypeError as error:
        value = ", ".join(["n_workers", "collective", *parameters])
        right = f"{name.partition(':')[2]}{signature}"
        reason = str(error).removeprefix("got ")  # what was got follows
        raise InputError(Fault(f"{name} cannot be called so: {reason}", value=value, right=right)) from None


def _check_sizes(schedule: Schedule, name: str) -> None:
    """Check that all that is no step is of its type: sizes whole numbers, source and target arrays of them."""
    sizes = {key: getattr(schedule, key) for key in _SIZES}
    faults = [
        Fault(f"{name} returns a schedule whose {key} is no number of them", value=repr(size), right="4")
        for key, size in sizes.items()
        if isinstance(size, bool) or not isinstance(size, int) or size < (key in _AT_LEAST_ONE)
    ]
    faults += [
        Fault(
            f"{name} returns a schedule whose {key} is no array of workers",
            value=_kind_of(owners),
            right=_ARRAY,
        )
        for key, owners in (("source", schedule.source), ("target", schedule.target))
        if not _is_array(owners)
    ]
    make_steps: object = schedule.make_steps
    if not callable(make_steps):
        message = f"{name} returns a schedule whose make_steps cannot be called"
        right = "a function that returns an iterator of ringnet.Step"
        faults.append(Fault(message, value=_kind_of(make_steps), right=right))
    if faults:
        raise InputError(*faults)


@dataclass(frozen=True)
class _Guarded:
    """The steps of a user's schedule: what goes wrong while they are made is the user's mistake, and said to be."""

    make_steps: Callable[[], Iterable[Step]]
    name: str

    def __call__(self) -> Iterator[Step]:
        try:
            steps = iter(self.make_steps())
        except (Exception, SystemExit) as error:
            raise InputError(_fault_of(error, self.name)) from error
        number = 0
        while (step := self._next(steps)) is not None:
            self._check(step, number)
            yield step
            number += 1

    def _next(self, steps: Iterator[Step]) -> Step | None:
        try:
            return next(steps)
        except StopIteration:
            return None
        except (Exception, SystemExit) as error:
            raise InputError(_fault_of(error, self.name)) from error

    def _check(self, step: object, number: int) -> None:
        """Check the types of a step; what its numbers are is for `check` to say."""
        what = f"step {number} of {self.name}"
        if not isinstance(step, Step):
            raise InputError(Fault(f"{what} is no step", value=_kind_of(step), right="a ringnet.Step"))
        for column in _COLUMNS:
            values = getattr(step, column)
            if not (_is_array(values) or (values is None and column in {"to_channel", "count"})):
                message = f"{what}: {column} is no array of whole numbers"
                raise InputError(Fault(message, value=_kind_of(values), right=_ARRAY))


def _is_array(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == np.int64


def _kind_of(value: object) -> str:
    """Return what a value is: its type, of an array shape and element type too."""
    if isinstance(value, np.ndarray):
        return f"ndarray of {value.dtype}, shape {value.shape}"
    return type(value).__name__


def _fault_of(error: BaseException, name: str) -> Fault:
    """Say what a user's code raised, and in which line of it."""
    file, traceback, line = name.partition(":")[0], error.__traceback__, None
    what = str(error)
    if isinstance(error, SyntaxError) and (error.filename or "").endswith(file):
        what, line = error.msg, error.lineno
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.endswith(file):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return Fault(f"{type(error).__name__}: {what}".removesuffix(": "), file=file, line=line)


# What else a function reads: what comes of it depends on that, too.

#: Sets that hear of every file that is opened, the innermost last.
_HEARING: list[set[str]] = []


@contextmanager
def files_opened(folder: Path) -> Iterator[set[Path]]:
    """Note which files are opened for reading meanwhile, by whatever code, and which modules of ``folder`` are in use.

    Yields
    ------
    set of Path
        Filled at the end: regular files, absolute. Those of Python itself, of packages and of the system's own
        folders are not among them.
    """
    _listen()
    heard, found = set[str](), set[Path]()
    _HEARING.append(heard)
    try:
        yield found
    finally:
        _HEARING.pop()
        # A module that was imported before is not opened again.
        modules = {str(getattr(one, "__file__", None)) for name, one in [*sys.modules.items()] if name != "__main__"}
        inside = {file for file in modules if Path(file).is_relative_to(folder)}
        found |= {Path(file) for file in heard | inside if _is_own(Path(file), folder)}


@cache
def _listen() -> None:
    """Hear of every file that Python opens, from now on: a hook cannot be taken away again, so that there is one."""
    sys.addaudithook(_on_event)


def _on_event(event: str, given: tuple[Any, ...]) -> None:
    if event != "open" or not _HEARING:
        return
    path, _, flags = given
    if isinstance(path, str | bytes) and (flags or 0) & os.O_ACCMODE != os.O_WRONLY:
        _HEARING[-1].add(os.path.abspath(os.fsdecode(path)))


def _is_own(file: Path, folder: Path) -> bool:
    """Whether a file is the user's: no compiled module, nothing of the interpreter, its packages or the system."""
    if file.suffix == ".pyc" or not file.is_file():
        return False
    foreign = [
        *map(Path, (sys.prefix, sys.base_prefix, sys.exec_prefix)),
        *map(Path, ("/proc", "/sys", "/dev")),
    ]
    foreign += [Path(path) for path in sys.path if path.endswith("-packages")]
    around = [one for one in foreign if file.is_relative_to(one)]
    return not around or (file.is_relative_to(folder) and all(folder.is_relative_to(one) for one in around))
