"""Calibration on made-up machines whose truth is known: what can be told is told, and what cannot is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringnet.analysis.calibration import Samples, Setting, calibrate, predict
from ringnet.analysis.calibration.fit import fit, hold_out_workers, polish
from ringnet.analysis.calibration.models import MODELS, at, design
from ringnet.analysis.calibration.profile import Boundary, boundary_law
from ringnet.analysis.calibration.regimes import independent, rising

SIZES = 4.0 * 2.0 ** np.arange(24)
#: Launch, latency of a hop, extra between nodes, seconds per byte inside and between nodes.
SLOW = np.array([8e-6, 2e-6, 3e-6, 1 / 20e9, 1 / 5e9])
FAST = np.array([30e-6, 6e-6, 1e-6, 1 / 150e9, 1 / 20e9])


def measured(settings, times, sizes=SIZES, noise=0.0, seed=1):
    """Make samples: a log per setting, times by a function of rows."""
    parts = [at(setting, np.asarray(sizes, dtype=float)) for setting in settings]
    log = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    names = tuple(f"{setting}.txt" for setting in settings)
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("n_workers", "n_nodes", "message_bytes")
    }
    rows = Samples(**columns, time_s=np.ones(len(log)), log=log, names=names)
    error = np.exp(noise * np.random.default_rng(seed).standard_normal(len(log)))
    return Samples(**columns, time_s=times(rows) * error, log=log, names=names)


def by(model, parameters):
    return lambda rows: design(model, rows) @ parameters


def first_of(*models):
    """Return the least of several algorithms, as a library chooses."""
    return lambda rows: np.min([time(rows) for time in models], axis=0)


CLUSTER = [Setting(4, 1), Setting(8, 2), Setting(16, 4), Setting(32, 8)]
ONE_NODE = [Setting(n, 1) for n in (2, 3, 4, 6, 8)]
NOWHERE = [Setting(n, 0) for n in (4, 8, 16)]


def test_an_exact_ring_is_found_exactly():
    found = calibrate(measured(ONE_NODE, by("ring", SLOW)))
    (regime,) = found.profile.regimes
    assert regime.model == "ring"
    assert (regime.launch_s, regime.latency_s) == pytest.approx((8e-6, 2e-6), rel=1e-6)
    assert regime.bandwidth_Bps == pytest.approx(20e9, rel=1e-6)
    assert regime.between_latency_s is None
    assert regime.between_bandwidth_Bps is None
    assert [verdict.name for verdict in found.verdicts] == ["well determined", "follows a ring"]


@settings(max_examples=10)
@given(
    st.floats(1e-6, 3e-5),
    st.floats(2e-7, 2e-5),
    st.floats(1e9, 3e11),
    st.sampled_from(["ring", "tree", "doubling"]),
)
def test_any_single_model_is_predicted_where_it_was_not_measured(launch, latency, bandwidth, model):
    truth = np.array([launch, latency, latency, 1 / bandwidth, 1 / bandwidth])
    found = fit(measured(CLUSTER, by(model, truth)))
    new = Setting(64, 16)
    expected = design(model, at(new, SIZES)) @ truth
    assert predict(found.profile, new, SIZES).time_s == pytest.approx(expected, rel=0.02)


def test_two_regimes_and_where_they_meet():
    mixed = [Setting(4, 1), Setting(8, 2), Setting(16, 2), Setting(16, 4), Setting(32, 8)]
    samples = measured(mixed, first_of(by("ring", SLOW), by("ring", FAST)), noise=0.005)
    found = fit(samples)
    assert [regime.model for regime in found.profile.regimes] == ["ring", "ring"]
    slow, fast = found.profile.regimes
    assert slow.latency_s == pytest.approx(2e-6, rel=0.05)
    assert slow.between_latency_s == pytest.approx(5e-6, rel=0.05)
    assert slow.between_bandwidth_Bps == pytest.approx(5e9, rel=0.1)
    assert fast.between_bandwidth_Bps == pytest.approx(20e9, rel=0.05)
    assert np.median(np.abs(found.errors())) < 0.01


def test_as_many_workers_on_every_node_leave_two_kinds_of_hops_as_one():
    found = calibrate(measured(CLUSTER, by("ring", SLOW), noise=0.005))
    assert "hops not told apart" in [verdict.name for verdict in found.verdicts]


def test_a_tree_for_small_and_a_ring_for_large_messages_is_seen_as_such():
    tree = np.array([5e-6, 2e-6, 3e-6, 1 / 5e9, 1 / 1e9])
    found = calibrate(measured(CLUSTER, first_of(by("doubling", tree), by("ring", FAST)), noise=0.01))
    text = {verdict.name: verdict.text for verdict in found.verdicts}
    assert "minimum of ring and tree" in text["does not follow a ring"]
    new = Setting(64, 16)
    truth = first_of(by("doubling", tree), by("ring", FAST))(at(new, SIZES))
    guess = predict(found.profile, new, SIZES)
    assert np.median(np.abs(guess.time_s / truth - 1)) < 0.05
    assert ((truth >= guess.low_s) & (truth <= guess.high_s)).mean() >= 0.8
    assert guess.is_beyond.all()


def test_a_tree_alone_is_no_ring():
    found = calibrate(measured([*NOWHERE, Setting(64, 0)], by("doubling", SLOW), noise=0.01))
    assert (
        "a tree: latency grows as log2"
        in {verdict.name: verdict.text for verdict in found.verdicts}["does not follow a ring"]
    )


def test_standard_errors_are_those_of_many_repetitions():
    rows = measured(ONE_NODE, by("ring", SLOW))
    matrix = design("ring", rows)
    columns = [0, 1, 3]
    noise = np.exp(0.01 * np.random.default_rng(7).standard_normal((200, len(rows))))
    repeated = [polish(matrix, rows.time_s * each, columns) for each in noise]
    latencies = np.array([parameters[1] for parameters, _ in repeated])
    stated = np.median([errors["latency"] for _, errors in repeated])
    assert stated == pytest.approx(latencies.std() / latencies.mean(), rel=0.2)


def test_one_outlier_moves_a_fit_little():
    samples = measured(ONE_NODE, by("ring", SLOW), noise=0.005)
    samples.time_s[60] *= 10
    (regime,) = fit(samples, n_regimes=1).profile.regimes
    assert regime.latency_s == pytest.approx(2e-6, rel=0.02)
    assert regime.bandwidth_Bps == pytest.approx(20e9, rel=0.02)


def test_noise_alone_makes_no_regimes():
    found = fit(measured(ONE_NODE, by("ring", SLOW), noise=0.03))
    assert len(found.profile.regimes) == 1


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        (SIZES[:8], "bandwidth not identifiable"),
        (SIZES[18:] * 1000, "latency not identifiable"),
        (SIZES[10:11], "bandwidth not identifiable"),
    ],
)
def test_what_the_sizes_do_not_tell_is_said(sizes, verdict):
    found = calibrate(measured([Setting(8, 1)], by("ring", SLOW), sizes=sizes, noise=0.01))
    names = [each.name for each in found.verdicts]
    assert verdict in names
    assert "well determined" not in names
    assert "one N only" in names


def test_one_n_counts_all_latency_as_hops_and_ranges_cover_both_readings():
    found = calibrate(measured([Setting(4, 1)], by("ring", SLOW), noise=0.01))
    assert not found.profile.is_split
    new = Setting(8, 1)
    small = np.array([8.0])
    guess = predict(found.profile, new, small)
    truth = design("ring", at(new, small)) @ SLOW
    assert guess.low_s[0] < truth[0] < guess.high_s[0]


def test_a_bad_run_in_a_series_is_named():
    samples = measured([Setting(n, 0) for n in (2, 4, 8, 16, 32)], by("ring", SLOW), noise=0.01)
    samples.time_s[samples.n_workers == 8] *= 1.8
    text = {verdict.name: verdict.text for verdict in calibrate(samples).verdicts}
    assert text["bad run in a series"].startswith("N=8 is 1.")
    assert "slower" in text["bad run in a series"]


def test_a_good_series_has_no_bad_run():
    names = [verdict.name for verdict in calibrate(measured(CLUSTER, by("ring", SLOW), noise=0.02)).verdicts]
    assert "bad run in a series" not in names


def test_logs_of_one_setting_that_differ_are_two_machines():
    samples = measured([Setting(8, 1), Setting(8, 1)], by("ring", SLOW))
    samples.time_s[samples.log == 1] *= 2
    text = {verdict.name: verdict.text for verdict in calibrate(samples).verdicts}
    assert "differ by 2.00 times" in text["two machines"]


def test_held_out_workers_are_predicted_from_the_others():
    whole = fit(measured(ONE_NODE, by("ring", SLOW), noise=0.01))
    held = hold_out_workers(whole)
    assert [each.n_workers for each in held] == [2, 3, 4, 6, 8]
    assert max(each.median for each in held) < 0.03


def test_the_same_rows_give_the_same_profile():
    samples = measured(CLUSTER, first_of(by("ring", SLOW), by("ring", FAST)), noise=0.02)
    assert fit(samples).profile == fit(samples).profile
    order = np.random.default_rng(3).permutation(len(samples))
    again, first = fit(samples.where(order)).profile, fit(samples).profile
    assert [regime.n_points for regime in again.regimes] == [regime.n_points for regime in first.regimes]


def test_ranges_hold_about_nine_in_ten():
    truth = by("ring", SLOW)
    found = calibrate(measured(NOWHERE, truth, noise=0.05, seed=2)).profile
    inside = []
    for seed in range(5):
        fresh = measured([Setting(8, 0)], truth, noise=0.05, seed=100 + seed)
        guess = predict(found, Setting(8, 0), SIZES)
        inside.append((fresh.time_s >= guess.low_s) & (fresh.time_s <= guess.high_s))
    assert 0.8 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize("model", MODELS)
def test_designs_count_hops_and_bytes_as_their_definitions_say(model):
    """A ring of 8 on 2 nodes has 14 hops, 2 of them between nodes; NCCL's tree 2 x 3 + 2 x log2(2)."""
    row = design(model, at(Setting(8, 2), np.array([100.0])))[0]
    hops = {"ring": (14, 2, 175.0), "tree": (8, 2, 200.0), "doubling": (6, 2, 600.0)}[model]
    assert row.tolist() == [1, hops[0], hops[1], 0, hops[2]]
    alone = design(model, at(Setting(8, 1), np.array([100.0])))[0]
    assert (alone[2], alone[4]) == (0, 0)
    half = design(model, at(Setting(8, 2), np.array([100.0])), passes=1.0)[0]
    assert (2 * half[1:]).tolist() == row[1:].tolist()


