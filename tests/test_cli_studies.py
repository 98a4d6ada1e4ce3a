"""`compare` and `numerics` on the command line: killed, stopped, gone on with; drawn again, and run again."""

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

import ringnet.study.compare as comparing
from ringnet.cli import app
from ringnet.reporting.columns import TABLES
from ringnet.reporting.tables import read_table
from ringnet.study import local
from ringnet.study.compare import AlgorithmTiming
from ringnet.study.outcome import Outcome
from tests.commands import entries, members, press_ctrl_c, wait_for

SCENARIO = """
scenario_version: 1
name: some
workers: 4
message: 1 KiB
network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}
sweep: {over: {message: {from: 1 KiB, to: 1 GiB, factor: 32}}}
compare: {algorithms: [ring, direct, halving-doubling], workers: [4, 8]}
"""
N_POINTS = 6
#: The command line with parts that take a moment, and are not so few that the first process would compute them.
SLOW = """
import sys, time
import ringnet.study.compare as compare
from ringnet.cli import main
from ringnet.study import local
from ringnet.study.compare import AlgorithmTiming

local.SMALL_S = 0.0

class Slow(AlgorithmTiming):
    def __call__(self, scenario):
        time.sleep(0.3)
        return AlgorithmTiming.__call__(self, scenario)

compare.AlgorithmTiming = Slow
main()
"""


@pytest.fixture(autouse=True)
def here(own_folder: Path) -> None:
    (own_folder / "some.yaml").write_text(SCENARIO)


def run(*arguments: str):
    return CliRunner().invoke(app, arguments)


