"""What a sweep varies is read from its table, without a look at the scenario."""

from __future__ import annotations

import pytest

from ringnet.reporting.results import collect
from ringnet.reporting.sweeps import distinguishing, lines, numbers, other_keys, varying


@pytest.fixture
def summary(result):
    """The summary of points, each given by what differs in it."""

    def of(*points):
        return collect([result(**point) for point in points], {}).summary

    return of


def test_a_single_run_varies_nothing(summary):
    assert varying(summary({})) == distinguishing(summary({})) == []


def test_a_grid_is_told_by_both_of_its_keys(summary):
    grid = summary(*({"n_workers": n, "message_bytes": s} for n in (2, 4) for s in (10, 20)))
    assert distinguishing(grid) == ["n_workers", "message_bytes"]
    assert [line.label for line in lines(grid, "n_workers")] == ["10 B", "20 B"]
    assert [line.label for line in lines(grid, "message_bytes")] == ["N = 2", "N = 4"]


def test_what_only_follows_from_another_key_makes_no_lines(summary):
    zipped = summary(
        *({"n_workers": n, "message_bytes": 10 * n, "engine": e} for n, e in ((2, "a"), (4, "a"), (8, "b")))
    )
    assert varying(zipped) == ["n_workers", "message_bytes", "engine"]
    assert distinguishing(zipped) == ["n_workers"]
    assert [line.label for line in lines(zipped, "n_workers")] == [""]


def test_lines_of_sizes_that_grow_with_the_workers_stay_lines(summary):
    scaled = summary(*({"n_workers": n, "message_bytes": n * s} for n in (3, 5) for s in (1, 2)))
    assert [line.label for line in lines(scaled, "message_bytes")] == ["N = 3", "N = 5"]


def test_the_engine_that_auto_chose_by_size_makes_no_lines(summary):
    auto = summary(*({"n_workers": n, "engine": "events" if n < 8 else "recurrence"} for n in (2, 4, 8, 16)))
    assert [line.label for line in lines(auto, "n_workers")] == [""]


def test_an_engine_that_is_really_swept_makes_lines(summary):
    both = summary(*({"n_workers": n, "engine": e} for n in (2, 4) for e in ("events", "recurrence")))
    assert [line.label for line in lines(both, "n_workers")] == ["events", "recurrence"]


def test_lines_are_sorted_and_so_are_their_points(summary):
    points = summary(*({"n_workers": n, "message_bytes": s} for n in (16, 2, 4) for s in (30, 10, 20)))
    found = lines(points, "message_bytes")
    assert [line.label for line in found] == ["N = 2", "N = 4", "N = 16"]
    assert [line.rows["message_bytes"].tolist() for line in found] == [[10, 20, 30]] * 3


def test_a_key_of_the_sweep_keeps_its_order_and_its_text(summary):
    points = summary(*({"network.latency": text, "n_workers": n} for text in ("9 us", "10 us") for n in (2, 3)))
    assert [line.label for line in lines(points, "n_workers")] == ["latency 9 us", "latency 10 us"]
    assert lines(points, "network.latency")[0].rows["network.latency"].tolist() == ["9 us", "10 us"]


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (("1", "2.5"), "number", [1, 2.5]),
        (("1 us", "1 ms"), "seconds", [1e-6, 1e-3]),
        (("8 Gbit/s", "50 GB/s"), "bytes_per_second", [1e9, 5e10]),
        (("1 KiB", "1 kB"), "bytes", [1024, 1000]),
    ],
)
def test_a_swept_key_is_read_in_its_units(summary, texts, kind, values):
    found = numbers(summary(*({"key": text} for text in texts))["key"])
    assert found.kind == kind
    assert found.numbers.tolist() == pytest.approx(values)


@pytest.mark.parametrize("texts", [("ring", "switch"), ("1 us", "fast"), ("1 us", None), ("1 us", "1 B")])
def test_words_are_no_numbers(summary, texts):
    assert numbers(summary(*({"key": text} for text in texts))["key"]) is None


def test_words_are_a_key_of_their_own_only_where_there_is_no_other(summary):
    assert other_keys(summary({"switching": "a"}, {"switching": "b"})) == ["switching"]
    assert other_keys(summary({"switching": "a", "n_workers": 2}, {"switching": "b", "n_workers": 4})) == []
    assert other_keys(summary({"seed": 1}, {"seed": 2})) == []
