"""The same training by one process in exact arithmetic, and how far rounding can take any other from it.

The exact parameters P are followed in float64. Beside them goes a radius R, element by element, such that whatever
computes the same steps in a type of unit roundoff u, in any order, has parameters p with |p - P| <= R. Gradients of
examples are taken anywhere within the radius, so the bound covers what an error of one step does in the next.

With X the exact value of something and r its radius, |x| <= |X| + r, and so (Higham, 2nd ed., ch. 3)

- |x y - X Y| <= r_x (|Y| + r_y) + |X| r_y, and a sum of k such products, added in any order, is rounded by at most
  g(k) = k u / (1 - k u) of the sum of its terms' magnitudes, (|X| + r_x) (|Y| + r_y);
- max(x, 0) is within the radius of max(X, 0); where the sign of x is not certain, its slope may be 0 or 1.

A model says the same of its gradient (`TrainableModel.around`), `gradient_bound` of how gradients are added up over
examples and workers, and here is what an optimizer makes of it. The radius grows from step to step: a network that is
not linear multiplies it by what its curvature may be at worst. Once it is over a tenth of how far the parameters have
come, it tells nothing, and is given up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import Array, FloatArray
from ringnet.payload.bounds import U64, gamma
from ringnet.payload.dtypes import smallest_subnormal, unit_roundoff
from ringnet.training.models import Around
from ringnet.training.trainer import TrainedStep, TrainingPlan
from ringnet.training.whole_batch import gradient_bound

#: No expression of an optimizer rounds more often on its way to any result, its settings included.
_ROUNDINGS = 8
#: A radius of this share of how far parameters have come tells nothing.
_MOST_SHARE = 0.1


class ExactState(NamedTuple):
    """Parameters and an optimizer's memory, and how far from them any computed ones may be."""

    parameters: Around
    memory: dict[str, Around]
    n_updates: int


#: Parameters and memory after a step.
Reached: TypeAlias = tuple[Around, dict[str, Around]]
#: Takes a state, a gradient, the optimizer's settings and a unit roundoff.
Reach: TypeAlias = Callable[[ExactState, Around, Mapping[str, float], float], Reached]


def _rounded(value: FloatArray, radius: FloatArray, magnitude: FloatArray, unit: float) -> Around:
    """Return what an expression may come to whose terms are at most so large, all together."""
    return Around(value, radius + gamma(_ROUNDINGS, unit) * magnitude)


def _added(a: Around, factor: float, b: Around, unit: float, of_a: float = 1.0) -> Around:
    """Return ``of_a`` x a + factor x b."""
    value, size = of_a * a.value + factor * b.value, abs(factor)
    radius, most = (of_a * one + size * other for one, other in ((a.radius, b.radius), (a.most, b.most)))
    return _rounded(value, radius, most, unit)


def _decayed(parameters: Around, gradient: Around, decay: float, unit: float) -> Around:
    return _added(gradient, decay, parameters, unit) if decay else gradient


def _sgd(state: ExactState, gradient: Around, settings: Mapping[str, float], unit: float) -> Reached:
    direction = _decayed(state.parameters, gradient, settings["weight_decay"], unit)
    return _added(state.parameters, -settings["learning_rate"], direction, unit), {}


def _momentum(state: ExactState, gradient: Around, settings: Mapping[str, float], unit: float) -> Reached:
    gradient = _decayed(state.parameters, gradient, settings["weight_decay"], unit)
    velocity = _added(gradient, settings["momentum"], state.memory["velocity"], unit)
    return _added(state.parameters, -settings["learning_rate"], velocity, unit), {"velocity": velocity}


