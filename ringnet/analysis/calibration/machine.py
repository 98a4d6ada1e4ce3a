"""A machine as a collective library sees it: a few physical parameters, and the time of every algorithm and protocol.

A library has algorithms (a ring, a tree, a switch that reduces) and protocols (NCCL's LL, LL128 and Simple, of which
each costs more latency and less bandwidth than the one before), and takes what is fastest:

    time = soft minimum over algorithms and protocols of
           launch + hops inside x latency inside + hops between x latency between + bytes / bandwidth

Hops are counted as in NCCL's own model: a ring has 2(N-1), of them 2(nodes-1) between nodes; a tree has a chain
inside each node and log2(nodes) levels between, each of which waits for a chunk: the bytes of the first count at all of
them. Bytes between nodes cross as many rails at a time as a node has workers, or cards.

What data cannot tell is taken from priors: log-normal, about NCCL's published constants where it publishes them
(``src/graph/tuning.cc`` of v2.8 to v2.30: base latencies of 6.6 to 14 us; 0.6, 1.9 and 3.4 us for a hop over NVLink,
2.7, 4 and 14 us over the network, 5, 8.5 and 14 us for a tree's; LL128 120/128 of the bandwidth), and about what
public logs of nccl-tests show where those constants only steer a choice (LL reaches a twenty-fifth of the bandwidth, a
tree two thirds). Open MPI's own decision (``coll_tuned_decision_fixed.c`` of 4.0) is by size: it doubles below
10,000 bytes, and has a ring from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ringnet.analysis.calibration.samples import PASSES, Samples
from ringnet.array_types import FloatArray

#: How sharply the fastest is taken: two ways that take as long are 4 % faster together than each.
_SHARPNESS = 16.0
#: Beyond so many times the largest size of a rule, or below, nothing is left in doubt.
_MOST_OVER = 1e4
#: What a ring gets at most of the NVLink of a generation, and what a switch that reduces gets at least and at most of
#: the same links: bus bandwidth of hosts of 8, in bytes per second (H100 and H200: 370; 440 to 490. B200: 700; 760 to
#: 900).
_REDUCING_SWITCH = ((370e9, 400e9, 540e9), (700e9, 740e9, 1000e9))
#: Messages of that size take their time for their bytes. Where there are none that do, bandwidth inside, in bytes/s,
#: is within a factor of what GPUs of the data sheets below have, by the mean of the logarithms, or a process on a host.
_LARGE_BYTES, _USUAL, _USUAL_HOST, _UNSEEN = 2**20, 110e9, 3e9, 10.0
#: A worker's part of the cards of its node, by what a ring gets inside. Of GPUs by data sheets: DGX-1 and DGX-2 1/21,
#: DGX-A100 and NDv4 1/9, DGX-H100 and p5 1/8, DGX-B200 1/14, p3dn and NDv2 1/83, p4d 1/38, Summit 1/17, Perlmutter
#: 1/10, Frontier and MI300X 1/6, four or eight on PCIe with 100 Gbit/s 1/6 and 1/8; the mean of the logarithms is 1/13.
#: What a process on a host copies and sums by itself is no faster than its part of a card.
_RAIL_SHARE, _RAIL_SHARE_HOST = 1 / 13, 1.0
#: With fewer workers NCCL does not reduce in the switch.
_FEWEST_ON_SWITCH = 5


class LinkParameter(NamedTuple):
    """What a machine has: a name, what it is measured in, and its prior: center, and deviation of its logarithm.

    Of the priors the first is that of GPU libraries, the second that of MPI on host memory. NCCL's launch is its 6.6 us
    of LL, and its hop inside lies between those of NVLink and of PCI, 0.6 and 1 us: a launch is a program's, and varies
    less from machine to machine than a hop. Bandwidths have no center of their own: it comes from the largest that was
    seen.
    """

    name: str
    kind: str
    gpu: tuple[float, float]
    mpi: tuple[float, float]


PARAMETERS = (
    LinkParameter("launch", "seconds", (6.6e-6, 0.5), (1e-6, 0.9)),
    LinkParameter("launch_medium", "ratio", (2.0, 0.4), (1.5, 0.5)),
    LinkParameter("launch_large", "ratio", (1.5, 0.4), (2.0, 0.5)),
    LinkParameter("hop_inside", "seconds", (0.77e-6, 0.7), (0.3e-6, 0.8)),
    LinkParameter("hop_inside_medium", "ratio", (3.0, 0.5), (2.0, 0.5)),
    LinkParameter("hop_inside_large", "ratio", (5.0, 0.5), (4.0, 0.5)),
    LinkParameter("hop_between", "seconds", (3e-6, 0.9), (1.3e-6, 0.9)),
    LinkParameter("hop_between_of_tree", "ratio", (1.8, 0.4), (1.0, 0.4)),
    LinkParameter("hop_between_medium", "ratio", (1.6, 0.5), (1.5, 0.5)),
    LinkParameter("hop_between_large", "ratio", (3.7, 0.5), (3.0, 0.5)),
    LinkParameter("bandwidth_inside", "bytes_per_second", (0.0, 0.8), (0.0, 0.8)),
    LinkParameter("bandwidth_of_a_rail", "bytes_per_second", (0.0, 0.8), (0.0, 0.8)),
    LinkParameter("share_small", "ratio", (0.04, 0.6), (0.3, 0.6)),
    LinkParameter("share_medium", "ratio", (0.9, 0.15), (0.8, 0.15)),
    LinkParameter("share_of_tree", "ratio", (0.65, 0.35), (0.65, 0.35)),
    LinkParameter("bandwidth_of_the_switch", "bytes_per_second", (0.0, 0.5), (0.0, 0.5)),
    LinkParameter("chunk_of_tree", "bytes", (2.0**18, 1.0), (2.0**18, 1.0)),
    LinkParameter("largest_doubled", "bytes", (1e4, 0.3), (1e4, 0.3)),
)
NAMES = tuple(parameter.name for parameter in PARAMETERS)
N_PARAMETERS = len(PARAMETERS)
(
    LAUNCH, LAUNCH_MEDIUM, LAUNCH_LARGE, INSIDE, INSIDE_MEDIUM, INSIDE_LARGE, BETWEEN, TREE_HOP, BETWEEN_MEDIUM,
    BETWEEN_LARGE, INSIDE_RATE, RAIL_RATE, SMALL, MEDIUM, TREE_SHARE, SWITCH_RATE, TREE_CHUNK, LARGEST_DOUBLED,
) = range(N_PARAMETERS)  # fmt: skip


@dataclass(frozen=True)
class Library:
    """Who runs the collective.

    Parameters
    ----------
    algorithms : tuple of str
    protocols : tuple of str
        What it calls its protocols for small, medium and large messages.
    per_node : int
        Workers of a node where nobody says.
    on_host : bool
        Whether it moves what lies in host memory: then its priors are those of MPI.
    goes_by_size : bool
        Whether it takes recursive doubling up to some size and a ring beyond, and not what is faster.
    """

    algorithms: tuple[str, ...]
    protocols: tuple[str, str, str]
    per_node: int
    on_host: bool = False
    goes_by_size: bool = False


_SIZES = ("small", "medium", "large")
LIBRARIES = {
    "gpu": Library(("ring", "tree", "switch"), ("LL", "LL128", "Simple"), 8),
    "mpi": Library(("ring", "doubling"), ("short", "eager", "rendezvous"), 1, on_host=True, goes_by_size=True),
    "neuron": Library(("ring", "tree"), _SIZES, 32),
    "gloo": Library(("ring", "doubling"), _SIZES, 1, on_host=True),
}
#: Those that are tried where nobody says who ran it, by preference where data cannot tell them apart.
UNNAMED = ("gpu", "mpi")


class Way(NamedTuple):
    """An algorithm, and which of the protocols of its library."""

    algorithm: str
    protocol: int


@dataclass(frozen=True)
class Family:
    """What a machine may do: a library, those of its algorithms that are in question, and its rails.

    Parameters
    ----------
    library : str
        One of `LIBRARIES`.
    algorithms : tuple of str
    most_rails : float
        Beyond how many workers of a node more do not bring more bandwidth between nodes; infinite where nothing says
        so.
    collective : str
    """

    library: str
    algorithms: tuple[str, ...]
    most_rails: float = np.inf
    collective: str = "all_reduce"

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Every algorithm with every protocol; a switch has the last only."""
        found = [
            Way(algorithm, protocol)
            for algorithm in self.algorithms
            for protocol in (range(3) if algorithm != "switch" else (2,))
        ]
        return tuple(found)

    def named(self, way: int) -> str:
        """Return in words what a way is: ``tree, LL``."""
        algorithm, protocol = self.ways[way]
        return f"{algorithm}, {LIBRARIES[self.library].protocols[protocol]}"

    def times(self, logs: FloatArray, rows: Samples | Counts) -> FloatArray:
        """Return the time of every way, shape (n_ways, n), in seconds; infinite where one cannot be.

        Parameters
        ----------
        logs : ndarray of float64, shape (18,)
            Natural logarithms of `PARAMETERS`; of several machines at once, shape (18, k), all that is returned here
            and below has their axis before that of the rows.
        rows : Samples or Counts
        """
        counts = self.counts(rows) if isinstance(rows, Samples) else rows
        values = np.exp(logs)[..., None]
        protocols, byte_s = _Protocols.of(values), counts.byte_s(values)
        return np.concatenate([_TIMES[name](values, protocols, counts, byte_s) for name in self.algorithms])

    def offers(self, logs: FloatArray, rows: Samples | Counts) -> FloatArray:
        """Return the time of every way as the library sees it: what its rule leaves out takes beyond all measure.

        The fastest is taken, except by MPI: it doubles up to some size, whatever it takes, and has a ring beyond.
        """
        counts = self.counts(rows) if isinstance(rows, Samples) else rows
        times = self.times(logs, counts)
        if not self.goes_by_size:
            return times
        largest = np.exp(logs[LARGEST_DOUBLED])[..., None]
        over = np.minimum(np.maximum(counts.message_bytes, 1.0) / largest, _MOST_OVER)
        doubles = np.array([way.algorithm == "doubling" for way in self.ways])
        doubles = doubles.reshape(-1, *[1] * (times.ndim - 1))
        offered: FloatArray = times * (1 + np.where(doubles, over, 1 / over) ** _SHARPNESS)
        return offered

    @property
    def goes_by_size(self) -> bool:
        """Whether the library has a rule by size, and both that it chooses between are in question."""
        return LIBRARIES[self.library].goes_by_size and {"doubling", "ring"} <= set(self.algorithms)

    def log_time(self, logs: FloatArray, rows: Samples | Counts) -> FloatArray:
        """Return the natural logarithm of the soft minimum of what the library offers, shape (n,)."""
        times = self.offers(logs, rows)
        least = times.min(axis=0)
        eighth = np.square(np.square(np.square(least / times)))
        together: FloatArray = np.log(least) - np.log(np.square(eighth).sum(axis=0)) / _SHARPNESS
        return together

    def counts(self, rows: Samples) -> Counts:
        """Return what the algorithms count of some rows: to be kept where times are asked for often."""
        nodes = nodes_of(self.library, rows)
        return Counts.of(rows, nodes, self.most_rails, PASSES[self.collective])


