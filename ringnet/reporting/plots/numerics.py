"""Errors of rounding, by algorithm, element type and number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.payload.dtypes import DTYPES, unit_roundoff
from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Numbers of workers that are drawn above each other.
MOST_PANELS = 3


@canvas.in_style
def error_by_algorithm(name: str, table: pd.DataFrame) -> Figure:
    """Draw the error of each algorithm as a dot, a colour per element type, a panel per N.

    Parameters
    ----------
    name : str
        What stands above it.
    table : DataFrame
        ``n_workers, dtype, accumulation, algorithm, relative_rms_error``.
    """
    workers = sorted(table["n_workers"].unique().tolist())
    workers = (
        workers if len(workers) <= MOST_PANELS else [workers[0], workers[len(workers) // 2], workers[-1]]
    )
    algorithms = sorted(table["algorithm"].unique().tolist())
    kinds = list(dict.fromkeys(zip(table["dtype"], table["accumulation"], strict=True)))
    colors = dict(zip(kinds, canvas.colors(len(kinds)), strict=True))
    figure, panels = canvas.new_figure((0.35 + 0.12 * len(algorithms)) * len(workers), len(workers))
    for ax, n_workers in zip(panels, workers, strict=True):
        _panel(ax, table[table["n_workers"] == n_workers], algorithms, colors)
        if len(workers) > 1:
            ax.set_title(f"N = {n_workers}", fontsize=7, loc="left", pad=2)
    # The panels share their axis: its end is that of the largest error of all.
    panels[-1].set_xlim(0, 1.06 * panels[-1].get_xlim()[1])
    axes.linear(panels[-1].xaxis, "number", "error in units of one rounding, u")
    markers = canvas.markers(len(kinds))
    legend = [
        canvas.stroke(color, _label(*kind), marker=marker, linestyle="none")
        for (kind, color), marker in zip(colors.items(), markers, strict=True)
    ]
    what = "root mean square error against float64 / size of the result"
    return canvas.titled(figure, name, what, legend)


def _panel(ax: Axes, rows: pd.DataFrame, algorithms: list[str], colors: dict[tuple[str, str], str]) -> None:
    for (kind, color), marker in zip(colors.items(), canvas.markers(len(colors)), strict=True):
        mine = rows[(rows["dtype"] == kind[0]) & (rows["accumulation"] == kind[1])]
        errors = mine["relative_rms_error"].to_numpy(dtype=np.float64, na_value=np.nan)
        places = [algorithms.index(one) for one in mine["algorithm"]]
        # In units of what one rounding does, types can be compared, and algorithms told apart.
        shares = errors / unit_roundoff(DTYPES[kind[0]])
        ax.plot(shares, places, linestyle="none", color=color, marker=marker, alpha=0.85, markersize=3.2)
    ax.set_yticks(range(len(algorithms)), algorithms)
    ax.set_ylim(len(algorithms) - 0.5, -0.5)


def _label(dtype: str, accumulation: str) -> str:
    return dtype if dtype == accumulation else f"{dtype} summed in {accumulation}"
