"""What each worker did with its time: waiting, overheads, reducing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.words import settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_BARS, MOST_AREAS = 40, 512
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
    workers, words = _sample(results.workers)
    shown = [activity for activity in ACTIVITIES if activity[0] == "waiting_s" or workers[activity[0]].any()]
    edges = np.cumsum([workers["start_s"], *(workers[column] for column, *_ in shown)], axis=0)
    few = len(workers) <= MOST_BARS
    figure, (ax,) = canvas.new_figure(0.55 + 0.13 * len(workers) if few else 2.1)
    at = np.linspace(0, len(results.workers), len(workers) + 1)
    for (_, _, color, hatch), low, high in zip(shown, edges[:-1], edges[1:], strict=True):
        look: dict[str, Any] = {"color": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        if few:
            ax.barh(at[:-1], high - low, left=low, height=0.72, **look)
        else:
            ax.stairs(high, at, baseline=low, fill=True, **look)
    (_scale_bars if few else _scale_areas)(ax, len(results.workers), float(edges.max()))
    legend = [canvas.patch(color, name, hatch=hatch, edgecolor="white") for _, name, color, hatch in shown]
    return canvas.finish(figure, results, settings(results.summary, words), legend)


def _sample(workers: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Keep one of each group of neighbours, the most unlike the others, where there is no room for all."""
    group = -(-len(workers) // MOST_AREAS)
    if group == 1:
        return workers, ""
    unlike = (workers["waiting_s"] - workers["waiting_s"].median()).abs()
    kept = unlike.groupby(workers["worker"] // group).idxmax()
    return workers.loc[kept], f"of every {group} workers the one that stands out most"


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
