"""Scenarios: YAML to a checked `Scenario`; every mistake at once, each with file, line and path.

Four chapters, each of which knows those above it only:

======  ==========================================================================================================
keys    the pydantic models: what may stand where, how it is read, the format as a JSON Schema and as a template
files   what a scenario takes from elsewhere: known links by name, and the files that it names
checks  keys that are right one by one and wrong together
build   `load`, `loads`: text with overrides to a `Scenario`; the points of its sweep
======  ==========================================================================================================

Between files and checks stand `network` and `schedule`: what the keys of both stand for.
"""

from __future__ import annotations

from ringnet.scenario.build.load import load, loads
from ringnet.scenario.build.scenario import Scenario, SweepPoint
from ringnet.scenario.keys.schema import schema
from ringnet.scenario.keys.template import template

__all__ = ["Scenario", "SweepPoint", "load", "loads", "schema", "template"]
