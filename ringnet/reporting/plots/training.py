"""A training: its loss, and how far other ways of taking the step part from the right one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.ticker import MaxNLocator

from ringnet.reporting.plots import axes, canvas
from ringnet.reporting.sweeps import settings

if TYPE_CHECKING:
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
