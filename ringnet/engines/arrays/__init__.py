"""The fast engine: the recurrence, which steps whole arrays where the schedule alone fixes the order of service."""

from ringnet.engines.arrays.exactness import why_not_exact
from ringnet.engines.arrays.run import run_recurrence
from ringnet.engines.arrays.sizes import Times, run_sizes, why_not_at_once

__all__ = ["Times", "run_recurrence", "run_sizes", "why_not_at_once", "why_not_exact"]
