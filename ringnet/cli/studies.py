"""What ``ringnet compare`` and ``ringnet numerics`` share: progress, what is kept, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from ringnet.cli.answers import complain, note
from ringnet.cli.progress import watched
from ringnet.cli.wishes import file_name
from ringnet.collectives import ALGORITHMS
from ringnet.errors import Fault, InputError, StudyError
from ringnet.scenario import Scenario
from ringnet.study.compare import Plan
from ringnet.study.kept import default_cache_dir
from ringnet.study.outcome import Outcome
from ringnet.study.parts import Means

T = TypeVar("T")

#: Most workers of a study, as of a scenario.
MOST_WORKERS = 1_000_000


@dataclass(frozen=True)
class StudyWishes:
    """The options that both commands have, by the names that they have there."""

    algorithms: str | None = None
    workers: str | None = None
    out: Path | None = None
    json: bool = False
    quiet: bool = False
    plots: bool = True
    jobs: int | None = None
    fresh: bool = False
    cache: Path | None = None

    def folder(self, scenario: Scenario, command: str) -> Path:
        """Return where it goes: ``reports/<name>-<command>`` unless the user says otherwise."""
        return self.out or Path("reports") / f"{file_name(scenario.name)}-{command}"

    def asked(self, scenario: Scenario) -> dict[str, Any]:
        """Return ``compare`` of the scenario as the options changed it, so that the folder can be run again."""
        said = scenario.compare.model_dump(mode="json", exclude_none=True) if scenario.compare else {}
        given = {"algorithms": self.wanted(), "workers": self.n_workers()}
        return (
            {"algorithms": "all"} | said | {key: value for key, value in given.items() if value is not None}
        )

    def wanted(self) -> str | list[str] | None:
        """Return the algorithms that are asked for; None for those of the scenario.

        Raises
        ------
        InputError
            Names that are no algorithms.
        """
        if self.algorithms is None or self.algorithms == "all":
            return self.algorithms
        return names(self.algorithms, "--algorithms")

    def n_workers(self) -> list[int] | None:
        """Return the numbers of workers that are asked for; None for those of the scenario."""
        return None if self.workers is None else counts(self.workers, "--workers")


def names(text: str, option: str) -> list[str]:
    """Read names of algorithms, with commas between them; `InputError` for each that is none."""
    found = [name.strip() for name in text.split(",")]
    unknown = [name for name in found if name not in ALGORITHMS]
    if unknown:
        right = f"all, or some of {', '.join(ALGORITHMS)}"
        raise InputError(
            *(Fault("there is no such algorithm", option, value=one, right=right) for one in unknown)
        )
    return list(dict.fromkeys(found))


def counts(text: str, option: str) -> list[int]:
    """Read numbers of workers, with commas between them; `InputError` for what is none."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not _is_count(part)]
    if wrong:
        raise InputError(
            *(Fault("this is no number of workers", option, value=one, right="4,8,16") for one in wrong)
        )
    return sorted({int(part) for part in parts})


def _is_count(text: str) -> bool:
    known = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    return known and 0 < int(text) <= MOST_WORKERS


def carried_through(
    plan: Plan, run: Callable[[Plan, Means], T], wishes: StudyWishes
) -> tuple[T, tuple[str, str]]:
    """Run what is planned, with progress on a terminal; what is finished is kept, whatever becomes of the rest.

    Returns
    -------
    found
        What ``run`` returns.
    points : tuple of str
        A line for a person: how many points there were, and how many of them an earlier run had kept.
    """
    n_finished = n_kept = 0
    with watched(len(plan.parts), wishes.quiet or wishes.json) as watch:

        def heard(outcome: Outcome) -> None:
            nonlocal n_finished, n_kept
            n_finished += 1
            n_kept += not outcome.computed
            watch.on_result(outcome)

        means = Means(wishes.jobs, wishes.cache or default_cache_dir(), wishes.fresh, heard, watch.say)
        try:
            found = run(plan, means)
        except KeyboardInterrupt:
            watch.say(
                f"{n_finished} of {len(plan.parts)} points are finished and kept: run it again to go on"
            )
            raise
    computed = f"{n_finished - n_kept} computed, {n_kept} kept from an earlier run"
    return found, ("points", f"{n_finished}: {computed}")


def ended(failed: Iterable[str], notes: Iterable[str], quiet: bool) -> int:
    """Say what is to be said, and return the exit code."""
    for sentence in () if quiet else notes:
        note(sentence)
    for sentence in failed:
        complain(sentence)
    return StudyError.exit_code if failed else 0


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a table as plain data, with None for an empty cell."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
