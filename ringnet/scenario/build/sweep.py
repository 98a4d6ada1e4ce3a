"""Sweeps: the values of each swept key, and the points of their grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

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
from ringnet.scenario.build.ranges import spread
from ringnet.scenario.keys.lookup import leaf_of
from ringnet.scenario.keys.model import RangeKeys, SweepKeys

#: Keys that are no matter of a single run.
FIXED = ("scenario_version", "name", "sweep", "compare", "report")
SECTIONS = ("over", "zip")


@dataclass(frozen=True)
class SweptValue:
    """One value of a swept key, and where it was written."""

    path: Path
    given: Any
    marks: Mapping[Path, Mark]

    @property
    def text(self) -> str:
        """The value as it was written."""
        return self.marks[()].text or clip(in_flow(self.given))


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
    return [SweptValue(path, given, _marks((*at, place), document)) for place, given in enumerate(values)]


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
