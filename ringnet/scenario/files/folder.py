"""The user's own data: which files a scenario may read, what they say of it, and what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from ringnet.documents.document import Document, Mark, Path
from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.files import FileSource
from ringnet.scenario.files.link_profile import with_link_profiles
from ringnet.scenario.files.network_file import with_network_file
from ringnet.scenario.files.order_file import with_order_file
from ringnet.scenario.files.presets import with_presets
from ringnet.scenario.keys.kinds import quantity_text
from ringnet.scenario.keys.model import MADE_DATA

#: Keys that files give.
FACTS = ("workers", "message", "dtype")


@dataclass(frozen=True)
class ScenarioFolder:
    """Where a scenario stands.

    Parameters
    ----------
    folder : pathlib.Path
        Absolute; names of files start here.
    allow_outside : bool
        Whether a name may lead out of it.
    allow_python : bool
        Whether a function that it names may be run.
    """

    folder: FilePath
    allow_outside: bool = False
    allow_python: bool = False

    def find(self, name: str) -> FilePath:
        """Return the file of that name; `InputError` if it lies outside, by ``..``, root or a link."""
        file = self.folder / name
        try:
            inside = file.resolve().is_relative_to(self.folder.resolve())
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                Fault(f"this is no name of a file: {clip(str(error))}", value=clip(name))
            ) from error
        if not (inside or self.allow_outside):
            right = "a file in the scenario's folder, or --allow-outside"
            raise InputError(
                Fault("the file lies outside the scenario's folder", value=clip(name), right=right)
            )
        return file


def open_files(names: str | Sequence[str], place: ScenarioFolder, dtype: DType | None) -> FileSource:
    """Open one file with a leading worker axis, or one per worker; `InputError` for what is wrong."""
    faults: list[Fault] = []
    files: list[FilePath] = []
    for name in [names] if isinstance(names, str) else names:
        try:
            files.append(place.find(name))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return FileSource.stacked(files[0], dtype) if isinstance(names, str) else FileSource(files, dtype)


def with_facts(document: Document, place: ScenarioFolder) -> tuple[Document, list[Fault]]:
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
        source = open_files(names, place, DTYPES.get(str(document.get(("dtype",)))))
    except InputError as error:
        faults = [_told(fault, place, document) for fault in error.faults]
        return replace(document, broken=document.broken | {("data",), *missing}), faults
    faults = list(_contradictions(document, source))
    at: dict[Path, Mark] = {(): replace(document.mark(("data",)), text="", path="data")}
    for key, value in _facts(source).items():
        document = document if document.has((key,)) else document.put((key,), value, at)
    return document, faults


def known(document: Document, place: ScenarioFolder) -> Document:
    """Return the document with its `FACTS` and presets; `InputError` where the files are not what they were."""
    document, faults = with_link_profiles(with_presets(document)[0], place)
    document, unread = with_network_file(document, place)
    document, disordered = with_order_file(document, place)
    found, wrong = with_facts(document, place)
    if faults or unread or disordered or wrong:
        raise InputError(*faults, *unread, *disordered, *wrong)
    return found


@lru_cache(maxsize=1024)
def _hash(file: FilePath, changed_ns: int, size: int) -> str:
    """Hash the content; time and size only say when to look again."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(file: FilePath) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal; `InputError` if it cannot be read."""
    try:
        status = file.stat()
        return _hash(file, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise InputError(Fault(f"the file cannot be read: {error.strerror}", file=str(file))) from error


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


def _told(fault: Fault, place: ScenarioFolder, document: Document) -> Fault:
    """Tell the fault of a file at the key that names it, in the scenario's own words."""
    folder = f"{place.folder}/"
    message = ": ".join(filter(None, (fault.file.removeprefix(folder), fault.message.replace(folder, ""))))
    return document.fault(("data",), message, value=fault.value, right=fault.right.replace(folder, ""))
