"""Scenarios made of the schema: every key that there is, with values that it takes and values that it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache, reduce
from itertools import combinations, product
from pathlib import Path as File
from random import Random
from typing import Any, NamedTuple, TypeAlias

import yaml

from ringnet.errors import InputError
from ringnet.scenario import loads
from ringnet.scenario.keys.format import schema
from ringnet.units import parse_quantity

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
#: What counts are set to, and how many of one thing a list holds at most, for a file of so many is refused unread.
COUNTS = (1, 2, 1000, 100_000, 10**7, 10**9, 2**61)
MOST_LISTED = 100_000
#: What keys are put into: as much as is needed for what most of them need, each kind in one that takes it.
BASES: Sequence[dict[str, Any]] = yaml.safe_load("""
- {workers: 4, message: 4 KiB, network: &links {bandwidth: 1 GB/s, latency: 1 us}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 4, nics: 2, inside: *links}}
- {machine: dgx-a100, message: 4 KiB}
- {workers: 4, message: 64, network: {<<: *links, topology: switch, places: 8}}
- {workers: 8, message: 1 KiB, network: {<<: *links, topology: leaf-spine, leaves: 2, hosts_per_leaf: 4}}
- {message: 4 KiB, network: {file: topology.xml}}
- {workers: 4, message: 4 KiB, network: {topology: ring, link: {file: profile.yaml}}}
- {workers: 4, message: 4 KiB, network: {topology: nodes, link: 100gbe, workers_per_host: 2, inside: {link: nvlink4}}}
- {data: gradients.npy, network: *links}
- {workers: 2, network: *links, training: {model: {name: given, gradients: [[2], [6]], parameters: [10]}, steps: 2}}
- {workers: 4, network: *links, step: {model: resnet-18, rate: 150 TFLOP/s}}
- {workers: 4, network: *links, sweep: {over: {message: [1 KiB, 4 KiB]}}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch}, jobs: [{workers: [2, 3], message: 1 KiB}]}
- {workers: 4, message: 4 KiB, network: *links, algorithm: {name: pipelined-ring, n_slices: 2}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch}, algorithm: {name: binary-tree, root: 1},
   collective: broadcast}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: switch}, algorithm: {name: hierarchical, node_size: 4,
   inner: ring, outer: direct}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: switch}, algorithm: {name: channel-ring,
   n_channels: 2, strides: [1, 3]}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: switch}, algorithm: {name: stragglar, late: 1}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: torus, sides: [4, 2]}, algorithm: {name: torus-ring,
   n_rows: 2}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: torus, sides: [4, 2]}, algorithm: {name: swing,
   dims: [2, 4]}}
- {workers: 4, message: 4 KiB, network: *links, algorithm: {name: uneven-ring, rates: [1, 1, 1, 2]}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: dragonfly, groups: 2, routers_per_group: 2,
   hosts_per_router: 1}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: fat-tree, k: 4}}
- {workers: 6, message: 4 KiB, network: {<<: *links, topology: torus, sides: [3, 2], packet: 1 KiB, header: 40 B,
   sharing: fifo}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: leaf-spine, hosts_per_leaf: [1, 3], spines: 2,
   oversubscription: 2, routes: ecmp}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: rails, rails: 2, hosts_per_rack: 2, spines: 1}}
- {workers: 3, message: 4 KiB, network: {topology: custom, <<: *links, switches: [s], cables: [{from: 0, to: s,
   <<: *links}, {from: 1, to: s, <<: *links}, {from: 2, to: s, <<: *links}]}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, nics: 2,
   inside: {shape: pcie, <<: *links, card: *links, sockets: 2, socket: *links}, affinity: [0, 1]}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: [1, 3], nics: [1, 2],
   inside: *links}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, inside: *links,
   between: {topology: leaf-spine, leaves: 2}}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch, reduction: {rate: free, dtypes: [float32],
   accumulate: float32}}, algorithm: sharp}
- {workers: 4, message: 4 KiB, repeat: 3, network: {bandwidth: {distribution: gamma, mean: 1 GB/s, cv: 0.3,
   least: 1 MB/s}, latency: {distribution: lognormal, mean: 1 us, cv: 0.3}}}
- {workers: 4, message: 4 KiB, until: {half_width: 10 %}, network: {bandwidth: 1 GB/s,
   latency: {distribution: sample, values: [1 us, 2 us]}}, worker: {start: {distribution: pareto, mean: 1 us, shape: 3,
   most: 9 us}}}
- {workers: 4, message: 4 KiB, network: {bandwidth: {distribution: sample, file: rates.csv, column: rate},
   latency: {distribution: mixture, of: [{value: 1 us}, {probability: 1 %, value: 1 ms}]}}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch}, trouble: [{worker: 1, dies: 5 us}],
   on_failure: {policy: shrink, detect: 1 us, agree: 1 us, rebuild: 1 us}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch, places: 6}, trouble: [{worker: 1,
   dies: 5 us}], on_failure: {policy: spare, spares: [4], detect: 1 us, load: 1 us}}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{worker: 1, pause: {at: 1 us, for: 1 us}}]}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{link: 0->1, slow: {at: 1 us, for: 1 us, factor: 2}}]}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{link: 0->1, down: {at: 1 us, for: 1 us, retry: 1 us}}]}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{link: 0->1, flap: {at: 1 us, down: 1 us, up: 1 us,
   times: 2}}]}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{link: 0->1, loss: {probability: 1 %, packet: 1 KiB,
   timeout: 5 us}}]}
