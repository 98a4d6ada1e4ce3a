"""What a run leaves behind: flat columns, written while it ran, no metric computed; and what both engines take."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.collectives import Schedule, Step
from ringnet.engines.luck import MEANINGS, Luck
from ringnet.engines.pace import ProcessorPace
from ringnet.engines.tolerances import ROUNDING
from ringnet.errors import Fault, NetworkError
from ringnet.networks import Network, Whiles
from ringnet.networks.behaviour import NEVER
from ringnet.payload import PackedPayload, Payload

#: Rows by column name; every array has one entry per row.
Columns: TypeAlias = dict[str, Array]
Sends: TypeAlias = Literal["eager", "rendezvous"]
#: Told once, before the first transfer, how many there are in all, and whom to ask how many have been applied: a
#: function that any thread may call.
Watch: TypeAlias = "Callable[[int, Callable[[], int]], None]"

#: What the time on a path is made of, in the order of the columns ``path_<part>_s`` of `Trace.workers`.
PATH_PARTS = ("latency", "bandwidth", "queueing", "waiting", "overhead", "reducing")
#: The column of `Trace.workers` that says what of queueing was behind transfers of the same sender.
OWN_QUEUEING = "own_queueing_s"


def path_columns(parts: Mapping[str, FloatArray], elapsed_s: FloatArray) -> Columns:
    """Return what each worker's path is made of as columns; bytes going through links are what the others leave.

    So both engines come to the same bytes, in whatever order they add up.

    Parameters
    ----------
    parts : mapping of str to ndarray of float64, shape (n_workers,)
        Seconds by part, of those that can be more than zero.
    elapsed_s : ndarray of float64, shape (n_workers,)
        What each path took.

    Examples
    --------
    >>> found = path_columns({"latency": np.array([1.0])}, np.array([3.0]))
    >>> found["path_bandwidth_s"].tolist(), found["path_queueing_s"].tolist()
    ([2.0], [0.0])
    """
    nothing = np.zeros(len(elapsed_s))
    found = {part: nothing if part == "bandwidth" else parts.get(part, nothing) for part in PATH_PARTS}
    found["bandwidth"] = np.maximum(elapsed_s - sum(found.values()), 0.0)
    columns: Columns = {f"path_{part}_s": seconds for part, seconds in found.items()}
    return columns | {OWN_QUEUEING: parts.get(OWN_QUEUEING, nothing)}


#: Transfer rows that are kept unless more are asked for.
KEEP_TRANSFERS = 200_000
#: Transfers up to which their times are kept for a path, where rows are asked for at all; and services of links.
MOST_TIMES, MOST_SERVICES = 2_000_000, 8_000_000
#: Bytes of the times of a transfer, and of a service, when a path is walked over them.
TIMES_BYTES, SERVICE_BYTES = 80, 56


@dataclass(frozen=True)
class Workers:
    """How each worker behaves. All arrays have shape (n_workers,).

    Parameters
    ----------
    start_s : ndarray
        When the worker comes to the collective; ``inf`` for one that never does.
    send_overhead_s, recv_overhead_s : ndarray
        Time of the worker's processor for each transfer sent, and for each received.
    reduce_Bps : ndarray
        Bytes reduced per second; ``inf`` where reducing is free.
    launch_s : ndarray
        What a collective takes at the worker once, from its start until its first step, whatever its size.
    sends : {"eager", "rendezvous"}
        Whether a sender goes on at once, or transfers start when both sides are in the step and end it for both.
    luck : Luck or None
        What they do by chance; the columns hold the means of what is drawn.
    paces : mapping of int to ProcessorPace
        How fast the processors of the few workers are, over time, that pause, become slower or die.
    whiles : mapping of int to tuple of Whiles
        The same of those for whom each run draws it anew, before a run is chosen.
    patience_s : float
        How long a worker waits for one transfer until the collective is aborted.
    """

    start_s: FloatArray
    send_overhead_s: FloatArray
    recv_overhead_s: FloatArray
    reduce_Bps: FloatArray
    launch_s: FloatArray
    sends: Sends = "eager"
    luck: Luck | None = None
    paces: Mapping[int, ProcessorPace] = field(default_factory=dict)
    whiles: Mapping[int, tuple[Whiles, ...]] = field(default_factory=dict)
    patience_s: float = float("inf")

    @classmethod
    def alike(
        cls,
        n_workers: int,
        *,
        start_s: float = 0.0,
        send_overhead_s: float = 0.0,
        recv_overhead_s: float = 0.0,
        reduce_Bps: float = np.inf,
        launch_s: float = 0.0,
        sends: Sends = "eager",
    ) -> Workers:
        """Return ``n_workers`` workers that behave alike; by default all start at 0 and cost nothing."""
        values = (start_s, send_overhead_s, recv_overhead_s, reduce_Bps, launch_s)
        start, send, recv, reduce, launch = (np.full(n_workers, value) for value in values)
        return cls(start, send, recv, reduce, launch, sends)

    @property
    def launched_s(self) -> FloatArray:
        """When each enters its first step: shape (n_workers,)."""
        found = self.start_s + self.launch_s
        for worker, pace in self.paces.items():
            if found[worker] != NEVER:
                found[worker] = pace.end_s(float(self.start_s[worker]), float(self.launch_s[worker]))
        return found

    def with_switches(self, schedule: Schedule, network: Network) -> Workers:
        """Return the same with an entry for each switch of a schedule after those of the workers.

        A switch is there from the first start on, takes in and sends on without overhead or launch, and adds at its own
        rate.

        Raises
        ------
        NetworkError
            The network has no such switches.
        """
        if not schedule.n_switches:
            return self
        names = network.switches.names if network.reduce_Bps else ()
        if len(names) < schedule.n_switches:
            message = f"{schedule.algorithm} takes switches that reduce, {schedule.n_switches} of them"
            reason = network.switches.why_not if network.reduce_Bps and not names else ""
            raise NetworkError(Fault(f"{message}, and the {network.topology} has {len(names)}", value=reason))
        nothing = np.zeros(schedule.n_switches)
        rates = np.array([network.reduce_Bps[name] for name in names[: schedule.n_switches]])
        return replace(
            self,
            start_s=np.concatenate([self.start_s, nothing + self.start_s.min()]),
            send_overhead_s=np.concatenate([self.send_overhead_s, nothing]),
            recv_overhead_s=np.concatenate([self.recv_overhead_s, nothing]),
            reduce_Bps=np.concatenate([self.reduce_Bps, rates]),
            launch_s=np.concatenate([self.launch_s, nothing]),
        )

    def in_run(self, run: int) -> Workers:
        """Return them as they are in a run: what is drawn once is a number, what each transfer draws is that run's."""
        paces = dict(self.paces)
        for worker, whiles in self.whiles.items():
            if spans := [span for one in whiles for span in one.spans(run)]:
                paces[worker] = ProcessorPace.of(spans)
        if self.luck is None:
            return replace(self, paces=paces, whiles={}) if self.whiles else self
        once, left = self.luck.in_run(run)
        columns = {column: getattr(self, column).copy() for column in MEANINGS}
        for (worker, column), value in once.items():
            columns[column][worker] = value
        return replace(self, **columns, luck=left, paces=paces, whiles={})

    @property
    def trouble(self) -> str | None:
        """In words, what goes wrong with them; None where that is nothing."""
        if self.whiles:
            return f"when worker {min(self.whiles)} is in trouble is drawn anew for each run"
        if self.paces:
            return f"worker {min(self.paces)} does not work as fast all the time"
        return "a wait that is too long aborts the collective" if self.patience_s != float("inf") else None

    @property
    def chance(self) -> str | None:
        """In words, what they do by chance; None where that is nothing."""
        return None if self.luck is None else self.luck.meaning

    @property
    def beyond(self) -> str | None:
        """In words, what they do beyond costs that stay as they are; None where that is nothing."""
        return self.chance or self.trouble


