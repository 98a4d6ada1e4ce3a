"""Sweeps on the command line: killed, stopped, failing, too large; and what is kept through all of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import ringnet.cli.run as running
from ringnet.cli import app
from ringnet.payload.tamper import Tamper
from ringnet.study import local
from tests.commands import entries, members, press_ctrl_c, wait_for

SWEEP = """
scenario_version: 1
name: sweep
message: 4 KiB
seed: 1
network: {bandwidth: 1 GB/s, latency: 1 us}
sweep: {over: {workers: {from: 2, to: 9, step: 1}}}
"""
N_POINTS = 8
HUGE = """
scenario_version: 1
payload: none
workers: 2
message: 4 KiB
network: {latency: 1 us}
sweep:
  over:
    network.bandwidth: {from: 1 GB/s, to: 1000 GB/s, step: 1 GB/s}
    worker.start: {from: 0 s, to: 999 us, step: 1 us}
"""
#: The command line with points that take a moment, so that a sweep can be caught half-way, and is not so small that
#: the first process would compute it.
SLOW = """
import os, sys, time
import ringnet.cli.run as running
from ringnet.cli import main
from ringnet.study import local

local.SMALL_S = 0.0
local.SHORT_S = float(os.environ.get("SHORT_S", local.SHORT_S))

def slowly(scenario, simulate=running.simulate):
    time.sleep(0.25)
    return simulate(scenario)

