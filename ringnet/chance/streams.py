"""Streams of random numbers, one for each thing that is drawn, and the noise of an operating system.

The stream of a link or a worker follows from the seed and from its name alone, as a child of
`numpy.random.SeedSequence` that is found by its key: no other link moves it, and nobody need make the others first.
Each run has a part of it far from the others' (streams and substreams: L'Ecuyer, Simard, Chen and Kelton, Operations
Research 50, 2002), so that run 7 draws the same numbers whoever computes it, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from ringnet.array_types import FloatArray
from ringnet.chance.distributions import LEAST_UNIFORM, Distribution

#: Numbers from the part of a run to that of the next: what `numpy.random.PCG64DXSM.jumped` leaves between two.
PART = 0x9E3779B97F4A7C15F39CC0605CEDC835
#: Numbers that a run's draws are made of at a time, at first.
FIRST_BLOCK = 16


@dataclass(frozen=True)
class NumberStream:
    """Uniform random numbers of one thing that is drawn.

    Parameters
    ----------
    seed : int
    key : tuple of int
        Its place among the children of the seed.
    """

    seed: int
    key: tuple[int, ...]

    def generator(self, run: int) -> np.random.Generator:
        """Return what draws the numbers of a run, from the first on."""
        bits = np.random.PCG64DXSM(np.random.SeedSequence(self.seed, spawn_key=self.key))
        bits.advance(run * PART)
        return np.random.Generator(bits)

    def uniforms(self, runs: Sequence[int], n: int) -> FloatArray:
        """Return the first ``n`` numbers of each of some runs, within (0, 1): shape (n_runs, n)."""
        bits = np.random.PCG64DXSM(np.random.SeedSequence(self.seed, spawn_key=self.key))
        numbers, found, at = np.random.Generator(bits), np.empty((len(runs), n)), 0
        for row, run in enumerate(runs):
            bits.advance(run * PART - at)
            numbers.random(out=found[row])
            at = run * PART + n
        return np.maximum(found, LEAST_UNIFORM, out=found)


def stream(seed: int, *path: str | int) -> NumberStream:
    """Return the stream of something by the words that name it.

    >>> stream(0, "link", "0->1", "latency") == stream(0, "link", "0->1", "latency")
    True
    >>> one, other = (stream(0, "link", name, "latency").uniforms([0], 1) for name in ("0->1", "1->2"))
    >>> bool(one == other)
    False
    """
    digest = sha256(repr(path).encode()).digest()[:16]
    return NumberStream(seed, tuple(np.frombuffer(digest, dtype=">u4").tolist()))


@dataclass(frozen=True)
class Draws:
    """What is drawn of one quantity of one link or worker.

    Parameters
    ----------
    distribution : Distribution
    stream : NumberStream
    for_each : bool
        Whether each transfer has a draw of its own; if not, each run has one.
    """

    distribution: Distribution
    stream: NumberStream
    for_each: bool

    def of_runs(self, runs: Sequence[int], n: int) -> FloatArray:
        """Return the first ``n`` draws of each of some runs, shape (n_runs, n)."""
        return self.distribution.quantile(self.stream.uniforms(runs, n))

    def once(self, run: int) -> float:
        """Return the one draw of a run."""
        return float(self.of_runs([run], 1)[0, 0])


class RunDraws:
    """The draws of a run, one after another, made as they are asked for.

    >>> from ringnet.chance import Exponential
    >>> draws = Draws(Exponential(1.0), stream(7, "worker", 0, "start"), for_each=True)
    >>> bool(RunDraws(draws, run=3)[40] == draws.of_runs([3], 41)[0, 40])
    True
    """

    def __init__(self, draws: Draws, run: int) -> None:
        self.draws, self.run = draws, run
        self._made: list[float] = []

    @cached_property
    def _numbers(self) -> np.random.Generator:
        return self.draws.stream.generator(self.run)

    def __getitem__(self, number: int) -> float:
        while number >= len(self._made):
            uniforms = np.maximum(self._numbers.random(max(FIRST_BLOCK, len(self._made))), LEAST_UNIFORM)
            self._made += self.draws.distribution.quantile(uniforms).tolist()
        return self._made[number]


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