class Led(NamedTuple):
    """What a path goes over, of a run that kept no rows, the last first; lists of one length.

    Parameters
    ----------
    what : list of str
        ``start`` of a worker; ``post`` and ``apply``, what its processor does for a transfer; ``bandwidth`` and
        ``latency`` of a link; ``queue``, where what comes next waited for what the link served before.
    step, row : list of int
        Of the whole schedule, and in the step: which transfer.
    at : list of int
        The link, or the actor (``worker * n_channels + channel``).
    waited_s : list of float
        How long it waited there; NaN where that is not known.
    """

    what: list[str]
    step: list[int]
    row: list[int]
    at: list[int]
    waited_s: list[float]


@dataclass(frozen=True)
class Trace:
    """Flat rows of one run; all times in seconds from the start of the run.

    Parameters
    ----------
    engine : str
        Which engine wrote it.
    transfers : dict of str to ndarray, or None
        One row per transfer, by (step of the whole schedule, channel, src, dst): ``phase, step, channel, op, src, dst,
        chunk, bytes, posted_s, started_s, sent_s, arrived_s, applied_s``. ``sent_s`` is when the tail leaves the first
        link. Switches that send or receive are numbered after the workers. None when there were more than were to be
        kept.
    times : dict of str to ndarray or None
        The times among these columns, which are kept of more transfers: of up to `MOST_TIMES`.
    links : dict of str to ndarray
        One row per link: ``bytes, transfers, busy_s, occupied_s, longest_queue, queued_s``. ``busy_s`` is bytes served
        over bandwidth, ``occupied_s`` also counts being held by a slower link upstream, ``queued_s`` is the time that
        all transfers together waited for it; under fair sharing, what they took longer, because it kept them from
        having more, than alone on their routes.
    workers : dict of str to ndarray
        One row per worker: ``start_s, end_s, sent_bytes, received_bytes, overhead_s, reducing_s``, and
        ``path_<part>_s`` for each of `PATH_PARTS`: what the path that ended last at this worker is made of, from the
        start of the first worker. The parts add up to ``end_s`` less that start. Of ``path_queueing_s``
        ``own_queueing_s`` was behind transfers of the same sender: while a transfer waited for a link, what the
        link served of them; under fair sharing, what a flow would have taken longer than alone had only its sender's
        flows been there, begun when they were.
    n_transfers : int
        All transfers, kept or not.
    counts : dict of str to int
        Work done by the engine, by name (``events``): for tests and benchmarks; it does not jitter.
    waits : dict of str to ndarray or None
        One row per wait: ``link, owner, from_s, to_s``; ``owner`` is the number of a job, or of other traffic, counted
        on after the jobs. Under fair sharing whatever comes first to a link does not wait, the others do until it has
        gone. None where they were too many to be kept.
    services : dict of str to ndarray or None
        One row per service of a transfer on a link, those of each link in order: ``transfer, owner, link, hop, bytes,
        head_s, start_s, end_s, others_s``. ``transfer`` is its row in ``transfers`` of the job ``owner`` (of other
        traffic: which burst), ``hop`` counts the links of its route from 0; its head comes to the link at ``head_s``.
        What comes in parts has a row for each part; ``bytes`` has the headers of packets, too. Under fair sharing one
        row per flow, which goes on to the network at ``head_s`` and moves once the latency of the route is over:
        ``link`` is the one that kept it from having more in the end, ``others_s`` what it lost to flows of other
        senders, which under fifo sharing the rows of these say, and ``hop`` is `FLOW`. None where times are not
        kept, or where there are more than `MOST_SERVICES`.
    rates : RateRows or None
        Under fair sharing, of each flow, whoever's, the spans of time in which it moved at an even rate. None under
        fifo sharing, whose services say it, and where these are not kept.
    recall : callable or None
        Where rows are not kept and the engine can: returns what the path that ended last goes over, back from the end.
    until_s : float or None
        When the last link had something to do, whoever used it; None where there is one job and nothing else.
    job : int
        The number of the job whose trace it is: of waits and services, which are all links', those are its own.
    values : list of ndarray or None
        What the receiver held after each transfer, in the order of ``transfers``; for small runs that ask for it.
    """

    engine: str
    transfers: Columns | None
    links: Columns
    workers: Columns
    n_transfers: int
    counts: dict[str, int] = field(default_factory=dict)
    times: Columns | None = None
    values: list[Array] | None = None
    until_s: float | None = None
    waits: Columns | None = None
    services: Columns | None = None
    rates: RateRows | None = None
    recall: Callable[[], Led] | None = None
    job: int = 0


