"""The kinds of value that a scenario holds: how each is read, written back, and described to an editor.

Each is put beside a type: ``Annotated[float, Quantity("seconds")]``.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ringnet.errors import UnitError, closest
from ringnet.units import EXAMPLES, Kind, parse_quantity, quantity_text

#: The largest message: twice of it, as one worker sends in an all-reduce, still fits 64 bits.
LARGEST_BYTES = 2**60
#: Where a whole number has no bound but that of its 64 bits.
_ENDLESS = 2**62


def wrong(message: str, right: str = "", nearest: str = "") -> PydanticCustomError:
    """Return the error that a field raises; `faults.translate` makes it a `Fault` with line and path."""
    return PydanticCustomError("wrong", "{message}", {"message": message, "right": right, "nearest": nearest})


class Leaf:
    """A scalar: subclasses say how it is read, written and described."""

    @property
    def right(self) -> str:
        """What would be right, for messages."""
        return ""

    def read(self, given: Any) -> Any:
        """Return the value that ``given`` stands for, or raise `wrong`."""
        raise wrong("no value is taken here")

    def write(self, value: Any) -> Any:
        """Return what reads as ``value``, exactly."""
        return value

    def describe(self) -> dict[str, Any]:
        """Return a JSON Schema."""
        return {}

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        write = core_schema.plain_serializer_function_ser_schema(self.write)
        return core_schema.no_info_plain_validator_function(self.read, serialization=write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return self.describe()


@dataclass(frozen=True)
class Quantity(Leaf):
    """A number with a unit, read to plain SI; ``words`` stand for values that no number says: ``never``.

    Of one that is to be ``above_zero``, zero is read all the same: a check says why it will not do. It is only never
    called right. Where it ``is_count``, as for a message, a whole number alone counts bytes.
    """

    kind: Kind
    words: Mapping[str, float] = field(default_factory=dict, hash=False)
    above_zero: bool = False
    is_count: bool = False

    def read(self, given: Any) -> float:
        """See `Leaf.read`."""
        if isinstance(given, str) and given.strip() in self.words:
            return self.words[given.strip()]
        try:
            value = _parse(given, self.kind, self.is_count)
        except UnitError as error:
            fault = error.faults[0]
            right = " or ".join([self._right_form(fault.right), *self.words])
            raise wrong(fault.message, right, fault.nearest) from error
        if self.kind == "bytes" and value > LARGEST_BYTES:
            raise wrong("larger than any buffer", f"at most {quantity_text(LARGEST_BYTES, 'bytes')}")
        return value

    def _right_form(self, respelt: str) -> str:
        """Return the user's own number in the right form, but the example where that is a zero that will not do."""
        is_zero = re.match(r"\+?0*\.?0*(e\S*)? ", respelt)
        return f"something like {self.example}" if self.above_zero and is_zero else respelt

    def write(self, value: float) -> str:
        """See `Leaf.write`."""
        word = next((word for word, meant in self.words.items() if meant == value), None)
        return word or quantity_text(value, self.kind)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        text = {
            "type": "string",
            "pattern": r"^\s*\+?[0-9.]+([eE][-+]?[0-9]+)?\s*[A-Za-zµμ].*$",
            "examples": [self.example],
        }
        others: list[dict[str, Any]] = [{"enum": list(self.words)}] if self.words else []
        others += [{"type": "integer", "minimum": 0}] if self.is_count else []
        return {"anyOf": [text, *others]} if others else text

    @property
    def example(self) -> str:
        """What one looks like."""
        return EXAMPLES[self.kind]

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return " or ".join([self.example, *self.words])


@lru_cache(maxsize=4096)
def _parse_text(text: str, kind: Kind, is_count: bool) -> float:
    return parse_quantity(text, kind, is_count=is_count)


def _parse(given: Any, kind: Kind, is_count: bool) -> float:
    # A sweep reads the same few texts at each of its points.
    parse = _parse_text if isinstance(given, str) else parse_quantity
    return parse(given, kind, is_count=is_count)


def number_said(given: Any, least: float, most: float) -> float | None:
    """Return the number between bounds that a text or a float says, None where it says none.

    >>> number_said("1e9", 1, 2e9), number_said(8.0, 1, 9), number_said("many", 0, 9), number_said("-1", 0, 9)
    (1000000000.0, 8.0, None, None)
    """
    try:
        number = float(given) if isinstance(given, str | float) else math.nan
    except ValueError:
        return None
    return number if least <= number <= most else None


