"""What workers do by chance: starts, launches, overheads and rates that are drawn; processors that are interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ringnet.chance import Draws, Noise, NumberStream, RunDraws

#: The costs of a worker's processor that may be drawn for each transfer, as columns of `ringnet.engines.Workers`.
SEND, RECV, REDUCE = "send_overhead_s", "recv_overhead_s", "reduce_Bps"
#: What of a worker may be drawn, and what that is in words where each transfer has a draw of its own.
MEANINGS = {
    "start_s": "a start is drawn anew for each run",
    "launch_s": "a launch is drawn anew for each run",
    SEND: "a send overhead is drawn for each transfer",
    RECV: "a receive overhead is drawn for each transfer",
    REDUCE: "a rate of reduction is drawn for each transfer",
}


@dataclass(frozen=True)
class Interruptions:
    """Noise on the processor of a worker, with a phase of its own: time zero of a run falls anywhere in a period."""

    noise: Noise
    phase: NumberStream

    def phase_s(self, run: int) -> float:
        """Return how far into a period a run begins."""
        return float(self.phase.uniforms([run], 1)[0, 0]) * self.noise.period_s


@dataclass(frozen=True)
class Luck:
    """What workers do by chance; whoever does not know it refuses it by `meaning`.

    Parameters
    ----------
    draws : mapping of int to mapping of str to Draws
        By worker, and by column of `ringnet.engines.Workers`; the column itself holds the mean.
    interruptions : mapping of int to Interruptions
        By worker.
    run : int or None
        The run whose draws these are; None where none is chosen.
    """

    draws: Mapping[int, Mapping[str, Draws]] = field(default_factory=dict)
    interruptions: Mapping[int, Interruptions] = field(default_factory=dict)
    run: int | None = None

    @property
    def meaning(self) -> str:
        """In words, what of it there is: the first of several."""
        columns = {column for of_worker in self.draws.values() for column in of_worker}
        found = [meaning for column, meaning in MEANINGS.items() if column in columns]
        return found[0] if found else "processors are interrupted by noise"

    def in_run(self, run: int) -> tuple[dict[tuple[int, str], float], Luck | None]:
        """Return what is drawn once in a run, by worker and column, and what is left to be drawn while it runs."""
        once, left = dict[tuple[int, str], float](), dict[int, dict[str, Draws]]()
        for worker, draws in self.draws.items():
            once |= {(worker, column): one.once(run) for column, one in draws.items() if not one.for_each}
            if later := {column: one for column, one in draws.items() if one.for_each}:
                left[worker] = later
        return once, replace(self, draws=left, run=run) if left or self.interruptions else None

    def of(self, worker: int, means: Mapping[str, float]) -> LuckyProcessor | None:
        """Return what the processor of a worker does in the run; None where nothing by chance."""
        assert self.run is not None
        drawn = {column: RunDraws(one, self.run) for column, one in self.draws.get(worker, {}).items()}
        interrupted = self.interruptions.get(worker)
        return LuckyProcessor(means, drawn, interrupted, self.run) if drawn or interrupted else None


class LuckyProcessor:
    """A worker's processor in a run: its k-th cost of a kind is the k-th draw, and noise may interrupt it."""

    def __init__(
        self,
        means: Mapping[str, float],
        drawn: Mapping[str, RunDraws],
        interrupted: Interruptions | None,
        run: int,
    ) -> None:
        self.means, self.drawn = means, drawn
        self.noise = None if interrupted is None else interrupted.noise
        self.phase_s = 0.0 if interrupted is None else interrupted.phase_s(run)
        self._n_drawn = dict.fromkeys(means, 0)

    def cost(self, column: str) -> float:
        """Return the next cost of a kind."""
        if column not in self.drawn:
            return self.means[column]
        self._n_drawn[column] += 1
        return self.drawn[column][self._n_drawn[column] - 1]

    def end_s(self, start_s: float, work_s: float) -> float:
        """Return when work ends."""
        return start_s + work_s if self.noise is None else self.noise.end_of(start_s, work_s, self.phase_s)
