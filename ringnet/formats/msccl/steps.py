"""Messages to steps: on which channel each gpu sends and receives them, and in which step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives.schedule import Step, frozen
from ringnet.errors import ScheduleError
from ringnet.formats.msccl.dataflow import Access, Dataflow, Delivery
from ringnet.formats.msccl.thread_blocks import Execution, VectorClock, refuse


@dataclass(eq=False)
class PlannedTransfer:
    """A transfer to be: chunks of one message that lie side by side and of which the same becomes."""

    parts: list[Delivery]
    channel: int = 0
    to_channel: int = 0
    slot: int = 0

    @property
    def op(self) -> str:
        """What its receiver does."""
        return self.parts[0].op

    @property
    def sent(self) -> Execution:
        """What sends it."""
        return self.parts[0].sent

    @property
    def received(self) -> Execution:
        """What receives it."""
        received = self.parts[0].received
        assert received is not None  # or the run would have said so
        return received


def plan_transfers(deliveries: Sequence[Delivery]) -> list[PlannedTransfer]:
    """Put together what goes as one transfer, in the order of the run."""
    transfers: list[PlannedTransfer] = []
    for part in deliveries:
        last = transfers[-1].parts[-1] if transfers else None
        follows = last is not None and last.sent is part.sent and last.op == part.op and part.chunk == last.chunk + 1
        if follows:
            transfers[-1].parts.append(part)
        else:
            transfers.append(PlannedTransfer([part]))
    return transfers


# ------------------------------------------------------------------------------------------------------- channels


@dataclass(eq=False)
class _Channel:
    """A channel of one gpu: what must be done before more may be put on it, and its transfers in order."""

    number: int
    needs: VectorClock
    events: list[tuple[PlannedTransfer, bool]] = field(default_factory=list)


def put_in_order(
    transfers: list[PlannedTransfer], run: Sequence[Execution], flow: Dataflow, file: str
) -> tuple[list[_Channel], list[Step]]:
    """Return the channels of all gpus and the steps of all transfers.

    Raises
    ------
    ScheduleError
        Transfers of which each would be in an earlier step than the other.
    """
    try:
        channels = assign_channels(transfers, _ChannelChoice(run))
        return channels, make_steps(transfers, channels, flow, file)
    except ScheduleError:
        # Receives that need not come after a send of their channel; it waits for its chunk, wherever it is.
        channels = assign_channels(transfers, _ChannelChoice(run, flow))
        return channels, make_steps(transfers, channels, flow, file)


def assign_channels(transfers: Sequence[PlannedTransfer], choice: _ChannelChoice) -> list[_Channel]:
    """Put each send and each receive on a channel of its gpu.

    A thread block is a channel; blocks of which one waits for the other share one where the file says itself
    that all that is on it comes first, so that nothing waits that need not.
    """
    sends: dict[Execution, list[PlannedTransfer]] = defaultdict(list)
    receives: dict[Execution, list[PlannedTransfer]] = defaultdict(list)
    for transfer in transfers:
        sends[transfer.sent].append(transfer)
        receives[transfer.received].append(transfer)
    for done in choice.run:
        for transfer in receives[done]:
            transfer.to_channel = choice.put(done, transfer, receives=True)
        for transfer in sends[done]:
            transfer.channel = choice.put(done, transfer, receives=False)
        choice.note(done)
    return choice.channels


class _ChannelChoice:
    """Channels being filled; with a ``flow``, sends make way for receives that need not come after them."""

    def __init__(self, run: Sequence[Execution], flow: Dataflow | None = None) -> None:
        self.run, self.flow = run, flow
        self.before, self.after = _waits(run)
        self.n_blocks = len(run[0].before) if run else 0
        self.channels: list[_Channel] = []
        self.of_gpu: dict[int, list[_Channel]] = defaultdict(list)
        self.last: dict[tuple[int, int], list[_Channel]] = {}  # by block and step: the channels to go on from

    def put(self, done: Execution, transfer: PlannedTransfer, *, receives: bool) -> int:
        """Put one event on a channel, and return its channel."""
        channel = self._find(done, transfer, receives=receives)
        for other in self._in_the_way(channel, done) if receives and self.flow is not None else ():
            channel.events.remove((other, False))
            other.channel = self._find(other.sent, other, receives=False, not_on=channel).number
        return channel.number

    def _in_the_way(self, channel: _Channel, done: Execution) -> list[PlannedTransfer]:
        """Return the sends on a channel before a receive that need not be: the receive would wait for their step."""
        sends = []
        for transfer, receives in reversed(channel.events[:-1]):
            if receives:
                break
            if transfer.sent is not done and not done.comes_after(transfer.sent) and self._waits_for_chunks(transfer):
                sends.append(transfer)
        return sends[::-1]

    def _waits_for_chunks(self, transfer: PlannedTransfer) -> bool:
        """Whether all that a send waits for comes before what was last done to its chunks."""
        assert self.flow is not None  # or nothing makes way
        known = np.zeros(self.n_blocks, dtype=np.int32)
        for part in transfer.parts:
            changes = (one for one in self.flow.accesses[transfer.sent.block.gpu, part.chunk] if one.changes)
            applied = [one.delivery.applied for one in changes if one.delivery.applied is not None]
            for done in applied:
                if transfer.sent.comes_after(done):
                    np.maximum(known, self.after[done], out=known)
        return bool((self.before[transfer.sent] <= known).all())

    def _find(
        self, done: Execution, transfer: PlannedTransfer, *, receives: bool, not_on: _Channel | None = None
    ) -> _Channel:
        """Put one event on a channel where all comes first that comes before it for sure, or on a new one."""
        before = (self.before if receives or done.received is None else self.after)[done]
        fitting = (one for one in self._candidates(done) if one is not not_on and (one.needs <= before).all())
        channel = next(fitting, None)
        if channel is None:
            channel = _Channel(len(self.of_gpu[done.block.gpu]), np.zeros(self.n_blocks, dtype=np.int32))
            self.of_gpu[done.block.gpu].append(channel)
            self.channels.append(channel)
        applied = [self.after[part.applied] for part in transfer.parts if part.applied is not None]
        needs = applied if receives else [before]
        for clock in needs:
            channel.needs = np.maximum(channel.needs, clock)
        channel.events.append((transfer, receives))
        key = (done.place, done.number)
        gone = {id(channel), id(not_on)}
        self.last[key] = [channel, *(other for other in self.last.get(key, []) if id(other) not in gone)]
        return channel

    def note(self, done: Execution) -> None:
        """Remember for what comes later where an operation leads on from, even one that sends nothing itself."""
        key = (done.place, done.number)
        if key not in self.last:
            self.last[key] = self._candidates(done)

    def _candidates(self, done: Execution) -> list[_Channel]:
        """Return the channels that an operation could go on from: of what it waits for, then of its own block.

        To wait for a send of another block is to wait for the chunk, which needs no channel in common.
        """
        found = list(self.last.get((done.place, done.number), []))
        mine = [one for one in done.follows if one.place == done.place]
        others = [one for one in done.follows if one is not done.received and one.operation.kind != "s"]
        for one in [*(one for one in others if one not in mine), *mine]:
            found += self.last.get((one.place, one.number), [])
        return list(dict.fromkeys(found))


def _waits(run: Sequence[Execution]) -> tuple[dict[Execution, VectorClock], dict[Execution, VectorClock]]:
    """Return for each operation what is received and added for sure before and after it; a send takes no time."""
    before: dict[Execution, VectorClock] = {}
    after: dict[Execution, VectorClock] = {}
    for done in run:
        before[done] = np.zeros_like(done.before)
        for one in done.follows:
            np.maximum(before[done], after[one], out=before[done])
        after[done] = before[done]
        if done.operation.kind not in {"s", "nop"}:
            after[done] = before[done].copy()
            after[done][done.place] = done.number + 1
    return before, after


# ---------------------------------------------------------------------------------------------------------- order


def make_steps(transfers: list[PlannedTransfer], channels: Sequence[_Channel], flow: Dataflow, file: str) -> list[Step]:
    """Put all transfers in steps: as early as what comes before them allows, one operation a step."""
    number = {transfer: place for place, transfer in enumerate(transfers)}
    transfer_of = {part: number[transfer] for transfer in transfers for part in transfer.parts}
    edges = sorted({*_channel_edges(channels, number), *_chunk_edges(flow, transfer_of)})
    for transfer, slot in zip(transfers, _slots(transfers, edges, file), strict=True):
        transfer.slot = slot
    by_slot = defaultdict(list)
    for transfer in transfers:
        by_slot[transfer.slot].append(transfer)
    count: dict[str, int] = defaultdict(int)
    steps = []
    for slot in sorted(by_slot):
        op = by_slot[slot][0].op
        steps.append(_step(by_slot[slot], count[op]))
        count[op] += 1
    return steps


def _channel_edges(channels: Sequence[_Channel], number: dict[PlannedTransfer, int]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of transfers of a channel, and whether the second is in a later step: a send after a receive is.

    What follows a send may be in the same, and a receive that follows another, if that is the order in which
    a channel takes what a step owes it: by source. Of two sends only those have an order that the file gives one.
    """
    for channel in channels:
        received: PlannedTransfer | None = None
        sends: list[PlannedTransfer] = []
        for transfer, receives in channel.events:
            b = number[transfer]
            if received is not None:
                a = number[received]
                in_order = receives and (received.sent.block.gpu, a) < (transfer.sent.block.gpu, b)
                yield a, b, int(not in_order)
            if receives:
                yield from ((number[send], b, 0) for send in sends if send is not transfer)
                received, sends = transfer, []
            else:
                yield from ((number[send], b, 0) for send in sends[-1:] if transfer.sent.comes_after(send.sent))
                sends.append(transfer)


