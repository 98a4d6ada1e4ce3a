"""The proof of a schedule: rings are accepted, broken ones refused by name; plain numbers say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ringnet.collectives import ALGORITHMS, EVERY_WORKER
from ringnet.collectives.proof import check
from ringnet.errors import ScheduleError

RING = ALGORITHMS["ring"].build
COLUMNS = ("src", "dst", "chunk", "channel")


def rebuilt(schedule, steps, **changes):
    """The schedule with other steps, and counts that hold."""
    counts = {"n_steps": len(steps), "n_transfers": sum(map(len, steps))}
    return replace(schedule, make_steps=lambda: iter(steps), **(counts | changes))


def edited(schedule, number, **columns):
    """The schedule with other columns in one step."""
    steps = list(schedule.steps())
    steps[number] = replace(steps[number], **columns)
    return rebuilt(schedule, steps)


def put(column, row, value):
    return np.array([*column[:row], value, *column[row + 1 :]], dtype=np.int64)


def rows_of(step, rows):
    return replace(step, **{name: getattr(step, name)[rows] for name in COLUMNS})


def reversed_rows(schedule):
    """The same transfers in another order within each step, which hides that all workers do the same."""
    return rebuilt(schedule, [rows_of(step, slice(None, None, -1)) for step in schedule.steps()])


def refused(schedule):
    with pytest.raises(ScheduleError) as caught:
        check(schedule)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
@pytest.mark.parametrize("n_workers", range(1, 21))
def test_rings_are_accepted_in_both_views(n_workers, collective):
    check(RING(n_workers, collective))
    check(reversed_rows(RING(n_workers, collective)))


# ------------------------------------------------------------------------------ what a broken ring is told


def test_a_chunk_sent_twice():
    steps = list(RING(4).steps())
    twice = rebuilt(RING(4), [steps[0], steps[0], *steps[1:]])
    message = "worker 0 sends chunk 0, whose receiver already has the contribution of worker 0"
    assert refused(twice) == [f"reduce-scatter step 0: {message}"]


def test_a_transfer_doubled_in_its_step():
    step = list(RING(4).steps())[1]
    doubled = edited(RING(4), 1, **{name: np.append(getattr(step, name), getattr(step, name)[2]) for name in COLUMNS})
    message = "worker 2 sends chunk 1, whose receiver already has the contribution of worker 1"
    assert refused(doubled) == [f"reduce-scatter step 1: {message}"]


def test_a_copy_sent_twice_is_waste_and_no_mistake():
    steps = list(RING(4).steps())
    check(rebuilt(RING(4), [*steps, steps[-1]]))


def test_a_transfer_left_out():
    step = list(RING(4).steps())[5]
    left_out = edited(RING(4), 5, **{name: np.delete(getattr(step, name), 1) for name in COLUMNS})
    message = "worker 2 ends chunk 0 without the contribution of worker(s) 3"
    assert refused(left_out) == [f"{message}; it last received the chunk in reduce-scatter step 1"]


def test_a_step_left_out():
    steps = list(RING(3).steps())
    message = "worker 0 ends chunk 1 without the contribution of worker(s) 1, 2; it never received the chunk"
    assert message in refused(rebuilt(RING(3), [steps[0], *steps[2:]]))


def test_two_steps_swapped():
    steps = list(RING(3).steps())
    said = refused(rebuilt(RING(3), [steps[1], steps[0], *steps[2:]]))
    chunk_0 = "worker 0 ends chunk 0 without the contribution of worker(s) 0"
    assert f"{chunk_0}; it last received the chunk in all-gather step 0" in said
    chunk_2 = "worker 0 ends chunk 2 without the contribution of worker(s) 2"
    assert f"{chunk_2}; it last received the chunk in all-gather step 1" in said  # the first was a sum


def test_chunks_that_never_move():
    """A ring for the first four of eight chunks."""
    everyone = np.full(8, EVERY_WORKER)
    said = refused(replace(RING(4), n_chunks=8, source=everyone, target=everyone))
    assert said[0] == (
        "worker 0 ends chunk 4 without the contribution of worker(s) 1, 2, 3; it never received the chunk"
    )


def test_of_two_copies_in_one_step_the_later_source_counts(custom):
    """Worker 2 has the whole sum and worker 1 has not: what is applied last is what worker 0 ends with."""
    reduced = custom(3, [(1, 2, 0)], [(0, 2, 0)], op="reduce", collective="reduce", target=np.array([0]))
    copied = custom(3, [(2, 0, 0), (1, 0, 0)])
    check(rebuilt(reduced, [*reduced.steps(), *copied.steps()]))


def test_faults_beyond_the_first_eight_are_counted():
    hardly = refused(rebuilt(RING(5), [rows_of(next(RING(5).steps()), [0])]))
    assert len(hardly) == 9
    assert hardly[-1] == "and 17 more"  # one transfer, and none of 25 chunks complete


def test_a_wrong_destination():
    """Worker 1 passes its sum of chunk 3 to worker 3, which has added to it before."""
    wrong = edited(RING(4), 2, dst=put([1, 2, 3, 0], 1, 3))
    message = "worker 1 sends chunk 3, whose receiver already has the contribution of worker 3"
    assert refused(wrong) == [f"reduce-scatter step 2: {message}"]


def test_another_destination_may_be_right():
    """Worker 1 sends its chunk 1 past worker 2 to worker 3: the sums meet there all the same."""
    check(edited(RING(4), 0, dst=put([1, 2, 3, 0], 1, 3)))


def test_a_wrong_chunk():
    wrong = edited(RING(4), 1, chunk=put([3, 0, 1, 2], 1, 1))
    message = "worker 1 sends chunk 1, whose receiver already has the contribution of worker 1"
    assert refused(wrong) == [f"reduce-scatter step 1: {message}"]


def test_a_chunk_that_its_sender_does_not_hold():
    wrong = replace(RING(4, "all-gather"), source=np.arange(4))
    message = "worker 0 sends chunk 1, which it does not hold yet"
    assert refused(wrong) == [f"all-gather step 0: {message}"]


def test_a_reduce_where_there_is_nothing():
    gather = RING(4, "all-gather")
    wrong = rebuilt(gather, [replace(step, op="reduce") for step in gather.steps()])
    message = "worker 0 sends chunk 1, to be reduced where there is nothing of it yet"
    assert refused(wrong) == [f"all-gather step 0: {message}"]


def test_what_is_received_in_a_step_is_not_sent_in_it():
    """A step is simultaneous: worker 1 does not hold chunk 0 when it is to pass it on."""
    gather = RING(3, "all-gather")
    step = next(gather.steps())
    at_once = replace(
        step, src=np.array([0, 1]), dst=np.array([1, 2]), chunk=np.array([1, 1]), channel=np.zeros(2, int)
    )
    assert refused(rebuilt(gather, [at_once])) == [
        "all-gather step 0: worker 1 sends chunk 1, which it does not hold yet"
    ]


# ------------------------------------------------------------------------------------- sources and targets


def test_a_target_that_does_not_get_its_chunk():
    wrong = replace(RING(4, "reduce-scatter"), target=np.arange(4))
    lacks = "worker 0 ends chunk 0 without the contribution of worker(s) 1, 2, 3; it never received the chunk"
    assert refused(wrong) == [lacks]


COLUMNS_OF_ENDS = [
    ("all-reduce", "source", [0, 1, -1], "the source of chunk 0 is not that of all-reduce; got 0"),
    ("all-gather", "target", [0, 1, 2], "the target of chunk 0 is not that of all-gather; got 0"),
    ("reduce-scatter", "target", [2, -1, 1], "the target of chunk 1 is not that of reduce-scatter; got -1"),
    ("all-gather", "source", [2, 0, 3], "a source that there is not; got 3; right would be: -1 to 2"),
    ("reduce-scatter", "target", [-2, 0, 1], "a target that there is not; got -2; right would be: -1 to 2"),
    ("reduce-scatter", "target", [2, 0], "there is not one target for each chunk; got 2; right would be: 3"),
]


@pytest.mark.parametrize(("collective", "name", "column", "message"), COLUMNS_OF_ENDS)
def test_ends_that_are_not_those_of_the_collective(collective, name, column, message):
    assert refused(replace(RING(3, collective), **{name: np.array(column)}))[0].startswith(message)


def test_a_collective_of_another_name_says_itself_where_its_chunks_end():
    """A broadcast of one chunk from worker 1."""
    broadcast = replace(RING(2, "all-gather"), collective="broadcast", source=np.array([1, 1]))
    steps = [replace(next(broadcast.steps()), src=np.array([1, 1]), dst=np.array([0, 0]), chunk=np.array([0, 1]))]
    check(rebuilt(broadcast, steps))


# ------------------------------------------------------------------------------------------------- columns

WRONG_COLUMNS = [
    ({"src": [0, 1, 4, 3]}, "src that there is not; got 4; right would be: 0 to 3"),
    ({"dst": [1, 2, -1, 0]}, "dst that there is not; got -1; right would be: 0 to 3"),
    ({"chunk": [3, 0, 1, 9]}, "chunk that there is not; got 9; right would be: 0 to 3"),
    ({"channel": [0, 0, 1, 0]}, "channel that there is not; got 1; right would be: 0 to 0"),
    ({"to_channel": [0, 0, 0, 2]}, "to_channel that there is not; got 2; right would be: 0 to 0"),
    ({"dst": [1, 2, 3]}, "columns of unequal length; got dst has 3, src 4"),
    ({"chunk": [3, 0, 1, 2, 2]}, "columns of unequal length; got chunk has 5, src 4"),
    ({"dst": [1, 2, 2, 0]}, "worker 2 sends chunk 1 to itself"),
    ({"op": "multiply"}, "an op that there is not; got multiply; right would be: reduce or copy"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_COLUMNS)
def test_columns_that_make_no_sense(changes, message):
    columns = {name: value if name == "op" else np.array(value) for name, value in changes.items()}
    assert refused(edited(RING(4), 1, **columns)) == [f"reduce-scatter step 1: {message}"]


@pytest.mark.parametrize("counts", [{"n_steps": 5}, {"n_transfers": 23}])
def test_counts_that_do_not_hold(counts):
    (said,) = refused(replace(RING(4), **counts))
    assert said.startswith("the schedule does not have what it says; got ")
    assert said.endswith("right would be: 6 steps and 24 transfers")


# ------------------------------------------------------------------------ an oracle: the same with numbers


def sums_come_out(schedule):
    """Add powers of 16, one for each worker: a digit says how often its contribution is in a sum."""
    held = {(worker, c): 16**worker for c in range(schedule.n_chunks) for worker in schedule.contributors(c)}
    for step in schedule.steps():
        before = dict(held)
        rows = zip(step.src.tolist(), step.dst.tolist(), step.chunk.tolist(), strict=True)
        for src, dst, chunk in sorted(rows, key=lambda row: row[0]):
            if (src, chunk) not in before or (step.op == "reduce" and (dst, chunk) not in held):
                return False
            held[dst, chunk] = before[src, chunk] + (held[dst, chunk] if step.op == "reduce" else 0)
            if max(f"{held[dst, chunk]:x}") > "1":
                return False
    return all(
        held.get((worker, chunk)) == sum(16**one for one in schedule.contributors(chunk))
        for chunk in range(schedule.n_chunks)
        for worker in schedule.holders(chunk)
    )


def accepted(schedule):
    try:
        check(schedule)
    except ScheduleError:
        return False
    return True


OTHER = {"reduce": "copy", "copy": "reduce"}


@st.composite
def broken_rings(draw):
    """A ring, of whole chunks or of slices, with mistakes: in some transfers of a step or all, or steps swapped."""
    n_workers, collective = draw(st.integers(2, 6)), draw(st.sampled_from(ALGORITHMS["ring"].collectives))
    n_slices = draw(st.integers(1, 3))
    sliced = ALGORITHMS["pipelined-ring"].build(n_workers, collective, n_slices)
    schedule = RING(n_workers, collective) if n_slices == 1 else sliced
    steps = list(schedule.steps())
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(steps)))
        steps[at : at + 1] = [new for step in steps[at : at + 1] for new in broken(draw, schedule, step)]
    at, other = (draw(st.integers(0, max(0, len(steps) - 1))) for _ in range(2))
    steps[at : at + 1], steps[other : other + 1] = steps[other : other + 1], steps[at : at + 1]
    return rebuilt(schedule, steps)


def broken(draw, schedule, step):
    """What may stand where a step should be."""
    n, everyone = schedule.n_workers, list(range(len(step)))
    rows = draw(st.just(everyone) | st.lists(st.sampled_from(everyone), unique=True) if everyone else st.just([]))
    name, by = draw(st.sampled_from(["chunk", "dst"])), draw(st.integers(1, n - 1))
    column = getattr(step, name).copy()
    column[rows] = (column[rows] + by) % (n if name == "dst" else schedule.n_chunks)
    turned = replace(step, **{name: column})
    others = [
        rows_of(step, rows),
        rows_of(turned, turned.src != turned.dst),
        replace(step, op=OTHER[step.op]),
    ]
    return draw(st.sampled_from([[], [step, step], *([other] for other in others)]))


@given(broken_rings())
def test_check_says_what_plain_numbers_say(schedule):
    right = sums_come_out(schedule)
    event(f"right all the same: {right}")
    assert accepted(schedule) == accepted(reversed_rows(schedule)) == right


def test_the_oracle_knows_a_ring():
    assert sums_come_out(RING(5))
    assert not sums_come_out(rebuilt(RING(5), list(RING(5).steps())[1:]))
