"""Two results side by side: what was changed, and what that changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringnet.errors import ResultsError
from ringnet.reporting.results import collect, diff_results


def scenario(**network):
    return {"scenario": {"name": "ring", "workers": [2, 4], "network": {"topology": "ring", **network}}}


def rows(frame):
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_a_run_does_not_differ_from_itself(result):
    found = diff_results(collect([result(3)], scenario()), collect([result(3)], scenario()))
    assert all(frame.empty for frame in found)


def test_the_changed_key_and_what_it_changed(result):
    a = collect([result(3, 200)], scenario(bandwidth="100 B/s"))
    b = collect([result(3, 200, bandwidth_Bps=200.0)], scenario(bandwidth="200 B/s"))
    found = diff_results(a, b)
    assert rows(found.scenario) == [("network.bandwidth", "100 B/s", "200 B/s")]
    assert ("makespan_s", 10.0, 6.0, 0.6) in rows(found.answer)
    assert "n_transfers" not in found.answer["column"].tolist()


def test_a_key_that_only_one_has(result):
    found = diff_results(collect([result(3)], scenario()), collect([result(3)], scenario(switching="cut-through")))
    assert rows(found.scenario) == [("network.switching", None, "cut-through")]


def test_words_and_missing_values_have_no_ratio(result):
    a, b = result(3, slowest_link="0->1", closed_form_s=None), result(3, slowest_link=None, longest_queue=4)
    found = {row[0]: row[1:] for row in rows(diff_results(*(collect([run], scenario()) for run in (a, b))).answer)}
    assert found["slowest_link"] == ("0->1", None, None)
    assert found["closed_form_s"] == (None, 6.0, None)
    assert found["longest_queue"] == (0, 4, None)


def test_the_points_of_sweeps_are_matched_whatever_their_order(result):
    a = [result(n, chunk) for n in (2, 4) for chunk in (100, 800)]
    b = [result(n, chunk, latency_s=1.0) for chunk in (800, 100) for n in (4, 2)]
    answer = diff_results(collect(a, scenario()), collect(b, scenario())).answer
    times = answer[answer["column"] == "makespan_s"]
    assert times["ratio"].tolist() == pytest.approx([2 * (1 + 1) / 3, 18 / 17, 4 / 3, 18 / 17], rel=1e-12, abs=0)
    assert rows(times[["n_workers", "message_bytes"]]) == [(2, 200), (2, 1600), (4, 400), (4, 3200)]


def test_points_that_only_one_sweep_has(result):
    a, b = (collect([result(n) for n in counts], scenario()) for counts in ((2, 3), (3, 4)))
    found = diff_results(a, b)
    assert found.answer.empty
    assert (found.only_a["n_workers"].tolist(), found.only_b["n_workers"].tolist()) == ([2], [4])


def test_a_sweep_is_matched_with_the_single_run_that_it_holds(result):
    found = diff_results(collect([result(n) for n in (2, 3)], scenario()), collect([result(3)], scenario()))
    assert found.only_a["n_workers"].tolist() == [2]
    assert found.answer.empty


def test_sweeps_over_different_keys_cannot_be_matched(result):
    a = collect([result(3, **{"network.latency": text}) for text in ("1 s", "2 s")], scenario())
    b = collect([result(3, **{"network.bandwidth": text}) for text in ("1 B/s", "2 B/s")], scenario())
    with pytest.raises(ResultsError, match="they vary different keys"):
        diff_results(a, b)


def test_a_point_that_failed_on_one_side(result):
    a = collect([result(3)], scenario())
    b = collect([replace(result(3), summary={"name": "ring", "n_workers": 3, "error": "stuck"})], scenario())
    assert ("error", None, "stuck", None) in rows(diff_results(a, b).answer)
