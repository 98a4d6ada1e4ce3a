"""Very large sweeps are asked about before they run."""

from __future__ import annotations

import sys

import typer
from joblib import cpu_count

from ringnet.errors import Fault, InputError
from ringnet.scenario import Scenario
from ringnet.study.cost import in_words, sweep_s

#: Points of a sweep that runs unasked.
MOST_UNASKED = 10_000


def ask_about_size(scenario: Scenario, yes: bool, jobs: int | None) -> None:
    """Ask whether a very large sweep shall run; refuse it where nobody can answer and ``--yes`` is not given.

    Raises
    ------
    InputError
        Nobody said yes.
    """
    if yes or scenario.n_points <= MOST_UNASKED:
        return
    time = in_words(sweep_s(scenario, jobs or cpu_count()))
    size = f"the grid has {scenario.n_points:,} points and takes roughly {time}"
    if not is_terminal():
        raise InputError(Fault(size, "sweep", right="fewer values, or --yes"))
    if not typer.confirm(f"{size}. Run it?", err=True):
        raise InputError(Fault("the sweep was not run", "sweep"))


def is_terminal() -> bool:
    """Whether somebody sits at standard input."""
    return sys.stdin.isatty()
