"""How far long work is, as a line that a notebook keeps up to date; nothing anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from html import escape
from time import monotonic
from typing import TYPE_CHECKING, Any

from ringnet.units import format_count, format_seconds

if TYPE_CHECKING:
    from ringnet.engines.trace import Watch
    from ringnet.study.outcome import OnResult

#: What is faster shows nothing, and how often the line is written anew, in seconds.
PATIENCE_S, EVERY_S = 0.5, 0.2


def is_shown(wanted: bool | None) -> bool:
    """Whether progress is to be shown: in a notebook, unless somebody says no."""
    if wanted is False or "IPython" not in sys.modules:
        return False
    return hasattr(sys.modules["IPython"].get_ipython(), "kernel")


class ProgressLine:
    """One line of output in a notebook: shown once the work takes a while, gone when it is done.

    Parameters
    ----------
    what : str
        What is counted: ``points``.
    display : callable
        IPython's ``display``; returns a handle whose ``update`` writes the line anew.
    clock : callable
        Seconds from any start.
    """

    def __init__(self, what: str, display: Callable[..., Any], clock: Callable[[], float] = monotonic) -> None:
        self.what, self.display, self.clock = what, display, clock
        self.start_s = self.last_s = clock()
        self.handle: Any = None

    def update(self, done: int, total: int) -> None:
        """Write that ``done`` of ``total`` are done, with the rate and the time left, if it is time to."""
        now_s = self.clock()
        spent_s = now_s - self.start_s
        if spent_s < PATIENCE_S or now_s - self.last_s < EVERY_S:
            return
        self.last_s = now_s
        counts = f"{self.what} {format_count(done)} of {format_count(total)}"
        left = f", {format_seconds(float(f'{spent_s / done * (total - done):.2g}'))} left" if done else ""
        rate = f", {float(f'{done / spent_s:.3g}'):,.10g} {self.what}/s" if done else ""
        self._write(counts + rate + left)

    def end(self) -> None:
        """Take the line away."""
        if self.handle is not None:
            self._write("")

    def _write(self, text: str) -> None:
        shown = {"text/plain": text, "text/html": escape(text)}  # of which a notebook takes the second
        if self.handle is None:
            self.handle = self.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


@contextmanager
def points_shown(total: int, wanted: bool | None) -> Iterator[OnResult]:
    """Yield what hears of each outcome of a sweep or a study."""
    if not is_shown(wanted):
        yield lambda outcome: None
        return
    line, done = ProgressLine("points", sys.modules["IPython"].display.display), 0

    def count(_outcome: object) -> None:
        nonlocal done
        done += 1
        line.update(done, total)

    try:
        yield count
    finally:
        line.end()


@contextmanager
def transfers_shown(wanted: bool | None) -> Iterator[Watch | None]:
    """Yield what a run tells how far it is, which another thread asks: a run has no time to say so itself."""
    if not is_shown(wanted):
        yield None
        return
    line, ended = ProgressLine("transfers", sys.modules["IPython"].display.display), threading.Event()
    threads: list[threading.Thread] = []

    def watch(total: int, how_far: Callable[[], int]) -> None:
        def show() -> None:
            while not ended.wait(EVERY_S):
                line.update(how_far(), total)

        # A copy of the context: what a thread displays belongs to the cell that started it.
        threads.append(threading.Thread(target=copy_context().run, args=(show,), daemon=True))
        threads[-1].start()

    try:
        yield watch
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        line.end()
