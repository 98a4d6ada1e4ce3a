"""Nothing is built that is too large: sizes by formula, refusals of extreme values, in little memory and time."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError, NetworkError
from ringnet.networks import TOPOLOGIES, make_network
from ringnet.payload.files import FileSource

VALUES = {
    "n_slices": (1, 3),
    "n_channels": (1, 3),
    "node_size": (1, 2),
    "root": (0, 1),
    "n_rows": (0, 2),
    "dims": ((), (2, 2)),
    "all_ports": (True, False),
    "inner": ("ring", "binomial-tree"),
    "outer": ("ring", "swing"),
    "strides": ((1,),),
    "late": (0, 1),
    "rates": ((), (1, 2), (5, 2, 2, 1)),
    "switch_above": ((), (0, 0, 1, 1, 2, 2, -1)),
}
CASES = [
    (name, collective, n_workers, dict(zip(algorithm.parameters, values, strict=True)))
    for name, algorithm in ALGORITHMS.items()
    for collective in algorithm.collectives
    for n_workers in (1, 2, 4, 7, 12)
    for values in itertools.product(*(VALUES[parameter] for parameter in algorithm.parameters))
]


def test_the_size_of_every_schedule_is_known_before_it_is_built():
    wrong, n_built = [], 0
    for name, collective, n_workers, parameters in CASES:
        try:
            schedule = ALGORITHMS[name].build(n_workers, collective, **parameters)
        except InputError:
            continue
        n_built += 1
        assert {*schedule.parameters} <= {*ALGORITHMS[name].parameters, "orders"}  # of rings, by a network
        size = ALGORITHMS[name].size_of(n_workers, collective, **parameters)
        rows = [len(step) for step in schedule.steps()]
        assert (len(rows), sum(rows)) == (schedule.n_steps, schedule.n_transfers)
        exact = size.n_chunks == schedule.n_chunks
        enough = size.n_steps >= schedule.n_steps and size.n_transfers >= schedule.n_transfers
        if not exact or not enough or size.n_transfers > 8 * max(schedule.n_transfers, n_workers):
            wrong.append((name, collective, n_workers, parameters, size))
    assert wrong == []
    assert n_built > 500


HUGE = 2305843009213693952
EXTREME = [
    (algorithm, parameter, value)
    for algorithm, kind in ALGORITHMS.items()
    for parameter, one in kind.parameters.items()
    for value in (HUGE, 10**6)
    if isinstance(one.default, int) and not isinstance(one.default, bool)
]

CODE = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from ringnet.scenario import loads
from ringnet.cli.check import preview_of
from ringnet.errors import InputError, NetworkError
from ringnet.networks import TOPOLOGIES, make_network
from ringnet.payload.files import FileSource
for text in json.loads(sys.stdin.read()):
    began = time.process_time()
    try:
        preview_of(loads(text))
        said = ""
    except InputError as error:
        said = str(error)
    print(json.dumps([said, time.process_time() - began]))
"""


