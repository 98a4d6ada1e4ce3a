"""``ringnet measure`` as a user runs it: on this machine, and under a real MPI."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ringnet.cli import app
from ringnet.errors import InputError
from ringnet.measure.allreduce import expected_sum
from ringnet.measure.mpi import _check_launcher
from tests.commands import wait_for

QUICK = ["--sizes", "64B..1KiB", "--factor", "4", "--repeat", "2", "--warmup", "0"]


def ringnet(*arguments):
    return CliRunner().invoke(app, ["measure", *map(str, arguments)])


def rows(text):
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_it_prints_and_writes_one_log(tmp_path):
    out = tmp_path / "ring.log"
    result = ringnet("--workers", 3, *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    assert [(row[0], row[2], row[8], row[12]) for row in rows(result.stdout)] == [
        ("64", "float", "0", "0"),
        ("256", "float", "0", "0"),
        ("1024", "float", "0", "0"),
    ]
    assert out.read_text() == result.stdout
    assert list(tmp_path.iterdir()) == [out]


def test_json_has_every_run():
    document = json.loads(ringnet("--workers", 1, *QUICK, "--dtype", "int8", "--json").stdout)
    assert [row["message_bytes"] for row in document["rows"]] == [64, 256, 1024]
    assert {len(row["in_place"]["makespan_s"]) for row in document["rows"]} == {2}


def test_a_wrong_sum_is_the_fourth_exit_code(monkeypatch):
    monkeypatch.setattr("ringnet.measure.processes.expected_sum", lambda source: expected_sum(source) + 1)
    result = ringnet("--workers", 2, "--sizes", "64B", "--repeat", 1)
    assert result.exit_code == 4
    assert rows(result.stdout)[0][8] == "32"
    assert "worker 0, element 0, got" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--workers", 0], "--workers: out of range; got 0; right would be: 1 to 256"),
        (["--port", 65535], "--port: out of range; got 65535; right would be: 1 to 65532, for 4 workers"),
        (["--seed", -1], "--seed: must not be negative"),
        (["--repeat", 0], "--repeat: must be at least 1"),
        (["--sizes", "1 PiB"], "--sizes: 4 workers take about"),
        (["--sizes", "6B"], "not a whole number of float32 elements"),
        (["--dtype", "floot32"], "did you mean float32?"),
        (["--out", "/no/such/folder/x.log"], "--out: there is no such folder; got /no/such/folder"),
        (["--mpi", "--workers", 2, "--port", 5000], "--workers: is for mpirun to say"),
    ],
)
def test_a_mistake_is_answered_before_anything_starts(arguments, complaint):
    result = ringnet(*arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert not result.stdout


def test_a_port_in_use_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = ringnet("--workers", 1, "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "--port: this port is in use" in result.stderr


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    out = tmp_path / "ring.log"
    sizes = ["--sizes", "64B, 16MiB", "--repeat", "100", "--warmup", "0"]
    command = [sys.executable, "-m", "ringnet", "measure", "--workers", "2", *sizes, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        next(text for text in process.stdout if not text.startswith("#"))
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
    assert process.returncode == 130
    assert [row[0] for row in rows(out.read_text())] == ["64"]
    assert "Out of bounds" in told


def test_what_it_measures_is_read_calibrated_predicted_and_simulated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def json_of(*arguments):
        result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    files = [f"{n}.log" for n in (2, 4)]
    for n, file in zip((2, 4), files, strict=True):
        sizes = ["--sizes", "1KiB..16MiB", "--factor", 4, "--repeat", 3, "--warmup", 1]
        assert ringnet("--workers", n, *sizes, "--out", file).exit_code == 0
    logs = json_of("logs", *files)
    series = [one["series"][0] for one in logs["logs"]]
    assert [(one["collective"], one["n_workers"], one["n_nodes"], one["n_points"]) for one in series] == [
        ("all_reduce", 2, 1, 8),
        ("all_reduce", 4, 1, 8),
    ]
    assert {one["format"] for one in logs["logs"]} == {"nccl-tests"}
    assert not any("wrong" in remark or "cut" in remark for one in logs["logs"] for remark in one["remarks"])
    calibrated = json_of("calibrate", *files, "--out", "here.yaml")
    assert [log["n_workers"] for log in calibrated["logs"]] == [2, 4]
    (row,) = json_of("predict", "here.yaml", "--workers", 4, "--sizes", "64KiB")["predictions"]
    assert not row["is_beyond"]
    keys = "{scenario_version: 1, workers: 4, message: 64 KiB, network: {link: {file: here.yaml}}}"
    Path("here.scenario.yaml").write_text(keys)
    run = json_of("run", "here.scenario.yaml", "--out", "run")
    assert run["makespan_s"] == pytest.approx(row["predicted_s"], rel=0.01)
    assert run["sum_ok"]
    assert run["is_beyond"] is False


# Under MPI.


def mpirun():
    """The command that starts MPI processes: beside this Python, or anywhere; skips if there is none."""
    pytest.importorskip("mpi4py", reason="mpi4py is not installed: pip install 'ringnet[mpi]'")
    beside = Path(sys.executable).parent
    found = shutil.which("mpirun", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if not found:
        pytest.skip("no mpirun: pip install mpich, or apt-get install openmpi-bin")
    return found


def mpi_command(n_ranks, *arguments):
    """What to run, and in which environment."""
    command = [mpirun(), "-n", str(n_ranks), sys.executable, "-m", "ringnet", "measure", "--mpi", *arguments]
    # Open MPI wants to be told that it may run as root, and more processes than there are cores.
    settings = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return command, os.environ | settings | {"OMPI_MCA_rmaps_base_oversubscribe": "1"}


def under_mpi(n_ranks, *arguments):
    command, environment = mpi_command(n_ranks, *arguments)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_under_mpi_the_sums_are_the_same(tmp_path):
    out = tmp_path / "mpi.log"
    sizes = ["--sizes", "0 B, 2 B, 1 KiB", "--repeat", "2", "--dtype", "bfloat16"]
    result = under_mpi(3, *sizes, "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert [(row[0], row[2], row[8], row[12]) for row in rows(result.stdout)] == [
        ("0", "bfloat16", "0", "0"),
        ("2", "bfloat16", "0", "0"),
        ("1024", "bfloat16", "0", "0"),
    ]
    assert sum("Rank" in text for text in result.stdout.splitlines()) == 3
    assert out.read_text() == result.stdout


def test_under_mpi_all_end_when_one_is_killed():
    command, environment = mpi_command(3, "--sizes", "1MiB", "--repeat", "1000000")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        ranks = (text for text in process.stdout if text.startswith("#  Rank"))
        pids = [int(text.split()[6]) for _, text in zip(range(3), ranks, strict=False)]
        os.kill(pids[1], signal.SIGKILL)
        told = process.stdout.read()
    assert process.returncode
    assert "signal 9" in told  # and, mostly, which process: that is for MPI to say
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def test_under_mpi_a_mistake_is_said_once():
    result = under_mpi(2, "--sizes", "6B")
    assert result.returncode == 2
    assert result.stderr.count("not a whole number of float32 elements") == 1


def test_without_mpi4py_the_way_to_get_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    result = ringnet("--mpi")
    assert result.exit_code == 2
    assert "pip install 'ringnet[mpi]'" in result.stderr


def test_a_launcher_of_another_mpi_is_noticed(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(InputError, match="started 4 processes, but each is alone"):
        _check_launcher(1)
