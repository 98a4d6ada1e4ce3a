"""Rings: one way, both ways, several beside each other, and with chunks that are sent on in slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import gcd

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_GATHER,
    BROADCAST,
    EVERY_WORKER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER_GATHER,
    AlikeSteps,
    Op,
    Schedule,
    Step,
    check_node_size,
    entries,
    frozen,
    make_schedule,
    make_step,
    source_and_target,
)
from ringnet.errors import Fault, InputError


def ring(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """Ring all-reduce, reduce-scatter or all-gather in one direction.

    After reduce-scatter worker i holds the complete chunk (i+1) mod N; an all-gather on its own starts there.

    Parameters
    ----------
    n_workers : int
        N, at least 1. With N=1 there is no step.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}

    Returns
    -------
    Schedule
        N chunks, N-1 steps a phase, N transfers a step.

    Raises
    ------
    KeyError
        For any other collective.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase. On a uniform ring a phase takes (N-1)(alpha + c beta), c
    the bytes of the largest chunk, the reduce-scatter (N-1) c gamma more. Patarasuk and Yuan, *Bandwidth optimal
    all-reduce algorithms for clusters of workstations*, JPDC 69 (2009).

    Examples
    --------
    >>> step = next(ring(3).steps())
    >>> step.src.tolist(), step.dst.tolist(), step.chunk.tolist()
    ([0, 1, 2], [1, 2, 0], [0, 1, 2])
    """
    phases = SCATTER_GATHER[collective]
    everyone = np.full(n_workers, EVERY_WORKER, dtype=np.int64)
    owner = np.arange(-1, n_workers - 1, dtype=np.int64) % n_workers
    n_steps = len(phases) * (n_workers - 1)
    return Schedule(
        algorithm="ring",
        collective=collective,
        n_workers=n_workers,
        n_chunks=n_workers,
        n_steps=n_steps,
        n_transfers=n_steps * n_workers,
        make_steps=_RingSteps(n_workers, phases),
        source=owner if phases == (ALL_GATHER,) else everyone,
        target=owner if phases == (REDUCE_SCATTER,) else everyone,
    )


class _RingSteps(AlikeSteps):
    """The steps of a ring in one direction.

    Every column of every step is a view of one doubled range: a step of a million transfers costs no arithmetic.
    """

    def __init__(self, n_workers: int, phases: tuple[str, ...]) -> None:
        self.n_workers, self.phases = n_workers, phases
        self.twice = frozen(np.arange(2 * n_workers) % n_workers)
        self.src, self.dst = self.twice[:n_workers], self.twice[1 : n_workers + 1]
        self.channel = frozen(np.zeros(n_workers))

    def __call__(self) -> Iterator[Step]:
        for phase in self.phases:
            for step in range(self.n_workers - 1):
                yield self._step(phase, step)

    def runs(self) -> Iterator[tuple[Step, int]]:
        for phase in self.phases if self.n_workers > 1 else ():
            yield self._step(phase, 0), self.n_workers - 1

    def _step(self, phase: str, step: int) -> Step:
        op: Op = "reduce" if phase == REDUCE_SCATTER else "copy"
        first = ((0 if phase == REDUCE_SCATTER else 1) - step) % self.n_workers
        return Step(phase, step, op, self.src, self.dst, self.twice[first : first + self.n_workers], self.channel)


class ParallelRings:
    """Rings beside each other through the same workers, each on a channel of its own.

    Parameters
    ----------
    orders : ndarray of int64, shape (n_rings, n_workers)
        The workers in the order in which each ring passes them; ring q works on chunks q N .. q N + N - 1.

    Notes
    -----
    In step s the worker at place p sends chunk p - s (reduce-scatter) or p + 1 - s (all-gather) of its ring,
    mod N, to the one at place p + 1. After the reduce-scatter the worker at place p has chunk p + 1 complete.
    """

    def __init__(self, orders: IntArray) -> None:
        self.n_rings, self.n_workers = orders.shape
        self._src, self._dst = frozen(orders.ravel()), frozen(np.roll(orders, -1, axis=1).ravel())
        self._channel = frozen(np.repeat(np.arange(self.n_rings), self.n_workers))
        self._place = frozen(np.tile(np.arange(self.n_workers), self.n_rings))
        self._first = frozen(self._channel * self.n_workers)
        self._owner = frozen(np.roll(orders, 1, axis=1).ravel())

    def schedule(self, algorithm: str, collective: str, parameters: Mapping[str, object] | None = None) -> Schedule:
        """Return the schedule of a collective over all rings at once."""
        n_steps = len(SCATTER_GATHER[collective]) * (self.n_workers - 1)
        return make_schedule(
            algorithm,
            collective,
            self.n_workers,
            len(self._owner),
            partial(self._steps, SCATTER_GATHER[collective]),
            n_channels=self.n_rings,
            parameters=parameters,
            counts=(n_steps, n_steps * len(self._owner)),
            **source_and_target(collective, self._owner),
        )

    def _steps(self, phases: Sequence[str]) -> Iterator[Step]:
        for phase in phases:
            op: Op = "copy" if phase == ALL_GATHER else "reduce"
            for step in range(self.n_workers - 1):
                ahead = int(phase == ALL_GATHER) - step
                chunk: IntArray = (self._place + ahead) % self.n_workers + self._first
                chunk.flags.writeable = False
                yield Step(phase, step, op, self._src, self._dst, chunk, self._channel)


def bidirectional_ring(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """Ring all-reduce, reduce-scatter or all-gather with one half of the buffer in each direction.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}

    Returns
    -------
    Schedule
        2N chunks, two channels: 0 to the right with chunks 0 to N-1, 1 to the left with the rest. N-1 steps a
        phase.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase, half of it each way. With both directions of every cable
    free, a phase takes (N-1)(alpha + c beta), c = S/2N: half the time of a ring for large S, the same for
    small. The two reductions of a step share the worker's processor. With N=2 both directions are one link,
    which is shared: see `ringnet.analysis.formulas.rings_s`. Jain and Sabharwal, *Optimal
    bucket algorithms for large MPI collectives on torus interconnects*, ICS 2010, use both directions of each
    dimension of a torus.

    Examples
    --------
    >>> step = next(bidirectional_ring(3).steps())
    >>> step.src.tolist(), step.dst.tolist(), step.chunk.tolist()
    ([0, 1, 2, 0, 2, 1], [1, 2, 0, 2, 1, 0], [0, 1, 2, 3, 4, 5])
    """
    right = np.arange(n_workers)
    rings = ParallelRings(np.stack((right, -right % n_workers)))
    return rings.schedule("bidirectional-ring", collective)


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
        Workers of a node, a divisor of N: the channels enter each node spread over its workers, and each leaves it at
        the worker before, so that with as many channels as cards each card of a node carries one: see `entries`.
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
    links of its own, n (alpha + c beta). `ringnet.analysis.formulas.rings_s` has the whole form. NCCL's
    rings; Patarasuk and Yuan, JPDC 69 (2009).

    Examples
    --------
    >>> step = next(channel_ring(3, n_channels=2, strides=(1, 2)).steps())
    >>> step.dst.tolist(), step.channel.tolist()
    ([1, 2, 0, 2, 1, 0], [0, 0, 0, 1, 1, 1])
    """
    if orders:
        _check_orders(n_workers, orders)
        rings = ParallelRings(np.array([orders[q % len(orders)] for q in range(n_channels)], dtype=np.int64))
    else:
        _check_strides(n_workers, strides)
        check_node_size(n_workers, node_size)
        rings = ParallelRings(_strided(n_workers, n_channels, strides, node_size))
    parameters = {
        "n_channels": n_channels,
        "strides": tuple(strides),
        "node_size": node_size,
        "orders": tuple(orders),
    }
    return rings.schedule("channel-ring", collective, parameters)


