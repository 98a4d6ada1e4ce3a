"""Makespan over any other swept key: a line for numbers, a row of points for words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.curves import TIME, draw_line, strokes
from ringnet.reporting.plots.words import clipped, settings, some
from ringnet.reporting.sweeps import Line, lines, numbers, other_keys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.tables import Results

MOST_PANELS, MOST_LINES = 4, 8


@canvas.in_style
def time_vs_key(results: Results) -> Figure:
    """Draw makespan over every swept key that is neither N nor the message size, one panel for each."""
    rows = results.finished
    keys, words = some(other_keys(rows), MOST_PANELS, "keys")
    figure, panels = canvas.new_figure(sum(_height(rows[key]) for key in keys), len(keys), sharex=False)
    handles: dict[str, Artist] = {}
    for ax, key in zip(panels, keys, strict=True):
        found, left_out = some(lines(rows, key), MOST_LINES, "lines")
        words = words or left_out
        (_over_numbers if numbers(rows[key]) else _over_words)(ax, rows, key, found)
        handles |= {
            line.label: canvas.stroke(color, line.label, marker=marker)
            for line, color, marker in _styled(found)
        }
    handles.pop("", None)  # the only line of its panel
    drawn = strokes(rows) if any(numbers(rows[key]) for key in keys) else []
    return canvas.finish(figure, results, settings(rows, words), drawn, list(handles.values()))


def _height(column: pd.Series[Any]) -> float:
    return 2.1 if numbers(column) else 0.6 + 0.22 * column.nunique(dropna=False)


def _styled(found: list[Line]) -> Iterator[tuple[Line, str, str]]:
    yield from zip(found, canvas.colors(len(found)), canvas.markers(len(found)), strict=True)


def _over_numbers(ax: Axes, rows: pd.DataFrame, key: str, found: list[Line]) -> None:
    for line, color, marker in _styled(found):
        draw_line(ax, axes.place(line.rows[key]), line.rows, TIME, color=color, marker=marker)
    axes.key_scale(ax, rows[key])
    axes.key(ax.xaxis, key, rows[key])
    axes.times(ax.yaxis, rows["makespan_s"])


def _over_words(ax: Axes, rows: pd.DataFrame, key: str, found: list[Line]) -> None:
    names = list(dict.fromkeys(rows[key].astype(str)))
    for line, color, marker in _styled(found):
        at = [names.index(str(value)) for value in line.rows[key]]
        ax.plot(line.rows["makespan_s"], at, color=color, marker=marker, linestyle="none")
    ax.set_yticks(np.arange(len(names)), [clipped(name, 22) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_ylabel(key)
    axes.times(ax.xaxis, rows["makespan_s"])
