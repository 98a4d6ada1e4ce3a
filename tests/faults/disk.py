"""Disks that fail: whatever a command asks of the disk is refused once, at every place in turn, or the disk is full.

Afterwards every file is there whole, the old one or the new one, or is not there at all.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

from ringnet.cli import app
from tests.fuzz.kinds import DATA, SCENARIOS
from tests.fuzz.options import PLAIN, STEP
from tests.fuzz.trying import apart

#: What is asked of a disk by those who write; opening a file to read it is not.
ASKED = {"open", "os.fsync", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}
#: A full disk, one that is only read, one that is broken, a folder of somebody else.
ERRORS = (errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES)
_QUIET = "--quiet --jobs 1 --out out"
#: Every command that writes, with everything that it may write.
COMMANDS: Mapping[str, str] = {
    "run": f"run s.yaml {_QUIET} --set report.plots=[space-time] --save-result kept --html",
    "sweep": f"run w.yaml {_QUIET} --no-plots",
    "compare": f"compare s.yaml {_QUIET} --no-plots --algorithms ring,direct --tuner tuner.csv",
    "numerics": f"numerics s.yaml {_QUIET} --no-plots --algorithms ring,direct --dtypes float32",
    "step": "step t.yaml --quiet --no-plots --out out",
    "whatif": f"whatif s.yaml {_QUIET} --no-plots --if workers=2",
    "blame": f"blame s.yaml {_QUIET} --no-plots",
    "export": "export s.yaml --msccl a.xml --goal a.goal",
    "draw": "draw s.yaml --out out",
    "nccl": "nccl s.yaml --sizes 1MiB --plot a.png --csv a.csv --tuner tuner.csv",
    "predict": "predict profile.yaml --workers 4 --sizes 1MiB --plot a.svg --csv a.csv",
    "calibrate": "calibrate log.txt --workers 8 --out a.yaml --csv a.csv --plot a.svg",
    "plot": "plot results --plot space-time",
    "report": "report results",
    "init": "init new.yaml",
}


class Fault(NamedTuple):
    """What the disk did: refuse the n-th thing that it was asked, or take no file beyond some bytes."""

    error: int = 0
    number: int = 0
    most_bytes: int = 0

    def __str__(self) -> str:
        return (
            f"no file over {self.most_bytes} bytes"
            if self.most_bytes
            else f"{errno.errorcode[self.error]} at {self.number}"
        )


class Ended(NamedTuple):
    """How a command ended: its code and words, what was asked of the disk, and all files afterwards, by digest."""

    code: int
    said: str
    asked: list[str]
    files: dict[str, str]


def prepare(folder: Path) -> None:
    """Make a folder with what the commands read."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in {
        "s.yaml": PLAIN,
        "t.yaml": STEP,
        "w.yaml": f"{PLAIN}sweep: {{over: {{workers: [2, 3]}}}}\n",
    }.items():
        (folder / name).write_text(text)
    shutil.copy(DATA / "logs" / "nccl-2019.txt", folder / "log.txt")
    shutil.copy(SCENARIOS / "data" / "v100-profile.yaml", folder / "profile.yaml")


def carried_out(command: str, folder: Path, fault: Fault | None = None) -> Ended | str:
    """Run a command in a process of its own whose disk has a fault; or how the process ended instead."""
    done = apart(lambda: _with_fault(command, folder, fault))
    return done if isinstance(done, str) else done[0]


def _with_fault(command: str, folder: Path, fault: Fault | None) -> Ended:
    os.chdir(folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    asked: list[str] = []
    is_on = [True]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not is_on[0] or event not in ASKED or not _writes(event, arguments, folder):
            return
        asked.append(f"{event} {os.fspath(arguments[0])}")
        if fault is not None and fault.number == len(asked):
            raise OSError(fault.error, os.strerror(fault.error), os.fspath(arguments[0]))

    sys.addaudithook(hook)
    fsync = os.fsync

    def settle(number: int) -> None:  # of which Python tells no hook
        hook("os.fsync", (os.readlink(f"/proc/self/fd/{number}"),))
        fsync(number)

    os.fsync = settle
    if fault is not None and fault.most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.most_bytes, fault.most_bytes))
    done = CliRunner().invoke(app, command.split())
    is_on[0] = False
    said = done.output if done.exception is None or isinstance(done.exception, SystemExit) else repr(done.exception)
    return Ended(done.exit_code, said, asked, files(folder))


def _writes(event: str, arguments: tuple[Any, ...], folder: Path) -> bool:
    """Whether something in the folder is changed, which is what can be refused there."""
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    if event == "open":
        mode, flags = arguments[1:3]
        changes = (
            bool(set(mode or "") & set("wax+")) if mode else bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        )
        if not changes:
            return False
    return os.path.abspath(os.fsdecode(path)).startswith(f"{folder}{os.sep}")


