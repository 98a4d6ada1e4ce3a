"""What YAML of others may hold: so many values, so deep, and nothing that could grow or recurse."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import yaml

from ringnet.errors import Fault, InputError


class Bounds(NamedTuple):
    """The most that a file holds, far beyond what it needs."""

    events: int
    depth: int


def check_bounds(text: str, file: str, bounds: Bounds) -> None:
    """Refuse what could grow or recurse, event by event, before anything is put together.

    Raises
    ------
    InputError
        With the line.
    yaml.YAMLError
        It is no YAML.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if number > bounds.events or depth > bounds.depth:
            refuse(event, file, "the file holds too many values, or is nested too deep")
        if getattr(event, "anchor", None) or getattr(event, "tag", None):
            refuse(event, file, "anchors, aliases and tags are not read")


def refuse(at: yaml.Node | yaml.Event, file: str, message: str) -> NoReturn:
    """Raise a mistake at the line of something."""
    line = at.start_mark.line + 1 if at.start_mark is not None else 1
    raise InputError(Fault(message, file=file, line=line))
