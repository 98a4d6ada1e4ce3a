"""Closed forms of all algorithms on a uniform full network: a link each way between every two workers.

All chunks are alike, workers start together and send eagerly, and nothing but the reduction takes their time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.collectives.exchange import bruck, direct, pairwise
from ringnet.collectives.halving import Halving, halving_doubling, halving_of, recursive_doubling
from ringnet.collectives.hierarchical import hierarchical
from ringnet.collectives.rings import bidirectional_ring, channel_ring, pipelined_ring, ring
from ringnet.collectives.swing import swing, swing_part
from ringnet.collectives.torus_ring import torus_ring
from ringnet.collectives.trees import (
    NOBODY,
    binary_tree,
    binomial_tree,
    depths,
    double_binary_tree,
    double_tree_parents,
)

#: Steps of all phases, as many times N - 1, by collective.
_PHASES = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}


@dataclass(frozen=True)
class TransferCost:
    """What one transfer costs, the same for every worker and route.

    Parameters
    ----------
    alpha_s : float
        Seconds per transfer, whatever its size.
    beta_s_per_byte : float
        Seconds per byte on the way.
    gamma_s_per_byte : float
        Seconds per byte reduced.
    """

    alpha_s: float
    beta_s_per_byte: float
    gamma_s_per_byte: float = 0.0

    def move_s(self, n_bytes: float) -> float:
        """Return alpha + n beta."""
        return self.alpha_s + n_bytes * self.beta_s_per_byte

    def reduce_s(self, n_bytes: float) -> float:
        """Return n gamma."""
        return n_bytes * self.gamma_s_per_byte


def rings_s(collective: str, n_workers: int, n_rings: int, chunk_bytes: float, cost: TransferCost) -> float | None:
    """Return the time of k rings over the same links; of the pipelined ring too, with k slices of c bytes.

    With A = alpha + c (beta + gamma) and m = c max(beta, gamma), the reduce-scatter takes n max(A, k m) +
    min(A - m, (k-1) m), n = N - 1: k chunks follow each other through a link and a processor, and come round
    again. The all-gather is the same without gamma, an all-reduce with a free reduction the same with 2n.
    With one that takes time it is the sum of n steps each, as long as links and processors are not busy all
    the time; None otherwise.

    >>> rings_s("all-reduce", 4, 1, 1000, TransferCost(1.0, 0.001))
    12.0
    """
    n = n_workers - 1
    if collective == "all-gather":
        cost = TransferCost(cost.alpha_s, cost.beta_s_per_byte)
    busy_s = chunk_bytes * max(cost.beta_s_per_byte, cost.gamma_s_per_byte)
    round_s = cost.move_s(chunk_bytes) + cost.reduce_s(chunk_bytes)
    if collective != "all-reduce" or not cost.gamma_s_per_byte:
        n *= _PHASES[collective]
        return n * max(round_s, n_rings * busy_s) + min(round_s - busy_s, (n_rings - 1) * busy_s)
    gather_s = cost.move_s(chunk_bytes)
    if n_rings * busy_s > round_s or n_rings * chunk_bytes * cost.beta_s_per_byte > gather_s:
        return None
    return n * (round_s + gather_s) + (n_rings - 1) * busy_s


def private_rings_s(collective: str, n_workers: int, chunk_bytes: float, cost: TransferCost) -> float | None:
    """Return n (alpha + c beta), for rings with links of their own; None where reducing takes time.

    Then the order in which a worker's processor serves its rings depends on who sends, and differs from
    worker to worker; which of two it serves first changes when the others come, and rounding decides between those
    that come at the same time.
    """
    if cost.gamma_s_per_byte and collective != "all-gather":
        return None
    return _PHASES[collective] * (n_workers - 1) * cost.move_s(chunk_bytes)


def chain_s(collective: str, n_workers: int, n_slices: int, slice_bytes: float, cost: TransferCost) -> float:
    """Return (N-1)(alpha + d (beta + gamma)) + (k-1) d max(beta, gamma); gamma for a reduce only."""
    gamma = cost.gamma_s_per_byte if collective == "reduce" else 0.0
    busy_s = slice_bytes * max(cost.beta_s_per_byte, gamma)
    return (n_workers - 1) * (cost.move_s(slice_bytes) + slice_bytes * gamma) + (n_slices - 1) * busy_s


def recursive_doubling_s(n_workers: int, message_bytes: float, cost: TransferCost) -> float:
    """Return m (alpha + S (beta + gamma)) seconds for N = 2^m; in general as said in `recursive_doubling`."""
    rounds, folded = _rounds(n_workers)
    reduces = moves = rounds
    if folded:
        reduces, moves = rounds + 1, rounds + (2 if 2 * folded > 1 << rounds else 1)
    return moves * cost.move_s(message_bytes) + reduces * cost.reduce_s(message_bytes)


def halving_doubling_s(
    collective: str,
    n_workers: int,
    message_bytes: float,
    cost: TransferCost,
    n_parts: int = 1,
    halving: Callable[[int], Halving] = halving_of,
) -> float | None:
    """Return the time of halving and doubling of ``n_parts`` parts at once, Swing's included.

    A phase takes m alpha + (P-1)/P S' beta, P = 2^m, S' = S / parts, the reduce-scatter (P-1)/P S' gamma
    more; an all-reduce of folded workers 2 (alpha + S' beta) + S' gamma more, the other collectives of folded
    workers as `folded_halving_s` says. None for several parts that fold or reduce at a cost: they meet on
    links or processors, in an order that differs from worker to worker.
    """
    rounds, folded = _rounds(n_workers)
    reduces = collective != "all-gather" and cost.gamma_s_per_byte
    if n_parts > 1 and (folded or reduces):
        return None
    if folded and collective != "all-reduce":
        return folded_halving_s(collective, n_workers, halving(1 << rounds), message_bytes / n_workers, cost)
    part_bytes = message_bytes / n_parts
    moved = part_bytes * (1 - 1 / (1 << rounds))
    phase_s = rounds * cost.alpha_s + moved * cost.beta_s_per_byte
    total_s = _PHASES[collective] * phase_s + (cost.reduce_s(moved) if reduces else 0.0)
    return total_s + (2 * cost.move_s(part_bytes) + cost.reduce_s(part_bytes) if folded else 0.0)


def folded_halving_s(
    collective: str, n_workers: int, halving: Halving, chunk_bytes: float, cost: TransferCost
) -> float:
    """Return the time of a reduce-scatter or an all-gather by halving or doubling where workers are folded.

    With r = N - P folded workers a member i has two chunks if i < r, else one. Reduce-scatter: T(i) is alpha +
    S (beta + gamma) for i < r, else 0; then in each round max(T(i), T(p) + alpha + W beta) + W gamma, p its partner
    and W the bytes that it gets, those of the half that it keeps; at last alpha + c beta for the folded. The
    all-gather goes the same way back: T(i) is alpha + c beta for i < r, W the bytes that the partner has by then,
    nothing is reduced, and at last the folded get S.
    """
    rounds, folded = _rounds(n_workers)
    scatters = collective == "reduce-scatter"
    member = np.arange(1 << rounds)
    begins = np.concatenate(([0], np.cumsum(1 + (np.argsort(halving.position) < folded))))
    first_bytes, last_bytes = chunk_bytes, n_workers * chunk_bytes
    if scatters:
        first_bytes, last_bytes = last_bytes, first_bytes
    first_s = cost.move_s(first_bytes) + (cost.reduce_s(first_bytes) if scatters else 0.0)
    ready_s = np.where(member < folded, first_s, 0.0)
    for step in range(rounds):
        partner, sent, width = halving.scatters(step) if scatters else halving.gathers(step)
        got_bytes = (begins[sent + width] - begins[sent])[partner] * chunk_bytes
        came_s = ready_s[partner] + cost.alpha_s + got_bytes * cost.beta_s_per_byte
        ready_s = np.maximum(ready_s, came_s) + (got_bytes * cost.gamma_s_per_byte if scatters else 0.0)
    return float(max(ready_s.max(), ready_s[:folded].max() + cost.move_s(last_bytes)))


def binomial_tree_s(collective: str, n_workers: int, message_bytes: float, cost: TransferCost) -> float:
    """Return the time of a binomial tree.

    Down: floor(log2 N)(alpha + S beta), the most bits that a number below N can have: a worker's sends leave
    over links of their own. Up: U(N) = max((L-1) h, U(N - 2^(L-1)) + alpha + S beta) + S gamma with L =
    ceil(log2 N), h = alpha + S (beta + gamma), U(1) = 0; L h for N = 2^L.
    """
    up_s = _binomial_reduce_s(n_workers, message_bytes, cost) if collective != "broadcast" else 0.0
    down_s = _rounds(n_workers)[0] * cost.move_s(message_bytes) if collective != "reduce" else 0.0
    return up_s + down_s


def _binomial_reduce_s(n_workers: int, message_bytes: float, cost: TransferCost) -> float:
    if n_workers == 1:
        return 0.0
    rounds = (n_workers - 1).bit_length()
    move_s, reduce_s = cost.move_s(message_bytes), cost.reduce_s(message_bytes)
    last_s = _binomial_reduce_s(n_workers - (1 << (rounds - 1)), message_bytes, cost) + move_s
    return max((rounds - 1) * (move_s + reduce_s), last_s) + reduce_s


def binary_tree_s(collective: str, n_workers: int, n_slices: int, slice_bytes: float, cost: TransferCost) -> float:
    """Return the time of a pipelined complete binary tree of depth D = floor(log2 N), d bytes a slice.

    Up: D (alpha + d beta) + (2D - e) d gamma + (k-1) d max(beta, 2 gamma), e = 1 if N is a power of two (the
    deepest worker is then an only child), else 0; down: D (alpha + d beta) + (k-1) d beta; an all-reduce has
    the slices of both overlap, so that the last term counts once. With N = 2 it is gamma for 2 gamma.
    """
    depth, folded = _rounds(n_workers)
    if not depth:
        return 0.0
    move_s, reduce_s = depth * cost.move_s(slice_bytes), cost.reduce_s(slice_bytes)
    down_busy_s = (n_slices - 1) * slice_bytes * cost.beta_s_per_byte
    if collective == "broadcast":
        return move_s + down_busy_s
    busy_s = max(down_busy_s, (n_slices - 1) * (2 if n_workers > 2 else 1) * reduce_s)  # noqa: PLR2004 -- two children
    up_s = move_s + (2 * depth - (not folded)) * reduce_s + busy_s
    return up_s if collective == "reduce" else up_s + move_s


def double_tree_s(
    n_workers: int, n_slices: int, slice_bytes: float, cost: TransferCost, node_size: int = 1
) -> float | None:
    """Return 2D (alpha + d beta) + (k-1) d beta, D the depth of the deeper tree.

    None where the reduction takes time, and where a link that one tree uses upwards and the other downwards
    still has slices to carry up when the first comes down.
    """
    if cost.gamma_s_per_byte:
        return None
    trees = double_tree_parents(n_workers, node_size)
    depth = max(int(depths(tree).max()) for tree in trees)
    busy_s = (n_slices - 1) * slice_bytes * cost.beta_s_per_byte
    last_up_s = busy_s + slice_bytes * cost.beta_s_per_byte
    gap = _least_gap(trees)
    if gap is not None and last_up_s > gap * cost.move_s(slice_bytes) * (1 + 1e-12):
        return None
    return 2 * depth * cost.move_s(slice_bytes) + busy_s


def _least_gap(trees: list[IntArray]) -> int | None:
    """Return the fewest levels between a link's use by one tree and by the other; None if none is shared."""
    up, down = trees
    gaps = []
    for one, other in ((up, down), (down, up)):
        depth, height = depths(other), _heights(one)
        for child, parent in enumerate(one.tolist()):
            # The other tree goes down from child to parent, or both go up from child to parent.
            if parent != NOBODY and other[parent] == child:
                gaps.append(int(depth.max() + depth[parent] - 1 - height[child]))
            if parent != NOBODY and other[child] == parent:
                gaps.append(0)
    return min(gaps, default=None)


def _heights(parent: IntArray) -> IntArray:
    height, depth = np.zeros_like(parent), depths(parent)
    for child in np.argsort(-depth, kind="stable").tolist():
        if parent[child] != NOBODY:
            height[parent[child]] = max(height[parent[child]], height[child] + 1)
    return height


def direct_s(collective: str, n_workers: int, chunk_bytes: float, cost: TransferCost) -> float:
    """Return alpha + c beta seconds a phase; the reduce-scatter (N-1) c gamma more."""
    reduces = collective in {"all-reduce", "reduce-scatter"}
    reducing_s = (n_workers - 1) * cost.reduce_s(chunk_bytes) if reduces else 0.0
    return _PHASES.get(collective, 1) * cost.move_s(chunk_bytes) + reducing_s


def torus_ring_s(collective: str, n_workers: int, n_rows: int, chunk_bytes: float, cost: TransferCost) -> float | None:
    """Return 2(R-1) alpha + (R-1)(R + 1) c beta a phase on a square torus, R rows, c = S/2N.

    A single row is two rings over the same links. None for other shapes, in which the halves meet on links,
    and where the reduction takes time.
    """
    if n_rows == 1:
        return rings_s(collective, n_workers, 2, chunk_bytes, cost)
    if n_rows * n_rows != n_workers or (cost.gamma_s_per_byte and collective != "all-gather"):
        return None
    return _PHASES[collective] * (n_rows - 1) * (cost.move_s(n_rows * chunk_bytes) + cost.move_s(chunk_bytes))


def pairwise_s(n_workers: int, chunk_bytes: float, cost: TransferCost) -> float:
    """Return (N-1)(alpha + c beta) seconds."""
    return (n_workers - 1) * cost.move_s(chunk_bytes)


def bruck_s(n_workers: int, chunk_bytes: float, cost: TransferCost) -> float:
    """Return L alpha + n c beta seconds, L = ceil(log2 N), n the bits of all numbers below N: L N/2 for N = 2^L.

    In step s each worker sends the blocks whose way has bit s set, one behind the other over one link.

    >>> bruck_s(5, 1.0, TransferCost(0.0, 1.0))  # 1, 10, 11, 100
    5.0
    """
    n_blocks = sum(way.bit_count() for way in range(n_workers))
    return (n_workers - 1).bit_length() * cost.alpha_s + n_blocks * chunk_bytes * cost.beta_s_per_byte


def _rounds(n_workers: int) -> tuple[int, int]:
    """Return floor(log2 N), and what N has beyond that power of two."""
    rounds = n_workers.bit_length() - 1
    return rounds, n_workers - (1 << rounds)


def _channel_ring(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    n_workers, strides = schedule.n_workers, schedule.parameters["strides"]
    if schedule.parameters["node_size"] != 1 or schedule.parameters["orders"]:
        return None
    used = [strides[q % len(strides)] % n_workers for q in range(schedule.n_channels)]  # type: ignore[index,arg-type]
    if len(set(used)) == 1:
        return rings_s(schedule.collective, n_workers, schedule.n_channels, chunk_bytes, cost)
    if len(set(used)) == len(used):
        return private_rings_s(schedule.collective, n_workers, chunk_bytes, cost)
    return None


def _bidirectional(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    if schedule.n_workers == 2:  # noqa: PLR2004 -- both directions are the same link
        return rings_s(schedule.collective, 2, 2, chunk_bytes, cost)
    return private_rings_s(schedule.collective, schedule.n_workers, chunk_bytes, cost)


def _pipelined_ring(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    if schedule.collective in _PHASES:
        n_slices = schedule.n_chunks // schedule.n_workers
        return rings_s(schedule.collective, schedule.n_workers, n_slices, chunk_bytes, cost)
    return chain_s(schedule.collective, schedule.n_workers, schedule.n_chunks, chunk_bytes, cost)


def _swing(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    if schedule.n_workers == 2:  # noqa: PLR2004 -- both parts use the same link
        return rings_s(schedule.collective, 2, schedule.n_channels, chunk_bytes, cost)
    message_bytes, n_parts = chunk_bytes * schedule.n_chunks, schedule.n_channels
    return halving_doubling_s(schedule.collective, schedule.n_workers, message_bytes, cost, n_parts, swing_part)


def _torus_ring(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    n_rows = int(str(schedule.parameters["n_rows"]))
    return torus_ring_s(schedule.collective, schedule.n_workers, n_rows, chunk_bytes, cost)


def _double_tree(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    node_size = int(str(schedule.parameters["node_size"]))
    if schedule.parameters["n_channels"] != 1:
        return None
    return double_tree_s(schedule.n_workers, schedule.n_chunks // 2, chunk_bytes, cost, node_size)


def _binary_tree(schedule: Schedule, chunk_bytes: float, cost: TransferCost) -> float | None:
    told = schedule.parameters
    if (told["n_channels"], told["node_size"]) != (1, 1):
        return None
    return binary_tree_s(schedule.collective, schedule.n_workers, schedule.n_chunks, chunk_bytes, cost)


#: By what made a schedule: called with the schedule, the bytes of each of its chunks, and the cost of a transfer.
FORMS: dict[Callable[..., Schedule], Callable[[Schedule, float, TransferCost], float | None]] = {
    bidirectional_ring: _bidirectional,
    binary_tree: _binary_tree,
    binomial_tree: lambda s, c, cost: binomial_tree_s(s.collective, s.n_workers, c, cost),
    bruck: lambda s, c, cost: bruck_s(s.n_workers, c, cost),
    channel_ring: _channel_ring,
    direct: lambda s, c, cost: direct_s(s.collective, s.n_workers, c, cost),
    double_binary_tree: _double_tree,
    halving_doubling: lambda s, c, cost: halving_doubling_s(s.collective, s.n_workers, c * s.n_chunks, cost),
    pairwise: lambda s, c, cost: pairwise_s(s.n_workers, c, cost),
    pipelined_ring: _pipelined_ring,
    recursive_doubling: lambda s, c, cost: recursive_doubling_s(s.n_workers, c, cost),
    ring: lambda s, c, cost: rings_s(s.collective, s.n_workers, 1, c, cost),
    swing: _swing,
    torus_ring: _torus_ring,
}

#: Algorithms in which the workers of a group go in step, so that the times of levels add up.
_IN_STEP = {"ring", "halving-doubling", "direct", "recursive-doubling", "binomial-tree"}


def hierarchical_s(schedule: Schedule, message_bytes: float, cost: TransferCost) -> float | None:
    """Return the sum of the times of the levels, the inner ones for S, the outer one for what is left.

    None where an algorithm does not keep all workers of a group in step, or has no closed form.
    """
    told = schedule.parameters
    inner, outer, node_size = str(told["inner"]), str(told["outer"]), int(str(told["node_size"]))
    scatters = "reduce-scatter" in ALGORITHMS[inner].collectives
    parts = [(outer, schedule.n_workers // node_size, schedule.collective, 1 / (node_size if scatters else 1))]
    names = ("reduce-scatter", "all-gather") if scatters else ("reduce", "broadcast")
    parts += [(inner, node_size, name, 1.0) for name in names if schedule.collective in {"all-reduce", name}]
    times = [_part_s(*part, message_bytes, cost) for part in parts]
    return None if None in times or not {inner, outer} <= _IN_STEP else sum(time for time in times if time)


def _part_s(
    name: str, n_workers: int, collective: str, share: float, message_bytes: float, cost: TransferCost
) -> float | None:
    if n_workers == 1:
        return 0.0
    schedule = ALGORITHMS[name].build(n_workers, collective)
    chunk_bytes = message_bytes * share / schedule.n_chunks
    return FORMS[ALGORITHMS[name].function](schedule, chunk_bytes, cost)


FORMS[hierarchical] = lambda s, c, cost: hierarchical_s(s, c * s.n_chunks, cost)
