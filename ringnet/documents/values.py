"""Values taken out of a document one by one, with everything that is wrong with them collected."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ringnet.documents.document import Document, Path, path_text
from ringnet.documents.text import clip
from ringnet.errors import Fault, UnitError, closest
from ringnet.units import Kind, parse_quantity

_MOST_WHOLE = 2**20
#: What is above is no number of anything.
_MOST = 1e300
_EXAMPLES: dict[Kind, str] = {"bytes": "64 KiB", "seconds": "5 us", "bytes_per_second": "50 GB/s"}


class ValueReader:
    """Takes values out of a mapping of a document; what is wrong is noted, and something harmless returned.

    Parameters
    ----------
    document : Document
    path : tuple
        Where the mapping stands; the document itself by default.
    faults : list of Fault
        Gets what is wrong; the readers of all mappings of a document share it.

    Examples
    --------
    >>> read = ValueReader(Document({"links": [{"latency": "5 ms", "hops": "many"}]}))
    >>> [(link.quantity("latency", "seconds"), link.whole("hops")) for link in read.items("links")]
    [(0.005, 1)]
    >>> print(*read.faults)
    links[0].hops: a whole number from 1 to 1048576 is wanted; got many; right would be: 8
    """

    def __init__(self, document: Document, path: Path = (), faults: list[Fault] | None = None) -> None:
        self.document, self.path = document, path
        self.faults: list[Fault] = [] if faults is None else faults
        given = document.get(path) if path else document.data
        self.given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def __getitem__(self, key: str) -> Any:
        return self.given[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value as it is."""
        return self.given.get(key, default)

    def fault(self, message: str, *keys: str | int, value: object = None, right: str = "", nearest: str = "") -> None:
        """Note a fault at some keys inside."""
        path = (*self.path, *keys)
        mark = self.document.mark(path)
        shown = "" if value is None else clip(str(value))
        self.faults.append(Fault(message, path_text(path), mark.file, mark.line, shown, right, nearest))

    def is_wrong(self, *keys: str) -> bool:
        """Tell whether something is wrong at one of some keys, or inside it."""
        wrong = [fault.path for fault in self.faults]
        places = [path_text((*self.path, key)) for key in keys]
        return any(path == place or path.startswith((f"{place}.", f"{place}[")) for path in wrong for place in places)

    def known(self, *keys: str) -> None:
        """Refuse keys that nobody reads."""
        for key in self.given:
            if key not in keys:
                nearest = closest(key, keys)
                right = "" if nearest else ", ".join(keys)
                self.fault("there is no such key", key, right=right, nearest=nearest)

    def quantity(self, key: str, kind: Kind, default: float | None = None) -> float:
        """Return a quantity; a fault and 1 where it is none, the default where the key is missing."""
        if key not in self:
            if default is None:
                self.fault("the key is missing", key, right=f"{key}: {_EXAMPLES[kind]}")
            return 1.0 if default is None else default
        try:
            return float(parse_quantity(self[key], kind))
        except UnitError as error:
            for fault in error.faults:
                right = fault.right or _EXAMPLES[kind]
                self.fault(fault.message, key, value=self[key], right=right, nearest=fault.nearest)
            return 1.0

    def whole(self, key: str, least: int = 1, default: int | None = None) -> int:
        """Return a whole number from ``least`` on."""
        value = self.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_WHOLE:
            return value
        message = f"a whole number from {least} to {_MOST_WHOLE} is wanted"
        self.fault(message, key, value=value, right="8")
        return least

    def number(self, key: str, least: float, most: float = math.inf, right: str = "0.05") -> float:
        """Return a finite number from ``least`` to ``most``; a fault and ``least`` where it is none."""
        value = self.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= min(most, _MOST):
            return float(value)
        extent = f"from {least:g} to {most:g}" if most < math.inf else f"from {least:g} on"
        self.fault(f"a number {extent} is wanted", key, value=value, right=right)
        return least

    def numbers(self, key: str, count: int = 0) -> tuple[float, ...]:
        """Return the numbers of a text, with spaces between them: ``count`` of them, or one at least."""
        value = self.get(key)
        words = value.split() if isinstance(value, str) else [str(value)] if isinstance(value, int | float) else []
        try:
            found = tuple(float(word) for word in words)
        except ValueError:
            found = ()
        if found and all(map(math.isfinite, found)) and len(found) == (count or len(found)):
            return found
        wanted = f"{count} numbers" if count else "numbers"
        self.fault(f"{wanted} with spaces between them are wanted", key, value=value, right="4 8 16")
        return (1.0,) * (count or 1)

    def one_of(self, key: str, known: Collection[str]) -> str:
        """Return a name that is known."""
        value = self.get(key)
        if isinstance(value, str) and value in known:
            return value
        self.fault("a known name is wanted", key, value=value, right=", ".join(known))
        return next(iter(known))

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.get(key)
        if isinstance(value, str):
            return value
        self.fault("a text is wanted", key, value=value)
        return ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.get(key)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.fault("a list of texts is wanted", key, value=value, right="[]")
        return ()

    def mapping(self, key: str) -> ValueReader:
        """Return the reader of a mapping inside; of an empty one, with a fault, where there is none."""
        value = self.get(key)
        if not isinstance(value, Mapping):
            self.fault("a mapping is wanted", key, value=value)
        return ValueReader(self.document, (*self.path, key), self.faults)

    def items(self, key: str) -> Iterator[ValueReader]:
        """Yield a reader for each mapping of a list; none, with a fault, where it is no such list."""
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.fault("a list of mappings is wanted", key, value=value)
            return
        for place in range(len(value)):
            yield ValueReader(self.document, (*self.path, key, place), self.faults)