def nodes_of(library: str, rows: Samples) -> FloatArray:
    """Return on how many nodes each row ran; where nobody says, workers sit as those of the library mostly do."""
    n = rows.n_workers.astype(np.float64)
    taken = np.ceil(n / LIBRARIES[library].per_node)
    nodes: FloatArray = np.where(rows.n_nodes > 0, rows.n_nodes, taken).astype(np.float64)
    return nodes


class Counts(NamedTuple):
    """What the algorithms count: workers, nodes, workers of a node, rails at a time, passes, bytes of the message."""

    n: FloatArray
    nodes: FloatArray
    per_node: FloatArray
    rails: FloatArray
    passes: float
    message_bytes: FloatArray

    @classmethod
    def of(cls, rows: Samples, nodes: FloatArray, most_rails: float, passes: float) -> Counts:
        """Count, of some rows on so many nodes."""
        n = rows.n_workers.astype(np.float64)
        per_node = n / nodes
        return cls(n, nodes, per_node, np.minimum(per_node, most_rails), passes, rows.message_bytes)

    def byte_s(self, values: FloatArray) -> FloatArray:
        """Return the seconds for each byte that a worker passes on, over links inside and between nodes in series."""
        inside, between = 1 / values[INSIDE_RATE], 1 / (values[RAIL_RATE] * self.rails)
        chosen: FloatArray = np.where(
            self.nodes <= 1, inside, np.where(self.per_node <= 1, between, _in_series(inside, between))
        )
        return chosen


