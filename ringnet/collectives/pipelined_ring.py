"""The pipelined ring: chunks cut into slices, each sent on as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ringnet.collectives.making import (
    ALL_GATHER,
    BROADCAST,
    REDUCE,
    SCATTER_GATHER,
    ends,
    make_schedule,
    make_step,
)
from ringnet.collectives.schedule import Schedule, Step


def pipelined_ring(
    n_workers: int, collective: str = "all-reduce", n_slices: int = 4, root: int = 0
) -> Schedule:
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

    `ringnet.analysis.closed_forms` has them with the reduction. NCCL's ring (its slices within a chunk); the
    chain is in Chan, Heimlich, Purkayastha and van de Geijn, *Collective communication: theory, practice, and
    experience*, CCPE 19 (2007).

    Examples
    --------
    >>> pipelined_ring(4, n_slices=3).n_steps, pipelined_ring(4, "broadcast", n_slices=3).n_steps
    (18, 5)
    """
    more: dict[str, Any]
    if collective in SCATTER_GATHER:
        steps = partial(_ring_steps, n_workers, n_slices, SCATTER_GATHER[collective])
        owner = np.repeat(np.arange(-1, n_workers - 1) % n_workers, n_slices)
        n_chunks, more = n_slices * n_workers, {"n_channels": 2}
    elif collective in {BROADCAST, REDUCE}:
        steps = partial(_chain_steps, n_workers, n_slices, collective, root)
        owner, n_chunks, more = np.full(n_slices, root), n_slices, {"n_channels": 1}
    else:
        raise KeyError(collective)
    more |= ends(collective, owner, n_chunks) | {"parameters": {"n_slices": n_slices, "root": root}}
    return make_schedule("pipelined-ring", collective, n_workers, n_chunks, steps, **more)


def _ring_steps(n_workers: int, n_slices: int, phases: tuple[str, ...]) -> Iterator[Step]:
    src = np.arange(n_workers)
    dst = (src + 1) % n_workers
    for phase in phases:
        for step in range(n_workers - 1):
            first = (src - step + (phase == ALL_GATHER)) % n_workers * n_slices
            for part in range(n_slices):
                yield make_step(phase, step * n_slices + part, src, dst, first + part, 0, to_channel=1)


def _chain_steps(n_workers: int, n_slices: int, collective: str, root: int) -> Iterator[Step]:
    """In step t the worker at place p of the chain passes on slice t - p: down from the root, or up to it."""
    down = collective == BROADCAST
    chain = (root + (np.arange(n_workers) if down else -np.arange(n_workers - 1, -1, -1))) % n_workers
    for step in range(n_workers + n_slices - 2 if n_workers > 1 else 0):
        place = np.arange(max(0, step - n_slices + 1), min(step + 1, n_workers - 1))
        yield make_step(collective, step, chain[place], chain[place + 1], step - place)