TIMES = ("posted_s", "started_s", "sent_s", "arrived_s", "applied_s")


def schedule_columns(schedule: Schedule, chunk_bytes: IntArray) -> Columns:
    """Return what is known of every transfer before the run, one row each in the order of the schedule."""
    steps = list(schedule.steps())
    lengths = [len(step) for step in steps]
    columns: Columns = {
        "phase": np.repeat(np.array([step.phase for step in steps], dtype=object), lengths),
        "step": np.repeat(np.array([step.step for step in steps], dtype=np.int64), lengths),
        "channel": _joined(steps, "channel"),
        "op": np.repeat(np.array([step.op for step in steps], dtype=object), lengths),
        **{name: _joined(steps, name) for name in ("src", "dst", "chunk")},
    }
    sizes = [step.sizes(chunk_bytes) for step in steps]
    return columns | {"bytes": np.concatenate(sizes) if sizes else np.zeros(0, dtype=np.int64)}


def _joined(steps: list[Step], name: str) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(step, name) for step in steps)])


def keeps_times(n_transfers: int, keep_transfers: int | None) -> bool:
    """Whether the times of so many transfers are kept, with all their columns or for a path alone."""
    return n_transfers <= (max(keep_transfers, MOST_TIMES) if keep_transfers else 0)


