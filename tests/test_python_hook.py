"""A user's own algorithm: only when allowed, only from the scenario's folder, and told what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringnet.collectives import Schedule
from ringnet.collectives.check import check
from ringnet.errors import InputError
from ringnet.formats.python_hook import load_function

MINE = """
from ringnet.collectives import ALGORITHMS


def mine(n_workers, collective, twist=0):
    return ALGORITHMS["ring"].build(n_workers + twist, collective)


def fails(n_workers, collective):
    return 1 / 0


def nothing(n_workers, collective):
    return None


number = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("x = = 1\n")
    (tmp_path / "marks.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('ran').touch()\nf = print\n"
    )
    return tmp_path


def said(name: str, folder: Path, *, allowed: bool = True) -> str:
    with pytest.raises(InputError) as caught:
        load_function(name, folder, allowed=allowed)(4, "all-reduce")
    return str(caught.value)


def test_a_function_builds_a_schedule(folder: Path) -> None:
    schedule = load_function("mine.py:mine", folder, allowed=True)(4, "all-reduce")
    assert isinstance(schedule, Schedule)
    check(schedule)


def test_nothing_runs_that_is_not_allowed(folder: Path) -> None:
    assert "right would be: --allow-python" in said("marks.py:f", folder, allowed=False)
    assert not (folder / "ran").exists()
    load_function("marks.py:f", folder, allowed=True)
    assert (folder / "ran").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mine.py", "no Python function is named so; got mine.py; right would be: my_ring.py:my_ring"),
        ("mine.py:a b", "no Python function is named so"),
        ("mine.txt:f", "no Python function is named so"),
        ("../mine.py:mine", "the file is outside the scenario's folder; got ../mine.py"),
        ("/etc/mine.py:mine", "the file is outside the scenario's folder"),
        ("none.py:mine", "there is no such file"),
        ("mine.py:theirs", "mine.py: the file has no such function; got theirs"),
        ("mine.py:number", "the file has no such function; got number"),
        ("broken.py:f", "broken.py: SyntaxError: invalid syntax"),
        ("mine.py:fails", "mine.py:10: ZeroDivisionError: division by zero"),
        (
            "mine.py:nothing",
            "mine.py:nothing returns no schedule; got NoneType; right would be: a ringnet.Schedule",
        ),
    ],
)
def test_what_is_wrong_is_told(folder: Path, name: str, expected: str) -> None:
    assert expected in said(name, folder)


def test_the_schedule_of_something_else_is_told(folder: Path) -> None:
    build = load_function("mine.py:mine", folder, allowed=True)
    with pytest.raises(
        InputError, match="got all-reduce of 5 workers; right would be: all-reduce of 4 workers"
    ):
        build(4, "all-reduce", twist=1)
