"""The processes of a measurement: started, spoken to, and ended together, whatever happens to one of them."""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from ringnet.array_types import Array
from ringnet.errors import InputError, WorkerError
from ringnet.measure.allreduce import AllReduce, WrongElements, expected_sum
from ringnet.measure.results import MeasuredRow, Repetitions, RunTimes, TimedRun

Message = dict[str, Any]

WORKER = (sys.executable, "-m", "ringnet.measure.worker")
#: After the first fault, for how long the others may say what they saw.
_GRACE_S = 1.0
#: A worker that is silent for so long, while no neighbour complains, is given up: it may be making data.
_SILENCE_S = 60.0
#: One that somebody has stopped (SIGSTOP, or Ctrl-Z) is given up sooner: it makes nothing.
_STOPPED_S, _LOOK_S = 5.0, 1.0
#: From the request to run to the common start: time for the request to reach every worker.
_LEAD_NS = 2_000_000
_LEAD_NS_PER_WORKER = 200_000


@dataclass(frozen=True)
class Endpoint:
    """Where a worker runs.

    Parameters
    ----------
    host : str
        Address at which it listens for its left-hand neighbour.
    port : int
        Port there; 0 lets the system choose.
    prefix : tuple of str
        Command before its own: what puts it into another network namespace.
    """

    host: str = "127.0.0.1"
    port: int = 0
    prefix: tuple[str, ...] = ()


@dataclass
class _Process:
    """One process and what it has said."""

    rank: int
    process: subprocess.Popen[bytes]
    answers: list[Message] = field(default_factory=list)
    text: bytes = b""

    def __str__(self) -> str:
        return f"worker {self.rank} (process {self.process.pid})"

    @property
    def inbox(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdin)

    @property
    def outbox(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdout)

    def ask(self, request: Message) -> None:
        self.answers.clear()
        with suppress(BrokenPipeError):  # its end is noticed where its answer is awaited
            self.inbox.write(json.dumps(request).encode() + b"\n")

    def wait(self) -> None:
        self.process.wait()
        self.inbox.close()
        self.outbox.close()

    def read(self) -> None:
        got = os.read(self.outbox.fileno(), 65536)
        if not got:
            self.process.wait()
        *lines, self.text = (self.text + got).split(b"\n")
        self.answers += map(json.loads, lines)

    def is_stopped(self) -> bool:
        """Whether somebody has stopped it, where the system tells."""
        try:
            state = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        return state.rpartition(")")[2].split()[:1] in (["T"], ["t"])

    def silence(self) -> str:
        """Say that it does not answer, and why, if that is known."""
        return "is stopped (SIGSTOP)" if self.is_stopped() else "does not answer"

    def ended(self) -> str | None:
        """How it ended, if it did."""
        code = self.process.returncode
        if code is None:
            return None
        return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"