class TransferRows:
    """Times of the transfers, in the order of the schedule; if asked for, what the receiver held after each.

    Parameters
    ----------
    n_transfers : int
    payload : Payload, PackedPayload or None
        Where to look what the receiver holds; None to keep no values.
    whole : bool
        Whether all columns of `Trace.transfers` are wanted.
    """

    def __init__(self, n_transfers: int, payload: Payload | PackedPayload | None, whole: bool) -> None:
        self.whole = whole
        self.times = np.full((n_transfers, len(TIMES)), np.nan)
        self.payload = payload
        self._values: dict[int, Array] = {}

    @classmethod
    def kept(
        cls, n_transfers: int, keep_transfers: int | None, payload: Payload | PackedPayload | None
    ) -> TransferRows | None:
        """Return where to write down what is kept of so many transfers; None where nothing is."""
        whole = n_transfers <= (keep_transfers or 0)
        if not keeps_times(n_transfers, keep_transfers):
            return None
        return cls(n_transfers, payload if whole else None, whole)

    def add(self, index: int, times_s: tuple[float, ...], dst: int, chunks: range) -> None:
        """Write down a transfer that has just been applied: its `TIMES`, and where to look for what is held now."""
        self.times[index] = times_s
        if self.payload is not None:
            self._keep(index, dst, chunks)

    def keep_values(self, step: Step) -> None:
        """Keep what the receivers of a whole step hold, if values are asked for; steps come in order."""
        if self.payload is not None:
            counts = np.ones_like(step.chunk) if step.count is None else step.count
            columns = (step.dst.tolist(), step.chunk.tolist(), counts.tolist())
            for dst, chunk, count in zip(*columns, strict=True):
                self._keep(len(self._values), dst, range(chunk, chunk + count))

    def _keep(self, index: int, worker: int, chunks: range) -> None:
        held = [] if self.payload is None else [self.payload.held(worker, chunk) for chunk in chunks]
        if held:
            self._values[index] = np.concatenate([part for part in held if part is not None])

    def columns(self, schedule: Schedule, chunk_bytes: IntArray) -> tuple[Columns, Columns | None]:
        """Return the times by column, and these with all that is known beforehand where that is wanted."""
        times = {name: self.times[:, place].copy() for place, name in enumerate(TIMES)}
        return times, schedule_columns(schedule, chunk_bytes) | times if self.whole else None

    def values(self) -> list[Array] | None:
        """Return what the receiver held after each transfer."""
        return None if self.payload is None else [self._values[index] for index in range(len(self.times))]


#: Rows that are kept; where more come nothing is said of who waited when.
MOST_ROWS = 1_000_000


