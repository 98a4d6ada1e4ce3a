"""The space-time diagram of a run: workers down, time across, a band for every transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.canvas import settings
from ringnet.reporting.plots.path_line import PATH_COLOR, draw_path

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_WORKERS, MOST_SWITCHES, MOST_BANDS = 32, 16, 4096
#: Bands up to which the second phase is hatched; beyond, where that would hide the colours, it is paler.
MOST_HATCHED = 600
#: Chunks up to which each has its number in its bands, and the share of the width that a number needs.
MOST_NUMBERED, NUMBER_WIDTH = 16, 0.03
#: Share of the width below which a band is a stroke rather than an area.
STROKE = 0.006
#: Half of the height of a worker's own bar, in rows.
HALF = 0.11
#: How the second phase differs: areas, strokes.
HATCH, DASHES = "//////", (0, (2.5, 1))


class View(NamedTuple):
    """The part of a run that is shown: transfers, with the row that each ends in, and words if not all."""

    transfers: pd.DataFrame
    workers: range
    n_workers: int
    again: bool
    words: str
    n_switches: int = 0

    @property
    def rows(self) -> list[int]:
        """Rows of the picture: workers, the first again where it is shown twice, or switches below them."""
        return [*range(self.workers.start, self.workers.stop + (1 if self.again else self.n_switches))]

    def name(self, row: int) -> str:
        """Return what stands at a row."""
        if self.n_switches and row >= self.workers.stop:
            return f"switch {row - self.workers.stop}"
        return str(row) if row < self.n_workers else f"({row % self.n_workers})"

    @property
    def end_s(self) -> float:
        """When the last of the transfers is done."""
        return float(self.transfers["applied_s"].max())

    @property
    def hatched(self) -> bool:
        """Whether the second phase is hatched, or else paler."""
        return len(self.transfers) <= MOST_HATCHED


@canvas.in_style
def space_time(results: Results) -> Figure:
    """Draw every transfer from its sender, while it leaves, to its receiver, while it arrives."""
    assert results.transfers is not None  # `PLOTS` says when a plot applies
    transfers = _with_reducing(results.transfers, results.workers)
    view = _view(transfers, int(results.summary["n_workers"].iloc[0]))
    n_chunks = int(results.transfers["chunk"].max()) + 1
    colors = canvas.CHUNKS[:n_chunks] if n_chunks <= len(canvas.CHUNKS) else canvas.colors(n_chunks)
    figure, (ax,) = canvas.new_figure(_height(len(view.rows)))
    for number, (_, rows) in enumerate(view.transfers.groupby("phase", sort=False)):
        _bands(ax, rows, colors, view, second=number > 0)
    _own_time(ax, view)
    walked = results.path is not None and draw_path(ax, results.path, view)
    _scale(ax, view)
    if n_chunks <= MOST_NUMBERED and not view.n_switches:  # to which all lines lead, and their numbers
        _numbers(ax, view, colors)
    phases, chunks = _phases(view), _chunks(colors)
    if walked:
        phases.append(canvas.stroke(PATH_COLOR, "the path that ended last"))
    return canvas.titled(figure, results.name, settings(results.summary, view.words), phases, chunks)


def _height(n_rows: int) -> float:
    """Give a few workers room each, and many what is left of a page."""
    return 0.5 + n_rows * float(np.interp(n_rows, [8, 32], [0.34, 0.12]))


def _view(transfers: pd.DataFrame, n_workers: int) -> View:
    """Choose workers and times that can be read.

    The transfers of a ring's last worker go to the first: they are drawn to a second row of it at the bottom,
    so that no band crosses the whole picture.
    """
    workers = _shown_workers(transfers, n_workers)
    n_switches = max(0, int(transfers[["src", "dst"]].to_numpy().max()) + 1 - n_workers)
    if n_switches:
        return _with_switches(transfers, workers, n_workers, n_switches)
    again = bool(((transfers["dst"] - transfers["src"]) % n_workers == 1).all())
    placed = transfers.assign(row=transfers["src"] + 1 if again else transfers["dst"])
    if not again:  # areas between distant workers would hide each other: a stroke from the start to the end
        placed = placed.assign(sent_s=placed["started_s"])
    inside = placed["src"].isin(workers) & (again | placed["row"].isin(workers))
    kept = placed[inside].sort_values("started_s", kind="stable")
    words = (
        [f"workers {workers.start} to {workers.stop - 1} of {n_workers}"] if len(workers) < n_workers else []
    )
    words += ["first transfers only"] if len(kept) > MOST_BANDS else []
    return View(kept.iloc[:MOST_BANDS], workers, n_workers, again, ", ".join(words))


def _with_switches(transfers: pd.DataFrame, workers: range, n_workers: int, n_switches: int) -> View:
    """Show switches that reduce in rows of their own below the workers; a stroke for each transfer."""
    shown = n_switches if n_switches <= MOST_SWITCHES else 0

    def rows(members: pd.Series) -> pd.Series:
        return members.where(members < n_workers, members - n_workers + workers.stop)

    ends = transfers[["src", "dst"]]
    inside = (ends.isin(workers) | ((ends >= n_workers) & (shown > 0))).all(axis=1)
    kept = transfers[inside].sort_values("started_s", kind="stable")
    kept = kept.assign(src=rows(kept["src"]), row=rows(kept["dst"]), sent_s=kept["started_s"])
    words = [f"workers {workers.start} to {workers.stop - 1} of {n_workers}"] * (len(workers) < n_workers)
    words += ["without the switches"] * (shown == 0) + ["first transfers only"] * (len(kept) > MOST_BANDS)
    return View(
        kept.iloc[:MOST_BANDS], workers, n_workers, again=False, words=", ".join(words), n_switches=shown
    )


def _shown_workers(transfers: pd.DataFrame, n_workers: int) -> range:
    """Show all, or as many as can be read around the one that ended last."""
    if n_workers <= MOST_WORKERS:
        return range(n_workers)
    last = int(transfers["dst"].iloc[int(transfers["applied_s"].to_numpy().argmax())])
    first = min(max(0, last - MOST_WORKERS // 2), n_workers - MOST_WORKERS)
    return range(first, first + MOST_WORKERS)


def _bands(ax: Axes, rows: pd.DataFrame, colors: Any, view: View, *, second: bool) -> None:
    """Draw parallelograms: at the sender as long as a transfer takes to leave, at the receiver to arrive."""
    tints = [canvas.paler(color) for color in colors] if second and not view.hatched else colors
    faces = [tints[chunk] for chunk in rows["chunk"]]
    strokes = _widths(rows) < STROKE * view.end_s
    few = view.hatched
    bands = PolyCollection(
        list(_corners(rows)),
        facecolors=faces,
        edgecolors=[
            face if stroke or not few else canvas.INK for face, stroke in zip(faces, strokes, strict=True)
        ],
        linewidths=np.where(strokes, 1.4 if few else 0.5, 0.3 if few else 0.0),
        linestyles=[DASHES if stroke and second and few else "-" for stroke in strokes],
    )
    if second and few:
        bands.set_hatch(HATCH)
        bands.set_hatchcolor("white")
    ax.add_collection(bands, autolim=False)


def _widths(rows: pd.DataFrame) -> NDArray[np.float64]:
    return (rows["sent_s"] - rows["started_s"]).to_numpy(dtype=np.float64)


def _corners(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the corners of each band, shape (n_transfers, 4, 2), as time and row."""
    started, sent, arrived = (
        rows[name].to_numpy(np.float64) for name in ("started_s", "sent_s", "arrived_s")
    )
    source, target = rows["src"].to_numpy(np.float64), rows["row"].to_numpy(np.float64)
    down = np.sign(target - source) * HALF
    head = np.maximum(started, arrived - (sent - started))
    times = np.stack([started, sent, arrived, head], axis=1)
    places = np.stack([source + down, source + down, target - down, target - down], axis=1)
    return np.stack([times, places], axis=2)


