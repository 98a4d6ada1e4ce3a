"""``ringnet measure``: the real ring between processes of this machine or of MPI, and the log of it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, say
from ringnet.cli.targets import check_targets
from ringnet.errors import Fault, InputError, RingnetError
from ringnet.measure.allreduce import AllReduce
from ringnet.measure.mpi import measure_under_mpi, ranks, world
from ringnet.measure.processes import Endpoint, WorkerProcesses, measure
from ringnet.measure.results import (
    MeasuredRow,
    Rank,
    Repetitions,
    RunTimes,
    bandwidths,
    check_sums,
    footer,
    header,
    line,
)
from ringnet.payload import dtype_of, message_elements
from ringnet.reporting.atomic import write_text
from ringnet.runs.memory import available_bytes
from ringnet.units import format_bytes

EXAMPLE = "ringnet measure --workers 4 --out measured.txt"

DEFAULT_WORKERS = 4
#: Processes on one machine: each takes some 50 MB before it has any data.
MOST_WORKERS = 256
HIGHEST_PORT = 65535
WORKER_BYTES = 50 * 10**6


@dataclass(frozen=True)
class MeasureOptions:
    """What is to be measured."""

    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes on this machine.  [4; under --mpi: all ranks]")
    ] = None
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM..TO|A,B", help="Message sizes: ranges, single ones, or both.  [4KiB..16MiB]"),
    ] = None
    factor: Annotated[int, typer.Option(metavar="K", help="From one size of a range to the next.")] = 2
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="Element type.")] = "float32"
    repeat: Annotated[int, typer.Option(metavar="N", help="Runs of each size; their median is the time.")] = 20
    warmup: Annotated[int, typer.Option(metavar="N", help="Runs before those, which do not count.")] = 5
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the data, which is that of the simulator.")] = 0
    mpi: Annotated[bool, typer.Option("--mpi", help="Run in the processes that mpirun started.")] = False
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of this machine to go over.  [127.0.0.1]"),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="First of N ports to listen on.  [free ones, chosen by the system]"),
    ] = None
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the log here, too.")] = None
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object with every run, instead of the log.")] = (
        False
    )

    @property
    def plan(self) -> Repetitions:
        """How often each size is run."""
        return Repetitions(self.repeat, self.warmup)

    def jobs(self, n_workers: int) -> list[AllReduce]:
        """Return the all-reduces to run, in the order of the sizes.

        Raises
        ------
        InputError
            If an option says nothing that can be run, or there is too little memory for it.
        """
        if self.seed < 0:
            raise InputError(Fault("must not be negative", "--seed", value=str(self.seed), right="0"))
        sizes = options.sizes_of(self.sizes or ["4KiB..16MiB"], self.factor)
        with options.placing_at("--dtype"):
            dtype = dtype_of(self.dtype)
        with options.placing_at("--sizes"):
            for size in sizes:
                message_elements(size, dtype)  # refuses what is no whole number of them
        _require_memory(n_workers, max(sizes))
        return [AllReduce(n_workers, size, self.dtype, self.seed) for size in sizes]

    def endpoints(self) -> list[Endpoint]:
        """Return where the workers of this machine listen."""
        n_workers = DEFAULT_WORKERS if self.workers is None else self.workers
        if not 1 <= n_workers <= MOST_WORKERS:
            raise InputError(Fault("out of range", "--workers", value=str(n_workers), right=f"1 to {MOST_WORKERS}"))
        highest = HIGHEST_PORT + 1 - n_workers
        if self.port is not None and not 1 <= self.port <= highest:
            right = f"1 to {highest}, for {n_workers} workers"
            raise InputError(Fault("out of range", "--port", value=str(self.port), right=right))
        ports = [self.port + worker if self.port else 0 for worker in range(n_workers)]
        return [Endpoint(self.host or "127.0.0.1", port) for port in ports]

    def refuse_local(self) -> None:
        """Refuse under MPI the options that only the processes of one machine read."""
        local = {"--workers": self.workers, "--host": self.host, "--port": self.port}
        right = "mpirun -n N --host A,B ringnet measure --mpi"
        options.refuse(
            Fault("is for mpirun to say", option, right=right) for option, value in local.items() if value is not None
        )


@options.asking(MeasureOptions)
def command(asked: MeasureOptions) -> int:
    """Time a real ring all-reduce, here or under MPI, and check its sums against the simulator's."""
    check_targets({"--out": asked.out})
    return _under_mpi(asked, asked.plan) if asked.mpi else _here(asked, asked.plan)


