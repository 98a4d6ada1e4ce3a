"""A scenario from Python: all its points, as data frames, and on disk where that is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ringnet.reporting.results import ResultLike, Results, collect
from ringnet.reporting.storage import write_results
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, load
from ringnet.study.points import run_points
from ringnet.study.record import run_info


def run(
    scenario: Scenario | str | Path,
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
) -> Results:
    """Simulate every point of a scenario.

    Parameters
    ----------
    scenario : Scenario or path
    out : path, optional
        Folder to write tables, plots and ``run.json`` to; nothing is written without it.
    overrides : sequence of str
        Changes to the scenario of a file: ``["workers=16", "network.latency=5 us"]``.
    jobs : int, optional
        Points of a sweep that run at once; as many as there are cores if left out.
    cache : path, optional
        Folder that keeps each finished point of a sweep, so that the next call goes on where a killed one stopped.
    fresh : bool
        Whether to compute also what is kept already.

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
    if not isinstance(scenario, Scenario):
        scenario = load(scenario, overrides)
    notes: list[str] = [*scenario.notes]
    results: Sequence[ResultLike]
    if scenario.sweep is None:
        result = simulate(scenario)
        results, notes = [result], [*result.notes]
    else:
        kept = None if cache is None else Path(cache)
        results = run_points(scenario.iter_points(), jobs=jobs, cache_dir=kept, fresh=fresh, say=notes.append)
    where = Path.cwd() if out is None else Path(out)
    info = run_info(scenario, where, results[0].summary["seed"], notes)
    if out is not None:
        report = scenario.report
        write_results(out, results, info, tables=report.tables, plots=report.plots)
    return collect(results, info)
