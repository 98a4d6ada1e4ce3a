"""A document to what a `Scenario` is made of, or to every mistake in it: changes, the points of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import NamedTuple

from pydantic import ValidationError

from ringnet.documents.document import Document, Mark, is_within, key_path, path_text
from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.include import INCLUDE
from ringnet.scenario.build.overrides import Change, override
from ringnet.scenario.build.resolve import in_order, nonsense_on_the_way, resolve
from ringnet.scenario.build.sweep import SECTIONS, Axis, first_values, grid, read_axes, with_values
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.faults import translate, with_examples
from ringnet.scenario.keys.model import SweepKeys

#: Points of a sweep that are all checked when it is loaded; of a larger one, each value once.
CHECKED_POINTS = 10_000


@dataclass(frozen=True)
class MadeFrom:
    """What a scenario was made from.

    Parameters
    ----------
    whole : Document
        The keys as written, changes applied, with the sweep.
    base : Document
        The same without the sweep.
    axes : tuple of Axis
        Empty for a single run.
    home : ScenarioFolder
        Where its files are.
    notes : tuple of str
        What was orphaned and left out.
    """

    whole: Document
    base: Document
    axes: tuple[Axis, ...]
    home: ScenarioFolder
    notes: tuple[str, ...]


class Interpreted(NamedTuple):
    """A document that is right: the keys of its first run, all read by it, what else there is, and its sweep."""

    first: Document
    origin: MadeFrom
    sweep: SweepKeys | None


def interpret(
    document: Document,
    changes: Sequence[Change],
    name: str,
    home: ScenarioFolder,
    faults: Sequence[Fault] = (),
    file: str = "",
) -> Interpreted:
    """Return what a document, with all that it includes, is as a scenario.

    Parameters
    ----------
    document : Document
    changes : sequence of Change
        See `overrides.override`.
    name : str
        What the scenario is called if it does not say.
    home : ScenarioFolder
        Where its files are.
    faults : sequence of Fault
        What could not be read.
    file : str
        Name for messages.

    Raises
    ------
    InputError
        With every mistake at once.
    """
    document, notes, wrong = override(document, changes)
    if not document.has(("name",)):
        document = document.put(("name",), clip(name), {(): Mark(file)})
    if document.has(INCLUDE):
        message, right = "files are included before --set counts", "include in the file"
        wrong.append(document.fault(INCLUDE, message, right=right))
        document = document.drop([INCLUDE])
    sweep, axes, unreadable = _sweep_of(document)
    values = first_values(axes)
    wrong += [fault for value in values for fault in nonsense_on_the_way(document, value.path)]
    base = _without_sweep(document, sweep is None)
    first, orphaned, found = _try(_probes(base, axes), home)
    faults = in_order([*with_examples(faults, document), *wrong, *unreadable, *found])
    if faults or first is None:
        raise InputError(*faults)
    told = tuple(dict.fromkeys([*notes, *_shadowed(base, axes), *orphaned]))
    return Interpreted(first, MadeFrom(document, base if axes else first, axes, home, told), sweep)


def _sweep_of(document: Document) -> tuple[SweepKeys | None, tuple[Axis, ...], list[Fault]]:
    given = document.get(("sweep",))
    if given is None or any(is_within(path, ("sweep",)) for path in document.broken):
        return None, (), []
    try:
        sweep = SweepKeys.model_validate(given)
        return sweep, read_axes(sweep, document), []
    except ValidationError as error:
        return None, (), list(translate(error, document, ("sweep",)).values())
    except InputError as error:
        return None, (), list(error.faults)


def _without_sweep(document: Document, is_unread: bool) -> Document:
    """Return the plain keys; those of a sweep that cannot be read are broken, so that nobody misses them."""
    base = document.drop([("sweep",)])
    axes = (document.get(("sweep", section)) for section in SECTIONS)
    swept = {key_path(key, document.data) for keys in axes if isinstance(keys, dict) for key in keys}
    return replace(base, broken=base.broken | swept) if is_unread else base


def _shadowed(base: Document, axes: Sequence[Axis]) -> list[str]:
    """Keys that stand beside a sweep over them."""
    paths = [value.path for value in first_values(axes) if base.has(value.path)]
    return [f"{path_text(path)}: left out, the sweep gives it" for path in paths]


def _probes(base: Document, axes: Sequence[Axis]) -> Iterator[Document]:
    """Every point of a sweep, or every value once with the first ones of the other keys."""
    if prod(len(axis.rows) for axis in axes) <= CHECKED_POINTS:
        return (document for document, _ in grid(base, axes))
    first = with_values(base, first_values(axes))
    return chain([first], (with_values(first, row) for axis in axes for row in axis.rows[1:]))


def _try(
    documents: Iterable[Document], home: ScenarioFolder
) -> tuple[Document | None, list[str], list[Fault]]:
    """Read every point: the first that is right, the notes and the faults of all."""
    first: Document | None = None
    notes: list[str] = []
    faults: list[Fault] = []
    for document in documents:
        try:
            point, said = resolve(document, home)
        except InputError as error:
            faults += error.faults
        else:
            first = point if first is None else first
            notes += said
    return first, notes, faults
