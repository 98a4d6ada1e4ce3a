"""What if: a scenario today, and with each of several changes; which of them buys most, and by what."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ringnet.analysis.answer import TOLD_SHARE, Row, told_shares
from ringnet.analysis.result import RunResult
from ringnet.analysis.spread import difference, figures
from ringnet.documents.yaml_text import YamlKind, read_text, read_yaml
from ringnet.engines import PATH_PARTS
from ringnet.engines.trace import Watch
from ringnet.errors import Fault, InputError
from ringnet.reporting.columns import OF_REPEATS, TABLES
from ringnet.runs.notes import ring_equivalents
from ringnet.runs.parts import RunParts, build
from ringnet.scenario import Scenario
from ringnet.study.cost import most_s
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions, StudyPart, key_of, run_parts
from ringnet.study.repeat import most_runs, simulate_all
from ringnet.units import format_seconds

#: A difference below this share of the time is rounding.
ROUNDING = 1e-9
#: The name of the row without a change.
TODAY = "today"
#: The cause of a difference that is none.
STAYS = "the time stays"

#: Reads the scenario with some more changes of keys: ``["network.latency=1 us"]``.
ReadChanged: TypeAlias = Callable[[Sequence[str]], Scenario]


def split_change(text: str) -> list[str]:
    """Return the changes of keys that are to be made together: ``and`` stands between them.

    >>> split_change("network.links.0->1.bandwidth=50 GB/s and network.links.1->0.bandwidth=50 GB/s")
    ['network.links.0->1.bandwidth=50 GB/s', 'network.links.1->0.bandwidth=50 GB/s']
    """
    return re.split(r"\s+and\s+(?=[^=\s]+=)", text.strip())


def read_changes(path: str) -> list[str]:
    """Return the changes that a file has in its list ``whatif``; those of a list inside it are made together.

    Raises
    ------
    InputError
        It is no such file.
    """
    right = "whatif: ['network.latency=1 us', ['workers=8', 'message=1 GiB']]"
    kind = YamlKind("a file of changes", right, n_bytes=1 << 20, n_values=20_000, depth=4, has_aliases=True)
    document, faults = read_yaml(read_text(path, kind), path, kind)
    given = document.get(("whatif",))
    if not isinstance(given, list) or not given:
        faults.append(Fault("the file has no list of changes", "whatif", path, right=right))
        raise InputError(*faults)
    found = []
    for place, one in enumerate(given):
        texts = one if isinstance(one, list) else [one]
        if not texts or not all(isinstance(text, str) for text in texts):
            message = "a change is a key, an equals sign and a value, or a list of such"
            faults.append(Fault(message, f"whatif.{place}", path, value=str(one), right=right))
        else:
            found.append(" and ".join(texts))
    if faults:
        raise InputError(*faults)
    return found


class Changed(NamedTuple):
    """A scenario with a change.

    Parameters
    ----------
    change : str
        As it was written; `TODAY` for none.
    scenario : Scenario
    says_nothing_new : bool
        Whether the scenario said so already.
    guess : str
        Why what it gains is a guess; empty where it is none.
    left_out : tuple of str
        Keys that it orphaned, one sentence each.
    """

    change: str
    scenario: Scenario
    says_nothing_new: bool = False
    guess: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What a person should know: that it is no change, that it orphaned keys, or its gain a guess."""
        nothing = [f"{self.change} changes nothing: the scenario says so already"] if self.says_nothing_new else []
        left_out = [f"with {self.change}, {sentence}" for sentence in self.left_out]
        return nothing + left_out + ([f"what {self.change} gains is a guess: {self.guess}"] if self.guess else [])


def changed_scenarios(read: ReadChanged, changes: Sequence[str]) -> list[Changed]:
    """Return a scenario as it is, and with each change.

    Raises
    ------
    InputError
        With every mistake in the changes; a sweep.
    """
    today = read([])
    if today.sweep is not None:
        message, right = "a what-if is about one run, and this scenario is a sweep", "one value for each key"
        raise InputError(Fault(message, "sweep", right=f"{right}: {today.swept[0]}=..."))
    found, faults, document = [Changed(TODAY, today)], [], today.document()
    for change in changes:
        try:
            scenario = read(split_change(change))
        except InputError as error:
            faults += [_of_the_change(fault, change) for fault in error.faults]
            continue
        if scenario.sweep is not None:
            faults.append(Fault("a what-if is about one run", "changes", value=change, right="one value"))
        left_out = tuple(sentence for sentence in scenario.notes if sentence not in today.notes)
        is_same = scenario.document() == document
        found.append(Changed(change, scenario, is_same, _why_guess(today, scenario), left_out))
    if faults:
        raise InputError(*dict.fromkeys(faults))
    return found


def _why_guess(today: Scenario, then: Scenario) -> str:
    """Say why a change on measured links is a guess: they make a ring take what was measured, as they were."""
    if (then.network, then.algorithm, then.collective) == (today.network, today.algorithm, today.collective):
        return ""
    reasons = (ring_equivalents(one, [one.message_bytes])[0] for one in (today, then))
    reason = next(filter(None, reasons), "")
    return f"the links are a ring's equivalent ({reason})" if reason else ""


def _of_the_change(fault: Fault, change: str) -> Fault:
    """Return a fault of what was changed, told of the changes: without them the scenario was right."""
    if fault.file == "--set":
        return replace(fault, file="changes", right=fault.right.removeprefix("--set "))
    if fault.file and Path(fault.file).name in change:  # what it reads is wrong
        return fault
    return replace(fault, file="changes", line=None, message=f"with {change}, {fault.message}")


def path_seconds(row: Row) -> dict[str, float]:
    """Return the seconds of each part of the path that ended last; none where nothing took time."""
    return {part: share * row["makespan_s"] for part, share in told_shares(row).items()}


