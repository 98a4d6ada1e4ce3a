"""NCCL's own cost model: latency and bandwidth of every algorithm and protocol, the time of a size, and the choice.

The formulas are those of ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime`` (``src/graph/tuning.cc``) and of
``updateCollCostTable`` and ``topoGetAlgoInfo`` (``src/enqueue.cc``) of NCCL 2.29, written anew. A time is latency plus
bytes / bandwidth; both are what NCCL believes, not what a machine does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

from ringnet.analysis.nccl import constants as c

#: Collective, algorithm, protocol.
Cell: TypeAlias = tuple[str, str, str]


class ChannelGraph(NamedTuple):
    """What NCCL's search found for an algorithm: channels, and the bandwidth of each in GB/s."""

    n_channels: int
    inside_GBps: float
    between_GBps: float


class CellCost(NamedTuple):
    """Latency in microseconds and bandwidth in GB/s of one algorithm and protocol; no bandwidth: not available."""

    latency_us: float
    bandwidth_GBps: float


@dataclass(frozen=True)
class NcclMachine:
    """What NCCL's cost model reads of a machine.

    Parameters
    ----------
    n_ranks, n_nodes : int
        Every host holds the same number of ranks.
    ring, tree : ChannelGraph
    nvls : ChannelGraph or None
        None where GPUs have no switch that reduces.
    collnet : ChannelGraph or None
        None where the network does not reduce (SHARP).
    gpu, cpu, inside : str
        Of `constants.GPUS`, `constants.CPUS`, `constants.INSIDE`.
    ll128 : bool
        LL128 needs NVLink inside a host and GPUs that reach the cards without the CPU.
    nvswitch : bool
        Whether the GPUs of a host are joined by switches.
    same_channels : bool
        Whether all channels visit the GPUs of a host in one order.
    tree_through_one_gpu : bool
        Whether all traffic of a tree between hosts goes through one GPU of each.
    network_latency_us : float
        Of the network card, as its plug-in states it: 0 for InfiniBand and sockets.
    """

    n_ranks: int
    n_nodes: int
    ring: ChannelGraph
    tree: ChannelGraph
    nvls: ChannelGraph | None = None
    collnet: ChannelGraph | None = None
    gpu: str = "hopper"
    cpu: str = "intel"
    inside: str = "nvlink"
    ll128: bool = True
    nvswitch: bool = True
    same_channels: bool = True
    tree_through_one_gpu: bool = False
    network_latency_us: float = 0.0

    @property
    def ranks_per_node(self) -> int:
        """Ranks of each host."""
        return self.n_ranks // self.n_nodes

    @property
    def n_channels(self) -> int:
        """Channels of the communicator: those of rings and trees, joined twice over."""
        return c.CHANNELS_PER_SEARCHED * min(self.ring.n_channels, self.tree.n_channels)

    def graph(self, algorithm: str) -> ChannelGraph | None:
        """Return the channels that an algorithm runs on; None where it has none."""
        if algorithm.startswith("nvls"):
            return self.nvls
        if algorithm.startswith("collnet"):
            return self.collnet
        return self.ring if algorithm == "ring" else self.tree


def cost_table(machine: NcclMachine) -> dict[Cell, CellCost]:
    """Return latency and bandwidth of every cell, in NCCL's order: collectives, algorithms, protocols.

    Examples
    --------
    >>> sockets = ChannelGraph(2, 1.2, 1.2)
    >>> two = NcclMachine(2, 2, sockets, sockets, gpu="blackwell", inside="pci", ll128=False)
    >>> tuple(round(each, 1) for each in cost_table(two)["all-gather", "pat", "Simple"])
    (17.6, 1.8)
    """
    return {
        (collective, algorithm, protocol): _cell(machine, collective, algorithm, place)
        for collective in c.COLLECTIVES
        for algorithm in c.ALGORITHMS
        for place, protocol in enumerate(c.PROTOCOLS)
    }


