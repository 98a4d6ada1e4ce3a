"""What each worker did with its time: waiting, overheads, reducing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.words import settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.tables import Results

MOST_BARS = 40
#: Column, what it is called, and how it looks.
ACTIVITIES = (
    ("waiting_s", "waiting for others", canvas.PALETTE[4], ""),
    ("overhead_s", "overheads", canvas.PALETTE[5], "////"),
    ("reducing_s", "reducing", canvas.PALETTE[2], ""),
)


@canvas.in_style
def worker_waiting(results: Results) -> Figure:
    """Draw, for each worker, how long it waited, how long its overheads took, and how long it reduced."""
    assert results.workers is not None  # `PLOTS` says when a plot applies
    workers = results.workers
    shown = [activity for activity in ACTIVITIES if activity[0] == "waiting_s" or workers[activity[0]].any()]
    edges = np.cumsum([workers["start_s"], *(workers[column] for column, *_ in shown)], axis=0)
    few = len(workers) <= MOST_BARS
    figure, (ax,) = canvas.new_figure(0.55 + 0.13 * len(workers) if few else 2.1)
    draw = _bars if few else _areas
    for (_, _, color, hatch), low, high in zip(shown, edges[:-1], edges[1:], strict=True):
        draw(ax, low, high, color, hatch)
    (_scale_bars if few else _scale_areas)(ax, len(workers), float(edges.max()))
    legend = [canvas.patch(color, name, hatch=hatch, edgecolor="white") for _, name, color, hatch in shown]
    return canvas.finish(figure, results, settings(results.summary), legend)


def _bars(ax: Axes, low: NDArray[np.float64], high: NDArray[np.float64], color: str, hatch: str) -> None:
    rows = np.arange(len(low))
    ax.barh(rows, high - low, left=low, color=color, hatch=hatch, edgecolor="white", linewidth=0, height=0.72)


def _areas(ax: Axes, low: NDArray[np.float64], high: NDArray[np.float64], color: str, hatch: str) -> None:
    edges = np.arange(len(low) + 1)
    ax.stairs(
        high, edges, baseline=low, fill=True, facecolor=color, hatch=hatch, edgecolor="white", linewidth=0
    )


def _scale_bars(ax: Axes, n_workers: int, end_s: float) -> None:
    step = -(-n_workers // 20)
    ax.set_yticks(range(0, n_workers, step))
    ax.set_ylim(n_workers - 0.4, -0.6)
    ax.set_ylabel("worker")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, end_s)
    axes.linear(ax.xaxis, "seconds", "time", end_s)


def _scale_areas(ax: Axes, n_workers: int, end_s: float) -> None:
    ax.set_xlim(0, n_workers)
    axes.linear(ax.xaxis, "number", "worker", n_workers)
    ax.set_ylim(0, end_s)
    axes.linear(ax.yaxis, "seconds", "time", end_s)