class LinkWaits:
    """Waits for links, one row each.

    Parameters
    ----------
    most : int
        Rows that are kept; none of them if more come.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most = most
        self.links, self.owners = array("q"), array("q")
        self.from_s, self.to_s = array("d"), array("d")

    def add(self, link: int, owner: int, from_s: float, to_s: float) -> None:
        """Add a wait; ``owner`` is the number of a job, or of other traffic after all jobs."""
        if to_s > from_s and len(self.links) <= self.most:
            self.links.append(link)
            self.owners.append(owner)
            self.from_s.append(from_s)
            self.to_s.append(to_s)

    def add_all(self, links: Iterable[int], owner: int, from_s: float, to_s: float) -> None:
        """Add the same wait for several links."""
        for link in links:
            self.add(link, owner, from_s, to_s)

    def add_rows(self, links: IntArray, from_s: FloatArray, to_s: FloatArray) -> None:
        """Add waits of the first job, one per entry: all arrays have shape (n_waits,)."""
        if len(self.links) <= self.most:
            self.links.frombytes(links.astype(np.int64).tobytes())
            self.owners.frombytes(np.zeros(len(links), dtype=np.int64).tobytes())
            self.from_s.frombytes(from_s.tobytes())
            self.to_s.frombytes(to_s.tobytes())

    def columns(self) -> Columns | None:
        """Return ``link, owner, from_s, to_s``; None if there were too many rows."""
        if len(self.links) > self.most:
            return None
        return {
            "link": np.frombuffer(self.links, dtype=np.int64),
            "owner": np.frombuffer(self.owners, dtype=np.int64),
            "from_s": np.frombuffer(self.from_s),
            "to_s": np.frombuffer(self.to_s),
        }


#: Stands for the hop of what is on all links of its route at once.
FLOW = -1
#: Columns of `Trace.services`, as small as they can be: there may be millions of rows.
SERVICES: dict[str, type[np.number[Any]]] = {
    **dict.fromkeys(("transfer", "owner", "link"), np.int32),
    "hop": np.int16,
    "bytes": np.int64,
    **dict.fromkeys(("head_s", "start_s", "end_s", "others_s"), np.float64),
}
#: Rows that are held before they are made columns of; and those that come at once and are made columns of at once.
ROWS_AT_ONCE, MANY_ROWS = 1 << 14, 1 << 10


class ServiceRows:
    """Services of transfers on links, as `Trace.services` has them, in the order in which they are added."""

    def __init__(self) -> None:
        # Whole numbers are exact in it up to 2^53.
        self._cells = array("d")
        #: By column, a block after the other; one of a single value holds it once.
        self._blocks: dict[str, list[Array]] = {name: [] for name in SERVICES}
        self._lengths, self._n_rows = list[int](), 0

    def add(self, row: Iterable[float]) -> None:
        """Add one row."""
        self._cells.extend(row)
        if len(self._cells) >= ROWS_AT_ONCE * len(SERVICES):
            self._put_by()

    def add_rows(
        self,
        transfers: IntArray,
        links: IntArray,
        hop: Array | int,
        n_bytes: IntArray | FloatArray | int,
        *times_s: FloatArray | float,
    ) -> None:
        """Add the services of some transfers of the first job, one on each link; all arrays have shape (n_rows,)."""
        columns = transfers, 0, links, hop, n_bytes, *times_s
        if len(links) >= MANY_ROWS:
            self._put_by()
            self._put(len(links), columns)
            return
        rows = np.empty((len(links), len(SERVICES)))
        for place, column in enumerate(columns):
            rows[:, place] = column
        self._cells.frombytes(rows.tobytes())
        if len(self._cells) >= ROWS_AT_ONCE * len(SERVICES):
            self._put_by()

    def _put_by(self) -> None:
        """Make columns of rows that were added one by one."""
        rows, self._cells = np.array(self._cells).reshape(-1, len(SERVICES)), array("d")
        if len(rows):
            self._put(len(rows), rows.T)

    def _put(self, n_rows: int, columns: Iterable[Array | float]) -> None:
        """Put columns by, unless there is too much already."""
        self._n_rows += n_rows
        if self._n_rows > MOST_SERVICES:
            self._blocks = {name: [] for name in SERVICES}
            return
        self._lengths.append(n_rows)
        for (name, kind), given in zip(SERVICES.items(), columns, strict=True):
            column = np.atleast_1d(given)
            same = column[0] == column[-1] and (column == column[0]).all()
            self._blocks[name].append((column[:1] if same else column).astype(kind))

    @cached_property
    def columns(self) -> Columns | None:
        """The rows by column, when all have been added; None where there are more than `MOST_SERVICES`."""
        self._put_by()
        if self._n_rows > MOST_SERVICES:
            return None
        return {name: self._column(self._blocks.pop(name), kind) for name, kind in SERVICES.items()}

    def _column(self, blocks: list[Array], kind: type[np.number[Any]]) -> Array:
        """Return blocks as one column, which takes no memory where it is of a single value."""
        if len({block[0] for block in blocks}) == 1 and all(len(block) == 1 for block in blocks):
            return np.broadcast_to(blocks[0], self._n_rows)
        pairs = zip(blocks, self._lengths, strict=True)
        return np.concatenate([np.zeros(0, kind), *(np.broadcast_to(*pair) for pair in pairs)])


#: Spans of time that are put on their links at once.
SPANS_AT_ONCE = 1 << 14


class RateRows:
    """Spans of time in which something moved over its route at an even rate.

    Parameters
    ----------
    most : int
        Spans that are kept; none of them if more come.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most = most
        self._routes: dict[tuple[int, ...], int] = {}
        self._cells = array("d")

    def add(self, route: tuple[int, ...], from_s: float, to_s: float, n_bytes: float) -> None:
        """Add a span in which some bytes moved over the links of a route."""
        if len(self._cells) <= self.most * 4:
            self._cells.extend((self.number(route), from_s, to_s, n_bytes))

    def number(self, route: tuple[int, ...]) -> int:
        """Return the number of a route, for `add_rows`."""
        return self._routes.setdefault(route, len(self._routes))

    def add_rows(self, rows: FloatArray) -> None:
        """Add spans, shape (n_spans, 4): the number of the route, from when, to when, the bytes."""
        if len(self._cells) <= self.most * 4:
            self._cells.frombytes(rows.tobytes())

    @property
    def kept(self) -> RateRows | None:
        """Itself; None if there were too many spans."""
        return self if len(self._cells) <= self.most * 4 else None

    def on_links(self) -> Iterator[Columns]:
        """Yield ``link, from_s, to_s, bytes``, a row for each link of a span, in the order of the spans, in blocks."""
        links = np.array([link for route in self._routes for link in route], dtype=np.int64)
        lengths = np.array([len(route) for route in self._routes], dtype=np.int64)
        first_link = np.cumsum(lengths) - lengths
        spans = np.frombuffer(self._cells).reshape(-1, 4)
        for first in range(0, len(spans), SPANS_AT_ONCE):
            numbers, from_s, to_s, n_bytes = spans[first : first + SPANS_AT_ONCE].T
            of_spans = numbers.astype(np.int64)
            n_each = lengths[of_spans]
            rows = np.repeat(np.arange(len(of_spans)), n_each)
            # The links of a route stand together, and so do the rows of a span.
            place = np.arange(len(rows)) + (first_link[of_spans] - np.cumsum(n_each) + n_each)[rows]
            yield {"link": links[place], "from_s": from_s[rows], "to_s": to_s[rows], "bytes": n_bytes[rows]}


