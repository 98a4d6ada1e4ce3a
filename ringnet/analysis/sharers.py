"""What is shared: by the channels of one worker its chunks and its processor, by flows a link."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ringnet.analysis.path_records import NONE, PathRecords, Service
from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import Columns, Workers

#: ``post`` or ``apply``, and the row of the transfer.
WorkerUse: TypeAlias = tuple[str, int]
_WORDS = ("post", "apply")
#: Links whose flows are held at once.
HELD = 64


class ChunkSharers:
    """Which posts and applies come before one with the same chunk of the same worker, on whichever channel.

    A post comes after the last apply; an apply after the last one, and after all posts since.
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
        for place, (kind, transfer) in enumerate(zip(self.kind.tolist(), self.transfer.tolist(), strict=True)):
            self._places[kind].setdefault(transfer, []).append(place)

    def before_post(self, transfer: int) -> list[WorkerUse]:
        """Return what a post comes after."""
        return [use for place in self._places[0][transfer] for use in self._before(place) if use[0] == "apply"]

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


class FlowSharers:
    """Which flow of another sender was on a link with a flow for the longest time.

    Parameters
    ----------
    schedule : Schedule
    records : PathRecords
        Of a run whose links are shared fairly.
    """

    def __init__(self, schedule: Schedule, records: PathRecords) -> None:
        self.records, services = records, records.services
        none = np.zeros(0, dtype=np.int64)
        self.src, dst = (
            np.concatenate([none, *(getattr(step, end) for step in schedule.steps())]) for end in ("src", "dst")
        )
        src_of, dst_of = schedule.pairs
        links, firsts = records.network.joined_routes(src_of, dst_of)
        self._pairs = np.repeat(np.arange(len(src_of)), np.diff(firsts)), links
        self._foreign = np.flatnonzero(services["owner"] != records.job)
        # Flows by pair of sender and receiver, in the order in which they ended.
        ours = np.flatnonzero(services["owner"] == records.job)
        transfer, n = services["transfer"][ours], schedule.n_members
        pairs = np.searchsorted(src_of * n + dst_of, self.src[transfer] * n + dst[transfer])
        self._flows = ours[np.argsort(pairs, kind="stable")]
        self._first = np.concatenate(([0], np.cumsum(np.bincount(pairs, minlength=len(src_of)))))
        self._on_link = lru_cache(maxsize=HELD)(self._found_on)

    def longest(self, at: Service) -> tuple[int, int]:
        """Return that transfer, and of another job or other traffic whose it is; `NONE` for both if there was none.

        On the link that kept the flow from having more in the end; of several the one that began to move first. Of
        another job or traffic only those are known that the same link kept from having more.
        """
        records = self.records
        flows, from_s, until_s = self._on_link(records.link(at))
        start_s, end_s = records.start_s(at), records.end_s(at)
        some = flows[until_s.searchsorted(start_s, "right") : from_s.searchsorted(end_s)]
        services = records.services
        transfer, owner = services["transfer"][some], services["owner"][some]
        both_s = np.minimum(services["end_s"][some], end_s) - np.maximum(services["start_s"][some], start_s)
        is_ours = owner == records.job
        both_s[is_ours & (self.src[np.where(is_ours, transfer, 0)] == self.src[records.transfer(at)])] = 0.0
        if not both_s.max(initial=0.0) > 0:
            return NONE, NONE
        most = int((both_s >= both_s.max() * (1 - ROUNDING)).argmax())
        return (int(transfer[most]), NONE) if is_ours[most] else (NONE, int(owner[most]))

    def _found_on(self, link: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the flows on a link by when they began, when that was, and until when there was any up to each."""
        pairs, links = self._pairs
        on_it = pairs[links == link].tolist()
        ours = (self._flows[self._first[pair] : self._first[pair + 1]] for pair in on_it)
        services = self.records.services
        found = np.concatenate([*ours, self._foreign[services["link"][self._foreign] == link]])
        found = found[np.lexsort((services["transfer"][found], services["start_s"][found]))]
        return found, services["start_s"][found], np.maximum.accumulate(services["end_s"][found])


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
