"""One point to be computed, as it is sent to the process that does it; the same for all who send it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ringnet.scenario import Scenario
from ringnet.study.kept import write_entry
from ringnet.study.outcome import Outcome, Simulate, compute, failed

#: The key of a task, and what came of it.
Done: TypeAlias = "tuple[str, Outcome]"


@dataclass(frozen=True)
class Task:
    """A scenario without a sweep to be computed by ``simulate``, and kept at ``path`` (None: not kept)."""

    key: str
    scenario: Scenario
    simulate: Simulate
    path: Path | None = None

    def lost(self, error: str) -> Done:
        """Return the outcome of a task whose process never came back."""
        return self.key, failed(error, 1)


def carry_out(task: Task) -> Done:
    """Compute a point and keep it where it was computed, before anything else can be killed."""
    outcome = compute(task.scenario, task.simulate)
    return task.key, keep(outcome, task.path)


def keep(outcome: Outcome, path: Path | None) -> Outcome:
    """Keep a good outcome at ``path``; one that cannot be kept says why, and counts all the same."""
    if path is None or not outcome.ok:
        return outcome
    try:
        write_entry(path, outcome)
    except OSError as error:
        return replace(outcome, not_kept=error.strerror or str(error))
    return outcome


@contextmanager
def quietly() -> Iterator[None]:
    """Keep joblib from warning that not all was asked for of what it computes: Ctrl-C means just that."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
        yield
