"""What the sum is for: weighted means, optimizers, and the steps of a training that is spread over workers.

The functions on arrays take those of NumPy, PyTorch, CuPy or any other array-API library, change none of them, and
remember nothing. A step in time is made of layers, buckets of their gradients, and a strategy.

Names are imported when they are first used: most scenarios train nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from ringnet.training.averaging import accumulate, moving_average, weighted_mean
    from ringnet.training.buckets import GradientBucket, bucket_of_each, gradient_buckets
    from ringnet.training.layers import (
        MODEL_PRESETS,
        TimedLayer,
        count_parameters,
        module_layers,
        preset_layers,
        timed_by_rate,
        timed_by_share,
    )
    from ringnet.training.optimizers import OPTIMIZERS, Optimizer, adam, adamw, make_optimizer, momentum, sgd
    from ringnet.training.own_models import module_gradients
    from ringnet.training.steps import STRATEGIES, StepProgram, StepShape, StepTimes, timed_step

#: What is done about a gradient that is infinite or no number.
OnNonfinite: TypeAlias = Literal["stop", "skip"]

_HOMES = ("averaging", "buckets", "layers", "optimizers", "own_models", "steps")

__all__ = [
    "MODEL_PRESETS",
    "OPTIMIZERS",
    "STRATEGIES",
    "GradientBucket",
    "Optimizer",
    "StepProgram",
    "StepShape",
    "StepTimes",
    "TimedLayer",
    "accumulate",
    "adam",
    "adamw",
    "bucket_of_each",
    "count_parameters",
    "gradient_buckets",
    "make_optimizer",
    "module_gradients",
    "module_layers",
    "momentum",
    "moving_average",
    "preset_layers",
    "sgd",
    "timed_by_rate",
    "timed_by_share",
    "timed_step",
    "weighted_mean",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))


def __dir__() -> list[str]:
    return __all__
