"""Weighted means, accumulation, optimizers and moving averages, as plain functions of any array library."""

from __future__ import annotations

import math

import array_api_strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import InputError
from ringnet.training import (
    OPTIMIZERS,
    accumulate,
    make_optimizer,
    module_gradients,
    moving_average,
    weighted_mean,
)

LIBRARIES = pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "array-api-strict"])


@LIBRARIES
@pytest.mark.parametrize(
    ("counts", "mean"), [([1, 1], 4.0), ([1, 3], 5.0), ([7, 21], 5.0), ([0, 5], 6.0), ([5, 0], 2.0)]
)
def test_gradients_2_and_6_have_a_mean_by_their_numbers_of_examples(xp, counts, mean):
    found = weighted_mean([xp.asarray([2.0]), xp.asarray([6.0])], counts)
    assert isinstance(found, type(xp.asarray([0.0])))
    assert float(found[0]) == mean


def test_what_weighs_nothing_is_not_read():
    assert weighted_mean([np.array([math.nan]), np.array([6.0])], [0, 3]).tolist() == [6.0]
    assert accumulate(None, np.array([math.inf]), 0).tolist() == [0.0]
    assert accumulate(np.array([4.0]), np.array([math.nan]), 0).tolist() == [4.0]


@pytest.mark.parametrize(
    ("shapes", "weights", "message"),
    [
        ([(1,), (1,)], [0, 0], "all weights are zero, so there is nothing to average"),
        ([(1,), (1,)], [1, -1], "a weight is a finite number from zero up; got -1"),
        ([(1,), (1,)], [1, math.nan], "a weight is a finite number"),
        ([(1,), (1,)], [1], "1 weights for 2 arrays"),
        ([], [], "0 weights for 0 arrays"),
        ([(1,), (2,)], [1, 1], "array 1 has another shape; got (2,); right would be: (1,)"),
    ],
)
def test_weights_that_make_no_mean_are_refused(shapes, weights, message):
    with pytest.raises(InputError) as caught:
        weighted_mean([np.ones(shape) for shape in shapes], weights)
    assert message in str(caught.value)


def test_a_negative_count_and_a_decay_of_one_are_refused():
    with pytest.raises(InputError, match="not negative; got -2"):
        accumulate(None, np.ones(1), -2)
    with pytest.raises(InputError, match="from 0 to below 1; got 1"):
        moving_average(np.ones(1), np.ones(1), 1)


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.integers(0, 50)), min_size=1, max_size=9).filter(
        lambda parts: sum(count for _, count in parts) > 0
    )
)
def test_accumulated_microbatches_are_one_batch(parts):
    total, n = None, sum(count for _, count in parts)
    for value, count in parts:
        total = accumulate(total, np.array([value]), count)
    exact = math.fsum(value * count for value, count in parts) / n
    size = math.fsum(abs(value) * count for value, count in parts) / n
    assert abs(total[0] / n - exact) <= (len(parts) + 2) * 2.0**-53 * size
    assert weighted_mean([np.array([value]) for value, _ in parts], [count for _, count in parts])[0] == pytest.approx(
        exact, abs=1e-12 * size
    )


# ------------------------------------------------------------------------------------------- optimizers


def textbook(name, p, gradients, lr, wd):
    """The optimizers once more, number by number, as their papers have them."""
    velocity = mean = square = 0.0
    mu, b1, b2, eps = 0.9, 0.9, 0.999, 1e-8
    for t, gradient in enumerate(gradients, start=1):
        g = gradient + (wd * p if name != "adamw" else 0.0)
        if name == "sgd":
            p -= lr * g
        elif name == "momentum":
            velocity = mu * velocity + g
            p -= lr * velocity
        else:
            p -= lr * wd * p if name == "adamw" else 0.0
            mean, square = b1 * mean + (1 - b1) * g, b2 * square + (1 - b2) * g * g
            p -= lr * (mean / (1 - b1**t)) / (math.sqrt(square / (1 - b2**t)) + eps)
    return p


@LIBRARIES
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_five_steps_are_those_of_the_textbook(xp, name, decay):
    rows = [[0.5, -2.0, 0.0], [1.5, 1.0, 1e-6], [-3.0, 0.25, 0.0], [0.0, 0.0, 1.0], [0.125, 8.0, -1.0]]
    optimizer = make_optimizer(name, 0.1, weight_decay=decay)
    start = [1.0, -2.0, 3.0]
    parameters = xp.asarray(start, dtype=xp.float64)
    memory = optimizer.start(parameters)
    for step, row in enumerate(rows, start=1):
        parameters, memory = optimizer.update(parameters, xp.asarray(row, dtype=xp.float64), memory, step)
    expected = [textbook(name, p, column, 0.1, decay) for p, column in zip(start, zip(*rows, strict=True), strict=True)]
    assert [float(value) for value in parameters] == pytest.approx(expected, rel=1e-12, abs=0)


