"""Where a scenario stands: which files it may read, whether they are there, and what was handed over from Python."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import ValidationError

from ringnet.collectives import Schedule
from ringnet.documents.document import Document, Path, path_text
from ringnet.documents.text import clip
from ringnet.errors import Fault, InputError
from ringnet.scenario.keys.kinds import FoundFile

#: Keys that every network needs and that a file makes unread; what stands for them is never looked at.
STAND_INS = {"bandwidth": "1 GB/s", "latency": "0 s"}

T = TypeVar("T")


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
    schedule : Schedule or None
        What was handed over in place of such a function.
    """

    folder: FilePath
    allow_outside: bool = False
    allow_python: bool = False
    schedule: Schedule | None = field(default=None, compare=False)

    def find(self, name: str) -> FilePath:
        """Return the file of that name; `InputError` if it lies outside, by ``..``, root or a link."""
        file = self.folder / name
        try:
            inside = file.resolve().is_relative_to(self.folder.resolve())
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(Fault(f"this is no name of a file: {clip(str(error))}", value=clip(name))) from error
        if file.exists() and not file.is_file():  # a pipe without a writer would never end
            what = "a folder" if file.is_dir() else "a pipe or a device"
            raise InputError(Fault(f"this is {what}", value=clip(name), right="a regular file"))
        if not (inside or self.allow_outside):
            right = "a file in the scenario's folder, or --allow-outside (allow_outside=True)"
            raise InputError(Fault("the file lies outside the scenario's folder", value=clip(name), right=right))
        return file

    def found(self, name: str) -> FoundFile:
        """Return the file of that name; `InputError` if it lies outside, or is not there."""
        path = self.find(name)
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(Fault(f"the file cannot be read: {error.strerror}")) from error
        return FoundFile(name, path, status.st_mtime_ns, status.st_size)


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


def with_given(
    document: Document, section: Path, give: Callable[[], Mapping[Path, Any]], told: Callable[[Fault], Fault]
) -> tuple[Document, list[Fault]]:
    """Return the document with what a section gives where keys are left out, or with what is wrong with the section.

    It gives the size of the message, and maybe more; where it cannot, nobody is to miss that.
    """
    missing = document.left_out([("message",)])
    try:
        given = give()
    except ValidationError:  # which is told where all keys are read
        return document.breaking(missing), []
    except InputError as error:
        return document.breaking({section, *missing}), [told(fault) for fault in error.faults]
    filled = document.filled(given, replace(document.mark(section), text="", path=path_text(section)))
    return filled.breaking(missing - given.keys()), []


def read_at(
    key: Path, document: Document, home: ScenarioFolder, read: Callable[[FoundFile], T]
) -> tuple[FoundFile, T] | list[Fault]:
    """Return the file that a key names, with what is read of it; or its faults, told at the key, with line and path."""
    name = document.get(key)
    try:
        found = home.found(name)
        return found, read(found)
    except InputError as error:
        faults = []
        for fault in error.faults:
            where = f"{name}:{fault.line}" if fault.line else name
            message = ": ".join(filter(None, (where, fault.path, fault.message)))
            faults.append(document.fault(key, message, value=fault.value, right=fault.right))
        return faults
