"""The network itself: workers, switches, every link as wide as what crossed it, and who sends to whom."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from ringnet.array_types import BoolArray, FloatArray
from ringnet.reporting.plots import canvas
from ringnet.reporting.plots.canvas import clipped
from ringnet.reporting.plots.positions import WIDTH, NodePositions, Point, is_place, lay_out
from ringnet.reporting.sweeps import settings
from ringnet.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from ringnet.reporting.results import Results


#: Pairs of workers that send: so many are drawn at most, so many with arrows.
MOST_SENDS, MOST_ARROWS = 2048, 96
#: Widths of links in points, from idle to the most used, and how far apart two directions are, in inches.
IDLE_PT, LEAST_PT, MOST_PT, APART = 0.5, 0.7, 3.2, 0.022
#: Points of width that all links of one node have together, and idle links from which each is thinner.
FAN_PT, MANY_IDLE = 160.0, 600
#: Links that are busy for this share of the time of the busiest are busy alike: chunks differ by an element.
ALIKE = 0.99
#: Room in inches that a worker needs for its number to be inside, and what it has at most.
NUMBERED, LARGEST = 0.1, 0.21
#: Room in inches that a name beside others needs if it is written upright.
UPRIGHT = 0.09
#: Inches that are none.
TOUCH = 1e-6
SENDS, LINKS = canvas.PALETTE[2], canvas.PALETTE[0]
_POINTS = 72


@canvas.in_style
def network(results: Results) -> Figure:
    """Draw the network of a single run: links by their traffic, the busiest in another colour."""
    links, places = _facts(results)
    layout = lay_out(zip(links["from"], links["to"], strict=True), places)
    links = links[links["from"].isin(layout.points) & links["to"].isin(layout.points)].reset_index(drop=True)
    figure, (ax,) = canvas.new_figure(layout.height)
    ax.set(xlim=(0, WIDTH), ylim=(0, layout.height), aspect="equal")
    ax.axis("off")
    nodes = _draw_nodes(ax, layout, places) + _draw_sends(ax, layout, places, results.transfers)
    words = "links: wider is more bytes, deeper is busier"
    return canvas.titled(figure, results.name, settings(results.summary, words), nodes, _draw_links(ax, layout, links))


def _facts(results: Results) -> tuple[pd.DataFrame, list[str]]:
    """Return the links, and the nodes where the workers sit."""
    assert results.links is not None  # `PLOTS` says when a plot applies
    workers = results.workers
    if workers is not None and "place" in workers:
        return results.links, [str(place) for place in workers["place"]]
    return results.links, [str(worker) for worker in range(int(results.summary["n_workers"].iloc[0]))]


# ----------------------------------------------------------------------------------------------------- links


def _draw_links(ax: Axes, layout: NodePositions, links: pd.DataFrame) -> list[Artist]:
    """Draw each direction on its own side of the cable, the most used on top."""
    used = links["bytes"].to_numpy(dtype=np.float64)
    share = used / (used.max() or 1.0)
    hot = _hottest(links)
    order = np.lexsort((share, hot))
    lines = [_way(layout, row) for row in zip(links["from"], links["to"], links["link"], strict=True)]
    least, most = _widths(layout, links[used > 0])
    widths = np.where(used > 0, least + (most - least) * share, _idle_width(int((used == 0).sum())))
    busy = links["utilisation"].fillna(0.0)
    colors = [_color(*row) for row in zip(used.tolist(), busy.tolist(), hot.tolist(), strict=True)]
    collection = LineCollection(
        [lines[link] for link in order],
        linewidths=widths[order],
        colors=[colors[link] for link in order],
        capstyle="butt",
        zorder=2,
    )
    ax.add_collection(collection, autolim=False)
    return _link_legend(links, used, hot)


def _widths(layout: NodePositions, used: pd.DataFrame) -> tuple[float, float]:
    """Return the least and the largest width in points of links that are used: narrow where many come to one node."""
    at_one_node = pd.concat([used["from"], used["to"]]).value_counts().max() if len(used) else 1
    most = max(LEAST_PT, min(MOST_PT, 0.22 * layout.room * _POINTS))
    most = min(most, max(IDLE_PT, FAN_PT / at_one_node))
    return min(LEAST_PT, most), most


def _idle_width(n_idle: int) -> float:
    """Return the width in points of links that nobody used: thousands are a shade behind the others."""
    return IDLE_PT * max(0.15, min(1.0, MANY_IDLE / max(1, n_idle)))


def _hottest(links: pd.DataFrame) -> BoolArray:
    """Return which links were busy longest; none where all that were used are alike."""
    busy = links["busy_s"].to_numpy(dtype=np.float64)
    hot = (busy >= ALIKE * busy.max(initial=0.0)) & (busy > 0)
    return np.zeros_like(hot) if (hot == (busy > 0)).all() else hot


def _color(used: float, utilisation: float, hot: bool) -> str | tuple[float, ...]:
    """Return grey for an idle link, else blue, the deeper the busier."""
    if hot:
        return canvas.ALERT
    if not used:
        return canvas.PALE
    depth = 0.45 + 0.55 * min(1.0, utilisation)
    return tuple(1 - depth * (1 - part) for part in to_rgb(LINKS))


def _link_legend(
    links: pd.DataFrame,
    used: FloatArray,
    hot: BoolArray,
) -> list[Artist]:
    legend = [canvas.stroke(canvas.PALE, "idle", linewidth=1.0)] if (used == 0).any() else []
    if (used > 0).any():
        alike = "" if hot.any() else ", all alike"
        legend.append(canvas.stroke(LINKS, f"up to {format_bytes(int(used.max()))}{alike}", linewidth=2.0))
    if hot.any():
        busiest = links.loc[hot.argmax()]
        name = clipped(str(busiest["link"]), 16) if hot.sum() == 1 else f"{hot.sum()} links"
        label = f"busiest: {name}, {100 * busiest['utilisation']:.3g} %"
        legend.append(canvas.stroke(canvas.ALERT, label, linewidth=2.4))
    return legend


def _way(layout: NodePositions, link: tuple[str, str, str]) -> FloatArray:
    """Return the line of one direction, beside that of the other."""
    start, end = layout.points[link[0]], layout.points[link[1]]
    aside = 0.0 if "<->" in link[2] else APART
    if any(link[0] in row and link[1] in row for row in layout.rows):
        lift = 0.1 + 0.09 * math.dist(start, end)
        return _curve(start, (0.5 * (start[0] + end[0]), start[1] + 2 * lift + 2 * aside * (start < end)), end)
    length = math.dist(start, end) or 1.0
    right = (end[1] - start[1]) / length * aside, -(end[0] - start[0]) / length * aside
    return np.array([start, end]) + right


def _curve(start: Point, control: Point, end: Point, n_points: int = 17) -> FloatArray:
    t = np.linspace(0, 1, n_points)[:, None]
    weights = np.hstack([(1 - t) ** 2, 2 * t * (1 - t), t**2])
    return weights @ np.array([start, control, end], dtype=np.float64)


# ------------------------------------------------------------------------------------------ who sends to whom


def _draw_sends(ax: Axes, layout: NodePositions, places: Sequence[str], transfers: pd.DataFrame | None) -> list[Artist]:
    """Lay over the links who sends to whom: the edges of the ring."""
    if transfers is None:
        return []
    # What goes to switches that reduce, and from them, goes where the links are.
    between = transfers[(transfers[["src", "dst"]] < len(places)).all(axis=1)]
    pairs = between[["src", "dst"]].drop_duplicates().to_numpy().tolist()
    if not pairs:
        return []
    if len(pairs) > MOST_SENDS:
        return [canvas.stroke("none", f"{len(pairs):,} pairs of workers send to each other")]
    bends = [_bend(layout, places[src], places[dst]) for src, dst in pairs]
    if len(pairs) <= MOST_ARROWS:
        _draw_arrows(ax, bends, _radius(layout))
    else:
        curves = [_curve(*bend) for bend in bends]
        ax.add_collection(LineCollection(curves, linewidths=0.5, colors=SENDS, zorder=3), autolim=False)
    return [canvas.stroke(SENDS, "sends to", linewidth=0.8)]


def _draw_arrows(ax: Axes, bends: Sequence[tuple[Point, Point, Point]], radius: float) -> None:
    head = 2.0 if radius > 0.06 else 1.1  # noqa: PLR2004 -- small workers stand close together
    for bend in bends:
        arrow = FancyArrowPatch(
            path=_shortened(bend, radius),
            arrowstyle="-|>,head_length=1.6,head_width=0.8",
            mutation_scale=head,
            linewidth=0.7,
            color=SENDS,
            zorder=3,
            shrinkA=0,
            shrinkB=0,
        )
        ax.add_patch(arrow)


def _bend(layout: NodePositions, src: str, dst: str) -> tuple[Point, Point, Point]:
    """Return the curve of a pair: away from the centre of a circle, below a row of workers, else to the left."""
    start, end = layout.points[src], layout.points[dst]
    middle, length = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1])), math.dist(start, end)
    if layout.rows:
        depth = min(0.84, 0.22 + 0.22 * length)
        return start, (middle[0], middle[1] - depth), end
    if layout.centre is not None:
        away = middle[0] - layout.centre[0], middle[1] - layout.centre[1]
        reach = math.hypot(*away)
        out = max(0.12, min(0.3, 0.28 * length)) / reach if reach > 1e-9 else 0.0  # noqa: PLR2004 -- right across the circle
        return start, (middle[0] + out * away[0], middle[1] + out * away[1]), end
    bend = min(0.22, 0.3 * length) / (length or 1.0)
    return start, (middle[0] - bend * (end[1] - start[1]), middle[1] + bend * (end[0] - start[0])), end


def _shortened(bend: tuple[Point, Point, Point], radius: float) -> Path:
    """Return the curve without what lies under the nodes at its ends."""
    start, control, end = bend
    points = _curve(start, control, end, 129)
    free = [point for point in points if math.dist(point, start) > radius and math.dist(point, end) > radius * 1.1]
    return Path(free if len(free) > 1 else points)


# ----------------------------------------------------------------------------------------------------- nodes


def _radius(layout: NodePositions) -> float:
    return min(LARGEST, 0.68 * layout.room) / 2


def _draw_nodes(ax: Axes, layout: NodePositions, places: Sequence[str]) -> list[Artist]:
    workers = {place: worker for worker, place in enumerate(places)}
    radius = _radius(layout)
    empty = [node for node in layout.points if node not in workers and is_place(node)]
    switches = [node for node in layout.points if node not in workers and not is_place(node)]
    _dots(ax, layout, [*workers], canvas.INK, radius)
    _dots(ax, layout, empty, canvas.PALE, radius)
    _squares(ax, layout, switches)
    _number(ax, layout, workers, radius)
    legend = [canvas.stroke(canvas.INK, "worker", marker="o", linestyle="none")]
    if empty:
        legend.append(canvas.stroke(canvas.PALE, "empty place", marker="o", linestyle="none"))
    if switches:
        legend.append(canvas.stroke(canvas.SOLID, "switch", marker="s", linestyle="none"))
    return legend


def _dots(ax: Axes, layout: NodePositions, nodes: Sequence[str], color: str, radius: float) -> None:
    if nodes:
        xy = np.array([layout.points[node] for node in nodes])
        ax.scatter(xy[:, 0], xy[:, 1], s=(2 * radius * _POINTS) ** 2, color=color, linewidths=0, zorder=4)


def _number(ax: Axes, layout: NodePositions, workers: dict[str, int], radius: float) -> None:
    """Write numbers into the workers; where they are too small, beside some of them: of a grid, on its rim."""
    inside = 2 * radius >= NUMBERED
    digits = len(str(len(workers) - 1))
    size = min(6.5, 2 * radius * _POINTS / (0.72 * digits + 0.5)) if inside else 5.5
    step = 1 if inside else math.ceil((0.06 * digits + 0.04) / layout.room)
    for node, worker in workers.items():
        if worker % step == 0 and (inside or _is_outside(layout, node)):
            x, y = layout.points[node] if inside else _beside(layout, node, radius + 0.15)
            color = "white" if inside else canvas.INK
            halo = [] if inside else [withStroke(linewidth=1.6, foreground="white")]  # arrows pass below it
            ax.text(
                x,
                y,
                str(worker),
                size=size,
                color=color,
                ha="center",
                va="center_baseline",
                zorder=5,
                path_effects=halo,
            )


def _is_outside(layout: NodePositions, node: str) -> bool:
    """Whether there is room beside a node: in a grid only to the left of it and below."""
    if layout.rows or layout.centre is not None:
        return True
    return any(layout.points[node][axis] <= min(at[axis] for at in layout.points.values()) + TOUCH for axis in (0, 1))


def _beside(layout: NodePositions, node: str, far: float) -> Point:
    """Return a place for a number: outside the circle, to the left of a grid, or below."""
    x, y = layout.points[node]
    if layout.centre is None:
        left = not layout.rows and x <= min(at[0] for at in layout.points.values()) + TOUCH
        return (x - far, y) if left else (x, y - far)
    away = x - layout.centre[0], y - layout.centre[1]
    reach = math.hypot(*away) or 1.0
    return x + far * away[0] / reach, y + far * away[1] / reach


def _squares(ax: Axes, layout: NodePositions, switches: Sequence[str]) -> None:
    for group in _groups(layout, switches):
        xy = np.array([layout.points[node] for node in group])
        room = (WIDTH - 0.2) / len(group)
        ax.scatter(
            xy[:, 0],
            xy[:, 1],
            s=(min(0.13, 0.6 * room) * _POINTS) ** 2,
            marker="s",
            color=canvas.SOLID,
            linewidths=0,
            zorder=4,
        )
        _name(ax, layout, group, room)


def _groups(layout: NodePositions, switches: Sequence[str]) -> Iterator[list[str]]:
    """Yield the switches of each row; all of them in other layouts."""
    for row in layout.rows or (tuple(layout.points),):
        group = [node for node in row if node in {*switches}]
        if group:
            yield group


def _name(ax: Axes, layout: NodePositions, group: Sequence[str], room: float) -> None:
    """Write the names above the switches, upright where they would touch; if these do too, the first and the last."""
    widest = 0.05 * (max(map(len, group)) + 0.6)
    fits, upright = widest < room, widest >= room >= UPRIGHT
    for node in group if fits or upright else (group[0], group[-1]):
        x, y = layout.points[node]
        if not (fits or upright):
            x = max(x, widest / 2) if node == group[0] else min(x, WIDTH - widest / 2)
        ax.text(
            x,
            y + (0.09 if upright else 0.12),
            clipped(node, 9 if upright else 20),
            rotation=90 if upright else 0,
            size=5.5,
            color=canvas.INK,
            ha="center",
            va="bottom",
            zorder=5,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
        )
