"""Errors of rounding: against float64, by algorithm; whose results are the same bits."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ringnet.analysis.replay import exact_result, rounded, rounding_error
from ringnet.api.questions import numerics
from ringnet.cli import app
from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError
from ringnet.payload import make_reduction
from ringnet.payload.dtypes import DTYPES, unit_roundoff
from ringnet.reference import ring_allreduce
from ringnet.reporting.plots.algorithms import error_by_algorithm
from ringnet.scenario import load, loads
from ringnet.study import numerics as studied

TEXT = """
scenario_version: 1
workers: 5
message: 4 KiB
seed: 3
network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}
"""
ALL_REDUCING = [name for name, one in ALGORITHMS.items() if "all-reduce" in one.collectives]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return numerics(loads(TEXT), "all", [4, 5], accumulate="float32").table


def test_a_ring_is_the_reference_bit_for_bit():
    values = np.random.default_rng(1).random((4, 37), dtype=np.float32)
    found = rounded(ALGORITHMS["ring"].build(4, "all-reduce"), make_reduction("sum", 4), values)
    assert found.result.tobytes() == ring_allreduce(list(values))[0].tobytes()


@pytest.mark.parametrize("algorithm", ALL_REDUCING)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_errors_are_within_what_rounding_can_do(algorithm: str, dtype: str):
    values = (np.random.default_rng(2).random((6, 50)) - 0.5).astype(DTYPES[dtype])
    found = rounded(ALGORITHMS[algorithm].build(6, "all-reduce"), make_reduction("sum", 6), values)
    assert found.agree
    u = unit_roundoff(DTYPES[dtype])
    bound = 5 * u / (1 - 5 * u) * np.abs(values.astype(np.float64)).sum(axis=0)
    off = np.abs(found.result.astype(np.float64) - exact_result(make_reduction("sum", 6), values))
    assert (off <= bound).all()


def test_partial_sums_in_float32_are_rounded_once():
    values = (np.random.default_rng(2).random((6, 500)) - 0.5).astype(DTYPES["bfloat16"])
    total = exact_result(make_reduction("sum", 6), values)
    found = rounded(ALGORITHMS["ring"].build(6, "all-reduce"), make_reduction("sum", 6), values, DTYPES["float32"])
    assert found.result.dtype == DTYPES["bfloat16"]
    assert (found.result == total.astype(DTYPES["bfloat16"])).mean() > 0.99


def test_an_error_of_nothing_is_nothing():
    assert rounding_error(np.zeros(0), np.zeros(0)) == (0.0, 0.0, None)


def test_narrower_types_have_larger_errors(table: pd.DataFrame):
    own = table[table["dtype"] == table["accumulation"]]
    mean = own.groupby("dtype")["relative_rms_error"].mean()
    assert mean["float32"] < mean["float16"] < mean["bfloat16"]


def test_wider_partial_sums_have_smaller_errors(table: pd.DataFrame):
    rows = table[table["dtype"] == "bfloat16"]
    wide = rows["accumulation"] == "float32"
    assert rows.loc[wide, "relative_rms_error"].max() < rows.loc[~wide, "relative_rms_error"].min()
    assert rows.loc[wide, "result"].nunique() < rows.loc[~wide, "result"].nunique()


def test_all_workers_hold_the_same_bits(table: pd.DataFrame):
    assert table["workers_agree"].all()


def test_equal_numbers_of_results_are_equal_bits(table: pd.DataFrame):
    rows = table[(table["n_workers"] == 4) & (table["dtype"] == "float32")].set_index("algorithm")
    assert rows["result"]["halving-doubling"] == rows["result"]["recursive-doubling"]
    assert rows["result"]["ring"] != rows["result"]["recursive-doubling"]


def test_a_tree_adds_in_one_order_whatever_the_size_and_a_ring_does_not(table: pd.DataFrame):
    rows = table[(table["n_workers"] == 5) & (table["dtype"] == "float32")].set_index("algorithm")
    assert not rows["changes_with_size"]["binomial-tree"]
    assert rows["changes_with_size"]["ring"]


def test_the_users_own_data_counts(tmp_path):
    np.save(tmp_path / "ones.npy", np.ones((3, 8), dtype=np.float32))
    (tmp_path / "own.yaml").write_text(
        "scenario_version: 1\ndata: ones.npy\nnetwork: {topology: switch, bandwidth: 1 GB/s, latency: 1 us}\n"
    )
    found = numerics(load(tmp_path / "own.yaml"), ["ring", "direct"])
    assert (found.table["max_abs_error"] == 0).all()
    assert "all algorithms give the same bits" in found.notes


def test_numbers_of_workers_that_the_data_has_not_are_refused(tmp_path):
    np.save(tmp_path / "ones.npy", np.ones((3, 8), dtype=np.float32))
    (tmp_path / "own.yaml").write_text(
        "scenario_version: 1\ndata: ones.npy\nnetwork: {topology: switch, bandwidth: 1 GB/s, latency: 1 us}\n"
    )
    with pytest.raises(InputError, match="workers: the data is that of 3 workers; got 2, 3; right would be: 3"):
        numerics(load(tmp_path / "own.yaml"), ["ring"], [2, 3])


def test_it_is_said_that_a_large_message_is_cut(monkeypatch):
    monkeypatch.setattr(studied, "MOST_ELEMENTS", 1000)
    found = numerics(loads(TEXT), ["ring"], [4, 10], ["float32"], jobs=1)
    assert "with 4 workers the first 250 of 1,024 elements are looked at, as a message of its own" in found.notes
    assert "with 10 workers the first 100 of 1,024 elements are looked at, as a message of its own" in found.notes
    assert found.table["n_elements"].tolist() == [250, 100]
    monkeypatch.setattr(studied, "MOST_ELEMENTS", 4096)
    assert not any("looked at" in note for note in numerics(loads(TEXT), ["ring"], [4], jobs=1).notes)


def test_whose_errors_are_the_least_is_said():
    found = numerics(loads(TEXT), ["ring", "recursive-doubling"], [4, 16], ["bfloat16"], "float32", jobs=1)
    rows = found.table[(found.table["n_workers"] == 16) & (found.table["accumulation"] == "bfloat16")]
    ring, doubling = (rows.set_index("algorithm")["rms_error"][name] for name in ("ring", "recursive-doubling"))
    said = [note for note in found.notes if "the errors of" in note]
    factor = f"{ring / doubling:.3g} times"
    assert said == [f"with 16 workers in bfloat16 the errors of ring are {factor} those of recursive-doubling"]


def test_it_is_said_that_nothing_is_accumulated_in_a_type():
    found = numerics(loads(TEXT), ["ring"], [4], ["float32"], "float32", jobs=1)
    assert "no element type is narrower than float32: nothing is accumulated in it" in found.notes


@pytest.mark.parametrize("override", ["collective=all-gather", "dtypes"])
def test_what_adds_nothing_or_is_exact_is_refused(override: str):
    scenario = loads(TEXT, [] if override == "dtypes" else [override])
    with pytest.raises(InputError):
        numerics(scenario, ["ring"], dtypes=["int32"] if override == "dtypes" else ["float32"])


@pytest.mark.usefixtures("own_folder")
def test_the_command_writes_table_and_plot_and_prints_json(tmp_path):
    (tmp_path / "some.yaml").write_text(TEXT)
    out = tmp_path / "out"
    options = ["--algorithms", "ring,direct", "--accumulate", "float32", "--out", str(out), "--json"]
    done = CliRunner().invoke(app, ["numerics", str(tmp_path / "some.yaml"), *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["points"]
    assert list(found[0]) == list(pd.read_csv(out / "numerics.csv").columns)
    assert (out / "error-by-algorithm.png").stat().st_size > 1000


def test_types_with_errors_alike_do_not_cover_each_other_in_the_picture(table: pd.DataFrame):
    alike = table.assign(relative_rms_error=[unit_roundoff(DTYPES[dtype]) for dtype in table["dtype"]])
    figure = error_by_algorithm("some", alike)
    figure.draw_without_rendering()
    for ax in figure.axes:
        markers = [line for line in ax.lines if line.get_linestyle() == "None"]
        assert len(markers) > 2
        at = np.concatenate([ax.transData.transform(line.get_xydata())[:, 1] for line in markers])
        apart = np.diff(np.sort(at)).min() / figure.dpi * 72
        assert apart > 0.8 * markers[0].get_markersize()
