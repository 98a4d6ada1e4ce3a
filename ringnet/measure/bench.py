"""Timed repetitions of a job, and the rows that come of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ringnet.errors import Fault, InputError, VerificationError
from ringnet.measure.allreduce import Job, Wrong
from ringnet.measure.crew import Crew
from ringnet.measure.expected import expected_sum

#: From the request to run to the common start: time for the request to reach every worker.
_LEAD_NS = 2_000_000
_LEAD_NS_PER_WORKER = 200_000


@dataclass(frozen=True)
class Plan:
    """How often a job is run.

    Parameters
    ----------
    repeat : int
        Runs that count, at least 1.
    warmup : int
        Runs before those, which do not.
    """

    repeat: int = 20
    warmup: int = 5

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be at least {least}", option, value=str(value), right=str(right))
            for option, value, least, right in (
                ("--repeat", self.repeat, 1, 20),
                ("--warmup", self.warmup, 0, 5),
            )
            if value < least
        ]
        if faults:
            raise InputError(*faults)


@dataclass(frozen=True)
class Run:
    """One run of a job, seen by all workers.

    Parameters
    ----------
    makespan_s : float
        From the start of the first worker to the end of the last.
    skew_s : float
        From the common start to that of the last worker: a sign of a busy machine.
    wrong : tuple of Wrong
        By worker.
    """

    makespan_s: float
    skew_s: float
    wrong: tuple[Wrong, ...]


@dataclass(frozen=True)
class Timing:
    """The runs of a job that count, in their order."""

    runs: tuple[Run, ...]

    @property
    def median_s(self) -> float:
        """Median of the makespans, in seconds: one disturbed run does not move it."""
        return median(run.makespan_s for run in self.runs)

    @property
    def n_wrong(self) -> int:
        """Elements that were not bit for bit what they should be, over all workers and runs."""
        return sum(wrong.n_elements for run in self.runs for wrong in run.wrong)


@dataclass(frozen=True)
class Row:
    """A job with its times: the sum in memory of its own, and in the place of the data."""

    job: Job
    out_of_place: Timing
    in_place: Timing

    @property
    def timings(self) -> tuple[Timing, Timing]:
        """Both, in the order of the columns of a log."""
        return self.out_of_place, self.in_place


def measure(crew: Crew, jobs: Iterable[Job], plan: Plan) -> Iterator[Row]:
    """Run each job on the crew as the plan says; yield its row when it is finished."""
    for job in jobs:
        crew.expect(expected_sum(job.source()))
        yield Row(job, *(_timing(crew, job, plan, in_place) for in_place in (False, True)))


def _timing(crew: Crew, job: Job, plan: Plan, in_place: bool) -> Timing:
    crew.ask("prepare", job=job.document(), in_place=in_place)
    runs = [run_once(crew) for _ in range(plan.warmup + plan.repeat)]
    return Timing(tuple(runs[plan.warmup :]))


def run_once(crew: Crew) -> Run:
    """Run the prepared job once: all workers start at one instant of the clock that they share."""
    at_ns = time.monotonic_ns() + _LEAD_NS + len(crew.places) * _LEAD_NS_PER_WORKER
    times = crew.ask("run", at_ns=at_ns)
    starts, ends = ([int(worker[key]) for worker in times] for key in ("start_ns", "end_ns"))
    wrong = tuple(Wrong(**answer["wrong"]) for answer in crew.ask("check"))
    return Run((max(ends) - min(starts)) * 1e-9, (max(starts) - at_ns) * 1e-9, wrong)


def check_sums(rows: Sequence[Row]) -> None:
    """Raise `VerificationError` if any sum was wrong; it names the first worker and element of each row."""
    texts = [text for row in rows for timing in row.timings for text in _complaints(row.job, timing)]
    if texts:
        raise VerificationError("\n".join(texts))


def _complaints(job: Job, timing: Timing) -> Iterator[str]:
    found = (
        (worker, wrong) for run in timing.runs for worker, wrong in enumerate(run.wrong) if wrong.n_elements
    )
    for worker, wrong in list(found)[:1]:
        yield (
            f"{job.message_bytes} B of {job.dtype}: {timing.n_wrong} element(s) are wrong; the first: "
            f"worker {worker}, element {wrong.element}, got {wrong.got}, expected {wrong.expected}"
        )
