"""The reduced arrays as files that can be the data of another run."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ringnet.errors import ResultsError
from ringnet.reporting.atomic import save_outputs


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_all_workers_hold_is_one_file(tmp_path):
    (path,) = save_outputs(tmp_path / "new" / "sum.npy", [np.arange(6.0).reshape(2, 3)])
    assert path == tmp_path / "new" / "sum.npy"
    assert np.load(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert names(tmp_path / "new") == ["sum.npy"]


def test_a_part_for_each_worker_is_a_file_for_each_in_their_order(tmp_path):
    paths = save_outputs(tmp_path / "parts", [np.full(2, worker) for worker in range(11)])
    assert [path.name for path in paths] == names(tmp_path / "parts")
    assert [int(np.load(path)[0]) for path in paths] == list(range(11))


def test_a_folder_holds_one_result_and_a_name_holds_several(tmp_path):
    assert save_outputs(tmp_path / "out", [np.ones(1)]) == (tmp_path / "out" / "result.npy",)
    paths = save_outputs(tmp_path / "out" / "sum.npy", [np.ones(1), np.ones(2)])
    assert [path.name for path in paths] == ["sum-worker-0.npy", "sum-worker-1.npy"]


def test_files_are_replaced_and_others_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    save_outputs(tmp_path, [np.zeros(1)])
    save_outputs(tmp_path, [np.ones(1)])
    assert np.load(tmp_path / "result.npy").tolist() == [1]
    assert names(tmp_path) == ["mine.txt", "result.npy"]


def test_bfloat16_comes_back_by_its_bytes(tmp_path):
    values = np.array([1.5, -2.0], dtype=ml_dtypes.bfloat16)
    (path,) = save_outputs(tmp_path, [values])
    assert np.load(path).view(ml_dtypes.bfloat16).tolist() == [1.5, -2.0]


def test_nothing_is_left_when_one_of_the_files_cannot_be_written(tmp_path):
    objects = np.array([object()], dtype=object)  # refused: it would need pickle
    with pytest.raises(ValueError, match="pickle"):
        save_outputs(tmp_path / "new", [np.ones(1), objects])
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written: Not a directory"):
        save_outputs(tmp_path / "file" / "sum.npy", [np.ones(1)])
