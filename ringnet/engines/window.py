"""Windows: how much a sender may have under way to one receiver before it must wait for credit to come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ringnet.engines.clock import Clock
from ringnet.engines.parts import Part, cut, whole_of
from ringnet.networks.network import Window

if TYPE_CHECKING:
    from ringnet.engines.transfer import Moving, Path

Enter: TypeAlias = "Callable[[Moving], None]"


#: Slots of a window, as NCCL has in its buffers (``NCCL_STEPS`` in its ``device.h``).
SLOTS = 8


def slot_bytes(window: Window) -> int:
    """Return the bytes that a window lets through at a time."""
    return max((window.bytes or 0) // SLOTS, 1)


class Credit:
    """The window of one connection: first come first served.

    A transfer goes in slots of an eighth of the window, one after another; a slot is applied when it has arrived, the
    last one with its transfer, and its credit is back after the latency of the way back. So what is under way without
    credit slides on slot by slot, within a transfer and from one to the next: over a route of bandwidth B a window of
    W bytes gives min(B, W / (W/8B + R)), R the latency there and back: W/R where R is long.

    Parameters
    ----------
    clock : Clock
    window : Window
    back_s : float
        Latency of the route from the receiver to the sender.
    """

    def __init__(self, clock: Clock, window: Window, back_s: float) -> None:
        self.clock, self.window, self.back_s = clock, window, back_s
        self.slot_bytes = slot_bytes(window)
        self.bytes_out = self.transfers_out = 0
        #: Slots whose credit comes back whatever the receiver does.
        self.n_coming = 0
        self.waiting: deque[tuple[Moving, Enter]] = deque()

    def ask(self, moving: Moving, enter: Enter) -> None:
        """Let a transfer start, as far as there is credit for it now and whatever is before it."""
        parts = [moving] if self._is_a_slot(moving) else list(cut(moving, self.slot_bytes))
        for part in parts:
            if isinstance(part, Part) and not part.last:
                part.on_arrival = self._gives_back(part.bytes)
            self.waiting.append((part, enter))
        self._let_go(None)

    def applied(self, transfer: Moving, path: Path) -> None:
        """Give back the credit of a transfer, or of the last slot of it, that has been applied now."""
        n_bytes = transfer.bytes
        last = n_bytes if self._is_a_slot(transfer) else (n_bytes - 1) % self.slot_bytes + 1
        self.n_coming += 1
        self._back(self.clock.now, last, 1, path)

    def holds(self, transfer: Moving) -> bool:
        """Whether a transfer, or some of it, waits for credit."""
        return any(whole_of(moving) is transfer for moving, _ in self.waiting)

    def _is_a_slot(self, moving: Moving) -> bool:
        return self.window.bytes is None or moving.bytes <= self.slot_bytes

    def _gives_back(self, n_bytes: int) -> Callable[[float], None]:
        return lambda arrived_s: self._back(arrived_s, n_bytes, 0, None)

    def _back(self, from_s: float, n_bytes: int, n_transfers: int, path: Path | None) -> None:
        back = self.clock.wake_at(from_s + self.back_s)

        def credit(_: object) -> None:
            self.bytes_out -= n_bytes
            self.transfers_out -= n_transfers
            self.n_coming -= 1
            self._let_go(path)

        back.callbacks.append(credit)

    def _let_go(self, path: Path | None) -> None:
        """Start what there is credit for; where credit had to come back first, the path goes back to who gave it."""
        while self.waiting and self._room(self.waiting[0][0]):
            moving, enter = self.waiting.popleft()
            self.bytes_out += moving.bytes
            self.transfers_out += moving.whole
            self.n_coming += not moving.whole
            moving.start_over(self.clock.now, self.back_s, path)
            # What waited for the credit of its own earlier slots was not under way all the time.
            moving.queued = moving.queued or (isinstance(moving, Part) and moving.number > 0)
            enter(moving)

    def _room(self, moving: Moving) -> bool:
        window = self.window
        if window.transfers is not None and self.transfers_out + moving.whole > window.transfers:
            return False
        return window.bytes is None or not self.bytes_out or self.bytes_out + moving.bytes <= window.bytes
