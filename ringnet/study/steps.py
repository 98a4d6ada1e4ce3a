"""A sweep over training steps: its points on all cores, kept and found again as those of a run are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from ringnet.analysis.steps import best_points
from ringnet.errors import StudyError, VerificationError
from ringnet.reporting.columns import TABLES
from ringnet.reporting.tables import typed_frame
from ringnet.runs.step_parts import StepParts, build_step
from ringnet.runs.step_time import simulate_step
from ringnet.scenario import Scenario
from ringnet.study.cost import most_s
from ringnet.study.outcome import Outcome, plain_row
from ringnet.study.parts import PartOptions, StudyPart, key_of, run_parts

#: What a step takes beside its collectives: its layers, its tables.
OVERHEAD_S = 0.02


class StepPlan(NamedTuple):
    """The points of a sweep over steps: a part for each, with the swept keys as they were written."""

    scenario: Scenario
    parts: list[StudyPart]
    swept: list[dict[str, str]]


class StepStudy(NamedTuple):
    """What came of it: a row per point as in ``step.csv``, which point is best, and what is to be said.

    ``failed`` says what went wrong with a point, ``exit_code`` what the worst of it stands for.
    """

    table: pd.DataFrame
    advice: list[str]
    notes: list[str]
    failed: list[str]
    exit_code: int


def plan_steps(scenario: Scenario) -> StepPlan:
    """Return what there is to do for a sweep over steps.

    Raises
    ------
    InputError
        As `ringnet.runs.step_parts.build_step`.
    """
    points = [*scenario.iter_points()]
    parts = []
    for point in points:
        one = point.scenario
        label = ", ".join(f"{key}={value}" for key, value in point.swept.items())
        key = key_of(one, "step", one.carry, "payload" in one.model_fields_set)
        parts.append(StudyPart(label, key, one, _outcome, step_s(build_step(one))))
    return StepPlan(scenario, parts, [point.swept for point in points])


def step_s(parts: StepParts) -> float:
    """Return roughly how long a step takes to simulate at most, in seconds."""
    draws = parts.n_steps if parts.together else 1
    return OVERHEAD_S + draws * sum(most_s(one) for one in parts.simulated())


def _outcome(scenario: Scenario) -> Outcome:
    found = simulate_step(scenario)
    row, wrong = plain_row(found.summary), found.verdict.wrong
    return Outcome(row, found.notes, wrong, VerificationError.exit_code if wrong else 0)


def run_steps(plan: StepPlan, how: PartOptions) -> StepStudy:
    """Run every point; one that fails is a row with its error.

    Raises
    ------
    InputError
        A number of processes below 1.
    """
    outcomes = run_parts(plan.parts, how)
    rows = [
        {**outcome.summary, "name": plan.scenario.name, **swept}
        for outcome, swept in zip(outcomes, plan.swept, strict=True)
    ]
    table = step_table(rows)
    bad = [
        (f"{part.label}: {outcome.error}", outcome.exit_code)
        for part, outcome in zip(plan.parts, outcomes, strict=True)
        if not outcome.ok
    ]
    notes = [*dict.fromkeys(said for outcome in outcomes for said in outcome.notes)]
    failed = [said for said, _ in bad]
    codes = {code for _, code in bad}
    code = VerificationError.exit_code if VerificationError.exit_code in codes else StudyError.exit_code
    return StepStudy(table, best_points(table, plan.scenario.swept), notes, failed, code if bad else 0)


def step_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return ``step.csv`` with the swept keys behind its columns."""
    table = typed_frame(pd.DataFrame(rows, dtype=object), "step")
    swept = [name for name in table.columns if name not in TABLES["step"]]
    return table.reindex(columns=[*TABLES["step"], *swept])
