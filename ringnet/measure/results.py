"""What measurements come to: how often each all-reduce is run, its times, and a log of them as nccl-tests writes it.

Whatever reads the logs of nccl-tests reads this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean, median

from ringnet._version import __version__
from ringnet.errors import Fault, InputError, VerificationError
from ringnet.measure.allreduce import AllReduce, WrongElements
from ringnet.payload import dtype_of, message_elements

#: Names of element types as NCCL has them, where they differ.
_TYPES = {"float16": "half", "float32": "float", "float64": "double"}

_PLACES = ("out-of-place", "in-place")
_COLUMNS = (("time", "(us)", 10), ("algbw", "(GB/s)", 9), ("busbw", "(GB/s)", 9), ("#wrong", "", 7))


@dataclass(frozen=True)
class Repetitions:
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
class TimedRun:
    """One run of a job, seen by all workers.

    Parameters
    ----------
    makespan_s : float
        From the start of the first worker to the end of the last.
    skew_s : float
        From the common start to that of the last worker: a sign of a busy machine.
    wrong : tuple of WrongElements
        By worker.
    """

    makespan_s: float
    skew_s: float
    wrong: tuple[WrongElements, ...]


@dataclass(frozen=True)
class RunTimes:
    """The runs of a job that count, in their order."""

    runs: tuple[TimedRun, ...]

    @property
    def median_s(self) -> float:
        """Median of the makespans, in seconds: one disturbed run does not move it."""
        return median(run.makespan_s for run in self.runs)

    @property
    def n_wrong(self) -> int:
        """Elements that were not bit for bit what they should be, over all workers and runs."""
        return sum(wrong.n_elements for run in self.runs for wrong in run.wrong)


@dataclass(frozen=True)
class MeasuredRow:
    """A job with its times: the sum in memory of its own, and in the place of the data."""

    job: AllReduce
    out_of_place: RunTimes
    in_place: RunTimes

    @property
    def timings(self) -> tuple[RunTimes, RunTimes]:
        """Both, in the order of the columns of a log."""
        return self.out_of_place, self.in_place


def check_sums(rows: Sequence[MeasuredRow]) -> None:
    """Raise `VerificationError` if any sum was wrong; it names the first worker and element of each row."""
    texts = [text for row in rows for timing in row.timings for text in _complaints(row.job, timing)]
    if texts:
        raise VerificationError("\n".join(texts))


def _complaints(job: AllReduce, timing: RunTimes) -> Iterator[str]:
    found = ((worker, wrong) for run in timing.runs for worker, wrong in enumerate(run.wrong) if wrong.n_elements)
    for worker, wrong in list(found)[:1]:
        yield (
            f"{job.message_bytes} B of {job.dtype}: {timing.n_wrong} element(s) are wrong; the first: "
            f"worker {worker}, element {wrong.element}, got {wrong.got}, expected {wrong.expected}"
        )


# The log.


@dataclass(frozen=True)
class Rank:
    """Where a worker ran: its process, and the name of the machine."""

    pid: int
    host: str


def bandwidths(job: AllReduce, seconds: float) -> tuple[float, float]:
    """Return algbw and busbw in bytes per second; zeros where nothing was moved.

    >>> bandwidths(AllReduce(4, 1_000_000, "float32"), 0.001)
    (1000000000.0, 1500000000.0)
    """
    algbw_Bps = job.message_bytes / seconds if seconds else 0.0
    return algbw_Bps, algbw_Bps * 2 * (job.n_workers - 1) / job.n_workers


def header(ranks: Sequence[Rank], jobs: Sequence[AllReduce], plan: Repetitions, transport: str) -> Iterator[str]:
    """Yield the lines before the rows.

    Parameters
    ----------
    ranks : sequence of Rank
    jobs : sequence of AllReduce
        In the order of their rows.
    plan : Repetitions
    transport : str
        What carries the bytes: ``TCP`` or ``MPI``.
    """
    sizes = [job.message_bytes for job in jobs]
    yield "# Collective test starting: all_reduce_perf"
    yield f"# ringnet {__version__} measure: ring all-reduce over {transport}, seed {jobs[0].seed}"
    yield "# time is the median over iters, of the span from the first rank's start to the last rank's end"
    yield (
        f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {max(sizes)} "
        f"warmup iters: {plan.warmup} iters: {plan.repeat} agg iters: 1 validation: 1 graph: 0"
    )
    yield "#"
    yield "# Using devices"
    for number, rank in enumerate(ranks):
        where = f"Pid {rank.pid:7d} on {rank.host:>10s} device {number:2d}"
        yield f"#  Rank {number:2d} Group  0 {where} [{transport}] CPU process"
    yield "#"
    yield from _titles()


def _titles() -> Iterator[str]:
    names, units = ("".join(f"{column[part]:>{column[2]}}" for column in _COLUMNS) for part in (0, 1))
    yield f"#{'':55s}{_PLACES[0]:^35s}{_PLACES[1]:^35s}".rstrip()
    yield f"#{'size':>11s}{'count':>14s}{'type':>10s}{'redop':>8s}{'root':>8s}    {names}{names}"
    yield f"#{'(B)':>11s}{'(elements)':>14s}{'':30s}{units}{units}".rstrip()


def line(row: MeasuredRow) -> str:
    """Return the line of a row."""
    job = row.job
    dtype = _TYPES.get(job.dtype, job.dtype)
    count = message_elements(job.message_bytes, dtype_of(job.dtype))
    figures = "".join(_figures(job, timing) for timing in row.timings)
    return f"{job.message_bytes:12d}  {count:12d}  {dtype:>8s}  {'sum':>6s}  {-1:6d}    {figures}"


def _figures(job: AllReduce, timing: RunTimes) -> str:
    algbw_Bps, busbw_Bps = bandwidths(job, timing.median_s)
    return f"{timing.median_s * 1e6:10.2f}{algbw_Bps / 1e9:9.5f}{busbw_Bps / 1e9:9.5f}{timing.n_wrong:7d}"


def footer(rows: Iterable[MeasuredRow]) -> Iterator[str]:
    """Yield the lines after the rows."""
    timings = [(row.job, timing) for row in rows for timing in row.timings]
    n_wrong = sum(timing.n_wrong for _, timing in timings)
    yield f"# Out of bounds values : {n_wrong} {'FAILED' if n_wrong else 'OK'}"
    if timings:
        busbw_Bps = mean(bandwidths(job, timing.median_s)[1] for job, timing in timings)
        yield f"# Avg bus bandwidth    : {busbw_Bps / 1e9:.5f}"
    yield "#"
