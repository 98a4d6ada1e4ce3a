"""Files of what is drawn: samples that were measured, and the interruptions of an operating system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, InputError
from ringnet.scenario.drawn import OF_LINKS, OF_WORKERS, columns_of
from ringnet.scenario.files.folder import ScenarioFolder, fault_at

#: What is a time and not a rate.
_RATES = ("bandwidth", "reduce_rate")


def with_samples(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the files of what is drawn found, and what is wrong with them."""
    faults: list[Fault] = []
    for path in [*sample_places(document.data)]:
        name, key = document.get((*path, "file")), (*path, "file")
        if not isinstance(name, str) or not name:  # told where keys are read one by one
            continue
        try:
            found = home.found(name)
            is_rate = any(key in _RATES for key in path)
            columns_of(found, _columns(path, document), "bytes_per_second" if is_rate else "seconds")
        except InputError as error:
            faults += [fault_at(key, fault, name, document) for fault in error.faults]
            document = replace(document, broken=document.broken | {path})
        else:
            document = document.put(key, found, {(): document.mark(key)})
    return document, faults


def _columns(path: Path, document: Document) -> tuple[str, ...]:
    if path[-1] == "noise":
        return "at", "for"
    column = document.get((*path, "column"))
    return (column,) if isinstance(column, str) and column else ()


def sample_places(data: Any) -> Iterator[Path]:
    """Yield the path of every mapping that may name a file of what is drawn."""
    network, worker = (data.get(key) if isinstance(data, dict) else None for key in ("network", "worker"))
    if isinstance(worker, dict) and isinstance(worker.get("noise"), dict):
        yield ("worker", "noise")
    around: list[tuple[Path, Any, Any]] = [
        (("network",), network, OF_LINKS),
        (("worker",), worker, OF_WORKERS),
    ]
    keys = ("network", network, "links"), ("network", network, "links_of"), ("worker", worker, "exceptions")
    for at, inside, key in keys:
        some = inside.get(key) if isinstance(inside, dict) else None
        names = OF_LINKS if at == "network" else OF_WORKERS
        if isinstance(some, dict):
            around += [((at, key, str(name)), one, names) for name, one in some.items()]
    for path, inside, names in around:
        for name in names if isinstance(inside, dict) else ():
            if isinstance(value := inside.get(name), dict):
                yield (*path, name)
                parts = value.get("of")
                yield from (
                    (*path, name, "of", place)
                    for place in range(len(parts) if isinstance(parts, list) else 0)
                )


def sample_files(data: Any) -> list[str]:
    """Return the names of all files of what a document draws."""
    found = []
    for path in sample_places(data):
        inside = data
        for key in path:
            inside = inside[key]
        if isinstance(inside, dict) and inside.get("file"):
            found.append(str(inside["file"]))
    return found
