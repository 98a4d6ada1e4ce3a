"""NCCL beside a comparison: where its own cost model chooses otherwise, and files for its tuner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isfinite
from typing import NamedTuple

import pandas as pd

from ringnet.analysis.metrics import BUS_FACTORS
from ringnet.analysis.nccl import NcclMachine, cost_table, pick, picks, time_us
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
from ringnet.study.compare import Comparison
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
        raise InputError(Fault("NCCL's tuner has no such collective", "--tuner", value=collective, right=right))
    if "guess" in table and table["guess"].notna().all():
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
        "Where nothing is recommended NCCL chooses by itself.",
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
            first = part.first_bytes if part.after_guess else first
            endless = part.last_bytes if part.before_guess else max(ENDLESS_BYTES, part.last_bytes)
            last = where.get((n_workers, part.last_bytes), endless)
            use = TunerLine(n_workers, base_name(part.algorithm), first, last, channels.get(part.algorithm, -1))
            before = uses[-1] if uses else use
            if first and not part.after_guess and _nccl(before) == _nccl(use):  # to NCCL both are one
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


#: Algorithms of ringnet that are simulated for each of NCCL's; a tree is of all-reduces only.
SIMULATED = ("ring", "channel-ring", "double-binary-tree")
#: Algorithms of NCCL that ringnet has.
_COMMON = frozenset(ALGORITHMS.values())


class OtherChoice(NamedTuple):
    """Sizes, both in it, for which NCCL takes one algorithm and another is the fastest that ringnet simulates."""

    first_bytes: int
    last_bytes: int
    nccl: str
    ringnet: str
    protocol: str


def nccl_times(machine: NcclMachine, collective: str, sizes: Sequence[int]) -> pd.DataFrame:
    """Return the time of every algorithm and protocol that the machine has, a row per size and cell.

    Columns are ``message_bytes, algorithm, protocol, time_s, algbw_Bps, busbw_Bps`` and ``is_pick``.
    """
    table, rows = cost_table(machine), []
    bus = BUS_FACTORS[collective](machine.n_ranks)
    for size in sizes:
        taken = pick(machine, table, collective, size)
        for cell, cost in table.items():
            took_us = time_us(machine, cell, cost, size)
            if cell[0] == collective and isfinite(took_us):
                algbw = size / took_us * 1e6
                rows.append((size, *cell[1:], took_us * 1e-6, algbw, algbw * bus, cell[1:] == taken))
    names = ["message_bytes", "algorithm", "protocol", "time_s", "algbw_Bps", "busbw_Bps", "is_pick"]
    return pd.DataFrame(rows, columns=names)


def differences(machine: NcclMachine, collective: str, found: Comparison) -> list[OtherChoice]:
    """Return where NCCL takes a ring or a tree and the other is faster as simulated, within the sizes simulated.

    Where NCCL takes what ringnet does not have (NVLS, CollNet, PAT) there is nothing to compare. The protocol is the
    one that NCCL believes in most for the algorithm that is faster.
    """
    table = cost_table(machine)
    ours = [line for line in tuner_lines(found.table, {}) if line.n_workers == machine.n_ranks]
    smallest, largest = (int(edge(found.table["message_bytes"])) for edge in (min, max))
    differ: list[OtherChoice] = []
    for line in ours:
        ringnet = ALGORITHMS[base_name(line.algorithm)]
        of_ringnet = {cell: cost for cell, cost in table.items() if cell[1] == ringnet}
        first, last = max(line.first_bytes, smallest), min(line.last_bytes, largest)
        for taken in picks(machine, table, collective, first, last) if first <= last else ():
            if taken.algorithm == ringnet or taken.algorithm not in _COMMON:
                continue
            for best in picks(machine, of_ringnet, collective, taken.first_bytes, taken.last_bytes):
                one = OtherChoice(*best[2:], taken.algorithm, ringnet, best.protocol)
                if differ and differ[-1][2:] == one[2:] and differ[-1].last_bytes + 1 == one.first_bytes:
                    one = one._replace(first_bytes=differ.pop().first_bytes)  # NCCL changes its protocol alone
                differ.append(one)
    return differ


def tuner_file(machine: NcclMachine, collective: str, found: Comparison, differ: Sequence[OtherChoice]) -> str:
    """Return a tuner file of the sizes where the simulation has another algorithm than NCCL's model."""
    names = {nccl: name for name, nccl in ALGORITHMS.items()}
    lines = [
        TunerLine(
            machine.n_ranks,
            names[one.ringnet],
            one.first_bytes,
            one.last_bytes,
            n_nodes=machine.n_nodes,
            protocol=one.protocol,
        )
        for one in differ
    ]
    sizes = found.table["message_bytes"]
    comments = [
        "Written by ringnet nccl: sizes for which another algorithm than that of NCCL's cost model is the fastest as "
        "simulated. All others are left to NCCL.",
        f"Simulated from {format_size(int(sizes.min()))} to {format_size(int(sizes.max()))}. The protocol is the best "
        "of the algorithm by NCCL's cost model: ringnet simulates none.",
    ]
    return dumps_tuner(collective, lines, comments)


def missing_in_ringnet(machine: NcclMachine, collective: str, sizes: Sequence[int]) -> list[str]:
    """Say for which of the sizes NCCL takes what is not simulated beside it, in words."""
    parts = picks(machine, cost_table(machine), collective, min(sizes), max(sizes))
    return [
        f"NCCL takes {part.algorithm} from {format_size(part.first_bytes)} to {format_size(part.last_bytes)}, and here "
        "rings and trees alone are simulated: nothing is compared there"
        for part in parts
        if part.algorithm not in _COMMON
    ]
