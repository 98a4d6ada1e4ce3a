"""ringnet, a simulator of ring all-reduce: the time, the traffic and the sum.

>>> import ringnet
>>> network = {"topology": "ring", "bandwidth": "50 GB/s", "latency": "5 us"}
>>> scenario = ringnet.scenario(workers=4, message="1 MiB", network=network)
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
    from ringnet import scenario, training
    from ringnet.analysis.steps import StepResult
    from ringnet.api.machines import CalibratedMachine, PredictedTimes, calibrate, predict
    from ringnet.api.questions import blame, compare, draw, numerics, whatif
    from ringnet.api.result import Result
    from ringnet.api.runs import run, simulate, simulate_step
    from ringnet.api.study import Study
    from ringnet.collectives import Schedule, Step, check, make_schedule, make_step
    from ringnet.errors import DeadlockError, InputError, RingnetError, StudyError, VerificationError
    from ringnet.networks import Network, make_network
    from ringnet.reference import all_gather, reduce_scatter, ring_all_reduce, ring_allreduce
    from ringnet.reporting.results import Results
    from ringnet.reporting.storage import read_results
    from ringnet.scenario import Scenario, load, loads

#: Public names by the module that each is in.
_NAMES = {
    "analysis.steps": "StepResult",
    "api.machines": "CalibratedMachine PredictedTimes calibrate predict",
    "api.questions": "blame compare draw numerics whatif",
    "api.result": "Result",
    "api.runs": "run simulate simulate_step",
    "api.study": "Study",
    "collectives": "Schedule Step check make_schedule make_step",
    "errors": "DeadlockError InputError RingnetError StudyError VerificationError",
    "networks": "Network make_network",
    "reference": "all_gather reduce_scatter ring_all_reduce ring_allreduce",
    "reporting.results": "Results",
    "reporting.storage": "read_results",
    "scenario": "Scenario load loads",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

#: Rooms that are public names themselves; `scenario` can be called.
_ROOMS = ("scenario", "training")

__all__ = [
    "CalibratedMachine",
    "DeadlockError",
    "InputError",
    "Network",
    "PredictedTimes",
    "Result",
    "Results",
    "RingnetError",
    "Scenario",
    "Schedule",
    "Step",
    "StepResult",
    "Study",
    "StudyError",
    "VerificationError",
    "__version__",
    "all_gather",
    "blame",
    "calibrate",
    "check",
    "compare",
    "draw",
    "load",
    "loads",
    "make_network",
    "make_schedule",
    "make_step",
    "numerics",
    "predict",
    "read_results",
    "reduce_scatter",
    "ring_all_reduce",
    "ring_allreduce",
    "run",
    "scenario",
    "simulate",
    "simulate_step",
    "training",
    "whatif",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"ringnet.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'ringnet' has no attribute {name!r}")
    return getattr(import_module(f"ringnet.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
