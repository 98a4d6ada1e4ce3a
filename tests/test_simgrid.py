"""Every case of tests/data/simgrid_cases.csv, run in SimGrid: private and shared links, jobs, other traffic.

A transfer waits the latency of its route and then moves at its max-min fair rate, which is ringnet's ``sharing: fair``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ringnet.collectives import ALGORITHMS, split_sizes
from ringnet.engines import Trace, Workers
from ringnet.engines.events import Job, Traffic, run_jobs
from ringnet.networks import TOPOLOGIES, LinkChange, Network, OverTime, change_links

CASES = pd.read_csv(Path(__file__).parent / "data/simgrid_cases.csv", comment="#", keep_default_na=False).set_index(
    "case", drop=False
)
REDUCE_BYTES_PER_FLOP = 4.0  # 0.25 flop for each byte received
FLOWS = [name for name in CASES.index if name[0] == "D"]
RINGS = [name for name in CASES.index if name[0] != "D"]
#: SimGrid shares in inverse proportion to latency where the flows on a link differ in it; ringnet shares fairly.
UNFAIR_THERE = {"P1-1M": 90.937477e-6, "P1-64M": 5162.902166e-6}


def wired(n_workers: int, links: dict[str, tuple[float, float]], route: Callable[[int, int], list[str]]) -> Network:
    """A network from its links by name, with bandwidth and latency, and the names of each route."""
    numbers = {name: number for number, name in enumerate(links)}
    bandwidth_Bps, latency_s = np.array(list(links.values())).T
    return Network(
        "wired",
        n_workers,
        tuple(links),
        bandwidth_Bps,
        latency_s,
        lambda src, dst: tuple(numbers[name] for name in route(src, dst)),
        sharing="fair",
    )


def private_ring(changes: dict[str, LinkChange] | None = None, n_workers: int = 8) -> Network:
    network = TOPOLOGIES["ring"].build(n_workers, bandwidth_Bps=50e9, latency_s=500e-9)
    return replace(change_links(network, changes or {}), sharing="fair")


def changing_ring(*changes: tuple[float, float]) -> Network:
    network = private_ring()
    return replace(network, behaviours={3: OverTime(50e9, 500e-9, changes)})


def star(
    n: int,
    shared: tuple[float, float],
    slow: dict[int, float] | None = None,
    crosses: Callable[[int, int], bool] | None = None,
) -> Network:
    """Private links up and down, and one shared link that some routes cross."""
    rate = {host: (slow or {}).get(host, 50e9) for host in range(n)}
    links = {f"{way}{host}": (rate[host], 250e-9) for way, host in product(("up", "down"), range(n))}

    def route(src: int, dst: int) -> list[str]:
        middle = ["bb"] if crosses is None or crosses(src, dst) else []
        return [f"up{src}", *middle, f"down{dst}"]

    return wired(n, links | {"bb": shared}, route)


def across(src: int, dst: int) -> bool:
    return src // 4 != dst // 4


def two_way_ring(places: list[int]) -> Network:
    """A full-duplex ring of 8, the shorter way; rank k sits at places[k]."""
    links = {f"{way}{host}": (50e9, 500e-9) for way, host in product("+-", range(8))}

    def route(src: int, dst: int) -> list[str]:
        start, distance = places[src], (places[dst] - places[src]) % 8
        if distance <= 4:
            return [f"+{(start + hop) % 8}" for hop in range(distance)]
        return [f"-{(start - hop) % 8}" for hop in range(8 - distance)]

    return wired(8, links, route)


def torus(*sides: int) -> Network:
    """Full-duplex links, dimension by dimension, the shorter way around."""
    n = int(np.prod(sides))
    links = {f"{host}.{axis}{way}": (50e9, 500e-9) for host, axis, way in product(range(n), range(len(sides)), "+-")}
    weights = [int(np.prod(sides[:axis])) for axis in range(len(sides))]

    def route(src: int, dst: int) -> list[str]:
        here, names = src, []
        for axis, (side, weight) in enumerate(zip(sides, weights, strict=True)):
            distance = (dst // weight - here // weight) % side
            step, way = (1, "+") if distance <= side / 2 else (-1, "-")
            for _ in range(min(distance, side - distance)):
                names.append(f"{here}.{axis}{way}")
                place = here // weight % side
                here += ((place + step) % side - place) * weight
        return names

    return wired(n, links, route)


def fat_tree(places: list[int], up_links: int) -> Network:
    """Four leaves of four hosts; up link of a flow by the host that it goes to, modulo their number."""
    links = {f"{way}{host}": (50e9, 250e-9) for way, host in product(("up", "down"), range(16))}
    links |= {f"{way}{leaf}.{spine}": (50e9, 250e-9) for way, leaf, spine in product("^v", range(4), range(up_links))}

    def route(src: int, dst: int) -> list[str]:
        a, b = places[src], places[dst]
        spine = b % up_links
        middle = [] if a // 4 == b // 4 else [f"^{a // 4}.{spine}", f"v{b // 4}.{spine}"]
        return [f"up{a}", *middle, f"down{b}"]

    return wired(16, links, route)


def trunks(n: int) -> Network:
    """Two rings of n over the same n one-way links."""
    links = {f"t{host}": (50e9, 500e-9) for host in range(n)}
    return wired(2 * n, links, lambda src, dst: [f"t{src % n}"])


H4 = {"2->3": LinkChange(10e9), "5->6": LinkChange(20e9, 20e-6)}
H5 = {f"{i}->{(i + 1) % 8}": LinkChange(10e9 * (i + 1), 500e-9 * (i + 1)) for i in range(8)}
NETWORKS: dict[str, Callable[[], Network]] = {
    "H0": private_ring,
    "H1": lambda: private_ring({"3->4": LinkChange(25e9)}),
    "H2": lambda: private_ring({"3->4": LinkChange(5e9)}),
    "H3": lambda: private_ring({"3->4": LinkChange(latency_s=10e-6)}),
    "H4": lambda: private_ring(H4),
    "H5": lambda: private_ring(H5),
    "K0": private_ring,
    "K1": private_ring,
    "X4": private_ring,
    "V1": lambda: changing_ring((20e-6, 10e9), (60e-6, 50e9)),
    "V2": lambda: changing_ring((1e-3, 10e9), (3e-3, 50e9)),
    **{f"U{case}": lambda n=n: private_ring(n_workers=n) for case, n in ((1, 7), (2, 6), (3, 7), (4, 8), (5, 16))},
    "X1": lambda: private_ring({"3->4": LinkChange(5e9)}, 7),
    "B1": lambda: star(8, (100e9, 0.0)),
    "S1": lambda: star(8, (100e9, 0.0)),
    "X2": lambda: star(8, (100e9, 0.0)),
    "B2": lambda: star(8, (30e9, 1e-6)),
    "B3": lambda: star(8, (100e9, 0.0), slow={3: 5e9}),
    "B4": lambda: star(8, (30e9, 2e-6), crosses=across),
    "B5": lambda: star(8, (60e9, 2e-6), crosses=across),
    **{f"R{case}": lambda: star(8, (100e9, 1e-6)) for case in (1, 2, 3)},
    "R4": lambda: star(16, (200e9, 1e-6)),
    "X3": lambda: star(16, (200e9, 1e-6), slow={3: 10e9}),
    "R5": lambda: trunks(4),
    "R6": lambda: trunks(4),
    "R7": lambda: trunks(8),
    "P1": lambda: two_way_ring([6, 1, 4, 5, 3, 0, 2, 7]),
    "P2": lambda: two_way_ring([3 * rank % 8 for rank in range(8)]),
    "T1": lambda: torus(4, 4),
    "T2": lambda: torus(4, 4, 4),
    "F1": lambda: fat_tree([*range(16)], 4),
    "F2": lambda: fat_tree([*range(16)], 1),
    "F3": lambda: fat_tree([4 * rank % 16 + rank // 4 for rank in range(16)], 1),
}
SECOND_STARTS = {"R3": 50e-6, "R7": 20e-6}
FLOPS = {"K0": {}, "K1": {5: 1e9}, "X2": {5: 1e9}}


def workers(case: str, n_workers: int, sends: str, start_s: float) -> Workers:
    behave = Workers.alike(n_workers, sends=sends, start_s=start_s)
    if case in FLOPS:
        behave.reduce_Bps[:] = 10e9 * REDUCE_BYTES_PER_FLOP
        for worker, flops in FLOPS[case].items():
            behave.reduce_Bps[worker] = flops * REDUCE_BYTES_PER_FLOP
    return behave


def jobs(row: pd.Series, network: Network, sends: str) -> list[Job]:
    """One ring over all workers, or one over each half of them."""
    case, sizes = row["case"].partition("-")[0], [int(size) for size in str(row["message_bytes"]).split(",")]
    each = int(row["n_workers"]) // len(sizes)
    made = []
    for number, size in enumerate(sizes):
        places = range(number * each, (number + 1) * each)
        own = replace(network, n_workers=each, find_route=lambda a, b, p=places: network.find_route(p[a], p[b]))
        start_s = SECOND_STARTS.get(case, 0.0) if number else 0.0
        schedule = ALGORITHMS["ring"].build(each, "all-reduce")
        chunk_bytes = 4 * split_sizes(size // 4, each)
        made.append(Job(schedule, own, workers(case, each, sends, start_s), chunk_bytes))
    return made


def run(name: str, sends: str) -> list[Trace]:
    row, case = CASES.loc[name], name.partition("-")[0]
    network = NETWORKS[case]()
    background = [Traffic("other", (3,), 20_000_000)] if case == "X4" else []
    return run_jobs(jobs(row, network, sends), network, background)


def ends(traces: list[Trace]) -> list[float]:
    return [end for trace in traces for end in trace.workers["end_s"].tolist()]


@pytest.mark.parametrize("name", RINGS)
def test_rendezvous_and_the_end_of_every_rank(name: str) -> None:
    expected = [float(end) for end in CASES.loc[name, "rendezvous_rank_end_times_s"].split(";")]
    assert ends(run(name, "rendezvous")) == pytest.approx(expected, rel=1e-9, abs=0)
    assert max(expected) == pytest.approx(float(CASES.loc[name, "rendezvous_s"]), rel=1e-9, abs=0)


@pytest.mark.parametrize("name", RINGS)
def test_eager_sends_that_share_fairly(name: str) -> None:
    expected = UNFAIR_THERE.get(name, float(CASES.loc[name, "eager_fair_s"]))
    traces = run(name, "eager")
    # The figures for P1 are printed to a picosecond.
    assert max(ends(traces)) == pytest.approx(expected, rel=1e-9, abs=1e-12 if name in UNFAIR_THERE else 0)
    if groups := CASES.loc[name, "eager_fair_group_ends_s"]:
        assert [max(ends([trace])) for trace in traces] == pytest.approx(
            [*map(float, groups.split(";"))], rel=1e-9, abs=0
        )


# --------------------------------------------------------------------------------------------------- plain flows

US = 1e-6
DUMBBELL = {
    "D1": [(10e6, 0)] * 2,
    "D2": [(1e6, 0), (2e6, 0), (3e6, 0), (4e6, 0)],
    "D3": [(10e6, 0), (2e6, 200)],
}
DUMBBELL["D6"] = [(4e6, 0), (4e6, 100), (4e6, 300), (4e6, 1000)]
ACCESS = {"D4": [1e9, 4e9, 50e9], "D5": [1e9, 1.5e9, 3e9, 50e9, 50e9]}
PARKING = {"D7": [10e6] * 4, "D8": [10e6, 1e6, 5e6, 20e6]}


def flow_ends(links: dict[str, tuple[float, float]], flows: list[tuple[list[str], float, float]]) -> list[float]:
    """When each flow ends, of (links, bytes, start in microseconds): two workers each, the first of which sends."""
    made = []
    for names, n_bytes, start_us in flows:
        network = wired(2, links, lambda _src, _dst, names=names: names)
        schedule = ALGORITHMS["ring"].build(2, "reduce-scatter")
        # Worker 0 sends chunk 0 and worker 1 sends chunk 1, which is empty; both start when the flow does.
        behave = Workers.alike(2, start_s=start_us * US)
        made.append(Job(schedule, network, behave, np.array([int(n_bytes), 0])))
    traces = run_jobs(made, replace(made[0].network, n_workers=2))
    return [float(trace.workers["end_s"].max()) for trace in traces]


def plain_flows(name: str) -> list[float]:
    trunk = {"trunk": (10e9, US)}
    if name in DUMBBELL:
        return flow_ends(trunk, [(["trunk"], n_bytes, start) for n_bytes, start in DUMBBELL[name]])
    if name in ACCESS:
        own = {f"a{flow}": (rate, 0.0) for flow, rate in enumerate(ACCESS[name])}
        return flow_ends(trunk | own, [([link, "trunk"], 10e6, 0) for link in own])
    rates = {"L0": 10e9, "L1": 4e9, "L2": 6e9}
    # Every path has 3 us: what the crossing flows lack comes on a link of their own.
    links = {name: (rate, US) for name, rate in rates.items()} | {"own": (1e15, 2 * US)}
    sizes = PARKING[name]
    crossing = [([link, "own"], n_bytes, 0.0) for link, n_bytes in zip(rates, sizes[1:], strict=True)]
    return flow_ends(links, [([*rates], sizes[0], 0.0), *crossing])


@pytest.mark.parametrize("name", FLOWS)
def test_plain_flows(name: str) -> None:
    """D7L and D8L are traps, flows that differ in latency: ringnet is fair there, SimGrid with equal latencies."""
    fair = name.removesuffix("L")
    expected = [float(end) for end in CASES.loc[fair, "flow_end_times_s"].split(";")]
    assert plain_flows(fair) == pytest.approx(expected, rel=1e-9, abs=0)
