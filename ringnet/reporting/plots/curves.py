"""Time, algbw and busbw over workers, message size or another key, a line per setting, closed form and bound beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.canvas import clipped, evenly_chosen, point_labels, settings
from ringnet.reporting.sweeps import SweepLine, lines, numbers, other_keys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

FloatArray: TypeAlias = NDArray[np.float64]
MOST_LINES = 12
DASHED = (0, (4, 3))
MOST_PANELS, MOST_KEY_LINES, MOST_POINTS = 4, 8, 40
#: Colour and marker of each line, by its label.
LineStyles: TypeAlias = dict[str, tuple[str, str]]


class Measure(NamedTuple):
    """What is drawn upwards: a label, a quantity, and how it follows from a time."""

    label: str
    quantity: axes.Quantity
    of_time: Callable[[pd.DataFrame, FloatArray], FloatArray]


def _time(rows: pd.DataFrame, time_s: FloatArray) -> FloatArray:
    return time_s


def _algbw(rows: pd.DataFrame, time_s: FloatArray) -> FloatArray:
    return _column(rows, "message_bytes") / time_s


def _busbw(rows: pd.DataFrame, time_s: FloatArray) -> FloatArray:
    """Return busbw; its ratio to algbw depends on collective and N, and the row has it."""
    return _algbw(rows, time_s) * _column(rows, "busbw_Bps") / _column(rows, "algbw_Bps")


TIME = Measure("time", "seconds", _time)
ALGBW = Measure("algbw", "bytes_per_second", _algbw)
BUSBW = Measure("busbw", "bytes_per_second", _busbw)


def _column(rows: pd.DataFrame, name: str) -> FloatArray:
    return rows[name].to_numpy(dtype=np.float64, na_value=np.nan)


@canvas.in_style
def time_vs_workers(results: Results) -> Figure:
    """Draw makespan over N, a line per message size; both axes logarithmic."""
    return _curves(results, "n_workers", TIME)


@canvas.in_style
def time_vs_message_size(results: Results) -> Figure:
    """Draw makespan over message size, a line per N; both axes logarithmic."""
    return _curves(results, "message_bytes", TIME)


@canvas.in_style
def algbw_vs_message_size(results: Results) -> Figure:
    """Draw algbw over message size, a line per N."""
    return _curves(results, "message_bytes", ALGBW)


@canvas.in_style
def busbw_vs_message_size(results: Results) -> Figure:
    """Draw busbw over message size, a line per N."""
    return _curves(results, "message_bytes", BUSBW)


def _curves(results: Results, x: str, measure: Measure) -> Figure:
    figure, (ax,) = canvas.new_figure(2.3)
    shown, left_out = _drawable(results.finished, x)
    found, words = evenly_chosen(lines(shown, x), MOST_LINES, "lines")
    handles: list[Artist] = []
    for line, color, marker in zip(found, canvas.colors(len(found)), canvas.markers(len(found)), strict=True):
        draw_line(ax, _column(line.rows, x), line.rows, measure, color=color, marker=marker)
        handles.append(canvas.stroke(color, line.label, marker=marker))
    _scale(ax, shown, x, measure)
    legend = handles if len(found) > 1 else []
    return canvas.titled(figure, results.name, settings(shown, words, left_out), strokes(shown), legend)


def _drawable(rows: pd.DataFrame, x: str) -> tuple[pd.DataFrame, str]:
    """Leave out what a logarithmic axis cannot show: an empty message, a run that takes no time."""
    kept = rows[(_column(rows, x) > 0) & (_column(rows, "makespan_s") > 0)]
    n_left_out = len(rows) - len(kept)
    return kept, f"{n_left_out} point(s) at zero left out" if n_left_out else ""


def draw_line(ax: Axes, at: FloatArray, rows: pd.DataFrame, measure: Measure, **style: str) -> None:
    """Draw what was simulated, its bound dotted and its closed form dashed, as far as there are any.

    Parameters
    ----------
    at : ndarray, shape (n_points,)
        Where the points stand on the horizontal axis.
    rows : DataFrame
        Rows of the summary, in the same order.
    **style
        ``color`` and ``marker``.
    """

    def values(column: str) -> FloatArray:
        return measure.of_time(rows, _column(rows, column))

    ax.plot(at, values("collective_bound_s"), color=style["color"], linestyle=":", linewidth=1.0)
    ax.plot(at, values("makespan_s"), **style)  # type: ignore[arg-type]
    ax.plot(at, values("closed_form_s"), color=canvas.INK, linestyle=DASHED, linewidth=0.7)


def _scale(ax: Axes, rows: pd.DataFrame, x: str, measure: Measure) -> None:
    """Set both axes; bandwidths start at zero, because what counts is how far they are from the bound."""
    if x == "n_workers":
        ax.set_xscale("log", base=2)
        axes.at_values(ax.xaxis, _column(rows, x), "workers, N")
    else:
        ax.set_xscale("log", base=2)
        axes.logarithmic(ax.xaxis, "bytes", "message size")
    if measure is TIME:
        ax.set_yscale("log")
        axes.times(ax.yaxis, rows["makespan_s"])
    else:
        ax.set_ylim(bottom=0)
        axes.linear(ax.yaxis, measure.quantity, measure.label)


def strokes(rows: pd.DataFrame) -> list[Artist]:
    """Say what the three kinds of stroke are, as far as they were drawn."""
    handles = [canvas.stroke(canvas.GREY, "simulated", marker="o")]
    if rows["closed_form_s"].notna().any():
        handles.append(canvas.stroke(canvas.INK, "closed form", linestyle=DASHED, linewidth=0.7))
    if rows["collective_bound_s"].notna().any():
        handles.append(canvas.stroke(canvas.GREY, "bound", linestyle=":", linewidth=1.0))
    return handles


@canvas.in_style
def time_vs_key(results: Results) -> Figure:
    """Draw makespan over the swept keys that are neither N nor the message size."""
    rows = results.finished
    keys = [key for key in other_keys(rows) if numbers(rows[key])]
    return _key_panels(results, rows, keys) if keys else _point_rows(results, rows)


def _key_panels(results: Results, rows: pd.DataFrame, keys: list[str]) -> Figure:
    keys, words = evenly_chosen(keys, MOST_PANELS, "keys")
    chosen = {key: evenly_chosen(lines(rows, key), MOST_KEY_LINES, "lines") for key in keys}
    styles = _line_styles([line for found, _ in chosen.values() for line in found])
    figure, panels = canvas.new_figure(2.1 * len(keys), len(keys), sharex=False)
    for ax, (key, (found, left_out)) in zip(panels, chosen.items(), strict=True):
        _key_panel(ax, rows, key, found, styles)
        words = words or left_out
    named = [canvas.stroke(color, label, marker=marker) for label, (color, marker) in styles.items() if label]
    return canvas.titled(figure, results.name, settings(rows, words), strokes(rows), named)


def _line_styles(found: list[SweepLine]) -> LineStyles:
    """Give each label its own look in all panels alike."""
    labels = list(dict.fromkeys(line.label for line in found))
    looks = zip(canvas.colors(len(labels)), canvas.markers(len(labels)), strict=True)
    return dict(zip(labels, looks, strict=True))


def _key_panel(ax: Axes, rows: pd.DataFrame, key: str, found: list[SweepLine], styles: LineStyles) -> None:
    for line in found:
        color, marker = styles[line.label]
        draw_line(ax, axes.place(line.rows[key]), line.rows, TIME, color=color, marker=marker)
    axes.key_scale(ax, rows[key])
    axes.key(ax.xaxis, key, rows[key])
    axes.times(ax.yaxis, rows["makespan_s"])


def _point_rows(results: Results, rows: pd.DataFrame) -> Figure:
    """Draw a row for each point, where the keys are words, with the bound as a bar beside it."""
    shown, words = evenly_chosen(range(len(rows)), MOST_POINTS, "points")
    rows = rows.iloc[shown]
    figure, (ax,) = canvas.new_figure(0.5 + 0.17 * len(rows))
    at = np.arange(len(rows))
    ax.plot(rows["collective_bound_s"], at, "|", color=canvas.GREY, markersize=6)
    ax.plot(rows["makespan_s"], at, "o", color=canvas.PALETTE[0])
    ax.set_yticks(at, [clipped(label, 32) for label in point_labels(rows)])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    axes.times(ax.xaxis, rows["makespan_s"])
    legend = [canvas.stroke(canvas.PALETTE[0], "simulated", marker="o", linestyle="none")]
    if rows["collective_bound_s"].notna().any():
        legend.append(canvas.stroke(canvas.GREY, "bound", marker="|", linestyle="none", markersize=6))
    return canvas.titled(figure, results.name, settings(rows, words), legend)
