"""Every shipped scenario gives the table that stands in tests/golden, byte for byte; the schema is that of the keys.

After a change that is meant to change them: ``RINGNET_GOLDEN=write pytest tests/test_golden.py``, and read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ringnet
from ringnet.cli.schema import KEPT
from ringnet.reporting.results import collect
from ringnet.reporting.tables import write_table
from ringnet.study.points import run_points

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))
#: Points beyond are left to whoever runs the scenario: seconds each.
MOST_WORKERS = 512


def golden_of(scenario: Path) -> Path:
    return GOLDEN / f"{scenario.stem}.csv"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_gives_its_golden_table(scenario: Path, tmp_path: Path) -> None:
    loaded = ringnet.load(scenario)
    points = [point for point in loaded.points() if point.scenario.workers <= MOST_WORKERS]
    outcomes = run_points(points, processes=1)
    table = tmp_path / "summary.csv"
    write_table(collect(outcomes, {}).summary, table)
    if os.environ.get("RINGNET_GOLDEN") == "write":
        golden_of(scenario).write_bytes(table.read_bytes())
    assert table.read_text() == golden_of(scenario).read_text()


def test_the_schema_that_is_printed_is_the_schema_of_the_keys() -> None:
    made = ringnet.scenario.schema()
    if os.environ.get("RINGNET_GOLDEN") == "write":  # a line for each of many, so that a change of a key is told apart
        lines = json.dumps(made, ensure_ascii=False).replace('}, "', '},\n"')
        KEPT.write_text(lines + "\n", encoding="utf-8")
    assert json.loads(KEPT.read_text(encoding="utf-8")) == made


def test_no_golden_table_is_left_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.csv")} == {path.stem for path in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_says_its_version_and_its_question(scenario: Path) -> None:
    text = scenario.read_text()
    assert text.startswith("# ")
    assert "?" in text.partition("scenario_version: 1\n")[0] or "same" in text
    assert "\nscenario_version: 1\n" in text
