"""The recurrence over many runs at once, each with draws of its own: runs side by side on the trailing axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.chance import Draws
from ringnet.collectives import Schedule
from ringnet.engines.arrays.rounds import Hop, Index, RoundMaker
from ringnet.engines.arrays.steps import Bytes, Steps
from ringnet.engines.luck import RECV, REDUCE, SEND
from ringnet.engines.trace import Workers
from ringnet.networks import ByChance, Network

#: What one place has: always the same, or what it draws.
Number: TypeAlias = float | Draws


class Deck:
    """What some places are dealt, again and again, in all runs side by side.

    Parameters
    ----------
    numbers : sequence of float or Draws
        Of each place, a link or an actor.
    n_times : ndarray of int64, shape (n_places,)
        How often each is dealt something.
    runs : sequence of int
    """

    def __init__(self, numbers: Sequence[Number], n_times: IntArray, runs: Sequence[int]) -> None:
        self.is_drawn = any(isinstance(one, Draws) and one.for_each for one in numbers)
        rows = n_times if self.is_drawn else np.ones_like(n_times)
        self.first = np.concatenate(([0], np.cumsum(rows)))[:-1]
        self.values = np.empty((int(rows.sum()), len(runs)))
        self.n_dealt = np.zeros(len(rows), dtype=np.int64)
        for one, first, n in zip(numbers, self.first.tolist(), rows.tolist(), strict=True):
            if isinstance(one, Draws):
                self.values[first : first + n] = one.of_runs(runs, n if one.for_each else 1).T
            else:
                self.values[first : first + n] = one

    def deal(self, at: Index) -> FloatArray:
        """Return the next numbers of some places, none of them twice, shape (n, n_runs)."""
        if not self.is_drawn:
            return self.values[at]
        places = self.first[at] + self.n_dealt[at]
        self.n_dealt[at] += 1
        return self.values[places]


@dataclass
class _Times:
    """How often in a schedule each link carries something, and each actor sends, receives, reduces."""

    links: IntArray
    sends: IntArray
    receives: IntArray
    reduces: IntArray

    @classmethod
    def of(cls, schedule: Schedule, maker: RoundMaker, n_links: int) -> _Times:
        """Count; the maker has made all rounds, and its hops know where their links are."""
        n_actors = schedule.n_workers * schedule.n_channels
        found = cls(*(np.zeros(n, dtype=np.int64) for n in (n_links, n_actors, n_actors, n_actors)))
        for step in schedule.steps():
            rounds = maker.rounds(step)
            for sends in rounds.sends:
                found.sends[sends.actors] += 1
                for hop in sends.hops:
                    found.links[hop.at] += 1
            for receives in rounds.receives:
                found.receives[receives.actors] += 1
                if step.op == "reduce":
                    found.reduces[receives.actors] += 1
        return found


class DrawnSteps(Steps):
    """Steps of some runs at once, of which each link and each worker draws its own numbers.

    Parameters
    ----------
    schedule : Schedule
    network, workers : Network, Workers
        Of no run yet.
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    maker : RoundMaker
        It has made the rounds of all steps.
    runs : sequence of int
        The numbers of the runs.
    """

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        maker: RoundMaker,
        runs: Sequence[int],
    ) -> None:
        super().__init__(schedule, network, workers, chunk_bytes[:, None], maker, n_runs=len(runs))
        times = _Times.of(schedule, maker, len(self.used))
        numbers = [_of_link(network, link) for link in self.used.tolist()]
        self.bandwidths = Deck([bandwidth for bandwidth, _ in numbers], times.links, runs)
        self.latencies = Deck([latency for _, latency in numbers], times.links, runs)
        # Where a latency is drawn, what comes to a later link of a route may overtake what was sent before it.
        self.may_overtake = self.latencies.is_drawn
        actors = [actor // schedule.n_channels for actor in range(len(self.ready_s))]

        def deck(column: str, n_times: IntArray) -> Deck:
            return Deck([_of_worker(workers, worker, column) for worker in actors], n_times, runs)

        self.sends, self.recvs = deck(SEND, times.sends), deck(RECV, times.receives)
        self.rates = deck(REDUCE, times.reduces)
        starts, launches = (deck(column, np.ones_like(times.sends)) for column in ("start_s", "launch_s"))
        self.ready_s[:] = starts.values + launches.values
        self.first_start_s = starts.values.min(axis=0)
        interruptions = {} if workers.luck is None else workers.luck.interruptions
        self.noise = interruptions[0].noise if interruptions else None
        self.phase_s = np.zeros_like(self.ready_s)
        if self.noise is not None:
            phases = [interruptions[worker].phase.uniforms(runs, 1)[:, 0] for worker in actors]
            self.phase_s = np.array(phases) * self.noise.period_s

    @property
    def makespan_s(self) -> FloatArray:
        """The time of each run, once all steps are done: shape (n_runs,)."""
        return np.asarray(self.ready_s.max(axis=0) - self.first_start_s)

    def _latency_s(self, hop: Hop) -> FloatArray:
        return self.latencies.deal(hop.at)

    def _busy_s(self, hop: Hop, n_bytes: Bytes) -> FloatArray:
        assert not isinstance(n_bytes, int)
        busy_s: FloatArray = n_bytes[hop.rows] / self.bandwidths.deal(hop.at)
        return busy_s

    def _send_cost_s(self, at: Index) -> FloatArray:
        return self.sends.deal(at)

    def _recv_cost_s(self, at: Index) -> FloatArray:
        return self.recvs.deal(at)

    def _reduce_rate_Bps(self, at: Index) -> FloatArray:  # noqa: N802 -- the unit
        return self.rates.deal(at)

    def _worked(self, at: Index, work_s: FloatArray) -> FloatArray:
        if self.noise is None:
            return super()._worked(at, work_s)
        ready_s = self.ready_s[at]
        return self.noise.end_s(ready_s, np.broadcast_to(work_s, ready_s.shape), self.phase_s[at])


def _of_link(network: Network, link: int) -> tuple[Number, Number]:
    behaviour = network.behaviours.get(link)
    if isinstance(behaviour, ByChance):
        return behaviour.bandwidth_Bps, behaviour.latency_s
    return float(network.bandwidth_Bps[link]), float(network.latency_s[link])


def _of_worker(workers: Workers, worker: int, column: str) -> Number:
    drawn = {} if workers.luck is None else workers.luck.draws.get(worker, {})
    return drawn.get(column, float(getattr(workers, column)[worker]))
