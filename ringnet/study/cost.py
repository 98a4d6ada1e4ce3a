"""How long runs take, before they are run: what they have to do, counted, by how fast this machine is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from math import inf
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from ringnet.collectives.rings import ring
from ringnet.documents.text import read_bounded
from ringnet.engines.events import run_events
from ringnet.engines.trace import Workers
from ringnet.errors import InputError, ResultsError
from ringnet.networks import make_network
from ringnet.reporting.atomic import written_file
from ringnet.runs.advice import cost_of_idle_advice
from ringnet.runs.engine import TRANSFERS_PER_S, engine_of, repeats_by
from ringnet.runs.memory import FRAMES_BYTES, LOADER_BYTES, PLOTS_BYTES
from ringnet.runs.parts import RunParts, build
from ringnet.runs.work import LOAD_S, MEASURED, work_of
from ringnet.scenario import Scenario, loads

#: Points of a large grid that are looked at.
SAMPLED = 20
#: Starting a command; pandas, which looks what could be drawn, and matplotlib; each plot, and how many there are where
#: nobody says which.
START_S, FRAMES_START_S, PLOTS_START_S = 0.5, 0.25, 0.45
#: What finds all routes of equal cost.
GRAPHS_START_S = 0.11
PLOT_S, PLOTS_OF_RUN, PLOTS_OF_SWEEP = 0.11, 10, 4
#: A step of a training beside its all-reduce, and how many there are where nobody says it.
TRAINING_STEP_S, STEPS_OF_EPOCH = 0.025, 30

#: Workers of the ring by which a machine is measured, and how often it runs.
MEASURED_WORKERS, MEASURED_TIMES = 16, 5
#: A run that takes less says nothing of the machine; how much one says, and how far from what was measured it leads.
TELLING_S, WEIGHT, MOST_APART = 0.5, 0.2, 1.5

#: Units of a rough time, and how many of one make it worth using.
_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_FROM = 1.2


def most_s(parts: RunParts) -> float:
    """Return roughly how long it takes to simulate one run, in seconds, without starting, tables and plots."""
    return work_of(parts).seconds * pace()


def run_s(scenario: Scenario, parts: RunParts, *, plots: bool = True) -> float:
    """Return roughly how long ``ringnet run`` takes for one run, in seconds."""
    n_times, beside_s = 1, START_S
    if scenario.training is not None and scenario.training.model is not None:
        n_times = scenario.training.steps or STEPS_OF_EPOCH
        beside_s += n_times * TRAINING_STEP_S
    n_runs = scenario.repeat or (0 if scenario.until is None else scenario.until.most)
    if n_runs:
        of_no_run = build(scenario, None)
        n_transfers = sum(one.schedule.n_transfers for one in (of_no_run, *of_no_run.others))
        beside_s += n_runs * n_transfers / TRANSFERS_PER_S[repeats_by(of_no_run)]
    work = work_of(parts)
    advice_s, loads = cost_of_idle_advice(scenario, parts)
    beside_s += advice_s + LOAD_S * loads
    beside_s += GRAPHS_START_S if parts.network.find_equal_routes is not None else 0.0
    beside_s += work.table_s + (_plots_s(scenario) if plots else 0.0)
    return pace() * (n_times * work.seconds + beside_s)


def sweep_s(scenario: Scenario, n_processes: int, costs: Sequence[float] = ()) -> float:
    """Return roughly how long a sweep takes, in seconds, ``n_processes`` points at a time.

    Parameters
    ----------
    scenario : Scenario
    n_processes : int
    costs : sequence of float, optional
        Seconds of points of the sweep, where they are known; of a few points spread over its grid otherwise.
    """
    costs = costs or [most_s(build(point)) for point in sample(scenario)]
    points_s = scenario.n_points * float(np.mean(costs)) / min(n_processes, scenario.n_points)
    return points_s + pace() * (START_S + _plots_s(scenario))


def beside_bytes(scenario: Scenario, parts: RunParts | None, *, plots: bool = True) -> int:
    """Return the memory of what a command does beside a run: plots, and machine code that only its advice takes.

    Of a sweep, whose points are given no advice, ``parts`` are None.
    """
    looks = plots and scenario.report.plots != ()
    drawn_bytes = FRAMES_BYTES * looks + PLOTS_BYTES * (looks and n_plots_of(scenario) > 0)
    if parts is None or parts.n_pair_links or engine_of(parts) == "compiled":
        return drawn_bytes
    return drawn_bytes + LOADER_BYTES * cost_of_idle_advice(scenario, parts)[1]


def _plots_s(scenario: Scenario) -> float:
    n_plots, looks = n_plots_of(scenario), scenario.report.plots != ()
    return FRAMES_START_S * looks + (PLOTS_START_S + n_plots * PLOT_S if n_plots else 0.0)


def n_plots_of(scenario: Scenario) -> int:
    """Return how many plots are drawn of a run or a sweep."""
    if scenario.sweep is None and scenario.workers == 1:
        return 0
    unasked = PLOTS_OF_RUN if scenario.sweep is None else PLOTS_OF_SWEEP
    return unasked if scenario.report.plots is None else len(scenario.report.plots)


# How fast this machine is.


class Pace(NamedTuple):
    """Seconds that this machine takes for what took one where the seconds of `ringnet.runs.work` were measured.

    ``measured`` by a small run; ``now`` by longer runs since, too.
    """

    measured: float
    now: float


def pace() -> float:
    """Return how many seconds this machine takes for one: measured once, and kept beside the cache."""
    return _pace(_kept_at()).now


def learn(estimated_s: float, took_s: float) -> None:
    """Hold the time that a run was said to take against the processor time that it took."""
    if min(estimated_s, took_s) < TELLING_S:
        return
    path = _kept_at()
    measured, now = _pace(path)
    then = now * (1 + WEIGHT * (min(max(took_s / estimated_s, 0.5), 2.0) - 1))
    _keep(path, Pace(measured, min(max(then, measured / MOST_APART), measured * MOST_APART)))


def default_cache_dir() -> Path:
    """Return where finished points are kept unless ``--cache`` says otherwise.

    ``$XDG_CACHE_HOME/ringnet/points``, or ``~/.cache/ringnet/points`` where that variable is not set.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "ringnet" / "points"


