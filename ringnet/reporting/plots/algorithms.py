"""Studies: algorithms against each other, errors of rounding, and what would help: links, workers, changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap

from ringnet.analysis.upgrades import BY_COLUMN
from ringnet.analysis.winners import ranges
from ringnet.array_types import FloatArray
from ringnet.payload.dtypes import DTYPES, unit_roundoff
from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Lines that can be told apart; of more algorithms the fastest are drawn.
MOST_LINES = 14
#: What is said of sizes at which the links only make a ring take what was measured.
NO_GROUND = "a guess: the links are a ring's equivalent"
#: Panels above each other, of as many numbers of workers.
MOST_PANELS = 6
#: Styles of lines by turns, so that fourteen are told apart by seven colours.
_STROKES = ("-", (0, (4, 1.5)))
#: Inches that each element type has in the row of an algorithm, and that rows are apart; the share of a row for types.
MARKER_IN, APART_IN, FILLED = 0.05, 0.06, 0.72


class _Style(NamedTuple):
    color: str
    marker: str
    linestyle: object


def _styles(algorithms: Sequence[str]) -> dict[str, _Style]:
    n = len(canvas.PALETTE)
    return {
        name: _Style(canvas.PALETTE[place % n], canvas.MARKERS[(place + place // n) % n], _STROKES[place // n % 2])
        for place, name in enumerate(algorithms)
    }


def _shown(table: pd.DataFrame) -> list[str]:
    """Return the algorithms that are drawn, by name: those that are ahead at some size before those that are not."""
    best = table.groupby("algorithm")["rank"].agg(["min", "mean"]).sort_values(["min", "mean"])
    return sorted(str(name) for name in best.index[:MOST_LINES])


def _drawn(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["message_bytes"] > 0) & (table["makespan_s"] > 0)]


@canvas.in_style
def by_algorithm(name: str, table: pd.DataFrame, column: str) -> Figure:
    """Draw a column of a comparison over message size, a line per algorithm, a panel per N."""
    table = _drawn(table)
    workers, words = canvas.evenly_chosen(
        sorted(table["n_workers"].unique().tolist()), MOST_PANELS, "numbers of workers"
    )
    styles = _styles(_shown(table))
    figure, panels = canvas.new_figure(2.2 if len(workers) == 1 else 1.7 * len(workers), len(workers))
    for ax, n_workers in zip(panels, workers, strict=True):
        rows = table[table["n_workers"] == n_workers]
        _shade_guesses(ax, rows)
        _lines(ax, rows, column, styles)
        _scale(ax, rows, column, n_workers if len(workers) > 1 else None)
    axes.logarithmic(panels[-1].xaxis, "bytes", "message size")
    legend = [
        canvas.stroke(style.color, label, marker=style.marker, linestyle=style.linestyle, markersize=3)
        for label, style in styles.items()
    ]
    if not _is_ground(table).all():
        legend.append(canvas.patch(canvas.PALE, NO_GROUND))
    return canvas.titled(figure, name, _about(table, workers, words), legend)


time_by_algorithm = partial(by_algorithm, column="makespan_s")
share_by_algorithm = partial(by_algorithm, column="bound_share")


def _is_ground(table: pd.DataFrame) -> pd.Series[bool]:
    """Whether the time of each row is one from which something may be concluded."""
    return table["guess"].isna()


def _shade_guesses(ax: Axes, rows: pd.DataFrame) -> None:
    """Shade the sizes at which no times but a ring's are known."""
    sizes = sorted(rows["message_bytes"].unique().tolist())
    ends = _edges(sizes).tolist()
    guessed = {*rows.loc[~_is_ground(rows), "message_bytes"]}
    for place, size in enumerate(sizes):
        if size in guessed:
            ax.axvspan(ends[place], ends[place + 1], color=canvas.PALE, linewidth=0, zorder=0)


def _lines(ax: Axes, rows: pd.DataFrame, column: str, styles: dict[str, _Style]) -> None:
    """Draw a line for each algorithm, those that others lie on wider than these."""
    curves: list[tuple[FloatArray, FloatArray]] = []
    for name in styles:
        mine = rows[rows["algorithm"] == name].sort_values("message_bytes")
        curves.append((mine["message_bytes"].to_numpy(np.float64), mine[column].to_numpy(np.float64)))
    for place, ((sizes, values), style, n_above) in enumerate(
        zip(curves, styles.values(), canvas.nested(curves), strict=True)
    ):
        ax.plot(
            sizes,
            values,
            color=style.color,
            marker=style.marker,
            linestyle=style.linestyle,
            markersize=3 + canvas.APART_PT * n_above,
            # Markers at every fifth point, each line's at others, so that lines that cross are told apart.
            markevery=(place % 5, 5) if len(sizes) > 10 else None,  # noqa: PLR2004 -- few points are all marked
            linewidth=0.9 + canvas.APART_PT * n_above,
        )


