"""Gradients are all-reduced in buckets: which ones go together, by the rule of PyTorch's DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringnet.errors import Fault, InputError

if TYPE_CHECKING:
    from ringnet.training.layers import TimedLayer

#: Limits of PyTorch: of the first bucket, which is small so that communication starts soon, and of all others.
FIRST_BUCKET_BYTES, BUCKET_CAP_BYTES = 2**20, 25 * 2**20


@dataclass(frozen=True)
class GradientBucket:
    """Gradients that are sent together.

    Parameters
    ----------
    layers : tuple of int
        Numbers of the layers that it has gradients of, in the order in which the backward pass comes to them.
    n_elements : int
    n_tensors : int
    """

    layers: tuple[int, ...]
    n_elements: int
    n_tensors: int

    @property
    def last_layer(self) -> int:
        """The layer whose backward pass completes it."""
        return self.layers[-1]


def bucket_of_each(sizes_bytes: Sequence[int], limits_bytes: Sequence[int]) -> list[list[int]]:
    """Put tensors of one type and device into buckets, in order: one closes as soon as it reaches its limit.

    Parameters
    ----------
    sizes_bytes : sequence of int
        Of each tensor. A tensor is never split.
    limits_bytes : sequence of int
        Of the first bucket, of the second, and so on; the last one is that of all others.

    Returns
    -------
    list of list of int
        Numbers of the tensors in each bucket.

    Notes
    -----
    What ``torch.distributed._compute_bucket_assignment_by_size`` does; Li and others, "PyTorch Distributed" (2020).

    Examples
    --------
    >>> bucket_of_each([400, 700, 300, 900, 100], [1000, 1200])
    [[0, 1], [2, 3], [4]]
    """
    if not limits_bytes or min(limits_bytes) < 1:
        raise InputError(Fault("a bucket has a limit above zero", value=f"{list(limits_bytes)}", right="25 MiB"))
    buckets: list[list[int]] = []
    held: list[int] = []
    n_bytes = 0
    for number, size in enumerate(sizes_bytes):
        held.append(number)
        n_bytes += size
        if n_bytes >= limits_bytes[min(len(buckets), len(limits_bytes) - 1)]:
            buckets.append(held)
            held, n_bytes = [], 0
    return [*buckets, held] if held else buckets


def gradient_buckets(
    layers: Sequence[TimedLayer],
    itemsize: int,
    cap_bytes: int = BUCKET_CAP_BYTES,
    first_bytes: int = FIRST_BUCKET_BYTES,
) -> tuple[GradientBucket, ...]:
    """Return the buckets of a model's gradients, in the order in which the backward pass completes them.

    Parameters
    ----------
    layers : sequence of TimedLayer
        In the order of registration.
    itemsize : int
        Bytes of an element.
    cap_bytes, first_bytes : int
        Limits of a bucket, and of the first one.

    Examples
    --------
    >>> from ringnet.training.layers import preset_layers
    >>> [4 * bucket.n_elements for bucket in gradient_buckets(preset_layers("resnet-18"), 4)]
    [2052000, 28852224, 15853824]
    """
    tensors = [*_in_backward_order(layers)]
    found = bucket_of_each([size * itemsize for _, size in tensors], (first_bytes, cap_bytes))
    return tuple(
        GradientBucket(
            layers=tuple(dict.fromkeys(tensors[number][0] for number in numbers)),
            n_elements=sum(tensors[number][1] for number in numbers),
            n_tensors=len(numbers),
        )
        for numbers in found
    )


def _in_backward_order(layers: Sequence[TimedLayer]) -> Iterator[tuple[int, int]]:
    """Yield the layer and the elements of every parameter, the last one registered first."""
    for number in reversed(range(len(layers))):
        for size in reversed(layers[number].sizes):
            yield number, size
