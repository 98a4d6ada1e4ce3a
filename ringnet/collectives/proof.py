"""Proof, before any clock starts, that a schedule does what its collective says.

First its columns: whether every number makes sense. Then what moves: sets of contributions, a whole step at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Op, Schedule, Step, member_name
from ringnet.errors import Fault, ScheduleError
from ringnet.payload.buffers import conflict_free_batches

BitSets: TypeAlias = NDArray[np.unsignedinteger[Any]]
Flags: TypeAlias = NDArray[np.bool_]

#: Bytes of the sets that are looked at together: some chunks of all workers.
BLOCK_BYTES = 32 << 20
#: Bits of a word of such a set.
WORD = 64
#: Faults that are listed; the rest is counted.
SHOWN = 8
#: By collective: whether every worker contributes to each chunk, and whether every worker must end with it.
ENDS = {
    "all-gather": (False, True),
    "all-reduce": (True, True),
    "all-to-all": (False, False),
    "broadcast": (False, True),
    "reduce": (True, False),
    "reduce-scatter": (True, False),
}


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


def check(schedule: Schedule) -> None:
    """Prove that every worker that must hold a chunk ends with every contribution to it exactly once.

    Parameters
    ----------
    schedule : Schedule

    Raises
    ------
    ScheduleError
        Says which worker, chunk and step is wrong: a worker or chunk that there is not, a chunk that its
        sender does not hold yet, a contribution added twice, a chunk that ends incomplete, a count that
        does not hold.

    Notes
    -----
    A cell is one chunk at one worker; its value is the set of workers whose data is in it. A copy replaces a
    set, a reduce unites two that must be disjoint; a switch starts with nothing, and what it reduces first it takes as
    it is. In a schedule that looks the same from every worker (a
    ring does), one worker's cells stand for all: N sets instead of N squared.

    That is all that can go wrong: each transfer has one sender and one receiver, so that no message is left
    over, and steps come in one order, so that no wait is for anything later than itself.

    Examples
    --------
    >>> from ringnet.collectives.rings import ring
    >>> check(ring(5))
    """
    check_columns(schedule)
    if _same_for_all(schedule):
        _OneForAll(schedule).check()
        return
    gaps: list[Gap] = []
    n_gaps = 0
    for chunks in blocks_of_chunks(schedule):
        sets = ContributionSets(schedule, chunks)
        for step in schedule.moves():
            if (wrong := sets.apply(step)) is not None:
                _raise_at(step, wrong, schedule.n_workers)
        n_more, more = sets.gaps(SHOWN)
        n_gaps, gaps = n_gaps + n_more, gaps + more
    _raise_gaps(schedule, sorted(gaps, key=lambda gap: (gap.chunk, gap.worker)), n_gaps)


def _raise_at(step: Step, wrong: BadTransfer, n_workers: int) -> NoReturn:
    refuse(f"{at(step)}: {member_name(wrong.member, n_workers)} sends chunk {wrong.chunk}, {wrong.what}")


def _raise_gaps(schedule: Schedule, gaps: list[Gap], n_gaps: int) -> None:
    """Raise a fault for each of the first few gaps, and say how many more there are; nothing if there are none."""
    if n_gaps:
        more = [Fault(f"and {n_gaps - SHOWN} more")] if n_gaps > SHOWN else []
        raise ScheduleError(*(_incomplete(schedule, gap) for gap in gaps[:SHOWN]), *more)


def _incomplete(schedule: Schedule, gap: Gap) -> Fault:
    came = [step for step in schedule.moves() if ((step.dst == gap.worker) & (step.chunk == gap.chunk)).any()]
    lacks = f"worker {gap.worker} ends chunk {gap.chunk} without the contribution of worker(s)"
    last = f"it last received the chunk in {at(came[-1])}" if came else "it never received the chunk"
    shown = ", ".join(map(str, gap.missing[:SHOWN])) + (", ..." if len(gap.missing) > SHOWN else "")
    return Fault(f"{lacks} {shown}; {last}")


# What the columns say.


def check_columns(schedule: Schedule) -> None:
    """Check every number of a schedule: lengths, ranges, counts, and what its collective says of its ends.

    Raises
    ------
    ScheduleError
        Says what is wrong, in which step, and what would be right.
    """
    _check_ends(schedule)
    n_steps = n_transfers = 0
    for step in schedule.steps():
        _check_step(schedule, step)
        n_steps += 1
        n_transfers += len(step)
    if (n_steps, n_transfers) != (schedule.n_steps, schedule.n_transfers):
        said = f"{schedule.n_steps} steps and {schedule.n_transfers} transfers"
        refuse(
            "the schedule does not have what it says", said, f"{n_steps} steps and {n_transfers} transfers"
        )


def refuse(message: str, value: str = "", right: str = "") -> NoReturn:
    """Raise one fault."""
    raise ScheduleError(Fault(message, value=value, right=right))


def at(step: Step) -> str:
    """Name a step: ``all-gather step 3``."""
    return f"{step.phase} step {step.step}"


def _check_ends(schedule: Schedule) -> None:
    """Check that each chunk has a source and a target, and that they are those of the collective."""
    for name, workers in (("source", schedule.source), ("target", schedule.target)):
        if len(workers) != schedule.n_chunks:
            refuse(f"there is not one {name} for each chunk", str(len(workers)), str(schedule.n_chunks))
        _check_range(f"a {name}", workers, EVERY_WORKER, schedule.n_workers)
    for name, everyone in zip(("source", "target"), ENDS.get(schedule.collective, ()), strict=False):
        workers = getattr(schedule, name)
        for chunk in np.flatnonzero((workers == EVERY_WORKER) != everyone)[:1].tolist():
            what = f"the {name} of chunk {chunk} is not that of {schedule.collective}"
            refuse(what, str(workers[chunk]), f"{EVERY_WORKER}, every worker" if everyone else "one worker")


def _check_step(schedule: Schedule, step: Step) -> None:
    if step.op not in get_args(Op):
        refuse(f"{at(step)}: an op that there is not", step.op, " or ".join(get_args(Op)))
    limits = {
        "src": schedule.n_members,
        "dst": schedule.n_members,
        "chunk": schedule.n_chunks,
        "channel": schedule.n_channels,
        "to_channel": schedule.n_channels,
    }
    for name, limit in limits.items():
        column = step.receiving_channel if name == "to_channel" else getattr(step, name)
        if len(column) != len(step):
            refuse(f"{at(step)}: columns of unequal length", f"{name} has {len(column)}, src {len(step)}")
        _check_range(f"{at(step)}: {name}", column, 0, limit)
    if step.count is not None:
        _check_counts(schedule, step, step.count)
    if (to_itself := step.src == step.dst).any():
        member, chunk = int(step.src[to_itself][0]), step.chunk[to_itself][0]
        refuse(f"{at(step)}: {member_name(member, schedule.n_workers)} sends chunk {chunk} to itself")


def _check_counts(schedule: Schedule, step: Step, count: IntArray) -> None:
    if len(count) != len(step):
        refuse(f"{at(step)}: columns of unequal length", f"count has {len(count)}, src {len(step)}")
    _check_range(f"{at(step)}: a count", count, 1, schedule.n_chunks + 1)
    _check_range(f"{at(step)}: the last chunk of a transfer", step.chunk + count - 1, 0, schedule.n_chunks)


def _check_range(what: str, numbers: IntArray, first: int, limit: int) -> None:
    if len(numbers) and not (first <= numbers.min() and numbers.max() < limit):
        wrong = numbers[(numbers < first) | (numbers >= limit)][0]
        refuse(f"{what} that there is not", str(wrong), f"{first} to {limit - 1}")


# What moves: sets of contributions, for any schedule.


def blocks_of_chunks(schedule: Schedule) -> Iterator[IntArray]:
    """Cut the chunks into blocks that fit: those of one worker each, and those of all, apart."""
    for chunks in (
        np.flatnonzero(schedule.source == EVERY_WORKER),
        np.flatnonzero(schedule.source != EVERY_WORKER),
    ):
        if len(chunks):
            each = schedule.n_members * _n_words(schedule, chunks) * (WORD // 8)
            n_blocks = -(-len(chunks) * each // BLOCK_BYTES)
            yield from np.array_split(chunks, min(n_blocks, len(chunks)))


def _n_words(schedule: Schedule, chunks: IntArray) -> int:
    return -(-schedule.n_workers // WORD) if schedule.source[chunks[0]] == EVERY_WORKER else 1


class ContributionSets:
    """The contributions to some chunks at every worker and switch, as bits; of one worker's chunks: there or not.

    Parameters
    ----------
    schedule : Schedule
    chunks : ndarray of int64, shape (n,)
        All with every worker as their source, or none.
    """

    def __init__(self, schedule: Schedule, chunks: IntArray) -> None:
        self.schedule, self.chunks = schedule, chunks
        self.place = np.full(schedule.n_chunks, -1)
        self.place[chunks] = np.arange(len(chunks))
        shape = (schedule.n_members, len(chunks), _n_words(schedule, chunks))
        self.table: BitSets = np.zeros(shape, dtype=np.uint64)
        self.source = schedule.source[chunks]
        self.whole = self._start()
        self.cells = self.table.reshape(-1, shape[2])

    def _start(self) -> BitSets:
        """Give every worker its own contribution, and return the set of all."""
        if self.source[0] != EVERY_WORKER:
            self.table[self.source, np.arange(len(self.chunks))] = 1
            return np.ones(1, dtype=np.uint64)
        worker = np.arange(self.schedule.n_workers)
        own = np.zeros((len(worker), self.table.shape[2]), dtype=np.uint64)
        own[worker, worker // WORD] = np.uint64(1) << (worker % WORD).astype(np.uint64)
        self.table[: len(worker)] = own[:, None]
        whole: BitSets = np.bitwise_or.reduce(own)
        return whole

    def apply(self, step: Step) -> BadTransfer | None:
        """Move the sets of one step, all as they were before it; return the first transfer that cannot be."""
        column = self.place[step.chunk]
        mine = column >= 0
        src, dst, column = step.src[mine], step.dst[mine], column[mine]
        sent = self.cells[src * len(self.chunks) + column]
        into = dst * len(self.chunks) + column
        found = [
            BadTransfer(int(src[k]), int(column[k]), "which it does not hold yet")
            for k in _first(~sent.any(axis=1), src)
        ]
        one_each = len(dst) == 0 or np.bincount(dst).max() <= 1
        for batch in [np.arange(len(src))] if one_each else conflict_free_batches(src, into):
            if step.op == "reduce":
                found += self._reduce(src[batch], dst[batch], column[batch], into[batch], sent[batch])
            else:
                self.cells[into[batch]] = sent[batch]
        wrong = min(found, key=lambda one: one.member, default=None)
        return None if wrong is None else wrong._replace(chunk=int(self.chunks[wrong.chunk]))

    def _reduce(
        self, src: IntArray, dst: IntArray, column: IntArray, into: IntArray, sent: BitSets
    ) -> Iterator[BadTransfer]:
        own = self.cells[into]
        both = own & sent
        self.cells[into] = own | sent
        nothing: Flags = np.logical_not(own.any(axis=1)) & (dst < self.schedule.n_workers)
        twice: Flags = np.asarray(both.any(axis=1))
        for k in _first(nothing, src):
            yield BadTransfer(int(src[k]), int(column[k]), "to be reduced where there is nothing of it yet")
        for k in _first(twice, src):
            worker = self._members(both[k], int(column[k]))[0]
            what = f"whose receiver already has the contribution of worker {worker}"
            yield BadTransfer(int(src[k]), int(column[k]), what)

    def gaps(self, shown: int) -> tuple[int, list[Gap]]:
        """Return how many cells end without all that they must hold, and the first few by chunk."""
        n_workers = self.schedule.n_workers
        missing = self.whole & ~self.table[:n_workers]
        target = self.schedule.target[self.chunks]
        must = (target == EVERY_WORKER) | (target == np.arange(n_workers)[:, None])
        lacking = np.argwhere((missing.any(axis=2) & must).T).tolist()
        return len(lacking), [
            Gap(worker, int(self.chunks[place]), self._members(missing[worker, place], place))
            for place, worker in lacking[:shown]
        ]

    def _members(self, bits: BitSets, place: int) -> list[int]:
        """Return the workers of a set."""
        if self.source[place] != EVERY_WORKER:
            return [int(self.source[place])]
        return [
            word * WORD + bit
            for word, value in enumerate(bits.tolist())
            for bit in range(WORD)
            if value >> bit & 1
        ]


def _first(wrong: Flags, src: IntArray) -> list[int]:
    """Return the row of the lowest sender that is wrong, if any is."""
    rows = np.flatnonzero(wrong)
    return [int(rows[np.argmin(src[rows])])] if len(rows) else []


# The same where one worker stands for all.


class _OneForAll:
    """Worker 0's cells, by chunk, stand for all; contributors are the bits of an integer, bit d for worker d.

    Worker w has the same in chunk c + k w, k the chunks of a worker, of contributors whose numbers are w higher.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.n = schedule, schedule.n_workers
        self.each = schedule.n_chunks // schedule.n_workers
        self.cells = dict.fromkeys(_held_by_first(schedule.source), 1)

    def check(self) -> None:
        """Check what worker 0 sends in each step, and what it ends with."""
        for step in self.schedule.steps():
            self._apply(step)
        everyone = (1 << self.n) - 1
        gaps = []
        for cell in _held_by_first(self.schedule.target):
            source = int(self.schedule.source[cell])
            wanted = everyone if source == EVERY_WORKER else 1 << source
            if missing := wanted & ~self.cells.get(cell, 0):
                gaps.append(Gap(0, cell, _bits(missing)))
        _raise_gaps(self.schedule, gaps[:SHOWN], len(gaps))

    def _apply(self, step: Step) -> None:
        """Let worker 0 send; what its receiver does, worker 0 does too."""
        distance, chunk = int(step.dst[0]), int(step.chunk[0])
        sent = self._turned(self.cells.get(chunk, 0), distance)
        place = (chunk - distance * self.each) % self.schedule.n_chunks
        own = self.cells.get(place, 0)
        if not sent:
            _raise_at(step, BadTransfer(0, chunk, "which it does not hold yet"), self.n)
        if step.op == "reduce" and not own:
            _raise_at(step, BadTransfer(0, chunk, "to be reduced where there is nothing of it yet"), self.n)
        if step.op == "reduce" and own & sent:
            twice = _bits(own & sent)[0]
            what = f"whose receiver already has the contribution of worker {twice}"
            _raise_at(step, BadTransfer(0, chunk, what), self.n)
        self.cells[place] = own | sent if step.op == "reduce" else sent

    def _turned(self, contributors: int, turn: int) -> int:
        """Return the set, its members numbered from a worker that is ``turn`` places to the right."""
        return (contributors >> turn) | ((contributors << (self.n - turn)) & ((1 << self.n) - 1))


