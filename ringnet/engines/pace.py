"""How fast a worker's processor works over time: as ever, slower, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ringnet.networks.behaviour import NEVER, Constant, OverTime
from ringnet.networks.trouble import Span, troubled


@dataclass(frozen=True)
class ProcessorPace:
    """The share of its speed that a processor has from some times on; before the first of them all of it.

    Parameters
    ----------
    changes : tuple of (time_s, share)
        Ascending. A share of zero that is never followed by another one is the worker's death.

    Examples
    --------
    A processor that stands still from 1 s to 3 s, and works at half its speed from then on:

    >>> pace = ProcessorPace(((1.0, 0.0), (3.0, 0.5)))
    >>> pace.end_s(0.5, 1.0), pace.begin_s(4.0, 1.0), pace.still_s(0.5, 4.0), pace.dies_s
    (4.0, 0.5, 2.0, inf)
    """

    changes: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, spans: Sequence[Span]) -> ProcessorPace:
        """Return the pace of a worker that has a share of its speed for some whiles."""
        return cls(troubled(Constant(1.0, 0.0), spans).changes)

    @cached_property
    def _work(self) -> OverTime:
        """Seconds of work as bytes, of which a processor as it should be does one each second."""
        return OverTime(1.0, 0.0, self.changes)

    @cached_property
    def _pieces(self) -> list[tuple[float, float, float]]:
        """From when to when it has which share."""
        starts = ((-NEVER, 1.0), *self.changes)
        ends_s = [*(time_s for time_s, _ in self.changes), NEVER]
        return [(from_s, to_s, share) for (from_s, share), to_s in zip(starts, ends_s, strict=True)]

    @property
    def dies_s(self) -> float:
        """When it stops for ever; infinite if it never does."""
        return self.changes[-1][0] if self.changes and not self.changes[-1][1] else NEVER

    def end_s(self, begin_s: float, work_s: float) -> float:
        """Return when some work that begins at ``begin_s`` is done; infinite if never.

        Where there is nothing to do, that is when the processor next does anything.
        """
        return begin_s + self._work.service_s(begin_s, work_s, work_s)

    def begin_s(self, end_s: float, work_s: float) -> float:
        """Return when some work began that is done at ``end_s``, if nothing came between."""
        for from_s, to_s, share in reversed(self._pieces):
            if from_s >= end_s or not share:
                continue
            until_s = min(to_s, end_s)
            if work_s <= (until_s - from_s) * share:
                return until_s - work_s / share
            work_s -= (until_s - from_s) * share
        raise AssertionError("before its first change it works for ever")

    def still_s(self, from_s: float, to_s: float) -> float:
        """Return how much of a while it stands still."""
        return self._work.still_s(from_s, to_s)

    def worked_s(self, from_s: float, to_s: float) -> float:
        """Return how much of a while it does not; nothing of one that never ends."""
        return 0.0 if to_s == NEVER else to_s - from_s - self.still_s(from_s, to_s)

    def pauses(self) -> list[tuple[float, float]]:
        """Return from when to when it stands still."""
        return [*self._work.rests()]
