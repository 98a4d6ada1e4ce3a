"""Sweeps: in order whatever the number of jobs, kept as they finish, and no point takes another with it."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ringnet
from ringnet.collectives import proof
from ringnet.errors import DeadlockError, InputError, Wait
from ringnet.payload.tamper import Tamper
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.scenario.schedule import _built as built
from ringnet.study import local
from ringnet.study.cost import default_cache_dir, in_words, most_s, sample, sweep_s
from ringnet.study.local import Sized, at_once
from ringnet.study.outcome import code_digest
from ringnet.study.points import run_points

SWEEP = """
scenario_version: 1
name: a sweep
seed: 3
payload: {elements: 4}
network: {bandwidth: 50 GB/s, latency: 500 ns}
sweep:
  over:
    workers: [2, 3, 5]
    message: [1 KiB, 4 KiB]
"""
N_POINTS = 6
#: Prints whether the processes of a sweep hold Ctrl-C back.
DEAF = """
import signal, sys
from ringnet import InputError, loads
from ringnet.study import local
from ringnet.study.points import run_points

def tell(scenario):
    raise InputError(str(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])))

local.SMALL_S = 0.0
print({outcome.error for outcome in run_points(loads(sys.argv[1]).points(), processes=2, simulate=tell)})
"""
SWEEP_OF_FILE = """
scenario_version: 1
data: x.npy
network: {latency: 0 s}
sweep: {over: {network.bandwidth: [1 GB/s]}}
"""


@pytest.fixture
def points():
    return loads(SWEEP).points()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "points"


@pytest.fixture
def processes(monkeypatch):
    """Let no sweep be small enough to be computed in this process."""
    monkeypatch.setattr(local, "SMALL_S", 0.0)


@pytest.fixture
def counting():
    """A simulate that lists the points it computed; only for what runs in this process."""
    computed = []

    def count(scenario):
        computed.append((scenario.workers, scenario.message_bytes))
        return simulate(scenario)

    count.computed = computed
    return count


def failing_at(n_workers, act):
    """A simulate that does something else at one number of workers."""

    def run(scenario):
        return act() if scenario.workers == n_workers else simulate(scenario)

    return run


def entries(cache):
    return sorted(cache.rglob("*.json"))


def rows(outcomes):
    return [outcome.summary for outcome in outcomes]


# ------------------------------------------------------------------------------------------ order and jobs


def test_outcomes_come_in_grid_order(points):
    outcomes = run_points(points, processes=1)
    grid = [(2, 1024), (2, 4096), (3, 1024), (3, 4096), (5, 1024), (5, 4096)]
    assert [(row["n_workers"], row["message_bytes"]) for row in rows(outcomes)] == grid
    assert all(outcome.ok and outcome.summary["sum_ok"] for outcome in outcomes)


def test_two_processes_give_what_one_gives(points, processes):
    here = run_points(points, processes=1)
    assert run_points(points, processes=2) == here


def test_points_do_run_in_other_processes(points, processes):
    def tell(scenario):
        raise InputError(f"process {os.getpid()}")

    outcomes = run_points(points, processes=2, simulate=tell)
    assert f"process {os.getpid()}" not in {outcome.error for outcome in outcomes}


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="needs signals that can be held")
def test_processes_are_born_deaf_to_ctrl_c():
    """In a fresh interpreter: what joblib starts only once must not undo it."""
    result = subprocess.run([sys.executable, "-c", DEAF, SWEEP], capture_output=True, text=True, check=True)
    assert result.stdout == "{'True'}\n"


def test_one_job_runs_in_this_process(points, counting):
    run_points(points, processes=1, simulate=counting)
    assert len(counting.computed) == N_POINTS


def test_a_small_sweep_is_not_worth_a_process(points, counting):
    run_points(points, processes=2, simulate=counting)
    assert len(counting.computed) == N_POINTS


def test_every_outcome_is_heard_of_once(points):
    heard = []
    outcomes = run_points(points, processes=1, on_result=heard.append)
    assert heard == outcomes


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_jobs_is_a_mistake(points, jobs):
    with pytest.raises(InputError, match=rf"jobs: .*; got {jobs}; right would be: 1 or more"):
        run_points(points, processes=jobs)


def test_a_grid_larger_than_a_block_is_run_block_by_block(points, monkeypatch):
    whole = run_points(points, processes=1)
    monkeypatch.setattr("ringnet.study.points.BLOCK", 4)
    assert run_points(iter(points), processes=1) == whole


def test_the_same_scenario_written_twice_is_computed_once(counting):
    twice = loads(SWEEP.replace("[1 KiB, 4 KiB]", "[1 KiB, 1024 B]").replace("workers:", "seed: [3, 4]\n    workers:"))
    outcomes = run_points(twice.points(), processes=1, simulate=counting)
    assert len(counting.computed) == len(outcomes) / 2
    assert rows(outcomes)[0::2] == rows(outcomes)[1::2]


def test_a_swept_key_without_a_column_gets_one():
    swept = loads(
        SWEEP.replace("workers: [2, 3, 5]", "network.latency: [0 s, 1000 ns]").replace("seed: 3", "workers: 2")
    )
    assert [row["network.latency"] for row in rows(run_points(swept.points(), processes=1))][::2] == [
        "0 s",
        "1000 ns",
    ]


# ---------------------------------------------------------------------------------------------------- kept


def test_what_is_finished_is_computed_once(points, cache, counting):
    first = run_points(points, processes=1, cache_dir=cache, simulate=counting)
    again = run_points(points, processes=1, cache_dir=cache, simulate=counting)
    assert len(counting.computed) == len(entries(cache)) == N_POINTS
    assert rows(again) == rows(first)
    assert [outcome.computed for outcome in again] == [False] * N_POINTS


def test_python_keeps_points_where_it_is_told_to(cache):
    def written():
        return [entry.stat().st_mtime_ns for entry in entries(cache)]

    first, at = ringnet.run(loads(SWEEP), jobs=1, cache=cache), written()
    assert len(at) == N_POINTS
    assert ringnet.run(loads(SWEEP), jobs=1, cache=cache).summary.equals(first.summary)
    assert written() == at
    ringnet.run(loads(SWEEP), jobs=1, cache=cache, fresh=True)
    assert not set(written()) & set(at)


def test_a_sweep_goes_on_where_it_was_stopped(points, cache, counting):
    def stop(outcome):
        if len(counting.computed) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_points(points, processes=1, cache_dir=cache, simulate=counting, on_result=stop)
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    assert len(counting.computed) == len(set(counting.computed)) == N_POINTS


def test_processes_are_stopped_and_what_they_finished_is_kept(points, cache, processes):
    def stop(outcome):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_points(points, processes=2, cache_dir=cache, on_result=stop)
    n_kept = len(entries(cache))
    again = run_points(points, processes=2, cache_dir=cache)
    assert n_kept >= 1
    assert [outcome.computed for outcome in again].count(False) == n_kept


def test_fresh_computes_everything_again(points, cache, counting):
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    run_points(points, processes=1, cache_dir=cache, simulate=counting, fresh=True)
    assert len(counting.computed) == 2 * N_POINTS


@pytest.mark.parametrize(("file", "times"), [("engines/arrays/steps.py", 2), ("cli/run.py", 1)])
def test_other_code_that_computes_computes_everything_again(points, cache, counting, monkeypatch, file, times):
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    read_bytes, other = Path.read_bytes, Path(ringnet.__file__).parent / file
    monkeypatch.setattr(Path, "read_bytes", lambda path: read_bytes(path) + b"#" * (path == other))
    code_digest.cache_clear()
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    code_digest.cache_clear()
    assert len(counting.computed) == times * N_POINTS


def test_another_seed_is_another_point(points, cache, counting):
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    run_points(loads(SWEEP, ["seed=4"]).points(), processes=1, cache_dir=cache, simulate=counting)
    assert len(counting.computed) == 2 * N_POINTS


def test_other_numbers_in_the_same_file_are_another_point(tmp_path, cache):
    for value in (1.0, 2.0):
        np.save(tmp_path / "x.npy", np.full((2, 8), value, dtype=np.float32))
        outcomes = run_points(loads(SWEEP_OF_FILE, folder=tmp_path).points(), processes=1, cache_dir=cache)
        assert outcomes[0].computed
    assert len(entries(cache)) == 2


def _cut(text):
    return text[:-20]


def _change_a_digit(text):
    assert "1024" in text
    return text.replace("1024", "1025")


def _other_json(text):
    return json.dumps([1, 2])


def _nothing(text):
    return ""


@pytest.mark.parametrize("damage", [_cut, _change_a_digit, _other_json, _nothing])
def test_a_damaged_entry_is_said_and_computed_again(points, cache, damage):
    first = run_points(points, processes=1, cache_dir=cache)
    damaged = next(path for path in entries(cache) if "1024" in path.read_text())
    damaged.write_text(damage(damaged.read_text()))
    said = []
    again = run_points(points, processes=1, cache_dir=cache, say=said.append)
    assert rows(again) == rows(first)
    assert [outcome.computed for outcome in again].count(True) == 1
    assert [str(damaged) in sentence and "damaged" in sentence for sentence in said] == [True]
    assert run_points(points, processes=1, cache_dir=cache, say=said.append)
    assert len(said) == 1


def test_an_entry_that_is_no_text_is_damaged(points, cache):
    run_points(points, processes=1, cache_dir=cache)
    entries(cache)[0].write_bytes(b"\xff\xfe\x00")
    said = []
    run_points(points, processes=1, cache_dir=cache, say=said.append)
    assert len(said) == 1


def test_a_folder_that_cannot_be_written_is_said_once_and_the_sweep_goes_on(points, tmp_path):
    (tmp_path / "file").touch()
    said = []
    outcomes = run_points(points, processes=1, cache_dir=tmp_path / "file" / "points", say=said.append)
    assert all(outcome.ok for outcome in outcomes)
    assert said == [f"points cannot be kept in {tmp_path}/file/points: the file cannot be written: Not a directory"]


def test_a_full_disk_is_said_and_leaves_no_half_entry(points, cache, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    said = []
    outcomes = run_points(points, processes=1, cache_dir=cache, say=said.append)
    assert all(outcome.ok for outcome in outcomes)
    assert "No space left on device" in said[0]
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_a_row_is_the_same_whether_it_was_kept_or_not(cache, points):
    odd = {"max_abs_error": math.inf, "algbw_Bps": 0.1 + 0.2, "n_transfers": 2**60, "slowest_link": None}

    def run(scenario):
        result = simulate(scenario)
        return replace(result, summary=result.summary | odd | {"longest_queue": np.int64(3)})

    first = run_points(points, processes=1, cache_dir=cache, simulate=run)
    again = run_points(points, processes=1, cache_dir=cache, simulate=run)
    assert repr(rows(first)) == repr(rows(again))


def test_the_cache_is_where_the_system_keeps_such_things(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "ringnet" / "points"
    for unset in ("", "not/absolute"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert default_cache_dir() == Path.home() / ".cache" / "ringnet" / "points"


# ------------------------------------------------------------------------------------------------ failures


def deadlock():
    raise DeadlockError(Wait(1, 0, "chunk 2", 0.5))


def test_one_failing_point_is_a_row_with_its_error(points):
    outcomes = run_points(points, processes=1, simulate=failing_at(3, deadlock))
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 3, 3, 0, 0]
    row = outcomes[2].summary
    assert list(row) == list(outcomes[0].summary)
    assert (row["name"], row["n_workers"], row["message_bytes"], row["payload"]) == (
        "a sweep",
        3,
        1024,
        "first 4 elements",
    )
    assert row["makespan_s"] is None
    assert "worker 1 waits for worker 0: chunk 2" in row["error"]
    assert "\n" not in row["error"]


def test_a_failing_point_is_not_kept(points, cache, counting):
    run_points(points, processes=1, cache_dir=cache, simulate=failing_at(3, deadlock))
    assert len(entries(cache)) == N_POINTS - 2
    run_points(points, processes=1, cache_dir=cache, simulate=counting)
    assert counting.computed == [(3, 1024), (3, 4096)]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("chunk"), "a bug in ringnet: KeyError: 'chunk'"),
        (MemoryError(), "out of memory"),
        (MemoryError("6 TiB"), "out of memory: 6 TiB"),
    ],
)
def test_whatever_goes_wrong_in_a_point_stays_there(points, error, said):
    def fail():
        raise error

    outcomes = run_points(points, processes=1, simulate=failing_at(3, fail))
    assert [outcome.error for outcome in outcomes] == ["", "", said, said, "", ""]


def test_a_wrong_sum_says_where_and_is_not_kept(points, cache):
    def run(scenario):
        return simulate(scenario, tamper=Tamper("flip", 1, 0, 3) if scenario.workers == 3 else None)

    outcomes = run_points(points, processes=1, cache_dir=cache, simulate=run)
    assert [outcome.exit_code for outcome in outcomes] == [0, 0, 4, 4, 0, 0]
    assert outcomes[2].summary["sum_ok"] is False
    assert outcomes[2].summary["makespan_s"] > 0
    assert "worker" in outcomes[2].error
    assert "expected" in outcomes[2].summary["error"]
    assert len(entries(cache)) == N_POINTS - 2


@pytest.mark.parametrize("short_s", [0.0, local.SHORT_S])  # processes that start afresh, and doubles
def test_a_point_that_kills_its_process_takes_no_other_with_it(points, processes, monkeypatch, short_s):
    monkeypatch.setattr(local, "SHORT_S", short_s)
    said = []
    some = [points[place] for place in (0, 2, 5)]
    outcomes = run_points(some, processes=2, simulate=failing_at(3, lambda: os._exit(1)), say=said.append)
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    assert "killed" in outcomes[1].error
    assert "one by one" in said[0]


def test_points_that_share_a_schedule_prove_it_once(monkeypatch):
    proved = []
    built.cache_clear()
    monkeypatch.setattr(proof, "_prove", lambda schedule: proved.append(schedule.n_workers))
    run_points(loads(SWEEP, ["sweep.over.message=[1 KiB, 2 KiB, 3 KiB]"]).points(), processes=1)
    assert proved == [2, 3, 5]


# --------------------------------------------------------- what fits into memory, and how long a sweep may take


def sized(*memory):
    return [Sized(str(place), size, 1.0) for place, size in enumerate(memory)]


def test_as_many_points_run_at_once_as_fit():
    groups = at_once(sized(200, 60, 40, 30, 1, 0), 4, 100)
    assert groups == [(1, ["0", "1"]), (2, ["2"]), (3, ["3"]), (4, ["4", "5"])]


def test_the_largest_point_starts_first(monkeypatch):
    monkeypatch.setattr(local, "SMALL_S", 0.0)
    started = []
    monkeypatch.setattr(local, "in_processes", lambda tasks, n_jobs, say, short: iter(started.extend(tasks) or ()))
    with pytest.raises(KeyError):
        run_points(loads(SWEEP).points(), processes=2)
    assert started[0].scenario.workers == 5


def test_a_large_grid_is_judged_by_some_of_its_points():
    scenario = loads(SWEEP.replace("[1 KiB, 4 KiB]", "{from: 1 KiB, to: 1 GiB, factor: 2}"))
    some = sample(scenario)
    assert len(some) == 20
    assert (some[0].workers, some[0].message_bytes) == (2, 2**10)
    assert (some[-1].workers, some[-1].message_bytes) == (5, 2**30)
    exact_s = sum(most_s(build(point.scenario)) for point in scenario.points())
    gained_s = sweep_s(scenario, 1) - sweep_s(scenario, 2)  # starting and plots take what they take
    assert gained_s == pytest.approx(exact_s / 2, rel=0.5)


def test_zipped_keys_are_sampled_together():
    some = sample(loads(SWEEP.replace("over", "zip").replace("[1 KiB, 4 KiB]", "[1 KiB, 4 KiB, 8 KiB]")))
    assert [(point.workers, point.message_bytes // 1024) for point in some] == [(2, 1), (3, 4), (5, 8)]


def test_rough_times_are_rough():
    assert [in_words(seconds) for seconds in (0, 59, 3 * 86400)] == ["a second", "59 seconds", "3 days"]
