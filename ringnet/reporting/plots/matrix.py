"""Who sent how much to whom: a square of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.plots.words import settings
from ringnet.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: Workers up to which every cell says its bytes, and up to which each has a cell of its own.
MOST_SAID, MOST_CELLS = 9, 512


@canvas.in_style
def traffic_matrix(results: Results) -> Figure:
    """Draw the bytes that each worker sent to each other one; beyond many workers, to each group of neighbours."""
    assert results.transfers is not None  # `PLOTS` says when a plot applies
    n_workers = int(results.summary["n_workers"].iloc[0])
    group = -(-n_workers // MOST_CELLS)
    sent = _sent(results, n_workers, group)
    figure, (ax,) = canvas.new_figure(3.0)
    shades = LinearSegmentedColormap.from_list(
        "traffic", [canvas.paler(canvas.PALETTE[0]), canvas.PALETTE[0]]
    )
    low, high = -0.5, n_workers - 0.5
    image = ax.imshow(
        np.where(sent > 0, sent, np.nan),
        cmap=shades,
        vmin=0,
        vmax=sent.max(),
        extent=(low, high, high, low),
        interpolation="none",
    )
    _scale(ax, n_workers)
    if n_workers <= MOST_SAID:
        _say_bytes(ax, sent)
    bar = figure.colorbar(image, ax=ax, shrink=0.8)
    axes.linear(bar.ax.yaxis, "bytes", "bytes sent", float(sent.max()))
    bar.outline.set_visible(False)
    words = f"of every {group} workers the sum" if group > 1 else ""
    return canvas.finish(figure, results, settings(results.summary, words))


def _sent(results: Results, n_workers: int, group: int) -> NDArray[np.float64]:
    assert results.transfers is not None
    rows = results.transfers
    size = -(-n_workers // group)
    cells = rows["src"].to_numpy() // group * size + rows["dst"].to_numpy() // group
    weights = rows["bytes"].to_numpy(dtype=np.float64)
    return np.bincount(cells, weights, size * size).astype(np.float64).reshape(size, size)


def _scale(ax: Axes, n_workers: int) -> None:
    step = -(-n_workers // 16)
    ticks = range(0, n_workers, step)
    ax.set_xticks(ticks, map(str, ticks))
    ax.set_yticks(ticks, map(str, ticks))
    ax.set(xlabel="receiver", ylabel="sender")
    ax.grid(visible=False)
    ax.tick_params(axis="x", labelrotation=90 if n_workers > 99 else 0)  # noqa: PLR2004 -- three digits touch


def _say_bytes(ax: Axes, sent: NDArray[np.float64]) -> None:
    for (src, dst), n_bytes in np.ndenumerate(sent):
        if n_bytes:
            number, _, unit = format_bytes(int(n_bytes)).partition(" ")
            dark = n_bytes > 0.6 * sent.max()
            color = "white" if dark else canvas.INK
            ax.text(dst, src, f"{number}\n{unit}", size=5, color=color, ha="center", va="center")
