"""A worker of the testbed: that of ``ringnet measure`` with a longer cable, which also times a single link.

The cable is a delay line in the sending process, since not every kernel has one (netem): what a worker posts
leaves it a fixed time later, in order, while the worker goes on.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread

import numpy as np

from ringnet.measure.neighbours import TcpNeighbours, framed
from ringnet.measure.worker import RingMember, serve, sleep_until


class DistantNeighbours(TcpNeighbours):
    """Neighbours whose transfers leave ``delay_ns`` after they were posted."""

    def __init__(self, delay_ns, *args):
        super().__init__(*args)
        self.delay_ns = delay_ns
        self.line, self.left_line = SimpleQueue(), SimpleQueue()
        self.n_posted = 0
        self._to_right.setblocking(True)
        Thread(target=self._send_late, daemon=True).start()

    def post(self, tag, outgoing):
        self.line.put((time.monotonic_ns() + self.delay_ns, tag, outgoing))
        self.n_posted += 1

    def flush(self):
        for _ in range(self.n_posted):
            self.left_line.get()
        self.n_posted = 0

    def _send_late(self):
        while True:
            at_ns, tag, outgoing = self.line.get()
            sleep_until(at_ns)
            *headers, last = framed(tag, outgoing)
            for header in headers:
                self._to_right.sendall(header, socket.MSG_MORE)
            self._to_right.sendall(last)
            self.left_line.put(tag)


class TestbedWorker(RingMember):
    """Takes the length of its cable first: nanoseconds."""

    def __init__(self, delay_ns, *numbers):
        super().__init__(*numbers)
        self.make_neighbours = partial(DistantNeighbours, delay_ns)
        with suppress(OSError):  # what else runs on the machine shall not be measured
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    def do_ping_pong(self, n_bytes, n_times):
        """Send ``n_bytes`` to the right, wait for them to come back; return half of each round trip."""
        there, back = np.zeros(n_bytes, np.uint8), np.empty(n_bytes, np.uint8)
        halves_ns = []
        for tag in range(n_times):
            start_ns = time.monotonic_ns()
            if self.rank == 0:
                self.neighbours.post(tag, there)
                self.neighbours.take(tag, back)
            else:
                self.neighbours.take(tag, back)
                self.neighbours.post(tag, there)
            self.neighbours.flush()
            halves_ns.append((time.monotonic_ns() - start_ns) // 2)
        return {"halves_ns": halves_ns}


if __name__ == "__main__":
    serve(TestbedWorker(*map(int, sys.argv[1:])))
