"""YAML to a `Document`: nothing but data, every value with its line, every mistake found at once.

Scalars are read by the rules of YAML 1.2: ``on`` and ``1:30`` are text, ``010`` is no number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from ringnet.documents.document import Document, Mark, Path, clip, one_line, path_text
from ringnet.errors import Fault, InputError

#: Bytes of the largest file that is read.
LARGEST = 1 << 20
#: Values that a scenario may hold once its aliases are written out.
MOST_VALUES = 20_000
#: Levels of nesting.
DEEPEST = 20

_TAG = "tag:yaml.org,2002:"
_READ: dict[str, Callable[[str], Any]] = {
    # JSON writes a sign beyond 16 bits as two escapes.
    _TAG + "str": lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    _TAG + "int": int,
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    _TAG + "bool": lambda text: {"true": True, "false": False}[text.lower()],
}


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a scenario file; `InputError` if it cannot be read, is too large or is not text."""
    file = one_line(os.fspath(path))
    try:
        with open(path, "rb") as stream:
            content = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(Fault(f"the file cannot be read: {reason}", file=file)) from error
    if len(content) > LARGEST:
        raise InputError(
            Fault("the file is too large for a scenario", file=file, right=f"at most {LARGEST:,} bytes")
        )
    return _decode(content, file)


def _decode(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"the file is not text in UTF-8 (byte {error.start})"
        raise InputError(
            Fault(message, file=file, line=line, value=f"0x{content[error.start]:02x}")
        ) from error


def read_yaml(text: str, file: str) -> tuple[Document, list[Fault]]:
    r"""Read the text of a scenario.

    Parameters
    ----------
    text : str
        YAML; a mapping at the top.
    file : str
        Name for messages.

    Returns
    -------
    Document
        What could be read.
    list of Fault
        What could not: duplicate keys, tags, keys that are not text.

    Raises
    ------
    InputError
        Where nothing can be read: no YAML, no mapping, too deep, too many values.

    Examples
    --------
    >>> document, faults = read_yaml("workers: 8\nnetwork: {latency: 5 us}\n", "ring.yaml")
    >>> document.data, faults, document.marks["network", "latency"].line
    ({'workers': 8, 'network': {'latency': '5 us'}}, [], 2)
    """
    value, reading = _read(text, file)
    if not isinstance(value, dict):
        raise InputError(*(reading.faults or [_no_mapping(value, file)]))
    return Document(value, reading.marks, frozenset(reading.broken)), reading.faults


def _no_mapping(value: Any, file: str) -> Fault:
    if value is None:
        return Fault("the scenario is empty", file=file, right="scenario_version: 1, and so on")
    got = "a list" if isinstance(value, list) else clip(str(value))
    return Fault("a scenario is a mapping of keys", "", file, 1, got, "scenario_version: 1")


def read_value(text: str, file: str) -> tuple[Any, dict[Path, Mark]]:
    """Read one YAML value; `InputError` for anything that is wrong with it."""
    value, reading = _read(text, file)
    if reading.faults:
        raise InputError(*reading.faults)
    return value, reading.marks


def _read(text: str, file: str) -> tuple[Any, _Reading]:
    reading = _Reading(file)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else reading.value(node, ())
    except ReaderError as error:
        raise InputError(_not_text(error, text, file)) from error
    except yaml.MarkedYAMLError as error:
        raise InputError(_not_yaml(error, text, file)) from error
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, in the scanner
        raise InputError(Fault(f"the text is not readable as YAML: {clip(str(error))}", file=file)) from error
    return value, reading


def _not_text(error: ReaderError, text: str, file: str) -> Fault:
    line = text.count("\n", 0, error.position) + 1
    return Fault("the file holds a character that is not text", "", file, line, clip(text[error.position]))


def _not_yaml(error: yaml.MarkedYAMLError, text: str, file: str) -> Fault:
    marks = [mark.line for mark in (error.problem_mark, error.context_mark) if mark]
    lines = text.splitlines()
    line = next((line for line in marks if line < len(lines)), 0)  # what stays open goes on to the end
    written = lines[line] if lines else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return Fault(
            "YAML is indented with spaces, not with tabs",
            "",
            file,
            line + 1,
            clip(written.strip()),
            "two spaces",
        )
    return Fault(
        f"the text is not readable as YAML: {clip(error.problem or '')}",
        "",
        file,
        line + 1,
        clip(written.strip()),
    )


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's reader up to its nodes, with a bound on size and depth; nothing is constructed."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.depth = 0
        self.n_nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.n_nodes += 1
        _bound(self.depth, self.n_nodes, self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _bound(depth: int, n_values: int, at: Any) -> None:
    if depth > DEEPEST:
        raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEEPEST} levels", problem_mark=at)
    if n_values > MOST_VALUES:
        raise yaml.MarkedYAMLError(problem=f"more than {MOST_VALUES:,} values", problem_mark=at)


for _name, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        list("-+.0123456789"),
    ),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.")),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), _first)


@dataclass
class _Reading:
    """Nodes to values, with marks and faults on the way."""

    file: str
    marks: dict[Path, Mark] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    n_values: int = 0

    def value(self, node: yaml.Node, path: Path, line: int = 1) -> Any:
        """Read what stands at ``path``; ``line`` is that of its key."""
        self.n_values += 1
        _bound(len(path), self.n_values, node.start_mark)
        line = node.start_mark.line + 1 if isinstance(node, yaml.ScalarNode) else line
        self.marks[path] = Mark(self.file, line, _written(node))
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            items = ((at, item, item.start_mark.line + 1) for at, item in enumerate(node.value))
            return [self.value(item, (*path, at), line) for at, item, line in items]
        return self.scalar(node, path)

    def scalar(self, node: yaml.Node, path: Path) -> Any:
        if node.tag == _TAG + "null":
            return self.refuse(path, "the key has no value") if path else None
        try:
            return _READ[node.tag](node.value)
        except (KeyError, TypeError):
            return self.refuse(path, "YAML tags are not read: a scenario is data", value=node.tag)
        except ValueError:
            return self.refuse(path, "the number cannot be read", value=str(node.value))

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, item in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse((*path, "?"), "a key is a single word", line=line)
            elif key in data:
                first = self.marks[*path, key].line
                self.tell((*path, key), f"the key is here twice, first in line {first}", line, _written(item))
            else:
                data[key] = self.value(item, (*path, key), line)
        return {key: item for key, item in data.items() if (*path, key) not in self.broken}

    def refuse(self, path: Path, message: str, *, line: int | None = None, value: str = "") -> None:
        self.tell(path, message, line or self.marks[path].line, value)
        self.broken.add(path)

    def tell(self, path: Path, message: str, line: int | None, value: str) -> None:
        self.faults.append(Fault(message, path_text(path), self.file, line, clip(value)))


def _written(node: yaml.Node) -> str:
    return node.value if isinstance(node, yaml.ScalarNode) else ""
