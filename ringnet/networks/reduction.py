"""Switches that reduce, as the workers of a network find them: which is next to each, and the tree above."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, TypeAlias

from ringnet.errors import Fault, NetworkError, closest, some

#: Stands for no switch above another.
NONE_ABOVE = -1
#: Nodes that are no switches: places of workers, and what is inside a host but for its own switch.
_NO_SWITCH = re.compile(r"(free)?\d+|h\d+/(?!switch$).*")
#: Switches that are tried as the topmost one, beyond those that would do best.
MOST_TOPS = 64

#: Links of a network by number, in order.
LinkRow: TypeAlias = tuple[int, ...]
#: By node, where links lead from it or come from, and their numbers.
Arcs: TypeAlias = Mapping[str, list[tuple[str, int]]]


class Nodes(Protocol):
    """A network, as far as its switches are looked for."""

    @property
    def topology(self) -> str:
        """Its name."""

    @property
    def n_workers(self) -> int:
        """Workers that it joins."""

    @property
    def n_links(self) -> int:
        """Links, each one way unless it is half duplex."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node."""

    @property
    def reduce_Bps(self) -> Mapping[str, float]:  # noqa: N802 -- the unit
        """The nodes that reduce."""

    def node(self, worker: int) -> str:
        """Return where a worker sits."""

    def ends(self, link: int) -> tuple[str, str]:
        """Return where a link starts and where it ends."""

    def is_half_duplex(self, link: int) -> bool:
        """Whether a link carries both directions."""


@dataclass(frozen=True)
class ReducingSwitches:
    """Switches that reduce, numbered from the workers up, and the routes to them.

    Those next to workers come first, in the order of their first workers; then those that join them, the lowest first.

    Parameters
    ----------
    names : tuple of str
        Their nodes.
    above : tuple of int
        By worker, and then by switch, the number of the switch above; -1 for the topmost, or for all of them where they
        are no tree.
    why_not : str
        Why they are no tree with all workers as its leaves, in words; empty where they are.
    """

    names: tuple[str, ...]
    above: tuple[int, ...]
    why_not: str
    n_workers: int
    routes: Mapping[tuple[int, int], LinkRow] = field(repr=False)

    def route(self, src: int, dst: int) -> LinkRow:
        """Return the links between a worker and the switch next to it, or a switch and the one above; either way.

        Switches are numbered after the workers.
        """
        if (src, dst) in self.routes:
            return self.routes[src, dst]
        reason = self.why_not or f"{self._said(src)} is not next to {self._said(dst)}"
        raise NetworkError(f"no way for a sum in switches: {reason}")

    def _said(self, member: int) -> str:
        if member < self.n_workers:
            return f"worker {member}"
        number = member - self.n_workers
        return self.names[number] if number < len(self.names) else f"a switch {number} that there is not"

    @property
    def is_tree(self) -> bool:
        """Whether they are a tree with all workers as its leaves."""
        return not self.why_not


def find_switches(network: Nodes, patterns: Sequence[str] | None = None) -> list[str]:
    """Return the switches of a network, or those whose names fit some patterns; `NetworkError` for one that fits none.

    What is inside a host, but for its own switch, is none: a card, a PCIe switch.

    Examples
    --------
    >>> from ringnet.networks import make_network
    >>> find_switches(make_network("leaf-spine", 4, 50e9, 5e-7, leaves=2, spines=2), ["spine*"])
    ['spine0', 'spine1']
    """
    nodes = [node for node in network.nodes if not _NO_SWITCH.fullmatch(node)]
    if not nodes:
        raise NetworkError(
            Fault(f"a {network.topology} has no switches that could reduce", right="a topology with switches")
        )
    if patterns is None:
        return nodes
    faults = [
        Fault(
            "no switch has such a name",
            f"switches.{place}",
            value=pattern,
            right=some(nodes),
            nearest=closest(pattern, nodes),
        )
        for place, pattern in enumerate(patterns)
        if not any(fnmatchcase(node, pattern) for node in nodes)
    ]
    if faults:
        raise NetworkError(*faults)
    return [node for node in nodes if any(fnmatchcase(node, pattern) for pattern in patterns)]


