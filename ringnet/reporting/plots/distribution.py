"""How the times of repeated runs are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.analysis.spread import FIGURES
from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: Bars at the most, and the share of runs beyond the axis on the right: of heavy tails the bulk can be seen.
MOST_BARS, BEYOND = 60, 0.005
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
    n_bars = min(MOST_BARS, max(8, round(np.sqrt(len(within)))))
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
