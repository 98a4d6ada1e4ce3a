"""The space-time diagram of a run: workers down, time across, a band for every transfer, the path that ended last."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patheffects import Normal, Stroke

from ringnet.array_types import FloatArray
from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.spacetime_view import View, view_of
from ringnet.reporting.sweeps import settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.plots.spacetime_view import View
    from ringnet.reporting.results import Results

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
    pieces = path.assign(on_link=path["worker"].isna()).to_dict("records")
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
    return (piece["on_link"], *(str(piece[name]) for name in _TRANSFER), str(piece["worker"]))


def _is_same(row: float, other: float, view: View) -> bool:
    """Whether one worker stands in both rows."""
    return not np.isnan(row + other) and view.rows[int(row)] == view.rows[int(other)]


#: Bands up to which later phases are hatched; beyond, where that would hide the colours, they are paler.
MOST_HATCHED = 600
#: Bands up to which chunks have their numbers, the size of these in points, and the share that must find room.
MOST_NUMBERED, NUMBER_PT, WORTH = 200, 5.5, 0.5
#: Share of the width below which a band is a stroke rather than an area.
STROKE = 0.006
#: Half of the height of a worker's own bar, in rows; inches beside the diagram.
HALF, BESIDE = 0.11, 0.5
#: Where along a stroke its number may stand: not half-way, where two that exchange chunks cross.
PLACES = (0.3, 0.7, 0.16, 0.84, 0.42, 0.58)


class PhaseLook(NamedTuple):
    """How the bands of a phase differ from those of the others."""

    hatch: str | None
    dashes: Any
    paler: float


#: By turns.
PHASES = (
    PhaseLook(None, "-", 0.0),
    PhaseLook("//////", (0, (2.5, 1)), 0.5),
    PhaseLook("......", (0, (1, 1)), 0.3),
    PhaseLook("xxxxxx", (0, (4, 1, 1, 1)), 0.7),
)


@canvas.in_style
def space_time(results: Results) -> Figure:
    """Draw every transfer from its sender, while it leaves, to its receiver, while it arrives."""
    assert results.transfers is not None  # `PLOTS` says when a plot applies
    transfers = _with_reducing(results.transfers, results.workers)
    view = view_of(transfers, int(results.summary["n_workers"].iloc[0]))
    if not view.one_way:  # areas that cross would hide each other: a stroke from the start to the end
        view = view._replace(bands=view.bands.assign(sent_s=view.bands["started_s"]))
    hatched = len(view.bands) <= MOST_HATCHED
    colors = _colors(view)
    height_in = _height(len(view.rows))
    figure, (ax,) = canvas.new_figure(height_in)
    phases: list[Artist] = []
    for phase, look in zip(view.phases, canvas.by_turns(PHASES, len(view.phases)), strict=True):
        phases.append(_draw_phase(ax, phase, look, colors, view, hatched=hatched))
    if _own_time(ax, view):
        phases.append(canvas.patch(canvas.INK, "reducing"))
    walked = results.path is not None and draw_path(ax, results.path, view)
    _scale(ax, view)
    if len(view.bands) <= MOST_NUMBERED:
        _numbers(ax, view, colors, height_in - BESIDE)
    if walked:
        phases.append(canvas.stroke(PATH_COLOR, "the path that ended last"))
    return canvas.titled(figure, results.name, settings(results.summary, view.words), phases, _chunks(view, colors))


def _height(n_rows: int) -> float:
    """Give a few workers room each, and many what is left of a page."""
    return BESIDE + n_rows * float(np.interp(n_rows, [8, 18, 32], [0.34, 0.24, 0.14]))


def _colors(view: View) -> dict[int, str]:
    """Return the colour of each chunk, of the first in bands of several."""
    chunks = sorted(view.bands["chunk"].unique().tolist())
    return dict(zip(chunks, canvas.chunk_colors(len(chunks)), strict=True))


def _draw_phase(ax: Axes, phase: str, look: PhaseLook, colors: dict[int, str], view: View, *, hatched: bool) -> Artist:
    """Draw parallelograms: at the sender as long as a transfer takes to leave, at the receiver to arrive.

    Returns
    -------
    Artist
        For the legend.
    """
    rows = view.bands[view.bands["phase"] == phase]
    tints = colors if hatched else {chunk: canvas.paler(color, look.paler) for chunk, color in colors.items()}
    faces = np.array([tints[chunk] for chunk in rows["chunk"]], dtype=object)
    strokes, corners = _widths(rows) < STROKE * view.end_s, _corners(rows)
    areas = PolyCollection(
        list(corners[~strokes]),
        facecolors=faces[~strokes].tolist(),
        edgecolors=canvas.INK if hatched else "none",
        linewidths=0.3 if hatched else 0.0,
        label=phase,
    )
    if hatched and look.hatch:
        areas.set_hatch(look.hatch)
        areas.set_hatchcolor("white")
    lines = LineCollection(
        list(corners[strokes][:, ::2]),
        colors=faces[strokes].tolist(),
        linewidths=1.4 if hatched else 0.5,
        linestyles=look.dashes if hatched else "-",
        label=phase,
    )
    for found, are_any in ((areas, not strokes.all()), (lines, strokes.any())):
        if are_any:
            ax.add_collection(found, autolim=False)
    if strokes.all():
        color = canvas.SOLID if hatched else canvas.paler(canvas.GREY, look.paler)
        return canvas.stroke(color, phase, linestyle=look.dashes if hatched else "-")
    if not hatched:
        return canvas.patch(canvas.paler(canvas.GREY, look.paler), phase)
    edge = {"edgecolor": "white"} if look.hatch else {"edgecolor": canvas.GREY, "linewidth": 0.3}
    return canvas.patch(canvas.SOLID, phase, hatch=look.hatch, **edge)


def _widths(rows: pd.DataFrame) -> FloatArray:
    return (rows["sent_s"] - rows["started_s"]).to_numpy(dtype=np.float64)


def _corners(rows: pd.DataFrame) -> FloatArray:
    """Return the corners of each band, shape (n_transfers, 4, 2): time and row; a stroke joins the first and third."""
    started, sent, arrived = (rows[name].to_numpy(np.float64) for name in ("started_s", "sent_s", "arrived_s"))
    source, target = (rows[name].to_numpy(np.float64) for name in ("from_row", "to_row"))
    down = np.sign(target - source) * HALF
    head = np.maximum(started, arrived - (sent - started))
    times = np.stack([started, sent, arrived, head], axis=1)
    places = np.stack([source + down, source + down, target - down, target - down], axis=1)
    return np.stack([times, places], axis=2)


def _own_time(ax: Axes, view: View) -> bool:
    """Draw each worker as a line, and on it when it reduces; return whether any does."""
    for row in range(len(view.rows)):
        ax.axhline(row, color=canvas.GREY, linewidth=0.4, zorder=0)
    busy = view.transfers[view.transfers["reducing_s"] > 0]
    if busy.empty:
        return False
    ends = busy["applied_s"].to_numpy(np.float64)
    begun = ends - busy["reducing_s"].to_numpy(np.float64)
    top, bottom = (busy["to_row"].to_numpy(np.float64) + 0.8 * side for side in (-HALF, HALF))
    boxes = np.stack([begun, top, ends, top, ends, bottom, begun, bottom], axis=1).reshape(-1, 4, 2)
    # One collection: thousands of single bars would take seconds.
    ax.add_collection(PolyCollection(list(boxes), facecolors=canvas.INK, linewidths=0), autolim=False)
    return True


def _with_reducing(transfers: pd.DataFrame, workers: pd.DataFrame | None) -> pd.DataFrame:
    """Add how long the receiver reduces each chunk: its share, by bytes, of all that this worker reduced."""
    reduced = transfers["bytes"].where(transfers["op"] == "reduce", 0)
    if workers is None or not reduced.any():
        return transfers.assign(reducing_s=0.0)
    of_worker = reduced.groupby(transfers["dst"]).transform("sum")
    total_s = transfers["dst"].map(workers.set_index("worker")["reducing_s"]).fillna(0.0)
    return transfers.assign(reducing_s=total_s * reduced / of_worker.where(of_worker > 0, 1))


def _numbers(ax: Axes, view: View, colors: dict[int, str], height_in: float) -> None:
    """Write the number of its chunk into each band, or beside each stroke, where there is room and most have some."""
    per_s = (ax.get_figure(root=True).get_figwidth() - BESIDE) / (1.01 * view.end_s)  # type: ignore[union-attr]
    per_row = height_in / len(view.rows)
    areas, strokes, taken = [], [], _Taken()
    corners, widths = _corners(view.bands), _widths(view.bands)
    for chunk, label, width, band in zip(view.bands["chunk"], view.bands["chunks"], widths, corners, strict=True):
        room_in = canvas.text_in(label, NUMBER_PT)
        if width >= STROKE * view.end_s:
            at, row = band.mean(axis=0)
            if room_in < width * per_s:
                areas.append((at, row, label, canvas.on(colors[chunk])))
            continue
        for share in PLACES:
            at, row = (1 - share) * band[0] + share * band[2]
            left, bottom = at * per_s + 0.015, -row * per_row + 0.01
            if left + room_in < 1.01 * view.end_s * per_s and taken.takes(left, bottom, room_in, NUMBER_PT / 60):
                strokes.append((at + 0.015 / per_s, row - 0.01 / per_row, label, canvas.INK))
                break
    if len(strokes) >= WORTH * (len(view.bands) - len(areas)):
        for at, row, label, color in strokes:
            ax.text(at, row, label, color=color, size=NUMBER_PT, ha="left", va="bottom")
    for at, row, label, color in areas:
        ax.text(at, row, label, color=color, size=NUMBER_PT, ha="center", va="center_baseline")


class _Taken:
    """Boxes that are written in."""

    def __init__(self) -> None:
        self._boxes: list[tuple[float, float, float, float]] = []

    def takes(self, left: float, bottom: float, width: float, height: float) -> bool:
        """Take a box if it touches none that is taken."""
        right, top = left + width, bottom + height
        free = all(right <= box[0] or left >= box[1] or top <= box[2] or bottom >= box[3] for box in self._boxes)
        if free:
            self._boxes.append((left, right, bottom, top))
        return free


def _scale(ax: Axes, view: View) -> None:
    ax.set_xlim(0, 1.01 * view.end_s)
    n_rows = len(view.rows)
    step = 1 if n_rows <= 20 else 4  # noqa: PLR2004 -- labels that fit
    ticks = range(0, n_rows, step)
    ax.set_yticks(ticks, [view.name(row) for row in ticks])
    ax.set_ylim(n_rows - 0.65, -0.35)
    ax.set_ylabel("worker")
    ax.grid(visible=False, axis="y")
    axes.linear(ax.xaxis, "seconds", "time", view.end_s)


def _chunks(view: View, colors: dict[int, str]) -> list[Artist]:
    """Name every chunk, or the first and the last of many; several that always go together as one."""
    together = view.bands.groupby("chunk")["chunks"].agg(["first", "nunique"])
    chunks = [*colors]
    last = len(chunks) - 1
    named = chunks if len(chunks) <= len(canvas.CHUNKS) else [chunks[0], chunks[last // 2], chunks[last]]
    return [canvas.patch(colors[chunk], _chunk_label(chunk, *together.loc[chunk])) for chunk in named]


def _chunk_label(chunk: int, chunks: str, n_ways: int) -> str:
    alone = n_ways > 1 or chunks in (str(chunk), "")
    return f"chunk {chunk}" if alone else f"chunks {chunks}"
