"""GOAL text, the input of LogGOPSim: for each rank what it sends, receives and computes, and what requires what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import Schedule, Step
from ringnet.errors import Fault, ScheduleError

#: Transfers beyond which a text would be too long: LogGOPSim takes seconds to convert hundreds of megabytes.
MAX_TRANSFERS = 4_000_000

#: What LogGOPSim does otherwise than ringnet, at the head of each text.
HOLDS = (
    "LogGOPSim lets a message that comes in hold its rank's processor until its last byte: where a worker sends, "
    "reduces or receives another one meanwhile, its time is not ringnet's"
)


def dumps_goal(schedule: Schedule, chunk_bytes: IntArray, reduce_ns_per_byte: float = 0.0) -> str:
    r"""Return a schedule as GOAL text.

    Parameters
    ----------
    schedule : Schedule
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    reduce_ns_per_byte : float
        What a reduction takes, as a ``calc`` of whole nanoseconds after the ``recv``; none where that is
        zero.

    Returns
    -------
    str
        Labels, each before its use; tags that tell all transfers between two ranks apart. Transfers of no
        bytes are left out, since LogGOPSim does not take them.

    Raises
    ------
    ScheduleError
        Too many transfers.

    Notes
    -----
    A send requires the last receive on its channel, and what came for its chunks on other channels; a receive
    the receive before it on its channel, and what was sent of its chunks. Sends of a channel begin one after another
    (``irequires``), or LogGOPSim would take those that are ready together in any order.

    LogGOPSim charges c - 1 bytes for a transfer of c: its time is G less for each transfer on the critical path. And a
    message that comes in holds the processor of its rank from its first byte to its last: no other is received
    meanwhile, nothing sent, nothing computed. A ring, direct, pairwise and Bruck's take the same there; where a worker
    passes on what it has while more is coming (pipelined rings and trees, channels, both ways at once) they do not.
    Hoefler, Siebert and Lumsdaine, *Group operation assembly language*, ICPP 2009; *LogGOPSim*, LSAP 2010.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> text = dumps_goal(ALGORITHMS["ring"].build(2, "reduce-scatter"), np.array([8, 8]))
    >>> print(text.partition("\n")[2], end="")
    num_ranks 2
    rank 0 {
    l1: send 8b to 1 tag 0
    l2: recv 8b from 1 tag 0
    }
    rank 1 {
    l1: send 8b to 0 tag 0
    l2: recv 8b from 0 tag 0
    }
    """
    if schedule.n_switches:
        message = f"GOAL knows ranks only, and {schedule.algorithm} takes switches that reduce"
        raise ScheduleError(Fault(message, right="an algorithm without switches"))
    if schedule.n_transfers > MAX_TRANSFERS:
        right = f"at most {MAX_TRANSFERS} transfers"
        raise ScheduleError(Fault("the schedule is too long for a text", value=str(schedule.n_transfers), right=right))
    ranks = [_Rank(schedule.n_channels, reduce_ns_per_byte) for _ in range(schedule.n_workers)]
    tags: dict[tuple[int, int], Iterator[int]] = defaultdict(count)
    for step in schedule.steps():
        rows = [(*row, next(tags[row[:2]])) for row in _rows(step, chunk_bytes)]
        for src, dst, chunks, n_bytes, channels, tag in rows:
            ranks[src].send(chunks, n_bytes, channels[0], f"to {dst} tag {tag}")
        for src, dst, chunks, n_bytes, channels, tag in sorted(rows, key=lambda row: row[0]):
            ranks[dst].receive(chunks, n_bytes, channels[1], f"from {src} tag {tag}", reduces=step.op == "reduce")
    blocks = ("\n".join([f"rank {rank} {{", *ranks[rank].lines, "}"]) for rank in range(len(ranks)))
    return "\n".join([f"// {HOLDS}", f"num_ranks {schedule.n_workers}", *blocks]) + "\n"


def _rows(step: Step, chunk_bytes: IntArray) -> Iterator[tuple[int, int, range, int, tuple[int, int]]]:
    """Yield source, target, chunks, bytes and both channels of each transfer that has any bytes."""
    counts = np.ones_like(step.chunk) if step.count is None else step.count
    columns = (
        step.src,
        step.dst,
        step.chunk,
        counts,
        step.sizes(chunk_bytes),
        step.channel,
        step.receiving_channel,
    )
    for src, dst, chunk, n_chunks, n_bytes, channel, to in zip(*(column.tolist() for column in columns), strict=True):
        if n_bytes:
            yield src, dst, range(chunk, chunk + n_chunks), n_bytes, (channel, to)


class _Rank:
    """The lines of one rank, and the labels that later ones may have to require."""

    def __init__(self, n_channels: int, reduce_ns_per_byte: float) -> None:
        self.lines: list[str] = []
        self.reduce_ns_per_byte = reduce_ns_per_byte
        self.n_labels = 0
        self.received: list[int | None] = [None] * n_channels
        self.posted: list[int | None] = [None] * n_channels
        self.applied: dict[int, int] = {}
        self.sent: dict[int, list[int]] = defaultdict(list)

    def send(self, chunks: range, n_bytes: int, channel: int, whom: str) -> None:
        """Add a send, after the last receive and the last send on its channel and what came for its chunks."""
        label = self._add(f"send {n_bytes}b {whom}")
        self._require(label, {self.received[channel], *(self.applied.get(chunk) for chunk in chunks)})
        if (before := self.posted[channel]) is not None:
            self.lines.append(f"l{label} irequires l{before}")
        self.posted[channel] = label
        for chunk in chunks:
            self.sent[chunk].append(label)

    def receive(self, chunks: range, n_bytes: int, channel: int, whom: str, *, reduces: bool) -> None:
        """Add a receive, after the one before it on its channel and what was done with its chunks."""
        label = self._add(f"recv {n_bytes}b {whom}")
        others = {label for chunk in chunks for label in self.sent.pop(chunk, [])}
        self._require(label, {self.received[channel], *(self.applied.get(chunk) for chunk in chunks), *others})
        if reduces and (nanoseconds := round(n_bytes * self.reduce_ns_per_byte)):
            arrived, label = label, self._add(f"calc {nanoseconds}")
            self._require(label, {arrived})
        self.received[channel] = label
        self.applied |= dict.fromkeys(chunks, label)

    def _add(self, what: str) -> int:
        self.n_labels += 1
        self.lines.append(f"l{self.n_labels}: {what}")
        return self.n_labels

    def _require(self, label: int, others: set[int | None]) -> None:
        self.lines += [
            f"l{label} requires l{other}" for other in sorted(other for other in others if other is not None)
        ]
