"""What links do: each behaviour is one class, which answers whatever an engine, a bound or a formula asks of a link.

A new behaviour is one more class here. SimPy's links under fifo sharing and the bounds ask every behaviour alike;
whatever simplifies names the classes that it knows to `ringnet.networks.beyond`, and refuses others by their meaning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ringnet.chance import Draws, RunDraws
from ringnet.errors import InputError

#: The end of what never ends, and the time of what never happens.
NEVER = float("inf")
#: A size that is larger than every limit.
ANY_SIZE = float("inf")


class Offer(NamedTuple):
    """What a link has for a transfer: bytes per second, and seconds."""

    bandwidth_Bps: float
    latency_s: float


class Behaviour(ABC):
    """What one link does.

    Answers depend on nothing but the question: whoever asks twice, or in another order, is told the same. What is
    random is a function of a seed, the link and the time of service: a run repeats, and idle times can be asked for.
    """

    #: In words, what it does beyond one bandwidth and one latency: whoever does not know it refuses it with these.
    meaning: ClassVar[str]

    @abstractmethod
    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Return what the link has at some time for a transfer, or a part of one, of ``size_bytes`` in all."""

    @abstractmethod
    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return the seconds that serving ``n_bytes`` of a transfer of ``size_bytes`` takes from ``start_s`` on.

        Infinite where the service never ends.
        """

    @abstractmethod
    def peak(self) -> float:
        """Return the most that the link ever gives to any transfer, in bytes per second, above zero."""

    def peak_at(self, time_s: float) -> float:
        """Return the most that the link gives to any transfer from a time on until it next changes."""
        return self.peak()

    def next_change_s(self, after_s: float) -> float:
        """Return when the link next offers something else than at ``after_s``; infinite if it never does."""
        return NEVER

    def least_s(self, n_bytes: float, start_s: float) -> float:
        """Return the seconds from ``start_s`` on in which ``n_bytes`` cross at best, of whatever sizes."""
        return n_bytes / self.peak() if n_bytes else 0.0

    def in_run(self, run: int) -> Behaviour:
        """Return what it does in a run: itself, unless something of it is drawn anew for each."""
        return self

    @property
    def differs_by_transfer(self) -> bool:
        """Whether each transfer has a behaviour of its own: see `of_transfer`."""
        return type(self).of_transfer is not Behaviour.of_transfer

    def of_transfer(self, number: int) -> Behaviour:
        """Return what it does for a transfer, counted from 0 as it serves them: itself, unless each has its own."""
        return self


@dataclass(frozen=True)
class Constant(Behaviour):
    """One bandwidth and one latency: what a link does of which a network says no more."""

    bandwidth_Bps: float
    latency_s: float
    meaning: ClassVar[str] = "a link has one bandwidth and one latency"

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Return the bandwidth and the latency."""
        return Offer(self.bandwidth_Bps, self.latency_s)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return bytes by bandwidth."""
        return n_bytes / self.bandwidth_Bps

    def peak(self) -> float:
        """Return the bandwidth."""
        return self.bandwidth_Bps


@dataclass(frozen=True)
class Piece:
    """What a link does with transfers of up to ``up_to_bytes``."""

    up_to_bytes: float
    bandwidth_Bps: float
    latency_s: float


@dataclass(frozen=True)
class BySize(Behaviour):
    """Other numbers for transfers of other sizes, as protocols have that switch with the size.

    Parameters
    ----------
    pieces : tuple of Piece
        Ascending; the last one has no limit.

    Examples
    --------
    >>> link = BySize((Piece(8192, 5e9, 2e-6), Piece(ANY_SIZE, 50e9, 5e-7)))
    >>> link.offer(8192, 0.0).bandwidth_Bps, link.offer(8193, 0.0).bandwidth_Bps
    (5000000000.0, 50000000000.0)
    """

    pieces: tuple[Piece, ...]
    meaning: ClassVar[str] = "links treat sizes differently"

    def place(self, size_bytes: float) -> int:
        """Return which of the pieces is for ``size_bytes``."""
        return bisect_left(self.pieces, size_bytes, hi=len(self.pieces) - 1, key=lambda piece: piece.up_to_bytes)

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Return what the piece for the size says."""
        piece = self.pieces[self.place(size_bytes)]
        return Offer(piece.bandwidth_Bps, piece.latency_s)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return bytes by the bandwidth for the size."""
        return n_bytes / self.offer(size_bytes, start_s).bandwidth_Bps

    def peak(self) -> float:
        """Return the largest bandwidth of the pieces."""
        return max(piece.bandwidth_Bps for piece in self.pieces)


@dataclass(frozen=True)
class OverTime(Behaviour):
    """A bandwidth that changes at some times, also while the link serves.

    Parameters
    ----------
    bandwidth_Bps, latency_s : float
        From the start on.
    changes : tuple of (time_s, bandwidth_Bps)
        Ascending: the bandwidth from some time on. It may be zero: then nothing crosses until it is above zero again.

    Examples
    --------
    Ten bytes per second, and twenty from the first second on:

    >>> OverTime(10.0, 0.0, ((1.0, 20.0),)).service_s(0.5, 25.0, 25.0)
    1.5
    >>> OverTime(10.0, 0.0, ((1.0, 0.0),)).service_s(0.5, 25.0, 25.0)
    inf
    """

    bandwidth_Bps: float
    latency_s: float
    changes: tuple[tuple[float, float], ...]
    meaning: ClassVar[str] = "a bandwidth changes over time"

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Return the bandwidth at that time."""
        place = bisect_right(self.changes, (at_s, NEVER))
        return Offer(self.changes[place - 1][1] if place else self.bandwidth_Bps, self.latency_s)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return the seconds until the bandwidth, summed over time, has moved the bytes."""
        place = bisect_right(self.changes, (start_s, NEVER))
        bandwidth_Bps = self.changes[place - 1][1] if place else self.bandwidth_Bps
        left, now_s = float(n_bytes), start_s
        for change_s, following_Bps in self.changes[place:]:
            # An empty transfer, too, waits for a link on which nothing moves.
            if bandwidth_Bps and left <= bandwidth_Bps * (change_s - now_s):
                break
            left -= bandwidth_Bps * (change_s - now_s)
            now_s, bandwidth_Bps = change_s, following_Bps
        return now_s - start_s + left / bandwidth_Bps if bandwidth_Bps else NEVER

    def peak(self) -> float:
        """Return the largest bandwidth of all times."""
        return max([self.bandwidth_Bps, *(bandwidth_Bps for _, bandwidth_Bps in self.changes)])

    def peak_at(self, time_s: float) -> float:
        """Return the bandwidth at that time."""
        return self.offer(ANY_SIZE, time_s).bandwidth_Bps

    def next_change_s(self, after_s: float) -> float:
        """Return the time of the first change after ``after_s``."""
        place = bisect_right(self.changes, (after_s, NEVER))
        return self.changes[place][0] if place < len(self.changes) else NEVER

    def rests(self) -> Iterator[tuple[float, float]]:
        """Yield from when to when nothing crosses the link."""
        ends_s = [*(time_s for time_s, _ in self.changes[1:]), NEVER]
        for (from_s, bandwidth_Bps), to_s in zip(self.changes, ends_s, strict=False):
            if not bandwidth_Bps:
                yield from_s, to_s

    def still_s(self, from_s: float, to_s: float) -> float:
        """Return how much of a while the bandwidth is zero."""
        return sum(max(0.0, min(end_s, to_s) - max(begin_s, from_s)) for begin_s, end_s in self.rests())

    def least_s(self, n_bytes: float, start_s: float) -> float:
        """Return the seconds until the bandwidth, summed over time, has moved the bytes."""
        return self.service_s(start_s, n_bytes, n_bytes) if n_bytes else 0.0


class Undecided(Behaviour):
    """What a link does once a run, or a transfer, is chosen: until then it refuses to say, by its meaning."""

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        """Refuse: nothing is chosen."""
        raise InputError(self.meaning)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Refuse: nothing is chosen."""
        raise InputError(self.meaning)


