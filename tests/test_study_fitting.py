"""What fits into memory and into a moment, and how long a sweep may take."""

from __future__ import annotations

import pytest

from ringnet.runs.parts import build
from ringnet.scenario import loads
from ringnet.study import local
from ringnet.study.cost import in_words, most_s, sample, sweep_s
from ringnet.study.local import Sized, at_once
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
