"""A guess at how long points take, before they are run: to tell seconds from hours, no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from ringnet.errors import InputError
from ringnet.runs.engine import TRANSFERS_PER_S, engine_of
from ringnet.runs.memory import estimate
from ringnet.runs.parts import RunParts, build
from ringnet.scenario import Scenario, loads

#: Points of a large grid that are looked at.
SAMPLED = 20
#: Carried bytes a second on a slow core; what a point takes at least.
PAYLOAD_BPS = 500e6
LEAST_S = 0.005

#: Units of a rough time, and how many of one make it worth using.
_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_FROM = 1.2


def most_s(parts: RunParts) -> float:
    """Return roughly how long one run takes, in seconds."""
    wanted = estimate(parts)
    return (
        LEAST_S + wanted.n_transfers / TRANSFERS_PER_S[engine_of(parts)] + wanted.payload_bytes / PAYLOAD_BPS
    )


def sweep_s(scenario: Scenario, n_processes: int) -> float:
    """Return roughly how long a sweep takes, in seconds, ``n_processes`` points at a time."""
    costs = [most_s(build(point)) for point in sample(scenario)]
    return scenario.n_points * float(np.mean(costs)) / n_processes


def sample(scenario: Scenario) -> list[Scenario]:
    """Return some points of a sweep, evenly spread over its grid; those that cannot be run are left out."""
    document = scenario.document()
    axes = _axes(document.pop("sweep"))
    shape = [len(axis) for axis in axes]
    places = np.unique(np.linspace(0, scenario.n_points - 1, SAMPLED).astype(np.int64))
    chosen = (
        [axis[at] for axis, at in zip(axes, np.unravel_index(place, shape), strict=True)] for place in places
    )
    return list(chain.from_iterable(_point(document, chain.from_iterable(rows), scenario) for rows in chosen))


def _axes(sweep: dict[str, Any]) -> list[list[tuple[str, ...]]]:
    """Return the grid as overrides: for each axis its rows, for each row a ``key=value`` per key."""
    columns = {
        section: [_texts(key, values) for key, values in sweep.get(section, {}).items()]
        for section in ("over", "zip")
    }
    zipped = [list(zip(*columns["zip"], strict=True))] if columns["zip"] else []
    return [*([(text,) for text in column] for column in columns["over"]), *zipped]


def _texts(key: str, values: list[Any]) -> list[str]:
    return [f"{key}={json.dumps(value)}" for value in values]


def _point(document: dict[str, Any], overrides: Iterator[str], scenario: Scenario) -> Iterator[Scenario]:
    place = scenario.home
    try:
        yield loads(
            json.dumps(document), list(overrides), folder=place.folder, allow_outside=place.allow_outside
        )
    except InputError:
        return


def n_cores() -> int:
    """Return how many cores this process may use: of the machine, of its affinity and of its container."""
    from joblib import cpu_count  # noqa: PLC0415 -- a fifth of a second, and one run has no use for it

    return int(cpu_count())


def in_words(seconds: float) -> str:
    """Write a rough time in a unit that suits it.

    >>> in_words(0.2), in_words(250), in_words(7200), in_words(1e8)
    ('a second', '4.2 minutes', '2 hours', '1,157 days')
    """
    for unit, size_s in _UNITS.items():
        if seconds >= _FROM * size_s:
            return f"{seconds / size_s:,.{int(seconds < 10 * size_s)}f}".removesuffix(".0") + f" {unit}"
    return "a second"