def checked(*documents):
    """What `check` says of each document, in a process of 3 GiB; and how long it took."""
    texts = json.dumps([json.dumps(document) for document in documents])
    done = subprocess.run(
        [sys.executable, "-c", CODE], input=texts, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def document(workers=8, topology="switch", **others):
    network = {"topology": topology, "bandwidth": "50 GB/s", "latency": "500 ns"} | others.pop("network", {})
    common = {
        "scenario_version": 1,
        "name": "extreme",
        "workers": workers,
        "message": "8 MiB",
        "payload": "none",
    }
    return common | {"network": network} | others


def test_any_parameter_of_any_algorithm_may_be_extreme():
    documents = [
        document(algorithm={"name": algorithm, parameter: value}, collective=ALGORITHMS[algorithm].collectives[-1])
        for algorithm, parameter, value in EXTREME
    ]
    for (algorithm, parameter, value), (said, seconds) in zip(EXTREME, checked(*documents), strict=True):
        assert seconds < 20, (algorithm, parameter, value)
        assert said == "" or f"algorithm.{parameter}: " in said or "algorithm: " in said, said
        assert value < HUGE or "right would be" in said, said


def test_so_may_the_number_of_workers():
    names = [*ALGORITHMS]
    documents = [document(2**22, algorithm=name, collective=ALGORITHMS[name].collectives[0]) for name in names]
    for name, (said, seconds) in zip(names, checked(*documents), strict=True):
        assert seconds < 20, name
        assert "workers: " in said, (name, said)


def test_a_refusal_of_an_algorithm_with_parameters_names_it_too():
    ((said, _),) = checked(document(16384, algorithm={"name": "hierarchical", "node_size": 8}))
    assert said.startswith(
        "<text>:1: workers: with hierarchical too large: the schedule would have 67,305,472 transfers"
    )


def test_the_refusal_says_what_will_do():
    ((said, _),) = checked(document(algorithm={"name": "channel-ring", "n_channels": 10**9}))
    assert said.startswith(
        "<text>:1: algorithm.n_channels: too large: the schedule would have 112,000,000,000 transfers; got 1000000000; "
    )
    most = int(said.rpartition("at most ")[2])
    assert ALGORITHMS["channel-ring"].size_of(8, "all-reduce", n_channels=most).is_bearable
    assert not ALGORITHMS["channel-ring"].size_of(8, "all-reduce", n_channels=most + 1).is_bearable


@pytest.mark.parametrize("name", ["binary-tree", "binomial-tree", "pipelined-ring"])
def test_a_root_that_is_not_there_is_told_at_its_key(name):
    for collective in ("broadcast", "all-reduce"):
        with pytest.raises(InputError, match=r"no such worker among 8; got 9; right would be: 0 to 7"):
            ALGORITHMS[name].build(8, collective, root=9)


SHAPES = [
    ("leaf-spine", {"leaves": 3, "spines": 2}),
    ("leaf-spine", {"hosts_per_leaf": 2, "spines": 3}),
    ("fat-tree", {"k": 4}),
    ("dragonfly", {"groups": 4, "routers_per_group": 3, "hosts_per_router": 2}),
    ("dragonfly", {"groups": 1, "routers_per_group": 4, "hosts_per_router": 3}),
    ("fully-connected", {}),
]


@pytest.mark.parametrize(("name", "parameters"), SHAPES)
def test_links_are_counted_before_they_are_made(name, parameters):
    made = make_network(name, 9, 1e9, 0.0, **parameters)
    assert TOPOLOGIES[name].n_links(9, **parameters) == made.n_links


INSIDE = {"bandwidth": "1 GB/s", "latency": "0 s"}
LARGE = [
    {"topology": "leaf-spine", "hosts_per_leaf": 1, "spines": 100_000},
    {"topology": "leaf-spine", "hosts_per_leaf": 2**20, "spines": 2**20},
    {"topology": "fat-tree", "k": 128},
    {"topology": "dragonfly", "groups": 2**20, "routers_per_group": 2**20, "hosts_per_router": 2**20},
    {"topology": "nodes", "workers_per_host": 1, "inside": {"bandwidth": "1 GB/s", "latency": "0 s"}}
    | {"between": {"topology": "leaf-spine", "hosts_per_leaf": 1, "spines": 2**20}},
    {"topology": "nodes", "workers_per_host": 2**20, "inside": INSIDE | {"shape": "mesh"}},
]


def test_any_parameter_of_any_topology_may_be_extreme():
    for network, (said, seconds) in zip(LARGE, checked(*(document(network=one) for one in LARGE)), strict=True):
        assert seconds < 20, network
        assert said == "" or "network." in said or ": network: " in said, said


def test_a_network_of_too_many_links_is_refused_before_it_is_made():
    with pytest.raises(NetworkError, match=r"16,000,016 links, more than 4,194,304; got 1000000"):
        make_network("leaf-spine", 8, 1e9, 0.0, hosts_per_leaf=1, spines=10**6)


def test_too_many_hosts_are_told_where_their_number_is_said():
    machine = {"scenario_version": 1, "message": "4 KiB", "machine": "dgx-a100", "hosts": 100_000}
    (said, _), (more, _) = checked(machine, machine | {"hosts": 200_000})
    assert more == (
        "<text>:1: hosts: hosts of 8 hold 1,600,000 workers, more than 1,048,576; got 200000; "
        "right would be: at most 131072"
    )
    assert said == (
        "<text>:1: hosts: the network would have 4,800,016 links, more than 4,194,304; got 100000; "
        "right would be: at most 87381 hosts"
    )


def test_a_header_of_a_thousand_million_workers_is_refused(tmp_path):
    np.save(tmp_path / "data.npy", np.zeros((10**9, 0), dtype=np.float32))
    with pytest.raises(InputError, match=r"1,000,000,000 workers; got shape \(1000000000, 0\)"):
        FileSource.stacked(tmp_path / "data.npy")


def test_jobs_of_a_million_workers_are_refused_before_they_are_built():
    ((said, seconds),) = checked(document(jobs=[{"workers": 2**20, "message": "64 MiB"}] * 100))
    assert seconds < 20
    assert "jobs[0]" in said


def test_a_job_of_many_workers_is_refused_without_a_look_at_every_pair_or_step():
    ((said, seconds),) = checked(document(4, jobs=[{"workers": 100_000, "message": "1 KiB"}], payload="full"))
    assert seconds < 20
    assert said.endswith("right would be: payload: none")
