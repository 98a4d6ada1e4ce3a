"""Everything that a command says: answers, notes and errors, and how far it is.

Answers go to standard output: lines and tables for a person, one JSON object for a program. Notes, errors and progress
go to standard error, progress only where that is a terminal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ringnet.documents.text import one_line

if TYPE_CHECKING:
    from ringnet.engines.trace import Watch
    from ringnet.study.outcome import Outcome


def _put(line: str, *, err: bool = False) -> None:
    """Print a line: all that a command says passes here, and what a terminal would obey (in a name, say) is escaped."""
    typer.echo(one_line(line), err=err)


def complain(text: str) -> None:
    """Say on standard error what is wrong, a line each."""
    for line in text.splitlines():
        _put(line if line.startswith(" ") else f"Error: {line}", err=True)


def say(text: str = "") -> None:
    """Say one line of an answer on standard output."""
    _put(text)


def note(*sentences: str, quiet: bool = False) -> None:
    """Say on standard error what a person should know; nothing where quiet is wanted."""
    for sentence in () if quiet else sentences:
        _put(f"Note: {sentence}", err=True)


def print_json(document: Any) -> None:
    """Print one JSON object; a number that JSON does not have becomes null."""
    text = json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    for line in text.split("\n"):
        _put("".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line))


def _plain(value: Any) -> Any:
    """Return what JSON can hold.

    >>> _plain({"a": (np.float64("nan"), 1.5)})
    {'a': [None, 1.5]}
    """
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def in_number(number: int, noun: str) -> str:
    """Return a number of things in words.

    >>> in_number(1, "point"), in_number(3, "point")
    ('1 point', '3 points')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def print_table(rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """Print rows of text, each column as wide as its widest cell, the last as it is."""
    for line in aligned(rows):
        _put(f"{indent}{line}")


def aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay rows of text out in columns.

    >>> list(aligned([("N", "time"), ("1024", "2.36 ms")]))
    ['N     time', '1024  2.36 ms']
    """
    rows = [[*map(one_line, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


# Progress.


class SweepProgress(NamedTuple):
    """What a sweep calls: with each outcome, and with each sentence for a person."""

    on_result: Callable[[Outcome], None]
    say: Callable[[str], None]


class RateColumn(ProgressColumn):
    """Points a second, or transfers."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing as long as there is none."""
        speed = task.finished_speed or task.speed
        return Text(f"{float(f'{speed:.3g}'):,.10g} {self.what}/s" if speed else "")


class PollingBar(Progress):
    """A bar that asks, each time it is drawn, how far the run is: a run has no time to say so itself."""

    how_far: Callable[[], int] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return what there is to draw."""
        if self.how_far is not None:
            self.update(self.task_ids[0], completed=self.how_far())
        return super().get_renderables()


@contextmanager
def sweep_progress(total: int, quiet: bool) -> Iterator[SweepProgress]:
    """Show how far a sweep of ``total`` points is, with rate and time left."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield SweepProgress(lambda outcome: None, (lambda sentence: None) if quiet else note)
        return
    columns = (
        TextColumn("points"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn("points"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        counter = bar.add_task("points", total=total)
        left = total

        def count(outcome: Outcome) -> None:
            nonlocal left
            if outcome.computed:
                bar.advance(counter)
            else:  # it took no time, and says nothing of how fast the others come
                left -= 1
                bar.update(counter, total=left)

        yield SweepProgress(count, lambda sentence: console.print(Text(one_line(f"Note: {sentence}"))))


@contextmanager
def run_progress(say: Callable[[], str], quiet: bool) -> Iterator[Watch | None]:
    """Show what is under way, and of a run that is watched how far it is, its rate and the time left.

    ``say`` is asked for the words only where somebody sees them: how long a run takes is not known for nothing.
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    words = TextColumn("{task.description}", markup=False)
    columns = (
        words,
        BarColumn(),
        TaskProgressColumn(),
        RateColumn("transfers"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with PollingBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(one_line(say()), total=None)

        def watch(total: int, how_far: Callable[[], int]) -> None:
            bar.reset(task, total=total)
            bar.how_far = how_far

        yield watch
