"""The comparison as a table and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ringnet.reporting.plots import canvas
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
    small = [
        max(1 + point.error, 1 / (1 + point.error)) for point in points if point.message_bytes < LARGE_BYTES
    ]
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
        canvas.save(figure, path, path.suffix[1:])
    return paths


@canvas.in_style
def draw(rows: pd.DataFrame):
    """Times, measured as marks and predicted as lines; below, the errors with the promised bounds."""
    figure, (above, below) = canvas.new_figure(4.6, 2)
    groups = list(rows.groupby(["case", "n_workers"], sort=False))
    for ((case, n_workers), group), color, marker in zip(
        groups, canvas.colors(len(groups)), canvas.markers(len(groups)), strict=True
    ):
        size = group.message_bytes
        above.plot(size, group.predicted_s * 1e3, color=color)
        above.plot(size, group.measured_s * 1e3, marker, color=color, label=f"{case}, N={n_workers}")
        below.plot(size, group.error * 100, marker, color=color)
    small, large = rows.message_bytes.min(), rows.message_bytes.max()
    below.fill_between([LARGE_BYTES, large], -12, 12, color=canvas.PALE, alpha=0.4, lw=0)
    below.axhline(0, color=canvas.GREY, lw=0.6)
    above.set(xscale="log", yscale="log", ylabel="makespan (ms)")
    below.set(ylabel="predicted, less measured (%)", xlabel="message")
    ticks = [2.0**power for power in range(int(np.log2(small)), int(np.log2(large)) + 1, 2)]
    below.set_xticks(ticks, [format_bytes(tick) for tick in ticks])
    below.minorticks_off()
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=5.5)
    figure.suptitle(
        "Predicted from two workers (lines), measured over TCP (marks)", fontsize=8, fontweight="bold", x=0.5
    )
    return figure
