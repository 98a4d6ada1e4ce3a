"""ringnet, a simulator of ring all-reduce: the time, the traffic and the sum.

>>> import ringnet
>>> network = "network: {topology: ring, bandwidth: 50 GB/s, latency: 5 us}"
>>> scenario = ringnet.loads(f"{{scenario_version: 1, workers: 4, message: 1 MiB, {network}}}")
>>> result = ringnet.simulate(scenario)
>>> result.summary["sum_ok"], round(result.summary["makespan_s"] * 1e6, 3)
(True, 61.457)

Names are imported when they are first used, so that ``import ringnet`` takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ringnet._version import __version__

if TYPE_CHECKING:
    from ringnet import training
    from ringnet.analysis.result import Result
    from ringnet.collectives import Schedule, Step, check, make_schedule, make_step
    from ringnet.errors import DeadlockError, InputError, RingnetError, StudyError, VerificationError
    from ringnet.networks import Network, make_network
    from ringnet.reference import all_gather, reduce_scatter, ring_all_reduce, ring_allreduce
    from ringnet.reporting.results import Results
    from ringnet.reporting.storage import read_results
    from ringnet.runs.simulate import simulate
    from ringnet.scenario import Scenario, load, loads
    from ringnet.study.points import run

_HOMES = {
    "DeadlockError": "ringnet.errors",
    "InputError": "ringnet.errors",
    "Network": "ringnet.networks",
    "Result": "ringnet.analysis.result",
    "Results": "ringnet.reporting.results",
    "RingnetError": "ringnet.errors",
    "Scenario": "ringnet.scenario",
    "Schedule": "ringnet.collectives",
    "Step": "ringnet.collectives",
    "StepResult": "ringnet.analysis.steps",
    "StudyError": "ringnet.errors",
    "VerificationError": "ringnet.errors",
    "all_gather": "ringnet.reference",
    "check": "ringnet.collectives",
    "load": "ringnet.scenario",
    "loads": "ringnet.scenario",
    "make_network": "ringnet.networks",
    "make_schedule": "ringnet.collectives",
    "make_step": "ringnet.collectives",
    "read_results": "ringnet.reporting.storage",
    "reduce_scatter": "ringnet.reference",
    "ring_all_reduce": "ringnet.reference",
    "ring_allreduce": "ringnet.reference",
    "run": "ringnet.study.points",
    "simulate": "ringnet.runs.simulate",
    "simulate_step": "ringnet.runs.step_time",
}

__all__ = [
    "DeadlockError",
    "InputError",
    "Network",
    "Result",
    "Results",
    "RingnetError",
    "Scenario",
    "Schedule",
    "Step",
    "StepResult",
    "StudyError",
    "VerificationError",
    "__version__",
    "all_gather",
    "check",
    "load",
    "loads",
    "make_network",
    "make_schedule",
    "make_step",
    "read_results",
    "reduce_scatter",
    "ring_all_reduce",
    "ring_allreduce",
    "run",
    "simulate",
    "simulate_step",
    "training",
]


def __getattr__(name: str) -> Any:
    if name == "training":
        return import_module("ringnet.training")
    if name not in _HOMES:
        raise AttributeError(f"module 'ringnet' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
