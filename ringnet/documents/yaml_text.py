"""YAML to a `Document`: nothing but data, every value with its line, every mistake found at once.

Scalars are read by the rules of YAML 1.2: ``on`` and ``1:30`` are text, ``010`` is no number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from ringnet.documents.document import Document, Mark, Path, path_text
from ringnet.documents.text import clip, decode, one_line, read_bounded
from ringnet.errors import Fault, InputError


class YamlKind(NamedTuple):
    """A kind of file: how messages speak of it, and the most that it holds, far beyond what it needs.

    Parameters
    ----------
    name : str
        ``a scenario``.
    right : str
        What would be right, for a message on something else.
    n_bytes, n_values : int
        Of the file; of the values in it once its aliases are written out.
    depth : int
        Levels of nesting.
    has_aliases : bool
        Whether anchors and aliases are read. Tags never are.
    """

    name: str
    right: str
    n_bytes: int
    n_values: int
    depth: int
    has_aliases: bool = False


SCENARIO = YamlKind("a scenario", "scenario_version: 1", 1 << 20, 20_000, 20, has_aliases=True)


def read_text(path: str | os.PathLike[str], kind: YamlKind = SCENARIO) -> str:
    """Read a file; `InputError` if it cannot be read, is too large or is not text."""
    return decode(read_bounded(path, kind.n_bytes, kind.name), one_line(os.fspath(path)))


def read_yaml(text: str, file: str, kind: YamlKind = SCENARIO) -> tuple[Document, list[Fault]]:
    r"""Read a mapping.

    Parameters
    ----------
    text : str
        YAML; a mapping at the top.
    file : str
        Name for messages.
    kind : YamlKind

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
    value, reading = _read(text, file, kind)
    if not isinstance(value, dict):
        raise InputError(*(reading.faults or [_no_mapping(value, file, kind)]))
    return Document(value, reading.marks, frozenset(reading.broken)), reading.faults


def read_value(text: str, file: str) -> tuple[Any, dict[Path, Mark]]:
    """Read one YAML value; `InputError` for anything that is wrong with it."""
    value, reading = _read(text, file, SCENARIO)
    if reading.faults:
        raise InputError(*reading.faults)
    return value, reading.marks


def write_yaml(data: Any) -> str:
    """Return plain data as the text of a file that `read_yaml` reads back.

    >>> print(write_yaml({"file": "1e5", "points": 3}), end="")
    file: '1e5'
    points: 3
    """
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


# ----------------------------------------------------------------------------------------------------- faults


def _no_mapping(value: Any, file: str, kind: YamlKind) -> Fault:
    if value is None:
        empty = kind.name.replace("a ", "the ", 1)
        return Fault(f"{empty} is empty", file=file, right=kind.right)
    got = "a list" if isinstance(value, list) else clip(str(value))
    return Fault(f"{kind.name} is a mapping of keys", "", file, 1, got, kind.right)


def _not_text(error: ReaderError, text: str, file: str) -> Fault:
    line = text.count("\n", 0, error.position) + 1
    return Fault("the file holds a character that is not text", "", file, line, clip(text[error.position]))


def _not_yaml(error: yaml.MarkedYAMLError, text: str, file: str) -> Fault:
    marks = [mark.line for mark in (error.problem_mark, error.context_mark) if mark]
    lines = text.splitlines()
    # What stays open goes on to the end, and beyond it.
    line = next((line for line in marks if line < len(lines)), max(len(lines) - 1, 0) if marks else 0)
    written = lines[line] if lines else ""
    message, right = f"the text is not readable as YAML: {clip(error.problem or '')}", ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        message, right = "YAML is indented with spaces, not with tabs", "two spaces"
    elif error.problem == "but found another document":
        message, right = "another document begins here", "a file for each"
    return Fault(message, "", file, line + 1, clip(written.strip()), right)


# ------------------------------------------------------------------------------------------ from text to values


def _read(text: str, file: str, kind: YamlKind) -> tuple[Any, _Reading]:
    reading = _Reading(file, kind)
    try:
        node = _Loader(text, file, kind).get_single_node()
        value = None if node is None else reading.value(node, ())
    except ReaderError as error:
        raise InputError(_not_text(error, text, file)) from error
    except yaml.MarkedYAMLError as error:
        raise InputError(_not_yaml(error, text, file)) from error
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, in the scanner
        raise InputError(Fault(f"the text is not readable as YAML: {clip(str(error))}", file=file)) from error
    return value, reading


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's reader up to its nodes, with a bound on size and depth; nothing is constructed."""

    def __init__(self, text: str, file: str, kind: YamlKind) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.file, self.kind = file, kind
        self.depth = 0
        self.n_nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self.depth += 1
        self.n_nodes += 1
        _bound(self.depth, self.n_nodes, self.kind, event.start_mark)
        if not self.kind.has_aliases and (getattr(event, "anchor", None) or getattr(event, "tag", None)):
            line = event.start_mark.line + 1
            raise InputError(Fault("anchors, aliases and tags are not read", file=self.file, line=line))
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _Dumper(yaml.SafeDumper):
    """Puts into quotation marks what would be a number to YAML 1.1 or to YAML 1.2, and what cannot be printed."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar(_TAG + "str", data, style=None if data.isprintable() else '"')


def _bound(depth: int, n_values: int, kind: YamlKind, at: Any) -> None:
    if depth > kind.depth:
        raise yaml.MarkedYAMLError(problem=f"nested deeper than {kind.depth} levels", problem_mark=at)
    if n_values > kind.n_values:
        raise yaml.MarkedYAMLError(problem=f"more than {kind.n_values:,} values", problem_mark=at)


_TAG = "tag:yaml.org,2002:"

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
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), _first)

_Dumper.add_representer(str, _Dumper.represent_str)

_READ: dict[str, Callable[[str], Any]] = {
    # JSON writes a sign beyond 16 bits as two escapes.
    _TAG + "str": lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    _TAG + "int": int,
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    _TAG + "bool": lambda text: {"true": True, "false": False}[text.lower()],
}


@dataclass
class _Reading:
    """Nodes to values, with marks and faults on the way."""

    file: str
    kind: YamlKind
    marks: dict[Path, Mark] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)
    n_values: int = 0

    def value(self, node: yaml.Node, path: Path, line: int = 1) -> Any:
        """Read what stands at ``path``; ``line`` is that of its key."""
        self.n_values += 1
        _bound(len(path), self.n_values, self.kind, node.start_mark)
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
            message = f"YAML tags are not read: {self.kind.name} is data"
            return self.refuse(path, message, value=node.tag)
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