def _kept_at() -> Path:
    return default_cache_dir().parent / "pace.json"


@cache
def _pace(path: Path) -> Pace:
    """Return what is kept; measure where that is nothing that can be read."""
    try:
        kept = json.loads(read_bounded(path, 1000, "a pace"))
        found = Pace(float(kept["measured"]), float(kept["now"]))
        if 0 < found.measured < inf and 1 / MOST_APART <= found.now / found.measured <= MOST_APART:
            return found
    except (InputError, ValueError, TypeError, KeyError):
        pass
    measured = _measure()
    return _keep(path, Pace(measured, measured))


def _measure() -> float:
    n_workers, took_s, events = MEASURED_WORKERS, list[float](), 0
    what = (ring(n_workers), make_network("ring", n_workers, 1e9, 1e-6), Workers.alike(n_workers))
    for _ in range(MEASURED_TIMES):
        start_s = process_time()
        trace = run_events(*what, np.full(n_workers, 2**16), keep_transfers=None)
        took_s.append(process_time() - start_s)
        events = trace.counts["events"]
    return median(took_s) / (events * MEASURED.event_s)


def _keep(path: Path, found: Pace) -> Pace:
    _pace.cache_clear()
    with suppress(OSError, ResultsError), written_file(path) as target:
        target.write_text(json.dumps(found._asdict()), encoding="utf-8")
    return found


# Points of a sweep.


def sample(scenario: Scenario) -> list[Scenario]:
    """Return some points of a sweep, evenly spread over its grid; those that cannot be run are left out."""
    document = scenario.document()
    axes = _axes(document.pop("sweep"))
    shape = [len(axis) for axis in axes]
    places = np.unique(np.linspace(0, scenario.n_points - 1, SAMPLED).astype(np.int64))
    chosen = ([axis[at] for axis, at in zip(axes, np.unravel_index(place, shape), strict=True)] for place in places)
    return list(chain.from_iterable(_point(document, chain.from_iterable(rows), scenario) for rows in chosen))


def _axes(sweep: dict[str, Any]) -> list[list[tuple[str, ...]]]:
    """Return the grid as overrides: for each axis its rows, for each row a ``key=value`` per key."""
    columns = {
        section: [[f"{key}={json.dumps(value)}" for value in values] for key, values in sweep.get(section, {}).items()]
        for section in ("over", "zip")
    }
    zipped = [list(zip(*columns["zip"], strict=True))] if columns["zip"] else []
    return [*([(text,) for text in column] for column in columns["over"]), *zipped]


def _point(document: dict[str, Any], overrides: Iterator[str], scenario: Scenario) -> Iterator[Scenario]:
    place = scenario.home
    try:
        yield loads(json.dumps(document), list(overrides), folder=place.folder, allow_outside=place.allow_outside)
    except InputError:
        return


def n_cores() -> int:
    """Return how many cores this process may use: of the machine, of its affinity and of its container."""
    from joblib import cpu_count  # noqa: PLC0415 -- a fifth of a second, and one run has no use for it

    return int(cpu_count())


def in_words(seconds: float) -> str:
    """Write a rough time in a unit that suits it.

    >>> in_words(0.2), in_words(250), in_words(7200), in_words(1e8)
    ('a second', '4.2 minutes', '2 hours', '1,157 days')
    """
    for unit, size_s in _UNITS.items():
        if seconds >= _FROM * size_s:
            return f"{seconds / size_s:,.{int(seconds < 10 * size_s)}f}".removesuffix(".0") + f" {unit}"
    return "a second"
