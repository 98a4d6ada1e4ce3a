"""Where the time went: what the makespan is made of, what each worker did, and how many runs are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ringnet.analysis.spread import FIGURES
from ringnet.array_types import FloatArray, IntArray
from ringnet.engines import PATH_PARTS
from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.canvas import clipped, evenly_chosen, point_labels
from ringnet.reporting.sweeps import lines, numbers, settings, typical, varying

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_PANELS, MOST_BARS = 4, 30
#: Shares from which a part is named at all, from which an area can be seen, and from which its share fits into its bar.
NAMED, SEEN, READABLE = 5e-4, 5e-3, 0.08
COLORS = dict(zip(PATH_PARTS, ("#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#6B6B6B"), strict=True))
#: So that the parts can be told apart without colour, too.
HATCHES = dict(zip(PATH_PARTS, ("", "", "....", "////", "xxxx", "\\\\\\\\"), strict=True))
MOST_WORKER_BARS, MOST_AREAS = 40, 512
#: Parts below this share of the time are none.
ROUNDING = 1e-9
#: Column, what it is called, and how it looks.
ACTIVITIES = (
    ("moving_s", "sending or receiving", canvas.PALETTE[0], ""),
    ("busy_link_s", "waiting for a busy link", canvas.PALETTE[1], "...."),
    ("late_partner_s", "waiting for a late partner", canvas.PALETTE[4], "////"),
    ("overhead_s", "overheads", canvas.PALETTE[5], "xxxx"),
    ("reducing_s", "reducing", canvas.PALETTE[2], ""),
    ("idle_end_s", "done", canvas.PALE, ""),
)


@canvas.in_style
def time_breakdown(results: Results) -> Figure:
    """Draw the shares of what the makespan is made of, over a key or by point."""
    rows = results.finished.dropna(subset=["latency_share"])
    x = _best_key(rows)
    return _over_key(results, rows, x) if x else _by_point(results, rows)


def _best_key(rows: pd.DataFrame) -> str | None:
    """Find a key over which bars can stand side by side: numbers, and two points at least in every row of bars."""
    ranked = sorted(varying(rows), key=lambda key: key != "message_bytes")
    for key in ranked:
        if numbers(rows[key]) and all(len(line.rows) > 1 for line in lines(rows, key)):
            return key
    return None


def _over_key(results: Results, rows: pd.DataFrame, x: str) -> Figure:
    found, words = evenly_chosen(lines(rows, x), MOST_PANELS, "settings")
    figure, panels = canvas.new_figure(0.5 + (1.5 if len(found) == 1 else 0.85 * len(found)), len(found))
    rows = pd.concat([typical(line.rows, x) for line in found])
    values = axes.samples(panels[-1].xaxis, x, rows[x])
    for ax, line in zip(panels, found, strict=True):
        shown = typical(line.rows, x)
        _columns(ax, np.searchsorted(values, axes.place(shown[x])), shown)
        if line.label:
            ax.set_title(clipped(line.label, 50), size=7, loc="left", pad=2)
    of_several = "of several draws the median" if sum(len(line.rows) for line in found) > len(rows) else ""
    return canvas.titled(figure, results.name, settings(rows, *filter(None, [words, of_several])), _legend(rows, SEEN))


def _columns(ax: Axes, at: IntArray, rows: pd.DataFrame) -> None:
    """Draw an upright bar for each point: between two of them nothing is known."""
    low = np.zeros(len(at))
    for part in PATH_PARTS:
        share = _share(rows, part)
        look: dict[str, Any] = {
            "facecolor": COLORS[part],
            "hatch": HATCHES[part],
            "edgecolor": "white",
            "linewidth": 0,
        }
        ax.bar(at, share, bottom=low, width=0.84, **look)
        low = low + share
    ax.grid(visible=False, axis="x")
    ax.set_ylim(0, 1)
    axes.linear(ax.yaxis, "share", "share", 1.0)


def _by_point(results: Results, rows: pd.DataFrame) -> Figure:
    shown, words = evenly_chosen(range(len(rows)), MOST_BARS, "points")
    rows = rows.iloc[shown]
    figure, (ax,) = canvas.new_figure(0.5 + 0.16 * len(rows))
    low = np.zeros(len(rows))
    for part in _parts(rows):
        share = _share(rows, part)
        _bar(ax, low, share, part)
        low = low + share
    labels = [clipped(label, 32) for label in point_labels(rows)] if len(rows) > 1 else []
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    axes.linear(ax.xaxis, "share", "share of the time", 1.0)
    return canvas.titled(figure, results.name, settings(rows, words), _legend(rows))


def _bar(ax: Axes, low: FloatArray, share: FloatArray, part: str) -> None:
    bars = ax.barh(
        np.arange(len(low)),
        share,
        left=low,
        color=COLORS[part],
        hatch=HATCHES[part],
        edgecolor="white",
        linewidth=0.5,
        height=0.76,
    )
    labels = [f"{100 * value:.0f} %" if value >= READABLE else "" for value in share]
    color = COLORS[part]
    for text in ax.bar_label(bars, labels, label_type="center", size=6, color=canvas.on(color), weight="bold"):
        text.set_bbox({"facecolor": color, "edgecolor": "none", "pad": 0.6})  # no hatching behind it


def _parts(rows: pd.DataFrame, least: float = NAMED) -> list[str]:
    """Return the parts whose share of the time is worth naming somewhere."""
    return [part for part in PATH_PARTS if (_share(rows, part) > least).any()]


def _share(rows: pd.DataFrame, part: str) -> FloatArray:
    """Return a part; waits behind transfers of the same worker are waits for bandwidth, and drawn as that."""
    own = {"bandwidth": 1.0, "queueing": -1.0}.get(part, 0.0) * rows["own_queueing_share"].fillna(0.0)
    return (rows[f"{part}_share"].fillna(0.0) + own).to_numpy(dtype=np.float64)


def _legend(rows: pd.DataFrame, least: float = NAMED) -> list[Artist]:
    """Name the parts; of a single point, with their shares."""
    names = {part: part for part in _parts(rows, least)}
    if len(rows) == 1:
        names = {part: f"{part} {100 * _share(rows, part)[0]:.3g} %" for part in names}
    return [canvas.patch(COLORS[part], name, hatch=HATCHES[part], edgecolor="white") for part, name in names.items()]


@canvas.in_style
def worker_waiting(results: Results) -> Figure:
    """Draw what each worker did with its time, from its start to the end of the run: the parts, not when they were."""
    assert results.workers is not None  # `PLOTS` says when a plot applies
    workers, words = _sampled_workers(results.workers)
    shown = [one for one in ACTIVITIES if (workers[one[0]] > ROUNDING * float(workers["end_s"].max())).any()]
    edges = np.cumsum([workers["start_s"], *(workers[column] for column, *_ in shown)], axis=0)
    few = len(workers) <= MOST_WORKER_BARS
    figure, (ax,) = canvas.new_figure(0.55 + 0.13 * len(workers) if few else 2.1)
    at = np.linspace(0, len(results.workers), len(workers) + 1)
    for (_, _, color, hatch), low, high in zip(shown, edges[:-1], edges[1:], strict=True):
        look: dict[str, Any] = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        if few:
            ax.barh(at[:-1], high - low, left=low, height=0.72, **look)
        else:
            ax.stairs(high, at, baseline=low, fill=True, **look)
    (_scale_worker_bars if few else _scale_worker_areas)(ax, len(results.workers), float(edges.max()))
    legend = [canvas.patch(color, name, hatch=hatch, edgecolor="white") for _, name, color, hatch in shown]
    return canvas.titled(figure, results.name, settings(results.summary, words), legend)


def _sampled_workers(workers: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Keep one of each group of neighbours, the most unlike the others, where there is no room for all."""
    group = -(-len(workers) // MOST_AREAS)
    if group == 1:
        return workers, ""
    unlike = (workers["waiting_s"] - workers["waiting_s"].median()).abs()
    kept = unlike.groupby(workers["worker"] // group).idxmax()
    return workers.loc[kept], f"of every {group} workers the one that stands out most"


def _scale_worker_bars(ax: Axes, n_workers: int, end_s: float) -> None:
    step = -(-n_workers // 20)
    ax.set_yticks(range(0, n_workers, step))
    ax.set_ylim(n_workers - 0.4, -0.6)
    ax.set_ylabel("worker")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, 1.01 * end_s)
    axes.linear(ax.xaxis, "seconds", "time", end_s)


def _scale_worker_areas(ax: Axes, n_workers: int, end_s: float) -> None:
    ax.set_xlim(0, n_workers)
    axes.linear(ax.xaxis, "number", "worker", n_workers)
    ax.set_ylim(0, end_s)
    axes.linear(ax.yaxis, "seconds", "time", end_s)


#: Bars at the most, and the share of runs beyond the axis on the right: of heavy tails the bulk can be seen.
MOST_BINS, BEYOND = 60, 0.005
#: Height of the row of an interval, as a share of the highest bar.
ROW = 0.08
#: The figures that are drawn, in colours of their own.
_SHOWN = {"median": canvas.PALETTE[0], "mean": canvas.INK, "p5": canvas.PALETTE[2], "p95": canvas.PALETTE[3]}


@canvas.in_style
def time_distribution(results: Results) -> Figure:
    """Draw how many runs took how long, and the figures with the intervals that they are known to."""
    assert results.runs is not None
    times_s = results.runs["makespan_s"].to_numpy(dtype=np.float64)
    row = results.summary.iloc[0]
    end_s = float(np.quantile(times_s, 1 - BEYOND))
    within = times_s[times_s <= end_s]
    n_bars = min(MOST_BINS, max(8, round(np.sqrt(len(within)))))
    figure, (ax,) = canvas.new_figure(2.2)
    heights, _, _ = ax.hist(within, bins=n_bars, color=canvas.paler(canvas.PALETTE[0]), zorder=2)
    # Above the bars, a row for each: intervals that lie behind bars, or on each other, cannot be read.
    rows = np.max(heights) * (1.08 + ROW * np.arange(len(_SHOWN)))
    ax.set_ylim(0, rows[-1] + np.max(heights) * ROW)
    for (name, color), at in zip(_SHOWN.items(), rows, strict=True):
        low, high = (row[f"{name}_{end}_s"] for end in ("low", "high"))
        if low == low and high == high:  # noqa: PLR0124 -- an end that is not known is NaN
            ax.plot([low, high], [at, at], color=color, linewidth=2.0, marker="|", zorder=4)
        ax.plot([row[f"{name}_s"]] * 2, [0, at], color=color, linewidth=1.0, zorder=3)
    ax.set_ylabel("runs")
    ax.grid(visible=False, axis="x")
    axes.linear(ax.xaxis, "seconds", "time", end_s)
    words = {name: name if FIGURES[name] in (None, 0.5) else f"{name[1:]}th percentile" for name in _SHOWN}
    legend = [canvas.stroke(color, words[name]) for name, color in _SHOWN.items()]
    n_beyond = len(times_s) - len(within)
    left_out = f"; {n_beyond} took longer than is shown" if n_beyond else ""
    about = f"times of {len(times_s):,} runs, and 95 % intervals of what is told of them{left_out}"
    return canvas.titled(figure, results.name, about, legend)
