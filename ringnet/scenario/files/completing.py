"""A document with all that it takes from elsewhere: machines, presets, and the files that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.files import FileSource
from ringnet.scenario.drawn import OF_LINKS, OF_WORKERS, columns_of
from ringnet.scenario.files.folder import ScenarioFolder, read_at
from ringnet.scenario.files.links import with_link_profiles, with_presets
from ringnet.scenario.files.machines import with_machine
from ringnet.scenario.files.network_file import with_network_file, with_order_file
from ringnet.scenario.keys.model import MADE_DATA
from ringnet.scenario.keys.training import MODEL
from ringnet.units import Kind, quantity_text

#: Keys that files give.
FACTS = ("workers", "message", "dtype")


def open_files(names: str | Sequence[str], home: ScenarioFolder, dtype: DType | None) -> FileSource:
    """Open one file with a leading worker axis, or one per worker; `InputError` for what is wrong."""
    faults: list[Fault] = []
    files: list[FilePath] = []
    for name in [names] if isinstance(names, str) else names:
        try:
            files.append(home.find(name))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return FileSource.stacked(files[0], dtype) if isinstance(names, str) else FileSource(files, dtype)


def with_facts(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the `FACTS` that its files give where keys are left out, and what is wrong.

    Where the files cannot be read, the keys that they would give are broken.
    """
    names = document.get(("data",))
    if names is None or names in MADE_DATA:
        return document, []
    missing = document.left_out((key,) for key in FACTS)
    if not _are_files(names):
        return document.breaking(missing), []
    try:
        source = open_files(names, home, DTYPES.get(str(document.get(("dtype",)))))
    except InputError as error:
        faults = [_fault_of_file(fault, home, document) for fault in error.faults]
        return document.breaking({("data",), *missing}), faults
    mark = replace(document.mark(("data",)), text="", path="data")
    return document.filled(_facts(source), mark), _contradictions(document, source)


def _are_files(names: Any) -> bool:
    listed = names if isinstance(names, list) else [names]
    return bool(listed) and all(isinstance(name, str) and name for name in listed)


def _facts(source: FileSource) -> dict[Path, Any]:
    dtype = next(name for name, known in DTYPES.items() if known == source.dtype)
    message = quantity_text(source.n_elements * source.dtype.itemsize, "bytes")
    return {("workers",): source.n_workers, ("message",): message, ("dtype",): dtype}


def _contradictions(document: Document, source: FileSource) -> list[Fault]:
    stated = document.get(("workers",))
    if not isinstance(stated, int) or isinstance(stated, bool) or stated == source.n_workers:
        return []
    message = f"the data is that of {source.n_workers} workers, not of {stated}"
    return [document.fault(("workers",), message, right=f"{source.n_workers}, or leave the key out")]


def _fault_of_file(fault: Fault, home: ScenarioFolder, document: Document) -> Fault:
    """Tell the fault of a file at the key that names it, in the scenario's own words."""
    folder = f"{home.folder}/"
    message = ": ".join(filter(None, (fault.file.removeprefix(folder), fault.message.replace(folder, ""))))
    return document.fault(("data",), message, value=fault.value, right=fault.right.replace(folder, ""))


#: What is a time and not a rate.
_RATES = ("bandwidth", "reduce_rate")


def with_samples(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the files of what is drawn found, and what is wrong with them."""
    faults: list[Fault] = []
    for path in [*sample_places(document.data)]:
        name, key = document.get((*path, "file")), (*path, "file")
        if not isinstance(name, str) or not name:  # told where keys are read one by one
            continue
        kind: Kind = "bytes_per_second" if any(part in _RATES for part in path) else "seconds"
        columns = partial(columns_of, names=_columns(path, document), kind=kind)
        read = read_at(key, document, home, columns)
        if isinstance(read, list):
            faults += read
            document = document.breaking([path])
        else:
            document = document.put(key, read[0], {(): document.mark(key)})
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
                yield from ((*path, name, "of", place) for place in range(len(parts) if isinstance(parts, list) else 0))


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


def completed(document: Document, folder: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its presets and its files give, and what is wrong with them."""
    document, crowded = with_machine(document)
    document, unused = with_presets(document)
    document, no_profile = with_link_profiles(document, folder)
    document, unreadable = with_network_file(document, folder)
    document, disordered = with_order_file(document, folder)
    document, wrong = with_facts(document, folder)
    faults = [*crowded, *wrong, *unused, *no_profile, *unreadable, *disordered]
    if document.get(MODEL) is not None:
        from ringnet.scenario.files.trained_model import with_model  # noqa: PLC0415 -- most scenarios train nothing

        document, untrainable = with_model(document, folder)
        faults += untrainable
    if document.get(("step",)) is not None:
        from ringnet.scenario.files.step_layers import with_step  # noqa: PLC0415 -- nor are of a step

        document, untimed = with_step(document, folder)
        faults += untimed
    document, undrawn = with_samples(document, folder)
    return document, [*faults, *undrawn]


def known(document: Document, folder: ScenarioFolder) -> Document:
    """Return a document that was right with what its files give; `InputError` where they are not what they were."""
    found, faults = completed(document, folder)
    if faults:
        raise InputError(*faults)
    return found
