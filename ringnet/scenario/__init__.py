"""Scenarios: YAML to a checked `Scenario`, and to the parts that the other rooms work with.

=========  ================================================================================================
load       `load`, `loads`: a file or a text with its overrides; every mistake at once
scenario   `Scenario`, `Point`: the keys in plain SI, the points of a sweep, `document`, `key`
build      `build`: schedule, network, workers, data of one run
memory     `estimate`, `require_memory`: what a run takes, and a word where that is too much
schema     `schema`: the format as a JSON Schema; `template`: a commented scenario to start from
=========  ================================================================================================
"""

from __future__ import annotations

from ringnet.scenario.build import Parts, build
from ringnet.scenario.load import load, loads
from ringnet.scenario.memory import Estimate, available_bytes, estimate, require_memory
from ringnet.scenario.scenario import Point, Scenario
from ringnet.scenario.schema import schema
from ringnet.scenario.template import template

__all__ = [
    "Estimate",
    "Parts",
    "Point",
    "Scenario",
    "available_bytes",
    "build",
    "estimate",
    "load",
    "loads",
    "require_memory",
    "schema",
    "template",
]
