"""A scenario from what the user named: a scenario file, or the results of an earlier run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ringnet.reporting.folder import MANIFEST
from ringnet.reporting.results import read_results
from ringnet.scenario import Scenario, load, loads


def read_scenario(path: Path, overrides: Sequence[str], allow_outside: bool) -> Scenario:
    """Read a scenario file, or from a folder of results (or its ``run.json``) the scenario to run again.

    Raises
    ------
    InputError
        With every mistake in it.
    """
    if path.is_dir() or path.name == MANIFEST:
        return _of_results(path if path.is_dir() else path.parent, overrides, allow_outside)
    return load(path, overrides, allow_outside=allow_outside)


def _of_results(folder: Path, overrides: Sequence[str], allow_outside: bool) -> Scenario:
    info = read_results(folder).run_info
    text = json.dumps(info["scenario"])
    data = folder / str(info.get("data_folder", "."))
    return loads(text, overrides, file=str(folder / MANIFEST), folder=data, allow_outside=allow_outside)


def run_info(scenario: Scenario, out: Path, seed: int | None, notes: Iterable[str]) -> dict[str, Any]:
    """Return what ``run.json`` holds, so that `read_scenario` reads the same scenario back.

    ``seed`` is None where nothing was drawn at random.
    """
    inputs = scenario.inputs()
    # Relative, so that the folder tells nothing of this machine and can move together with its data.
    where = (
        {"data_folder": os.path.relpath(scenario.place.folder, out), "data_sha256": inputs} if inputs else {}
    )
    return {"scenario": scenario.document(), "seed": seed, **where, "notes": list(notes)}
