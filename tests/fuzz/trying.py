"""Wrong inputs tried by the commands themselves: what no input may lead to."""

from __future__ import annotations

import gc
import os
import pickle
import re
import resource
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NamedTuple

from typer.testing import CliRunner

from ringnet.cli import app
from tests.benchmarks.measuring import peak_bytes
from tests.fuzz.kinds import Kind

#: Of processor time, for one command.
MOST_S = 20.0
#: What a command may end with: all is well, a mistake told, a run that cannot finish, a wrong sum, points that failed.
ENDS = {0, 2, 3, 4, 5}
#: Address space of a process that tries an input: one that wants more ends as one that nobody bounded.
MOST_BYTES = 6 << 30
#: Memory that an input may take of which `check` says nothing, and by how much what it says may be wrong.
UNTOLD_BYTES, SLACK = 300 << 20, 1.5
#: Where a mistake is: a file with its line or key, a file, an option, a key; before what is wrong.
_PLACE = re.compile(
    r"Error: ((--)?[^\s:]+(:\d+)?|--\w+(, --\w+)+|[^:]*\.(yaml|yml|xml|csv|npy|py|json|txt)(:\d+)?): ."
    r"|Error: (\S+ step \d+|machine \S+): ."
    r"|Error: [^:]+: (the|this) (file|folder|results|target) "
    r"|Error: (Missing option|No such option|Missing argument|Option|Got unexpected extra|Invalid value for)"
)
_MEMORY = re.compile(r"^memory +about .*", re.MULTILINE)
_AMOUNT = re.compile(r"about ([\d.]+) (\w+)")
_TAKES = re.compile(r"^takes +roughly ([\d.,]+) (\w+)", re.MULTILINE)
_UNITS = {"MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class HangError(BaseException):
    """A command that takes longer than any such input may; nothing in ringnet catches it."""


class Finding(NamedTuple):
    """A command that ended as none may: which input, which command, and what it said."""

    kind: str
    seed: int
    command: str
    what: str


class Ended(NamedTuple):
    """A command, its exit code and all that it said."""

    command: str
    code: int
    said: str


def attempt(kind: str, made: Kind, seed: int, folder: Path) -> tuple[list[Ended], list[Finding]]:
    """Try one input: return what was run on it, and what is wrong with how that ended."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    random = Random(f"{kind} {seed}")
    name = made.prepare(folder, random, seed)
    with _working_in(folder):
        ended: list[Ended] = []
        for words in made.commands_for(random):
            ended.append(_run([word.replace("{file}", name) for word in words]))
            if is_long(ended[-1].said):
                break
    return ended, [Finding(kind, seed, *one) for one in wrong_with_all(ended)]


def is_long(said: str) -> bool:
    """Whether `check` says that a run takes longer, or more memory, than it may here: then it is not run."""
    takes = [(float(number.replace(",", "")), unit) for number, unit in _TAKES.findall(said)]
    too_long = any(unit != "seconds" or number * SLACK > MOST_S for number, unit in takes)
    return too_long or any(SLACK * told > MOST_BYTES for told in told_bytes(said))


def told_bytes(said: str) -> list[float]:
    """Return every amount of memory that `check` tells."""
    amounts = [amount for line in _MEMORY.findall(said) for amount in _AMOUNT.findall(line)]
    return [float(number) * _UNITS[unit] for number, unit in amounts]


def attempt_apart(kind: str, made: Kind, seeds: Sequence[int], folder: Path) -> tuple[list[Ended], list[Finding]]:
    """Try inputs in a process of their own, which may crash, hang or take all memory; and look at what they took.

    Where anything is wrong with how several end, each is tried again alone, which tells whose fault it is.
    """
    done = apart(lambda: [attempt(kind, made, seed, folder) for seed in seeds])
    ended, findings, taken_bytes = [], [], 0
    if isinstance(done, str):
        findings.append(Finding(kind, seeds[0], "", done))
    else:
        tried, taken_bytes = done
        ended = [one for commands, _ in tried for one in commands]
        findings = [one for _, found in tried for one in found]
    most_bytes = max([UNTOLD_BYTES, *(SLACK * told for one in ended for told in told_bytes(one.said))])
    if taken_bytes > most_bytes:
        what = f"{taken_bytes >> 20} MiB taken, at most {most_bytes / 2**20:.0f} told"
        findings.append(Finding(kind, seeds[0], "", what))
    if not findings or len(seeds) == 1:
        return ended, findings
    alone = [attempt_apart(kind, made, [seed], folder) for seed in seeds]
    ended = [one for commands, _ in alone for one in commands]
    return ended, [one for _, found in alone for one in found]


def apart(work: Callable[[], Any]) -> tuple[Any, int] | str:
    """Do some work in a forked process: return what it returned and the memory it took, or how it ended instead."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        _limit()
        gc.freeze()  # what the parent left over is not given back here, which would hide what the work takes
        before = peak_bytes()
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump((work(), peak_bytes() - before), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(process, 0)
    if status or not content:
        number = os.waitstatus_to_exitcode(status)
        return f"the process ended with {signal.Signals(-number).name if number < 0 else number}"
    done: tuple[Any, int] = pickle.loads(content)
    return done


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    seconds = int(5 * MOST_S)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def wrong_with_all(ended: Sequence[Ended]) -> Iterator[tuple[str, str]]:
    """Yield commands and what is wrong with how they ended, each alone and beside each other."""
    for one in ended:
        yield from ((one.command, what) for what in wrong_with(one.code, one.said))
    codes = {one.command.split()[0]: one for one in reversed(ended)}
    check, run = codes.get("check"), codes.get("run") or codes.get("step")
    if check and run and check.code == 0 and run.code == 2:
        yield run.command, f"check agrees, {run.command.split()[0]} refuses: {run.said}"


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
    for line in said.splitlines():
        if line.startswith("Error: ") and code == 2 and not _PLACE.match(line):
            yield f"no place: {line}"


def _run(words: list[str]) -> Ended:
    command = " ".join(words)
    try:
        with _bounded():
            done = CliRunner().invoke(app, words)
    except HangError:
        return Ended(command, 124, f"more than {MOST_S:g} s of processor time")
    if isinstance(done.exception, HangError):
        return Ended(command, 124, "hang")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return Ended(command, 1, repr(done.exception))
    return Ended(command, done.exit_code, done.output)


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
