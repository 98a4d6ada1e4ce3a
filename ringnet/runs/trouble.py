"""What went wrong in a run, and what that cost: rows of a table, words for an answer, and the same run without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from ringnet.analysis.frames import Table
from ringnet.analysis.result import RunResult
from ringnet.errors import and_more
from ringnet.networks.behaviour import NEVER
from ringnet.runs.again import makespan_of
from ringnet.runs.failures import CameThrough, Happened
from ringnet.runs.parts import RunParts, build
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.trouble import incidents
from ringnet.units import format_seconds

#: Things that are told in an answer; the table has all.
MOST_TOLD = 3
FAILING_OVER = "failing over"
#: What each kind of trouble is, once it has happened.
_WORDS = {
    "slow": "slower",
    "down": "down",
    "flap": "down",
    "loss": "losing packets",
    "fails_over": FAILING_OVER,
    "pause": "paused",
    "dies": "dead",
}
#: What an answer tells.
_TOLD = {*_WORDS.values()} - {FAILING_OVER}


def troubles(scenario: Scenario, parts: RunParts) -> list[Happened]:
    """Return what goes wrong in a scenario, by time."""
    found = []
    for one in incidents(scenario, parts.network):
        who = (one.who, None) if isinstance(one.who, str) else (None, one.who)
        found += [Happened(*span[:2], _WORDS[kind], *who) for kind, span in one.spans(parts.run or 0)]
    return sorted(found, key=lambda one: (one.from_s, one.link is None))


def trouble_table(rows: Sequence[Happened]) -> Table:
    """Return one row for each thing that happened, by time, as ``trouble.csv`` has them."""
    ordered = sorted(rows, key=lambda one: one.from_s)
    columns: Table = {name: [getattr(one, name) for one in ordered] for name in Happened._fields}
    return columns | {"to_s": [None if to_s == NEVER else to_s for to_s in columns["to_s"]]}


def with_trouble(result: RunResult, scenario: Scenario, parts: RunParts, came: CameThrough[Any]) -> RunResult:
    """Return a result with what went wrong in its run, what was done about it, and what that cost.

    Parameters
    ----------
    result : RunResult
    scenario : Scenario
    parts : RunParts
        Of the first attempt.
    came : CameThrough
        What came through.

    Notes
    -----
    The cost is the makespan less that of the same run without trouble, which is simulated for it.
    """
    rows = [*troubles(scenario, parts), *came.happened]
    end_s = float(result.tables["workers"]["end_s"].max())
    calm = build(scenario.model_copy(update={"trouble": (), "on_failure": None}), parts.run)
    columns: dict[str, Any] = {
        "trouble": _told([one for one in rows if one.from_s < end_s and one.what in _TOLD]) or None,
        "trouble_s": result.summary["makespan_s"] - makespan_of(replace(calm, source=None)),
    }
    links = result.tables["links"]
    columns |= {name: int(links[name].sum()) for name in ("lost_packets", "resent_bytes") if name in links}
    notes = []
    if came.begun_s is not None:
        columns["on_failure"] = _what_was_done(came)
        left = len(came.members)
        columns["survivors"] = left if left < parts.schedule.n_workers else None
    if not rows:
        notes.append(f"nothing goes wrong in run {parts.run}")
    elif columns["trouble"] is None:
        first = format_seconds(min(one.from_s for one in rows))
        notes.append(f"trouble has no effect: it begins at {first}, and the run ends at {format_seconds(end_s)}")
    return replace(
        result,
        summary=result.summary | columns,
        tables={**result.tables, "trouble": trouble_table(rows)},
        notes=(*result.notes, *notes),
    )


def _what_was_done(came: CameThrough[Any]) -> str:
    """Say who was left out or replaced, and when that was over."""
    rows = [one for one in came.happened if one.worker is not None and one.what != "detected"]
    done = [f"worker {one.worker} {one.what}" for one in rows]
    return f"{', '.join(done)}; started again at {format_seconds(came.begun_s or 0.0)}"


def _told(rows: Sequence[Happened]) -> str:
    """Say what went wrong, the first few; what happens to several at once in one.

    >>> down = [Happened(1e-3, 3e-3, "down", name) for name in ("0->1", "1->0")]
    >>> _told([*down, Happened(2e-3, float("inf"), "dead", worker=3)])
    '0->1 and 1 more down at 1 ms for 2 ms; worker 3 dead at 2 ms'
    >>> _told([Happened(0.0, float("inf"), "losing packets", "0->1")])
    '0->1 losing packets'
    """
    at_once = [[*some] for _, some in groupby(rows, key=lambda one: (one[:3], one.link is None))]
    told = []
    for first, *others in at_once[:MOST_TOLD]:
        who = f"worker {first.worker}" if first.link is None else first.link
        when = f" at {format_seconds(first.from_s)}" if first.from_s or first.to_s != NEVER else ""
        lasts = "" if first.to_s == NEVER else f" for {format_seconds(first.to_s - first.from_s)}"
        told.append(f"{and_more(who, len(others))} {first.what}{when}{lasts}")
    left = len(at_once) - MOST_TOLD
    return "; ".join([*told, *([f"{left} more"] if left > 0 else [])])