class WorkerProcesses:
    """Worker processes that form a ring, for as long as the ``with`` block lasts.

    Parameters
    ----------
    endpoints : sequence of Endpoint
        One for each worker.
    command : tuple of str
        What each process runs, given its number, the number of workers and a file descriptor; see
        `ringnet.measure.worker`.

    Raises
    ------
    InputError
        If a worker cannot have its port.
    WorkerError
        If a worker ended or fell silent; it names the worker. The others are ended.
    """

    def __init__(self, endpoints: Sequence[Endpoint], command: tuple[str, ...] = WORKER) -> None:
        self.endpoints, self.command = endpoints, command
        self._members: list[_Process] = []
        self._expected = tempfile.TemporaryFile()  # noqa: SIM115 -- has no name, so that nothing can be left behind

    def __enter__(self) -> Self:
        try:
            for rank, endpoint in enumerate(self.endpoints):
                self._members.append(_Process(rank, self._start(rank, endpoint)))
            self._join()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Process of each worker."""
        return [member.process.pid for member in self._members]

    def close(self) -> None:
        """End all workers and wait for their end. They hold nothing that would have to be saved."""
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.wait()
        self._expected.close()

    def expect(self, result: Array) -> None:
        """Lay down what the sum of the next job should be."""
        self._expected.seek(0)
        self._expected.write(result.tobytes())
        self._expected.flush()

    def ask(self, do: str, **request: object) -> list[Message]:
        """Ask all workers the same, and return the answer of each."""
        return self.ask_each([{"do": do, **request}] * len(self._members))

    def ask_each(self, requests: Iterable[Message]) -> list[Message]:
        """Ask each worker something, and return the answer of each.

        Raises
        ------
        InputError, WorkerError
            As the class says.
        """
        for member, request in zip(self._members, requests, strict=True):
            member.ask(request)
        self._listen(_SILENCE_S)
        if any(_failed(member) for member in self._members):
            self._listen(_GRACE_S, until_fault=False)
            raise self._blame()
        return [member.answers[0] for member in self._members]

    def _start(self, rank: int, endpoint: Endpoint) -> subprocess.Popen[bytes]:
        expected = self._expected.fileno()
        numbers = map(str, (rank, len(self.endpoints), expected))
        command = [*endpoint.prefix, *self.command, *numbers]
        return subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(expected,))

    def _join(self) -> None:
        endpoints = [{"do": "listen", "host": endpoint.host, "port": endpoint.port} for endpoint in self.endpoints]
        addresses = [answer["address"] for answer in self.ask_each(endpoints)]
        word = secrets.token_hex(16)
        if len(endpoints) > 1:
            rights = [*addresses[1:], addresses[0]]
            self.ask_each({"do": "join", "address": address, "word": word} for address in rights)

    def _listen(self, patience_s: float, *, until_fault: bool = True) -> None:
        """Read until all have answered or ended, or one of them failed, or none says a word for long."""
        now_s = time.monotonic()
        deadline_s, moved_s = now_s + patience_s, now_s
        while waiting := [member for member in self._members if not member.answers and not member.ended()]:
            left_s = deadline_s - time.monotonic()
            outputs = {member.outbox: member for member in waiting}
            ready, _, _ = select.select(outputs, [], [], max(0.0, min(left_s, _LOOK_S)))
            for output in ready:
                outputs[output].read()
            now_s = time.monotonic()
            moved_s = moved_s if any(member.is_stopped() for member in waiting) else now_s
            is_over = now_s >= deadline_s or now_s - moved_s >= _STOPPED_S
            if (not ready and is_over) or (until_fault and any(_failed(outputs[output]) for output in ready)):
                return

    def _blame(self) -> InputError | WorkerError:
        """Say what went wrong first: a death, or else a silence, explains the complaints of neighbours."""
        members = self._members
        dead = [f"{member} {how}" for member in members if (how := member.ended())]
        faults = [member.answers[0] for member in members if member.answers and "fault" in member.answers[0]]
        silent = [f"{member} {member.silence()}" for member in members if not member.answers]
        refused = dict.fromkeys(fault["fault"] for fault in faults if "input" in fault)
        said = [f"{members[fault['neighbour']]} {fault['fault']}" for fault in faults if "neighbour" in fault]
        if refused and not dead:
            return InputError(*refused)
        return WorkerError(*(dead or silent or said))


def _failed(member: _Process) -> bool:
    return not member.answers or "fault" in member.answers[0]


# Timed runs.


def measure(workers: WorkerProcesses, jobs: Iterable[AllReduce], plan: Repetitions) -> Iterator[MeasuredRow]:
    """Run each job on the workers as the plan says; yield its row when it is finished."""
    for job in jobs:
        workers.expect(expected_sum(job.source()))
        yield MeasuredRow(job, *(_timing(workers, job, plan, in_place) for in_place in (False, True)))


def _timing(workers: WorkerProcesses, job: AllReduce, plan: Repetitions, in_place: bool) -> RunTimes:
    workers.ask("prepare", job=job.document(), in_place=in_place)
    runs = [run_once(workers) for _ in range(plan.warmup + plan.repeat)]
    return RunTimes(tuple(runs[plan.warmup :]))


def run_once(workers: WorkerProcesses) -> TimedRun:
    """Run the prepared job once: all workers start at one instant of the clock that they share."""
    at_ns = time.monotonic_ns() + _LEAD_NS + len(workers.endpoints) * _LEAD_NS_PER_WORKER
    times = workers.ask("run", at_ns=at_ns)
    starts, ends = ([int(worker[key]) for worker in times] for key in ("start_ns", "end_ns"))
    wrong = tuple(WrongElements(**answer["wrong"]) for answer in workers.ask("check"))
    return TimedRun((max(ends) - min(starts)) * 1e-9, (max(starts) - at_ns) * 1e-9, wrong)
