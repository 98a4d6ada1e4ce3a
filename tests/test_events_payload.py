"""The events engine with numbers on board: what it carries, and what it keeps of that."""

from __future__ import annotations

import numpy as np
import pytest

from ringnet.collectives import split_sizes
from ringnet.networks import LinkChange
from ringnet.payload import ArraySource, Payload, make_reduction
from ringnet.reference import all_gather, reduce_scatter, ring_allreduce

SENDS = ("eager", "rendezvous")


def payload_for(case, buffers):
    sizes = split_sizes(len(buffers[0]), case.schedule.n_chunks)
    n_workers = case.schedule.n_workers
    return Payload(ArraySource(buffers), make_reduction("sum", n_workers), n_workers, sizes, case.schedule.source)


def uneven_ring(case, collective, sends):
    """Five workers and 13 elements, on links that let some workers run far ahead."""
    links = {"0->1": LinkChange(10.0), "2->3": LinkChange(latency_s=9.0)}
    chunk_bytes = (4 * split_sizes(13, 5)).tolist()
    return case(5, chunk_bytes, collective=collective, sends=sends, links=links, start_s=[0.0, 7.0, 0.0, 0.0, 2.0])


BUFFERS = [np.random.default_rng(worker).standard_normal(13).astype(np.float32) for worker in range(5)]
CHUNKS = [np.array_split(buffer, 5) for buffer in BUFFERS]


def held(payload, worker):
    return [payload.held(worker, chunk).tobytes() for chunk in range(5)]


@pytest.mark.parametrize("sends", SENDS)
def test_both_phases_carry_the_numbers_to_the_result_of_the_reference(case, sends):
    run = uneven_ring(case, "all-reduce", sends)
    payload = payload_for(run, BUFFERS)
    run.run(payload)
    for worker, expected in enumerate(ring_allreduce(BUFFERS)):
        assert b"".join(held(payload, worker)) == expected.tobytes()


@pytest.mark.parametrize("sends", SENDS)
def test_reduce_scatter_carries_as_the_reference(case, sends):
    run = uneven_ring(case, "reduce-scatter", sends)
    payload = payload_for(run, BUFFERS)
    run.run(payload)
    for worker, expected in enumerate(reduce_scatter(CHUNKS)):
        assert held(payload, worker) == [chunk.tobytes() for chunk in expected]


@pytest.mark.parametrize("sends", SENDS)
def test_all_gather_carries_as_the_reference(case, sends):
    run = uneven_ring(case, "all-gather", sends)
    payload = payload_for(run, BUFFERS)
    run.run(payload)
    for worker, expected in enumerate(all_gather(CHUNKS)):
        assert held(payload, worker) == [chunk.tobytes() for chunk in expected]


def test_what_is_in_flight_does_not_change(case, custom):
    """Worker 0 sends its 1 over a slow link, and has added worker 2's 100 long before that arrives."""
    schedule = custom(3, [(0, 1, 0)], [(2, 0, 0)], op="reduce")
    links = {"0->switch": LinkChange(1.0)}
    run = case(3, schedule=schedule, topology="switch", links=links)
    payload = payload_for(run, np.array([[1], [10], [100]]))
    arrived = run.run(payload).transfers["arrived_s"].tolist()
    assert arrived == [101.0, 2.0]
    assert [int(payload.held(worker, 0)[0]) for worker in range(3)] == [101, 11, 100]


def test_the_payload_changes_no_time(case, bytes_of):
    run = uneven_ring(case, "all-reduce", "eager")
    assert bytes_of(run.run(payload_for(run, BUFFERS))) == bytes_of(run.run())


def test_the_values_of_the_worked_example_are_kept(case):
    run = case(3, 8)
    payload = payload_for(run, np.array([[1, 2, 3], [10, 20, 30], [100, 200, 300]]))
    values = [int(value[0]) for value in run.run(payload, keep_values=True).values]
    assert values == [11, 220, 303, 333, 111, 222, 222, 333, 111, 111, 222, 333]


def test_kept_values_do_not_change_afterwards(case):
    """A chunk is reduced in place until it is sent: what is kept of it must be a copy."""
    schedule_of_two_sums = case(3, 8, collective="reduce-scatter")
    payload = payload_for(schedule_of_two_sums, np.array([[1, 2, 3], [10, 20, 30], [100, 200, 300]]))
    values = schedule_of_two_sums.run(payload, keep_values=True).values
    payload.held(2, 0)[:] = 0
    assert [int(value[0]) for value in values] == [11, 220, 303, 333, 111, 222]


# -------------------------------------------------------------------------------------------- what is kept


def test_rows_are_kept_up_to_a_limit(case):
    assert len(case(3).run(keep_transfers=12).transfers["src"]) == 12
    trace = case(3).run(keep_transfers=11, keep_values=True)
    assert (trace.transfers, trace.values, trace.n_transfers) == (None, None, 12)


def test_rows_come_in_the_order_of_the_schedule(case):
    rows = case(3).run().transfers
    assert list(rows)[:8] == ["phase", "step", "channel", "op", "src", "dst", "chunk", "bytes"]
    assert rows["phase"].tolist() == ["reduce-scatter"] * 6 + ["all-gather"] * 6
    assert rows["op"].tolist() == ["reduce"] * 6 + ["copy"] * 6
    assert rows["step"].tolist() == [0, 0, 0, 1, 1, 1] * 2
    assert rows["src"].tolist() == [0, 1, 2] * 4
    assert rows["chunk"].tolist() == [0, 1, 2, 2, 0, 1, 1, 2, 0, 0, 1, 2]
