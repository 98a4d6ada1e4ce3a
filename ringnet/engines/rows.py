"""Rows of the transfers: written in the order in which they are applied, sorted into that of the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringnet.collectives import Schedule, Step
from ringnet.engines.trace import Columns

if TYPE_CHECKING:
    from ringnet.engines.transfer import Transfer
    from ringnet.payload import PackedPayload, Payload

TIMES = ("posted_s", "started_s", "sent_s", "arrived_s", "applied_s")


def schedule_columns(schedule: Schedule, chunk_bytes: NDArray[np.int64]) -> Columns:
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


def _joined(steps: list[Step], name: str) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(step, name) for step in steps)])


class Rows:
    """Times of the transfers, in the order of the schedule; if asked for, what the receiver held after each.

    Parameters
    ----------
    n_transfers : int
    payload : Payload, PackedPayload or None
        Where to look what the receiver holds; None to keep no values.
    """

    def __init__(self, n_transfers: int, payload: Payload | PackedPayload | None) -> None:
        self.times = np.full((n_transfers, len(TIMES)), np.nan)
        self.payload = payload
        self._values: dict[int, NDArray[Any]] = {}

    def add(self, transfer: Transfer, applied_s: float) -> None:
        """Write down a transfer that has just been applied."""
        times = (transfer.posted_s, transfer.started_s, transfer.sent_s, transfer.arrived_s, applied_s)
        self.times[transfer.index] = times
        if self.payload is not None:
            self._keep(transfer.index, transfer.dst, transfer.chunks)

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

    def columns(self) -> Columns:
        """Return the times by column."""
        return {name: self.times[:, place].copy() for place, name in enumerate(TIMES)}

    def values(self) -> list[NDArray[Any]] | None:
        """Return what the receiver held after each transfer."""
        return None if self.payload is None else [self._values[index] for index in range(len(self.times))]
