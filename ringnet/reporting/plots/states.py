"""Every worker's buffer, step by step and with its values, as in a lecture: partial, complete, and sent next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.patches import Rectangle

from ringnet.array_types import FloatArray, IntArray
from ringnet.reporting.held import Holdings, Sent, elements_of, holding, sent
from ringnet.reporting.plots import canvas
from ringnet.reporting.sweeps import settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: Inches: the height of a row, of what stands above a table, of the numbers beside it, the least width of a cell.
ROW_IN, ABOVE_IN, BESIDE_IN, CELL_IN = 0.2, 0.3, 0.2, 0.3
VALUE_PT = 6.0
#: White in the colour of a chunk with one part, and of a whole one.
PALEST, WHOLE = 0.78, 0.0


class Moment(NamedTuple):
    """The buffers at one time: a name, values by worker and element, who holds what, and what is sent next."""

    name: str
    values: FloatArray
    held: IntArray
    following: tuple[Sent, ...]


@canvas.in_style
def states(results: Results) -> Figure:
    """Draw a table of all buffers at the start and after every step."""
    assert results.states is not None  # `PLOTS` says when a plot applies
    held = holding(results)
    assert held is not None
    assert results.transfers is not None
    moments = list(_moments(results.states, held, sent(results.transfers, held)))
    n_workers, n_elements = moments[0].values.shape
    texts = [[[short(value) for value in row] for row in moment.values] for moment in moments]
    longest = max(canvas.text_in(text, VALUE_PT) for table in texts for row in table for text in row)
    table_in = BESIDE_IN + n_elements * max(CELL_IN, longest + 0.1)
    n_columns = max(1, min(len(moments), int(canvas.width_in() / (table_in + 0.1))))
    n_rows = -(-len(moments) // n_columns)
    height_in = n_rows * (ABOVE_IN + n_workers * ROW_IN)
    figure, panels = canvas.new_figure(height_in, n_rows, n_columns, sharex=False)
    for ax, moment, table in zip(panels, moments, texts, strict=False):
        _table(ax, moment, table, held)
    for ax in panels[len(moments) :]:
        ax.set_visible(False)
    legend = [
        canvas.patch(canvas.paler(canvas.GREY, PALEST), "partial"),
        canvas.patch(canvas.paler(canvas.GREY, 0.3), "complete"),
        canvas.patch("white", "sent in the next step", edgecolor=canvas.INK, linewidth=1.4),
    ]
    about = settings(results.summary, "each row a worker, each colour a chunk")
    return canvas.titled(figure, results.name, about, legend)


def short(value: float) -> str:
    """Write a value in few digits.

    >>> short(333.0), short(0.25), short(1234567.0)
    ('333', '0.25', '1.235e+06')
    """
    return f"{value:.4g}"


def _moments(frame: pd.DataFrame, held: Holdings, transfers: list[Sent]) -> Iterator[Moment]:
    """Yield the start and the end of every step."""
    now = held.first.copy()
    of_step: dict[tuple[object, ...], list[Sent]] = {}
    for one in transfers:
        of_step.setdefault((one.phase, one.step), []).append(one)
    elements = [name for name in frame.columns if name not in ("phase", "step", "worker")]
    tables = [(key, rows) for key, rows in frame.groupby(["phase", "step"], sort=False, dropna=False)]
    for place, (key, rows) in enumerate(tables):
        for one in of_step.get(key, ()):
            one.apply(now)
        following = of_step.get(tables[place + 1][0], ()) if place + 1 < len(tables) else ()
        phase, step = key
        name = str(phase) if place == 0 else f"{phase}, step {step}"
        values = rows.sort_values("worker")[elements].to_numpy(dtype=np.float64)
        yield Moment(name, values, now.copy(), tuple(following))


def _table(ax: Axes, moment: Moment, texts: list[list[str]], held: Holdings) -> None:
    n_workers, n_elements = moment.values.shape
    parts = elements_of(held)
    colors = canvas.chunk_colors(len(parts))
    for worker in range(n_workers):
        for chunk, elements in enumerate(parts):
            face = shade(colors[chunk], int(moment.held[worker, chunk]), held.complete)
            for element in elements:
                ax.add_patch(Rectangle((element, worker), 1, 1, facecolor=face, edgecolor="white", linewidth=0.8))
                is_whole = moment.held[worker, chunk] == held.complete
                ax.text(
                    element + 0.5,
                    worker + 0.5,
                    texts[worker][element],
                    size=VALUE_PT,
                    weight="bold" if is_whole else "normal",
                    color=canvas.on(face),
                    ha="center",
                    va="center_baseline",
                )
    for one in moment.following:
        first, last = parts[one.chunks.start].start, parts[one.chunks.stop - 1].stop
        box = (first + 0.04, one.src + 0.06)
        ax.add_patch(
            Rectangle(box, last - first - 0.08, 0.88, fill=False, edgecolor=canvas.INK, linewidth=1.2, zorder=3)
        )
    ax.set(xlim=(0, n_elements), ylim=(n_workers, 0))
    ax.set_xticks([])
    ax.set_yticks(np.arange(n_workers) + 0.5, [str(worker) for worker in range(n_workers)])
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    ax.set_title(moment.name, size=canvas.font_size(), loc="left", pad=2.5)


def shade(color: str, held: int, whole: int) -> str:
    """Return the colour of a chunk, the deeper the more parts it has; white where there is nothing."""
    if not held:
        return "#ffffff"
    return canvas.paler(color, PALEST + (WHOLE - PALEST) * held / whole) if held != whole else color
