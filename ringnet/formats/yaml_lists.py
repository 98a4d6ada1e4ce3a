"""YAML that is a few lists of plain values: bounded, without tags and aliases, with lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import NamedTuple

import yaml

from ringnet.documents.xml_tree import shown
from ringnet.errors import Fault, InputError
from ringnet.formats.yaml_bounds import Bounds, check_bounds, refuse

#: Far beyond what such a file needs.
MOST_BYTES, BOUNDS = 1 << 16, Bounds(events=4096, depth=8)


class Item(NamedTuple):
    """A value as it is written, and its line from 1."""

    text: str
    line: int


def read_lists(content: bytes, file: str, keys: Sequence[str]) -> tuple[dict[str, list[Item]], list[Item]]:
    r"""Read a mapping of lists.

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
    >>> read_lists(b"sizes: [ 2, 4 ]\n", "a.yml", ["sizes"])
    ({'sizes': [Item(text='2', line=1), Item(text='4', line=1)]}, [])
    """
    values: dict[str, list[Item]] = {}
    others: list[Item] = []
    faults: list[Fault] = []
    for key, items in _entries(content, file):
        if key.text not in keys:
            others.append(key)
        elif key.text in values:
            faults.append(Fault("the key is here twice", key.text, file, key.line))
        elif not items:
            faults.append(
                Fault("a list with an entry for each dimension is wanted", key.text, file, key.line)
            )
        values.setdefault(key.text, items)
    missing = [key for key in keys if key not in values]
    faults += [_missing(key, [item.text for item in others], file) for key in missing]
    if faults:
        raise InputError(*faults)
    return {key: values[key] for key in keys}, others


def _missing(key: str, others: Sequence[str], file: str) -> Fault:
    nearest = "".join(get_close_matches(key, others, n=1))
    return Fault("the key is missing", key, file, value=nearest, right=f"{key}: [ ... ]")


def _entries(content: bytes, file: str) -> Iterator[tuple[Item, list[Item]]]:
    """Yield each key at the top with the values of its list; none where it has no list of plain values."""
    with _in_our_words(content, file):
        text = content.decode("utf-8-sig")
        if len(text) > MOST_BYTES:
            raise InputError(Fault("the file is too large", file=file, right=f"at most {MOST_BYTES:,} bytes"))
        check_bounds(text, file, BOUNDS)
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(top, yaml.MappingNode):
        raise InputError(Fault("a mapping of lists is wanted", file=file, line=1))
    for key, value in top.value:
        if not isinstance(key, yaml.ScalarNode):
            refuse(key, file, "a key is a single word")
        plain = isinstance(value, yaml.SequenceNode) and all(
            isinstance(one, yaml.ScalarNode) for one in value.value
        )
        yield _item(key), [_item(one) for one in value.value] if plain else []


@contextmanager
def _in_our_words(content: bytes, file: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(Fault("the file is not text in UTF-8", file=file, line=line)) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        message = f"not readable as YAML: {shown(error.problem or '')}"
        raise InputError(Fault(message, file=file, line=line)) from error
    except (yaml.YAMLError, ValueError) as error:
        message = f"not readable as YAML: {shown(' '.join(str(error).split()))}"
        raise InputError(Fault(message, file=file)) from error


def _item(node: yaml.ScalarNode) -> Item:
    return Item(shown(node.value), node.start_mark.line + 1)