def beyond_the_first(flows: Columns) -> Columns:
    """Return, of flows that share links, the time in which each is not the first one on its link.

    Parameters
    ----------
    flows : dict of str to ndarray
        As `LinkWaits.columns` has them: from when to when each flow was on each link, by end.

    Examples
    --------
    Of three flows the second waits until the first has ended, and the third until both have:

    >>> flows = {"link": [4, 4, 4], "owner": [0, 0, 0], "from_s": [0.0, 1.0, 1.5], "to_s": [2.0, 5.0, 4.0]}
    >>> waits = beyond_the_first({name: np.array(column) for name, column in flows.items()})
    >>> waits["from_s"].tolist(), waits["to_s"].tolist()
    ([1.0, 1.5], [2.0, 4.0])
    """
    order = np.lexsort((flows["from_s"], flows["link"]))
    columns = {name: column[order] for name, column in flows.items()}
    firsts = np.flatnonzero(np.diff(columns["link"], prepend=-1))
    to_s = columns["to_s"].copy()
    for first, end in pairwise([*firsts.tolist(), len(to_s)]):
        # When all that came before it have ended.
        free_s = np.maximum.accumulate(columns["to_s"][first:end])
        to_s[first] = columns["from_s"][first]
        to_s[first + 1 : end] = np.minimum(to_s[first + 1 : end], free_s[:-1])
    waits = to_s - columns["from_s"] > ROUNDING * to_s
    return {name: column[waits] for name, column in (columns | {"to_s": to_s}).items()}
