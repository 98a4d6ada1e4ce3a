"""What moves, as plain data: a schedule is an iterator of steps, a step is a few equal-length columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from math import isqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ringnet.array_types import IntArray
from ringnet.errors import Fault, InputError, ScheduleError
from ringnet.payload.blocks import EVERYONE

Op: TypeAlias = Literal["reduce", "copy"]

#: Pairs that are gathered, as often as they come, before each is kept once.
MOST_GATHERED = 1 << 20
#: Transfers of a schedule up to which its steps are kept once they are made.
HELD_TRANSFERS = 20_000
#: Stands in `Schedule.source` and `Schedule.target` for "every worker".
EVERY_WORKER = EVERYONE


@dataclass(frozen=True, slots=True)
class Step:
    """All transfers of one step; they are simultaneous: each carries what its sender held before the step.

    Parameters
    ----------
    phase : str
        Its name, such as ``"reduce-scatter"`` or ``"all-gather"``.
    step : int
        Number of the step within its phase, from 0.
    op : {"reduce", "copy"}
        What the receiver does: combine with its own chunk, or replace it.
    src, dst, chunk, channel : ndarray of int64, shape (n_transfers,)
        Row k says that worker ``src[k]`` sends ``chunk[k]`` to ``dst[k]`` on ``channel[k]``. Numbers from
        ``n_workers`` on are the switches of the schedule.
    to_channel : ndarray of int64, shape (n_transfers,), or None
        The channel on which the receiver waits for it, where that is another one; None: the same.
    count : ndarray of int64, shape (n_transfers,), or None
        How many chunks row k carries as one transfer: ``chunk[k]`` and those that follow it; None: one each.

    Examples
    --------
    >>> one = np.zeros(1, dtype=np.int64)
    >>> step = Step("reduce-scatter", 0, "reduce", one, one + 1, one + 4, one, count=one + 3)
    >>> step.by_chunk().chunk.tolist(), step.sizes(np.arange(8)).tolist()
    ([4, 5, 6], [15])
    """

    phase: str
    step: int
    op: Op
    src: IntArray
    dst: IntArray
    chunk: IntArray
    channel: IntArray
    to_channel: IntArray | None = None
    count: IntArray | None = None

    def by_chunk(self) -> Step:
        """Return the same step with a row for each chunk: it says what moves, not when."""
        if self.count is None:
            return self
        first = self.chunk - (np.cumsum(self.count) - self.count)
        chunk = np.repeat(first, self.count)
        chunk += np.arange(len(chunk))
        src, dst, channel = (np.repeat(each, self.count) for each in (self.src, self.dst, self.channel))
        to_channel = None if self.to_channel is None else np.repeat(self.to_channel, self.count)
        columns = (src, dst, chunk, channel, to_channel)
        return Step(self.phase, self.step, self.op, *columns)

    def sizes(self, chunk_sizes: IntArray) -> IntArray:
        """Return what each row carries, where chunk c counts ``chunk_sizes[c]``; shape (n_transfers,)."""
        if self.count is None:
            return chunk_sizes[self.chunk]
        before = np.concatenate(([0], np.cumsum(chunk_sizes)))
        carried: IntArray = before[self.chunk + self.count] - before[self.chunk]
        return carried

    @property
    def receiving_channel(self) -> IntArray:
        """The channel on which each receiver waits, shape (n_transfers,)."""
        return self.channel if self.to_channel is None else self.to_channel

    def __len__(self) -> int:
        return len(self.src)

    def moves_as(self, other: Step) -> bool:
        """Whether each moves one chunk between the same workers, by the very same columns, which nobody can write.

        Those of a ring do: what is known of the columns of one need not be looked at again.
        """
        return (
            self.src is other.src
            and self.dst is other.dst
            and self.channel is other.channel
            and self.to_channel is other.to_channel
            and self.op == other.op
            and self.count is None
            and other.count is None
            and len(self.chunk) == len(other.chunk)
            and not (self.src.flags.writeable or self.dst.flags.writeable or self.channel.flags.writeable)
        )


class AlikeSteps(ABC):
    """Makes the steps of a schedule, and knows which of them move alike, without making them; the proof compares."""

    @abstractmethod
    def __call__(self) -> Iterator[Step]:
        """Return a fresh iterator over the steps."""

    @abstractmethod
    def runs(self) -> Iterator[tuple[Step, int]]:
        """Yield the first step of each run of those that move alike, and how many these are."""


@dataclass(frozen=True)
class Schedule:
    """All transfers of a collective: who sends which chunk to whom in which step, and what becomes of it.

    Within a channel a worker does its steps in order: it posts what the step sends, waits for what the step
    owes it, applies that, and goes on. Channels run beside each other, but the order of the steps stays the
    order of what happens to each chunk of a worker: a channel does not send a chunk before all that came for
    it in earlier steps is applied, nor apply to it before what earlier steps send of it is posted and what
    they brought is applied, on whichever channel that is.

    Parameters
    ----------
    algorithm, collective : str
        Names, as in the registry and in the tables.
    n_workers, n_chunks, n_channels, n_steps, n_transfers : int
        Sizes. The buffer is cut into ``n_chunks`` by `numpy.array_split`; see `chunk_sizes`.
    make_steps : callable
        Returns a fresh iterator over the steps; schedules of a million transfers are never held whole.
    source, target : ndarray of int64, shape (n_chunks,)
        Chunk c starts at worker ``source[c]`` and must end, complete, at worker ``target[c]``; `EVERY_WORKER`
        means that every worker contributes to it, or that every worker must hold it at the end.
    n_buffers : int
        How many buffers the chunks are cut from: 1 where all workers' data is of one buffer that is combined
        or gathered; N for an all-to-all, in which the first N chunks are worker 0's buffer, the next N worker
        1's, and so on.
    parameters : mapping of str to object
        Parameters of the algorithm, beside workers and collective.
    n_switches : int
        Switches that take part, numbered after the workers: the first is ``n_workers``. A switch has no data of its
        own: the first chunk that it is to reduce is its sum so far, others are added to it by sender. It sends on what
        it holds, to several at once if need be, and need hold nothing at the end.
    made_by : callable or None
        The function of ringnet's registry that made it, set there; None for any other schedule, and for a changed
        copy. What is known of an algorithm (its closed form) is known of the schedules that it made, never of others
        that bear its name.
    proved : bool
        Whether `ringnet.collectives.check` has found nothing wrong with it. It never changes, so that once is enough;
        False for a changed copy.
    holds_steps : bool
        Whether its steps are kept once they are made; see `holding_steps`.
    """

    algorithm: str
    collective: str
    n_workers: int
    n_chunks: int
    n_steps: int
    n_transfers: int
    make_steps: Callable[[], Iterator[Step]]
    source: IntArray
    target: IntArray
    n_channels: int = 1
    n_buffers: int = 1
    parameters: Mapping[str, object] = field(default_factory=dict)
    n_switches: int = 0
    made_by: Callable[..., Schedule] | None = field(default=None, init=False, compare=False)
    proved: bool = field(default=False, init=False, compare=False)
    holds_steps: bool = field(default=False, init=False, compare=False)

    @property
    def n_members(self) -> int:
        """Workers and switches: what the numbers in ``src`` and ``dst`` of a step are below."""
        return self.n_workers + self.n_switches

    def steps(self) -> Iterator[Step]:
        """Return a fresh iterator over the steps, in order."""
        if self.holds_steps or (self.made_by is not None and self.n_transfers <= HELD_TRANSFERS):
            return iter(self._held)
        return self.make_steps()

    @cached_property
    def _held(self) -> tuple[Step, ...]:
        """The steps of a small schedule: proof, engines and what is concluded of a run go over them ten times."""
        return tuple(self.make_steps())

    def holding_steps(self) -> Schedule:
        """Return the same schedule, which makes its steps once, however many: for a while, or they fill a memory."""
        same = copy(self)
        object.__setattr__(same, "holds_steps", True)
        return same

    def moves(self) -> Iterator[Step]:
        """Return a fresh iterator over the steps, each with a row for every chunk that moves."""
        return (step.by_chunk() for step in self.steps())

    @cached_property
    def channels_share_chunks(self) -> bool:
        """Whether several channels of some member have to do with one chunk, and may so have to wait for each other."""
        # Most have a channel for each chunk, whoever holds it; where not, each member is looked at.
        return self.n_channels > 1 and self._share(1) and self._share(self.n_members)

    def _share(self, n_members: int) -> bool:
        """Whether some channels share a chunk of one of so many members; of one, who stands for all."""
        user = np.full(n_members * self.n_chunks, -1, dtype=np.min_scalar_type(-self.n_channels))
        for step in self.moves():
            ends = [(step.src, step.channel), (step.dst, step.receiving_channel)]
            for member, channel in ends[:1] if n_members == 1 and step.to_channel is None else ends:
                at = step.chunk if n_members == 1 else member * self.n_chunks + step.chunk
                users = user[at]
                new = users < 0
                if new.any():
                    user[at[new]] = channel[new]
                    users = user[at]
                if (users != channel).any():
                    return True
        return False

    def runs(self) -> Iterator[tuple[Step, int]]:
        """Yield the first of each run of steps that move alike, and how many these are; see `Step.moves_as`."""
        if isinstance(self.make_steps, AlikeSteps):
            yield from self.make_steps.runs()
            return
        first, n_steps = None, 0
        for step in self.steps():
            if first is not None and step.moves_as(first):
                n_steps += 1
                continue
            if first is not None:
                yield first, n_steps
            first, n_steps = step, 1
        if first is not None:
            yield first, n_steps

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return every pair of sender and receiver once, by sender and then receiver; shape (n_pairs,) each."""
        known, found = np.zeros(0, dtype=np.int64), []
        n_found = 0
        for step, _ in self.runs():
            found.append(step.src * self.n_members + step.dst)
            n_found += len(step)
            if n_found > max(len(known), MOST_GATHERED):
                known = _distinct(np.concatenate([known, *found]))
                found, n_found = [], 0
        src, dst = np.divmod(_distinct(np.concatenate([known, *found])), self.n_members)
        return src, dst

    def chunk_sizes(self, n_elements: int) -> IntArray:
        """Cut a worker's buffer of ``n_elements``: the elements of each chunk, shape (n_chunks,)."""
        return np.tile(split_sizes(n_elements, self.n_chunks // self.n_buffers), self.n_buffers)

    def contributors(self, chunk: int) -> range:
        """Workers whose data belongs in the final value of ``chunk``."""
        return _workers(int(self.source[chunk]), self.n_workers)

    def holders(self, chunk: int) -> range:
        """Workers that must hold ``chunk``, complete, at the end."""
        return _workers(int(self.target[chunk]), self.n_workers)


def _distinct(numbers: IntArray) -> IntArray:
    # By sorting, which of a million numbers is ten times as fast as the hashes of `numpy.unique`.
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def member_name(member: int, n_workers: int) -> str:
    """Return in words who a number in ``src`` or ``dst`` is.

    >>> member_name(3, 4), member_name(4, 4)
    ('worker 3', 'switch 0')
    """
    return f"worker {member}" if member < n_workers else f"switch {member - n_workers}"


def _workers(which: int, n_workers: int) -> range:
    return range(n_workers) if which == EVERY_WORKER else range(which, which + 1)


def split_sizes(n_elements: int, n_chunks: int) -> IntArray:
    """Elements of each chunk, as `numpy.array_split` cuts: sizes differ by at most one, the larger ones first.

    >>> split_sizes(10, 4).tolist()
    [3, 3, 2, 2]
    >>> split_sizes(2, 4).tolist()
    [1, 1, 0, 0]
    """
    small, larger = divmod(n_elements, n_chunks)
    sizes = np.full(n_chunks, small, dtype=np.int64)
    sizes[:larger] += 1
    return sizes


REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"
ALL_REDUCE, BROADCAST, REDUCE, ALL_TO_ALL = "all-reduce", "broadcast", "reduce", "all-to-all"

#: The phases of a collective that scatters sums, gathers them, or does one after the other.
SCATTER_GATHER: dict[str, tuple[str, ...]] = {
    ALL_REDUCE: (REDUCE_SCATTER, ALL_GATHER),
    REDUCE_SCATTER: (REDUCE_SCATTER,),
    ALL_GATHER: (ALL_GATHER,),
}
#: The phases of a collective that reduces to one worker, broadcasts from it, or does one after the other.
UP_DOWN: dict[str, tuple[str, ...]] = {
    ALL_REDUCE: (REDUCE, BROADCAST),
    REDUCE: (REDUCE,),
    BROADCAST: (BROADCAST,),
}


def frozen(values: ArrayLike) -> IntArray:
    """Return an array of int64 that cannot be written: what columns of steps are; the same one where it is such."""
    if isinstance(values, np.ndarray) and values.base is None and not values.flags.writeable:
        array = values.astype(np.int64, copy=False)
    else:
        array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array


def make_step(  # noqa: PLR0913 -- the columns of a step
    phase: str,
    step: int,
    src: ArrayLike,
    dst: ArrayLike,
    chunk: ArrayLike,
    channel: ArrayLike = 0,
    *,
    to_channel: ArrayLike | None = None,
    count: ArrayLike | None = None,
    op: Op | None = None,
) -> Step:
    """Make a step of a schedule; a single number stands for a whole column.

    Parameters
    ----------
    phase : str
        Name of the phase, as tables and messages show it.
    step : int
        Number of the step within its phase, from 0.
    src, dst, chunk : int or array_like of int, shape (n_transfers,)
        Row k says that worker ``src[k]`` sends ``chunk[k]`` to worker ``dst[k]``.
    channel : int or array_like of int, shape (n_transfers,)
        On which channel it is sent.
    to_channel : int or array_like of int, shape (n_transfers,), optional
        On which channel the receiver waits for it, where that is another one.
    count : int or array_like of int, shape (n_transfers,), optional
        How many chunks a row carries as one transfer: ``chunk[k]`` and those that follow it.
    op : {"reduce", "copy"}, optional
        Whether receivers combine what comes with what they hold, or put it in its place. If left out, a phase whose
        name starts with ``reduce`` reduces and any other copies.

    Returns
    -------
    Step
        Its columns cannot be written.

    Raises
    ------
    ScheduleError
        For a column that is not as long as the first one, or that holds other than whole numbers.

    Examples
    --------
    Workers 1 and 2 send chunk 5 to worker 0, which adds both:

    >>> make_step(phase="reduce", step=0, src=[1, 2], dst=0, chunk=5).chunk.tolist()
    [5, 5]
    """
    columns = [one for one in (src, dst, chunk, channel, to_channel, count) if one is not None]
    n_transfers = next((np.size(one) for one in columns if np.ndim(one)), 1)

    def column(name: str, values: ArrayLike) -> IntArray:
        return _column(f"{phase} step {step}: {name}", values, n_transfers)

    return Step(
        phase,
        step,
        op or ("reduce" if phase.startswith("reduce") else "copy"),
        column("src", src),
        column("dst", dst),
        column("chunk", chunk),
        column("channel", channel),
        None if to_channel is None else column("to_channel", to_channel),
        None if count is None else column("count", count),
    )


def make_schedule(  # noqa: PLR0913 -- what a schedule consists of
    algorithm: str,
    collective: str,
    n_workers: int,
    n_chunks: int,
    steps: Sequence[Step] | Callable[[], Iterator[Step]],
    *,
    source: ArrayLike = EVERY_WORKER,
    target: ArrayLike = EVERY_WORKER,
    n_channels: int = 1,
    n_buffers: int = 1,
    n_switches: int = 0,
    parameters: Mapping[str, object] | None = None,
    counts: tuple[int, int] | None = None,
) -> Schedule:
    """Make a schedule of steps, which it counts if nobody has.

    Parameters
    ----------
    algorithm, collective : str
        Names, as in the tables; the collective one of ``ringnet list collectives``.
    n_workers, n_chunks : int
        Workers, and the chunks that the buffer is cut into by `numpy.array_split`.
    steps : sequence of Step, or callable
        All steps in order; of a schedule that is too large to be held whole, a function that returns a fresh iterator
        over them.
    source, target : int or array_like of int, shape (n_chunks,)
        The worker at which each chunk starts, and the one at which it must end complete; -1, as by default, says that
        every worker contributes to it, or must hold it at the end.
    n_channels : int
        Channels that the steps use, numbered from 0.
    n_buffers : int
        How many buffers the chunks are cut from; see `Schedule`.
    n_switches : int
        Switches that take part, numbered after the workers; see `Schedule`.
    parameters : mapping of str to object, optional
        Parameters of the algorithm, beside workers and collective.
    counts : tuple of int, optional
        Steps and transfers, where a formula has them: there is no need to count then.

    Returns
    -------
    Schedule
        `ringnet.check` says whether it does what its collective is.

    Examples
    --------
    Two workers exchange what they have:

    >>> step = make_step(phase="reduce", step=0, src=[0, 1], dst=[1, 0], chunk=0)
    >>> schedule = make_schedule("exchange", "all-reduce", n_workers=2, n_chunks=1, steps=[step])
    >>> schedule.n_steps, schedule.n_transfers
    (1, 2)
    """
    listed = None if callable(steps) else tuple(steps)
    make_steps = steps if callable(steps) else partial(iter, listed)
    if counts is None:
        lengths = [len(step) for step in make_steps()]
        counts = len(lengths), sum(lengths)
    return Schedule(
        algorithm=algorithm,
        collective=collective,
        n_workers=n_workers,
        n_chunks=n_chunks,
        n_steps=counts[0],
        n_transfers=counts[1],
        make_steps=make_steps,
        source=_column("source", source, n_chunks),
        target=_column("target", target, n_chunks),
        n_channels=n_channels,
        n_buffers=n_buffers,
        parameters=parameters or {},
        n_switches=n_switches,
    )


def _column(what: str, values: ArrayLike, length: int) -> IntArray:
    """Return a column that cannot be written, of one number for each row or one for all."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ScheduleError(Fault(f"{what} holds no whole numbers", value=str(array.dtype), right="integers"))
    if array.ndim > 1:
        raise ScheduleError(Fault(f"{what} is no single column", value=f"shape {array.shape}"))
    if array.ndim and len(array) != length:
        raise ScheduleError(Fault(f"{what} is of the wrong length", value=str(len(array)), right=str(length)))
    return frozen(array) if array.ndim else _all_alike(int(array), length)


@lru_cache(maxsize=32)
def _all_alike(number: int, length: int) -> IntArray:
    """Return a column of one number; steps share it, and so what is known of it."""
    return frozen(np.full(length, number))


def check_node_size(n_workers: int, node_size: int) -> None:
    """Refuse nodes that the workers do not fill: `InputError`."""
    if node_size < 1 or n_workers % node_size:
        message = f"{n_workers} workers do not fill nodes of this size"
        raise InputError(Fault(message, value=str(node_size), right="a divisor of the number of workers"))


def entries(n_channels: int, node_size: int) -> IntArray:
    """Return the worker of a node at which each channel enters it, shape (n_channels,): spread over the node.

    Where a node has a network card for each channel, and its workers share the cards evenly and in order, that is the
    first worker of card q for channel q, as NCCL has it.

    >>> entries(4, 8).tolist(), entries(4, 4).tolist(), entries(2, 1).tolist()
    ([0, 2, 4, 6], [0, 1, 2, 3], [0, 0])
    """
    first: IntArray = -(-np.arange(n_channels) * node_size // n_channels) % node_size
    return first


def divisor_near_root(number: int) -> int:
    """Return the largest divisor that is not above the square root.

    >>> divisor_near_root(12), divisor_near_root(7)
    (3, 1)
    """
    return max(divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0)


def source_and_target(collective: str, owner: ArrayLike) -> dict[str, Any]:
    """Return ``source`` and ``target`` of a schedule in which ``owner`` starts or ends with a chunk alone.

    Parameters
    ----------
    collective : str
        Says whether that is at the start (all-gather, broadcast), at the end (reduce-scatter, reduce) or never.
    owner : int or array_like of int, shape (n_chunks,)

    Examples
    --------
    >>> source_and_target("reduce-scatter", [1, 0])
    {'source': -1, 'target': [1, 0]}
    """
    return {
        "source": owner if collective in {ALL_GATHER, BROADCAST} else EVERY_WORKER,
        "target": owner if collective in {REDUCE_SCATTER, REDUCE} else EVERY_WORKER,
    }
