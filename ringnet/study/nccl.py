"""NCCL's choice by its own cost model beside what is simulated on the same network, and where the two differ."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import pandas as pd

from ringnet.analysis.metrics import BUS_FACTORS
from ringnet.analysis.nccl import NcclMachine, cost_table, pick, picks, time_us
from ringnet.formats.tuner import ALGORITHMS, TunerLine, dumps_tuner
from ringnet.study.compare import Comparison
from ringnet.study.tuner import base_name, tuner_lines
from ringnet.units import format_size

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
    ours = [line for line in tuner_lines(found.grounds, {}) if line.n_workers == machine.n_ranks]
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
                    one = one._replace(
                        first_bytes=differ.pop().first_bytes
                    )  # NCCL changes its protocol alone
                differ.append(one)
    return differ


def tuner_file(
    machine: NcclMachine, collective: str, found: Comparison, differ: Sequence[OtherChoice]
) -> str:
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
