"""The real ring: what goes between neighbours, its sums, its log, and what becomes of it when something breaks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ringnet.cli.options import sizes_of
from ringnet.errors import InputError, VerificationError, WorkerError
from ringnet.measure import neighbours, processes
from ringnet.measure.allreduce import AllReduce, WorkerTask, WrongElements, expected_sum
from ringnet.measure.neighbours import (
    PATIENCE_S,
    NeighbourError,
    NoNeighbours,
    StoppedError,
    TcpNeighbours,
    accept,
    connect,
    listen,
)
from ringnet.measure.processes import Endpoint, WorkerProcesses, measure, run_once
from ringnet.measure.results import (
    MeasuredRow,
    Rank,
    Repetitions,
    RunTimes,
    TimedRun,
    check_sums,
    footer,
    header,
    line,
)
from ringnet.payload import DTYPES
from ringnet.reference import ring_allreduce
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from tests.commands import wait_for

WORD = bytes(16)


@pytest.fixture
def control():
    """Both ends of what the parent speaks through: a worker's, and the parent's."""
    worker, parent = os.pipe()
    with open(worker, "rb"), open(parent, "wb") as parents_end:
        yield worker, parents_end


def connected():
    """Two ends of a TCP connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        return caller, listener.accept()[0]


@pytest.fixture
def ring_of(control):
    """Make n rings in a ring, in this process."""
    opened = []

    def make(n_workers, patience_s=PATIENCE_S):
        pairs = [connected() for _ in range(n_workers)]
        opened.extend(end for pair in pairs for end in pair)
        return [
            TcpNeighbours(
                ((worker - 1) % n_workers, pairs[worker - 1][1]),
                ((worker + 1) % n_workers, pairs[worker][0]),
                control[0],
                patience_s,
            )
            for worker in range(n_workers)
        ]

    yield make
    for end in opened:
        end.close()


def run_ring(rings, job, in_place=False):
    works = [WorkerTask(job, worker, in_place=in_place) for worker in range(job.n_workers)]
    for work in works:
        work.prepare()
    with ThreadPoolExecutor(len(works)) as threads:
        list(threads.map(WorkerTask.run, works, rings))
    return works


