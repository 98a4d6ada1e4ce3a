"""A run as a trace for ui.perfetto.dev: workers, links and queues as tracks, transfers as slices joined by arrows.

Perfetto counts whole nanoseconds; what a slice is about stands beside it as it is in the tables, in seconds and bytes.
Slices that overlap lie on tracks of one name, which Perfetto shows as one: those of one track must lie in each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    DebugAnnotation,
    InternedData,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from ringnet.array_types import FloatArray, IntArray
from ringnet.errors import Fault, ResultsError

if TYPE_CHECKING:
    import pandas as pd

    from ringnet.reporting.results import Results

#: Slices that are put together at once.
BATCH = 20_000
#: All packets are of one sequence, whose names are known from its first packet on.
SEQUENCE = 1
#: Columns of a transfer that stand beside its slice.
ABOUT_TRANSFER = (
    "step", "channel", "src", "dst", "chunk", "bytes", "posted_s", "started_s", "sent_s", "arrived_s", "applied_s",
)  # fmt: skip

#: Rows of bytes, each as long as the others.
Bytes: TypeAlias = NDArray[np.uint8]


class Slices(NamedTuple):
    """Slices of one kind.

    Parameters
    ----------
    owners : sequence of int
        Track under which each lies.
    begin_s, end_s : ndarray of float64
    names : sequence of str
    about : mapping of str to sequence
        What stands beside each: by name a column of whole numbers, of floats, or of texts (empty for None).
    flows : ndarray of int64, optional
        Number of the arrow that starts at each, or ends there where they are ``targets``.
    targets : bool
    """

    owners: Sequence[int]
    begin_s: FloatArray
    end_s: FloatArray
    names: Sequence[str]
    about: Mapping[str, Sequence[Any]]
    flows: IntArray | None = None
    targets: bool = False


class TraceWriter:
    """Writes packets to a file; numbers tracks, names and texts.

    Tracks and names are messages of the package. Events are many, and written as rows of bytes that are all of one
    length: their numbers have leading zeros, as Perfetto's own writer gives them to lengths that it does not know yet.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.n_tracks = file, 0
        self.names: dict[str, int] = {}
        self.about: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        cleared = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        self.write(TracePacket(sequence_flags=cleared, first_packet_on_sequence=True))

    def write(self, packet: TracePacket) -> None:
        """Write a packet of the one sequence that there is."""
        packet.trusted_packet_sequence_id = SEQUENCE
        self.file.write(Trace(packet=[packet]).SerializeToString())

    def track(self, name: str, parent: int = 0, rank: int = 0, unit: str = "") -> int:
        """Return a new track below another, in its place by rank; one of numbers where there is a unit."""
        self.n_tracks += 1
        track = TrackDescriptor(uuid=self.n_tracks, name=name, sibling_order_rank=rank)
        track.child_ordering = TrackDescriptor.EXPLICIT
        if parent:
            track.parent_uuid = parent
        if unit:
            track.counter.unit_name = unit
        self.write(TracePacket(track_descriptor=track))
        return self.n_tracks

    def numbers(self, known: dict[str, int], names: Sequence[str]) -> IntArray:
        """Return the number of each name; those that have none yet get one, and are written."""
        new = [name for name in dict.fromkeys(names) if name not in known]
        if new:
            data = InternedData()
            made = {
                id(self.names): data.event_names,
                id(self.about): data.debug_annotation_names,
                id(self.texts): data.debug_annotation_string_values,
            }[id(known)]
            for name in new:
                known[name] = len(known) + 1
                content = {"str": name.encode()} if known is self.texts else {"name": name}
                made.add(iid=known[name], **content)
            self.write(TracePacket(interned_data=data))
        return np.array([known[name] for name in names], dtype=np.int64)

    def slices(self, given: Slices, name: str, rank: int = 0) -> None:
        """Write slices: under each owner as many tracks of a name as lie beside each other."""
        begin, end = _nanoseconds(given.begin_s), _nanoseconds(given.end_s)
        placed = _lanes(given.owners, begin.tolist(), end.tolist())
        lanes = [(given.owners[at], lane) for at, lane in placed]
        tracks = {each: self.track(name, each[0], rank) for each in dict.fromkeys(lanes)}
        order, on = (
            np.array([at for at, _ in placed], dtype=np.int64),
            np.array([tracks[one] for one in lanes]),
        )
        names = self.numbers(self.names, given.names)
        beside = [self._beside(key, column) for key, column in given.about.items()]
        arrow = _EVENT["terminating_flow_ids" if given.targets else "flow_ids"]
        for first in range(0, len(order), BATCH):
            at, track = (
                order[first : first + BATCH],
                _varints(_EVENT["track_uuid"], on[first : first + BATCH]),
            )
            start = [_varints(_EVENT["type"], np.full(len(at), TrackEvent.TYPE_SLICE_BEGIN)), track]
            start += [_varints(_EVENT["name_iid"], names[at]), *(make(at) for make in beside)]
            start += [] if given.flows is None else [_fixed(arrow, given.flows[at])]
            stop = [_varints(_EVENT["type"], np.full(len(at), TrackEvent.TYPE_SLICE_END)), track]
            rows = np.hstack([_packets(begin[at], start), _packets(end[at], stop)])
            self.file.write(rows.tobytes())

    def _beside(self, key: str, column: Sequence[Any]) -> Callable[[IntArray], Bytes]:
        """Return what makes, of some rows of a column, what stands beside slices."""
        name = self.numbers(self.about, [key])
        values = np.array(column) if column and isinstance(column[0], int | float) else None
        if values is None:  # texts, by their numbers
            texts = ["" if one is None else str(one) for one in column]
            values, field = self.numbers(self.texts, texts), _NOTE["string_value_iid"]
        else:
            field = _NOTE["double_value" if values.dtype.kind == "f" else "int_value"]
        write = _fixed if values.dtype.kind == "f" else _varints

        def made(at: IntArray) -> Bytes:
            both = [_varints(_NOTE["name_iid"], np.repeat(name, len(at))), write(field, values[at])]
            return _inside(_EVENT["debug_annotations"], both)

        return made

    def counter(self, track: int, times_s: FloatArray, values: FloatArray) -> None:
        """Write what a track of numbers counts, from each time on."""
        kind, of = (np.full(len(values), one) for one in (TrackEvent.TYPE_COUNTER, track))
        event = [_varints(_EVENT["type"], kind), _varints(_EVENT["track_uuid"], of)]
        event.append(_fixed(_EVENT["double_counter_value"], values))
        self.file.write(_packets(_nanoseconds(times_s), event).tobytes())


