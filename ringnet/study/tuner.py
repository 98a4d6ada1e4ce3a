"""From a comparison to a tuner file: the best of what NCCL has, and what is said of the rest."""

from __future__ import annotations

from itertools import groupby

import pandas as pd

from ringnet.analysis.winners import WinningRange, crossovers, ranges, with_ranks
from ringnet.errors import Fault, InputError
from ringnet.formats.tuner import (
    ALGORITHMS,
    COLLECTIVES,
    ENDLESS_BYTES,
    TunerLine,
    dumps_tuner,
    known_to_nccl,
)
from ringnet.units import format_size


def tuner_text(
    table: pd.DataFrame,
    collective: str,
    channels: dict[str, int] | None = None,
    node_size: int | None = None,
) -> tuple[str, list[str]]:
    """Return a tuner file for a comparison, and sentences on what it leaves out.

    Parameters
    ----------
    table : DataFrame
        Of a `Comparison`.
    collective : str
    channels : dict of str to int, optional
        Channels of an algorithm of the table, by its label; NCCL's own choice for the others.
    node_size : int, optional
        Workers of a node, where the network has nodes: a line is then for as many nodes only as its workers fill.

    Raises
    ------
    InputError
        NCCL's tuner does not know the collective, or none of the algorithms.
    """
    if collective not in COLLECTIVES:
        right = ", ".join(COLLECTIVES)
        raise InputError(
            Fault("NCCL's tuner has no such collective", "--tuner", value=collective, right=right)
        )
    if table.empty:
        message = "there is nothing to recommend on links that are a ring's equivalent"
        raise InputError(Fault(message, "--tuner", right="links with their own bandwidth and latency"))
    known = table[[known_to_nccl(base_name(label)) for label in table["algorithm"]]]
    if known.empty:
        right = ", ".join(ALGORITHMS)
        raise InputError(Fault("NCCL has none of these algorithms", "--tuner", right=right))
    notes = list(_left_out(table, known))
    uses = tuner_lines(with_ranks(known.drop(columns="rank")), channels or {})
    uses = [use._replace(n_nodes=use.n_workers // node_size) for use in uses] if node_size else uses
    comments = [
        "Written by ringnet compare. The protocol is 'simple' everywhere: ringnet does not simulate protocols.",
        "Below the smallest and above the largest size compared the nearest choice goes on.",
        *notes,
    ]
    return dumps_tuner(collective, uses, comments), notes


def base_name(label: str) -> str:
    """Return the algorithm of a label of a comparison, without its parameters."""
    return label.partition(" (")[0]


def tuner_lines(known: pd.DataFrame, channels: dict[str, int]) -> list[TunerLine]:
    """Return a line for each range of sizes; it ends where the next algorithm overtakes."""
    where = {(one.n_workers, one.between_low_bytes): one.at_bytes for one in crossovers(known)}
    uses: list[TunerLine] = []
    for n_workers, parts in groupby(ranges(known), key=lambda part: part.n_workers):
        first = 0
        for part in parts:
            last = where.get((n_workers, part.last_bytes), max(ENDLESS_BYTES, part.last_bytes))
            use = TunerLine(
                n_workers, base_name(part.algorithm), first, last, channels.get(part.algorithm, -1)
            )
            before = uses[-1] if uses else use
            if first and _nccl(before) == _nccl(use):  # to NCCL both are one
                first = uses.pop().first_bytes
            uses.append(use._replace(first_bytes=first))
            first = last + 1
    return uses


def _nccl(use: TunerLine) -> tuple[str, int]:
    return ALGORITHMS[use.algorithm], use.channels


def _left_out(table: pd.DataFrame, known: pd.DataFrame) -> list[str]:
    """Say which of the algorithms to use NCCL does not have, and what that costs."""
    best = table.groupby(["n_workers", "message_bytes"])["makespan_s"].min()
    notes = []
    for part in ranges(table):
        if not known_to_nccl(base_name(part.algorithm)):
            notes.append(_costs(part, known, best))
    return notes


def _costs(part: WinningRange, known: pd.DataFrame, best: pd.Series[float]) -> str:
    rows = known[(known["n_workers"] == part.n_workers) & known["message_bytes"].between(*part[2:4])]
    lost = rows.groupby("message_bytes")["makespan_s"].min() / best[part.n_workers]
    sizes = f"{format_size(part.first_bytes)} to {format_size(part.last_bytes)}"
    return (
        f"with {part.n_workers} workers {part.algorithm} is the fastest from {sizes}, but NCCL does not have it: "
        f"the best that it has takes up to {lost.max():.3g} times as long there"
    )
