"""The proof where every worker does the same, seen from its own place: one worker stands for all.

A step of such a schedule is three numbers: how far each worker sends, which chunk worker 0 sends, and what becomes of
it. So it is proved in little time and memory for a million workers; that they do the same is looked at, step by step.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import EVERY_WORKER, Schedule, Step


class BadTransfer(NamedTuple):
    """A transfer that cannot be: which worker or switch sends which chunk, and what is wrong with that."""

    member: int
    chunk: int
    what: str


class Gap(NamedTuple):
    """A chunk that a worker must hold at the end, and the workers whose contributions it lacks."""

    worker: int
    chunk: int
    missing: list[int]


def root(column: IntArray) -> IntArray | None:
    """Return what a column is part of, if nobody can write it: what holds of all of it holds of the column.

    >>> numbers = np.arange(4)
    >>> root(numbers[1:3]) is None
    True
    >>> numbers.flags.writeable = False
    >>> root(numbers[1:3]) is numbers, root(numbers) is numbers
    (True, True)
    """
    whole = column if column.base is None else column.base
    if isinstance(whole, np.ndarray) and not whole.flags.writeable and whole.dtype == column.dtype:
        return whole
    return None


class OneForAll:
    """Worker 0's chunks stand for all, each with the workers whose data is in it.

    Worker w has the same in chunk c + k w, k the chunks of a worker, of workers whose numbers are w higher. Those that
    are in a chunk are always workers in a row around the ring; where they would not be, nothing is said.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.n = schedule, schedule.n_workers
        self.each, rest = divmod(schedule.n_chunks, self.n)
        ends = (schedule.source, schedule.target)
        #: Whether it holds so far that each does the same.
        self.stands_for_all = not rest and self.each > 0 and not schedule.n_switches
        self.stands_for_all = self.stands_for_all and all(_owned(one, self.each, self.n) for one in ends)
        #: The first transfer that cannot be, and its step.
        self.wrong: tuple[Step, BadTransfer] | None = None
        if self.stands_for_all:
            # By chunk: the first worker whose data is in it, and how many follow each other from there.
            self._first, self._length = (array("q", bytes(8 * schedule.n_chunks)) for _ in range(2))
            for chunk in _held_by_first(schedule.source):
                self._length[chunk] = 1
        self._counting: dict[str, IntArray] = {}
        self._before: Step | None = None

    def take(self, step: Step) -> None:
        """Take in one step, whose numbers are in range."""
        self.stands_for_all = self.stands_for_all and self._is_same_for_all(step)
        if self.stands_for_all and self.wrong is None:
            self._move(step)

    def gaps(self) -> list[Gap]:
        """Return the chunks that worker 0 must hold at the end, and does not, or not whole."""
        found = []
        for chunk in _held_by_first(self.schedule.target):
            source = int(self.schedule.source[chunk])
            wanted = range(self.n) if source == EVERY_WORKER else (source,)
            if self._length[chunk] < len(wanted) or not self._has(chunk, source):
                found.append(Gap(0, chunk, [worker for worker in wanted if not self._has(chunk, worker)]))
        return found

    def _has(self, chunk: int, worker: int) -> bool:
        return worker == EVERY_WORKER or (worker - self._first[chunk]) % self.n < self._length[chunk]

    def _move(self, step: Step) -> None:
        """Let worker 0 send; what its receiver does, worker 0 does too."""
        distance, chunk = int(step.dst[0]), int(step.chunk[0])
        place = (chunk - distance * self.each) % self.schedule.n_chunks
        # What the receiver gets, with workers numbered from it.
        first, length = (self._first[chunk] - distance) % self.n, self._length[chunk]
        if not length:
            self.wrong = step, BadTransfer(0, chunk, "which it does not hold yet")
        elif step.op == "copy":
            self._first[place], self._length[place] = first, length
        elif not self._length[place]:
            self.wrong = step, BadTransfer(0, chunk, "to be reduced where there is nothing of it yet")
        else:
            self._reduce(step, chunk, place, first, length)

    def _reduce(self, step: Step, chunk: int, place: int, first: int, length: int) -> None:
        """Unite what is sent with what worker 0 has at a place."""
        own, n_own = self._first[place], self._length[place]
        after, before = (first - own) % self.n, (own - first) % self.n
        if after < n_own or before < length:
            distance = int(step.dst[0])
            ends = (worker for worker in (-distance % self.n, own, first) if self._has(place, worker))
            twice = min((end + distance) % self.n for end in ends if (end - first) % self.n < length)
            what = f"whose receiver already has the contribution of worker {twice}"
            self.wrong = step, BadTransfer(0, chunk, what)
        elif after == n_own:
            self._length[place] = n_own + length
        elif before == length:
            self._first[place], self._length[place] = first, n_own + length
        else:
            self.stands_for_all = False

    def _is_same_for_all(self, step: Step) -> bool:
        before, self._before = self._before, step
        known = self._counting.get("chunk")
        if (
            before is not None
            and known is not None
            and root(step.chunk) is known
            and step.chunk.strides == known.strides
            and step.moves_as(before)
        ):
            return True
        return (
            step.count is None
            and len(step) == self.n
            and not step.src[0]
            and self._counts_up("src", step.src, 1, self.n)
            and self._counts_up("dst", step.dst, 1, self.n)
            and self._counts_up("chunk", step.chunk, self.each, self.schedule.n_chunks)
        )

    def _counts_up(self, name: str, column: IntArray, by: int, modulus: int) -> bool:
        """Whether a column counts up in steps of ``by``, around at ``modulus``; part of one that does, does as well."""
        whole = root(column)
        if whole is None or whole.ndim != 1 or column.strides != whole.strides:
            return _counts(column, by, modulus)
        if whole is not self._counting.get(name):
            if not _counts(whole, by, modulus):
                return _counts(column, by, modulus)
            self._counting[name] = whole
        return True


def _counts(numbers: IntArray, by: int, modulus: int) -> bool:
    return bool(((numbers[:-1] + by) % modulus == numbers[1:]).all())


def _held_by_first(holder: IntArray) -> list[int]:
    """Return the chunks that worker 0 starts or ends with."""
    chunks: list[int] = np.flatnonzero((holder == EVERY_WORKER) | (holder == 0)).tolist()
    return chunks


def _owned(holder: IntArray, each: int, n_workers: int) -> bool:
    """Whether all chunks are every worker's, or each worker's are those of the one before it, ``each`` further on."""
    everyone = bool((holder == EVERY_WORKER).all())
    return everyone or bool((np.roll(holder, -each) == (holder + 1) % n_workers).all())
