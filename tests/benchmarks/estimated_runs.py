"""Eighty runs of all kinds, for `tests.benchmarks.estimates`: each by its name, as a scenario."""

from __future__ import annotations

import random

RING = "network: {topology: ring, bandwidth: 50 GB/s, latency: 1 us}"
SWITCH = "network: {topology: switch, bandwidth: 25 GB/s, latency: 2 us}"
RACKS = "network: {topology: leaf-spine, leaves: 4, hosts_per_leaf: 8, spines: 2, bandwidth: 25 GB/s, latency: 1 us"
HOSTS = """network: {topology: nodes, workers_per_host: 8, nics: 8, bandwidth: 12.5 GB/s, latency: 3 us,
  inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}"""
FAT_TREE = "network: {topology: fat-tree, k: 8, bandwidth: 25 GB/s, latency: 1 us, routes: ecmp"
BETWEEN = "between: {topology: leaf-spine, leaves: %d, hosts_per_leaf: 8, spines: 8}"
LATE = "worker: {exceptions: {3: {start: 1 ms}}}"
#: Places drawn once, by number of workers.
SHUFFLED = {n: random.Random(n).sample(range(n), n) for n in (32, 96)}
NOTHING, LITTLE, PLAIN = "payload: none", "payload: {elements: 16}", "report: {plots: []}"


def _text(workers: int, message: str, *rest: str) -> str:
    return "\n".join(["scenario_version: 1", f"workers: {workers}", f"message: {message}", *rest])


def _algorithm(name: str, **parameters: object) -> str:
    given = "".join(f", {key}: {value}" for key, value in parameters.items())
    return f"algorithm: {{name: {name}{given}}}"


#: Payload, engines, tables and plots on networks of one sender for each link.
PRIVATE = {
    "quickstart": _text(8, "64 MiB", RING),
    "quickstart, no plots": _text(8, "64 MiB", RING, PLAIN),
    "one worker": _text(1, "1 MiB", RING, NOTHING),
    "full payload 1 GiB": _text(4, "1 GiB", RING, PLAIN),
    "full payload float16": _text(8, "128 MiB", "dtype: float16", RING, PLAIN),
    "full payload bfloat16": _text(4, "32 MiB", "dtype: bfloat16", RING, PLAIN),
    "full payload integers": _text(8, "64 MiB", "dtype: int32", RING, PLAIN),
    "full payload product": _text(4, "64 MiB", "reduce: prod", "dtype: float64", RING, PLAIN),
    "full payload small": _text(32, "1 MiB", RING, PLAIN),
    "ring 64": _text(64, "64 MiB", RING, NOTHING, PLAIN),
    "ring 64, plots": _text(64, "64 MiB", RING, NOTHING),
    "ring 128, all rows": _text(128, "64 MiB", RING, NOTHING, PLAIN),
    "ring 300, all rows": _text(300, "64 MiB", RING, NOTHING, PLAIN),
    "ring 300, plots": _text(300, "64 MiB", RING, NOTHING),
    "ring 256 by events": _text(256, "64 MiB", RING, NOTHING, PLAIN, "engine: events"),
    "ring 512 by events": _text(512, "64 MiB", RING, NOTHING, PLAIN, "engine: events"),
    "ring 4096": _text(4096, "64 MiB", RING, NOTHING, PLAIN),
    "ring 4096, carried": _text(4096, "64 MiB", RING, "payload: {elements: 4}", PLAIN),
    "ring 1024, carried": _text(1024, "64 MiB", RING, LITTLE, PLAIN),
    "ring 300, tables of a million rows": _text(600, "64 MiB", RING, NOTHING, "report: {plots: [], transfers: all}"),
    "rendezvous": _text(96, "64 MiB", RING, NOTHING, PLAIN, "worker: {sends: rendezvous, send_overhead: 1 us}"),
    "late worker": _text(64, "64 MiB", RING, NOTHING, PLAIN, LATE),
    "states": _text(4, "1 KiB", RING, "report: {plots: [], tables: [states]}"),
    "bidirectional": _text(96, "64 MiB", SWITCH, NOTHING, PLAIN, _algorithm("bidirectional-ring")),
    "pipelined": _text(32, "64 MiB", RING, NOTHING, PLAIN, _algorithm("pipelined-ring", n_slices=16)),
    "halving-doubling": _text(1024, "64 MiB", SWITCH, NOTHING, PLAIN, _algorithm("halving-doubling")),
    "direct": _text(128, "64 MiB", SWITCH, NOTHING, PLAIN, _algorithm("direct")),
    "direct, fully connected": _text(
        128, "64 MiB", "network: {topology: fully-connected, bandwidth: 5 GB/s, latency: 1 us}", NOTHING, PLAIN,
        _algorithm("direct"),
    ),
    "double binary tree": _text(
        128, "256 MiB", SWITCH, NOTHING, PLAIN, _algorithm("double-binary-tree", n_slices=64)
    ),
    "all-to-all": _text(128, "64 MiB", "collective: all-to-all", SWITCH, NOTHING, PLAIN, _algorithm("pairwise")),
    "switch 2048": _text(2048, "64 MiB", SWITCH, NOTHING, PLAIN),
    "torus": _text(
        256, "64 MiB", "network: {topology: torus, sides: [16, 16], bandwidth: 5 GB/s, latency: 1 us}", NOTHING, PLAIN,
        _algorithm("torus-ring", n_rows=16),
    ),
    "torus by events, payload": _text(
        64, "16 MiB", "network: {topology: torus, sides: [8, 8], bandwidth: 5 GB/s, latency: 1 us}", PLAIN
    ),
    "slowing link": _text(
        64, "64 MiB", RING[:-1] + ", profile: [{at: 1 ms, bandwidth: 10 GB/s}]}", NOTHING, PLAIN
    ),
    "packets": _text(8, "64 MiB", SWITCH[:-1] + ", sharing: fifo, packet: 16 KiB}", NOTHING, PLAIN),
    "packets of 48 bytes": _text(4, "1 MiB", SWITCH[:-1] + ", sharing: fifo, packet: 48 B}", NOTHING, PLAIN),
    "window": _text(16, "64 MiB", SWITCH[:-1] + ", window: 256 KiB}", NOTHING, PLAIN),
    "window, small": _text(8, "64 MiB", SWITCH[:-1] + ", window: 16 KiB}", NOTHING, PLAIN),
}  # fmt: skip

