"""Means over examples: of workers with different numbers of them, of microbatches, and of parameters over time.

Arrays may be of any array-API library. Weights are numbers of examples, or anything else that is proportional to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from array_api_compat import array_namespace

from ringnet.errors import Fault, InputError

Array: TypeAlias = Any  # of NumPy, PyTorch, CuPy or another array-API library


def weighted_mean(arrays: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return sum(w_i x_i) / sum(w_i): of mean gradients, weighted by numbers of examples, the mean over all examples.

    Parameters
    ----------
    arrays : sequence of arrays
        One for each worker, all of one shape and floating-point dtype.
    weights : sequence of float
        One for each array, not negative; what weighs nothing is not read, whatever is in it.

    Raises
    ------
    InputError
        No arrays, shapes that differ, weights of another number, negative, not finite, or all zero.

    Examples
    --------
    >>> import numpy as np
    >>> gradients = [np.array([2.0]), np.array([6.0])]
    >>> weighted_mean(gradients, [1, 1]).tolist(), weighted_mean(gradients, [1, 3]).tolist()
    ([4.0], [5.0])
    """
    faults = [*_wrong_weights(len(arrays), weights), *_wrong_shapes(arrays)]
    if faults:
        raise InputError(*faults)
    total = None
    for array, weight in zip(arrays, weights, strict=True):
        if weight:
            term = array * float(weight)
            total = term if total is None else total + term
    return total / math.fsum(weights)  # type: ignore[operator] # some weight is above zero


def _wrong_weights(n_arrays: int, weights: Sequence[float]) -> list[Fault]:
    given = str(list(weights))
    if len(weights) != n_arrays or not n_arrays:
        right = "one weight for each array, and at least one array"
        return [Fault(f"{len(weights)} weights for {n_arrays} arrays", value=given, right=right)]
    bad = [weight for weight in weights if not (math.isfinite(weight) and weight >= 0)]
    if bad:
        return [Fault("a weight is a finite number from zero up", value=str(bad[0]), right="1")]
    if not any(weights):
        return [Fault("all weights are zero, so there is nothing to average", value=given)]
    return []


def _wrong_shapes(arrays: Sequence[Array]) -> list[Fault]:
    shapes = [tuple(array.shape) for array in arrays]
    odd = next((number for number, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is None:
        return []
    return [Fault(f"array {odd} has another shape", value=str(shapes[odd]), right=str(shapes[0]))]


def accumulate(total: Array | None, gradient: Array, count: int) -> Array:
    """Add the mean gradient of a microbatch to what was accumulated, weighted by its number of examples.

    Parameters
    ----------
    total : array or None
        The sum over the examples of the microbatches before; None before the first.
    gradient : array
        The mean over the examples of this microbatch; not read where there are none.
    count : int
        How many those are.

    Returns
    -------
    array
        The sum over all examples so far; divided by their number, it is the gradient of one batch of them all.

    Raises
    ------
    InputError
        A negative count.

    Examples
    --------
    >>> import numpy as np
    >>> total = accumulate(None, np.array([2.0]), 1)
    >>> (accumulate(total, np.array([6.0]), 3) / 4).tolist()
    [5.0]
    """
    if count < 0:
        raise InputError(Fault("a number of examples is not negative", value=str(count), right="0"))
    if count == 0:  # and whatever stands in the gradient, NaN too, is that of no example
        return array_namespace(gradient).zeros_like(gradient) if total is None else total
    term = gradient * float(count)
    return term if total is None else total + term


def moving_average(average: Array, values: Array, decay: float) -> Array:
    """Return the exponential moving average after one more step: decay x average + (1 - decay) x values.

    Call it once a step, after the optimizer's update: once a microbatch it would forget that many times faster.

    Parameters
    ----------
    average, values : array
        Before the step; and the parameters after it. Of one shape.
    decay : float
        From 0 (no memory) to below 1.

    Raises
    ------
    InputError
        Another decay.

    Examples
    --------
    >>> import numpy as np
    >>> moving_average(np.array([10.0]), np.array([8.0]), decay=0.75).tolist()
    [9.5]
    """
    if not 0 <= decay < 1:
        raise InputError(Fault("a decay is from 0 to below 1", value=str(decay), right="0.999"))
    return average * decay + values * (1 - decay)
