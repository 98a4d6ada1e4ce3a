from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.replay import moves_by_chunk, replay_chunk, replay_table
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.payload import DTYPES, RandomSource
from ringnet.reference import all_gather, reduce_scatter, ring_allreduce

REFERENCE: dict[str, Callable[[Any], Any]] = {
    "reduce-scatter": reduce_scatter,
    "all-gather": all_gather,
    "all-reduce": lambda chunks: [
        np.split(array, len(chunks)) for array in ring_allreduce(list(map(np.concatenate, chunks)))
    ],
}


def data(n_workers: int, width: int, dtype: np.dtype) -> np.ndarray:
    """Values of shape (n_workers, n_chunks, width)."""
    source = RandomSource(n_workers, n_workers * width, dtype, 4)
    rows = [source.read(worker, 0, n_workers * width) for worker in range(n_workers)]
    return np.array(rows).reshape(n_workers, n_workers, width)


def by_table(schedule: Schedule, values: np.ndarray, chunks: list[int]) -> np.ndarray:
    table = values[:, chunks].copy()
    replay_table(schedule, np.array(chunks), table, np.add)
    return table


def by_chunk(schedule: Schedule, values: np.ndarray, chunks: list[int]) -> np.ndarray:
    moves, results = moves_by_chunk(schedule, chunks), []
    for chunk in chunks:
        rows = [row.copy() for row in values[:, chunk]]
        replay_chunk(moves[chunk], rows, np.add)
        results.append(rows)
    return np.array(results).swapaxes(0, 1)


WAYS = pytest.mark.parametrize("replayed", [by_table, by_chunk])


@WAYS
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
def test_a_ring_replayed_is_the_reference(
    replayed: Callable[..., np.ndarray], collective: str, dtype: np.dtype
) -> None:
    for n_workers in (1, 2, 3, 8):
        values = data(n_workers, 3, dtype)
        expected = np.array(REFERENCE[collective]([list(row) for row in values.copy()]))
        got = replayed(ALGORITHMS["ring"].build(n_workers, collective), values, list(range(n_workers)))
        assert got.tobytes() == expected.tobytes()


@WAYS
def test_chunks_can_be_replayed_in_groups(replayed: Callable[..., np.ndarray]) -> None:
    schedule, values = ALGORITHMS["ring"].build(6), data(6, 2, DTYPES["float32"])
    whole = replayed(schedule, values, list(range(6)))
    assert replayed(schedule, values, [4, 1]).tobytes() == whole[:, [4, 1]].tobytes()
    assert moves_by_chunk(schedule, []) == {}


def test_who_copies_shares_the_array() -> None:
    schedule, values = ALGORITHMS["ring"].build(3), data(3, 2, DTYPES["float32"])
    rows = list(values[:, 1].copy())
    replay_chunk(moves_by_chunk(schedule, [1])[1], rows, np.add)
    assert rows[0] is rows[1] is rows[2]


def one_at_a_time(steps: list[Any], ops: list[str], values: np.ndarray) -> np.ndarray:
    """The meaning of a step in the plainest words: all are sent, then each is applied, by sender."""
    held = values.copy()
    for step, op in zip(steps, ops, strict=True):
        sent = [(src, dst, chunk, held[src, chunk].copy()) for src, dst, chunk in sorted(step)]
        for _, dst, chunk, incoming in sent:
            held[dst, chunk] = held[dst, chunk] + incoming if op == "reduce" else incoming
    return held


@WAYS
@given(data_=st.data())
def test_any_steps_replayed_mean_what_they_say(
    replayed: Callable[..., np.ndarray], custom: Callable[..., Schedule], data_: st.DataObject
) -> None:
    number = st.integers(0, 3)
    transfer = st.tuples(number, number, number).filter(lambda transfer: transfer[0] != transfer[1])
    steps = data_.draw(st.lists(st.lists(transfer, max_size=6, unique=True), max_size=5))
    ops = data_.draw(st.lists(st.sampled_from(["reduce", "copy"]), min_size=len(steps), max_size=len(steps)))
    drawn = [replace(step, op=op) for step, op in zip(custom(4, *steps).steps(), ops, strict=True)]
    schedule = custom(4, *steps, n_chunks=4, make_steps=lambda: iter(drawn))
    values = data(4, 2, DTYPES["float16"])
    expected = one_at_a_time(steps, ops, values)
    assert replayed(schedule, values, [0, 1, 2, 3]).tobytes() == expected.tobytes()
