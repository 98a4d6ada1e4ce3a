"""What goes wrong with links: one that slows, is down or dies has a bandwidth that changes; others lose packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np

from ringnet.chance import NumberStream
from ringnet.errors import Fault, NetworkError
from ringnet.networks.behaviour import NEVER, Behaviour, Constant, Offer, OverTime


class Span(NamedTuple):
    """A while in which a link has a share of its bandwidth: none when it is down, for ever when it has died."""

    from_s: float
    to_s: float
    share: float


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
        """Return what the link does in another run: it loses others."""
        return replace(self, run=run)
