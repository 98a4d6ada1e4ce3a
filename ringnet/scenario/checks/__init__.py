"""Keys that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringnet.scenario.checks.collective import COLLECTIVE_CHECKS
from ringnet.scenario.checks.jobs_and_traffic import JOB_CHECKS
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.checks.network import NETWORK_CHECKS
from ringnet.scenario.checks.step import check_step
from ringnet.scenario.checks.training import check_training
from ringnet.scenario.keys.model import Keys

#: In the order in which they are told.
CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    *COLLECTIVE_CHECKS,
    *NETWORK_CHECKS,
    *JOB_CHECKS,
    check_training,
    check_step,
)


def check(keys: Keys) -> Iterator[Mistake]:
    """Return what is wrong with ``keys`` taken together; of unread keys also those that were left out."""
    for find in CHECKS:
        yield from find(keys)
