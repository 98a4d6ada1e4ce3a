"""The compiled engine: SimPy's events as one loop over arrays, for links that several senders share."""

from typing import Any

from ringnet.engines.compiled.exactness import why_not_compiled
from ringnet.engines.trace import Trace


def run_compiled(*what: Any, **options: Any) -> Trace:
    """Run a schedule on a network: see `ringnet.engines.compiled.run.run_compiled`, which only such runs import."""
    from ringnet.engines.compiled import run  # noqa: PLC0415 -- with the loop, which most runs do not take

    return run.run_compiled(*what, **options)


__all__ = ["run_compiled", "why_not_compiled"]