- {workers: 4, message: 4 KiB, network: *links, background: [{from: 0, to: 1, burst: 1 KiB, rate: 1 GB/s, 'on': 5 us,
   'off': 1 us, stop: 9 us}]}
- {workers: 4, message: 4 KiB, network: *links, worker: {noise: {every: 5 us, for: 1 us},
   exceptions: {'1': {start: 1 us, reduce_rate: 1 GB/s}}}}
- {workers: 2, network: *links, reduce: mean, training: {model: {name: digits, hidden: [4], examples: 20}, batch: 4,
   steps: 2, optimizer: {name: sgd, learning_rate: 0.1}}}
- {workers: 2, network: *links, reduce: weighted-mean, training: {model: {name: digits, examples: 20}, split: [10,
   10], batch: [2, 4], steps: 2, optimizer: {name: adam, beta1: 0.9}, microbatches: 2}, dtype: float16}
- {workers: 2, network: *links, training: {model: {python: 'my.py:gradients', examples: 8}, steps: 1}}
- {workers: 4, network: *links, step: {layers: layers.csv, forward: 1 ms, backward: 1 ms, bucket_cap: 1 MiB,
   slow_workers: {'1': 2}, steps: 2, noise: 0.1}}
- {workers: 4, network: *links, step: {model: gpt2-small, rate: 150 TFLOP/s, batch: 1, sequence: 64, strategy: fsdp,
   prefetch: 1}}
- {workers: 2, data: random, message: 64 B, reduce: weighted-mean, weights: [1, 3], network: *links}
- {workers: 4, network: *links, sweep: {zip: {message: {from: 1 KiB, to: 4 KiB, factor: 2},
   network.bandwidth: {from: 1 GB/s, to: 4 GB/s, count: 3}}}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch, places: 8, placement: [1, 2, 4, 7]}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, inside: *links,
   order: [1, 0, 3, 2]}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, inside: *links,
   between: {topology: dragonfly, groups: 2, routers_per_group: 2, hosts_per_router: 1}}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, inside: *links,
   between: {topology: fat-tree, k: 4}}}
- {workers: 8, message: 4 KiB, network: {<<: *links, topology: nodes, workers_per_host: 2, inside: *links,
   between: {topology: torus, sides: [2, 2]}}}
- {workers: 4, message: 4 KiB, network: {<<: *links, topology: switch, window: {transfers: 2}}, algorithm: direct}
- {workers: 4, message: 4 KiB, network: *links, trouble: [{link: 0->1, loss: {probability: 1 %, packet: 1 KiB,
   go_back: 4}}]}
- {workers: 4, network: *links, step: {layers: layers.csv, forward: 1 ms, backward: 1 ms, groups: [[0, 1], [2, 3]]}}
- {workers: 4, network: *links, sweep: {over: {message: {from: 1 KiB, to: 4 KiB, count: 3}}}}
- {workers: 4, message: 4 KiB, network: *links, compare: {algorithms: [ring, {name: pipelined-ring, n_slices: 2}],
   workers: [4, 8]}}
