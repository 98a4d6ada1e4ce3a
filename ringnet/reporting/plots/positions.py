"""Where the nodes of a network stand in a picture, in inches: a circle, a star, a grid, or layers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from ringnet.networks.shape import is_card

Point: TypeAlias = tuple[float, float]
#: Width of a picture, and the most that it is high.
WIDTH, MOST_HEIGHT = 3.3, 4.2
#: Room between a node and the edge of the picture, between layers, and between the planes of a grid of three sides.
MARGIN, STOREY, PLANE_GAP = 0.2, 0.62, 0.25


@dataclass(frozen=True)
class NodePositions:
    """Positions of nodes.

    Parameters
    ----------
    points : dict of str to (x, y)
        In inches from the lower left corner.
    height : float
    rows : tuple of tuple of str
        The layers, workers first; none in other layouts.
    centre : (x, y) or None
        What curves bend away from; None where they bend downwards.
    least : float
        What nodes that are no neighbours along a row are apart at least.
    """

    points: dict[str, Point]
    height: float
    rows: tuple[tuple[str, ...], ...] = ()
    centre: Point | None = None
    least: float = WIDTH

    @property
    def room(self) -> float:
        """The least distance between neighbours along a row or the circle."""
        rows = self.rows or (tuple(self.points),)
        gaps = [math.dist(self.points[one], self.points[next_one]) for row in rows for one, next_one in pairwise(row)]
        return min([*gaps, self.least])


def lay_out(links: Iterable[tuple[str, str]], workers: Sequence[str]) -> NodePositions:
    """Choose a layout by what is joined to what.

    Parameters
    ----------
    links : iterable of (start, end)
    workers : sequence of str
        The nodes where workers sit, in order.

    Examples
    --------
    >>> sorted(lay_out([("0", "hub"), ("1", "hub")], ["0", "1"]).points)
    ['0', '1', 'hub']
    """
    beside: dict[str, set[str]] = defaultdict(set)
    for start, end in links:
        beside[start].add(end)
        beside[end].add(start)
    ports = _idle_ports(beside)
    places = sorted({*workers, *filter(is_place, beside)} - ports, key=_natural)
    others = sorted({*beside} - {*places} - ports, key=_natural)
    if not others:
        sides = grid_sides(beside, len(places)) if places == [*map(str, range(len(places)))] else ()
        return _grid(sides) if len(sides) > 1 else _circle(places)
    if len(others) == 1 and all(beside[place] <= {*others} for place in places):
        return _circle(places, hub=others[0])
    return _layers(beside, places, ports)


def _idle_ports(beside: Mapping[str, set[str]]) -> set[str]:
    """Return the free places that are no place for a worker: those of a network that joins cards of hosts."""
    if not any(map(is_card, beside)):
        return set()
    return {node for node in beside if is_place(node) and not node.isdecimal()}


def is_place(node: str) -> bool:
    """Whether a node is a worker's place, taken or free, by its name.

    >>> is_place("3"), is_place("free3"), is_place("leaf3")
    (True, True, False)
    """
    return node.removeprefix("free").isdecimal()


def _natural(name: str) -> tuple[str, int, str]:
    """Sort ``leaf2`` before ``leaf10``."""
    digits = name[len(name.rstrip("0123456789")) :]
    return name.removesuffix(digits), int(digits or 0), name


def _circle(nodes: Sequence[str], hub: str = "") -> NodePositions:
    """Put nodes on a circle, clockwise from the top."""
    radius, middle = WIDTH / 2 - MARGIN - 0.12, WIDTH / 2
    at = {}
    for place, node in enumerate(nodes):
        angle = math.pi / 2 - 2 * math.pi * place / len(nodes)
        at[node] = (middle + radius * math.cos(angle), middle + radius * math.sin(angle))
    if hub:
        at[hub] = (middle, middle)
    return NodePositions(at, WIDTH, centre=(middle, middle))


# ----------------------------------------------------------------------------------------------------- grids


def grid_sides(beside: Mapping[str, set[str]], n_nodes: int) -> tuple[int, ...]:
    """Find the sides of a mesh or torus whose nodes are numbered row by row; none where there is no such thing.

    >>> grid_sides({"0": {"1", "2"}, "1": {"0", "3"}, "2": {"0", "3"}, "3": {"1", "2"}}, 4)
    (2, 2)
    """
    sides: list[int] = []
    while (stride := math.prod(sides)) < n_nodes:
        here = 0
        while str(here + stride) in beside[str(here)]:
            here += stride
        side = here // stride + 1
        if side == 1 or n_nodes % (stride * side):
            return ()
        sides.append(side)
    return tuple(sides)


def _grid(sides: tuple[int, ...]) -> NodePositions:
    """Put nodes in rows; a third side makes planes, each up and to the right of the one before, all within a cell."""
    across, down = sides[0], sides[1]
    deep = math.prod(sides[2:])
    part = (deep - 1) / deep
    gap = min((WIDTH - 2 * MARGIN) / max(1, across - 1 + part), MOST_HEIGHT / max(1, down - 1 + part), 0.8)
    shift = min(PLANE_GAP, gap / deep)
    planes = (deep - 1) * shift
    at = {}
    for node in range(math.prod(sides)):
        x, y, z = node % across, node // across % down, node // (across * down)
        at[str(node)] = (MARGIN + x * gap + z * shift, MARGIN + (down - 1 - y) * gap + z * shift)
    middle = (WIDTH - 2 * MARGIN - (across - 1) * gap - planes) / 2
    at = {node: (x + middle, y) for node, (x, y) in at.items()}
    least = math.sqrt(2) * min(shift, gap - planes) if deep > 1 else gap
    return NodePositions(at, (down - 1) * gap + planes + 2 * MARGIN, least=least)


# ---------------------------------------------------------------------------------------------------- layers


def _layers(beside: Mapping[str, set[str]], places: Sequence[str], ports: set[str]) -> NodePositions:
    """Put workers below and every switch as high as it is hops away from them.

    Where an idle port is a card could be: it is not drawn, but it is as high, so that a switch without any card
    stands beside those that have one.
    """
    rows = _rows(beside, places, ports)
    height = MARGIN + 0.35 + STOREY * len(rows)
    at: dict[str, Point] = {}
    for level, nodes in enumerate(rows):
        if level:
            nodes.sort(key=lambda node: _middle([at[near][0] for near in beside[node] if near in at]))
        y = MARGIN + 0.5 + STOREY * level
        at |= {node: (x, y) for node, x in zip(nodes, _spread(len(nodes)), strict=True)}
    return NodePositions(at, height, rows=tuple(tuple(row) for row in rows))


def _rows(beside: Mapping[str, set[str]], places: Sequence[str], ports: set[str]) -> list[list[str]]:
    """Return the nodes by their hops from the workers, those of the idle ports counted as if from cards."""
    rows, seen, waiting = [[*places]], {*places, *ports}, ports
    near: set[str] = {*places}
    while near:
        if waiting and any(map(is_card, near)):
            near, waiting = near | waiting, set()
        near = {one for node in near for one in beside[node]} - seen
        rows.append(sorted(near, key=_natural))
        seen |= near
    return rows[:-1]


def _middle(values: Sequence[float]) -> float:
    """Return where a node stands over those below it; one with none, beyond all others."""
    return sum(values) / len(values) if values else WIDTH


def _spread(number: int) -> list[float]:
    """Return places side by side over the width of a picture, each in the middle of its share."""
    share = (WIDTH - MARGIN) / number
    return [MARGIN / 2 + share * (place + 0.5) for place in range(number)]
