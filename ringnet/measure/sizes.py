"""Sizes of messages as a person gives them: ``4KiB..16MiB``, or a list."""

from __future__ import annotations

from collections.abc import Iterator

from ringnet.errors import Fault, InputError
from ringnet.payload import dtype_of, message_elements
from ringnet.units import parse_quantity


def read_sizes(text: str, dtype: str, factor: int = 2) -> list[int]:
    """Return message sizes in bytes.

    Parameters
    ----------
    text : str
        Sizes and ranges with commas between them.
    dtype : str
        Element type, which must divide every size.
    factor : int
        From one size of a range to the next; the upper end belongs to it where it is hit.

    Raises
    ------
    InputError
        A size cannot be read, is no whole number of elements, or a range runs downwards.

    Examples
    --------
    >>> read_sizes("1KiB..8KiB, 1MiB", "float32")
    [1024, 2048, 4096, 8192, 1048576]
    """
    if factor < 2:  # noqa: PLR2004 -- below, a range would not grow
        raise InputError(Fault("must be at least 2", "--factor", value=str(factor), right="2"))
    sizes = [size for part in text.split(",") for size in _part(part, factor)]
    for size in sizes:
        message_elements(size, dtype_of(dtype))
    return sizes


def _part(part: str, factor: int) -> Iterator[int]:
    first, dots, last = part.partition("..")
    size = parse_quantity(first, "bytes")
    end = parse_quantity(last, "bytes") if dots else size
    if end < size or (dots and not size):
        message = "a range of sizes starts above zero and runs upwards"
        raise InputError(Fault(message, "--sizes", value=part.strip(), right="4KiB..16MiB"))
    yield size
    while size and (size := size * factor) <= end:
        yield size
