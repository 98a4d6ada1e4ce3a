"""A folder is written whole or not at all, whatever goes wrong in between."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from ringnet.errors import ResultsError
from ringnet.reporting.atomic import check_target, written_file, written_whole


def write(folder, **files):
    """Write a folder of results as ringnet does: files by stem, and the manifest that lists them."""
    with written_whole(folder) as fresh:
        for stem, text in files.items():
            (fresh / f"{stem}.csv").write_text(text)
        listed = [*(f"{stem}.csv" for stem in files), "run.json"]
        (fresh / "run.json").write_text(json.dumps({"results_version": 1, "files": listed}))


def stop_half_way(path, error):
    path.write_text("half")
    raise error


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_new_folder_and_the_ones_above_it_are_made(tmp_path):
    write(tmp_path / "a" / "b", summary="1")
    assert names(tmp_path / "a" / "b") == ["run.json", "summary.csv"]
    assert names(tmp_path) == ["a", "b", "run.json", "summary.csv"]


def test_an_empty_folder_is_taken(tmp_path):
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", summary="1")
    assert names(tmp_path) == ["out", "run.json", "summary.csv"]


def test_another_runs_results_are_replaced_whole(tmp_path):
    write(tmp_path / "out", summary="1", links="1")
    write(tmp_path / "out", summary="2")
    assert names(tmp_path) == ["out", "run.json", "summary.csv"]
    assert (tmp_path / "out" / "summary.csv").read_text() == "2"


def test_the_folder_has_the_permissions_that_any_new_folder_has(tmp_path):
    write(tmp_path / "out", summary="1")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device"), MemoryError])
@pytest.mark.parametrize("before", [False, True])
def test_an_interruption_leaves_what_was_there(tmp_path, error, before):
    out = tmp_path / "above" / "out"
    if before:
        write(out, summary="1")
    found = names(tmp_path)
    with pytest.raises((KeyboardInterrupt, ResultsError, MemoryError)), written_whole(out) as fresh:
        stop_half_way(fresh / "summary.csv", error)
    assert names(tmp_path) == found


def test_a_full_disk_is_told_in_the_systems_words(tmp_path):
    with pytest.raises(ResultsError, match="No space left on device"), written_whole(tmp_path / "out"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_old_folder_comes_back_when_its_successor_cannot_take_its_place(tmp_path, monkeypatch):
    write(tmp_path / "out", summary="1")
    rename = Path.rename

    def refuse(path, target):
        if path.name.endswith(".new"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ResultsError, match="Input/output error"):
        write(tmp_path / "out", summary="2")
    assert names(tmp_path) == ["out", "run.json", "summary.csv"]
    assert (tmp_path / "out" / "summary.csv").read_text() == "1"


def test_what_the_disk_does_not_take_gets_no_name(tmp_path, monkeypatch):
    write(tmp_path / "out", summary="1")

    def refuse(number):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ResultsError, match="output error"):
        write(tmp_path / "out", summary="2")
    with pytest.raises(ResultsError, match="output error"), written_file(tmp_path / "one.csv") as file:
        file.touch()
    assert names(tmp_path) == ["out", "run.json", "summary.csv"]
    assert (tmp_path / "out" / "summary.csv").read_text() == "1"


@pytest.mark.parametrize(
    "manifest", [None, "{", "[]", "[" * 100_000, '"results_version"', '{"files": ["mine.txt", "run.json"]}']
)
def test_what_ringnet_did_not_write_is_left_alone(tmp_path, manifest):
    (tmp_path / "mine.txt").write_text("mine")
    if manifest is not None:
        (tmp_path / "run.json").write_text(manifest)
    found = names(tmp_path)
    with pytest.raises(ResultsError, match=r"holds what ringnet did not write; got mine\.txt"):
        write(tmp_path, summary="1")
    assert names(tmp_path) == found


def test_what_a_person_put_there_in_the_meantime_is_left_alone(tmp_path):
    write(tmp_path / "out", summary="1")
    with pytest.raises(ResultsError, match=r"mine\.txt"), written_whole(tmp_path / "out"):
        (tmp_path / "out" / "mine.txt").write_text("mine")
    assert names(tmp_path) == ["mine.txt", "out", "run.json", "summary.csv"]


def test_another_tools_manifest_is_not_ours(tmp_path):
    (tmp_path / "run.json").write_text('{"files": ["run.json"]}')
    with pytest.raises(ResultsError, match=r"got run\.json"):
        check_target(tmp_path)


def test_one_file_more_makes_the_folder_the_users_own(tmp_path):
    write(tmp_path / "out", summary="1")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(ResultsError, match=r"notes\.txt"):
        check_target(tmp_path / "out")


def test_a_folder_inside_is_never_ours_even_under_a_listed_name(tmp_path):
    write(tmp_path / "out", summary="1")
    (tmp_path / "out" / "summary.csv").unlink()
    (tmp_path / "out" / "summary.csv").mkdir()
    with pytest.raises(ResultsError, match=r"summary\.csv"):
        check_target(tmp_path / "out")


def test_many_foreign_files_are_named_in_part(tmp_path):
    for letter in "abcde":
        (tmp_path / letter).touch()
    with pytest.raises(ResultsError, match="got a, b, c and 2 more"):
        check_target(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ResultsError, match="this is a file"):
        check_target(tmp_path / "out")
    with pytest.raises(ResultsError, match="out is a file"):
        check_target(tmp_path / "out" / "below")


def test_a_folder_that_may_not_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(ResultsError, match="no permission to write"):
        check_target(tmp_path / "out")


def test_a_folder_that_the_system_does_not_make_is_told(tmp_path):
    with pytest.raises(ResultsError, match="cannot be written"):
        write(tmp_path / ("x" * 300), summary="1")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", [".", ".."])
def test_the_current_folder_is_not_pulled_from_under_the_shell(tmp_path, monkeypatch, name):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ResultsError, match="cannot be replaced"):
        check_target(Path(name))


def test_a_mount_point_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path)
    with pytest.raises(ResultsError, match="a mount point"):
        check_target(tmp_path)


def test_a_link_to_a_folder_is_followed(tmp_path):
    write(tmp_path / "real", summary="1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", summary="2")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "summary.csv").read_text() == "2"


def test_a_single_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "file"
    with written_file(path) as fresh:
        fresh.write_text("1")
    with pytest.raises(KeyboardInterrupt), written_file(path) as fresh:
        stop_half_way(fresh, KeyboardInterrupt)
    assert path.read_text() == "1"
    assert names(tmp_path) == ["file", "new"]
