"""Runs of alike steps at once: where two put all times later by the same, so do the next two, to the last bit.

A step adds constants to times and takes the later of two; it knows no time but by comparison. So if all times are
later by D, everything that it works out is later by D. Rounding minds in two ways only. A sum is rounded to a multiple
of what the last bit of the result stands for, which is one number between two powers of two: all times, before the
steps and after the leap, must lie between the same two. And a sum in the middle of two such multiples goes to the even
one: D must be an even number of them (as that of four steps is where two have an odd one twice). All of this is looked
at, nothing is taken from what the schedule or the network is called; where workers or links differ so that times do not
go on alike, every step is done.

What is summed up beside (the parts of paths, overheads) goes by the same rule, each sum between its own powers of two.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import FloatArray
from ringnet.collectives import Step
from ringnet.engines.arrays.steps import Steps

#: What is returned in place of a number of times where a shift is an odd number of last bits.
ODD = -1
#: Numbers, and by how much some steps put each later: one for all, or one for each.
Shift: TypeAlias = "tuple[FloatArray, FloatArray]"

#: Bits of a float64's fraction, with the first.
BITS = 53
#: Steps that are done after a look that found no leap, at the most: looks cost as much as a step.
MOST_PATIENCE = 64


class Leaps:
    """Does the steps of a run, most of them by leaps where they are alike.

    Parameters
    ----------
    steps : Steps
        Of one size, without rows.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.can_leap = steps.same_bytes is not None and steps.shared is None and steps.rows is None
        self._before: Step | None = None
        self._groups: list[list[FloatArray]] = []
        self._from: list[FloatArray] = []
        self._n_delayed = 0
        self._unit, self._n_seen, self._wait, self._patience = 2, 0, 0, 1
        self._shifts: list[Shift] = []
        self._left = self._n_skipped = 0

    def do(self, step: Step) -> None:
        """Do one step, now or with those after it."""
        if not self.can_leap:
            self.steps.do(step)
            return
        if self._before is None or not step.moves_as(self._before):
            self.settle()
            self._left = self._n_seen = self._wait = 0
            self._patience = 1
        self._before = step
        if self._n_skipped < self._left:
            self._n_skipped += 1
            return
        self.settle()
        if not self._wait and not self._n_seen:
            self._groups = [[numbers.copy() for numbers in group] for group in self._together()]
            self._from = [numbers.copy() for numbers in self._sums()]
            self._n_delayed = self.steps.n_delayed
        self.steps.do(step)
        self._look()

    def settle(self) -> None:
        """Put everything where the steps that were skipped leave it."""
        if not self._n_skipped:
            return
        assert self._before is not None
        times, rest = divmod(self._n_skipped, self._unit)
        for numbers, by in self._shifts if times else ():
            np.add(numbers, times * by, out=numbers)
        self.steps.count(self._before, self._unit, times)
        for _ in range(rest):
            self.steps.do(self._before)
        self._left -= self._n_skipped
        self._n_skipped = 0

    def _together(self) -> list[list[FloatArray]]:
        """Return the numbers that must go on alike: times of workers and links, and each part of the paths."""
        steps = self.steps
        return [[steps.ready_s, steps.free_s], *([part] for part in steps.paths.parts.values())]

    def _sums(self) -> list[FloatArray]:
        """Return the numbers that go on each by itself."""
        steps, notes = self.steps, self.steps.notes
        assert notes is not None
        return [steps.overhead_s, steps.reducing_s, notes.queued_s, notes.held_s]

    def _look(self) -> None:
        """After some steps: see how far the next ones may be leapt over."""
        if self._wait:
            self._wait -= 1
            return
        self._n_seen += 1
        if self._n_seen < self._unit:
            return
        self._n_seen = 0
        times = self._find() if self._n_delayed == self.steps.n_delayed else 0
        if times == ODD:  # twice as many steps put everything later by twice as much
            self._unit = 4
        if times > 0:
            self._left, self._patience = self._unit * times, 1
        else:
            self._wait, self._patience = self._patience, min(2 * self._patience, MOST_PATIENCE)

    def _find(self) -> int:
        """Return how many more times these steps may be leapt over, and note what they change; 0 or less: not once."""
        groups, sums = self._together(), self._sums()
        if len(groups) != len(self._groups):  # a part of the paths came up
            return 0
        together = [*zip(groups, self._groups, strict=True)]
        alone = [*zip(sums, self._from, strict=True)]
        self._shifts = [(numbers, group[0][:1] - before[0][:1]) for group, before in together for numbers in group]
        self._shifts += [(numbers, numbers - before) for numbers, before in alone]
        rooms = [*(_room_together(*pair) for pair in together), *(_room(*pair) for pair in alone)]
        return 0 if 0 in rooms else min(rooms)


def _room_together(now: list[FloatArray], before: list[FloatArray]) -> int:
    """Return how often all of some numbers may go on by what they went on by, which must be the same for all."""
    by = now[0][0] - before[0][0]
    if not all((new - old == by).all() for new, old in zip(now, before, strict=True)):
        return 0
    ends = [min(old.min() for old in before), max(new.max() for new in now)]
    return _room(np.array(ends[1:]), np.array(ends[:1]), by)


def _room(now: FloatArray, before: FloatArray, by: float | FloatArray | None = None) -> int:
    """Return how often each of some numbers may go on by what it went on by, within its powers of two."""
    by = now - before if by is None else np.full(1, by)
    moves = np.asarray(by != 0)
    if not moves.any():
        return 1 << 62
    now, before, by = now[moves], before[moves], by[moves]
    exponent = np.frexp(now)[1]
    stays: NDArray[np.bool_] = (exponent == np.frexp(before)[1]) & (now * before > 0)
    is_even: NDArray[np.bool_] = np.ldexp(by, BITS - exponent) % 2 == 0
    if not stays.all():
        return 0
    if not is_even.all():
        return ODD
    ahead, behind = np.ldexp(1.0, exponent) - np.abs(now), np.abs(now) - np.ldexp(1.0, exponent - 1)
    room = np.floor(np.where(by * now > 0, ahead, behind) / np.abs(by))
    # Two less than there is room for: sums on the way are ahead of what stands at the end of a step.
    return max(int(room.min()) - 2, 0)
