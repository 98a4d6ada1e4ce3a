"""Keys that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringnet.scenario.checks.collective import COLLECTIVE_CHECKS
from ringnet.scenario.checks.drawn import check_drawn, check_repeats
from ringnet.scenario.checks.jobs_and_traffic import JOB_CHECKS
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.checks.network import NETWORK_CHECKS
from ringnet.scenario.checks.trouble import TROUBLE_CHECKS
from ringnet.scenario.keys.model import Keys

#: Of every scenario, in the order in which they are told.
CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    *COLLECTIVE_CHECKS,
    check_drawn,
    check_repeats,
    *NETWORK_CHECKS,
    *JOB_CHECKS,
    *TROUBLE_CHECKS,
)


def check(keys: Keys) -> Iterator[Mistake]:
    """Return what is wrong with ``keys`` taken together; of unread keys also those that were left out."""
    for find in CHECKS:
        yield from find(keys)
    if keys.training is not None:
        from ringnet.scenario.checks.training import check_training  # noqa: PLC0415 -- most scenarios train nothing

        yield from check_training(keys, keys.training)
    if keys.step is not None:
        from ringnet.scenario.checks.training import check_step  # noqa: PLC0415 -- nor are of a step

        yield from check_step(keys, keys.step)
