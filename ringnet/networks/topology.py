"""What a topology is: what builds it, the parameters of that signature, and links while they are put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, signature
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from ringnet.array_types import FloatArray, IntArray
from ringnet.errors import Fault, NetworkError
from ringnet.networks.link_names import LinkNames
from ringnet.networks.network import Groups, Network, Route

#: Links of a network with parameters: beyond, making them and asking for their names takes minutes.
MOST_LINKS = 2**22

#: ``build(n, bandwidth_Bps, latency_s)``: a network whose parameters are settled.
NetworkBuilder: TypeAlias = Callable[[int, float, float], Network]


@dataclass(frozen=True)
class TopologyParameter:
    """What a topology takes beside workers, bandwidth and latency.

    It stands in the signature of the function that builds the topology, beside the type of a keyword, and all else
    follows from there: the key of a scenario, its checks, its place in the schema.

    Parameters
    ----------
    meaning : str
        In a few words.
    example : object
        What a scenario may say, as plain data.
    fitting : callable, optional
        What it may say for so many workers, where the example would suit few.
    least, most : float, optional
        Bounds of a number, or of each in a list: from 1 (a whole number) or 0 up if left out.
    kind : type
        What the signature has: ``int``, ``float``, ``Sequence[int]``, ``int | Sequence[int]`` and so on, without
        ``None``.
    required : bool
        Whether the signature has no default.

    Examples
    --------
    >>> def chain(n_workers, bandwidth_Bps, latency_s, *, k: Annotated[int, TopologyParameter("ports", 4)]):
    ...     pass
    >>> Topology(chain, "a chain").parameters["k"].required
    True
    """

    meaning: str
    example: Any
    least: float | None = None
    most: float | None = None
    kind: Any = None
    required: bool = False
    fitting: Callable[[int], Any] | None = None


class Topology(NamedTuple):
    """A line of the registry.

    Parameters
    ----------
    build : callable
        ``build(n_workers, bandwidth_Bps, latency_s, **parameters)`` gives the `Network`; each parameter is a keyword
        of its signature, ``k: Annotated[int, TopologyParameter(...)]``.
    summary : str
        One line about it.
    has_single_links : bool
        Whether every route is a single link.
    n_way : int
        Links from a worker to its nearest: a latency from end to end is that of so many.
    n_links : callable, optional
        Links for so many workers and the same keywords, where those may be far more than workers: memory is asked for
        before they are made.
    """

    build: Callable[..., Network]
    summary: str
    has_single_links: bool = False
    n_way: int = 1
    n_links: Callable[..., int] | None = None

    @property
    def parameters(self) -> Mapping[str, TopologyParameter]:
        """What it takes beside workers, bandwidth and latency, by keyword; `TypeError` for one without a meaning."""
        return _parameters(self.build)

    def build_bounded(self, n_workers: int, *rate: float, **parameters: Any) -> Network:
        """Return the network; `NetworkError`, before any link is made, for more than are made in a few seconds."""
        self._check_size(n_workers, parameters)
        return self.build(n_workers, *rate, **parameters)

    def _check_size(self, n_workers: int, parameters: Mapping[str, Any]) -> None:
        if self.n_links is None or not parameters or self.n_links(n_workers, **parameters) <= MOST_LINKS:
            return
        links = self.n_links(n_workers, **parameters)
        numbers = {name: one for name, one in parameters.items() if isinstance(one, int)}
        largest = max(numbers, key=lambda name: numbers[name])
        message = f"the network would have {links:,} links, more than {MOST_LINKS:,}"
        raise NetworkError(Fault(message, largest, value=str(numbers[largest]), right=f"a smaller {largest}"))


@cache
def _parameters(build: Callable[..., Network]) -> Mapping[str, TopologyParameter]:
    keywords = [one for one in signature(build).parameters.values() if one.kind is Parameter.KEYWORD_ONLY]
    hints = get_type_hints(build, include_extras=True) if keywords else {}
    return MappingProxyType({one.name: _parameter(build, one, hints.get(one.name)) for one in keywords})


def _parameter(build: Callable[..., Network], keyword: Parameter, hint: Any) -> TopologyParameter:
    kind, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    told = next((one for one in said if isinstance(one, TopologyParameter)), None)
    if told is None:
        form = f"{keyword.name}: Annotated[int, TopologyParameter('what it means', example=4)]"
        raise TypeError(f"the signature of {build.__name__} says of each keyword what it is: {form}")
    if get_origin(kind) in (Union, UnionType):
        kind = Union[tuple(one for one in get_args(kind) if one is not NoneType)]  # noqa: UP007 -- made of a tuple
    return replace(told, kind=kind, required=keyword.default is Parameter.empty)


def each_of(sizes: int | Sequence[int], total: int) -> list[int]:
    """Return the size of each group: of groups alike, as many as hold ``total``; or those that are listed.

    >>> each_of(4, 10), each_of([6, 4], 10)
    ([4, 4, 4], [6, 4])
    """
    return [sizes] * -(-total // sizes) if isinstance(sizes, int) else [*sizes]


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
