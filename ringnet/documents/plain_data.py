"""Python's own data to a `Document`, as `yaml_text` makes one of text; what is wrong has its path, and no line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from yaml.reader import Reader

from ringnet.documents.document import Document, Mark, Origin, Path, path_text
from ringnet.documents.text import clip
from ringnet.documents.yaml_text import SCENARIO
from ringnet.errors import Fault, InputError


def read_data(data: object) -> tuple[Document, list[Fault]]:
    """Read a mapping of mappings, lists, texts, numbers and truths.

    Parameters
    ----------
    data : mapping
        Keys are texts or whole numbers. Tuples and arrays are lists, NumPy's numbers numbers, paths texts.

    Returns
    -------
    Document
        What could be read; the marks name no file.
    list of Fault
        What could not.

    Raises
    ------
    InputError
        No mapping; nested too deep, or too many values.

    Examples
    --------
    >>> document, faults = read_data({"workers": np.int64(8), "weights": {1, 2}})
    >>> document.data
    {'workers': 8}
    >>> print(*faults)
    weights: plain data is wanted; got set; right would be: a mapping, a list, a text, a number, or true or false
    """
    if not isinstance(data, Mapping):
        value = "None" if data is None else type(data).__name__
        raise InputError(Fault(f"{SCENARIO.name} is a mapping of keys", value=value, right=f"{{{SCENARIO.right}}}"))
    reading = _DataReading()
    return Document(reading.value(data, ()), reading.marks, frozenset(reading.broken)), reading.faults


def read_datum(given: object, origin: Origin) -> tuple[Any, dict[Path, Mark]]:
    """Read one value of any kind, None for none at all; `InputError` for anything that is wrong with it."""
    if given is None:
        return None, {(): Mark("", origin=origin)}
    reading = _DataReading(origin)
    value = reading.value(given, ())
    if reading.faults:
        raise InputError(*reading.faults)
    return value, reading.marks


@dataclass
class _DataReading:
    """Values of Python to values of a document, with marks and faults on the way."""

    origin: Origin = "file"
    marks: dict[Path, Mark] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)

    def value(self, given: object, path: Path) -> Any:
        """Return what stands at ``path``; None, with a fault, where that is no plain data."""
        self.marks[path] = Mark("", origin=self.origin)
        if len(path) > SCENARIO.depth:
            raise InputError(Fault(f"nested deeper than {SCENARIO.depth} levels", path_text(path)))
        if len(self.marks) > SCENARIO.n_values:
            raise InputError(Fault(f"more than {SCENARIO.n_values:,} values", path_text(path)))
        if isinstance(given, Mapping):
            return self.mapping(given, path)
        if isinstance(given, list | tuple | range) or (isinstance(given, np.ndarray) and given.ndim):
            return self.items(given, path)
        return self.scalar(given, path)

    def mapping(self, given: Mapping[Any, Any], path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, item in given.items():
            name = str(key)
            if not isinstance(key, str | int | np.integer) or isinstance(key, bool):
                # What reads YAML 1.1 takes the key `on` for a truth.
                right = '"on", in quotation marks' if key is True else ""
                self.refuse((*path, "?"), "a key is a single word", clip(repr(key)), right)
            elif name in data:  # 5 and "5"
                self.refuse((*path, name), "the key is here twice")
            else:
                data[name] = self.value(item, (*path, name))
        return {key: item for key, item in data.items() if (*path, key) not in self.broken}

    def items(self, given: Iterable[object], path: Path) -> list[Any]:
        return [self.value(item, (*path, at)) for at, item in enumerate(given)]

    def scalar(self, given: object, path: Path) -> Any:
        if isinstance(given, np.generic | np.ndarray):
            given = given.item()
        if isinstance(given, os.PathLike):
            given = os.fspath(given)
        if given is None:
            return self.refuse(path, "the key has no value")
        if not isinstance(given, str | bool | int | float):
            right = "a mapping, a list, a text, a number, or true or false"
            return self.refuse(path, "plain data is wanted", type(given).__name__, right)
        text = str(given).lower() if isinstance(given, bool) else str(given)
        if foreign := Reader.NON_PRINTABLE.search(text):
            return self.refuse(path, "the text holds a character that is not text", clip(foreign.group()))
        self.marks[path] = Mark("", text=text, origin=self.origin)
        return given

    def refuse(self, path: Path, message: str, value: str = "", right: str = "") -> None:
        self.faults.append(Fault(message, path_text(path), value=value, right=right))
        self.broken.add(path)
