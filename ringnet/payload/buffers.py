"""The numbers that move: each worker's chunks, handed on by reference and frozen once they were sent."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.payload.blocks import EVERYONE, LARGE, Block, Layout, contributions, parallel, prepare
from ringnet.payload.dtypes import DType
from ringnet.payload.reductions import Reduction
from ringnet.payload.sources import Source

#: Memory of one small array beside its elements: the object, its place in a list, what the allocator adds.
ARRAY_BYTES = 144


class SwitchSums(NamedTuple):
    """Switches that reduce, numbered after the workers; each starts with nothing, and takes what comes first as it is.

    ``dtype`` is the type of their sums until they are sent on, rounded; None for that of the elements.
    """

    n_switches: int = 0
    dtype: DType | None = None


#: Of a schedule in which workers alone reduce.
NO_SWITCHES = SwitchSums()


class Payload:
    """Every worker's chunks, each an array of its own.

    A chunk is frozen when it is first sent and never changes again; a reduce into a chunk that was never sent
    works in place, into a frozen one it makes a new array. So a chunk in flight cannot change under way, a
    copy costs nothing, and a finished all-reduce shares one array per chunk among all workers.

    Parameters
    ----------
    source : Source
        The data of every worker.
    reduction : Reduction
        How contributions are combined, and scaled before.
    n_workers : int
    chunk_sizes : ndarray of int64, shape (n_chunks,)
        Elements of each chunk; they add up to ``source.n_elements``, or in an all-to-all to those of all workers.
    holders : ndarray of int64, shape (n_chunks,)
        Which worker has the chunk at the start (and has it as it is in the source); -1 where every worker
        contributes.
    carry : int, optional
        Carry only the first ``carry`` elements of each chunk.
    switches : SwitchSums
        Switches that hold sums, too.
    """

    def __init__(
        self,
        source: Source,
        reduction: Reduction,
        n_workers: int,
        chunk_sizes: IntArray,
        holders: IntArray,
        carry: int | None = None,
        *,
        switches: SwitchSums = NO_SWITCHES,
    ) -> None:
        self.layout = Layout.of(n_workers, chunk_sizes, holders, carry, source.n_elements)
        self.dtype, self._sum_dtype = source.dtype, switches.dtype or source.dtype
        self._ufunc = reduction.ufunc
        self._quietly = quiet_context().run
        self._rows: list[list[Array | None]] = [
            [None] * len(self.layout.sizes) for _ in range(n_workers + switches.n_switches)
        ]
        self._make(source, reduction)

    def send(self, worker: int, chunk: int) -> Array:
        """Freeze what ``worker``, or a switch, holds of ``chunk`` and return a reference to it."""
        array = self._rows[worker][chunk]
        if array is None:
            raise LookupError(f"worker {worker} holds nothing of chunk {chunk}, so it cannot send it")
        if array.dtype != self.dtype:
            array = self._rows[worker][chunk] = self._quietly(array.astype, self.dtype)
        array.flags.writeable = False
        return array

    def reduce(self, worker: int, chunk: int, incoming: Array) -> None:
        """Combine what ``worker``, or a switch, holds of ``chunk`` with what came in."""
        row = self._rows[worker]
        own = row[chunk]
        if worker >= self.layout.n_workers:
            incoming = incoming.astype(self._sum_dtype, copy=False)
            if own is None:
                row[chunk] = incoming
                return
            own = own.astype(self._sum_dtype, copy=False)
        if own is None:
            raise LookupError(f"worker {worker} holds nothing of chunk {chunk}, so it cannot reduce into it")
        out = own if own.flags.writeable else None
        row[chunk] = self._quietly(self._ufunc, own, incoming, out=out)

    def copy(self, worker: int, chunk: int, incoming: Array) -> None:
        """Replace what ``worker`` holds of ``chunk`` by what came in."""
        self._rows[worker][chunk] = incoming

    def held(self, worker: int, chunk: int) -> Array | None:
        """Return what ``worker`` holds of ``chunk``; None if it never had any."""
        return self._rows[worker][chunk]

    def distinct(self, chunk: int, workers: Sequence[int]) -> list[tuple[list[int], Array | None]]:
        """Return what ``workers`` hold of ``chunk``, each array once, with the workers that share it."""
        arrays = [self._rows[worker][chunk] for worker in workers]
        if len(set(map(id, arrays))) == 1:
            return [(list(workers), arrays[0])]
        found: dict[int, tuple[list[int], Array | None]] = {}
        for worker, array in zip(workers, arrays, strict=True):
            found.setdefault(id(array), ([], array))[0].append(worker)
        return list(found.values())

    def _make(self, source: Source, reduction: Reduction) -> None:
        layout, itemsize = self.layout, self.dtype.itemsize
        for chunk in np.flatnonzero((layout.sizes == 0) | (layout.sizes >= LARGE)).tolist():
            for worker in self._starters(chunk):
                # Untouched until its blocks are written: the first write is what takes the memory.
                self._rows[worker][chunk] = np.empty(layout.sizes[chunk], self.dtype)
        parallel(lambda block: self._make_large(source, reduction, block), layout.large_blocks(itemsize))
        parallel(lambda block: self._make_small(source, reduction, block), layout.small_blocks(itemsize))

    def _starters(self, chunk: int) -> Sequence[int]:
        holder = int(self.layout.holders[chunk])
        return range(self.layout.n_workers) if holder == EVERYONE else [holder]

    def _make_large(self, source: Source, reduction: Reduction, block: Block) -> None:
        chunk, part = int(block.chunks[0]), slice(block.start, block.start + block.width)
        workers = self._starters(chunk)
        outs = [array[part] for worker in workers if (array := self._rows[worker][chunk]) is not None]
        source.fill(self.layout.elements(block), workers, outs)
        if block.everyone:
            prepare(reduction, outs)

    def _make_small(self, source: Source, reduction: Reduction, block: Block) -> None:
        values = contributions(source, self.layout, block)
        if block.everyone:
            prepare(reduction, values)
        for position, chunk in enumerate(block.chunks.tolist()):
            columns = values[:, position * block.width : (position + 1) * block.width]
            for worker, column in zip(self._starters(chunk), columns, strict=True):
                # A copy, so that no chunk keeps the memory of the others alive.
                self._rows[worker][chunk] = column.copy()


class PackedPayload:
    """The same data for an engine that steps whole arrays: all chunks of all workers in one.

    Meant for the first few elements of each chunk; a step moves them by one gather and one scatter, and a
    chunk that is one element shorter than the others is carried with one more element, which means nothing.

    Parameters
    ----------
    source, reduction, n_workers, chunk_sizes, holders, carry
        As for `Payload`.

    Attributes
    ----------
    buffer : ndarray of shape (n_workers, n_chunks, largest carried size)
    """

    def __init__(
        self,
        source: Source,
        reduction: Reduction,
        n_workers: int,
        chunk_sizes: IntArray,
        holders: IntArray,
        carry: int | None = None,
    ) -> None:
        self.layout = Layout.of(n_workers, chunk_sizes, holders, carry, source.n_elements)
        self.dtype = source.dtype
        self._ufunc = reduction.ufunc
        self._quietly = quiet_context().run
        width = int(self.layout.sizes.max(initial=0))
        self.buffer = np.zeros((n_workers, len(self.layout.sizes), width), self.dtype)
        self._flat = self.buffer.reshape(n_workers * len(self.layout.sizes), width)
        parallel(
            lambda block: self._make(source, reduction, block),
            [
                *self.layout.large_blocks(self.dtype.itemsize),
                *self.layout.small_blocks(self.dtype.itemsize, group_bytes=4 << 20),
            ],
        )

    def step(self, op: str, src: IntArray, dst: IntArray, chunk: IntArray) -> None:
        """Do one whole step at once: row k says that ``src[k]`` sends ``chunk[k]`` to ``dst[k]``.

        Parameters
        ----------
        op : {"reduce", "copy"}
        src, dst, chunk : ndarray of int64, shape (n_transfers,)
            Columns of the step. What one worker receives is applied in order of the senders.
        """
        self._quietly(self._step, op, src, dst, chunk)

    def _step(self, op: str, src: IntArray, dst: IntArray, chunk: IntArray) -> None:
        rows, n_chunks = self._flat, self.buffer.shape[1]
        taken = dst * n_chunks + chunk
        moved = rows.take(src * n_chunks + chunk, axis=0)  # all of it, as it was before the step
        once = np.bincount(dst).max(initial=0) <= 1
        for batch in (slice(None),) if once else conflict_free_batches(src, taken):
            into, incoming = taken[batch], moved[batch]
            rows[into] = incoming if op == "copy" else self._combined(into, incoming)

    def _combined(self, into: IntArray, incoming: Array) -> Array:
        own = self._flat.take(into, axis=0)
        combined: Array = self._ufunc(own, incoming, out=own)
        return combined

    def held(self, worker: int, chunk: int) -> Array | None:
        """Return what ``worker`` holds of ``chunk``: zeros if it never had any."""
        held: Array = self.buffer[worker, chunk, : self.layout.sizes[chunk]]
        return held

    def distinct(self, chunk: int, workers: Sequence[int]) -> list[tuple[list[int], Array | None]]:
        """Return what ``workers`` hold of ``chunk``: all of it at once, shape (len(workers), size)."""
        everyone = len(workers) == self.layout.n_workers
        rows = self.buffer[:, chunk] if everyone else self.buffer[list(workers), chunk]
        return [(list(workers), rows[:, : self.layout.sizes[chunk]])]

    def _make(self, source: Source, reduction: Reduction, block: Block) -> None:
        values = contributions(source, self.layout, block)
        part = slice(block.start, block.start + block.width)
        if block.everyone:
            prepare(reduction, values)
            shape = (self.layout.n_workers, len(block.chunks), block.width)
            self.buffer[:, block.chunks, part] = values.reshape(shape)
        else:
            holders = self.layout.holders[block.chunks]
            self.buffer[holders, block.chunks, part] = values.reshape(-1, block.width)


def conflict_free_batches(src: IntArray, cell: IntArray) -> list[IntArray]:
    """Split the rows of a step into batches, so that no cell is reached twice within one.

    Parameters
    ----------
    src : ndarray of int64, shape (n,)
        Who sends each row; of the rows of one cell, the lower sender's comes in an earlier batch.
    cell : ndarray of int64, shape (n,)
        Which cell each row reaches, by number.

    Returns
    -------
    list of ndarray of int64
        Rows of each batch, which are applied one after the other.

    Examples
    --------
    >>> [batch.tolist() for batch in conflict_free_batches(np.array([3, 0, 1]), np.array([5, 7, 5]))]
    [[2, 1], [0]]
    """
    order = np.lexsort((src, cell))
    ranked = cell[order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
    by_rank = order[np.argsort(rank, kind="stable")]
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def quiet_context() -> contextvars.Context:
    """Return a context in which NumPy says nothing of overflow and NaN: verification does, with the place.

    Running in a ready context costs nothing, where `numpy.errstate` would cost more than a small addition.
    """
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context


def payload_bytes(
    n_workers: int,
    chunk_sizes: IntArray,
    holders: IntArray,
    dtype: DType,
    carry: int | None = None,
    *,
    packed: bool = False,
    n_switches: int = 0,
) -> int:
    """Estimate the memory of a payload, before it is made.

    Parameters
    ----------
    n_workers : int
    chunk_sizes, holders : ndarray of int64, shape (n_chunks,)
        As for `Payload`.
    dtype : numpy.dtype
        Of the elements.
    carry : int, optional
        How many elements of each chunk are carried; all of them if left out.
    packed : bool
        Whether it is a `PackedPayload`.
    n_switches : int
        Switches that may hold a sum of every chunk.

    Returns
    -------
    int
        Bytes of the elements, and of the arrays that hold them, at their most.

    Examples
    --------
    >>> payload_bytes(8, np.full(8, 2**23), np.full(8, -1), np.dtype("float32")) / 2**30
    2.000009059906006
    """
    layout = Layout.of(n_workers, chunk_sizes, holders, carry)
    if packed:
        return n_workers * len(layout.sizes) * int(layout.sizes.max(initial=0)) * dtype.itemsize
    starters = np.where(layout.holders == EVERYONE, n_workers, 1)
    arrays = starters + n_switches
    elements, n_rows = int((arrays * layout.sizes).sum()), (n_workers + n_switches) * len(layout.sizes)
    return elements * dtype.itemsize + int(arrays.sum()) * ARRAY_BYTES + n_rows * 8


def payload_text(carry: int | None, *, carried: bool = True) -> str:
    """Say what was carried, as the tables do.

    >>> payload_text(None), payload_text(16), payload_text(None, carried=False)
    ('full', 'first 16 elements', 'none')
    """
    if not carried:
        return "none"
    return "full" if carry is None else f"first {carry} element{'s' if carry != 1 else ''}"
