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
#: Inches that each element type has in the row of an algorithm, and that rows are apart; the share of a row for types.
MARKER_IN, APART_IN, FILLED = 0.05, 0.06, 0.72


@canvas.in_style
def error_by_algorithm(name: str, table: pd.DataFrame) -> Figure:
    """Draw the error of each algorithm as a dot, a colour and a height in the row per element type, a panel per N.

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
    row_in = max(0.12, APART_IN + MARKER_IN * len(kinds))
    figure, panels = canvas.new_figure((0.35 + row_in * len(algorithms)) * len(workers), len(workers))
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
    heights = _heights(len(colors))
    for (kind, color), marker, height in zip(
        colors.items(), canvas.markers(len(colors)), heights, strict=True
    ):
        mine = rows[(rows["dtype"] == kind[0]) & (rows["accumulation"] == kind[1])]
        errors = mine["relative_rms_error"].to_numpy(dtype=np.float64, na_value=np.nan)
        places = [algorithms.index(one) + height for one in mine["algorithm"]]
        # In units of what one rounding does, types can be compared, and algorithms told apart.
        shares = errors / unit_roundoff(DTYPES[kind[0]])
        ax.plot(shares, places, linestyle="none", color=color, marker=marker, alpha=0.85, markersize=3.2)
    ax.set_yticks(range(len(algorithms)), algorithms)
    ax.set_ylim(len(algorithms) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    for row in range(1, len(algorithms), 2):
        ax.axhspan(row - 0.5, row + 0.5, color=canvas.PALE, alpha=0.3, linewidth=0, zorder=0)


def _heights(n_kinds: int) -> list[float]:
    """Return where in a row each type stands, so that errors alike do not cover each other.

    >>> [round(height, 2) for height in _heights(3)]
    [-0.24, 0.0, 0.24]
    """
    return [FILLED * ((place + 0.5) / n_kinds - 0.5) for place in range(n_kinds)]


def _label(dtype: str, accumulation: str) -> str:
    return dtype if dtype == accumulation else f"{dtype} summed in {accumulation}"
