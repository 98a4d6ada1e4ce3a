"""YAML that is a few lists of plain values: read event by event, bounded, without tags and aliases, with lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple, NoReturn

import yaml

from ringnet.errors import Fault, InputError
from ringnet.formats.xml_tree import shown

#: Bounds, far beyond what such a file needs.
MOST_BYTES, MOST_EVENTS = 1 << 16, 4096


class Item(NamedTuple):
    """A value as it is written, and its line from 1."""

    text: str
    line: int


def read_lists(
    content: bytes, file: str, keys: Sequence[str]
) -> tuple[dict[str, list[Item]], list[Item]]:
    """Read a mapping of lists.

    Parameters
    ----------
    content : bytes
    file : str
        Name for messages.
    keys : sequence of str
        All of them must be there, each with a list of at least one value.

    Returns
    -------
    dict of str to list of Item
    list of Item
        Other keys, which are left out.

    Raises
    ------
    InputError
        With every mistake and its line.

    Examples
    --------
    >>> read_lists(b"sizes: [ 2, 4 ]\\n", "a.yml", ["sizes"])
    ({'sizes': [Item(text='2', line=1), Item(text='4', line=1)]}, [])
    """
    values, others, faults = {}, [], []
    for key, items in _entries(_events(content, file), file):
        if key.text not in keys:
            others.append(key)
        elif key.text in values:
            faults.append(Fault("the key is here twice", key.text, file, key.line))
        elif not items:
            faults.append(
                Fault("a list with an entry for each dimension is wanted", key.text, file, key.line)
            )
        values.setdefault(key.text, items or [])
    for key_name in keys:
        if key_name not in values:
            nearest = get_close_matches(key_name, [item.text for item in others], n=1)
            faults.append(
                Fault("the key is missing", key_name, file, right=f"{key_name}: [ ... ]", value="".join(nearest))
            )
    if faults:
        raise InputError(*faults)
    return {key_name: values[key_name] for key_name in keys}, others


def _events(content: bytes, file: str) -> Iterator[yaml.Event]:
    if len(content) > MOST_BYTES:
        raise InputError(Fault("the file is too large", file=file, right=f"at most {MOST_BYTES:,} bytes"))
    try:
        for number, event in enumerate(yaml.parse(content.decode("utf-8-sig"), Loader=yaml.SafeLoader)):
            if number > MOST_EVENTS:
                _refuse(event, file, "the file holds too many values")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                _refuse(event, file, "anchors and aliases are not read")
            if getattr(event, "tag", None):
                _refuse(event, file, "tags are not read")
            yield event
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(Fault("the file is not text in UTF-8", file=file, line=line)) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(
            Fault(f"not readable as YAML: {shown(error.problem or '')}", file=file, line=line)
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(
            Fault(f"not readable as YAML: {shown(' '.join(str(error).split()))}", file=file)
        ) from error


def _entries(events: Iterator[yaml.Event], file: str) -> Iterator[tuple[Item, list[Item] | None]]:
    """Yield each key at the top with the values of its list; None where it has no list of plain values."""
    depth, key, items = 0, None, None
    for event in events:
        opens = isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent)
        if depth == 0 and (isinstance(event, yaml.ScalarEvent) or opens):
            if not isinstance(event, yaml.MappingStartEvent):
                _refuse(event, file, "a mapping of lists is wanted")
        elif key is None and isinstance(event, yaml.ScalarEvent):
            key, items = _item(event), None
            continue
        elif key is None and opens:
            _refuse(event, file, "a key is a single word")
        elif depth == 1 and isinstance(event, yaml.SequenceStartEvent):
            items = []
        elif isinstance(event, yaml.ScalarEvent) and depth == 2 and items is not None:  # noqa: PLR2004 -- in the list
            items.append(_item(event))
        elif opens:
            items = None
        depth += opens - isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent)
        if depth == 1 and key is not None:
            yield key, items
            key = None


def _item(event: yaml.ScalarEvent) -> Item:
    return Item(shown(event.value), event.start_mark.line + 1)


def _refuse(event: yaml.Event, file: str, message: str) -> NoReturn:
    raise InputError(Fault(message, file=file, line=event.start_mark.line + 1))
