"""The user's own numbers: arrays in memory, or ``.npy`` files, read in blocks and never held whole."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import Any, TypeAlias

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.sources import Source

#: Workers whose data a file may hold: a header says any number in a few bytes.
MOST_WORKERS = 2**20

PathLike: TypeAlias = str | os.PathLike[str]

#: NumPy reads a header as Python text, and hands on whatever that comes to.
_MAY_FAIL = (
    OSError,
    ValueError,
    EOFError,
    OverflowError,
    SyntaxError,
    TypeError,
    MemoryError,
    RecursionError,
    TokenError,
)


class ArraySource(Source):
    """Arrays in memory, one per worker; they are read in place and never written.

    Parameters
    ----------
    arrays : sequence of ndarray, or ndarray of shape (n_workers, ...)
        All of one shape and of one of the element types of `DTYPES`.

    Raises
    ------
    InputError
        With every array that does not fit the first.

    Examples
    --------
    >>> ArraySource([np.arange(3), np.arange(3) * 10]).read(1, 1, 3).tolist()
    [10, 20]
    """

    def __init__(self, arrays: Sequence[Array] | Array) -> None:
        listed = [np.asarray(array) for array in arrays]
        places = [f"the array of worker {worker}" for worker in range(len(listed))]
        shape, dtype = _common_shape_and_dtype(
            [array.shape for array in listed], [array.dtype for array in listed], places
        )
        super().__init__(len(listed), shape, dtype)
        # `flat` counts in C order without a copy, whatever the layout; a view is faster where there is one.
        self._flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in listed]

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Copy the numbers: see `Source.fill`."""
        where = _range_of(index)
        for worker, out in zip(workers, outs, strict=True):
            out[...] = self._flat[worker][index if where is None else slice(*where)]


class FileSource(Source):
    """Numbers in ``.npy`` files, one file per worker, or one array with a leading worker axis (`stacked`).

    Nothing is unpickled, and nothing is held: each block is read when it is needed, and its file is closed
    again.

    Parameters
    ----------
    paths : sequence of path
        The file of each worker. All hold arrays of one shape and element type.
    dtype : numpy.dtype, optional
        What the files must hold. Needed for bfloat16, which NumPy saves as bare two-byte elements (``|V2``).

    Raises
    ------
    InputError
        With every file that cannot be read, is cut short, is no ``.npy``, holds objects or an unknown element
        type, or does not fit the first one.
    """

    def __init__(self, paths: Sequence[PathLike], dtype: DType | None = None) -> None:
        if not paths:
            raise InputError(Fault("no files", right="one .npy file per worker"))
        self._open([_at(path, lambda file: _read_header(file, dtype)) for path in paths])

    @classmethod
    def stacked(cls, path: PathLike, dtype: DType | None = None) -> FileSource:
        """Take one file that holds an array of shape (n_workers, ...).

        Raises
        ------
        InputError
            As for one file per worker, and if the array has no leading axis or no worker.
        """
        source = cls.__new__(cls)
        source._open(_workers_of(path, _raised(_at(path, lambda file: _read_header(file, dtype)))))
        return source

    def _open(self, found: Sequence[_ArrayInFile | Fault]) -> None:
        faults = [item for item in found if isinstance(item, Fault)]
        if faults:
            raise InputError(*faults)
        self._parts = [item for item in found if isinstance(item, _ArrayInFile)]
        shapes, dtypes = [part.own_shape for part in self._parts], [part.dtype for part in self._parts]
        shape, dtype = _common_shape_and_dtype(shapes, dtypes, [str(part.path) for part in self._parts])
        super().__init__(len(self._parts), shape, dtype)

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Read the numbers: see `Source.fill`.

        Raises
        ------
        InputError
            If a file has become shorter, or cannot be read any more.
        """
        for worker, out in zip(workers, outs, strict=True):
            part = self._parts[worker]
            try:
                part.read(index, out)
            except _MAY_FAIL as error:
                raise InputError(Fault(f"cannot be read any more: {error}", file=str(part.path))) from error


@dataclass(frozen=True)
class _ArrayInFile:
    """Where in which file one worker's elements are."""

    path: Path
    data_at: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: DType
    worker: int | None = None  # position on the leading axis, if the file holds all workers

    @property
    def own_shape(self) -> tuple[int, ...]:
        return self.shape if self.worker is None else self.shape[1:]

    def read(self, index: IntArray, out: Array) -> None:
        places = self._places(index)
        where = _range_of(places)
        if where is not None:
            # Not mapped: pages of a mapped file would count as this process's memory.
            offset = self.data_at + where[0] * self.dtype.itemsize
            out[...] = np.fromfile(self.path, self.dtype, where[1] - where[0], offset=offset)
        else:
            whole = np.memmap(self.path, self.dtype, "r", self.data_at, (math.prod(self.shape),))
            out[...] = whole[places]

    def _places(self, index: IntArray) -> IntArray:
        """Return positions in the file, in elements."""
        if self.worker is not None:
            index = index + self.worker * math.prod(self.own_shape)
        if not self.fortran or len(self.shape) <= 1:
            return index
        return np.ravel_multi_index(np.unravel_index(index, self.shape), self.shape, order="F")


