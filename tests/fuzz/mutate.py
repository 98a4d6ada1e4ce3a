"""Inputs made wrong: by bytes, by tokens, by lines, and by the structure of a scenario or of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import yaml

from ringnet.scenario.keys.format import schema

#: What stands for a number or a word: ends of ranges, other units, other types, what a terminal would obey.
_WORDS = r"""
0|1|-1|2|3|7|0.5|1e-999|1e309|-1e309|nan|.nan|inf|.inf|-inf|9223372036854775807|9223372036854775808|2305843009213693952
1000000000|100000|0x10|010|1_000|null|~|true|false|yes|''|""|[]|{}|[[]]|[null]|{a: 1}|'1 us'|1 us|never|1e-999 s|inf s
1 GB/s|0 B/s|64 MiB|4 KiB|3 B|1 PiB|free|ring|direct|auto|fair|fifo|all|none|full|events|recurrence|rendezvous
0->1|h0/nic0|h*->*|*
..|/etc/passwd|./.|a.npy|\x1b[31m|\x1b]0;x\x07|\u202e|\ud83d\ude00|\x00|\t|a\nb| |-|:|,|#|&|!|%|@|>|<|=|"|'
"""
TOKENS = [word.encode().decode("unicode_escape") for line in _WORDS.split("\n")[1:-1] for word in line.split("|")]
_TOKEN = re.compile(rb"[\w.]+|[^\w\s]")


def by_bytes(content: bytes, random: Random) -> bytes:
    """Change, cut, double or insert a few bytes."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del data[at : at + random.choice((1, 2, 10, 100))]
            case 2:
                data[at:at] = data[at : at + random.choice((1, 10, 100))]
            case 3:
                data[at:at] = random.choice((b"\0", b"\xff\xfe", b"\r", b"\n", b"\xc3", b"\x1b[2J", b'"', b"<", b"]"))
            case 4:
                del data[at:]
    return bytes(data)


def by_tokens(content: bytes, random: Random) -> bytes:
    """Put other words and numbers in the place of some, or swap two."""
    for _ in range(random.choice((1, 1, 2, 3))):
        places = [found.span() for found in _TOKEN.finditer(content)]
        if not places:
            return content
        start, end = random.choice(places)
        first, last = random.choice(places)
        other = content[first:last] if random.random() < 0.4 else _any(random).encode("utf-8", "surrogatepass")
        content = content[:start] + other + content[end:]
    return content


def by_lines(content: bytes, random: Random) -> bytes:
    """Repeat, drop or move lines."""
    lines = content.splitlines(keepends=True)
    for _ in range(random.choice((1, 2, 5))):
        if not lines:
            break
        at, to = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(4):
            case 0:
                lines.insert(to, lines[at])
            case 1:
                del lines[at]
            case 2:
                lines[at], lines[to] = lines[to], lines[at]
            case 3:
                lines[at:at] = [lines[at]] * random.choice((2, 50))
    return b"".join(lines)


def by_structure(content: bytes, random: Random) -> bytes:
    """Change the tree of a YAML or JSON document: drop, move, replace values, add keys that the schema has."""
    try:
        tree = yaml.safe_load(content)
    except yaml.YAMLError:
        return by_tokens(content, random)
    holder = {"": deepcopy(tree)}
    for _ in range(random.choice((1, 1, 2, 3, 5))):
        places = [*_places(holder)]
        inside, key = random.choice(places)
        match random.randrange(5):
            case 0 if len(places) > 1 and key != "":
                del inside[key]
            case 1:
                other, name = random.choice(places)
                inside[key] = deepcopy(other[name])
            case 2:
                inside[key] = yaml.safe_load(json.dumps(_any(random)))
            case 3:
                inside[key] = random.choice((0, -1, 2**63, 0.5, float("inf"), True, None, [], {}, [[]], "", [1, "a"]))
            case 4:
                target = inside[key] if isinstance(inside[key], dict) else inside
                if isinstance(target, dict):
                    target[random.choice(KEYS)] = _any(random)
    return json.dumps(holder[""], default=str).encode()


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree that holds a value."""
    left = [holder]
    while left:
        inside = left.pop()
        for key in [*(inside if isinstance(inside, dict) else range(len(inside)))]:
            yield inside, key
            if isinstance(inside[key], dict | list) and len(left) < 1000:
                left.append(inside[key])


def _any(random: Random) -> str:
    return random.choice(TOKENS)


def _keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        yield from tree.get("properties", {})
        for part in tree.values():
            yield from _keys(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _keys(part)


#: Every key that a scenario may have somewhere.
KEYS = sorted({*_keys(schema())})
BLIND = (by_bytes, by_tokens, by_lines)
ALL = (by_bytes, by_tokens, by_tokens, by_lines, by_structure, by_structure, by_structure)
