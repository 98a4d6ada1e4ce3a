"""The audit: every algorithm and collective, every network, alone and beside others, in packets and in windows."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import yaml

from ringnet.collectives import ALGORITHMS
from ringnet.networks import TOPOLOGIES
from ringnet.runs.parts import build, build_schedule
from ringnet.runs.simulate import _run_once
from ringnet.scenario import load, loads
from tests.audit import Ran, audit, tables_read_back_the_same
from tests.trouble import Troubled

#: Six workers at the first of eight places; a ring of links has no more than its workers.
WORKERS, PLACES = 6, 8
INSIDE = {"shape": "switch", "bandwidth": "4 GB/s", "latency": "200 ns"}
CABLES = [
    {"from": "a", "to": "b", "duplex": "half"},
    *({"from": place, "to": "ab"[place % 2]} for place in range(PLACES)),
]
SHAPES = {
    "ring": {"places": None},
    "switch": {},
    "fully-connected": {},
    "torus": {"sides": [2, 4]},
    "mesh": {"sides": [2, 4]},
    "leaf-spine": {"leaves": 2, "spines": 2, "oversubscription": 2},
    "fat-tree": {"k": 4},
    "dragonfly": {"groups": 4, "routers_per_group": 2, "hosts_per_router": 1},
    "nodes": {"workers_per_host": 4, "nics": 2, "inside": INSIDE},
    "rails": {"rails": 2, "spines": 2, "hosts_per_rack": [1, 3]},
    "custom": {"switches": ["a", "b"], "cables": CABLES},
}
FLOWS = [
    {"from": 0, "to": 1, "burst": "1 KiB", "rate": "200 MB/s"},
    {"from": 0, "to": 1, "burst": "300 B", "start": "2 us"},
    {
        "name": "on and off",
        "from": 2,
        "to": 3,
        "burst": "100 B",
        "rate": "100 MB/s",
        "on": "2 us",
        "off": "3 us",
    },
]
OTHER = {"algorithm": "ring", "collective": "all-reduce"}
JOBS = [{"name": "other", "workers": 2, "message": "3004 B", "start": "1 us"} | OTHER]
COSTS = {"send_overhead": "100 ns", "recv_overhead": "50 ns", "reduce_rate": "10 GB/s"}
#: What goes on beside the network's own keys; the message is no multiple of anything.
CONDITIONS = {
    "alone": {},
    "costs": {"worker": COSTS | {"exceptions": {"1": {"start": "2 us"}}}},
    "background": {"background": FLOWS},
    "jobs": {"jobs": JOBS, "background": FLOWS[:1]},
    "packets": {"network": {"packet": "256 B", "header": "16 B"}, "background": FLOWS},
    "window": {"network": {"window": "512 B", "packet": "256 B", "header": "16 B"}, "jobs": JOBS},
    "one at a time": {"network": {"window": {"transfers": 1}}, "background": FLOWS[1:]},
    "by size": {"network": {"regimes": [{"up_to": "512 B", "bandwidth": "700 MB/s", "latency": "3 us"}]}},
    "over time": {"network": {"profile": [{"at": "3 us", "bandwidth": "600 MB/s"}]}, "background": FLOWS},
    "an empty message": {"message": "0 B", "network": {"packet": "256 B", "header": "16 B"}},
}
SENDS = [*product(["fifo", "fair"], ["eager", "rendezvous"])]
ALL = [(name, collective) for name, one in ALGORITHMS.items() for collective in one.collectives]
#: Where algorithms that reduce in switches find such: all workers next to one, or all under a tree.
SWITCHED = {
    "nvls": ["switch"],
    "nvls-tree": ["switch"],
    "sharp": ["switch", "leaf-spine", "fat-tree", "dragonfly"],
}
SCENARIOS = Path(__file__).parents[1] / "scenarios"
FEW_TRANSFERS = 2000


def scenario(algorithm, collective, topology, condition, sharing, sends):
    """Return a small scenario; without what a ring of links cannot have."""
    more = CONDITIONS[condition]
    network = {
        "topology": topology,
        "bandwidth": "1 GB/s",
        "latency": "1 us",
        "sharing": sharing,
        "places": PLACES,
    }
    keys = {"scenario_version": 1, "workers": WORKERS, "message": "4004 B", "payload": "none", "name": "own"}
    keys |= {"algorithm": algorithm, "collective": collective}
    keys |= {key: value for key, value in more.items() if key not in ("network", "worker")}
    keys |= {"network": network | SHAPES[topology] | more.get("network", {})}
    keys |= {"worker": {"sends": sends} | more.get("worker", {})}
    if topology == "ring":
        keys.pop("jobs", None)
        keys["network"].pop("window", None)
    if collective in ("all-gather", "all-to-all", "broadcast"):
        keys["worker"].pop("reduce_rate", None)
    if sharing == "fair" and "header" not in keys["network"]:
        keys["network"].pop("packet", None)
    if ALGORITHMS[algorithm].in_switches:
        keys["network"]["reduction"] = {"rate": "6 GB/s"}
        keys["worker"]["sends"] = "eager"  # to switches that take what comes
        if "jobs" in keys:  # which would share the rate
            keys["jobs"] = [one | {"algorithm": "ring"} for one in keys["jobs"]]
    keys["network"] = {key: value for key, value in keys["network"].items() if value is not None}
    return loads(yaml.safe_dump(keys))


def audit_once(*case):
    """Audit a run without what simulates it again, link by link: that takes most of the time and is not audited."""
    one = scenario(*case)
    audit(Ran(one, _run_once(one, build(one), tries_links=False)[0]))


def rounds(shapes, first):
    """Return network, condition, sharing and sends of some runs: all conditions, with the others in turn."""
    for number, condition in enumerate(CONDITIONS, start=first):
        yield shapes[number % len(shapes)], condition, *SENDS[(number + number // len(SENDS)) % len(SENDS)]


def test_there_is_a_shape_of_every_topology():
    assert {*SHAPES} == {*TOPOLOGIES}


@pytest.mark.parametrize(("algorithm", "collective"), ALL)
def test_every_algorithm_and_collective(algorithm, collective):
    shapes = [name for name in SHAPES if name != "ring"]  # on which only neighbours have a way
    shapes = SWITCHED.get(algorithm, shapes)
    number = ALL.index((algorithm, collective))
    for case in [*rounds(shapes, number)][number // 2 % 2 :: 2]:  # the others with its other collectives
        audit_once(algorithm, collective, *case)


@pytest.mark.parametrize("topology", SHAPES)
@pytest.mark.parametrize("turn", [0, 1])
def test_every_network(topology, turn):
    for case in rounds([topology], turn):
        audit_once("ring", "all-reduce", *case)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_tables_on_disk_are_those_of_the_run(condition, tmp_path):
    sharing, sends = SENDS[[*CONDITIONS].index(condition) % len(SENDS)]
    ran = Ran.of(scenario("halving-doubling", "all-reduce", "leaf-spine", condition, sharing, sends))
    tables_read_back_the_same(ran, tmp_path)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_that_is_shipped(path):
    """The first and the last point of each, if they are small."""
    whole = load(path)
    points = [whole] if whole.sweep is None else [point.scenario for point in whole.iter_points()]
    for one in {id(point): point for point in (points[0], points[-1])}.values():
        if build_schedule(one).n_transfers <= FEW_TRANSFERS:
            audit((Troubled if one.on_failure else Ran).of(one))


@pytest.mark.parametrize(
    # Not of a ring both ways: two workers send over each link from a switch, so that it is shared fairly.
    "algorithm",
    [{"name": "channel-ring", "n_channels": n} for n in (2, 8)],
)
def test_nothing_waits_in_a_uniform_ring_with_several_channels(algorithm):
    """And what queues there, queues behind the same worker's own transfers: it is told as bandwidth."""
    keys = {"scenario_version": 1, "workers": WORKERS, "message": "64 KiB", "payload": "none"}
    keys |= {
        "network": {"topology": "switch", "bandwidth": "1 GB/s", "latency": "1 us"},
        "algorithm": algorithm,
    }
    ran = Ran.of(loads(yaml.safe_dump(keys)))
    audit(ran)
    assert ran.workers["moving_s"].to_numpy() == pytest.approx(ran.workers["end_s"].to_numpy())
    assert not ran.workers["waiting_s"].any()
    assert ran.summary["own_queueing_share"] == ran.summary["queueing_share"]
    assert "queueing" not in ran.result.sentence
