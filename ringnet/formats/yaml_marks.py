"""YAML as plain data with the line of every value: bounded, without tags, anchors and keys that are there twice."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from ringnet.errors import Fault, InputError
from ringnet.formats.yaml_bounds import Bounds, check_bounds

BOUNDS = Bounds(events=100_000, depth=12)


class Marked(NamedTuple):
    """A document, and the line of each value by its path with dots: ``regimes.0.ends.1.after``."""

    data: Any
    lines: dict[str, int]


def read_marked(content: bytes, file: str, right: str) -> Marked:
    r"""Read a document.

    Parameters
    ----------
    content : bytes
    file : str
        Name for messages.
    right : str
        What would be right, for a file that is no YAML.

    Raises
    ------
    InputError
        It is no YAML, or of a kind that is not read; with the line.

    Examples
    --------
    >>> read_marked(b"a:\n- b: 1\n", "x.yaml", "")
    Marked(data={'a': [{'b': 1}]}, lines={'': 1, 'a': 2, 'a.0': 2, 'a.0.b': 2})
    """
    try:
        text = content.decode("utf-8-sig")
        check_bounds(text, file, BOUNDS)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except InputError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(Fault(f"no YAML: {error.problem}", file=file, line=line, right=right)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = " ".join(str(error).split())[:200]
        raise InputError(Fault(f"no YAML: {what}", file=file, right=right)) from error
    lines: dict[str, int] = {}
    faults: list[Fault] = []
    _walk(node, "", file, lines, faults)
    if faults:
        raise InputError(*faults)
    return Marked(data, lines)


def _walk(node: yaml.Node | None, path: str, file: str, lines: dict[str, int], faults: list[Fault]) -> None:
    if node is None:
        return
    lines[path] = node.start_mark.line + 1
    inner: list[tuple[str, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        inner = [(str(key.value), value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        inner = [(str(place), value) for place, value in enumerate(node.value)]
    for name, value in inner:
        place = f"{path}.{name}" if path else name
        if place in lines:
            faults.append(Fault("the key is here twice", place, file, value.start_mark.line + 1))
        _walk(value, place, file, lines, faults)