def _here(asked: MeasureOptions, plan: Repetitions) -> int:
    endpoints = asked.endpoints()
    jobs = asked.jobs(len(endpoints))
    with WorkerProcesses(endpoints) as workers:
        here = [Rank(pid, platform.node()) for pid in workers.pids]
        report = _Report(asked, header(here, jobs, plan, "TCP"))
        report.take(measure(workers, jobs, plan))
    return 0


def _under_mpi(asked: MeasureOptions, plan: Repetitions) -> int:
    asked.refuse_local()
    comm = world()
    try:
        jobs = asked.jobs(comm.size)
        lines = header(ranks(comm), jobs, plan, "MPI")
        rows = measure_under_mpi(comm, jobs, plan)
        if comm.rank:
            check_sums(list(rows))
        else:
            _Report(asked, lines).take(rows)
    except RingnetError:
        if comm.rank == 0:
            raise  # all ranks found the same; one says it, and its exit code is that of mpirun
    except BaseException:
        comm.Abort(1)  # this rank alone is in trouble, and the others would wait for it
        raise
    return 0


class _Report:
    """What is printed and written of the rows: as they come, and whole at the end."""

    def __init__(self, asked: MeasureOptions, head: Iterable[str]) -> None:
        self._asked, self._head = asked, list(head)
        self._rows: list[MeasuredRow] = []

    def take(self, rows: Iterable[MeasuredRow]) -> None:
        """Print each row when it is there; write the log also if interrupted; then judge the sums."""
        self._print(self._head)
        try:
            for row in rows:
                self._rows.append(row)
                self._print([line(row)])
        finally:
            self._finish()
        check_sums(self._rows)

    def _finish(self) -> None:
        if not self._rows:
            return
        foot = list(footer(self._rows))
        self._print(foot)
        if self._asked.out:
            text = "\n".join([*self._head, *map(line, self._rows), *foot])
            write_text(self._asked.out, f"{text}\n")
        if self._asked.json:
            print_json({"rows": [_document(row) for row in self._rows]})

    def _print(self, lines: Sequence[str]) -> None:
        if not self._asked.json:
            for text in lines:
                say(text)


def _document(row: MeasuredRow) -> dict[str, Any]:
    job = row.job
    return job.document() | {
        "out_of_place": _figures(job, row.out_of_place),
        "in_place": _figures(job, row.in_place),
    }


def _figures(job: AllReduce, timing: RunTimes) -> dict[str, Any]:
    algbw_Bps, busbw_Bps = bandwidths(job, timing.median_s)
    return {
        "median_s": timing.median_s,
        "algbw_Bps": algbw_Bps,
        "busbw_Bps": busbw_Bps,
        "n_wrong": timing.n_wrong,
        "makespan_s": [run.makespan_s for run in timing.runs],
    }


def _require_memory(n_workers: int, message_bytes: int) -> None:
    # A worker holds its data, its sum and a chunk, and for the check two buffers more.
    wanted = n_workers * (5 * message_bytes + WORKER_BYTES) + 2 * message_bytes
    available = available_bytes()
    if wanted > available:
        message = f"{n_workers} workers take about {format_bytes(wanted)} of memory"
        value, right = f"{format_bytes(available)} free", "smaller --sizes, or fewer --workers"
        raise InputError(Fault(message, "--sizes", value=value, right=right))
