"""A scenario as plain data that remembers where each value was written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError

Path: TypeAlias = tuple[str | int, ...]
Origin: TypeAlias = Literal["file", "set", "sweep"]


@dataclass(frozen=True)
class Mark:
    """Where a value was written, and how.

    Parameters
    ----------
    file : str
        The file, or ``--set``.
    line : int or None
        From 1; None on the command line.
    text : str
        The value as it was written; empty for a list or a mapping.
    origin : {"file", "set", "sweep"}
        Who put it there: of two keys that do not go together, the later writer orphaned the other.
    path : str
        Where it stands in the text, if that is not its place in the data: ``sweep.over.workers[1]``.
    """

    file: str
    line: int | None = None
    text: str = ""
    origin: Origin = "file"
    path: str = ""


@dataclass(frozen=True)
class Document:
    """Nested dicts, lists and scalars, with a `Mark` for each path; never changed, only copied with a change.

    Parameters
    ----------
    data : dict
        Every key is text.
    marks : dict of tuple to Mark
        By path; the empty path is the document itself.
    broken : frozenset of tuple
        Paths that stand in the text but could not be read; their faults are known already.
    """

    data: dict[str, Any]
    marks: Mapping[Path, Mark] = field(default_factory=dict)
    broken: frozenset[Path] = frozenset()

    def has(self, path: Path) -> bool:
        """Whether something stands at ``path``."""
        return find(self.data, path) is not None

    def get(self, path: Path) -> Any:
        """Return what stands at ``path``; None where nothing does."""
        return find(self.data, path)

    def put(self, path: Path, value: Any, marks: Mapping[Path, Mark]) -> Document:
        """Return a copy with ``value`` at ``path``; the marks of ``value`` are relative to it.

        Raises
        ------
        InputError
            The path leads beyond the end of a list.
        """
        if fault := _beyond(self.data, path, marks.get((), Mark(""))):
            raise InputError(fault)
        kept = {at: mark for at, mark in self.marks.items() if not is_within(at, path)}
        kept |= {path + at: mark for at, mark in marks.items()}
        return replace(self, data=_put(self.data, path, value), marks=kept)

    def filled(self, values: Mapping[Path, Any], mark: Mark) -> Document:
        """Return a copy with values that ``mark`` gives, each at a path where nothing stands."""
        filled = self
        for path, value in values.items():
            filled = filled if filled.has(path) else filled.put(path, value, {(): mark})
        return filled

    def breaking(self, paths: Iterable[Path]) -> Document:
        """Return a copy in which some paths are broken."""
        return replace(self, broken=self.broken.union(paths))

    def left_out(self, paths: Iterable[Path]) -> set[Path]:
        """Return those of some paths at which nothing stands."""
        return {path for path in paths if not self.has(path)}

    def in_the_way(self, path: Path) -> Path | None:
        """Return where on the way to ``path`` something stands that has no keys, or no items; None if nothing does."""
        for at, part in enumerate(path):
            given = find(self.data, path[:at])
            if given is None:
                return None
            if not isinstance(given, list if isinstance(part, int) else dict):
                return path[:at]
        return None

    def drop(self, paths: Iterable[Path], by: Mark | None = None) -> Document:
        """Return a copy without what stands at ``paths``; a mapping that becomes empty goes too.

        ``by`` is where it is said that they go: a fault of what is then missing is told there.
        """
        gone = set(paths)
        kept = {
            at: mark
            for at, mark in self.marks.items()
            if not any(at[:length] in gone for length in range(1, len(at) + 1))
        }
        kept |= dict.fromkeys(gone, by) if by else {}
        return replace(self, data=_without(self.data, gone), marks=kept)

    def mark(self, path: Path) -> Mark:
        """Return the mark of ``path``, or of the nearest thing inside or around it."""
        if path not in self.marks:
            path = min((at for at in self.marks if is_within(at, path)), key=len, default=path)
        while path and path not in self.marks:
            path = path[:-1]
        return self.marks.get(path, Mark(""))

    def origins(self, path: Path) -> set[Origin]:
        """Who wrote at ``path``, inside it or around it; the document itself does not count."""
        return {mark.origin for at, mark in self.marks.items() if at and are_related(at, path)}

    def fault(self, path: Path, message: str, *, value: str | None = None, right: str = "", nearest: str = "") -> Fault:
        """Return a `Fault` that knows where ``path`` was written; ``value`` is as written unless given."""
        mark = self.mark(path)
        written = self.marks[path].text if path in self.marks else ""
        shown = clip(written if value is None else value)
        return Fault(message, mark.path or path_text(path), mark.file, mark.line, shown, right, nearest)


def path_text(path: Path) -> str:
    """Write a path as text.

    >>> path_text(("worker", "exceptions", "3", "start")), path_text(("weights", 1))
    ('worker.exceptions.3.start', 'weights[1]')
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return clip(text.removeprefix("."))


