"""ASTRA-sim's analytical network files: four lists, an entry for each dimension, dimension 0 innermost.

Its "GB/s" is 2^30 bytes per second, its latencies are nanoseconds for each hop. A ring goes both ways round, and a
transfer takes the shorter, up where both are as long; a switch is two hops, a direct link one (as the
``congestion_aware`` back end has it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import NamedTuple

from ringnet.documents.document import Document, Mark, in_flow
from ringnet.documents.text import clip, decode
from ringnet.documents.yaml_text import YamlKind, read_yaml
from ringnet.errors import Fault, InputError, closest
from ringnet.formats.networks.reading import Reading, Wiring
from ringnet.networks import Network
from ringnet.units import counted, format_rate, format_seconds

GIB = 2**30
KEYS = ("topology", "npus_count", "bandwidth", "latency")
#: The most links of a network, and the most dimensions.
MOST_LINKS, MOST_DIMENSIONS = 1 << 20, 16

_KIND = YamlKind("a network", "topology: [ Ring ]", n_bytes=1 << 16, n_values=4096, depth=8)


@dataclass(frozen=True)
class Dimension:
    """A dimension: how its workers are joined, how many there are, and over which links.

    Parameters
    ----------
    shape : str
        ``Ring``, ``Switch`` or ``FullyConnected``.
    size : int
    bandwidth_Bps, latency_s : float
        Of each hop.
    """

    shape: str
    size: int
    bandwidth_Bps: float
    latency_s: float


class Shape(NamedTuple):
    """How workers are joined along a dimension.

    Parameters
    ----------
    name : str
        In ringnet's words.
    pairs : callable
        ``pairs(nodes, hub)`` gives the cables between the nodes of a group and its switch.
    steps : callable
        ``steps(start, end, size)`` gives the places on the way, without the start; None is the switch.
    n_cables : callable
        Cables of a group of some size.
    """

    name: str
    pairs: Callable[[Sequence[str], str], Iterator[tuple[str, str]]]
    steps: Callable[[int, int, int], list[int | None]]
    n_cables: Callable[[int], int]


def _around(nodes: Sequence[str], _hub: str) -> Iterator[tuple[str, str]]:
    return ((node, nodes[(place + 1) % len(nodes)]) for place, node in enumerate(nodes))


def _shorter_way(start: int, end: int, size: int) -> list[int | None]:
    up = (end - start) % size
    step, hops = (1, up) if up <= size - up else (-1, size - up)
    return [(start + step * hop) % size for hop in range(1, hops + 1)]


SHAPES: dict[str, Shape] = {
    "Ring": Shape("ring", _around, _shorter_way, lambda size: size),
    "Switch": Shape(
        "switch",
        lambda nodes, hub: ((node, hub) for node in nodes),
        lambda _start, end, _size: [None, end],
        lambda size: size,
    ),
    "FullyConnected": Shape(
        "fully-connected",
        lambda nodes, _hub: combinations(nodes, 2),
        lambda _start, end, _size: [end],
        lambda size: size * (size - 1) // 2,
    ),
}


#: Keys of ASTRA-sim's first version, and what each is now.
VERSION_1 = {
    "topologies-per-dim": "topology",
    "units-count": "npus_count",
    "link-bandwidth": "bandwidth",
    "link-latency": "latency",
}


def _refuse_version_1(document: Document, file: str) -> None:
    """Refuse a network of ASTRA-sim's first version, with the file that says the same of its links now."""
    if not {"topologies-per-dim", "units-count"} & document.data.keys():
        return
    said = [f"{now}: {in_flow(document.get((key,)) or '[ ... ]')}" for key, now in VERSION_1.items()]
    dropped = [key for key in document.data if key not in VERSION_1 and "-" in key]
    message = "this is a network of ASTRA-sim's first version, which counts links, cards and memory too"
    gone = f"; {', '.join(dropped)} have no place there" if dropped else ""
    line = min((mark.line or 1 for path, mark in document.marks.items() if path), default=1)
    raise InputError(Fault(message, file=file, line=line, right=f"a file with {', '.join(said)}{gone}"))


