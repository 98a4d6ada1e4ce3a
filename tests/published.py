"""Figures that others published against what ringnet computes: from the data sheet alone, then with one constant.

The machines are ringnet's own, as ``machine:`` has them. The constant is a share of the rate of the links that bound
the figures of one name: it is taken from the figures that ``tests/data/published.csv`` marks, and all of the name are
then computed with it. What is missed stays in the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import ringnet

TABLE = Path(__file__).parent / "data" / "published.csv"
GIB = 2**30


class Published(NamedTuple):
    """A figure: what was measured, what the data sheet gives, and what one constant makes of it.

    ``from_sheet`` is None where nobody said which machine it was, ``calibrated`` where no figure of the name is taken
    as known; ``is_known`` says whether this one is.
    """

    name: str
    case: str
    unit: str
    measured: float
    from_sheet: float | None
    calibrated: float | None
    is_known: bool
    source: str


def simulate(**keys: Any) -> float:
    """Return the makespan of a scenario without its payload, in seconds."""
    whole = {"scenario_version": 1, "payload": "none"} | keys
    return float(ringnet.simulate(ringnet.loads(json.dumps(whole))).summary["makespan_s"])


@cache
def rates(machine: str) -> tuple[float, float]:
    """Return bytes per second of a link inside a host, and of one between hosts, by the data sheet."""
    keys = {"scenario_version": 1, "machine": machine, "hosts": 2, "message": 0}
    network: Any = ringnet.loads(json.dumps(keys)).network
    return network.inside.bandwidth_Bps, network.bandwidth_Bps


#: A tree as NCCL runs it: slice after slice, each once its receiver is ready.
TREE = {"algorithm": {"name": "double-binary-tree", "n_slices": 32}, "worker": {"sends": "rendezvous"}}
SWITCH = {"between": {"topology": "switch"}}


def inside(machine: str, size: int, share: float, n: int, **keys: Any) -> float:
    """N workers of one host, over what joins them."""
    rate = {"inside": {"bandwidth": f"{share * rates(machine)[0]} B/s"}}
    network = {"workers_per_host": n, "nics": 1} | rate | SWITCH
    return simulate(machine=machine, workers=n, message=size, network=network, **keys)


def across(machine: str, size: int, share: float, n_hosts: int, per_host: int, nics: int, **keys: Any) -> float:
    """Several hosts, with so many workers and cards each, on one switch."""
    rate = {"bandwidth": f"{share * rates(machine)[1]} B/s"}
    network = {"workers_per_host": per_host, "nics": nics} | rate | SWITCH
    return simulate(machine=machine, hosts=n_hosts, message=size, network=network, **keys)


def _workers(case: str) -> int:
    return int(case.removeprefix("N="))


def _nvswitch(machine: str, algorithm: str, case: str, share: float) -> float:
    n = _workers(case)
    return busbw(inside(machine, 8 * GIB, share, n, algorithm=algorithm), n, 8 * GIB)


def busbw(seconds: float, n: int, size: int) -> float:
    """Return the bus bandwidth of an all-reduce in GB/s."""
    return size / seconds * 2 * (n - 1) / n / 1e9


def _h100(case: str, share: float) -> float:
    if case in ("reduce-scatter", "all-gather"):
        return 1e6 * inside("dgx-h100", 4 * GIB, share, 8, collective=case, algorithm="ring")
    return 1e6 * inside("dgx-h100", 4 * GIB, share, 8, algorithm=case)


def _gb200(per_host: int, case: str, share: float) -> float:
    ring = {"algorithm": {"name": "channel-ring", "n_channels": per_host, "node_size": per_host}}
    keys = TREE if case == "tree" else ring
    return 16 * GIB / across("gb200-nvl72", 16 * GIB, share, 3, per_host, per_host, **keys) / 1e9


def _mi300x(case: str, share: float) -> float:
    n = _workers(case)
    return busbw(inside("mi300x", 4 * GIB, share, n, algorithm="direct"), n, 4 * GIB)


def _issue_1250(case: str, share: float) -> float:
    each = int(case.split(maxsplit=1)[0])
    # The issue does not name the cards: those of 100 Gbit/s are where the constant starts.
    return across("aws-p4d", 10**9, share, 2, each, each, algorithm="double-binary-tree")


def _penalty(case: str, share: float) -> float:
    alone = inside("dgx-h100", GIB, share, 8, algorithm="ring")
    n_cards = 8 if case == "eight cards" else 1
    # Which algorithm it was nobody said: rings, one for each card.
    rings = {"name": "channel-ring", "n_channels": n_cards, "node_size": 8}
    return across("dgx-h100", GIB, share, 2, 8, n_cards, algorithm=rings) / alone


def _tpu_v2(_case: str, share: float) -> float:
    # 1.2e11 B/s are both directions of a link together.
    network = {"topology": "torus", "sides": [4, 2], "bandwidth": f"{share * 0.6e11} B/s", "latency": "1 us"}
    keys = {"collective": "reduce-scatter", "algorithm": "bidirectional-ring"}
    return 1e3 * simulate(workers=8, message=134 * 10**6, network=network, **keys)


#: By name what computes a figure: of a case, and the share that links give of their data sheet.
MODELS: dict[str, Callable[[str, float], float]] = {
    "H200 ring": partial(_nvswitch, "hgx-h200", "ring"),
    "H200 NVLS": partial(_nvswitch, "hgx-h200", "nvls"),
    "B200 ring": partial(_nvswitch, "hgx-b200", "ring"),
    "B200 NVLS": partial(_nvswitch, "hgx-b200", "nvls"),
    "H100 4 GiB": _h100,
    "GB200, three hosts of 4": partial(_gb200, 4),
    "GB200, three hosts of 8": partial(_gb200, 8),
    "MI300X": _mi300x,
    "two hosts": _issue_1250,
    "cross-host penalty": _penalty,
    "TPU v2 4 x 2": _tpu_v2,
}
#: Whose constant counts for whom, where one was taken from the same machine.
SAME_CONSTANT = {"GB200, three hosts of 8": "GB200, three hosts of 4"}
#: Names whose data sheet nobody said: the constant is all there is.
WITHOUT_SHEET = ("two hosts",)


def figures() -> Iterator[Published]:
    """Yield every figure, in the order of the table."""
    table = pd.read_csv(TABLE, comment="#")
    for name, rows in table.groupby("name", sort=False):
        model, share = MODELS[str(name)], _share(table, SAME_CONSTANT.get(str(name), str(name)))
        for row in rows.itertuples():
            sheet = None if name in WITHOUT_SHEET else model(row.case, 1.0)
            calibrated = None if share is None else model(row.case, share)
            known = row.known == "yes"
            yield Published(str(name), row.case, row.unit, row.figure, sheet, calibrated, known, row.source)


def _share(table: pd.DataFrame, name: str) -> float | None:
    """Return the one share of the data sheet that the known figures of a name have, in the mean; None without any."""
    rows = table[(table["name"] == name) & (table["known"] == "yes")]
    if not len(rows):
        return None
    found = []
    for row in rows.itertuples():
        at_sheet = MODELS[name](row.case, 1.0)
        is_time = row.unit in ("us", "ms", "s")
        # Links bound all of them: latency is a thousandth, and less.
        found.append(at_sheet / row.figure if is_time else row.figure / at_sheet)
    return float(np.mean(found))


def error(figure: Published, computed: float | None) -> str:
    """Say how far from the measured figure a computed one is."""
    return "" if computed is None else f"{computed:.5g} ({100 * (computed / figure.measured - 1):+.1f} %)"


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="python -m tests.published", description=__doc__).parse_args()
    print("| figure | | measured | from the data sheet | with one constant |\n|---|---|---|---|---|")
    for one in figures():
        constant = "taken from it" if one.is_known else error(one, one.calibrated)
        measured = f"{one.measured:g} {one.unit}".removesuffix(" ratio")
        print(
            f"| {one.name} | {one.case} | {measured} | {error(one, one.from_sheet)} | {constant} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
