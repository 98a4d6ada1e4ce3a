"""`check` agrees with `run`: whatever one refuses, the other refuses too, with file, line, key and remedy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.cli.check import preview_of
from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

ONE_WAY = [{"from": place, "to": (place + 1) % 4, "duplex": "one-way"} for place in range(4)]
NETWORKS = [
    {"topology": "ring"},
    {"topology": "switch"},
    {"topology": "fully-connected"},
    {"topology": "mesh", "sides": [2, 2]},
    {"topology": "custom", "cables": ONE_WAY},
    {"topology": "leaf-spine", "leaves": 2, "routes": "ecmp"},
    {"topology": "fat-tree", "k": 4, "sharing": "fifo", "packet": "64 B"},
    {"topology": "switch", "reduction": {}},
    {"topology": "leaf-spine", "leaves": 2, "reduction": {"rate": "2 GB/s"}},
]
BESIDE = [
    {},
    {"background": [{"from": 0, "to": 1, "burst": "64 B", "rate": "10 MB/s"}]},
    {"background": [{"from": 2, "to": 1, "burst": "64 B"}]},
    {"jobs": [{"workers": [1, 0], "message": "64 B"}]},
    {"jobs": [{"workers": [0, 2], "message": "64 B", "algorithm": "direct"}]},
]


@st.composite
def scenarios(draw):
    algorithm = draw(st.sampled_from(sorted(ALGORITHMS)))
    collective = draw(st.sampled_from(ALGORITHMS[algorithm].collectives))
    keys = {
        "scenario_version": 1,
        "workers": draw(st.sampled_from([2, 3, 4, 4])),
        "message": draw(st.sampled_from(["0 B", "64 B", "1 KiB"])),
        "algorithm": algorithm,
        "collective": collective,
        "engine": draw(st.sampled_from(["auto", "auto", "events", "recurrence"])),
        "worker": {"sends": draw(st.sampled_from(["eager", "rendezvous"]))},
    }
    if draw(st.booleans()) and "root" in ALGORITHMS[algorithm].parameters:
        keys["algorithm"] = {"name": algorithm, "root": draw(st.integers(0, 4))}
    network = {"bandwidth": "1 GB/s", "latency": "1 us"} | draw(st.sampled_from(NETWORKS))
    return keys | {"network": network} | draw(st.sampled_from(BESIDE))


def refusal(act):
    try:
        act()
    except InputError as error:
        return error.faults
    return ()


@given(scenarios())
def test_check_refuses_what_run_refuses_and_nothing_else(keys):
    text = json.dumps(keys, indent=1)
    told = refusal(lambda: preview_of(loads(text, file="s.yaml")))
    if not told:
        assert refusal(lambda: simulate(loads(text, file="s.yaml"))) == ()
        return
    assert refusal(lambda: simulate(loads(text, file="s.yaml"))) != ()
    for fault in told:
        assert fault.path, fault
        assert fault.file == "s.yaml", fault
        assert fault.line, fault
        assert fault.right or fault.nearest, fault


@pytest.mark.parametrize("algorithm", ["direct", "halving-doubling", "binary-tree", "bidirectional-ring"])
def test_a_ring_has_no_way_back(algorithm):
    text = f"scenario_version: 1\nworkers: 4\nmessage: 1 KiB\nalgorithm: {algorithm}\n"
    text += "network:\n  topology: ring\n  bandwidth: 1 GB/s\n  latency: 1 us\n"
    (fault,) = refusal(lambda: loads(text, file="s.yaml"))
    assert (fault.file, fault.line, fault.path) == ("s.yaml", 6, "network.topology")
    assert fault.message.startswith(f"{algorithm} has no way on it: ")
    assert fault.right == "topology: switch, or algorithm: ring"
