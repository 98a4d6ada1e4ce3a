from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.collectives import ALGORITHMS, Schedule, split_sizes
from ringnet.payload import (
    DTYPES,
    REDUCTIONS,
    ArraySource,
    PackedPayload,
    Payload,
    RampSource,
    RandomSource,
    Source,
    is_float,
    make_reduction,
    payload_bytes,
)
from ringnet.payload.blocks import LARGE
from ringnet.payload.buffers import conflict_free_batches
from ringnet.reference import all_gather, reduce_scatter, ring_allreduce

Drive = Callable[[Schedule, Any], None]
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)


def build(
    source: Source, schedule: Schedule, *, reduce: str = "sum", carry: int | None = None, packed: bool = False
) -> Payload | PackedPayload:
    weights = list(range(1, source.n_workers + 1)) if reduce == "weighted-mean" else None
    sizes = split_sizes(source.n_elements, schedule.n_chunks)
    kind = PackedPayload if packed else Payload
    reduction = make_reduction(reduce, source.n_workers, weights)
    return kind(source, reduction, source.n_workers, sizes, schedule.source, carry)


def ring(n_workers: int, collective: str = "all-reduce") -> Schedule:
    return ALGORITHMS["ring"].build(n_workers, collective)


def ramp(n_workers: int, n_elements: int, dtype: str = "int64") -> RampSource:
    return RampSource(n_workers, n_elements, DTYPES[dtype])


def buffers(payload: Payload | PackedPayload) -> list[list[list[float]]]:
    n_workers, n_chunks = payload.layout.n_workers, len(payload.layout.sizes)
    return [[payload.held(worker, chunk).tolist() for chunk in range(n_chunks)] for worker in range(n_workers)]


# --------------------------------------------------------------------------------------- chunks at rest


def test_each_worker_starts_with_its_own_data_cut_into_chunks() -> None:
    assert buffers(build(ramp(2, 5), ring(2))) == [[[1, 2, 3], [4, 5]], [[10, 20, 30], [40, 50]]]


def test_fewer_elements_than_workers_leave_empty_chunks() -> None:
    assert buffers(build(ramp(3, 1), ring(3))) == [[[1], [], []], [[10], [], []], [[100], [], []]]


def test_the_first_elements_of_each_chunk_are_those_of_the_whole() -> None:
    assert buffers(build(ramp(2, 5), ring(2), carry=2)) == [[[1, 2], [4, 5]], [[10, 20], [40, 50]]]
    assert buffers(build(ramp(2, 5), ring(2), carry=9)) == buffers(build(ramp(2, 5), ring(2)))


def test_an_all_gather_starts_with_one_chunk_each() -> None:
    payload = build(ramp(3, 3), ring(3, "all-gather"))
    held = [[payload.held(worker, chunk) for chunk in range(3)] for worker in range(3)]
    assert [[None if array is None else array.tolist() for array in row] for row in held] == [
        [None, [2], None],
        [None, None, [30]],
        [[100], None, None],
    ]


@pytest.mark.parametrize("n_elements", [50, 3 * LARGE + 1], ids=["small chunks", "large chunks"])
def test_each_chunk_owns_its_memory(n_elements: int) -> None:
    payload = build(RandomSource(3, n_elements, DTYPES["float32"]), ring(3))
    assert all(payload.held(worker, chunk).base is None for worker in range(3) for chunk in range(3))


@EVERY_DTYPE
def test_data_made_in_blocks_is_the_data_of_the_source(dtype: np.dtype) -> None:
    n_elements = 3 * LARGE * 40 + 2
    source = RandomSource(3, n_elements, dtype, 7)
    payload = build(source, ring(3))
    for worker in range(3):
        held = np.concatenate([payload.held(worker, chunk) for chunk in range(3)])
        assert held.tobytes() == source.read(worker, 0, n_elements).tobytes()


@pytest.mark.parametrize("size", [1, LARGE], ids=["small chunks", "large chunks"])
def test_means_are_prepared_once_and_only_what_is_reduced(size: int) -> None:
    source = ArraySource(np.full((4, 4 * size), 4.0))
    for packed in (False, True):
        payload = build(source, ring(4), reduce="mean", packed=packed)
        assert buffers(payload) == [[[1] * size] * 4] * 4
        gathered = build(source, ring(4, "all-gather"), reduce="mean", packed=packed)
        assert gathered.held(0, 1).tolist() == [4] * size


