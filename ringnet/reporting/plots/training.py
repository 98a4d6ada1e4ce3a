"""A training: its loss beside that of other ways; the time of its step, computation over communication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import MaxNLocator

from ringnet.reporting.columns import TABLES
from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.sweeps import key_words, settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: Of the right way: below the others, and seen where they cover it.
_RIGHT: dict[str, Any] = {"color": canvas.PALE, "lw": 4}
#: A loss of so many times the right way's largest is left to leave the picture.
_FAR = 2


@canvas.in_style
def training_ways(results: Results) -> Figure:
    """Draw loss over steps above, and below how far each way's parameters are from the right ones."""
    right, ways = results.training, results.divergence
    assert right is not None
    assert ways is not None
    figure, (loss, parted) = canvas.new_figure(3.6, 2)
    names = list(dict.fromkeys(ways["way"]))
    colors = dict(zip(names, canvas.colors(len(names)), strict=True))
    loss.plot(right["step"], right["loss"], **_RIGHT)
    for name in names:
        rows = ways[ways["way"] == name]
        style = _style(name, colors[name])
        loss.plot(rows["step"], rows["loss"], **style)
        above = rows[rows["parted"] > 0]
        parted.plot(above["step"], above["parted"], **style)
    top = _FAR * right["loss"].max()
    leaves = bool(top > 0 and (ways["loss"] > top).any())
    if leaves:
        low, _ = loss.get_ylim()
        loss.set_ylim(max(low, 0), top)
    axes.linear(loss.yaxis, "number", "loss")
    if (ways["parted"] > 0).any():
        parted.set_yscale("log")
        axes.logarithmic(parted.yaxis, "number", "apart from the right way")
    else:
        parted.set_ylabel("apart from the right way")
    parted.xaxis.set_major_locator(MaxNLocator(integer=True))
    parted.set_xlabel("step")
    handles = [canvas.stroke(label="right", **_RIGHT)]
    handles += [canvas.stroke(label=name, **_style(name, color)) for name, color in colors.items()]
    cut = ", cut off above" if leaves else " of each step's examples"
    about = settings(results.summary, f"loss{cut}; largest difference of a parameter")
    return canvas.titled(figure, results.name, about, handles)


def _style(name: str, color: str) -> dict[str, Any]:
    return {"color": color, "ls": (0, (4, 3)) if name == "one process" else "-"}


#: Workers and points that are drawn; of more some, evenly chosen.
MOST_WORKERS, MOST_POINTS = 8, 24
#: Inches of a worker, of a group's collectives, of a point.
WORKER_IN, POINT_IN = 0.24, 0.2
_COMPUTED = {"forward": canvas.CHUNKS[0], "backward": canvas.PALETTE[0], "update": canvas.PALETTE[2]}
_SENT = {"all-reduce": canvas.PALETTE[1], "reduce-scatter": canvas.PALETTE[3], "all-gather": canvas.CHUNKS[1]}
_PARTS = {
    "compute_s": ("computation", canvas.PALETTE[0]),
    "exposed_s": ("exposed communication", canvas.PALETTE[1]),
    "idle_s": ("idle", canvas.PALE),
}


@canvas.in_style
def step_timeline(name: str, table: pd.DataFrame) -> Figure:
    """Draw what each worker computed when, and below it what its group sent meanwhile."""
    computed = table.dropna(subset="worker")
    pairs = zip(computed["group"].astype(str), computed["worker"].astype(int), strict=True)
    chosen, said = canvas.evenly_chosen(list(dict.fromkeys(pairs)), MOST_WORKERS, "workers")
    groups = list(dict.fromkeys(table["group"].astype(str)))
    lanes: list[tuple[str, int | None]] = [
        lane for group in groups for lane in (*(one for one in chosen if one[0] == group), (group, None))
    ]
    figure, (ax,) = canvas.new_figure(0.5 + WORKER_IN * len(lanes))
    labels = [
        _draw_lane(ax, -place, table, group, worker, several=len(groups) > 1)
        for place, (group, worker) in enumerate(lanes)
    ]
    ax.set_yticks([-place for place in range(len(lanes))], labels)
    ax.grid(visible=False, axis="y")
    largest = float(table["end_s"].max())
    ax.set_xlim(0, 1.01 * largest)
    axes.linear(ax.xaxis, "seconds", "time", largest)
    shown = {**_COMPUTED, **_SENT}
    legend = [canvas.patch(shown[kind], kind) for kind in shown if (table["kind"] == kind).any()]
    about = ", ".join(filter(None, ("a step of training: computation over communication", said)))
    return canvas.titled(figure, name, about, legend)


def _draw_lane(ax: Axes, at: float, table: pd.DataFrame, group: str, worker: int | None, *, several: bool) -> str:
    """Draw what one worker computed, or what its group sent; return the label of the lane."""
    of_group = table[table["group"] == group]
    rows = of_group[of_group["worker"].isna()] if worker is None else of_group[of_group["worker"] == worker]
    for kind, color in (_SENT if worker is None else _COMPUTED).items():
        spans = rows[rows["kind"] == kind]
        widths = zip(spans["start_s"], spans["end_s"] - spans["start_s"], strict=True)
        ax.broken_barh([*widths], (at - 0.4, 0.8), facecolor=color, edgecolor="white", linewidth=0.15, zorder=2)
    label = "network" if worker is None else f"worker {worker}"
    return f"{canvas.clipped(group, 12)}: {label}" if several else label


@canvas.in_style
def step_parts(name: str, table: pd.DataFrame) -> Figure:
    """Draw what the step of each point is made of: computation, exposed communication, idle time."""
    finished = table[table["step_s"].notna()]
    places, said = canvas.evenly_chosen(range(len(finished)), MOST_POINTS, "points")
    rows = finished.iloc[places]
    swept = [column for column in table.columns if column not in TABLES["step"]]
    labels = [", ".join(str(row[key]) for key in swept) for row in rows.to_dict("records")]
    figure, (ax,) = canvas.new_figure(0.5 + POINT_IN * len(rows))
    at, left = [-place for place in range(len(rows))], rows["step_s"] * 0
    for column, (_, color) in _PARTS.items():
        ax.barh(at, rows[column], left=left, height=0.75, color=color, zorder=2)
        left += rows[column]
    ax.set_yticks(at, [canvas.clipped(label, 28) for label in labels])
    ax.grid(visible=False, axis="y")
    ax.set_ylabel(", ".join(map(key_words, swept)))
    axes.linear(ax.xaxis, "seconds", "time of a step, mean over workers", float(rows["step_s"].max()))
    legend = [canvas.patch(color, label) for label, color in _PARTS.values()]
    about = ", ".join(filter(None, ("what a step of training is made of", said)))
    return canvas.titled(figure, name, about, legend)
