"""Many runs of one scenario, each with draws of its own: their times, and the run in the middle in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.result import RunResult
from ringnet.analysis.spread import run_table, spread_columns
from ringnet.array_types import FloatArray
from ringnet.engines import Trace
from ringnet.engines.arrays import run_many
from ringnet.engines.events import run_events, run_jobs
from ringnet.errors import DeadlockError, Fault, InputError
from ringnet.runs.engine import repeats_by
from ringnet.runs.failures import attempts, since_the_first_start
from ringnet.runs.parts import RunParts, build, jobs_of
from ringnet.runs.simulate import simulate
from ringnet.scenario.build.scenario import Scenario

#: Transfers of all runs of a block: about a second of either engine.
TRANSFERS_OF_BLOCK = {"events": 100_000, "recurrence": 5_000_000}
#: Runs of a block at the most.
MOST_OF_BLOCK = 1_000


def runs_of_block(parts: RunParts) -> int:
    """Return how many runs are computed, and kept, together: the same whoever computes them."""
    n_transfers = sum(one.schedule.n_transfers for one in (parts, *parts.others))
    return max(1, min(MOST_OF_BLOCK, TRANSFERS_OF_BLOCK[repeats_by(parts)] // max(n_transfers, 1)))


def times_of_runs(scenario: Scenario, runs: Sequence[int], parts: RunParts | None = None) -> FloatArray:
    """Return the time of each of some runs, in seconds, without payload: shape (n_runs,).

    Parameters
    ----------
    scenario : Scenario
    runs : sequence of int
        Numbers of the runs.
    parts : RunParts, optional
        Of no run, ``build(scenario, None)``, where they are at hand.

    Raises
    ------
    InputError
        The scenario names an engine that is not exact for what it draws.
    DeadlockError
        In one of them some workers wait for ever.
    """
    parts = build(scenario, None) if parts is None else parts
    if repeats_by(parts) == "events":
        return np.array([_time_of(scenario, parts.in_run(run)) for run in runs])
    what = (parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes)
    found = run_many(*what, runs)
    if parts.engine == "recurrence" and not found.exact.all():
        message = "the recurrence is not exact for a run in which one transfer overtakes another"
        raise InputError(Fault(message, "engine", right="auto"))
    each = zip(runs, found.makespan_s.tolist(), found.exact.tolist(), strict=True)
    return np.array([time_s if exact else _time_of(scenario, parts.in_run(run)) for run, time_s, exact in each])


def _time_of(scenario: Scenario, parts: RunParts) -> float:
    try:
        came = attempts(scenario, replace(parts, source=None), _moved)
    except DeadlockError as error:
        error.run = parts.run
        raise
    trace = came.found
    if came.begun_s is not None:
        trace = since_the_first_start(trace, parts.workers, came.members)
    return makespan_s(trace)


def _moved(parts: RunParts) -> Trace:
    if parts.is_alone:
        what = (parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes)
        return run_events(*what, keep_transfers=None)
    return run_jobs(jobs_of((parts, *parts.others)), parts.network, parts.traffic)[0]


def middle_run(times_s: FloatArray) -> int:
    """Return the number of the run in the middle: of an even number the shorter of the two.

    >>> middle_run(np.array([5.0, 1.0, 3.0, 4.0]))
    2
    """
    return int(np.argsort(times_s, kind="stable")[(len(times_s) - 1) // 2])


#: Makes of the parts of a run what is to be simulated of it.
Bare: TypeAlias = Callable[[RunParts], RunParts]


def as_they_are(parts: RunParts) -> RunParts:
    """Return the parts of a run, all of which are to be simulated."""
    return parts


def with_spread(
    scenario: Scenario, times_s: FloatArray, bare: Bare = as_they_are, told: int | None = None
) -> RunResult:
    """Return one run in full, and how the times of all runs are spread.

    Parameters
    ----------
    scenario : Scenario
    times_s : ndarray, shape (n_runs,)
        Of the runs from 0 on.
    bare : callable, optional
        Makes of the parts of the run what is to be simulated: without payload.
    told : int, optional
        The number of the run; that of the one in the middle by default.
    """
    parts = build(scenario, middle_run(times_s) if told is None else told)
    # What is told of single transfers is told by the events alone, where each draws its numbers.
    parts = parts if parts.engine != "recurrence" else replace(parts, engine="auto")
    result = simulate(scenario, parts=bare(parts))
    summary = result.summary | spread_columns(times_s)
    return replace(result, summary=summary, tables={**result.tables, "runs": run_table(times_s, summary)})
