"""Time, algbw and busbw over workers, message size or another key, a line per setting, closed form and bound beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import matplotlib
import numpy as np
import pandas as pd

from ringnet.array_types import BoolArray, FloatArray, IntArray
from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.canvas import clipped, evenly_chosen, point_labels
from ringnet.reporting.sweeps import (
    SweepLine,
    going_along,
    is_seed,
    key_words,
    lines,
    numbers,
    other_keys,
    settings,
    typical,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

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
def curves(results: Results, x: str, measure: Measure) -> Figure:
    """Draw a measure over N or the message size, a line per setting of the other; times with both axes logarithmic."""
    figure, (ax,) = canvas.new_figure(2.3)
    shown, left_out = _drawable(results.finished, x)
    found, words = evenly_chosen(lines(shown, x), MOST_LINES, "lines")
    styles = _line_styles(found)
    _draw_lines(ax, found, x, measure, styles)
    _scale(ax, shown, x, measure)
    about = settings(shown, *filter(None, [words, left_out, _draws_words(found, x)]))
    return canvas.titled(figure, results.name, about, strokes(found, x), _named(styles))


time_vs_workers = partial(curves, x="n_workers", measure=TIME)
time_vs_message_size = partial(curves, x="message_bytes", measure=TIME)
algbw_vs_message_size = partial(curves, x="message_bytes", measure=ALGBW)
busbw_vs_message_size = partial(curves, x="message_bytes", measure=BUSBW)


def _draw_lines(ax: Axes, found: list[SweepLine], x: str, measure: Measure, styles: LineStyles) -> None:
    """Draw each line, those that others lie on wider than these, so that every one is seen."""
    drawn = [typical(line.rows, x) for line in found]
    places = [axes.place(rows[x]) for rows in drawn]
    values = [measure.of_time(rows, _column(rows, "makespan_s")) for rows in drawn]
    wider = canvas.nested(list(zip(places, values, strict=True)))
    for line, rows, at, n_above in zip(found, drawn, places, wider, strict=True):
        color, marker = styles[line.label]
        if len(line.rows) > len(rows):
            _draw_range(ax, line.rows, x, measure, color)
        draw_line(ax, at, rows, measure, color=color, marker=marker, n_above=n_above, joined=not is_seed(x))


def _draw_range(ax: Axes, rows: pd.DataFrame, x: str, measure: Measure, color: str) -> None:
    """Draw from the least to the most of points that differ in a draw only."""
    values = measure.of_time(rows, _column(rows, "makespan_s"))
    groups = pd.Series(values).groupby(axes.place(rows[x]))
    ax.vlines(groups.min().index, groups.min(), groups.max(), color=color, linewidth=2.4, alpha=0.4)


def _draws_words(found: list[SweepLine], x: str) -> str:
    n_draws = max((int(line.rows.groupby(x).size().max()) for line in found), default=1)
    return f"median and range of {n_draws} draws" if n_draws > 1 else ""


def _line_styles(found: list[SweepLine]) -> LineStyles:
    """Give each label its own look in all panels alike."""
    labels = list(dict.fromkeys(line.label for line in found))
    looks = zip(canvas.colors(len(labels)), canvas.markers(len(labels)), strict=True)
    return dict(zip(labels, looks, strict=True))


def _named(styles: LineStyles) -> list[Artist]:
    named = [canvas.stroke(color, label, marker=marker) for label, (color, marker) in styles.items() if label]
    return named if len(styles) > 1 else []


def _drawable(rows: pd.DataFrame, x: str) -> tuple[pd.DataFrame, str]:
    """Leave out what a logarithmic axis cannot show: an empty message, a run that takes no time."""
    kept = rows[(_column(rows, x) > 0) & (_column(rows, "makespan_s") > 0)]
    n_left_out = len(rows) - len(kept)
    return kept, f"{n_left_out} point(s) at zero left out" if n_left_out else ""


def draw_line(
    ax: Axes,
    at: FloatArray,
    rows: pd.DataFrame,
    measure: Measure,
    *,
    color: str,
    marker: str,
    n_above: int = 0,
    joined: bool = True,
) -> None:
    """Draw what was simulated, its bound dotted and its closed form dashed, as far as there are any.

    Parameters
    ----------
    at : ndarray, shape (n_points,)
        Where the points stand on the horizontal axis.
    rows : DataFrame
        Rows of the summary, in the same order.
    color, marker : str
    n_above : int
        Lines that will lie on this one.
    joined : bool
        Whether there is anything between two points.
    """

    def beside(column: str, **look: Any) -> None:
        values = measure.of_time(rows, _column(rows, column))
        # A point without a neighbour makes no line: a short stroke stands for it.
        ax.plot(at, values, marker="_", markevery=_lone(values).tolist(), markersize=7, **look)

    if measure is TIME and "p5_s" in rows:
        band = (_column(rows, "p5_s"), _column(rows, "p95_s"))
        ax.fill_between(at, *band, color=color, alpha=0.18, linewidth=0, zorder=1)
    beside("collective_bound_s", color=color, linestyle=":", linewidth=1.0)
    simulated = measure.of_time(rows, _column(rows, "makespan_s"))
    wide = canvas.APART_PT * n_above
    size, width = matplotlib.rcParams["lines.markersize"], matplotlib.rcParams["lines.linewidth"]
    look: dict[str, Any] = {"color": color, "marker": marker, "markersize": size + wide}
    ax.plot(at, simulated, linestyle="-" if joined else "none", linewidth=width + wide, **look)
    beyond = _is_beyond(rows)
    ax.plot(at[beyond], simulated[beyond], linestyle="none", markerfacecolor="white", **look)
    beside("closed_form_s", color=canvas.INK, linestyle=DASHED, linewidth=0.7)


def _lone(values: FloatArray) -> IntArray:
    """Return the places of values that have no neighbour to be joined with.

    >>> _lone(np.array([1.0, np.nan, 2.0, 3.0])).tolist()
    [0]
    """
    there = np.pad(np.isfinite(values), 1)
    return np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])


def _is_beyond(rows: pd.DataFrame) -> BoolArray:
    """Whether each point is extrapolated from what its links were measured at."""
    if "is_beyond" not in rows:
        return np.zeros(len(rows), dtype=np.bool_)
    return rows["is_beyond"].fillna(False).to_numpy(dtype=np.bool_)


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


def strokes(found: Sequence[SweepLine], x: str) -> list[Artist]:
    """Say what the kinds of stroke are, as far as they were drawn."""
    rows = pd.concat([line.rows for line in found])
    joined = "none" if is_seed(x) else "-"
    handles = [canvas.stroke(canvas.GREY, "simulated", marker="o", linestyle=joined)]
    if _is_beyond(rows).any():
        handles.append(
            canvas.stroke(canvas.GREY, "extrapolated", marker="o", markerfacecolor="white", linestyle=joined)
        )
    if "p5_s" in rows and rows["p5_s"].notna().any():
        handles.append(canvas.patch(canvas.paler(canvas.GREY, 0.7), "nine of ten runs"))
    beside: dict[str, tuple[str, str, dict[str, Any]]] = {
        "closed_form_s": ("closed form", canvas.INK, {"linestyle": DASHED, "linewidth": 0.7}),
        "collective_bound_s": ("bound", canvas.GREY, {"linestyle": ":", "linewidth": 1.0}),
    }
    for column, (label, color, look) in beside.items():
        lone = [_lone(_column(line.rows, column)) for line in found]
        n_there = int(rows[column].notna().sum())
        if n_there:
            marker = "_" if n_there == sum(map(len, lone)) else ""
            handles.append(canvas.stroke(color, label, marker=marker, **look))
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
    every = [line for found, _ in chosen.values() for line in found]
    styles = _line_styles(every)
    figure, panels = canvas.new_figure(2.1 * len(keys), len(keys), sharex=False)
    said = [words]
    for ax, (key, (found, left_out)) in zip(panels, chosen.items(), strict=True):
        _draw_lines(ax, found, key, TIME, styles)
        axes.key_scale(ax, rows[key])
        axes.key(ax.xaxis, key, rows[key])
        axes.times(ax.yaxis, rows["makespan_s"])
        along = going_along(rows, key)
        said += [left_out, _draws_words(found, key)]
        said += [f"{', '.join(map(key_words, along))} with {key_words(key)}"] if along else []
    about = settings(rows, *dict.fromkeys(filter(None, said)))
    return canvas.titled(figure, results.name, about, strokes(every, keys[0]), _named(styles))


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
