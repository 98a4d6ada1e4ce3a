"""Makespan over any other swept key: a panel of lines for each key of numbers, otherwise a row per point."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.curves import TIME, draw_line, strokes
from ringnet.reporting.plots.words import clipped, point_labels, settings, some
from ringnet.reporting.sweeps import Line, lines, numbers, other_keys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_PANELS, MOST_LINES, MOST_POINTS = 4, 8, 40

#: Colour and marker of each line, by its label.
Styles: TypeAlias = dict[str, tuple[str, str]]


@canvas.in_style
def time_vs_key(results: Results) -> Figure:
    """Draw makespan over the swept keys that are neither N nor the message size."""
    rows = results.finished
    keys = [key for key in other_keys(rows) if numbers(rows[key])]
    return _panels(results, rows, keys) if keys else _points(results, rows)


def _panels(results: Results, rows: pd.DataFrame, keys: list[str]) -> Figure:
    keys, words = some(keys, MOST_PANELS, "keys")
    chosen = {key: some(lines(rows, key), MOST_LINES, "lines") for key in keys}
    styles = _styles([line for found, _ in chosen.values() for line in found])
    figure, panels = canvas.new_figure(2.1 * len(keys), len(keys), sharex=False)
    for ax, (key, (found, left_out)) in zip(panels, chosen.items(), strict=True):
        _panel(ax, rows, key, found, styles)
        words = words or left_out
    named = [canvas.stroke(color, label, marker=marker) for label, (color, marker) in styles.items() if label]
    return canvas.finish(figure, results, settings(rows, words), strokes(rows), named)


def _styles(found: list[Line]) -> Styles:
    """Give each label its own look in all panels alike."""
    labels = list(dict.fromkeys(line.label for line in found))
    looks = zip(canvas.colors(len(labels)), canvas.markers(len(labels)), strict=True)
    return dict(zip(labels, looks, strict=True))


def _panel(ax: Axes, rows: pd.DataFrame, key: str, found: list[Line], styles: Styles) -> None:
    for line in found:
        color, marker = styles[line.label]
        draw_line(ax, axes.place(line.rows[key]), line.rows, TIME, color=color, marker=marker)
    axes.key_scale(ax, rows[key])
    axes.key(ax.xaxis, key, rows[key])
    axes.times(ax.yaxis, rows["makespan_s"])


def _points(results: Results, rows: pd.DataFrame) -> Figure:
    """Draw a row for each point, where the keys are words, with the bound as a bar beside it."""
    shown, words = some(range(len(rows)), MOST_POINTS, "points")
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
    return canvas.finish(figure, results, settings(rows, words), legend)