#: Links that several senders share.
SHARED = {
    "racks": _text(32, "64 MiB", RACKS + "}", NOTHING, PLAIN),
    "racks, interleaved": _text(32, "64 MiB", RACKS + ", placement: interleaved}", NOTHING, PLAIN),
    "racks, plots": _text(32, "64 MiB", RACKS + ", placement: interleaved}", NOTHING),
    "racks, ecmp": _text(32, "64 MiB", RACKS + ", routes: ecmp, placement: interleaved}", NOTHING, PLAIN),
    "racks, random places": _text(32, "64 MiB", f"{RACKS}, routes: ecmp, placement: {SHUFFLED[32]}}}", NOTHING, PLAIN),
    "racks, fifo": _text(32, "64 MiB", RACKS + ", sharing: fifo, placement: interleaved}", NOTHING, PLAIN),
    "racks, direct": _text(32, "64 MiB", RACKS + "}", NOTHING, PLAIN, _algorithm("direct")),
    "racks, swing": _text(32, "64 MiB", RACKS + "}", NOTHING, PLAIN, _algorithm("swing")),
    "racks, carried": _text(32, "64 MiB", RACKS + ", placement: interleaved}", PLAIN),
    "hosts, one ring": _text(64, "1 GB", HOSTS + "}", NOTHING, PLAIN),
    "hosts, channels": _text(
        64, "1 GB", HOSTS + "}", NOTHING, PLAIN, _algorithm("channel-ring", n_channels=8, node_size=8)
    ),
    "hosts, hierarchical": _text(
        128, "1 GB", HOSTS + "}", NOTHING, PLAIN, _algorithm("hierarchical", node_size=8)
    ),
    "hosts on racks, interleaved": _text(
        48, "1 GB", f"{HOSTS}, {BETWEEN % 6}, sharing: fair, routes: ecmp, placement: interleaved}}", NOTHING, PLAIN,
        _algorithm("channel-ring", n_channels=8, node_size=8),
    ),
    "hosts on racks, random": _text(
        32, "1 GB", f"{HOSTS}, {BETWEEN % 4}, sharing: fair, routes: ecmp, placement: {SHUFFLED[32]}}}", NOTHING, PLAIN,
        _algorithm("channel-ring", n_channels=4),
    ),
    "hosts on racks, in order": _text(
        64, "1 GB", f"{HOSTS}, {BETWEEN % 8}, sharing: fair, routes: ecmp}}", NOTHING, PLAIN,
        _algorithm("channel-ring", n_channels=8, node_size=8),
    ),
    "fat-tree": _text(
        64, "64 MiB", FAT_TREE + "}", NOTHING, PLAIN, _algorithm("halving-doubling"),
    ),
    "fat-tree, random places": _text(
        96, "64 MiB",
        f"{FAT_TREE}, placement: {SHUFFLED[96]}}}", NOTHING, PLAIN,
    ),
    "dragonfly": _text(
        36, "64 MiB",
        "network: {topology: dragonfly, groups: 5, routers_per_group: 4, hosts_per_router: 2, bandwidth: 25 GB/s, "
        "latency: 1 us}",
        NOTHING, PLAIN, _algorithm("direct"),
    ),
    "mesh": _text(
        64, "16 MiB", "network: {topology: mesh, sides: [8, 8], bandwidth: 5 GB/s, latency: 1 us}", NOTHING, PLAIN
    ),
    "torus, other algorithm": _text(
        64, "16 MiB", "network: {topology: torus, sides: [4, 4, 4], bandwidth: 5 GB/s, latency: 1 us}", NOTHING, PLAIN,
        _algorithm("halving-doubling"),
    ),
    "two jobs": _text(
        16, "64 MiB", RACKS + ", placement: [0,1,2,3,8,9,10,11,16,17,18,19,24,25,26,27]}", NOTHING, PLAIN,
        "jobs: [{name: other, workers: [4,5,6,7,12,13,14,15,20,21,22,23,28,29,30,31], message: 64 MiB}]",
    ),
    "background": _text(
        32, "64 MiB", RACKS + "}", NOTHING, PLAIN,
        "background: [{name: storage, from: 0, to: 9, burst: 64 KiB, rate: 10 GB/s}]",
    ),
}  # fmt: skip

