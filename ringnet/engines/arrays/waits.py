"""Waits of one channel for another of the same worker, found once for all sizes of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step

IntArray: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

#: No channel, and more than one.
NONE, MANY = -1, -2


@dataclass
class StepWaits:
    """Where the rows of a step look up what they wait for, and where they note what others wait for.

    A lane does its own steps in order: only what another channel did with the same chunk of the worker is waited for.
    Each column has a place for each row, -1 for none; it is None where no row has one. What is noted together stands
    together, and places are used again once nobody waits for what was noted there.

    Parameters
    ----------
    post_after : ndarray of int64, shape (n_rows,), or None
        Of the last apply to the chunk that is posted.
    apply_after, apply_after_post : ndarray of int64, or None
        Of the last apply to the chunk that is applied to, and of the last post of it since.
    post_noted, apply_noted : ndarray of int64, or None
        Where posts and applies are noted.
    fresh : ndarray of int64
        Places that are used anew from this step on.
    """

    post_after: IntArray | None = None
    apply_after: IntArray | None = None
    apply_after_post: IntArray | None = None
    post_noted: IntArray | None = None
    apply_noted: IntArray | None = None
    fresh: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Waits:
    """The waits of every step of a schedule whose transfers carry one chunk each.

    Parameters
    ----------
    schedule : Schedule

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> Waits(ALGORITHMS["binary-tree"].build(3, "all-reduce")).n_places > 0
    True
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._places = _Places()
        steps = list(schedule.steps())
        asked = _Asked(schedule)
        masks = [asked.look_back(step) for step in steps]
        for step, mask in zip(reversed(steps), reversed(masks), strict=True):
            asked.look_ahead(step, mask)
        # Where the last apply to each cell, and the last posts of it since, are noted.
        self._applied = np.full(asked.n_cells, -1)
        self._posted = np.full(asked.n_cells, -1)
        self.steps = [self._step(step, mask) for step, mask in zip(steps, masks, strict=True)]

    @property
    def n_places(self) -> int:
        """How many places there are in all."""
        return self._places.n_places

    def _step(self, step: Step, mask: _Masks) -> StepWaits:
        found = StepWaits()
        self._posts(found, mask, _cells(self.schedule, step.src, step))
        self._applies(found, mask, _cells(self.schedule, step.dst, step))
        found.fresh = self._places.end_step()
        return found

    def _posts(self, found: StepWaits, mask: _Masks, cells: IntArray) -> None:
        found.post_after = _places(mask.post_waits, self._applied, cells)
        if mask.post_last.any():
            self._give_back(self._applied, cells[mask.post_last])
        if mask.post_noted.any():
            # Several channels that post a chunk share a place: the last counts.
            new = mask.post_noted & (self._posted[cells] < 0)
            self._posted[cells[new]] = self._places.take(int(new.sum()))
            found.post_noted = _places(mask.post_noted, self._posted, cells)

    def _applies(self, found: StepWaits, mask: _Masks, cells: IntArray) -> None:
        found.apply_after = _places(mask.after_apply, self._applied, cells)
        found.apply_after_post = _places(mask.after_post, self._posted, cells)
        self._give_back(self._posted, cells)
        self._give_back(self._applied, cells)
        if mask.apply_noted.any():
            self._applied[cells[mask.apply_noted]] = self._places.take(int(mask.apply_noted.sum()))
            found.apply_noted = _places(mask.apply_noted, self._applied, cells)

    def _give_back(self, place: IntArray, cells: IntArray) -> None:
        self._places.give_back(place[cells])
        place[cells] = -1


class _Places:
    """Places that are free, and those taken and given back in this step; those come free with the next."""

    def __init__(self) -> None:
        self.n_places = 0
        self._free: list[IntArray] = []
        self._taken: list[IntArray] = []
        self._back: list[IntArray] = []

    def take(self, count: int) -> IntArray:
        """Return places: those that were given back together if there are as many, else new ones."""
        at = next((at for at, some in enumerate(self._free) if len(some) == count), None)
        if at is not None:
            places = self._free.pop(at)
        else:
            places = np.arange(self.n_places, self.n_places + count)
            self.n_places += count
        self._taken.append(places)
        return places

    def give_back(self, places: IntArray) -> None:
        """Give back places; -1 is none."""
        if (used := places[places >= 0]).size:
            self._back.append(np.unique(used))

    def end_step(self) -> IntArray:
        """Free what was given back; return what was taken."""
        taken = np.concatenate(self._taken) if self._taken else np.zeros(0, dtype=np.int64)
        self._free += self._back
        self._taken, self._back = [], []
        return taken


@dataclass
class _Masks:
    """Which rows of a step wait, which are the last to wait for an apply, and which are waited for."""

    post_waits: Mask
    after_apply: Mask
    after_post: Mask
    post_last: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    post_noted: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    apply_noted: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))


class _Asked:
    """Who had to do with each cell, a chunk of a worker: first step by step, then back from the last."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.n_cells = schedule.n_workers * schedule.n_chunks
        self.applied, self.posted = (np.full(self.n_cells, NONE, dtype=np.int16) for _ in range(2))
        self.wanted_apply, self.wanted_post = (np.zeros(self.n_cells, dtype=bool) for _ in range(2))

    def look_back(self, step: Step) -> _Masks:
        """Find what waits in a step, and remember which channels had to do with its cells."""
        cells, channel = _cells(self.schedule, step.src, step), step.channel
        post_waits = _is_other(self.applied[cells], channel)
        posted = self.posted[cells]
        self.posted[cells] = np.where((posted == NONE) | (posted == channel), channel, MANY)
        cells, channel = _cells(self.schedule, step.dst, step), step.receiving_channel
        # Whoever posted since has waited for the last apply: who waits for the post waits for both.
        after_apply = _is_other(self.applied[cells], channel) & (self.posted[cells] == NONE)
        after_post = _is_other(self.posted[cells], channel)
        self.applied[cells] = channel
        self.posted[cells] = NONE
        return _Masks(post_waits, after_apply, after_post)

    def look_ahead(self, step: Step, mask: _Masks) -> None:
        """Find what later steps wait for; the last step comes first."""
        cells = _cells(self.schedule, step.dst, step)
        mask.apply_noted = self.wanted_apply[cells]
        self.wanted_apply[cells], self.wanted_post[cells] = mask.after_apply, mask.after_post
        cells = _cells(self.schedule, step.src, step)
        mask.post_noted = self.wanted_post[cells]
        # An apply that is waited for by nobody later gives its place back here.
        mask.post_last = mask.post_waits & ~self.wanted_apply[cells]
        self.wanted_apply[cells] |= mask.post_waits


def _cells(schedule: Schedule, workers: IntArray, step: Step) -> IntArray:
    """Return the cell of each row; those of a worker side by side."""
    cells: IntArray = workers * schedule.n_chunks + step.chunk
    return cells


def _places(mask: Mask, place: IntArray, cells: IntArray) -> IntArray | None:
    """Return the places of the rows of a mask; None where there are none."""
    found = np.where(mask, place[cells], -1)
    return found if (found >= 0).any() else None


def _is_other(last: NDArray[np.int16], channel: IntArray) -> Mask:
    other: Mask = (last != NONE) & (last != channel)
    return other
