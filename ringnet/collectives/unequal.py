"""For workers that are not alike: a ring whose slow parts carry less, and one that begins without the late worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ringnet.array_types import IntArray
from ringnet.collectives.halving import Fold
from ringnet.collectives.schedule import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    SCATTER_GATHER,
    Schedule,
    Step,
    frozen,
    make_schedule,
    make_step,
    source_and_target,
)
from ringnet.errors import Fault, InputError

#: Slices for each worker of an uneven ring: filling the pipeline then takes a sixteenth of the time.
SLICES = 16


def uneven_ring(n_workers: int, collective: str = ALL_REDUCE, rates: Sequence[int] = (), n_slices: int = 0) -> Schedule:
    """Ring all-reduce, reduce-scatter or all-gather in which slow workers and links carry less.

    A slice does not go into the worker again that has completed it, nor does it leave its last one: whoever completes
    more of the buffer carries less. Each worker completes as much as makes the slowest way between two be done soonest.

    Parameters
    ----------
    n_workers : int
        N, at least 1.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
    rates : sequence of int
        By worker, the bandwidth to the next one, in bytes per second or relative to each other; none where all are
        alike.
    n_slices : int
        k: the buffer is cut into k N slices; 0 for 1 where all complete as much, else for `SLICES`, or fewer of more
        than 256 workers.

    Returns
    -------
    Schedule
        k N chunks, first those that worker 0 completes. A worker sends on channels 0 (reduce-scatter) and 2
        (all-gather), and receives on 1 and 3: a slice goes on when it is there, whatever the others do.

    Raises
    ------
    InputError
        Rates of more or fewer workers than there are.

    Notes
    -----
    Where worker i completes the share s_i, an all-reduce takes (2 - s_i - s_(i+1)) S over the link from i to i+1: the
    ring's 2(N-1)/N S where all shares are equal, and S, which is the least that must leave a worker, where one of the
    two completes everything. With one worker at half the bandwidth of the others that is the bound of any algorithm;
    filling the pipeline takes a share of 1/k more. A reduce-scatter or an all-gather has equal shares: there the
    result says who completes what. The ring of Patarasuk and Yuan, JPDC 69 (2009), with unequal chunks.

    Examples
    --------
    >>> schedule = uneven_ring(4, rates=[1, 1, 2, 2], n_slices=3)
    >>> schedule.n_chunks, schedule.n_transfers
    (12, 72)
    """
    if rates and len(rates) != n_workers:
        message = f"these are the rates of {len(rates)} workers, not of {n_workers}"
        raise InputError(Fault(message, "rates", value=str([*rates]), right="one for each worker"))
    phases, n_each = SCATTER_GATHER[collective], slices_each(n_workers, collective, rates, n_slices)
    n_chunks = n_each * n_workers
    slices = even_slices(rates, n_chunks) if _is_uneven(collective, rates) else (n_each,) * n_workers
    owner = np.repeat(np.arange(n_workers), slices)
    bounds, hops = _hops(np.array(slices), owner)
    return make_schedule(
        "uneven-ring",
        collective,
        n_workers,
        n_chunks,
        partial(_hop_steps, n_workers, phases, bounds, hops),
        n_channels=2 * len(phases),
        parameters={"rates": tuple(rates), "n_slices": n_slices},
        counts=(len(phases) * (len(bounds) - 1), len(phases) * hops.shape[1]),
        **source_and_target(collective, owner),
    )


def slices_each(n_workers: int, collective: str, rates: Sequence[int], n_slices: int) -> int:
    """Return k, the slices for each worker; where nobody says, fewer of many workers: k N (N - 1) transfers a phase."""
    if n_slices or not _is_uneven(collective, rates):
        return n_slices or 1
    return max(min(SLICES, 256 * SLICES // n_workers), SLICES // 4)


def _is_uneven(collective: str, rates: Sequence[int]) -> bool:
    """Whether some workers are to complete more than others: what a single phase leaves with each is equal."""
    return collective == ALL_REDUCE and len(set(rates)) > 1


def _hops(slices: IntArray, owner: IntArray) -> tuple[IntArray, IntArray]:
    """Return where each round of a phase begins, and in the order of the rounds (chunk, its owner, its number of hops).

    The slices of every owner set out evenly over one half of the rounds, and all hop at one pace, which takes the other
    half: so no link has much to send at some time and nothing at another, whoever owns how many.
    """
    n_chunks, n_hops = len(owner), len(slices) - 1
    first = np.cumsum(slices) - slices
    setting_out = (np.arange(n_chunks) - first[owner]) * n_chunks // (2 * slices[owner])
    pace = max(n_chunks // max(2 * n_hops, 1), 1)
    rounds = (setting_out[:, None] + np.arange(n_hops) * pace).ravel()
    order = np.argsort(rounds, kind="stable")
    chunk, passed = np.divmod(order, max(n_hops, 1))
    bounds = np.flatnonzero(np.diff(rounds[order], prepend=-1, append=n_chunks * len(slices)))
    return bounds, np.stack((chunk, owner[chunk], passed))


def _hop_steps(n_workers: int, phases: Sequence[str], bounds: IntArray, hops: IntArray) -> Iterator[Step]:
    for number, phase in enumerate(phases):
        # A sum begins one after its owner, and is complete there after the last hop.
        ahead, channel = int(phase == REDUCE_SCATTER), 2 * number
        for step, (first, end) in enumerate(pairwise(bounds.tolist())):
            chunk, owner, passed = hops[:, first:end]
            src = (owner + passed + ahead) % n_workers
            yield make_step(phase, step, src, (src + 1) % n_workers, chunk, channel, to_channel=channel + 1)


def even_slices(bandwidth_Bps: ArrayLike, n_slices: int) -> tuple[int, ...]:
    """Return how many slices each worker of an uneven ring completes so that its slowest link is done soonest.

    Parameters
    ----------
    bandwidth_Bps : array_like of float, shape (n_workers,)
        Of the way from worker i to worker i+1, in bytes per second.
    n_slices : int
        K, in all.

    Notes
    -----
    With shares s that add up to 1, the all-reduce takes the largest of (2 - s_i - s_(i+1)) S / B_i, which is made as
    small as can be by linear programming; the shares are then rounded to slices by largest remainder.

    Examples
    --------
    Worker 1 of 4 has half the bandwidth of the others, both ways:

    >>> even_slices([1e9, 1e9, 2e9, 2e9], 12)
    (0, 12, 0, 0)
    """
    from scipy.optimize import linprog  # noqa: PLC0415 -- slow to import, and seldom wanted

    bandwidth = np.asarray(bandwidth_Bps, dtype=np.float64)
    n_workers = len(bandwidth)
    less = np.eye(n_workers) + np.roll(np.eye(n_workers), 1, axis=1)
    solution = linprog(
        [*np.zeros(n_workers), 1.0],
        A_ub=np.column_stack((-less, -bandwidth / bandwidth.max())),
        b_ub=np.full(n_workers, -2.0),
        A_eq=[[*np.ones(n_workers), 0.0]],
        b_eq=[1.0],
    )
    shares = np.asarray(solution.x)[:-1]
    whole = np.floor(shares * n_slices + 1e-9).astype(np.int64)
    behind = np.argsort(whole - shares * n_slices, kind="stable")[: n_slices - int(whole.sum())]
    whole[behind] += 1
    return tuple(whole.tolist())


def stragglar(n_workers: int, collective: str = ALL_REDUCE, late: int = 0) -> Schedule:
    """All-reduce in which the others begin without the worker that comes late: StragglAR.

    The others reduce-scatter among themselves. Then the late worker exchanges one chunk after another with the worker
    that has its sum, which completes it at both, while the others pass on what is complete already.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see `Fold`.
    collective : {"all-reduce"}
    late : int
        The worker that comes late.

    Returns
    -------
    Schedule
        P - 1 chunks, P = 2^floor(log2 N): P - 2 steps among the others, and P - 2 + log2 P rounds from the late one's
        start on, in each of which a worker sends one chunk at most and receives one.

    Notes
    -----
    For a power of two and ports of one bandwidth all is done (N - 2 + log2 N)(alpha + S beta / (N - 1)) after the late
    worker's start, if the others have their sums by then: half the time of a ring where N is large. That is the time of
    Devraj et al., *Efficient AllReduce with Stragglers*, arXiv 2505.23523 (2025); who sends what follows here from a
    formula, not from a search. With m = log2 N, workers are the vectors of GF(2)^m: the late one 0, the k-th of the
    others a^k, a being a primitive element. In round t worker y exchanges with y + a^t, the late one therefore with
    a^t. Before it, the chunk of round r is with a^r + span(a^(r+1), .., a^(t-1)), the workers whose coordinates in the
    basis a^(t-m), .., a^(t-1) begin with that of a^r: so each worker has just one chunk to pass on, and after m rounds
    a chunk is with everybody. At the end the late worker passes on the last chunk as well, which saves a round.

    Examples
    --------
    >>> [(step.phase, step.src.tolist(), step.dst.tolist()) for step in stragglar(4, late=3).steps()][2:5]
    [('exchange', [3, 0], [0, 3]), ('exchange', [3, 1], [1, 3]), ('all-gather', [0], [2])]
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    fold = Fold.of(n_workers)
    # Whoever is last of the members is so for any number of workers: nobody is folded into the late one.
    worker = frozen((late + 1 + np.arange(n_workers)) % n_workers)
    n_others, is_folded = len(fold.members) - 1, len(fold.folded) > 0
    # Of the sums among the others each chunk is then with two workers, and passed on to all others.
    n_steps = max(n_others - 1, 0) + n_others + max(n_others + fold.n_rounds - 2, 0) + 2 * is_folded
    n_transfers = n_others * (n_others - 1) + 2 * n_others + n_others * (n_others - 1) + 2 * len(fold.folded)
    return make_schedule(
        "stragglar",
        collective,
        n_workers,
        max(len(fold.members) - 1, 1),
        partial(_stragglar_steps, fold, worker),
        counts=(n_steps, n_transfers),
        parameters={"late": late},
    )