def _in_series(one: float, other: FloatArray) -> FloatArray:
    """Return the seconds for each byte over two links: the longer, and some more where they are alike."""
    both: FloatArray = np.sqrt(np.sqrt(np.square(np.square(one)) + np.square(np.square(other))))
    return both


class _Protocols(NamedTuple):
    """Launch, hop inside, hop between (s) and share of the bandwidth of the three protocols, each of shape (3, 1)."""

    launch: FloatArray
    inside: FloatArray
    between: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> _Protocols:
        factors = np.ones((4, 3, *values.shape[1:]))
        factors[0, 1:] = values[[LAUNCH_MEDIUM, LAUNCH_LARGE]]
        factors[1, 1:] = values[[INSIDE_MEDIUM, INSIDE_LARGE]]
        factors[2, 1:] = values[[BETWEEN_MEDIUM, BETWEEN_LARGE]]
        factors[3, :2] = values[[SMALL, MEDIUM]]
        factors[:3] *= values[[LAUNCH, INSIDE, BETWEEN]][:, None]
        return cls(*factors)


def _ring(values: FloatArray, of: _Protocols, counts: Counts, byte_s: FloatArray) -> FloatArray:
    inside, between = counts.passes * (counts.n - counts.nodes), counts.passes * (counts.nodes - 1)
    moved = counts.passes * (counts.n - 1) / counts.n * counts.message_bytes
    time: FloatArray = of.launch + inside * of.inside + between * of.between + moved * byte_s / of.share
    return time


