"""The reference engine: SimPy processes for workers and links, transfer by transfer, to the timing model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines.events.carried import PathSeconds
from ringnet.engines.events.clock import Clock, Process
from ringnet.engines.events.fair import OwnLinks
from ringnet.engines.events.routes import FairLinks, JobRoutes, Links, Route, make_links
from ringnet.engines.events.transfers import Program
from ringnet.engines.events.workers import Actor, RunOptions, Worker, WorkerCosts
from ringnet.engines.luck import RECV, REDUCE, SEND, LuckyProcessor
from ringnet.engines.sharing import Job, Sending, Traffic, resolve_sharing, where_own_meet
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import (
    KEEP_TRANSFERS,
    OWN_QUEUEING,
    PATH_PARTS,
    Columns,
    Trace,
    TransferRows,
    Watch,
    Workers,
    keeps_times,
    path_columns,
)
from ringnet.errors import AbortedError, DeadlockError, Fault, InputError, Wait
from ringnet.networks import Behaviour, BySize, Constant, Network
from ringnet.networks.behaviour import NEVER
from ringnet.payload import Payload
from ringnet.units import format_seconds


def run_events(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    payload: Payload | None = None,
    *,
    keep_transfers: int | None = KEEP_TRANSFERS,
    keep_values: bool = False,
    watch: Watch | None = None,
) -> Trace:
    """Run a schedule on a network.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
        Bytes that each chunk is charged for, whatever the payload carries of it.
    payload : Payload or None
        What the chunks hold; changed in place, from the workers' data to the result. None moves byte counts only.
    keep_transfers : int or None
        Keep the rows of the transfers if there are no more than this. None is for who asks for the makespan alone:
        under fair sharing what flows lost to others of their own sender is not found then, for it would take a third
        longer; ``own_queueing_s`` is NaN.
    keep_values : bool
        Also keep what the receiver held after each transfer.
    watch : Watch, optional
        Who is told how far the run is.

    Returns
    -------
    Trace

    Raises
    ------
    DeadlockError
        If some workers wait for ever; it says who waits for whom.
    NetworkError
        If the schedule sends where the network has no route.
    """
    job = Job(schedule, network, workers, chunk_bytes, payload, keep_transfers, keep_values)
    return run_jobs([job], network, watch=watch)[0]


class Succession(Protocol):
    """Says which jobs start when: each a number of a job, and the time from which the starts of its workers count."""

    def first(self) -> Iterable[tuple[int, float]]:
        """Return the jobs that wait for no other."""

    def ended(self, number: int, now_s: float) -> Iterable[tuple[int, float]]:
        """Return the jobs that waited for this one to end, if they wait for no other."""


class AfterOthers:
    """Jobs that start when all those have ended that they are ``after``."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.missing = [set(job.after) for job in jobs]

    def first(self) -> list[tuple[int, float]]:
        """See `Succession.first`."""
        return [(number, 0.0) for number, missing in enumerate(self.missing) if not missing]

    def ended(self, number: int, now_s: float) -> list[tuple[int, float]]:
        """See `Succession.ended`."""
        waiting = [other for other, missing in enumerate(self.missing) if number in missing]
        for other in waiting:
            self.missing[other].discard(number)
        return [(other, now_s) for other in waiting if not self.missing[other]]


def run_jobs(
    jobs: Sequence[Job],
    network: Network,
    traffic: Sequence[Traffic] = (),
    *,
    watch: Watch | None = None,
    succession: Succession | None = None,
) -> list[Trace]:
    """Run several collectives at once, and other traffic beside them, on one network.

    Parameters
    ----------
    jobs : sequence of Job
    network : Network
        All links; its routes are not used.
    traffic : sequence of Traffic
    watch : Watch, optional
        Who is told how far all jobs are together.
    succession : Succession, optional
        Which jobs start when; by default as each says what it is ``after``.

    Returns
    -------
    list of Trace
        One per job; the rows of the links, and ``until_s``, are those of all together.

    Raises
    ------
    DeadlockError
        If some workers wait for ever; it says who waits for whom.
    NetworkError
        If a schedule sends where its network has no route.
    """
    clock, links, running = _set_up(jobs, network, traffic, succession)
    if watch is not None:
        watch(sum(job.schedule.n_transfers for job in jobs), running.n_applied)
    clock.drain()
    # Nothing is scheduled any more, also when some processes still wait.
    if stuck := running.stuck():
        raise DeadlockError(*stuck)
    traces = [running.started[number].trace(links, clock) for number in range(len(jobs))]
    if len(jobs) == 1 and not traffic:
        return traces
    until_s = max(links.last_s(), *(float(trace.workers["end_s"].max()) for trace in traces))
    return [replace(trace, until_s=until_s) for trace in traces]


