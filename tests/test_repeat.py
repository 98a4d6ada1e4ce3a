"""Repeated runs: how their times are spread, how well that is known, and that it is the same whoever computes it."""

from __future__ import annotations

import csv
from itertools import product
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest

import ringnet
from ringnet import DeadlockError, InputError, loads
from ringnet.analysis.spread import difference, figures, half_width_of_mean
from ringnet.api.questions import compare
from ringnet.reporting.plots import PLOTS, choose
from ringnet.reporting.storage import read_results, write_results
from ringnet.runs.repeat import middle_run, times_of_runs
from ringnet.runs.simulate import simulate
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions
from ringnet.study.repeat import simulate_all, times_of
from ringnet.study.whatif import WhatIfPlan, changed_scenarios, whatif_parts
from tests.testbed import jitter

RING = (
    "{scenario_version: 1, workers: 4, message: 64 KiB, seed: 5, network: {bandwidth: 10 GB/s, "
    "latency: {mean: 5 us, distribution: lognormal, cv: 0.5}}, "
    "worker: {start: {mean: 9 us, distribution: exponential}}}"
)


# --------------------------------------------------------------------------------------------------- figures


def test_intervals_hold_the_true_figure_as_often_as_they_say():
    """Of 1,000 trials with 100 runs each 93 to 97 % do."""
    trials = np.random.default_rng(0).gamma(4.0, size=(1000, 100))
    true = {"mean": 4.0, "median": 3.672061, "p95": 7.753657}  # of the gamma distribution, from a table
    found = [figures(trial) for trial in trials]
    for name, value in true.items():
        share = np.mean([one[name].low <= value <= one[name].high for one in found])
        assert 0.93 <= share <= 0.97, name


def test_an_end_that_so_few_runs_do_not_tell_is_not_told():
    found = figures(np.arange(1.0, 41.0))
    assert isnan(found["p99"].high)
    assert isnan(found["p5"].low)
    assert found["p99"].half_width == inf
    assert [isnan(number) for number in figures([3.0])["mean"]] == [False, True, True]
    assert half_width_of_mean(np.array([1.0, 2.0, 6.0])) == pytest.approx(4.302653 * 7**0.5 / 3**0.5, rel=1e-6)


def test_common_random_numbers_cut_what_a_difference_varies_by():
    """A link a tenth slower: under the same luck the difference is known far better than of runs that share none."""

    def times(*changes):
        return times_of_runs(loads(RING, ["payload=none", *changes]), range(200))

    slower = "network.links.1->2.bandwidth=9 GB/s"
    today, then, others = times(), times(slower), times(slower, "seed=6")
    together, apart = difference(then, today), difference(then, others * 0 + today.mean())
    assert (then - today).var() < (others - today).var() / 100
    assert 0 < together.low < together.mean < together.high < 2e-6
    assert apart.high - apart.low > 5 * (together.high - together.low)


# ------------------------------------------------------------------------------------------------------ runs


def test_the_run_in_the_middle_is_told_in_full():
    result = simulate_all(loads(RING, ["repeat=30"]))
    times_s = result.columns("runs")["makespan_s"]
    middle = middle_run(times_s)
    assert result.summary["makespan_s"] == times_s[middle] == sorted(times_s)[14]
    assert result.summary["drawn"].endswith(f"run {middle} of seed 5")
    assert (result.summary["n_runs"], result.summary["sum_ok"]) == (30, True)
    assert result.summary["mean_s"] == pytest.approx(times_s.mean())
    assert simulate(loads(RING)).summary["makespan_s"] == times_s[0]


@pytest.mark.parametrize("engine", ["events", "recurrence"])
def test_each_engine_gives_the_same_times(engine):
    times_s = times_of(loads(RING, ["repeat=7", f"engine={engine}"]), PartOptions(processes=1))
    assert times_s == pytest.approx(times_of(loads(RING, ["repeat=7"]), PartOptions(processes=1)), rel=1e-12, abs=0)


def test_a_worker_alone_and_one_that_never_comes_are_repeated_as_they_are_run():
    alone = simulate_all(loads(RING, ["workers=1", "repeat=3"]))
    assert alone.columns("runs")["makespan_s"].tolist() == [0.0] * 3
    with pytest.raises(DeadlockError, match="worker 2 waits for its own start"):
        simulate_all(loads(RING, ["worker.exceptions.2.start=never", "repeat=3"]))


