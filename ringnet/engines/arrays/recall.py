"""Rows of a run that is too long to keep them: made again from where the run stood, some steps and actors at a time.

The state of the recurrence is small: when each actor is ready, when each link is free. It is kept every so many steps,
and from there on a part of the run is done again, for those actors alone that what is asked for depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.arrays.rounds import FloatArray, IntArray, RoundMaker
from ringnet.engines.arrays.steps import Steps
from ringnet.engines.trace import Columns, Recall, TransferRows, Workers
from ringnet.networks import Network

#: Transfers of a part at the most, on the mean; bytes of all states together.
MOST_TRANSFERS, MOST_BYTES = 500_000, 1 << 28


@dataclass
class Checkpoints:
    """Where a run stood at the first step of each of its parts.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    used : ndarray of int64, shape (n_used,)
        The links that the run uses.
    length : int
        Steps of a part.
    """

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_bytes: IntArray
    used: IntArray
    length: int
    states: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    @classmethod
    def of(
        cls, schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, steps: Steps
    ) -> Checkpoints | None:
        """Return those of a run that is to be done by ``steps``; None where more than times would have to be kept.

        About as many steps a part as there are parts: both together are fewest so.
        """
        if steps.shared is not None or not schedule.n_steps:
            return None
        each = max(1, schedule.n_transfers // schedule.n_steps)
        length = max(1, min(isqrt(schedule.n_steps), MOST_TRANSFERS // each))
        n_bytes = -(-schedule.n_steps // length) * (steps.ready_s.nbytes + steps.free_s.nbytes)
        if n_bytes > MOST_BYTES:
            return None
        return cls(schedule, network, workers, chunk_bytes, steps.used, length)

    def begins(self, number: int) -> bool:
        """Whether a part begins with a step."""
        return number % self.length == 0

    def take(self, steps: Steps) -> None:
        """Keep the state before the first step of a part."""
        self.states.append((steps.ready_s.copy(), steps.free_s.copy()))

    def recall(self) -> Recall:
        """Return what makes rows again."""
        return Recall(np.arange(len(self.states)) * self.length, self.make)

    def make(self, part: int, whole: list[Step], actors: frozenset[int]) -> tuple[IntArray, Columns, Columns]:
        """Make the rows of a part that led to what some actors did in its last step; see `Recall`."""
        inside = self._behind(whole, actors)
        kept = _Kept(self.schedule.n_channels, inside)
        picked = [kept.rows(step) for step in whole]
        firsts = np.cumsum([0, *map(len, whole)])[:-1]
        ids = np.concatenate([rows + begin for rows, begin in zip(picked, firsts, strict=True)])
        some = replace(self.schedule, n_steps=len(whole), n_transfers=len(ids))
        steps = self._at(some, part, inside, [kept.of(step) for step in whole])
        assert steps.rows is not None
        assert steps.services is not None
        services = steps.services.columns()
        assert services is not None
        return ids, steps.rows.columns(), services

    def _at(self, some: Schedule, part: int, inside: NDArray[np.bool_], moves: list[Step]) -> Steps:
        """Do some steps from the state that a part begins with; who is left out is never ready."""
        maker = RoundMaker(some, self.network)
        for step in moves:
            maker.rounds(step)
        rows = TransferRows(some.n_transfers, None)
        steps = Steps(some, self.network, self.workers, self.chunk_bytes, maker, rows, takes_notes=False)
        ready_s, free_s = self.states[part]
        steps.ready_s[:] = np.where(inside, ready_s, np.nan)
        steps.free_s[:] = free_s[np.searchsorted(self.used, steps.used)]
        for step in moves:
            steps.do(step)
        return steps

    def _behind(self, steps: list[Step], actors: frozenset[int]) -> NDArray[np.bool_]:
        """Return whom what some actors do in the last of some steps can depend on, shape (n_actors,)."""
        n_channels = self.schedule.n_channels
        inside = np.zeros(self.schedule.n_workers * n_channels, dtype=bool)
        inside[[*actors]] = True
        for step in reversed(steps):
            senders, receivers = (
                step.src * n_channels + step.channel,
                step.dst * n_channels + step.receiving_channel,
            )
            more = senders[inside[receivers]]
            if self.workers.sends == "rendezvous":  # which ends for a sender when it ends for the receiver
                inside[receivers[inside[senders]]] = True
            inside[more] = True
        return inside


class _Kept:
    """Picks the rows of steps that some actors send or receive: what else goes over their links, too, takes time."""

    def __init__(self, n_channels: int, inside: NDArray[np.bool_]) -> None:
        self.n_channels, self.inside = n_channels, inside
        self._last: tuple[tuple[IntArray, ...], IntArray, tuple[IntArray | None, ...]] | None = None

    def rows(self, step: Step) -> IntArray:
        """Return which rows of a step are kept."""
        return self._picked(step)[0]

    def of(self, step: Step) -> Step:
        """Return a step with these rows alone; those with the same columns share theirs again."""
        rows, (src, dst, channel, to_channel) = self._picked(step)
        assert src is not None
        assert dst is not None
        assert channel is not None
        count = None if step.count is None else step.count[rows]
        return replace(
            step,
            src=src,
            dst=dst,
            chunk=step.chunk[rows],
            channel=channel,
            to_channel=to_channel,
            count=count,
        )

    def _picked(self, step: Step) -> tuple[IntArray, tuple[IntArray | None, ...]]:
        columns = (step.src, step.dst, step.channel, step.receiving_channel)
        if self._last is None or any(a is not b for a, b in zip(columns, self._last[0], strict=True)):
            senders = step.src * self.n_channels + step.channel
            receivers = step.dst * self.n_channels + step.receiving_channel
            rows = np.flatnonzero(self.inside[senders] | self.inside[receivers])
            to_channel = None if step.to_channel is None else step.to_channel[rows]
            picked = (step.src[rows], step.dst[rows], step.channel[rows], to_channel)
            for column in picked:
                if column is not None:
                    column.flags.writeable = False
            self._last = columns, rows, picked
        return self._last[1], self._last[2]
