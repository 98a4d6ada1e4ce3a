"""Measured times, what was fitted to them and how far off it is; predictions with their range; NCCL's own model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from ringnet.reporting.plots import axes, canvas
from ringnet.units import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Series of a figure that are told apart; the first of more are shown.
_MOST_SERIES = 8
_DASHED = (0, (3, 2))


@canvas.in_style
def calibration_plot(name: str, points: pd.DataFrame) -> Figure:
    """Draw measured points and the fit over message size, a line per N, and the relative errors below.

    Parameters
    ----------
    name : str
        The title.
    points : DataFrame
        One row per measurement: ``log``, ``setting``, ``message_bytes``, ``measured_s``, ``fitted_s``.
    """
    figure, (upper, lower) = canvas.new_figure(3.1, 2)
    shown = list(dict.fromkeys(points["setting"]))[:_MOST_SERIES]
    handles: list[Artist] = []
    for setting, color, marker in zip(shown, canvas.colors(len(shown)), canvas.markers(len(shown)), strict=True):
        rows = points[points["setting"] == setting].sort_values("message_bytes")
        sizes = rows["message_bytes"].to_numpy(dtype=np.float64)
        upper.plot(sizes, rows["measured_s"], linestyle="none", marker=marker, color=color)
        upper.plot(sizes, rows["fitted_s"], color=color)
        lower.plot(sizes, rows["fitted_s"] / rows["measured_s"] - 1, color=color, marker=marker, linewidth=0.6)
        handles.append(canvas.stroke(color, str(setting), marker=marker))
    _over_sizes(upper, points["measured_s"])
    lower.axhline(0, color=canvas.INK, linewidth=0.6)
    axes.linear(lower.yaxis, "share", "error of the fit")
    axes.logarithmic(lower.xaxis, "bytes", "message size")
    kinds = [
        canvas.stroke(canvas.GREY, "measured", marker="o", linestyle="none"),
        canvas.stroke(canvas.GREY, "fit"),
    ]
    n_logs = points["log"].nunique()
    about = f"{len(points)} points of {counted(n_logs, 'log')}; lines: the links alone"
    return canvas.titled(figure, name, about, kinds, handles)


@canvas.in_style
def prediction_plot(name: str, points: pd.DataFrame) -> Figure:
    """Draw predicted times over message size with their range, a line per N, and what was measured.

    Parameters
    ----------
    name : str
        The title.
    points : DataFrame
        One row per N and size: ``n_workers``, ``message_bytes``, and either ``predicted_s``, ``low_s``, ``high_s``,
        ``is_beyond`` or ``measured_s``. Of what was measured, an N that is predicted has its color; the others are
        grey, each with its N beside it.
    """
    figure, (ax,) = canvas.new_figure(2.6)
    measured = points[points["measured_s"].notna()]
    points = points[points["predicted_s"].notna()]
    points = points.drop_duplicates(["n_workers", "message_bytes"]).sort_values("message_bytes")
    sizes = points["message_bytes"]
    shown = measured[measured["message_bytes"].between(sizes.min(), sizes.max())]
    series = list(points.groupby("n_workers"))
    colors = dict(zip([n for n, _ in series], canvas.colors(len(series)), strict=True))
    kinds: dict[str, Artist] = {}
    for n, rows in shown.groupby("n_workers"):
        kinds |= _draw_measured(ax, rows.sort_values("message_bytes"), f"N={n}", colors.get(n))
    for n, rows in series:
        kinds |= _draw_prediction(ax, rows, colors[n])
    _over_sizes(ax, pd.concat([points["predicted_s"], shown["measured_s"]]))
    axes.logarithmic(ax.xaxis, "bytes", "message size")
    handles = [canvas.stroke(colors[n], f"N={n}") for n, _ in series]
    about = f"N={', '.join(str(n) for n, _ in series)}"
    return canvas.titled(figure, name, about, list(kinds.values()), handles)


def _draw_measured(ax: Axes, rows: pd.DataFrame, label: str, color: str | None) -> dict[str, Artist]:
    sizes, times = (rows[key].to_numpy(dtype=np.float64) for key in ("message_bytes", "measured_s"))
    ax.plot(sizes, times, linestyle="none", marker="o", markersize=2.5, color=color or canvas.GREY)
    if color is None:
        # Small messages tell N apart, large ones hardly do.
        below = (0, -3)
        ax.annotate(
            label, (sizes[0], times[0]), below, textcoords="offset points", ha="center", va="top", fontsize=7,
            color=canvas.GREY,
        )  # fmt: skip
    return {"measured": canvas.stroke(canvas.GREY, "measured", marker="o", linestyle="none")}


def _draw_prediction(ax: Axes, rows: pd.DataFrame, color: str) -> dict[str, Artist]:
    """Draw one N; return what its lines and areas mean, in grey, by its name in the legend."""
    sizes, time_s, low_s, high_s = (
        rows[key].to_numpy(dtype=np.float64) for key in ("message_bytes", "predicted_s", "low_s", "high_s")
    )
    beyond = rows["is_beyond"].to_numpy(dtype=bool)
    marker = "o" if len(rows) == 1 else ""  # a line of one point is none
    ax.fill_between(sizes, low_s, high_s, color=color, alpha=0.25, linewidth=0)
    ax.plot(sizes, time_s, color=color, linestyle=_DASHED, marker=marker)
    ax.plot(sizes, np.where(beyond, np.nan, time_s), color=color, marker=marker)
    kinds = {
        "predicted": canvas.stroke(canvas.GREY, "predicted", marker=marker),
        "beyond": canvas.stroke(canvas.GREY, "beyond what was measured", linestyle=_DASHED, marker=marker),
        "range": canvas.patch(canvas.PALE, "range that holds nine in ten"),
    }
    drawn = {"predicted": not beyond.all(), "beyond": beyond.any(), "range": len(rows) > 1}
    return {kind: handle for kind, handle in kinds.items() if drawn[kind]}


def _over_sizes(ax: Axes, times: pd.Series[Any]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    axes.times(ax.yaxis, times)


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
        kinds.append(canvas.stroke(canvas.INK, "fastest ring or tree, simulated", marker="x", linestyle="none"))
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    axes.times(ax.yaxis, times["time_s"])
    axes.logarithmic(ax.xaxis, "bytes", "message size")
    return canvas.titled(figure, name, about, kinds, handles)
