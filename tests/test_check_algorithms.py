"""Schedules broken on purpose: each is caught by `check`, and by a run with a payload that knows nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringnet.analysis.verification import verify
from ringnet.collectives import ALGORITHMS, Schedule, Step, make_schedule, make_step, one_owner
from ringnet.collectives.proof import ContributionSets, check
from ringnet.engines.arrays.run import stepper
from ringnet.errors import ScheduleError
from ringnet.payload import Payload, SwitchSums
from ringnet.payload.reductions import make_reduction
from ringnet.payload.sources import RandomSource
from ringnet.runs.memory import keeps_sets

N_WORKERS = 6
ALL_REDUCES = [name for name, algorithm in ALGORITHMS.items() if "all-reduce" in algorithm.collectives]


def rebuilt(schedule: Schedule, steps: list[Step]) -> Schedule:
    return replace(schedule, n_steps=len(steps), n_transfers=sum(map(len, steps)), make_steps=lambda: iter(steps))


def pick(step: Step, rows: list[int]) -> Step:
    """Some rows of a step, perhaps one of them twice."""
    names = ("src", "dst", "chunk", "channel", "to_channel", "count")
    columns = {name: getattr(step, name) for name in names}
    return replace(step, **{name: None if column is None else column[rows] for name, column in columns.items()})


def twice(steps: list[Step]) -> list[Step]:
    """A sum sent twice."""
    first = next(k for k, step in enumerate(steps) if step.op == "reduce")
    return [*steps[: first + 1], pick(steps[first], [0]), *steps[first + 1 :]]


def left_out(steps: list[Step]) -> list[Step]:
    """The last step that reduces left out."""
    last = max(k for k, step in enumerate(steps) if step.op == "reduce")
    return steps[:last] + steps[last + 1 :]


def swapped(steps: list[Step]) -> list[Step]:
    """A reduce that copies, and a copy that reduces."""
    first = next(k for k, step in enumerate(steps) if step.op == "reduce")
    last = max(k for k, step in enumerate(steps) if step.op == "copy") if any(s.op == "copy" for s in steps) else None
    changed = list(steps)
    changed[first] = replace(steps[first], op="copy")
    if last is not None:
        changed[last] = replace(steps[last], op="reduce")
    return changed


def one_lost(steps: list[Step]) -> list[Step]:
    """One transfer of the first step lost."""
    return [pick(steps[0], list(range(1, len(steps[0])))), *steps[1:]] if len(steps[0]) > 1 else steps[1:]


def too_early(steps: list[Step]) -> list[Step]:
    """The last step first."""
    return [steps[-1], *steps[:-1]]


def turned(steps: list[Step]) -> list[Step]:
    """In the last step that copies, each waits for what the other has not: a circle of waits."""
    last = max(k for k, step in enumerate(steps) if step.op == "copy")
    ends = {"src": steps[last].dst, "dst": steps[last].src}
    return [*steps[:last], replace(steps[last], **ends), *steps[last + 1 :]]


BREAKS = [twice, left_out, swapped, one_lost, too_early]
KINDS = [(name, kind) for name, algorithm in ALGORITHMS.items() for kind in algorithm.collectives]


def comes_out(schedule: Schedule) -> bool:
    source = RandomSource(N_WORKERS, 840, np.dtype("int32"), seed=1)
    rule, sizes = make_reduction("sum", N_WORKERS), schedule.chunk_sizes(840)
    switches = SwitchSums(schedule.n_switches)
    payload = Payload(source, rule, N_WORKERS, sizes, schedule.source, switches=switches)
    move = stepper(payload, None)
    try:
        for step in schedule.steps():
            move(step)
    except LookupError:
        return False
    return bool(verify(schedule, payload, source, rule, sizes).sum_ok)


@pytest.mark.parametrize("breaks", BREAKS, ids=lambda breaks: breaks.__name__)
@pytest.mark.parametrize("name", ALL_REDUCES)
def test_a_broken_schedule_is_caught_by_the_proof_and_by_the_numbers(
    name: str, breaks: Callable[[list[Step]], list[Step]]
) -> None:
    whole = ALGORITHMS[name].build(N_WORKERS, "all-reduce")
    steps = list(whole.steps())
    broken = rebuilt(whole, breaks(steps))
    assert comes_out(whole)
    assert not comes_out(broken)
    with pytest.raises(ScheduleError) as caught:
        check(broken)
    assert any(word in str(caught.value) for word in ("step", "received"))


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_of_every_collective_the_proof_and_the_numbers_say_the_same(name: str, collective: str) -> None:
    """Some of these breaks do no harm: a copy sent twice, a step that may as well come first."""
    whole = ALGORITHMS[name].build(N_WORKERS, collective)
    steps = list(whole.steps())
    ops = {step.op for step in steps}
    breaks = [one_lost, too_early, lambda steps: steps[1:], lambda steps: [pick(steps[0], [0]), *steps]]
    breaks += [turned] if "copy" in ops else []
    breaks += [twice, left_out] if "reduce" in ops else []
    for change in breaks:
        broken = rebuilt(whole, change(steps))
        assert accepted(broken) == comes_out(broken)
        if change is not too_early and change is not breaks[3]:
            assert not accepted(broken)


@pytest.mark.parametrize("name", [name for name in ALL_REDUCES if not ALGORITHMS[name].in_switches])
@pytest.mark.parametrize("block_bytes", [1, one_owner.BLOCK_BYTES])
def test_of_most_algorithms_the_proof_need_not_keep_sets(monkeypatch, name: str, block_bytes: int) -> None:
    monkeypatch.setattr(one_owner, "BLOCK_BYTES", block_bytes)
    for n_workers in (6, 8):
        whole = ALGORITHMS[name].build(n_workers, "all-reduce")
        assert one_owner.is_sound(whole) == (name != "recursive-doubling")
        assert keeps_sets(whole) >= (not one_owner.is_sound(whole))


ROWS = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda ends: ends[0] != ends[1])


@given(st.lists(st.tuples(st.sampled_from(["reduce", "copy"]), st.lists(ROWS, min_size=1, max_size=4)), max_size=6))
@example([("reduce", [(1, 0), (0, 1), (3, 2)]), ("copy", [(1, 3), (0, 3)])])
@example([("reduce", [(1, 0), (0, 1), (2, 0)])])
@example([("reduce", [(1, 0)]), ("copy", [(2, 3), (0, 3)])])
@example([("reduce", [(2, 1), (1, 0)]), ("reduce", [(1, 0)])])
@example([("reduce", [(1, 0), (1, 2)]), ("reduce", [(2, 0)])])
def test_what_owners_have_is_how_many_are_in_the_sets(moves) -> None:
    """As long as they say that all is well: where that ends, nothing is said."""
    columns = [(op, *zip(*rows, strict=True)) for op, rows in moves]
    steps = [make_step(op, k, src, dst, 0, op=op) for k, (op, src, dst) in enumerate(columns)]
    schedule = make_schedule("drawn", "all-reduce", 4, 1, steps)
    owners = one_owner.Owners(schedule, np.arange(1))
    sets = ContributionSets(schedule, np.arange(1))
    for step in steps:
        if not owners.apply(step):
            break
        assert sets.apply(step) is None
        held, members = owners.held, [int(bits) for bits in sets.cells[:, 0]]
        assert all(bits.bit_count() == abs(n) for bits, n in zip(members, held.tolist(), strict=True) if n)
        own = [bits for bits, n in zip(members, held.tolist(), strict=True) if n > 0]
        assert sum(own) == np.bitwise_or.reduce([0, *own])


def accepted(schedule: Schedule) -> bool:
    try:
        check(schedule)
    except ScheduleError:
        return False
    return True


def test_the_fault_names_worker_chunk_and_step() -> None:
    whole = ALGORITHMS["halving-doubling"].build(4, "all-reduce")
    with pytest.raises(ScheduleError) as caught:
        check(rebuilt(whole, twice(list(whole.steps()))))
    said = "reduce-scatter step 0: worker 0 sends chunk 2, whose receiver already has the contribution of worker 0"
    assert str(caught.value) == said


def test_a_cycle_of_waits_is_data_sent_before_it_is_there() -> None:
    """Of two workers each waits for what the other would only send after it: neither has it."""
    gather = ALGORITHMS["ring"].build(2, "all-gather")
    step = next(gather.steps())
    crossed = rebuilt(gather, [replace(step, chunk=step.chunk[::-1].copy())])
    with pytest.raises(ScheduleError, match="all-gather step 0: worker 0 sends chunk 0, which it does not hold yet"):
        check(crossed)
    source = RandomSource(2, 8, np.dtype("int32"), seed=1)
    payload = Payload(source, make_reduction("sum", 2), 2, crossed.chunk_sizes(8), crossed.source)
    with pytest.raises(LookupError, match="worker 0 holds nothing of chunk 0"):
        stepper(payload, None)(next(crossed.steps()))


@pytest.mark.parametrize(("count", "said"), [(0, "a count that there is not"), (4, "the last chunk of a transfer")])
def test_counts_that_do_not_fit_are_refused(count: int, said: str) -> None:
    whole = ALGORITHMS["halving-doubling"].build(4, "all-reduce")
    first, *rest = whole.steps()
    broken = rebuilt(whole, [replace(first, count=np.array([count, 2, 2, 2])), *rest])
    with pytest.raises(ScheduleError, match=said):
        check(broken)


def test_sets_of_more_workers_than_bits_in_a_word_are_told_right() -> None:
    whole = ALGORITHMS["direct"].build(70, "reduce-scatter")
    step = next(whole.steps())
    lost = np.flatnonzero((step.src == 67) & (step.dst == 66))
    broken = rebuilt(whole, [pick(step, [k for k in range(len(step)) if k not in lost])])
    with pytest.raises(ScheduleError) as caught:
        check(broken)
    assert str(caught.value).startswith("worker 66 ends chunk 66 without the contribution of worker(s) 67; ")


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "all-to-all"])
def test_ends_must_be_those_of_the_collective(collective: str) -> None:
    name = "binomial-tree" if collective != "all-to-all" else "direct"
    schedule = ALGORITHMS[name].build(4, collective)
    everyone = np.full(schedule.n_chunks, -1)
    end = "target" if collective != "broadcast" else "source"
    with pytest.raises(ScheduleError, match=f"the {end} of chunk 0 is not that of {collective}"):
        check(replace(schedule, **{end: everyone}))
