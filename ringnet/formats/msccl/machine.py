"""Thread blocks run without a clock: which messages meet which receives, and what comes before what."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.errors import Fault, ScheduleError
from ringnet.formats.msccl.document import RECEIVES, SENDS, SHOWN, Block, Document, Operation, refuse

#: For each block, how many of its steps are sure to be done.
Clock: TypeAlias = NDArray[np.int32]

#: Steps times blocks, up to which what comes before what is worked out.
MAX_CLOCKS = 1 << 27


@dataclass(eq=False)
class Done:
    """An operation that ran: where, and what was done before and after it for sure.

    ``follows`` are those that it waited for itself, ``received`` the one of them that sent what it received.
    """

    block: Block
    place: int
    number: int
    operation: Operation
    before: Clock
    after: Clock
    follows: tuple[Done, ...]
    received: Done | None

    def comes_after(self, other: Done) -> bool:
        """Whether the file itself says that ``other`` is done before this begins."""
        return bool(self.before[other.place] > other.number)

    def __str__(self) -> str:
        return f"{self.block} step {self.number}"


def run(document: Document, file: str) -> list[Done]:
    """Run all blocks.

    Returns
    -------
    list of Done
        In an order in which they can happen.

    Raises
    ------
    ScheduleError
        Two blocks share a connection, some wait for ever (and for what), or messages are never received.
    """
    return list(_Machine(document, file).run())


class _Machine:
    def __init__(self, document: Document, file: str) -> None:
        self.file, self.blocks = file, document.blocks
        self.place = {(block.gpu, block.number): place for place, block in enumerate(document.blocks)}
        n_steps = sum(len(block.operations) for block in document.blocks)
        if n_steps * len(self.blocks) > MAX_CLOCKS:
            right = f"steps times thread blocks of at most {MAX_CLOCKS}"
            refuse(file, None, "the schedule is too large", f"{n_steps} x {len(self.blocks)}", right)
        self.done: list[list[Done]] = [[] for _ in self.blocks]
        self.under_way: dict[tuple[int, int, int], deque[Done]] = defaultdict(deque)
        self._check_connections()

    def run(self) -> Iterator[Done]:
        """Let each block go on as far as it can, again and again."""
        moved = True
        while moved:
            moved = False
            for place in range(len(self.blocks)):
                while (done := self._step(place)) is not None:
                    moved = True
                    yield done
        self._check_end()

    def _step(self, place: int) -> Done | None:
        """Do the next operation of a block, if there is one and it need not wait."""
        block, number = self.blocks[place], len(self.done[place])
        if number == len(block.operations) or self._waits_for(place):
            return None
        operation = block.operations[number]
        follows = [self.done[place][-1]] if number else []
        received = self._incoming(block).popleft() if operation.kind in RECEIVES else None
        follows += [received] if received is not None else []
        if operation.waits_for is not None:
            other, step = operation.waits_for
            follows.append(self.done[self.place[block.gpu, other]][step])
        before = np.zeros(len(self.blocks), dtype=np.int32)
        for one in follows:
            np.maximum(before, one.after, out=before)
        after = before.copy()
        after[place] = number + 1
        done = Done(block, place, number, operation, before, after, tuple(follows), received)
        self.done[place].append(done)
        if operation.kind in SENDS:
            self.under_way[block.gpu, block.send or 0, block.channel].append(done)
        return done

    def _incoming(self, block: Block) -> deque[Done]:
        return self.under_way[block.receive or 0, block.gpu, block.channel]

    def _waits_for(self, place: int) -> str:
        """Say what the next operation of a block still waits for; nothing if it can be done."""
        block = self.blocks[place]
        operation = block.operations[len(self.done[place])]
        if operation.waits_for is not None:
            other, step = operation.waits_for
            if len(self.done[self.place[block.gpu, other]]) <= step:
                return f"block {other} of its gpu to be through with step {step}"
        if operation.kind in RECEIVES and not self._incoming(block):
            return f"a message of gpu {block.receive} on channel {block.channel}"
        return ""

    def _check_connections(self) -> None:
        """Check that no two blocks of a gpu send to the same peer on the same channel, or receive from it."""
        ends: tuple[tuple[str, Callable[[Block], int | None]], ...] = (
            ("send to", lambda block: block.send),
            ("receive from", lambda block: block.receive),
        )
        for what, peer_of in ends:
            seen: dict[tuple[int, int, int], Block] = {}
            for block in self.blocks:
                peer = peer_of(block)
                if peer is None:
                    continue
                first = seen.setdefault((block.gpu, peer, block.channel), block)
                if first is not block:
                    message = (
                        f"blocks {first.number} and {block.number} of gpu {block.gpu} both {what} gpu {peer}"
                    )
                    refuse(self.file, block.line, f"{message} on channel {block.channel}")

    def _check_end(self) -> None:
        stuck = [
            (self.blocks[place], len(done))
            for place, done in enumerate(self.done)
            if len(done) < len(self.blocks[place].operations)
        ]
        faults = [
            Fault(
                f"{block} waits for ever in step {number}: for {self._waits_for(self.place[block.gpu, block.number])}",
                file=self.file,
                line=block.operations[number].line,
            )
            for block, number in stuck
        ]
        faults = faults or [
            Fault(f"the message of {done} is never received", file=self.file, line=done.operation.line)
            for messages in self.under_way.values()
            for done in messages
        ]
        if faults:
            more = [Fault(f"and {len(faults) - SHOWN} more")] if len(faults) > SHOWN else []
            raise ScheduleError(*faults[:SHOWN], *more)