def ended(pid):
    """Whether a process is gone or soon will be: dead ones may wait for their parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# The sum.


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_is_that_of_the_reference_bit_for_bit(ring_of, dtype, in_place):
    job = AllReduce(3, 1000 * DTYPES[dtype].itemsize, dtype, seed=5)
    expected = ring_allreduce([work.data for work in (WorkerTask(job, w, in_place=False) for w in range(3))])
    works = run_ring(ring_of(3), job, in_place)
    assert [work.result.tobytes() for work in works] == [result.tobytes() for result in expected]
    assert all(work.wrong(expected_sum(job.source())) == WrongElements(0) for work in works)


@pytest.mark.parametrize("n_elements", [0, 1, 3, 4, 5, 4097])
def test_chunks_may_be_empty_or_uneven(ring_of, n_elements):
    job = AllReduce(4, 4 * n_elements, "float32")
    expected = expected_sum(job.source())
    assert all(work.wrong(expected) == WrongElements(0) for work in run_ring(ring_of(4), job))


def test_a_message_larger_than_all_buffers_goes_through(ring_of):
    job = AllReduce(2, 2**24, "int32")
    expected = expected_sum(job.source())
    assert all(work.wrong(expected) == WrongElements(0) for work in run_ring(ring_of(2), job))


def test_a_worker_that_is_alone_keeps_its_data():
    work = WorkerTask(AllReduce(1, 64, "float64"), 0, in_place=False)
    work.run(NoNeighbours())
    assert (work.result == work.data).all()


def test_the_expected_sum_is_the_same_in_small_blocks(monkeypatch):
    source = AllReduce(3, 4 * 1001, "float32", seed=9).source()
    whole = expected_sum(source)
    monkeypatch.setattr("ringnet.measure.allreduce._BLOCK_ELEMENTS", 63)
    assert expected_sum(source).tobytes() == whole.tobytes()


def test_the_expected_sum_is_what_the_simulator_ends_with():
    network = "network: {bandwidth: 1 GB/s, latency: 5 us}"
    text = f"{{scenario_version: 1, workers: 5, message: 4000 B, dtype: float32, seed: 11, {network}}}"
    simulated = simulate(loads(text)).outputs()
    expected = expected_sum(AllReduce(5, 4000, "float32", seed=11).source())
    assert {result.tobytes() for result in simulated} == {expected.tobytes()}


def test_a_wrong_element_is_counted_and_shown():
    work = WorkerTask(AllReduce(1, 16, "int32"), 0, in_place=True)
    work.prepare()
    expected = work.data.copy()
    expected[2] += 1
    assert work.wrong(expected) == WrongElements(1, 2, str(work.data[2]), str(expected[2]))


# Neighbours.


def test_a_neighbour_that_closes_is_gone(ring_of):
    first, second = ring_of(2)
    second.close()
    with pytest.raises(NeighbourError, match="worker 1 is gone"):
        first.take(0, np.empty(1))
    first.post(0, np.empty(1))  # the first is still taken, and answered by a reset
    with pytest.raises(NeighbourError, match="worker 1 is gone"):
        first.post(1, np.empty(1))


def test_a_neighbour_that_says_nothing_is_given_up(ring_of):
    neighbours, _ = ring_of(2, patience_s=0.01)
    with pytest.raises(NeighbourError, match=r"worker 1 sends nothing for 0\.01 s"):
        neighbours.take(0, np.empty(1))


def test_a_neighbour_that_takes_nothing_is_given_up(ring_of):
    neighbours, _ = ring_of(2, patience_s=0.01)
    neighbours.post(0, np.zeros(2**25, np.uint8))
    with pytest.raises(NeighbourError, match=r"worker 1 takes nothing for 0\.01 s"):
        neighbours.flush()


def test_a_neighbour_that_is_in_another_step_is_an_error(ring_of):
    first, second = ring_of(2)
    first.post(3, np.zeros(8, np.uint8))
    with pytest.raises(NeighbourError, match="worker 0 sent transfer 3 of 8 bytes where transfer 2 of 4 bytes was due"):
        second.take(2, np.empty(4, np.uint8))


def test_a_worker_whose_parent_is_gone_stops(ring_of, control):
    neighbours, _ = ring_of(2)
    control[1].close()
    with pytest.raises(StoppedError):
        neighbours.take(0, np.empty(1))


def test_only_the_neighbour_is_let_in():
    listener = listen("127.0.0.1", 0)
    address = listener.getsockname()
    stranger = socket.create_connection(address)
    stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    other = connect(address, neighbour=0, me=2, word=WORD)
    right = connect(address, neighbour=0, me=1, word=WORD)
    found = accept(listener, 1, WORD, time.monotonic)
    assert found.getpeername() == right.getsockname()
    for connection in (listener, stranger, other, right, found):
        connection.close()


def test_a_neighbour_that_never_calls_or_answers_is_named(monkeypatch):
    monkeypatch.setattr(neighbours, "PATIENCE_S", 0.05)
    listener = listen("127.0.0.1", 0)
    address = listener.getsockname()
    with pytest.raises(NeighbourError, match=r"worker 4 did not call within 0\.05 s"):
        accept(listener, 4, WORD, time.monotonic)
    listener.close()
    with pytest.raises(NeighbourError, match=r"worker 4 does not answer at 127\.0\.0\.1:"):
        connect(address, 4, 0, WORD)


# The workers.


def test_workers_measure_and_leave_nothing_behind():
    with WorkerProcesses([Endpoint()] * 3) as workers:
        row, small = measure(
            workers, [AllReduce(3, 4096, "float32"), AllReduce(3, 0, "int8")], Repetitions(repeat=2, warmup=1)
        )
        pids = workers.pids
    assert [len(timing.runs) for timing in row.timings] == [2, 2]
    assert row.out_of_place.n_wrong == small.in_place.n_wrong == 0
    assert row.in_place.median_s > 0
    wait_for(lambda: all(map(ended, pids)))


def test_a_sum_that_is_wrong_is_told_by_every_worker():
    job = AllReduce(2, 64, "float32")
    with WorkerProcesses([Endpoint()] * 2) as workers:
        workers.expect(expected_sum(job.source()) + 1)
        workers.ask("prepare", job=job.document(), in_place=False)
        run = run_once(workers)
    assert [wrong.n_elements for wrong in run.wrong] == [16, 16]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_worker_that_is_killed_in_the_middle_is_named_and_all_end(name):
    job = AllReduce(3, 2**22, "float32")
    with WorkerProcesses([Endpoint()] * 3) as workers:
        workers.ask("prepare", job=job.document(), in_place=False)
        os.kill(workers.pids[1], getattr(signal, name))
        with pytest.raises(WorkerError, match=rf"^worker 1 \(process {workers.pids[1]}\) was killed \({name}\)$"):
            workers.ask("run", at_ns=0)
    wait_for(lambda: all(map(ended, workers.pids)))


def test_a_worker_that_answers_nothing_is_named(monkeypatch):
    with WorkerProcesses([Endpoint()] * 2) as workers:
        monkeypatch.setattr(processes, "_STOPPED_S", 0.3)
        os.kill(workers.pids[0], signal.SIGSTOP)
        with pytest.raises(WorkerError, match=r"worker 0 .* is stopped \(SIGSTOP\)"):
            workers.ask("prepare", job=AllReduce(2, 64, "int8").document(), in_place=False)


def test_neighbours_are_given_up_within_ten_seconds():
    assert PATIENCE_S + processes._GRACE_S < 10


def test_a_port_in_use_is_refused_with_its_number():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"in use; got 127\.0\.0\.1:{port}; right would be"):
            WorkerProcesses([Endpoint(), Endpoint(port=port)]).__enter__()


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(InputError, match=r"cannot listen here: .*; got 192\.0\.2\.1"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_workers_end_with_their_parent(name):
    code = (
        "from ringnet.measure.processes import WorkerProcesses, Endpoint\n"
        "with WorkerProcesses([Endpoint()] * 2) as workers:\n"
        "    job = dict(n_workers=2, message_bytes=1 << 20, dtype='int8')\n"
        "    workers.ask('prepare', job=job, in_place=False)\n"
        "    print(*workers.pids, flush=True)\n"
        "    while True: workers.ask('run', at_ns=0)\n"
    )
    command = [sys.executable, "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as parent:
        pids = parent.stdout.readline().split()
        parent.send_signal(getattr(signal, name))
    assert len(pids) == 2
    wait_for(lambda: all(map(ended, pids)))


# Sizes, rows and the log.


@pytest.mark.parametrize(
    ("text", "factor", "sizes"),
    [("4KiB..16KiB", 2, [4096, 8192, 16384]), ("1kB..5kB", 4, [1000, 4000]), ("0 B, 8B", 2, [0, 8])],
)
def test_sizes_are_ranges_and_lists(text, factor, sizes):
    assert sizes_of([text], factor) == sizes


@pytest.mark.parametrize(
    ("text", "factor", "complaint"),
    [
        ("16KiB..4KiB", 2, "runs upwards; got 16KiB..4KiB"),
        ("0B..4KiB", 2, "starts above zero"),
        ("4KiB", 1, "--factor: must be at least 2; got 1"),
        ("0.5..16", 2, "needs a unit"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(text, factor, complaint):
    with pytest.raises(InputError, match=complaint):
        sizes_of([text], factor)


def test_a_plan_needs_a_run():
    with pytest.raises(InputError, match="--repeat: must be at least 1; got 0") as error:
        Repetitions(repeat=0, warmup=-1)
    assert len(error.value.faults) == 2


def timing(*makespans_s, wrong=None):
    wrong = wrong or WrongElements(0)
    return RunTimes(tuple(TimedRun(makespan_s, 0.0, (WrongElements(0), wrong)) for makespan_s in makespans_s))


def test_a_log_looks_as_nccl_tests_writes_it():
    job = AllReduce(2, 2**20, "float32")
    row = MeasuredRow(job, timing(0.001, 0.009, 0.002), timing(0.004))
    lines = [
        *header([Rank(7, "here"), Rank(8, "there")], [job], Repetitions(3, 1), "TCP"),
        line(row),
        *footer([row]),
    ]
    assert [text for text in lines if "Rank" in text] == [
        "#  Rank  0 Group  0 Pid       7 on       here device  0 [TCP] CPU process",
        "#  Rank  1 Group  0 Pid       8 on      there device  1 [TCP] CPU process",
    ]
    columns = [" ".join(text.split()) for text in lines if not text.startswith("#")]
    assert columns == ["1048576 262144 float sum -1 2000.00 0.52429 0.52429 0 4000.00 0.26214 0.26214 0"]
    assert "# Out of bounds values : 0 OK" in lines
    titles = next(text for text in lines if "redop" in text)
    assert titles.split()[-8:] == ["time", "algbw", "busbw", "#wrong"] * 2


def test_wrong_sums_end_in_a_verdict():
    row = MeasuredRow(AllReduce(2, 64, "int32"), timing(0.1), timing(0.1, wrong=WrongElements(3, 5, "1", "2")))
    assert next(footer([row])) == "# Out of bounds values : 3 FAILED"
    with pytest.raises(VerificationError, match=r"64 B of int32: 3 .* worker 1, element 5, got 1, expected 2"):
        check_sums([row])
    check_sums([])