@dataclass(frozen=True)
class ByChance(Undecided):
    """A bandwidth or a latency, or both, that are drawn: what comes of that is known once a run is chosen.

    Parameters
    ----------
    bandwidth_Bps, latency_s : float or Draws
    """

    bandwidth_Bps: float | Draws
    latency_s: float | Draws
    meaning: ClassVar[str] = "what links do is drawn anew for each run"

    def in_run(self, run: int) -> Behaviour:
        """Return what the link does in a run: constant, unless each transfer has draws of its own."""
        bandwidth, latency = (_in_run(one, run) for one in (self.bandwidth_Bps, self.latency_s))
        if isinstance(bandwidth, RunDraws):
            return DrawnBandwidth(bandwidth, latency)
        return DrawnLatency(bandwidth, latency) if isinstance(latency, RunDraws) else Constant(bandwidth, latency)

    def peak(self) -> float:
        """Return the most that can be drawn, which may be without end."""
        drawn = self.bandwidth_Bps
        return drawn.distribution.most if isinstance(drawn, Draws) else drawn


def _in_run(number: float | Draws, run: int) -> float | RunDraws:
    if isinstance(number, Draws):
        return RunDraws(number, run) if number.for_each else number.once(run)
    return number


@dataclass(frozen=True)
class DrawnLatency(Undecided):
    """One bandwidth, and a latency of its own for each transfer: of the k-th that is served the k-th draw of the run.

    What it offers depends on which transfer asks: see `of_transfer`.
    """

    bandwidth_Bps: float
    latency: RunDraws
    meaning: ClassVar[str] = "a latency is drawn for each transfer"

    def of_transfer(self, number: int) -> Behaviour:
        """Return the bandwidth, and the latency of that transfer."""
        return Constant(self.bandwidth_Bps, self.latency[number])

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        """Return bytes by bandwidth."""
        return n_bytes / self.bandwidth_Bps

    def peak(self) -> float:
        """Return the bandwidth."""
        return self.bandwidth_Bps


@dataclass(frozen=True)
class DrawnBandwidth(Undecided):
    """A bandwidth of its own for each transfer, and a latency that is drawn or not: see `DrawnLatency`."""

    bandwidth: RunDraws
    latency: RunDraws | float
    meaning: ClassVar[str] = "a bandwidth is drawn for each transfer"

    def of_transfer(self, number: int) -> Behaviour:
        """Return the bandwidth and the latency of that transfer."""
        latency_s = self.latency[number] if isinstance(self.latency, RunDraws) else self.latency
        return Constant(self.bandwidth[number], latency_s)

    def peak(self) -> float:
        """Return the most that can be drawn, which may be without end."""
        return self.bandwidth.draws.distribution.most
