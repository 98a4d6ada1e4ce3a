"""What would help: gains of links, cards and workers that are made better, and of changes of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Rows of a plot that can be read.
MOST_ROWS = 14
#: Rows of one kind that are drawn: of cards that gain alike a few tell as much as all.
MOST_OF_A_KIND = 4
#: What is changed: the columns of ``blame.csv``, and words for them.
CHANGES = {"alike": "as good as its best like", "twice": "twice as fast", "no_latency": "without latency"}


@canvas.in_style
def gains(name: str, table: pd.DataFrame) -> Figure:
    """Draw what each suspect gains, a bar for each change, with a mark where the path as it is says more."""
    columns = [f"{change}_gain_s" for change in CHANGES]
    gaining = table[table[columns].fillna(0.0).gt(0).any(axis=1)]
    shown = gaining.groupby("kind", sort=False).head(MOST_OF_A_KIND).head(MOST_ROWS)
    figure, (ax,) = canvas.new_figure(0.55 + 0.3 * len(shown))
    rows, marked = np.arange(len(shown)), False
    for place, (change, color) in enumerate(zip(CHANGES, canvas.PALETTE, strict=False)):
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
    legend = [
        canvas.patch(color, label) for color, label in zip(canvas.PALETTE, CHANGES.values(), strict=False)
    ]
    if marked:
        legend.append(canvas.stroke(canvas.INK, "by the path as it is", marker="|", linestyle="none"))
    left_out = len(gaining) - len(shown)
    about = "what the time falls by, simulated again" + (
        f"; {left_out} more gain something" if left_out else ""
    )
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
