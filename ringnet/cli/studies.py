"""What ``ringnet compare`` and ``ringnet numerics`` share: progress, what is kept, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pandas as pd

from ringnet.cli import options
from ringnet.cli.printing import complain, note, sweep_progress
from ringnet.errors import StudyError
from ringnet.scenario import Scenario
from ringnet.study.cost import default_cache_dir
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions

T = TypeVar("T")


class Planned(Protocol):
    """A study before it is run."""

    @property
    def parts(self) -> Sequence[object]:
        """What is computed at most, each a point of its progress."""


P = TypeVar("P", bound=Planned)


@dataclass(frozen=True)
class StudyOptions:
    """The options that both commands have, as they were read; None where the scenario says."""

    algorithms: str | list[str] | None
    workers: list[int] | None
    out: Path | None
    json: bool
    quiet: bool
    plots: bool
    processes: int | None
    fresh: bool
    cache: Path | None

    def folder(self, scenario: Scenario, command: str) -> Path:
        """Return where it goes: ``reports/<name>-<command>`` unless the user says otherwise."""
        return self.out or Path("reports") / f"{options.file_name(scenario.name)}-{command}"

    def asked(self, scenario: Scenario) -> dict[str, Any]:
        """Return ``compare`` of the scenario as the options changed it, so that the folder can be run again."""
        said = scenario.compare.model_dump(mode="json", exclude_none=True) if scenario.compare else {}
        given = {"algorithms": self.algorithms, "workers": self.workers}
        return (
            {"algorithms": "all"} | said | {key: value for key, value in given.items() if value is not None}
        )


def carried_through(
    plan: P, run: Callable[[P, PartOptions], T], asked: StudyOptions
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
    with sweep_progress(len(plan.parts), asked.quiet or asked.json) as watch:

        def count(outcome: Outcome) -> None:
            nonlocal n_finished, n_kept
            n_finished += 1
            n_kept += not outcome.computed
            watch.on_result(outcome)

        how = PartOptions(asked.processes, asked.cache or default_cache_dir(), asked.fresh, count, watch.say)
        try:
            found = run(plan, how)
        except KeyboardInterrupt:
            watch.say(
                f"{n_finished} of {len(plan.parts)} points are finished and kept: run it again to go on"
            )
            raise
    computed = f"{n_finished - n_kept} computed, {n_kept} kept from an earlier run"
    return found, ("points", f"{n_finished}: {computed}")


def ended(failed: Iterable[str], notes: Iterable[str], quiet: bool) -> int:
    """Say what is to be said, and return the exit code."""
    note(*notes, quiet=quiet)
    for sentence in failed:
        complain(sentence)
    return StudyError.exit_code if failed else 0


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a table as plain data, with None for an empty cell."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
