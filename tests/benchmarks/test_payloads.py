"""Both phases with all the data, against a bare loop of the same additions."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import pytest
from measuring import cpu_s, in_turn, simulated_alone
from setups import MIB, Setup, ring_setup

from ringnet.analysis.verification import verify
from ringnet.payload import Payload
from ringnet.payload.reductions import make_reduction

BLOCK = 2**20
#: Elements of a block that stays in the cache of a core with what is made of it.
IN_CACHE = 2**16


def filled_buffers(setup: Setup) -> list[np.ndarray]:
    """One array for each worker, with its data."""
    source = setup.source
    buffers = [np.empty(source.n_elements, source.dtype) for _ in range(source.n_workers)]
    for worker, buffer in enumerate(buffers):
        for start in range(0, source.n_elements, BLOCK):
            stop = min(start + BLOCK, source.n_elements)
            buffer[start:stop] = source.read(worker, start, stop)
    return buffers


def add_around(chunks: list[list[np.ndarray]]) -> None:
    """Reduce-scatter in place: N(N-1) additions of a chunk, in the ring's order; (N-1) x S elements in all.

    ``chunks[worker][chunk]`` are views of one array per worker. Nothing is sent, frozen, kept, timed or checked, and
    an all-gather adds nothing.
    """
    n_workers = len(chunks)
    for step in range(n_workers - 1):
        for sender in range(n_workers):
            receiver, chunk = (sender + 1) % n_workers, (sender - step) % n_workers
            own = chunks[receiver][chunk]
            np.add(own, chunks[sender][chunk], out=own)


def bare(setup: Setup) -> tuple[float, list[np.ndarray]]:
    """Return how long the additions take, and the sum chunk by chunk, from the worker that has it complete."""
    n_workers = setup.schedule.n_workers
    chunks = [np.array_split(buffer, n_workers) for buffer in filled_buffers(setup)]
    seconds = cpu_s(lambda: add_around(chunks))
    return seconds, [chunks[chunk - 1][chunk].copy() for chunk in range(n_workers)]


def holds(payload: Payload, chunk: int, total: np.ndarray) -> bool:
    everyone = range(payload.layout.n_workers)
    return all(np.array_equal(array, total) for _, array in payload.distinct(chunk, everyone))


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("engine", ["events", "recurrence"])
@pytest.mark.parametrize(("n_workers", "message_mib"), [(8, 64), (64, 64), (8, 256)])
def test_payload(benchmark, table, engine, n_workers, message_mib):
    setup = ring_setup(n_workers, message_mib * MIB)
    kept = {}

    def theirs() -> float:
        kept.clear()  # before the next is made: two of them need not fit into memory
        seconds, kept["sum"] = bare(setup)
        return seconds

    def prepare() -> None:
        kept["payload"] = setup.payload()

    pairs = in_turn(benchmark, lambda: setup.run(engine, kept["payload"]), theirs, 5, prepare)
    assert all(holds(kept["payload"], chunk, total) for chunk, total in enumerate(kept["sum"]))
    kept.clear()
    what = f"{engine}, N={n_workers}, {message_mib} MiB, full payload"
    table.add("Ratios", f"{what}: time over bare additions", pairs.slow_down, at_most=1.5)
    table.add("Times", what, median(pairs.ours_s))
    table.add("Times", f"bare additions beside {what}", median(pairs.theirs_s))


@pytest.mark.parametrize("engine", ["events", "recurrence"])
@pytest.mark.parametrize(("n_workers", "message_mib"), [(8, 64), (64, 64), (8, 256)])
def test_memory_of_payload(table, engine, n_workers, message_mib):
    answer = simulated_alone(
        {
            "scenario_version": 1,
            "workers": n_workers,
            "message": f"{message_mib} MiB",
            "seed": 1,
            "engine": engine,
            "network": {"bandwidth": "50 GB/s", "latency": "500 ns"},
        }
    )
    assert answer["sum_ok"]
    what = f"{engine}, N={n_workers}, {message_mib} MiB, made, run and verified"
    beyond = (answer["peak_bytes"] - 300 * MIB) / (n_workers * message_mib * MIB)
    table.add("Ratios", f"{what}: peak memory less 300 MiB, over N x S", beyond, at_most=1.35)
    table.add("Peak memory", what, answer["peak_bytes"])


def bare_and_checked(setup: Setup) -> float:
    """Return how long data, its float64 sum, the additions and a comparison take in NumPy alone, in one thread.

    2 GiB are written for the first time, and added up in float64 while they are in the cache; then comes the ring.
    """
    n_workers, source = setup.schedule.n_workers, setup.source

    def whole() -> None:
        buffers = [np.empty(source.n_elements, source.dtype) for _ in range(n_workers)]
        exact = np.zeros(source.n_elements)
        for start in range(0, len(exact), IN_CACHE):
            part = slice(start, min(start + IN_CACHE, len(exact)))
            source.fill(np.arange(part.start, part.stop), range(n_workers), [buffer[part] for buffer in buffers])
            for buffer in buffers:
                np.add(exact[part], buffer[part], out=exact[part])
        chunks = [np.array_split(buffer, n_workers) for buffer in buffers]
        add_around(chunks)
        parts = np.array_split(exact, n_workers)
        assert max(np.abs(chunks[c - 1][c] - parts[c]).max() for c in range(n_workers)) < 1e-5

    return cpu_s(whole)


@pytest.mark.benchmark(timer=time.process_time)
def test_payload_made_run_and_verified(benchmark, table):
    setup = ring_setup(8, 256 * MIB)

    def ours() -> None:
        payload = setup.payload()
        setup.run("events", payload)
        assert verify(setup.schedule, payload, setup.source, make_reduction("sum", 8), setup.chunk_sizes).sum_ok

    pairs = in_turn(benchmark, ours, lambda: bare_and_checked(setup), 2)
    what = "N=8, 256 MiB, full payload, made, run and verified"
    table.add("Ratios", f"{what}: time over bare NumPy", pairs.slow_down, at_most=1.5)
    table.add("Times", what, median(pairs.ours_s))
    table.add("Times", f"bare NumPy beside {what}", median(pairs.theirs_s))
