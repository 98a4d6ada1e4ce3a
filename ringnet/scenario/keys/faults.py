"""What pydantic found, as faults with line, path, value, right form and the nearest known key."""

from __future__ import annotations

from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ringnet.documents.document import Document, Path, in_flow, is_within
from ringnet.errors import Fault
from ringnet.scenario.keys.base import TAGS
from ringnet.scenario.keys.kinds import Quantity
from ringnet.scenario.keys.lookup import all_paths, fields, leaf_of

_MAPPING_WANTED = ("model_type", "dict_type", "model_attributes_type")


def translate(error: ValidationError, document: Document, at: Path = ()) -> dict[Path, Fault]:
    """Return one fault for each path that is wrong; those of broken paths are told already and left out.

    What was validated stands at ``at``.
    """
    found: dict[Path, Fault] = {}
    for detail in error.errors(include_url=False):
        path = at + tuple(part for part in detail["loc"] if part not in TAGS)
        if not any(is_within(path, broken) for broken in document.broken):
            found.setdefault(path, _fault(detail, path, document))
    return found


def _fault(detail: ErrorDetails, path: Path, document: Document) -> Fault:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "wrong":
        right = _like_the_keys_example(context["right"], path)
        return document.fault(path, context["message"], right=right, nearest=context["nearest"])
    if kind == "missing":
        return document.fault(path, "the key is missing", right=_example(path))
    if kind == "extra_forbidden":
        return _unknown_key(path, document)
    if kind in _MAPPING_WANTED:
        return document.fault(path, "keys with values are wanted here", right=_known_keys(path))
    return document.fault(path, "a list is wanted", right=_example(path))


def _like_the_keys_example(right: str, path: Path) -> str:
    """Put the example of the key for that of its kind: a header is no 64 MiB."""
    info, leaf = fields(path[:-1]).get(str(path[-1])) if path else None, leaf_of(path)
    example = (info.examples or [""])[0] if info else ""
    if not isinstance(example, str) or not isinstance(leaf, Quantity):
        return right
    return right.replace(f"something like {leaf.example}", f"something like {example or leaf.example}")


def _unknown_key(path: Path, document: Document) -> Fault:
    """Point to the nearest key beside it; failing that, to the same key somewhere else."""
    key, known = str(path[-1]), fields(path[:-1])
    nearest = get_close_matches(key, known, n=1)
    elsewhere = {known_path.rpartition(".")[2]: known_path for known_path in all_paths()}
    far = [elsewhere[name] for name in get_close_matches(key, elsewhere, n=1)]
    hint = (nearest or far or [""])[0]
    return document.fault(
        path, "there is no such key", right="" if hint else f"one of {', '.join(known)}", nearest=hint
    )


def _example(path: Path) -> str:
    info = fields(path[:-1]).get(str(path[-1])) if path else None
    leaf = leaf_of(path)
    example = (info.examples or [""])[0] if info else ""
    if not example:
        return getattr(leaf, "right", "") or _known_keys(path)
    return f"{path[-1]}: {in_flow(example)}"


def _known_keys(path: Path) -> str:
    known = fields(path)
    return f"some of {', '.join(known)}" if known else ""