COMPILED, UNASKED = "engine: compiled", "report: {plots: [], transfers: 0}"
ALL_ROWS = "report: {plots: [], transfers: all}"
WIDE_RACKS = RACKS.replace("hosts_per_leaf: 8", "hosts_per_leaf: 150")
SLOW_BELOW = (
    "regimes: [{up_to: 64 KiB, bandwidth: 5 GB/s, latency: 1 us}, {up_to: 1 GiB, bandwidth: 25 GB/s, latency: 2 us}]"
)

#: The compiled loop: parts of transfers, links by size and shared ones, with rows and without.
LOOP = {
    "compiled, window": _text(64, "256 MiB", SWITCH[:-1] + ", window: 1 MiB}", NOTHING, PLAIN),
    "compiled, window, small": _text(32, "64 MiB", SWITCH[:-1] + ", window: 64 KiB}", NOTHING, PLAIN),
    "compiled, window, too many parts": _text(512, "1 GiB", SWITCH[:-1] + ", window: 1 MiB}", NOTHING, PLAIN),
    "compiled, window, no rows": _text(64, "256 MiB", SWITCH[:-1] + ", window: 1 MiB}", NOTHING, UNASKED),
    "compiled, packets": _text(32, "64 MiB", SWITCH[:-1] + ", sharing: fifo, packet: 4 KiB}", NOTHING, PLAIN),
    "compiled, packets, no rows": _text(
        64, "64 MiB", SWITCH[:-1] + ", sharing: fifo, packet: 4 KiB}", NOTHING, UNASKED
    ),
    "compiled, packets, too many": _text(
        16, "256 MiB", SWITCH[:-1] + ", sharing: fifo, packet: 1 KiB}", NOTHING, PLAIN
    ),
    "compiled, packets on racks": _text(
        32, "64 MiB", RACKS + ", sharing: fifo, packet: 4 KiB, placement: interleaved}", NOTHING, PLAIN
    ),
    "compiled, by size": _text(128, "64 MiB", f"{SWITCH[:-1]}, sharing: fifo, {SLOW_BELOW}}}", NOTHING, PLAIN),
    "compiled, no rows": _text(600, "64 MiB", WIDE_RACKS + "}", NOTHING, PLAIN),
    "compiled, a million rows": _text(600, "64 MiB", WIDE_RACKS + "}", NOTHING, ALL_ROWS),
    "compiled, a million rows, fifo": _text(600, "64 MiB", WIDE_RACKS + ", sharing: fifo}", NOTHING, ALL_ROWS),
    "compiled, channels, all rows": _text(
        128, "1 GB", HOSTS + "}", NOTHING, ALL_ROWS, _algorithm("channel-ring", n_channels=8, node_size=8)
    ),
}
LOOP = {name: f"{text}\n{COMPILED}" for name, text in LOOP.items()}

#: Many runs in one command, and trainings.
STUDIES = {
    "sweep of sizes": _text(
        16, "1 MiB", RING, NOTHING, PLAIN,
        "sweep: {over: {message: {from: 1 KiB, to: 1 GiB, factor: 2}, dtype: [float32, int8]}}",
    ).replace("\nmessage: 1 MiB", ""),
    "sweep of workers": _text(
        16, "64 MiB", SWITCH, NOTHING, "sweep: {over: {workers: {from: 2, to: 256, factor: 2}}}", PLAIN
    ).replace("\nworkers: 16", ""),
    "sweep with plots": _text(
        16, "64 MiB", SWITCH, NOTHING, "sweep: {over: {workers: {from: 2, to: 64, factor: 2}}}",
        "report: {plots: [time-vs-workers, time-breakdown]}",
    ).replace("\nworkers: 16", ""),
    "training": """scenario_version: 1
workers: 4
network: {topology: ring, bandwidth: 1 GB/s, latency: 1 us}
training:
  model: {name: digits, hidden: [32], examples: 1000}
  batch: 16
  steps: 40
  optimizer: {name: sgd, learning_rate: 0.1}
""",
}  # fmt: skip

RUNS: dict[str, str] = PRIVATE | SHARED | LOOP | STUDIES
