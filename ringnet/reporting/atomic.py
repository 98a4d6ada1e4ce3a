"""Folders and files that are written whole or not at all: all goes to a sibling on the disk, which is then renamed."""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ringnet.array_types import Array
from ringnet.errors import Fault, ResultsError, some_and_more

MANIFEST = "run.json"
#: The page of a folder, where it has one.
PAGE = "report.html"
#: Only a manifest with this key was written by ringnet.
VERSION_KEY = "results_version"


def check_target(folder: Path) -> None:
    """Refuse, before any work is done, a folder that results cannot be written to; nothing is touched.

    Raises
    ------
    ResultsError
        It is a file, holds something that ringnet did not write, is the current folder or one above it, or it
        cannot be made or written.
    """
    with _in_our_words("the results cannot be written", folder):
        target = Path(os.path.realpath(folder))
        for fault in chain(_not_replaceable(target), _not_ours(target), _not_writable(target)):
            raise ResultsError(fault)


def _not_ours(target: Path) -> Iterator[Fault]:
    if os.path.lexists(target) and not target.is_dir():
        yield Fault("results go to a folder, and this is a file", file=str(target), right="a new folder")
    elif target.is_dir():
        foreign = foreign_entries(target)
        if foreign:
            message, value = "this folder holds what ringnet did not write", some_and_more(foreign)
            right = "an empty or new folder, or one with another run's results"
            yield Fault(message, file=str(target), value=value, right=right)


def foreign_entries(folder: Path) -> list[str]:
    """Names in a folder that its manifest does not list, sorted; a subfolder is always foreign.

    What a process left that was killed while it wrote one of the files is none.
    """
    ours = listed_files(folder)
    return sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.is_dir() or (entry.name not in ours and _left_by_the_dead(entry.name) is None)
    )


def listed_files(folder: Path) -> set[str]:
    """Return the files that a folder's manifest lists, itself among them; none where it is damaged or another's."""
    manifest = folder / MANIFEST
    try:
        if not manifest.is_file():  # a pipe would never end
            return set()
        document: Any = json.loads(manifest.read_text(encoding="utf-8"))
        names = document["files"] if VERSION_KEY in document else []
        return {name for name in names if isinstance(name, str) and Path(name).name == name}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


def _not_replaceable(target: Path) -> Iterator[Fault]:
    """Refuse what cannot be renamed, and a shell's own folder: the shell would stand in one that is gone."""
    here, right = Path.cwd(), "a folder inside it, by name"
    if target == here or target in here.parents:
        yield Fault("the current folder, or one above it, cannot be replaced", file=str(target), right=right)
    elif os.path.ismount(target):
        yield Fault("a mount point cannot be replaced", file=str(target), right=right)


def _not_writable(target: Path) -> Iterator[Fault]:
    existing = next(parent for parent in target.parents if os.path.lexists(parent))
    if not existing.is_dir():
        yield Fault(f"the folder cannot be made, because {existing} is a file", file=str(target))
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Fault(f"the folder cannot be written: no permission to write in {existing}", file=str(target))


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """Give a fresh folder to write to; it takes the place of ``folder``, or is removed on any error.

    Parameters
    ----------
    folder : Path
        Where the files shall be in the end. What another run left there is replaced whole.

    Raises
    ------
    ResultsError
        As `check_target`; and whatever the system says while files are written (a full disk), in its words.
    """
    target = Path(os.path.realpath(folder))
    check_target(target)
    with _in_our_words("the results cannot be written", target), _parents(target), _sibling(target) as fresh:
        yield fresh
        check_target(target)
        for path in [*fresh.iterdir()]:
            _settle(path)
        _put_in_place(fresh, target)


@contextmanager
def written_file(path: Path, *, settles: bool = True) -> Iterator[Path]:
    """Give a name to write one file to; it takes the place of ``path``, or is removed on any error.

    Where it ``settles``, the disk has it before that. Of thousands of small files that takes longer than to write them.

    Raises
    ------
    ResultsError
        Whatever the system says, in its words.
    """
    target = Path(os.path.realpath(path))
    fresh = _hidden(target, "new")
    with _in_our_words("the file cannot be written", target), _parents(target):
        if target.exists() and not target.is_file():
            raise ResultsError(Fault("the target is no regular file", file=str(target)))
        _clear_up(target)
        try:
            yield fresh
            if settles:
                _settle(fresh)
            fresh.replace(target)
        except BaseException:
            with suppress(OSError):  # the next one that writes this file clears up
                fresh.unlink(missing_ok=True)
            raise


