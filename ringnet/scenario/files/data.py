"""The user's own data: what its files say of a scenario, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from ringnet.documents.document import Document, Mark, Path
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.files import FileSource
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.kinds import quantity_text
from ringnet.scenario.keys.model import MADE_DATA

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
    missing = {(key,) for key in FACTS if not document.has((key,))}
    if not _are_files(names):
        return replace(document, broken=document.broken | missing), []
    try:
        source = open_files(names, home, DTYPES.get(str(document.get(("dtype",)))))
    except InputError as error:
        faults = [_fault_of_file(fault, home, document) for fault in error.faults]
        return replace(document, broken=document.broken | {("data",), *missing}), faults
    faults = list(_contradictions(document, source))
    at: dict[Path, Mark] = {(): replace(document.mark(("data",)), text="", path="data")}
    for key, value in _facts(source).items():
        document = document if document.has((key,)) else document.put((key,), value, at)
    return document, faults


def _are_files(names: Any) -> bool:
    listed = names if isinstance(names, list) else [names]
    return bool(listed) and all(isinstance(name, str) and name for name in listed)


def _facts(source: FileSource) -> dict[str, Any]:
    dtype = next(name for name, known in DTYPES.items() if known == source.dtype)
    message = quantity_text(source.n_elements * source.dtype.itemsize, "bytes")
    return {"workers": source.n_workers, "message": message, "dtype": dtype}


def _contradictions(document: Document, source: FileSource) -> Sequence[Fault]:
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
