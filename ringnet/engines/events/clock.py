"""SimPy's environment with one addition: events at an absolute time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any, TypeAlias

import simpy
from simpy.events import NORMAL

#: What a SimPy process is.
Process: TypeAlias = Generator[simpy.Event, Any, None]

#: Links choose after everything else that happens at the same time, so that equal times are served in a fixed order.
LAST = NORMAL + 1


class Clock(simpy.Environment):
    """An environment whose events can be set for an absolute time.

    ``Environment.timeout`` takes a delay, and ``now + (end - now)`` is not ``end`` in floating point. Times that are
    handed on exactly let both engines agree to the last bit, and a uniform ring with its closed form.
    """

    #: Seconds, as in the base class, where it is a property: one call less, some ten times a transfer.
    now: float = 0.0
    #: Events processed by `advance`.
    n_events = 0

    def at(self, time_s: float, event: simpy.Event, priority: int = NORMAL) -> simpy.Event:
        """Let ``event`` happen at ``time_s``, and return it."""
        event._ok = True
        event._value = None
        # What Environment.schedule does, without turning the time into a delay and back.
        heappush(self._queue, (time_s, priority, next(self._eid), event))  # type: ignore[misc]  # EventPriority
        return event

    def wake_at(self, time_s: float, priority: int = NORMAL) -> simpy.Event:
        """Return a new event that happens at ``time_s``."""
        return self.at(time_s, simpy.Event(self), priority)

    def drain(self) -> None:
        """Process events until none is left: ``run()`` without a method call for each event."""
        queue: list[Any] = self._queue
        with _collector_paused():
            while queue:
                now, _, _, event = heappop(queue)
                self.now = self._now = now
                callbacks, event.callbacks = event.callbacks, None
                for callback in callbacks:
                    callback(event)
                if not event._ok and not hasattr(event, "_defused"):
                    raise event._value

    def advance(self, most_events: int, is_enough: Callable[[], bool]) -> bool:
        """Process events, up to so many in all, until it ``is_enough``; return whether none is left."""
        with _collector_paused():
            while self._queue and self.n_events < most_events and not is_enough():
                self.step()
                self.n_events += 1
        return not self._queue

    def step(self) -> None:
        """Process the next event."""
        self.now = self._queue[0][0]
        super().step()

    def scheduled(self) -> int:
        """Count the events scheduled so far. Each costs the same; tests pin the number per transfer."""
        count: Any = next(self._eid)
        return int(count)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the collection of cycles: a run makes millions of objects and no cycle of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
