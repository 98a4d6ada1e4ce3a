"""The ring in both directions: one half of the buffer goes to the right, the other to the left."""

from __future__ import annotations

from functools import partial

import numpy as np

from ringnet.collectives.loops import Loops
from ringnet.collectives.making import SCATTER_GATHER, make_schedule
from ringnet.collectives.schedule import Schedule


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
    which is shared: see `ringnet.analysis.closed_forms.rings_s`. Jain and Sabharwal, *Optimal
    bucket algorithms for large MPI collectives on torus interconnects*, ICS 2010, use both directions of each
    dimension of a torus.

    Examples
    --------
    >>> step = next(bidirectional_ring(3).steps())
    >>> step.src.tolist(), step.dst.tolist(), step.chunk.tolist()
    ([0, 1, 2, 0, 2, 1], [1, 2, 0, 2, 1, 0], [0, 1, 2, 3, 4, 5])
    """
    right = np.arange(n_workers)
    loops = Loops(np.stack((right, -right % n_workers)))
    steps = partial(loops.steps, SCATTER_GATHER[collective])
    more = loops.ends(collective) | {"n_channels": 2}
    return make_schedule("bidirectional-ring", collective, n_workers, 2 * n_workers, steps, **more)
