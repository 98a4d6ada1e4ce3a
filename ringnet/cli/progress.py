"""How far a run is: shown on a terminal while it lasts, nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ringnet.cli.answers import note
from ringnet.study import Outcome


class Watch(NamedTuple):
    """What a sweep calls: with each outcome, and with each sentence for a person."""

    on_result: Callable[[Outcome], None]
    say: Callable[[str], None]


class Rate(ProgressColumn):
    """Points a second."""

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing as long as there is none."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.3g} points/s" if speed else "")


@contextmanager
def watched(total: int, quiet: bool) -> Iterator[Watch]:
    """Show how far a sweep of ``total`` points is, with rate and time left."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Watch(lambda outcome: None, (lambda sentence: None) if quiet else note)
        return
    columns = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
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

        yield Watch(count, lambda sentence: console.print(Text(f"Note: {sentence}")))


@contextmanager
def waiting(text: str, quiet: bool) -> Iterator[None]:
    """Show that a single run is under way, and for how long."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(text, total=None)
        yield