def _scale(ax: Axes, rows: pd.DataFrame, column: str, n_workers: int | None) -> None:
    ax.set_xscale("log", base=2)
    if column == "makespan_s":
        ax.set_yscale("log")
        axes.times(ax.yaxis, rows["makespan_s"])
    else:
        ax.set_ylim(0, 1.04)
        axes.linear(ax.yaxis, "share", "share of the bound")
    if n_workers is not None:
        ax.text(0.02, 0.97, f"N = {n_workers}", transform=ax.transAxes, va="top", weight="bold")


@canvas.in_style
def winner_map(name: str, table: pd.DataFrame) -> Figure:
    """Draw as a map who is fastest at each N and message size; of equals, the one that stays so for the most sizes."""
    table = _drawn(table)
    found = ranges(table)
    workers, sizes = (sorted(table[key].unique().tolist()) for key in ("n_workers", "message_bytes"))
    names = sorted({one.algorithm for one in found})
    cells = np.full((len(workers), len(sizes)), np.nan)
    for one in found:
        within = [place for place, size in enumerate(sizes) if one.first_bytes <= size <= one.last_bytes]
        cells[workers.index(one.n_workers), within] = names.index(one.algorithm)
    figure, (ax,) = canvas.new_figure(0.7 + 0.28 * min(len(workers), 8))
    colors = _colors(_styles(_shown(table)), names)
    ax.pcolormesh(
        _edges(sizes),
        np.arange(len(workers) + 1) - 0.5,
        cells,
        cmap=ListedColormap(colors),
        vmin=-0.5,
        vmax=len(names) - 0.5,
    )
    ax.set_xscale("log", base=2)
    first, *_, last = _edges(sizes).tolist()
    ax.set_xlim(first, last)
    ax.grid(visible=False)
    ax.set_yticks(range(len(workers)), [str(n) for n in workers])
    ax.set_ylabel("workers, N")
    axes.logarithmic(ax.xaxis, "bytes", "message size")
    legend = [canvas.patch(color, label) for color, label in zip(colors, names, strict=True)]
    if np.isnan(cells).any():
        ax.set_facecolor(canvas.PALE)
        legend.append(canvas.patch(canvas.PALE, NO_GROUND))
    about = "fastest algorithm by number of workers and message size"
    return canvas.titled(figure, name, about, legend)


def _colors(styles: dict[str, _Style], names: Sequence[str]) -> list[str]:
    """Return the colour of each winner's line; two winners of one colour are told apart by a paler one."""
    found: list[str] = []
    for name in names:
        color = styles[name].color if name in styles else canvas.GREY
        found.append(canvas.paler(color) if color in found else color)
    return found


def _edges(sizes: Sequence[int]) -> FloatArray:
    """Return where the cells of a map end: half way between sizes, on a logarithmic axis."""
    logs = np.log2(np.array(sizes, dtype=np.float64))
    if len(logs) == 1:
        alone: FloatArray = np.exp2(logs[0] + np.array([-0.5, 0.5]))
        return alone
    middle = (logs[1:] + logs[:-1]) / 2
    edges: FloatArray = np.exp2(np.concatenate(([2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]])))
    return edges


def _about(table: pd.DataFrame, workers: Sequence[int], words: str) -> str:
    left_out = table["algorithm"].nunique() - min(MOST_LINES, table["algorithm"].nunique())
    said = [f"N = {workers[0]}" if len(workers) == 1 else "a panel for each number of workers"]
    said += [words] * bool(words) + [f"{left_out} slower left out"] * bool(left_out)
    return "; ".join(said)


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
    workers, words = canvas.evenly_chosen(
        sorted(table["n_workers"].unique().tolist()), MOST_PANELS, "numbers of workers"
    )
    algorithms = sorted(table["algorithm"].unique().tolist())
    kinds = list(dict.fromkeys(zip(table["dtype"], table["accumulation"], strict=True)))
    colors = dict(zip(kinds, canvas.colors(len(kinds)), strict=True))
    row_in = max(0.12, APART_IN + MARKER_IN * len(kinds))
    figure, panels = canvas.new_figure((0.35 + row_in * len(algorithms)) * len(workers), len(workers))
    for ax, n_workers in zip(panels, workers, strict=True):
        _error_panel(ax, table[table["n_workers"] == n_workers], algorithms, colors)
        if len(workers) > 1:
            ax.set_title(f"N = {n_workers}", fontsize=7, loc="left", pad=2)
    # The panels share their axis: its end is that of the largest error of all.
    panels[-1].set_xlim(0, 1.06 * panels[-1].get_xlim()[1])
    axes.linear(panels[-1].xaxis, "number", "error in units of one rounding, u")
    markers = canvas.markers(len(kinds))
    legend = [
        canvas.stroke(
            color,
            dtype if dtype == accumulation else f"{dtype} summed in {accumulation}",
            marker=marker,
            linestyle="none",
        )
        for ((dtype, accumulation), color), marker in zip(colors.items(), markers, strict=True)
    ]
    what = "root mean square error against float64 / size of the result"
    return canvas.titled(figure, name, ", ".join(filter(None, [what, words])), legend)


