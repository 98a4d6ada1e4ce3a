"""A document with what is laid over it, as keys that are checked: overrides, a sweep, and what is wrong with any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from shlex import quote
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from ringnet.documents.document import Document, Mark, Path, are_related, is_within, key_path, path_text
from ringnet.documents.plain_data import read_datum
from ringnet.documents.text import clip
from ringnet.documents.yaml_text import read_value
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.include import INCLUDE
from ringnet.scenario.build.resolve import Resolved, in_order, nonsense_on_the_way, resolve
from ringnet.scenario.build.sweep import SECTIONS, Axis, first_values, grid, read_axes, with_values
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.files.machines import machine_of
from ringnet.scenario.keys.base import MACHINES, key_of
from ringnet.scenario.keys.faults import translate, with_examples
from ringnet.scenario.keys.format import leaf_of
from ringnet.scenario.keys.model import RangeKeys, SweepKeys

#: ``path=value`` in YAML, as on the command line; or the path of a key and its value as Python has it.
Change: TypeAlias = str | tuple[str, Any]

_FORM, _PYTHON_FORM = "--set network.bandwidth='5 GB/s'", 'replace("network.bandwidth", "5 GB/s")'
_RANGE_KEYS = frozenset(info.alias or key_of(name) for name, info in RangeKeys.model_fields.items())


class Override(NamedTuple):
    """One key with its value, None where it is taken out; ``place`` is what faults name in place of a file."""

    path: Path
    value: Any
    marks: dict[Path, Mark]
    place: str = "--set"


def override(document: Document, given: Sequence[Change]) -> tuple[Document, list[str], list[Fault]]:
    """Apply overrides in order.

    Parameters
    ----------
    document : Document
    given : sequence of Change
        ``path=value``, the value in YAML: ``workers=16``, ``payload={elements: 16}``. ``weights[1]`` is
        ``weights.1=2``; an empty value or ``null`` takes the key out, as None does from Python.

    Returns
    -------
    Document
    list of str
        Notes: sweeps that an override put an end to.
    list of Fault
        Overrides that cannot be read, and those given twice.
    """
    notes: list[str] = []
    faults: list[Fault] = []
    seen: set[Path] = set()
    for change in given:
        try:
            one = _read_text(change, document) if isinstance(change, str) else _read_pair(*change, document)
        except InputError as error:
            faults += error.faults
            continue
        if one.path in seen:
            faults.append(Fault("the key is set twice", path_text(one.path), one.place, value=clip(str(change))))
        seen.add(one.path)
        faults += nonsense_on_the_way(document, one.path)
        document, ended = _end_sweeps(document, one)
        notes += ended
        if one.value is None:
            faults += _kept_by_machine(document, one)
            document = document.drop([one.path], Mark(one.place, origin="set"))
            continue
        try:
            document = document.put(one.path, one.value, one.marks)
        except InputError as error:
            faults += error.faults
    return document, notes, faults


def _kept_by_machine(document: Document, one: Override) -> list[Fault]:
    """Refuse to take out a key that nobody wrote: the machine gives it all the same."""
    name = document.get(("machine",))
    if not isinstance(name, str) or name not in MACHINES or document.has(one.path):
        return []
    if not machine_of(name).document.has(one.path):
        return []
    message = f"the key comes from machine {name}, and is not taken out"
    right = "another value, or the mapping around it with its topology: that one begins anew"
    return [Fault(message, path_text(one.path), one.place, right=right)]


def _read_pair(key: object, value: object, document: Document) -> Override:
    if not isinstance(key, str) or not all(part.strip() for part in key.split(".")):
        raise InputError(Fault("a key is given by its path", value=clip(str(key)), right=_PYTHON_FORM))
    try:
        return Override(_path(key, document), *read_datum(value, "set"), place="")
    except InputError as error:
        raise InputError(*(_at(fault, key) for fault in error.faults)) from error


def _read_text(text: str, document: Document) -> Override:
    key, sign, value = text.partition("=")
    key = key.strip()
    if not sign or not all(key.split(".")):
        first, *rest = re.split(r"\s*[:\s]\s*", text.strip(), maxsplit=1)
        leaf = leaf_of(_path(first, document)) if all(first.split(".")) and not sign else None
        value = rest[0] if any(rest) else re.split(" or |, ", leaf.right)[0] if leaf else ""
        right = f"--set {quote(f'{first}={value}')}" if first and value and not sign else _FORM
        message = "an override is a path, an equals sign and a value"
        raise InputError(Fault(message, "", "--set", None, clip(text), right))
    try:
        given, marks = read_value(value, "--set")
    except InputError as error:
        raise InputError(*(_at(fault, key) for fault in error.faults)) from error
    return Override(
        _path(key, document),
        given,
        {at: replace(mark, line=None, origin="set") for at, mark in marks.items()},
    )


def _at(fault: Fault, key: str) -> Fault:
    return replace(fault, path=".".join(filter(None, (key, fault.path))), line=None)


def _path(key: str, document: Document) -> Path:
    """Return where ``key`` leads; the name of a swept key holds dots."""
    sweep, _, rest = key.partition(".")
    section, _, axis = rest.partition(".")
    if sweep != "sweep" or section not in SECTIONS or not axis:
        return key_path(key, document.data)
    swept, _, last = axis.rpartition(".")
    inner = (swept, last) if swept and last in _RANGE_KEYS else (axis,)
    return (sweep, section, *inner)


def _end_sweeps(document: Document, one: Override) -> tuple[Document, list[str]]:
    """End the sweeps over a key that is set: the override would have no effect otherwise."""
    if one.path[0] == "sweep" or one.value is None:
        return document, []
    ended: list[Path] = []
    for section in SECTIONS:
        axes = document.get(("sweep", section))
        keys = axes if isinstance(axes, dict) else {}
        ended += [("sweep", section, key) for key in keys if are_related(key_path(key, document.data), one.path)]
    by = one.place or "a replacement"
    notes = [f"{path_text(path)}: not swept, since {by} gives {path_text(one.path)}" for path in ended]
    return document.drop(ended), notes


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
    points : tuple of Resolved
        What each point of a sweep was found to be, where all were looked at.
    """

    whole: Document
    base: Document
    axes: tuple[Axis, ...]
    home: ScenarioFolder
    notes: tuple[str, ...]
    points: tuple[Resolved, ...] = ()


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
        See `override`.
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
    points, found = _try(_probes(base, axes), home)
    faults = in_order([*with_examples(faults, document), *wrong, *unreadable, *found])
    if faults or not points:
        raise InputError(*faults)
    orphaned = chain.from_iterable(one.notes for one in points)
    told = tuple(dict.fromkeys([*notes, *_shadowed(base, axes), *orphaned]))
    first, looked_at = points[0].document, tuple(points) if axes and _all_are_tried(axes) else ()
    return Interpreted(first, MadeFrom(document, base if axes else first, axes, home, told, looked_at), sweep)


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
    return base.breaking(swept) if is_unread else base


def _shadowed(base: Document, axes: Sequence[Axis]) -> list[str]:
    """Keys that stand beside a sweep over them."""
    paths = [value.path for value in first_values(axes) if base.has(value.path)]
    return [f"{path_text(path)}: left out, the sweep gives it" for path in paths]


def _probes(base: Document, axes: Sequence[Axis]) -> Iterator[Document]:
    """Every point of a sweep, or every value once with the first ones of the other keys."""
    if _all_are_tried(axes):
        return (document for document, _ in grid(base, axes))
    first = with_values(base, first_values(axes))
    return chain([first], (with_values(first, row) for axis in axes for row in axis.rows[1:]))


def _all_are_tried(axes: Sequence[Axis]) -> bool:
    return prod(len(axis.rows) for axis in axes) <= CHECKED_POINTS


def _try(documents: Iterable[Document], home: ScenarioFolder) -> tuple[list[Resolved], list[Fault]]:
    """Read every point: those that are right, and the faults of the others."""
    points: list[Resolved] = []
    faults: list[Fault] = []
    for document in documents:
        try:
            points.append(resolve(document, home))
        except InputError as error:
            faults += error.faults
    return points, faults