def _chunk_edges(flow: Dataflow, transfer_of: dict[Delivery, int]) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of transfers of a chunk, and whether the second is in a later step: a read after a change is.

    A change after a read may be in the same, and one after another change, if that is the order in which a
    step's transfers are applied: by source.
    """
    for accesses in flow.accesses.values():
        change: Access | None = None
        reads: list[Access] = []
        for access in accesses:
            if change is not None:
                one, other = change.delivery, access.delivery
                by_source = one.op == other.op and one.sent.block.gpu < other.sent.block.gpu
                in_order = access.changes and by_source
                yield transfer_of[one], transfer_of[other], int(not in_order)
            if access.changes:
                yield from ((transfer_of[read.delivery], transfer_of[access.delivery], 0) for read in reads)
                change, reads = access, []
            else:
                reads.append(access)


def _slots(transfers: Sequence[PlannedTransfer], edges: Sequence[tuple[int, int, int]], file: str) -> list[int]:
    """Return the earliest step of each transfer; reduces in even ones, copies in odd ones."""
    n_transfers = len(transfers)
    n_groups, group = _circles(n_transfers, [(a, b) for a, b, apart in edges if not apart])
    parity = np.array([transfer.op == "copy" for transfer in transfers], dtype=np.int64)
    odd = np.zeros(n_groups, dtype=np.int64)
    odd[group] = parity
    if (odd[group] != parity).any():
        _no_order(transfers[int(np.flatnonzero(odd[group] != parity)[0])], file)
    between: dict[int, list[tuple[int, int]]] = defaultdict(list)
    waits = np.zeros(n_groups, dtype=np.int64)
    for a, b, apart in edges:
        if group[a] == group[b]:
            if apart:
                _no_order(transfers[b], file)
            continue
        between[int(group[a])].append((int(group[b]), apart))
        waits[group[b]] += 1
    slots = _longest(n_groups, between, waits, odd)
    if (slots < 0).any():
        _no_order(transfers[int(np.flatnonzero(slots[group] < 0)[0])], file)
    return [int(slot) for slot in slots[group]]


def _circles(n_transfers: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, IntArray]:
    """Return how many groups of transfers there are that all come before each other, and the group of each."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    from scipy.sparse import csr_array  # noqa: PLC0415 -- takes longer than most runs that need no file
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 -- the same

    matrix = csr_array((np.ones(len(pairs)), (first, second)), shape=(n_transfers, n_transfers))
    n_groups, group = connected_components(matrix, connection="strong")
    return int(n_groups), group.astype(np.int64)


