"""What the tests of training share: plans of two steps by hand and of a small network, and a ring without time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringnet.payload.dtypes import DTYPES
from ringnet.reference import ring_allreduce
from ringnet.training import make_optimizer
from ringnet.training.models import DigitsNetwork, GivenGradients
from ringnet.training.trainer import TrainingPlan

NETWORK = DigitsNetwork([6], 90, seed=3)


def by_reference(sent, reduction):
    """The ring without time."""
    return ring_allreduce([reduction.prepare(array.copy(), worker) for worker, array in enumerate(sent)])


def given_plan(batch=(1, 3), rows=((2.0,), (6.0,)), start=(10.0,), optimizer="sgd", **changes):
    rows, start = np.array(rows), np.array(start)
    optimizer = make_optimizer(optimizer, 0.5)
    float32 = DTYPES["float32"]
    plan = TrainingPlan(GivenGradients(rows, start), optimizer, (), batch, float32, float32, n_steps=2)
    return replace(plan, **changes)


def digits_plan(**changes):
    float32 = DTYPES["float32"]
    plan = TrainingPlan(
        NETWORK, make_optimizer("adam", 0.02), (50, 30, 10, 0), (16, 8, 8, 8), float32, float32, n_steps=6
    )
    return replace(plan, **changes)
