"""The arrays of a run of the compiled loop: made for it, refilled with steps, emptied of rows, and grown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines import columns as at
from ringnet.engines.columns import ACTOR, ARRIVAL, CREDIT, HEAD_COMES, KINDS, NORMAL, TRANSFERS_AT_ONCE, schedule
from ringnet.engines.compiled.actors import ENTERS
from ringnet.engines.sharing import where_own_meet
from ringnet.engines.trace import TransferRows, Workers
from ringnet.networks import BySize, Constant, Network
from ringnet.networks.behaviour import ANY_SIZE, Piece

#: More bytes than any transfer has.
EVERYTHING = 1 << 60
#: Flows that there is place for at first, for each actor.
FLOWS_OF_ACTOR = 2
#: Transfers up to which what runs share is kept, about a hundred bytes for each; and those looked at together for it.
MOST_SHARED, LOOKED_AT_ONCE = 2_000_000, 1 << 18


#: Arrays of a table, by number; what new entries hold, and how many of them each transfer has, or each part.
Growing: TypeAlias = tuple[tuple[Sequence[int], float, int], ...]


class UsedRoutes:
    """The routes that a schedule uses, numbered, and the links on them, numbered among themselves.

    Attributes
    ----------
    links : ndarray of int64, shape (n_used,)
        The number in the network of each link.
    latency_s, back_s, rate_Bps : ndarray of float64, shape (n_routes,)
        The latency of each route, less than nothing where sizes have others, that of the way back where there is a
        window, and the least bandwidth on it.
    """

    def __init__(self, schedule_: Schedule, network: Network) -> None:
        self.n_members = schedule_.n_members
        src, dst = schedule_.pairs
        self.pairs = src * self.n_members + dst
        joined, firsts = network.joined_routes(src, dst)
        self.lengths = np.diff(firsts)
        self.most_hops = int(self.lengths.max(initial=1))
        self.links, self.on_routes = np.unique(joined, return_inverse=True)
        self.src, self.firsts = src, firsts
        self.bandwidth_Bps = bandwidth_Bps = network.bandwidth_Bps[self.links]
        asked = {link: one for link, one in network.behaviours.items() if type(one) is not Constant}
        #: Whether each link has more than one bandwidth and latency.
        self.are_asked = np.isin(self.links, [*asked])
        latency_s = network.latency_s.copy()
        latency_s[[*asked]] = np.nan
        self.latency_s = np.nan_to_num(_added(latency_s, joined, firsts), nan=-1.0)
        self.back_s = np.zeros(len(src))
        if network.window is not None:
            latency_s[[*asked]] = [one.offer(0, 0.0).latency_s for one in asked.values()]
            self.back_s = _added(latency_s, *network.joined_routes(dst, src))
        self.rate_Bps: FloatArray = np.zeros(0)
        if len(src):
            self.rate_Bps = np.minimum.reduceat(bandwidth_Bps[self.on_routes], firsts[:-1])

    def by_sender(self, places: IntArray | slice) -> tuple[IntArray, IntArray]:
        """Return who sends over which link: the link of each such account, and the accounts at places of routes."""
        senders = np.repeat(self.src, self.lengths)[places]
        used, accounts = np.unique(self.on_routes[places] * self.n_members + senders, return_inverse=True)
        return used // self.n_members, accounts.astype(np.int64)

    def of(self, step: Step) -> IntArray:
        """Return the number of the route of each row of a step."""
        found: IntArray = np.searchsorted(self.pairs, step.src * self.n_members + step.dst)
        return found

    def pieces(self, network: Network) -> tuple[list[FloatArray], IntArray]:
        """Return what links do with transfers up to a size, link by link: sizes, rates, latencies; and each's first."""
        rate_Bps, latency_s = network.bandwidth_Bps[self.links], network.latency_s[self.links]
        if not network.behaviours:
            return [np.full(len(self.links), ANY_SIZE), rate_Bps, latency_s], np.arange(len(self.links) + 1)
        found = [
            one.pieces if isinstance(one := network.behaviour(link), BySize) else [Piece(ANY_SIZE, *one.offer(0, 0.0))]
            for link in self.links.tolist()
        ]
        columns = np.array([astuple(piece) for pieces in found for piece in pieces]).reshape(-1, 3).T
        return [np.ascontiguousarray(column) for column in columns], np.cumsum([0, *map(len, found)])


