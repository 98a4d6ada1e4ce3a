"""What other simulators compute for the same ring, by the conversions between their models and this one.

The figures in tests/data were obtained by running ASTRA-sim, LogGOPSim and SimGrid; each file names its source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ringnet.collectives import ALGORITHMS, split_sizes
from ringnet.engines import ENGINES, Trace, Workers
from ringnet.networks import TOPOLOGIES, LinkChange, Network, change_links

DATA = Path(__file__).parent / "data"
GIB = 2**30


def rows(file: str) -> Iterator[tuple[str, pd.Series]]:
    frame = pd.read_csv(DATA / file, comment="#", keep_default_na=False)
    yield from ((" ".join(map(str, row.iloc[:4])), row) for _, row in frame.iterrows())


def run(network: Network, workers: Workers, chunk_bytes: np.ndarray) -> Trace:
    """Transfer by transfer where that is quick, else by the engine that gives the same times."""
    schedule = ALGORITHMS["ring"].build(network.n_workers, "all-reduce")
    engine = "events" if network.n_workers <= 64 else "recurrence"
    return ENGINES[engine].run(schedule, network, workers, chunk_bytes, keep_transfers=0)


def makespan(trace: Trace) -> float:
    return float(trace.workers["end_s"].max() - trace.workers["start_s"].min())


# ---------------------------------------------------------------------------------------------------- SimGrid

FAST, SLOW = 10e9, 1e9  # hosts, in flop/s
REDUCE_BYTES_PER_FLOP = 4.0  # 0.25 flop for each byte received

H_CHANGES = {
    "H1": {"3->4": LinkChange(25e9)},
    "H2": {"3->4": LinkChange(5e9)},
    "H3": {"3->4": LinkChange(latency_s=10e-6)},
    "H4": {"2->3": LinkChange(10e9), "5->6": LinkChange(20e9, 20e-6)},
    "H5": {f"{i}->{(i + 1) % 8}": LinkChange(10e9 * (i + 1), 500e-9 * (i + 1)) for i in range(8)},
    "X1": {"3->4": LinkChange(5e9)},
}


def simgrid_network(case: str, n_workers: int) -> Network:
    network = TOPOLOGIES["ring"].build(n_workers, bandwidth_Bps=50e9, latency_s=500e-9)
    return change_links(network, H_CHANGES.get(case.partition("-")[0], {}))


def simgrid_workers(case: str, n_workers: int, sends: str) -> Workers:
    workers = Workers.alike(n_workers, sends=sends)
    if case.startswith("K"):
        workers.reduce_Bps[:] = FAST * REDUCE_BYTES_PER_FLOP
    if case.startswith("K1"):
        workers.reduce_Bps[5] = SLOW * REDUCE_BYTES_PER_FLOP
    return workers


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in rows("simgrid_private_links.csv")])
def test_private_links_as_in_simgrid(row: pd.Series, sends: str) -> None:
    n_workers = int(row["n_workers"])
    chunk_bytes = 4 * split_sizes(int(row["message_bytes"]) // 4, n_workers)
    trace = run(simgrid_network(row["case"], n_workers), simgrid_workers(row["case"], n_workers, sends), chunk_bytes)
    expected = row["rendezvous_s"] if sends == "rendezvous" else row["eager_fifo_s"]
    assert makespan(trace) == pytest.approx(float(expected), rel=1e-9, abs=0)
    if sends == "rendezvous":
        ends = [float(end) for end in row["rendezvous_rank_end_times_s"].split(";")]
        assert trace.workers["end_s"] == pytest.approx(ends, rel=1e-9, abs=0)


# -------------------------------------------------------------------------------------------------- ASTRA-sim


def astra_ns(row: pd.Series) -> tuple[float, int]:
    """Nanoseconds of a row, here and there. Its aware switch stores and forwards whole transfers, its unaware one is an
    idle cut-through switch; its endpoint delay, which ringnet does not have, is taken off."""
    n_workers = int(row["n_workers"])
    stores = row["topology"] == "Switch" and row["backend"] == "congestion_aware"
    network = TOPOLOGIES[row["topology"].lower()].build(
        n_workers,
        bandwidth_Bps=float(row["bandwidth_GiBps"]) * GIB,
        latency_s=float(row["latency_ns"]) * 1e-9,
    )
    network = replace(network, switching="store-and-forward" if stores else "cut-through")
    chunk_bytes = np.full(n_workers, int(row["message_bytes"]) // n_workers)
    delay_ns = (2 * (n_workers - 1) + 1) * int(row["endpoint_delay_ns"])
    simulated_s = makespan(run(network, Workers.alike(n_workers), chunk_bytes))
    return simulated_s * 1e9, int(row["simulated_ns"]) - delay_ns


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in rows("astra_ring.csv")])
def test_rings_and_switches_as_in_astra_sim(row: pd.Series) -> None:
    simulated_ns, expected_ns = astra_ns(row)
    hops = 1 if row["topology"] == "Ring" else 2
    # Its times are whole nanoseconds, cut off at every step and hop.
    assert -1e-6 <= simulated_ns - expected_ns <= 2 * (int(row["n_workers"]) - 1) * hops


# -------------------------------------------------------------------------------------------------- LogGOPSim


def loggopsim_s(row: pd.Series) -> tuple[float, float]:
    """Seconds of a row, here and there. A transfer of c bytes is charged c bytes here and c - 1 there, so that ringnet
    takes 2(N-1)G longer, exactly."""
    n_workers, per_byte_s = int(row["N"]), float(row["G_ns_per_B"]) * 1e-9
    network = TOPOLOGIES["ring"].build(n_workers, bandwidth_Bps=1 / per_byte_s, latency_s=float(row["L_ns"]) * 1e-9)
    overhead_s = float(row["o_ns"]) * 1e-9
    workers = Workers.alike(n_workers, send_overhead_s=overhead_s, recv_overhead_s=overhead_s)
    simulated_s = makespan(run(network, workers, np.full(n_workers, int(row["chunk_B"]))))
    return simulated_s, int(row["sim_ns"]) * 1e-9 + 2 * (n_workers - 1) * per_byte_s


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in rows("loggopsim_ring.csv")])
def test_log_gop_rings_as_in_loggopsim(row: pd.Series) -> None:
    simulated_s, expected_s = loggopsim_s(row)
    assert simulated_s == pytest.approx(expected_s, rel=1e-9, abs=0)
