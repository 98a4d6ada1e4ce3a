"""Synchronous data-parallel training: every worker's gradient, one all-reduce, one step of the optimizer everywhere.

All workers start from the same parameters, work on different examples, and combine their gradients before they update.
What the all-reduce is, and over which network, is the caller's: it hands in a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.errors import VerificationError
from ringnet.payload.dtypes import bits_of
from ringnet.payload.reductions import Reduction, make_reduction
from ringnet.training import OnNonfinite
from ringnet.training.averaging import accumulate, moving_average
from ringnet.training.models import Batch, BatchGradient, TrainableModel, layer_of
from ringnet.training.optimizers import Optimizer
from ringnet.training.whole_batch import Distance, distance, gradient_bound

#: Takes what each worker sends and how it is reduced; returns what each worker holds afterwards.
AllReduce: TypeAlias = Callable[[Sequence[Array], Reduction], Sequence[Array]]


@dataclass(frozen=True)
class TrainingPlan:
    """What is trained, on what, and how.

    Parameters
    ----------
    model : TrainableModel
    optimizer : Optimizer
    split : tuple of int
        How many of the model's examples each worker has, the first ones worker 0; empty for a model without examples.
    batch : tuple of int
        How many of them each worker takes in a step, while it has some.
    wire, master : numpy.dtype
        What is all-reduced; and the parameters, the optimizer's memory and what gradients are computed in.
    n_steps : int
        0 for one epoch.
    microbatches : int
        A worker's batch is cut into so many, whose gradients are accumulated before the one all-reduce.
    reduce : {"sum", "mean", "weighted-mean"}
        What the all-reduce returns.
    decay : float or None
        Of the moving average of parameters; None for none.
    on_nonfinite : {"stop", "skip"}
        What to do about a gradient that is not finite.
    """

    model: TrainableModel
    optimizer: Optimizer
    split: tuple[int, ...]
    batch: tuple[int, ...]
    wire: np.dtype[Any]
    master: np.dtype[Any]
    n_steps: int = 0
    microbatches: int = 1
    reduce: str = "sum"
    decay: float | None = None
    on_nonfinite: OnNonfinite = "stop"

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.batch)

    @property
    def steps_of_epoch(self) -> int:
        """Steps until every worker has gone through what it has."""
        takers = [(has, takes) for has, takes in zip(self.split, self.batch, strict=True) if takes]
        return max((-(-has // takes) for has, takes in takers), default=0)

    @property
    def steps(self) -> range:
        """Numbers of the steps."""
        return range(self.n_steps or (self.steps_of_epoch if self.split else 1))

    def batches(self, step: int) -> list[Batch]:
        """Return what each worker works on; a worker that has gone through all that it has waits for the others."""
        if not self.split:
            return [Batch(worker, np.arange(takes)) for worker, takes in enumerate(self.batch)]
        place, first, found = step % self.steps_of_epoch, 0, []
        for worker, (has, takes) in enumerate(zip(self.split, self.batch, strict=True)):
            start, stop = (first + min(has, (place + more) * takes) for more in (0, 1))
            found.append(Batch(worker, np.arange(start, stop)))
            first += has
        return found

    def reduction(self, counts: IntArray) -> Reduction:
        """Return how the network combines what workers with so many examples send."""
        weights = counts.tolist() if self.reduce == "weighted-mean" else None
        return make_reduction(self.reduce, self.n_workers, weights)

    def local_gradient(self, parameters: Array, batch: Batch) -> BatchGradient:
        """Return a worker's mean gradient, accumulated over its microbatches."""
        if self.microbatches == 1:
            return self.model.gradient(parameters, batch)
        total, loss = None, 0.0
        for part in np.array_split(batch.examples, self.microbatches):
            one = self.model.gradient(parameters, Batch(batch.worker, part))
            total = accumulate(total, one.gradient, len(part))
            loss += one.loss * len(part) if len(part) else 0.0
        mean: Array = total / parameters.dtype.type(max(batch.n, 1))
        return BatchGradient(loss / batch.n if batch.n else math.nan, mean)

    def sent(self, gradient: Array, batch: Batch) -> Array:
        """Return what a worker hands to the all-reduce: for a sum or mean, its gradient summed over its examples."""
        if self.reduce == "weighted-mean":  # the reduction weights it
            return gradient.astype(self.wire)
        of_all: Array = gradient * gradient.dtype.type(batch.n)
        return of_all.astype(self.wire)

    def mean_of(self, received: Array, n_examples: int) -> Array:
        """Return the mean gradient over all examples of the step, from what the all-reduce returned."""
        wide = received.astype(self.master)
        kind = wide.dtype.type
        if self.reduce == "weighted-mean":
            return wide
        mean: Array = wide / kind(n_examples)
        if self.reduce == "mean":
            mean *= kind(self.n_workers)
        return mean

    def scale(self, n_examples: int) -> float:
        """Return what `mean_of` multiplies by."""
        return {"sum": 1 / n_examples, "mean": self.n_workers / n_examples}.get(self.reduce, 1.0)