def _longest(n_groups: int, between: dict[int, list[tuple[int, int]]], waits: IntArray, odd: IntArray) -> IntArray:
    """Go through the groups in order; -1 for those in a circle."""
    slots, least = np.full(n_groups, -1), np.zeros(n_groups, dtype=np.int64)
    ready = np.flatnonzero(waits == 0).tolist()
    while ready:
        group = ready.pop()
        slots[group] = least[group] + (least[group] % 2 != odd[group])
        for other, apart in between.get(group, []):
            least[other] = max(least[other], slots[group] + apart)
            waits[other] -= 1
            if not waits[other]:
                ready.append(other)
    return slots


def _no_order(transfer: PlannedTransfer, file: str) -> None:
    message = f"{transfer.sent} and {transfer.received} cannot be put in order"
    refuse(file, transfer.sent.operation.line, f"{message}: what comes first for one comes last for the other")


def _step(transfers: list[PlannedTransfer], number: int) -> Step:
    columns = [
        (
            transfer.sent.block.gpu,
            transfer.received.block.gpu,
            transfer.parts[0].chunk,
            transfer.channel,
            transfer.to_channel,
            len(transfer.parts),
        )
        for transfer in sorted(transfers, key=lambda transfer: transfer.sent.block.gpu)
    ]
    src, dst, chunk, channel, to_channel, count = (frozen(column) for column in zip(*columns, strict=True))
    op = transfers[0].parts[0].op
    return Step(op, number, op, src, dst, chunk, channel, to_channel, None if (count == 1).all() else count)
