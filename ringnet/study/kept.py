"""Finished points on disk, one small file each, so that a sweep that was killed goes on where it stopped.

An entry is named by a hash of everything that its row depends on: the point's whole scenario with the content
of the ``.npy`` files it reads, and ringnet's version. It is written under a temporary name and renamed, so
that there is never half an entry; a checksum inside tells one that was damaged later.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ringnet._version import __version__
from ringnet.study.outcome import Outcome

#: Raised by one whenever entries of the same ringnet version would be read otherwise.
ENTRY_VERSION = 2


def default_cache_dir() -> Path:
    """Return where finished points are kept unless ``--cache`` says otherwise.

    ``$XDG_CACHE_HOME/ringnet/points``, or ``~/.cache/ringnet/points`` where that variable is not set.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "ringnet" / "points"


@dataclass(frozen=True)
class Store:
    """A folder of finished points.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing.
    fresh : bool
        Whether what was kept before is passed over.
    say : callable
        Called with each sentence that a person should read.
    """

    folder: Path | None
    fresh: bool
    say: Callable[[str], None]

    def path(self, key: str) -> Path | None:
        """Return the file of a point."""
        name = sha256(f"{ENTRY_VERSION} {__version__} {key}".encode()).hexdigest()
        return None if self.folder is None else self.folder / name[:2] / f"{name}.json"

    def find(self, key: str) -> Outcome | None:
        """Return what was kept of a point; None if nothing was, or it is damaged, which is said."""
        path = self.path(key)
        if path is None or self.fresh:
            return None
        try:
            return read_entry(path)
        except DamagedError as error:
            self.say(f"a kept point is damaged and is computed again: {path}: {error}")
            return None


class DamagedError(Exception):
    """An entry that cannot be what was written; never leaves this package."""


def write_entry(path: Path, outcome: Outcome) -> None:
    """Keep ``outcome`` at ``path``, whole or not at all; raises OSError where that cannot be done."""
    body = json.dumps({"summary": outcome.summary, "notes": outcome.notes, "jobs": outcome.job_rows})
    text = json.dumps({"sha256": _digest(body), "body": body})
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_entry(path: Path) -> Outcome | None:
    """Return what was kept at ``path``, or None if nothing was.

    Raises
    ------
    DamagedError
        When something is there, but not what `write_entry` left.
    """
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        body: str = entry["body"]
        if entry["sha256"] != _digest(body):
            raise DamagedError("its checksum is wrong")
        kept: dict[str, Any] = json.loads(body)
        return Outcome(kept["summary"], tuple(kept["notes"]), computed=False, job_rows=tuple(kept["jobs"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
