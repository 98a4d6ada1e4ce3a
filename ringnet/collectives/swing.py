"""Swing: halving and doubling whose partners swing from side to side, near on rings and tori."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.halving import Fold, Halving, halving_schedule
from ringnet.collectives.schedule import Schedule
from ringnet.errors import Fault, InputError


def swing(
    n_workers: int, collective: str = "all-reduce", dims: Sequence[int] = (), *, all_ports: bool = True
) -> Schedule:
    """Swing all-reduce, reduce-scatter or all-gather, the bandwidth-optimal variant.

    In round s of a dimension of P places, place i exchanges with i + r(s) if i is even and i - r(s) if it is
    odd, where r(s) = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, ...: about 2^(s+1) / 3 places away where
    halving-doubling goes 2^s.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see
        `Fold`. (The paper has a way of its own for even N, which sends some blocks twice.)
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    dims : sequence of int
        Sizes of a torus, slowest first, each a power of two; none for a ring of all workers. Rounds go
        through the dimensions by turns.
    all_ports : bool
        Cut the buffer into 2D parts, D the number of dimensions: each begins in another dimension and
        direction, so that all ports of a worker are in use. Otherwise one part.

    Returns
    -------
    Schedule
        As `halving_doubling`, with a channel for each part.

    Raises
    ------
    InputError
        Dimensions that are no powers of two, or whose product is not N.

    Notes
    -----
    For a power of two each worker sends (N-1)/N x S bytes a phase in log2 N steps. Where no two transfers
    share a link, it takes the time of halving-doubling with S over the number of parts: log2 N alpha +
    (N-1)/N S beta / (2D) a phase; the reduce-scatter of a single part (N-1)/N S gamma more.
    De Sensi, Bonato, Saam and Hoefler, *Swing: short-cutting rings for higher bandwidth allreduce*, NSDI 2024.

    Examples
    --------
    >>> [step.dst.tolist() for step in swing(8, "reduce-scatter", all_ports=False).steps()]
    [[1, 0, 3, 2, 5, 4, 7, 6], [7, 2, 1, 4, 3, 6, 5, 0], [3, 6, 5, 0, 7, 2, 1, 4]]
    """
    fold = Fold.of(n_workers)
    shape = tuple(dims) or (len(fold.members),)
    _check_dims(n_workers, shape, fold)
    parts = [_halving(shape, first, side) for first in range(len(shape)) for side in (1, -1)]
    parameters = {"dims": tuple(dims), "all_ports": all_ports}
    return halving_schedule("swing", n_workers, collective, parts if all_ports else parts[:1], fold, parameters)


def swing_part(n_members: int) -> Halving:
    """Return who exchanges with whom on a ring of ``n_members``, a power of two, in the first part."""
    return _halving((n_members,), 0, 1)


def _halving(shape: tuple[int, ...], first: int, side: int) -> Halving:
    """Return the rounds that begin in dimension ``first``, to one side or the other."""
    places = np.arange(prod(shape))
    partners = [_partners(shape, axis, side * _distance(s)) for axis, s in _rounds(shape, first)]
    return Halving(np.array(partners, dtype=np.int64).reshape(-1, len(places)))


def _rounds(shape: tuple[int, ...], first: int) -> Iterator[tuple[int, int]]:
    """Yield the dimension of each round and its number within it: by turns, until all are through."""
    left = [size.bit_length() - 1 for size in shape]
    for s in range(max(left)):
        for turn in range(len(shape)):
            axis = (first + turn) % len(shape)
            if s < left[axis]:
                yield axis, s


def _distance(s: int) -> int:
    return (1 - int((-2) ** (s + 1))) // 3


def _partners(shape: tuple[int, ...], axis: int, distance: int) -> IntArray:
    at = np.array(np.unravel_index(np.arange(prod(shape)), shape))
    at[axis] = (at[axis] + np.where(at[axis] % 2 == 0, distance, -distance)) % shape[axis]
    partners: IntArray = np.ravel_multi_index(tuple(at), shape)
    return partners


def _check_dims(n_workers: int, shape: tuple[int, ...], fold: Fold) -> None:
    whole = prod(shape) == n_workers or (len(shape) == 1 and prod(shape) == len(fold.members))
    if not whole or any(size < 1 or size & (size - 1) for size in shape):
        given = " x ".join(map(str, shape))
        right = f"powers of two whose product is {n_workers}, or no dimensions"
        raise InputError(Fault("Swing cannot go round such a torus", value=given, right=right))
