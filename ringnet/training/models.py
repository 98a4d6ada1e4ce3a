"""What is trained: a model gives the gradient of some examples at some parameters, all as one flat array.

Models of ringnet's own are computed example by example in one order, whoever computes them and whatever else is in the
batch. So an example's gradient is the same bits in every batch, and what differs between N workers and one process is
only how the gradients of examples are added: that is bounded (`whole_batch`), and nothing else has to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.payload.bounds import gamma

#: Rows of each digit, three dots wide, five high.
_FONT = (
    "###|#.#|#.#|#.#|###",
    ".#.|##.|.#.|.#.|###",
    "###|..#|###|#..|###",
    "###|..#|.##|..#|###",
    "#.#|#.#|###|..#|..#",
    "###|#..|###|..#|###",
    "###|#..|###|#.#|###",
    "###|..#|.#.|.#.|.#.",
    "###|#.#|###|#.#|###",
    "###|#.#|###|..#|###",
)
#: Pictures are so many dots high and wide.
SIDE = 8
N_CLASSES = len(_FONT)


def digit_images(n: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Draw digits, each a dot up or down and right or left of the middle, of random brightness, under random noise.

    Returns
    -------
    images : ndarray of float64, shape (n, 64)
        8 x 8 dots each, in sixteenths: from 0 to 1, exact in every floating-point type down to bfloat16.
    labels : ndarray of int64, shape (n,)
        0 to 9: which digit.

    Examples
    --------
    >>> images, labels = digit_images(3, seed=1)
    >>> images.shape, bool((images * 16 == np.round(images * 16)).all())
    ((3, 64), True)
    """
    # Raw 64-bit draws of a named generator: their values are promised to stay, those of distributions are not.
    draws = np.random.PCG64(seed).random_raw(n * (SIDE * SIDE + 4)).reshape(n, SIDE * SIDE + 4)
    labels = (draws[:, 0] % N_CLASSES).astype(np.int64)
    down, right = 1 + draws[:, 1] % 2, 2 + draws[:, 2] % 2
    bright = (9 + draws[:, 3] % 8).astype(np.int64)
    images = (draws[:, 4:] % 4).astype(np.int64).reshape(n, SIDE, SIDE)
    for number, label in enumerate(labels.tolist()):
        for y, line in enumerate(_FONT[label].split("|")):
            for x, dot in enumerate(line):
                if dot == "#":
                    images[number, y + int(down[number]), x + int(right[number])] = bright[number]
    return images.reshape(n, -1) / 16.0, labels


#: Name and shape of each array of parameters, in the order in which they stand in the flat one.
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class Batch(NamedTuple):
    """Examples of one worker, by number; how many they are where a model knows no numbers."""

    worker: int
    examples: IntArray

    @property
    def n(self) -> int:
        """How many examples."""
        return len(self.examples)


class BatchGradient(NamedTuple):
    """Loss and gradient of a batch, each the mean over its examples; NaN and zeros for an empty one.

    ``magnitude`` is the mean over the examples of the gradient's magnitude, where the model knows it: what rounding
    errors of the mean are measured by.
    """

    loss: float
    gradient: Array
    magnitude: Array | None = None


class Around(NamedTuple):
    """Exact values, and how far what is computed may be from each; both float64, of one shape."""

    value: FloatArray
    radius: FloatArray

    @classmethod
    def exactly(cls, value: Array) -> Around:
        """Return values without any doubt."""
        return cls(value.astype(np.float64), np.zeros(value.shape))

    @property
    def most(self) -> FloatArray:
        """The largest magnitudes."""
        return np.abs(self.value) + self.radius