def write_text(path: Path, text: str, *, settles: bool = True) -> None:
    """Write a file of text, whole or not at all; `ResultsError` as `written_file`."""
    with written_file(path, settles=settles) as fresh:
        fresh.write_text(text, encoding="utf-8")


def _settle(path: Path) -> None:
    """Have the disk take a file before it gets its name, or say that it cannot: a power cut leaves no empty names."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _in_our_words(message: str, target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(Fault(f"{message}: {error.strerror or error}", file=str(target))) from error


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Make the folders above ``target``; on an error those that were not there are removed again."""
    missing = [parent for parent in target.parents if not parent.exists()]
    try:
        for parent in reversed(missing):
            parent.mkdir(exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # not there yet, or no longer empty
                parent.rmdir()
        raise


@contextmanager
def _sibling(target: Path) -> Iterator[Path]:
    """Make a folder beside ``target``, on the same disk, so that a rename is enough; gone afterwards."""
    _clear_up(target)
    fresh = _hidden(target, "new")
    try:
        fresh.mkdir()
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _hidden(target: Path, what: str) -> Path:
    """Return a name beside ``target`` that tells who uses it, so that it is known for a leftover later."""
    return target.with_name(f".{target.name}.{_this_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{what}")


#: A name of `_hidden`: of which target, of which machine and process, and what.
_LEFT = re.compile(r"\.(?P<target>.+)\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}\.(?P<what>new|old)", re.DOTALL)


@cache
def _this_machine() -> str:
    return sha256(platform.node().encode()).hexdigest()[:8]


def _clear_up(target: Path) -> None:
    """Remove what processes of this machine left beside ``target`` that were killed while they wrote it.

    One that was killed between its two renames left no target, and what had been there under another name.
    """
    for entry in [*os.scandir(target.parent)]:
        found = _left_by_the_dead(entry.name)
        if found is None or found["target"] != target.name:
            continue
        left = Path(entry.path)
        if found["what"] == "old" and not target.exists():
            left.rename(target)
        elif entry.is_dir(follow_symlinks=False):
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _left_by_the_dead(name: str) -> re.Match[str] | None:
    """Return the parts of a name of `_hidden` of a process of this machine that is no more; None of any other."""
    found = _LEFT.fullmatch(name)
    return found if found and found["machine"] == _this_machine() and not _is_running(int(found["pid"])) else None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _put_in_place(fresh: Path, target: Path) -> None:
    """Rename; the old folder steps aside first, and comes back if its successor cannot take its place."""
    if not target.exists():
        fresh.rename(target)
        return
    old = _hidden(target, "old")
    target.rename(old)
    try:
        fresh.rename(target)
    finally:
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(target)


def save_outputs(target: str | Path, arrays: Sequence[Array]) -> tuple[Path, ...]:
    """Save arrays as ``.npy``, each file whole or not at all; files of the same name are replaced.

    Parameters
    ----------
    target : path
        A folder, made if need be, that gets ``result.npy`` for one array, ``worker-0.npy``, ... for several.
        A name that ends in ``.npy`` is the file itself; several go to ``NAME-worker-0.npy``, ... beside it.
    arrays : sequence of ndarray
        One where every worker holds the same; one per worker, in their order, for a reduce-scatter.

    Returns
    -------
    tuple of Path
        The files, in the order of the arrays.

    Raises
    ------
    ResultsError
        A file that cannot be written.

    Notes
    -----
    NumPy has no bfloat16 of its own: its ``.npy`` holds two raw bytes an element, to be read by
    ``np.load(path).view(ml_dtypes.bfloat16)``.
    """
    target = Path(target)
    paths = [target] if len(arrays) == 1 else [target.parent / f"{target.stem}-{name}" for name in _names(len(arrays))]
    if target.suffix != ".npy":
        paths = [target / name for name in _names(len(arrays))]
    with ExitStack() as stack:  # every file is written before the first is renamed
        for path, array in zip(paths, arrays, strict=True):
            # NumPy adds .npy to a name, not to an open file.
            with stack.enter_context(written_file(path)).open("wb") as file:
                np.save(file, array, allow_pickle=False)
    return tuple(paths)


def _names(n_arrays: int) -> list[str]:
    """Names that sort in the order of the workers.

    >>> _names(1), _names(2), _names(11)[-2:]
    (['result.npy'], ['worker-0.npy', 'worker-1.npy'], ['worker-09.npy', 'worker-10.npy'])
    """
    if n_arrays == 1:
        return ["result.npy"]
    width = len(str(n_arrays - 1))
    return [f"worker-{worker:0{width}d}.npy" for worker in range(n_arrays)]
