"""Files that a command is asked to write: their folders are there, or nothing is done at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ringnet.errors import Fault, InputError


def check_files(targets: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, files whose folder is not there: a slip of a key makes no folders.

    Parameters
    ----------
    targets : mapping of str to Path or None
        Each file by its option; None for one that is not wanted.

    Raises
    ------
    InputError
        With every such option and the folder that is missing.
    """
    faults = [
        Fault("there is no such folder", option, value=str(path.parent))
        for option, path in targets.items()
        if path is not None and not path.parent.is_dir()
    ]
    if faults:
        raise InputError(*faults)
