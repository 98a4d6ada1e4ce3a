"""A real all-reduce: its data, what one worker does of it over its neighbours, and the sum that should come of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ringnet.array_types import Array
from ringnet.collectives import Schedule
from ringnet.collectives.rings import ring
from ringnet.collectives.schedule import Op, Step, split_sizes
from ringnet.measure.neighbours import Neighbours
from ringnet.payload import REDUCTIONS, RandomSource, Source, dtype_of, message_elements
from ringnet.payload.dtypes import bits_of
from ringnet.reference import reduce_scatter

_SUM = REDUCTIONS["sum"]


@dataclass(frozen=True)
class AllReduce:
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
        """Return it as JSON can hold it: ``AllReduce(**document)`` is the same job."""
        return asdict(self)


class RingStep(NamedTuple):
    """One step of one worker: the chunk that it sends, and the one that it receives to do ``op`` with."""

    op: Op
    sends: int
    receives: int


def ring_steps(schedule: Schedule, worker: int) -> list[RingStep]:
    """Return what ``worker`` does in each step of a ring.

    Examples
    --------
    >>> from ringnet.collectives.rings import ring
    >>> [tuple(step) for step in ring_steps(ring(2), 0)]
    [('reduce', 0, 1), ('copy', 1, 0)]
    """
    return [_step_of(step, worker) for step in schedule.steps()]


def _step_of(step: Step, worker: int) -> RingStep:
    sent, received = step.chunk[step.src == worker], step.chunk[step.dst == worker]
    return RingStep(step.op, int(sent[0]), int(received[0]))


@dataclass(frozen=True)
class WrongElements:
    """Elements of a sum that differ from the reference, and the first of them."""

    n_elements: int
    element: int = -1
    got: str = ""
    expected: str = ""


class WorkerTask:
    """What one worker needs for a job: its data, room for the sum, and what to do in each step.

    Parameters
    ----------
    job : AllReduce
    worker : int
    in_place : bool
        Whether the sum takes the place of the data, or goes to memory of its own.
    clock : callable
        Nanoseconds on a clock that all workers of one machine share.
    """

    def __init__(
        self, job: AllReduce, worker: int, *, in_place: bool, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        source = job.source()
        self.data: Array = source.read(worker, 0, source.n_elements)
        self.result: Array = np.zeros_like(self.data)
        self.in_place, self._clock = in_place, clock
        self._steps = ring_steps(ring(job.n_workers), worker)
        # Cut as the definition does; the chunks are views.
        self._data, self._result = (np.array_split(buffer, job.n_workers) for buffer in (self.data, self.result))
        self._incoming: Array = np.empty_like(self._data[0])

    def prepare(self) -> None:
        """Put the data where the next run expects it; nothing of the last sum stays."""
        self.result[...] = self.data if self.in_place else 0

    def run(self, neighbours: Neighbours) -> tuple[int, int]:
        """Run both phases; return when this worker started and when it held the whole sum, in nanoseconds."""
        held = list(self._result if self.in_place else self._data)
        start_ns = self._clock()
        for tag, step in enumerate(self._steps):
            neighbours.post(tag, held[step.sends])
            self._apply(tag, step, held, neighbours)
        self._complete(held)
        end_ns = self._clock()
        neighbours.flush()
        return start_ns, end_ns

    def _apply(self, tag: int, step: RingStep, held: list[Array], neighbours: Neighbours) -> None:
        # Nothing that was posted changes before it has arrived: a chunk comes back complete only after the
        # neighbour has had it.
        own, target = held[step.receives], self._result[step.receives]
        if step.op == "reduce":
            incoming = self._incoming[: len(target)]
            neighbours.take(tag, incoming)
            _SUM.combine(own, incoming, out=target)
        else:
            neighbours.take(tag, target)
        held[step.receives] = target

    def _complete(self, held: list[Array]) -> None:
        """Copy the chunks that no step wrote: those of a worker that is alone."""
        for own, target in zip(held, self._result, strict=True):
            if own is not target:
                target[...] = own

    def wrong(self, expected: Array) -> WrongElements:
        """Compare the sum with ``expected``, bit for bit."""
        differs = np.flatnonzero(bits_of(self.result) != bits_of(expected))
        if not len(differs):
            return WrongElements(0)
        first = int(differs[0])
        return WrongElements(len(differs), first, str(self.result[first]), str(expected[first]))


#: Elements of all workers' blocks together that are in memory at once.
_BLOCK_ELEMENTS = 1 << 23


def expected_sum(source: Source) -> Array:
    """Return the sum of all workers' data, bit for bit as `ringnet.reference.ring_allreduce` gives it.

    Parameters
    ----------
    source : Source
        Data of N workers.

    Returns
    -------
    ndarray of shape (n_elements,)

    Examples
    --------
    >>> from ringnet.payload import RampSource
    >>> expected_sum(RampSource(3, 4, np.dtype("int32"))).tolist()
    [111, 222, 333, 444]
    """
    n_workers = source.n_workers
    sizes = split_sizes(source.n_elements, n_workers)
    starts = (np.cumsum(sizes) - sizes).tolist()
    result = np.empty(source.n_elements, source.dtype)
    block = max(1, _BLOCK_ELEMENTS // n_workers**2)
    for offset in range(0, int(sizes.max()), block):
        ends = (starts + np.minimum(sizes, offset + block)).tolist()
        blocks = [(start + offset, max(start + offset, end)) for start, end in zip(starts, ends, strict=True)]
        complete = reduce_scatter(
            [[source.read(worker, *block) for block in blocks] for worker in range(source.n_workers)]
        )
        for chunk, (start, stop) in enumerate(blocks):
            result[start:stop] = complete[chunk - 1][chunk]  # worker i holds chunk i+1
    return result