running.simulate = slowly
main()
"""

real = running.simulate


@pytest.fixture(autouse=True)
def here(own_folder):
    """Every command runs in an empty folder but for a sweep, and keeps its points there."""
    (own_folder / "sweep.yaml").write_text(SWEEP)
    (own_folder / "huge.yaml").write_text(HUGE)


@pytest.fixture
def ringnet():
    """Run the command line in this process, without plots."""

    def run(*arguments, **options):
        return CliRunner().invoke(app, ["run", *arguments, "--no-plots"], **options)

    return run


def start(*arguments, **options):
    """Start the slow command line in a process group of its own, as a terminal does."""
    command = [sys.executable, "-c", SLOW, "run", "sweep.yaml", "--no-plots", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, text=True, start_new_session=True, **options)


# ------------------------------------------------------------------------------------------------- answers


def test_a_sweep_is_a_table_with_a_row_per_point(ringnet):
    lines = ringnet("sweep.yaml").stdout.splitlines()
    assert lines[0].split()[:2] == ["N", "time"]
    assert [line.split()[0] for line in lines[1:9]] == [str(workers) for workers in range(2, 10)]
    assert lines[9] == "points   8: 8 computed, 0 kept from an earlier run"
    assert lines[10] == "written  reports/sweep: summary.csv, run.json"


def test_json_has_a_list_of_points(ringnet):
    result = ringnet("sweep.yaml", "--json")
    points = json.loads(result.stdout)["points"]
    assert [*json.loads(result.stdout)] == ["points"]
    assert [point["n_workers"] for point in points] == [*range(2, 10)]
    assert result.stderr == ""


def test_a_long_table_is_cut_for_a_person_only(ringnet):
    lines = ringnet("sweep.yaml", "--set", "sweep.over.workers.to=51", "--set", "payload=none").stdout.splitlines()
    assert "... and 10 more in reports/sweep/summary.csv" in lines
    assert len(pd.read_csv("reports/sweep/summary.csv")) == 50


def test_one_job_and_two_write_the_same_bytes(ringnet, monkeypatch):
    monkeypatch.setattr(local, "SMALL_S", 0.0)
    for jobs in ("1", "2"):
        assert ringnet("sweep.yaml", "--jobs", jobs, "--out", jobs, "--cache", f"kept-{jobs}").exit_code == 0
        assert len([*Path(f"kept-{jobs}").rglob("*.json")]) == N_POINTS
    for name in ("summary.csv", "run.json"):
        assert Path("1", name).read_bytes() == Path("2", name).read_bytes()


def test_the_same_command_recomputes_nothing(ringnet, simulated):
    first = ringnet("sweep.yaml", "--json").stdout
    simulated(lambda scenario: pytest.fail("it ran"))
    assert ringnet("sweep.yaml", "--json").stdout == first
    assert "8: 0 computed, 8 kept" in ringnet("sweep.yaml").stdout


def test_fresh_starts_over(ringnet):
    ringnet("sweep.yaml")
    assert "8: 8 computed, 0 kept" in ringnet("sweep.yaml", "--fresh").stdout


def test_a_larger_sweep_computes_what_is_new(ringnet):
    ringnet("sweep.yaml", "--set", "sweep.over.workers.to=5")
    assert "8: 4 computed, 4 kept" in ringnet("sweep.yaml").stdout


def test_points_are_kept_where_the_user_says(ringnet):
    ringnet("sweep.yaml", "--cache", "elsewhere")
    assert len([*Path("elsewhere").rglob("*.json")]) == N_POINTS
    assert not Path("cache/ringnet/points").exists()


def test_quiet_says_nothing(ringnet):
    result = ringnet("sweep.yaml", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize("option", [["--save-result", "x.npy"], ["--transfers", "all"]])
def test_what_only_a_single_run_has_is_refused(ringnet, option):
    result = ringnet("sweep.yaml", *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{option[0]}: this option is for a single run, and this scenario is a sweep" in result.stderr


def test_a_sweep_can_be_run_again_from_its_results(ringnet):
    ringnet("sweep.yaml", "--out", "first")
    assert "8: 0 computed, 8 kept" in ringnet("first", "--out", "again").stdout
    assert Path("first/run.json").read_bytes() == Path("again/run.json").read_bytes()


def test_plots_of_a_sweep_are_drawn():
    assert CliRunner().invoke(app, ["run", "sweep.yaml"]).exit_code == 0
    assert Path("reports/sweep/time-vs-workers.png").stat().st_size > 10_000


# ----------------------------------------------------------------------------------------------- failures


def test_one_failing_point_does_not_lose_the_others(ringnet):
    result = ringnet("sweep.yaml", "--set", "sweep.over={worker.start: [0 s, never]}", "--set", "workers=2", "--json")
    assert result.exit_code == 5
    good, bad = json.loads(result.stdout)["points"]
    assert good["sum_ok"] is True
    assert bad["makespan_s"] is None
    assert bad["worker.start"] == "never"
    assert "worker 0 waits for" in bad["error"]
    assert "Error: worker.start=never: the run cannot finish" in result.stderr
    assert pd.read_csv("reports/sweep/summary.csv")["error"].notna().tolist() == [False, True]


def test_a_wrong_sum_weighs_more_than_a_failure(ringnet, simulated):
    def act(scenario):
        if scenario.workers == 3:
            raise MemoryError
        return real(scenario, tamper=Tamper("flip", 1, 0, 3) if scenario.workers == 4 else None)

    simulated(act)
    result = ringnet("sweep.yaml", "--json")
    assert result.exit_code == 4
    assert "Error: workers=3: out of memory" in result.stderr
    assert "Error: workers=4: the sum is wrong: worker" in result.stderr
    assert [point["sum_ok"] for point in json.loads(result.stdout)["points"]][:3] == [True, None, False]


def test_many_failures_are_not_all_printed(ringnet, simulated):
    def fail(scenario):
        raise MemoryError

    simulated(fail)
    result = ringnet("sweep.yaml", "--set", "sweep.over.workers.to=21")
    assert result.exit_code == 5
    assert result.stderr.count("out of memory") == 10
    assert "and 10 more points; see the column error of summary.csv" in result.stderr


def test_a_damaged_entry_is_told_and_computed_again(ringnet):
    ringnet("sweep.yaml")
    damaged = next(iter(entries()))
    damaged.write_text(damaged.read_text()[:-9])
    result = ringnet("sweep.yaml")
    assert "8: 1 computed, 7 kept" in result.stdout
    assert f"Note: a kept point is damaged and is computed again: {damaged.absolute()}" in result.stderr


def test_a_cache_that_cannot_be_written_is_told(ringnet):
    result = ringnet("sweep.yaml", "--cache", "sweep.yaml")
    assert result.exit_code == 0
    assert result.stderr.count(f"Note: points cannot be kept in {Path('sweep.yaml').absolute()}: ") == 1


# --------------------------------------------------------------------------------------- killed and stopped


def test_a_sweep_that_was_killed_computes_each_point_once_in_all():
    # As many as are not all computed by what the killed process had handed out, which ends by itself, and soon.
    n_points, more = 24, ("--jobs", "2", "--set", "sweep.over.workers.to=25")
    killed = start(*more)
    wait_for(lambda: len(entries()) >= 3)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    wait_for(lambda: not members(killed.pid))
    kept = entries()
    again = start(*more)
    assert f"{n_points}: {n_points - len(kept)} computed, {len(kept)} kept" in again.communicate()[0]
    assert 3 <= len(kept) < n_points
    assert len(entries()) == n_points
    assert kept.items() <= entries().items()  # what was kept was not written again


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_stops_cleanly_and_keeps_what_is_finished(jobs):
    stopped = start("--jobs", jobs)
    wait_for(lambda: len(entries()) >= 2)
    press_ctrl_c(stopped)
    out, err = stopped.communicate()
    assert stopped.returncode == 130
    assert out == ""
    assert [line.partition(":")[0] for line in err.splitlines()] == ["Note", "Error"]
    assert "of 8 points are finished and kept: run it again to go on" in err
    assert len(entries()) >= 2
    assert not Path("reports").exists()
    wait_for(lambda: not members(stopped.pid))


@pytest.mark.parametrize(
    ("short_s", "n_processes"),
    [
        ("30", 3),
        ("0", 5),
    ],  # itself, two that compute; of those that start afresh two more, that track resources
)
def test_ctrl_c_while_processes_start_is_as_clean(short_s, n_processes):
    stopped = start("--jobs", "2", env={**os.environ, "SHORT_S": short_s})
    wait_for(lambda: len(members(stopped.pid)) >= n_processes)
    press_ctrl_c(stopped)
    _, err = stopped.communicate()
    assert stopped.returncode == 130
    assert [line.partition(":")[0] for line in err.splitlines()] == ["Note", "Error"]


# ------------------------------------------------------------------------------------------ very large grids


def test_a_grid_of_a_million_points_is_refused_where_nobody_can_answer(ringnet):
    result = ringnet("huge.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "1,000,000 points" in result.stderr
    assert "takes roughly" in result.stderr
    assert "--yes" in result.stderr


@pytest.fixture
def large(monkeypatch):
    """Let eight points be many."""
    monkeypatch.setattr(running, "MOST_UNASKED", 4)


def test_yes_runs_it(ringnet, large):
    assert ringnet("sweep.yaml").exit_code == 2
    assert ringnet("sweep.yaml", "--yes").exit_code == 0


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("", 130)])
def test_on_a_terminal_it_is_asked_for(ringnet, large, monkeypatch, answer, code):
    monkeypatch.setattr(running, "is_terminal", lambda: True)
    result = ringnet("sweep.yaml", "--json", input=answer)
    assert result.exit_code == code
    assert "8 points and takes roughly" in result.output


def test_check_of_a_million_points_looks_at_some():
    plan = json.loads(CliRunner().invoke(app, ["check", "huge.yaml", "--json"]).stdout)
    assert plan["points"] == 1_000_000
    assert plan["swept"] == ["network.bandwidth", "worker.start"]


# --------------------------------------------------------------------------------------------- on a terminal


def test_progress_is_shown_on_a_terminal(on_a_terminal):
    seen, out = on_a_terminal(lambda **streams: start("--jobs", "1", **streams))
    assert b"points/s" in seen
    assert b"/8" in seen
    assert out.startswith("N  time")


def test_progress_of_a_single_run_is_shown_on_a_terminal(on_a_terminal):
    text = SWEEP.replace(
        "sweep: {over: {workers: {from: 2, to: 9, step: 1}}}", "workers: 256\nengine: events\npayload: none"
    )
    Path("single.yaml").write_text(text.replace("seed: 1\n", ""))
    command = [sys.executable, "-m", "ringnet", "run", "single.yaml", "--no-plots"]
    seen, out = on_a_terminal(lambda **streams: subprocess.Popen(command, text=True, stdout=subprocess.PIPE, **streams))
    assert b"transfers/s" in seen
    assert out.startswith("time")