# Rows of bytes. A message is fields that follow each other, each with its number and how long it is to be read on.

#: Numbers of the fields of an event, and of what stands beside it.
_EVENT, _NOTE = (
    {name: field.number for name, field in kind.DESCRIPTOR.fields_by_name.items()}
    for kind in (TrackEvent, DebugAnnotation)
)
_TIME, _OF_PACKET = TracePacket.TIMESTAMP_FIELD_NUMBER, TracePacket.TRACK_EVENT_FIELD_NUMBER
#: What every packet of an event says beside its time.
_ALIKE = TracePacket(
    trusted_packet_sequence_id=SEQUENCE, sequence_flags=TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
).SerializeToString()
#: How a field is to be read: a number of seven bits a byte, eight bytes, or a message of some length.
_VARINT, _EIGHT_BYTES, _MESSAGE = 0, 1, 2


def _sevens(numbers: IntArray) -> Bytes:
    """Return whole numbers as seven bits a byte, the lowest first, all as long as the largest.

    >>> _sevens(np.array([300, 1])).tolist()
    [[172, 2], [129, 0]]
    """
    length = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    bits = numbers[:, None] >> (7 * np.arange(length)) & 0x7F
    bits[:, :-1] |= 0x80
    return bits.astype(np.uint8)


def _head(field: int, kind: int, n_rows: int) -> Bytes:
    return np.repeat(_sevens(np.array([field << 3 | kind])), n_rows, axis=0)


def _varints(field: int, numbers: IntArray) -> Bytes:
    """Return a field with a whole number in each row."""
    return np.hstack([_head(field, _VARINT, len(numbers)), _sevens(numbers)])


