"""What crossed the network: bytes and utilisation of every link, who waited for it, who sent how much to whom."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from ringnet.analysis.frames import WAITING_OF
from ringnet.array_types import FloatArray
from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.canvas import clipped
from ringnet.reporting.sweeps import settings
from ringnet.units import format_bytes

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

MOST_BARS, MOST_LABELLED, MOST_STAIRS = 40, 16, 512
#: Links that are drawn, one above the other; jobs and traffic that have a colour of their own.
MOST_QUEUES, MOST_OWNERS = 6, 6
#: Workers up to which every cell says its bytes, and up to which each has a cell of its own.
MOST_SAID, MOST_CELLS = 9, 512


@canvas.in_style
def per_link(results: Results, column: str, quantity: axes.Quantity, label: str) -> Figure:
    """Draw a column of the links: bytes that crossed each, or its share of the time busy and held by a slower one."""
    links, n_idle = _worth_drawing(_with_held(results))
    # Of several that hold the run back together the table says which they are.
    first = results.summary["slowest_link"].iloc[0]
    slowest = links["is_slowest"] if "is_slowest" in links else links["link"] == first
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
    return canvas.titled(figure, results.name, settings(results.summary, words), legend if len(legend) > 1 else ())


link_traffic = partial(per_link, column="bytes", quantity="bytes", label="traffic")
link_utilisation = partial(per_link, column="utilisation", quantity="share", label="utilisation")


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
        _say_shares(ax, links[column], links["held"])
    ax.set_yticks(rows, [clipped(name, 22) for name in links["link"]])
    ax.set_ylim(len(links) - 0.4, -0.6)
    ax.set_ylabel("link")
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, 1.01 * (1 if column == "utilisation" else float(links[column].max())))
    return _legend(links, column, slowest, held)


def _say_shares(ax: Axes, shares: pd.Series[float], held: pd.Series[float]) -> None:
    """Write each share behind its bar and what was held: inside the bar where there is no room."""
    for row, (share, more) in enumerate(zip(shares, held, strict=True)):
        inside = share + more > 0.85  # noqa: PLR2004 -- room for "100 %"
        text = f"{100 * share:.3g} %"
        ax.annotate(
            f"{text} " if inside else f" {text}",
            (share if inside else share + more, row),
            ha="right" if inside else "left",
            va="center_baseline",
            color="white" if inside else canvas.INK,
            size=6,
        )


def _legend(links: pd.DataFrame, column: str, slowest: pd.Series[bool], held: bool) -> list[Artist]:
    legend = [canvas.patch(canvas.PALETTE[0], "busy" if column == "utilisation" else "bytes")]
    if slowest.any():
        legend.append(canvas.patch(canvas.ALERT, "slowest links" if slowest.sum() > 1 else "slowest link"))
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
    ranks = np.flatnonzero(slowest.to_numpy()[order])
    if len(ranks):
        ax.plot(ranks + 0.5, values[ranks], "v", color=canvas.ALERT, clip_on=False)
        name = clipped(links["link"].iloc[order[ranks[0]]], 30)
        words = f"slowest link, {name}" if len(ranks) == 1 else f"the {len(ranks)} slowest links, {name} first"
        legend.append(canvas.stroke(canvas.ALERT, words, marker="v", linestyle="none"))
    return legend


@canvas.in_style
def utilisation_over_time(results: Results) -> Figure:
    """Draw how busy each link was over time, the busiest on top, a cell per bin."""
    assert results.utilisation is not None  # `PLOTS` says when a plot applies
    frame = results.utilisation
    links = [*dict.fromkeys(frame["link"])]
    shown = links[:MOST_BARS]
    shares = frame["utilisation"].to_numpy().reshape(len(links), -1)[: len(shown)]
    n_bins = shares.shape[1]
    edges_s = np.append(frame["from_s"].to_numpy()[:n_bins], frame["to_s"].to_numpy()[n_bins - 1])
    figure, (ax,) = canvas.new_figure(0.75 + 0.13 * len(shown))
    cells = ax.pcolormesh(
        edges_s,
        np.arange(len(shown) + 1) - 0.5,
        shares,
        cmap=_shades("white"),
        vmin=0,
        vmax=1,
        rasterized=True,
    )
    ax.set_yticks(range(len(shown)), [clipped(str(link), 22) for link in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_ylabel("link")
    ax.grid(visible=False)
    axes.linear(ax.xaxis, "seconds", "time", float(edges_s[-1]))
    bar = figure.colorbar(cells, ax=ax, fraction=0.05, pad=0.02)
    axes.linear(bar.ax.yaxis, "share", "busy", 1.0)
    bar.outline.set_visible(False)
    assert results.links is not None
    n_used = int((results.links["bytes"] > 0).sum())
    words = f"the {len(shown)} busiest of {n_used} links in use" if n_used > len(shown) else ""
    return canvas.titled(figure, results.name, settings(results.summary, words))


def _shades(least: str) -> LinearSegmentedColormap:
    """Return shades from the least to the most."""
    return LinearSegmentedColormap.from_list("traffic", [least, canvas.PALETTE[0]])


@canvas.in_style
def queues(results: Results) -> Figure:
    """Draw, for each of the links with most queueing, who waits for it over time."""
    assert results.queues is not None  # `PLOTS` says when a plot applies
    frame, owners = _by_owner(results.queues)
    queueing = _queueing(results)
    links = queueing[:MOST_QUEUES]
    frame = frame[frame["link"].isin(links)]
    figure, panels = canvas.new_figure(0.35 + max(1.1, 0.62 * len(links)), len(links))
    end_s = max(float(frame["time_s"].max()), float(results.summary["makespan_s"].iloc[0]))
    colors = canvas.colors(len(owners))
    for ax, link in zip(panels, links, strict=True):
        _queue_panel(ax, frame[frame["link"] == link], owners, colors)
        ax.set_title(clipped(link, 40), size=7, loc="left", pad=2.5)
    panels[-1].set_xlim(0, 1.01 * end_s)
    axes.linear(panels[-1].xaxis, "seconds", "time", end_s)
    fair = results.summary["sharing"].iloc[0] == "fair"
    figure.supylabel("flows beyond the first" if fair else "transfers that wait", size=7.5)
    words = f"the {len(links)} links with most queueing" if len(queueing) > len(links) else ""
    legend = [
        canvas.patch(color, clipped(owner.removeprefix(WAITING_OF), 30))
        for owner, color in zip(owners, colors, strict=True)
    ]
    return canvas.titled(figure, results.name, settings(results.summary, words), legend if len(owners) > 1 else ())


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


def _queue_panel(ax: Axes, rows: pd.DataFrame, owners: list[str], colors: list[str]) -> None:
    times_s = rows["time_s"].to_numpy()
    low = np.zeros(max(len(rows) - 1, 0))
    for owner, color in zip(owners, colors, strict=True):
        high = low + rows[owner].to_numpy()[:-1]
        ax.stairs(high, times_s, baseline=low, fill=True, color=color, linewidth=0)
        low = high
    most = float(rows["waiting"].max())
    ax.set_ylim(0, most * 1.05)
    axes.at_values(ax.yaxis, [0.0, round(most) or most], "")


@canvas.in_style
def traffic_matrix(results: Results) -> Figure:
    """Draw the bytes that each worker sent to each other one; beyond many workers, to each group of neighbours."""
    assert results.transfers is not None  # `PLOTS` says when a plot applies
    n_workers = int(results.summary["n_workers"].iloc[0])
    # Switches that reduce are numbered after the workers.
    n_members = max(n_workers, int(results.transfers[["src", "dst"]].to_numpy().max(initial=0)) + 1)
    group = -(-n_members // MOST_CELLS)
    sent = _sent_bytes(results, n_members, group)
    figure, (ax,) = canvas.new_figure(3.0)
    low, high = -0.5, n_members - 0.5
    least, most = sent[sent > 0].min(), sent.max()
    image = ax.imshow(
        np.where(sent > 0, sent, np.nan),
        cmap=_shades(canvas.paler(canvas.PALETTE[0], 0.75)),
        vmin=least if least < most else 0,
        vmax=most,
        extent=(low, high, high, low),
        interpolation="none",
    )
    _scale_matrix(ax, n_members)
    if n_members <= MOST_SAID:
        _say_bytes(ax, sent)
    legend = [canvas.patch("white", "nothing sent", edgecolor=canvas.GREY, linewidth=0.4)]
    if least < most:
        bar = figure.colorbar(image, ax=ax, shrink=0.8)
        axes.linear(bar.ax.yaxis, "bytes", "bytes sent", float(most))
        bar.outline.set_visible(False)
    else:  # a bar of one shade would say no more
        legend.append(canvas.patch(canvas.PALETTE[0], f"{format_bytes(int(most))} sent"))
    words = [f"of every {group} workers the sum"] * (group > 1)
    words += [f"from {n_workers} on: switches"] * (n_members > n_workers)
    return canvas.titled(figure, results.name, settings(results.summary, ", ".join(words)), legend)


def _sent_bytes(results: Results, n_workers: int, group: int) -> FloatArray:
    assert results.transfers is not None
    rows = results.transfers
    size = -(-n_workers // group)
    cells = rows["src"].to_numpy() // group * size + rows["dst"].to_numpy() // group
    weights = rows["bytes"].to_numpy(dtype=np.float64)
    return np.bincount(cells, weights, size * size).astype(np.float64).reshape(size, size)


def _scale_matrix(ax: Axes, n_workers: int) -> None:
    step = -(-n_workers // 16)
    ticks = range(0, n_workers, step)
    ax.set_xticks(ticks, map(str, ticks))
    ax.set_yticks(ticks, map(str, ticks))
    ax.set(xlabel="receiver", ylabel="sender")
    ax.grid(visible=False)
    ax.tick_params(axis="x", labelrotation=90 if n_workers > 99 else 0)  # noqa: PLR2004 -- three digits touch


def _say_bytes(ax: Axes, sent: FloatArray) -> None:
    for (src, dst), n_bytes in np.ndenumerate(sent):
        if n_bytes:
            number, _, unit = format_bytes(int(n_bytes)).partition(" ")
            dark = n_bytes >= 0.5 * (sent[sent > 0].min() + sent.max())
            color = "white" if dark else canvas.INK
            ax.text(dst, src, f"{number}\n{unit}", size=5, color=color, ha="center", va="center")