class TrainableModel(Protocol):
    """What a training asks of a model."""

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of its parameters."""

    @property
    def n_examples(self) -> int | None:
        """How many examples there are; None where a worker's count is all that is known of them."""

    def start(self, dtype: np.dtype[Any]) -> Array:
        """Return the parameters before the first step, flat."""

    def gradient(self, parameters: Array, batch: Batch) -> BatchGradient:
        """Return loss and gradient of a worker's batch, in the parameters' type."""

    def whole(self, parameters: Array, batches: Sequence[Batch]) -> BatchGradient:
        """Return loss and gradient over all batches as one process computes them, summed in float64."""

    def around(self, parameters: Around, batches: Sequence[Batch], unit: float) -> tuple[Around, FloatArray] | None:
        """Return the exact mean of the examples' gradients, and how far that of computed ones is from it at most.

        The computed ones may be at any parameters within the radius, and are rounded to a type of unit roundoff
        ``unit``, each operation in any order; how they are added up is not counted. Beside it stands the mean of
        their largest magnitudes. None where a model does not know how it rounds.
        """


def n_parameters(shapes: Shapes) -> int:
    """Return how many numbers the arrays of these shapes hold.

    >>> n_parameters({"weight": (3, 4), "bias": (4,)})
    16
    """
    return sum(math.prod(shape) for shape in shapes.values())


def layer_of(shapes: Shapes, element: int) -> tuple[str, int]:
    """Return the name of the array that an element of the flat one is in, and its place there.

    >>> layer_of({"weight": (3, 4), "bias": (4,)}, 13)
    ('bias', 1)
    """
    for name, shape in shapes.items():
        if element < math.prod(shape):
            return name, element
        element -= math.prod(shape)
    raise IndexError(element)


def unflattened(flat: Array, shapes: Shapes) -> dict[str, Array]:
    """Return views of a flat array, one for each name."""
    found, start = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        found[name] = flat[start : start + size].reshape(shape)
        start += size
    return found


@dataclass(frozen=True, eq=False)
class GivenGradients:
    """Each worker has one gradient, the same at all parameters: numbers that can be followed by hand.

    Parameters
    ----------
    rows : ndarray of float64, shape (n_workers, n_parameters)
        The mean gradient of each worker's examples.
    parameters : ndarray of float64, shape (n_parameters,)
        Before the first step.
    """

    rows: FloatArray
    parameters: FloatArray
    n_examples: int | None = None

    @property
    def shapes(self) -> Shapes:
        """See `TrainableModel.shapes`."""
        return {"parameters": self.parameters.shape}

    def start(self, dtype: np.dtype[Any]) -> Array:
        """See `TrainableModel.start`."""
        return self.parameters.astype(dtype)

    def gradient(self, parameters: Array, batch: Batch) -> BatchGradient:
        """See `TrainableModel.gradient`; the loss is one with these gradients, their product with the parameters."""
        row = self.rows[batch.worker].astype(parameters.dtype)
        if not batch.n:
            return BatchGradient(math.nan, np.zeros_like(row))
        return BatchGradient(float((row * parameters).sum()), row, np.abs(row))

    def whole(self, parameters: Array, batches: Sequence[Batch]) -> BatchGradient:
        """See `TrainableModel.whole`."""
        counts = np.array([[batch.n] for batch in batches], dtype=np.float64)
        rows = self.rows[[batch.worker for batch in batches]].astype(parameters.dtype).astype(np.float64)
        mean, size = ((counts * values).sum(axis=0) / counts.sum() for values in (rows, np.abs(rows)))
        return BatchGradient(float((mean * parameters).sum()), mean, size)

    def around(self, parameters: Around, batches: Sequence[Batch], unit: float) -> tuple[Around, FloatArray]:
        """See `TrainableModel.around`; a row is rounded once, to the type of the parameters."""
        counts = np.array([[batch.n] for batch in batches], dtype=np.float64)
        rows = self.rows[[batch.worker for batch in batches]]
        mean, size = ((counts * values).sum(axis=0) / counts.sum() for values in (rows, np.abs(rows)))
        return Around(mean, unit * size), (1 + unit) * size


