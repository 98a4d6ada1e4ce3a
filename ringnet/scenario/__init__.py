"""Scenarios: YAML to a checked `Scenario`; every mistake at once, each with file, line and path.

Four chapters, each of which knows those above it only:

======  ==========================================================================================================
keys    the pydantic models: what may stand where, how it is read, the format as a JSON Schema and as a template
files   what a scenario takes from elsewhere: known links by name, and the files that it names
checks  keys that are right one by one and wrong together
build   `load`, `loads`: text with overrides to a `Scenario`; the points of its sweep
======  ==========================================================================================================

Between files and checks stands what the keys of both stand for: `schedule`, `network`, `measured_links`, `drawn`,
`trouble`.

Names are imported when they are first used: who asks what machines there are reads no scenario.

``ringnet.scenario(workers=8, ...)`` makes a scenario of keywords: the package has the name, and can be called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringnet.scenario.build.load import load, loads
    from ringnet.scenario.build.scenario import Scenario, SweepPoint
    from ringnet.scenario.keys.format import schema, template

_HOMES = {
    "Scenario": "build.scenario",
    "SweepPoint": "build.scenario",
    "load": "build.load",
    "loads": "build.load",
    "schema": "keys.format",
    "template": "keys.format",
}

__all__ = ["Scenario", "SweepPoint", "load", "loads", "schema", "template"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


class _CallablePackage(ModuleType):
    # What `ringnet.scenario?` and the pages show is the function that is called.
    __doc__ = property(lambda self: self._make.__doc__)

    @property
    def __signature__(self) -> Signature:
        return signature(self._make)

    @property
    def _make(self) -> Any:
        return import_module(f"{self.__name__}.build.load").scenario

    def __call__(self, *given: Any, **keys: Any) -> Any:
        return self._make(*given, **keys)


sys.modules[__name__].__class__ = _CallablePackage