def _fixed(field: int, numbers: IntArray | FloatArray) -> Bytes:
    """Return a field with a number of eight bytes in each row."""
    content = np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"))).view(np.uint8)
    return np.hstack([_head(field, _EIGHT_BYTES, len(numbers)), content.reshape(-1, 8)])


def _inside(field: int, parts: Sequence[Bytes]) -> Bytes:
    """Return a field with a message in each row."""
    content = np.hstack(parts)
    n_rows, length = content.shape
    return np.hstack([_head(field, _MESSAGE, n_rows), np.repeat(_sevens(np.array([length])), n_rows, axis=0), content])


def _packets(nanoseconds: IntArray, event: Sequence[Bytes]) -> Bytes:
    """Return a packet with an event in each row, as a field of the trace."""
    alike = np.repeat(np.frombuffer(_ALIKE, dtype=np.uint8)[None, :], len(nanoseconds), axis=0)
    packet = [_varints(_TIME, nanoseconds), alike, _inside(_OF_PACKET, event)]
    return _inside(Trace.PACKET_FIELD_NUMBER, packet)


def _nanoseconds(seconds: FloatArray) -> IntArray:
    return np.rint(seconds * 1e9).astype(np.int64)


def _lanes(owners: Sequence[int], begin: Sequence[int], end: Sequence[int]) -> list[tuple[int, int]]:
    """Return each slice, by owner and time, with a lane of its owner that is free then.

    >>> _lanes([1, 1, 1, 2], [0, 1, 4, 0], [4, 2, 5, 9])
    [(0, 0), (1, 1), (2, 0), (3, 0)]
    """
    found = []
    busy: list[tuple[int, int]] = []  # until when, which lane
    free: list[int] = []
    last, n_lanes = None, 0
    for at in np.lexsort((end, begin, owners)).tolist():
        if owners[at] != last:
            last, n_lanes, busy, free = owners[at], 0, [], []
        while busy and busy[0][0] <= begin[at]:
            heappush(free, heappop(busy)[1])
        if not free:
            free, n_lanes = [n_lanes], n_lanes + 1
        lane = heappop(free)
        heappush(busy, (end[at], lane))
        found.append((at, lane))
    return found


def write_trace(results: Results, file: IO[bytes]) -> None:
    """Write the trace of a single run.

    Parameters
    ----------
    results : Results
        With a row for each transfer.
    file : binary file
        Gets Perfetto's protocol buffers.

    Raises
    ------
    ResultsError
        A sweep, a run whose transfers are not kept, or one that takes no time.
    """
    transfers = results.transfers
    if transfers is None or len(results.summary) != 1:
        message = "a trace has a slice for each transfer, and there are no rows of them"
        right = "a single run, with report.transfers: all"
        raise ResultsError(Fault(message, "transfers", right=right))
    writer = TraceWriter(file)
    row = results.summary.iloc[0]
    run = writer.track(results.name)
    end_s = np.array([max(float(transfers["applied_s"].max()) if len(transfers) else 0.0, _last_s(results))])
    answers = {
        key: [value] for key in ("makespan_s", "message_bytes", "n_workers") if (value := row[key].item()) is not None
    }
    writer.slices(Slices([run], np.zeros(1), end_s, [results.name], answers), "run")
    _path(writer, results, writer.track("path", run, 1))
    _workers(writer, results, transfers, writer.track("workers", run, 2))
    _links(writer, results, transfers, writer.track("links", run, 3))
    _queues(writer, results, writer.track("queues", run, 4))


def _last_s(results: Results) -> float:
    return 0.0 if results.workers is None else float(results.workers["end_s"].max())


def _path(writer: TraceWriter, results: Results, owner: int) -> None:
    """Write the path that ended last, piece by piece."""
    if results.path is None:
        return
    path = results.path
    said = ("link", "worker", "src", "dst", "phase", "step", "chunk")
    about = {name: path[name].astype("string").fillna("").tolist() for name in said}
    seconds = (path["to_s"] - path["from_s"]).tolist()
    begin, end = path["from_s"].to_numpy(), path["to_s"].to_numpy()
    pieces = Slices([owner] * len(path), begin, end, path["part"].tolist(), {**about, "seconds": seconds})
    writer.slices(pieces, "the path that ended last")


