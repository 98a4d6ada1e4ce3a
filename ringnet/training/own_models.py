"""A model of the user's own: a function that returns loss and gradients of some examples, and one for the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.errors import Fault, InputError
from ringnet.training.models import Around, Batch, BatchGradient, Shapes, n_parameters, unflattened

#: Called with the parameters by name and numbers of examples; returns their mean loss and its gradients by name.
Gradients: TypeAlias = Callable[[dict[str, Array], IntArray], tuple[Any, Mapping[str, Any]]]

_RIGHT = "(loss, {name: gradient})"


class OwnModel:
    """A user's functions as a model.

    Parameters
    ----------
    gradients : callable
        ``gradients(parameters, examples)``: arrays by name, and the numbers of the examples, a NumPy array of int64;
        returns the mean loss over these examples and its gradient for each array, of the array's shape. Arrays of
        PyTorch and other libraries are taken as well.
    parameters : mapping
        The arrays before the first step, by name.
    n_examples : int
        How many examples there are: a batch holds numbers from 0 to below this.
    name : str
        Of the function, for messages.

    Raises
    ------
    InputError
        No arrays, or some that hold no numbers or nothing.
    """

    def __init__(self, gradients: Gradients, parameters: Mapping[str, Any], n_examples: int, name: str) -> None:
        self._gradients, self._name = gradients, name
        if not isinstance(parameters, Mapping) or not parameters:
            value = type(parameters).__name__ if not isinstance(parameters, Mapping) else "no arrays"
            raise InputError(Fault("a model has arrays of parameters", value=value, right="{name: array}"))
        arrays = {str(key): as_numpy(array) for key, array in parameters.items()}
        faults = [
            Fault(f"the parameters {key} are no numbers", value=f"{array.dtype}, shape {array.shape}")
            for key, array in arrays.items()
            if array.dtype.kind not in "fiu" or not array.size
        ]
        if faults:
            raise InputError(*faults)
        self._start = np.concatenate([array.astype(np.float64).reshape(-1) for array in arrays.values()])
        self.shapes: Shapes = {key: array.shape for key, array in arrays.items()}
        self.n_examples: int | None = n_examples

    def start(self, dtype: np.dtype[Any]) -> Array:
        """See `TrainableModel.start`."""
        return self._start.astype(dtype)

    def gradient(self, parameters: Array, batch: Batch) -> BatchGradient:
        """See `TrainableModel.gradient`; an empty batch is not asked about."""
        if not batch.n:
            return BatchGradient(math.nan, np.zeros_like(parameters))
        loss, flat = self._called(parameters, batch.examples)
        return BatchGradient(loss, flat.astype(parameters.dtype))

    def whole(self, parameters: Array, batches: Sequence[Batch]) -> BatchGradient:
        """See `TrainableModel.whole`: one call for all examples; how that rounds is not known, so no magnitude."""
        loss, flat = self._called(parameters, np.concatenate([batch.examples for batch in batches]))
        return BatchGradient(loss, flat.astype(np.float64))

    def around(self, parameters: Around, batches: Sequence[Batch], unit: float) -> None:
        """See `TrainableModel.around`: how a function rounds is not known."""

    def _called(self, parameters: Array, examples: IntArray) -> tuple[float, Array]:
        given = {name: part.copy() for name, part in unflattened(parameters, self.shapes).items()}
        found = self._gradients(given, examples.copy())
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)):  # noqa: PLR2004
            raise self._wrong("returns something else", type(found).__name__, _RIGHT)
        loss, gradients = found
        if set(gradients) != set(self.shapes):
            value, right = ", ".join(map(str, gradients)) or "none", ", ".join(self.shapes)
            raise self._wrong("returns gradients of other parameters", value, right)
        flat = np.empty(n_parameters(self.shapes), np.float64)
        for name, part in unflattened(flat, self.shapes).items():
            array = as_numpy(gradients[name])
            if array.shape != part.shape or array.dtype.kind not in "fiu":
                value = f"{array.dtype}, shape {array.shape}"
                raise self._wrong(f"returns a wrong gradient of {name}", value, f"shape {part.shape}")
            part[...] = array
        return self._loss(loss), flat

    def _loss(self, loss: Any) -> float:
        try:
            return float(loss)
        except (TypeError, ValueError, RuntimeError):
            raise self._wrong("returns a loss that is no number", type(loss).__name__, _RIGHT) from None

    def _wrong(self, message: str, value: str, right: str) -> InputError:
        return InputError(Fault(f"{self._name} {message}", "training.model.python", value=value, right=right))


def as_numpy(array: Any) -> Array:
    """Return an array of any library as NumPy has it; of PyTorch without its graph, from any device."""
    for step in ("detach", "cpu"):
        array = getattr(array, step)() if hasattr(array, step) else array
    return np.asarray(array)


def module_gradients(
    module: Any, loss_of: Callable[[Any, IntArray], Any]
) -> tuple[Gradients, Callable[[], dict[str, Array]]]:
    """Return the two functions that a scenario wants of a PyTorch module.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters are overwritten at each call.
    loss_of : callable
        ``loss_of(module, examples)``: the mean loss over the examples of these numbers, a scalar that knows its graph.

    Returns
    -------
    gradients : callable
        As `OwnModel` wants it.
    parameters : callable
        Returns the module's parameters by name, as they are now.

    Examples
    --------
    In ``my.py``, for ``model: {python: 'my.py:gradients', examples: 1000}``::

        def loss_of(module, examples):
            return loss(module(inputs[examples]), targets[examples])

        gradients, parameters = module_gradients(module, loss_of)
    """

    def parameters() -> dict[str, Array]:
        return {name: as_numpy(parameter).copy() for name, parameter in module.named_parameters()}

    def gradients(given: dict[str, Array], examples: IntArray) -> tuple[float, dict[str, Array]]:
        for name, parameter in module.named_parameters():
            parameter.grad = None
            new = parameter.data.new_tensor(given[name].tolist())
            parameter.data.copy_(new.reshape(parameter.data.shape))
        loss = loss_of(module, examples)
        loss.backward()
        found = {}
        for name, parameter in module.named_parameters():
            unused = parameter.grad is None  # by these examples
            found[name] = np.zeros_like(given[name]) if unused else as_numpy(parameter.grad).copy()
        return float(as_numpy(loss)), found

    return gradients, parameters
