"""The row of a point, completed by what the sweep knows of it and the run does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringnet.analysis.verification import payload_text
from ringnet.reporting.columns import TABLES
from ringnet.study.outcome import Outcome

if TYPE_CHECKING:
    from ringnet.scenario import Scenario, SweepPoint

#: Swept keys that the summary has a column for under another name.
COLUMN_OF = {
    "workers": "n_workers",
    "message": "message_bytes",
    "network.topology": "topology",
    "network.switching": "switching",
    "network.sharing": "sharing",
    "worker.sends": "sends",
}


def in_full(outcome: Outcome, point: SweepPoint) -> Outcome:
    """Add each swept key without a column; to the row of a point without a result, what its scenario says."""
    row = outcome.summary
    if "name" not in row:
        row = dict.fromkeys(TABLES["summary"]) | _inputs(point.scenario) | row
    swept = {path: text for path, text in point.swept.items() if COLUMN_OF.get(path, path) not in row}
    return replace(outcome, summary={**row, **swept}, swept=point.swept)


def _inputs(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "collective": scenario.collective,
        "algorithm": scenario.algorithm_name,
        "n_workers": scenario.workers,
        "message_bytes": scenario.message_bytes,
        "dtype": scenario.dtype,
        "reduce": scenario.reduce,
        "topology": scenario.network.topology,
        "switching": scenario.network.switching,
        "sharing": scenario.network.sharing,
        "sends": scenario.worker.sends,
        "engine": scenario.engine,
        "payload": payload_text(scenario.carry, carried=scenario.carry != 0),
        "seed": scenario.seed,
    }