def time_us(machine: NcclMachine, cell: Cell, cost: CellCost, n_bytes: int) -> float:
    """Return NCCL's time of a message in microseconds; infinite where the cell is not available.

    Parameters
    ----------
    n_bytes : int
        The whole buffer of one rank, as nccl-tests counts it: for an all-gather what is gathered.
    """
    collective, algorithm, protocol = cell
    latency_us, bandwidth_GBps = cost
    if not bandwidth_GBps:
        return inf
    power = (n_bytes >> 6).bit_length() - 1
    corrected = _corrected_powers(machine, algorithm) if collective == "all-reduce" else 0
    if 0 <= power < corrected:
        bandwidth_GBps *= c.TREE_CORRECTION[c.PROTOCOLS.index(protocol)][power]
    is_plateau = n_bytes // (machine.n_channels * machine.n_ranks) >= c.PLATEAU_BYTES
    if (algorithm, protocol, collective) == ("ring", "Simple", "all-reduce") and machine.n_nodes > 1 and is_plateau:
        latency_us *= c.RING_PLATEAU[machine.gpu]
    return latency_us + n_bytes / (1000 * bandwidth_GBps)


def _corrected_powers(machine: NcclMachine, algorithm: str) -> int:
    """Return for how many powers of two from 64 B on a tree's bandwidth is corrected."""
    if algorithm == "nvls-tree" and machine.gpu == "blackwell" and machine.cpu != "other":
        return c.NVLS_TREE_CORRECTED
    return c.TREE_CORRECTED if algorithm == "tree" else 0


def _cell(machine: NcclMachine, collective: str, algorithm: str, place: int) -> CellCost:
    if not _is_modelled(machine, collective, algorithm, place):
        return CellCost(0.0, 0.0)
    latency_us = _latency_us(machine, collective, algorithm, place)
    usable = _is_usable(machine, collective, algorithm, place)
    return CellCost(latency_us, _bandwidth(machine, collective, algorithm, place) if usable else 0.0)


def _is_modelled(machine: NcclMachine, collective: str, algorithm: str, place: int) -> bool:
    """Whether NCCL computes the cell at all; it prints zeros for the others."""
    simple = c.PROTOCOLS[place] == "Simple"
    if collective in ("broadcast", "reduce"):
        return algorithm == "ring"
    if algorithm == "pat":
        return collective != "all-reduce" and simple and machine.n_ranks == machine.n_nodes
    if algorithm.startswith("nvls"):
        if not simple or machine.nvls is None or machine.nvls.n_channels < 2:  # noqa: PLR2004 -- it needs two
            return False
        return algorithm == "nvls" or collective == "all-reduce"
    return collective == "all-reduce" or algorithm in ("ring", "collnet-direct")


def _is_usable(machine: NcclMachine, collective: str, algorithm: str, place: int) -> bool:
    """Whether the machine has what the cell needs, and NCCL does not turn it off."""
    if c.PROTOCOLS[place] == "LL128" and not machine.ll128:
        return False
    per_node, several = machine.ranks_per_node, machine.n_nodes > 1
    if algorithm.startswith("collnet"):
        sharp = machine.collnet is not None and per_node <= c.COLLNET_MOST_PER_HOST
        return sharp and c.PROTOCOLS[place] == "Simple" and (algorithm == "collnet-chain" or machine.nvswitch)
    if algorithm == "nvls":
        alone = collective == "all-reduce" or per_node <= c.NVLS_MOST_PER_HOST
        return alone and (not several or machine.collnet is not None)
    return algorithm != "nvls-tree" or several


def _few_nodes(machine: NcclMachine) -> int:
    """Return the column of tables by hosts: 1, 2, more."""
    return min(machine.n_nodes, 3) - 1


def _bandwidth(machine: NcclMachine, collective: str, algorithm: str, place: int) -> float:
    graph = machine.graph(algorithm)
    assert graph is not None  # only of usable cells
    bus_GBps = _bus_bandwidth(machine, graph, collective, algorithm, place)
    if algorithm in ("ring", "nvls", "nvls-tree") and (algorithm == "ring" or collective == "all-reduce"):
        return bus_GBps * machine.n_ranks / _n_steps(machine, collective)
    return bus_GBps * 0.5 if collective == "all-reduce" else bus_GBps


