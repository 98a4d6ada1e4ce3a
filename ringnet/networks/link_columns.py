"""Links while a topology is put together, as columns, and the network that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.networks.link_names import LinkNames
from ringnet.networks.network import Groups, Network, Route


@dataclass(frozen=True)
class LinkColumns:
    """Links while a topology is put together: nodes by number, the workers' places first.

    Parameters
    ----------
    nodes : tuple of str
    start, end : ndarray of int64, shape (n_links,)
        Where in ``nodes`` each link starts and ends.
    bandwidth_Bps, latency_s : ndarray of float64, shape (n_links,)
    """

    nodes: tuple[str, ...]
    start: IntArray
    end: IntArray
    bandwidth_Bps: FloatArray
    latency_s: FloatArray

    @classmethod
    def of(
        cls,
        nodes: Sequence[str],
        ends: Sequence[tuple[IntArray, IntArray]],
        rates: Sequence[tuple[float, float]],
    ) -> LinkColumns:
        """Put groups of links together.

        Parameters
        ----------
        nodes : sequence of str
        ends : sequence of (start, end)
            One group of links each; arrays of node numbers.
        rates : sequence of (bandwidth_Bps, latency_s)
            Of every link of each group.
        """
        nothing, sizes = np.zeros(0, dtype=np.int64), [len(start) for start, _ in ends]
        return cls(
            tuple(nodes),
            np.concatenate([nothing, *(start for start, _ in ends)]).astype(np.int64),
            np.concatenate([nothing, *(end for _, end in ends)]).astype(np.int64),
            np.repeat([bandwidth for bandwidth, _ in rates], sizes).astype(np.float64),
            np.repeat([latency for _, latency in rates], sizes).astype(np.float64),
        )

    def network(
        self,
        topology: str,
        n_workers: int,
        find_route: Callable[[int, int], Route],
        find_groups: Callable[[], Groups] = dict,
    ) -> Network:
        """Return the network of the links, with its routes and the groups of its nodes."""
        names = LinkNames(self.nodes, self.start, self.end)
        return Network(
            topology,
            n_workers,
            names,
            self.bandwidth_Bps,
            self.latency_s,
            find_route,
            find_groups=find_groups,
        )


def place_names(n_workers: int, n_places: int) -> list[str]:
    """Return the name of each place: a worker's number, and a name of their own for places without a worker.

    >>> place_names(2, 4)
    ['0', '1', 'free2', 'free3']
    """
    return [str(place) if place < n_workers else f"free{place}" for place in range(n_places)]