# ------------------------------------------------------------------------------------- chunks that move


def test_a_chunk_is_frozen_when_it_is_sent() -> None:
    payload = build(ramp(2, 4), ring(2))
    sent = payload.send(0, 0)
    assert sent is payload.held(0, 0)
    with pytest.raises(ValueError, match="read-only"):
        sent[0] = 9


def test_a_chunk_never_sent_is_reduced_in_place() -> None:
    payload = build(ramp(2, 4), ring(2))
    own = payload.held(1, 0)
    payload.reduce(1, 0, payload.send(0, 0))
    assert payload.held(1, 0) is own
    assert own.tolist() == [11, 22]


def test_a_frozen_chunk_is_not_touched_by_what_is_reduced_into_it() -> None:
    payload = build(ramp(2, 4), ring(2))
    in_flight = payload.send(1, 0)
    payload.reduce(1, 0, payload.send(0, 0))
    assert in_flight.tolist() == [10, 20]
    assert payload.held(1, 0).tolist() == [11, 22]


def test_a_copy_is_a_reference() -> None:
    payload = build(ramp(2, 4), ring(2))
    sent = payload.send(0, 1)
    payload.copy(1, 1, sent)
    assert payload.held(1, 1) is sent
    payload.reduce(1, 1, payload.send(0, 1))
    assert sent.tolist() == [3, 4]


def test_what_a_worker_does_not_hold_it_cannot_send_or_reduce() -> None:
    payload = build(ramp(2, 4), ring(2, "all-gather"))
    with pytest.raises(LookupError, match="worker 0 holds nothing of chunk 0"):
        payload.send(0, 0)
    with pytest.raises(LookupError, match="worker 0 holds nothing of chunk 0"):
        payload.reduce(0, 0, np.zeros(2))


def test_overflow_makes_no_noise(drive: Drive) -> None:
    source = ArraySource(np.full((2, 4), 6e4, np.float16))
    for packed in (False, True):
        payload = build(source, ring(2), packed=packed)
        drive(ring(2), payload)
        assert buffers(payload)[0] == [[np.inf] * 2] * 2
    with pytest.warns(RuntimeWarning, match="overflow"):
        np.float16(6e4) + np.float16(6e4)


# --------------------------------------------------------------------------------------- whole phases


def test_the_worked_example(drive: Drive) -> None:
    payload = build(ramp(3, 3), ring(3))
    steps, states = list(ring(3).steps()), []
    for step in steps:
        drive_one = Schedule("one", "all-reduce", 3, 3, 1, 3, lambda step=step: iter([step]), *[np.zeros(3)] * 2)
        drive(drive_one, payload)
        states.append([[chunk[0] for chunk in row] for row in buffers(payload)])
    assert states == [
        [[1, 2, 303], [11, 20, 30], [100, 220, 300]],
        [[1, 222, 303], [11, 20, 333], [111, 220, 300]],
        [[111, 222, 303], [11, 222, 333], [111, 220, 333]],
        [[111, 222, 333]] * 3,
    ]


@pytest.mark.parametrize("n_elements", [0, 3, 11, 5 * LARGE + 3])
@EVERY_DTYPE
def test_rings_give_what_the_reference_gives(drive: Drive, dtype: np.dtype, n_elements: int) -> None:
    source = RandomSource(5, n_elements, dtype, 2)
    arrays = [source.read(worker, 0, n_elements) for worker in range(5)]
    expected = ring_allreduce(arrays)[0].tobytes()
    for packed in (False, True):
        payload = build(source, ring(5), packed=packed)
        drive(ring(5), payload)
        for worker in range(5):
            held = np.concatenate([payload.held(worker, chunk) for chunk in range(5)])
            assert held.tobytes() == expected


def test_phases_on_their_own_give_what_the_reference_gives(drive: Drive) -> None:
    source = RandomSource(4, 10, DTYPES["float16"], 2)
    chunks = [np.array_split(source.read(worker, 0, 10), 4) for worker in range(4)]
    scattered = build(source, ring(4, "reduce-scatter"))
    drive(ring(4, "reduce-scatter"), scattered)
    gathered = build(source, ring(4, "all-gather"))
    drive(ring(4, "all-gather"), gathered)
    for payload, expected in ((scattered, reduce_scatter(chunks)), (gathered, all_gather(chunks))):
        for worker in range(4):
            for chunk in range(4):
                assert payload.held(worker, chunk).tobytes() == expected[worker][chunk].tobytes()


