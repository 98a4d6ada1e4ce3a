"""Everything that a command says: answers, notes and errors, and how far it is.

Answers go to standard output: lines and tables for a person, one JSON object for a program. Notes, errors and progress
go to standard error, progress only where that is a terminal.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ringnet.documents.text import one_line

#: What a terminal takes for bold heads, red mistakes and yellow notes.
HEAD, WRONG, TELLING = "1", "1;31", "33"

if TYPE_CHECKING:
    from ringnet.engines.trace import Watch
    from ringnet.study.outcome import Outcome


def _put(line: str, *, err: bool = False, marked: int = 0, mark: str = HEAD) -> None:
    """Print a line: all that a command says passes here, and what a terminal would obey (in a name, say) is escaped.

    The first ``marked`` characters are set apart by colour or weight where the stream shows such.
    """
    line, in_colour = one_line(line), has_colour(sys.stderr if err else sys.stdout)
    if in_colour and marked:
        line = f"\x1b[{mark}m{line[:marked]}\x1b[0m{line[marked:]}"
    typer.echo(line, err=err, color=in_colour)


def has_colour(stream: Any) -> bool:
    """Whether a stream shows colour: a terminal does, unless NO_COLOR is set; a pipe only where FORCE_COLOR is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def complain(text: str) -> None:
    """Say on standard error what is wrong, a line each."""
    for line in text.splitlines():
        if line.startswith(" "):
            _put(line, err=True)
        else:
            _put(f"Error: {line}", err=True, marked=len("Error:"), mark=WRONG)


def say(text: str = "") -> None:
    """Say one line of an answer on standard output."""
    _put(text)


def note(*sentences: str, quiet: bool = False) -> None:
    """Say on standard error what a person should know; nothing where quiet is wanted."""
    for sentence in () if quiet else sentences:
        _put(f"Note: {sentence}", err=True, marked=len("Note:"), mark=TELLING)


def print_json(document: Any) -> None:
    """Print one JSON object; a number that JSON does not have becomes null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    for line in text.split("\n"):
        _put("".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line))


def _plain(value: Any) -> Any:
    """Return what JSON can hold.

    >>> import numpy as np
    >>> _plain({"a": (np.float64("nan"), 1.5)})
    {'a': [None, 1.5]}
    """
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "dtype"):  # a number of NumPy's, which not every command imports
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Print rows of text, each column as wide as its widest cell, the last as it is.

    Two columns are labels and what they label, more have a row of heads: labels and heads stand out in colour.
    """
    for number, line in enumerate(aligned(rows)):
        columns = len(rows[number])
        marked = len(one_line(rows[number][0])) if columns == 2 else 0 if number else len(line)  # noqa: PLR2004
        _put(f"{indent}{line}", marked=len(indent) + marked if marked else 0)


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay rows of text out in columns.

    >>> list(aligned([("N", "time"), ("1024", "2.36 ms")]))
    ['N     time', '1024  2.36 ms']
    """
    rows = [[*map(one_line, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


# Progress.


class SweepProgress(NamedTuple):
    """What a sweep calls: with each outcome, and with each sentence for a person."""

    on_result: Callable[[Outcome], None]
    say: Callable[[str], None]


@contextmanager
def sweep_progress(total: int, quiet: bool) -> Iterator[SweepProgress]:
    """Show how far a sweep of ``total`` points is, with rate and time left."""
    if quiet or not sys.stderr.isatty():
        yield SweepProgress(lambda outcome: None, (lambda sentence: None) if quiet else note)
        return
    from ringnet.cli.progress import sweep_bar  # noqa: PLC0415 -- rich is loaded where somebody looks on

    with sweep_bar(total) as (on_result, say):
        yield SweepProgress(on_result, say)


@contextmanager
def run_progress(say: Callable[[], str], quiet: bool) -> Iterator[Watch | None]:
    """Show what is under way, and of a run that is watched how far it is, its rate and the time left.

    ``say`` is asked for the words only where somebody sees them: how long a run takes is not known for nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from ringnet.cli.progress import run_bar  # noqa: PLC0415 -- as above

    with run_bar(say()) as watch:
        yield watch