def _own_time(ax: Axes, view: View) -> None:
    """Draw each worker as a line, and on it when it reduces."""
    for row in view.rows:
        ax.axhline(row, color=canvas.GREY, linewidth=0.4, zorder=0)
    busy = view.transfers[view.transfers["reducing_s"] > 0]
    if busy.empty:
        return
    ends = busy["applied_s"].to_numpy(np.float64)
    begun = ends - busy["reducing_s"].to_numpy(np.float64)
    top, bottom = (busy["row"].to_numpy(np.float64) + 0.8 * side for side in (-HALF, HALF))
    boxes = np.stack([begun, top, ends, top, ends, bottom, begun, bottom], axis=1).reshape(-1, 4, 2)
    # One collection: thousands of single bars would take seconds.
    ax.add_collection(PolyCollection(list(boxes), facecolors=canvas.INK, linewidths=0), autolim=False)


def _with_reducing(transfers: pd.DataFrame, workers: pd.DataFrame | None) -> pd.DataFrame:
    """Add how long the receiver reduces each chunk: its share, by bytes, of all that this worker reduced."""
    reduced = transfers["bytes"].where(transfers["op"] == "reduce", 0)
    if workers is None or not reduced.any():
        return transfers.assign(reducing_s=0.0)
    of_worker = reduced.groupby(transfers["dst"]).transform("sum")
    total_s = transfers["dst"].map(workers.set_index("worker")["reducing_s"]).fillna(0.0)
    return transfers.assign(reducing_s=total_s * reduced / of_worker.where(of_worker > 0, 1))


