"""The two neighbours of a worker in a ring: what it may ask of them, and neighbours over TCP.

Over TCP, what the system does not take at once is sent while receiving.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from ringnet.array_types import Array
from ringnet.errors import Fault, InputError

#: Without a byte from a neighbour for so long, a worker gives it up.
PATIENCE_S = 8.0
Address = tuple[str, int]

#: Before each transfer: its tag and its bytes. It makes an empty transfer a real one, and a slip visible.
_HEADER = struct.Struct("<qq")
#: Before the first transfer: who is calling. The word keeps out whoever else finds the port.
_HELLO = struct.Struct("<16sq")
#: The receiver sleeps until so many bytes are there: one wake-up for many packets.
_WAKE_BYTES = 128 * 1024


class NeighbourError(Exception):
    """A neighbour that is gone, silent, or says what it should not: its number, and what it did."""

    def __init__(self, neighbour: int, what: str) -> None:
        super().__init__(neighbour, what)
        self.neighbour, self.what = neighbour, what

    def __str__(self) -> str:
        return f"worker {self.neighbour} {self.what}"


class Neighbours(Protocol):
    """A connection to the right-hand neighbour to send, and one from the left-hand neighbour to receive."""

    def post(self, tag: int, outgoing: Array) -> None:
        """Send an array to the right and go on at once; it must not change before it has arrived."""

    def take(self, tag: int, incoming: Array) -> None:
        """Wait for what the left-hand neighbour posted as ``tag``, and put it into ``incoming``."""

    def flush(self) -> None:
        """Wait until all that was posted has left this process."""


def bytes_of(array: Array) -> memoryview:
    """Return the memory of a contiguous array, byte by byte; also where its dtype is unknown to buffers.

    >>> bytes_of(np.array([1, 2], np.int16)).nbytes
    4
    """
    return array.view(np.uint8).data


class NoNeighbours:
    """What a worker without neighbours has: nothing is ever sent."""

    def post(self, tag: int, outgoing: Array) -> None:
        """Never called: a ring of one has no steps."""

    def take(self, tag: int, incoming: Array) -> None:
        """Never called: a ring of one has no steps."""

    def flush(self) -> None:
        """Nothing was posted."""


# Neighbours over TCP.


class StoppedError(Exception):
    """The process that started this worker wants it to end, or has ended itself."""


class TcpNeighbours:
    """Neighbours in a ring over TCP.

    Parameters
    ----------
    left, right : tuple of (int, socket.socket)
        Number of the neighbour, and the connection from or to it.
    control : int
        File descriptor on which the parent process speaks: anything on it during a transfer, its end above
        all, stops the worker (`StoppedError`).
    patience_s : float
        A neighbour that moves no byte for so long is given up (`NeighbourError`).
    """

    def __init__(
        self,
        left: tuple[int, socket.socket],
        right: tuple[int, socket.socket],
        control: int,
        patience_s: float = PATIENCE_S,
    ) -> None:
        (self.left, self._from_left), (self.right, self._to_right) = left, right
        self._patience_ms, self._control = 1000 * patience_s, control
        self._pending: deque[memoryview] = deque()
        self._header = memoryview(bytearray(_HEADER.size))
        self._lowat = 1
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        for connection in (self._from_left, self._to_right):
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, tag: int, outgoing: Array) -> None:
        """Send an array to the right: see `Neighbours.post`."""
        self._pending.extend(framed(tag, outgoing))
        self._push()

    def take(self, tag: int, incoming: Array) -> None:
        """Receive an array from the left: see `Neighbours.take`."""
        data = bytes_of(incoming)
        self._fill(self._header, len(data))
        found = _HEADER.unpack(self._header)
        if found != (tag, len(data)):
            expected = f"transfer {tag} of {len(data)} bytes was due"
            raise NeighbourError(self.left, f"sent transfer {found[0]} of {found[1]} bytes where {expected}")
        self._fill(data, 0)

    def flush(self) -> None:
        """Wait until the system has taken all that was posted."""
        while self._pending:
            self._wait(self._to_right, select.POLLOUT, self.right, "takes nothing")
            self._push()

    def close(self) -> None:
        """Close both connections."""
        self._from_left.close()
        self._to_right.close()

    def _fill(self, buffer: memoryview, more: int) -> None:
        got = 0
        while got < len(buffer):
            got += self._receive(buffer[got:], more)

    def _receive(self, buffer: memoryview, more: int) -> int:
        """Receive what is there; else sleep until the rest of the transfer is, or much of it."""
        try:
            n_bytes = self._from_left.recv_into(buffer)
        except BlockingIOError:
            self._wake_at(min(len(buffer) + more, _WAKE_BYTES))
            self._wait(self._from_left, select.POLLIN, self.left, "sends nothing")
            return 0
        except OSError as error:
            raise NeighbourError(self.left, f"is gone ({error.strerror})") from error
        if not n_bytes:
            raise NeighbourError(self.left, "is gone (it closed its connection)")
        return n_bytes

    def _wake_at(self, n_bytes: int) -> None:
        if n_bytes != self._lowat:
            self._from_left.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n_bytes)
            self._lowat = n_bytes

    def _push(self) -> None:
        try:
            while self._pending:
                self._sent(self._to_right.sendmsg(self._pending))
        except BlockingIOError:
            return
        except OSError as error:
            raise NeighbourError(self.right, f"is gone ({error.strerror})") from error

    def _sent(self, n_bytes: int) -> None:
        pending = self._pending
        while pending and n_bytes >= len(pending[0]):
            n_bytes -= len(pending.popleft())
        if n_bytes:
            pending[0] = pending[0][n_bytes:]

    def _wait(self, connection: socket.socket, event: int, neighbour: int, fault: str) -> None:
        """Sleep until ``event``; meanwhile go on sending, and listen to the parent."""
        while True:
            ready = self._ready(connection, event)
            if not ready:
                raise NeighbourError(neighbour, f"{fault} for {self._patience_ms / 1000:g} s")
            if self._control in ready:
                raise StoppedError
            if self._pending and self._to_right.fileno() in ready:
                self._push()
            if connection.fileno() in ready:
                return

    def _ready(self, connection: socket.socket, event: int) -> dict[int, int]:
        writing = bool(self._pending) and connection is not self._to_right
        self._poll.register(connection, event)
        if writing:
            self._poll.register(self._to_right, select.POLLOUT)
        ready = dict(self._poll.poll(self._patience_ms))
        self._poll.unregister(connection)
        if writing:
            self._poll.unregister(self._to_right)
        return ready


def framed(tag: int, outgoing: Array) -> list[memoryview]:
    """Return what goes over the connection for one transfer: its header, and its bytes if it has any."""
    data = bytes_of(outgoing)
    header = memoryview(_HEADER.pack(tag, len(data)))
    return [header, data] if data else [header]


# Finding each other.


def listen(host: str, port: int) -> socket.socket:
    """Listen for the left-hand neighbour; port 0 lets the system choose one.

    Raises
    ------
    InputError
        If the port is in use, not to be had, or the address not of this machine.
    """
    try:
        return socket.create_server((host, port), backlog=8)
    except OSError as error:
        raise InputError(_no_port(host, port, error)) from error


def _no_port(host: str, port: int, error: OSError) -> Fault:
    if error.errno == errno.EADDRINUSE:
        right = "a --port with as many free after it as there are workers; or none: the system then chooses"
        return Fault("this port is in use", "--port", value=f"{host}:{port}", right=right)
    if error.errno == errno.EACCES:
        return Fault("this port needs more rights", "--port", value=str(port), right="1024 or more")
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return Fault(f"cannot listen here: {reason}", "--host", value=host, right="an address of this machine")


def connect(address: Address, neighbour: int, me: int, word: bytes) -> socket.socket:
    """Connect to the right-hand neighbour and say who calls; `NeighbourError` if nobody answers."""
    try:
        connection = socket.create_connection(address, timeout=PATIENCE_S)
        connection.sendall(_HELLO.pack(word, me))
    except OSError as error:
        raise NeighbourError(neighbour, f"does not answer at {address[0]}:{address[1]} ({error})") from error
    return connection


def accept(listener: socket.socket, neighbour: int, word: bytes, clock: Callable[[], float]) -> socket.socket:
    """Accept the left-hand neighbour, and nobody else; `NeighbourError` if it does not call in time."""
    deadline_s = clock() + PATIENCE_S
    while (left_s := deadline_s - clock()) > 0:
        listener.settimeout(left_s)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            break
        if _says(connection, (word, neighbour)):
            return connection
        connection.close()
    raise NeighbourError(neighbour, f"did not call within {PATIENCE_S:g} s")


def _says(connection: socket.socket, hello: tuple[bytes, int]) -> bool:
    connection.settimeout(1.0)
    try:
        said = connection.recv(_HELLO.size, socket.MSG_WAITALL)
    except OSError:
        return False
    return said == _HELLO.pack(*hello)
