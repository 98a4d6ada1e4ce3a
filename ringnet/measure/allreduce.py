"""The all-reduce of one worker over a wire, on real arrays, and the check of its sum."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ringnet.collectives.rings import ring
from ringnet.measure.moves import Move, cut, moves_of
from ringnet.measure.wire import Wire
from ringnet.payload import REDUCTIONS, RandomSource, dtype_of, message_elements
from ringnet.payload.dtypes import Array, bits_of

_SUM = REDUCTIONS["sum"]


@dataclass(frozen=True)
class Job:
    """One all-reduce: its workers, its size, and the data, which a seed makes as it does in the simulator."""

    n_workers: int
    message_bytes: int
    dtype: str
    seed: int = 0

    def source(self) -> RandomSource:
        """Return the data of every worker."""
        dtype = dtype_of(self.dtype)
        return RandomSource(self.n_workers, message_elements(self.message_bytes, dtype), dtype, self.seed)

    def document(self) -> dict[str, Any]:
        """Return it as JSON can hold it: ``Job(**document)`` is the same job."""
        return asdict(self)


@dataclass(frozen=True)
class Wrong:
    """Elements of a sum that differ from the reference, and the first of them."""

    n_elements: int
    element: int = -1
    got: str = ""
    expected: str = ""


class Work:
    """What one worker needs for a job: its data, room for the sum, and what to do in each step.

    Parameters
    ----------
    job : Job
    worker : int
    in_place : bool
        Whether the sum takes the place of the data, or goes to memory of its own.
    clock : callable
        Nanoseconds on a clock that all workers of one machine share.
    """

    def __init__(
        self, job: Job, worker: int, *, in_place: bool, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        source = job.source()
        self.data: Array = source.read(worker, 0, source.n_elements)
        self.result: Array = np.zeros_like(self.data)
        self.in_place, self._clock = in_place, clock
        self._moves = moves_of(ring(job.n_workers), worker)
        self._data, self._result = cut(self.data, job.n_workers), cut(self.result, job.n_workers)
        self._incoming: Array = np.empty_like(self._data[0])

    def prepare(self) -> None:
        """Put the data where the next run expects it; nothing of the last sum stays."""
        self.result[...] = self.data if self.in_place else 0

    def run(self, wire: Wire) -> tuple[int, int]:
        """Run both phases; return when this worker started and when it held the whole sum, in nanoseconds."""
        held = list(self._result if self.in_place else self._data)
        start_ns = self._clock()
        for tag, move in enumerate(self._moves):
            wire.post(tag, held[move.sends])
            self._apply(tag, move, held, wire)
        self._complete(held)
        end_ns = self._clock()
        wire.flush()
        return start_ns, end_ns

    def _apply(self, tag: int, move: Move, held: list[Array], wire: Wire) -> None:
        # Nothing that was posted changes before it has arrived: a chunk comes back complete only after the
        # neighbour has had it.
        own, target = held[move.receives], self._result[move.receives]
        if move.op == "reduce":
            incoming = self._incoming[: len(target)]
            wire.take(tag, incoming)
            _SUM.combine(own, incoming, out=target)
        else:
            wire.take(tag, target)
        held[move.receives] = target

    def _complete(self, held: list[Array]) -> None:
        """Copy the chunks that no step wrote: those of a worker that is alone."""
        for own, target in zip(held, self._result, strict=True):
            if own is not target:
                target[...] = own

    def wrong(self, expected: Array) -> Wrong:
        """Compare the sum with ``expected``, bit for bit."""
        differs = np.flatnonzero(bits_of(self.result) != bits_of(expected))
        if not len(differs):
            return Wrong(0)
        first = int(differs[0])
        return Wrong(len(differs), first, str(self.result[first]), str(expected[first]))