def _set_up(
    jobs: Sequence[Job], network: Network, traffic: Sequence[Traffic], succession: Succession | None = None
) -> tuple[Clock, Links, RunningJobs]:
    """Make the processes of all jobs and traffic, on a clock that stands still."""
    if reason := _shared_switches(jobs):
        raise InputError(Fault(reason, "network.reduction.rate", right="rate: free, or one of them by itself"))
    for job in jobs:  # a switch that is not there is told as such, not as a route that is missing
        job.workers.with_switches(job.schedule, job.network)
    clock = Clock()
    sending = [
        Sending(number if job.stream is None else job.stream, job.schedule, job.network)
        for number, job in enumerate(jobs)
    ]
    sharing = resolve_sharing(network, sending, [(some.name, some.links) for some in traffic])
    keeps = any(keeps_times(job.schedule.n_transfers, job.keep_transfers) for job in jobs)
    own = None
    if sharing == "fair" and any(job.keep_transfers is not None for job in jobs):
        own = _never_full(network, jobs)
    links = make_links(clock, replace(network, sharing=sharing), keep_services=keeps, own=own)
    running = RunningJobs(clock, links, jobs, AfterOthers(jobs) if succession is None else succession)
    names = [*dict.fromkeys(some.name for some in traffic)]
    for order, some in enumerate(traffic):
        route = links.along(some.links)
        route.owner = len(jobs) + names.index(some.name)
        clock.process(send(clock, some, order, route, running.is_over))
    return clock, links, running


def _never_full(network: Network, jobs: Sequence[Job]) -> OwnLinks:
    """Return the links that are never full of one sender's flows; none where links change, or lead elsewhere."""
    found: set[tuple[int, int, int]] = set()
    if all(type(one) in {Constant, BySize} for one in network.behaviours.values()):
        for number, job in enumerate(jobs):
            src, dst = job.schedule.pairs
            links, firsts = job.network.joined_routes(src, dst)
            is_free = np.ones(len(links), dtype=bool)
            is_free[where_own_meet(src, links, firsts, network.bandwidth_Bps)] = False
            rows = np.repeat(src, np.diff(firsts))[is_free].tolist(), links[is_free].tolist()
            found.update((number, *row) for row in zip(*rows, strict=True))
    return found


#: Events at most for each rate that is worked out: those of a beginning end where nothing needs any.
EVENTS_OF_RATE = 10


class Beginning(NamedTuple):
    """What the beginning of a run took.

    Parameters
    ----------
    events : int
        Of SimPy.
    settlements, rates : int
        How often rates were worked out, and how many in all.
    moved_bytes : int
        What workers had posted, and what they had applied.
    is_all : bool
        Whether it was the whole run.
    """

    events: int
    settlements: int
    rates: int
    moved_bytes: int
    is_all: bool


def begin(jobs: Sequence[Job], network: Network, traffic: Sequence[Traffic]) -> Callable[[int], Beginning]:
    """Begin a run under fair sharing, to see what it takes; see `run_jobs`.

    What is returned simulates on until so many rates were worked out in all, and says what it has come to.
    """
    clock, links, running = _set_up(jobs, network, traffic)
    assert isinstance(links, FairLinks)
    arbiter, shares = links.arbiter, links.arbiter.shares

    def until(n_rates: int) -> Beginning:
        is_all = clock.advance(EVENTS_OF_RATE * n_rates, lambda: shares.n_filled >= n_rates)
        people = [worker for job in running.started.values() for worker in job.members]
        moved_bytes = sum(worker.sent_bytes + worker.received_bytes for worker in people)
        return Beginning(clock.n_events, arbiter.settlements, shares.n_filled, moved_bytes, is_all)

    return until


