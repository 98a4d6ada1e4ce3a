"""What the site says that the code already knows: the scenario format, commands, names and columns.

A page holds a line ``<!-- made from: NAME -->``; when the site is built it is replaced by Markdown that is made from
what ringnet itself answers (``ringnet schema``, ``ringnet list``, ``ringnet COMMAND --help``): it cannot be stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from ringnet.cli import app

PLACE = re.compile(r"^<!-- made from: ([a-z ]+) -->$", re.MULTILINE)
#: Longer lists of values are left to the description of what they name.
MOST_VALUES = 12
HEADINGS = ("key", "what it is", "default", "values")

Schema = dict[str, Any]


def fill(page: str) -> str:
    """Return a page with every place filled; a name that is not known is an error."""
    return PLACE.sub(lambda place: MAKERS[place[1]](), page)


def answer(*arguments: str) -> str:
    """Return what a command of ringnet prints."""
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}, catch_exceptions=False)
    if result.exit_code:
        raise ValueError(f"ringnet {' '.join(arguments)}: exit code {result.exit_code}\n{result.output}")
    return result.output


def scenario_format() -> str:
    """Return a table for the top level, and one for every mapping that stands under a key of it."""
    return "\n\n".join(format_tables(json.loads(answer("schema"))))


def format_tables(schema: Schema) -> Iterator[str]:
    """Yield a heading and a table of keys for each mapping of a JSON Schema, in the order in which they are met."""
    yield heading("A scenario", schema)
    yield table(HEADINGS, key_rows(schema, schema["$defs"]))
    for name in in_order(schema):
        mapping = schema["$defs"][name]
        yield heading(spoken(name), mapping)
        yield "Stands under " + ", ".join(f"`{path}`" for path in sorted(paths_to(schema, name))) + "."
        yield table(HEADINGS, key_rows(mapping, schema["$defs"]))


def heading(title: str, mapping: Schema) -> str:
    """Return a heading, and under it what the schema says of the mapping."""
    return f"## {title}\n\n{mapping['description']}"


def spoken(name: str) -> str:
    """Return the name of a definition as words: ``LinkException`` is ``Link exception``.

    >>> spoken("LinkException")
    'Link exception'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def key_rows(mapping: Schema, definitions: Schema) -> Iterator[tuple[str, str, str, str]]:
    """Yield key, description, default and allowed values of each key."""
    required = mapping.get("required", ())
    for key, value in mapping["properties"].items():
        described = value if "description" in value else definitions[definition(value)]
        default = "*required*" if key in required else shown_default(value)
        yield f"`{key}`", described["description"], default, ", ".join(unique(values_of(value)))


def shown_default(value: Schema) -> str:
    """Return the default of a key as YAML would have it; nothing where it is a mapping with defaults of its own."""
    default = value.get("default")
    if default is None or default in ([], {}) or "$ref" in value:
        return ""
    return f"`{default:g}`" if isinstance(default, float) else f"`{json.dumps(default)}`".replace('"', "")


def values_of(value: Schema) -> Iterator[str]:
    """Yield what may stand for a key: names, ranges, kinds, and mappings as links to their own table."""
    if "$ref" in value:
        name = spoken(definition(value))
        yield f"[{name.lower()}](#{name.lower().replace(' ', '-')})"
    for branch in (*value.get("oneOf", ()), *value.get("anyOf", ())):
        yield from values_of(branch)
    if "enum" in value:
        names = [f"`{each}`" for each in value["enum"]]
        yield ", ".join(names[:MOST_VALUES]) + (", ..." if len(names) > MOST_VALUES else "")
    elif value.get("type") == "array":
        each = " or ".join(unique(values_of(value["items"]))) if value.get("items") else "anything"
        yield f"a list of: {each}"
    elif "patternProperties" in value:
        for inner in value["patternProperties"].values():
            yield f"a mapping to: {' or '.join(unique(values_of(inner)))}"
    elif isinstance(value.get("type"), list):
        yield " or ".join(f"a {kind}" for kind in value["type"])
    elif value.get("type") in ("integer", "number"):
        yield number(value)
    elif "pattern" in value:
        yield "a quantity with its unit" if "µ" in value["pattern"] else "a name"
    elif value.get("type") == "string":
        yield "text"
    elif value.get("type") == "boolean":
        yield "`true`, `false`"


def number(value: Schema) -> str:
    """Return the range of a number in words."""
    kind = "a whole number" if value["type"] == "integer" else "a number"
    low = f" from {value['minimum']:,}" if "minimum" in value else ""
    high = f" to {value['maximum']:,}" if "maximum" in value else ""
    return kind + low + high


def unique(values: Iterator[str]) -> list[str]:
    """Return the values without doubles, in order."""
    return list(dict.fromkeys(values))


def definition(value: Schema) -> str:
    """Return the name of the definition that a value refers to."""
    return str(value["$ref"]).rpartition("/")[2]


def references(value: Any) -> Iterator[str]:
    """Yield the definitions that stand anywhere in a value."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield definition(value)
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def in_order(schema: Schema) -> list[str]:
    """Return the definitions in the order in which a reader meets them: those of a key, then those inside them."""
    found: list[str] = []
    waiting = list(references(schema["properties"]))
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found.append(name)
            waiting[:0] = references(schema["$defs"][name])
    return found


def paths_to(schema: Schema, name: str) -> set[str]:
    """Return the keys, by path, under which a definition stands."""
    found = set()
    for owner in ("", *schema["$defs"]):
        mapping = schema["$defs"][owner] if owner else schema
        for key, value in mapping["properties"].items():
            if name in references(value):
                found |= {f"{path}.{key}".lstrip(".") for path in (paths_to(schema, owner) if owner else {""})}
    return found


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def names() -> str:
    """Return a table for each kind of name that a scenario can choose from."""
    known = json.loads(answer("list", "--json"))
    parts = []
    for kind, meanings in known.items():
        rows = ((f"`{name}`", meaning) for name, meaning in meanings.items())
        parts.append(f"## {kind.capitalize()}\n\n{table(('name', 'what it is'), rows)}")
    return "\n\n".join(parts)


def columns() -> str:
    """Return a table of columns for each table that a run writes."""
    parts = []
    for name, meanings in json.loads(answer("list", "columns", "--json")).items():
        rows = ((f"`{column}`", meaning) for column, meaning in meanings.items())
        parts.append(f"### {name}.csv\n\n{table(('column', 'meaning'), rows)}")
    return "\n\n".join(parts)


def commands() -> str:
    """Return what each command says of itself."""
    parts = []
    for name in sorted(get_command(app).commands):
        text = answer(name, "--help").replace("Usage: root", "Usage: ringnet")
        parts.append(f"## ringnet {name}\n\n```text\n{text.strip()}\n```")
    return "\n\n".join(parts)


MAKERS: dict[str, Callable[[], str]] = {
    "schema": scenario_format,
    "list": names,
    "list columns": columns,
    "help": commands,
}
