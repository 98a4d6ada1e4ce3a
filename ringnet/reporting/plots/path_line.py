"""The path that ended last as one line over a space-time diagram: along workers, and across with transfers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.patheffects import Normal, Stroke

from ringnet.reporting.plots import canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from ringnet.reporting.plots.spacetime_view import View

PATH_COLOR = canvas.ALERT
#: Points: the line, and the white on either side that parts it from the bands.
LINE, EDGE = 1.3, 0.7
_TRANSFER = ["phase", "step", "chunk", "src", "dst"]


class Stretch(NamedTuple):
    """A stretch of the line: from when, at whose row, to when, at whose."""

    from_s: float
    begin: float
    to_s: float
    end: float


def draw_path(ax: Axes, path: pd.DataFrame, view: View) -> bool:
    """Draw the path; return whether any of it goes by the rows that are shown."""
    xs, ys = [], []
    row = np.nan
    for stretch in _stretches(path, view):
        # The first worker's second row is the first one: nothing moves from there to here.
        if row != stretch.begin and _is_same(row, stretch.begin, view):
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


def _stretches(path: pd.DataFrame, view: View) -> Iterator[Stretch]:
    """Yield the stretches in order: one for all pieces that a transfer has on links, one for each of a worker."""
    pieces = path.to_dict("records")
    row = np.nan
    for (on_link, *_), some in groupby(pieces, key=_of):
        group = list(some)
        first, last = group[0], group[-1]
        if on_link:
            begin, end = view.ends_of(int(first["src"]), int(first["dst"]))
            if last["queue"]:  # the next one waited for this to leave a link, not for it to arrive
                end = begin
        else:
            begin = end = view.row_of(int(first["worker"]))
            if _is_same(row, begin, view):  # it stays where it has arrived
                begin = end = row
        yield Stretch(first["from_s"], begin, last["to_s"], end)
        row = end


def _of(piece: Mapping[Hashable, object]) -> Sequence[object]:
    """Return what pieces of one stretch have in common."""
    on_link = piece["part"] in {"latency", "bandwidth", "queueing"}
    return (on_link, *(str(piece[name]) for name in _TRANSFER), "" if on_link else str(piece["worker"]))


def _is_same(row: float, other: float, view: View) -> bool:
    """Whether one worker stands in both rows."""
    return not np.isnan(row + other) and view.rows[int(row)] == view.rows[int(other)]
