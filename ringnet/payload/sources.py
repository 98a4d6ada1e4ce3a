"""Where a worker's numbers come from: any element can be made or read again, so that no copy is kept."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import Array, IntArray
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DType
from ringnet.units import quantity_text

Bits: TypeAlias = NDArray[np.uint32]


class Source(ABC):
    """The data of every worker before anything moves: a function of worker and element that never changes.

    Parameters
    ----------
    n_workers : int
    shape : tuple of int
        What the array of one worker looks like; its elements are counted in C order.
    dtype : numpy.dtype
    """

    def __init__(self, n_workers: int, shape: tuple[int, ...], dtype: DType) -> None:
        self.n_workers, self.shape, self.dtype = n_workers, shape, dtype
        self.n_elements = math.prod(shape)

    @abstractmethod
    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Write the elements ``index``, ascending, of each of ``workers`` into its array of ``outs``.

        Parameters
        ----------
        index : ndarray of int64, shape (n,)
        workers : sequence of int
        outs : sequence of ndarray, each of shape (n,) and of this source's dtype
        """

    def read(self, worker: int, start: int, stop: int) -> Array:
        """Return elements ``start`` to ``stop`` of one worker in a fresh array."""
        out = np.empty(stop - start, self.dtype)
        self.fill(np.arange(start, stop), [worker], [out])
        return out


class RampSource(Source):
    """Numbers that are easy to read: a worker counts 1 to 9, in ones, tens or hundreds.

    Workers 0, 1 and 2 hold 1, 2, 3, ..., 9, 1, ... times 1, 10 and 100, so that each digit of a sum of three
    says what one worker gave. Later groups of three do the same, with their group (up to 9, then from 0
    again) in the thousands. Types too narrow for that wrap.

    Examples
    --------
    >>> ramp = RampSource(3, 3, np.dtype("int32"))
    >>> [ramp.read(worker, 0, 3).tolist() for worker in range(3)]
    [[1, 2, 3], [10, 20, 30], [100, 200, 300]]
    """

    def __init__(self, n_workers: int, n_elements: int, dtype: DType) -> None:
        super().__init__(n_workers, (n_elements,), dtype)

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Make the numbers: see `Source.fill`."""
        digit = index % 9 + 1
        for worker, out in zip(workers, outs, strict=True):
            out[...] = (digit * 10 ** (worker % 3) + worker // 3 % 10 * 1000).astype(self.dtype)


class RandomSource(Source):
    """Seeded random numbers: element e of worker w is a function of (seed, w, e) alone.

    Parameters
    ----------
    n_workers, n_elements : int
    dtype : numpy.dtype
    seed : int
        0 or more, of any length.
    for_product : bool
        Make factors whose product over many workers stays in range and shows each of them: floats of
        magnitude 0.68 to 1.36 (geometric mean 1) and random sign, integers 3, 5, 7 or 9 (odd: their product
        modulo 2^bits never collapses to 0). Otherwise floats uniform in [-1, 1], with all bits of the
        significand in use so that the order of additions shows; integers uniform from -8 to 7 (int8), 0 to 15
        (uint8), -2^20 to 2^20 - 1 (wider).

    Notes
    -----
    A 32-bit hash of the element (Wellons, *lowbias32*, 2018), the same for every worker and so made once for
    all, times an odd key of the worker from `numpy.random.SeedSequence`; the top bits of the product count.
    Workers are uncorrelated in pairs, which is all that a check of sums needs; this is no generator for
    statistics.

    Examples
    --------
    >>> source = RandomSource(2, 10**12, np.dtype("float32"), seed=7)
    >>> bool((source.read(1, 10**11, 10**11 + 9)[4:] == source.read(1, 10**11 + 4, 10**11 + 9)).all())
    True
    """

    def __init__(
        self, n_workers: int, n_elements: int, dtype: DType, seed: int = 0, *, for_product: bool = False
    ) -> None:
        super().__init__(n_workers, (n_elements,), dtype)
        self.seed = seed
        self._write = (_FACTORS if for_product else _TERMS)[dtype.name]

    @cached_property
    def _keys(self) -> Bits:
        """Two odd keys of each worker; who only asks what a run would take has no need of them."""
        words = np.random.SeedSequence(self.seed).generate_state(2 * self.n_workers)
        return (words.astype(np.uint32) | np.uint32(1)).reshape(self.n_workers, 2)

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Make the numbers: see `Source.fill`."""
        common = _hash(index)
        bits, spare = np.empty_like(common), np.empty_like(common)
        for worker, out in zip(workers, outs, strict=True):
            self._write(_Draw(common, self._keys[worker], bits, spare), out)


class SomeWorkers(Source):
    """The data of some workers of another source, in the order in which they are listed.

    Examples
    --------
    >>> ramp = RampSource(3, 3, np.dtype("int32"))
    >>> SomeWorkers(ramp, (0, 2)).read(1, 0, 3).tolist()
    [100, 200, 300]
    """

    def __init__(self, source: Source, workers: Sequence[int]) -> None:
        super().__init__(len(workers), source.shape, source.dtype)
        self._source, self._workers = source, workers

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """Make the numbers: see `Source.fill`."""
        self._source.fill(index, [self._workers[worker] for worker in workers], outs)


