"""Values taken out of a document one by one, with everything that is wrong with them collected."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from ringnet.errors import Fault, UnitError
from ringnet.formats.yaml_marks import Marked
from ringnet.units import Kind, parse_quantity

_MOST_WHOLE = 2**20
_MOST_ERROR = 10.0
_SHOWN = 60

Document: TypeAlias = Mapping[str, Any]


class Reader:
    """Take values out of a document, and collect what is wrong with them; paths end in a dot where keys follow."""

    def __init__(self, file: str, marked: Marked) -> None:
        self.file, self.lines = file, marked.lines
        self.faults: list[Fault] = []

    def line(self, path: str) -> int | None:
        """Return the line of a path, or of the nearest thing around it."""
        parts = re.sub(r"\.$", "", path).split(".")
        around = (".".join(parts[:n]) for n in range(len(parts), -1, -1))
        return next((self.lines[one] for one in around if one in self.lines), None)

    def fault(
        self, message: str, path: str, value: object = None, right: str = "", nearest: str = ""
    ) -> None:
        """Add a fault at a path."""
        text = "" if value is None else str(value)[:_SHOWN]
        self.faults.append(Fault(message, path, self.file, self.line(path), text, right, nearest))

    def is_wrong(self, *paths: str) -> bool:
        """Tell whether something is wrong at one of some paths, or inside it."""
        return any(f"{fault.path}.".startswith(f"{path}.") for fault in self.faults for path in paths)

    def known(self, document: Document, keys: Collection[str], path: str = "") -> None:
        """Refuse keys that nobody reads."""
        for key in document:
            if key not in keys:
                nearest = "".join(get_close_matches(str(key), keys, n=1))
                right = "" if nearest else ", ".join(keys)
                self.fault("there is no such key", f"{path}{key}", right=right, nearest=nearest)

    def quantity(
        self, document: Document, key: str, kind: Kind, path: str, default: float | None = None
    ) -> float:
        """Return a quantity; a fault and 1 where it is none, the default where the key is missing."""
        if key not in document:
            if default is None:
                self.fault("the key is missing", f"{path}{key}", right=f"{key}: {_EXAMPLES[kind]}")
            return 1.0 if default is None else default
        try:
            return float(parse_quantity(document[key], kind))
        except UnitError as error:
            for fault in error.faults:
                right = fault.right or _EXAMPLES[kind]
                self.fault(fault.message, f"{path}{key}", document[key], right, fault.nearest)
            return 1.0

    def whole(
        self, document: Document, key: str, path: str, least: int = 1, default: int | None = None
    ) -> int:
        """Return a whole number from ``least`` on."""
        value = document.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_WHOLE:
            return value
        self.fault(f"a whole number from {least} to {_MOST_WHOLE} is wanted", f"{path}{key}", value, "8")
        return least

    def share(self, document: Document, key: str, path: str) -> float:
        """Return a relative error: a number from 0 to 10."""
        value = document.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_ERROR:
            return float(value)
        self.fault("a relative error from 0 to 10 is wanted", f"{path}{key}", value, "0.05")
        return 0.0

    def flag(self, document: Document, key: str) -> bool:
        """Return true or false."""
        value = document.get(key)
        if not isinstance(value, bool):
            self.fault("true or false is wanted", key, value, "true")
        return bool(value)

    def one_of(self, document: Document, key: str, known: Collection[str], path: str) -> str:
        """Return a name that is known."""
        value = document.get(key)
        if isinstance(value, str) and value in known:
            return value
        self.fault("a known name is wanted", f"{path}{key}", value, ", ".join(known))
        return next(iter(known))

    def text(self, document: Document, key: str, path: str) -> str:
        """Return a text."""
        value = document.get(key)
        if isinstance(value, str):
            return value
        self.fault("a text is wanted", f"{path}{key}", value)
        return ""

    def texts(self, document: Document, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = document.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.fault("a list of texts is wanted", key, value, "[]")
        return ()

    def mapping(self, document: Document, key: str, path: str = "") -> Document | None:
        """Return a mapping; a fault and None where it is none."""
        value = document.get(key)
        if isinstance(value, Mapping):
            return value
        self.fault("a mapping is wanted", f"{path}{key}", value)
        return None

    def items(self, document: Document, key: str, path: str = "") -> Sequence[Document]:
        """Return a list of mappings."""
        value = document.get(key)
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            return value
        self.fault("a list of mappings is wanted", f"{path}{key}", value)
        return []


_EXAMPLES: dict[Kind, str] = {"bytes": "64 KiB", "seconds": "5 us", "bytes_per_second": "50 GB/s"}
