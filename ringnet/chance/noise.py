"""Noise of an operating system: times at which a processor does something else, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ringnet.chance.distributions import FloatArray


@dataclass(frozen=True)
class Noise:
    """Times at which a processor is taken from a worker, and the period after which they come again.

    Parameters
    ----------
    at_s, for_s : tuple of float
        When each interruption begins, ascending, and how long it is; they neither overlap nor reach beyond the period.
    period_s : float

    Notes
    -----
    Of the work that a processor has done by a time, idle it would be done at that time less all interruptions before
    it: a piecewise linear function, and its inverse says when work ends.
    """

    at_s: tuple[float, ...]
    for_s: tuple[float, ...]
    period_s: float

    @cached_property
    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """When each interruption begins, how much work was done by then, and how long all before it were."""
        at_s, for_s = np.array(self.at_s), np.array(self.for_s)
        before_s = np.concatenate(([0.0], np.cumsum(for_s)))
        return at_s, at_s - before_s[:-1], before_s

    @property
    def share(self) -> float:
        """The share of the time that is taken."""
        return sum(self.for_s) / self.period_s

    def end_s(self, start_s: FloatArray, work_s: FloatArray, phase_s: FloatArray) -> FloatArray:
        """Return when work ends that begins at ``start_s``; ``phase_s`` is how far into a period time zero is.

        All of one shape. What takes no time is not interrupted.

        Examples
        --------
        Of each second the last tenth is taken:

        >>> noise = Noise((0.9,), (0.1,), 1.0)
        >>> noise.end_s(np.array([0.0, 0.5, 0.95]), np.array([0.5, 1.0, 0.1]), np.zeros(3)).round(9).tolist()
        [0.5, 1.6, 1.1]
        """
        at_s, done_s, before_s = self._columns
        now_s = start_s + phase_s
        n_periods = np.floor(now_s / self.period_s)
        within_s = now_s - n_periods * self.period_s
        place = np.searchsorted(at_s, within_s, side="right")
        # In the midst of an interruption no more is done than when it began.
        least = np.where(place > 0, done_s[np.maximum(place - 1, 0)], 0.0)
        done = np.maximum(within_s - before_s[place], least)
        each_s = self.period_s - before_s[-1]
        total = done + work_s
        more = np.floor(total / each_s)
        left = total - more * each_s
        after = np.searchsorted(done_s, left, side="left")
        end_s = (n_periods + more) * self.period_s + left + before_s[after] - phase_s
        return np.where(work_s > 0, np.maximum(end_s, start_s + work_s), start_s)

    def end_of(self, start_s: float, work_s: float, phase_s: float) -> float:
        """Return when one piece of work ends: see `end_s`."""
        return float(self.end_s(*(np.array([one]) for one in (start_s, work_s, phase_s)))[0])
