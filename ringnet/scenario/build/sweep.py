"""Sweeps: the values of each swept key, as a list or a range, and the points of their grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic_core import PydanticCustomError

from ringnet.documents.document import (
    Document,
    Mark,
    Path,
    are_related,
    in_flow,
    is_within,
    key_path,
    path_text,
)
from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError
from ringnet.scenario.keys.format import leaf_of
from ringnet.scenario.keys.kinds import Leaf, Number, Quantity, Whole, wrong
from ringnet.scenario.keys.model import MOST_VALUES, RangeKeys, SweepKeys

#: Keys that are no matter of a single run.
FIXED = ("scenario_version", "name", "include", "sweep", "compare", "report")
SECTIONS = ("over", "zip")
#: Sizes between the ends of a range by count, and those of a comparison, are rounded to this: every dtype divides them.
ALIGNED_BYTES = 8
#: Below this the last value counts as hit.
_TOLERANCE = 1e-9
#: Digits of a value that is no whole number: ten times 1 us is 10 us, and not a little less.
_DIGITS = 12


@dataclass(frozen=True)
class SweptValue:
    """One value of a swept key, and where it was written; of lists and mappings also what tells it from the others."""

    path: Path
    given: Any
    marks: Mapping[Path, Mark]
    difference: str = ""

    @property
    def text(self) -> str:
        """The value as it was written, or what of it is not in the others."""
        return self.marks[()].text or clip(self.difference or in_flow(self.given))


@dataclass(frozen=True)
class Axis:
    """Keys that change together; ``rows[i]`` holds the i-th value of each."""

    rows: tuple[tuple[SweptValue, ...], ...]


def read_axes(sweep: SweepKeys, document: Document) -> tuple[Axis, ...]:
    """Return the axes of a sweep, the first varies slowest; zipped keys are one axis, the last.

    Raises
    ------
    InputError
        Every key that cannot be swept or stands twice, every range that has no values, unequal zipped lists.
    """
    faults: list[Fault] = []
    columns: dict[str, list[list[SweptValue]]] = {section: [] for section in SECTIONS}
    for section in SECTIONS:
        for key, values in getattr(sweep, section).items():
            try:
                columns[section].append(_column(("sweep", section, key), values, document))
            except InputError as error:
                faults += error.faults
    faults += _twice([column[0].path for section in SECTIONS for column in columns[section]], document)
    faults += _unequal(columns["zip"], document)
    if faults:
        raise InputError(*faults)
    axes = [Axis(tuple((value,) for value in column)) for column in columns["over"]]
    zipped = [Axis(tuple(zip(*columns["zip"], strict=True)))] if columns["zip"] else []
    return (*axes, *zipped)


def _column(at: Path, values: list[Any] | RangeKeys, document: Document) -> list[SweptValue]:
    path = key_path(str(at[-1]), document.data)
    if path[0] in FIXED:
        raise InputError(document.fault(at, f"{path[0]} cannot be swept", value=""))
    if isinstance(values, RangeKeys):
        mark = replace(document.mark(at), origin="sweep", path=path_text(at))
        spread_out = spread(values, leaf_of(path), at, document)
        return [SweptValue(path, given, {(): replace(mark, text=str(given))}) for given in spread_out]
    written = zip(values, differences(values), strict=True)
    return [SweptValue(path, given, _marks((*at, place), document), own) for place, (given, own) in enumerate(written)]


def differences(values: Sequence[Any]) -> list[str]:
    """Return of each list or mapping what tells it from the others; nothing where that does not.

    Plain values, and lists of them, are told whole.

    >>> differences([[{"link": "0->1", "down": 1}], [{"link": "0->1", "down": 1, "retry": 2}], [{"link": "2->3"}]])
    ['link 0->1, down 1, no retry', 'link 0->1, down 1, retry 2', 'link 2->3, no down, no retry']
    >>> differences([8, 16]), differences([[0, 1, 2], [0, 2, 1]])
    (['', ''], ['', ''])
    """
    if not all(isinstance(value, dict | list) for value in values):
        return [""] * len(values)
    all_have = [{path: in_flow(leaf) for path, leaf in _leaves((), value)} for value in values]
    varying = [
        path
        for path in dict.fromkeys(path for have in all_have for path in have)
        if len({have.get(path) for have in all_have}) > 1
    ]
    said = [", ".join(_told(path, have.get(path)) for path in varying) for have in all_have]
    is_told = len(set(said)) == len(said) and all(any(isinstance(key, str) for key in path) for path in varying)
    return said if is_told else [""] * len(values)


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield path, value
    for key, within in inside or ():
        yield from _leaves((*path, key), within)


def _told(path: Path, text: str | None) -> str:
    name = next((key for key in reversed(path) if isinstance(key, str)), "more")
    return f"no {name}" if text is None else f"{name} {text}"


def _marks(at: Path, document: Document) -> dict[Path, Mark]:
    """Return the marks of one value of a list, and of what is inside it."""
    inside = {where[len(at) :]: mark for where, mark in document.marks.items() if is_within(where, at)}
    shown = path_text(at)
    return {where: replace(mark, origin="sweep", path=shown) for where, mark in inside.items()}


def _twice(paths: Sequence[Path], document: Document) -> Iterator[Fault]:
    for place, path in enumerate(paths):
        if any(are_related(path, earlier) for earlier in paths[:place]):
            yield document.fault(("sweep",), f"{path_text(path)} is swept twice", right="each key once")


def _unequal(columns: list[list[SweptValue]], document: Document) -> Iterator[Fault]:
    lengths = {path_text(column[0].path): len(column) for column in columns}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{key}: {length}" for key, length in lengths.items())
        yield document.fault(("sweep", "zip"), "zipped keys need equally many values", value=got)


def grid(document: Document, axes: Sequence[Axis]) -> Iterator[tuple[Document, tuple[SweptValue, ...]]]:
    """Yield the document of each point, without its sweep, and the values that made it."""
    base = document.drop([("sweep",)])
    for rows in product(*(axis.rows for axis in axes)):
        values = tuple(value for row in rows for value in row)
        yield with_values(base, values), values


def with_values(base: Document, values: Sequence[SweptValue]) -> Document:
    """Return ``base`` with swept keys set."""
    for value in values:
        base = base.put(value.path, value.given, value.marks)
    return base


def first_values(axes: Sequence[Axis]) -> tuple[SweptValue, ...]:
    """Return the values of the first point."""
    return tuple(value for axis in axes for value in axis.rows[0])


def spread(values: RangeKeys, leaf: Leaf | None, at: Path, document: Document) -> list[Any]:
    """Return the values of the range at ``at``, as the swept key wants them written.

    Raises
    ------
    InputError
        The key takes no numbers, an end cannot be read, or the range is empty, endless or too long.
    """
    if not isinstance(leaf, Quantity | Whole | Number):
        raise InputError(document.fault(at, "only a number has ranges", right="a list of values"))
    some = replace(leaf, above_zero=True) if isinstance(leaf, Quantity) else leaf
    first = _read(leaf if values.step else some, values.first, (*at, "from"), document)
    last = _read(leaf, values.last, (*at, "to"), document)
    step = None if values.step is None else _read(some, values.step, (*at, "step"), document)
    with _faults_at(at, document):
        numbers = _numbers(values, first, last, step, leaf)
    return list(dict.fromkeys(_written(leaf, number) for number in numbers))


@contextmanager
def _faults_at(at: Path, document: Document) -> Iterator[None]:
    """Tell at ``at`` what is wrong with a value."""
    try:
        yield
    except PydanticCustomError as error:
        right = (error.context or {}).get("right", "")
        raise InputError(document.fault(at, error.message(), right=right)) from error


def _read(leaf: Leaf, given: Any, at: Path, document: Document) -> float:
    with _faults_at(at, document):
        number = leaf.read(given)
        if number is None or math.isinf(number):
            raise wrong("a range has finite ends")
    return float(number)


def _written(leaf: Leaf, number: float) -> Any:
    is_whole = isinstance(leaf, Whole) or (isinstance(leaf, Quantity) and leaf.kind == "bytes")
    return leaf.write(round(number) if is_whole else float(f"{number:.{_DIGITS}g}"))


def _numbers(values: RangeKeys, first: float, last: float, step: float | None, leaf: Leaf) -> list[float]:
    if sum(way is not None for way in (values.factor, values.count, step)) != 1:
        raise wrong("a range has one of factor, count and step", "{from: 1 KiB, to: 1 GiB, factor: 4}")
    if last < first:
        raise wrong("a range runs upwards", "from: the smaller, to: the larger")
    if step is not None:
        return _by_step(first, last, step)
    if first <= 0 or math.isinf(last / first):
        raise wrong("a range by factor or count starts above zero", "from: 1 KiB")
    return _by_factor(values, first, last, leaf)


def _by_step(first: float, last: float, step: float) -> list[float]:
    if not 0 < step < math.inf:
        raise wrong("the step of a range is above zero")
    return [first + at * step for at in range(_bounded((last - first) / step))]


def _by_factor(values: RangeKeys, first: float, last: float, leaf: Leaf) -> list[float]:
    if values.factor is None:
        between = (values.count or 0) - 1
        inside = (first * (last / first) ** (at / between) for at in range(1, between))
        return [first, *(_fit(leaf, number) for number in inside), last]
    if values.factor <= 1:
        raise wrong("the factor of a range is above one", "factor: 2")
    n_values = _bounded(math.log(last / first) / math.log(values.factor))
    numbers = (first * values.factor**at for at in range(1, n_values))
    return [first, *(number if values.factor.is_integer() else _fit(leaf, number) for number in numbers)]


def _bounded(steps: float) -> int:
    if steps > MOST_VALUES:
        raise wrong(f"a range has at most {MOST_VALUES:,} values")
    return math.floor(steps + _TOLERANCE) + 1


def _fit(leaf: Leaf, number: float) -> float:
    if isinstance(leaf, Quantity) and leaf.kind == "bytes":
        return float(max(1, round(number / ALIGNED_BYTES)) * ALIGNED_BYTES)
    return number
