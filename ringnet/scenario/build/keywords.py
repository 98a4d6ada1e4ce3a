"""A scenario from Python alone: its keys as keywords, and a schedule that no file holds."""

from __future__ import annotations

import os
from pathlib import Path as FilePath
from typing import Any

from ringnet.collectives import Schedule
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.model import VERSIONS

#: Keys that a schedule says itself.
SAID_BY_SCHEDULE = ("algorithm", "collective", "workers")


def scenario(
    schedule: Schedule | None = None,
    /,
    *,
    folder: str | os.PathLike[str] = ".",
    allow_outside: bool = False,
    allow_python: bool = False,
    **keys: Any,
) -> Scenario:
    """Return the scenario that keywords are, with the same checks as a file.

    Parameters
    ----------
    schedule : Schedule, optional
        Who sends what to whom, in place of the keys ``algorithm``, ``collective`` and ``workers``: one of your own, as
        `ringnet.make_schedule` returns it.
    folder : path
        Where names of files start.
    allow_outside, allow_python : bool
        As for `ringnet.load`.
    **keys
        The keys of a scenario; what is a mapping in YAML is one here. ``scenario_version`` may be left out.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        With every mistake at once, each with its path.

    Examples
    --------
    >>> import ringnet
    >>> ringnet.scenario(workers=8, message="64 MiB", network={"bandwidth": "50 GB/s", "latency": "5 us"})
    <Scenario scenario: ring all-reduce, 8 workers, 64 MiB, ring network>
    """
    if schedule is not None:
        keys = keys | _keys_of(schedule, keys)
    home = ScenarioFolder(FilePath(folder).absolute(), allow_outside, allow_python, schedule)
    return Scenario.of_data({"scenario_version": VERSIONS[-1], **keys}, home)


def _keys_of(schedule: object, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that a schedule says; `InputError` where it is none, or where they are given too."""
    if not isinstance(schedule, Schedule):
        right = "a ringnet.Schedule, or the keys of a scenario by name: workers=8, message='64 MiB'"
        raise InputError(Fault("this is no schedule", value=type(schedule).__name__, right=right))
    twice = [
        Fault("the schedule says this itself", key, right="leave the key out")
        for key in SAID_BY_SCHEDULE
        if key in keys
    ]
    if twice:
        raise InputError(*twice)
    # A colon would part a file and a function.
    name = str(schedule.algorithm).replace(":", "-")
    return {
        "algorithm": {"python": name},
        "collective": schedule.collective,
        "workers": schedule.n_workers,
    }