def _added(each_s: FloatArray, joined: IntArray, firsts: IntArray) -> FloatArray:
    """Add up what links of routes have, from the left, as the events do."""
    lengths = np.diff(firsts)
    total_s = np.zeros(len(lengths))
    for hop in range(lengths.max(initial=0)):
        within = np.flatnonzero(lengths > hop)
        total_s[within] += each_s[joined[firsts[within] + hop]]
    return total_s


class Cut(NamedTuple):
    """How transfers go: in slots of a window, and these in packets; sizes beyond every transfer where in none.

    ``least_headers`` are those of a part without bytes.
    """

    slot_bytes: int
    packet_bytes: int
    header_bytes: int
    parts_of_slot: int
    least_headers: int

    @classmethod
    def of(cls, network: Network) -> Cut:
        """Return how a network cuts transfers: flows go in slots alone, and are charged for headers."""
        window, packets = network.window, network.packets
        slot_bytes = EVERYTHING if window is None or window.bytes is None else window.slot_bytes
        packet_bytes, header_bytes = (EVERYTHING, 0) if packets is None else (packets.bytes, packets.header_bytes)
        if network.sharing == "fair":
            return cls(slot_bytes, packet_bytes, header_bytes, 1, 0)
        return cls(slot_bytes, packet_bytes, header_bytes, -(-slot_bytes // packet_bytes), 1)

    @property
    def cuts(self) -> bool:
        """Whether a transfer may have several parts."""
        return self.slot_bytes < EVERYTHING or self.parts_of_slot > 1

    def n_parts(self, n_bytes: IntArray) -> IntArray:
        """Return how many parts transfers of some bytes have."""
        if not self.cuts:
            return np.ones_like(n_bytes)
        n_before = (n_bytes - 1).clip(0) // self.slot_bytes
        of_rest = 1 if self.parts_of_slot == 1 else -(-(n_bytes - n_before * self.slot_bytes) // self.packet_bytes)
        n_parts: IntArray = n_before * self.parts_of_slot + np.maximum(of_rest, 1)
        return n_parts

    def part_bytes(self, n_bytes: IntArray, n_parts: IntArray) -> IntArray:
        """Return the bytes of each part of such transfers, one after another, with headers."""
        bare = n_bytes
        if self.cuts:
            number = np.arange(n_parts.sum()) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
            slot, packet = np.divmod(number, self.parts_of_slot)
            bare = np.minimum(np.repeat(n_bytes, n_parts) - slot * self.slot_bytes, self.slot_bytes)
            if self.parts_of_slot > 1:
                bare = np.minimum(bare - packet * self.packet_bytes, self.packet_bytes)
        headers: IntArray = (-(-bare // self.packet_bytes)).clip(self.least_headers)
        return bare + self.header_bytes * headers


class StepColumns(NamedTuple):
    """What is alike for steps with the same columns: routes, actors, and the order of sends and of what is owed."""

    route: IntArray
    src: IntArray
    dst: IntArray
    sends: IntArray
    owed: IntArray
    n_sends: IntArray
    n_owed: IntArray


class ChunkUses:
    """Finds which posts and applies by other channels of a worker come before each: `ChunkOrder` of the events.

    A use has the number ``2 * transfer``, of all transfers, and one more if it is an apply.
    """

    def __init__(self, n_chunks: int) -> None:
        self.n_chunks = n_chunks
        #: Of each cell (a chunk of a worker) the last apply and the posts since: cells, uses, and actors.
        self._open = np.zeros((3, 0), dtype=np.int64)

    def before(self, made: list[tuple[Step, StepColumns]], first: int, first_held: int) -> tuple[IntArray, IntArray]:
        """Take in steps, of which ``first`` is the first transfer; return of each use how many come before, and which.

        Uses of transfers before ``first_held`` are over.
        """
        new = np.concatenate([np.zeros((3, 0), dtype=np.int64), *self._uses(made, first)], axis=1)
        held = self._open[:, self._open[1] >= 2 * first_held]
        cell, use, actor = np.concatenate([held, new], axis=1)
        order = np.argsort(cell, kind="stable")
        is_new = order >= held.shape[1]
        cell, use, actor = cell[order], use[order], actor[order]
        place, is_apply = np.arange(len(cell)), use % 2 == 1
        is_first = np.diff(cell, prepend=-1) != 0
        begin = np.maximum.accumulate(np.where(is_first, place, 0))
        applied = np.maximum.accumulate(np.where(is_apply, place, -1))
        before = np.where(is_first, -1, np.roll(applied, 1))
        # A post comes after the last apply to its chunk, an apply after that and all that was sent of it since.
        has_applied = before >= begin
        from_place = np.where(has_applied, before, np.where(is_apply, begin, place))
        n_before = np.where(is_new, np.where(is_apply, place - from_place, has_applied), 0)
        which = np.repeat(from_place - np.cumsum(n_before) + n_before, n_before) + np.arange(n_before.sum())
        whose = np.repeat(place, n_before)
        others = actor[which] != actor[whose]
        whose, which = use[whose[others]], use[which[others]]
        n_uses = 2 * sum(len(step) for step, _ in made)
        is_last = np.append(is_first[1:], True)
        of_cell = np.repeat(np.maximum(applied, begin)[is_last], np.diff(np.flatnonzero(np.append(is_first, True))))
        self._open = np.stack([cell, use, actor])[:, place >= of_cell]
        return np.bincount(whose - 2 * first, minlength=n_uses), which[np.argsort(whose, kind="stable")]

    def _uses(self, made: list[tuple[Step, StepColumns]], first: int) -> Iterator[IntArray]:
        """Yield the uses of each step, in order: all is sent before anything is applied, and that by source."""
        for step, columns in made:
            counts = np.ones_like(step.chunk) if step.count is None else step.count
            applies = columns.owed[np.argsort(step.src[columns.owed], kind="stable")]
            sends = columns.sends, step.src, columns.src, 0
            for rows, member, actor, kind in (sends, (applies, step.dst, columns.dst, 1)):
                row = np.repeat(rows, counts[rows])
                within = np.arange(len(row)) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
                cell = member[row] * self.n_chunks + step.chunk[row] + within
                yield np.stack([cell, 2 * (first + row) + kind, actor[row]])
            first += len(step)


class KnownUses:
    """What `ChunkUses` finds, of all steps of a schedule; also uses that are over, which nobody waits for."""

    def __init__(self, n_chunks: int, made: Iterable[tuple[Step, StepColumns]]) -> None:
        uses, first, n_before, earlier = ChunkUses(n_chunks), 0, list[IntArray](), list[IntArray]()
        for some in _together(made, LOOKED_AT_ONCE):
            for found, more in zip((n_before, earlier), uses.before(some, first, 0), strict=True):
                found.append(more)
            first += sum(len(step) for step, _ in some)
        self._earlier = np.concatenate(earlier)
        self._first = np.concatenate(([0], np.cumsum(np.concatenate(n_before))))

    def before(self, made: list[tuple[Step, StepColumns]], first: int, first_held: int) -> tuple[IntArray, IntArray]:
        """Return what `ChunkUses.before` does."""
        del first_held
        firsts = self._first[2 * first : 2 * (first + sum(len(step) for step, _ in made)) + 1]
        return np.diff(firsts), self._earlier[firsts[0] : firsts[-1]]


def _together(made: Iterable[tuple[Step, StepColumns]], n_least: int) -> Iterator[list[tuple[Step, StepColumns]]]:
    """Yield steps in lists of so many transfers at the least, the last of what is left."""
    some: list[tuple[Step, StepColumns]] = []
    n_transfers = 0
    for step, columns in made:
        some.append((step, columns))
        n_transfers += len(step)
        if n_transfers >= n_least:
            yield some
            some, n_transfers = [], 0
    if some:
        yield some


class MadeSteps:
    """The steps of a schedule, and what is alike in all its runs on a network, whatever the bytes of chunks.

    One run makes steps as it comes to them; for several they are kept, unless the schedule is large.
    """

    def __init__(self, schedule_: Schedule, network: Network, *, for_many: bool = False) -> None:
        self.schedule, self.routes = schedule_, UsedRoutes(schedule_, network)
        self.n_actors = schedule_.n_workers * schedule_.n_channels
        self._last: tuple[tuple[IntArray, ...], StepColumns] | None = None
        self._kept: list[tuple[Step, StepColumns]] | None = None
        self._uses: KnownUses | None = None
        if for_many and schedule_.n_transfers <= MOST_SHARED:
            self._kept = [*self]
            if schedule_.channels_share_chunks:
                self._uses = KnownUses(schedule_.n_chunks, self._kept)

    def __iter__(self) -> Iterator[tuple[Step, StepColumns]]:
        if self._kept is not None:
            return iter(self._kept)
        return ((step, self._columns(step)) for step in self.schedule.steps())

    def uses(self) -> ChunkUses | KnownUses | None:
        """Return what finds the uses of a chunk that come before others, for one run; None where nobody waits so."""
        if not self.schedule.channels_share_chunks:
            return None
        return self._uses or ChunkUses(self.schedule.n_chunks)

    def _columns(self, step: Step) -> StepColumns:
        """Return what is alike for steps with the same columns; remembered, as those of a ring share theirs."""
        given = (step.src, step.dst, step.channel, step.receiving_channel)
        if self._last is None or any(a is not b for a, b in zip(given, self._last[0], strict=True)):
            src = step.src * self.schedule.n_channels + step.channel
            dst = step.dst * self.schedule.n_channels + step.receiving_channel
            made = StepColumns(
                self.routes.of(step),
                src,
                dst,
                np.argsort(src, kind="stable"),
                np.lexsort((step.src, dst)),
                np.bincount(src, minlength=self.n_actors),
                np.bincount(dst, minlength=self.n_actors),
            )
            self._last = given, made
        return self._last[1]


class LoadedSteps:
    """The steps of a schedule that some actor has not left yet, as the loop has them."""

    def __init__(self, made: MadeSteps, network: Network, chunk_bytes: IntArray) -> None:
        self.routes, self.n_actors, self.chunk_bytes = made.routes, made.n_actors, chunk_bytes
        self.coming, self.uses, self.cut = iter(made), made.uses(), Cut.of(network)
        is_fifo, has_window = network.sharing != "fair", network.window is not None
        n_uses, n_crossings = 2 * (self.uses is not None), (self.cut.cuts and is_fifo) * self.routes.most_hops
        #: What new entries of arrays hold, and how many of them each transfer has, or each part.
        self._reals = (
            (at.REAL_OF_TRANSFER, np.inf, 1),
            (at.LOSSES_OF_TRANSFER, 0.0, 1),
            ((at.TRANSFER_PATH,), 0.0, at.N_ON_PATH),
            ((at.CREDIT_PATH,), 0.0, has_window * at.N_ON_PATH),
            ((at.USED_AT,), np.inf, n_uses),
            (at.REAL_OF_CROSSING, 0.0, n_crossings),
        )
        self._wholes = (
            (at.WHOLE_OF_TRANSFER, 0, 1),
            (at.NOBODY_OF_TRANSFER, at.NOBODY, 1),
            ((at.FIRST_USER,), at.NOBODY, n_uses),
            ((at.PARTS_QUEUED,), 0, n_crossings),
        )
        self._reals_of_part = ((at.REAL_OF_PART, 0.0, 1),)
        self._wholes_of_part = ((at.WHOLE_OF_PART, 0, 1), (at.NOBODY_OF_PART, at.NOBODY, 1))

    def load(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Drop the steps that all actors have left, and load more."""
        count = whole[at.COUNT]
        self._drop(real, whole)
        made: list[tuple[Step, StepColumns]] = []
        sizes, n_parts, held, parts_held = [], 0, len(whole[at.BYTES]), len(whole[at.PART_BYTES])
        for step, columns in self.coming:
            made.append((step, columns))
            sizes.append(step.sizes(self.chunk_bytes))
            n_parts += int(self.cut.n_parts(sizes[-1]).sum()) if self.cut.cuts else len(step)
            if n_parts >= max(TRANSFERS_AT_ONCE, parts_held):
                break
        n_bytes = np.concatenate(sizes)
        parts_of = self.cut.n_parts(n_bytes)
        n_made = sum(len(step) for step, _ in made)
        for table, arrays, n in (
            (real, self._reals, n_made), (whole, self._wholes, n_made),
            (real, self._reals_of_part, n_parts), (whole, self._wholes_of_part, n_parts),
        ):  # fmt: skip
            _lengthen(table, arrays, n)
        for name, first, parts in (
            (at.BYTES, held, [n_bytes]),
            (at.SRC, held, [columns.src for _, columns in made]),
            (at.ROUTE, held, [columns.route for _, columns in made]),
            (at.REDUCES, held, [np.full(len(step), step.op == "reduce") for step, _ in made]),
            (at.PART_BYTES, parts_held, [self.cut.part_bytes(n_bytes, parts_of)]),
            (at.TRANSFER, parts_held, [np.repeat(np.arange(held, held + n_made), parts_of)]),
        ):
            whole[name][first:] = np.concatenate(parts)
        _add_lengths(whole, at.FIRST_PART, parts_of)
        firsts = held + np.cumsum([0, *(len(step) for step, _ in made)])[:-1]
        lists = ((at.FIRST_SEND, at.SENDS, "sends", "n_sends"), (at.FIRST_OWED, at.OWED, "owed", "n_owed"))
        for first, listed, rows, numbers in lists:
            order = [getattr(columns, rows) + begin for (_, columns), begin in zip(made, firsts, strict=True)]
            whole[listed] = np.concatenate([whole[listed], *order])
            _add_lengths(whole, first, np.concatenate([getattr(columns, numbers) for _, columns in made]))
        if self.uses is not None:
            n_gone = int(count[at.FIRST_TRANSFER])
            n_before, earlier = self.uses.before(made, n_gone + held, n_gone)
            whole[at.EARLIER] = np.concatenate([whole[at.EARLIER], earlier])
            _add_lengths(whole, at.FIRST_EARLIER, n_before)
        # Events at once: of each transfer one, of each slot that a window lets go, of what others wait for, of credit.
        each = 1 if not count[at.HAS_WINDOW] and self.uses is None else 2 + int(parts_of.max(initial=1))
        most = each * max(int((columns.n_sends + columns.n_owed).max()) for _, columns in made)
        count[at.MOST_OF_STEP] = max(int(count[at.MOST_OF_STEP]), most)
        count[at.LOADED_STEPS] += len(made)

    def _drop(self, real: list[FloatArray], whole: list[IntArray]) -> None:
        """Drop what all have left, and number the transfers that stay from 0 again, wherever they are named."""
        count = whole[at.COUNT]
        left = int(whole[at.STEP].min()) - int(count[at.FIRST_STEP])
        what, of_steps = whole[at.EVENT_WHAT][: count[at.N_EVENTS]], whole[at.FIRST_SEND][:: self.n_actors]
        if len(credits := what[what % KINDS == CREDIT]):  # for what has been applied already
            first_back = whole[at.TRANSFER][credits.min() // KINDS]
            left = min(left, int(np.searchsorted(of_steps, first_back, side="right")) - 1)
        n_gone = int(of_steps[left])
        n_parts_gone, n_uses_gone = int(whole[at.FIRST_PART][n_gone]), 0
        for table, arrays, n in (
            (real, self._reals, n_gone), (whole, self._wholes, n_gone),
            (real, self._reals_of_part, n_parts_gone), (whole, self._wholes_of_part, n_parts_gone),
        ):  # fmt: skip
            _shorten(table, arrays, n)
        whole[at.FIRST_PART] = whole[at.FIRST_PART][n_gone:] - n_parts_gone
        for first, listed in ((at.FIRST_SEND, at.SENDS), (at.FIRST_OWED, at.OWED)):
            whole[first] = whole[first][left * self.n_actors :] - n_gone
            whole[listed] = whole[listed][n_gone:] - n_gone
        if self.uses is not None:
            n_uses_gone = int(whole[at.FIRST_EARLIER][2 * n_gone])
            whole[at.FIRST_EARLIER] = whole[at.FIRST_EARLIER][2 * n_gone :] - n_uses_gone
            whole[at.EARLIER] = whole[at.EARLIER][n_uses_gone:]
        # Where actors are in those lists, in the middle of a step; who is to begin one sets it anew.
        whole[at.PLACE] -= n_gone
        whole[at.USES_PLACE] -= n_uses_gone
        whole[at.TRANSFER] -= n_gone
        whole[at.PART_OF] -= n_parts_gone
        whole[at.SERVES_PART_OF] -= n_gone * self.routes.most_hops  # nobody stays less than zero
        for chain, n in ((at.CHAIN_OF_QUEUE, n_parts_gone), (at.CHAIN_OF_HELD, n_gone)):
            for name in chain:
                whole[name][whole[name] != at.NOBODY] -= n
        kind = whole[at.EVENT_WHAT] % KINDS
        whole[at.EVENT_WHAT][kind == ARRIVAL] -= KINDS * n_gone
        whole[at.EVENT_WHAT][(kind == HEAD_COMES) | (kind == CREDIT)] -= KINDS * n_parts_gone
        count[at.FIRST_TRANSFER] += n_gone
        count[at.FIRST_STEP] += left


def _lengthen(table: list[Any], arrays: Growing, n: int) -> None:
    """Add the entries of ``n`` more transfers, or parts, to some arrays."""
    for names, value, each in arrays:
        for name in names:
            had, n_had = table[name], len(table[name])
            table[name] = np.empty(n_had + n * each, dtype=had.dtype)
            table[name][:n_had], table[name][n_had:] = had, value


def _shorten(table: list[Any], arrays: Growing, n: int) -> None:
    """Take away those of the first ``n``."""
    for names, _, each in arrays:
        for name in names:
            table[name] = table[name][n * each :]


def _add_lengths(whole: list[IntArray], first: int, lengths: IntArray) -> None:
    """Say where more lists begin, and the last one ends, among those of all."""
    whole[first] = np.concatenate([whole[first], whole[first][-1] + np.cumsum(lengths)])


def first_arrays(
    schedule_: Schedule, network: Network, workers: Workers, routes: UsedRoutes, rows: TransferRows | None
) -> tuple[list[FloatArray], list[IntArray]]:
    """Return the arrays of a run that has not begun, without steps."""
    n_workers, n_channels = schedule_.n_workers, schedule_.n_channels
    n_actors, n_links = n_workers * n_channels, len(routes.links)
    n_flows, most_hops = FLOWS_OF_ACTOR * n_actors, routes.most_hops
    real = [np.zeros(0) for _ in range(at.N_REAL)]
    whole = [np.zeros(0, dtype=np.int64) for _ in range(at.N_WHOLE)]
    sizes = (
        (at.REAL_OF_WORKER, at.WHOLE_OF_WORKER, n_workers),
        (at.REAL_OF_FLOW, at.WHOLE_OF_FLOW, n_flows),
        (at.REAL_OF_LINK, at.WHOLE_OF_LINK, n_links),
        ((), at.WHOLE_OF_ACTOR, n_actors),
        ((at.WORKER_PATH, at.PROCESSOR_PATH), (), n_workers * at.N_ON_PATH),
        ((at.ACTOR_PATH,), (), n_actors * at.N_ON_PATH),
        ((at.EVENT_TIME,), (at.EVENT_KEY, at.EVENT_WHAT), n_actors),
        ((), at.LISTS_OF_LINKS, n_links),
        ((), at.NODES, n_flows * most_hops),
        ((at.RISES_TO,), (at.RISING_KEY, at.RISING_WHAT), n_flows + n_links),
        ((), (at.FIRST_SEND, at.FIRST_OWED, at.FIRST_PART, at.FIRST_EARLIER), 1),
        (at.REAL_OF_ROUTE, at.WHOLE_OF_ROUTE, len(routes.lengths)),
        ((at.SINCE,), (), n_actors),
    )
    _size(real, whole, sizes)
    for names, size in (
        (at.NOBODY_OF_LINK, n_links), (at.NOBODY_OF_ROUTE, len(routes.lengths)), ((at.NEXT_WAITER,), n_actors),
    ):  # fmt: skip
        for name in names:
            whole[name] = np.full(size, at.NOBODY)
    real[at.CLOCK] = np.array([0.0, np.inf])
    real[at.ROUTE_LATENCY], real[at.ROUTE_RATE], real[at.BACK_LATENCY] = (
        routes.latency_s,
        routes.rate_Bps,
        routes.back_s,
    )
    real[at.CAPACITY] = routes.bandwidth_Bps
    (real[at.PIECE_UP_TO], real[at.PIECE_RATE], real[at.PIECE_LATENCY]), whole[at.FIRST_PIECE] = routes.pieces(network)
    whole[at.FIRST_LINK] = np.concatenate(([0], np.cumsum(routes.lengths)))
    whole[at.LINKS], whole[at.FREE_FLOWS] = routes.on_routes.astype(np.int64), np.arange(n_flows)
    whole[at.ASLEEP][:] = 1
    count = whole[at.COUNT] = np.zeros(len(at.COUNTS), dtype=np.int64)
    count[[at.N_WORKERS, at.N_CHANNELS, at.N_STEPS]] = n_workers, n_channels, schedule_.n_steps
    count[[at.MOST_HOPS, at.N_FREE]] = most_hops, n_flows
    count[at.IS_FAIR], count[at.IS_CUT_THROUGH] = (
        network.sharing == "fair",
        network.switching == "cut-through",
    )
    if not count[at.IS_FAIR]:
        accounts, whole[at.ACCOUNTS] = routes.by_sender(slice(None))
        real[at.ACCOUNT_WORKED] = np.zeros(len(accounts))
    count[at.IS_RENDEZVOUS] = workers.sends == "rendezvous"
    count[at.READY] = at.NOBODY
    cut = Cut.of(network)
    count[[at.SLOT_BYTES, at.PARTS_OF_SLOT, at.SERVES_PARTS]] = cut.slot_bytes, cut.parts_of_slot, cut.cuts
    count[at.SHARES_CHUNKS] = schedule_.channels_share_chunks
    if (window := network.window) is not None:
        count[at.HAS_WINDOW] = True
        count[[at.WINDOW_BYTES, at.WINDOW_TRANSFERS]] = window.bytes or 0, window.transfers or 0
    if rows is not None:
        real[at.TIMES_ROWS] = rows.times.reshape(-1)
        count[[at.KEEPS_TIMES, at.KEEPS_SERVICES]] = True
        count[at.KEEPS_RATES] = rows.whole and network.sharing == "fair"
    _set_workers(workers, real, whole)
    return real, whole


def lone_arrays(routes: UsedRoutes, whole: list[IntArray]) -> tuple[list[FloatArray], list[IntArray]]:
    """Return the arrays in which each sender's flows are alone; without links unless that is looked at."""
    lone_real = [np.zeros(0) for _ in range(at.N_REAL)]
    lone_whole = [np.zeros(0, dtype=np.int64) for _ in range(at.N_WHOLE)]
    count = lone_whole[at.COUNT] = np.zeros(len(at.COUNTS), dtype=np.int64)
    if whole[at.COUNT][at.KEEPS_OWN]:
        places = where_own_meet(routes.src, routes.on_routes, routes.firsts, routes.bandwidth_Bps)
        link, lone_whole[at.LINKS] = routes.by_sender(places)
        lone_whole[at.FIRST_LINK] = np.searchsorted(places, whole[at.FIRST_LINK])
        count[at.MOST_HOPS] = np.diff(lone_whole[at.FIRST_LINK]).max(initial=1)
        n_links = len(link)
        _size(lone_real, lone_whole, [(at.REAL_OF_LINK, at.WHOLE_OF_LINK, n_links), ((), at.LISTS_OF_LINKS, n_links)])
        lone_real[at.CAPACITY] = routes.bandwidth_Bps[link]
        for name in at.NOBODY_OF_LINK:
            lone_whole[name] = np.full(n_links, at.NOBODY)
    return lone_real, lone_whole


def _size(
    real: list[FloatArray], whole: list[IntArray], sizes: Iterable[tuple[Iterable[int], Iterable[int], int]]
) -> None:
    """Make arrays of zeros."""
    for reals, wholes, size in sizes:
        for name in reals:
            real[name] = np.zeros(size, dtype=np.float64)
        for name in wholes:
            whole[name] = np.zeros(size, dtype=np.int64)


def _set_workers(workers: Workers, real: list[FloatArray], whole: list[IntArray]) -> None:
    """Let every actor begin when its worker has launched."""
    count = whole[at.COUNT]
    real[at.LAST][:] = workers.launched_s
    real[at.OVERHEAD_SPENT][:] = workers.launch_s
    real[at.SEND_COST][:], real[at.RECV_COST][:] = workers.send_overhead_s, workers.recv_overhead_s
    real[at.REDUCE_RATE][:] = workers.reduce_Bps
    waited_s = workers.start_s - workers.start_s.min()
    for part, seconds in ((at.ON_WAITING, waited_s), (at.ON_OVERHEAD, workers.launch_s)):
        real[at.WORKER_PATH][part :: at.N_ON_PATH] = seconds
        real[at.ACTOR_PATH][part :: at.N_ON_PATH] = np.repeat(seconds, int(count[at.N_CHANNELS]))
    whole[at.PHASE][:] = ENTERS
    for actor, launched_s in enumerate(np.repeat(workers.launched_s, int(count[at.N_CHANNELS])).tolist()):
        schedule(real, whole, launched_s, NORMAL, KINDS * actor + ACTOR)
