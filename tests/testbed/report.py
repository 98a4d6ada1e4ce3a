"""The comparison as a table and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ringnet.reporting.plots import axes, canvas
from ringnet.units import format_bytes
from tests.testbed.study import Point

#: From here on messages are large, and the promise is closer.
LARGE_BYTES = 256 * 1024


def table(points: Sequence[Point]) -> pd.DataFrame:
    """One row per network and size; times in seconds, the error as a share of the measurement."""
    return pd.DataFrame([vars(point) | {"error": point.error} for point in points])


def verdict(points: Sequence[Point]) -> str:
    """Two sentences on how good the predictions were, for large messages and for small ones."""
    large = [abs(point.error) for point in points if point.message_bytes >= LARGE_BYTES]
    small = [max(1 + point.error, 1 / (1 + point.error)) for point in points if point.message_bytes < LARGE_BYTES]
    return (
        f"{format_bytes(LARGE_BYTES)} and more, {len(large)} points: median error {np.median(large):.1%}, "
        f"worst {max(large):.1%}. Smaller, {len(small)} points: within a factor of {max(small):.2f}."
    )


def write(points: Sequence[Point], folder: Path) -> list[Path]:
    """Write ``testbed.csv``, ``testbed.png`` and ``testbed.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"testbed.{ending}" for ending in ("csv", "png", "svg")]
    table(points).to_csv(paths[0], index=False, float_format="%.6g", lineterminator="\n")
    figure = draw(table(points))
    for path in paths[1:]:
        canvas.save(figure, {path.suffix[1:]: path})
    return paths


@canvas.in_style
def draw(rows: pd.DataFrame):
    """Times, measured as marks and predicted as lines; below, the errors and how large they may be."""
    figure, (above, below) = canvas.new_figure(3.6, 2)
    groups = list(rows.groupby(["case", "n_workers"], sort=False))
    colors, markers = canvas.colors(len(groups)), canvas.markers(len(groups))
    handles = []
    for ((case, n_workers), group), color, marker in zip(groups, colors, markers, strict=True):
        above.plot(group.message_bytes, group.predicted_s, color=color)
        above.plot(group.message_bytes, group.measured_s, marker, color=color)
        below.plot(group.message_bytes, group.error * 100, marker, color=color)
        handles.append(canvas.stroke(color, f"{case}, N={n_workers}", marker=marker, linestyle=""))
    below.fill_between([LARGE_BYTES, rows.message_bytes.max()], -12, 12, color=canvas.PALE, alpha=0.4, lw=0)
    _scale(above, below)
    kinds = [canvas.stroke(canvas.GREY, "predicted"), canvas.patch(canvas.PALE, "promised: worst 12 %")]
    title = "A real ring over TCP, predicted from two workers"
    about = "marks: medians between network namespaces, 200 Mbit/s, 2 ms"
    return canvas.titled(figure, title, about, handles, kinds)


def _scale(above, below):
    above.set_xscale("log", base=2)
    above.set_yscale("log")
    axes.logarithmic(above.yaxis, "seconds", "makespan")
    ticks = [2.0**power for power in range(12, 25, 3)]
    below.set_xticks(ticks, [format_bytes(tick) for tick in ticks])
    below.set_xlabel("message size")
    below.axhline(0, color=canvas.GREY, lw=0.6)
    below.set_ylabel("error (%)")
