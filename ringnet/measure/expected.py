"""The sum as the definition has it, made block by block so that a large message needs little memory."""

from __future__ import annotations

import numpy as np

from ringnet.collectives.schedule import split_sizes
from ringnet.payload import Source
from ringnet.payload.dtypes import Array
from ringnet.reference import Chunks, reduce_scatter

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
        complete = reduce_scatter(_read(source, blocks))
        for chunk, (start, stop) in enumerate(blocks):
            result[start:stop] = complete[chunk - 1][chunk]  # worker i holds chunk i+1
    return result


def _read(source: Source, blocks: list[tuple[int, int]]) -> Chunks:
    return [[source.read(worker, *block) for block in blocks] for worker in range(source.n_workers)]
