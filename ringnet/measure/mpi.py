"""The same ring where MPI starts the processes: on several hosts, or on one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from ringnet.array_types import Array
from ringnet.errors import InputError
from ringnet.measure.allreduce import AllReduce, WorkerTask, WrongElements, expected_sum
from ringnet.measure.neighbours import bytes_of
from ringnet.measure.results import MeasuredRow, Rank, Repetitions, RunTimes, TimedRun
from ringnet.payload import dtype_of

if TYPE_CHECKING:
    from mpi4py import MPI


def world() -> MPI.Intracomm:
    """Return the processes that ``mpirun`` started.

    Raises
    ------
    InputError
        If mpi4py or an MPI library is not installed, or is not that of the launcher.
    """
    try:
        from mpi4py import MPI  # noqa: PLC0415 -- an extra, and importing it starts MPI
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"--mpi needs mpi4py and an MPI library ({reason}); "
            "right would be: pip install 'ringnet[mpi]', beside Open MPI or MPICH"
        ) from error
    _check_launcher(MPI.COMM_WORLD.size)
    return MPI.COMM_WORLD


def _check_launcher(size: int) -> None:
    """Refuse a world of one where the launcher made more: each process would measure itself."""
    started = max(int(os.environ.get(name, size)) for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    if size < started:
        raise InputError(
            f"mpirun started {started} processes, but each is alone: it belongs to another MPI than the one that "
            "mpi4py found; right would be: the mpirun of that MPI, or MPI4PY_LIBMPI=the library of this mpirun"
        )


class MpiNeighbours:
    """Neighbours in a ring of MPI processes."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._left, self._right = ((comm.rank + way) % comm.size for way in (-1, 1))
        self._sends: list[MPI.Request] = []

    def post(self, tag: int, outgoing: Array) -> None:
        """Send an array to the right: see `Neighbours.post`."""
        self._sends.append(self._comm.Isend(bytes_of(outgoing), self._right, tag))

    def take(self, tag: int, incoming: Array) -> None:
        """Receive an array from the left: see `Neighbours.take`."""
        self._comm.Recv(bytes_of(incoming), self._left, tag)

    def flush(self) -> None:
        """Wait until all sends are complete."""
        for request in self._sends:
            request.Wait()
        self._sends.clear()


def ranks(comm: MPI.Intracomm) -> list[Rank]:
    """Return where each process runs, at every process."""
    return comm.allgather(Rank(os.getpid(), socket.gethostname()))


def measure_under_mpi(comm: MPI.Intracomm, jobs: Iterable[AllReduce], plan: Repetitions) -> Iterator[MeasuredRow]:
    """Run each job; every process yields the same rows.

    A makespan is the longest time of any process from a common barrier to its whole sum, since hosts share no
    clock.
    """
    neighbours = MpiNeighbours(comm)
    for job in jobs:
        expected = _shared_expectation(comm, job)
        yield MeasuredRow(
            job, *(_timing(comm, neighbours, job, plan, expected, in_place) for in_place in (False, True))
        )


def _shared_expectation(comm: MPI.Intracomm, job: AllReduce) -> Array:
    dtype, count = dtype_of(job.dtype), job.source().n_elements
    expected = expected_sum(job.source()) if comm.rank == 0 else np.empty(count, dtype)
    comm.Bcast(bytes_of(expected))
    return expected


def _timing(
    comm: MPI.Intracomm,
    neighbours: MpiNeighbours,
    job: AllReduce,
    plan: Repetitions,
    expected: Array,
    in_place: bool,
) -> RunTimes:
    work = WorkerTask(job, comm.rank, in_place=in_place, clock=perf_counter_ns)
    runs = [_run_once(comm, neighbours, work, expected) for _ in range(plan.warmup + plan.repeat)]
    return RunTimes(tuple(runs[plan.warmup :]))


def _run_once(comm: MPI.Intracomm, neighbours: MpiNeighbours, work: WorkerTask, expected: Array) -> TimedRun:
    work.prepare()
    comm.Barrier()
    start_ns, end_ns = work.run(neighbours)
    seen: list[tuple[int, WrongElements]] = comm.allgather((end_ns - start_ns, work.wrong(expected)))
    return TimedRun(max(span for span, _ in seen) * 1e-9, 0.0, tuple(wrong for _, wrong in seen))
