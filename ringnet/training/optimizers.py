"""Optimizers as plain functions: parameters, gradient and state in; new parameters and new state out.

Nothing is changed in place, and nothing is remembered here: workers that hold the same bits before a step, and are
given the same gradient, hold the same bits after it. Arrays may be of any array-API library; the formulas are those of
PyTorch's ``torch.optim``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from array_api_compat import array_namespace

from ringnet.errors import Fault, InputError, unknown

Array: TypeAlias = Any  # of NumPy, PyTorch, CuPy or another array-API library
#: What an optimizer remembers: an array like the parameters for each name.
Memory: TypeAlias = Mapping[str, Array]
Update: TypeAlias = tuple[Array, dict[str, Array]]


def sgd(
    parameters: Array,
    gradient: Array,
    memory: Memory,
    step: int = 1,
    *,
    learning_rate: float,
    weight_decay: float = 0.0,
) -> Update:
    """Stochastic gradient descent: p - learning_rate x g.

    Parameters
    ----------
    parameters, gradient : array
        Of one shape and floating-point dtype; the gradient is the mean over all examples of the step.
    memory : mapping
        Empty.
    step : int
        Number of the step, from 1; not read.
    learning_rate, weight_decay : float
        Weight decay adds weight_decay x p to the gradient.

    Returns
    -------
    parameters : array
    memory : dict

    Examples
    --------
    >>> import numpy as np
    >>> sgd(np.array([10.0]), np.array([5.0]), {}, learning_rate=0.5)[0].tolist()
    [7.5]
    """
    return parameters - _decayed(parameters, gradient, weight_decay) * learning_rate, {}


def momentum(
    parameters: Array,
    gradient: Array,
    memory: Memory,
    step: int = 1,
    *,
    learning_rate: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> Update:
    """SGD with a velocity: v = momentum x v + g, p - learning_rate x v.

    Parameters
    ----------
    parameters, gradient, step, learning_rate, weight_decay
        As for `sgd`.
    memory : mapping
        ``velocity``.
    momentum : float

    Examples
    --------
    >>> import numpy as np
    >>> new, memory = momentum(np.array([10.0]), np.array([5.0]), {"velocity": np.array([2.0])}, learning_rate=0.5,
    ...                        momentum=0.5)
    >>> new.tolist(), memory["velocity"].tolist()
    ([7.0], [6.0])
    """
    velocity = memory["velocity"] * momentum + _decayed(parameters, gradient, weight_decay)
    return parameters - velocity * learning_rate, {"velocity": velocity}


def adam(  # noqa: PLR0913 -- the settings of Adam
    parameters: Array,
    gradient: Array,
    memory: Memory,
    step: int,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> Update:
    """Adam (Kingma and Ba, 2015): the mean of gradients over the root of the mean of their squares.

    Parameters
    ----------
    parameters, gradient, learning_rate, weight_decay
        As for `sgd`.
    memory : mapping
        ``mean`` and ``square``.
    step : int
        Number of the step, from 1: means that started at zero are corrected by it.
    beta1, beta2, epsilon : float

    Examples
    --------
    >>> import numpy as np
    >>> zero = np.zeros(1)
    >>> new, _ = adam(np.array([1.0]), np.array([5.0]), {"mean": zero, "square": zero}, 1, learning_rate=0.25)
    >>> round(float(new[0]), 6)
    0.75
    """
    gradient = _decayed(parameters, gradient, weight_decay)
    xp = array_namespace(parameters)
    mean = memory["mean"] + (gradient - memory["mean"]) * (1 - beta1)
    square = memory["square"] * beta2 + gradient * gradient * (1 - beta2)
    root = xp.sqrt(square) / math.sqrt(1 - beta2**step) + epsilon
    new = parameters - mean / root * (learning_rate / (1 - beta1**step))
    return new, {"mean": mean, "square": square}


def adamw(  # noqa: PLR0913 -- the same
    parameters: Array,
    gradient: Array,
    memory: Memory,
    step: int,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> Update:
    """Adam with weight decay of its own (Loshchilov and Hutter, 2019): p shrinks, and the gradient does not know.

    Parameters
    ----------
    parameters, gradient, memory, step, learning_rate, beta1, beta2, epsilon, weight_decay
        As for `adam`.

    Examples
    --------
    >>> import numpy as np
    >>> zero = np.zeros(1)
    >>> memory = {"mean": zero, "square": zero}
    >>> adamw(np.array([1.0]), zero, memory, 1, learning_rate=0.5, weight_decay=0.5)[0].tolist()
    [0.75]
    """
    shrunk = parameters * (1 - learning_rate * weight_decay)
    return adam(
        shrunk,
        gradient,
        memory,
        step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
    )


def _decayed(parameters: Array, gradient: Array, weight_decay: float) -> Array:
    return gradient + parameters * weight_decay if weight_decay else gradient


@dataclass(frozen=True)
class OptimizerKind:
    """An optimizer by its function, a line about it, what it remembers, and its settings with their usual values."""

    update: Callable[..., Update]
    summary: str
    memory: tuple[str, ...] = ()
    settings: Mapping[str, float] = field(default_factory=dict)


_DECAY = {"weight_decay": 0.0}
_ADAM = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
#: Every optimizer by name; a learning rate is for all of them.
OPTIMIZERS: dict[str, OptimizerKind] = {
    "sgd": OptimizerKind(sgd, "stochastic gradient descent", (), _DECAY),
    "momentum": OptimizerKind(momentum, "SGD with a velocity", ("velocity",), {"momentum": 0.9, **_DECAY}),
    "adam": OptimizerKind(adam, "mean over root mean square of gradients", ("mean", "square"), {**_ADAM, **_DECAY}),
    "adamw": OptimizerKind(
        adamw, "Adam with weight decay of its own", ("mean", "square"), {**_ADAM, "weight_decay": 0.01}
    ),
}


@dataclass(frozen=True)
class Optimizer:
    """One of `OPTIMIZERS` with its settings; it holds no state."""

    name: str
    settings: Mapping[str, float]

    def start(self, parameters: Array) -> dict[str, Array]:
        """Return what it remembers before the first step: zeros."""
        zeros = array_namespace(parameters).zeros_like
        return {name: zeros(parameters) for name in OPTIMIZERS[self.name].memory}

    def update(self, parameters: Array, gradient: Array, memory: Memory, step: int) -> Update:
        """Return parameters and memory after step number ``step``, from 1."""
        return OPTIMIZERS[self.name].update(parameters, gradient, memory, step, **self.settings)


def make_optimizer(name: str, learning_rate: float, **settings: float) -> Optimizer:
    """Return an optimizer with its settings; those left out are as in PyTorch.

    Raises
    ------
    InputError
        An optimizer or a setting that does not exist.

    Examples
    --------
    >>> make_optimizer("momentum", 0.1).settings["momentum"]
    0.9
    """
    if name not in OPTIMIZERS:
        raise InputError(unknown("there is no such optimizer", name, OPTIMIZERS))
    known = OPTIMIZERS[name].settings
    if others := [key for key in settings if key not in known]:
        raise InputError(*(Fault(f"{name} has no {key}", right=", ".join(known)) for key in others))
    return Optimizer(name, {"learning_rate": learning_rate, **known, **settings})