def reducing_switches(network: Nodes) -> ReducingSwitches:
    """Return the switches that reduce, as the workers find them.

    Next to a worker is the one with fewest links in between, none of them to another worker; of several that whose
    links are listed first. One switch is above another only over a single link each way, and the topmost is that from
    which the others are nearest.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from ringnet.networks import make_network
    >>> leaves = make_network("leaf-spine", 4, 50e9, 5e-7, leaves=2, spines=2)
    >>> switches = replace(leaves, reduce_Bps=dict.fromkeys(["leaf0", "leaf1", "spine0"], 1e12)).switches
    >>> switches.names, switches.above
    (('leaf0', 'leaf1', 'spine0'), (0, 0, 1, 1, 2, 2, -1))
    """
    out, into = _arcs(network)
    routes: dict[tuple[int, int], LinkRow] = {}
    next_to: list[str] = []
    ends: list[tuple[LinkRow, LinkRow]] = []
    for worker in range(network.n_workers):
        node = network.node(worker)
        up = _nearest(node, out, network.reduce_Bps)
        down = up and _nearest(node, into, {up[0]})
        if not up or not down:
            reason = f"worker {worker} has no way to and from a switch that reduces"
            return ReducingSwitches((), (NONE_ABOVE,) * network.n_workers, reason, network.n_workers, {})
        next_to.append(up[0])
        ends.append((up[1], down[1][::-1]))
    first = list(dict.fromkeys(next_to))
    parent = _tree(first, out, into, network.reduce_Bps)
    names = first if parent is None else _numbered(first, parent)
    number = {name: place for place, name in enumerate(names)}
    for worker, (up_links, down_links) in enumerate(ends):
        switch = network.n_workers + number[next_to[worker]]
        routes[worker, switch], routes[switch, worker] = up_links, down_links
    for name, above in (parent or {}).items():
        if name in number and above:
            pair = (network.n_workers + number[name], network.n_workers + number[above])
            routes[pair], routes[pair[::-1]] = (_link(name, above, out),), (_link(above, name, out),)
    tops = [number[parent[name]] if parent and parent[name] else NONE_ABOVE for name in names]
    return ReducingSwitches(
        tuple(names),
        (*(number[name] for name in next_to), *tops),
        "" if parent is not None else f"no links join {some(first)} to one switch that reduces",
        network.n_workers,
        routes,
    )


def _arcs(network: Nodes) -> tuple[Arcs, Arcs]:
    """Return where links lead from each node, and where they come from, in the order of the links."""
    out: dict[str, list[tuple[str, int]]] = {}
    into: dict[str, list[tuple[str, int]]] = {}
    for link in range(network.n_links):
        start, end = network.ends(link)
        for one, other in [(start, end), (end, start)][: 1 + network.is_half_duplex(link)]:
            out.setdefault(one, []).append((other, link))
            into.setdefault(other, []).append((one, link))
    return out, into


def _nearest(start: str, arcs: Arcs, goals: Collection[str]) -> tuple[str, LinkRow] | None:
    """Return the nearest of some nodes and the links to it, past no worker's place; None where none is reached."""
    coming: deque[tuple[str, LinkRow]] = deque([(start, ())])
    seen = {start}
    while coming:
        here, links = coming.popleft()
        if here in goals:
            return here, links
        for node, link in arcs.get(here, ()):
            if node not in seen and not node.isdecimal():
                seen.add(node)
                coming.append((node, (*links, link)))
    return None


def _link(start: str, end: str, out: Arcs) -> int:
    return next(link for node, link in out[start] if node == end)


def _tree(leaves: list[str], out: Arcs, into: Arcs, reducing: Collection[str]) -> dict[str, str] | None:
    """Return what is above each switch that reduces, nothing above the topmost; None where nothing joins them all."""
    if len(leaves) == 1:
        return {leaves[0]: ""}

    def joined(name: str) -> Iterator[str]:
        back = {node for node, _ in into.get(name, ())}
        return (node for node, _ in out.get(name, ()) if node in reducing and node in back)

    hops = _hops(leaves[0], joined)
    if any(leaf not in hops for leaf in leaves):
        return None
    furthest = max(hops[leaf] for leaf in leaves)
    # No top is nearer to all than half of the way between two leaves.
    least = -(-furthest // 2)
    best, best_hops = leaves[0], furthest
    for top in sorted(hops, key=lambda name: abs(hops[name] - least))[:MOST_TOPS]:
        if best_hops == least:
            break
        from_top = _hops(top, joined)
        most = max(from_top[leaf] for leaf in leaves)
        if most < best_hops:
            best, best_hops = top, most
    parent = {best: ""}
    coming = deque([best])
    while coming:
        here = coming.popleft()
        for node in joined(here):
            if node not in parent:
                parent[node] = here
                coming.append(node)
    return parent


def _hops(start: str, joined: Callable[[str], Iterator[str]]) -> dict[str, int]:
    hops, coming = {start: 0}, deque([start])
    while coming:
        here = coming.popleft()
        for node in joined(here):
            if node not in hops:
                hops[node] = hops[here] + 1
                coming.append(node)
    return hops


def _numbered(first: list[str], parent: Mapping[str, str]) -> list[str]:
    """Return the switches of the tree: those next to workers, then the others, from the lowest to the topmost."""
    depth: dict[str, int] = {}
    for leaf in first:
        way, here = [], leaf
        while here:
            way.append(here)
            here = parent[here]
        depth |= {name: len(way) - place for place, name in enumerate(way)}
    others = [name for name in depth if name not in set(first)]
    return [*first, *sorted(others, key=lambda name: -depth[name])]