def test_runs_beside_other_jobs_draw_too():
    jobs = [
        "jobs=[{workers: 3, message: 64 KiB}]",
        "network.topology=switch",
        "repeat=5",
        "network.latency.cv=1",
    ]
    times_s = simulate_all(loads(RING, jobs)).columns("runs")["makespan_s"]
    assert len({*times_s}) == 5


def test_runs_are_the_same_on_one_core_and_many_and_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("ringnet.study.local.SMALL_S", 0.0)
    monkeypatch.setattr("ringnet.runs.repeat.MOST_OF_BLOCK", 6)
    folders = {}
    for jobs in (1, 2):
        folders[jobs] = tmp_path / str(jobs)
        ringnet.run(
            loads(RING, ["repeat=20", "report.plots=[]"]),
            folders[jobs],
            jobs=jobs,
            cache=tmp_path / f"cache{jobs}",
        )
    tables = [(folder / "runs.csv").read_bytes() for folder in folders.values()]
    assert tables[0] == tables[1]
    assert (folders[1] / "summary.csv").read_bytes() == (folders[2] / "summary.csv").read_bytes()
    kept: list[Outcome] = []
    how = PartOptions(1, tmp_path / "cache1", on_result=kept.append)
    assert len(times_of(loads(RING, ["repeat=26"]), how)) == 26
    assert [one.computed for one in kept] == [
        False,
        False,
        False,
        True,
        True,
    ]  # 18 of 20, 2 of a block, and 6 more


def test_what_a_single_scenario_that_is_repeated_wrote_is_read_back_and_differs(ringnet, tmp_path):
    for repeat in (2, 3):
        results = [simulate_all(loads(RING, [f"repeat={repeat}"]))]
        write_results(tmp_path / str(repeat), results, {"scenario": {"repeat": repeat}}, plots=[])
    assert read_results(tmp_path / "3").runs["run"].tolist() == [0, 1, 2]
    told = ringnet("diff", tmp_path / "2", tmp_path / "3")
    assert (told.exit_code, "repeat  2  ->  3" in told.stdout) == (0, True), told.output


def test_a_sweep_has_the_runs_of_all_its_points(tmp_path):
    ringnet.run(loads(RING, ["repeat=8", "report.plots=[]", "sweep.over.workers=[2, 4]"]), tmp_path / "out", jobs=1)
    with (tmp_path / "out" / "runs.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [(row["point"], row["workers"], row["run"]) for row in rows[::7]] == [
        ("0", "2", "0"),
        ("0", "2", "7"),
        ("1", "4", "6"),
    ]
    read = ringnet.read_results(tmp_path / "out")
    assert read.summary["n_runs"].tolist() == [8, 8]
    assert read.summary["median_s"].dtype == read.runs["makespan_s"].dtype == np.float64


# -------------------------------------------------------------------------------------------------- studies


def test_a_comparison_says_how_far_the_others_are_behind_and_how_well_that_is_known():
    changes = ["repeat=30", "workers=4", "sweep.over.message=[64 KiB]", "network.topology=fully-connected"]
    table = compare(loads(RING, changes), ["ring", "halving-doubling"], jobs=1).table
    mine = {name: table[table["algorithm"] == name].iloc[0] for name in ("ring", "halving-doubling")}
    times = {name: times_of_runs(loads(RING, [*changes[1:], f"algorithm={name}"]), range(30)) for name in mine}
    assert mine["ring"]["makespan_s"] == pytest.approx(times["ring"].mean())
    apart = difference(times["ring"], times["halving-doubling"])
    assert tuple(mine["ring"][["behind_s", "behind_low_s", "behind_high_s"]]) == pytest.approx(apart)
    assert (mine["halving-doubling"]["behind_s"], mine["ring"]["n_runs"]) == (0.0, 30)


def test_a_what_if_says_how_well_its_gain_is_known(tmp_path):
    (tmp_path / "ring.yaml").write_text(RING)

    def read(changes):
        return ringnet.load(tmp_path / "ring.yaml", ["repeat=30", *changes])

    wanted = "network.bandwidth=20 GB/s"
    plan = WhatIfPlan(changed_scenarios(read, [wanted]))
    table = whatif_parts(plan, PartOptions(processes=1)).table.set_index("change")
    gain = table.loc[wanted]
    today, then = (times_of_runs(loads(RING, changes), range(30)) for changes in ([], [wanted]))
    assert gain["gain_s"] == pytest.approx((today - then).mean())
    assert gain[["gain_low_s", "gain_high_s"]].tolist() == pytest.approx(difference(today, then)[1:])
    assert gain["makespan_low_s"] < gain["makespan_s"] == pytest.approx(then.mean())


