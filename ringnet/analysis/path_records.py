"""What a path is walked over: who sends what in which step, when that happened, and when links served it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines.tolerances import added
from ringnet.engines.trace import FLOW, Columns, Trace
from ringnet.networks import Network

#: Stands for no worker, no link, no transfer.
NONE = -1
#: Steps of a schedule are held in so many blocks, two at a time; who uses them, of a few times as many steps.
BLOCKS, HELD = 16, 3
#: Bytes of the columns of a schedule that is held whole.
MOST_BYTES = 1 << 26


class _Uses(NamedTuple):
    """Rows of a step by who sends them, and by who is owed them; the columns that they were found for stay alive."""

    columns: tuple[IntArray, ...]
    senders: IntArray
    sent_first: IntArray
    sent: IntArray
    receivers: IntArray
    owed_first: IntArray
    owed: IntArray


class StepTransfers:
    """Which transfers each actor sends and is owed in each step; an actor is ``worker * n_channels + channel``.

    Parameters
    ----------
    schedule : Schedule
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    """

    def __init__(self, schedule: Schedule, chunk_bytes: IntArray) -> None:
        self.schedule, self.chunk_bytes, self.n_channels = schedule, chunk_bytes, schedule.n_channels
        lengths, self._whole = self._looked_through()
        #: The first transfer of each step, and after the last the number of all.
        self.first = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self._length = max(1, -(-schedule.n_steps // BLOCKS))
        self._block = lru_cache(maxsize=2)(self._steps_of_block)
        self._found: OrderedDict[tuple[int, ...], _Uses] = OrderedDict()
        # A path asks the same of a transfer several times, one after the other.
        self.step_of: Callable[[int], int] = lru_cache(maxsize=64)(self._step_of)
        self.n_bytes: Callable[[int], int] = lru_cache(maxsize=64)(self._n_bytes)
        self.actors: Callable[[int], tuple[int, int]] = lru_cache(maxsize=64)(self._actors)
        self.sends: Callable[[int, int], list[int]] = lru_cache(maxsize=64)(self._sends)
        self.owed: Callable[[int, int], list[int]] = lru_cache(maxsize=64)(self._owed)

    def _looked_through(self) -> tuple[list[int], list[Step] | None]:
        """Return how long steps are, and all of them where they take little memory: those of a ring share columns."""
        lengths, held, n_bytes, last = list[int](), list[Step](), 0, None
        for step in self.schedule.steps():
            lengths.append(len(step))
            if n_bytes <= MOST_BYTES:
                held.append(step)
                n_bytes += _own_bytes(step, last)
                last = step
        return lengths, held if n_bytes <= MOST_BYTES else None

    def _steps_of_block(self, block: int) -> list[Step]:
        first = block * self._length
        return list(islice(self.schedule.steps(), first, first + self._length))

    def step(self, number: int) -> Step:
        """Return a step of the whole schedule."""
        if self._whole is not None:
            return self._whole[number]
        block, place = divmod(number, self._length)
        return self._block(block)[place]

    def _step_of(self, transfer: int) -> int:
        """Return the number of the step, of the whole schedule, that a transfer is in."""
        return int(self.first.searchsorted(transfer, side="right")) - 1

    def place(self, transfer: int) -> tuple[Step, int]:
        """Return the step of a transfer, and its row there."""
        number = self.step_of(transfer)
        return self.step(number), transfer - int(self.first[number])

    def src(self, transfer: int) -> int:
        """Return the worker that sends a transfer."""
        return self.actors(transfer)[0] // self.n_channels

    def _n_bytes(self, transfer: int) -> int:
        """Return the bytes of a transfer."""
        step, row = self.place(transfer)
        first = int(step.chunk[row])
        n_chunks = 1 if step.count is None else int(step.count[row])
        return int(self.chunk_bytes[first : first + n_chunks].sum())

    def _actors(self, transfer: int) -> tuple[int, int]:
        """Return who sends a transfer and who receives it."""
        step, row = self.place(transfer)
        sender = int(step.src[row]) * self.n_channels + int(step.channel[row])
        return sender, int(step.dst[row]) * self.n_channels + int(step.receiving_channel[row])

    def _sends(self, actor: int, number: int) -> list[int]:
        """Return the transfers that an actor sends in a step, in its order."""
        uses = self._uses(self.step(number))
        rows = uses.sent[uses.sent_first[actor] : uses.sent_first[actor + 1]]
        found: list[int] = (rows + self.first[number]).tolist()
        return found

    def _owed(self, actor: int, number: int) -> list[int]:
        """Return the transfers that an actor is owed in a step, in the order in which it applies them: by source."""
        uses = self._uses(self.step(number))
        rows = uses.owed[uses.owed_first[actor] : uses.owed_first[actor + 1]]
        found: list[int] = (rows + self.first[number]).tolist()
        return found

    def _uses(self, step: Step) -> _Uses:
        columns = (step.src, step.dst, step.channel, step.receiving_channel)
        key = tuple(map(id, columns))  # steps of a ring share their columns
        if key not in self._found:
            self._found[key] = self._sorted(columns)
            if len(self._found) > HELD * self._length:
                self._found.popitem(last=False)
        return self._found[key]

    def _sorted(self, columns: tuple[IntArray, ...]) -> _Uses:
        src, dst, channel, to_channel = columns
        n_actors = self.schedule.n_members * self.n_channels
        senders, receivers = src * self.n_channels + channel, dst * self.n_channels + to_channel
        firsts = [
            np.concatenate(([0], np.cumsum(np.bincount(actors, minlength=n_actors)))) for actors in (senders, receivers)
        ]
        sent, owed = np.argsort(senders, kind="stable"), np.lexsort((src, receivers))
        return _Uses(columns, senders, firsts[0], sent, receivers, firsts[1], owed)

    def columns(self, transfers: Sequence[int]) -> Columns:
        """Return ``phase, step, chunk, src, dst, bytes`` of some transfers, one row each."""
        rows = []
        for transfer in transfers:
            step, row = self.place(transfer)
            ends = int(step.chunk[row]), int(step.src[row]), int(step.dst[row])
            rows.append((step.phase, step.step, *ends, self.n_bytes(transfer)))
        return move_columns(tuple(zip(*rows, strict=True)) or [()] * len(MOVED))


#: What is said of a transfer on a path.
MOVED = ("phase", "step", "chunk", "src", "dst", "bytes")


def move_columns(cells: Sequence[Sequence[Any]]) -> Columns:
    """Return the columns of `MOVED` by name."""
    return {
        name: np.array(column, dtype=object if name == "phase" else np.int64)
        for name, column in zip(MOVED, cells, strict=True)
    }


def _own_bytes(step: Step, last: Step | None) -> int:
    """Return the memory of the columns of a step that are neither those of the last one nor views of something."""
    columns = (step.src, step.dst, step.chunk, step.channel, step.to_channel, step.count)
    same = () if last is None else (last.src, last.dst, last.chunk, last.channel, last.to_channel, last.count)
    return sum(
        one.nbytes
        for one in columns
        if one is not None and one.base is None and not any(one is other for other in same)
    )


#: A row of the services of links.
Service: TypeAlias = int


class PathRecords:
    """Times of transfers, and services of links by transfer, link of the route, and part of the transfer.

    Parameters
    ----------
    network : Network
    trace : Trace
        With its rows.
    transfers : StepTransfers
    """

    def __init__(self, network: Network, trace: Trace, transfers: StepTransfers) -> None:
        assert trace.times is not None
        assert trace.services is not None
        self.network, self.transfers, self.job = network, transfers, trace.job
        self.times, self.services = trace.times, trace.services
        owner, hop = self.services["owner"], self.services["hop"]
        ours = slice(None) if (owner == self.job).all() else np.flatnonzero(owner == self.job)
        self.n_hops = max(int(hop[ours].max(initial=0)), 0) + 1
        cells = self.services["transfer"][ours].astype(np.int64) * self.n_hops + np.maximum(hop[ours], 0)
        n_cells = len(self.times["posted_s"]) * self.n_hops
        #: The services of ours by transfer and hop, and where those of each begin, in the order in which the link
        #: served its parts; where nothing comes in parts there is one for each at the most, found without sorting.
        self.rows = np.full(n_cells, NONE, dtype=np.int32)
        self.rows[cells] = np.arange(len(owner), dtype=np.int32)[ours]
        self.begin: IntArray | None = None
        if np.count_nonzero(self.rows != NONE) < len(cells):
            self.rows = np.arange(len(owner), dtype=np.int32)[ours][np.argsort(cells, kind="stable")]
            self.begin = np.concatenate(([0], np.cumsum(np.bincount(cells, minlength=n_cells))))

    @cached_property
    def _by_link(self) -> tuple[IntArray, IntArray]:
        """The services by link, in their order, and where those of each begin; asked for where links have queues."""
        link, n_links = self.services["link"], self.network.n_links
        kind = np.min_scalar_type(n_links)  # numpy sorts small ones much faster
        order = np.argsort(link.astype(kind), kind="stable")
        return order, np.concatenate(([0], np.cumsum(np.bincount(link, minlength=n_links))))

    def time_s(self, name: str, transfer: int) -> float:
        """Return one of the times of a transfer, by the name of its column."""
        return float(self.times[name][transfer])

    def _cell(self, name: str, at: Service) -> float:
        return float(self.services[name][at])

    def head_s(self, at: Service) -> float:
        """Return when the head came; of a flow, when it went on to the network."""
        return self._cell("head_s", at)

    def start_s(self, at: Service) -> float:
        """Return when the service begins."""
        return self._cell("start_s", at)

    def end_s(self, at: Service) -> float:
        """Return when it ends."""
        return self._cell("end_s", at)

    def others_s(self, at: Service) -> float:
        """Return what a flow lost to those of other senders."""
        return self._cell("others_s", at)

    def link(self, at: Service) -> int:
        """Return which link serves."""
        return int(self._cell("link", at))

    def transfer(self, at: Service) -> int:
        """Return which transfer it serves."""
        return int(self.services["transfer"][at])

    def owner(self, at: Service) -> int:
        """Return the number of the job, or of other traffic, whose it is."""
        return int(self._cell("owner", at))

    def is_flow(self, at: Service) -> bool:
        """Whether it is all of a transfer, or of a part of one, which shares its links with others."""
        return self._cell("hop", at) == FLOW

    def is_ours(self, at: Service) -> bool:
        """Whether it serves a transfer of this job."""
        return self._cell("owner", at) == self.job

    def tail_s(self, at: Service) -> float:
        """Return when the tail has crossed the link."""
        size, start_s = float(self.transfers.n_bytes(self.transfer(at))), self.start_s(at)
        return self.end_s(at) + self.network.behaviour(self.link(at)).offer(size, start_s).latency_s

    def of(self, transfer: int, hop: int = 0) -> list[Service]:
        """Return the services of a transfer on one link of its route: one, or one for each of its parts."""
        found: list[Service] = self._of(transfer, hop).tolist()
        return found

    def _of(self, transfer: int, hop: int) -> Array:
        cell = transfer * self.n_hops + hop
        if self.begin is not None:
            return self.rows[self.begin[cell] : self.begin[cell + 1]]
        return self.rows[cell : cell + (self.rows[cell] != NONE)]

    def last_hop(self, transfer: int) -> int:
        """Return which link of its route is a transfer's last one."""
        return max(hop for hop in range(self.n_hops) if len(self._of(transfer, hop)))

    def number(self, at: Service) -> int:
        """Return which part of its transfer a service is of, from 0."""
        hop = max(int(self._cell("hop", at)), 0)
        return 0 if self.begin is None else int(self._of(self.transfer(at), hop).searchsorted(at))

    def hop_before(self, at: Service) -> Service | None:
        """Return the service of the same part on the link before; None on the first."""
        hop = int(self._cell("hop", at))
        return int(self._of(self.transfer(at), hop - 1)[self.number(at)]) if hop > 0 else None

    def ahead_of(self, at: Service) -> Service | None:
        """Return the service before, on the same link; None if it is the first."""
        (order, firsts), link = self._by_link, self.link(at)
        of_link = order[firsts[link] : firsts[link + 1]]
        place = int(of_link.searchsorted(at))
        return int(of_link[place - 1]) if place else None


