"""A scenario from what the user named: a scenario file, or the results of an earlier run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ringnet.reporting.atomic import MANIFEST
from ringnet.scenario import Scenario, load, loads


def read_scenario(
    path: Path, overrides: Sequence[str], allow_outside: bool, allow_python: bool = False
) -> Scenario:
    """Read a scenario file, or from a folder of results (or its ``run.json``) the scenario to run again.

    Raises
    ------
    InputError
        With every mistake in it.
    """
    if path.is_dir() or path.name == MANIFEST:
        return _of_results(path if path.is_dir() else path.parent, overrides, allow_outside, allow_python)
    return load(path, overrides, allow_outside=allow_outside, allow_python=allow_python)


def _of_results(folder: Path, overrides: Sequence[str], allow_outside: bool, allow_python: bool) -> Scenario:
    from ringnet.reporting.storage import read_manifest  # noqa: PLC0415 -- brings pandas, which a check does without

    info = read_manifest(folder)
    text = json.dumps(info["scenario"])
    data = folder / str(info.get("data_folder", "."))
    return loads(
        text,
        overrides,
        file=str(folder / MANIFEST),
        folder=data,
        allow_outside=allow_outside,
        allow_python=allow_python,
    )
