"""The format as a whole: its keys asked by path, as a JSON Schema for editors, and as a scenario to start from."""

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from ringnet.documents.document import Path
from ringnet.scenario.keys.base import NAMED, key_of
from ringnet.scenario.keys.kinds import Leaf
from ringnet.scenario.keys.model import Keys


def fields(path: Path) -> dict[str, FieldInfo]:
    """Return the keys known inside ``path``, as they are written; none where they are free."""
    model = next((one for one in _at(path) if _is_model(one)), None)
    return {} if model is None else {info.alias or key_of(name): info for name, info in model.model_fields.items()}


def leaf_of(path: Path) -> Leaf | None:
    """Return how the scalar at ``path`` is read; None where no scalar stands.

    >>> leaf_of(("worker", "exceptions", "3", "start")).right
    '5 us or never'
    """
    return next((part for part in _at(path) if isinstance(part, Leaf)), None)


@cache
def all_paths() -> dict[str, str]:
    """Where each key stands, by its name; of several places the first of those least deep.

    Those of a list are in its items, those below names that a user chooses are left out.

    >>> all_paths()["strategy"], all_paths()["dies"], all_paths()["bandwidth"]
    ('step.strategy', 'trouble.0.dies', 'network.bandwidth')
    """
    paths = sorted(_paths(Keys, ""), key=lambda path: path.count("."), reverse=True)
    return {path.rpartition(".")[2]: path for path in paths}


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a mapping, and all that may stand in it; some more than once."""
    yield model
    for info in model.model_fields.values():
        for one in _flatten(info.annotation):
            for inner in (flat for part in (one, *get_args(one)) for flat in _flatten(part)):
                if _is_model(inner):
                    yield from _models(inner)


def _paths(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or key_of(name)}"
        yield path
        for one in _flatten(info.annotation):
            is_list = get_origin(one) in (list, tuple)
            inner, below = (get_args(one)[0], f"{path}.0.") if is_list else (one, f"{path}.")
            for part in _flatten(inner):
                if _is_model(part):
                    yield from _paths(cast("type[BaseModel]", part), below)


def _at(path: Path) -> list[Any]:
    """Return what may stand at ``path``: models, leaves and containers."""
    here: list[Any] = [Keys]
    for part in path:
        here = [flat for one in here for inner in _inside(one, part) for flat in _flatten(inner)]
    return here


def _inside(one: Any, part: str | int) -> Iterator[Any]:
    if _is_model(one):
        for name, info in one.model_fields.items():
            if part == (info.alias or key_of(name)):
                yield Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    elif get_origin(one) is dict:
        yield get_args(one)[1]
    elif get_origin(one) in (list, tuple) and isinstance(part, int):
        yield get_args(one)[0]


def _flatten(annotation: Any) -> Iterator[Any]:
    """Yield the leaves of a type first, then its models and containers."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from (part for part in metadata if isinstance(part, Leaf))
        yield from _flatten(inner)
    elif origin in (Union, UnionType):
        for inner in get_args(annotation):
            yield from _flatten(inner)
    else:
        yield annotation


def _is_model(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, BaseModel)


_NULL = {"type": "null"}
#: A sweep, a machine or what is included may give the keys that a single run must have.
_REQUIRED = {
    "required": ["scenario_version"],
    "if": {"not": {"anyOf": [{"required": [key]} for key in ("sweep", "include", "machine")]}},
    "then": {
        "required": ["network"],
        "properties": {
            "network": {
                "anyOf": [
                    {"required": ["bandwidth", "latency"]},
                    {"required": ["link"]},
                    {"required": ["file"]},
                ]
            }
        },
        # Data, a training and a step say by themselves how large the message is.
        "anyOf": [
            {"required": ["workers", "message"]},
            {"required": ["workers", "step"]},
            {"required": ["data"]},
            {"required": ["training"]},
        ],
    },
}


def schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of scenario files, its names taken from the registries.

    What only two keys together get wrong is beyond it: ``ringnet check`` says that.

    Examples
    --------
    >>> schema()["properties"]["engine"]["enum"]
    ['auto', 'events', 'recurrence', 'compiled']
    """
    models = dict.fromkeys(_models(Keys))
    named = _plain(models_json_schema([(model, "validation") for model in models])[1])["$defs"]
    made = {**named.pop(Keys.__name__), "$defs": named}
    for mapping in ("NetworkKeys", "InsideKeys"):  # a preset may give it
        del made["$defs"][mapping]["required"]
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **made,
        "title": "A scenario of ringnet",
        **_REQUIRED,
    }


def _plain(part: Any) -> Any:
    """Without pydantic's titles and nulls, and with no keys but those that are described."""
    if isinstance(part, list):
        return [_plain(item) for item in part if item != _NULL]
    if not isinstance(part, dict):
        return part
    made = {key: _plain(item) for key, item in part.items() if not _is_noise(key, item)}
    if NAMED in made:
        made["$ref"] = f"#/$defs/{made.pop(NAMED)}"
    if len(made.get("anyOf", [])) == 1:
        made |= made.pop("anyOf")[0]
    return made | ({"additionalProperties": False} if "patternProperties" in made else {})


def _is_noise(key: str, item: Any) -> bool:
    return item is None or (key == "title" and isinstance(item, str))


#: Every section once, in comments what else may stand there. It loads as it is.
TEMPLATE = """\
# A ring all-reduce. Change a number, and run it again:
#   ringnet check FILE     what would run, and every mistake
#   ringnet run FILE       time, bandwidth, bottleneck, and whether the sum is right
#   ringnet run FILE --set workers=16 --set network.latency='5 us'
# Every quantity needs its unit. MiB is 2^20 bytes, GB is 10^9 bytes, and 400 Gbit/s is 50 GB/s.
scenario_version: 1
name: my first ring

collective: all-reduce      # or reduce-scatter, all-gather
algorithm: ring             # or {name: channel-ring, n_channels: 4}, {file: schedule.xml}, {python: 'my.py:f'}
workers: 8
message: 64 MiB             # the whole buffer of one worker, for every collective
dtype: float32              # float64 float32 float16 bfloat16 int8 uint8 int32 int64
reduce: sum                 # or mean (with weights: [1, 3, ...] the weighted mean), max, min, prod

data: random                # or ramp, gradients.npy (leading axis: workers), [w0.npy, w1.npy, ...]
seed: 1                     # of random data
payload: full               # or {elements: 16} of each chunk, or none; the time is the same

network:
  topology: ring            # a private link to the next worker; or switch: a link up and a link down each
  bandwidth: 50 GB/s        # of each link and direction
  latency: 500 ns           # in place of both: link: nvlink4, or from `ringnet calibrate` {file: profile.yaml}
  # switching: store-and-forward      # on a switch; the rule is cut-through
  # sharing: fifo                     # or fair; auto is fair where a link has several senders
  # links_of: {3: {bandwidth: 5 GB/s}}            # all links into and out of worker 3
  # links: {3->4: {bandwidth: 5 GB/s, latency: 20 us}}

worker:
  sends: eager              # or rendezvous: a transfer starts when both sides are in the step
  send_overhead: 0 s
  recv_overhead: 0 s
  launch: 0 s               # once for each collective, before the first step; libraries of GPUs take 5 to 20 us
  reduce_rate: 100 GB/s     # left out, reducing is free
  # exceptions: {5: {reduce_rate: 10 GB/s, start: 20 us}}    # start: never is a dead worker

# trouble:                  # what goes wrong, and what the collective does then
#   - {link: 0->*, down: {at: 1 ms, for: 2 s}}
#   - {worker: 1, dies: 2 ms}
# on_failure: {policy: shrink, detect: 1 s, agree: 10 ms}     # or wait, abort, spare

# Many runs from one file; a swept key need not stand above.
# sweep:
#   over:
#     workers: [2, 4, 8, 16]
#     message: {from: 1 KiB, to: 1 GiB, factor: 4}

# compare:                  # what `ringnet compare` and `ringnet numerics` look at; sizes: a sweep over message
#   algorithms: [ring, halving-doubling]    # or all
#   workers: [4, 8, 16]

# report:
#   tables: [summary, links, workers, transfers]
#   plots: [space-time, link-traffic]
#   figure: {width: 3.5 in, dpi: 300, font: DejaVu Serif, format: [pdf, svg]}
#   transfers: all          # rows are kept up to 200000 transfers otherwise
"""


def template() -> str:
    """Return the text of a commented scenario.

    Examples
    --------
    >>> from ringnet.scenario import loads
    >>> loads(template()).workers
    8
    """
    return TEMPLATE
