"""Grids of workers in two or three dimensions: the torus, whose rows close to rings, and the mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt, prod
from typing import Annotated, TypeAlias

import numpy as np

from ringnet.array_types import IntArray
from ringnet.errors import Fault, NetworkError
from ringnet.networks.network import Groups, Network, Route
from ringnet.networks.shape import ACROSS
from ringnet.networks.topology import LinkColumns, TopologyParameter, place_names


def near_square(n_workers: int) -> list[int]:
    """Return two sides that multiply to ``n_workers``, as near to each other as they can be.

    >>> near_square(8), near_square(7)
    ([4, 2], [7, 1])
    """
    short = next(side for side in range(isqrt(n_workers), 0, -1) if n_workers % side == 0)
    return [n_workers // short, short]


#: The parameter of both.
Sides: TypeAlias = Annotated[
    Sequence[int],
    TopologyParameter("workers along each dimension, the first varies fastest", [4, 2], fitting=near_square),
]
#: Way along a dimension: up, down.
WAYS = (1, -1)


def torus(n_workers: int, bandwidth_Bps: float, latency_s: float, *, sides: Sides) -> Network:
    """Two links between neighbours, one each way, along every dimension, and around its ends.

    Routes go dimension by dimension, the first one first, the shorter way around; where both are as long, upwards.

    Parameters
    ----------
    n_workers : int
        The product of the sides.
    bandwidth_Bps, latency_s : float
        Of every link, in bytes per second and seconds.
    sides : sequence of int
        Workers along each dimension; the first varies fastest: worker 1 is next to worker 0 in it. Two workers along
        a dimension have one cable, not two.

    Raises
    ------
    NetworkError
        If the sides do not multiply to the workers.

    Examples
    --------
    >>> network = torus(6, 50e9, 5e-7, sides=[3, 2])
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->2', '2->5']
    """
    return grid("torus", n_workers, (bandwidth_Bps, latency_s), sides, closed=True)


def mesh(n_workers: int, bandwidth_Bps: float, latency_s: float, *, sides: Sides) -> Network:
    """Two links between neighbours, one each way, along every dimension; none around its ends.

    Routes go dimension by dimension, the first one first.

    Parameters
    ----------
    n_workers, bandwidth_Bps, latency_s, sides
        As for `torus`.

    Raises
    ------
    NetworkError
        If the sides do not multiply to the workers.

    Examples
    --------
    >>> network = mesh(6, 50e9, 5e-7, sides=[3, 2])
    >>> [network.names[link] for link in network.route(0, 5)]
    ['0->1', '1->2', '2->5']
    """
    return grid("mesh", n_workers, (bandwidth_Bps, latency_s), sides, closed=False)


def grid(topology: str, n_workers: int, rate: tuple[float, float], sides: Sequence[int], *, closed: bool) -> Network:
    """Return a mesh or a torus.

    Parameters
    ----------
    topology : str
        Name, as in the registry.
    n_workers : int
        The product of the sides.
    rate : (bandwidth_Bps, latency_s)
        Of every link, in bytes per second and seconds.
    sides : sequence of int
        Workers along each dimension; the first varies fastest.
    closed : bool
        Whether the rows close to rings: a torus.
    """
    if prod(sides) != n_workers:
        shape = " x ".join(map(str, sides))
        message = f"a {topology} of {shape} has {prod(sides)} places, and {n_workers} are needed"
        raise NetworkError(Fault(message, "sides", right=f"sides: {near_square(n_workers)}"))
    ends, table, count = [], {}, 0
    for axis in range(len(sides)):
        for way in WAYS:
            start, end = _neighbours(sides, axis, way, closed=closed)
            ends.append((start, end))
            link = np.full(n_workers, -1)
            link[start] = np.arange(count, count + len(start))
            table[axis, way], count = link.tolist(), count + len(start)
    links = LinkColumns.of(place_names(n_workers, n_workers), ends, [rate] * len(ends))
    find_route = _dimension_order(sides, table, closed=closed)
    return links.network(topology, n_workers, find_route, partial(_slices, sides))


def _slices(sides: Sequence[int]) -> Groups:
    """Return, for each dimension, the slices across it, and the two halves into which it can be parted."""
    groups = {}
    for axis, side in enumerate(sides):
        weight, which = prod(sides[:axis]), f"side {axis + 1}"
        at = {str(worker): worker // weight % side for worker in range(prod(sides))}
        groups[f"{ACROSS}{which}"] = {node: f"slice {one} across {which}" for node, one in at.items()}
        groups[f"halves of {which}"] = {
            node: f"the {'lower' if 2 * one < side else 'upper'} half of {which}" for node, one in at.items()
        }
    return groups


def _neighbours(sides: Sequence[int], axis: int, way: int, *, closed: bool) -> tuple[IntArray, IntArray]:
    """Return the workers that have a link along an axis in one way, and where each ends."""
    side, weight = sides[axis], prod(sides[:axis])
    start = np.arange(prod(sides))
    place = start // weight % side
    end = start + ((place + way) % side - place) * weight
    inside = (place + way >= 0) & (place + way < side)
    # Around the ends of two there is the same cable once more, and around that of one there is nothing.
    kept = inside if side <= 2 or not closed else np.ones_like(inside)  # noqa: PLR2004
    return start[kept], end[kept]


def _dimension_order(
    sides: Sequence[int], table: dict[tuple[int, int], list[int]], *, closed: bool
) -> Callable[[int, int], Route]:
    weights = [prod(sides[:axis]) for axis in range(len(sides))]

    def find_route(src: int, dst: int) -> Route:
        here, links = src, []
        for axis, (side, weight) in enumerate(zip(sides, weights, strict=True)):
            place, goal = here // weight % side, dst // weight % side
            way, hops = _shorter(goal - place, side, closed=closed)
            for _ in range(hops):
                links.append(table[axis, _way_out(place, way, side)][here])
                moved = (place + way) % side
                here, place = here + (moved - place) * weight, moved
        return tuple(links)

    return find_route


def _shorter(distance: int, side: int, *, closed: bool) -> tuple[int, int]:
    """Return the way to go and the hops."""
    if not closed:
        return (1, distance) if distance > 0 else (-1, -distance)
    up = distance % side
    return (1, up) if 2 * up <= side else (-1, side - up)


def _way_out(place: int, way: int, side: int) -> int:
    """Return the way of the cable: of two workers in a row the upper one has only a link down."""
    return -way if side == 2 and place + way not in (0, 1) else way  # noqa: PLR2004
