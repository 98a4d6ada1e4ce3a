"""Where commands write: no folder is made by a slip of a key, and nothing that was given is written over."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ringnet.cli import app

HERE = Path(__file__).parent
LOG = HERE / "data" / "logs" / "nccl-2019.txt"
PROFILE = HERE.parent / "scenarios" / "data" / "v100-profile.yaml"
RING = """
scenario_version: 1
name: ring
workers: 4
message: 64 KiB
network: {bandwidth: 1 GB/s, latency: 1 us}
"""
PREDICT = ("predict", str(PROFILE), "--workers", "8")


@pytest.mark.parametrize(
    ("option", "command"),
    [
        ("--msccl", ("export", "ring.yaml")),
        ("--goal", ("export", "ring.yaml")),
        ("--out", ("calibrate", str(LOG))),
        ("--plot", ("calibrate", str(LOG), "--out", "m.yaml")),
        ("--csv", ("calibrate", str(LOG), "--out", "m.yaml")),
        ("--plot", PREDICT),
        ("--csv", PREDICT),
        ("--tuner", ("compare", "ring.yaml")),
        ("--save-result", ("run", "ring.yaml")),
        ("--out", ("measure", "--workers", "2")),
        ("FILE", ("init",)),
    ],
)
def test_a_folder_that_is_not_there_is_told_and_not_made(own_folder, option, command):
    (own_folder / "ring.yaml").write_text(RING)
    named = [option] if option.startswith("--") else []
    done = CliRunner().invoke(app, [*command, *named, "none/such/a.npy"])
    assert done.exit_code == 2, done.output
    right = "one that is there; mkdir -p none/such makes it"
    assert done.stderr == f"Error: {option}: there is no such folder; got none/such; right would be: {right}\n"
    assert [path.name for path in own_folder.iterdir()] == ["ring.yaml"]


def test_both_are_told_at_once(own_folder):
    done = CliRunner().invoke(app, [*PREDICT, "--plot", "a/p.png", "--csv", "b/t.csv"])
    got = [re.search(r"got (\w+)", line)[1] for line in done.stderr.splitlines()]
    assert got == ["a", "b"]


SOURCES = {
    "own.yaml": "{scenario_version: 1, data: own.npy, network: {bandwidth: 1 GB/s, latency: 1 us}}",
    "log.txt": LOG.read_text(),
    "machine.yaml": PROFILE.read_text(),
}


@pytest.fixture
def sources(own_folder):
    for name, text in SOURCES.items():
        (own_folder / name).write_text(text)
    np.save("own.npy", np.ones((4, 8), np.float32))
    (own_folder / "link.txt").symlink_to("log.txt")
    done = CliRunner().invoke(app, ["run", "own.yaml", "--no-plots", "--out", "before"])
    assert done.exit_code == 0, done.output
    return own_folder


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("calibrate log.txt --out log.txt", "--out: what is read would be written over"),
        ("calibrate log.txt --out link.txt", "--out: what is read would be written over"),
        ("calibrate log.txt --out ./log.txt", "--out: what is read would be written over"),
        ("calibrate log.txt --out m.yaml --csv m.yaml", "--csv: --out would be written there, too"),
        ("calibrate log.txt --out m.png", "--plot: --out would be written there, too"),
        ("predict machine.yaml --workers 8 --csv machine.yaml", "--csv: what is read would be written over"),
        (
            "predict machine.yaml --workers 8 --plot machine.yaml",
            "--plot: what is read would be written over",
        ),
        (
            "predict machine.yaml --workers 8 --plot p.bmp",
            "--plot: there is no such format of figures; got p.bmp; right would be: p.png, p.svg, p.pdf",
        ),
        ("predict machine.yaml --workers 8 --csv /dev/null", "--csv: the target is no regular file"),
        ("predict machine.yaml --workers 8 --csv before", "--csv: the target is a folder"),
        (
            "predict machine.yaml --workers 8 --csv before/summary.csv",
            "--csv: the file belongs to the results",
        ),
        ("export own.yaml --msccl own.yaml", "--msccl: what is read would be written over"),
        ("export own.yaml --goal own.npy", "--goal: what is read would be written over"),
        ("export own.yaml --goal a.txt --msccl a.txt", "--goal: both texts would go to one file"),
        ("export before --goal before/run.json", "--goal: the file belongs to the results"),
        ("compare own.yaml --tuner own.yaml", "--tuner: what is read would be written over"),
        (
            "compare own.yaml --tuner before/t.csv --out before",
            "--tuner: the folder of --out is replaced whole",
        ),
        ("run own.yaml --save-result own.npy", "--save-result: what is read would be written over"),
        ("run own.yaml --save-result before", "--save-result: the folder holds results"),
        (
            "run own.yaml --out before --save-result before",
            "--save-result: the folder of --out is replaced whole",
        ),
        (
            "run own.yaml --out before --save-result before/x.npy",
            "--save-result: the folder of --out is replaced whole",
        ),
        ("blame own.yaml --out .", "--out: own.yaml is read, and would go with"),
        ("run own.yaml --set data=before/own.npy --out before", "--out: own.npy is read, and would go with"),
        ("init own.yaml", "there is such a file already"),
    ],
)
def test_nothing_that_was_given_is_written_over(sources, command, told):
    if "before/own.npy" in command:  # a folder of results that says that the data is its own
        manifest = sources / "before" / "run.json"
        manifest.write_text(manifest.read_text().replace('"run.json"', '"run.json", "own.npy"'))
        shutil.copy("own.npy", "before/own.npy")
    before = _contents(sources)
    done = CliRunner().invoke(app, command.split())
    assert (done.exit_code, done.stderr.count(told)) == (2, 1), done.output
    assert _contents(sources) == before


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts}


def test_results_are_run_again_into_their_own_place(sources):
    done = CliRunner().invoke(app, ["run", "before", "--no-plots", "--out", "before"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", ["blame", "compare", "numerics", "step", "whatif"])
def test_no_study_replaces_the_folder_that_its_scenario_stands_in(own_folder, command):
    given = own_folder / "given"
    given.mkdir()
    (given / "ring.yaml").write_text(RING)
    more = ["--if", "message=1 KiB"] if command == "whatif" else []
    done = CliRunner().invoke(app, [command, "given/ring.yaml", *more, "--out", "given"])
    assert done.exit_code == 2, done.output
    assert "--out: ring.yaml is read, and would go with the folder that is replaced" in done.stderr
    assert (given / "ring.yaml").read_text() == RING
