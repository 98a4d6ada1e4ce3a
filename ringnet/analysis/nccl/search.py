"""Which rings and trees NCCL finds on hosts: searched for as it does, or inferred from what it printed.

NCCL searches paths through PCI switches and NVLinks. What comes of that on a machine without a bottleneck of its own is
simple, and that alone is done here: as many channels of one of NCCL's speeds as fill the bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from ringnet.analysis.nccl import constants as c
from ringnet.analysis.nccl.model import Cell, ChannelGraph, NcclMachine, cost_table
from ringnet.errors import Fault, InputError
from ringnet.networks import Constant, Network
from ringnet.networks.shape import HOSTS, is_card

_ROUNDING = 1 + 1e-9


class NcclTraits(NamedTuple):
    """What a network does not say of a machine; None for what follows from the rest."""

    gpu: str = "hopper"
    cpu: str = "intel"
    inside: str = "nvlink"
    nvls: bool | None = None
    ll128: bool | None = None
    sharp: bool = False


class HostRates(NamedTuple):
    """Hosts alike: GPUs of each, bandwidth of a GPU inside, of all network cards of a host, in GB/s, and cards."""

    n_nodes: int
    per_node: int
    inside_GBps: float
    between_GBps: float
    n_cards: int = 1


def found_graph(
    inside_GBps: float, gpu: str, cards: tuple[int, float] | None = None, *, is_tree: bool = False
) -> ChannelGraph:
    """Return the channels that fill a bandwidth best: the most together, then the fewest.

    Parameters
    ----------
    inside_GBps : float
        What all channels have together at a GPU.
    gpu : str
        Of `constants.GPUS`.
    cards : tuple of int and float, optional
        Network cards of a host, and the bandwidth of each in GB/s, if there are several hosts: a channel goes through
        one of them.
    is_tree : bool
        Over several hosts a tree's channels get up to twice their speed inside; a ring has one speed.

    Examples
    --------
    >>> found_graph(370.8, "hopper")
    ChannelGraph(n_channels=12, inside_GBps=30.0, between_GBps=30.0)
    >>> found_graph(inf, "ampere", (1, 25.0), is_tree=True)
    ChannelGraph(n_channels=2, inside_GBps=24.0, between_GBps=12.0)
    """
    speeds = (c.SPEEDS_BETWEEN_GBps if cards else c.SPEEDS_INSIDE_GBps)[gpu]
    n_channels, between = 0, inf
    for speed in speeds:
        if n_channels and speed < c.SLOWEST_TRIED * between:
            break
        fitting = _fitting(inside_GBps, speed, cards)
        if fitting * speed > (n_channels * between if n_channels else 0.0):
            n_channels, between = fitting, speed
    if not n_channels:  # below the slowest speed
        total = min(inside_GBps, cards[0] * cards[1] if cards else inf)
        return ChannelGraph(1, total, total)
    inside = between
    for speed in reversed(speeds) if is_tree and cards else ():
        if inside < speed and inside < 2 * between and n_channels * speed <= inside_GBps * _ROUNDING:
            inside = speed
    many = gpu in ("hopper", "blackwell") and n_channels > c.MANY_CHANNELS
    least = c.DOUBLED_MANY_GBps if many else c.DOUBLED_GBps
    if inside >= least and 2 * n_channels <= c.MOST_SEARCHED_CHANNELS:
        n_channels, inside, between = 2 * n_channels, inside / 2, between / 2
    return ChannelGraph(n_channels, inside, between)


def _fitting(inside_GBps: float, speed: float, cards: tuple[int, float] | None) -> int:
    """Return how many channels of a speed there may be."""
    by_cards = cards[0] * int(cards[1] / speed * _ROUNDING) if cards else c.MOST_SEARCHED_CHANNELS
    by_gpu = c.MOST_SEARCHED_CHANNELS if inside_GBps == inf else int(inside_GBps / speed * _ROUNDING)
    return min(by_cards, by_gpu, c.MOST_SEARCHED_CHANNELS)


def nccl_machine(hosts: HostRates, traits: NcclTraits) -> NcclMachine:
    """Return the machine that NCCL would see on hosts that are alike."""
    alone, gpu = hosts.per_node == 1, traits.gpu
    counted = c.NVLINK_COUNTED[gpu] if traits.inside == "nvlink" and not alone else 1.0
    inside = inf if alone else hosts.inside_GBps * counted
    a_card = hosts.between_GBps / hosts.n_cards
    cards = (hosts.n_cards, a_card) if hosts.n_nodes > 1 else None
    switched = traits.inside == "nvlink" and not alone
    has_nvls = switched and gpu in ("hopper", "blackwell") if traits.nvls is None else traits.nvls
    return NcclMachine(
        hosts.n_nodes * hosts.per_node,
        hosts.n_nodes,
        ring=found_graph(inside, gpu, cards),
        tree=found_graph(inside, gpu, cards, is_tree=True),
        nvls=_nvls(inside, gpu, cards) if has_nvls and inside < inf else None,
        collnet=_collnet(inside, gpu, cards) if traits.sharp and cards else None,
        gpu=gpu,
        cpu=traits.cpu,
        inside=traits.inside,
        ll128=(alone or traits.inside == "nvlink") if traits.ll128 is None else traits.ll128,
        nvswitch=switched,
        tree_through_one_gpu=alone,
    )


def _nvls(inside_GBps: float, gpu: str, cards: tuple[int, float] | None) -> ChannelGraph:
    """Return a fixed number of channels: of one speed inside, and between hosts of up to twice that."""
    speeds = (c.SPEEDS_BETWEEN_GBps if cards else c.SPEEDS_INSIDE_GBps)[gpu]
    inside = _fastest(speeds, inside_GBps / c.NVLS_CHANNELS)
    most = min(2 * inside, cards[0] * cards[1] / c.NVLS_CHANNELS if cards else inf)
    return ChannelGraph(c.NVLS_CHANNELS, inside, _fastest(speeds, most) if cards else most)


def _collnet(inside_GBps: float, gpu: str, cards: tuple[int, float]) -> ChannelGraph:
    """Return a channel for each card."""
    n_cards, rate = cards
    speeds = c.SPEEDS_BETWEEN_GBps[gpu]
    return ChannelGraph(n_cards, _fastest(speeds, min(inside_GBps, rate)), _fastest(speeds, rate))


def _fastest(speeds: tuple[float, ...], most_GBps: float) -> float:
    return next((speed for speed in speeds if speed <= most_GBps * _ROUNDING), most_GBps)


def host_rates(network: Network) -> HostRates:
    """Read hosts off a network: what leaves a worker, and what leaves a host.

    Without hosts every worker is one of its own.

    Raises
    ------
    InputError
        Hosts differ, or links do more than have one bandwidth: NCCL's model knows one of each.
    """
    shape = network.shape
    if shape.why_not:
        raise InputError(Fault("NCCL's model knows hosts that are alike", "network", value=shape.why_not))
    odd = next((link for link, one in network.behaviours.items() if not isinstance(one, Constant)), None)
    if odd is not None:
        message = "NCCL's model knows links of one bandwidth"
        raise InputError(Fault(message, "network", value=network.names[odd], right="a plain link"))
    groups = network.find_groups() if network.find_groups else {}
    of_node = dict(groups.get(HOSTS, {}))
    places = network.places or tuple(map(str, range(network.n_workers)))
    homes = [of_node.get(place, f"worker {place}") for place in places]
    of_node |= dict(zip(places, homes, strict=True))
    from_worker, from_host = _leaving(network, of_node)
    per_node = shape.workers_per_host or 1
    inside, between = (
        np.array([found.get(name, 0.0) for name in names])
        for found, names in ((from_worker, places), (from_host, dict.fromkeys(homes)))
    )
    n_nodes = len(between)
    for what, rates in (("workers", inside), ("hosts", between if n_nodes > 1 else between[:0])):
        if len(rates) and not np.allclose(rates, rates[0]):
            message = f"NCCL's model knows {what} that are alike"
            value = f"{rates.min() / 1e9:g} to {rates.max() / 1e9:g} GB/s"
            raise InputError(Fault(message, "network", value=value, right="links of one bandwidth"))
    rates_GBps = float(inside[0]) / 1e9, float(between[0]) / 1e9
    return HostRates(n_nodes, per_node, *rates_GBps, shape.cards_per_host or per_node)


def _leaving(network: Network, host_of: dict[str, str]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the bandwidth of the links that leave each node, but to cards, and each host, in bytes per second."""
    from_node: dict[str, float] = {}
    from_host: dict[str, float] = {}
    for link in range(network.n_links):
        start, end = network.ends(link)
        rate = float(network.bandwidth_Bps[link])
        if not is_card(end):
            from_node[start] = from_node.get(start, 0.0) + rate
        if start in host_of and host_of.get(end) != host_of[start]:
            from_host[host_of[start]] = from_host.get(host_of[start], 0.0) + rate
    return from_node, from_host


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


def _n_equal(machine: NcclMachine, printed: Mapping[Cell, tuple[str, str]], algorithms: tuple[str, ...]) -> int:
    """Return how many printed bandwidths of some algorithms a machine has to the last digit."""
    table = cost_table(machine)
    return sum(
        f"{table[cell].bandwidth_GBps:.1f}" == values[1] for cell, values in printed.items() if cell[1] in algorithms
    )


def _total(machine: NcclMachine, printed: Mapping[Cell, tuple[str, str]], algorithms: tuple[str, ...]) -> float | None:
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