def _adam(state: ExactState, gradient: Around, settings: Mapping[str, float], unit: float) -> Reached:
    gradient = _decayed(state.parameters, gradient, settings["weight_decay"], unit)
    beta1, beta2, step = settings["beta1"], settings["beta2"], state.n_updates + 1
    squared = Around(gradient.value**2, (2 * np.abs(gradient.value) + gradient.radius) * gradient.radius)
    # m + (1 - beta1) (g - m) has no term above m + (1 - beta1) g twice.
    mean = _added(state.memory["mean"], 1 - beta1, gradient, 2 * unit, of_a=beta1)
    square = _added(state.memory["square"], 1 - beta2, squared, unit, of_a=beta2)
    scale = 1 / math.sqrt(1 - beta2**step)
    root, low, high = (
        scale * np.sqrt(np.maximum(inside, 0.0)) + settings["epsilon"]
        for inside in (square.value, square.value - square.radius, square.value + square.radius)
    )
    value = mean.value / root
    # As far as a quotient of a mean and of a root within their radii can be from it.
    radius = mean.radius / low + np.abs(mean.value) * np.maximum(1 / low - 1 / root, 1 / root - 1 / high)
    # By the inequality of Cauchy and Schwarz no quotient is larger, whatever the gradients were.
    ratios = [(1 - beta1) ** 2 * beta1 ** (2 * k) / ((1 - beta2) * beta2**k) for k in range(step)]
    largest = math.sqrt(math.fsum(ratios)) / scale * (1 + gamma(_ROUNDINGS * (step + 1), unit))
    radius = np.minimum(radius, np.abs(value) + largest)
    direction = _rounded(value, radius, np.abs(value) + radius, unit)
    rate = settings["learning_rate"] / (1 - beta1**step)
    return _added(state.parameters, -rate, direction, unit), {"mean": mean, "square": square}


def _adamw(state: ExactState, gradient: Around, settings: Mapping[str, float], unit: float) -> Reached:
    kept = 1 - settings["learning_rate"] * settings["weight_decay"]
    before = state.parameters
    shrunk = _rounded(kept * before.value, kept * before.radius, before.most, unit)
    return _adam(state._replace(parameters=shrunk), gradient, {**settings, "weight_decay": 0.0}, unit)


#: What each of `OPTIMIZERS` makes of a radius; of one that is not here, no bound is known.
REACHES: dict[str, Reach] = {"sgd": _sgd, "momentum": _momentum, "adam": _adam, "adamw": _adamw}


class ExactDistance(NamedTuple):
    """How far parameters are from those of one exact process.

    Parameters
    ----------
    error : float
        The largest difference of a parameter.
    share : float
        The largest difference as a share of its bound.
    """

    error: float
    share: float


class ExactTraining:
    """One process in exact arithmetic, step by step, with which a training is compared."""

    def __init__(self, plan: TrainingPlan) -> None:
        self._plan, optimizer = plan, plan.optimizer
        self._start = plan.model.start(plan.master).astype(np.float64)
        memory = {name: Around.exactly(zeros) for name, zeros in optimizer.start(self._start).items()}
        self.state = ExactState(Around.exactly(self._start), memory, 0)
        self._tells = optimizer.name in REACHES
        #: Of what is compared, and of the float64 in which the exact process is followed.
        self._unit = unit_roundoff(plan.master) + U64

    def follow(self, step: TrainedStep) -> ExactDistance | None:
        """Take the same step, and compare; None from where on no bound is known, or it tells nothing."""
        if self._tells and not step.nonfinite:
            with np.errstate(all="ignore"):  # what is infinite tells nothing
                self._tells = self._takes(step)
        return self.distance(step.parameters) if self._tells else None

    def distance(self, parameters: Array) -> ExactDistance:
        """Return how far some parameters are from those of now."""
        error = np.abs(parameters.astype(np.float64) - self.state.parameters.value)
        share = np.divide(error, self.state.parameters.radius, out=np.zeros_like(error), where=error > 0)
        return ExactDistance(float(error.max(initial=0.0)), float(share.max(initial=0.0)))

    def _takes(self, step: TrainedStep) -> bool:
        """Take a step; return whether the radius still tells something."""
        plan, (parameters, _, n_updates) = self._plan, self.state
        found = plan.model.around(parameters, [one for one in plan.batches(step.step) if one.n], self._unit)
        if found is None:
            return False
        mean, magnitude = found
        kinds, scale = {"wire": plan.wire, "master": plan.master}, plan.scale(int(step.counts.sum()))
        added = gradient_bound(magnitude, step.counts, **kinds, microbatches=plan.microbatches, scale=scale)
        gradient = Around(mean.value, mean.radius + added)
        new, memory = REACHES[plan.optimizer.name](self.state, gradient, plan.optimizer.settings, self._unit)
        new = Around(new.value, new.radius + _ROUNDINGS * smallest_subnormal(plan.master))
        self.state = ExactState(new, memory, n_updates + 1)
        come, radius = (float(np.sqrt(np.square(values).mean())) for values in (new.value - self._start, new.radius))
        # What leaves the range of its type is no longer a matter of rounding.
        largest = max(float(one.most.max(initial=0.0)) for one in (new, gradient, *memory.values()))
        return radius <= _MOST_SHARE * come and largest < float(np.finfo(plan.master).max)
