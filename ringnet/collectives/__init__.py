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
from ringnet.collectives.swing import swing
from ringnet.collectives.torus_ring import torus_ring
from ringnet.collectives.trees import binary_tree, binomial_tree, double_binary_tree


class Parameter(NamedTuple):
    """What an algorithm takes beside workers and collective: a default of the right kind, a summary, a least value.

    ``trait`` names what of a network it should be where nobody says it, and the network does: ``"workers_per_host"``.
    """

    default: int | bool | str | tuple[int, ...]
    summary: str
    least: int | None = None
    trait: str = ""


class Algorithm(NamedTuple):
    """A line of the registry: what makes the schedule, its collectives, a line about it, its parameters.

    ``wider`` are algorithms that do the same over several channels or dimensions, for networks where this one leaves
    cards or links idle.
    """

    make: Callable[..., Schedule]
    collectives: tuple[str, ...]
    summary: str
    parameters: Mapping[str, Parameter] = {}
    wider: tuple[str, ...] = ()

    def build(self, *args: Any, **parameters: Any) -> Schedule:
        """Return the schedule for some workers, a collective and parameters, with a note of what made it."""
        schedule = self.make(*args, **parameters)
        # No argument of the class: `replace`, which changes a schedule, leaves it out of the copy.
        object.__setattr__(schedule, "made_by", self.function)
        return schedule

    @property
    def function(self) -> Callable[..., Schedule]:
        """The function itself, without what the registry has bound to it: what `Schedule.made_by` is."""
        return self.make.func if isinstance(self.make, partial) else self.make


_SCATTERING = ("all-reduce", "reduce-scatter", "all-gather")
_ROOTED = ("all-reduce", "broadcast", "reduce")
_SLICES = {"n_slices": Parameter(4, "parts that are sent on one by one", 1)}
_ROOT = {"root": Parameter(0, "the worker where a broadcast starts and a reduce ends", 0)}
_CHANNELS = {
    "n_channels": Parameter(2, "rings beside each other", 1, "channels"),
    "strides": Parameter((1,), "how many workers further each ring goes in a step, by turns"),
    "node_size": Parameter(
        1, "workers of a node, which each ring enters at another of them", 1, "workers_per_host"
    ),
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
_LEVELS = {
    "node_size": Parameter(
        0, "workers of a node, 0 for the largest divisor not above the root", 0, "workers_per_host"
    ),
    "inner": Parameter("ring", "algorithm inside nodes"),
    "outer": Parameter("ring", "algorithm across nodes"),
}

_WIDER_RINGS = ("channel-ring", "torus-ring")

_FLAT: dict[str, Algorithm] = {
    "bidirectional-ring": Algorithm(
        bidirectional_ring,
        _SCATTERING,
        "rings in both directions, a half of the buffer each",
        wider=_WIDER_RINGS,
    ),
    "binary-tree": Algorithm(
        binary_tree, _ROOTED, "a binary tree, slice after slice up and down", _SLICES | _ROOT | _TREES
    ),
    "binomial-tree": Algorithm(binomial_tree, _ROOTED, "log2 N steps up to the root, as many down", _ROOT),
    "bruck": Algorithm(bruck, ("all-to-all",), "log2 N steps in which blocks travel by powers of two"),
    "channel-ring": Algorithm(channel_ring, _SCATTERING, "several rings beside each other", _CHANNELS),
    "direct": Algorithm(
        direct, (*_SCATTERING, "all-to-all"), "everyone to everyone at once, one step a phase"
    ),
    "double-binary-tree": Algorithm(
        double_binary_tree, ("all-reduce",), "two trees at once, a half of the buffer each", _SLICES | _TREES
    ),
    "halving-doubling": Algorithm(
        halving_doubling, _SCATTERING, "Rabenseifner's: the ring's bytes in 2 log2 N steps"
    ),
    "pairwise": Algorithm(pairwise, ("all-to-all",), "N-1 steps, one block out and one in"),
    "pipelined-ring": Algorithm(
        pipelined_ring,
        (*_SCATTERING, "broadcast", "reduce"),
        "a ring whose chunks are sent on in slices",
        _SLICES | _ROOT,
        _WIDER_RINGS,
    ),
    "recursive-doubling": Algorithm(recursive_doubling, ("all-reduce",), "whole buffers in log2 N steps"),
    "ring": Algorithm(ring, _SCATTERING, "one ring in one direction, 2(N-1) steps", wider=_WIDER_RINGS),
    "swing": Algorithm(
        swing, _SCATTERING, "halving and doubling with partners near on rings and tori", _SWING
    ),
    "torus-ring": Algorithm(
        torus_ring, _SCATTERING, "rings along the rows and columns of a torus at once", _ROWS
    ),
}

ALGORITHMS: dict[str, Algorithm] = dict(
    sorted(
        {
            **_FLAT,
            "hierarchical": Algorithm(
                partial(hierarchical, levels=_FLAT),
                _SCATTERING,
                "one algorithm inside nodes, another across",
                _LEVELS,
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
