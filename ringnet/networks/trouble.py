"""What goes wrong with links: one that slows, is down or dies has a bandwidth that changes; others lose packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, repeat
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from ringnet.chance import Draws, NumberStream, RunDraws
from ringnet.errors import Fault, NetworkError
from ringnet.networks.behaviour import (
    NEVER,
    Behaviour,
    ByChance,
    Constant,
    DrawnBandwidth,
    DrawnLatency,
    Offer,
    OverTime,
    Undecided,
)


class Span(NamedTuple):
    """A while in which a link has a share of its bandwidth: none when it is down, for ever when it has died."""

    from_s: float
    to_s: float
    share: float


@dataclass(frozen=True)
class Whiles:
    """When a link or a worker has a share of its speed, some times one after another; each run may draw it anew.

    Parameters
    ----------
    at_s : float or Draws
        When it first begins.
    for_s : float or Draws
        How long it lasts each time.
    share : float
    times : int
    up_s : float or Draws or None
        How long all is well in between.
    period_s : float or None
        In its place: from one beginning to the next.
    retry_s : float or None
        Nothing moves before a try finds an end: tries come so long after the beginning, each twice as long after the
        last.
    probability : float
        That it happens in a run at all.
    happens : NumberStream or None
        What says whether it does; None where that is certain.

    Examples
    --------
    >>> [*Whiles(1.0, 0.5, 0.0, times=2, period_s=2.0).spans(0)]
    [Span(from_s=1.0, to_s=1.5, share=0.0), Span(from_s=3.0, to_s=3.5, share=0.0)]
    >>> [*Whiles(1.0, 2.0, 0.0, retry_s=0.2).spans(0)]
    [Span(from_s=1.0, to_s=4.0, share=0.0)]
    """

    at_s: float | Draws
    for_s: float | Draws
    share: float
    times: int = 1
    up_s: float | Draws | None = None
    period_s: float | None = None
    retry_s: float | None = None
    probability: float = 1.0
    happens: NumberStream | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether it is another while in another run."""
        return self.happens is not None or any(isinstance(one, Draws) for one in (self.at_s, self.for_s, self.up_s))

    def spans(self, run: int) -> Iterator[Span]:
        """Yield the whiles of a run."""
        if self.happens is not None and self.happens.uniforms([run], 1)[0, 0] >= self.probability:
            return
        first, lasts, up = (_numbers(one, run) for one in (self.at_s, self.for_s, self.up_s or 0.0))
        at_s = begin_s = next(first)
        for time, lasts_s, up_s in zip(range(1, self.times + 1), lasts, up, strict=False):
            end_s = begin_s + self._still_s(lasts_s)
            yield Span(begin_s, end_s, self.share)
            begin_s = end_s + up_s if self.period_s is None else at_s + time * self.period_s

    def _still_s(self, for_s: float) -> float:
        """Return how long nothing moves: until the first try when it is over."""
        if self.retry_s is None:
            return for_s
        tried_s = wait_s = self.retry_s
        while tried_s < for_s:
            wait_s *= 2
            tried_s += wait_s
        return tried_s


def _numbers(one: float | Draws, run: int) -> Iterator[float]:
    """Yield what is drawn in a run, one after another, or always the same number."""
    return map(RunDraws(one, run).__getitem__, count()) if isinstance(one, Draws) else repeat(one)


@dataclass(frozen=True)
class InTrouble(Undecided):
    """A link that is in trouble for some whiles: what comes of that is known once a run is chosen.

    Parameters
    ----------
    inner : Behaviour
        What it does without.
    whiles : tuple of Whiles
    deaths : tuple of (Whiles, float)
        When it fails, and after how long what goes over it takes another path.
    """

    inner: Behaviour
    whiles: tuple[Whiles, ...]
    deaths: tuple[tuple[Whiles, float], ...] = ()
    meaning: ClassVar[str] = "when links are in trouble is drawn anew for each run"

    @property
    def is_alike(self) -> bool:
        """Whether it is the same in all runs."""
        whiles = (*self.whiles, *(death for death, _ in self.deaths))
        return not isinstance(self.inner, ByChance) and not any(one.is_drawn for one in whiles)

    def in_run(self, run: int) -> Behaviour:
        """Return what the link does in a run."""
        inner = self.inner.in_run(run)
        spans = [span for one in (*self.whiles, *(death for death, _ in self.deaths)) for span in one.spans(run)]
        if not spans:
            return inner
        if isinstance(inner, DrawnBandwidth | DrawnLatency):
            return TroubledDraws(inner, tuple(spans))
        behaviour: Behaviour = troubled(inner, spans)
        for death, after_s in self.deaths:
            for span in death.spans(run):
                behaviour = FailsOver(behaviour, span.from_s, after_s)
        return behaviour

    def peak(self) -> float:
        """Return the most that it gives without trouble."""
        return self.inner.peak()


@dataclass(frozen=True)
class TroubledDraws(Undecided):
    """A link in trouble that draws a bandwidth or a latency for each transfer: each has its share of what was drawn."""

    inner: DrawnBandwidth | DrawnLatency
    spans: tuple[Span, ...]
    meaning: ClassVar[str] = "numbers are drawn for each transfer over a link in trouble"

    def of_transfer(self, number: int) -> Behaviour:
        """Return what was drawn for that transfer, in trouble."""
        return troubled(self.inner.of_transfer(number), self.spans)

    def peak(self) -> float:
        """Return the most that can be drawn."""
        return self.inner.peak()

    def least_s(self, n_bytes: float, start_s: float) -> float:
        """Return the seconds in which bytes cross at the most that can be drawn, whatever goes wrong meanwhile."""
        if self.peak() == NEVER:
            return 0.0
        return troubled(Constant(self.peak(), 0.0), self.spans).least_s(n_bytes, start_s)