class WindowCredits:
    """When credit came back to the sender of each connection, and from what.

    Parameters
    ----------
    network : Network
        With a window.
    records : PathRecords
    rows : dict of str to ndarray
        As `Trace.transfers` has them.
    """

    def __init__(self, network: Network, records: PathRecords, rows: Columns) -> None:
        self.network, self.records, self.rows = network, records, rows
        self._of_connection = lru_cache(maxsize=None)(self._credits)

    def gave(self, transfer: int, at_s: float) -> tuple[int, Service | None] | None:
        """Return what gave the credit that came back at some time to the sender of a transfer; None if nothing did.

        A transfer, and the service of the part of it whose arrival gave the credit; None for that where the transfer
        had been applied. It is told once: a path that came to it again would go in a circle, at one time.
        """
        src, dst = int(self.rows["src"][transfer]), int(self.rows["dst"][transfer])
        return self._of_connection(src, dst).pop(at_s, None)

    def _credits(self, src: int, dst: int) -> dict[float, tuple[int, Service | None]]:
        records = self.records
        route = [self.network.behaviour(link) for link in self.network.route(dst, src)]
        back_s = added(behaviour.offer(0, 0.0).latency_s for behaviour in route)
        found: dict[float, tuple[int, Service | None]] = {}
        for transfer in np.flatnonzero((self.rows["src"] == src) & (self.rows["dst"] == dst)).tolist():
            *slots, last = self._slots(transfer)
            came = [(records.end_s(one) if records.is_flow(one) else records.tail_s(one), one, one) for one in slots]
            for came_s, slot, arrived in [*came, (float(self.rows["applied_s"][transfer]), last, None)]:
                # What takes no time there and back gives no more than what let it start, and may be what it let start.
                if came_s + back_s > records.head_s(records.of(transfer)[records.number(slot)]):
                    found[came_s + back_s] = transfer, arrived
        return found

    def _slots(self, transfer: int) -> list[Service]:
        """Return of each slot of a transfer the service of its last part on the last link."""
        window, packets = self.network.window, self.network.packets
        assert window is not None
        parts = self.records.of(transfer, self.records.last_hop(transfer))
        n_bytes = int(self.rows["bytes"][transfer])
        whole = window.bytes is None or n_bytes <= window.slot_bytes
        n_slots = 1 if whole else -(-n_bytes // window.slot_bytes)
        each = 1
        if packets is not None and not self.records.is_flow(parts[0]):
            each = -(-window.slot_bytes // packets.bytes)
        return [*parts[each - 1 : each * (n_slots - 1) : each], parts[-1]]