def _tree(values: FloatArray, of: _Protocols, counts: Counts, byte_s: FloatArray) -> FloatArray:
    # A chain inside a node, a binary tree across. Chunks follow each other: a byte of the first counts at every level.
    inside, levels = counts.passes * (counts.per_node - 1), counts.passes * np.log2(counts.nodes)
    # Two workers need no tree: each sends to the other what a ring would.
    moved = counts.message_bytes * np.where(counts.n == 2, 0.5, 1.0)  # noqa: PLR2004
    first = moved / np.sqrt(1 + np.square(moved / values[TREE_CHUNK]))
    each_s = np.maximum(levels / (values[RAIL_RATE] * counts.rails), counts.passes * byte_s)
    taken_s = first * each_s + counts.passes * (moved - first) * byte_s
    hops = of.launch + inside * of.inside + levels * of.between * values[TREE_HOP]
    time: FloatArray = hops + taken_s / (of.share * values[TREE_SHARE])
    return time


def _doubling(values: FloatArray, of: _Protocols, counts: Counts, byte_s: FloatArray) -> FloatArray:
    # All-reduce: the whole message at each of log2 N exchanges. The other two: parts that double.
    inside, levels = counts.passes * np.log2(counts.per_node), counts.passes * np.log2(counts.nodes)
    whole = np.log2(counts.n) if counts.passes > 1 else (counts.n - 1) / counts.n
    hops = of.launch + inside * of.inside + levels * of.between * values[TREE_HOP]
    time: FloatArray = hops + whole * counts.message_bytes * byte_s / of.share
    return time


def _switch(values: FloatArray, of: _Protocols, counts: Counts, byte_s: FloatArray) -> FloatArray:
    # Every worker sends the message up once and gets the sum once: no more with more workers. Between nodes a tree.
    levels = counts.passes * np.log2(counts.nodes) * of.between[2] * values[TREE_HOP]
    over = counts.passes * (counts.nodes - 1) / counts.nodes / (values[RAIL_RATE] * counts.rails)
    hops = of.launch[2] + counts.passes * of.inside[2] + levels
    time = hops + counts.message_bytes * _in_series(1 / values[SWITCH_RATE], over)
    return np.where(counts.per_node >= _FEWEST_ON_SWITCH, time, np.inf)[None, :]


_TIMES = {"ring": _ring, "tree": _tree, "doubling": _doubling, "switch": _switch}


@dataclass(frozen=True)
class Prior:
    """Natural logarithms of what a machine is expected to have, and how sure that is."""

    center: FloatArray
    deviation: FloatArray


