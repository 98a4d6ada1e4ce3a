"""What the sum is for: weighted means, optimizers, and the steps of a training that is spread over workers.

The functions on arrays take those of NumPy, PyTorch, CuPy or any other array-API library, change none of them, and
remember nothing. A step in time is made of layers, buckets of their gradients, and a strategy.
"""

from __future__ import annotations

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