def read_astra(content: bytes, file: str) -> Reading:
    r"""Read a network file.

    Returns
    -------
    Reading
        Worker ``x0 + n0 (x1 + n1 (x2 + ...))`` stands at place ``x0`` of dimension 0, and so on.

    Raises
    ------
    InputError
        With every mistake and its line.

    Examples
    --------
    >>> text = b"topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
    >>> network = read_astra(text, "Ring.yml").network
    >>> [network.names[link] for link in network.route(0, 3)], float(network.bandwidth_Bps[0]) / 2**30
    (['0->3'], 50.0)
    """
    if len(content) > _KIND.n_bytes:
        right = f"at most {_KIND.n_bytes:,} bytes"
        raise InputError(Fault(f"the file is too large for {_KIND.name}", file=file, right=right))
    document, faults = read_yaml(decode(content, file), file, _KIND)
    _refuse_version_1(document, file)
    dimensions = _Dimensions(document, file, faults).read()
    network = build(dimensions)
    sizes = " x ".join(str(one.size) for one in dimensions)
    understood = [
        f"{counted(len(dimensions), 'dimension')}, {sizes}: {counted(network.n_workers, 'worker')}, "
        f"{counted(network.n_links, 'link')}"
    ]
    understood += [_sentence(place, one) for place, one in enumerate(dimensions)]
    return Reading(
        kind="ASTRA-sim analytical network",
        network=network,
        understood=tuple(understood),
        assumed=tuple(_assumptions(dimensions)),
        left_out=tuple(
            f"line {document.mark((key,)).line}: the key {clip(key)} is not one of {', '.join(KEYS)}"
            for key in document.data
            if key not in KEYS
        ),
    )


def _sentence(place: int, one: Dimension) -> str:
    return (
        f"dimension {place}: {one.shape} of {one.size}, {one.bandwidth_Bps / GIB:g} x 2^30 B/s "
        f"= {format_rate(one.bandwidth_Bps)}, {format_seconds(one.latency_s)} a hop"
    )


def _assumptions(dimensions: Sequence[Dimension]) -> Iterator[str]:
    yield "a GB/s is 2^30 bytes/s, as in ASTRA-sim; times are not cut off to whole nanoseconds as there"
    if any(one.shape == "Ring" for one in dimensions):
        yield "rings go both ways round, and a transfer takes the shorter, upwards where both are as long"
    if any(one.shape == "Switch" for one in dimensions):
        yield ("a switch takes two hops, each with the whole latency; its ports are as fast as the bandwidth says")
    if len(dimensions) > 1:
        yield (
            "a transfer between workers that differ in several dimensions crosses them one by one, dimension 0 first"
        )


