"""The ring all-reduce as it is defined: step by step, without time, the oracle for everything else.

N workers stand in a ring; worker i sends only to worker (i+1) mod N. Every buffer is cut into N chunks, and
each of the two phases takes N-1 steps. A step is simultaneous: what is sent is what was held before it.

- Reduce-scatter, step s: worker i sends chunk (i-s) mod N, the receiver adds it to its own.
- All-gather, step s: worker i sends chunk (i+1-s) mod N, the receiver puts it in place of its own.

No function here sums directly, calls a collective library or modifies what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

Array: TypeAlias = Any  # an array of NumPy, PyTorch, CuPy or another array-API library
Chunks: TypeAlias = list[list[Array]]


def reduce_scatter(chunks: Chunks) -> Chunks:
    """First phase: afterwards worker i holds chunk (i+1) mod N complete, the sum over all workers.

    Parameters
    ----------
    chunks : nested list of arrays
        ``chunks[i][c]`` is chunk c as held by worker i: N workers with N chunks each, all of one dtype.
        Chunk c has one shape at all workers; the shapes of different chunks may differ, some may be empty.

    Returns
    -------
    nested list of arrays
        What every worker holds after the last step, in memory of its own; the input is not modified.

    Raises
    ------
    ValueError
        If there are no workers, or the number, shapes or devices of the chunks differ.
    TypeError
        If the chunks are no numbers, or differ in dtype or library.

    Examples
    --------
    >>> held = reduce_scatter([[[1], [2], [3]], [[10], [20], [30]], [[100], [200], [300]]])
    >>> [[int(chunk[0]) for chunk in worker] for worker in held]
    [[1, 222, 303], [11, 20, 333], [111, 220, 300]]
    """
    held = _own_copies(chunks)
    n = len(held)
    for step in range(n - 1):
        sent = [held[i][(i - step) % n] for i in range(n)]
        for i, incoming in enumerate(sent):
            receiver, c = held[(i + 1) % n], (i - step) % n
            receiver[c] = _sum(receiver[c], incoming)
    return held


def all_gather(chunks: Chunks) -> Chunks:
    """Second phase: every worker ends with chunk c as worker (c-1) mod N held it at the start.

    Parameters
    ----------
    chunks : nested list of arrays
        ``chunks[i][c]`` is chunk c as held by worker i, as `reduce_scatter` returns it.

    Returns
    -------
    nested list of arrays
        What every worker holds after the last step, in memory of its own; the input is not modified.

    Raises
    ------
    ValueError, TypeError
        As `reduce_scatter`.

    Examples
    --------
    >>> held = all_gather([[[1], [6]], [[4], [4]]])
    >>> [[int(chunk[0]) for chunk in worker] for worker in held]
    [[4, 6], [4, 6]]
    """
    held = _own_copies(chunks)
    n = len(held)
    for step in range(n - 1):
        sent = [held[i][(i + 1 - step) % n] for i in range(n)]
        for i, incoming in enumerate(sent):
            receiver, c = held[(i + 1) % n], (i + 1 - step) % n
            receiver[c] = _copy(incoming)
    return held


def ring_allreduce(arrays: list[Array]) -> list[Array]:
    """Sum N 1-D arrays over the ring; every worker gets the sum.

    Parameters
    ----------
    arrays : list of N arrays
        One buffer per worker, 1-D, of one length and dtype, cut as `numpy.array_split` cuts: chunks differ by
        at most one element, and some are empty if there are fewer elements than workers.

    Returns
    -------
    list of N arrays
        The sum as each worker holds it, in memory of its own; the input is not modified. Integers wrap.

    Raises
    ------
    ValueError
        If there are no workers, an array is not 1-D, or lengths or devices differ.
    TypeError
        If the arrays are no numbers, or differ in dtype or library.

    Examples
    --------
    >>> ring_allreduce([[1, 2], [3, 4]])
    [array([4, 6]), array([4, 6])]
    """
    buffers = _buffers(arrays, "numeric")
    shape = tuple(buffers[0].shape)
    if len(shape) != 1:
        raise ValueError(f"worker 0 has shape {shape}, ring_allreduce takes 1-D arrays, shape (M,)")
    gathered = all_gather(reduce_scatter([_cut(buffer, len(buffers)) for buffer in buffers]))
    return [_join(chunks) for chunks in gathered]


def ring_all_reduce(worker_tensors: list[Array] | Array) -> Array:
    """Sum N floating-point tensors over the ring and return what worker 0 ends with.

    Parameters
    ----------
    worker_tensors : array of shape (N, M, ...), or list of N arrays of shape (M, ...)
        NumPy, PyTorch or any array-API arrays, cut along M, which N must divide; chunks keep the other axes.

    Returns
    -------
    array of shape (M, ...)
        The sum, not the mean, of the same dtype and on the same device; the input is not modified.

    Raises
    ------
    ValueError
        If there are no workers, shapes or devices differ, or N does not divide M.
    TypeError
        If the tensors are not floating point, or differ in dtype or library.

    Examples
    --------
    >>> ring_all_reduce(np.asarray([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    tensors = _buffers(worker_tensors, "real floating")
    n, shape = len(tensors), tuple(tensors[0].shape)
    if not shape:
        raise ValueError("worker 0 has shape (), ring_all_reduce needs an axis to cut, shape (M, ...)")
    if shape[0] % n:
        raise ValueError(f"worker 0 has shape {shape}: {n} workers do not divide its {shape[0]} rows")
    return _join(all_gather(reduce_scatter([_cut(tensor, n) for tensor in tensors]))[0])


# What a worker does with one chunk. Both results own their memory.


def _copy(chunk: Array) -> Array:
    return array_namespace(chunk).astype(chunk, chunk.dtype, copy=True)


def _sum(own: Array, incoming: Array) -> Array:
    total = array_namespace(own).add(own, incoming)
    return _of_dtype(own.dtype, total[...])  # [...]: NumPy turns a sum of 0-d arrays into a scalar


def _cut(buffer: Array, n: int) -> list[Array]:
    small, larger = divmod(buffer.shape[0], n)
    cuts = [chunk * small + min(chunk, larger) for chunk in range(n + 1)]
    return [buffer[start:stop, ...] for start, stop in pairwise(cuts)]


def _join(chunks: list[Array]) -> Array:
    return _of_dtype(chunks[0].dtype, array_namespace(chunks[0]).concat(chunks))


def _of_dtype(dtype: Any, array: Array) -> Array:
    # No sum changes the dtype, but NumPy turns a foreign byte order into its own.
    return array_namespace(array).astype(array, dtype, copy=False)


# What is refused at the door.


def _own_copies(chunks: Chunks) -> Chunks:
    """Check N workers with N chunks each; copy them, so that nothing later touches the caller's arrays."""
    rows = [_listed(row, f"worker {i}") for i, row in enumerate(_workers(chunks))]
    for i, row in enumerate(rows):
        if len(row) != len(rows):
            raise ValueError(f"worker {i} has {len(row)} chunks, {len(rows)} workers need {len(rows)} each")
    held = [[_array(chunk, _at(i, c)) for c, chunk in enumerate(row)] for i, row in enumerate(rows)]
    for i, row in enumerate(held):
        for c, chunk in enumerate(row):
            _check_same(_KINDS, chunk, held[0][0], _at(i, c), _at(0, 0))
            _check_same(_SHAPE, chunk, held[0][c], _at(i, c), _at(0, c))
    _check_kind("numeric", held[0][0])
    return [[_copy(chunk) for chunk in row] for row in held]


def _at(worker: int, chunk: int) -> str:
    return f"worker {worker}, chunk {chunk}"


def _buffers(arrays: list[Array] | Array, kind: str) -> list[Array]:
    """Check one array per worker: all of one shape, dtype, library and device, and of one kind of number."""
    buffers = [_array(array, f"worker {i}") for i, array in enumerate(_workers(arrays))]
    for i, buffer in enumerate(buffers):
        _check_same(_KINDS | _SHAPE, buffer, buffers[0], f"worker {i}", "worker 0")
    _check_kind(kind, buffers[0])
    return buffers


def _workers(items: Any) -> list[Any]:
    workers = _listed(items, "the input")
    if not workers:
        raise ValueError("no workers: the list is empty, it needs at least 1")
    return workers


def _listed(items: Any, name: str) -> list[Any]:
    if is_array_api_obj(items) and len(items.shape):
        return [items[i, ...] for i in range(items.shape[0])]
    try:
        return list(items)
    except TypeError:
        raise TypeError(f"{name} must be a list of arrays, got {type(items).__name__}") from None


def _array(value: Any, name: str) -> Array:
    if is_array_api_obj(value) and not isinstance(value, np.generic):
        return value
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} holds no array: {error}") from None


# What must be the same: how to read it, and the error if it differs.
_Features: TypeAlias = dict[str, tuple[Callable[[Array], object], type[Exception]]]
_KINDS: _Features = {
    "library": (lambda array: array_namespace(array).__name__.removeprefix("array_api_compat."), TypeError),
    "dtype": (lambda array: array.dtype, TypeError),
    "device": (device, ValueError),
}
_SHAPE: _Features = {"shape": (lambda array: tuple(array.shape), ValueError)}


def _check_same(features: _Features, array: Array, first: Array, name: str, first_name: str) -> None:
    for feature, (read, error) in features.items():
        if (got := read(array)) != (expected := read(first)):
            raise error(f"{name} has {feature} {got}, {first_name} has {expected}")


def _check_kind(kind: str, first: Array) -> None:
    try:
        fits = array_namespace(first).isdtype(first.dtype, kind)
    except TypeError:  # NumPy does not know the kind of the dtypes of ml_dtypes, such as bfloat16
        fits = "float" in str(first.dtype)
    if not fits:
        raise TypeError(f"worker 0 has dtype {first.dtype}, but a {kind} dtype is needed")