def _shared_switches(jobs: Sequence[Job]) -> str:
    """Say why it cannot be simulated how several jobs share switches that reduce; nothing where none do."""
    takers = {
        number if job.stream is None else job.stream: job for number, job in enumerate(jobs) if job.schedule.n_switches
    }
    rated = any(np.isfinite([*job.network.reduce_Bps.values()]).any() for job in takers.values())
    return "several jobs share the rate of switches that reduce" if len(takers) > 1 and rated else ""


class RunningJobs:
    """All jobs while they run: each is made when it is known when it starts."""

    def __init__(self, clock: Clock, links: Links, jobs: Sequence[Job], succession: Succession) -> None:
        self.clock, self.links, self.jobs, self.succession = clock, links, jobs, succession
        self.started: dict[int, RunningJob] = {}
        self.going: list[RunningJob] = []
        self.start(succession.first())

    def start(self, numbers: Iterable[tuple[int, float]]) -> None:
        """Let jobs start, at times that are not past."""
        for number, from_s in numbers:
            job = self.jobs[number]
            if from_s:
                workers = replace(job.workers, start_s=job.workers.start_s + from_s)
                job = replace(job, workers=workers)
            one = RunningJob(self.clock, self.links, number, job, partial(self._ended, number))
            self.started[number] = one
            self.going.append(one)

    def _ended(self, number: int) -> None:
        self.going.remove(self.started[number])
        self.start(self.succession.ended(number, self.clock.now))

    def is_over(self) -> bool:
        """Whether nothing moves any more, nor ever will."""
        return not any(job.can_move() for job in self.going)

    def n_applied(self) -> int:
        """Return how many transfers are done."""
        return sum(worker.n_applied for job in [*self.started.values()] for worker in job.members)

    def stuck(self) -> list[Wait]:
        """Return who waits for whom, for ever."""
        return [actor.stuck() for job in self.going for actor in job.actors if not actor.done]


class RunningJob:
    """One job while it runs."""

    def __init__(self, clock: Clock, links: Links, number: int, job: Job, ended: Callable[[], None]) -> None:
        schedule = job.schedule
        self.job, self.number = job, number
        carried = job.payload if job.keep_values else None
        self.rows = TransferRows.kept(schedule.n_transfers, job.keep_transfers, carried)
        program = Program(schedule, job.chunk_bytes, JobRoutes(links, job.network, number))
        options = RunOptions(
            job.payload,
            job.workers.sends == "rendezvous",
            self.rows,
            self._one_ended,
            job.workers.patience_s,
            self._aborted,
        )
        workers = job.workers.with_switches(schedule, job.network)
        if schedule.n_switches and workers.sends == "rendezvous":
            raise InputError(Fault("switches that reduce take what comes: they are in no step", right="sends: eager"))
        self.members = _workers(workers)
        self.actors = [
            Actor(clock, member, program, channel, options)
            for member in self.members
            for channel in range(schedule.n_channels)
        ]
        self.clock = clock
        self._ended, self._n_left = ended, len(self.actors)
        #: The first to ask whether anything moves: most often it was it that moved last.
        self.moving = self.actors[0]

    def _one_ended(self) -> None:
        self._n_left -= 1
        if not self._n_left:
            self._ended()

    def _aborted(self, first: Actor) -> None:
        """End the run: an actor has waited too long."""
        others = (actor for actor in self.actors if actor is not first and not actor.done)
        waiting = [other for other in others if other.stuck_on is not None or other.worker.dies_s <= self.clock.now]
        now_s = self.clock.now
        waits = [actor.stuck(now_s) for actor in (first, *waiting)]
        told = f"at {format_seconds(now_s)}, after a wait of {format_seconds(now_s - waits[0].since_s)}"
        raise AbortedError(now_s, told, *waits)

    def can_move(self) -> bool:
        """Whether anything is under way to any of its workers; where there is not, it has ended, or never will."""
        if not self.moving.can_move():
            self.moving = next((actor for actor in self.actors if actor.can_move()), self.moving)
        return self.moving.can_move()

    def trace(self, links: Links, clock: Clock) -> Trace:
        """Return what it leaves behind."""
        schedule, rows = self.job.schedule, self.rows
        times, transfers = (None, None) if rows is None else rows.columns(schedule, self.job.chunk_bytes)
        return Trace(
            engine="events",
            transfers=transfers,
            times=times,
            links=links.columns(),
            waits=links.waits(),
            services=None if rows is None else links.services(),
            rates=None if transfers is None else links.rates(),
            job=self.number,
            workers=_worker_columns(self.members[: schedule.n_workers]),
            n_transfers=schedule.n_transfers,
            counts={"events": clock.scheduled(), **links.counts()},
            values=None if rows is None else rows.values(),
        )


