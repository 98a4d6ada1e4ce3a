"""What the benchmarks run: rings, without words for a scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ringnet.collectives import ALGORITHMS, Schedule, split_sizes
from ringnet.engines import ENGINES, Trace, Workers
from ringnet.networks import Network
from ringnet.networks.basic import ring
from ringnet.payload import Payload
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.reductions import make_reduction
from ringnet.payload.sources import RandomSource

BANDWIDTH_BPS, LATENCY_S = 50e9, 500e-9
FLOAT32 = DTYPES["float32"]
MIB = 2**20


@dataclass(frozen=True)
class Setup:
    """A ring all-reduce of float32 on a network."""

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_sizes: np.ndarray

    def run(self, engine: str, payload: Payload | None = None, **options: Any) -> Trace:
        chunk_bytes = self.chunk_sizes * FLOAT32.itemsize
        return ENGINES[engine].run(self.schedule, self.network, self.workers, chunk_bytes, payload, **options)

    @property
    def source(self) -> RandomSource:
        """The data of every worker."""
        return RandomSource(self.schedule.n_workers, int(self.chunk_sizes.sum()), FLOAT32, seed=1)

    def payload(self) -> Payload:
        n_workers = self.schedule.n_workers
        reduction = make_reduction("sum", n_workers)
        return Payload(self.source, reduction, n_workers, self.chunk_sizes, self.schedule.source)


def ring_setup(n_workers: int, message_bytes: int = 64 * MIB) -> Setup:
    """A ring of private links, all alike."""
    return Setup(
        ALGORITHMS["ring"].build(n_workers, "all-reduce"),
        ring(n_workers, BANDWIDTH_BPS, LATENCY_S),
        Workers.alike(n_workers),
        split_sizes(message_bytes // FLOAT32.itemsize, n_workers),
    )


def scattered_setup(n_workers: int, per_leaf: int = 8, n_spines: int = 4) -> Setup:
    """A ring in random order over a leaf-spine, whose links are shared fairly.

    A leaf can send up as much as its workers can, and routes take the spine that the receiver's place says: what
    slows transfers is that some meet on one spine.
    """
    place = np.random.default_rng(1).permutation(n_workers).tolist()
    n_leaves = n_workers // per_leaf
    n_trunks = n_leaves * n_spines
    names = [f"{i}->leaf" for i in range(n_workers)] + [f"leaf->{i}" for i in range(n_workers)]
    names += [f"leaf{i // n_spines}->spine{i % n_spines}" for i in range(n_trunks)]
    names += [f"spine{i % n_spines}->leaf{i // n_spines}" for i in range(n_trunks)]

    def find_route(src: int, dst: int) -> tuple[int, ...]:
        here, there = place[src], place[dst]
        leaf, other, spine = here // per_leaf, there // per_leaf, there % n_spines
        up, down = 2 * n_workers + leaf * n_spines + spine, 2 * n_workers + other * n_spines + spine
        return (here, *(() if leaf == other else (up, down + n_trunks)), n_workers + there)

    bandwidth_Bps = np.full(len(names), BANDWIDTH_BPS)
    bandwidth_Bps[2 * n_workers :] *= per_leaf / n_spines
    network = Network(
        "leaf-spine",
        n_workers,
        tuple(names),
        bandwidth_Bps,
        np.full(len(names), LATENCY_S),
        find_route,
        sharing="fair",
    )
    return replace(ring_setup(n_workers), network=network)
