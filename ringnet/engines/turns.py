"""The order of what happens to one chunk of one worker, where several channels of the worker have to do with it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import simpy

from ringnet.engines.clock import Clock

if TYPE_CHECKING:
    from ringnet.engines.transfer import Path, Transfer

UNKNOWN = float("inf")


class Turn:
    """A post or an apply that others may have to wait for: done or not, since when, and by what path."""

    __slots__ = ("event", "lane", "path", "time_s", "transfer")

    def __init__(self, transfer: Transfer, lane: int) -> None:
        self.transfer, self.lane = transfer, lane
        self.time_s = UNKNOWN
        self.path: Path
        self.event: simpy.Event | None = None

    def take(self, clock: Clock, path: Path) -> None:
        """Note that it is done now, and wake who waits for it."""
        self.time_s, self.path = clock.now, path
        if self.event is not None:
            clock.at(clock.now, self.event)

    def wait(self, clock: Clock) -> simpy.Event:
        """Return the event of its being done."""
        if self.event is None:
            self.event = simpy.Event(clock)
        return self.event


class _Cell:
    """One chunk of one worker: its last apply, and the posts since."""

    __slots__ = ("applied", "posted")

    def __init__(self) -> None:
        self.applied: Turn | None = None
        self.posted: list[Turn] = []


class Cells:
    """Finds for each post and apply, in the order of the schedule, which turns of other lanes come before it."""

    def __init__(self) -> None:
        self._cells: defaultdict[tuple[int, int], _Cell] = defaultdict(_Cell)

    def order(self, sends: list[list[Transfer]], owed: list[list[Transfer]]) -> None:
        """Take in one step: what each lane sends and is owed. All is sent before anything is applied."""
        for lane, transfers in enumerate(sends):
            for transfer in transfers:
                self._post(transfer, lane)
        # By source, on whichever lane: a worker's chunk is the same sum then as in a replay without lanes.
        applies = [
            (transfer.src, lane, transfer) for lane, transfers in enumerate(owed) for transfer in transfers
        ]
        for _, lane, transfer in sorted(applies, key=lambda apply: apply[0]):
            self._apply(transfer, lane)

    def _post(self, transfer: Transfer, lane: int) -> None:
        """Let a send come after the last apply to its chunks."""
        cells = [self._cells[transfer.src, chunk] for chunk in transfer.chunks]
        transfer.posting = Turn(transfer, lane)
        transfer.post_after = _others(lane, [cell.applied for cell in cells])
        for cell in cells:
            cell.posted.append(transfer.posting)

    def _apply(self, transfer: Transfer, lane: int) -> None:
        """Let an apply come after the last one to its chunks, and after all that was sent of them since."""
        cells = [self._cells[transfer.dst, chunk] for chunk in transfer.chunks]
        transfer.applying = Turn(transfer, lane)
        transfer.apply_after = _others(
            lane, [turn for cell in cells for turn in (cell.applied, *cell.posted)]
        )
        for cell in cells:
            cell.applied, cell.posted = transfer.applying, []


def _others(lane: int, turns: list[Turn | None]) -> tuple[Turn, ...]:
    """Return the turns of other lanes: those of the same lane come in order by themselves."""
    return tuple(turn for turn in turns if turn is not None and turn.lane != lane)