def troubled(behaviour: Behaviour, spans: Sequence[Span]) -> OverTime:
    """Return what a link does that has only a share of its bandwidth for some whiles; where these meet, shares of it.

    What is under way when a link goes down stays where it is, and goes on when the link is up again.

    Parameters
    ----------
    behaviour : Behaviour
        What it does without trouble.
    spans : sequence of Span

    Raises
    ------
    NetworkError
        A link that treats sizes differently: it has no one bandwidth to take a share of.

    Examples
    --------
    >>> link = troubled(Constant(10.0, 0.5), [Span(1.0, 3.0, 0.0), Span(2.0, 4.0, 0.5)])
    >>> link.changes
    ((1.0, 0.0), (3.0, 5.0), (4.0, 10.0))
    >>> link.service_s(0.0, 20.0, 20.0)
    4.5
    """
    if type(behaviour) not in (Constant, OverTime):
        message = f"trouble cannot take a share of a bandwidth where {behaviour.meaning}"
        raise NetworkError(Fault(message, right="a link without regimes"))
    own = behaviour.changes if isinstance(behaviour, OverTime) else ()
    times_s = {time_s for time_s, _ in own} | {time_s for span in spans for time_s in span[:2]}
    changes: list[tuple[float, float]] = []
    bandwidth_Bps, latency_s = behaviour.offer(0.0, -NEVER)
    before_Bps = bandwidth_Bps
    for time_s in sorted(times_s - {NEVER}):
        share = prod(span.share for span in spans if span.from_s <= time_s < span.to_s)
        now_Bps = behaviour.offer(0.0, time_s).bandwidth_Bps * share
        if now_Bps != before_Bps:
            changes.append((time_s, now_Bps))
            before_Bps = now_Bps
    return OverTime(bandwidth_Bps, latency_s, tuple(changes))


@dataclass(frozen=True)
class Wrapped(Behaviour):
    """A link that carries as ``inner`` does: what it does beyond that is seen to by those who send over it."""

    inner: Behaviour

    def in_run(self, run: int) -> Behaviour:
        """Return what it does in a run."""
        inner = self.inner.in_run(run)
        return self if inner is self.inner else replace(self, inner=inner)

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Return what the inner behaviour has."""
        return self.inner.offer(size_bytes, at_s)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return how long that takes."""
        return self.inner.service_s(start_s, n_bytes, size_bytes)

    def peak(self) -> float:
        """Return the most that it gives."""
        return self.inner.peak()

    def peak_at(self, time_s: float) -> float:
        """Return the most that it gives at some time."""
        return self.inner.peak_at(time_s)

    def next_change_s(self, after_s: float) -> float:
        """Return when it next changes."""
        return self.inner.next_change_s(after_s)

    def least_s(self, n_bytes: float, start_s: float) -> float:
        """Return the least that it takes: what is sent again only adds to the bytes."""
        return self.inner.least_s(n_bytes, start_s)


@dataclass(frozen=True)
class FailsOver(Wrapped):
    """A link that dies, and from which what goes over it takes another path.

    Parameters
    ----------
    inner : Behaviour
        Which carries nothing from ``fails_s`` on.
    fails_s : float
    after_s : float
        So long after that all that stands at the link is sent again over the other path, and what comes goes there.
    """

    fails_s: float
    after_s: float
    meaning: ClassVar[str] = "transfers take another path when a link fails"


def fails_over(behaviour: Behaviour) -> FailsOver | None:
    """Return what a link does when it fails, if something else takes another path then; it may lose packets, too."""
    if isinstance(behaviour, FailsOver):
        return behaviour
    return fails_over(behaviour.inner) if isinstance(behaviour, Wrapped) else None


@dataclass(frozen=True)
class Lossy(Wrapped):
    """A link on which packets are lost by chance; what is lost is sent again from the first link of its route.

    It serves as ``inner`` does: what is lost has taken its time on the links.

    Parameters
    ----------
    inner : Behaviour
    probability : float
        Of each packet, from 0 to below 1, independent of all others.
    packet_bytes : int
        How much of a transfer is lost at a time.
    timeout_s : float or None
        A packet that was lost is sent again so long after the last of those sent with it left the first link.
    go_back : int
        Without a timeout: packets that are sent again for each that is lost, itself and those sent after it.
    numbers : NumberStream
        Of this link alone: packets are lost by them.
    run : int
        Whose part of the numbers that is.
    """

    probability: float
    packet_bytes: int
    timeout_s: float | None
    go_back: int
    numbers: NumberStream
    run: int = 0
    meaning: ClassVar[str] = "packets are lost"

    def generator(self) -> np.random.Generator:
        """Return the random numbers of the run, from the first on."""
        return self.numbers.generator(self.run)

    def in_run(self, run: int) -> Lossy:
        """Return what the link does in a run: in each it loses others."""
        return replace(self, inner=self.inner.in_run(run), run=run)
