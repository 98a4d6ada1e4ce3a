"""What the time of a training step means: computation, communication that is exposed and hidden, and what is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ringnet.analysis.spread import spread_columns
from ringnet.training.layers import count_parameters
from ringnet.training.steps import StepShape, StepTimes

#: Rows of computations that are kept.
MOST_ROWS = 200_000
#: A wait of a smaller share of the step is rounding.
_ROUNDING = 1e-12
#: What differs by less is as good.
_ALIKE = 1e-9


@dataclass(frozen=True)
class StepGroup:
    """One group of workers: its step as it should be, and each step as it was."""

    name: str
    shape: StepShape
    steps: Sequence[StepTimes]


@dataclass(frozen=True)
class StepVerdict:
    """Whether the numbers of a step are right; all but the first are None where none were carried.

    Parameters
    ----------
    payload : str
        As for a run: ``full``, ``first 16 elements`` (of each chunk), or ``none``.
    verified_elements : int
        Elements times the workers that must hold them, of all collectives.
    sum_ok : bool
        Both checks of every collective hold.
    parameters_agree : bool
        All workers that hold a parameter after the update hold the same bits.
    parameters_ok : bool
        And they are those of one process within rounding.
    wrong : str
        What is wrong first; empty if nothing is.
    """

    payload: str = "none"
    verified_elements: int | None = None
    sum_ok: bool | None = None
    parameters_agree: bool | None = None
    parameters_ok: bool | None = None
    wrong: str = ""


@dataclass(frozen=True)
class StepResult:
    """What a step of training takes.

    Parameters
    ----------
    summary : dict
        The row of ``step.csv``.
    buckets : pandas.DataFrame
        One row per collective of the first step, of all groups.
    verdict : StepVerdict
    timeline : pandas.DataFrame or None
        When every worker computed what, and when collectives were under way, in the first step; None where these are
        too many to be kept.
    notes : tuple of str
    """

    summary: dict[str, Any]
    verdict: StepVerdict
    buckets: pd.DataFrame
    timeline: pd.DataFrame | None
    notes: tuple[str, ...]


def make_step_result(
    labels: Mapping[str, Any],
    groups: Sequence[StepGroup],
    bounds_s: Sequence[float],
    itemsize: int,
    verdict: StepVerdict,
    notes: Sequence[str],
    *,
    is_repeated: bool = False,
) -> StepResult:
    """Put together what a step means.

    Parameters
    ----------
    labels : mapping
        What the scenario says of it.
    groups : sequence of StepGroup
        The scenario's own first.
    bounds_s : sequence of float
        For each step, what no algorithm takes less than.
    itemsize : int
        Bytes of an element.
    verdict : StepVerdict
    notes : sequence of str
    is_repeated : bool
        Whether it is told how the times of the steps are spread.
    """
    own = groups[0]
    times_s = np.array([one.step_s for one in own.steps])
    n_spans = sum(group.steps[0].starts_s.size + len(group.steps[0].done_s) for group in groups)
    timeline = [*_spans(groups)] if n_spans <= MOST_ROWS else None
    left_out = ["the timeline is left out: more computations than are kept"] if timeline is None else []
    return StepResult(
        {
            **labels,
            **_answers(labels, own, bounds_s, itemsize),
            **{key: value for key, value in vars(verdict).items() if key != "wrong"},
            "error": verdict.wrong or None,
            **(spread_columns(times_s) if is_repeated else {}),
        },
        verdict,
        pd.concat([_bucket_rows(group, itemsize) for group in groups], ignore_index=True),
        None if timeline is None else pd.DataFrame(timeline),
        (*notes, *left_out),
    )


def _answers(labels: Mapping[str, Any], own: StepGroup, bounds_s: Sequence[float], itemsize: int) -> dict[str, Any]:
    steps_s = np.array([one.step_s for one in own.steps])
    compute_s = np.array([one.compute_s for one in own.steps])
    communication_s = np.array([one.communication_s for one in own.steps])
    hidden_s = np.array([one.hidden_s().sum(axis=0).mean() for one in own.steps])
    step_s, n_examples = float(steps_s.mean()), labels["batch"] * labels["microbatches"] * labels["n_workers"]
    exposed_s = float((communication_s - hidden_s).mean())
    idle_s = step_s - float(compute_s.mean()) - exposed_s
    n_parameters = count_parameters(own.shape.layers)
    rate = n_examples / step_s if step_s else None
    return {
        "n_parameters": n_parameters,
        "gradient_bytes": n_parameters * itemsize,
        "n_collectives": len(own.steps[0].done_s),
        "n_steps": len(own.steps),
        "step_s": step_s,
        "step_s_min": float(steps_s.min()),
        "step_s_max": float(steps_s.max()),
        "compute_s": float(compute_s.mean()),
        "compute_s_max": float(compute_s.max(axis=1).mean()),
        "communication_s": float(communication_s.mean()),
        "exposed_s": exposed_s,
        "hidden_s": float(hidden_s.mean()),
        "idle_s": idle_s if idle_s > _ROUNDING * step_s else 0.0,
        "bound_s": float(np.mean(bounds_s)),
        "single_s": own.shape.single_s,
        "efficiency": own.shape.single_s / step_s if step_s else None,
        "examples_per_s": rate,
        "tokens_per_s": rate and labels["sequence"] and rate * labels["sequence"],
    }


def _bucket_rows(group: StepGroup, itemsize: int) -> pd.DataFrame:
    times = group.steps[0]
    exposed_s = (times.done_s - times.sent_s) - times.hidden_s().mean(axis=1)
    collectives = times.program.collectives
    return pd.DataFrame(
        {
            "group": group.name,
            "number": np.arange(len(collectives)),
            "what": [one.name for one in collectives],
            "collective": [one.collective for one in collectives],
            "bytes": [one.n_elements * itemsize for one in collectives],
            "ready_s": times.ready_s,
            "start_s": times.sent_s,
            "end_s": times.done_s,
            "exposed_s": exposed_s,
        }
    )


def _spans(groups: Sequence[StepGroup]) -> Any:
    """Yield what was when: computations of each worker that take time, then the collectives of the group."""
    for group in groups:
        times = group.steps[0]
        for worker in range(times.starts_s.shape[1]):
            spans = zip(times.starts_s[:, worker].tolist(), times.ends_s[:, worker].tolist(), strict=True)
            for one, (start_s, end_s) in zip(times.program.computations, spans, strict=True):
                if end_s > start_s:
                    yield {
                        "group": group.name, "worker": worker, "kind": one.phase, "what": one.name,
                        "start_s": start_s, "end_s": end_s,
                    }  # fmt: skip
        spans = zip(times.sent_s.tolist(), times.done_s.tolist(), strict=True)
        for sent, (start_s, end_s) in zip(times.program.collectives, spans, strict=True):
            yield {
                "group": group.name, "worker": None, "kind": sent.collective, "what": sent.name,
                "start_s": start_s, "end_s": end_s,
            }  # fmt: skip


def rate_text(per_s: float) -> str:
    """Write how many there are in a second, to four digits.

    >>> rate_text(18934.2), rate_text(3.14159)
    ('18,930', '3.142')
    """
    return f"{float(f'{per_s:.4g}'):,.0f}" if per_s >= 1000 else f"{per_s:.4g}"  # noqa: PLR2004 -- four digits


def best_points(table: pd.DataFrame, swept: Sequence[str]) -> list[str]:
    """Return in words which point of a sweep is best, and how far the step scales.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of ``step.csv``, and a column with each swept key as it was written.
    swept : sequence of str
        Keys of the sweep.
    """
    rows = table[table["step_s"].notna()]
    if len(rows) < 2 or not swept or rows["examples_per_s"].isna().any():  # noqa: PLR2004 -- nothing to choose
        return []
    most = rows["examples_per_s"].max()
    good = rows[rows["examples_per_s"] >= most * (1 - _ALIKE)]
    first = good.iloc[0]
    where = ", ".join(f"{key}={first[key]}" for key in swept)
    others = f", and {len(good) - 1} more as good" if len(good) > 1 else ""
    said = [
        f"best of {len(rows)} points: {where}{others}: {rate_text(first['examples_per_s'])} examples/s, "
        f"{100 * first['efficiency']:.3g} % of what as many workers would do alone"
    ]
    if len(set(rows["n_workers"])) > 1:
        said += [*_best_of_each_n(rows, [key for key in swept if key != "workers"]), *_scaling(rows)]
    return said


def _best_of_each_n(rows: pd.DataFrame, others: Sequence[str]) -> Any:
    """Yield for each N which point of the other keys is best."""
    for n_workers, points in rows.groupby("n_workers") if others else ():
        most = points["examples_per_s"].max()
        good = points[points["examples_per_s"] >= most * (1 - _ALIKE)]
        if len(points) > len(good):
            where = ", ".join(f"{key}={good.iloc[0][key]}" for key in others)
            more = f", and {len(good) - 1} more as good" if len(good) > 1 else ""
            yield f"best at N={n_workers}: {where}{more}"


def _scaling(rows: pd.DataFrame) -> Any:
    """Yield up to how many workers at least nine tenths, and half, of each worker's own speed is kept."""
    best = rows.groupby("n_workers")["efficiency"].max().sort_index()
    for share in (0.9, 0.5):
        kept = best[best >= share * (1 - _ALIKE)]
        below = best[best < share * (1 - _ALIKE)]
        first_below = int(below.index.min()) if len(below) else None
        reached = [int(n) for n in kept.index if first_below is None or n < first_below]
        if reached:
            end = f", not at N={first_below}" if first_below else ", the largest that was tried"
            yield f"at least {100 * share:.0f} % efficiency up to N={reached[-1]}{end}"
