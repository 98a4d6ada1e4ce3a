"""How far a run is: shown on a terminal while it lasts, nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

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

from ringnet.cli.answers import note
from ringnet.engines.trace import Watch
from ringnet.study.outcome import Outcome


class Watching(NamedTuple):
    """What a sweep calls: with each outcome, and with each sentence for a person."""

    on_result: Callable[[Outcome], None]
    say: Callable[[str], None]


class Rate(ProgressColumn):
    """Points a second, or transfers."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def render(self, task: Task) -> Text:
        """Return the rate, or nothing as long as there is none."""
        speed = task.finished_speed or task.speed
        return Text(f"{float(f'{speed:.3g}'):,.10g} {self.what}/s" if speed else "")


class Asking(Progress):
    """A bar that asks, each time it is drawn, how far the run is: a run has no time to say so itself."""

    how_far: Callable[[], int] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return what there is to draw."""
        if self.how_far is not None:
            self.update(self.task_ids[0], completed=self.how_far())
        return super().get_renderables()


@contextmanager
def watched(total: int, quiet: bool) -> Iterator[Watching]:
    """Show how far a sweep of ``total`` points is, with rate and time left."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Watching(lambda outcome: None, (lambda sentence: None) if quiet else note)
        return
    columns = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), Rate("points"), TimeRemainingColumn())
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

        yield Watching(count, lambda sentence: console.print(Text(f"Note: {sentence}")))


@contextmanager
def waiting(say: Callable[[], str], quiet: bool) -> Iterator[Watch | None]:
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
        Rate("transfers"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Asking(*columns, console=console, transient=True) as bar:
        task = bar.add_task(say(), total=None)

        def watch(total: int, how_far: Callable[[], int]) -> None:
            bar.reset(task, total=total)
            bar.how_far = how_far

        yield watch
