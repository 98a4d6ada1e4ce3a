"""Links that several senders share: whole processes beside SimGrid's, and what a settlement takes.

SimGrid's program is compiled where ``g++`` and Debian's ``libsimgrid-dev`` are; elsewhere what it took stands in.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from measuring import HERE, in_turn, python, wall_s

from ringnet.engines.compiled.run import LOOP
from ringnet.engines.machine_code import compiled
from ringnet.runs.parts import RunParts, build
from ringnet.scenario import loads

#: Seconds of SimGrid by workers, and what is wanted: where it is installed, a multiple of what it takes.
STANDS_IN = {64: 0.6, 256: 1.5, 1024: 60.0}
AT_MOST = {256: 2.0, 1024: 1.0}
#: What a run of 64 may take beyond one of eight workers: what there is to simulate, and to write of it.
START_AND_S = 0.1
MESSAGE_BYTES = 64 * 2**20
RUNS = [  # workers, algorithm, sends
    (64, "ring", "eager"),
    (256, "ring", "eager"),
    (256, "ring", "rendezvous"),
    (1024, "ring", "eager"),
    (1024, "ring", "rendezvous"),
    (1024, "halving-doubling", "eager"),
]


def scenario_of(n_workers: int, algorithm: str, sends: str) -> str:
    """Return a scenario: workers in a random order over the leaves of a leaf-spine, links shared fairly."""
    places = np.random.default_rng(1).permutation(n_workers).tolist()
    network = {"topology": "leaf-spine", "hosts_per_leaf": 8, "spines": 4, "placement": places}
    return json.dumps(
        {
            "scenario_version": 1,
            "workers": n_workers,
            "message": MESSAGE_BYTES,
            "payload": "none",
            "algorithm": algorithm,
            "worker": {"sends": sends},
            "network": {**network, "bandwidth": "50 GB/s", "latency": "500 ns", "sharing": "fair"},
            "report": {"plots": []},
        }
    )


def network_text(parts: RunParts) -> str:
    """Return what the program for SimGrid reads: see there."""
    network = parts.network_of_run
    lines = [f"{network.n_workers} {network.n_links}"]
    lines += [
        f"{bandwidth!r} {latency!r}"
        for bandwidth, latency in zip(network.bandwidth_Bps.tolist(), network.latency_s.tolist(), strict=True)
    ]
    for src, dst in zip(*(ends.tolist() for ends in parts.schedule.pairs), strict=True):
        route = network.route(src, dst)
        lines.append(" ".join(map(str, (src, dst, len(route), *route))))
    return "\n".join(lines)


@pytest.fixture(scope="module")
def simgrid(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """SimGrid's program; None where it cannot be compiled."""
    program = tmp_path_factory.mktemp("simgrid") / "shared_links"
    command = ["g++", "-O2", "-o", program, HERE / "shared_links.cpp", "-lsimgrid"]
    if shutil.which("g++") is None or subprocess.run(command, check=False, capture_output=True).returncode:
        return None
    return program


@pytest.mark.parametrize("asked", RUNS)
def test_whole_runs_beside_simgrid(benchmark, table, simgrid, tmp_path, asked):
    n_workers, algorithm, sends = asked
    compiled(LOOP)  # once for a version and a machine: not part of a run
    text = scenario_of(n_workers, algorithm, sends)
    path, network, small = tmp_path / "shared.json", tmp_path / "network.txt", tmp_path / "small.json"
    path.write_text(text)
    small.write_text(scenario_of(8, algorithm, sends))
    network.write_text(network_text(build(loads(text))))
    run = partial(python, "-m", "ringnet", "run", path, "--quiet", "--out", tmp_path / "results")
    start = partial(python, "-m", "ringnet", "run", small, "--quiet", "--out", tmp_path / "small")
    starts_s, said = [], []

    def peer() -> float:
        starts_s.append(wall_s(start))
        if simgrid is None:
            return STANDS_IN[n_workers]
        command = [simgrid, network, algorithm, str(MESSAGE_BYTES), sends]
        return wall_s(lambda: said.append(float(subprocess.run(command, check=True, capture_output=True).stdout)))

    rounds = 1 if n_workers > 256 else 5
    pairs = in_turn(benchmark, run, peer, rounds=rounds)
    row = json.loads(python("-m", "ringnet", "run", path, "--json", "--out", tmp_path / "results"))
    # Where the digits are chaos, SimGrid's are others than ours: as many are the same as are said to be known.
    known = 30 * row.get("moved_share", 1e-6)
    assert all(abs(row["makespan_s"] / time_s - 1) < known for time_s in said)
    what = f"{algorithm} N={n_workers}, {sends}, leaf-spine, fair"
    if n_workers in AT_MOST:
        table.add("Ratios", f"{what}: ringnet run over SimGrid", pairs.slow_down, at_most=AT_MOST[n_workers])
    else:
        more_s = median(pairs.ours_s) - median(starts_s)
        table.add("Times", f"{what}: ringnet run beyond one of 8 workers", more_s, at_most=START_AND_S)
    table.add("Times", f"{what}: ringnet run, whole process", median(pairs.ours_s))
    table.add("Times", f"{what}: SimGrid{'' if simgrid else ', elsewhere'}", median(pairs.theirs_s))
