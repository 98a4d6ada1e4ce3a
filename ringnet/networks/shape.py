"""What algorithms fit their own shape to: hosts and their cards, sides of a torus or mesh, as the workers see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log, prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from ringnet.networks.reduction import ReducingSwitches
from ringnet.units import format_rate

#: Kinds of groups that say where the hosts and their cards are, and what those of the dimensions of a grid begin with.
HOSTS, CARDS, ACROSS = "hosts", "cards", "slices across "
#: Cards that hosts have on one set of switches.
RAILS = "rails"


def is_card(node: str) -> bool:
    """Whether a node is a network card of a host, by its name.

    >>> is_card("h0/nic1"), is_card("h0/switch")
    (True, False)
    """
    return "/nic" in node


@dataclass(frozen=True)
class NetworkShape:
    """What the numbers of workers say of a network; None where nobody knows, or where they do not go along with it.

    Parameters
    ----------
    n_workers : int
    workers_per_host : int or None
        Where workers 0 to g-1 are on one host, the next g on another, and so on.
    cards_per_host : int or None
        Cards that the workers of a host use: the same number on all, each used by as many workers as `nodes` says, in
        the order of their numbers.
    sides : tuple of int or None
        Workers along each dimension of a torus or mesh, where their numbers go along the first one first, and by one.
    workers_per_switch : int or None
        Where workers 0 to g-1 are next to one switch that reduces, the next g to another, and so on.
    switch_above : tuple of int or None
        By worker and then by switch the number of the switch above that reduces, -1 for the topmost.
    why_not : str
        Why nothing is known of hosts or sides that there are, in words.
    find_neighbour_Bps : callable or None
        Returns, by worker, the bandwidth of its way to the next worker where all send to the next at once; None where
        some have no such way.
    latest_worker : int or None
        The one worker that starts after all others, where a scenario says so.

    Examples
    --------
    >>> from ringnet.networks import Inside, make_network, placed
    >>> hosts = make_network("nodes", 8, 1e9, 0.0, workers_per_host=4, nics=2, inside=Inside("switch", 1e10, 0.0))
    >>> hosts.shape.workers_per_host, hosts.shape.cards_per_host
    (4, 2)
    >>> placed(hosts, [0, 4, 1, 5]).shape.why_not
    'workers are not numbered host by host'
    """

    n_workers: int
    workers_per_host: int | None = None
    cards_per_host: int | None = None
    sides: tuple[int, ...] | None = None
    why_not: str = ""
    workers_per_switch: int | None = None
    switch_above: tuple[int, ...] | None = None
    find_neighbour_Bps: Callable[[], tuple[int, ...] | None] | None = field(default=None, compare=False)
    latest_worker: int | None = None

    @classmethod
    def of(
        cls,
        groups: Mapping[str, Mapping[str, str]],
        nodes: Sequence[str],
        switches: ReducingSwitches | None = None,
    ) -> NetworkShape:
        """Return the shape of a network by its groups and switches, with a worker at each of some nodes."""
        shape = cls._of_groups(groups, nodes)
        if switches is None or not switches.names:
            return shape
        per_switch = _run([str(above) for above in switches.above[: len(nodes)]])
        above = switches.above if switches.is_tree else None
        return replace(shape, workers_per_switch=per_switch, switch_above=above)

    @classmethod
    def _of_groups(cls, groups: Mapping[str, Mapping[str, str]], nodes: Sequence[str]) -> NetworkShape:
        n_workers = len(nodes)
        found = {
            kind: [of_kind.get(node, "") for node in nodes]
            for kind, of_kind in groups.items()
            if kind in (HOSTS, CARDS) or kind.startswith(ACROSS)
        }
        across = [found[kind] for kind in found if kind.startswith(ACROSS)]
        if HOSTS in found:
            per_host = _run(found[HOSTS])
            cards = None if per_host is None or CARDS not in found else _cards(found[CARDS], per_host)
            why_not = "" if per_host else _why_no_host_size(found[HOSTS])
            return cls(n_workers, per_host, cards, why_not=why_not)
        if across:
            sides = _sides(across)
            why_not = "" if sides else "workers are not numbered along the sides"
            return cls(n_workers, sides=sides, why_not=why_not)
        return cls(n_workers)


def _run(labels: Sequence[str]) -> int | None:
    """Return how many workers after each other have each label; None where they differ in it, or one comes again."""
    each = next((number for number, label in enumerate(labels) if label != labels[0]), len(labels))
    firsts = labels[::each]
    even = len(labels) % each == 0 and len(set(firsts)) == len(firsts)
    return each if even and all(label == firsts[at // each] for at, label in enumerate(labels)) else None


def _why_no_host_size(hosts: Sequence[str]) -> str:
    """Say why no number is that of the workers of every host."""
    runs = 1 + sum(one != other for one, other in pairwise(hosts))
    return "hosts differ in size" if runs == len({*hosts}) else "workers are not numbered host by host"


def _cards(labels: Sequence[str], per_host: int) -> int | None:
    """Return the cards of a host where its workers share them evenly and in order."""
    n_cards = len(set(labels[:per_host]))
    hosts = [labels[first : first + per_host] for first in range(0, len(labels), per_host)]
    for host in hosts:
        number = {label: one for one, label in enumerate(dict.fromkeys(host))}
        if [number[label] for label in host] != [at * n_cards // per_host for at in range(per_host)]:
            return None
    return n_cards


def _sides(across: Sequence[Sequence[str]]) -> tuple[int, ...] | None:
    """Return the workers along each dimension, by the slice across it in which each is: ``"slice 2 across side 1"``."""
    at = np.array([[int(label.split()[1]) for label in labels] for labels in across])
    at -= at[:, :1]
    sides = tuple(int(one) for one in at.max(axis=1) + 1)
    if prod(sides) != at.shape[1]:
        return None
    even = (np.stack(np.unravel_index(np.arange(at.shape[1]), sides, order="F")) == at).all()
    return sides if even else None


# What parameters of algorithms are read off it.


class Trait(NamedTuple):
    """What of a network a parameter can be: how it is read off the shape (None: it does not say), and what it is.

    ``said`` puts into words what was read, where the numbers themselves are nothing to read.
    """

    read: Callable[[NetworkShape], int | tuple[int, ...] | None]
    words: str
    said: Callable[[Any], str] | None = None


def _per_host(shape: NetworkShape) -> int | None:
    """Where everybody is on one host, or has one alone, there is nothing to fit to."""
    each = shape.workers_per_host
    return each if each is not None and 1 < each < shape.n_workers else None


def _channels(shape: NetworkShape) -> int | None:
    several = _per_host(shape) is not None and (shape.cards_per_host or 1) > 1
    return shape.cards_per_host if several else None


def _rows(shape: NetworkShape) -> int | None:
    """Rows of two dimensions; of more, those that follow each other count as one, where that is nearest to a square."""
    if shape.sides is None:
        return None
    rows = [prod(shape.sides[axis:]) for axis in range(1, max(len(shape.sides), 2))]
    return min(rows, key=lambda one: (abs(log(one / sqrt(shape.n_workers))), one))


def _powers_of_two(shape: NetworkShape) -> tuple[int, ...] | None:
    sides = shape.sides
    return None if sides is None or any(side & (side - 1) for side in sides) else sides[::-1]


def _rates_to_next(shape: NetworkShape) -> tuple[int, ...] | None:
    """Where all ways are alike, there is nothing to fit to."""
    rates = shape.find_neighbour_Bps and shape.find_neighbour_Bps()
    return rates if rates and len({*rates}) > 1 else None


def _rates_said(rates: Sequence[int]) -> str:
    return f"{format_rate(min(rates))} to {format_rate(max(rates))}"


def _tree_said(above: Sequence[int]) -> str:
    n_switches = max(above) + 1
    return f"a tree of {n_switches} switches" if n_switches > 1 else "one switch"


#: By name, as a `Parameter` of an algorithm has it.
TRAITS: dict[str, Trait] = {
    "workers_per_host": Trait(_per_host, "workers of a host"),
    "channels": Trait(_channels, "one for each card of a host"),
    "rows": Trait(_rows, "rows of the network"),
    "latest_worker": Trait(lambda shape: shape.latest_worker, "the worker that starts last"),
    "neighbour_Bps": Trait(_rates_to_next, "bandwidth from each worker to the next", _rates_said),
    "switch_above": Trait(lambda shape: shape.switch_above, "the tree of switches that reduce", _tree_said),
    "workers_per_switch": Trait(lambda shape: shape.workers_per_switch, "workers of a switch that reduces"),
    "powers_of_two": Trait(_powers_of_two, "sides of the network, slowest first"),
}
