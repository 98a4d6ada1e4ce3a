"""The reference engine: SimPy processes for workers and links, to the timing model of the design, transfer by transfer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule
from ringnet.engines.clock import Clock
from ringnet.engines.lanes import Costs, Lane, Options, Worker
from ringnet.engines.program import Program
from ringnet.engines.routes import make_wires
from ringnet.engines.rows import Rows, schedule_columns
from ringnet.engines.trace import KEEP_TRANSFERS, PATH_PARTS, Columns, Trace, Workers
from ringnet.errors import DeadlockError
from ringnet.networks import Network
from ringnet.payload import Payload


def run_events(
    schedule: Schedule,
    network: Network,
    workers: Workers,
    chunk_bytes: NDArray[np.int64],
    payload: Payload | None = None,
    *,
    keep_transfers: int = KEEP_TRANSFERS,
    keep_values: bool = False,
) -> Trace:
    """Run a schedule on a network.

    Parameters
    ----------
    schedule : Schedule
    network : Network
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
        Bytes that each chunk is charged for, whatever the payload carries of it.
    payload : Payload or None
        What the chunks hold; changed in place, from the workers' data to the result. None moves byte counts only.
    keep_transfers : int
        Keep the rows of the transfers if there are no more than this.
    keep_values : bool
        Also keep what the receiver held after each transfer.

    Returns
    -------
    Trace

    Raises
    ------
    DeadlockError
        If some workers wait for ever; it says who waits for whom.
    NetworkError
        If the schedule sends where the network has no route.
    """
    clock = Clock()
    wires = make_wires(clock, network)
    program = Program(schedule, chunk_bytes.tolist(), wires)
    keep = schedule.n_transfers <= keep_transfers
    rows = Rows(schedule.n_transfers, payload if keep_values else None) if keep else None
    options = Options(payload, workers.sends == "rendezvous", rows)
    people = _workers(workers, shared=schedule.n_channels > 1)
    lanes = [Lane(clock, worker, program, channel, options) for worker in people for channel in range(schedule.n_channels)]
    clock.drain()
    # Nothing is scheduled any more, also when some processes still wait.
    if stuck := [lane.stuck() for lane in lanes if not lane.done]:
        raise DeadlockError(*stuck)
    return Trace(
        engine="events",
        transfers=None if rows is None else schedule_columns(schedule, chunk_bytes) | rows.columns(),
        links=wires.columns(),
        workers=_worker_columns(people),
        n_transfers=schedule.n_transfers,
        counts={"events": clock.scheduled()},
        values=None if rows is None else rows.values(),
    )


def _workers(workers: Workers, *, shared: bool) -> list[Worker]:
    first_s = float(workers.start_s.min())
    costs = np.column_stack((workers.send_overhead_s, workers.recv_overhead_s, workers.reduce_Bps)).tolist()
    return [
        Worker(number, start_s, Costs(*cost), first_s, shared=shared)
        for number, (start_s, cost) in enumerate(zip(workers.start_s.tolist(), costs, strict=True))
    ]


def _column(rows: list[Any], name: str, dtype: type) -> NDArray[Any]:
    return np.array([getattr(row, name) for row in rows], dtype=dtype)


def _worker_columns(workers: list[Worker]) -> Columns:
    kinds = {"start_s": np.float64, "end_s": np.float64, "sent_bytes": np.int64, "received_bytes": np.int64}
    kinds |= dict.fromkeys(("waiting_s", "overhead_s", "reducing_s"), np.float64)
    paths = np.array([(*worker.path[:2], *worker.path[2]) for worker in workers], dtype=np.float64).reshape(len(workers), len(PATH_PARTS))
    columns = {name: _column(workers, name, kind) for name, kind in kinds.items()}
    return columns | {f"path_{part}_s": paths[:, place] for place, part in enumerate(PATH_PARTS)}
