"""The reference engine: SimPy processes for workers and links, transfer by transfer, to the timing model."""

from typing import Any

from ringnet.engines.sharing import Job, Traffic
from ringnet.engines.trace import Trace


def run_events(*what: Any, **options: Any) -> Trace:
    """Run a schedule on a network: see `ringnet.engines.events.run.run_events`, with which SimPy is imported."""
    from ringnet.engines.events import run  # noqa: PLC0415 -- what other engines run, and what is only checked, has no use

    return run.run_events(*what, **options)


def run_jobs(*what: Any, **options: Any) -> list[Trace]:
    """Run several collectives at once: see `ringnet.engines.events.run.run_jobs`."""
    from ringnet.engines.events import run  # noqa: PLC0415 -- as above

    return run.run_jobs(*what, **options)


__all__ = ["Job", "Traffic", "run_events", "run_jobs"]
