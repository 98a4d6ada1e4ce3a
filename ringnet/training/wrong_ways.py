"""The same training by ways that are often taken for it, to show by how much they part; and by one process alone.

- *one process* sees the whole batch; it parts from the workers by rounding only.
- *unweighted mean*: the mean of the workers' means, right only where all have equally many examples.
- *averaged updates*: each worker takes a step of its own, with a memory of its own, and then parameters are averaged,
  weighted rightly; for SGD it is the same thing, for Adam not, since its update is not linear in the gradient.
- *as returned*: the sum of the all-reduce, or its mean over workers, is taken for the mean over examples.
- *average each microbatch*: the moving average of parameters moves once for each microbatch, not once a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringnet.array_types import Array
from ringnet.training.averaging import moving_average, weighted_mean
from ringnet.training.models import Batch, BatchGradient
from ringnet.training.trainer import Replica, TrainedStep, TrainingPlan


class Divergence(NamedTuple):
    """How far a way has parted from the right one after a step.

    Parameters
    ----------
    way : str
        One of those of this module.
    step : int
    loss : float or None
        Over the examples of the step, at the way's own parameters before it; None once they are not finite, and for
        the moving average.
    parted : float or None
        Largest difference of a parameter (or of its moving average) after the step; None once it is not finite.
    """

    way: str
    step: int
    loss: float | None
    parted: float | None


class Ways:
    """All ways beside the right one that differ from it under a plan, each from the same start."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan = plan
        self._one = Replica.first(plan)
        self._unweighted = Replica.first(plan)
        self._averaged = [Replica.first(plan) for _ in plan.batch]
        self._returned = Replica.first(plan) if plan.reduce != "weighted-mean" else None
        is_often = plan.decay is not None and plan.microbatches > 1
        self._often = plan.model.start(plan.master) if is_often else None

    def follow(self, right: TrainedStep) -> list[Divergence]:
        """Take the same step by every way; one that the right way skipped is skipped by all."""
        batches = self.plan.batches(right.step)
        with np.errstate(all="ignore"):
            losses = {
                "one process": (self._alone(batches, right), self._one),
                "unweighted mean": (self._plain_mean(batches, right), self._unweighted),
                "averaged updates": (self._each_alone(batches, right), self._averaged[0]),
            }
            if self._returned is not None:
                losses["as returned"] = self._taken_for_mean(self._returned, batches, right), self._returned
            found = [
                Divergence(way, right.step, _finite(loss), _parted(replica.parameters, right.parameters))
                for way, (loss, replica) in losses.items()
            ]
            return [*found, *self._too_often(right)]

    def _alone(self, batches: Sequence[Batch], right: TrainedStep) -> float:
        whole = self.plan.model.whole(self._one.parameters, [batch for batch in batches if batch.n])
        if not right.nonfinite:
            self._one.update(self.plan, whole.gradient.astype(self.plan.master))
        return whole.loss

    def _plain_mean(self, batches: Sequence[Batch], right: TrainedStep) -> float:
        found = self._gradients(self._unweighted, batches)
        gradients = [one.gradient for one in found]
        if not right.nonfinite:
            has_some = [float(batch.n > 0) for batch in batches]
            self._unweighted.update(self.plan, weighted_mean(gradients, has_some))
        return _loss(found, right)

    def _each_alone(self, batches: Sequence[Batch], right: TrainedStep) -> float:
        pairs = [*zip(self._averaged, batches, strict=True)]
        found = [self.plan.local_gradient(replica.parameters, batch) for replica, batch in pairs]
        if right.nonfinite:
            return _loss(found, right)
        for (replica, batch), one in zip(pairs, found, strict=True):
            if batch.n:
                replica.update(self.plan, one.gradient)
        mean = weighted_mean([replica.parameters for replica in self._averaged], right.counts.tolist())
        for replica in self._averaged:
            replica.parameters = mean.astype(self.plan.master)
        return _loss(found, right)

    def _taken_for_mean(self, replica: Replica, batches: Sequence[Batch], right: TrainedStep) -> float:
        found = self._gradients(replica, batches)
        if not right.nonfinite:
            total = weighted_mean([one.gradient for one in found], right.counts.tolist()) * int(right.counts.sum())
            returned = total / self.plan.n_workers if self.plan.reduce == "mean" else total
            replica.update(self.plan, returned.astype(self.plan.master))
        return _loss(found, right)

    def _too_often(self, right: TrainedStep) -> list[Divergence]:
        if self._often is None or self.plan.decay is None:
            return []
        for _ in range(0 if right.nonfinite else self.plan.microbatches):
            self._often = moving_average(self._often, right.parameters, self.plan.decay)
        parted = _parted(self._often, right.arrays["average"][0])
        return [Divergence("average each microbatch", right.step, None, parted)]

    def _gradients(self, replica: Replica, batches: Sequence[Batch]) -> list[BatchGradient]:
        return [self.plan.local_gradient(replica.parameters, batch) for batch in batches]


def _loss(found: Sequence[BatchGradient], right: TrainedStep) -> float:
    terms = [one.loss * n for one, n in zip(found, right.counts.tolist(), strict=True) if n]
    return math.fsum(terms) / int(right.counts.sum())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _parted(own: Array, right: Array) -> float | None:
    return _finite(float(np.abs(own.astype(np.float64) - right).max(initial=0.0)))
