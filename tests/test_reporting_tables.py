"""Tables as CSV: the same bytes, every number back to the last bit, and clear words for a damaged file."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import ResultsError
from ringnet.reporting.columns import TABLES
from ringnet.reporting.tables import format_cell, read_table, typed_frame, write_table


@pytest.fixture
def workers(tmp_path, result):
    """A table on disk."""
    path = tmp_path / "workers.csv"
    write_table(typed_frame(result(3).workers, "workers"), path)
    return path


@pytest.mark.parametrize("table", ["summary", "links", "workers", "transfers"])
def test_a_run_has_the_columns_that_are_documented(result, table):
    made = result(3)
    columns = list(made.summary) if table == "summary" else list(getattr(made, table).columns)
    assert sorted(columns) == sorted(TABLES[table])


@pytest.mark.parametrize("table", ["links", "workers", "transfers"])
def test_columns_come_in_their_order_and_others_after_them(result, table):
    frame = getattr(result(3), table)
    mixed = typed_frame(frame[frame.columns[::-1]].assign(other="x"), table)
    assert list(mixed.columns) == [*TABLES[table], "other"]


@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_its_own_meaning(table):
    assert all(column.meaning for column in TABLES[table].values())


@pytest.mark.parametrize("table", ["links", "workers", "transfers"])
def test_a_table_comes_back_as_it_was(tmp_path, result, table):
    frame = typed_frame(getattr(result(5, 333, latency_s=0.1), table), table)
    write_table(frame, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.csv", table), frame)


@given(value=st.floats(allow_nan=False))
def test_a_float_is_written_as_short_as_it_can_be_and_read_to_the_last_bit(value):
    text = format_cell(value)
    assert text == repr(value)
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert float(text) == value


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_any_text_is_one_cell_for_every_reader_of_csv(text):
    line = ",".join([format_cell(text), format_cell("x")])
    assert list(csv.reader(io.StringIO(line, newline=""))) == [[text, "x"]]


def test_truths_and_what_is_missing():
    rows = [(True, "no", 1), (False, None, None), (None, "NA", 2**62 + 1)]
    typed = typed_frame(pd.DataFrame(rows, columns=["sum_ok", "error", "seed"], dtype=object), "summary")
    assert typed["sum_ok"].tolist() == [True, False, pd.NA]
    assert typed["error"].tolist() == ["no", None, "NA"]
    assert typed["seed"].tolist() == [1, pd.NA, 2**62 + 1]
    assert [format_cell(value) for value in typed["sum_ok"]] == ["true", "false", ""]


@pytest.mark.parametrize("times", [1, 5], ids=["each row once", "rows as those before them"])
def test_each_cell_of_a_file_is_written_as_it_is_alone(tmp_path, times):
    """Whatever shares its column, and its value with cells of other columns."""
    of_each = {
        "x_s": np.array([0.0, -0.0, np.nan, 0.1]),
        "y_s": np.array([-0.0, 0.1, 2.0, np.nan]),
        "n": np.array([2, 0, 2, -1]),
        "names": ["plain", "a,b", 'say "a"', "two\nlines"],
        "some": ["a,b", None, "a", "a,b"],
        "whole": [2, None, 2, 0],
        "mixed": [True, 1, False, 0],
        "texts": ["a", "b", "a", "c"],
        "truths": [True, None, False, True],
        "z": np.array([0.5, 0.5, -1.0, 0.5]),
    }
    which = np.repeat(np.arange(4), times)
    table = {
        name: cells[which] if isinstance(cells, np.ndarray) else [cells[row] for row in which]
        for name, cells in of_each.items()
    }
    write_table(table, tmp_path / "table.csv")
    rows = zip(*table.values(), strict=True)
    expected = [",".join(table), *(",".join(map(format_cell, row)) for row in rows)]
    assert (tmp_path / "table.csv").read_text() == "\n".join(expected) + "\n"
    assert expected[1::times][:2] == ['0.0,-0.0,2,plain,"a,b",2,true,a,true,0.5', '-0.0,0.1,0,"a,b",,,1,b,,0.5']


def test_a_whole_number_that_came_as_a_float_is_written_whole():
    row = {"bytes_sent_per_worker": [800.0], "expected_bytes_per_worker": [800.5]}
    for dtype in (np.float64, object):
        typed = typed_frame(pd.DataFrame(row, dtype=dtype), "summary")
        assert [format_cell(typed[name][0]) for name in row] == ["800", "800.5"]


def test_states_keep_integers_exact_and_floats_short(tmp_path):
    rows = {"phase": ["start", "reduce-scatter"], "step": [None, 0], "worker": [0, 0]}
    frame = pd.DataFrame({**rows, "e0": [2**63 - 1, -1], "e1": np.array([0.1, 0.25], dtype=np.float32)})
    write_table(typed_frame(frame.astype({"step": "Int64"}), "states"), tmp_path / "states.csv")
    assert (tmp_path / "states.csv").read_text().splitlines()[1] == "start,,0,9223372036854775807,0.1"
    assert read_table(tmp_path / "states.csv", "states")["e0"].tolist() == [2**63 - 1, -1]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace("end_s", "ende_s"), "end_s: a column is missing"),
        (lambda text: text.replace("1,0.0", "1,zero"), "csv:3: start_s: a cell cannot be read; got 'zero'"),
        (lambda text: text[:-9], "csv:4: a row has 1. cells, and the first line 19"),
        (lambda text: text + "," * 20, "csv:5: a row has 21 cells"),
        (lambda text: "", "worker: a column is missing"),
        (lambda text: text.replace("1,0.0", '1,"0.0'), "cannot be read: unexpected end of data"),
    ],
)
def test_a_damaged_table_is_told_with_its_place(workers, damage, words):
    workers.write_text(damage(workers.read_text()))
    with pytest.raises(ResultsError, match=words):
        read_table(workers, "workers")


def test_a_table_of_bytes_that_are_no_text_is_told(workers):
    workers.write_bytes(b"\xff\xfe\x00worker")
    with pytest.raises(ResultsError, match=r"workers.csv: this table cannot be read"):
        read_table(workers, "workers")


def test_a_table_that_is_gone_is_told(tmp_path):
    with pytest.raises(ResultsError, match="is not there"):
        read_table(tmp_path / "links.csv", "links")
