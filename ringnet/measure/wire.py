"""The two neighbours of a worker as it sees them, whatever carries the bytes."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ringnet.payload.dtypes import Array

#: Without a byte from a neighbour for so long, a worker gives it up.
PATIENCE_S = 8.0


class WireError(Exception):
    """A neighbour that is gone, silent, or says what it should not: its number, and what it did."""

    def __init__(self, neighbour: int, what: str) -> None:
        super().__init__(neighbour, what)
        self.neighbour, self.what = neighbour, what

    def __str__(self) -> str:
        return f"worker {self.neighbour} {self.what}"


class Wire(Protocol):
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


class Alone:
    """The wire of a worker without neighbours: nothing is ever sent."""

    def post(self, tag: int, outgoing: Array) -> None:
        """Never called: a ring of one has no steps."""

    def take(self, tag: int, incoming: Array) -> None:
        """Never called: a ring of one has no steps."""

    def flush(self) -> None:
        """Nothing was posted."""
