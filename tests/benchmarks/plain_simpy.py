"""The plain SimPy program that the events engine is measured against: stores, and a process per flight."""

from __future__ import annotations

from collections.abc import Iterator

import simpy


def plain_ring(n_workers: int, chunk_bytes: int, bandwidth_Bps: float, latency_s: float) -> float:
    """Return the makespan in seconds of a ring all-reduce of equal chunks, written as one would write it first."""
    env = simpy.Environment()
    outgoing = [simpy.Store(env) for _ in range(n_workers)]
    incoming = [simpy.Store(env) for _ in range(n_workers)]

    def worker(number: int) -> Iterator[simpy.Event]:
        for _ in range(2 * (n_workers - 1)):
            yield outgoing[number].put(chunk_bytes)
            yield incoming[number].get()

    def link(number: int) -> Iterator[simpy.Event]:
        while True:
            n_bytes = yield outgoing[number].get()
            yield env.timeout(n_bytes / bandwidth_Bps)
            env.process(flight(n_bytes, (number + 1) % n_workers))

    def flight(n_bytes: int, receiver: int) -> Iterator[simpy.Event]:
        yield env.timeout(latency_s)
        yield incoming[receiver].put(n_bytes)

    for number in range(n_workers):
        env.process(link(number))
    workers = [env.process(worker(number)) for number in range(n_workers)]
    env.run(until=env.all_of(workers))
    return float(env.now)