def cause(today: Row, then: Row) -> str:
    """Say which part of the path changed most; and what took its place, where that is not all of the difference.

    >>> shares = {f"{part}_share": 0.0 for part in PATH_PARTS}
    >>> today = {"makespan_s": 4e-3} | shares | {"queueing_share": 0.75, "latency_share": 0.25}
    >>> cause(today, {"makespan_s": 1e-3} | shares | {"latency_share": 1.0})
    '3 ms less queueing'
    >>> cause(today, {"makespan_s": 3.9e-3} | shares | {"queueing_share": 1.0})
    '1 ms less latency, 900 us more queueing'
    """
    before, after = path_seconds(today), path_seconds(then)
    changes = {part: after.get(part, 0.0) - before.get(part, 0.0) for part in PATH_PARTS}
    difference_s = then["makespan_s"] - today["makespan_s"]
    if abs(difference_s) <= ROUNDING * today["makespan_s"]:
        return STAYS
    sign = 1 if difference_s > 0 else -1
    most, *_, least = sorted(changes, key=lambda part: -sign * changes[part])
    told = [most, least] if -sign * changes[least] > TOLD_SHARE * abs(changes[most]) else [most]
    return ", ".join(
        f"{format_seconds(abs(changes[part]))} {'more' if changes[part] > 0 else 'less'} {part}" for part in told
    )


def simulate_bare(scenario: Scenario, watch: Watch | None = None) -> RunResult:
    """Simulate a run, or as many as it says, without payload: for the time, and what that is made of.

    Of many runs that is told of the first, so that changes are compared under the same luck.
    """
    return simulate_all(scenario, bare=without_payload, told=0, watch=watch)


def without_payload(parts: RunParts) -> RunParts:
    """Return the parts of a run that carries nothing."""
    bare = partial(replace, source=None, carry=0)
    return bare(parts, others=tuple(map(bare, parts.others)))


class WhatIf(NamedTuple):
    """What came of several changes.

    Parameters
    ----------
    table : DataFrame
        A row for today, and one per change, the best first; see ``whatif`` of `ringnet.reporting.columns.TABLES`.
    notes : tuple of str
        Which changes change nothing.
    failed : tuple of str
        Which have no answer, and why.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...]


class WhatIfPlan(NamedTuple):
    """A scenario as it is and with changes, before any of them is simulated."""

    scenarios: list[Changed]

    @property
    def parts(self) -> list[StudyPart]:
        """What is simulated."""
        return [
            StudyPart(
                one.change,
                key_of(one.scenario, "whatif"),
                one.scenario,
                simulate_bare,
                most_s(without_payload(build(one.scenario))) * most_runs(one.scenario),
            )
            for one in self.scenarios
        ]


def whatif_parts(plan: WhatIfPlan, how: PartOptions) -> WhatIf:
    """Simulate what is planned, and rank it.

    Raises
    ------
    InputError
        Today's scenario has no answer.
    """
    outcomes = run_parts(plan.parts, how)
    if not outcomes[0].ok:
        raise InputError(outcomes[0].error)
    rows, notes, failed = [], [], []
    for one, outcome in zip(plan.scenarios, outcomes, strict=True):
        rows.append(_row(one, outcomes[0], outcome))
        if not outcome.ok:
            failed.append(f"{one.change}: {outcome.error}")
        notes += one.notes
    table = pd.DataFrame(rows, columns=[*TABLES["whatif"], *(OF_REPEATS if outcomes[0].times_s else ())])
    table = table.sort_values("makespan_s", kind="stable", ignore_index=True)
    ranked = table["change"].ne(TODAY) & table["error"].isna()
    ranks = ranked.cumsum().where(ranked).astype("Int64")
    return WhatIf(table.assign(rank=ranks), tuple(notes), tuple(failed))


def _row(one: Changed, before: Outcome, after: Outcome) -> dict[str, Any]:
    if not after.ok:
        return {"change": one.change, "error": after.error}
    today, then = before.summary, after.summary
    many = _spread(before, after) if before.times_s else {}
    if before.times_s:  # the mean of all runs is told
        today, then = ({**one.summary, "makespan_s": _mean_s(one)} for one in (before, after))
    gain_s = today["makespan_s"] - then["makespan_s"]
    gain_s = gain_s if abs(gain_s) > ROUNDING * today["makespan_s"] else 0.0
    is_today = one.change == TODAY
    return {
        "change": one.change,
        "makespan_s": then["makespan_s"],
        "gain_s": None if is_today else gain_s,
        "gain_share": None if is_today or not today["makespan_s"] else gain_s / today["makespan_s"],
        "cause": None if is_today else cause(today, then),
        **{f"{part}_s": seconds for part, seconds in path_seconds(then).items()},
        **many,
    }


def _mean_s(one: Outcome) -> float:
    return float(np.mean(one.times_s)) if one.times_s else float(one.summary["makespan_s"])


def _spread(before: Outcome, after: Outcome) -> dict[str, Any]:
    """Return how well the time and the gain are known: run by run, under the same luck."""
    known = figures(after.times_s or [after.summary["makespan_s"]])["mean"]
    found = {"n_runs": len(after.times_s) or 1, "makespan_low_s": known.low, "makespan_high_s": known.high}
    # A scenario in which nothing is drawn any more takes the same in every run.
    n = min(len(before.times_s), len(after.times_s) or len(before.times_s))
    then = np.array(after.times_s[:n]) if after.times_s else np.full(n, after.summary["makespan_s"])
    gain = difference(np.array(before.times_s[:n]), then)
    return {**found, "gain_low_s": gain.low, "gain_high_s": gain.high}
