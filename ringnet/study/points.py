"""A scenario with all its points: what is kept is read, the rest computed, and all returned in order."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ringnet.payload import payload_text
from ringnet.reporting.columns import OF_SOME_RUNS, TABLES
from ringnet.scenario import Scenario, SweepPoint
from ringnet.study.outcome import (
    Compute,
    Done,
    OnResult,
    Outcome,
    Say,
    Simulate,
    Store,
    Task,
    finished,
    once,
)
from ringnet.study.repeat import simulate_all

#: Points that are held as scenarios at once: a grid of a million does not fit into memory.
BLOCK = 10_000


def run_info(scenario: Scenario, out: Path, seed: int | None, notes: Iterable[str]) -> dict[str, Any]:
    """Return what ``run.json`` in the folder ``out`` shall hold.

    ``seed`` is None where nothing was drawn at random.
    """
    inputs = scenario.inputs()
    # Relative, so that the folder tells nothing of this machine and can move together with its data.
    where = {"data_folder": os.path.relpath(scenario.home.folder, out), "data_sha256": inputs} if inputs else {}
    return {"scenario": scenario.document(), "seed": seed, **where, "notes": list(notes)}


def run_points(
    points: Iterable[SweepPoint],
    *,
    processes: int | None = None,
    cache_dir: Path | None = None,
    fresh: bool = False,
    cluster: str | None = None,
    on_result: OnResult = lambda outcome: None,
    say: Say = lambda sentence: None,
    simulate: Simulate = simulate_all,
) -> list[Outcome]:
    """Run every point of a sweep.

    Parameters
    ----------
    points : iterable of SweepPoint
        As `Scenario.points` or `Scenario.iter_points` return them.
    processes : int, optional
        Points at once, at least 1: as many as there are cores if left out, fewer where memory is short. One
        runs in this process.
    cache_dir : Path, optional
        Folder in which finished points are kept, `default_cache_dir` for one; None keeps nothing.
    fresh : bool
        Whether to compute also what is kept already.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://host:port``, on whose workers the points run instead.
    on_result, say, simulate : callable
        Called with each outcome, as they come; with each sentence for a person; with each scenario to compute.

    Returns
    -------
    list of Outcome
        In the order of the points, and the same whatever ``processes``, ``cluster`` and what was kept.

    Raises
    ------
    InputError
        ``processes`` is below 1, or no cluster answers.
    StudyError
        The cluster was lost; what is finished is kept.
    """
    from ringnet.study.local import checked_processes, on_this_machine  # noqa: PLC0415 -- one run needs no processes

    left, say = iter(points), once(say)
    compute: Compute = partial(on_this_machine, processes=checked_processes(processes), say=say)
    if cluster is not None:
        compute = partial(_on_cluster, address=cluster)
    study = _Study(Store(cache_dir and cache_dir.absolute(), fresh, say), compute, simulate, on_result)
    outcomes: list[Outcome] = []
    while block := list(islice(left, BLOCK)):
        outcomes += study.run(block)
    return outcomes


def _on_cluster(tasks: list[Task], address: str) -> Generator[Done]:
    from ringnet.study.cluster import on_cluster  # noqa: PLC0415 -- an extra, and a second of imports

    return on_cluster(tasks, address)


@dataclass(frozen=True)
class _Study:
    """How points are run: where they are kept, what computes them, and who hears of them."""

    store: Store
    compute: Compute
    simulate: Simulate
    on_result: OnResult

    def run(self, points: list[SweepPoint]) -> list[Outcome]:
        """Run some points; those that are the same scenario, however it is written, once."""
        places = defaultdict(list)
        for place, point in enumerate(points):
            places[point.scenario.key()].append(place)
        tasks = [Task(key, points[at[0]].scenario, self.simulate, self.store.path(key)) for key, at in places.items()]
        rows: dict[int, Outcome] = {}
        with closing(finished(tasks, self.store, self.compute)) as done:
            for key, outcome in done:
                for place in places[key]:
                    rows[place] = in_full(outcome, points[place])
                    self.on_result(rows[place])
        return [rows[place] for place in range(len(points))]


# Rows, completed by what the sweep knows of a point and the run does not.

#: Swept keys that the summary has a column for under another name.
COLUMN_OF = {
    "workers": "n_workers",
    "message": "message_bytes",
    "network.topology": "topology",
    "network.switching": "switching",
    "network.sharing": "sharing",
    "worker.sends": "sends",
}


def in_full(outcome: Outcome, point: SweepPoint) -> Outcome:
    """Add each swept key without a column; to the row of a point without a result, what its scenario says."""
    row = outcome.summary
    if "name" not in row:
        row = dict.fromkeys(TABLES["summary"]) | _inputs(point.scenario) | row
    # What came of trouble has the name of the key, and is something else.
    named = {f"swept.{path}" if path in OF_SOME_RUNS else path: text for path, text in point.swept.items()}
    swept = {path: text for path, text in named.items() if COLUMN_OF.get(path, path) not in row}
    return replace(outcome, summary={**row, **swept}, swept=point.swept)


def _inputs(scenario: Scenario) -> dict[str, Any]:
    return {
        "name": scenario.name,
        "collective": scenario.collective,
        "algorithm": scenario.algorithm_name,
        "n_workers": scenario.workers,
        "message_bytes": scenario.message_bytes,
        "dtype": scenario.dtype,
        "reduce": scenario.reduce,
        "topology": scenario.network.topology,
        "switching": scenario.network.switching,
        "sharing": scenario.network.sharing,
        "sends": scenario.worker.sends,
        "engine": scenario.engine,
        "payload": payload_text(scenario.carry, carried=scenario.carry != 0),
        "seed": scenario.seed,
    }
