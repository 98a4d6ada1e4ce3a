"""Recursive halving and doubling for any partners: what halving-doubling and Swing have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ringnet.collectives.folding import Fold
from ringnet.collectives.making import (
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    SCATTER_GATHER,
    ends,
    make_schedule,
    make_step,
)
from ringnet.collectives.schedule import IntArray, Schedule, Step


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
        self.position = _positions(partners)

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


def _positions(partners: IntArray) -> IntArray:
    """Return the piece of each member: whose half has the lowest member takes the lower pieces."""
    position = np.zeros(partners.shape[1], dtype=np.int64)
    leader = np.arange(partners.shape[1])
    for bit, partner in enumerate(partners[::-1]):
        both = np.minimum(leader, leader[partner])
        position |= (leader != both).astype(np.int64) << bit
        leader = both
    return position


def halving_schedule(
    algorithm: str,
    n_workers: int,
    collective: str,
    parts: Sequence[Halving],
    fold: Fold,
    parameters: Mapping[str, object] | None = None,
) -> Schedule:
    """Return the schedule of some parts, each on its own channel with its own range of chunks."""
    plan = _Plan(parts, fold, SCATTER_GATHER[collective])
    more = ends(collective, plan.owner(), plan.n_chunks) | {
        "n_channels": len(parts),
        "parameters": parameters or {},
    }
    return make_schedule(algorithm, collective, n_workers, plan.n_chunks, plan.steps, **more)


class _Plan:
    """The steps of all parts. A member that stands in for another has two pieces where pieces have owners."""

    def __init__(self, parts: Sequence[Halving], fold: Fold, phases: tuple[str, ...]) -> None:
        self.parts, self.fold, self.phases = parts, fold, phases
        pieces = np.ones(len(fold.members), dtype=np.int64)
        if phases != SCATTER_GATHER[ALL_REDUCE]:
            pieces[: len(fold.folded)] = 2
        self.n_each = int(pieces.sum())
        self.n_chunks = self.n_each * len(parts)
        # Where the chunks of each position begin, and at last where they end; a row for each part.
        self.begins = np.array(
            [np.concatenate(([0], np.cumsum(pieces[np.argsort(part.position)]))) for part in parts]
        )
        self.begins += self.n_each * np.arange(len(parts))[:, None]
        self.channel = np.repeat(np.arange(len(parts)), len(fold.members))

    def owner(self) -> IntArray:
        """Return who ends a reduce-scatter with each chunk; of two the first is the folded neighbour's."""
        owner = np.zeros(self.n_chunks, dtype=np.int64)
        for part, begins in zip(self.parts, self.begins, strict=True):
            owner[begins[part.position + 1] - 1] = self.fold.members
        if self.phases != SCATTER_GATHER[ALL_REDUCE]:
            owner[self._folded_chunks()] = np.tile(self.fold.folded, len(self.parts))
        return owner

    def steps(self) -> Iterator[Step]:
        """Yield fold, rounds, and what goes back to the folded."""
        if len(self.fold.folded):
            yield self._fold_in()
        for phase in self.phases:
            for step in range(self.fold.n_rounds):
                yield self._round(phase, step)
        if len(self.fold.folded):
            yield self._fold_out()

    def _round(self, phase: str, step: int) -> Step:
        rounds = [
            part.scatters(step) if phase == REDUCE_SCATTER else part.gathers(step) for part in self.parts
        ]
        members, pairs = self.fold.members, list(zip(rounds, self.begins, strict=True))
        chunk = np.concatenate([begins[first] for (_, first, _), begins in pairs])
        end = np.concatenate([begins[first + width] for (_, first, width), begins in pairs])
        dst = np.concatenate([members[partner] for partner, _, _ in rounds])
        src = np.tile(members, len(self.parts))
        return make_step(phase, step, src, dst, chunk, self.channel, count=end - chunk)

    def _fold_in(self) -> Step:
        if self.phases[0] == REDUCE_SCATTER:
            return self._whole("reduce into neighbours", self.fold.folded, self.fold.stand_in)
        return self._pieces("copy to neighbours", self.fold.folded, self.fold.stand_in)

    def _fold_out(self) -> Step:
        if self.phases[-1] == ALL_GATHER:
            return self._whole("copy from neighbours", self.fold.stand_in, self.fold.folded)
        return self._pieces("copy from neighbours", self.fold.stand_in, self.fold.folded)

    def _whole(self, phase: str, src: IntArray, dst: IntArray) -> Step:
        n_parts = len(self.parts)
        channel = np.repeat(np.arange(n_parts), len(src))
        src, dst = np.tile(src, n_parts), np.tile(dst, n_parts)
        return make_step(phase, 0, src, dst, channel * self.n_each, channel, count=self.n_each)

    def _pieces(self, phase: str, src: IntArray, dst: IntArray) -> Step:
        n_parts = len(self.parts)
        channel = np.repeat(np.arange(n_parts), len(src))
        return make_step(
            phase, 0, np.tile(src, n_parts), np.tile(dst, n_parts), self._folded_chunks(), channel
        )

    def _folded_chunks(self) -> IntArray:
        """Return the chunk that each folded worker owns, part by part."""
        n_folded = len(self.fold.folded)
        pairs = zip(self.parts, self.begins, strict=True)
        return np.concatenate([begins[part.position[:n_folded]] for part, begins in pairs])
