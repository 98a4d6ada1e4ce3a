"""Payloads that go wrong on purpose, so that verification is seen to work; and what makes a payload, right or wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.payload.buffers import NO_SWITCHES, PackedPayload, Payload, SwitchSums
from ringnet.payload.dtypes import bits_of
from ringnet.payload.reductions import Reduction
from ringnet.payload.sources import Source


@dataclass(frozen=True)
class Tamper:
    """One thing that goes wrong.

    Parameters
    ----------
    kind : {"drop", "double", "swap", "flip"}
        The first transfer of ``chunk`` that reaches ``worker`` (or a switch) is lost, applied twice, exchanged with
        what the worker holds of another chunk of the same size, or has one bit flipped.
    worker, chunk : int
    bit : int
        Which bit of the first element, from the lowest; negative from the highest.
    """

    kind: Literal["drop", "double", "swap", "flip"]
    worker: int
    chunk: int
    bit: int = 0

    def flipped(self, array: Array) -> Array:
        """Return a copy with the bit flipped."""
        copy = array.copy()
        bits = bits_of(copy)
        n_bits = 8 * bits.dtype.itemsize
        bits[..., :1] ^= bits.dtype.type(1 << self.bit % n_bits)
        return copy

    def other(self, sizes: IntArray) -> int:
        """Return another chunk of the same size; the same one if there is none."""
        alike = np.flatnonzero(sizes == sizes[self.chunk])
        return int(alike[(np.searchsorted(alike, self.chunk) + 1) % len(alike)])


class TamperedPayload(Payload):
    """A payload with one thing that goes wrong; takes what `Payload` takes, and a `Tamper`."""

    def __init__(self, tamper: Tamper, *args: Any, switches: SwitchSums = NO_SWITCHES) -> None:
        super().__init__(*args, switches=switches)
        self._tamper: Tamper | None = tamper

    def reduce(self, worker: int, chunk: int, incoming: Array) -> None:
        """See `Payload.reduce`."""
        self._apply(super().reduce, worker, chunk, incoming)

    def copy(self, worker: int, chunk: int, incoming: Array) -> None:
        """See `Payload.copy`."""
        self._apply(super().copy, worker, chunk, incoming)

    def _apply(self, apply: Any, worker: int, chunk: int, incoming: Array) -> None:
        tamper = self._tamper
        if tamper is None or (worker, chunk) != (tamper.worker, tamper.chunk):
            apply(worker, chunk, incoming)
            return
        self._tamper = None
        times = {"drop": 0, "double": 2}.get(tamper.kind, 1)
        for _ in range(times):
            apply(worker, chunk, tamper.flipped(incoming) if tamper.kind == "flip" else incoming)
        if tamper.kind == "swap":
            row, other = self._rows[worker], tamper.other(self.layout.sizes)
            row[chunk], row[other] = row[other], row[chunk]


class TamperedPackedPayload(PackedPayload):
    """A payload of whole steps with one thing that goes wrong; takes what `PackedPayload` takes, and a `Tamper`."""

    def __init__(self, tamper: Tamper, *args: Any) -> None:
        super().__init__(*args)
        self._tamper: Tamper | None = tamper

    def step(self, op: str, src: IntArray, dst: IntArray, chunk: IntArray) -> None:
        """See `PackedPayload.step`."""
        tamper = self._tamper
        hit = np.zeros(len(dst), bool) if tamper is None else (dst == tamper.worker) & (chunk == tamper.chunk)
        if tamper is None or not hit.any():
            super().step(op, src, dst, chunk)
            return
        self._tamper = None
        times = {"drop": 0, "double": 2}.get(tamper.kind, 1)
        super().step(op, *(np.repeat(column, np.where(hit, times, 1)) for column in (src, dst, chunk)))
        self._spoil(tamper)

    def _spoil(self, tamper: Tamper) -> None:
        row = self.buffer[tamper.worker]
        if tamper.kind == "flip":
            row[tamper.chunk] = tamper.flipped(row[tamper.chunk])
        elif tamper.kind == "swap":
            pair = [tamper.chunk, tamper.other(self.layout.sizes)]
            row[pair] = row[pair[::-1]]


def make_payload(
    source: Source,
    reduction: Reduction,
    chunk_sizes: IntArray,
    holders: IntArray,
    carry: int | None = None,
    *,
    packed: bool = False,
    tamper: Tamper | None = None,
    switches: SwitchSums = NO_SWITCHES,
) -> Payload | PackedPayload:
    """Make every worker's data.

    Parameters
    ----------
    source, reduction, chunk_sizes, holders, carry
        As for `Payload`.
    packed : bool
        Whether to make a `PackedPayload`, for an engine that steps whole arrays; it knows no switches.
    tamper : Tamper, optional
        What is to go wrong.
    switches : SwitchSums
        As for `Payload`.
    """
    what = (source, reduction, source.n_workers, chunk_sizes, holders, carry)
    if packed:
        return PackedPayload(*what) if tamper is None else TamperedPackedPayload(tamper, *what)
    if tamper is None:
        return Payload(*what, switches=switches)
    return TamperedPayload(tamper, *what, switches=switches)
