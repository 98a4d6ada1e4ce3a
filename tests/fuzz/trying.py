"""Wrong inputs tried by the commands themselves: what no input may lead to."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

from typer.testing import CliRunner

from ringnet.cli import app
from tests.fuzz.kinds import Kind

#: Of processor time, for one command.
MOST_S = 20.0
#: What a command may end with: all is well, a mistake told, a run that cannot finish, a wrong sum, points that failed.
ENDS = {0, 2, 3, 4, 5}
#: Only what a terminal shows: no escape sequences, and lines of a length that somebody reads.
LONGEST_LINE = 4000


class HangError(BaseException):
    """A command that takes longer than any such input may; nothing in ringnet catches it."""


class Finding(NamedTuple):
    """A command that ended as none may: which input, which command, and what it said."""

    kind: str
    seed: int
    command: str
    what: str


def attempt(kind: str, made: Kind, seed: int, folder: Path) -> tuple[int, list[Finding]]:
    """Try one input: return how many commands were run on it, and what is wrong with how they ended."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    name = made.prepare(folder, Random(f"{kind} {seed}"))
    with _working_in(folder):
        ended = [(command, *_run(command.split(), name)) for command in made.commands]
    findings = [
        Finding(kind, seed, command, what) for command, code, said in ended for what in wrong_with(code, said)
    ]
    codes = {command.split()[0]: code for command, code, _ in ended}
    if codes.get("check") == 0 and codes.get("run") == 2:
        findings.append(Finding(kind, seed, "run", f"check agrees, run refuses: {ended[-1][2]}"))
    return len(ended), findings


def wrong_with(code: int, said: str) -> Iterator[str]:
    """Yield what is wrong with how a command ended."""
    if code not in ENDS:
        yield f"exit code {code}: {said[-600:]}"
    if "out of memory" in said:
        yield "memory ran out: nothing was bounded"
    if any(not (sign.isprintable() or sign == "\n") for sign in said):
        yield f"what is not printable reaches the terminal: {said[-300:]!r}"
    if code == 2 and not said.strip():
        yield "refused without a word"


def _run(command: list[str], name: str) -> tuple[int, str]:
    words = [word.replace("{file}", name) for word in command]
    try:
        with _bounded():
            done = CliRunner().invoke(app, words)
    except HangError:
        return 124, f"more than {MOST_S:g} s of processor time"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return (124, "hang") if isinstance(done.exception, HangError) else (1, repr(done.exception))
    return done.exit_code, done.output


@contextmanager
def _bounded() -> Iterator[None]:
    """End what takes too much processor time, not what waits for a busy machine."""

    def end(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