def _range_of(index: IntArray) -> tuple[int, int] | None:
    """Return (start, stop) if the indexes are consecutive."""
    if not len(index):
        return 0, 0
    start, stop = int(index[0]), int(index[-1]) + 1
    consecutive = stop - start == len(index) and bool((np.diff(index) == 1).all())
    return (start, stop) if consecutive else None


def _read_header(path: Path, wanted: DType | None) -> _ArrayInFile:
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        # Version 3 differs from 2 in the encoding of field names only, and there are none here.
        header = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, fortran, dtype = getattr(np.lib.format, header)(file)
        part = _ArrayInFile(path, file.tell(), shape, fortran, _checked(dtype, wanted))
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    missing = part.data_at + math.prod(shape) * dtype.itemsize - path.stat().st_size
    if missing > 0:
        raise ValueError(f"the file is cut short: {missing} bytes are missing")
    return part


def _checked(dtype: DType, wanted: DType | None) -> DType:
    bfloat16 = DTYPES["bfloat16"]
    if wanted == bfloat16 and dtype.kind == "V" and dtype.itemsize == bfloat16.itemsize:
        return bfloat16
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled; save numbers")
    if dtype.newbyteorder("=") not in DTYPES.values():
        raise ValueError(f"it holds {dtype}; right would be one of {', '.join(DTYPES)}")
    if wanted is not None and dtype.newbyteorder("=") != wanted:
        raise ValueError(f"it holds {dtype.name}, not the {wanted.name} that is asked for")
    return dtype


def _at(path: PathLike, read: Callable[[Path], _ArrayInFile]) -> _ArrayInFile | Fault:
    try:
        return read(Path(path))
    except _MAY_FAIL as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Fault(f"cannot be read as .npy: {reason or type(error).__name__}", file=str(path))


def _raised(found: _ArrayInFile | Fault) -> _ArrayInFile:
    if isinstance(found, Fault):
        raise InputError(found)
    return found


def _workers_of(path: PathLike, part: _ArrayInFile) -> list[_ArrayInFile]:
    if not part.shape or not part.shape[0]:
        message = "an array of all workers needs a leading worker axis"
        raise InputError(Fault(message, file=str(path), value=f"shape {part.shape}", right="(n_workers, ...)"))
    if part.shape[0] > MOST_WORKERS:
        message = f"it would be the data of {part.shape[0]:,} workers"
        right = f"at most {MOST_WORKERS:,} along the first axis"
        raise InputError(Fault(message, file=str(path), value=f"shape {part.shape}", right=right))
    return [replace(part, worker=worker) for worker in range(part.shape[0])]


def _common_shape_and_dtype(
    shapes: Sequence[tuple[int, ...]], dtypes: Sequence[np.dtype[Any]], places: Sequence[str]
) -> tuple[tuple[int, ...], DType]:
    """Return the one shape and element type (in native byte order) that all share."""
    if not shapes:
        raise InputError(Fault("no arrays", right="one array per worker"))
    native = [dtype.newbyteorder("=") for dtype in dtypes]
    faults = []
    for place, shape, dtype in zip(places, shapes, native, strict=True):
        if dtype not in DTYPES.values():
            faults.append(Fault(f"{place}: element type", value=str(dtype), right=", ".join(DTYPES)))
        elif (shape, dtype) != (shapes[0], native[0]):
            value, right = f"{dtype.name} {shape}", f"{native[0].name} {shapes[0]}, as {places[0]}"
            faults.append(Fault(f"{place} does not fit the first", value=value, right=right))
    if faults:
        raise InputError(*faults)
    return shapes[0], native[0]