@given(st.integers(1, 4), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_rising_labels_cost_the_least_of_all(n_labels, n_rows, seed):
    costs = np.random.default_rng(seed).random((n_labels, n_rows))
    labels = rising(costs, np.zeros((n_labels - 1, n_rows + 1)))
    assert (np.diff(labels) >= 0).all()
    got = costs[labels, np.arange(n_rows)].sum()

    def least(row, label):
        if row == n_rows:
            return 0.0
        return min(costs[next_, row] + least(row + 1, next_) for next_ in range(label, n_labels))

    if n_rows <= 8:
        assert got == pytest.approx(least(0, 0))


def test_a_long_log_in_equal_steps_is_cut_where_it_should_be():
    sizes = 1024.0 * np.arange(1, 401)
    found = fit(measured([Setting(8, 1)], first_of(by("ring", SLOW), by("ring", FAST * 2)), sizes=sizes))
    truth = first_of(by("ring", SLOW), by("ring", FAST * 2))(found.samples)
    assert np.abs(found.predicted_s() / truth - 1).max() < 0.01


def test_a_fit_that_is_far_off_is_not_well_determined():
    found = calibrate(measured(ONE_NODE, by("ring", SLOW), noise=0.3))
    assert found.verdicts[0].name == "loosely determined"


def test_columns_that_say_the_same_are_told():
    matrix = np.array([[1.0, 6, 2, 0, 3], [1.0, 14, 10, 0, 4], [1.0, 30, 26, 0, 9]])
    assert independent(matrix) == [0, 1, 4]


def test_a_boundary_moves_with_n_as_measured_and_with_few_as_expected():
    ends = [Boundary(Setting(n, 0), 1000.0 * n, 1100.0 * n) for n in (4, 8, 16)]
    assert boundary_law(ends, ("tree", "tree")).growth == pytest.approx(0.26, abs=0.01)
    assert boundary_law(ends, ("tree", "ring")).growth == pytest.approx(1.0, abs=1e-9)
    assert boundary_law(ends[:1], ("tree", "ring")).growth == 1.0
    assert boundary_law(ends[:1], ("tree", "tree")).growth == 0.0
    assert boundary_law([], ("ring", "ring")).strains(SIZES, 8).tolist() == [0.0] * (len(SIZES) + 1)