class DigitsNetwork:
    """A network with rectified hidden layers that learns `digit_images` by least squares.

    The loss of an example is half the squared distance between its ten outputs and one 1 among nine 0. Only
    additions, products and comparisons are made, in an order that is the same for each example: no library of linear
    algebra, so that the numbers are the same on every machine.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    n_examples, seed : int
        Of the pictures, and of the weights at the start.
    """

    def __init__(self, hidden: Sequence[int], n_examples: int, seed: int) -> None:
        self.widths = (SIDE * SIDE, *hidden, N_CLASSES)
        self.n_examples: int | None = n_examples
        self.shapes: Shapes = digits_shapes(hidden)
        self.seed = seed
        self._images, labels = digit_images(n_examples, seed)
        self._targets = np.eye(N_CLASSES)[labels]

    def start(self, dtype: np.dtype[Any]) -> Array:
        """See `TrainableModel.start`; weights are uniform within 1/sqrt(the inputs of their layer), biases zero."""
        draws = np.random.PCG64([self.seed, 1]).random_raw(n_parameters(self.shapes)) >> 11
        flat = draws.astype(np.float64) * 2.0**-52 - 1.0
        layers = unflattened(flat, self.shapes)
        for name in layers:
            layers[name] *= 1 / math.sqrt(len(layers[name])) if name.startswith("weight") else 0.0
        return flat.astype(dtype)

    def gradient(self, parameters: Array, batch: Batch) -> BatchGradient:
        """See `TrainableModel.gradient`."""
        if not batch.n:
            return BatchGradient(math.nan, np.zeros_like(parameters))
        found = self._sums(parameters, batch.examples, parameters.dtype)
        count = parameters.dtype.type(batch.n)
        return BatchGradient(found.loss / batch.n, found.gradient / count, found.magnitude)

    def whole(self, parameters: Array, batches: Sequence[Batch]) -> BatchGradient:
        """See `TrainableModel.whole`."""
        examples = np.concatenate([batch.examples for batch in batches])
        found = self._sums(parameters, examples, np.dtype(np.float64))
        return BatchGradient(found.loss / len(examples), found.gradient / len(examples), found.magnitude)

    def around(self, parameters: Around, batches: Sequence[Batch], unit: float) -> tuple[Around, FloatArray]:
        """See `TrainableModel.around`."""
        examples, n_layers = np.concatenate([batch.examples for batch in batches]), len(self.widths) - 1
        layers = {
            name: Around(value, radius)
            for (name, value), radius in zip(
                unflattened(parameters.value, self.shapes).items(),
                unflattened(parameters.radius, self.shapes).values(),
                strict=True,
            )
        }
        held, certain = [Around.exactly(self._images[examples])], []
        for number in range(n_layers):
            out = around_product(held[-1], layers[f"weight{number}"], unit, layers[f"bias{number}"])
            low, high = out.value - out.radius, out.value + out.radius
            certain.append((low > 0) | (high <= 0))
            if number < n_layers - 1:
                on = np.maximum(out.value, 0)
                out = Around(on, np.maximum(np.maximum(high, 0) - on, on - np.maximum(low, 0)))
            held.append(out)
        targets = self._targets[examples]
        error = Around(held[-1].value - targets, held[-1].radius + unit * (held[-1].most + np.abs(targets)))
        sums = [np.zeros(len(parameters.value)) for _ in range(3)]
        values, radii, sizes = (unflattened(flat, self.shapes) for flat in sums)
        for number in reversed(range(n_layers)):
            given, most = held[number], in_order_product(held[number].most.T, error.most)
            values[f"weight{number}"][...] = in_order_product(given.value.T, error.value)
            radii[f"weight{number}"][...] = (
                in_order_product(given.radius.T, error.most)
                + in_order_product(np.abs(given.value).T, error.radius)
                + unit * most
            )
            sizes[f"weight{number}"][...] = (1 + unit) * most
            for found, part in ((values, error.value), (radii, error.radius), (sizes, error.most)):
                found[f"bias{number}"][...] = part.sum(axis=0)
            if number:
                back = around_product(error, Around(*(part.T for part in layers[f"weight{number}"])), unit)
                slope = held[number].value > 0
                radius = np.where(certain[number - 1], back.radius * slope, back.most)
                error = Around(back.value * slope, radius)
        mean, radius, size = (flat / len(examples) for flat in sums)
        return Around(mean, radius), size

    def accuracy(self, parameters: Array) -> float:
        """Return the share of all pictures in which the largest output is that of the digit."""
        outputs = self._forward(unflattened(parameters, self.shapes), self._images.astype(parameters.dtype))
        return float((outputs[-1].argmax(axis=1) == self._targets.argmax(axis=1)).mean())

    def _forward(self, layers: Mapping[str, Array], inputs: Array) -> list[Array]:
        """Return what goes into each layer, and last what comes out."""
        held, n_layers = [inputs], len(self.widths) - 1
        for number in range(n_layers):
            out = in_order_product(held[-1], layers[f"weight{number}"]) + layers[f"bias{number}"]
            held.append(np.maximum(out, 0) if number < n_layers - 1 else out)
        return held

    def _sums(self, parameters: Array, examples: IntArray, dtype: np.dtype[Any]) -> _Sums:
        """Return sums over the examples: computed in the type of the parameters, added in ``dtype``."""
        layers, own = unflattened(parameters, self.shapes), parameters.dtype
        held = self._forward(layers, self._images[examples].astype(own))
        error = held[-1] - self._targets[examples].astype(own)
        sums = _Sums(0.5 * float(np.square(error, dtype=np.float64).sum()), np.zeros(len(parameters), dtype))
        totals, sizes = unflattened(sums.gradient, self.shapes), unflattened(sums.magnitude, self.shapes)
        for number in reversed(range(len(self.widths) - 1)):
            given = held[number]
            for one, back in zip(given, error, strict=True):
                totals[f"weight{number}"] += one[:, None] * back[None, :]
                totals[f"bias{number}"] += back
            wide = np.abs(error, dtype=np.float64)
            sizes[f"weight{number}"] += in_order_product(np.abs(given.T, dtype=np.float64), wide)
            sizes[f"bias{number}"] += wide.sum(axis=0)
            if number:
                error = in_order_product(error, layers[f"weight{number}"].T) * (given > 0)
        sums.magnitude[:] /= len(examples)
        return sums