def _no_number(what: str, given: Any, said: str, right: str) -> PydanticCustomError:
    return wrong(f"{what} is wanted{', and this is a text' if given == said else ''}", said or right)


@dataclass(frozen=True)
class Whole(Leaf):
    """A whole number; ``words`` stand for numbers: ``all``."""

    least: int = 0
    most: int = _ENDLESS
    example: int = 8
    words: Mapping[str, int] = field(default_factory=dict, hash=False)

    def read(self, given: Any) -> int:
        """See `Leaf.read`."""
        if isinstance(given, str) and given in self.words:
            return self.words[given]
        if isinstance(given, bool) or not isinstance(given, int):
            number = number_said(given, self.least, min(self.most, 2**53))  # of larger ones a float loses digits
            is_whole = number is not None and number.is_integer()
            raise _no_number("a whole number", given, f"{number:.0f}" if is_whole else "", self.right)
        if not self.least <= given <= self.most:
            upto = f"to {self.most:,}" if self.most < _ENDLESS else "up"
            raise wrong(f"a whole number from {self.least:,} {upto} is wanted", self.right)
        return given

    def write(self, value: int) -> int | str:
        """See `Leaf.write`."""
        return next((word for word, meant in self.words.items() if meant == value), value)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        number = {"type": "integer", "minimum": self.least}
        number |= {"maximum": self.most} if self.most < _ENDLESS else {}
        return {"anyOf": [number, {"enum": list(self.words)}]} if self.words else number

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return " or ".join([str(self.example), *self.words])


@dataclass(frozen=True)
class Number(Leaf):
    """A finite number between bounds, without a unit: from zero up, unless they say otherwise."""

    example: float = 3
    least: float = 0
    most: float | None = None

    def read(self, given: Any) -> float:
        """See `Leaf.read`."""
        most = 2**1000 if self.most is None else self.most  # a whole number may be too large for a float
        if isinstance(given, bool) or not isinstance(given, int | float):
            said = number_said(given, self.least, most)
            raise _no_number("a number", given, "" if said is None else f"{said:.15g}", self.right)
        if not self.least <= given <= most:
            least = "zero" if self.least == 0 else f"{self.least:g}"
            upto = "up" if self.most is None else f"to {self.most:g}"
            if self.most is not None and float(f"{self.most:g}") > self.most:  # the next number below
                upto = f"to below {self.most:g}"
            raise wrong(f"a finite number from {least} {upto} is wanted", self.right)
        return float(given)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        number = {"type": "number", "minimum": self.least}
        return number if self.most is None else number | {"maximum": self.most}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return str(self.example)


_ONE_OF_MANY = re.compile(r"(\d[\d,_]*)\s+(?:of|in)\s+(\d[\d,_]*)")


@dataclass(frozen=True)
class Share(Leaf):
    """A number from zero to one, also as so many percent, or as one of so many; ``noun`` says what it is."""

    noun: str = "probability"
    example: str = "0.01 %, or 1 of 10000"

    def read(self, given: Any) -> float:
        """See `Leaf.read`."""
        value = given
        if isinstance(given, str):
            told = _ONE_OF_MANY.fullmatch(given.strip())
            percents = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", given.strip())
            parts = [int(re.sub("[,_]", "", part)) for part in told.groups()] if told else []
            value = parts[0] / parts[1] if parts and parts[1] else float(percents[1]) / 100 if percents else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise wrong(f"a {self.noun} from zero to one is wanted", self.example)
        return float(value)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        words = {"type": "string", "pattern": r"^\s*\d[\d,._]*\s*(%|(of|in)\s+\d[\d,_]*)\s*$"}
        return {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, words]}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return self.example


@dataclass(frozen=True)
class Truth(Leaf):
    """True or false."""

    def read(self, given: Any) -> bool:
        """See `Leaf.read`."""
        if not isinstance(given, bool):
            raise wrong("true or false is wanted", self.right)
        return given

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "boolean"}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return "true or false"


@dataclass(frozen=True)
class Plain(Leaf):
    """A plain value that is handed on as it is: true or false, a finite number, a line of text, or a list of them."""

    right: str = "4, 0.5, true, a word, or a list of them"

    def read(self, given: Any) -> Any:
        """See `Leaf.read`."""
        if isinstance(given, list | tuple):
            return tuple(self._one(item) for item in given)
        return self._one(given)

    def _one(self, given: Any) -> Any:
        if isinstance(given, str):
            return Line("a word", 1000).read(given)
        if not isinstance(given, bool | int | float) or not abs(given) < 2**1000:
            raise wrong("a plain value is wanted", self.right)
        return given

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        one = {"type": ["boolean", "number", "string"]}
        return {"anyOf": [one, {"type": "array", "items": one}]}