@given(st.data())
def test_whole_steps_at_once_do_the_same_as_one_transfer_at_a_time(drive: Drive, data: st.DataObject) -> None:
    dtype = DTYPES[data.draw(st.sampled_from(list(DTYPES)))]
    names = [name for name in REDUCTIONS if is_float(dtype) or "mean" not in name]
    n_workers, reduce = data.draw(st.integers(1, 6)), data.draw(st.sampled_from(names))
    collective = data.draw(st.sampled_from(ALGORITHMS["ring"].collectives))
    carry = data.draw(st.none() | st.integers(0, 4))
    schedule = ring(n_workers, collective)
    source = RandomSource(n_workers, data.draw(st.integers(0, 30)), dtype, for_product=reduce == "prod")
    one, all_at_once = (build(source, schedule, reduce=reduce, carry=carry, packed=packed) for packed in (False, True))
    drive(schedule, one)
    drive(schedule, all_at_once)
    for chunk in range(n_workers):
        for worker in schedule.holders(chunk):
            assert one.held(worker, chunk).tobytes() == all_at_once.held(worker, chunk).tobytes()


def test_what_one_worker_receives_is_applied_by_sender(drive: Drive, custom: Callable[..., Schedule]) -> None:
    # 2048 + 1 is 2048 in float16, unless the ones come first.
    source = ArraySource(np.array([[0], [1], [1], [2048]], np.float16))
    schedule = custom(4, [(3, 0, 0), (2, 0, 0), (1, 0, 0)], op="reduce")
    for packed in (True, False):
        payload = build(source, schedule, packed=packed)
        drive(schedule, payload)
        assert payload.held(0, 0).tolist() == [2050]
    assert [batch.tolist() for batch in conflict_free_batches(np.array([3, 2, 1]), np.array([0, 0, 0]))] == [
        [2],
        [1],
        [0],
    ]


def test_an_exchange_sends_what_was_there_before(drive: Drive, custom: Callable[..., Schedule]) -> None:
    schedule = custom(2, [(0, 1, 0), (1, 0, 0)], op="reduce")
    for packed in (True, False):
        payload = build(ramp(2, 1), schedule, packed=packed)
        drive(schedule, payload)
        assert buffers(payload) == [[[11]], [[11]]]


# ---------------------------------------------------------------------------------------------- memory


def test_in_the_end_all_workers_share_one_array_per_chunk(drive: Drive) -> None:
    payload = build(ramp(4, 8), ring(4))
    drive(ring(4), payload)
    for chunk in range(4):
        ((workers, array),) = payload.distinct(chunk, range(4))
        assert workers == [0, 1, 2, 3]
        assert all(payload.held(worker, chunk) is array for worker in range(4))


def test_partial_sums_are_freed_as_results_replace_them(drive: Drive) -> None:
    payload = build(ramp(4, 8), ring(4))
    first = [weakref.ref(payload.held(worker, chunk)) for worker in range(4) for chunk in range(4)]
    drive(ring(4, "reduce-scatter"), payload)
    assert sum(ref() is not None for ref in first) == 16  # nothing new was made
    drive(ring(4, "all-gather"), payload)
    assert sum(ref() is not None for ref in first) == 4


def test_the_users_arrays_are_never_modified(drive: Drive) -> None:
    array = np.arange(20.0).reshape(4, 5)
    before = array.copy()
    for collective in ALGORITHMS["ring"].collectives:
        drive(ring(4, collective), build(ArraySource(array), ring(4, collective)))
    assert (array == before).all()


@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
@pytest.mark.parametrize("carry", [None, 2])
def test_memory_is_estimated_from_above(collective: str, carry: int | None) -> None:
    source, schedule = RandomSource(4, 1001, DTYPES["float64"]), ring(4, collective)
    sizes = split_sizes(1001, 4)
    payload = build(source, schedule, carry=carry)
    held = [payload.held(worker, chunk) for worker in range(4) for chunk in range(4)]
    arrays = [array for array in held if array is not None]
    estimate = payload_bytes(4, sizes, schedule.source, source.dtype, carry)
    assert sum(array.nbytes for array in arrays) < estimate < sum(array.nbytes + 200 for array in arrays)
    packed = build(source, schedule, carry=carry, packed=True)
    assert payload_bytes(4, sizes, schedule.source, source.dtype, carry, packed=True) == packed.buffer.nbytes
