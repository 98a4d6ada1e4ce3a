"""Collectives: schedules as plain data. A new algorithm is one file with one function, and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from ringnet.collectives.exchange import bruck, direct, pairwise
from ringnet.collectives.halving import halving_doubling, recursive_doubling
from ringnet.collectives.hierarchical import hierarchical
from ringnet.collectives.proof import check
from ringnet.collectives.rings import bidirectional_ring, channel_ring, pipelined_ring, ring
from ringnet.collectives.schedule import EVERY_WORKER, Schedule, Step, make_schedule, make_step, split_sizes
from ringnet.collectives.sizes import (
    Size,
    SizeOf,
    binomial_size,
    bruck_size,
    doubling_size,
    exchange_size,
    halving_size,
    levels_size,
    pairwise_size,
    pipelined_size,
    ring_size,
    rings_size,
    shares_size,
    stragglar_size,
    swing_size,
    switch_tree_size,
    too_large,
    torus_size,
    tree_size,
    uneven_size,
)
from ringnet.collectives.swing import swing
from ringnet.collectives.switches import nvls, nvls_tree, sharp
from ringnet.collectives.torus_ring import torus_ring
from ringnet.collectives.trees import binary_tree, binomial_tree, double_binary_tree
from ringnet.collectives.unequal import stragglar, uneven_ring
from ringnet.errors import Fault, InputError


class Parameter(NamedTuple):
    """What an algorithm takes beside workers and collective: a default of the right kind, a summary, a least value.

    One that ``is_worker`` is the number of a worker. ``trait`` names what of a network it should be where nobody says
    it, and the network does: ``"workers_per_host"``. The ``least`` of a tuple is that of each number in it, 1 if left
    out.
    """

    default: int | bool | str | tuple[int, ...]
    summary: str
    least: int | None = None
    trait: str = ""
    is_worker: bool = False


class Algorithm(NamedTuple):
    """A line of the registry: what makes the schedule, its collectives, a line about it, its parameters.

    ``wider`` are algorithms that do the same over several channels or dimensions, for networks where this one leaves
    cards or links idle. ``size`` says how large the schedule would be, before any of it is built: `sizes`.
    ``in_switches`` says that switches of the network reduce: not every network has such, nor every type of element.
    """

    make: Callable[..., Schedule]
    collectives: tuple[str, ...]
    summary: str
    parameters: Mapping[str, Parameter] = {}
    wider: tuple[str, ...] = ()
    size: SizeOf | None = None
    in_switches: bool = False

    def build(self, n_workers: int, collective: str = "", *values: Any, **parameters: Any) -> Schedule:
        """Return the schedule for some workers, a collective and parameters, with a note of what made it.

        Raises
        ------
        InputError
            It would be too large; or what the algorithm says of its parameters.
        """
        self.check_size(n_workers, collective, **parameters)
        schedule = self.make(n_workers, *([collective] if collective else []), *values, **parameters)
        # No argument of the class: `replace`, which changes a schedule, leaves it out of the copy.
        object.__setattr__(schedule, "made_by", self.function)
        return schedule

    def size_of(self, n_workers: int, collective: str = "", **parameters: Any) -> Size | None:
        """Return how large the schedule would be; None where nobody says it."""
        known = {name: parameters.get(name, one.default) for name, one in self.parameters.items()}
        if self.size is None:
            return None
        size = self.size(n_workers, collective or self.collectives[0], **known)
        # The proof holds, of one chunk at least, a bit for every pair of workers, unless one stands for all.
        return size if size.one_for_all else size._replace(work=max(size.work, n_workers * n_workers // 64))

    def check_size(self, n_workers: int, collective: str = "", **parameters: Any) -> None:
        """Refuse a number that is too small, a worker that is not there, a schedule that is too large: `InputError`."""
        known = {name: parameters.get(name, one.default) for name, one in self.parameters.items()}
        for name, one in self.parameters.items():
            if one.is_worker and not 0 <= known[name] < n_workers:
                message = f"there is no such worker among {n_workers}"
                raise InputError(Fault(message, name, value=str(known[name]), right=f"0 to {n_workers - 1}"))
            # The format has one key for all algorithms that have the parameter, and takes what suits any of them.
            if isinstance(known[name], int) and one.least is not None and known[name] < one.least:
                raise InputError(Fault(f"at least {one.least}", name, value=str(known[name]), right=f"{one.default}"))
        size = self.size_of(n_workers, collective, **known)
        if size is None or size.is_bearable:
            return

        def sized(number: int, given: Mapping[str, Any]) -> Size:
            return self.size_of(number, collective, **given) or size

        name, most = too_large(sized, n_workers, known)
        what = f"{size.n_chunks:,} chunks" if size.n_chunks > size.n_transfers else f"{size.n_transfers:,} transfers"
        value = n_workers if name == "workers" else known[name]
        raise InputError(
            Fault(f"too large: the schedule would have {what}", name, "", None, str(value), f"at most {most}")
        )

    @property
    def function(self) -> Callable[..., Schedule]:
        """The function itself, without what the registry has bound to it: what `Schedule.made_by` is."""
        return self.make.func if isinstance(self.make, partial) else self.make


_SCATTERING = ("all-reduce", "reduce-scatter", "all-gather")
_ROOTED = ("all-reduce", "broadcast", "reduce")
_SLICES = {"n_slices": Parameter(4, "parts that are sent on one by one", 1)}
_PARTS = {"n_slices": Parameter(16, "parts that follow each other through the switches", 1)}
_ROOT = {"root": Parameter(0, "the worker where a broadcast starts and a reduce ends", 0, is_worker=True)}
_CHANNELS = {
    "n_channels": Parameter(2, "rings beside each other", 1, "channels"),
    "strides": Parameter((1,), "how many workers further each ring goes in a step, by turns"),
    "node_size": Parameter(1, "workers of a node, which each ring enters at another of them", 1, "workers_per_host"),
}
_TREES = {
    "node_size": Parameter(1, "workers of a node, which are a chain", 1, "workers_per_host"),
    "n_channels": Parameter(1, "trees, or pairs of them, beside each other", 1, "channels"),
}
_SWING = {
    "dims": Parameter((), "sizes of a torus, none for a ring", trait="powers_of_two"),
    "all_ports": Parameter(default=True, summary="use all directions at once"),
}
_ROWS = {"n_rows": Parameter(0, "rows of the torus, 0 for the squarest", 0, "rows")}
_RATES = {
    "rates": Parameter((), "bytes a second from each worker to the next, none for alike", 1, "neighbour_Bps"),
    "n_slices": Parameter(0, "slices for each worker, 0 for as many as it needs", 0),
}
_LEVELS = {
    "node_size": Parameter(0, "workers of a node, 0 for the largest divisor not above the root", 0, "workers_per_host"),
    "inner": Parameter("ring", "algorithm inside nodes"),
    "outer": Parameter("ring", "algorithm across nodes"),
}


def _channels_size(n_workers: int, collective: str, *, n_channels: int, **others: object) -> Size:
    return rings_size(n_workers, collective, n_channels)


_WIDER_RINGS = ("channel-ring", "torus-ring", "swing")

_FLAT: dict[str, Algorithm] = {
    "bidirectional-ring": Algorithm(
        bidirectional_ring,
        _SCATTERING,
        "rings in both directions, a half of the buffer each",
        wider=_WIDER_RINGS,
        size=partial(rings_size, n_rings=2),
    ),
    "binary-tree": Algorithm(
        binary_tree,
        _ROOTED,
        "a binary tree, slice after slice up and down",
        _SLICES | _ROOT | _TREES,
        size=tree_size,
    ),
    "binomial-tree": Algorithm(
        binomial_tree, _ROOTED, "log2 N steps up to the root, as many down", _ROOT, size=binomial_size
    ),
    "bruck": Algorithm(bruck, ("all-to-all",), "log2 N steps in which blocks travel by powers of two", size=bruck_size),
    "channel-ring": Algorithm(
        channel_ring, _SCATTERING, "several rings beside each other", _CHANNELS, size=_channels_size
    ),
    "direct": Algorithm(
        direct,
        (*_SCATTERING, "all-to-all"),
        "everyone to everyone at once, one step a phase",
        size=exchange_size,
    ),
    "double-binary-tree": Algorithm(
        double_binary_tree,
        ("all-reduce",),
        "two trees at once, a half of the buffer each",
        _SLICES | _TREES,
        size=partial(tree_size, n_trees=2),
    ),
    "halving-doubling": Algorithm(
        halving_doubling, _SCATTERING, "Rabenseifner's: the ring's bytes in 2 log2 N steps", size=halving_size
    ),
    "nvls": Algorithm(
        nvls,
        _SCATTERING,
        "one switch adds, a share for each worker, and multicasts what they send back",
        _PARTS,
        size=shares_size,
        in_switches=True,
    ),
    "nvls-tree": Algorithm(
        nvls_tree,
        ("all-reduce",),
        "nvls at the switch of each host, and for each share two binary trees across",
        _PARTS | {"node_size": Parameter(0, "workers of a switch, 0 for all", 0, "workers_per_switch")},
        size=shares_size,
        in_switches=True,
    ),
    "pairwise": Algorithm(pairwise, ("all-to-all",), "N-1 steps, one block out and one in", size=pairwise_size),
    "pipelined-ring": Algorithm(
        pipelined_ring,
        (*_SCATTERING, "broadcast", "reduce"),
        "a ring whose chunks are sent on in slices",
        _SLICES | _ROOT,
        _WIDER_RINGS,
        size=pipelined_size,
    ),
    "recursive-doubling": Algorithm(
        recursive_doubling, ("all-reduce",), "whole buffers in log2 N steps", size=doubling_size
    ),
    "ring": Algorithm(
        ring,
        _SCATTERING,
        "one ring in one direction, 2(N-1) steps",
        wider=_WIDER_RINGS,
        size=ring_size,
    ),
    "sharp": Algorithm(
        sharp,
        _ROOTED,
        "a tree of switches: each adds what comes from below, and multicasts what comes from above",
        _PARTS
        | _ROOT
        | {
            "switch_above": Parameter(
                (),
                "by worker, then by switch, the number of the switch above, -1 for none",
                -1,
                "switch_above",
            )
        },
        size=switch_tree_size,
        in_switches=True,
    ),
    "stragglar": Algorithm(
        stragglar,
        ("all-reduce",),
        "the others begin without the late worker, which then meets one after another",
        {"late": Parameter(0, "the worker that comes late", 0, "latest_worker", is_worker=True)},
        size=stragglar_size,
    ),
    "swing": Algorithm(
        swing,
        _SCATTERING,
        "halving and doubling with partners near on rings and tori",
        _SWING,
        size=swing_size,
    ),
    "torus-ring": Algorithm(
        torus_ring,
        _SCATTERING,
        "rings along the rows and columns of a torus at once",
        _ROWS,
        wider=("swing",),
        size=torus_size,
    ),
    "uneven-ring": Algorithm(
        uneven_ring,
        _SCATTERING,
        "a ring in which slow workers and links carry less",
        _RATES,
        size=uneven_size,
    ),
}

#: What can stand on a level of another: switches are of a network, not of a part of its workers.
_LEVEL = {name: algorithm for name, algorithm in _FLAT.items() if not algorithm.in_switches}

ALGORITHMS: dict[str, Algorithm] = dict(
    sorted(
        {
            **_FLAT,
            "hierarchical": Algorithm(
                partial(hierarchical, levels=_LEVEL),
                _SCATTERING,
                "one algorithm inside nodes, another across",
                _LEVELS,
                size=partial(levels_size, sizes={name: algorithm.size_of for name, algorithm in _LEVEL.items()}),
            ),
        }.items()
    )
)

#: Every collective that some algorithm knows, sorted.
COLLECTIVES = tuple(sorted({name for algorithm in ALGORITHMS.values() for name in algorithm.collectives}))

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "EVERY_WORKER",
    "Algorithm",
    "Parameter",
    "Schedule",
    "Step",
    "check",
    "make_schedule",
    "make_step",
    "split_sizes",
]
