"""The compiled engine: SimPy's events as one loop over arrays, compiled, for links that several senders share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringnet.array_types import IntArray
from ringnet.collectives import Schedule
from ringnet.engines import columns as at
from ringnet.engines.compiled.arrays import LoadedSteps, MadeSteps, first_arrays, lone_arrays
from ringnet.engines.compiled.exactness import why_not_compiled
from ringnet.engines.compiled.loop import ENDED, WANTS_ROOM, WANTS_STEPS
from ringnet.engines.compiled.rows import WrittenRows, grow, grow_alone
from ringnet.engines.machine_code import CompiledLoop, addresses, compiled
from ringnet.engines.moving import stepper
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.engines.trace import (
    KEEP_TRANSFERS,
    OWN_QUEUEING,
    PATH_PARTS,
    Columns,
    Trace,
    TransferRows,
    Watch,
    Workers,
    path_columns,
)
from ringnet.errors import DeadlockError, InputError
from ringnet.networks import Network
from ringnet.payload import PackedPayload, Payload

LOOP = CompiledLoop(
    "ringnet.engines",
    ("columns", "tolerances", "max_min", *(f"compiled.{x}" for x in ("links", "fair", "routes", "actors", "loop"))),
    "advance",
)


def run_compiled(  # noqa: PLR0913 -- what all engines are asked, and what runs share
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: IntArray,
    payload: Payload | PackedPayload | None = None,
    *,
    keep_transfers: int | None = KEEP_TRANSFERS,
    keep_values: bool = False,
    watch: Watch | None = None,
    shared: list[MadeSteps] | None = None,
) -> Trace:
    """Run a schedule on a network, one event after another, in machine code.

    Parameters and returns are those of `ringnet.engines.events.run_events`; the payload may be packed too, and moves
    once the times are known, step by step. ``shared`` holds what all runs of one schedule on one network have in
    common, whatever the size: the first of them puts it there.

    Raises
    ------
    DeadlockError
        If some workers wait for ever; who waits for whom it does not know.
    InputError
        If something goes on that the loop does not know; it names it.
    NetworkError
        If the schedule sends where the network has no route.
    """
    if reason := why_not_compiled(schedule, network, workers):
        raise InputError(f"the compiled loop does not know this: {reason}; engine: events does")
    network = replace(network, sharing=resolve_sharing(network, [Sending(0, schedule, network)]))
    rows = TransferRows.kept(schedule.n_transfers, keep_transfers, payload if keep_values else None)
    made = shared[0] if shared else MadeSteps(schedule, network, for_many=shared is not None)
    if shared is not None:
        shared[:] = [made]
    loop = Loop(made, network, workers, chunk_bytes, rows, times_alone=keep_transfers is None)
    if watch is not None:
        watch(schedule.n_transfers, loop.n_applied)
    loop.run()
    move_payload = stepper(payload, rows)
    for step in schedule.steps() if payload is not None else ():
        move_payload(step)
    times, transfers = (None, None) if rows is None else rows.columns(schedule, chunk_bytes)
    return Trace(
        engine="compiled",
        transfers=transfers,
        times=times,
        links=loop.link_columns(),
        waits=None if keep_transfers is None else loop.rows.who_waited(),
        services=None if rows is None else loop.rows.services.columns,
        rates=None if transfers is None else loop.rows.even_rates(),
        workers=loop.worker_columns(),
        n_transfers=schedule.n_transfers,
        counts=loop.counts(),
        values=None if rows is None else rows.values(),
    )


class Loop:
    """One run: its arrays, and what is done between two pieces of the loop."""

    def __init__(
        self,
        made: MadeSteps,
        network: Network,
        workers: Workers,
        chunk_bytes: IntArray,
        rows: TransferRows | None,
        *,
        times_alone: bool = False,
    ) -> None:
        self.network, self.workers, self.routes = network, workers, made.routes
        self.steps = LoadedSteps(made, network, chunk_bytes)
        self.real, self.whole = first_arrays(made.schedule, network, workers, self.routes, rows)
        self.rows = WrittenRows(self.routes, is_fair=network.sharing == "fair")
        self.whole[at.COUNT][at.KEEPS_OWN] = not times_alone and network.sharing == "fair"
        self.whole[at.COUNT][at.KEEPS_WAITS] = not times_alone
        self.lone_real, self.lone_whole = lone_arrays(self.routes, self.whole)
        self.grow()

    def grow(self) -> None:
        """Make room for what one event can bring, in all arrays that grow."""
        grow(self.real, self.whole)
        grow_alone(self.lone_real, self.lone_whole, len(self.whole[at.ROUTE_OF]))

    def n_applied(self) -> int:
        """Return how many transfers are done."""
        return int(self.whole[at.COUNT][at.N_APPLIED])

    def run(self) -> None:
        """Let happen all that happens."""
        advance = compiled(LOOP)
        while True:
            tables = self.real, self.whole, self.lone_real, self.lone_whole
            came = advance(*(addresses(table) for table in tables))
            if came == WANTS_STEPS:
                self.steps.load(self.real, self.whole)
            elif came == WANTS_ROOM:
                self.rows.take(self.real, self.whole)
                self.grow()
            elif came == ENDED:
                break
        self.rows.take(self.real, self.whole)
        if self.whole[at.COUNT][at.N_DONE] < self.steps.n_actors:
            raise DeadlockError

    def counts(self) -> dict[str, int]:
        """Return the work done."""
        names = {"events": at.N_PROCESSED, "settlements": at.N_SETTLEMENTS, "rates": at.N_FILLED}
        return {name: int(self.whole[at.COUNT][place]) for name, place in names.items()}

    def link_columns(self) -> Columns:
        """Return one row per link, as `Trace.links` has them: of zeros for those that nobody used."""
        real, whole = self.real, self.whole
        found: Columns = {
            "bytes": whole[at.LINK_BYTES],
            "transfers": whole[at.LINK_TRANSFERS],
            "busy_s": whole[at.LINK_BYTES] / real[at.CAPACITY],
            "occupied_s": real[at.OCCUPIED],
            "longest_queue": whole[at.LONGEST],
            "queued_s": real[at.QUEUED_FOR],
        }
        if not whole[at.COUNT][at.IS_FAIR]:
            found["busy_s"] = np.where(self.routes.are_asked, real[at.BUSY], found["busy_s"])
            found["occupied_s"] = found["busy_s"] + real[at.HELD]
        columns: Columns = {name: np.zeros(self.network.n_links, dtype=column.dtype) for name, column in found.items()}
        for name, column in found.items():
            columns[name][self.routes.links] = column
        return columns

    def worker_columns(self) -> Columns:
        """Return one row per worker, as `Trace.workers` has them."""
        real, whole, start_s = self.real, self.whole, self.workers.start_s
        paths = real[at.WORKER_PATH].reshape(-1, at.N_ON_PATH).T
        names = [part for part in (*PATH_PARTS, OWN_QUEUEING) if part != "bandwidth"]
        parts = dict(zip(names, paths, strict=True))
        return {
            "start_s": start_s.copy(),
            "end_s": real[at.LAST],
            "sent_bytes": whole[at.SENT_BYTES],
            "received_bytes": whole[at.RECEIVED_BYTES],
            "overhead_s": real[at.OVERHEAD_SPENT],
            "reducing_s": real[at.REDUCING_SPENT],
            **path_columns(parts, real[at.LAST] - start_s.min()),
        }