class _Sums:
    """Sums of loss and gradient over some examples; and the mean magnitude of a gradient's elements."""

    def __init__(self, loss: float, gradient: Array) -> None:
        self.loss, self.gradient = loss, gradient
        self.magnitude = np.zeros(len(gradient))


def digits_shapes(hidden: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the parameters of a `DigitsNetwork`.

    >>> digits_shapes([32])
    {'weight0': (64, 32), 'bias0': (32,), 'weight1': (32, 10), 'bias1': (10,)}
    """
    widths = (SIDE * SIDE, *hidden, N_CLASSES)
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (n_in, n_out) in enumerate(pairwise(widths)):
        shapes[f"weight{number}"], shapes[f"bias{number}"] = (n_in, n_out), (n_out,)
    return shapes


def in_order_product(a: Array, b: Array) -> Array:
    """Return the matrix product, each element summed from the first term to the last, one by one.

    A row of the result depends on its row of ``a`` and on ``b`` alone, to the last bit, and not on the machine.

    >>> in_order_product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    total = a[:, :1] * b[:1]
    for k in range(1, a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return total


def around_product(a: Around, b: Around, unit: float, start: Around | None = None) -> Around:
    """Return a matrix product, with what is added to each of its rows, and how far a rounded one may be from it.

    >>> one = Around(np.array([[1.0, 2.0]]), np.array([[0.5, 0.0]]))
    >>> around_product(one, Around.exactly(np.array([[3.0], [4.0]])), 0.0)
    Around(value=array([[11.]]), radius=array([[1.5]]))
    """
    value, most = in_order_product(a.value, b.value), in_order_product(a.most, b.most)
    radius = in_order_product(a.radius, b.most) + in_order_product(np.abs(a.value), b.radius)
    if start is not None:
        value, most, radius = value + start.value, most + start.most, radius + start.radius
    return Around(value, radius + gamma(a.value.shape[1] + 1, unit) * most)
