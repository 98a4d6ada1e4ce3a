"""Which keys there are, asked by path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ringnet.documents.document import Path
from ringnet.scenario.keys.kinds import Leaf
from ringnet.scenario.keys.model import Keys


def fields(path: Path) -> dict[str, FieldInfo]:
    """Return the keys known inside ``path``, as they are written; none where they are free."""
    model = next((one for one in _at(path) if _is_model(one)), None)
    return {} if model is None else {info.alias or name: info for name, info in model.model_fields.items()}


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


def _paths(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        path = f"{prefix}{info.alias or name}"
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
            if part == (info.alias or name):
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
