"""Ranges of a sweep: from one end to the other by a factor, by a count, or by a step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticCustomError

from ringnet.documents.document import Document, Path
from ringnet.errors import InputError
from ringnet.scenario.keys.kinds import Leaf, Number, Quantity, Whole, wrong
from ringnet.scenario.keys.model import MOST_VALUES, RangeKeys

#: Bytes between the ends of a range by count are rounded to this, so that every dtype divides them.
ALIGNED_BYTES = 8
#: Below this the last value counts as hit.
_TOLERANCE = 1e-9
#: Digits of a value that is no whole number: ten times 1 us is 10 us, and not a little less.
_DIGITS = 12


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