@dataclass(frozen=True)
class NamesIn(Collection[str]):
    """The names of a registry, whose module is imported when they are asked for: most scenarios name none of them."""

    module: str
    registry: str

    def _found(self) -> Collection[str]:
        names: Collection[str] = getattr(import_module(self.module), self.registry)
        return names

    def __contains__(self, name: object) -> bool:
        return name in self._found()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


@dataclass(frozen=True)
class OneOf(Leaf):
    """One of some names; ``absent`` says why a known name is not among them.

    A registry is asked when a value is read, so that what was added to it later counts.
    """

    names: Collection[str] = field(hash=False)
    noun: str
    extra: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict, hash=False)

    def read(self, given: Any) -> str:
        """See `Leaf.read`."""
        if isinstance(given, str) and given in self.known:
            return given
        if isinstance(given, str) and given in self.absent:
            raise wrong(self.absent[given], self.right)
        raise wrong(f"there is no such {self.noun}", self.right, closest(str(given), self.known))

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "string", "enum": self.known}

    @property
    def known(self) -> list[str]:
        """The names that are read."""
        return [*self.extra, *self.names]

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return ", ".join(self.known)


@dataclass(frozen=True)
class Version(Leaf):
    """The version of the format, one of those that are read."""

    known: tuple[int, ...]

    def read(self, given: Any) -> int:
        """See `Leaf.read`."""
        if isinstance(given, bool) or given not in self.known:
            raise wrong("this ringnet does not know this version of the format", self.right)
        return int(given)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "integer", "enum": list(self.known)}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return " or ".join(map(str, self.known))


@dataclass(frozen=True)
class Line(Leaf):
    """A short line of text."""

    example: str
    longest: int = 200

    def read(self, given: Any) -> str:
        """See `Leaf.read`."""
        if not isinstance(given, str):
            raise wrong("text is wanted", self.right)
        if not given.strip() or not given.isprintable() or len(given) > self.longest:
            raise wrong(f"one line of text is wanted, at most {self.longest} characters", self.example)
        return given

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "string", "minLength": 1, "maxLength": self.longest}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return f'"{self.example}"'


@dataclass(frozen=True)
class FoundFile:
    """A file that was looked for and is there.

    Parameters
    ----------
    name : str
        As the scenario has it.
    path : pathlib.Path
    changed_ns, size_bytes : int
        As they were: a file that has changed since is another one, also to a cache of what is in it.
    """

    name: str
    path: FilePath
    changed_ns: int
    size_bytes: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FileName(Line):
    """The name of a file; a `FoundFile` stands for it once it was found."""

    longest: int = 1000

    def read(self, given: Any) -> Any:
        """See `Leaf.read`."""
        return given if isinstance(given, FoundFile) else super().read(given)

    def write(self, value: Any) -> str:
        """See `Leaf.write`."""
        return str(value)


@dataclass(frozen=True)
class Name(Leaf):
    """The key of an exception: text of a given form."""

    pattern: str
    noun: str
    example: str

    def read(self, given: Any) -> str:
        """See `Leaf.read`."""
        if re.fullmatch(self.pattern, str(given)) is None:
            raise wrong(f"a key here is {self.noun}", self.example)
        return str(given)

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class Node(Leaf):
    """A node of a network: a worker's place by its number, or a switch by its name."""

    pattern: str = r"0|[1-9][0-9]*|[A-Za-z][A-Za-z0-9_/]*"

    def read(self, given: Any) -> str:
        """See `Leaf.read`."""
        if isinstance(given, bool) or re.fullmatch(self.pattern, str(given)) is None:
            what = "a node is the number of a worker's place, or a name of letters and digits"
            raise wrong(what, self.right)
        return str(given)

    def write(self, value: str) -> int | str:
        """See `Leaf.write`."""
        return int(value) if value.isdecimal() else value

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        name = {"type": "string", "pattern": f"^(?:{self.pattern})$"}
        return {"anyOf": [{"type": "integer", "minimum": 0}, name]}

    @property
    def right(self) -> str:
        """See `Leaf.right`."""
        return "0 or leaf0"