def key_path(key: str, data: Any) -> Path:
    """Return the path that a key with dots names in ``data``; a number counts in a list.

    >>> key_path("network.links.3->4.latency", {}), key_path("weights.1", {"weights": [1, 3]})
    (('network', 'links', '3->4', 'latency'), ('weights', 1))
    """
    path: Path = ()
    for part in key.split("."):
        counts = part.isdecimal() and isinstance(find(data, path), list)
        path = (*path, int(part) if counts else part)
    return path


def in_flow(given: Any) -> str:
    """Write a value as it stands in a line of YAML.

    >>> in_flow({"file": "graph.xml", "n": [1, 2]})
    '{file: graph.xml, n: [1, 2]}'
    """
    if isinstance(given, dict):
        return "{" + ", ".join(f"{key}: {in_flow(value)}" for key, value in given.items()) + "}"
    if isinstance(given, list):
        return "[" + ", ".join(map(in_flow, given)) + "]"
    return str(given)


def is_within(path: Path, outer: Path) -> bool:
    """Whether ``path`` is ``outer`` or something inside it."""
    return path[: len(outer)] == outer


def are_related(one: Path, other: Path) -> bool:
    """Whether one path is the other or lies inside it."""
    return is_within(one, other) or is_within(other, one)


def find(data: Any, path: Path) -> Any:
    """Return what stands at ``path`` in nested dicts and lists; None where nothing does."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _beyond(data: Any, path: Path, mark: Mark) -> Fault | None:
    """Return what is wrong with a path to an item that a list does not have."""
    for at, part in enumerate(path):
        inside = find(data, path[:at])
        if isinstance(inside, list) and isinstance(part, int) and part >= len(inside):
            right = ".".join(map(str, (*path[:at], len(inside) - 1))) if inside else ""
            message = f"there is no such item: the list has {len(inside)}, numbered from 0"
            return Fault(message, path_text(path), mark.file, mark.line, str(part), right)
    return None


def _put(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    part, rest = path[0], path[1:]
    if isinstance(data, list) and isinstance(part, int):
        return [*data[:part], _put(data[part], rest, value), *data[part + 1 :]]
    inside = data if isinstance(data, dict) else {}
    return {**inside, part: _put(inside.get(part), rest, value)}


def _without(data: Any, paths: Iterable[Path]) -> Any:
    """Return data without what stands at some paths, all in one pass; what becomes empty inside goes too."""
    inside: dict[str | int, list[Path]] = defaultdict(list)
    for path in paths:
        inside[path[0]].append(path[1:])

    if isinstance(data, dict):
        return dict(_left(data.items(), inside))
    if isinstance(data, list):
        return [item for _, item in _left(enumerate(data), inside)]
    return data


def _left(items: Iterable[tuple[Any, Any]], gone: Mapping[str | int, Sequence[Path]]) -> Iterator[tuple[Any, Any]]:
    """Yield what is left of the items of a mapping or a list, each with what is left of it."""
    for part, item in items:
        if part not in gone or item is None:
            yield part, item
        elif () not in gone[part] and (rest := _without(item, gone[part])):
            yield part, rest
