"""A file that a command shall write to a folder that is not there: told by its option, and nothing is made."""

from __future__ import annotations

from pathlib import Path

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
    assert done.stderr == f"Error: {option}: there is no such folder; got none/such\n"
    assert [path.name for path in own_folder.iterdir()] == ["ring.yaml"]


def test_both_are_told_at_once(own_folder):
    done = CliRunner().invoke(app, [*PREDICT, "--plot", "a/p.png", "--csv", "b/t.csv"])
    assert [line.partition("; ")[2] for line in done.stderr.splitlines()] == ["got a", "got b"]