def _bus_bandwidth(machine: NcclMachine, graph: ChannelGraph, collective: str, algorithm: str, place: int) -> float:
    if algorithm.startswith("nvls"):
        return graph.n_channels * _nvls_bandwidth(machine, graph, collective, algorithm)
    if algorithm.startswith("collnet"):
        return _collnet_bandwidth(machine, graph, collective, algorithm)
    bus_GBps = graph.n_channels * (graph.inside_GBps if machine.n_nodes <= 2 else graph.between_GBps)  # noqa: PLR2004 -- NCCL's rule
    if algorithm == "pat":
        return bus_GBps * c.PAT
    return (_ring_bandwidth if algorithm == "ring" else _tree_bandwidth)(machine, graph, bus_GBps, place)


def _ring_bandwidth(machine: NcclMachine, graph: ChannelGraph, bus_GBps: float, place: int) -> float:
    few = _few_nodes(machine)
    match c.PROTOCOLS[place]:
        case "LL":
            return min(_ll_most(machine), bus_GBps * c.RING_LL)
        case "LL128":
            return min(bus_GBps * c.RING_LL128, graph.n_channels * c.RING_LL128_MOST_GBps[machine.gpu][few])
        case _:
            return bus_GBps


def _tree_bandwidth(machine: NcclMachine, graph: ChannelGraph, bus_GBps: float, place: int) -> float:
    few = _few_nodes(machine)
    bus_GBps = min(bus_GBps * c.TREE, graph.n_channels * c.TREE_MOST_GBps[machine.gpu][few])
    if c.PROTOCOLS[place] == "LL":
        bus_GBps = min(bus_GBps * c.TREE_LL, _ll_most(machine))
    elif c.PROTOCOLS[place] == "LL128":
        share = c.TREE_LL128 if few else c.TREE_LL128_ONE_HOST
        bus_GBps = min(bus_GBps * share, graph.n_channels * c.TREE_LL128_MOST_GBps[machine.gpu][few])
    return bus_GBps * (c.TREE_THROUGH_ONE_GPU if machine.tree_through_one_gpu else 1.0)


def _ll_most(machine: NcclMachine) -> float:
    by_cpu = "ampere" if machine.cpu == "amd" else "volta"
    return c.LL_MOST_GBps[machine.gpu if machine.n_nodes == 1 else by_cpu][_few_nodes(machine)]


def _nvls_bandwidth(machine: NcclMachine, graph: ChannelGraph, collective: str, algorithm: str) -> float:
    """Return the bandwidth of a channel: one of them is kept for the switch."""
    inside = graph.inside_GBps * c.NVLS_EFFICIENCY[machine.gpu] * (graph.n_channels - 1) / graph.n_channels
    per_node = machine.ranks_per_node
    inside *= 2.0 if collective == "all-reduce" else (per_node - 1) / per_node
    tree = algorithm == "nvls-tree"
    between = graph.between_GBps * (2 if tree and machine.n_nodes <= 2 else 1)  # noqa: PLR2004 -- NCCL's rule
    return min(inside, between, c.NVLS_TREE_MOST_GBps[machine.gpu][_few_nodes(machine)] if tree else inf)


def _collnet_bandwidth(machine: NcclMachine, graph: ChannelGraph, collective: str, algorithm: str) -> float:
    bus_GBps, per_node = graph.n_channels * graph.inside_GBps, machine.ranks_per_node
    if algorithm == "collnet-chain":
        return bus_GBps
    if collective != "all-reduce":
        return per_node * min(graph.inside_GBps, graph.between_GBps * c.COLLNET_BETWEEN)
    ratio = per_node / graph.n_channels
    bus_GBps /= ratio - (ratio - 1) / 2
    return bus_GBps * (c.COLLNET_DIRECT_HOPPER if machine.gpu in ("hopper", "blackwell") else 1.0)


def _n_steps(machine: NcclMachine, collective: str) -> int:
    n = machine.n_ranks
    return {"all-reduce": 2 * (n - 1), "all-gather": n - 1, "reduce-scatter": n - 1}.get(collective, n)


