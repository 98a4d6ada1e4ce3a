"""Files that a run read are remembered by their content: a changed one is another run, and is said to be."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from ringnet.cli import app

HOOK = """
import helper
from pathlib import Path
from ringnet.collectives import ALGORITHMS

HERE = Path(__file__).parent


def at_once(n_workers, collective):
    return ALGORITHMS[(HERE / "which.txt").read_text().strip()].build(n_workers, collective)


def late(n_workers, collective):
    from dataclasses import replace

    whole = ALGORITHMS["ring"].build(n_workers, collective)

    def steps():
        (HERE / "which.txt").read_text()
        yield from whole.steps()

    return replace(whole, make_steps=steps)


def imported(n_workers, collective):
    return ALGORITHMS[helper.NAME].build(n_workers, collective)
"""
SWEEP = """
scenario_version: 1
workers: 4
algorithm: {{python: "hook.py:{function}"}}
network: {{topology: fully-connected, bandwidth: 1 GB/s, latency: 1 us}}
sweep: {{over: {{message: [64 KiB]}}}}
"""
OWN = """
scenario_version: 1
data: own.npy
network: {bandwidth: 1 GB/s, latency: 1 us}
"""


def ringnet(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


def times(*arguments):
    found = json.loads(ringnet("run", *arguments, "--allow-python", "--no-plots", "--cache", "kept", "--json").stdout)
    return [point["makespan_s"] for point in found["points"]]


@pytest.fixture
def hook(own_folder, monkeypatch):
    (own_folder / "hook.py").write_text(HOOK)
    (own_folder / "helper.py").write_text("NAME = 'ring'\n")
    (own_folder / "which.txt").write_text("ring")
    monkeypatch.syspath_prepend(own_folder)
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    return own_folder


@pytest.mark.parametrize("function", ["at_once", "late"])
def test_a_point_is_not_kept_beyond_the_files_that_its_function_reads(hook, function):
    (hook / "a.yaml").write_text(SWEEP.format(function=function))
    before = times("a.yaml", "--out", "one")
    (hook / "which.txt").write_text("direct" if function == "at_once" else "other")
    fresh = times("a.yaml", "--out", "two", "--fresh")
    assert times("a.yaml", "--out", "three") == fresh
    if function == "at_once":
        assert fresh != before
    read = json.loads((hook / "one" / "run.json").read_text())["data_sha256"]
    assert sorted(read) == ["helper.py", "hook.py", "which.txt"]


def test_files_of_python_itself_and_of_packages_are_not_the_users(hook):
    lazily = HOOK.replace("import helper", "import helper, colorsys, numpy.polynomial")
    (hook / "hook.py").write_text(lazily)
    (hook / "a.yaml").write_text(SWEEP.format(function="imported"))
    times("a.yaml", "--out", "one")
    assert sorted(json.loads((hook / "one" / "run.json").read_text())["data_sha256"]) == [
        "helper.py",
        "hook.py",
    ]


def test_results_of_other_data_are_told_apart(own_folder):
    (own_folder / "own.yaml").write_text(OWN)
    np.save("own.npy", np.ones((4, 8), np.float32))
    assert "has changed" not in ringnet("run", "own.yaml", "--out", "one").stderr
    assert "has changed" not in ringnet("run", "one", "--out", "same").stderr
    np.save("own.npy", np.ones((4, 8), np.float32) * 2)
    changed = "own.npy has changed since these results were written"
    assert changed in ringnet("run", "one", "--out", "two").stderr
    assert changed in ringnet("check", "one").stderr
    assert any(changed in note for note in json.loads((own_folder / "two" / "run.json").read_text())["notes"])
    assert "content of own.npy" in ringnet("diff", "one", "two").stdout
    assert "content of" not in ringnet("diff", "one", "same").stdout
    refused = CliRunner().invoke(app, ["draw", "own.yaml", "--results", "one"])
    assert refused.exit_code == 2
    assert changed in refused.stderr
