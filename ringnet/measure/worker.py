"""One worker process, ``python -m ringnet.measure.worker``: it obeys its parent process and ends with it.

Both speak in lines of JSON, the parent on standard input, the worker on standard output, one answer to each
request:

====================================  ===============================================================
request                               answer
====================================  ===============================================================
``{"do": "listen", "host", "port"}``  ``{"address": [host, port]}``
``{"do": "join", "address", ...}``    ``{}``, once both neighbours are connected
``{"do": "prepare", "job", ...}``     ``{}``, once the data is made
``{"do": "run", "at_ns"}``            ``{"start_ns", "end_ns"}`` on the clock of this machine
``{"do": "check"}``                   ``{"wrong"}``, compared with the bytes in the parent's file
====================================  ===============================================================

An answer ``{"fault", "neighbour", "input"}`` ends it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ringnet.errors import RingnetError
from ringnet.measure.allreduce import AllReduce, WorkerTask
from ringnet.measure.neighbours import (
    NeighbourError,
    Neighbours,
    NoNeighbours,
    StoppedError,
    TcpNeighbours,
    accept,
    connect,
    listen,
)

Message = dict[str, Any]

_CONTROL = 0  # standard input


class RingMember:
    """A worker and all that it holds.

    Parameters
    ----------
    rank, n_workers : int
    expected : int
        File descriptor of the file into which the parent writes what the sum should be.
    """

    #: What the two connections become.
    make_neighbours: Callable[..., Neighbours] = TcpNeighbours

    def __init__(self, rank: int, n_workers: int, expected: int) -> None:
        self.rank, self.n_workers, self._expected = rank, n_workers, expected
        self.neighbours: Neighbours = NoNeighbours()
        self._work: WorkerTask | None = None
        self._listener: socket.socket | None = None

    @property
    def work(self) -> WorkerTask:
        """The job in hand."""
        if self._work is None:
            raise RuntimeError("no job was prepared")
        return self._work

    def answer(self, request: Message) -> Message:
        """Do what is asked, and return what came of it."""
        act: Callable[..., Message] = getattr(self, f"do_{request.pop('do')}")
        return act(**request)

    def do_listen(self, host: str, port: int) -> Message:
        """Open the port for the left-hand neighbour."""
        self._listener = listen(host, port)
        return {"address": self._listener.getsockname()[:2]}

    def do_join(self, address: tuple[str, int], word: str) -> Message:
        """Connect to the right-hand neighbour, and let the left-hand one in."""
        if self._listener is None:
            raise RuntimeError("the worker does not listen yet")
        left, right = ((self.rank + way) % self.n_workers for way in (-1, 1))
        secret = bytes.fromhex(word)
        to_right = connect((address[0], address[1]), right, self.rank, secret)
        from_left = accept(self._listener, left, secret, time.monotonic)
        self._listener.close()
        self.neighbours = self.make_neighbours((left, from_left), (right, to_right), _CONTROL)
        return {}

    def do_prepare(self, job: Message, in_place: bool) -> Message:
        """Make the data of a job."""
        self._work = WorkerTask(AllReduce(**job), self.rank, in_place=in_place)
        self._work.prepare()
        return {}

    def do_run(self, at_ns: int) -> Message:
        """Run the job once, from ``at_ns`` on."""
        sleep_until(at_ns)
        start_ns, end_ns = self.work.run(self.neighbours)
        return {"start_ns": start_ns, "end_ns": end_ns}

    def do_check(self) -> Message:
        """Compare the sum with what it should be, and make ready for the next run."""
        result = self.work.result
        expected = np.frombuffer(os.pread(self._expected, result.nbytes, 0), result.dtype)
        wrong = self.work.wrong(expected)
        self.work.prepare()
        return {"wrong": asdict(wrong)}


def sleep_until(at_ns: int) -> None:
    """Sleep until the clock that all processes of a machine share says ``at_ns``."""
    if (rest_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(rest_ns * 1e-9)


def serve(worker: RingMember) -> None:
    """Answer one request after another until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, and it is for the parent to act
    try:
        for request in _requests():
            _say(_answer(worker, request))
    except (StoppedError, BrokenPipeError):
        os._exit(1)  # nobody is there to be told


def _requests() -> Iterator[Message]:
    # Read byte by byte from the descriptor: what a buffer had taken, a poll would not see.
    line = b""
    while got := os.read(_CONTROL, 65536):
        line += got
        if line.endswith(b"\n"):
            yield json.loads(line)
            line = b""


def _say(answer: Message) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _answer(worker: RingMember, request: Message) -> Message:
    try:
        return worker.answer(request)
    except NeighbourError as error:
        return {"fault": error.what, "neighbour": error.neighbour}
    except (RingnetError, OSError, MemoryError) as error:
        return {"fault": str(error) or type(error).__name__, "input": True}


if __name__ == "__main__":
    serve(RingMember(*map(int, sys.argv[1:])))
