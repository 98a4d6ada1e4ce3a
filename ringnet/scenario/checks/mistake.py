"""What a check of keys taken together says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringnet.documents.document import Path
from ringnet.errors import InputError
from ringnet.units import counted


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong with keys taken together.

    Parameters
    ----------
    path : tuple
        The key that is wrong.
    message, right, nearest : str
        As in `Fault`.
    causes : tuple of tuple
        The other keys that it is wrong with.
    unread : bool
        Whether it is wrong only in that it is never read; a later writer of a cause may have orphaned it.
    value : str or None
        What was got, where that is not what stands at the key; empty for nothing to say.
    """

    path: Path
    message: str
    right: str = ""
    nearest: str = ""
    causes: tuple[Path, ...] = ()
    unread: bool = False
    value: str | None = None


def unread(path: Path, reason: str, *causes: Path, right: str = "") -> Mistake:
    """Return that a key is never read, and why."""
    return Mistake(path, f"the key is never read: {reason}", right, causes=causes, unread=True)


def refused_by(path: Path, act: Callable[[], object], causes: tuple[Path, ...]) -> Iterator[Mistake]:
    """Tell at ``path`` what another room refuses."""
    try:
        act()
    except InputError as error:
        yield from (Mistake(path, fault.message, fault.right, fault.nearest, causes) for fault in error.faults)


def no_such_worker(path: Path, worker: int, n_workers: int, *, unread: bool = False) -> Iterator[Mistake]:
    """Find the number of a worker that there is not."""
    if worker >= n_workers:
        message = f"there is no worker {worker} among {counted(n_workers, 'worker')}"
        yield Mistake(path, message, f"0 to {n_workers - 1}", causes=(("workers",),), unread=unread)
