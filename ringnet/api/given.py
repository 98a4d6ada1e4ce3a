"""What may stand for a scenario (itself, the path of a file, a mapping), and for numbers of workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError
from ringnet.scenario import Scenario, load

GivenScenario: TypeAlias = Scenario | Mapping[str, Any] | str | os.PathLike[str]


def scenario_of(given: object) -> Scenario:
    """Return the scenario that is given, checked.

    Raises
    ------
    InputError
        With every mistake in it; it is none of what may stand for one.
    """
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return Scenario.from_dict(given)
    if isinstance(given, str | os.PathLike):
        return load(given)
    right = "a Scenario, the path of its file, or a mapping"
    raise InputError(Fault("this is no scenario", value=type(given).__name__, right=right))


def one_run_of(given: object, function: str) -> Scenario:
    """Return the scenario that is given, of one run; `InputError` for a sweep."""
    scenario = scenario_of(given)
    if scenario.sweep is not None:
        message = f"{function} is for one run, and this scenario is a sweep of {scenario.n_points}"
        right = "ringnet.run(scenario), or one of scenario.points()"
        raise InputError(Fault(message, "sweep", right=right))
    return scenario


def counts_of(given: object, place: str = "workers", least: int = 1) -> list[int] | None:
    """Return numbers of workers, each once, ascending, None for None; `InputError` for what is none."""
    if given is None:
        return None
    values = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    wrong = [
        Fault("this is no number of workers", place, value=clip(repr(one)), right="[4, 8, 16]")
        for one in values
        if isinstance(one, bool) or not isinstance(one, int | np.integer) or one < least
    ]
    if wrong or not values:
        raise InputError(*wrong or [Fault("no number of workers is named", place, right="[4, 8, 16]")])
    return sorted({int(str(one)) for one in values})
