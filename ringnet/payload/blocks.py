"""The carried elements, cut into blocks: data is made and verified block by block, on a few threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.payload.reductions import Reduction
from ringnet.payload.sources import Source

T = TypeVar("T")
R = TypeVar("R")

#: Stands in ``holders`` for "every worker contributes".
EVERYONE = -1
#: Chunks of at least this many elements are worked on one by one, smaller ones many at once.
LARGE = 8192
#: Bytes, over all workers, of a block of one large chunk: with what is made of it, it stays in the cache of a core;
#: and it is large enough that two threads do not wait for the interpreter's lock.
BLOCK_BYTES = 2 << 20
#: Bytes, over all workers, of a block of many small chunks: it is stepped through the whole schedule.
GROUP_BYTES = 32 << 20
#: NumPy releases the lock in large loops, but little is gained beyond the memory's bandwidth.
THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True)
class Block:
    """Elements ``start`` to ``start + width`` of each of several chunks of one size.

    Parameters
    ----------
    chunks : ndarray of int64, shape (n,)
    start, width : int
        Counted from the start of each chunk.
    everyone : bool
        Whether every worker contributes to these chunks; otherwise each starts at one worker.
    """

    chunks: IntArray
    start: int
    width: int
    everyone: bool


@dataclass(frozen=True)
class Layout:
    """Where the carried elements are in the buffer, and who has them at the start.

    Parameters
    ----------
    n_workers : int
    sizes : ndarray of int64, shape (n_chunks,)
        Elements of each chunk that are carried.
    offsets : ndarray of int64, shape (n_chunks,)
        Where each chunk starts in the buffer, in elements.
    holders : ndarray of int64, shape (n_chunks,)
        Which worker has the chunk at the start; `EVERYONE` where every worker contributes.
    """

    n_workers: int
    sizes: IntArray
    offsets: IntArray
    holders: IntArray

    @classmethod
    def of(
        cls,
        n_workers: int,
        chunk_sizes: IntArray,
        holders: IntArray,
        carry: int | None = None,
        n_elements: int = 0,
    ) -> Layout:
        """Lay out the first ``carry`` elements of each chunk; all of them where it is None.

        Chunks may be more than one buffer of ``n_elements``, as those of an all-to-all are: each then stands in the
        buffer of the worker that has it.
        """
        sizes = np.asarray(chunk_sizes, dtype=np.int64)
        offsets = np.cumsum(sizes) - sizes
        if n_elements:
            offsets %= n_elements
        carried = sizes if carry is None else np.minimum(sizes, carry)
        return cls(n_workers, carried, offsets, np.asarray(holders))

    def elements(self, block: Block) -> IntArray:
        """Return positions in the buffer, chunk after chunk; shape (n_chunks * width,)."""
        first = self.offsets[block.chunks] + block.start
        if len(first) == 1:
            return np.arange(first[0], first[0] + block.width)
        index: IntArray = (first[:, None] + np.arange(block.width)).reshape(-1)
        return index

    def large_blocks(self, itemsize: int) -> Iterator[Block]:
        """Cut each large chunk into blocks, in order."""
        width = max(LARGE, BLOCK_BYTES // (self.n_workers * itemsize))
        for chunk in np.flatnonzero(self.sizes >= LARGE).tolist():
            everyone = bool(self.holders[chunk] == EVERYONE)
            size = int(self.sizes[chunk])
            for start in range(0, size, width):
                yield Block(np.array([chunk]), start, min(width, size - start), everyone)

    def small_blocks(self, itemsize: int, group_bytes: int | None = None) -> Iterator[Block]:
        """Take small chunks of one size together, as many as fit; empty ones are left out."""
        small = self.sizes[(self.sizes > 0) & (self.sizes < LARGE)]
        if group_bytes is None:
            group_bytes = max(GROUP_BYTES, int(small.sum()) * self.n_workers * itemsize // 16)
        for size in np.unique(small).tolist():
            per_block = max(1, group_bytes // (self.n_workers * itemsize * size))
            for everyone in (True, False):
                chunks = np.flatnonzero((self.sizes == size) & ((self.holders == EVERYONE) == everyone))
                for first in range(0, len(chunks), per_block):
                    yield Block(chunks[first : first + per_block], 0, size, everyone)


def contributions(source: Source, layout: Layout, block: Block) -> Array:
    """Make or read the user's data of one block.

    Parameters
    ----------
    source : Source
    layout : Layout
        Where the chunks are in each worker's buffer.
    block : Block
        Which elements of which chunks.

    Returns
    -------
    ndarray of shape (n, n_chunks * width)
        n is ``n_workers`` where everyone contributes, otherwise 1: each chunk as its one holder has it.
    """
    index = layout.elements(block)
    if block.everyone:
        values = np.empty((layout.n_workers, len(index)), source.dtype)
        source.fill(index, range(layout.n_workers), list(values))
        return values
    values = np.empty((1, len(index)), source.dtype)
    parts = zip(block.chunks, index.reshape(-1, block.width), values.reshape(-1, block.width), strict=True)
    for chunk, part, out in parts:
        source.fill(part, [int(layout.holders[chunk])], [out])
    return values


def prepare(reduction: Reduction, rows: Iterable[Array]) -> None:
    """Scale the contributions of all workers in place, where the reduction scales; one row per worker."""
    if reduction.scales is None:
        return
    with np.errstate(all="ignore"):  # a scaled value may underflow, and an infinity of the user's stays one
        for worker, row in enumerate(rows):
            reduction.prepare(row, worker)


def parallel(function: Callable[[T], R], tasks: Iterable[T]) -> list[R]:
    """Return ``[function(task) for task in tasks]``, worked on by a few threads; the order is kept."""
    listed = list(tasks)
    if len(listed) <= 1 or THREADS == 1:
        return [function(task) for task in listed]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- few runs have so much to do

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, listed))
