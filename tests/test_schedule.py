"""The ring schedule against its definition in plain Python, and against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.collectives import (
    ALGORITHMS,
    COLLECTIVES,
    EVERY_WORKER,
    check,
    make_schedule,
    make_step,
    split_sizes,
)
from ringnet.errors import ScheduleError
from ringnet.reference import all_gather, reduce_scatter

RING = ALGORITHMS["ring"]
SIZES = range(1, 18)
EVERY_ALGORITHM = [
    pytest.param(algorithm.build, collective, id=f"{name}-{collective}")
    for name, algorithm in ALGORITHMS.items()
    for collective in algorithm.collectives
]
THE_RING = [(n, collective) for n in SIZES for collective in RING.collectives]


def rows(schedule):
    """Every transfer in order, as (phase, step, op, src, dst, chunk)."""
    return [
        (step.phase, step.step, step.op, *transfer)
        for step in schedule.steps()
        for transfer in zip(step.src.tolist(), step.dst.tolist(), step.chunk.tolist(), strict=True)
    ]


def defined(n, collective):
    """The same from the definition: worker i sends chunk i-s, then chunk i+1-s, to worker i+1, all mod N."""
    scatter = [("reduce-scatter", s, "reduce", i, (i + 1) % n, (i - s) % n) for s in range(n - 1) for i in range(n)]
    gather = [("all-gather", s, "copy", i, (i + 1) % n, (i + 1 - s) % n) for s in range(n - 1) for i in range(n)]
    return {"reduce-scatter": scatter, "all-gather": gather, "all-reduce": scatter + gather}[collective]


@pytest.mark.parametrize(("n", "collective"), THE_RING)
def test_the_ring_is_what_its_definition_says(n, collective):
    assert rows(RING.build(n, collective)) == defined(n, collective)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_chunks_start_and_end_where_the_definition_says(n):
    owner = [(c - 1) % n for c in range(n)]  # worker i ends a reduce-scatter with chunk i+1
    everyone = [EVERY_WORKER] * n
    ends = {name: RING.build(n, name) for name in RING.collectives}
    assert {name: (s.source.tolist(), s.target.tolist()) for name, s in ends.items()} == {
        "all-reduce": (everyone, everyone),
        "reduce-scatter": (everyone, owner),
        "all-gather": (owner, everyone),
    }


def test_contributors_and_holders_read_source_and_target():
    scatter = RING.build(3, "reduce-scatter")
    assert (list(scatter.contributors(1)), list(scatter.holders(1))) == ([0, 1, 2], [0])
    gather = RING.build(3, "all-gather")
    assert (list(gather.contributors(0)), list(gather.holders(0))) == ([2], [0, 1, 2])


@pytest.mark.parametrize(("build", "collective"), EVERY_ALGORITHM)
def test_columns_are_int64_of_one_length_within_their_ranges_and_frozen(build, collective):
    for schedule in (build(n, collective) for n in SIZES):
        members = schedule.n_members
        limits = {"src": members, "dst": members, "chunk": schedule.n_chunks, "channel": schedule.n_channels}
        for step in schedule.steps():
            for name, limit in limits.items():
                column = getattr(step, name)
                assert (column.dtype, column.shape) == (np.int64, (len(step),))
                assert ((column >= 0) & (column < limit)).all()
                assert not column.flags.writeable
            assert (step.src != step.dst).all()


@pytest.mark.parametrize(("build", "collective"), EVERY_ALGORITHM)
def test_sizes_are_what_the_steps_add_up_to(build, collective):
    for n in SIZES:
        schedule = build(n, collective)
        lengths = [len(step) for step in schedule.steps()]
        assert (schedule.n_steps, schedule.n_transfers) == (len(lengths), sum(lengths))
        assert (schedule.n_workers, schedule.collective) == (n, collective)
        assert ALGORITHMS[schedule.algorithm].build == build
        assert schedule.source.shape == schedule.target.shape == (schedule.n_chunks,)


@pytest.mark.parametrize(("build", "collective"), EVERY_ALGORITHM)
def test_steps_can_be_read_again_and_again(build, collective):
    for n in (1, 2, 6, 9, 16):
        schedule = build(n, collective)
        half_read = schedule.steps()
        next(half_read, None)
        assert rows(schedule) == rows(schedule) == rows(build(n, collective))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_replayed_on_nested_lists_the_ring_does_what_the_reference_does(n):
    buffers = np.random.default_rng(n).standard_normal((n, 2 * n + 1)).astype("float32")
    chunks = [np.array_split(buffer, n) for buffer in buffers]
    scattered = reduce_scatter(chunks)
    expected = {
        "reduce-scatter": scattered,
        "all-gather": all_gather(chunks),
        "all-reduce": all_gather(scattered),
    }
    for collective in RING.collectives:
        held = replay(RING.build(n, collective), chunks)
        np.testing.assert_equal(held, expected[collective])


def replay(schedule, chunks):
    held = [list(row) for row in chunks]
    for step in schedule.steps():
        before = [list(row) for row in held]
        for src, dst, chunk in zip(step.src, step.dst, step.chunk, strict=True):
            incoming = before[src][chunk]
            held[dst][chunk] = held[dst][chunk] + incoming if step.op == "reduce" else incoming
    return held


@pytest.mark.parametrize("n", [2, 7])
def test_each_worker_sends_two_n_minus_1_over_n_of_its_buffer(n):
    sent = np.zeros(n, dtype=int)
    for step in RING.build(n, "all-reduce").steps():
        np.add.at(sent, step.src, split_sizes(10 * n, n)[step.chunk])
    assert sent.tolist() == [2 * (n - 1) * 10] * n


def test_a_large_ring_is_read_without_being_held():
    steps = RING.build(16384, "all-reduce").steps()
    first, second = next(steps), next(steps)
    assert len(first) == 16384
    assert np.shares_memory(first.chunk, second.chunk)


def test_an_unknown_collective_is_a_key_error():
    with pytest.raises(KeyError, match="broadcast"):
        RING.build(3, "broadcast")


@given(st.integers(0, 1000), st.integers(1, 50))
def test_chunks_are_cut_as_array_split_cuts(n_elements, n_chunks):
    cut = np.array_split(np.empty(n_elements), n_chunks)
    assert split_sizes(n_elements, n_chunks).tolist() == [len(chunk) for chunk in cut]


@given(st.integers(0, 2**60), st.integers(1, 1000))
def test_no_element_is_lost_or_made_in_cutting(n_elements, n_chunks):
    sizes = split_sizes(n_elements, n_chunks)
    assert (len(sizes), sum(sizes.tolist())) == (n_chunks, n_elements)
    assert sizes.max() - sizes.min() <= 1


def test_a_number_stands_for_a_whole_column():
    step = make_step(phase="broadcast", step=2, src=0, dst=[1, 2, 3], chunk=5, count=2, to_channel=1)
    assert (step.phase, step.step, step.op) == ("broadcast", 2, "copy")
    columns = (step.src, step.dst, step.chunk, step.channel, step.to_channel, step.count)
    assert [column.tolist() for column in columns] == [
        [0, 0, 0],
        [1, 2, 3],
        [5, 5, 5],
        [0, 0, 0],
        [1, 1, 1],
        [2, 2, 2],
    ]
    assert all(column.dtype == np.int64 and not column.flags.writeable for column in columns)
    assert len(make_step(phase="reduce", step=0, src=0, dst=1, chunk=0)) == 1
    assert len(make_step(phase="reduce", step=0, src=0, dst=[], chunk=0)) == 0


def test_the_phase_says_what_receivers_do_unless_it_is_said():
    ops = {phase: make_step(phase, 0, 0, 1, 0).op for phase in ("reduce", "reduce-scatter", "all-gather")}
    assert ops == {"reduce": "reduce", "reduce-scatter": "reduce", "all-gather": "copy"}
    assert make_step("gather up", 0, 0, 1, 0, op="reduce").op == "reduce"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"dst": [1, 2, 3]}, "reduce step 4: dst is of the wrong length; got 3; right would be: 2"),
        ({"chunk": [0.5, 1.0]}, "reduce step 4: chunk holds no whole numbers; got float64"),
        ({"count": [True, True]}, "reduce step 4: count holds no whole numbers; got bool"),
        ({"to_channel": [[0, 1]]}, "reduce step 4: to_channel is no single column; got shape"),
    ],
)
def test_a_column_that_cannot_be_one_is_refused_where_it_is_made(column, said):
    with pytest.raises(ScheduleError) as caught:
        make_step(**{"phase": "reduce", "step": 4, "src": [0, 1], "dst": 2, "chunk": 0} | column)
    assert str(caught.value).startswith(said)


def test_a_schedule_counts_its_steps_listed_or_made():
    steps = [make_step("reduce", 0, [1, 2], 0, 0), make_step("broadcast", 0, 0, [1, 2], 0)]
    listed = make_schedule("star", "all-reduce", n_workers=3, n_chunks=1, steps=steps)
    made = make_schedule("star", "all-reduce", n_workers=3, n_chunks=1, steps=lambda: iter(steps))
    for schedule in (listed, made):
        assert (schedule.n_steps, schedule.n_transfers) == (2, 4)
        assert [*schedule.steps()] == [*schedule.steps()] == steps
        assert schedule.source.tolist() == schedule.target.tolist() == [EVERY_WORKER]
        check(schedule)
    with pytest.raises(ScheduleError, match="target is of the wrong length; got 2; right would be: 1"):
        make_schedule("star", "reduce", n_workers=3, n_chunks=1, steps=steps[:1], target=[0, 0])


def test_a_schedule_that_holds_its_steps_makes_them_once():
    steps, asked = [make_step("reduce", 0, [1, 2], 0, 0)], []
    made = make_schedule("star", "reduce", 3, 1, lambda: iter([asked.append(1), *steps][1:]), counts=(1, 2), target=0)
    held = made.holding_steps()
    assert [*held.steps()] == [*held.steps()] == [*held.moves()] == steps
    assert (len(asked), held == made, made.holds_steps) == (1, True, False)


def test_the_registry_says_what_it_has():
    assert tuple(sorted({name for algorithm in ALGORITHMS.values() for name in algorithm.collectives})) == COLLECTIVES
    assert list(ALGORITHMS) == sorted(ALGORITHMS)
    assert all(algorithm.summary and "\n" not in algorithm.summary for algorithm in ALGORITHMS.values())
