"""The element types that a payload may have, and what their arithmetic is capable of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ringnet.array_types import Array
from ringnet.errors import InputError, unknown

DType: TypeAlias = np.dtype[Any]

#: Bytes of an element, by the name of its type.
ITEMSIZES = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "int64": 8,
}


class _ElementTypes(Mapping[str, DType]):
    """Every element type by name, each made when it is asked for.

    bfloat16 comes from ml_dtypes, which takes up to a second to import, and is an extension type to NumPy (kind ``V``).
    """

    def __getitem__(self, name: str) -> DType:
        if name not in ITEMSIZES:
            raise KeyError(name)
        if name != "bfloat16":
            return np.dtype(name)
        import ml_dtypes  # noqa: PLC0415

        bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
        return bfloat16

    def __iter__(self) -> Iterator[str]:
        return iter(ITEMSIZES)

    def __len__(self) -> int:
        return len(ITEMSIZES)


DTYPES = _ElementTypes()


def dtype_of(name: str) -> DType:
    """Return the element type called ``name``.

    Raises
    ------
    InputError
        For any other name, with the nearest known one.

    Examples
    --------
    >>> dtype_of("bfloat16").itemsize
    2
    """
    if name in ITEMSIZES:
        return DTYPES[name]
    raise InputError(unknown("unknown element type", name, ITEMSIZES))


def is_float(dtype: DType) -> bool:
    """Whether the type holds floating-point numbers; NumPy itself does not know that bfloat16 does.

    >>> [name for name, dtype in DTYPES.items() if is_float(dtype)]
    ['float64', 'float32', 'float16', 'bfloat16']
    """
    return dtype.kind not in "iub"


def unit_roundoff(dtype: DType) -> float:
    """Return u = eps/2, the largest relative error of one rounding.

    >>> unit_roundoff(DTYPES["float32"]) == 2**-24, unit_roundoff(DTYPES["bfloat16"]) == 2**-8
    (True, True)
    """
    return float(_finfo(dtype).eps) / 2


def smallest_normal(dtype: DType) -> float:
    """Return the smallest positive number that still has full precision.

    >>> smallest_normal(DTYPES["float16"]) == 2**-14
    True
    """
    return float(_finfo(dtype).smallest_normal)


def smallest_subnormal(dtype: DType) -> float:
    """Return the smallest positive number: the largest absolute error of one rounding that underflows.

    >>> smallest_subnormal(DTYPES["float16"]) == 2**-24
    True
    """
    return float(_finfo(dtype).smallest_subnormal)


def _finfo(dtype: DType) -> Any:
    if dtype.kind == "f":
        return np.finfo(dtype)
    import ml_dtypes  # noqa: PLC0415

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def bits_of(array: Array) -> Array:
    """Return the same memory as unsigned integers of the same width, to compare bit for bit.

    >>> [hex(bits) for bits in bits_of(np.array([1.0, -0.0], np.float32)).tolist()]
    ['0x3f800000', '0x80000000']
    """
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def widened(values: Array) -> Array:
    """Return 16-bit floating-point values in float32, which holds them exactly; any others as they are."""
    narrow = is_float(values.dtype) and values.dtype.itemsize < np.dtype(np.float32).itemsize
    return values.astype(np.float32) if narrow else values