# ----------------------------------------------------------------------------------------------------- until


def test_runs_go_on_until_a_figure_is_known_so_well():
    result = simulate_all(loads(RING, ["until={half_width: 1 %}"]))
    known = figures(result.columns("runs")["makespan_s"])["mean"]
    assert known.half_width <= 0.01
    assert 200 < result.summary["n_runs"] < 5000
    assert "the mean is known to" in result.notes[-1]


def test_an_interval_that_cannot_be_reached_is_told_with_what_it_would_take():
    with pytest.raises(InputError) as caught:
        simulate_all(loads(RING, ["until={half_width: 0.01 %}"]))
    fault = caught.value.faults[0]
    assert fault.path == "until.half_width"
    assert "would take some" in fault.message
    assert fault.right.startswith("half_width: ")
    reached = simulate_all(loads(RING, ["until={half_width: 1.5 %, most: 400}"]))
    assert "until: after 400 runs" in reached.notes[-1]
    assert "would take some" in reached.notes[-1]


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ("repeat=0", "repeat", "from 1"),
        ("until={half_width: 0}", "until.half_width", "some width"),
        ("until={half_width: 2}", "until.half_width", "from zero to one"),
        ("until={half_width: 1 %, of: p50}", "until.of", "no such figure"),
        ("until={half_width: 1 %, most: 1}", "until.most", "from 2"),
        ("worker.start=0 s", "repeat", "nothing is drawn"),
        ("until={half_width: 1 %}", "repeat", "until says how many"),
    ],
)
def test_what_cannot_be_repeated_is_told(change, path, message):
    changes = ["network.latency=5 us", "repeat=3"] if "start" in change else ["repeat=3"]
    with pytest.raises(InputError) as caught:
        loads(RING, [*changes, change])
    assert message in {fault.path: fault.message for fault in caught.value.faults}[path]


def test_real_jitter_was_predicted_as_closely_as_was_promised():
    """The table of the last measurement: medians within 5 %, 95th percentiles within 15 %."""
    with (Path(__file__).parents[1] / "reports" / "gallery" / "jitter.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert {(row["delays"], row["figure"]) for row in rows} == {*product(jitter.SPREADS, ("median", "p95"))}
    for row in rows:
        error = float(row["predicted_s"]) / float(row["measured_s"]) - 1
        assert abs(error) <= {"median": 0.05, "p95": 0.15}[row["figure"]]
        assert int(row["runs"]) >= 100


# ----------------------------------------------------------------------------------------------------- plots


def test_the_distribution_has_every_run_and_its_figures_where_the_summary_has_them():
    results = ringnet.run(loads(RING, ["repeat=150", "payload=none"]), jobs=1)
    assert "time-distribution" in choose(results)[0]
    ax = PLOTS["time-distribution"].draw(results).axes[0]
    (hist,) = [one for one in ax.containers if len(one) > 1]
    assert sum(bar.get_height() for bar in hist) == pytest.approx(150, abs=1)
    row, names = results.summary.iloc[0], ("median", "mean", "p5", "p95")
    drawn = [[*line.get_xdata()] for line in ax.get_lines()]
    assert [one[0] for one in drawn if one[0] == one[1]] == [row[f"{name}_s"] for name in names]
    assert drawn[::2] == [[row[f"{name}_low_s"], row[f"{name}_high_s"]] for name in names]
    intervals = ax.get_lines()[::2]
    assert max(bar.get_height() for bar in hist) < min(line.get_ydata()[0] for line in intervals)
    assert max(line.get_ydata()[0] for line in intervals) < ax.get_ylim()[1]


def test_a_sweep_of_repeated_runs_has_a_band():
    results = ringnet.run(loads(RING, ["repeat=20", "payload=none", "sweep.over.workers=[2, 4, 8]"]), jobs=1)
    ax = PLOTS["time-vs-workers"].draw(results).axes[0]
    (band,) = [one for one in ax.collections if type(one).__name__.startswith(("Fill", "Poly"))]
    assert {*band.get_paths()[0].vertices[:, 1]} >= {*results.summary["p5_s"], *results.summary["p95_s"]}
    assert "time-distribution" not in choose(results)[0]
