"""The fast engine: the recurrence, which steps whole arrays where the schedule alone fixes the order of service."""

from ringnet.engines.arrays.exactness import why_not_exact
from ringnet.engines.arrays.run import (
    ManyTimes,
    look_at_channels,
    look_for_rounds,
    run_many,
    run_recurrence,
    run_sizes,
    why_not_recurrence,
)
from ringnet.engines.arrays.sizes import Times

__all__ = [
    "ManyTimes",
    "Times",
    "look_at_channels",
    "look_for_rounds",
    "run_many",
    "run_recurrence",
    "run_sizes",
    "why_not_exact",
    "why_not_recurrence",
]
