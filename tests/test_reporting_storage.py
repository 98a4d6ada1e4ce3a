"""A folder of results: written, read back, replaced, drawn again, and refused where it is damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ringnet.errors import ResultsError
from ringnet.reporting.look import Look
from ringnet.reporting.results import collect
from ringnet.reporting.storage import read_results, redraw, write_results

INFO = {"scenario": {"name": "ring", "network": {"bandwidth": "100 B/s"}}, "seed": 7, "notes": ["a note"]}


@pytest.fixture
def out(tmp_path, result):
    """A single run's results on disk, without plots."""
    write_results(tmp_path / "out", [result(3)], INFO, plots=[])
    return tmp_path / "out"


@pytest.fixture
def sweep(result):
    """Four points over N and message size."""
    return [result(n, chunk) for n in (2, 4) for chunk in (100, 800)]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change(folder, **changes):
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | changes))


def test_a_single_run_has_all_its_tables(out):
    assert names(out) == [
        "links.csv",
        "path.csv",
        "routes.csv",
        "run.json",
        "summary.csv",
        "transfers.csv",
        "utilisation.csv",
        "workers.csv",
    ]


def test_a_sweep_has_one_row_per_point_in_its_order(tmp_path, sweep):
    write_results(tmp_path / "out", sweep, INFO, plots=[])
    assert names(tmp_path / "out") == ["run.json", "summary.csv"]
    back = read_results(tmp_path / "out")
    assert back.summary["n_workers"].tolist() == [2, 2, 4, 4]
    assert back.transfers is None


def test_a_swept_key_is_a_column_of_its_own_as_it_was_written(tmp_path, result):
    points = [result(3, **{"network.bandwidth": text}) for text in ("100 B/s", "1e2 B/s")]
    write_results(tmp_path / "out", points, INFO, plots=[])
    assert read_results(tmp_path / "out").summary["network.bandwidth"].tolist() == ["100 B/s", "1e2 B/s"]


def test_a_point_that_failed_is_a_row_with_its_error(tmp_path, result):
    failed = replace(result(4), summary={"name": "ring", "n_workers": 8, "error": 'no, "really"\nnot'})
    write_results(tmp_path / "out", [result(3), failed], INFO, plots=[])
    back = read_results(tmp_path / "out")
    assert back.summary["error"].tolist() == [None, 'no, "really"\nnot']
    assert back.finished["n_workers"].tolist() == [3]


def test_only_the_tables_asked_for_are_written(tmp_path, result):
    written = write_results(tmp_path / "out", [result(3)], INFO, tables=["links"], plots=[])
    assert written.files == ("summary.csv", "links.csv", "run.json")
    assert sorted(written.files) == names(tmp_path / "out")


def test_the_worked_example_shows_its_states(tmp_path, result):
    states = {"phase": ["start"], "step": [None], "worker": [0], "e0": [1], "e1": [2]}
    write_results(tmp_path / "out", [replace(result(2), tables={"states": states})], INFO, plots=[])
    assert (tmp_path / "out" / "states.csv").read_text() == "phase,step,worker,e0,e1\nstart,,0,1,2\n"


def test_run_json_is_enough_to_repeat_the_run(out):
    info = json.loads((out / "run.json").read_text())
    assert info["scenario"] == INFO["scenario"]
    assert info["seed"] == 7
    assert info["notes"] == ["a note"]
    assert set(info["versions"]) == {"ringnet", "python", "numpy", "simpy"}
    assert sorted(info["files"]) == names(out)


def test_numpy_numbers_and_paths_fit_into_run_json(tmp_path, result):
    info = INFO | {"seed": np.int64(3), "where": tmp_path}
    write_results(tmp_path / "out", [result(2)], info, plots=[])
    assert read_results(tmp_path / "out").run_info["seed"] == 3


def test_what_json_cannot_hold_is_an_error_and_nothing_is_written(tmp_path, result):
    with pytest.raises(TypeError, match="cannot hold a set"):
        write_results(tmp_path / "out", [result(2)], INFO | {"odd": {1}}, plots=[])
    assert names(tmp_path) == []


def test_what_is_read_is_what_was_collected(tmp_path, result):
    made = [result(5, 333, latency_s=0.1)]
    write_results(tmp_path / "out", made, INFO, plots=[])
    back, collected = read_results(tmp_path / "out"), collect(made, INFO)
    for table in ("summary", "links", "workers", "transfers"):
        pd.testing.assert_frame_equal(getattr(back, table), getattr(collected, table))


