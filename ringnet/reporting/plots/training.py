"""A training: its loss, and how far other ways of taking the step part from the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringnet.reporting.plots import axes, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ringnet.reporting.results import Results

#: From this ratio on, losses are drawn on a logarithmic axis.
_FAR = 30


@canvas.in_style
def training_ways(results: Results) -> Figure:
    """Draw loss over steps above, and below how far each way's parameters are from the right ones."""
    right, ways = results.training, results.divergence
    assert right is not None
    assert ways is not None
    figure, (loss, parted) = canvas.new_figure(3.6, 2)
    names = list(dict.fromkeys(ways["way"]))
    colors = dict(zip(["right", *names], canvas.colors(len(names) + 1), strict=True))
    loss.plot(right["step"], right["loss"], color=colors["right"], lw=2.2, alpha=0.45)
    for name in names:
        rows = ways[ways["way"] == name]
        style = {"color": colors[name], "ls": (0, (4, 3)) if name == "one process" else "-"}
        loss.plot(rows["step"], rows["loss"], **style)
        above = rows[rows["parted"] > 0]
        parted.plot(above["step"], above["parted"], **style)
    losses = np.concatenate([right["loss"].dropna(), ways["loss"].dropna()])
    if losses.min() > 0 and losses.max() > _FAR * losses.min():
        loss.set_yscale("log")
        axes.logarithmic(loss.yaxis, "number", "loss")
    else:
        axes.linear(loss.yaxis, "number", "loss")
    if (ways["parted"] > 0).any():
        parted.set_yscale("log")
        axes.logarithmic(parted.yaxis, "number", "apart from the right way")
    else:
        parted.set_ylabel("apart from the right way")
    axes.linear(parted.xaxis, "number", "step")
    handles = [canvas.stroke(color, name) for name, color in colors.items()]
    about = canvas.settings(
        results.summary, "loss of each step's examples; largest difference of a parameter"
    )
    return canvas.titled(figure, results.name, about, handles)