def _stragglar_steps(fold: Fold, worker: IntArray) -> Iterator[Step]:
    members, n_others = worker[fold.members], len(fold.members) - 1
    others, place = members[:-1], np.arange(n_others)
    folded, stand_in, n_chunks = worker[fold.folded], worker[fold.stand_in], max(n_others, 1)
    if len(folded):
        yield make_step("reduce into neighbours", 0, folded, stand_in, 0, count=n_chunks)
    for step in range(n_others - 1):
        yield make_step(REDUCE_SCATTER, step, others, np.roll(others, -1), (place - 1 - step) % n_others)
    for step in range(n_others + fold.n_rounds - 1):
        if step < n_others:
            pair = members[[n_others, step]]
            yield make_step("exchange", step, pair, pair[::-1], step, op="reduce")
        src, dst, chunk = _passed_on(step, fold.n_rounds)
        if len(src):
            yield make_step(ALL_GATHER, step, members[src], members[dst], chunk)
    if len(folded):
        yield make_step("copy from neighbours", 0, stand_in, folded, 0, count=n_chunks)


def _passed_on(step: int, degree: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return who passes on which chunk to whom in a round: places, the late worker's after those of the others."""
    power, logarithm = _powers(degree)
    n_others = len(power)
    place = np.arange(n_others)
    # The coordinates of a^k in the basis a^(step-degree), .., a^(step-1) are the bits of a^(k-step+degree).
    lowest = power[(place - step + degree) % n_others]
    first = logarithm[lowest & -lowest] + step - degree
    partner = logarithm[power ^ power[step % n_others]]
    has = (first >= 0) & (place != step % n_others)
    src, dst, chunk = place[has], partner[has], np.minimum(first[has], n_others - 1)
    if step >= n_others:  # The late worker has nothing else to do: it passes on the last chunk as well.
        src, dst = np.append(src, n_others), np.append(dst, step % n_others)
        chunk = np.append(chunk, n_others - 1)
    return src, dst, chunk


@cache
def _powers(degree: int) -> tuple[IntArray, IntArray]:
    """Return the powers of a primitive element of GF(2^degree), as bits, and the exponent of each nonzero element."""
    size = 1 << degree
    for taps in range(1, size, 2):
        power = [1]
        for _ in range(size - 2):
            double = power[-1] << 1
            power.append(double ^ (size | taps) if double >= size else double)
        if len({*power}) == size - 1:
            break
    logarithm = np.zeros(size, dtype=np.int64)
    logarithm[power] = np.arange(len(power))
    return frozen(power), frozen(logarithm)