def test_the_same_run_gives_the_same_bytes(tmp_path, result):
    for name in ("a", "b"):
        write_results(
            tmp_path / name, [result(3)], INFO, plots=["space-time"], look=Look(formats=("svg", "png", "pdf"))
        )
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_new_run_replaces_the_old_one_whole(out, sweep):
    write_results(out, sweep, INFO, plots=[])
    assert names(out) == ["run.json", "summary.csv"]


def test_results_are_not_mixed_with_a_persons_files(out, sweep):
    (out / "thoughts.txt").write_text("mine")
    before = contents(out)
    with pytest.raises(ResultsError, match=r"thoughts\.txt"):
        write_results(out, sweep, INFO)
    assert contents(out) == before


def test_plots_that_apply_are_drawn_and_listed(tmp_path, sweep):
    written = write_results(tmp_path / "out", sweep, INFO, look=Look(formats=("svg",)))
    assert sorted(written.files) == names(tmp_path / "out")
    assert {"time-vs-workers.svg", "busbw-vs-message-size.svg"} <= set(written.files)


def test_a_plot_that_does_not_apply_is_left_out_with_a_note(tmp_path, sweep):
    written = write_results(tmp_path / "out", sweep, INFO, plots=["space-time"])
    note = "plot space-time is not drawn: it needs a single run that takes time, with its table transfers.csv"
    assert written.notes == ("a note", note)
    assert read_results(tmp_path / "out").run_info["notes"] == ["a note", note]


def test_plots_are_drawn_again_from_the_tables_alone(tmp_path, sweep):
    write_results(tmp_path / "out", sweep, INFO, look=Look(formats=("svg",)))
    first = contents(tmp_path / "out")
    for path in (tmp_path / "out").glob("*.svg"):
        path.unlink()
    redraw(tmp_path / "out", look=Look(formats=("svg",)))
    assert contents(tmp_path / "out") == first


def test_a_plot_that_is_drawn_later_belongs_to_the_results(out, sweep):
    written = redraw(out, ["space-time"], Look(formats=("pdf",)))
    assert written.files == ("space-time.pdf",)
    write_results(out, sweep, INFO, plots=[])
    assert names(out) == ["run.json", "summary.csv"]


def test_a_plot_that_cannot_be_drawn_later_is_an_error_with_the_reason(out):
    with pytest.raises(ResultsError, match="needs a sweep over the number of workers"):
        redraw(out, ["time-vs-workers"])
    with pytest.raises(ResultsError, match=r"no such plot; got spacetime; .* did you mean space-time"):
        redraw(out, ["spacetime"])
    assert names(out) == [
        "links.csv",
        "path.csv",
        "routes.csv",
        "run.json",
        "summary.csv",
        "transfers.csv",
        "utilisation.csv",
        "workers.csv",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"results_version": 2}, r"written by a newer ringnet \(0.*; got 2; right would be: 1 or less"),
        ({"results_version": 2, "versions": 3}, r"newer ringnet \(\?\)"),
        ({"results_version": "1"}, "not written by ringnet"),
        ({"files": "summary.csv"}, "run.json is damaged"),
        ({"scenario": None}, "run.json is damaged"),
        ({"files": []}, "lists no summary.csv"),
        ({"files": ["summary.csv", "states.csv"]}, r"states\.csv: a table that run.json lists is not there"),
    ],
)
def test_a_manifest_that_does_not_fit_is_told(out, changes, words):
    change(out, **changes)
    with pytest.raises(ResultsError, match=words):
        read_results(out)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "null"])
def test_a_manifest_that_is_none_is_told(out, text):
    (out / "run.json").write_text(text)
    with pytest.raises(ResultsError, match=r"run\.json"):
        read_results(out)


def test_a_folder_without_results_is_told(tmp_path):
    with pytest.raises(ResultsError, match=r"not a folder of results: no run\.json in it"):
        read_results(tmp_path)
    with pytest.raises(ResultsError, match="there is no such folder"):
        read_results(tmp_path / "nowhere")


def test_a_summary_without_rows_is_told(out):
    head = (out / "summary.csv").read_text().splitlines()[0]
    (out / "summary.csv").write_text(f"{head}\n")
    with pytest.raises(ResultsError, match="has no rows"):
        read_results(out)
