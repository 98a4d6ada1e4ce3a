"""From latencies and bandwidths that NCCL printed back to what its search found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ringnet.analysis.nccl import constants as c
from ringnet.analysis.nccl.model import Cell, ChannelGraph, NcclMachine, cost_table

#: Half of the last printed digit.
_HALF_DIGIT = 0.05


def fitted_to(machine: NcclMachine, printed: Mapping[Cell, tuple[str, str]]) -> NcclMachine:
    """Return a machine with the bandwidths of rings and trees, and the LL128, that printed values speak of.

    Bandwidths of Simple are the graph's times a share that the formula knows: all of an algorithm together leave a
    range, of which the middle is taken. What no value tells stays as it is.

    Parameters
    ----------
    machine : NcclMachine
        Hosts, GPUs and CPUs must be right; its rings and trees count only where no value tells of them.
    printed : mapping of Cell to (str, str)
        Latency in us and bandwidth in GB/s, as printed.
    """
    has_ll128 = any(cell[2] == "LL128" and float(values[1]) for cell, values in printed.items())
    has_nvls = any(cell[1].startswith("nvls") and float(values[0]) for cell, values in printed.items())
    nvls = machine.nvls if has_nvls else None
    machine = replace(machine, ll128=has_ll128, nvls=nvls)
    for kind, algorithms in _KINDS.items():
        total = _total(machine, printed, algorithms)
        if total:
            # Limits of a channel depend on how many there are: the number that explains most values is taken.
            choices = [_with_graph(machine, kind, total, n) for n in range(1, c.MOST_SEARCHED_CHANNELS + 1)]
            machine = max(choices, key=lambda choice: _n_equal(choice, printed, algorithms))
    return machine


_KINDS = {"ring": ("ring",), "tree": ("pat", "tree")}


def _with_graph(machine: NcclMachine, kind: str, total_GBps: float, n_channels: int) -> NcclMachine:
    graph = ChannelGraph(n_channels, total_GBps / n_channels, total_GBps / n_channels)
    return replace(machine, ring=graph) if kind == "ring" else replace(machine, tree=graph)


def _n_equal(
    machine: NcclMachine, printed: Mapping[Cell, tuple[str, str]], algorithms: tuple[str, ...]
) -> int:
    """Return how many printed bandwidths of some algorithms a machine has to the last digit."""
    table = cost_table(machine)
    return sum(
        f"{table[cell].bandwidth_GBps:.1f}" == values[1]
        for cell, values in printed.items()
        if cell[1] in algorithms
    )


def _total(
    machine: NcclMachine, printed: Mapping[Cell, tuple[str, str]], algorithms: tuple[str, ...]
) -> float | None:
    """Return the bandwidth of all channels together that printed values of Simple allow; None where none is printed."""
    # So many channels that no bandwidth of one is at its limit: each value is then the total times a share.
    probe = ChannelGraph(1 << 20, 1e-6, 1e-6)
    shares = cost_table(replace(machine, ring=probe, tree=probe))
    unit = probe.n_channels * probe.inside_GBps
    ranges = [*_ranges(shares, printed, algorithms, unit)]
    if not ranges:
        return None
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    return (low + high) / 2 if low <= high else sum(ranges[0]) / 2


def _ranges(
    shares: Mapping[Cell, tuple[float, float]],
    printed: Mapping[Cell, tuple[str, str]],
    algorithms: tuple[str, ...],
    unit_GBps: float,
) -> Iterator[tuple[float, float]]:
    for cell, (_, bandwidth) in printed.items():
        share = shares[cell][1] / unit_GBps
        if cell[1] in algorithms and cell[2] == "Simple" and share and float(bandwidth):
            yield (float(bandwidth) - _HALF_DIGIT) / share, (float(bandwidth) + _HALF_DIGIT) / share