@dataclass
class Replica:
    """What one worker keeps from step to step."""

    parameters: Array
    memory: dict[str, Array]
    average: Array | None = None
    n_updates: int = 0

    @classmethod
    def first(cls, plan: TrainingPlan) -> Replica:
        """Return what every worker starts from."""
        parameters = plan.model.start(plan.master)
        average = None if plan.decay is None else parameters.copy()
        return cls(parameters, plan.optimizer.start(parameters), average)

    def update(self, plan: TrainingPlan, gradient: Array) -> None:
        """Take one step of the optimizer, then one of the moving average."""
        self.n_updates += 1
        new = plan.optimizer.update(self.parameters, gradient, self.memory, self.n_updates)
        self.parameters, self.memory = new
        if self.average is not None and plan.decay is not None:
            self.average = moving_average(self.average, self.parameters, plan.decay)

    def state(self) -> dict[str, Array]:
        """Return every array that must be the same at all workers."""
        own = {"parameter": self.parameters, **self.memory}
        return own if self.average is None else own | {"average": self.average}


@dataclass(frozen=True)
class StateDifference:
    """The first number of the state in which a worker differs from worker 0."""

    step: int
    worker: int
    what: str
    element: int
    got: str
    expected: str


@dataclass(frozen=True)
class TrainedStep:
    """What happened in one step.

    Parameters
    ----------
    step : int
        From 0.
    counts : ndarray of int64, shape (n_workers,)
        Examples of each worker.
    loss : float
        Mean over these examples, at the parameters before the step.
    distance : Distance or None
        Of the combined gradient to the whole batch's; None where the step was skipped.
    nonfinite : str
        Where a gradient was not finite, so that the step was skipped; empty if all were.
    difference : StateDifference or None
        Where the workers' states differ after the step; None where they are equal bit for bit.
    arrays : dict of str to list of ndarray
        For each worker its ``gradient``, what it ``sent`` and ``received``, the ``combined`` gradient, and its state
        after the step.
    """

    step: int
    counts: IntArray
    loss: float
    distance: Distance | None
    nonfinite: str
    difference: StateDifference | None
    arrays: dict[str, list[Array]] = field(repr=False)

    @property
    def parameters(self) -> Array:
        """Those of worker 0 after the step."""
        return self.arrays["parameter"][0]


def train(plan: TrainingPlan, all_reduce: AllReduce) -> Iterator[TrainedStep]:
    """Train step by step.

    Parameters
    ----------
    plan : TrainingPlan
    all_reduce : callable
        Called once a step with what each worker sends, one flat array each in ``plan.wire``.

    Yields
    ------
    TrainedStep

    Raises
    ------
    VerificationError
        A gradient is not finite, and the plan says to stop.
    """
    replicas = [Replica.first(plan) for _ in plan.batch]
    for step in plan.steps:
        with np.errstate(all="ignore"):  # what is not finite is looked for
            yield _one_step(plan, step, replicas, all_reduce)


