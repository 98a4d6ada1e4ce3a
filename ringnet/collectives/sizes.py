"""How large a schedule would be, by formula: known before any of it is built, so that none is built that is too large.

Chunks are exact. Transfers and steps may be a little more than there are, never fewer. ``work`` is what it takes to
count them where they have to be made to be counted, in passes over single numbers: some nanoseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ringnet.collectives.schedule import (
    ALL_REDUCE,
    ALL_TO_ALL,
    SCATTER_GATHER,
    UP_DOWN,
    divisor_near_root,
)
from ringnet.collectives.unequal import slices_each

#: Chunks of a schedule, and passes over numbers that counting it may take: a few seconds.
MOST_CHUNKS, MOST_WORK = 2**22, 2**28
#: Passes for a transfer that is made, for a step, and for one that is the same seen from every worker.
_A_TRANSFER, _A_STEP, _A_TURN = 8, 16_000, 128


class Size(NamedTuple):
    """Chunks, steps and transfers of a schedule, and the work of making each once.

    ``one_for_all`` says that in its proof one worker stands for all.
    """

    n_chunks: int
    n_steps: int
    n_transfers: int
    work: int
    one_for_all: bool = False

    @property
    def is_bearable(self) -> bool:
        """Whether it can be built in a few seconds."""
        return self.n_chunks <= MOST_CHUNKS and self.work <= MOST_WORK


SizeOf: TypeAlias = Callable[..., Size]


def _made(n_chunks: int, n_steps: int, n_transfers: int, passes: int = 0) -> Size:
    """Return the size of a schedule whose steps are made to be counted."""
    return Size(n_chunks, n_steps, n_transfers, n_transfers * _A_TRANSFER + n_steps * _A_STEP + passes)


def _rounds(n_workers: int) -> int:
    return (n_workers - 1).bit_length()


def ring_size(n_workers: int, collective: str) -> Size:
    """Return the size of one ring: counted by formula, and proved step by step for one worker, who stands for all."""
    n_steps = len(SCATTER_GATHER[collective]) * (n_workers - 1)
    return Size(n_workers, n_steps, n_steps * n_workers, n_steps * _A_TURN, one_for_all=True)


def rings_size(n_workers: int, collective: str, n_rings: int) -> Size:
    """Return the size of rings beside each other: counted by formula, and proved step by step, a view each."""
    n_steps = len(SCATTER_GATHER[collective]) * (n_workers - 1)
    n_transfers = n_rings * n_steps * n_workers
    return Size(n_rings * n_workers, n_steps, n_transfers, n_transfers // 16)


def pipelined_size(n_workers: int, collective: str, *, n_slices: int, root: int = 0) -> Size:
    """Return the size of a ring, or of a chain, whose chunks are sent on in slices."""
    if collective in SCATTER_GATHER:
        n_steps = len(SCATTER_GATHER[collective]) * (n_workers - 1) * n_slices
        return _made(n_slices * n_workers, n_steps, n_steps * n_workers)
    n_steps = n_workers + n_slices - 2 if n_workers > 1 else 0
    return _made(n_slices, n_steps, n_slices * (n_workers - 1))


def stragglar_size(n_workers: int, collective: str, *, late: int) -> Size:
    """Return the size of StragglAR: nearly everybody sends one chunk in each of about 2N rounds."""
    members = 1 << max(n_workers.bit_length() - 1, 0)
    n_steps = 3 * members + 2 * _rounds(members) + 2 if n_workers > 1 else 0
    return _made(max(members - 1, 1), n_steps, 2 * members * (members + _rounds(members)) + 2 * n_workers)


def uneven_size(n_workers: int, collective: str, *, n_slices: int, rates: Sequence[int] = ()) -> Size:
    """Return the size of a ring in which each worker completes some slices: rounds are sorted once."""
    n_chunks = n_workers * slices_each(n_workers, collective, rates, n_slices)
    n_phases = len(SCATTER_GATHER[collective])
    n_steps = n_phases * 2 * (n_chunks + n_workers) if n_workers > 1 else 0
    return _made(n_chunks, n_steps, n_phases * n_chunks * (n_workers - 1))


def tree_size(
    n_workers: int,
    collective: str,
    *,
    n_slices: int,
    node_size: int,
    n_channels: int,
    root: int = 0,
    n_trees: int = 1,
) -> Size:
    """Return the size of binary trees of chains, ``n_trees`` of them in each channel."""
    trees, phases = n_trees * n_channels, len(UP_DOWN[collective])
    chain = min(max(node_size, 1), n_workers)
    deepest = _rounds(n_workers // chain + 1) + 1 + chain
    n_steps = phases * (n_slices + 2 * deepest)
    passes = trees * n_workers * (n_steps + deepest)
    return _made(trees * n_slices, n_steps, phases * trees * n_slices * max(n_workers - 1, 0), passes)


def switch_tree_size(
    n_workers: int, collective: str, *, n_slices: int, root: int = 0, switch_above: Sequence[int] = ()
) -> Size:
    """Return the size of slices through a tree of switches."""
    members, phases = max(len(switch_above), n_workers + 1), len(UP_DOWN[collective])
    deepest = members - n_workers + 1
    n_steps = phases * (n_slices + 2 * deepest)
    if n_workers == 1:  # nothing moves
        return _made(n_slices, 0, 0)
    return _made(n_slices, n_steps, phases * n_slices * members, members * (n_steps + deepest))


def shares_size(n_workers: int, collective: str, *, n_slices: int, node_size: int = 0) -> Size:
    """Return the size of slices of which each worker of a switch takes a share, with trees across switches."""
    size = min(max(node_size or n_workers, 1), n_workers)
    levels = 2 * _rounds(max(n_workers // size, 1))
    n_hops = 2 * len(SCATTER_GATHER[collective])
    if n_workers == 1:
        return _made(n_slices, 0, 0)
    return _made(n_slices * size, n_slices * (n_hops + levels), n_slices * n_workers * (n_hops + 2))


def binomial_size(n_workers: int, collective: str, *, root: int = 0) -> Size:
    """Return the size of a binomial tree."""
    phases = len(UP_DOWN[collective])
    return _made(1, phases * _rounds(n_workers), phases * (n_workers - 1))


def exchange_size(n_workers: int, collective: str, *, n_steps: int = 0) -> Size:
    """Return the size of an exchange between all pairs, in as many steps; in one, or one a phase, if none are said."""
    phases = 1 if collective == ALL_TO_ALL else len(SCATTER_GATHER[collective])
    n_chunks = n_workers * n_workers if collective == ALL_TO_ALL else n_workers
    return _made(n_chunks, n_steps or phases, phases * n_workers * (n_workers - 1))


def pairwise_size(n_workers: int, collective: str) -> Size:
    """Return the size of an exchange of pairs one after another."""
    return exchange_size(n_workers, collective, n_steps=n_workers)


def bruck_size(n_workers: int, collective: str) -> Size:
    """Return the size of Bruck's all-to-all: half of all blocks move in a step."""
    squares, rounds = n_workers * n_workers, _rounds(n_workers)
    # Each step sorts what moves.
    return _made(squares, rounds, squares * rounds // 2, 2 * _A_TRANSFER * squares * rounds)


def doubling_size(n_workers: int, collective: str) -> Size:
    """Return the size of recursive doubling, with the workers that are folded into others."""
    return _made(1, _rounds(n_workers) + 2, n_workers * (_rounds(n_workers) + 1))


def halving_size(n_workers: int, collective: str, n_parts: int = 1) -> Size:
    """Return the size of halving and doubling of several parts at once."""
    n_steps = len(SCATTER_GATHER[collective]) * _rounds(n_workers) + 2
    # Whoever is folded into another starts or ends with a chunk of its own where chunks have owners.
    members = 1 << max(n_workers.bit_length() - 1, 0)
    n_chunks = n_parts * (members if collective == ALL_REDUCE else n_workers)
    return _made(n_chunks, n_steps, n_parts * n_workers * n_steps)


def swing_size(n_workers: int, collective: str, *, dims: Sequence[int], all_ports: bool) -> Size:
    """Return the size of Swing: two parts for each dimension, or one in all."""
    return halving_size(n_workers, collective, 2 * max(len(dims), 1) if all_ports else 1)


def torus_size(n_workers: int, collective: str, *, n_rows: int) -> Size:
    """Return the size of rings along the rows and columns of a torus."""
    rows = min(max(n_rows or divisor_near_root(n_workers), 1), n_workers)
    n_steps = len(SCATTER_GATHER[collective]) * (rows + n_workers // rows - 2)
    return Size(2 * n_workers, n_steps, 2 * n_workers * n_steps, 2 * n_workers * n_steps)


def levels_size(
    n_workers: int,
    collective: str,
    *,
    node_size: int,
    inner: str,
    outer: str,
    sizes: Mapping[str, Callable[[int, str], Size | None]],
) -> Size:
    """Return the size of one algorithm inside nodes and another across, which cuts each chunk of the first."""
    size = min(max(node_size or divisor_near_root(n_workers), 1), n_workers)
    n_nodes = max(n_workers // size, 1)
    inside = _of_level(inner, size, ALL_REDUCE, sizes)
    across = _of_level(outer, n_nodes, collective, sizes)
    n_transfers = n_nodes * inside.n_transfers + max(size, inside.n_chunks) * across.n_transfers
    n_steps = 2 * inside.n_steps + across.n_steps
    n_chunks = inside.n_chunks * across.n_chunks
    return _made(n_chunks, n_steps, n_transfers)._replace(work=n_transfers * _A_TRANSFER + inside.work + across.work)


def _of_level(
    name: str, n_workers: int, collective: str, sizes: Mapping[str, Callable[[int, str], Size | None]]
) -> Size:
    """Return the size of one level; the smallest where it knows no such collective, as is told when it is built."""
    try:
        return sizes[name](n_workers, collective) or Size(1, 0, 0, 0)
    except KeyError:
        return Size(1, 0, 0, 0)


def largest_that(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to ``most`` that fits, where smaller ones fit as well; 0 if none does.

    >>> largest_that(lambda number: number * number <= 50, 100)
    7
    """
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def too_large(
    size_of: Callable[[int, Mapping[str, Any]], Size], n_workers: int, given: Mapping[str, Any]
) -> tuple[str, int]:
    """Return which parameter makes a schedule too large, or ``"workers"``, and the largest value of it that will do."""
    numbers = {name: one for name, one in given.items() if isinstance(one, int) and not isinstance(one, bool)}
    for name, value in sorted(numbers.items(), key=lambda one: -one[1]):

        def fits(number: int, name: str = name) -> bool:
            return size_of(n_workers, {**given, name: number}).is_bearable

        most = largest_that(fits, value) if fits(1) else 0
        if 0 < most < value:
            return name, most
    return "workers", largest_that(lambda number: size_of(max(number, 1), given).is_bearable, n_workers)
