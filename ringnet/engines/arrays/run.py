"""The fast engine: a schedule in whole arrays, for one size with all that a trace holds, or for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.arrays.drawn_steps import DrawnSteps
from ringnet.engines.arrays.exactness import why_not_exact
from ringnet.engines.arrays.leaps import Leaps
from ringnet.engines.arrays.recall import MOST_STEPS, Choices, WayBack
from ringnet.engines.arrays.rounds import RoundMaker
from ringnet.engines.arrays.sizes import Sizes, Times
from ringnet.engines.arrays.steps import Steps
from ringnet.engines.moving import stepper
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.engines.trace import (
    KEEP_TRANSFERS,
    Columns,
    Led,
    Trace,
    TransferRows,
    Watch,
    Workers,
)
from ringnet.errors import InputError
from ringnet.networks import Network
from ringnet.payload import PackedPayload, Payload

#: Chunks of all workers, or transfers, times runs that are held at once; more runs are done block after block.
MOST_HELD = 1 << 25
#: Workers times runs: what a step works on stays in the caches of a processor.
CACHED = 1 << 14


def run_recurrence(  # noqa: PLR0913 -- what an engine takes, and what is known already
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    payload: Payload | PackedPayload | None = None,
    *,
    keep_transfers: int | None = KEEP_TRANSFERS,
    keep_values: bool = False,
    watch: Watch | None = None,
    exact: ExactRun | None = None,
) -> Trace:
    """Run a schedule on a network, whole steps at a time.

    Parameters and returns are those of `ringnet.engines.events.run_events`; the payload may be packed too, which is
    faster where little of each chunk is carried. ``exact`` is what `look_for_rounds` found of this very run: to make
    all rounds takes as long as the run itself.

    Raises
    ------
    InputError
        If the times of the run do not follow from such a recurrence; it names the condition.
    NetworkError
        If the schedule sends where the network has no route.
    """
    what = (schedule, network, workers, chunk_bytes)
    if exact is None or not exact.is_of(*what):
        looked = look_for_rounds(*what)
        if isinstance(looked, str):
            raise _inexact(looked)
        exact = looked
    maker = exact.maker
    rows = TransferRows.kept(schedule.n_transfers, keep_transfers, payload if keep_values else None)
    can_recall = (
        keep_transfers and not schedule.channels_share_chunks and not (schedule.n_channels > 1 and maker.actors_meet())
    )
    if rows is not None and not rows.whole and can_recall:
        rows = None  # the choices that led to the end say as much, and let steps leap
    steps = Steps(schedule, network, workers, chunk_bytes, maker, rows)
    choices = None
    if rows is None and can_recall and schedule.n_steps <= MOST_STEPS:
        choices = steps.choices = Choices(cut_through=steps.cut_through, rendezvous=steps.rendezvous)
    move_payload = stepper(payload, rows)
    if watch is not None:
        watch(schedule.n_transfers, lambda: steps.first_row)
    leaps = Leaps(steps)
    for step in schedule.steps():
        leaps.do(step)
        move_payload(step)
    leaps.settle()
    assert steps.notes is not None
    times, transfers = (None, None) if rows is None else rows.columns(schedule, chunk_bytes)
    return Trace(
        engine="recurrence",
        transfers=transfers,
        times=times,
        links=_link_columns(steps, network),
        waits=steps.notes.waits.columns(),
        services=None if steps.services is None else steps.services.columns,
        workers=_worker_columns(steps),
        n_transfers=schedule.n_transfers,
        counts={"steps": schedule.n_steps},
        values=None if rows is None else rows.values(),
        recall=partial(_way_back, choices, steps) if choices is not None and choices.are_kept else None,
    )


def _way_back(choices: Choices, steps: Steps) -> Led:
    """Return what led to the end of the first worker that ended last, and there of its last channel."""
    worker, last = int(steps.ready_s.argmax()) // steps.schedule.n_channels, _last_actors(steps)
    return WayBack(choices, len(steps.ready_s)).of(int(last[worker]))


def _last_actors(steps: Steps) -> IntArray:
    """Return the actor of each worker that ended last; of those that end at the same time the last one."""
    by_channel = steps.ready_s.reshape(-1, steps.schedule.n_channels)
    last: IntArray = by_channel.shape[1] - 1 - by_channel[:, ::-1].argmax(axis=1)
    return np.arange(len(by_channel)) * by_channel.shape[1] + last


class ExactRun(NamedTuple):
    """What was found to be exact, its bytes left out where they do not matter; and the rounds of all its steps."""

    what: tuple[object, ...]
    maker: RoundMaker

    def is_of(self, *what: object) -> bool:
        """Whether it was found of these very ones: schedule, network, workers and bytes of chunks."""
        return all(mine is one for mine, one in zip(self.what, what, strict=False))


def why_not_recurrence(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray | None = None
) -> str | None:
    """Return why stepping whole arrays would not be exact for this run; None where it is.

    See `look_for_rounds`, which makes what a run that follows need not make again.
    """
    found = look_for_rounds(schedule, network, workers, chunk_bytes)
    return found if isinstance(found, str) else None


def look_for_rounds(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray | None = None
) -> ExactRun | str:
    """Make the rounds of all steps; or say why doing them in turn is not exact.

    With ``chunk_bytes`` also where only the times say in which order links serve: see `look_at_channels`.
    """
    what, maker = (schedule, network, workers), RoundMaker(schedule, network)
    reason = why_not_exact(*what, maker)
    if reason is None:
        return ExactRun(what, maker)
    met = None if chunk_bytes is None else look_at_channels(*what, chunk_bytes)
    return reason if met is None else met


def look_at_channels(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> ExactRun | None:
    """Make the rounds of all steps where several channels of a worker send over a link; None if that is not exact.

    The schedule alone does not say in which order the link serves them: at these bytes of chunks, of one run or of
    several, the times say it.
    """
    what, maker = (schedule, network, workers), RoundMaker(schedule, network)
    if schedule.n_channels == 1 or why_not_exact(*what, maker, channels_may_meet=True) is not None:
        return None
    times = Sizes(*what, maker).run(schedule.steps(), np.atleast_2d(chunk_bytes))
    return ExactRun((*what, chunk_bytes), maker) if times.exact.all() else None


def _exact_rounds(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    *,
    workers_may_meet: bool = False,
    may_draw: bool = False,
    may_share: bool = False,
) -> RoundMaker:
    """Make the rounds of all steps; `InputError` if doing them in turn is not exact."""
    maker = RoundMaker(schedule, network)
    how = {
        "channels_may_meet": workers_may_meet,
        "workers_may_meet": workers_may_meet,
        "may_draw": may_draw,
        "may_share": may_share,
    }
    if reason := why_not_exact(schedule, network, workers, maker, **how):
        raise _inexact(reason)
    return maker


def _inexact(reason: str) -> InputError:
    return InputError(f"the recurrence engine is not exact here: {reason}; engine: events is")


def _link_columns(steps: Steps, network: Network) -> Columns:
    """Return one row per link, as `Trace.links` has them."""
    notes = steps.notes
    assert notes is not None
    n_transfers, n_bytes = steps.link_bytes()
    found = {
        "bytes": n_bytes,
        "transfers": n_transfers,
        "held_s": notes.held_s,
        "longest_queue": notes.queues.longest,
        "queued_s": notes.queued_s,
    }
    columns: Columns = {name: np.zeros(network.n_links, dtype=column.dtype) for name, column in found.items()}
    for name, column in found.items():
        columns[name][steps.used] = column
    columns["busy_s"] = columns["bytes"] / network.bandwidth_Bps
    columns["occupied_s"] = columns["busy_s"] + columns.pop("held_s")
    order = ("bytes", "transfers", "busy_s", "occupied_s", "longest_queue", "queued_s")
    return {name: columns[name] for name in order}


def _worker_columns(steps: Steps) -> Columns:
    """Return one row per worker, as `Trace.workers` has them."""
    ready_s, start_s = steps.ready_s, steps.start_s
    sums = (*steps.actor_bytes(), steps.overhead_s, steps.reducing_s)
    names = ("sent_bytes", "received_bytes", "overhead_s", "reducing_s")
    actors = _last_actors(steps)
    totals = zip(names, sums, strict=True)
    return {
        "start_s": start_s[actors],
        "end_s": ready_s[actors],
        **{name: total.reshape(-1, steps.schedule.n_channels).sum(axis=1) for name, total in totals},
        **steps.paths.columns(actors, ready_s[actors] - start_s.min()),
    }


def run_sizes(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray) -> Times:
    """Run a schedule on a network once for each of many sizes, without rows, paths and waits.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_sizes, n_chunks)
        Bytes that each chunk is charged for, a row for each size.

    Raises
    ------
    InputError
        If the times of no size follow from such a recurrence; it names the condition.
    """
    is_fair = resolve_sharing(network, [Sending(0, schedule, network)]) == "fair"
    maker = _exact_rounds(schedule, network, workers, workers_may_meet=True, may_share=is_fair)
    sizes = Sizes(schedule, network, workers, maker, is_fair=is_fair)
    blocks = np.array_split(chunk_bytes, -(-len(chunk_bytes) // sizes.at_once))
    found = [sizes.run(schedule.steps(), block) for block in blocks]
    return Times(*map(np.concatenate, zip(*found, strict=True)))


class ManyTimes(NamedTuple):
    """The time of each of many runs, shape (n_runs,), and whether it is exact: if not, it counts for nothing."""

    makespan_s: FloatArray
    exact: NDArray[np.bool_]


def run_many(
    schedule: Schedule, network: Network, workers: Workers, chunk_bytes: IntArray, runs: Sequence[int]
) -> ManyTimes:
    """Run a schedule many times on a network that draws its numbers, for the times alone.

    Parameters
    ----------
    schedule : Schedule
    network, workers : Network, Workers
        Of no run yet: see `ringnet.networks.in_run`.
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    runs : sequence of int
        Numbers of the runs.

    Raises
    ------
    InputError
        If the times of no run follow from such a recurrence; it names the condition.
    """
    maker = _exact_rounds(schedule, network, workers, may_draw=True)
    n_cells = schedule.n_workers * schedule.n_chunks if schedule.channels_share_chunks else 0
    n_held = max(n_cells, schedule.n_transfers, 1)
    at_once = max(1, min(MOST_HELD // n_held, CACHED // schedule.n_workers))
    found = []
    for block in (runs[first : first + at_once] for first in range(0, len(runs), at_once)):
        steps = DrawnSteps(schedule, network, workers, chunk_bytes, maker, block)
        for step in schedule.steps():
            steps.do(step)
        found.append(ManyTimes(steps.makespan_s, steps.exact))
    return ManyTimes(*map(np.concatenate, zip(*found, strict=True)))
