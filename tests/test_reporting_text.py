"""The answer in words, and as HTML that no name can break out of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringnet.analysis.answer import answer, result_html
from ringnet.reporting.results import collect
from ringnet.reporting.text import sweep_html, sweep_table, written

NASTY = '<script>alert("1")</script> & co'


def lines(run, **changes):
    return dict(answer(run.summary | changes))


def test_the_answer_comes_first_and_in_units(result):
    run = result(8, 2**23, bandwidth_Bps=50e9, latency_s=5e-7)
    assert [label for label, _ in answer(run.summary)][:5] == [
        "time",
        "algbw",
        "busbw",
        "of the bound",
        "closed form",
    ]
    assert lines(run)["time"] == "2.356 ms"
    assert lines(run)["busbw"] == "49.85 GB/s"
    assert (
        lines(run)["of the bound"]
        == "99.7 % (no algorithm takes less than 2.349 ms here, for what must go between the workers)"
    )
    assert lines(run)["made of"] == "100 % bandwidth"
    assert lines(run)["sent per worker"] == "112 MiB, as expected"


def test_the_words_of_the_run_itself_are_preferred(result):
    assert dict(answer(result(3).summary, "80 % bandwidth, for sure"))["made of"] == "80 % bandwidth, for sure"


def test_the_same_words_come_from_a_run_and_from_its_table(result):
    run = result(4, 300, latency_s=0.25)
    assert answer(collect([run], {}).summary.iloc[0].to_dict()) == answer(run.summary)


def test_nothing_that_does_not_apply_is_said(result):
    assert set(lines(result(1))) == {"time", "sent per worker", "sum"}


def test_a_slowest_link_is_named_with_its_load(result):
    changes = {"slowest_link": "1->2", "slowest_link_utilisation": 0.99999, "makespan_s": 4.0}
    changes |= {"slowest_link_change": "as good as its best like"}
    said = lines(result(3), **changes, slowest_link_gain_s=1.0, longest_queue=3)["slowest link"]
    gains = "the run takes 3 s (25 % less) if as good as its best like"
    assert said == f"1->2, {gains}, busy 99.9 % of the time, longest queue of any link 3"
    some = lines(result(3), **changes, slowest_link_gain_s=1.0, slowest_link_by="trials")["slowest link"]
    assert some.startswith(f"1->2, {gains}, others not tried (`ringnet blame` does), ")
    assert "by the path, not confirmed" in lines(result(3), **changes, slowest_link_by="path")["slowest link"]


def test_links_that_are_mended_together_are_counted(result):
    changes = {"slowest_link": "1->2", "n_slowest_links": 4, "slowest_link_gain_s": 1.0}
    said = lines(result(3), **changes, slowest_link_change="as good as its best like")["slowest link"]
    assert said.startswith("1->2 and 3 more, ")
    assert said.endswith("if as good as their best likes")


def test_where_no_mending_gains_it_is_said(result):
    assert lines(result(3))["slowest link"] == "none: all links in use are alike"
    tried = {"slowest_link_gain_s": 0.0, "slowest_link_by": "simulation"}
    none = lines(result(3), **tried, slowest_link_change="twice as fast")["slowest link"]
    assert none == "none: no kind of links alone gains 1 % if twice as fast"
    none = lines(result(3), **tried, slowest_link_change="as good as its best like")["slowest link"]
    assert none == "none: links as good as their best likes gain nothing"
    said = lines(result(3), slowest_link_by="load")["slowest link"]
    assert said == "not tried, since that takes long here: `ringnet blame` does"


def test_traffic_of_uneven_chunks_is_said_beside_the_even_one(result):
    said = lines(result(3), bytes_sent_per_worker=6860, expected_bytes_per_worker=48000 / 7)["sent per worker"]
    assert said == "6,860 B at most; 6,857.14 B if all chunks were alike"


def test_traffic_that_is_not_uneven_but_more_is_said_beside_what_busbw_counts():
    """The root of a tree sends the buffer, in one chunk, to two others; in slices that differ by an element too."""
    tree = {"n_workers": 4, "dtype": "float32", "n_transfers": 6, "expected_bytes_per_worker": 1.5 * 2**20}
    assert dict(answer(tree | {"bytes_sent_per_worker": 2**21}))["sent per worker"] == (
        "2 MiB at most; busbw counts 1.5 MiB"
    )
    uneven = tree | {"n_transfers": 24, "bytes_sent_per_worker": 1572884}
    assert dict(answer(uneven))["sent per worker"] == "1,572,884 B at most; 1,572,864 B if all chunks were alike"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "not verified: no payload was carried"),
        ({"sum_ok": True, "verified_elements": 1234}, "right: 1,234 elements verified"),
        (
            {"sum_ok": True, "verified_elements": 8, "max_abs_error": 1.5e-7, "max_error_share": 0.123},
            "right: 8 elements verified, largest error 1.5e-07 (12.3 % of what rounding allows)",
        ),
        (
            {"sum_ok": True, "verified_elements": 8, "max_abs_error": 1.5e-7},
            "right: 8 elements verified, largest error 1.5e-07",
        ),
        ({"sum_ok": False, "verified_elements": 8}, "WRONG: see the error (8 elements compared)"),
    ],
)
def test_the_sum_is_said_to_be_right_wrong_or_not_verified(result, changes, words):
    assert lines(result(3), **changes)["sum"] == words


def test_the_table_of_a_sweep_shows_what_varies_and_what_came_of_it(result):
    runs = [result(n, 2**20, **{"network.latency": text}) for n in (2, 4) for text in ("1 s", "2 s")]
    failed = replace(runs[0], summary={"name": "ring", "n_workers": 8, "error": "stuck"})
    table = sweep_table(collect([*runs, failed], {}).summary)
    assert table.heads == ("N", "latency", "time", "algbw", "busbw", "of bound", "mostly", "sum")
    assert table.rows[1][:2] == ("2", "2 s")
    assert table.rows[1][-2:] == ("100 % bandwidth", "not verified")
    assert table.rows[-1] == ("8", "", "failed", "", "", "", "stuck", "")
    assert {len(row) for row in table.rows} == {len(table.heads)}


def test_files_are_named_as_far_as_a_line_goes():
    assert written("out", [f"{letter}.csv" for letter in "abcdefg"]) == "out: a.csv, b.csv, c.csv, d.csv and 3 more"


def test_no_text_of_a_scenario_reaches_a_page_unescaped(result):
    run = result(3, name=NASTY, slowest_link=NASTY, error=NASTY)
    page = result_html(run.summary, NASTY, [NASTY])
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; co") == 5


def test_no_text_of_a_sweep_reaches_a_page_unescaped(result):
    runs = [result(3, name=NASTY, **{NASTY: value}) for value in (NASTY, "other")]
    page = sweep_html(collect(runs, {}).summary, [NASTY])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4


def test_a_page_has_a_row_for_every_point(result):
    page = sweep_html(collect([result(n) for n in (2, 3, 4)], {}).summary)
    assert page.count("<tr>") == 4
