"""Queues over time: how many transfers wait for each of the links with most queueing, and whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.words import clipped, settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: Links that are drawn, one above the other; jobs and traffic that have a colour of their own.
MOST_LINKS, MOST_OWNERS = 6, 6
WAITING_OF = "waiting of "


@canvas.in_style
def queues(results: Results) -> Figure:
    """Draw, for each of the links with most queueing, who waits for it over time."""
    assert results.queues is not None  # `PLOTS` says when a plot applies
    frame, owners = _by_owner(results.queues)
    queueing = _queueing(results)
    links = queueing[:MOST_LINKS]
    frame = frame[frame["link"].isin(links)]
    figure, panels = canvas.new_figure(0.35 + max(1.1, 0.62 * len(links)), len(links))
    end_s = max(float(frame["time_s"].max()), float(results.summary["makespan_s"].iloc[0]))
    colors = canvas.colors(len(owners))
    for ax, link in zip(panels, links, strict=True):
        _panel(ax, frame[frame["link"] == link], owners, colors)
        ax.set_title(clipped(link, 40), size=7, loc="left", pad=2.5)
    panels[-1].set_xlim(0, end_s)
    axes.linear(panels[-1].xaxis, "seconds", "time", end_s)
    fair = results.summary["sharing"].iloc[0] == "fair"
    figure.supylabel("flows beyond the first" if fair else "transfers that wait", size=7.5)
    words = f"the {len(links)} links with most queueing" if len(queueing) > len(links) else ""
    legend = [canvas.patch(color, _said(owner)) for owner, color in zip(owners, colors, strict=True)]
    return canvas.finish(figure, results, settings(results.summary, words), legend if len(owners) > 1 else ())


def _queueing(results: Results) -> list[str]:
    """Return the links of the table that cost someone time; all of them where none did.

    Under fair sharing flows that another link keeps narrow can share one that holds nobody back.
    """
    assert results.queues is not None
    every = [str(link) for link in dict.fromkeys(results.queues["link"])]
    if results.links is None or "queued_s" not in results.links:
        return every
    costly = {*results.links.loc[results.links["queued_s"] > 0, "link"]}
    return [link for link in every if link in costly] or every


def _by_owner(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the table and its columns to be stacked: one for each who waits, the last ones together."""
    owners = [name for name in frame.columns if name.startswith(WAITING_OF) and frame[name].any()]
    if len(owners) <= 1:
        return frame, owners or ["waiting"]
    if len(owners) <= MOST_OWNERS:
        return frame, owners
    last = f"{WAITING_OF}{len(owners) - MOST_OWNERS + 1} others"
    shown = owners[: MOST_OWNERS - 1]
    return frame.assign(**{last: frame[owners[MOST_OWNERS - 1 :]].sum(axis=1)}), [*shown, last]


def _panel(ax: Axes, rows: pd.DataFrame, owners: list[str], colors: list[str]) -> None:
    times_s = rows["time_s"].to_numpy()
    low = np.zeros(max(len(rows) - 1, 0))
    for owner, color in zip(owners, colors, strict=True):
        high = low + rows[owner].to_numpy()[:-1]
        ax.stairs(high, times_s, baseline=low, fill=True, color=color, linewidth=0)
        low = high
    most = float(rows["waiting"].max())
    ax.set_ylim(0, most * 1.05)
    axes.at_values(ax.yaxis, [0.0, round(most) or most], "")


def _said(owner: str) -> str:
    return clipped(owner.removeprefix(WAITING_OF), 30)
