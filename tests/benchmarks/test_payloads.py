"""Both phases with all the data, against a bare loop of the same additions."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import pytest
from measuring import cpu_s, in_turn, simulated_alone
from setups import MIB, Setup, ring_setup

from ringnet.payload import Payload

BLOCK = 2**20


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