""")


class Place(NamedTuple):
    """A key of the format: the way to it, values that it takes by itself, and the definition that has it."""

    path: Path
    values: tuple[Any, ...]
    kind: str

    def __str__(self) -> str:
        return ".".join(map(str, self.path))


@cache
def places() -> list[Place]:
    """Return every key that a scenario may have, in the order of the schema."""
    whole = schema()
    found: dict[Path, tuple[list[Any], str]] = {}
    for path, value, kind in _walk(whole, whole["$defs"], (), ""):
        values, _ = found.setdefault(path, ([], kind))
        if value not in values:
            values.append(value)
    return [Place(path, tuple(values), kind) for path, (values, kind) in found.items() if path]


def _walk(node: Mapping[str, Any], defs: Mapping[str, Any], path: Path, kind: str) -> Iterator[tuple[Path, Any, str]]:
    """Yield places with values, one by one, and of which kind they are."""
    inner = kind
    if "$ref" in node:
        inner = node["$ref"].rpartition("/")[2]
        node = {**defs[inner], **{key: node[key] for key in node if key != "$ref"}}
    for value in (
        *node.get("examples", ()),
        *node.get("enum", ()),
        *(node[key] for key in ("minimum", "default") if key in node),
    ):
        yield path, value, kind
    for variant in (*node.get("oneOf", ()), *node.get("anyOf", ())):
        if "required" not in variant or "$ref" in variant:
            yield from _walk(variant, defs, path, kind)
    for key, inside in node.get("properties", {}).items():
        yield from _walk(inside, defs, (*path, key), f"{inner}.{key}")
    for pattern, inside in node.get("patternProperties", {}).items():
        sign = next(sign for sign in NAMES if sign in pattern)
        for name in NAMES[sign]:
            yield from _walk(inside, defs, (*path, name), f"{inner}.{sign}")
    if "items" in node:
        yield from _walk(node["items"], defs, (*path, 0), f"{inner}.0")


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


def _has(inside: Any, path: Path) -> bool:
    """Whether a path leads to something."""
    for key in path:
        if isinstance(inside, list) and key == 0 and inside:
            inside = inside[0]
        elif isinstance(inside, dict) and key in inside:
            inside = inside[key]
        else:
            return False
    return True


def take_out(scenario: dict[str, Any], path: Path) -> None:
    """Take out what a path leads to, if it is there."""
    inside: Any = scenario
    for key in path[:-1]:
        inside = inside.get(key) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        inside.pop(path[-1], None)


def changed(random: Random, chosen: Sequence[Place], share_wrong: float = 0.1) -> dict[str, Any]:
    """Return a scenario with these keys set, a few of them taken out, and a few set to what is wrong there.

    Mostly they are put where one of them stands already, since most keys are refused where nothing asks for them.
    """
    fitting = [base for base in BASES if any(_has(base, place.path) for place in chosen)]
    base = random.choice(fitting if fitting and random.random() < 0.8 else BASES)
    scenario = {"scenario_version": 1, **deepcopy(base)}
    for place in chosen:
        if random.random() < 0.1:
            take_out(scenario, place.path)
        else:
            is_wrong = not place.values or random.random() < share_wrong
            put(scenario, place.path, deepcopy(random.choice(WRONG if is_wrong else place.values)))
    return scenario


@cache
def pairs() -> list[tuple[str, str]]:
    """Return every pair of kinds of key, in an order of which any part is a sample.

    A key of one definition is of one kind wherever it stands: ``cv`` of any time that is drawn, ``bandwidth`` of any
    exceptional link. Which of its places is set is drawn, for each pair anew.
    """
    found = list(combinations(kinds_of_keys(), 2))
    Random(0).shuffle(found)
    return found


@cache
def kinds_of_keys() -> dict[str, list[Place]]:
    """Return the places of each kind of key."""
    found: dict[str, list[Place]] = {}
    for place in places():
        found.setdefault(place.kind, []).append(place)
    return found


def counts(folder: File) -> list[dict[str, Any]]:
    """Return scenarios in which one count, one size in bytes or the length of one list is anything up to 2**61.

    A key is set in each of `BASES` that has it, or in the first that takes it; with the numbers that its scenario
    carries and, where that may be said, with none. ``folder`` has the files that these name.
    """
    found = []
    for base, path, value in (*_counted(folder), *_listed()):
        carried = [{}] if {"data", "training", "payload"} & {*base, path[0]} else [{}, {"payload": "none"}]
        for count, others in product(COUNTS, carried):
            scenario = {"scenario_version": 1, **deepcopy(base), **others}
            put(scenario, path, deepcopy(value(count)))
            if scenario not in found:
                found.append(scenario)
    Random(0).shuffle(found)
    return found


Many: TypeAlias = Callable[[int], Any]


def _counted(folder: File) -> Iterator[tuple[dict[str, Any], Path, Many]]:
    """Yield scenarios with a key of each kind that takes a number or a size, and what that many is."""
    for places_ in kinds_of_keys().values():
        path, values, _ = places_[0]
        written = ["{} B"] if any(map(_is_size, values)) else []
        written += ["{}"] if any(type(value) is int for value in values) else []
        having = [base for base in BASES if _has(base, path)] if written else []
        for base, text in product(having or [*_taking(places_[0], folder)][:1] if written else (), written):
            yield base, path, lambda count, text=text: yaml.safe_load(text.format(count))


def _listed() -> Iterator[tuple[dict[str, Any], Path, Many]]:
    """Yield scenarios with each list that they have, and what it is when it says the same so many times."""
    lists = dict.fromkeys(place.path[: at + 1] for place in places() for at, key in enumerate(place.path) if key == 0)
    for base, path in product(BASES, lists):
        if _has(base, path):
            inside = reduce(lambda inner, key: inner[key], path, base)
            yield base, path[:-1], lambda count, inside=inside: [inside] * min(count, MOST_LISTED)


def _is_size(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(parse_quantity(value, "bytes"))
    except InputError:
        return False


def _taking(place: Place, folder: File) -> Iterator[dict[str, Any]]:
    """Yield the scenarios that a key may be put into."""
    for base, value in product(BASES, place.values):
        scenario = {"scenario_version": 1, **deepcopy(base)}
        put(scenario, place.path, deepcopy(value))
        with suppress(InputError):
            loads(text_of(scenario), folder=folder, allow_python=True)
            yield base


def text_of(scenario: Mapping[str, Any]) -> str:
    """Return a scenario as YAML, a line for each key, so that a fault has a line to name."""
    return "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in scenario.items())
