"""A user's own algorithm: a function in a Python file, run only when the user has said that it may be."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ringnet.collectives import Schedule
from ringnet.errors import Fault, InputError

#: The right form of what names a function.
FORM = "my_ring.py:my_ring"


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
    file, _, function_name = name.rpartition(":")
    if not file.endswith(".py") or not function_name.isidentifier():
        raise InputError(Fault("no Python function is named so", value=name, right=FORM))
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(Fault("the file is outside the scenario's folder", value=file, right=FORM))
    if not allowed:
        message = (
            "a scenario that runs a Python file is only run if you allow it, since the file may do anything"
        )
        raise InputError(Fault(message, value=name, right="--allow-python"))
    if not path.is_file():
        raise InputError(Fault("there is no such file", value=str(path)))
    function = getattr(_run_file(path), function_name, None)
    if not callable(function):
        raise InputError(Fault("the file has no such function", file=str(path), value=function_name))
    return _checked(function, name)


def _run_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ringnet_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(Fault("the file is no Python file", value=str(path)))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up by name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(_told(error, path.name)) from error
    return module


def _checked(function: Callable[..., Any], name: str) -> Callable[..., Schedule]:
    def build(n_workers: int, collective: str, **parameters: Any) -> Schedule:
        try:
            schedule = function(n_workers, collective, **parameters)
        except InputError:
            raise
        except Exception as error:
            raise InputError(_told(error, name)) from error
        if not isinstance(schedule, Schedule):
            right = "a ringnet.Schedule"
            raise InputError(Fault(f"{name} returns no schedule", value=type(schedule).__name__, right=right))
        if (schedule.n_workers, schedule.collective) != (n_workers, collective):
            value = f"{schedule.collective} of {schedule.n_workers} workers"
            right = f"{collective} of {n_workers} workers"
            raise InputError(
                Fault(f"{name} returns the schedule of something else", value=value, right=right)
            )
        return schedule

    return build


def _told(error: Exception, name: str) -> Fault:
    """Say what a user's code raised, and in which line of it."""
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.endswith(name.partition(":")[0]):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return Fault(f"{type(error).__name__}: {error}", file=name.partition(":")[0], line=line)
