"""Transfers a second: the events engine against a plain SimPy program, and the recurrence against the events."""

from __future__ import annotations

import time
from statistics import median

import pytest
from measuring import allocated_bytes, cpu_s, exponent, in_turn, simulated_alone
from plain_simpy import plain_ring
from setups import BANDWIDTH_BPS, LATENCY_S, MIB, ring_setup

from ringnet.engines import Trace

pytestmark = pytest.mark.benchmark(timer=time.process_time)


def makespan_s(trace: Trace) -> float:
    return float(trace.workers["end_s"].max())


def test_events_against_plain_simpy(benchmark, table):
    n_workers, setup = 256, ring_setup(256)
    ends = {}

    def theirs() -> None:
        chunk_bytes = 64 * MIB // n_workers
        ends["plain"] = plain_ring(n_workers, chunk_bytes, BANDWIDTH_BPS, LATENCY_S)

    def ours() -> None:
        ends["events"] = setup.run("events", keep_transfers=0)

    pairs = in_turn(benchmark, ours, lambda: cpu_s(theirs), rounds=7)
    trace = ends["events"]
    assert makespan_s(trace) == pytest.approx(ends["plain"], rel=1e-12, abs=0)
    per_transfer = trace.counts["events"] / trace.n_transfers
    assert per_transfer <= 4
    table.add("Ratios", "events engine, transfers/s of a plain SimPy program, N=256", pairs.speed_up, at_least=2.5)
    table.add("Times", "events engine, N=256, 130,560 transfers", median(pairs.ours_s))
    table.add("Times", "plain SimPy program, the same", median(pairs.theirs_s))
    table.add("Counts", "SimPy events per transfer, one hop", per_transfer, at_most=4)


def test_recurrence_against_events(benchmark, table):
    setup, ends = ring_setup(1024), {}

    def run(engine: str) -> None:
        ends[engine] = setup.run(engine, keep_transfers=0)

    pairs = in_turn(benchmark, lambda: run("recurrence"), lambda: cpu_s(lambda: run("events")), rounds=3)
    assert makespan_s(ends["recurrence"]) == makespan_s(ends["events"])
    table.add("Ratios", "recurrence engine, speed of the events engine, N=1024", pairs.speed_up, at_least=100)
    table.add("Times", "events engine, N=1024, 2.1 million transfers", median(pairs.theirs_s))


@pytest.mark.parametrize(("n_workers", "at_most_s"), [(1024, 0.15), (4096, 1.0), (16384, 6.0)])
def test_recurrence(benchmark, table, n_workers, at_most_s):
    setup = ring_setup(n_workers, 1024 * MIB)
    benchmark.pedantic(lambda: setup.run("recurrence"), rounds=3)
    table.add("Times", f"recurrence engine, N={n_workers}", benchmark.stats.stats.median, at_most=at_most_s)
    network = {"bandwidth": "50 GB/s", "latency": "500 ns"}
    scenario = {"scenario_version": 1, "workers": n_workers, "message": "1 GiB", "payload": "none"}
    answer = simulated_alone({**scenario, "network": network})
    assert answer["engine"] == "recurrence"
    limit = 300 * MIB if n_workers == 16384 else None
    table.add("Peak memory", f"whole run without payload, N={n_workers}", answer["peak_bytes"], at_most=limit)


@pytest.mark.parametrize(
    ("engine", "sizes"),
    [
        ("events", [32, 64, 128, 256]),
        ("compiled", [128, 256, 512, 1024]),
        ("recurrence", [1024, 2048, 4096, 8192]),
    ],
)
def test_growth(benchmark, table, engine, sizes):
    setups = [ring_setup(n_workers, 1024 * MIB) for n_workers in sizes]
    setups[0].run(engine, keep_transfers=0)  # the first of all loads the machine code
    seconds = []

    def run_all() -> None:
        seconds.append([cpu_s(lambda s=setup: s.run(engine, keep_transfers=0)) for setup in setups])

    benchmark.pedantic(run_all, rounds=3)
    times_s = [median(column) for column in zip(*seconds, strict=True)]
    memory = [
        allocated_bytes(lambda s=setup: s.run(engine, keep_transfers=0)) for setup in setups[:3]
    ]  # slow, and exact: three will do
    span = f"N={sizes[0]} to {{}}"
    table.add("Growth, as an exponent", f"time of {engine}, {span.format(sizes[-1])}", exponent(sizes, times_s))
    table.add("Growth, as an exponent", f"memory of {engine}, {span.format(sizes[2])}", exponent(sizes[:3], memory))
