"""A worker of the testbed: that of ``ringnet measure`` with a longer cable, which also times a single link.

The cable is a delay line in the sending process, since not every kernel has one (netem): what a worker posts
leaves it a fixed time later, in order, while the worker goes on. It may be one that loses packets, too.
"""

from __future__ import annotations

import heapq
import os
import socket
import struct
import sys
import time
from collections import defaultdict
from contextlib import suppress
from fcntl import ioctl
from functools import partial
from queue import Empty, SimpleQueue
from termios import TIOCOUTQ
from threading import Thread

import numpy as np

from ringnet.measure.neighbours import PATIENCE_S, NeighbourError, TcpNeighbours, bytes_of, framed
from ringnet.measure.worker import RingMember, serve, sleep_until

#: What a packet carries, and what is before it: the tag of its transfer, and its place in it.
PACKET_BYTES, PACKET_HEADER = 8192, struct.Struct("<qq")
#: So little waits for the link that a sender is not far ahead of it; and what may wait for the receiver to read it.
SENDING_BYTES, RECEIVING_BYTES = 64 * 1024, 16 * 1024 * 1024
#: Of Linux; Python has no name for it.
SO_RCVBUFFORCE = 33


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

    def close(self):
        for connection in (self._from_left, self._to_right):
            with suppress(OSError):  # what a process sends to one that has died
                connection.shutdown(socket.SHUT_RDWR)
        super().close()

    def _send_late(self):
        while True:
            at_ns, tag, outgoing = self.line.get()
            sleep_until(at_ns)
            *headers, last = framed(tag, outgoing)
            try:
                for header in headers:
                    self._to_right.sendall(header, socket.MSG_MORE)
                self._to_right.sendall(last)
            except OSError:  # the neighbour is gone: whoever waits for its own will hear of it
                pass
            self.left_line.put(tag)


class LossyNeighbours(DistantNeighbours):
    """Neighbours whose transfers go in datagrams, of which the receiver loses some; it answers each that it has.

    What was not answered ``timeout_ns`` after the last datagram that was sent with it had left is sent again.
    """

    def __init__(self, delay_ns, probability, timeout_ns, seed, *args):
        self.probability, self.timeout_ns = probability, timeout_ns
        self.luck = np.random.default_rng(seed)
        #: The tag of the first transfer of a run: no two runs have the same.
        self.first = 0
        self.came, self.answered = defaultdict(dict), defaultdict(set)
        self.buffer = bytearray(PACKET_HEADER.size + PACKET_BYTES)
        (_, from_left), (_, to_right) = args[:2]
        self.out, self.into = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        for one in (self.out, self.into):
            one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVING_BYTES)
        self.out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENDING_BYTES)
        self.into.bind(from_left.getsockname())
        self.into.settimeout(PATIENCE_S)
        self.out.connect(to_right.getpeername())
        super().__init__(delay_ns, *args)

    def post(self, tag, outgoing):
        super().post(self.first + tag, outgoing)

    def take(self, tag, incoming):
        data = bytes_of(incoming)
        came, n_packets = self.came[self.first + tag], -(-len(data) // PACKET_BYTES)
        while len(came) < n_packets:
            self._datagram()
        for place, packet in came.items():
            data[place * PACKET_BYTES : place * PACKET_BYTES + len(packet)] = packet

    def _datagram(self):
        try:
            n_bytes, sender = self.into.recvfrom_into(self.buffer)
        except TimeoutError as error:
            raise NeighbourError(self.left, f"sends nothing for {PATIENCE_S:g} s") from error
        if self.luck.random() < self.probability:
            return
        header = self.buffer[: PACKET_HEADER.size]
        tag, place = PACKET_HEADER.unpack(header)
        self.came[tag][place] = self.buffer[PACKET_HEADER.size : n_bytes]
        self.into.sendto(header, sender)

    def _send_late(self):
        due = []  # what is to be sent, or again, and when
        while True:
            patience_s = (due[0][0] - time.monotonic_ns()) * 1e-9 if due else None
            with suppress(Empty):
                if patience_s is None or patience_s > 0:
                    at_ns, tag, outgoing = self.line.get(timeout=patience_s)
                    heapq.heappush(due, (at_ns, tag, False, bytes_of(outgoing)))
            if not due or due[0][0] > time.monotonic_ns():
                continue
            _, tag, again, data = heapq.heappop(due)
            if self._send(tag, data):
                heapq.heappush(due, (time.monotonic_ns() + self.timeout_ns, tag, True, data))
            if not again:
                self.left_line.put(tag)

    def _send(self, tag, data):
        """Send what was not answered; return whether there was any, once it has left."""
        with suppress(BlockingIOError):
            while True:
                self._note(self.out.recv(PACKET_HEADER.size, socket.MSG_DONTWAIT))
        left = [place for place in range(-(-len(data) // PACKET_BYTES)) if place not in self.answered[tag]]
        for place in left:
            packet = data[place * PACKET_BYTES : (place + 1) * PACKET_BYTES]
            self.out.sendmsg([PACKET_HEADER.pack(tag, place), packet])
        waiting = bytearray(4)
        while left and not ioctl(self.out, TIOCOUTQ, waiting) and any(waiting):
            time.sleep(1e-4)
        return bool(left)

    def _note(self, answer):
        tag, place = PACKET_HEADER.unpack(answer)
        self.answered[tag].add(place)


class TestbedWorker(RingMember):
    """Takes the length of its cable first, in nanoseconds; then, of one that loses packets, the rest."""

    def __init__(self, delay_ns, *numbers):
        super().__init__(*numbers)
        self.delay_ns = delay_ns
        self.make_neighbours = partial(DistantNeighbours, delay_ns)
        with suppress(OSError):  # what else runs on the machine shall not be measured
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    def do_lose(self, probability, timeout_ns, seed):
        """Lose packets, once the neighbours have been joined anew."""
        self.make_neighbours = partial(LossyNeighbours, self.delay_ns, probability, timeout_ns, seed + self.rank)
        return {}

    def do_survive(self, rank, n_workers):
        """Be another one of fewer workers."""
        self.rank, self.n_workers = rank, n_workers
        return {}

    def do_run(self, at_ns):
        """Run; a worker whose neighbour is gone hangs up, too, so that all hear of it."""
        try:
            return super().do_run(at_ns)
        except NeighbourError:
            self.neighbours.close()
            raise

    def do_check(self):
        if isinstance(self.neighbours, LossyNeighbours):
            self.neighbours.first += 1000
        return super().do_check()

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
