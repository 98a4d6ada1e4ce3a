"""Over what it moves: links with a bandwidth and a latency, and the route of each pair of workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.errors import Fault, NetworkError

FloatArray: TypeAlias = NDArray[np.float64]
Route: TypeAlias = tuple[int, ...]
Switching: TypeAlias = Literal["cut-through", "store-and-forward"]
Sharing: TypeAlias = Literal["fifo", "fair", "auto"]

#: Unknown links for which the nearest name is looked up.
SEARCHED = 8


@dataclass(frozen=True)
class LinkChange:
    """What an exception changes of a link; ``None`` leaves it as the rule for all links has it."""

    bandwidth_Bps: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True)
class Piece:
    """What a link does with transfers of up to ``up_to_bytes``, as protocols that switch with the size do."""

    up_to_bytes: float
    bandwidth_Bps: float
    latency_s: float


@dataclass(frozen=True)
class Window:
    """How much a sender may have under way to one receiver: bytes, or transfers, that have no credit yet."""

    bytes: int | None = None
    transfers: int | None = None


@dataclass(frozen=True)
class Packets:
    """What transfers are cut into under fifo sharing; each packet's header is charged to links."""

    bytes: int
    header_bytes: int = 0


@dataclass(frozen=True)
class Network:
    """Links as columns, and routes over them. A link is one direction of a cable.

    Parameters
    ----------
    topology : str
        Name, as in the registry and in the tables.
    n_workers : int
        Workers that the network joins, numbered from 0.
    names : tuple of str
        Name of each link, ``"3->4"``: where it starts and where it ends.
    bandwidth_Bps, latency_s : ndarray of float64, shape (n_links,)
        Bytes per second, seconds.
    find_route : callable
        ``find_route(src, dst)`` gives the links from one worker to another, in order; `NetworkError` if none.
    switching : {"cut-through", "store-and-forward"}
        When a transfer may go on to the next link: as soon as its head is there, or once it is there whole.
    sharing : {"fifo", "fair", "auto"}
        How transfers share a link.
    pieces : mapping of int to tuple of Piece
        By link, ascending: what it does with transfers up to some size; with larger ones, what the columns say.
    profiles : mapping of int to tuple of (time_s, bandwidth_Bps)
        By link, ascending: the bandwidth from some time on; before, what the column says.
    window : Window or None
    packets : Packets or None
    """

    topology: str
    n_workers: int
    names: tuple[str, ...]
    bandwidth_Bps: FloatArray
    latency_s: FloatArray
    find_route: Callable[[int, int], Route]
    switching: Switching = "cut-through"
    sharing: Sharing = "auto"
    pieces: Mapping[int, tuple[Piece, ...]] = field(default_factory=dict)
    profiles: Mapping[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    window: Window | None = None
    packets: Packets | None = None

    @property
    def n_links(self) -> int:
        """Number of links; both directions of a cable count."""
        return len(self.names)

    def route(self, src: int, dst: int) -> Route:
        """Links from worker ``src`` to worker ``dst``, in order; `NetworkError` where there is no way."""
        for worker in (src, dst):
            if not 0 <= worker < self.n_workers:
                raise NetworkError(f"the {self.topology} of {self.n_workers} workers has no worker {worker}")
        return self.find_route(src, dst)

    def ends(self, link: int) -> tuple[str, str]:
        """Where a link starts and where it ends."""
        start, _, end = self.names[link].partition("->")
        return start, end


def offers(network: Network, link: int, n_bytes: int) -> tuple[float, float]:
    """Return the bandwidth and the latency that a link has for a transfer of ``n_bytes``, in bytes/s and seconds."""
    for piece in network.pieces.get(link, ()):
        if n_bytes <= piece.up_to_bytes:
            return piece.bandwidth_Bps, piece.latency_s
    return float(network.bandwidth_Bps[link]), float(network.latency_s[link])


def link_array(value: float, n_links: int) -> FloatArray:
    """Return one value for every link.

    >>> link_array(5.0, 2).tolist()
    [5.0, 5.0]
    """
    return np.full(n_links, value, dtype=np.float64)


def change_links(network: Network, changes: dict[str, LinkChange]) -> Network:
    """Return the network with some links changed, by name; `NetworkError` names every unknown one."""
    numbers = {name: link for link, name in enumerate(network.names)}
    if unknown := [name for name in changes if name not in numbers]:
        raise NetworkError(*_no_such_links(network, unknown))
    return _changed(network, ((numbers[name], change) for name, change in changes.items()))


def change_workers(network: Network, changes: dict[int, LinkChange]) -> Network:
    """Return the network with every link into or out of some workers changed; `NetworkError` if none such.

    A link between two of them becomes what is said of the later one.
    """
    if unknown := [worker for worker in changes if not 0 <= worker < network.n_workers]:
        right = f"0 to {network.n_workers - 1}"
        raise NetworkError(
            *(Fault("there is no such worker", value=str(worker), right=right) for worker in unknown)
        )
    touching = defaultdict(list)
    for link in range(network.n_links):
        for end in network.ends(link):
            touching[end].append(link)
    return _changed(
        network, ((link, change) for worker, change in changes.items() for link in touching[str(worker)])
    )


def _changed(network: Network, changes: Iterable[tuple[int, LinkChange]]) -> Network:
    bandwidth, latency = network.bandwidth_Bps.copy(), network.latency_s.copy()
    for link, change in changes:
        if change.bandwidth_Bps is not None:
            bandwidth[link] = change.bandwidth_Bps
        if change.latency_s is not None:
            latency[link] = change.latency_s
    return replace(network, bandwidth_Bps=bandwidth, latency_s=latency)


def _no_such_links(network: Network, names: list[str]) -> Iterator[Fault]:
    message = f"the {network.topology} of {network.n_workers} workers has no such link"
    shown = ", ".join(network.names[:3]) + (", ..." if network.n_links > 3 else "")  # noqa: PLR2004 -- three examples
    for place, name in enumerate(names):
        # Among thousands of links a search takes a quarter of a second: not for thousands of names.
        nearest = get_close_matches(name, network.names, n=1) if place < SEARCHED else []
        yield Fault(message, value=name, right=shown, nearest="".join(nearest))
