"""What ``run.json`` holds of a scenario, so that the run can be repeated from it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ringnet.scenario import Scenario


def run_info(scenario: Scenario, out: Path, seed: int | None, notes: Iterable[str]) -> dict[str, Any]:
    """Return what ``run.json`` in the folder ``out`` shall hold.

    ``seed`` is None where nothing was drawn at random.
    """
    inputs = scenario.inputs()
    # Relative, so that the folder tells nothing of this machine and can move together with its data.
    where = (
        {"data_folder": os.path.relpath(scenario.place.folder, out), "data_sha256": inputs} if inputs else {}
    )
    return {"scenario": scenario.document(), "seed": seed, **where, "notes": list(notes)}
