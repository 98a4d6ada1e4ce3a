"""Every algorithm x every number of workers x every size x every reduction: integers exact, floats within the bound.

Each schedule is replayed without a clock on the elements of all sizes at once, cut into chunks as a run cuts them. Runs
with a clock and a payload, on fewer of the combinations, are held to the same replay in `test_algorithms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.replay import replay_table
from ringnet.collectives import ALGORITHMS, EVERY_WORKER, Schedule, Step
from ringnet.payload.reductions import REDUCTIONS, make_reduction
from ringnet.scenario.checks.collective import COPYING

COUNTS = [*range(1, 18), 32, 33, 64]
KINDS = [(name, kind) for name, algorithm in ALGORITHMS.items() for kind in algorithm.collectives]
MEANS = {"mean", "weighted-mean"}
#: What each reduction is, not taken from where it is carried out.
RULES = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    **dict.fromkeys(MEANS, np.add),
}
MANY, SHOWING = 18, {("int32", "sum"), ("float32", "weighted-mean")}


def sizes(n_workers: int) -> list[int]:
    """Nothing, one element, one less than there are workers and just as many, a lot."""
    return [0, 1, n_workers - 1, n_workers, 1000]


def laid_out(schedule: Schedule, several: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Chunk of each element of all sizes, and its place there, those of each size after those of the one before."""
    chunks, places, beyond = [], [], 0
    for n_elements in several:
        lengths = schedule.chunk_sizes(n_elements)
        assert lengths.sum() == n_elements * schedule.n_buffers
        assert lengths.max() - lengths.min() <= 1
        chunks.append(np.repeat(np.arange(schedule.n_chunks), lengths))
        places.append(np.concatenate([np.arange(length) for length in lengths.tolist()]) + beyond)
        beyond += int(lengths.max())
    return np.concatenate(chunks), np.concatenate(places).astype(np.int64)


def drawn(n_workers: int, n_elements: int, dtype: str, reduction: str) -> np.ndarray:
    """What the workers hold; integers of all sizes, so that sums and products wrap."""
    rng = np.random.default_rng(n_workers)
    if dtype == "int32":
        return rng.integers(-(2**31), 2**31, (n_workers, n_elements)).astype(dtype)
    values = rng.uniform(-1, 1, (n_workers, n_elements))
    if reduction == "prod":  # near one, so that none of them ends at zero or beyond what there is
        values = np.copysign(1 + values / 8, values)
    return values.astype(dtype)


def exact(values: np.ndarray, reduction: str) -> tuple[np.ndarray, np.ndarray | float]:
    """The result in plain numbers, and how far rounding may take it from there."""
    n_workers, name = len(values), reduction
    if values.dtype.kind == "i":
        wide = values.astype(np.int64)
        return RULES[name].reduce(wide, axis=0).astype(values.dtype), 0.0
    u = float(np.finfo(values.dtype).eps) / 2
    grown, wide = (n_workers - 1) * u / (1 - (n_workers - 1) * u), values.astype(np.float64)
    if name in MEANS:
        weights = np.arange(1.0, n_workers + 1) if name == "weighted-mean" else np.ones(n_workers)
        wide *= (weights / weights.sum())[:, None]
        grown += 2.1 * u
    result = RULES[name].reduce(wide, axis=0)
    if name in {"max", "min"}:
        return result, 0.0
    return result, grown * (np.abs(result) if name == "prod" else np.abs(wide).sum(axis=0))


def wrong_ones(schedule: Schedule, dtype: str, reduction: str, several: Sequence[int] | None = None) -> int:
    """How many elements, over all sizes and workers, come out wrong."""
    n_workers = schedule.n_workers
    chunk, place = laid_out(schedule, sizes(n_workers) if several is None else several)
    values = drawn(n_workers, len(chunk), dtype, reduction)
    weights = list(range(1, n_workers + 1)) if reduction == "weighted-mean" else None
    rule, carried = make_reduction(reduction, n_workers, weights), values.copy()
    table = np.zeros((n_workers, schedule.n_chunks, int(place.max(initial=0)) + 1), dtype=dtype)
    with np.errstate(over="ignore"):
        for worker in range(n_workers):
            rule.prepare(carried[worker], worker)
        table[:, chunk, place] = carried
        replay_table(schedule, np.arange(schedule.n_chunks), table, rule.ufunc)
        result, bound = exact(values, reduction)
    source, target = schedule.source[chunk], schedule.target[chunk]
    alone = source != EVERY_WORKER
    result = np.where(alone, carried[source.clip(min=0), np.arange(len(chunk))], result)
    off = np.abs(table[:, chunk, place].astype(np.float64) - result) > np.where(alone, 0.0, bound)
    return int(off[(target == EVERY_WORKER) | (target == np.arange(n_workers)[:, None])].sum())


def combinations(collective: str) -> list[tuple[str, str]]:
    """Element types and reductions; where nothing is reduced, there is nothing to choose."""
    reductions = ["sum"] if collective in COPYING else list(REDUCTIONS)
    return [
        (dtype, one) for dtype in ("int32", "float32") for one in reductions if dtype != "int32" or one not in MEANS
    ]


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_every_reduction_of_every_size_comes_out_for_every_number_of_workers(name: str, collective: str) -> None:
    assert REDUCTIONS.keys() == RULES.keys()
    for n_workers in COUNTS:
        schedule = ALGORITHMS[name].build(n_workers, collective)
        every = combinations(collective)
        # Of many workers a sum shows where something is missing, and the mean of unequal shares how much of it.
        some = every if n_workers < MANY else [one for one in every if one in SHOWING]
        for dtype, reduction in some:
            wrong = wrong_ones(schedule, dtype, reduction)
            assert not wrong, f"{wrong} elements of {dtype}, {reduction}, {n_workers} workers"


@given(st.data())
def test_whatever_the_workers_and_the_sizes(data: st.DataObject) -> None:
    name, collective = data.draw(st.sampled_from(KINDS))
    dtype, reduction = data.draw(st.sampled_from(combinations(collective)))
    n_workers = data.draw(st.integers(1, 24 if collective == "all-to-all" else 72))
    several = data.draw(st.lists(st.integers(0, 400), min_size=1, max_size=3))
    divisors = [one for one in range(1, n_workers + 1) if n_workers % one == 0]
    drawn_from = {"n_channels": st.integers(1, 5), "node_size": st.sampled_from(divisors)}
    known = drawn_from.keys() & ALGORITHMS[name].parameters.keys()
    parameters = {one: data.draw(drawn_from[one], one) for one in sorted(known)}
    schedule = ALGORITHMS[name].build(n_workers, collective, **parameters)
    assert not wrong_ones(schedule, dtype, reduction, several)


def without_last(schedule: Schedule) -> Schedule:
    """The last transfer of the last step left out."""
    *steps, last = schedule.steps()
    names = ("src", "dst", "chunk", "channel", "to_channel", "count")
    columns = {name: getattr(last, name) for name in names}
    cut = {name: None if column is None else column[:-1] for name, column in columns.items()}
    less: list[Step] = [*steps, replace(last, **cut)]
    return replace(schedule, make_steps=lambda: iter(less))


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_one_transfer_less_is_seen(name: str, collective: str) -> None:
    """A maximum may come out without it: there at some number of workers."""
    for dtype, reduction in combinations(collective):
        counts = (2, 5, 16, 33)
        schedules = [without_last(ALGORITHMS[name].build(n_workers, collective)) for n_workers in counts]
        seen = [wrong_ones(schedule, dtype, reduction) > 0 for schedule in schedules]
        assert any(seen) if reduction in {"max", "min"} else all(seen), (dtype, reduction)
