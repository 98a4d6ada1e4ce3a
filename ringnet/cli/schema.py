"""``ringnet schema``: the JSON Schema of scenarios."""

from __future__ import annotations

import json
from pathlib import Path

from ringnet.cli.printing import print_json

EXAMPLE = "ringnet schema > scenario.schema.json"

#: What `ringnet.scenario.schema` made of the keys, kept: to make it takes longer than most runs. A golden test holds
#: the two equal.
KEPT = Path(__file__).parents[1] / "scenario" / "schema.json"


def command() -> int:
    """Print the JSON Schema of scenarios, for editors."""
    print_json(json.loads(KEPT.read_text(encoding="utf-8")))
    return 0
