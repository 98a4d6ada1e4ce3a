"""Questions to a scenario, most of them many simulations: `compare`, `numerics`, `blame`, `whatif`, `draw`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ringnet.analysis.winners import advice
from ringnet.api.given import GivenScenario, counts_of, one_run_of, scenario_of
from ringnet.api.progress import points_shown
from ringnet.api.study import Study
from ringnet.documents.document import in_flow
from ringnet.errors import Fault, InputError
from ringnet.reporting.results import collect
from ringnet.reporting.tables import typed_frame
from ringnet.study.blame import blame_parts, plan_blame
from ringnet.study.compare import compare_parts, plan_comparison
from ringnet.study.numerics import DTYPES_SHOWN, numerics_parts, plan_numerics
from ringnet.study.parts import PartOptions, Planned, named_algorithms
from ringnet.study.whatif import WhatIfPlan, changed_scenarios, simulate_bare, whatif_parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A change of a what-if: ``key=value`` as for ``--if``, with ``and`` between several, or keys with their values.
WhatIfChange: TypeAlias = str | Mapping[str, Any]
Plan = TypeVar("Plan", bound=Planned)
Came = TypeVar("Came")


def compare(
    scenario: GivenScenario,
    algorithms: str | Sequence[str] | None = None,
    workers: int | Sequence[int] | None = None,
    *,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Study:
    """Time algorithms over message sizes and numbers of workers: which one to use, from which size on.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        Its sweep over message gives the sizes (40 from 1 KiB to 1 GiB without one), its sweep over workers, or
        ``compare: {workers: ...}``, the numbers of workers.
    algorithms : str or sequence of str, optional
        Names, or ``"all"``.
        ``compare: {algorithms: ...}`` counts if they are left out.
    workers : int or sequence of int, optional
        Stronger than the scenario's.
    jobs : int, optional
        Processes at once; as many as there are cores if left out.
    cache : path, optional
        Folder that keeps what is finished.
    progress : bool, optional
        Whether a notebook shows how far it is, as it does if this is left out.

    Returns
    -------
    Study
        A row per N, size and algorithm.

    Raises
    ------
    InputError
        A sweep over other keys; an algorithm that is unknown or does not know the collective; none that can run.
    """
    found = scenario_of(scenario)
    plan = plan_comparison(found, named_algorithms(algorithms), counts_of(workers))
    came = _carried_through(plan, compare_parts, jobs, cache, progress)
    notes = (*advice(came.table), *came.notes)
    return Study(found.name, "compare", typed_frame(came.table, "compare"), notes, came.failed)


def numerics(
    scenario: GivenScenario,
    algorithms: str | Sequence[str] | None = None,
    workers: int | Sequence[int] | None = None,
    dtypes: str | Sequence[str] = DTYPES_SHOWN,
    accumulate: str | None = None,
    *,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Study:
    """Say what rounding does to the sum, by algorithm and element type, and who holds the same bits.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        Its data and reduction count: the same numbers, rounded to each element type.
    algorithms, workers, jobs, cache, progress : optional
        As for `compare`.
    dtypes : str or sequence of str
    accumulate : str, optional
        An element type: types that are narrower get a second row each, with all partial sums in this type.

    Returns
    -------
    Study
        A row per N, element type and algorithm.

    Raises
    ------
    InputError
        A collective that reduces nothing, element types that are not floating point, other numbers of workers than the
        user's own data has.
    """
    found = scenario_of(scenario)
    kinds = [dtypes] if isinstance(dtypes, str) else [*dtypes]
    plan = plan_numerics(found, named_algorithms(algorithms), counts_of(workers), kinds, accumulate)
    came = _carried_through(plan, numerics_parts, jobs, cache, progress)
    return Study(found.name, "numerics", typed_frame(came.table, "numerics"), came.notes, came.failed)


def blame(
    scenario: GivenScenario,
    *,
    most: int | None = None,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Study:
    """Say who holds a run back: what it gains from each link, card and worker that is made better.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        One run.
    most : int, optional
        Simulations that may be spent; about half a minute's worth if left out.
    jobs, cache, progress : optional
        As for `compare`.

    Returns
    -------
    Study
        A row per link, class of links, card and worker.

    Raises
    ------
    InputError
        A sweep; a run in which nothing moves; links that were fitted as a ring's equivalent.
    """
    found = scenario_of(scenario)
    plan = plan_blame(found, most)
    came = _carried_through(plan, blame_parts, jobs, cache, progress)
    return Study(found.name, "blame", typed_frame(came.table, "blame"), came.notes)


def whatif(
    scenario: GivenScenario,
    changes: Sequence[WhatIfChange],
    *,
    jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Study:
    """Say which change buys most: a scenario with each of several changes, ranked.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        One run.
    changes : sequence of str or mapping
        ``"network.bandwidth=100 GB/s"``, several keys with ``and`` between; or ``{"network.bandwidth": "100 GB/s"}``.
    jobs, cache, progress : optional
        As for `compare`.

    Returns
    -------
    Study
        A row for today, and one per change.

    Raises
    ------
    InputError
        A sweep; no change, or mistakes in some; today's scenario has no answer.
    """
    found = scenario_of(scenario)
    if isinstance(changes, str | Mapping) or not changes or not all(isinstance(one, str | Mapping) for one in changes):
        right = '["network.bandwidth=100 GB/s", {"workers": 16}]'
        raise InputError(Fault("changes are a list of them", "changes", value=repr(changes), right=right))
    plan = WhatIfPlan(changed_scenarios(found.changed, [*map(_in_words, changes)]))
    came = _carried_through(plan, whatif_parts, jobs, cache, progress)
    return Study(found.name, "whatif", typed_frame(came.table, "whatif"), came.notes, came.failed)


def draw(scenario: GivenScenario, picture: str = "network", ax: Axes | None = None) -> Figure:
    """Draw the network of a scenario with what crosses it, or how much each worker sends to each other one.

    Parameters
    ----------
    scenario : Scenario, path or mapping
        One run; it is simulated, without its payload.
    picture : str
        ``"network"``, ``"traffic-matrix"``, or any other plot of a run that ``ringnet list plots`` has.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a figure of its own otherwise.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        A sweep; a picture that there is not, or that does not suit the run.
    """
    found = one_run_of(scenario, "draw")
    with found.placing_faults():
        return collect([simulate_bare(found)], {}).plot(picture, ax)


def _in_words(change: WhatIfChange) -> str:
    if isinstance(change, str):
        return change
    return " and ".join(f"{key}={in_flow(value)}" for key, value in change.items())


def _carried_through(
    plan: Plan,
    run: Callable[[Plan, PartOptions], Came],
    jobs: int | None,
    cache: str | os.PathLike[str] | None,
    progress: bool | None,
) -> Came:
    """Run what is planned; a notebook shows how far it is."""
    with points_shown(len(plan.parts), progress) as count:
        return run(plan, PartOptions(jobs, None if cache is None else Path(cache), on_result=count))
