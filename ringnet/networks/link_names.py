"""Names of links as two columns of nodes, made when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ringnet.array_types import IntArray


@dataclass(frozen=True, eq=False)
class LinkNames(Sequence[str]):
    """Names of links, ``"3->leaf0"``, made when they are read: a million of them take no memory.

    Parameters
    ----------
    nodes : tuple of str
    start, end : ndarray of int64, shape (n_links,)
        Where in ``nodes`` each link starts and ends.

    Examples
    --------
    >>> names = LinkNames(("0", "1", "leaf0"), np.array([0, 2]), np.array([2, 1]))
    >>> list(names), names == ("0->leaf0", "leaf0->1")
    (['0->leaf0', 'leaf0->1'], True)
    """

    nodes: tuple[str, ...]
    start: IntArray
    end: IntArray

    @classmethod
    def of(cls, ends: Sequence[tuple[str, str]]) -> LinkNames:
        """Return the names of links whose ends are listed; nodes are numbered as they come.

        >>> LinkNames.of([("a", "b"), ("b", "c")]).end.tolist()
        [1, 2]
        """
        number: dict[str, int] = {}
        places = np.array([number.setdefault(node, len(number)) for both in ends for node in both], np.int64)
        return cls(tuple(number), places[::2], places[1::2])

    def __len__(self) -> int:
        return len(self.start)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        if isinstance(place, slice):
            return tuple(LinkNames(self.nodes, self.start[place], self.end[place]))
        return f"{self.nodes[self.start[place]]}->{self.nodes[self.end[place]]}"

    def __iter__(self) -> Iterator[str]:
        nodes = self.nodes
        for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True):
            yield f"{nodes[start]}->{nodes[end]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash((self.nodes, self.start.tobytes(), self.end.tobytes()))
