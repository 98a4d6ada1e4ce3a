"""Halving and doubling: partners twice as far away in each step, for any number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    SCATTER_GATHER,
    Schedule,
    Step,
    make_schedule,
    make_step,
    source_and_target,
)


@dataclass(frozen=True)
class Fold:
    """Who takes part in an algorithm for powers of two, and who stands in for whom.

    Of the first 2r workers, r = N - 2^floor(log2 N), each even one hands what it has to its right-hand
    neighbour before the algorithm begins, and gets its result from it at the end.

    Parameters
    ----------
    members : ndarray of int64, shape (a power of two,)
        The workers that take part, in order.
    folded, stand_in : ndarray of int64, shape (r,)
        The others, and who stands in for each.

    Notes
    -----
    Rabenseifner, *Optimization of collective reduction operations*, ICCS 2004; Thakur, Rabenseifner and
    Gropp, IJHPCA 19 (2005).

    Examples
    --------
    >>> fold = Fold.of(6)
    >>> fold.members.tolist(), fold.folded.tolist(), fold.stand_in.tolist()
    ([1, 3, 4, 5], [0, 2], [1, 3])
    """

    members: IntArray
    folded: IntArray
    stand_in: IntArray

    @classmethod
    def of(cls, n_workers: int) -> Fold:
        """Fold ``n_workers`` to the next smaller power of two."""
        rest = n_workers - (1 << (n_workers.bit_length() - 1))
        folded = 2 * np.arange(rest)
        return cls(np.concatenate((folded + 1, np.arange(2 * rest, n_workers))), folded, folded + 1)

    @property
    def n_rounds(self) -> int:
        """Log2 of the number of members."""
        return len(self.members).bit_length() - 1


def recursive_doubling(n_workers: int, collective: str = ALL_REDUCE) -> Schedule:
    """All-reduce by recursive doubling: in step s workers i and i xor 2^s exchange all they have.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see
        `Fold`.
    collective : {"all-reduce"}

    Returns
    -------
    Schedule
        One chunk, log2 N steps; floor(log2 N) + 2 where workers are folded.

    Notes
    -----
    Each worker sends S log2 N bytes. For a power of two it takes log2 N (alpha + S (beta + gamma)): the
    fewest steps, the most bytes. Folding makes that (m + 1) S gamma + (m + 1 or 2)(alpha + S beta), m =
    floor(log2 N), r = N - 2^m: 2 where r > 2^(m-1), else 1, since a worker with a late partner catches up.
    Thakur, Rabenseifner and Gropp, *Optimization of collective communication operations in MPICH*, IJHPCA 19
    (2005).

    Examples
    --------
    >>> [step.dst.tolist() for step in recursive_doubling(4).steps()]
    [[1, 0, 3, 2], [2, 3, 0, 1]]
    """
    if collective != ALL_REDUCE:
        raise KeyError(collective)
    return make_schedule("recursive-doubling", collective, n_workers, 1, partial(_doubling_steps, Fold.of(n_workers)))


def _doubling_steps(fold: Fold) -> Iterator[Step]:
    place = np.arange(len(fold.members))
    if len(fold.folded):
        yield make_step("reduce into neighbours", 0, fold.folded, fold.stand_in, 0)
    for step in range(fold.n_rounds):
        yield make_step("reduce by doubling", step, fold.members, fold.members[place ^ (1 << step)], 0)
    if len(fold.folded):
        yield make_step("copy to neighbours", 0, fold.stand_in, fold.folded, 0)


def halving_doubling(n_workers: int, collective: str = "all-reduce") -> Schedule:
    """All-reduce, reduce-scatter or all-gather by recursive halving and doubling.

    In step s of the reduce-scatter worker i exchanges S / 2^(s+1) with worker i xor 2^s: most with the
    nearest. The all-gather goes the same way back.

    Parameters
    ----------
    n_workers : int
        N, at least 1. If it is no power of two, some workers are folded into their neighbours first: see
        `Fold`.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}

    Returns
    -------
    Schedule
        2^floor(log2 N) chunks (N for a collective in which each worker has its own), log2 N steps a phase;
        each transfer carries a range of chunks. Where workers are folded, one step before and one after.

    Notes
    -----
    For a power of two each worker sends (N-1)/N x S bytes a phase, and a phase takes log2 N alpha + (N-1)/N S
    beta, the reduce-scatter (N-1)/N S gamma more: the bytes of the ring in fewer steps. Otherwise with P =
    2^floor(log2 N) in place of N, and for an all-reduce 2 (alpha + S beta) + S gamma more; where each worker has
    its own chunk, the time is that of `ringnet.analysis.formulas.folded_halving_s`. Rabenseifner,
    *Optimization of collective reduction operations*, ICCS 2004; Thakur, Rabenseifner and Gropp, IJHPCA 19
    (2005).

    Examples
    --------
    >>> step = next(halving_doubling(4).steps())
    >>> step.dst.tolist(), step.chunk.tolist(), step.count.tolist()
    ([1, 0, 3, 2], [2, 0, 2, 0], [2, 2, 2, 2])
    """
    fold = Fold.of(n_workers)
    return halving_schedule("halving-doubling", n_workers, collective, [halving_of(len(fold.members))], fold)


def halving_of(n_members: int) -> Halving:
    """Return who exchanges with whom among ``n_members``, a power of two: i with i xor 2^s in round s."""
    distance = 1 << np.arange(n_members.bit_length() - 1)[:, None]
    return Halving(np.arange(n_members) ^ distance)


class Halving:
    """One part of the buffer, halved among P members, a power of two, and gathered again.

    Parameters
    ----------
    partners : ndarray of int64, shape (log2 P, P)
        The place of each member's partner in each round of the reduce-scatter; the all-gather goes through
        them backwards.

    Attributes
    ----------
    position : ndarray of int64, shape (P,)
        Which of P pieces each member ends with. They are numbered such that what a member sends in a round is
        one range: the halves of the first round differ in the highest bit, and so on.
    """

    def __init__(self, partners: IntArray) -> None:
        self.partners = partners
        # Of two halves the one with the lowest member takes the lower pieces.
        self.position = np.zeros(partners.shape[1], dtype=np.int64)
        leader = np.arange(partners.shape[1])
        for bit, partner in enumerate(partners[::-1]):
            both = np.minimum(leader, leader[partner])
            self.position |= (leader != both).astype(np.int64) << bit
            leader = both

    def scatters(self, step: int) -> tuple[IntArray, IntArray, int]:
        """Return each member's partner, the first of the pieces that it sends, and how many."""
        partner = self.partners[step]
        width = len(partner) >> (step + 1)
        return partner, self.position[partner] & -width, width

    def gathers(self, step: int) -> tuple[IntArray, IntArray, int]:
        """Return the same for a step of the all-gather, which sends what the member has by then."""
        partner = self.partners[len(self.partners) - 1 - step]
        width = 1 << step
        return partner, self.position & -width, width


