"""The closed form of every algorithm against the engine, and what SimGrid and NCCL say of some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringnet.analysis.closed_form import closed_form_s
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.engines import ENGINES, Workers
from ringnet.networks import TOPOLOGIES, Network

#: Made for workers that are not alike, and those that reduce in switches, which a full network has none of.
FORMLESS = {"stragglar", "uneven-ring"} | {name for name, one in ALGORITHMS.items() if one.in_switches}
FORMED = {name: algorithm for name, algorithm in ALGORITHMS.items() if name not in FORMLESS}
KINDS = [
    pytest.param(name, kind, {}, id=f"{name}-{kind}")
    for name, algorithm in FORMED.items()
    for kind in algorithm.collectives
]
KINDS += [
    pytest.param("binary-tree", "all-reduce", {"n_slices": 1}, id="binary-tree-whole"),
    pytest.param("channel-ring", "all-reduce", {"n_channels": 2, "strides": (1, -1)}, id="channel-ring-both-ways"),
    pytest.param("double-binary-tree", "all-reduce", {"n_slices": 1}, id="double-binary-tree-whole"),
    pytest.param("hierarchical", "all-reduce", {"inner": "binomial-tree"}, id="hierarchical-binomial"),
    pytest.param("hierarchical", "all-reduce", {"outer": "halving-doubling"}, id="hierarchical-halving"),
    pytest.param("swing", "all-reduce", {"all_ports": False}, id="swing-one-port"),
    pytest.param("swing", "reduce-scatter", {"all_ports": False}, id="swing-one-port-scatter"),
    pytest.param("swing", "all-gather", {"all_ports": False}, id="swing-one-port-gather"),
]
#: Algorithms whose form says nothing of a reduction that takes time, in which lanes race for the processor.
FREE_REDUCTION = {"bidirectional-ring", "double-binary-tree", "torus-ring"}


def full(n_workers: int, bandwidth_Bps: float, latency_s: np.ndarray | float) -> Network:
    """A link of its own from every worker to every other; latencies as a matrix, or one for all."""
    pairs = [(src, dst) for src in range(n_workers) for dst in range(n_workers) if src != dst]
    number = {pair: (link,) for link, pair in enumerate(pairs)}
    latencies = np.broadcast_to(latency_s, (n_workers, n_workers))
    return Network(
        "full",
        n_workers,
        tuple(f"{src}->{dst}" for src, dst in pairs),
        np.full(len(pairs), bandwidth_Bps),
        np.array([latencies[pair] for pair in pairs]),
        lambda src, dst: number[src, dst],
    )


def makespan(schedule: Schedule, network: Network, workers: Workers, chunk_bytes: np.ndarray) -> float:
    trace = ENGINES["events"].run(schedule, network, workers, chunk_bytes, keep_transfers=0)
    return float(trace.workers["end_s"].max())


@pytest.mark.parametrize("reduce_Bps", [np.inf, 3e9, 4e8])
@pytest.mark.parametrize(("name", "collective", "parameters"), KINDS)
def test_the_closed_form_is_the_engines_time(
    name: str, collective: str, parameters: dict[str, object], reduce_Bps: float
) -> None:
    compared = 0
    for n_workers in (2, 3, 4, 6, 7, 8, 9, 13, 16):
        schedule = ALGORITHMS[name].build(n_workers, collective, **parameters)
        workers = Workers.alike(n_workers, reduce_Bps=reduce_Bps)
        # What latency does to it is seen with few workers and free reductions; else latencies take turns.
        latencies_s = (0.0, 1.3e-6, 2e-5)
        turn = (n_workers + (reduce_Bps < 1e9)) % 3
        for latency_s in latencies_s if n_workers < 13 and np.isinf(reduce_Bps) else latencies_s[turn:][:1]:
            network = full(n_workers, 1e9, latency_s)
            chunk_bytes = np.full(schedule.n_chunks, 1000)
            form_s = closed_form_s(schedule, network, workers, chunk_bytes)
            if form_s is not None:
                time_s = makespan(schedule, network, workers, chunk_bytes)
                assert time_s == pytest.approx(form_s, rel=1e-12, abs=0)
                compared += 1
    assert compared or (name in FREE_REDUCTION | {"swing", "channel-ring"} and np.isfinite(reduce_Bps))


#: Where there is no form even though latency is long: two halves that meet on links, by N from 2 to 17.
MEETING = {
    "double-binary-tree": {3},
    "swing": {n for n in range(2, 18) if n & (n - 1)},
    "torus-ring": {6, 8, 10, 12, 14, 15},
}
#: Those whose halves meet at the processor too, where reducing takes time; two workers are one link.
REDUCING = {
    "bidirectional-ring": set(range(3, 18)),
    "double-binary-tree": set(range(2, 18)),
    "swing": set(range(3, 18)),
    "torus-ring": MEETING["torus-ring"] | {4, 9, 16},
}


@pytest.mark.parametrize("name", FORMED)
def test_only_where_halves_meet_there_is_no_form(name: str) -> None:
    for reduce_Bps in (np.inf, 3e9):
        without = set()
        for collective, n_workers in ((one, n) for one in ALGORITHMS[name].collectives for n in range(2, 18)):
            schedule, workers = (
                ALGORITHMS[name].build(n_workers, collective),
                Workers.alike(n_workers, reduce_Bps=reduce_Bps),
            )
            chunk_bytes = np.full(schedule.n_chunks, 1000)
            if closed_form_s(schedule, full(n_workers, 1e9, 2e-5), workers, chunk_bytes) is None:
                without.add(n_workers)
        assert without == (MEETING if np.isinf(reduce_Bps) else REDUCING).get(name, set())


@pytest.mark.parametrize("name", ["halving-doubling", "direct", "double-binary-tree"])
def test_there_is_no_form_where_anything_differs(name: str) -> None:
    schedule, workers = ALGORITHMS[name].build(4, "all-reduce"), Workers.alike(4)
    chunk_bytes, network = np.full(schedule.n_chunks, 100), full(4, 1e9, 1e-6)
    slow = network.bandwidth_Bps.copy()
    slow[3] /= 2
    uneven = chunk_bytes.copy()
    uneven[0] += 1
    late = Workers.alike(4)
    late.start_s[1] = 1e-6
    assert closed_form_s(schedule, network, workers, chunk_bytes) is not None
    for case in (
        (replace(network, bandwidth_Bps=slow), workers, chunk_bytes),
        (replace(network, sharing="fair"), workers, chunk_bytes),
        (TOPOLOGIES["switch"].build(4, 1e9, 1e-6), workers, chunk_bytes),
        (network, late, chunk_bytes),
        (network, Workers.alike(4, send_overhead_s=1e-6), chunk_bytes),
        (network, Workers.alike(4, sends="rendezvous"), chunk_bytes),
        (network, workers, uneven),
    ):
        assert closed_form_s(schedule, *case) is None


#: SimGrid 3.32, SMPI on a star of 16 hosts, plain alpha-beta model: seconds for 1 KiB, 1 MiB and 64 MiB.
SIMGRID = {
    "ring": (1.5048e-5, 5.43312e-5, 2.531592e-3),
    "recursive-doubling": (2.0832e-6, 8.588736e-5, 5.3707104e-3),
    "halving-doubling": (4.04096e-6, 4.332416e-5, 2.52058496e-3),
}


@pytest.mark.parametrize("name", SIMGRID)
def test_all_reduce_on_a_star_as_in_simgrid(name: str) -> None:
    """Its star is a switch, 250 ns each way; the 16 bytes of envelope are a latency: transfers never meet."""
    alpha_s = 500e-9 + 16 / 50e9
    network = TOPOLOGIES["switch"].build(16, bandwidth_Bps=50e9, latency_s=alpha_s / 2)
    schedule = ALGORITHMS[name].build(16, "all-reduce")
    for message_bytes, expected_s in zip((2**10, 2**20, 2**26), SIMGRID[name], strict=True):
        time_s = makespan(schedule, network, Workers.alike(16), schedule.chunk_sizes(message_bytes))
        assert time_s == pytest.approx(expected_s, rel=1e-6)


# ------------------------------------------------------------------------------- NCCL's latencies, in microseconds

INTRA_US = {
    "ring": {"LL": 0.6, "LL128": 1.9, "Simple": 3.4},
    "tree": {"LL": 0.6, "LL128": 1.25, "Simple": 4.0},
}
INTER_US = {
    "ring": {"LL": 2.7, "LL128": 4.0, "Simple": 14.0},
    "tree": {"LL": 5.0, "LL128": 8.5, "Simple": 14.0},
}
NODES = [(1, 8), (2, 4), (4, 2), (8, 4), (4, 8), (16, 1)]


def nodes_network(n_nodes: int, node_size: int, intra_us: float, inter_us: float) -> Network:
    node = np.arange(n_nodes * node_size) // node_size
    return full(len(node), 1e9, np.where(node[:, None] == node, intra_us, inter_us) * 1e-6)


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize(("n_nodes", "node_size"), NODES)
def test_the_latency_of_a_ring_is_nccls_and_two_links_more(n_nodes: int, node_size: int, protocol: str) -> None:
    """NCCL counts 2 (nodes - 1) crossings between nodes; a path of 2(N-1) links in a ring can have 2 nodes.

    It leaves out two links side by side: both inside a node of at least three workers, one of them in a node of two.
    """
    intra_us, inter_us = INTRA_US["ring"][protocol], INTER_US["ring"][protocol]
    n_workers = n_nodes * node_size
    schedule = ALGORITHMS["ring"].build(n_workers, "all-reduce")
    time_s = makespan(
        schedule,
        nodes_network(n_nodes, node_size, intra_us, inter_us),
        Workers.alike(n_workers),
        np.zeros(n_workers, int),
    )
    crossings = 2 * (n_nodes - 1)
    nccl_us = (2 * (n_workers - 1) - crossings) * intra_us + crossings * inter_us
    extra_us = min(2, node_size - 1) * (inter_us - intra_us) if n_nodes > 1 else 0.0
    assert time_s * 1e6 == pytest.approx(nccl_us + extra_us, rel=1e-12, abs=0)


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize(("n_nodes", "node_size"), NODES)
def test_the_latency_of_the_double_binary_tree_is_nccls(n_nodes: int, node_size: int, protocol: str) -> None:
    intra_us, inter_us = INTRA_US["tree"][protocol], INTER_US["tree"][protocol]
    n_workers = n_nodes * node_size
    schedule = ALGORITHMS["double-binary-tree"].build(n_workers, "all-reduce", node_size=node_size)
    time_s = makespan(
        schedule,
        nodes_network(n_nodes, node_size, intra_us, inter_us),
        Workers.alike(n_workers),
        np.zeros(schedule.n_chunks, int),
    )
    nccl_us = 2 * ((node_size - 1) * intra_us + np.log2(n_nodes) * inter_us)
    assert time_s * 1e6 == pytest.approx(nccl_us, rel=1e-12, abs=0)


def test_doubling_wins_small_messages_on_a_switch_and_halving_large_ones() -> None:
    network, workers = TOPOLOGIES["switch"].build(16, 1e9, 1e-6), Workers.alike(16)

    def times(message_bytes: int) -> dict[str, float]:
        names = ("ring", "recursive-doubling", "halving-doubling", "binomial-tree")
        built = {name: ALGORITHMS[name].build(16, "all-reduce") for name in names}
        return {name: makespan(s, network, workers, s.chunk_sizes(message_bytes)) for name, s in built.items()}

    small, large = times(64), times(2**24)
    assert min(small, key=small.__getitem__) == "recursive-doubling"
    assert small["ring"] > small["halving-doubling"]
    assert min(large, key=large.__getitem__) == "halving-doubling"
    assert large["ring"] < large["recursive-doubling"] < large["binomial-tree"]
