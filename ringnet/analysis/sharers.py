"""What channels of one worker share: its chunks, which they use in the order of the schedule, and its processor."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ringnet.collectives import Schedule
from ringnet.engines.trace import Columns, Workers

#: ``post`` or ``apply``, and the row of the transfer.
WorkerUse: TypeAlias = tuple[str, int]
_WORDS = ("post", "apply")


class ChunkSharers:
    """Which posts and applies come before one with the same chunk of the same worker, on whichever channel.

    A post comes after the last apply; an apply after the last one, and after all posts since.

    Parameters
    ----------
    schedule : Schedule
    """

    def __init__(self, schedule: Schedule) -> None:
        cells, keys, first = [], [], 0
        for number, step in enumerate(schedule.steps()):
            rows = np.repeat(np.arange(len(step)), 1 if step.count is None else step.count)
            moves = step.by_chunk()
            each, zero = rows + first, np.zeros(len(rows), dtype=np.int64)
            # In a step all is posted before anything is applied: by channel, and by source.
            posts, applies = moves.channel - schedule.n_channels, moves.src
            for kind, worker, order in ((0, moves.src, posts), (1, moves.dst, applies)):
                cells.append(worker * schedule.n_chunks + moves.chunk)
                keys.append(np.stack((zero + number, order, zero + kind, each)))
            first += len(step)
        cell, (number, order, self.kind, self.transfer) = np.concatenate(cells), np.concatenate(keys, axis=1)
        sort = np.lexsort((self.transfer, order, number, cell))
        self.cell, self.kind, self.transfer = cell[sort], self.kind[sort], self.transfer[sort]
        self._places: tuple[dict[int, list[int]], ...] = {}, {}
        for place, (kind, transfer) in enumerate(
            zip(self.kind.tolist(), self.transfer.tolist(), strict=True)
        ):
            self._places[kind].setdefault(transfer, []).append(place)

    def before_post(self, transfer: int) -> list[WorkerUse]:
        """Return what a post comes after."""
        return [
            use for place in self._places[0][transfer] for use in self._before(place) if use[0] == "apply"
        ]

    def before_apply(self, transfer: int) -> list[WorkerUse]:
        """Return what an apply comes after."""
        return [use for place in self._places[1][transfer] for use in self._before(place)]

    def _before(self, place: int) -> list[WorkerUse]:
        """Return the uses before one in their order, from the last apply on."""
        found: list[WorkerUse] = []
        before = place - 1
        while before >= 0 and self.cell[before] == self.cell[place]:
            kind = int(self.kind[before])
            found.append((_WORDS[kind], int(self.transfer[before])))
            if kind:
                break
            before -= 1
        return found[::-1]


class ProcessorSharers:
    """What a worker's processor did before a post or an apply, on whichever channel: first come first served.

    Parameters
    ----------
    workers : Workers
    rows : dict of str to ndarray
        As `Trace.transfers` has them.
    """

    def __init__(self, workers: Workers, rows: Columns) -> None:
        src, dst = rows["src"], rows["dst"]
        reducing_s = np.where(rows["op"] == "reduce", rows["bytes"] / workers.reduce_Bps[dst], 0.0)
        spent_s = np.concatenate((workers.send_overhead_s[src], workers.recv_overhead_s[dst] + reducing_s))
        worker, end_s = np.concatenate((src, dst)), np.concatenate((rows["posted_s"], rows["applied_s"]))
        spends = np.flatnonzero(spent_s > 0)
        order = spends[np.lexsort((end_s[spends], worker[spends]))]
        self.n_transfers = len(src)
        self.before = np.full(len(worker), -1)
        same = worker[order[1:]] == worker[order[:-1]]
        self.before[order[1:][same]] = order[:-1][same]

    def before_post(self, transfer: int) -> list[WorkerUse]:
        """Return what the processor did before the overhead of a post."""
        return self._of(int(self.before[transfer]))

    def before_apply(self, transfer: int) -> list[WorkerUse]:
        """Return what it did before the overhead and the reduction of an apply."""
        return self._of(int(self.before[self.n_transfers + transfer]))

    def _of(self, use: int) -> list[WorkerUse]:
        if use < 0:
            return []
        kind, transfer = divmod(use, self.n_transfers)
        return [(_WORDS[kind], transfer)]
