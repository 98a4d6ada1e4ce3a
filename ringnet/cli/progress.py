"""Bars that show on a terminal how far a sweep or a run is; they fit into its width, whatever a scenario is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
from rich.table import Column
from rich.text import Text

from ringnet.documents.text import one_line

if TYPE_CHECKING:
    from ringnet.engines.trace import Watch
    from ringnet.study.outcome import Outcome

#: Characters of a bar, and at most of what is said before it: all fits into 80 with the rate and the time left.
WIDTH, MOST_WORDS = 10, 30


class RateColumn(ProgressColumn):
    """Points a second, or transfers."""

    def __init__(self, what: str) -> None:
        super().__init__(Column(no_wrap=True))
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
def sweep_bar(total: int) -> Iterator[tuple[Callable[[Outcome], None], Callable[[str], None]]]:
    """Show a bar of ``total`` points; yield what to call with each outcome, and with each sentence for a person."""
    console = Console(stderr=True)
    columns = (
        TextColumn("points"),
        BarColumn(WIDTH),
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

        yield count, lambda sentence: console.print(Text(one_line(f"Note: {sentence}")))


@contextmanager
def run_bar(words: str) -> Iterator[Watch]:
    """Show ``words`` and a bar; yield what takes the number of transfers, and what says how many are done."""
    columns = (
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", max_width=MOST_WORDS),
        ),
        BarColumn(WIDTH),
        TaskProgressColumn(),
        RateColumn("transfers"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with PollingBar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(words), total=None)

        def watch(total: int, how_far: Callable[[], int]) -> None:
            bar.reset(task, total=total)
            bar.how_far = how_far

        yield watch
