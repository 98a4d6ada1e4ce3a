"""NCCL's times by algorithm, protocol and size, with its choice, beside what was simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.artist import Artist

from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES: dict[str, object] = {"LL": (0, (1, 1.5)), "LL128": (0, (4, 2)), "Simple": "-"}


@canvas.in_style
def nccl_plot(times: pd.DataFrame, found: pd.DataFrame | None, name: str, about: str) -> Figure:
    """Draw NCCL's times over size, a colour per algorithm and a line per protocol; a band marks what it takes.

    Parameters
    ----------
    times : DataFrame
        One row per size, algorithm and protocol: ``message_bytes, algorithm, protocol, time_s, is_pick``.
    found : DataFrame or None
        What was simulated: ``message_bytes, algorithm, makespan_s``; the fastest of each size is drawn.
    name, about : str
        Title, and the line below it.
    """
    figure, (ax,) = canvas.new_figure(3.0)
    algorithms = list(dict.fromkeys(times["algorithm"]))
    handles: list[Artist] = []
    for algorithm, color in zip(algorithms, canvas.colors(len(algorithms)), strict=True):
        of_algorithm = times[times["algorithm"] == algorithm]
        for protocol, rows in of_algorithm.groupby("protocol", sort=False):
            sizes = rows["message_bytes"].to_numpy(dtype=np.float64)
            taken = np.where(rows["is_pick"], rows["time_s"], np.nan)
            ax.plot(sizes, rows["time_s"], color=color, linestyle=_STYLES[str(protocol)], linewidth=0.9)
            ax.plot(sizes, taken, color=color, linewidth=5, alpha=0.35, solid_capstyle="butt")
        handles.append(canvas.stroke(color, algorithm))
    kinds = [
        canvas.stroke(canvas.GREY, str(protocol), linestyle=_STYLES[str(protocol)])
        for protocol in dict.fromkeys(times["protocol"])
    ]
    kinds.append(canvas.stroke(canvas.GREY, "NCCL takes it", linewidth=5, alpha=0.35))
    if found is not None:
        best = found.groupby("message_bytes")["makespan_s"].min()
        ax.plot(best.index, best, color=canvas.INK, marker="x", linestyle="none", markersize=4)
        kinds.append(
            canvas.stroke(canvas.INK, "fastest ring or tree, simulated", marker="x", linestyle="none")
        )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    axes.times(ax.yaxis, times["time_s"])
    axes.logarithmic(ax.xaxis, "bytes", "message size")
    return canvas.titled(figure, name, about, kinds, handles)
