"""Changes of keys: ``--set path.key=value`` on the command line, a path and a value from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from ringnet.documents.document import Document, Mark, Path, are_related, key_path, path_text
from ringnet.documents.plain_data import read_datum
from ringnet.documents.text import clip
from ringnet.documents.yaml_text import read_value
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.resolve import nonsense_on_the_way
from ringnet.scenario.build.sweep import SECTIONS
from ringnet.scenario.files.machines import machine_of
from ringnet.scenario.keys.base import MACHINES
from ringnet.scenario.keys.model import RangeKeys

#: ``path=value`` in YAML, as on the command line; or the path of a key and its value as Python has it.
Change: TypeAlias = str | tuple[str, Any]

_FORM, _PYTHON_FORM = "--set network.bandwidth='5 GB/s'", 'replace("network.bandwidth", "5 GB/s")'
_RANGE_KEYS = frozenset(info.alias or name for name, info in RangeKeys.model_fields.items())


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
            one = _read(change, document)
        except InputError as error:
            faults += error.faults
            continue
        if one.path in seen:
            faults.append(
                Fault("the key is set twice", path_text(one.path), one.place, value=clip(str(change)))
            )
        seen.add(one.path)
        faults += nonsense_on_the_way(document, one.path)
        document, ended = _end_sweeps(document, one)
        notes += ended
        if one.value is None:
            faults += _kept_by_machine(document, one)
            document = document.drop([one.path])
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


def _read(change: Change, document: Document) -> Override:
    return _read_text(change, document) if isinstance(change, str) else _read_pair(*change, document)


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
        raise InputError(
            Fault("an override is a path, an equals sign and a value", "", "--set", None, clip(text), _FORM)
        )
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
        ended += [
            ("sweep", section, key) for key in keys if are_related(key_path(key, document.data), one.path)
        ]
    by = one.place or "a replacement"
    notes = [f"{path_text(path)}: not swept, since {by} gives {path_text(one.path)}" for path in ended]
    return document.drop(ended), notes
