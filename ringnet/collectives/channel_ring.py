"""Several rings beside each other: each channel takes its own part of the buffer, in its own order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd

import numpy as np

from ringnet.collectives.loops import Loops
from ringnet.collectives.making import SCATTER_GATHER, make_schedule
from ringnet.collectives.schedule import IntArray, Schedule
from ringnet.errors import Fault, InputError


def channel_ring(
    n_workers: int,
    collective: str = "all-reduce",
    n_channels: int = 2,
    strides: Sequence[int] = (1,),
    node_size: int = 1,
    orders: Sequence[Sequence[int]] = (),
) -> Schedule:
    """Ring all-reduce, reduce-scatter or all-gather over several channels.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    n_channels : int
        k, at least 1.
    strides : sequence of int
        Channel q goes from worker i to worker i + ``strides[q % len(strides)]`` mod N, so that channels can
        take other links, or other NICs. Each must have no divisor in common with N.
    node_size : int
        Workers of a node, a divisor of N: channel q enters each node at its worker q (mod ``node_size``) and leaves
        it at the one before, so that with as many channels each NIC of a node carries one.
    orders : sequence of sequence of int
        The workers as the ring of channel q passes them, ``orders[q % len(orders)]``, in place of strides and nodes.

    Returns
    -------
    Schedule
        k N chunks, of which channel q takes q N to q N + N-1; N-1 steps a phase.

    Raises
    ------
    InputError
        A stride or an order that does not pass every worker once; nodes that the workers do not fill.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase. Where the channels share their links, c = S/kN bytes a chunk,
    both phases of an all-reduce take n max(alpha + c beta, k c beta) + min(alpha, (k-1) c beta) with n =
    2(N-1) steps and a reduction that is free: k channels hide the latency of k-1 of them. Where each has
    links of its own, n (alpha + c beta). `ringnet.analysis.closed_forms.rings_s` has the whole form. NCCL's
    rings; Patarasuk and Yuan, JPDC 69 (2009).

    Examples
    --------
    >>> step = next(channel_ring(3, n_channels=2, strides=(1, 2)).steps())
    >>> step.dst.tolist(), step.channel.tolist()
    ([1, 2, 0, 2, 1, 0], [0, 0, 0, 1, 1, 1])
    """
    if orders:
        _check_orders(n_workers, orders)
        loops = Loops(np.array([orders[q % len(orders)] for q in range(n_channels)], dtype=np.int64))
    else:
        _check_strides(n_workers, strides)
        _check_nodes(n_workers, node_size)
        loops = Loops(_strided(n_workers, n_channels, strides, node_size))
    steps = partial(loops.steps, SCATTER_GATHER[collective])
    more = loops.ends(collective) | {
        "n_channels": n_channels,
        "parameters": {
            "n_channels": n_channels,
            "strides": tuple(strides),
            "node_size": node_size,
            "orders": tuple(orders),
        },
    }
    return make_schedule("channel-ring", collective, n_workers, n_channels * n_workers, steps, **more)


def _strided(n_workers: int, n_channels: int, strides: Sequence[int], node_size: int) -> IntArray:
    """Return the workers as each ring passes them, shape (n_channels, n_workers)."""
    places: IntArray = np.stack(
        [np.arange(n_workers) * strides[q % len(strides)] % n_workers for q in range(n_channels)]
    )
    turned = (places + np.arange(n_channels)[:, None]) % node_size
    return places // node_size * node_size + turned


def _check_orders(n_workers: int, orders: Sequence[Sequence[int]]) -> None:
    wrong = [order for order in orders if sorted(order) != [*range(n_workers)]]
    if wrong:
        message = f"a ring in this order does not pass each of {n_workers} workers once"
        raise InputError(*(Fault(message, value=str([*order])) for order in wrong))


def _check_strides(n_workers: int, strides: Sequence[int]) -> None:
    wrong = [stride for stride in strides if gcd(stride, n_workers) != 1]
    if wrong:
        message = f"a ring of this stride does not pass all {n_workers} workers"
        raise InputError(*(Fault(message, value=str(stride), right="1") for stride in wrong))


def _check_nodes(n_workers: int, node_size: int) -> None:
    if n_workers % node_size:
        message = f"{n_workers} workers do not fill nodes of this size"
        raise InputError(Fault(message, value=str(node_size), right="a divisor of the number of workers"))
