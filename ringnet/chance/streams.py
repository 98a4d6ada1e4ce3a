"""Streams of random numbers: one for each thing that is drawn, cut into one part for each run.

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

from ringnet.chance.distributions import LEAST_UNIFORM, Distribution, FloatArray

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