def prior_for(family: Family, samples: Samples) -> Prior:
    """Return the prior of a family's parameters; bandwidths are expected about the largest that was seen."""
    on_host = LIBRARIES[family.library].on_host
    columns = [parameter.mpi if on_host else parameter.gpu for parameter in PARAMETERS]
    center = np.array([np.log(value) if value else 0.0 for value, _ in columns])
    deviation = np.array([spread for _, spread in columns])
    seen = bus_bandwidth(samples, family.collective)
    nodes = nodes_of(family.library, samples)
    crosses, per_node = nodes > 1, samples.n_workers / nodes
    share = _RAIL_SHARE_HOST if on_host else _RAIL_SHARE
    seen_rail, seen_inside = (
        1.05 * float(rate.max(initial=0)) for rate in ((seen / per_node)[crosses], seen[~crosses])
    )
    # What small messages get says only that there is as much: it is what the other links, or machines, have, or more.
    tells_rail, tells_inside = (_tells_bytes(samples.where(rows)) for rows in (crosses, ~crosses))
    usual = _USUAL_HOST if on_host else _USUAL
    inside = seen_inside if tells_inside else seen_rail / share if tells_rail else usual
    rail = seen_rail if tells_rail else inside * share
    inside, rail = max(inside, seen_inside), max(rail, seen_rail)
    if not (tells_rail or tells_inside):
        deviation[[INSIDE_RATE, RAIL_RATE]] = np.log(_UNSEEN)
    if "switch" in family.algorithms:
        of_ring = _reducing_switch(samples)
        center[SWITCH_RATE] = np.log((samples.message_bytes / samples.time_s).max())
        inside = of_ring or inside
        # What tells a switch also tells both rates; without that, a fit may call the ring the switch.
        deviation[INSIDE_RATE], deviation[SWITCH_RATE] = 0.08, 0.15
    center[INSIDE_RATE], center[RAIL_RATE] = np.log(inside), np.log(rail)
    return Prior(center, deviation)


def _tells_bytes(samples: Samples) -> bool:
    """Tell whether the largest messages take their time for their bytes: it grows half as fast, or they are large."""
    if samples.message_bytes.max(initial=0) >= _LARGE_BYTES:
        return True
    for setting in samples.settings:
        rows = samples.where(samples.of(setting))
        top, less = (
            rows.message_bytes == rows.message_bytes.max(),
            rows.message_bytes <= rows.message_bytes.max() / 4,
        )
        if less.any():
            near = rows.message_bytes == rows.message_bytes[less].max()
            times, sizes = (
                np.log(np.median(one[top]) / np.median(one[near])) for one in (rows.time_s, rows.message_bytes)
            )
            if times > sizes / 2:
                return True
    return False


def bus_bandwidth(samples: Samples, collective: str = "all_reduce") -> FloatArray:
    """Return the bus bandwidth of every row, in bytes per second."""
    moved = PASSES[collective] * (samples.n_workers - 1) / samples.n_workers
    rate: FloatArray = moved * samples.message_bytes / samples.time_s
    return rate


def _reducing_switch(samples: Samples) -> float:
    """Return what a ring gets of the links of which a switch makes what was seen; 0 where a ring may have made it."""
    enough = samples.n_workers / nodes_of("gpu", samples) >= _FEWEST_ON_SWITCH
    if not enough.any():
        return 0.0
    most = float(bus_bandwidth(samples)[enough].max())
    return next((ring for ring, low, high in _REDUCING_SWITCH if low <= most <= high), 0.0)


def algorithms_of(library: str, samples: Samples, collective: str, allowed: Sequence[str] = ()) -> tuple[str, ...]:
    """Return which algorithms of a library are in question.

    A library of accelerators makes the other collectives as a ring only; NCCL reduces in the switch where bus bandwidth
    is above what a ring gets of such links.
    """
    known = LIBRARIES[library].algorithms
    if not LIBRARIES[library].on_host and PASSES[collective] == 1:
        known = ("ring",)
    if not (collective == "all_reduce" and _reducing_switch(samples)):
        known = tuple(name for name in known if name != "switch")
    return tuple(name for name in known if not allowed or name in allowed) or known[:1]
