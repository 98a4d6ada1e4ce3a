"""What a command came to: words on standard error and an exit code, no traceback for a user's mistake."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from ringnet.errors import InputError, RingnetError

P = ParamSpec("P")

#: Set to anything, this variable makes every error show where it comes from.
DEBUG = "RINGNET_DEBUG"

BUG = RingnetError.exit_code
INTERRUPTED = 130
#: What a shell reports of a program that wrote to a pipe which nobody reads any more.
PIPE_CLOSED = 141


def answers(command: Callable[P, int]) -> Callable[P, None]:
    """Turn a command that returns an exit code, or raises, into one that ends with the right code."""

    @wraps(command)
    def answered(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            exit_code = command(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as error:
            exit_code = _answer(error)
        raise typer.Exit(exit_code)

    return answered


def _answer(error: Exception | KeyboardInterrupt) -> int:
    if isinstance(error, BrokenPipeError):
        return _stop_writing()
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    text, exit_code = _in_words(error)
    complain(text)
    return exit_code


def _in_words(error: Exception | KeyboardInterrupt) -> tuple[str, int]:
    match error:
        case RingnetError():
            return str(error), error.exit_code
        case KeyboardInterrupt():
            return "stopped", INTERRUPTED
        case typer.Abort():
            return "stopped", INTERRUPTED
        case MemoryError():
            return "out of memory; `ringnet check` says how much a run takes", InputError.exit_code
        case OSError():
            return ": ".join(
                str(part) for part in (error.filename, error.strerror) if part
            ), InputError.exit_code
        case _:
            return _bug(error), BUG


def _bug(error: BaseException) -> str:
    what = " ".join(f"this is a bug in ringnet: {type(error).__name__}: {error}".split())
    return f"{what}\n  Please report it, with the scenario and what the same command says with {DEBUG}=1."


def _stop_writing() -> int:
    # Python flushes standard output once more when it ends, and would complain of the pipe then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


def complain(text: str) -> None:
    """Say on standard error what is wrong, a line each."""
    for line in text.splitlines():
        typer.echo(line if line.startswith(" ") else f"Error: {line}", err=True)


def note(text: str) -> None:
    """Say on standard error what a person should know."""
    typer.echo(f"Note: {text}", err=True)