def start(*arguments: str, **options):
    """Start the slow command line in a process group of its own, as a terminal does."""
    command = [sys.executable, "-c", SLOW, "compare", "some.yaml", "--no-plots", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen(command, text=True, start_new_session=True, **options)


# -------------------------------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("command", ["compare", "numerics"])
def test_what_is_kept_is_not_computed_again_unless_that_is_wanted(command: str):
    first = run(command, "some.yaml", "--no-plots", "--jobs", "1")
    assert f"points   {N_POINTS}: {N_POINTS} computed, 0 kept" in first.stdout
    table = Path(f"reports/some-{command}/{command}.csv").read_bytes()
    again = run(command, "some.yaml", "--no-plots", "--jobs", "1")
    assert f"points   {N_POINTS}: 0 computed, {N_POINTS} kept" in again.stdout
    assert Path(f"reports/some-{command}/{command}.csv").read_bytes() == table
    fresh = run(command, "some.yaml", "--no-plots", "--jobs", "1", "--fresh")
    assert f"points   {N_POINTS}: {N_POINTS} computed, 0 kept" in fresh.stdout


@pytest.mark.parametrize(
    ("command", "change", "n_kept"),
    [
        ("compare", "network.latency=2 us", 0),
        ("compare", "dtype=float64", 0),
        ("compare", "compare.algorithms=[ring, swing]", 2),
        ("compare", "name=other", 6),
        ("numerics", "seed=1", 0),
        ("numerics", "reduce=prod", 0),
        ("numerics", "compare.workers=[4]", 3),
    ],
)
def test_only_what_is_the_same_is_taken_from_before(command: str, change: str, n_kept: int):
    run(command, "some.yaml", "--no-plots", "--jobs", "1")
    again = run(command, "some.yaml", "--no-plots", "--jobs", "1", "--set", change)
    assert f" computed, {n_kept} kept from an earlier run" in again.stdout


def test_a_comparison_that_was_killed_computes_each_point_once_in_all():
    killed = start("--jobs", "2")
    wait_for(lambda: len(entries()) >= 2)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    goes_on(killed.pid, 2)


def goes_on(stopped: int, n_least: int) -> None:
    """What was kept is not computed again, nor written."""
    wait_for(lambda: not members(stopped))
    kept = entries()
    again = run("compare", "some.yaml", "--no-plots", "--jobs", "1")
    assert n_least <= len(kept) < len(entries()) == N_POINTS
    assert kept.items() <= entries().items()
    assert f"{N_POINTS}: {N_POINTS - len(kept)} computed, {len(kept)} kept" in again.stdout


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_stops_cleanly_and_what_is_finished_is_not_computed_again(jobs: str):
    stopped = start("--jobs", jobs)
    wait_for(lambda: len(entries()) >= 1)
    press_ctrl_c(stopped)
    out, err = stopped.communicate()
    assert (stopped.returncode, out) == (130, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["Note", "Error"]
    assert f"of {N_POINTS} points are finished and kept: run it again to go on" in err
    assert not Path("reports").exists()
    goes_on(stopped.pid, 1)


def test_progress_with_a_rate_is_shown_on_a_terminal(on_a_terminal):
    seen, out = on_a_terminal(lambda **streams: start("--jobs", "1", **streams))
    assert b"points/s" in seen
    assert b"/6" in seen
    assert out.startswith("N  size")


# -------------------------------------------------------------------------------------------------- what goes wrong


def killing_itself(scenario):
    os._exit(9)


class Broken(AlgorithmTiming):
    """Direct kills its process, halving-doubling runs into a bug."""

    def __call__(self, scenario) -> Outcome:
        if scenario.algorithm == "direct" and scenario.workers == 8:
            killing_itself(scenario)
        if scenario.algorithm == "halving-doubling" and scenario.workers == 8:
            raise ArithmeticError("two and two")
        return AlgorithmTiming.__call__(self, scenario)


def test_a_killed_process_is_told_as_such_and_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(comparing, "AlgorithmTiming", Broken)
    monkeypatch.setattr(local, "SMALL_S", 0.0)
    done = run("compare", "some.yaml", "--no-plots", "--jobs", "2", "--json")
    assert done.exit_code == 5, done.stderr
    assert "Error: direct with 8 workers: the process that computed it was killed: out of memory?" in done.stderr
    assert "halving-doubling with 8 workers: a bug in ringnet: ArithmeticError: two and two" in done.stderr
    points = pd.DataFrame(json.loads(done.stdout)["points"])
    assert set(points.loc[points["n_workers"] == 8, "algorithm"]) == {"ring"}
    assert set(points.loc[points["n_workers"] == 4, "algorithm"]) == {"ring", "direct", "halving-doubling"}


def test_where_nothing_came_of_any_nothing_is_written(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(comparing, "AlgorithmTiming", Broken)
    done = run("compare", "some.yaml", "--jobs", "1", "--workers", "8", "--algorithms", "halving-doubling")
    assert (done.exit_code, done.stdout) == (5, "")
    assert "two and two" in done.stderr
    assert not Path("reports").exists()


# ---------------------------------------------------------------------------------- drawn again, and run again


@pytest.mark.parametrize("command", ["compare", "numerics"])
def test_plots_are_drawn_again_from_the_tables(command: str):
    run(command, "some.yaml", "--jobs", "1")
    folder = Path(f"reports/some-{command}")
    before = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    for path in [*folder.glob("*.png"), *folder.glob("*.svg")]:
        path.unlink()
    done = run("plot", str(folder))
    assert done.exit_code == 0, done.stderr
    assert {path.name: path.read_bytes() for path in folder.glob("*.png")} == before
    assert before


def test_plots_that_are_not_drawn_at_first_can_be_drawn_later():
    run("compare", "some.yaml", "--jobs", "1", "--no-plots")
    folder = Path("reports/some-compare")
    assert run("plot", str(folder), "--plot", "winner-map").exit_code == 0
    assert {path.name for path in folder.glob("*.png")} == {"winner-map.png"}
    assert "winner-map.png" in json.loads((folder / "run.json").read_text())["files"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("winner-maps", "there is no such plot of a study; got winner-maps"),
        ("error-by-algorithm", "plot error-by-algorithm is not drawn: it needs errors above zero"),
    ],
)
def test_a_plot_that_there_is_not_is_told(name: str, said: str):
    run("compare", "some.yaml", "--jobs", "1", "--no-plots")
    done = run("plot", "reports/some-compare", "--plot", name)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_damaged_table_is_told_with_its_line():
    run("compare", "some.yaml", "--jobs", "1", "--no-plots")
    table = Path("reports/some-compare/compare.csv")
    table.write_text(table.read_text().replace(",recurrence", ",recurrence,", 1))
    done = run("plot", "reports/some-compare")
    assert done.exit_code == 2
    assert "compare.csv:2: a row has 13 cells, and the first line 12" in done.stderr


@pytest.mark.parametrize("command", ["compare", "numerics"])
def test_the_columns_are_described_and_of_their_kind(command: str):
    run(command, "some.yaml", "--jobs", "1", "--no-plots")
    for path in Path(f"reports/some-{command}").glob("*.csv"):
        frame = read_table(path, path.stem)
        assert list(frame.columns) == list(TABLES[path.stem])


def test_a_folder_is_compared_again_with_what_the_options_said():
    run("compare", "some.yaml", "--jobs", "1", "--no-plots", "--algorithms", "swing,ring", "--workers", "6")
    again = run("compare", "reports/some-compare", "--jobs", "1", "--no-plots", "--out", "again")
    assert again.exit_code == 0, again.stderr
    assert Path("again/compare.csv").read_bytes() == Path("reports/some-compare/compare.csv").read_bytes()


def test_run_json_says_what_numerics_was_asked():
    options = ["--algorithms", "ring", "--workers", "6", "--dtypes", "bfloat16", "--accumulate", "float32"]
    run("numerics", "some.yaml", "--jobs", "1", "--no-plots", *options)
    info = json.loads(Path("reports/some-numerics/run.json").read_text())
    assert info["options"] == {"dtypes": ["bfloat16"], "accumulate": "float32"}
    assert info["scenario"]["compare"] == {"algorithms": ["ring"], "workers": [6]}


def test_a_study_is_no_run_to_compare_with_another():
    run("compare", "some.yaml", "--jobs", "1", "--no-plots")
    done = run("diff", "reports/some-compare", "reports/some-compare")
    assert done.exit_code == 2
    assert "these are results of ringnet compare; right would be: a folder that ringnet run wrote" in done.stderr