def _one_step(plan: TrainingPlan, step: int, replicas: Sequence[Replica], all_reduce: AllReduce) -> TrainedStep:
    batches = plan.batches(step)
    counts = np.array([batch.n for batch in batches], dtype=np.int64)
    before = replicas[0].parameters
    local = [plan.local_gradient(replica.parameters, batch) for replica, batch in zip(replicas, batches, strict=True)]
    sent = [plan.sent(one.gradient, batch) for one, batch in zip(local, batches, strict=True)]
    nonfinite = _nonfinite(plan, [one.gradient for one in local], sent)
    if nonfinite and plan.on_nonfinite == "stop":
        raise VerificationError(f"step {step}: {nonfinite}")
    received = all_reduce(sent, plan.reduction(counts))
    combined = [plan.mean_of(array, int(counts.sum())) for array in received]
    if not nonfinite and not all(np.isfinite(array).all() for array in combined):
        nonfinite = _overflow(plan, combined)
        if plan.on_nonfinite == "stop":
            raise VerificationError(f"step {step}: {nonfinite}")
    if not nonfinite:
        for replica, gradient in zip(replicas, combined, strict=True):
            replica.update(plan, gradient)
    states = [replica.state() for replica in replicas]
    arrays = {"gradient": [one.gradient for one in local], "sent": sent, "received": [*received]}
    arrays |= {"combined": combined} | {name: [state[name] for state in states] for name in states[0]}
    far = None if nonfinite else _distance(plan, before, batches, combined[0])
    loss = _mean_loss(local, counts)
    return TrainedStep(step, counts, loss, far, nonfinite, _difference(step, states), arrays)


def _distance(plan: TrainingPlan, parameters: Array, batches: Sequence[Batch], combined: Array) -> Distance:
    """Compare a combined gradient with that of one process that sees the whole batch."""
    whole = plan.model.whole(parameters, [batch for batch in batches if batch.n])
    counts = np.array([batch.n for batch in batches], dtype=np.int64)
    bound = None
    if whole.magnitude is not None:
        kinds = {"wire": plan.wire, "master": plan.master}
        scale = plan.scale(int(counts.sum()))
        bound = gradient_bound(whole.magnitude, counts, **kinds, microbatches=plan.microbatches, scale=scale)
    return distance(combined, whole.gradient, bound)


def _mean_loss(local: Sequence[BatchGradient], counts: IntArray) -> float:
    terms = (one.loss * n for one, n in zip(local, counts.tolist(), strict=True) if n)
    return math.fsum(terms) / int(counts.sum())


def _nonfinite(plan: TrainingPlan, gradients: Sequence[Array], sent: Sequence[Array]) -> str:
    """Say where a worker's gradient is not finite, or what it sends of it; empty where all are."""
    for what, arrays in (("the gradient", gradients), (f"what is sent, in {plan.wire.name},", sent)):
        for worker, array in enumerate(arrays):
            bad = np.flatnonzero(~np.isfinite(array.astype(np.float64)))
            if len(bad):
                place = _place(plan, int(bad[0]))
                return f"{what} of worker {worker} is {array[bad[0]]} in {place}"
    return ""


def _overflow(plan: TrainingPlan, combined: Sequence[Array]) -> str:
    """Say where a combined gradient is not finite though what was sent was."""
    worker, array = next((w, array) for w, array in enumerate(combined) if not np.isfinite(array).all())
    bad = int(np.flatnonzero(~np.isfinite(array))[0])
    return f"the sum of gradients overflows {plan.wire.name} at worker {worker} in {_place(plan, bad)}"


def _place(plan: TrainingPlan, element: int) -> str:
    name, number = layer_of(plan.model.shapes, element)
    return f"layer {name}, element {number}"


def _difference(step: int, states: Sequence[dict[str, Array]]) -> StateDifference | None:
    """Find the first number that is not the same bits at every worker."""
    for what, first in states[0].items():
        for worker, state in enumerate(states[1:], start=1):
            unlike = np.flatnonzero(bits_of(state[what]) != bits_of(first))
            if len(unlike):
                at = int(unlike[0])
                return StateDifference(step, worker, what, at, str(state[what][at]), str(first[at]))
    return None