def _strided(n_workers: int, n_channels: int, strides: Sequence[int], node_size: int) -> IntArray:
    """Return the workers as each ring passes them, shape (n_channels, n_workers)."""
    places: IntArray = np.stack(
        [np.arange(n_workers) * strides[q % len(strides)] % n_workers for q in range(n_channels)]
    )
    turned = (places + entries(n_channels, node_size)[:, None]) % node_size
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


def pipelined_ring(n_workers: int, collective: str = "all-reduce", n_slices: int = 4, root: int = 0) -> Schedule:
    """Pipelined ring all-reduce, reduce-scatter and all-gather; on the ring as a chain, broadcast, reduce.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce"}
    n_slices : int
        k, at least 1: slices of each of N chunks; of the whole buffer for broadcast and reduce.
    root : int
        Where a broadcast starts and a reduce ends.

    Returns
    -------
    Schedule
        On the ring k N chunks, ring chunk j being chunks j k to j k + k-1, and k(N-1) steps a phase. A worker
        sends on channel 0 and receives on channel 1: a slice goes on when it is applied, whatever the others
        do. On the chain k chunks and N+k-2 steps on one channel.

    Notes
    -----
    Each worker sends (N-1)/N x S bytes a phase, on the chain S. With d bytes a slice (S/kN; on the chain S/k)
    and a reduction that is free:

    - all-reduce: n max(alpha + d beta, k d beta) + min(alpha, (k-1) d beta) with n = 2(N-1): slices hide
      latency where it is long beside the time of a chunk;
    - broadcast, reduce: (N+k-2) d beta + (N-1) alpha, least for k near sqrt((N-2) S beta / alpha).

    `ringnet.analysis.formulas` has them with the reduction. NCCL's ring (its slices within a chunk); the
    chain is in Chan, Heimlich, Purkayastha and van de Geijn, *Collective communication: theory, practice, and
    experience*, CCPE 19 (2007).

    Examples
    --------
    >>> pipelined_ring(4, n_slices=3).n_steps, pipelined_ring(4, "broadcast", n_slices=3).n_steps
    (18, 5)
    """
    if collective in SCATTER_GATHER:
        steps = partial(_sliced_steps, n_workers, n_slices, SCATTER_GATHER[collective])
        owner, n_channels = np.repeat(np.arange(-1, n_workers - 1) % n_workers, n_slices), 2
        n_steps = len(SCATTER_GATHER[collective]) * (n_workers - 1) * n_slices
        counts = (n_steps, n_steps * n_workers)
    elif collective in {BROADCAST, REDUCE}:
        steps = partial(_chain_steps, n_workers, n_slices, collective, root)
        owner, n_channels = np.full(n_slices, root), 1
        counts = (n_workers + n_slices - 2 if n_workers > 1 else 0, (n_workers - 1) * n_slices)
    else:
        raise KeyError(collective)
    return make_schedule(
        "pipelined-ring",
        collective,
        n_workers,
        len(owner),
        steps,
        n_channels=n_channels,
        parameters={"n_slices": n_slices, "root": root},
        counts=counts,
        **source_and_target(collective, owner),
    )


