"""A user's own algorithm: only when allowed, only from the scenario's folder, and told what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.errors import InputError
from ringnet.formats.python_hook import load_function
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

MINE = """
from dataclasses import replace

from ringnet.collectives import ALGORITHMS


def mine(n_workers, collective, twist=0):
    return ALGORITHMS["ring"].build(n_workers + twist, collective)


def fails(n_workers, collective):
    return 1 / 0


def nothing(n_workers, collective):
    return None


def late(n_workers, collective):
    def steps():
        yield from whole.steps()
        raise RuntimeError("too late")

    whole = mine(n_workers, collective)
    return replace(whole, make_steps=steps)


def changed(n_workers, collective, of="step", **to):
    whole = mine(n_workers, collective)
    if of == "schedule":
        return replace(whole, **to)
    return replace(whole, make_steps=lambda: (replace(step, **to) for step in whole.steps()))


number = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("x = = 1\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "marks.py").write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\nf = print\n")
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
        ("broken.py:f", "broken.py:1: SyntaxError: invalid syntax"),
        ("leaves.py:f", "leaves.py:1: SystemExit: 3"),
        ("mine.py:fails", "mine.py:12: ZeroDivisionError: division by zero"),
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
    with pytest.raises(InputError, match="got all-reduce of 5 workers; right would be: all-reduce of 4 workers"):
        build(4, "all-reduce", twist=1)


def test_parameters_reach_the_function_and_others_are_told(folder: Path) -> None:
    build = load_function("mine.py:mine", folder, allowed=True)
    with pytest.raises(InputError) as caught:
        build(4, "all-reduce", twists=1)
    assert str(caught.value) == (
        "mine.py:mine cannot be called so: an unexpected keyword argument 'twists'; "
        "got n_workers, collective, twists; right would be: mine(n_workers, collective, twist=0)"
    )


def test_what_goes_wrong_while_steps_are_made_is_told_with_its_line(folder: Path) -> None:
    schedule = load_function("mine.py:late", folder, allowed=True)(4, "all-reduce")
    with pytest.raises(InputError, match=r"mine\.py:22: RuntimeError: too late"):
        check(schedule)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ({"chunk": [0, 1, 2, 3]}, "step 0 of mine.py:changed: chunk is no array of whole numbers; got list"),
        ({"src": np.zeros(4)}, "src is no array of whole numbers; got ndarray of float64, shape (4,)"),
        (
            {"count": np.ones((4, 1), dtype=np.int64)},
            "count is no array of whole numbers; got ndarray of int64",
        ),
        ({"op": "add"}, "an op that there is not; got add; right would be: reduce or copy"),
    ],
)
def test_columns_of_another_type_are_told(folder: Path, to: dict[str, object], said: str) -> None:
    schedule = load_function("mine.py:changed", folder, allowed=True)(4, "all-reduce", **to)
    with pytest.raises(InputError) as caught:
        check(schedule)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ({"n_chunks": 4.0}, "a schedule whose n_chunks is no number of them; got 4.0"),
        ({"n_channels": 0}, "a schedule whose n_channels is no number of them; got 0"),
        (
            {"source": [-1] * 4},
            "a schedule whose source is no array of workers; got list; right would be: np.array",
        ),
        ({"make_steps": []}, "a schedule whose make_steps cannot be called; got list"),
    ],
)
def test_a_schedule_of_other_types_is_told(folder: Path, to: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        load_function("mine.py:changed", folder, allowed=True)(4, "all-reduce", of="schedule", **to)
    assert said in str(caught.value)


@pytest.mark.parametrize(("made", "said"), [([1], "step 0 of mine.py:changed is no step; got int"), (3, "TypeError")])
def test_steps_that_are_none_are_told(folder: Path, made: object, said: str) -> None:
    build = load_function("mine.py:changed", folder, allowed=True)
    schedule = build(4, "all-reduce", of="schedule", make_steps=lambda: made)
    with pytest.raises(InputError, match=said):
        check(schedule)


def test_the_example_of_the_docs_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs/how-to/extend.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?def star.*?)```", page, re.DOTALL)
    (tmp_path / "star.py").write_text(code)
    network = "network: {topology: switch, bandwidth: 1 GB/s, latency: 1 us}"
    text = f"{{scenario_version: 1, workers: 5, message: 400 B, algorithm: {{python: 'star.py:star'}}, {network}}}"
    scenario = loads(text, folder=tmp_path, allow_python=True)
    result = simulate(scenario)
    assert result.summary["sum_ok"]
    assert result.summary["makespan_s"] == pytest.approx(2 * (4 * 400 / 1e9 + 2e-6))
