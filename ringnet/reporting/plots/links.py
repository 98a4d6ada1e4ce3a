"""Bytes and utilisation of every link; the slowest stands out, and many become a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.words import clipped, settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_BARS, MOST_LABELLED, MOST_STAIRS = 40, 16, 512


@canvas.in_style
def link_traffic(results: Results) -> Figure:
    """Draw the bytes that crossed each link."""
    return _per_link(results, "bytes", "bytes", "traffic")


@canvas.in_style
def link_utilisation(results: Results) -> Figure:
    """Draw the share of the makespan for which each link was busy, and held by a slower one upstream."""
    return _per_link(results, "utilisation", "share", "utilisation")


def _per_link(results: Results, column: str, quantity: axes.Quantity, label: str) -> Figure:
    links, n_idle = _worth_drawing(_with_held(results))
    slowest = links["link"] == results.summary["slowest_link"].iloc[0]
    if len(links) <= MOST_BARS:
        figure, (ax,) = canvas.new_figure(0.55 + 0.13 * len(links))
        legend = _bars(ax, links, column, slowest)
        axis: Axis = ax.xaxis
    else:
        figure, (ax,) = canvas.new_figure(2.1)
        legend = _profile(ax, links, column, slowest)
        axes.linear(ax.xaxis, "number", _of_links(len(links), n_idle), len(links))
        axis = ax.yaxis
    axes.linear(axis, quantity, label, 1.0 if quantity == "share" else float(links[column].max()))
    words = f"{n_idle} idle links left out" if n_idle else ""
    return canvas.finish(figure, results, settings(results.summary, words), legend if len(legend) > 1 else ())


def _with_held(results: Results) -> pd.DataFrame:
    assert results.links is not None  # `PLOTS` says when a plot applies
    links = results.links
    return links.assign(held=(links["occupied_s"] - links["busy_s"]) / results.summary["makespan_s"].iloc[0])


def _worth_drawing(links: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Leave out idle links where all are too many to be named; return the others, and how many were left out."""
    used = links["bytes"] > 0
    if len(links) <= MOST_BARS or not used.any():
        return links, 0
    return links[used].reset_index(drop=True), int((~used).sum())


def _of_links(n_links: int, n_idle: int) -> str:
    return f"{'the' if n_idle else 'all'} {n_links} links{' in use' if n_idle else ''}, from the most to the least"


def _bars(ax: Axes, links: pd.DataFrame, column: str, slowest: pd.Series[bool]) -> list[Artist]:
    rows = np.arange(len(links))
    colors = np.where(slowest, canvas.ALERT, canvas.PALETTE[0])
    ax.barh(rows, links[column], color=colors, height=0.72)
    held = column == "utilisation" and bool((links["held"] > 1e-9).any())  # noqa: PLR2004 -- more than rounding
    if held:
        ax.barh(rows, links["held"], left=links[column], color=canvas.PALE, height=0.72)
    if column == "utilisation" and len(links) <= MOST_LABELLED:
        _say_shares(ax, links[column])
    ax.set_yticks(rows, [clipped(name, 22) for name in links["link"]])
    ax.set_ylim(len(links) - 0.4, -0.6)
    ax.set_ylabel("link")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, 1 if column == "utilisation" else None)
    return _legend(links, column, slowest, held)


def _say_shares(ax: Axes, shares: pd.Series[float]) -> None:
    """Write each share at the end of its bar: inside where there is no room outside."""
    for row, share in enumerate(shares):
        inside = share > 0.85  # noqa: PLR2004 -- room for "100 %"
        text = f"{100 * share:.3g} %"
        ax.annotate(
            f"{text} " if inside else f" {text}",
            (share, row),
            ha="right" if inside else "left",
            va="center_baseline",
            color="white" if inside else canvas.INK,
            size=6,
        )


def _legend(links: pd.DataFrame, column: str, slowest: pd.Series[bool], held: bool) -> list[Artist]:
    legend = [canvas.patch(canvas.PALETTE[0], "busy" if column == "utilisation" else "bytes")]
    if slowest.any():
        legend.append(canvas.patch(canvas.ALERT, "slowest link"))
    if held:
        legend.append(canvas.patch(canvas.PALE, "held by a slower link"))
    return legend


def _profile(ax: Axes, links: pd.DataFrame, column: str, slowest: pd.Series[bool]) -> list[Artist]:
    """Draw all links from the most to the least, and say where the slowest is."""
    order = np.argsort(-links[column].to_numpy(), kind="stable")
    values = links[column].to_numpy()[order]
    first = np.flatnonzero(np.diff(values, prepend=np.nan))  # links alike make one stair
    first = first[:: 1 + len(first) // MOST_STAIRS]
    ax.stairs(values[first], [*first, len(values)], fill=True, color=canvas.PALETTE[0])
    ax.set_xlim(0, len(links))
    ax.set_ylim(0, 1 if column == "utilisation" else None)
    legend = [canvas.patch(canvas.PALETTE[0], "links")]
    for rank in np.flatnonzero(slowest.to_numpy()[order]):
        ax.plot(rank + 0.5, values[rank], "v", color=canvas.ALERT, clip_on=False)
        name = clipped(links["link"].iloc[order[rank]], 30)
        legend.append(canvas.stroke(canvas.ALERT, f"slowest link, {name}", marker="v", linestyle="none"))
    return legend
