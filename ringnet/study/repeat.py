"""Repeated runs on all cores: blocks of runs, each computed once and kept, until there are enough of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np

from ringnet.analysis.result import RunResult
from ringnet.analysis.spread import figures, runs_wanted
from ringnet.array_types import FloatArray
from ringnet.engines.trace import Watch
from ringnet.errors import DeadlockError, Fault, InputError, StudyError
from ringnet.runs.engine import TRANSFERS_PER_S, repeats_by
from ringnet.runs.parts import build
from ringnet.runs.repeat import Bare, as_they_are, runs_of_block, times_of_runs, with_spread
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario
from ringnet.scenario.keys.model import MOST_RUNS, UntilKeys
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions, StudyPart, key_of, run_parts

#: Runs after which it is first looked how well a figure is known; those of a block are not parted.
FIRST_RUNS = 100
#: More runs than seem to be missing, since that is guessed from those that there are.
MORE = 1.1
#: So many times the runs at the most, from one look to the next.
FASTEST = 3
#: An interval that takes so many times the runs that may be is not tried for.
HOPELESS = 2.0


@dataclass(frozen=True)
class BlockOfRuns:
    """Computes the times of so many runs of a scenario, from the ``first`` on."""

    first: int
    count: int

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return them as ``times_s``."""
        runs = range(self.first, self.first + self.count)
        with scenario.placing_faults():
            return Outcome({"times_s": times_of_runs(scenario, runs).tolist()})


def repeats(scenario: Scenario) -> bool:
    """Whether a scenario asks for more than one run."""
    return scenario.repeat is not None or scenario.until is not None


def most_runs(scenario: Scenario) -> int:
    """Return how many runs a scenario asks for, at the most."""
    return scenario.repeat or (1 if scenario.until is None else scenario.until.most)


def n_blocks(scenario: Scenario) -> int:
    """Return of how many blocks these are."""
    return ceil(most_runs(scenario) / runs_of_block(build(scenario, None)))


def times_of(scenario: Scenario, how: PartOptions) -> FloatArray:
    """Return the times of all runs that a scenario asks for, from run 0 on: shape (n_runs,).

    Raises
    ------
    InputError
        The interval that is asked for would take far more runs than there may be.
    StudyError
        A run has no answer, with the reason.
    """
    with scenario.placing_faults():
        blocks = _Blocks(scenario.model_copy(update={"repeat": None, "until": None}), how)
        if scenario.until is None:
            return blocks.up_to(scenario.repeat or 1)
        return _until(scenario.until, blocks)


def _until(wanted: UntilKeys, blocks: _Blocks) -> FloatArray:
    n_runs = min(FIRST_RUNS, wanted.most)
    while True:
        times_s = blocks.up_to(n_runs)
        half_width = figures(times_s)[wanted.of].half_width
        if half_width <= wanted.half_width or n_runs == wanted.most:
            return times_s
        missing = runs_wanted(n_runs, half_width, wanted.half_width)
        if half_width < inf and missing > HOPELESS * wanted.most:
            message = (
                f"after {n_runs:,} runs the {wanted.of} is known to {100 * half_width:.2g} %: this would take "
                f"some {missing:.2g} runs, more than {wanted.most:,}"
            )
            reached = half_width * (n_runs / wanted.most) ** 0.5
            enough = int(float(f"{MORE * missing:.1e}"))
            right = f"half_width: {100 * reached * MORE:.2g} %" + f", or until.most: {enough:,}" * (enough <= MOST_RUNS)
            raise InputError(Fault(message, "until.half_width", right=right))
        # The first runs say little of how many it takes, or nothing: not too many more at a time.
        n_runs = int(min(wanted.most, MORE * missing + 1, FASTEST * n_runs))


@dataclass(frozen=True)
class _Blocks:
    """The runs of a scenario, block by block."""

    scenario: Scenario
    how: PartOptions

    def up_to(self, n_runs: int) -> FloatArray:
        """Return the times of so many runs; blocks that are kept are not computed again."""
        parts = build(self.scenario, None)
        size, rate = runs_of_block(parts), TRANSFERS_PER_S[repeats_by(parts)]
        blocks = [BlockOfRuns(first, min(size, n_runs - first)) for first in range(0, n_runs, size)]
        each_s = parts.schedule.n_transfers / rate
        outcomes = run_parts([self._part(one, each_s) for one in blocks], self.how)
        for block, outcome in zip(blocks, outcomes, strict=True):
            if outcome.exit_code in (InputError.exit_code, DeadlockError.exit_code):
                block(self.scenario)  # tells it itself, with all that an error has
            if not outcome.ok:
                raise StudyError(outcome.error)
        return np.concatenate([outcome.summary["times_s"] for outcome in outcomes])

    def _part(self, block: BlockOfRuns, each_s: float) -> StudyPart:
        key = key_of(self.scenario, "runs", self.scenario.engine, block.first, block.count)
        label = f"runs {block.first} to {block.first + block.count - 1}"
        return StudyPart(label, key, self.scenario, block, block.count * each_s)


def simulate_all(
    scenario: Scenario,
    how: PartOptions | None = None,
    bare: Bare = as_they_are,
    told: int | None = None,
    watch: Watch | None = None,
) -> RunResult:
    """Simulate a scenario: once, or as often as it says.

    Parameters
    ----------
    scenario : Scenario
    how : PartOptions, optional
        How the runs are computed and kept; by default in this process, and not at all.
    bare : callable, optional
        Makes of the parts of a run what is to be simulated: without payload.
    told : int, optional
        Which of repeated runs is told in full; the one in the middle by default.
    watch : callable, optional
        Told how far a single run is: see `ringnet.runs.simulate.simulate`.

    Returns
    -------
    RunResult
        Of repeated runs one, its summary with how all are spread, and the table ``runs``.
    """
    if not repeats(scenario):
        return simulate(scenario, parts=bare(build(scenario)), watch=watch)
    return with_all_runs(scenario, times_of(scenario, how or PartOptions(processes=1)), bare, told)


def with_all_runs(
    scenario: Scenario, times_s: FloatArray, bare: Bare = as_they_are, told: int | None = None
) -> RunResult:
    """Return one run in full, how all are spread, and how far an interval came: see `simulate_all`."""
    result, about = with_spread(scenario, times_s, bare, told), _about(scenario, times_s)
    return replace(result, notes=(*result.notes, *about), about=(*result.about, *about))


def _about(scenario: Scenario, times_s: FloatArray) -> list[str]:
    """Say how far an interval came that was asked for."""
    wanted = scenario.until
    if wanted is None:
        return []
    known = figures(times_s)[wanted.of].half_width
    so_far = f"after {len(times_s):,} runs the {wanted.of} is known to {100 * known:.2g} %"
    if known <= wanted.half_width:
        return [so_far]
    missing = runs_wanted(len(times_s), known, wanted.half_width)
    more = f"some {missing:.2g} runs" if missing < inf else "more runs"
    return [f"until: {so_far}, and not to {100 * wanted.half_width:.2g} %: that would take {more} (until.most)"]
