"""What a collective does about workers that die: who is left, or who takes their place, and when it starts again.

A failed attempt and the next are runs of their own: what the first has moved is thrown away, and the next starts from
the data as it was, so that nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ringnet.collectives import Schedule
from ringnet.engines import Trace, Workers
from ringnet.engines.luck import Luck
from ringnet.errors import AbortedError, DeadlockError, Fault, InputError
from ringnet.networks import Network, around, dying_links, fails_over, in_run, placed
from ringnet.networks.behaviour import NEVER
from ringnet.payload.reductions import make_reduction
from ringnet.payload.sources import SomeWorkers
from ringnet.runs.parts import RunParts, chunk_sizes, read_off_network
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import reduction_of
from ringnet.scenario.drawn import OF_WORKERS, mean_of
from ringnet.scenario.keys.trouble import FailureKeys
from ringnet.scenario.measured_links import launch_of
from ringnet.scenario.network import hardware
from ringnet.scenario.schedule import schedule_beside

T = TypeVar("T")


class Happened(NamedTuple):
    """A row of ``trouble.csv``: what goes wrong, or is done about it; ``to_s`` is infinite for what lasts for ever."""

    from_s: float
    to_s: float
    what: str
    link: str | None = None
    worker: int | None = None


@dataclass(frozen=True)
class CameThrough(Generic[T]):
    """An attempt that came through, after others that failed.

    Parameters
    ----------
    parts : RunParts
    found : object
        What running it has come to.
    members : tuple of int
        The worker of the scenario whose part each worker of the attempt has.
    begun_s : float or None
        When it began; None where it is the first.
    happened : tuple of Happened
        What was done about the attempts that failed.
    """

    parts: RunParts
    found: T
    members: tuple[int, ...]
    begun_s: float | None = None
    happened: tuple[Happened, ...] = ()


def attempts(scenario: Scenario, parts: RunParts, run: Callable[[RunParts], T]) -> CameThrough[T]:
    """Run a collective, and again without its dead, or with others in their place, as the scenario's policy says.

    Parameters
    ----------
    scenario : Scenario
    parts : RunParts
        Of the scenario.
    run : callable
        Runs parts; called once for each attempt.

    Raises
    ------
    DeadlockError
        The policy is to wait; or nobody has died, so that nobody could be left out; or nobody is left.
    """
    failure, everyone = scenario.on_failure, tuple(range(parts.schedule.n_workers))
    if failure is None or failure.policy not in ("shrink", "spare"):
        return CameThrough(parts, run(parts), everyone)
    group = _Group(scenario, failure, parts)
    while True:
        try:
            return CameThrough(group.now, run(group.now), group.members, group.begun_s, tuple(group.happened))
        except AbortedError:
            raise
        except DeadlockError as error:
            if not group.goes_on(error):
                raise


class _Group:
    """Who is in the collective: at first all workers of the scenario, then those that are left or stepped in."""

    def __init__(self, scenario: Scenario, failure: FailureKeys, first: RunParts) -> None:
        self.scenario, self.failure, self.first, self.now = scenario, failure, first, first
        self.members: tuple[int, ...] = tuple(range(first.schedule.n_workers))
        self.begun_s: float | None = None
        self.happened: list[Happened] = []
        self.spares = [*(failure.spares or ())]
        #: By worker of the scenario, the spare that has its part now.
        self.stepped_in: dict[int, int] = {}

    def goes_on(self, error: DeadlockError) -> bool:
        """Leave out or replace who has died; return whether there is another attempt."""
        deaths_s = [wait.since_s for wait in error.waits if wait.died]
        if not deaths_s:
            return False
        failure = self.failure
        known_s = max(min(deaths_s), self.begun_s or 0.0) + failure.detect_s
        agreed_s = known_s + failure.agree_s
        dead = [one for one in self.members if self._dies_s(one) <= agreed_s]
        if failure.policy == "spare":
            if len(dead) > len(self.spares):
                return False
            self.stepped_in |= {one: self.spares.pop(0) for one in dead}
        else:
            self.members = tuple(one for one in self.members if one not in dead)
            if not self.members:
                return False
        done = {
            one: f"replaced by the worker at place {self.stepped_in[one]}" for one in dead if one in self.stepped_in
        }
        for worker in dead:
            died_s = self.first.workers.paces[worker].dies_s
            self.happened.append(Happened(died_s, known_s, "detected", worker=worker))
        for worker in dead:
            self.happened.append(Happened(agreed_s, NEVER, done.get(worker, "left out"), worker=worker))
        self._starts_again(known_s, agreed_s)
        return True

    def _dies_s(self, member: int) -> float:
        pace = None if member in self.stepped_in else self.first.workers.paces.get(member)
        return NEVER if pace is None else pace.dies_s

    def _starts_again(self, known_s: float, agreed_s: float) -> None:
        failure = self.failure
        rebuilt_s = agreed_s + failure.rebuild_s
        self.begun_s = rebuilt_s + failure.load_s
        self.happened.append(Happened(known_s, agreed_s, "agreed"))
        self.happened.append(Happened(agreed_s, rebuilt_s, "rebuilt"))
        if failure.load_s:
            self.happened.append(Happened(rebuilt_s, self.begun_s, "loaded"))
        self.happened.append(Happened(self.begun_s, NEVER, f"started again, {len(self.members)} workers"))
        workers = self._workers(self.begun_s)
        self.now = self._replaced(workers) if failure.policy == "spare" else self._shrunk(workers)

    def _workers(self, begun_s: float) -> Workers:
        """Return the workers of the next attempt; who stepped in is as the rule for all has it."""
        first, members = self.first.workers, [*self.members]
        columns = {name: getattr(first, name)[members] for name in OF_WORKERS.values()}
        for place, member in enumerate(members):
            if member in self.stepped_in:
                for name in OF_WORKERS.values():
                    columns[name][place] = mean_of(getattr(self.scenario.worker, name))
                columns["launch_s"][place] = launch_of(self.scenario, self.scenario.message_bytes)
        columns["start_s"] = np.maximum(columns["start_s"], begun_s)
        paces = {
            place: first.paces[member]
            for place, member in enumerate(members)
            if member in first.paces and member not in self.stepped_in
        }
        return replace(first, **columns, paces=paces, luck=self._luck())

    def _luck(self) -> Luck | None:
        """Return what the workers of the next attempt do by chance; who stepped in does what the dead one did."""
        luck = self.first.workers.luck
        if luck is None:
            return None
        draws, noise = luck.draws, luck.interruptions
        members = [*enumerate(self.members)]
        return replace(
            luck,
            draws={place: draws[member] for place, member in members if member in draws},
            interruptions={place: noise[member] for place, member in members if member in noise},
        )

    def _replaced(self, workers: Workers) -> RunParts:
        """Return the same collective with the spares at their own places."""
        whole = in_run(hardware(self.scenario).network, self.first.run or 0)
        number = {whole.node(place): place for place in range(whole.n_workers)}
        network = self.first.network
        places = [number[network.node(worker)] for worker in self.members]
        for worker, spare in self.stepped_in.items():
            places[worker] = spare
        return self._on(placed(whole, places), workers=workers)

    def _shrunk(self, workers: Workers) -> RunParts:
        """Return the collective of the survivors, of their own data."""
        scenario, first = self.scenario, self.first
        network = placed(first.network, self.members)
        read = read_off_network(scenario, lambda: network, workers)
        n_workers = len(self.members)
        schedule: Schedule = schedule_beside(scenario, None, n_workers, scenario.collective, read.parameters)
        sizes = chunk_sizes(scenario, schedule)
        name, _, weights = reduction_of(scenario)
        own = None if weights is None else tuple(weights[member] for member in self.members)
        return self._on(
            network,
            workers=workers,
            schedule=schedule,
            source=None if first.source is None else SomeWorkers(first.source, self.members),
            reduction=make_reduction(name, n_workers, own),
            chunk_sizes=sizes,
            chunk_bytes=sizes * first.dtype.itemsize,
            read=read,
        )

    def _on(self, network: Network, **changes: object) -> RunParts:
        site = replace(self.first.make_site(), networks=(network,))
        return replace(self.first, make_site=lambda: site, **changes)  # type: ignore[arg-type]  # checked by name


def check_other_paths(parts: RunParts) -> None:
    """Refuse links that fail over where something goes over them that has no other path: `InputError`."""
    behaviours = parts.network.behaviours if parts.n_pair_links == 0 else {}
    failing = {link for link, one in behaviours.items() if fails_over(one) is not None}
    if not failing:
        return
    other = around(parts.network, dying_links(parts.network))
    for one in (parts, *parts.others):
        for src, dst in zip(*(ends.tolist() for ends in one.schedule.pairs), strict=True):
            route = one.network.route(src, dst)
            if not failing.isdisjoint(route) and other(route) is None:
                name = parts.network.names[min(failing & {*route})]
                message = f"there is no other path for what goes over {name}"
                raise InputError(Fault(message, "trouble", right="no fails_over"))


def since_the_first_start(trace: Trace, workers: Workers, members: Sequence[int]) -> Trace:
    """Return the trace of a later attempt with the starts that its workers had: until it began they waited.

    Parameters
    ----------
    trace : Trace
    workers : Workers
        Of the first attempt.
    members : sequence of int
        Which of these each worker of the trace is, or stands for.
    """
    start_s = workers.start_s[[*members]]
    waited_s = trace.workers["start_s"].min() - start_s.min()
    waiting_s = trace.workers["path_waiting_s"] + waited_s
    return replace(trace, workers={**trace.workers, "start_s": start_s, "path_waiting_s": waiting_s})