def _latency_us(machine: NcclMachine, collective: str, algorithm: str, place: int) -> float:
    base, inside = c.BASE_US[algorithm][place], c.HOP_US[machine.inside][algorithm][place]
    # One rank a host has nothing else to do meanwhile: NCCL takes the hop of a tree.
    hop_of = "tree" if machine.ranks_per_node == 1 else algorithm
    simple = c.PROTOCOLS[place] == "Simple"  # it waits for the card a second time, to flush
    between = c.HOP_US["network"][hop_of][place] + machine.network_latency_us * (2 if simple else 1)
    others, log_nodes = machine.ranks_per_node - 1, machine.n_nodes.bit_length() - 1
    hops = {
        "tree": 2 * (others * inside + log_nodes * between),
        "collnet-direct": 2 * (min(1, others) * inside + others * c.COLLNET_DIRECT_ARITY_US) + between,
        "collnet-chain": 2 * others * inside + between,
        "nvls": inside + (between if machine.n_nodes > 1 else 0.0),
        "nvls-tree": inside + 2 * log_nodes * between,
        "pat": log_nodes * between * c.PAT_LOG_SHARE + machine.n_ranks * c.PAT_RANK_US,
    }
    if algorithm == "ring":
        return base + _ring_us(machine, collective, place, inside, between)
    return base + hops[algorithm]


def _ring_us(machine: NcclMachine, collective: str, place: int, inside_us: float, between_us: float) -> float:
    n_steps, several = _n_steps(machine, collective), machine.n_nodes > 1
    simple = c.PROTOCOLS[place] == "Simple"
    if collective in ("broadcast", "reduce"):
        kind = "network" if several else machine.inside
        if machine.same_channels:
            return c.HOP_US[kind]["ring"][place]
        return n_steps * c.HOP_US[kind]["tree" if simple else "ring"][place]
    overhead_us = c.NET_OVERHEAD_US[machine.cpu] * (c.SIMPLE_OVERHEADS if simple else 1) if several else 0.0
    n_between = (2 if collective == "all-reduce" else 1) * (machine.n_nodes - 1)
    return (n_steps - n_between) * max(inside_us, overhead_us) + n_between * between_us


# ------------------------------------------------------------------------------------------------- the choice


class Pick(NamedTuple):
    """What NCCL takes from one size on to another, both in it; the last of all has no end."""

    algorithm: str
    protocol: str
    first_bytes: int
    last_bytes: int


def pick(machine: NcclMachine, table: dict[Cell, CellCost], collective: str, n_bytes: int) -> tuple[str, str]:
    """Return algorithm and protocol that take least by the model; the first of equals, as NCCL does."""
    cells = [cell for cell in table if cell[0] == collective]
    best = min(cells, key=lambda cell: time_us(machine, cell, table[cell], n_bytes))
    return best[1], best[2]


def picks(machine: NcclMachine, table: dict[Cell, CellCost], collective: str, first: int, last: int) -> list[Pick]:
    """Return what is taken from one size to another, to the byte.

    Between the sizes at which a formula changes, every time is a line over bytes. The lower edge of lines has each
    line once: where both ends have the same choice, so has all between them.
    """
    plateau = c.PLATEAU_BYTES * machine.n_channels * machine.n_ranks
    changes = {first, plateau, *(64 << power for power in range(c.NVLS_TREE_CORRECTED + 1))}
    starts = sorted(size for size in changes if first <= size <= last)
    found: list[Pick] = []
    for start, end in zip(starts, [*(size - 1 for size in starts[1:]), last], strict=True):
        for part in _between(machine, table, collective, start, end):
            if found and found[-1][:2] == part[:2]:
                part = part._replace(first_bytes=found.pop().first_bytes)  # noqa: PLW2901 -- one range of both
            found.append(part)
    return found


def _between(machine: NcclMachine, table: dict[Cell, CellCost], collective: str, first: int, last: int) -> list[Pick]:
    at_first, at_last = (pick(machine, table, collective, size) for size in (first, last))
    if at_first == at_last:
        return [Pick(*at_first, first, last)]
    if last - first == 1:
        return [Pick(*at_first, first, first), Pick(*at_last, last, last)]
    middle = (first + last) // 2
    lower = _between(machine, table, collective, first, middle)
    upper = _between(machine, table, collective, middle, last)
    if lower[-1][:2] == upper[0][:2]:
        return [*lower[:-1], lower[-1]._replace(last_bytes=upper[0].last_bytes), *upper[1:]]
    return [*lower, upper[0]._replace(first_bytes=middle + 1), *upper[1:]]
