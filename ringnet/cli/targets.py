"""Where a command writes, held against what it reads and against each other: nothing that was given is lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from shlex import quote

from ringnet.errors import Fault, InputError
from ringnet.reporting.atomic import MANIFEST, check_target, listed_files
from ringnet.reporting.look import FORMATS
from ringnet.scenario import Scenario

RIGHT = "another name"
#: What ends the name of no folder that anybody wants.
_OF_FILES = {*(f".{ending}" for ending in FORMATS), ".csv", ".gif", ".html", ".json", ".mp4", ".txt", ".yaml", ".yml"}


def check_targets(
    files: Mapping[str, Path | None],
    sources: Iterable[Path] = (),
    folders: Mapping[str, Path | None] | None = None,
) -> None:
    """Refuse, before any work is done, targets that would take something with them.

    Parameters
    ----------
    files : mapping of str to Path or None
        Each file to be written by its option; None for one that is not wanted.
    sources : iterable of Path
        What the command reads.
    folders : mapping of str to Path or None
        Each folder that is to be replaced whole, by its option.

    Raises
    ------
    InputError
        With every file whose folder is not there (a slip of a key makes no folders), that is no regular file, that the
        command reads, that belongs to results, or that another option writes too; a picture of no known format.
    ResultsError
        A folder cannot hold results, or holds something else: see `ringnet.reporting.atomic.check_target`.
    """
    wanted = {option: path for option, path in files.items() if path is not None}
    whole = {option: path for option, path in (folders or {}).items() if path is not None}
    read = [*sources]
    faults = [*_of_files(wanted, read), *_of_folders(whole, read), *_of_each_other(wanted | whole, whole)]
    if faults:
        raise InputError(*faults)
    for folder in whole.values():
        check_target(folder)


def check_saved(target: Path, results: Path, sources: Iterable[Path]) -> None:
    """Refuse a folder for the result that is (in) that of the tables, which is replaced, or whose arrays are read."""
    option, right = "--save-result", "another folder"
    if _is_within(target, results):
        raise InputError(Fault("the folder of --out is replaced whole", option, value=str(target), right=right))
    if listed_files(target):
        raise InputError(Fault("the folder holds results", option, value=str(target), right=right))
    written = [source for source in sources if _are_same(source.parent, target) and source.suffix == ".npy"]
    if written:
        message = f"{written[0].name} in that folder is read, and would be written over"
        raise InputError(Fault(message, option, value=str(target), right=right))


def sources_of(scenario: Scenario, path: Path) -> list[Path]:
    """Return what is read for a scenario that stands at ``path``: the file or the folder, and all that it names."""
    included = {mark.file for mark in scenario.base.marks.values()}
    files = (Path(file) for file in sorted(included) if file.endswith((".yaml", ".yml")))
    return [*dict.fromkeys([path, *files, *(scenario.home.folder / name for name in scenario.inputs())])]


def _of_files(files: Mapping[str, Path], sources: Iterable[Path]) -> Iterator[Fault]:
    missing: set[Path] = set()
    for option, path in files.items():
        if not path.parent.is_dir():
            if path.parent not in missing:  # a picture goes beside its profile unless somebody says otherwise
                right = f"one that is there; mkdir -p {quote(str(path.parent))} makes it"
                yield Fault("there is no such folder", option, value=str(path.parent), right=right)
            missing.add(path.parent)
        elif path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no regular file"
            yield Fault(f"the target is {what}", option, value=str(path), right="the name of a file")
        elif any(_are_same(path, source) for source in sources):
            yield Fault("what is read would be written over", option, value=str(path), right=RIGHT)
        elif path.name in listed_files(path.parent):
            message = f"the file belongs to the results in {path.parent}"
            yield Fault(message, option, value=str(path), right=RIGHT)
        elif option == "--plot" and path.suffix.lower() not in {"", *(f".{ending}" for ending in FORMATS)}:
            right = ", ".join(path.with_suffix(f".{ending}").name for ending in FORMATS)
            yield Fault("there is no such format of figures", option, value=str(path), right=right)


def _of_folders(folders: Mapping[str, Path], sources: Iterable[Path]) -> Iterator[Fault]:
    for option, folder in folders.items():
        if folder.suffix.lower() in _OF_FILES and not folder.exists():
            message, right = "results go to a folder, and this is the name of a file", str(folder.with_suffix(""))
            yield Fault(message, option, value=str(folder), right=right)
        for source in sources:
            # Results that are run again may take their own place: all that counts of them has been read.
            if _is_within(source, folder) and not (_are_same(source, folder) or _are_same(source, folder / MANIFEST)):
                message = f"{source.name} is read, and would go with the folder that is replaced"
                yield Fault(message, option, value=str(folder), right="another folder")


def _of_each_other(targets: Mapping[str, Path], folders: Mapping[str, Path]) -> Iterator[Fault]:
    for (first, one), (second, other) in combinations(targets.items(), 2):
        if _are_same(one, other):
            yield Fault(f"{first} would be written there, too", second, value=str(other), right=RIGHT)
        elif second in folders and _is_within(one, other):
            yield Fault(f"the folder of {second} is replaced whole", first, value=str(one), right=RIGHT)


def _are_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
