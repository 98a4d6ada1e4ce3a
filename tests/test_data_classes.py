"""Classes whose methods are compiled when they are first used are the standard library's in everything else."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from inspect import signature
from typing import Generic, TypeVar

import pytest

from ringnet import data_classes

T = TypeVar("T")
BOTH = pytest.mark.parametrize("dataclass", [dataclasses.dataclass, data_classes.dataclass])


@data_classes.dataclass(frozen=True)
class Kept:
    """At the top of a module: pickles are read by its name."""

    number: int = 0


@BOTH
def test_a_frozen_class(dataclass):
    @dataclass(frozen=True)
    class Point:
        x: int
        y: list[int] = field(default_factory=list, hash=False)

    one = Point(1)
    assert repr(one).endswith("Point(x=1, y=[])")
    assert (one, hash(one)) == (Point(1, []), hash(Point(1, [2])))
    assert one != Point(2)
    assert replace(one, x=3) == Point(3)
    for name in ("x", "other"):
        with pytest.raises(FrozenInstanceError, match=name):
            setattr(one, name, 2)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        del one.x
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()


@BOTH
def test_a_class_of_its_own_mind(dataclass):
    @dataclass(frozen=True)
    class Name(Generic[T], ABC):  # noqa: PLW1641 -- the decorator adds it
        text: T
        length: int = field(default=3, repr=False)

        def __eq__(self, other):
            return self.text.lower() == other.text.lower()

        @property
        @abstractmethod
        def first(self): ...

    @dataclass(frozen=True)
    class Word(Name[str]):
        @property
        def first(self):
            return self.text[0]

    with pytest.raises(TypeError, match="abstract"):
        Name("a")
    word = Word("Ab")
    assert (word.first, word.length, Name.length, Name.__doc__) == ("A", 3, 3, "Name(text: 'T', length: 'int' = 3)")
    assert Name.__eq__(word, Word("aB"))
    assert Name.__hash__(word) == Name.__hash__(Word("Ab"))
    assert repr(word).endswith("<locals>.Word(text='Ab')")
    assert Word.__init__.__qualname__.endswith("<locals>.Word.__init__")


@BOTH
def test_a_class_that_changes(dataclass):
    @dataclass
    class Counter:
        n: int = 0

    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError):
        hash(counter)


@BOTH
@pytest.mark.parametrize(
    ("look", "seen"),
    [
        (lambda cls: [one.name for one in fields(cls)], ["x", "y"]),
        (is_dataclass, True),
        (lambda cls: cls.__match_args__, ("x", "y")),
        (lambda cls: str(signature(cls)), "(x: 'int', y: 'int' = 2) -> None"),
        (lambda cls: cls.__dataclass_params__.frozen, True),
        (lambda cls: cls.__eq__ is object.__eq__, True),
    ],
)
def test_a_class_that_is_looked_at_before_it_is_used(dataclass, look, seen):
    @dataclass(frozen=True, eq=False)
    class Point:
        x: int
        y: int = 2

    assert look(Point) == seen


@BOTH
def test_classes_over_others(dataclass):
    @dataclass(frozen=True)
    class Low:
        x: int = 1

        def __repr__(self):
            return f"low {self.x}"

    @dataclass(frozen=True, repr=False)
    class High(Low):
        y: int = 2

    class Plain(Low):
        def __init__(self):
            super().__init__(7)
            self.more = 1

    plain = Plain()
    plain.more = 2
    with pytest.raises(FrozenInstanceError, match="'x'"):
        plain.x = 2
    assert (plain.x, plain.more) == (7, 2)
    assert repr(High(5, 6)) == "low 5"

    @dataclasses.dataclass(frozen=True)
    class Users(Low):
        z: int = 3

    assert Users(z=4) == Users(1, 4)


@BOTH
def test_a_class_with_slots(dataclass):
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int

    assert (Point(1), hasattr(Point(1), "__dict__")) == (Point(1), False)


def test_what_was_pickled_by_another_process_is_compared_though_nothing_was_made_here():
    code = "import sys, pickle; one, same = pickle.load(sys.stdin.buffer); print(one == same, hash(one), one)"
    pickled = pickle.dumps((Kept(5), Kept(5)))
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["True", str(hash(Kept(5))), "Kept(number=5)"]


def test_another_thread_may_use_a_class_that_is_being_made(monkeypatch):
    @data_classes.dataclass(frozen=True)
    class Point:
        x: int

    standard, pool, others = dataclasses.dataclass, ThreadPoolExecutor(1), []

    def slow(**options):
        others.append(pool.submit(Point, 1))
        wait(others, 0.05)
        return standard(**options)

    monkeypatch.setattr(dataclasses, "dataclass", slow)
    assert [Point(1)] == [other.result() for other in others]


def test_a_check_compiles_no_class_that_it_does_not_use(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text("{scenario_version: 1, workers: 4, message: 1 MiB, network: {bandwidth: 1 GB/s, latency: 1 us}}")
    code = """
import sys
from ringnet.cli import main
try:
    main()
finally:
    rooms = [module for name, module in sys.modules.items() if name.startswith("ringnet.")]
    held = {thing for room in rooms for thing in vars(room).values() if isinstance(thing, type)}
    fields = [str(vars(cls)["__dataclass_fields__"]) for cls in held if "__dataclass_fields__" in vars(cls)]
    print(sum("_Unmade" in text for text in fields), len(fields))
"""
    done = subprocess.run([sys.executable, "-c", code, "check", path], capture_output=True, text=True, check=False)
    n_unmade, n_classes = map(int, done.stdout.split()[-2:])
    assert n_classes > 100, done.stderr
    assert n_unmade > n_classes / 2