def _held_by_first(holder: IntArray) -> list[int]:
    """Return the chunks that worker 0 starts or ends with."""
    chunks: list[int] = np.flatnonzero((holder == EVERY_WORKER) | (holder == 0)).tolist()
    return chunks


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _same_for_all(schedule: Schedule) -> bool:
    """Whether every worker does the same, seen from its own place: its own chunks further on."""
    n_workers = schedule.n_workers
    each, rest = divmod(schedule.n_chunks, n_workers)
    if rest or not each or schedule.n_switches:
        return False
    if not (_owned(schedule.source, each, n_workers) and _owned(schedule.target, each, n_workers)):
        return False
    worker = np.arange(n_workers)
    return all(
        step.count is None
        and len(step) == n_workers
        and bool((step.src == worker).all())
        and _counts_up(step.dst, 1, n_workers)
        and _counts_up(step.chunk, each, schedule.n_chunks)
        for step in schedule.steps()
    )


def _owned(holder: IntArray, each: int, n_workers: int) -> bool:
    """Whether all chunks are every worker's, or each worker's are those of the one before it, ``each`` further on."""
    everyone = bool((holder == EVERY_WORKER).all())
    return everyone or bool((np.roll(holder, -each) == (holder + 1) % n_workers).all())


def _counts_up(column: IntArray, by: int, modulus: int) -> bool:
    """Whether a column counts up in steps of ``by``, modulo ``modulus``."""
    around = (int(column[0]) + by * np.arange(len(column))) % modulus
    return bool((column == around).all())