class _Dimensions:
    """Reads the lists of a document; every mistake is collected."""

    def __init__(self, document: Document, file: str, faults: list[Fault]) -> None:
        self.document, self.file, self.faults = document, file, faults

    def read(self) -> list[Dimension]:
        """Return the dimensions, or raise everything that is wrong."""
        lists = {key: self._list(key) for key in KEYS}
        self._raise()
        n = len(lists["topology"])
        for key in KEYS:
            if len(lists[key]) != n:
                message = f"{counted(len(lists[key]), 'entry', 'entries')} for {counted(n, 'dimension')}"
                self._fault(key, message, Mark("", lists[key][0].line), "one entry for each topology")
        if n > MOST_DIMENSIONS:
            self._fault("topology", "too many dimensions", Mark("", lists["topology"][0].line, str(n)))
        shapes = [self._shape(item) for item in lists["topology"]]
        sizes = [int(self._number("npus_count", item, 2, whole=True)) for item in lists["npus_count"]]
        rates = [self._number("bandwidth", item, 0, above=True) * GIB for item in lists["bandwidth"]]
        latencies = [self._number("latency", item, 0) / 1e9 for item in lists["latency"]]
        self._raise()
        found = [Dimension(*one) for one in zip(shapes, sizes, rates, latencies, strict=True)]
        self._check_size(found, lists["npus_count"][0])
        return found

    def _list(self, key: str) -> list[Mark]:
        """Return how each value of a list was written, and where."""
        values, marks = self.document.get((key,)), self.document.marks
        if values is None and (key,) not in self.document.broken:
            others = [clip(other) for other in self.document.data if other not in KEYS]
            nearest = closest(key, others)
            right = f"{key}: [ ... ]"
            self.faults.append(Fault("the key is missing", key, self.file, value=nearest, right=right))
        elif values is not None and not _is_plain_list(values):
            message = "a list with an entry for each dimension is wanted"
            self._fault(key, message, Mark("", self.document.mark((key,)).line))
        else:
            return [marks[key, place] for place in range(len(values or ()))]
        return []

    def _shape(self, item: Mark) -> str:
        if item.text not in SHAPES:
            self._fault("topology", "there is no such topology", item, ", ".join(SHAPES))
        return item.text

    def _number(self, key: str, item: Mark, least: float, *, whole: bool = False, above: bool = False) -> float:
        right = f"a whole number from {least:g} up" if whole else f"a number {'above' if above else 'from'} {least:g}"
        try:
            value = float(int(item.text) if whole else float(item.text))
        except (ValueError, OverflowError):
            self._fault(key, "a number is wanted", item, right)
            return least
        if not (least < value if above else least <= value) or value > 1e12:  # noqa: PLR2004 -- beyond any network
            self._fault(key, "out of range", item, right)
            return least
        return value

    def _check_size(self, dimensions: Sequence[Dimension], at: Mark) -> None:
        n_workers = prod(one.size for one in dimensions)
        n_links = sum(2 * SHAPES[one.shape].n_cables(one.size) * n_workers // one.size for one in dimensions)
        if n_links > MOST_LINKS:
            message = f"the network has {n_workers:,} workers and {n_links:,} links"
            self._fault("npus_count", message, at, f"at most {MOST_LINKS:,} links")
        self._raise()

    def _fault(self, key: str, message: str, item: Mark, right: str = "") -> None:
        self.faults.append(Fault(message, key, self.file, item.line, clip(item.text), right))

    def _raise(self) -> None:
        if self.faults:
            raise InputError(*self.faults)


def _is_plain_list(values: object) -> bool:
    return isinstance(values, list) and bool(values) and not any(isinstance(one, dict | list) for one in values)


def build(dimensions: Sequence[Dimension]) -> Network:
    """Return the network of some dimensions, the innermost first."""
    n_workers, wiring = prod(one.size for one in dimensions), Wiring()
    for place, one in enumerate(dimensions):
        for group in _groups(dimensions, place):
            nodes = [str(worker) for worker in group]
            for start, end in SHAPES[one.shape].pairs(nodes, _hub(dimensions, place, group[0])):
                wiring.join(start, end, one.bandwidth_Bps, one.latency_s)

    def along(src: int, dst: int) -> list[str]:
        nodes, here = [str(src)], src
        for place, one in enumerate(dimensions):
            stride = _stride(dimensions, place)
            start, end = here // stride % one.size, dst // stride % one.size
            if start != end:
                base, hub = here - start * stride, _hub(dimensions, place, here)
                steps = SHAPES[one.shape].steps(start, end, one.size)
                nodes += [hub if step is None else str(base + step * stride) for step in steps]
                here = base + end * stride
        return nodes

    return wiring.network("-".join(SHAPES[one.shape].name for one in dimensions), n_workers, along)


def _stride(dimensions: Sequence[Dimension], place: int) -> int:
    return prod(one.size for one in dimensions[:place])


def _groups(dimensions: Sequence[Dimension], place: int) -> Iterator[range]:
    """Yield the workers of each line along a dimension."""
    stride, size = _stride(dimensions, place), dimensions[place].size
    for block in range(0, prod(one.size for one in dimensions), stride * size):
        for first in range(block, block + stride):
            yield range(first, first + stride * size, stride)


def _hub(dimensions: Sequence[Dimension], place: int, worker: int) -> str:
    """Return the switch that a worker has along a dimension: ``switch``, or ``switch2-5`` where there are several."""
    if len(dimensions) == 1:
        return "switch"
    stride, size = _stride(dimensions, place), dimensions[place].size
    return f"switch{place}-{worker // (stride * size) * stride + worker % stride}"
