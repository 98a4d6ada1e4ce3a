"""Whole processes: how long ringnet takes to start and to answer, and what a second core brings a sweep."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from measuring import HERE, Pairs, in_turn, python, wall_s

from ringnet.scenario import loads
from ringnet.study.points import run_points

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.yaml"
NETWORK = {"bandwidth": "50 GB/s", "latency": "500 ns"}


def test_help(benchmark, table):
    nothing_s = []

    def bare() -> float:
        nothing_s.append(wall_s(lambda: python("-c", "pass")))
        return wall_s(lambda: python(HERE / "bare_typer.py", "--help"))

    pairs = in_turn(benchmark, lambda: python("-m", "ringnet", "--help"), bare, rounds=11)
    table.add("Ratios", "ringnet --help, time over a bare typer program's", pairs.slow_down)
    table.add("Times", "python -c pass, whole process", median(nothing_s))
    table.add("Times", "a bare typer program's --help, whole process", median(pairs.theirs_s))
    table.add("Times", "ringnet --help, whole process", median(pairs.ours_s), at_most=0.35)


#: A run of a few workers, as most are: starting is most of it.
SMALL = {"scenario_version": 1, "workers": 8, "message": "1 MiB", "network": NETWORK}


@pytest.mark.parametrize(
    ("command", "at_most"),
    [("check", 1.1), ("list", 1.1), ("schema", 1.1), ("run", 1.7)],
)
def test_start(benchmark, table, tmp_path, command, at_most):
    path = tmp_path / "small.yaml"
    path.write_text(json.dumps(SMALL))
    options = {"check": [path], "run": [path, "--no-plots", "--out", tmp_path / "results"]}.get(command, [])
    pairs = in_turn(
        benchmark,
        lambda: python("-m", "ringnet", command, *options),
        lambda: wall_s(lambda: python("-c", "import pandas")),
        rounds=9,
    )
    what = "ringnet run, N=8, tables and no plots" if command == "run" else f"ringnet {command}"
    table.add("Ratios", f"{what}, time over importing pandas", pairs.slow_down, at_most=at_most)


def test_many_points(benchmark, table, tmp_path):
    sizes = [f"{1000 * number} B" for number in range(1, 41)]
    over = {"workers": [4, 8, 16, 32, 64], "message": sizes}
    path = tmp_path / "points.yaml"
    path.write_text(json.dumps({**SMALL, "payload": "none", "sweep": {"over": over}}))
    options = ["--no-plots", "--quiet", "--cache", tmp_path / "kept", "--out", tmp_path / "results"]
    run = partial(python, "-m", "ringnet", "run", path, *options, "--fresh")
    one = partial(python, "-m", "ringnet", "run", path, *options, "--fresh", "--set", "sweep.over.workers=[4]")
    pairs = in_turn(benchmark, run, lambda: wall_s(lambda: one("--set", "sweep.over.message=[1 KB, 2 KB]")), rounds=3)
    assert len((tmp_path / "results" / "summary.csv").read_text().splitlines()) == 201
    table.add("Times", "ringnet run, 200 points of 4 to 64 workers, whole process", median(pairs.ours_s), at_most=3)
    each_s = median(ours - start for ours, start in zip(pairs.ours_s, pairs.theirs_s, strict=True)) / 198
    table.add("Times", "one of these points, beyond starting", each_s, at_most=0.005)


@pytest.mark.parametrize("links", ["alike", "one of them slow"])
def test_run_of_2048_workers(benchmark, table, tmp_path, links):
    scenario = {"scenario_version": 1, "workers": 2048, "message": "1 GiB", "payload": "none"}
    slow = {"links": {"5->6": {"bandwidth": "10 GB/s"}}} if links != "alike" else {}
    path = tmp_path / "many.yaml"
    path.write_text(json.dumps({**scenario, "network": NETWORK | slow, "report": {"plots": []}}))
    pairs = in_turn(
        benchmark,
        lambda: python("-m", "ringnet", "run", path, "--out", tmp_path / "results"),
        lambda: wall_s(lambda: python(HERE / "pathless.py", "run", path, "--out", tmp_path / "pathless")),
        rounds=5,
    )
    assert (tmp_path / "results" / "path.csv").exists()
    assert not (tmp_path / "pathless" / "path.csv").exists()
    assert not list((tmp_path / "results").glob("*.png"))
    what = f"ringnet run, N=2048, links {links}"
    table.add("Ratios", f"{what}, over the same without path and slowest link", pairs.slow_down, at_most=1.1)
    table.add("Times", f"{what}, tables and no plots, whole process", median(pairs.ours_s), at_most=2.5)


@pytest.mark.parametrize(("n_workers", "wanted_s"), [(65_536, 3), (1_048_576, 60)])
def test_run_of_a_large_ring(benchmark, table, tmp_path, n_workers, wanted_s):
    scenario = {"scenario_version": 1, "workers": n_workers, "message": "1 GiB", "payload": "none"}
    path = tmp_path / "large.yaml"
    path.write_text(json.dumps({**scenario, "network": NETWORK, "report": {"plots": []}}))
    run = partial(python, "-m", "ringnet", "run", path, "--out", tmp_path / "results")
    benchmark.pedantic(run, rounds=1)
    lines = (tmp_path / "results" / "workers.csv").read_text().splitlines()
    assert len(lines) == n_workers + 1
    what = f"ringnet run, N={n_workers}, all links and workers in tables, whole process"
    table.add("Times", what, benchmark.stats.stats.median, at_most=wanted_s)


# What the fastest C++ simulator took, in seconds, whole processes: ASTRA-sim, ASTRA-sim, LogGOPSim.
@pytest.mark.parametrize(
    ("algorithm", "n_workers", "peer_s"),
    [("direct", 256, 0.59), ("halving-doubling", 1024, 0.86), ("recursive-doubling", 1024, 0.06)],
)
def test_other_algorithms(benchmark, table, tmp_path, algorithm, n_workers, peer_s):
    scenario = {"scenario_version": 1, "workers": n_workers, "message": "64 MiB", "payload": "none"}
    network = NETWORK | {"topology": "fully-connected"}
    path = tmp_path / "algorithm.yaml"
    path.write_text(json.dumps({**scenario, "algorithm": algorithm, "network": network}))
    run = partial(python, "-m", "ringnet", "run", path, "--no-plots", "--out", tmp_path / "results")
    benchmark.pedantic(run, rounds=2)
    what = f"ringnet run, {algorithm}, N={n_workers}, private links, whole process"
    table.add("Times", what, benchmark.stats.stats.median, at_most=peer_s)


def study_anew(benchmark, command, path):
    """Measure a command of many simulations once, with nothing kept from earlier; results go beside the scenario."""
    options = [
        "--no-plots",
        "--quiet",
        "--fresh",
        "--cache",
        path.with_name("kept"),
        "--out",
        path.with_name("results"),
    ]
    benchmark.pedantic(partial(python, "-m", "ringnet", command, path, *options), rounds=1)


def test_comparison_of_all_algorithms(benchmark, table, tmp_path):
    scenario = {"scenario_version": 1, "workers": 1024, "message": "64 MiB", "payload": "none"}
    path = tmp_path / "all.yaml"
    path.write_text(json.dumps({**scenario, "network": NETWORK | {"topology": "fully-connected"}}))
    study_anew(benchmark, "compare", path)
    rows = (tmp_path / "results" / "compare.csv").read_text().splitlines()
    assert len(rows) > 13 * 40
    what = "ringnet compare, all algorithms, 40 sizes, N=1024, private links"
    table.add("Times", what, benchmark.stats.stats.median, at_most=12)


def test_blame_of_a_leaf_spine(benchmark, table, tmp_path):
    network = NETWORK | {
        "topology": "leaf-spine",
        "leaves": 8,
        "hosts_per_leaf": 8,
        "spines": 4,
        "sharing": "fair",
    }
    path = tmp_path / "racks.yaml"
    keys = {"scenario_version": 1, "workers": 64, "message": "64 MiB", "payload": "none"}
    path.write_text(json.dumps(keys | {"network": network}))
    study_anew(benchmark, "blame", path)
    table.add("Times", "ringnet blame, leaf-spine of 64 workers, fair", benchmark.stats.stats.median, at_most=30)


def test_quickstart(benchmark, table, tmp_path):
    benchmark.pedantic(lambda: python("-m", "ringnet", "run", QUICKSTART, "--out", tmp_path / "results"), rounds=3)
    assert list((tmp_path / "results").glob("**/*.png"))
    what = "ringnet run quickstart.yaml, plots included, whole process"
    table.add("Times", what, benchmark.stats.stats.median, at_most=6)


def spin(n_processes: int) -> float:
    """Return how long some bare loops take side by side: what the machine gives a second core."""
    loop = [sys.executable, "-c", "for _ in range(60_000_000): pass"]

    def side_by_side() -> None:
        for process in [subprocess.Popen(loop) for _ in range(n_processes)]:
            assert process.wait() == 0

    return wall_s(side_by_side)


def test_two_cores(benchmark, table):
    latencies = [f"{500 + number} ns" for number in range(24)]
    scenario = {
        "scenario_version": 1,
        "workers": 192,
        "message": "64 MiB",
        "payload": "none",
        "engine": "events",
    }
    points = loads(
        json.dumps({**scenario, "network": NETWORK, "sweep": {"over": {"network.latency": latencies}}})
    ).points()
    rows = {}

    def run(jobs: int) -> None:
        rows[jobs] = [outcome.summary for outcome in run_points(points, processes=jobs)]

    pairs: Pairs = in_turn(benchmark, lambda: run(2), lambda: wall_s(lambda: run(1)), rounds=1)
    assert rows[1] == rows[2]
    assert len({row["makespan_s"] for row in rows[1]}) == 24
    table.add("Ratios", "sweep of 24 equal points, two cores over one", pairs.speed_up, at_least=1.7)
    table.add("Ratios", "two bare loops side by side, the same (what the machine gives)", 2 * spin(1) / spin(2))
    table.add("Times", "one point of that sweep, on one core", pairs.theirs_s[0] / 24)
    table.add("Times", "that sweep, on two cores", pairs.ours_s[0])
