"""What moves in a run whose times are known without it: the payload, one step of the schedule after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ringnet.collectives import Step
from ringnet.engines.trace import TransferRows
from ringnet.payload import PackedPayload, Payload


def stepper(payload: Payload | PackedPayload | None, rows: TransferRows | None) -> Callable[[Step], None]:
    """Return what moves the payload of one step, and keeps what the receivers then hold where ``rows`` asks for it."""
    if payload is None:
        return lambda _: None
    move = _move_packed if isinstance(payload, PackedPayload) else _move_chunks

    def step_on(step: Step) -> None:
        whole, step = step, step.by_chunk()
        # The receiver applies by source, whatever the order of the rows.
        order = np.argsort(step.src, kind="stable")
        move(payload, step, order)  # type: ignore[arg-type]  # chosen by the type of this very payload
        if rows is not None:
            rows.keep_values(whole)

    return step_on


def _move_packed(payload: PackedPayload, step: Step, order: np.ndarray) -> None:
    payload.step(step.op, step.src[order], step.dst[order], step.chunk[order])


def _move_chunks(payload: Payload, step: Step, order: np.ndarray) -> None:
    rows = list(zip(*(column[order].tolist() for column in (step.src, step.dst, step.chunk)), strict=True))
    # All are sent before any is applied: a step is simultaneous.
    sent = [payload.send(src, chunk) for src, _, chunk in rows]
    apply = payload.reduce if step.op == "reduce" else payload.copy
    for (_, dst, chunk), incoming in zip(rows, sent, strict=True):
        apply(dst, chunk, incoming)