def _sliced_steps(n_workers: int, n_slices: int, phases: tuple[str, ...]) -> Iterator[Step]:
    src, dst = frozen(np.arange(n_workers)), frozen((np.arange(n_workers) + 1) % n_workers)
    # Of all steps: what shares its columns moves alike, and is looked at once.
    channel, to_channel = frozen(np.zeros(n_workers)), frozen(np.ones(n_workers))
    for phase in phases:
        for step in range(n_workers - 1):
            first = (src - step + (phase == ALL_GATHER)) % n_workers * n_slices
            for part in range(n_slices):
                yield make_step(phase, step * n_slices + part, src, dst, first + part, channel, to_channel=to_channel)


def _chain_steps(n_workers: int, n_slices: int, collective: str, root: int) -> Iterator[Step]:
    """In step t the worker at place p of the chain passes on slice t - p: down from the root, or up to it."""
    down = collective == BROADCAST
    chain = (root + (np.arange(n_workers) if down else -np.arange(n_workers - 1, -1, -1))) % n_workers
    for step in range(n_workers + n_slices - 2 if n_workers > 1 else 0):
        place = np.arange(max(0, step - n_slices + 1), min(step + 1, n_workers - 1))
        yield make_step(collective, step, chain[place], chain[place + 1], step - place)
