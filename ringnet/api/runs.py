"""Runs: `simulate` one, `run` every point of a scenario, `simulate_step` of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringnet.analysis.steps import StepResult
from ringnet.api.given import GivenScenario, one_run_of, scenario_of
from ringnet.api.progress import points_shown, transfers_shown
from ringnet.api.result import Result
from ringnet.collectives import Schedule
from ringnet.engines.trace import Watch
from ringnet.errors import Fault, InputError
from ringnet.payload.tamper import Tamper
from ringnet.reporting.results import ResultLike, Results, collect
from ringnet.reporting.storage import write_results
from ringnet.runs import simulate as one_run
from ringnet.runs import step_time
from ringnet.scenario.build.load import scenario as of_keywords
from ringnet.study.parts import PartOptions
from ringnet.study.points import run_info, run_points
from ringnet.study.repeat import repeats, simulate_all


def simulate(
    scenario: GivenScenario | Schedule,
    network: Mapping[str, Any] | None = None,
    *,
    progress: bool | None = None,
    watch: Watch | None = None,
    tamper: Tamper | None = None,
    **keys: Any,
) -> Result:
    """Simulate one run, and verify its sums.

    Parameters
    ----------
    scenario : Scenario, path, mapping or Schedule
        A mapping is what YAML would hold. A `ringnet.Schedule` of your own is proved, runs over ``network``, and moves
        and sums the numbers that ``keys`` speak of.
    network : mapping, optional
        For a schedule: the key ``network`` of a scenario.
    progress : bool, optional
        Whether a notebook shows how far the run is, as it does if this is left out.
    watch : callable, optional
        Called once with the number of transfers, and with a function that says, to any thread, how many are done.
    tamper : Tamper, optional
        For tests: something that goes wrong with the payload on its way.
    **keys
        For a schedule: the other keys of a scenario, ``message`` at least.

    Returns
    -------
    Result
        A wrong sum is no exception: ``result.verdict`` says which worker, chunk and element.

    Raises
    ------
    InputError
        A mistake in what was given; a sweep; a run that does not fit into memory.
    ScheduleError
        The schedule does not do what its collective says.
    DeadlockError
        Some workers wait for ever.

    Examples
    --------
    >>> import ringnet
    >>> step = ringnet.make_step(phase="reduce", step=0, src=[0, 1], dst=[1, 0], chunk=0)
    >>> exchange = ringnet.make_schedule("exchange", "all-reduce", n_workers=2, n_chunks=1, steps=[step])
    >>> ringnet.simulate(exchange, {"bandwidth": "50 GB/s", "latency": "5 us"}, message="1 MiB")
    <Result scenario: 25.97 us, 81 % bandwidth, 19 % latency, sum_ok=True>
    """
    if isinstance(scenario, Schedule):
        given = keys if network is None else {"network": network, **keys}
        found = one_run_of(of_keywords(scenario, **given), "simulate")
    else:
        found = one_run_of(scenario, "simulate")
        unread = [*(["network"] if network is not None else []), *keys]
        right = 'scenario.replace("message", "1 GiB")'
        if unread:
            message = "keys are given beside a Schedule only"
            raise InputError(*(Fault(message, key, right=right) for key in unread))
    with transfers_shown(progress if watch is None else False) as shown:
        if repeats(found):
            return Result.of(simulate_all(found), found)
        return Result.of(one_run.simulate(found, tamper=tamper, watch=watch or shown), found)


def run(
    scenario: GivenScenario,
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
    progress: bool | None = None,
) -> Results:
    """Simulate every point of a scenario.

    Parameters
    ----------
    scenario : Scenario, path or mapping
    out : path, optional
        Folder to write tables, plots and ``run.json`` to; nothing is written without it.
    overrides : sequence of str
        Changes to the scenario: ``["workers=16", "network.latency=5 us"]``.
    jobs : int, optional
        Points of a sweep, or repeated runs, that are computed at once; as many as there are cores if left out.
    cache : path, optional
        Folder that keeps each finished point of a sweep, and each block of repeated runs, so that the next call goes on
        where a killed one stopped.
    fresh : bool
        Whether to compute also what is kept already.
    progress : bool, optional
        Whether a notebook shows how far it is, as it does if this is left out.

    Returns
    -------
    Results
        ``summary`` with a row per point, as a data frame; of a single run also ``links``, ``workers``, ``transfers``,
        ``states``.

    Raises
    ------
    RingnetError
        What is wrong with the scenario or keeps a single run from having an answer. A point of a sweep that fails is a
        row with its error.
    """
    found = scenario_of(scenario).changed(overrides)
    notes: list[str] = [*found.notes]
    results: Sequence[ResultLike]
    kept = None if cache is None else Path(cache)
    if found.sweep is None:
        with transfers_shown(progress) as watch:
            result = simulate_all(found, PartOptions(jobs, kept, fresh), watch=watch)
        results, notes = [result], [*result.notes]
    else:
        with points_shown(found.n_points, progress) as count:
            results = run_points(
                found.iter_points(),
                processes=jobs,
                cache_dir=kept,
                fresh=fresh,
                on_result=count,
                say=notes.append,
            )
    where = Path.cwd() if out is None else Path(out)
    info = run_info(found, where, results[0].summary["seed"], notes)
    if out is not None:
        report = found.report
        write_results(out, results, info, tables=report.tables, plots=report.plots, look=report.figure.look)
    return collect(results, info)


def simulate_step(scenario: GivenScenario, *, tamper: Tamper | None = None) -> StepResult:
    """Time a step of training, and verify its numbers where they are carried.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        With a section ``step``.
    tamper : Tamper, optional
        For tests: something that goes wrong with the numbers of every collective.

    Returns
    -------
    StepResult

    Raises
    ------
    InputError
        A sweep; the scenario has no step, or runs something beside it that a step cannot.
    DeadlockError
        Some workers wait for ever.
    """
    return step_time.simulate_step(one_run_of(scenario, "simulate_step"), tamper=tamper)