def _workers(writer: TraceWriter, results: Results, transfers: pd.DataFrame, parent: int) -> None:
    """Write for each worker what waits to be sent, what it sends, and what it has received until that is applied."""
    n_members = 1 + int(transfers[["src", "dst"]].to_numpy().max(initial=-1))
    n_workers = int(results.summary["n_workers"].iloc[0])
    members = [
        writer.track(f"worker {one}" if one < n_workers else f"switch {one - n_workers}", parent, one)
        for one in range(max(n_workers, n_members))
    ]
    about = {name: transfers[name].tolist() for name in ("phase", *ABOUT_TRANSFER)}
    chunks = [f"chunk {chunk}" for chunk in about["chunk"]]
    senders, receivers = ([members[one] for one in about[end]] for end in ("src", "dst"))
    times = {name: transfers[name].to_numpy(np.float64) for name in ABOUT_TRANSFER[-5:]}
    arrows = np.arange(1, len(transfers) + 1)
    sent = Slices(senders, times["started_s"], times["sent_s"], chunks, about, arrows)
    writer.slices(sent, "sends", 1)
    done = [f"{op} {chunk}" for op, chunk in zip(transfers["op"], chunks, strict=True)]
    few = {"bytes": about["bytes"]}
    received = Slices(receivers, times["arrived_s"], times["applied_s"], done, few, arrows, targets=True)
    writer.slices(received, "receives", 2)
    waits = np.flatnonzero(np.rint((times["started_s"] - times["posted_s"]) * 1e9) > 0).tolist()
    waiting = Slices(
        [senders[at] for at in waits],
        times["posted_s"][waits],
        times["started_s"][waits],
        [f"{chunks[at]} waits" for at in waits],
        {"bytes": [about["bytes"][at] for at in waits]},
    )
    writer.slices(waiting, "waits to send", 0)


def _links(writer: TraceWriter, results: Results, transfers: pd.DataFrame, parent: int) -> None:
    """Write for each link in use how busy it is, and what its sender puts on it where it is the first of a route."""
    if results.links is None:
        return
    used = results.links[results.links["bytes"] > 0]
    tracks = {name: writer.track(name, parent, rank) for rank, name in enumerate(used["link"])}
    if results.utilisation is not None:
        for name, bins in results.utilisation.groupby("link", sort=False):
            if name in tracks:
                times_s = np.append(bins["from_s"].to_numpy(), bins["to_s"].to_numpy()[-1:])
                shares = np.append(bins["utilisation"].to_numpy(), 0.0)
                writer.counter(writer.track("utilisation", tracks[str(name)], 0, "%"), times_s, 100 * shares)
    first = _first_links(results)
    on = [tracks.get(first.get(pair, "")) for pair in zip(transfers["src"], transfers["dst"], strict=True)]
    rows = [at for at, track in enumerate(on) if track is not None]
    shown = transfers.iloc[rows]
    begin, end = (shown[name].to_numpy(np.float64) for name in ("started_s", "sent_s"))
    owners = [track for track in on if track is not None]
    chunks = [f"chunk {chunk}" for chunk in shown["chunk"]]
    writer.slices(Slices(owners, begin, end, chunks, {"bytes": shown["bytes"].tolist()}), "transfers", 1)


def _first_links(results: Results) -> dict[tuple[int, int], str]:
    """Return for each pair of workers the first link of its route."""
    routes = results.routes
    if routes is None:
        return {}
    own = routes[routes["job"] == results.name]
    return {
        (src, dst): links.partition(" ")[0]
        for src, dst, links in zip(own["src"], own["dst"], own["links"], strict=True)
    }


def _queues(writer: TraceWriter, results: Results, parent: int) -> None:
    """Write how many transfers wait for each link with much queueing."""
    if results.queues is None:
        return
    for rank, (name, rows) in enumerate(results.queues.groupby("link", sort=False)):
        track = writer.track(str(name), parent, rank, "transfers")
        writer.counter(track, rows["time_s"].to_numpy(np.float64), rows["waiting"].to_numpy(np.float64))
