"""The format as a JSON Schema, so that an editor completes, explains and checks scenario files."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from ringnet.scenario.keys.model import Keys

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
    made = _plain(Keys.model_json_schema())
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
    if len(made.get("anyOf", [])) == 1:
        made |= made.pop("anyOf")[0]
    return made | ({"additionalProperties": False} if "patternProperties" in made else {})


def _is_noise(key: str, item: Any) -> bool:
    return item is None or (key == "title" and isinstance(item, str))