@LIBRARIES
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_keeps_dtype_and_inputs(xp, name):
    optimizer = make_optimizer(name, 0.1)
    parameters, gradient = (xp.asarray([1.0, 2.0], dtype=xp.float32) for _ in range(2))
    memory = optimizer.start(parameters)
    new, kept = optimizer.update(parameters, gradient, memory, 1)
    assert {array.dtype for array in (new, *kept.values())} == {parameters.dtype}
    assert [float(x) for x in (*parameters, *gradient)] == [1.0, 2.0, 1.0, 2.0]
    assert all(float(x) == 0 for array in memory.values() for x in array)
    assert set(kept) == set(OPTIMIZERS[name].memory)


@LIBRARIES
def test_a_moving_average_forgets_by_its_decay(xp):
    found = moving_average(xp.asarray([10.0], dtype=xp.float32), xp.asarray([8.0], dtype=xp.float32), 0.75)
    assert (float(found[0]), found.dtype) == (9.5, xp.zeros(1, dtype=xp.float32).dtype)


def test_independent_steps_of_adam_averaged_are_not_a_step_of_the_average():
    # Adam's first step is the sign of the gradient: +1 and -1 by half cancel, where the mean gradient, 2, goes on.
    zeros = np.zeros(1)
    optimizer = make_optimizer("adam", 1.0)

    def step(gradient):
        return optimizer.update(zeros, np.array([gradient]), optimizer.start(zeros), 1)[0]

    assert weighted_mean([step(6.0), step(-2.0)], [1, 1])[0] == pytest.approx(0, abs=1e-7)
    assert step(2.0)[0] == pytest.approx(-1, rel=1e-7)
    sgd = make_optimizer("sgd", 1.0)
    alone = [sgd.update(zeros, np.array([gradient]), {}, 1)[0] for gradient in (6.0, -2.0)]
    assert weighted_mean(alone, [1, 1])[0] == sgd.update(zeros, np.array([2.0]), {}, 1)[0][0]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "adm",
            {},
            "there is no such optimizer; got adm; right would be: sgd, momentum, adam, adamw; did you mean adam?",
        ),
        ("sgd", {"beta1": 0.9}, "sgd has no beta1; right would be: weight_decay"),
    ],
)
def test_an_optimizer_that_does_not_exist(name, settings, message):
    with pytest.raises(InputError) as caught:
        make_optimizer(name, 0.1, **settings)
    assert message in str(caught.value)


def test_a_module_of_pytorch_trains_by_its_own_gradients():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    inputs, targets = torch.randn(40, 3), torch.randn(40, 1)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def loss_of(module, examples):
        return torch.nn.functional.mse_loss(module(inputs[examples]), targets[examples])

    gradients, parameters = module_gradients(module, loss_of)
    start = parameters()
    loss = loss_of(module, np.arange(40))
    module.zero_grad()
    loss.backward()
    reference = {name: parameter.grad.numpy().copy() for name, parameter in module.named_parameters()}
    found_loss, found = gradients(start, np.arange(40))
    assert found_loss == pytest.approx(loss.item())
    for name, expected in reference.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-7)


class FakeParameter:
    """As much of a parameter of PyTorch as `module_gradients` touches."""

    def __init__(self, values):
        self.data, self.grad = FakeTensor(values), None

    def detach(self):
        return self.data.array


class FakeTensor:
    def __init__(self, values):
        self.array = np.array(values, dtype=np.float32)
        self.shape = self.array.shape

    def new_tensor(self, values):
        return np.array(values, dtype=np.float32)

    def copy_(self, values):
        self.array[...] = values


class FakeModule:
    """A line, ``w x + b``, with a parameter more that nothing reads."""

    def __init__(self):
        self.parts = {"w": FakeParameter([2.0]), "b": FakeParameter(1.0), "unused": FakeParameter([[0.0]])}

    def named_parameters(self):
        return self.parts.items()


def test_the_functions_of_a_module_set_its_parameters_and_read_its_gradients():
    class Loss:
        def __init__(self, module):
            self.w, self.b = (module.parts[name] for name in "wb")

        def backward(self):
            self.w.grad, self.b.grad = np.array([3.0]), np.array(4.0)

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.w.data.array[0] + self.b.data.array, dtype=dtype)

    gradients, parameters = module_gradients(FakeModule(), lambda module, examples: Loss(module))
    start = parameters()
    assert {name: array.tolist() for name, array in start.items()} == {
        "w": [2.0],
        "b": 1.0,
        "unused": [[0.0]],
    }
    loss, found = gradients({"w": np.array([5.0]), "b": np.array(6.0), "unused": np.array([[7.0]])}, np.arange(2))
    assert loss == 11.0
    assert {name: array.tolist() for name, array in found.items()} == {
        "w": [3.0],
        "b": 4.0,
        "unused": [[0.0]],
    }
    assert parameters()["unused"].tolist() == [[7.0]]
    assert start["w"].tolist() == [2.0]
