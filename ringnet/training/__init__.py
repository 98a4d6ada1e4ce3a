"""What the sum is for: weighted means, optimizers and the steps of a training that is spread over workers.

The functions here take arrays of NumPy, PyTorch, CuPy or any other array-API library, change none of them, and remember
nothing.
"""

from __future__ import annotations

from ringnet.training.averaging import accumulate, moving_average, weighted_mean
from ringnet.training.optimizers import OPTIMIZERS, Optimizer, adam, adamw, make_optimizer, momentum, sgd
from ringnet.training.own_models import module_gradients

__all__ = [
    "OPTIMIZERS",
    "Optimizer",
    "accumulate",
    "adam",
    "adamw",
    "make_optimizer",
    "module_gradients",
    "momentum",
    "moving_average",
    "sgd",
    "weighted_mean",
]