def _numbers(ax: Axes, view: View, colors: Any) -> None:
    """Write the number of its chunk into each band, or beside each stroke, where there is room."""
    rows, widths = view.transfers, _widths(view.transfers)
    room = view.end_s / rows.groupby(["phase", "step"], sort=False).ngroups
    for chunk, width, corners in zip(rows["chunk"], widths, _corners(rows), strict=True):
        if width > NUMBER_WIDTH * view.end_s:
            at, row = corners.mean(axis=0)
            color = canvas.on(colors[chunk])
            ax.text(at, row, str(chunk), color=color, size=5.5, ha="center", va="center_baseline")
        elif width < STROKE * view.end_s and room > 2 * NUMBER_WIDTH * view.end_s:
            at, row = (
                0.7 * corners[0] + 0.3 * corners[2]
            )  # not half-way, where two that exchange chunks cross
            ax.text(at, row, f" {chunk}", color=canvas.INK, size=5.5, ha="left", va="bottom")


def _scale(ax: Axes, view: View) -> None:
    ax.set_xlim(0, 1.01 * view.end_s)
    rows = view.rows
    step = 1 if len(rows) <= 20 else 4  # noqa: PLR2004 -- labels that fit
    ax.set_yticks(rows[::step], [view.name(row) for row in rows[::step]])
    ax.set_ylim(rows[-1] + 0.35, rows[0] - 0.35)
    ax.set_ylabel("worker")
    ax.grid(visible=False, axis="y")
    axes.linear(ax.xaxis, "seconds", "time", view.end_s)


def _phases(view: View) -> list[Artist]:
    first, *others = dict.fromkeys(view.transfers["phase"])
    legend = [canvas.patch(canvas.SOLID, first, edgecolor=canvas.GREY, linewidth=0.3)]
    if view.hatched and (_widths(view.transfers) < STROKE * view.end_s).all():
        legend = [canvas.stroke(canvas.SOLID, first)]
        legend += [canvas.stroke(canvas.SOLID, other, linestyle=DASHES) for other in others]
    elif view.hatched:
        look = {"color": canvas.SOLID, "hatch": HATCH, "edgecolor": "white"}
        legend += [canvas.patch(label=other, **look) for other in others]
    else:
        legend += [canvas.patch(canvas.paler(canvas.SOLID), other) for other in others]
    if view.transfers["reducing_s"].any():
        legend.append(canvas.patch(canvas.INK, "reducing"))
    return legend


def _chunks(colors: Any) -> list[Artist]:
    """Name every chunk, or the first and the last of many."""
    last = len(colors) - 1
    named = range(last + 1) if len(colors) <= len(canvas.CHUNKS) else (0, last // 2, last)
    return [canvas.patch(colors[chunk], f"chunk {chunk}") for chunk in named]
