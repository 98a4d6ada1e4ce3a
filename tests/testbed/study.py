"""Calibrate on two workers, predict the other networks, measure them, compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np

from ringnet.measure.allreduce import AllReduce, expected_sum
from ringnet.measure.processes import WorkerProcesses, run_once
from ringnet.measure.results import RunTimes, TimedRun
from tests.testbed.beds import Case, Link, ring_case

KIB = 1024
#: Transfers that the bucket lets pass at once, and such that it does not.
SHORT_BYTES = (64, 1 * KIB, 4 * KIB, 8 * KIB)
LONG_BYTES = (32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB)
#: A run whose workers started so far apart says more about the machine than about its network.
LATE_S = 500e-6
#: And so do runs of which the middle half is so far apart, as a share of their median.
WIDE = 0.03


@dataclass(frozen=True)
class Effort:
    """How much is measured: message sizes, runs of each, tries until a series is quiet."""

    sizes: Sequence[int]
    repeat: int
    tries: int


SHORT = Effort((16 * KIB, 256 * KIB, 1024 * KIB), repeat=5, tries=2)
FULL = Effort(tuple(2**power * KIB for power in (2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14)), repeat=9, tries=3)


@dataclass(frozen=True)
class Point:
    """One row of the comparison; times in seconds."""

    case: str
    n_workers: int
    message_bytes: int
    predicted_s: float
    measured_s: float
    spread: float
    runs: int

    @property
    def error(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1


def calibrate(repeat: int) -> Link:
    """Measure one link between two workers: ping-pong, short and long."""
    with ring_case(2).workers() as workers:
        short_s = median(_one_way_s(workers, n_bytes, repeat) for n_bytes in SHORT_BYTES)
        times_s = np.array([_one_way_s(workers, n_bytes, repeat) for n_bytes in LONG_BYTES])
    # Least squares of relative errors, so that every size counts the same.
    columns = np.column_stack([np.ones(len(LONG_BYTES)), LONG_BYTES]) / times_s[:, None]
    latency_s, s_per_byte = np.linalg.lstsq(columns, np.ones(len(LONG_BYTES)))[0]
    return Link(short_s, float(latency_s), float(1 / s_per_byte))


def _one_way_s(workers: WorkerProcesses, n_bytes: int, repeat: int) -> float:
    workers.ask("ping_pong", n_bytes=n_bytes, n_times=2)
    return median(workers.ask("ping_pong", n_bytes=n_bytes, n_times=repeat)[0]["halves_ns"]) * 1e-9


def compare(cases: Sequence[Case], effort: Effort, link: Link) -> Iterator[Point]:
    """Predict and measure every size of every case."""
    for case in cases:
        with case.workers() as workers:
            for message_bytes in effort.sizes:
                timing = _quiet_timing(workers, AllReduce(case.n_workers, message_bytes, "float32"), effort)
                predicted_s = case.predicted_s(message_bytes, link)
                yield Point(
                    case.name, case.n_workers, message_bytes, predicted_s,
                    timing.median_s, spread(timing.runs), len(timing.runs),
                )  # fmt: skip


def _quiet_timing(workers: WorkerProcesses, job: AllReduce, effort: Effort) -> RunTimes:
    """Measure until the runs lie close together, a few times at most; keep the closest."""
    workers.expect(expected_sum(job.source()))
    workers.ask("prepare", job=job.document(), in_place=False)
    _ = run_once(workers)  # opens the congestion windows
    series: list[list[TimedRun]] = []
    while len(series) < effort.tries and (not series or spread(series[-1]) > WIDE):
        series.append(_runs(workers, effort.repeat))
    return RunTimes(tuple(min(series, key=spread)))


def _runs(workers: WorkerProcesses, repeat: int) -> list[TimedRun]:
    runs = [run_once(workers) for _ in range(repeat)]
    assert not any(wrong.n_elements for run in runs for wrong in run.wrong)
    in_time = [run for run in runs if run.skew_s < LATE_S]
    return in_time if len(in_time) > repeat // 2 else runs


def spread(runs: Sequence[TimedRun]) -> float:
    """The middle half of the makespans as a share of their median."""
    low, middle, high = quantiles([run.makespan_s for run in runs], n=4)
    return (high - low) / middle