def _workers(workers: Workers) -> list[Worker]:
    first_s = float(workers.start_s.min())
    columns = (SEND, RECV, REDUCE, "launch_s")
    costs = np.column_stack([getattr(workers, column) for column in columns]).tolist()

    def luck(number: int, cost: list[float]) -> LuckyProcessor | None:
        means = dict(zip(columns, cost, strict=True))
        return None if workers.luck is None else workers.luck.of(number, means)

    return [
        Worker(
            number,
            start_s,
            able_s,
            WorkerCosts(*cost),
            first_s,
            luck=luck(number, cost),
            pace=workers.paces.get(number),
        )
        for number, (start_s, able_s, cost) in enumerate(
            zip(workers.start_s.tolist(), workers.launched_s.tolist(), costs, strict=True)
        )
    ]


def _worker_columns(workers: list[Worker]) -> Columns:
    kinds = {"start_s": np.float64, "end_s": np.float64, "sent_bytes": np.int64, "received_bytes": np.int64}
    kinds |= dict.fromkeys(("overhead_s", "reducing_s"), np.float64)
    paths = np.array([(*worker.path[:2], *worker.path[2]) for worker in workers], dtype=np.float64).reshape(
        len(workers), len(PATH_PARTS) + 1
    )
    columns = {name: np.array([getattr(one, name) for one in workers], dtype=kind) for name, kind in kinds.items()}
    elapsed_s = columns["end_s"] - columns["start_s"].min()
    parts = dict(zip((*PATH_PARTS, OWN_QUEUEING), paths.T, strict=True))
    found = path_columns(parts, elapsed_s)
    # What was added up on the way is what the others leave, but for rounding: a part that was lost is a bug.
    left = found["path_bandwidth_s"]
    # Times have the rounding of their whole size, however little is between them.
    dust_s = 1e-9 * elapsed_s.max(initial=0) + ROUNDING * columns["end_s"].max(initial=0)
    if not np.allclose(parts["bandwidth"], left, rtol=1e-9, atol=dust_s):
        raise AssertionError("the parts of a path do not add up to it")
    return columns | found


#: Numbers of bursts start here in the order of equal times: after the transfers of all workers.
AFTER_WORKERS = 1 << 62


class Burst:
    """One burst on its way: moves as a transfer does, and nobody waits for it."""

    __slots__ = (
        "bytes",
        "channel",
        "drawn",
        "had_s",
        "head_s",
        "hop",
        "index",
        "lost_s",
        "own_lost_s",
        "queued",
        "route",
        "sent_s",
        "src",
        "started_s",
        "tail_s",
    )
    counts = 1
    had_s: float

    def __init__(self, traffic: Traffic, order: int, number: int, route: Route) -> None:
        self.src, self.channel, self.index = AFTER_WORKERS + order, 0, number
        self.bytes, self.route = traffic.burst_bytes, route
        self.hop, self.queued = 0, False
        self.lost_s = self.own_lost_s = 0.0
        self.drawn: tuple[Behaviour, ...] = ()
        self.started_s = self.sent_s = self.head_s = self.tail_s = NEVER

    @property
    def whole(self) -> Burst:
        """Itself: it is no part of another."""
        return self

    def arrives(self, clock: Clock, arrived_s: float) -> None:
        """Nobody waits for it."""

    def start_over(self, now_s: float, back_s: float, path: PathSeconds | None) -> None:
        """No window holds it."""


def send(clock: Clock, traffic: Traffic, order: int, route: Route, is_over: Callable[[], bool]) -> Process:
    """Send bursts (a SimPy process) until ``is_over``; ``order`` is where the traffic stands among all traffic."""
    start_s, number = traffic.start_s, 0
    while start_s < traffic.stop_s:
        yield clock.wake_at(start_s)
        if is_over():
            return
        route.enter(Burst(traffic, order, number, route))
        if traffic.every_s is None:
            return
        number += 1
        # Each start from the first one, so that no rounding adds up.
        start_s = traffic.start_s + number * traffic.every_s
