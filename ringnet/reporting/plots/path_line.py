"""The path that ended last as one line over a space-time diagram: along workers, and across with transfers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from matplotlib.patheffects import Normal, Stroke

from ringnet.reporting.plots import canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PATH_COLOR = canvas.ALERT
#: Points: the line, and the white on either side that parts it from the bands.
LINE, EDGE = 1.3, 0.7
_TRANSFER = ["phase", "step", "chunk", "src", "dst"]


class Rows(Protocol):
    """The rows of a picture, as far as a path knows them."""

    @property
    def workers(self) -> range:
        """The workers that are shown."""

    @property
    def n_workers(self) -> int:
        """All workers."""

    @property
    def again(self) -> bool:
        """Whether what goes to the first worker goes to one more row, below the last."""

    @property
    def n_switches(self) -> int:
        """Switches with rows of their own, below the last worker."""


class Stretch(NamedTuple):
    """A stretch of the line: from when, at whose row, to when, at whose."""

    from_s: float
    begin: float
    to_s: float
    end: float


def draw_path(ax: Axes, path: pd.DataFrame, view: Rows) -> bool:
    """Draw the path; return whether any of it goes by the rows that are shown."""
    xs, ys = [], []
    row = np.nan
    for stretch in _stretches(path, view):
        # The first worker's second row is the first one: nothing moves from there to here.
        turned = view.again and row % view.n_workers == stretch.begin % view.n_workers
        if row != stretch.begin and turned:
            xs.append(np.nan)
            ys.append(np.nan)
        xs += [stretch.from_s, stretch.to_s]
        ys += [stretch.begin, stretch.end]
        row = stretch.end
    if not xs or np.isnan(ys).all():
        return False
    white = [Stroke(linewidth=LINE + 2 * EDGE, foreground="white"), Normal()]
    ax.plot(xs, ys, color=PATH_COLOR, linewidth=LINE, path_effects=white, solid_joinstyle="round", zorder=3)
    return True


def _stretches(path: pd.DataFrame, view: Rows) -> Iterator[Stretch]:
    """Yield the stretches in order: one for all pieces that a transfer has on links, one for each of a worker."""
    pieces = path.to_dict("records")
    row = np.nan
    for (on_link, *_), some in groupby(pieces, key=_of):
        group = list(some)
        first, last = group[0], group[-1]
        if on_link:
            begin, end = _ends(first["src"], first["dst"], view)
            if last["queue"]:  # the next one waited for this to leave a link, not for it to arrive
                end = begin
        else:
            begin = end = _shown(first["worker"], view)
            if view.again and row % view.n_workers == begin:  # it stays where it has arrived
                begin = end = row
        yield Stretch(first["from_s"], begin, last["to_s"], end)
        row = end


def _of(piece: Mapping[Hashable, object]) -> Sequence[object]:
    """Return what pieces of one stretch have in common."""
    on_link = piece["part"] in {"latency", "bandwidth", "queueing"}
    return (on_link, *(str(piece[name]) for name in _TRANSFER), "" if on_link else str(piece["worker"]))


def _ends(src: int, dst: int, view: Rows) -> tuple[float, float]:
    begin, end = _shown(src, view), _shown(src + 1, view) if view.again else _shown(dst, view)
    return (begin, end) if not np.isnan(begin + end) else (np.nan, np.nan)


def _shown(worker: int, view: Rows) -> float:
    """Return the row of a worker, or of a switch; none if it is not shown."""
    if worker >= view.n_workers and not view.again:
        return float(worker - view.n_workers + view.workers.stop) if view.n_switches else np.nan
    last = view.workers.stop if view.again else view.workers.stop - 1
    return float(worker) if view.workers.start <= worker <= last else np.nan
