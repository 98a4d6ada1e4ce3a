"""A disk that fails and processes that are killed, in short; `python -m tests.faults` is the long run."""

from __future__ import annotations

from random import Random

import pytest

from ringnet.cli import LazyGroup
from ringnet.reporting import atomic
from tests.faults import kill
from tests.faults.disk import COMMANDS, Fault, carried_out, files, prepare, try_all, wrong_with

pytestmark = pytest.mark.filterwarnings("default")  # what a user gets, too
#: Commands that write nothing: they say it.
READERS = {"check", "diff", "list", "logs", "network", "schema", "show"}


def test_every_command_that_writes_has_its_turn():
    commands = {words.split()[0] for words in COMMANDS.values()}
    assert {*LazyGroup().commands} - commands == {*READERS, "measure"}


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(("name", "n"), [("export", 6), ("sweep", 2), ("init", 6), ("report", 4)])
def test_after_a_fault_of_the_disk_every_file_is_whole_or_absent(tmp_path, name, n, older):
    tried = try_all(name, tmp_path / "folder", older=older, choose=lambda all_: Random(name).sample(all_, n))
    assert tried == (n, [])


def test_half_a_file_would_be_seen(tmp_path, monkeypatch):
    """Written where it shall be in the end, a file is half there when the disk is full."""
    folder = tmp_path / "folder"
    prepare(folder)
    command = COMMANDS["export"]
    before, whole = files(folder), carried_out(command, folder).files
    assert [*wrong_with(carried_out(command, folder), before, whole)] == []
    monkeypatch.setattr(atomic, "_hidden", lambda target, what: target)
    monkeypatch.setattr("pathlib.Path.unlink", lambda path, missing_ok=False: None)
    prepare(folder)
    found = [*wrong_with(carried_out(command, folder, Fault(most_bytes=64)), before, whole)]
    assert found == ["a.xml is neither the old one nor the new one"]


def test_a_killed_sweep_goes_on_and_computes_each_point_once(tmp_path):
    whole = kill.undisturbed("sweep", tmp_path / "folder")
    assert kill.kill_once("sweep", tmp_path / "folder", Random(0), whole).wrong == []