def message_elements(message_bytes: int, dtype: DType) -> int:
    """Return how many elements a message holds.

    Parameters
    ----------
    message_bytes : int
        The whole buffer of one worker, in bytes.
    dtype : numpy.dtype
        Of the elements.

    Raises
    ------
    InputError
        If the element's size does not divide it, with the nearest sizes that it does divide.

    Examples
    --------
    >>> message_elements(64 * 2**20, np.dtype("float32"))
    16777216
    """
    n_elements, rest = divmod(message_bytes, dtype.itemsize)
    if rest:
        message = f"not a whole number of {dtype.name} elements, {dtype.itemsize} bytes each"
        nearest = (message_bytes - rest, message_bytes - rest + dtype.itemsize)
        right = " or ".join(quantity_text(size, "bytes") for size in nearest)
        raise InputError(Fault(message, value=f"{message_bytes} B", right=right))
    return n_elements


def _hash(index: IntArray) -> Bits:
    # A bijection of the low 32 bits, so that no two elements closer than 2^32 share their bits in every
    # worker.
    bits = index.astype(np.uint32)
    bits ^= np.uint32(0x9E3779B9)  # the hash of 0 is 0, and so would the first element be of every worker
    if len(index) and index[-1] >> 32:
        bits ^= _mixed((index >> 32).astype(np.uint32))
    return _mixed(bits)


def _mixed(bits: Bits) -> Bits:
    spare = np.empty_like(bits)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None)):
        np.right_shift(bits, np.uint32(shift), out=spare)
        bits ^= spare
        if factor is not None:
            bits *= np.uint32(factor)
    return bits


class _Draw:
    """The random bits of one worker for one block: the best are at the top, as a product's are."""

    def __init__(self, common: Bits, keys: Bits, bits: Bits, spare: Bits) -> None:
        self.common, self.keys, self.bits, self.spare = common, keys, bits, spare

    def first(self) -> Bits:
        np.multiply(self.common, self.keys[0], out=self.bits)
        return self.bits

    def second(self) -> Bits:
        """Return bits by another key; they overwrite the first."""
        np.multiply(self.common, self.keys[1], out=self.bits)
        return self.bits


# The largest 32-bit integer rounds to 2^31 in float32; scaled by this it still rounds to less than 1.
_SCALE32 = np.float32(2.0**-31 * (1 - 2.0**-24))
_SCALE64 = 2.0**-31 * (1 - 2.0**-53)
_GEOMETRIC = float(np.e) / 4  # uniform in [1, 2) times this has geometric mean 1


def _terms32(draw: _Draw, out: Array) -> None:
    np.copyto(out, draw.first().view(np.int32), casting="unsafe")
    np.multiply(out, _SCALE32, out=out)


def _terms64(draw: _Draw, out: Array) -> None:
    np.multiply(draw.second(), 2.0**-32, out=out)
    np.add(out, draw.first().view(np.int32), out=out)
    np.multiply(out, _SCALE64, out=out)


def _factors32(draw: _Draw, out: Array) -> None:
    bits = draw.first()
    np.bitwise_and(bits, np.uint32(0x807FFFFF), out=bits)
    np.bitwise_or(bits, np.uint32(0x3F800000), out=bits)
    np.multiply(bits.view(np.float32), np.float32(_GEOMETRIC), out=out)


def _factors64(draw: _Draw, out: Array) -> None:
    # A second draw fills the bits of the significand below those of float32.
    np.multiply(draw.second(), 2.0**-55, out=out)
    np.add(out, 1.0, out=out)
    coarse = np.empty(out.shape, np.float32)
    _factors32(draw, coarse)
    np.multiply(out, coarse, out=out)


def _narrowed(write: Callable[[_Draw, Array], None]) -> Callable[[_Draw, Array], None]:
    def narrow(draw: _Draw, out: Array) -> None:
        wide = draw.spare.view(np.float32)  # the spare bits are done with before this is written
        write(draw, wide)
        np.copyto(out, wide, casting="unsafe")

    return narrow


def _integers(shift: int, kind: type[np.generic]) -> Callable[[_Draw, Array], None]:
    def write(draw: _Draw, out: Array) -> None:
        bits = draw.first().view(kind)
        np.right_shift(bits, bits.dtype.type(shift), out=bits)
        np.copyto(out, bits, casting="unsafe")

    return write


def _odd_integers(draw: _Draw, out: Array) -> None:
    bits = draw.first()
    np.right_shift(bits, np.uint32(30), out=bits)
    np.left_shift(bits, np.uint32(1), out=bits)
    np.add(bits, np.uint32(3), out=bits)
    np.copyto(out, bits, casting="unsafe")


_TERMS: dict[str, Callable[[_Draw, Array], None]] = {
    "float64": _terms64,
    "float32": _terms32,
    "float16": _narrowed(_terms32),
    "bfloat16": _narrowed(_terms32),
    "int8": _integers(28, np.int32),
    "uint8": _integers(28, np.uint32),
    "int32": _integers(11, np.int32),
    "int64": _integers(11, np.int32),
}
_FACTORS: dict[str, Callable[[_Draw, Array], None]] = {
    "float64": _factors64,
    "float32": _factors32,
    "float16": _narrowed(_factors32),
    "bfloat16": _narrowed(_factors32),
    **dict.fromkeys(("int8", "uint8", "int32", "int64"), _odd_integers),
}
