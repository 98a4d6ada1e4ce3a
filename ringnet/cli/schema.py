"""``ringnet schema``: the JSON Schema of scenarios."""

from __future__ import annotations

from ringnet.cli.printing import print_json
from ringnet.scenario import schema

EXAMPLE = "ringnet schema > scenario.schema.json"


def command() -> int:
    """Print the JSON Schema of scenarios, for editors."""
    print_json(schema())
    return 0
