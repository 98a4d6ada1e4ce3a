"""Scenarios made of the schema: every key that there is, with values that it takes and values that it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import combinations
from random import Random
from typing import Any, NamedTuple, TypeAlias

from ringnet.scenario.keys.format import schema

#: Keys and places in lists that lead to a value.
Path: TypeAlias = tuple[str | int, ...]
#: Names of keys that the schema gives by a pattern, by a sign of the pattern.
NAMES = {
    "->": ("0->1", "*->*"),
    "A-Z": ("n_slices", "h0/nic0"),
    "0-9": ("1", "0"),
    "": ("message", "network.bandwidth"),
}
#: What fits nowhere, or only somewhere.
WRONG = (
    None,
    -1,
    0,
    2.5,
    True,
    "",
    "nonsense",
    "1 us",
    "4 KiB",
    [],
    [0],
    {},
    {"file": "none.xml"},
    "a.py:f",
    2**53,
)
_LINKS = {"bandwidth": "1 GB/s", "latency": "1 us"}
#: What keys are put into: as much as is needed for what most of them need.
BASES: Sequence[dict[str, Any]] = (
    {"workers": 4, "message": "4 KiB", "network": _LINKS},
    {
        "workers": 8,
        "message": "4 KiB",
        "network": {**_LINKS, "topology": "nodes", "workers_per_host": 4, "nics": 2, "inside": _LINKS},
    },
    {"machine": "dgx-a100", "message": "4 KiB"},
    {"workers": 4, "message": 64, "network": {**_LINKS, "topology": "switch", "places": 8}},
    {
        "workers": 8,
        "message": "1 KiB",
        "network": {**_LINKS, "topology": "leaf-spine", "leaves": 2, "hosts_per_leaf": 4},
    },
    {"message": "4 KiB", "network": {"file": "topology.xml"}},
    {"workers": 4, "message": "4 KiB", "network": {"topology": "ring", "link": {"file": "profile.yaml"}}},
    {"data": "gradients.npy", "network": _LINKS},
    {"workers": 2, "network": _LINKS, "training": {"model": {"gradients": [[2], [6]]}, "steps": 2}},
    {"workers": 4, "network": _LINKS, "step": {"model": "resnet-18", "rate": "150 TFLOP/s"}},
    {"workers": 4, "network": _LINKS, "sweep": {"over": {"message": ["1 KiB", "4 KiB"]}}},
    {"workers": 4, "message": "4 KiB", "network": _LINKS, "jobs": [{"workers": [2, 3], "message": "1 KiB"}]},
)


class Place(NamedTuple):
    """A key of the format: the way to it, and values that it takes by itself."""

    path: Path
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ".".join(map(str, self.path))


@cache
def places() -> list[Place]:
    """Return every key that a scenario may have, in the order of the schema."""
    whole = schema()
    found: dict[Path, list[Any]] = {}
    for path, value in _walk(whole, whole["$defs"], ()):
        values = found.setdefault(path, [])
        if value not in values:
            values.append(value)
    return [Place(path, tuple(values)) for path, values in found.items() if path]


def _walk(node: Mapping[str, Any], defs: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield places with values, one by one."""
    if "$ref" in node:
        node = {**defs[node["$ref"].rpartition("/")[2]], **{key: node[key] for key in node if key != "$ref"}}
    for value in (
        *node.get("examples", ()),
        *node.get("enum", ()),
        *(node[key] for key in ("minimum", "default") if key in node),
    ):
        yield path, value
    for variant in (*node.get("oneOf", ()), *node.get("anyOf", ())):
        if "required" not in variant or "$ref" in variant:
            yield from _walk(variant, defs, path)
    for key, inside in node.get("properties", {}).items():
        yield from _walk(inside, defs, (*path, key))
    for pattern, inside in node.get("patternProperties", {}).items():
        sign = next(sign for sign in NAMES if sign in pattern)
        for name in NAMES[sign]:
            yield from _walk(inside, defs, (*path, name))
    if "items" in node:
        yield from _walk(node["items"], defs, (*path, 0))


def put(scenario: dict[str, Any], path: Path, value: Any) -> None:
    """Put a value where a path leads, through what is made for it if need be, with the keys that this must have."""
    inside: Any = scenario
    for place, key in enumerate(path[:-1]):
        inner = [] if isinstance(path[place + 1], int) else _needed(path[: place + 1])
        if isinstance(key, int):
            inside[:] = inside[:1] or [inner]
            inside[0] = inside[0] if isinstance(inside[0], type(inner)) else inner
        elif not isinstance(inside.get(key), type(inner)):
            inside[key] = inner
        inside = inside[key]
    if isinstance(path[-1], int):
        inside[:] = [value]
    else:
        inside[path[-1]] = value


def _needed(path: Path) -> dict[str, Any]:
    """Return the mapping that a key asks for, with what it must have."""
    return {
        "jobs": {"workers": [2, 3], "message": "1 KiB"},
        "background": {"from": 0, "to": 1, "burst": "1 KiB"},
        "cables": {"from": 0, "to": 1},
        "regimes": {"up_to": "1 KiB", "bandwidth": "1 GB/s", "latency": "1 us"},
        "profile": {"at": "1 us", "bandwidth": "2 GB/s"},
        "algorithm": {"name": "ring"},
        "training": {"model": {"gradients": [[2], [6]]}, "steps": 1},
        "step": {"model": "resnet-18", "rate": "150 TFLOP/s"},
        "inside": {"link": "nvlink4"},
        "message": {"from": "1 KiB", "to": "4 KiB", "factor": 2},
    }.get(str(path[-2] if path[-1] == 0 and len(path) > 1 else path[-1]), {})


def take_out(scenario: dict[str, Any], path: Path) -> None:
    """Take out what a path leads to, if it is there."""
    inside: Any = scenario
    for key in path[:-1]:
        inside = inside.get(key) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        inside.pop(path[-1], None)


def changed(random: Random, chosen: Sequence[Place], share_wrong: float = 0.1) -> dict[str, Any]:
    """Return one of the bases with these keys set, a few of them taken out, and a few set to what is wrong there."""
    scenario = {"scenario_version": 1, **deepcopy(random.choice(BASES))}
    for place in chosen:
        if random.random() < 0.1:
            take_out(scenario, place.path)
        else:
            is_wrong = not place.values or random.random() < share_wrong
            put(scenario, place.path, deepcopy(random.choice(WRONG if is_wrong else place.values)))
    return scenario


@cache
def pairs() -> list[tuple[Place, Place]]:
    """Return every pair of keys, in an order of which any part is a sample."""
    found = list(combinations(places(), 2))
    Random(0).shuffle(found)
    return found


def text_of(scenario: Mapping[str, Any]) -> str:
    """Return a scenario as YAML, a line for each key, so that a fault has a line to name."""
    return "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in scenario.items())