def halving_schedule(
    algorithm: str,
    n_workers: int,
    collective: str,
    parts: Sequence[Halving],
    fold: Fold,
    parameters: Mapping[str, object] | None = None,
) -> Schedule:
    """Return the schedule of several parts of the buffer, each on a channel of its own with its own range of chunks.

    Parameters
    ----------
    algorithm, collective : str
        Names, as in the tables; the collective scatters sums, gathers them, or does one after the other.
    n_workers : int
        N, at least 1.
    parts : sequence of Halving
        Who exchanges with whom in each part, among the members of ``fold``.
    fold : Fold
        Which workers are members, and who stands in for the others.
    parameters : mapping of str to object, optional
        What is noted in the schedule.
    """
    halvings = _Halvings(parts, fold, SCATTER_GATHER[collective])
    return make_schedule(
        algorithm,
        collective,
        n_workers,
        halvings.n_chunks,
        halvings.steps,
        n_channels=len(parts),
        parameters=parameters,
        **source_and_target(collective, halvings.owner()),
    )


class _Halvings:
    """Several parts at once. A member that stands in for another has two pieces where pieces have owners."""

    def __init__(self, parts: Sequence[Halving], fold: Fold, phases: tuple[str, ...]) -> None:
        self.parts, self.fold, self.phases = parts, fold, phases
        pieces = np.ones(len(fold.members), dtype=np.int64)
        if phases != SCATTER_GATHER[ALL_REDUCE]:
            pieces[: len(fold.folded)] = 2
        self.n_each = int(pieces.sum())
        self.n_chunks = self.n_each * len(parts)
        # Where the chunks of each position begin, and at last where they end; a row for each part.
        self.begins = np.array([np.concatenate(([0], np.cumsum(pieces[np.argsort(part.position)]))) for part in parts])
        self.begins += self.n_each * np.arange(len(parts))[:, None]
        self.channel = np.repeat(np.arange(len(parts)), len(fold.members))

    def owner(self) -> IntArray:
        """Return the worker that a reduce-scatter leaves each chunk with; the first of two is the folded one's."""
        owner = np.zeros(self.n_chunks, dtype=np.int64)
        for part, begins in zip(self.parts, self.begins, strict=True):
            owner[begins[part.position + 1] - 1] = self.fold.members
        if self.phases != SCATTER_GATHER[ALL_REDUCE]:
            owner[self._folded_chunks()] = np.tile(self.fold.folded, len(self.parts))
        return owner

    def steps(self) -> Iterator[Step]:
        """Yield the fold, the rounds, and what goes back to the folded workers."""
        folded, stand_in = self.fold.folded, self.fold.stand_in
        if len(folded) and self.phases[0] == REDUCE_SCATTER:
            yield self._whole("reduce into neighbours", folded, stand_in)
        elif len(folded):
            yield self._pieces("copy to neighbours", folded, stand_in)
        for phase in self.phases:
            for step in range(self.fold.n_rounds):
                yield self._round(phase, step)
        if len(folded) and self.phases[-1] == ALL_GATHER:
            yield self._whole("copy from neighbours", stand_in, folded)
        elif len(folded):
            yield self._pieces("copy from neighbours", stand_in, folded)

    def _round(self, phase: str, step: int) -> Step:
        rounds = [part.scatters(step) if phase == REDUCE_SCATTER else part.gathers(step) for part in self.parts]
        members, pairs = self.fold.members, list(zip(rounds, self.begins, strict=True))
        chunk = np.concatenate([begins[first] for (_, first, _), begins in pairs])
        end = np.concatenate([begins[first + width] for (_, first, width), begins in pairs])
        dst = np.concatenate([members[partner] for partner, _, _ in rounds])
        src = np.tile(members, len(self.parts))
        return make_step(phase, step, src, dst, chunk, self.channel, count=end - chunk)

    def _whole(self, phase: str, src: IntArray, dst: IntArray) -> Step:
        """Return a step that carries the whole buffer, part by part."""
        n_parts = len(self.parts)
        channel = np.repeat(np.arange(n_parts), len(src))
        src, dst = np.tile(src, n_parts), np.tile(dst, n_parts)
        return make_step(phase, 0, src, dst, channel * self.n_each, channel, count=self.n_each)

    def _pieces(self, phase: str, src: IntArray, dst: IntArray) -> Step:
        """Return a step that carries the chunk that each folded worker owns, part by part."""
        n_parts = len(self.parts)
        channel = np.repeat(np.arange(n_parts), len(src))
        return make_step(phase, 0, np.tile(src, n_parts), np.tile(dst, n_parts), self._folded_chunks(), channel)

    def _folded_chunks(self) -> IntArray:
        """Return the chunk that each folded worker owns, part by part."""
        n_folded = len(self.fold.folded)
        pairs = zip(self.parts, self.begins, strict=True)
        return np.concatenate([begins[part.position[:n_folded]] for part, begins in pairs])
