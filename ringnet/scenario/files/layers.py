"""Scenarios in layers: what is written over what it is based on, each key with the place where it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ringnet.documents.document import Document, Path
from ringnet.scenario.keys.topology import parameter_names


def layered(upper: Document, lower: Document) -> Document:
    """Return a document with the keys of two; of those in both, and of lists, what the upper one says.

    What the upper one makes pointless goes: bandwidth and latency below a link, the parameters below a topology that is
    named (again) and the switches that reduce in it, all of a network below a file. An algorithm is a whole.

    Examples
    --------
    >>> base = Document({"network": {"topology": "leaf-spine", "leaves": 2, "link": "100gbe"}, "workers": 8})
    >>> layered(Document({"network": {"topology": "switch"}}), base).data
    {'network': {'topology': 'switch', 'link': '100gbe'}, 'workers': 8}
    """
    kept: set[Path] = set()
    data = _merged(upper.data, lower.data, (), kept)
    marks = {
        path: mark
        for path, mark in lower.marks.items()
        if any(path[:n] in kept for n in range(len(path) + 1))
    }
    return replace(upper, data=data, marks=marks | dict(upper.marks), broken=upper.broken | lower.broken)


def _merged(upper: Any, lower: Any, path: Path, kept: set[Path]) -> Any:
    """Return the data of both; ``kept`` gets the paths of what is the lower one's."""
    if not isinstance(upper, dict) or not isinstance(lower, dict) or path == ("algorithm",):
        return upper
    found: dict[str, Any] = {}
    # In the order of what is below, so that the network of a machine stays together.
    for key, value in lower.items():
        if key in upper:
            found[key] = _merged(upper[key], value, (*path, key), kept)
        elif not _is_pointless(key, upper):
            kept.add((*path, key))
            found[key] = value
    return found | {key: value for key, value in upper.items() if key not in lower}


def _is_pointless(key: str, upper: Mapping[str, Any]) -> bool:
    """Whether what is said below has no meaning beside what is said above."""
    if "file" in upper:  # of a network, or of a link: it says all
        return True
    if key in ("bandwidth", "latency") and "link" in upper:
        return True
    if key == "link" and {"bandwidth", "latency"} <= upper.keys():
        return True
    inside = upper.get("inside")
    if key == "reduction" and ("topology" in upper or (isinstance(inside, dict) and "shape" in inside)):
        return True  # it names switches of the network below
    # A topology that is named is a whole, also the same one again.
    return "topology" in upper and key in parameter_names()