def files(folder: Path) -> dict[str, str]:
    """Return every file in a folder and below, without the cache, by digest; of half a file that it is one."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.relative_to(folder).parts[0] != "cache":
            content = path.read_bytes()
            name = str(path.relative_to(folder))
            found[name] = sha256(content).hexdigest() if _is_whole(path.suffix, content) else f"half of {len(content)}"
    return found


def _is_whole(suffix: str, content: bytes) -> bool:
    """Whether a file ends as its kind does."""
    if suffix == ".json":
        return content.rstrip().endswith(b"}")
    last = {
        ".svg": b"</svg>\n",
        ".png": b"IEND\xaeB`\x82",
        ".xml": b"</algo>\n",
        ".csv": b"\n",
        ".goal": b"}\n",
    }
    return content.endswith(last.get(suffix, b""))


def faults(n_asked: int, largest_bytes: int, errors: tuple[int, ...] = ERRORS) -> Iterator[Fault]:
    """Yield every fault there is for a command: at each place, and at sizes up to that of its largest file."""
    for number in range(1, n_asked + 1):
        yield Fault(errors[number % len(errors)], number)
    size = 1
    while size < largest_bytes:
        yield Fault(most_bytes=size)
        size *= 4


#: Words of which one says what the disk did.
_SAID = ("cannot be", "failed", "No space", "Read-only", "Input/output", "denied", "too large")


def wrong_with(
    ended: Ended | str, before: Mapping[str, str], whole: Mapping[str, str], stable: Set[str] = frozenset()
) -> Iterator[str]:
    """Yield what is wrong after a fault.

    ``before`` are the files that there were, ``whole`` those of a run without fault, ``stable`` the names of those that
    are the same bytes in any run.
    """
    if isinstance(ended, str):
        yield ended
        return
    if ended.code not in {0, 2, 5}:
        yield f"exit code {ended.code}: {ended.said[-300:]}"
    if ended.code and not any(word in ended.said for word in _SAID):
        yield f"not told what the disk did: {ended.said[-300:]}"
    for top in sorted({name.split("/")[0] for name in (*before, *whole, *ended.files)}):
        if top.startswith("."):  # what could not be removed, which the next run clears up
            continue
        now, old, new = (
            {name: one for name, one in them.items() if name.split("/")[0] == top}
            for them in (ended.files, before, whole)
        )
        if now != old and now.keys() != new.keys():
            yield f"neither the old {top} nor the new one: {sorted(now)}"
        for name, content in now.items():
            if now != old and (content.startswith("half") or (name in stable and content != new.get(name))):
                yield f"{name} is neither the old one nor the new one"
    if ended.code == 0 and (missing := sorted(whole.keys() - ended.files.keys())):
        yield f"all is well, and missing: {missing}"


def try_all(
    name: str, folder: Path, *, older: bool, choose: Callable[[list[Fault]], list[Fault]] = list
) -> tuple[int, list[str]]:
    """Try the faults of a command where older files are, or nothing; return how many, and what was wrong."""
    start = folder.with_name("start")  # made once: a fault takes a copy
    _make_start(name, start, older=older)
    before = files(start)
    done, again = (_from(start, name, folder) for _ in range(2))
    if isinstance(done, str) or isinstance(again, str) or done.code:
        return 0, [f"{name}: without a fault: {done}"]
    stable = {one for one in done.files if again.files.get(one) == done.files[one]}
    largest = max((folder / one).stat().st_size for one in done.files)
    chosen = choose([*faults(len(done.asked), largest)])
    found: list[str] = []
    for fault in chosen:
        ended = _from(start, name, folder, fault)
        if not isinstance(ended, str) and _hidden(ended):
            after = carried_out(COMMANDS[name], folder)
            if isinstance(after, str) or _hidden(after):
                found.append(f"{name}, {fault}: the next run leaves behind what this one did: {after}")
        where = done.asked[fault.number - 1] if fault.number else ""
        found += [
            f"{name}, {'older files' if older else 'nothing there'}, {fault} {where}: {one}"
            for one in wrong_with(ended, before, done.files, stable)
        ]
    return len(chosen), found


def _hidden(ended: Ended) -> list[str]:
    return [name for name in ended.files if name.startswith(".")]


def _from(start: Path, name: str, folder: Path, fault: Fault | None = None) -> Ended | str:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(start, folder)
    return carried_out(COMMANDS[name], folder, fault)


def _make_start(name: str, start: Path, *, older: bool) -> None:
    prepare(start)
    if name in {"plot", "report"}:
        carried_out("run s.yaml --quiet --no-plots --jobs 1 --out results", start)
    if older and name != "init":
        is_other = name in {"run", "compare"}  # older files of another run, not only of an earlier one
        carried_out(COMMANDS[name].replace("s.yaml", "s.yaml --set seed=5" if is_other else "s.yaml"), start)
    shutil.rmtree(start / "cache", ignore_errors=True)