def _error_panel(ax: Axes, rows: pd.DataFrame, algorithms: list[str], colors: dict[tuple[str, str], str]) -> None:
    heights = _row_heights(len(colors))
    for (kind, color), marker, height in zip(colors.items(), canvas.markers(len(colors)), heights, strict=True):
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


def _row_heights(n_kinds: int) -> list[float]:
    """Return where in a row each type stands, so that errors alike do not cover each other.

    >>> [round(height, 2) for height in _row_heights(3)]
    [-0.24, 0.0, 0.24]
    """
    return [FILLED * ((place + 0.5) / n_kinds - 0.5) for place in range(n_kinds)]


#: Rows of a plot that can be read.
MOST_ROWS = 14
#: Rows of one kind that are drawn: of cards that gain alike a few tell as much as all.
MOST_OF_A_KIND = 4


@canvas.in_style
def gains(name: str, table: pd.DataFrame) -> Figure:
    """Draw what each suspect gains, a bar for each change, with a mark where the path as it is says more."""
    columns = [f"{change}_gain_s" for change in BY_COLUMN]
    gaining = table[table[columns].fillna(0.0).gt(0).any(axis=1)]
    shown = gaining.groupby("kind", sort=False).head(MOST_OF_A_KIND).head(MOST_ROWS)
    figure, (ax,) = canvas.new_figure(0.55 + 0.3 * len(shown))
    rows, marked = np.arange(len(shown)), False
    for place, (change, color) in enumerate(zip(BY_COLUMN, canvas.PALETTE, strict=False)):
        at = rows + 0.26 * (place - 1)
        ax.barh(at, shown[f"{change}_gain_s"].fillna(0.0).clip(lower=0.0), height=0.24, color=color)
        by_path = shown[f"{change}_by_path_s"].to_numpy(dtype=np.float64, na_value=np.nan)
        parted = by_path > shown[f"{change}_gain_s"].fillna(np.inf) * (1 + 1e-6)
        marked = marked or bool(parted.any())
        ax.plot(by_path[parted], at[parted], "|", color=canvas.INK, markersize=5)
    ax.set_yticks(rows, [canvas.clipped(str(text), 30) for text in shown["name"]])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, None)
    axes.linear(ax.xaxis, "seconds", "gained")
    legend = [canvas.patch(color, label) for color, label in zip(canvas.PALETTE, BY_COLUMN.values(), strict=False)]
    if marked:
        legend.append(canvas.stroke(canvas.INK, "by the path as it is", marker="|", linestyle="none"))
    left_out = len(gaining) - len(shown)
    about = "what the time falls by, simulated again" + (f"; {left_out} more gain something" if left_out else "")
    return canvas.titled(figure, name, about, legend)


@canvas.in_style
def whatif(name: str, table: pd.DataFrame) -> Figure:
    """Draw the time with each change as a bar, and that of today as a line."""
    today_s = float(table.loc[table["rank"].isna() & table["error"].isna(), "makespan_s"].iloc[0])
    shown = table[table["rank"].notna()].head(MOST_ROWS)
    figure, (ax,) = canvas.new_figure(0.55 + 0.16 * len(shown))
    rows = np.arange(len(shown))
    ax.barh(rows, shown["makespan_s"], height=0.72, color=canvas.PALETTE[0])
    if "makespan_low_s" in shown:
        ends = shown[["makespan_low_s", "makespan_high_s"]].to_numpy(dtype=np.float64)
        ax.hlines(rows, *ends.T, color=canvas.INK, linewidth=1.0)
    ax.axvline(today_s, color=canvas.ALERT, linewidth=1.0)
    ax.set_yticks(rows, [canvas.clipped(str(text), 34) for text in shown["change"]])
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, 1.04 * max(today_s, float(shown["makespan_s"].max())))
    axes.linear(ax.xaxis, "seconds", "time")
    legend = [canvas.patch(canvas.PALETTE[0], "with the change"), canvas.stroke(canvas.ALERT, "today")]
    if "makespan_low_s" in shown:
        legend.append(canvas.stroke(canvas.INK, "95 % interval of the mean"))
    left_out = int(table["rank"].notna().sum()) - len(shown)
    about = "time with each change" + (f"; {left_out} that take longer are left out" if left_out else "")
    return canvas.titled(figure, name, about, legend)
