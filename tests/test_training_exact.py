"""The same training in exact arithmetic: whatever rounds lies within its radius, and what is wrong does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringnet.payload.dtypes import DTYPES
from ringnet.training import make_optimizer
from ringnet.training.exact import REACHES, ExactState, ExactTraining
from ringnet.training.models import Around, Batch, BatchGradient, DigitsNetwork, unflattened
from ringnet.training.trainer import train
from tests.trainings import NETWORK, by_reference, digits_plan, given_plan

OPTIMIZERS = {
    "sgd": make_optimizer("sgd", 0.05, weight_decay=0.1),
    "momentum": make_optimizer("momentum", 0.02),
    "adam": make_optimizer("adam", 0.002, weight_decay=0.01),
    "adamw": make_optimizer("adamw", 0.002),
}


def distances(plan):
    exact = ExactTraining(plan)
    return [exact.follow(step) for step in train(plan, by_reference)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(("wire", "master"), [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")])
def test_parameters_of_any_training_are_within_rounding_of_one_exact_process(optimizer, wire, master):
    plan = digits_plan(optimizer=OPTIMIZERS[optimizer], wire=DTYPES[wire], master=DTYPES[master], microbatches=3)
    found = distances(plan)
    known = [one for one in found if one is not None]
    # What Adam makes of a gradient near zero may be either sign, all the more so of one that bfloat16 rounded.
    least = {
        "float64": 6,
        "float32": 2 if "adam" in optimizer else 6,
        "bfloat16": 0 if "adam" in optimizer else 1,
    }
    assert len(known) >= least[wire]
    assert found == known + [None] * (len(found) - len(known))  # what tells nothing once tells nothing again
    assert all(0 < one.share <= 1 for one in known)


class OtherOrder(DigitsNetwork):
    """The same network, computed by a library of linear algebra, examples backwards."""

    def gradient(self, parameters, batch):
        if not batch.n:
            return BatchGradient(np.nan, np.zeros_like(parameters))
        examples, layers = batch.examples[::-1], unflattened(parameters, self.shapes)
        x, n = self._images[examples].astype(parameters.dtype), parameters.dtype.type(batch.n)
        hidden = np.maximum(x @ layers["weight0"] + layers["bias0"], 0)
        error = (hidden @ layers["weight1"] + layers["bias1"] - self._targets[examples].astype(x.dtype)) / n
        back = (error @ layers["weight1"].T) * (hidden > 0)
        parts = x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)
        return BatchGradient(0.0, np.concatenate([part.reshape(-1) for part in parts]))


def test_so_are_those_of_another_order_of_the_same_operations():
    plan = digits_plan(model=OtherOrder([6], 90, seed=3), optimizer=OPTIMIZERS["momentum"])
    assert all(one.share <= 1 for one in distances(plan))
    *_, own = train(replace(plan, model=NETWORK), by_reference)
    *_, other = train(plan, by_reference)
    assert (own.parameters != other.parameters).any()


def wrong_rate(plan):
    return replace(plan, optimizer=make_optimizer("momentum", 0.0201))


def unweighted(plan):
    return replace(plan, split=(50, 30, 10, 0), batch=(15, 8, 8, 8))


@pytest.mark.parametrize("wrong", [wrong_rate, unweighted])
def test_a_training_that_does_something_else_is_outside(wrong):
    plan = digits_plan(optimizer=OPTIMIZERS["momentum"])
    exact = ExactTraining(plan)
    found = [exact.follow(step) for step in train(wrong(plan), by_reference)]
    assert found[0].share > 1


def test_a_step_that_was_forgotten_is_found_and_one_that_was_skipped_is_not_missed():
    plan = digits_plan(optimizer=OPTIMIZERS["sgd"])
    first, second, *_ = train(plan, by_reference)
    exact = ExactTraining(plan)
    exact.follow(first)
    forgotten = replace(second, arrays=second.arrays | {"parameter": first.arrays["parameter"]})
    assert exact.follow(forgotten).share > 1
    exact = ExactTraining(plan)
    assert exact.follow(first) == exact.follow(replace(forgotten, nonfinite="for some reason"))


def test_one_step_by_hand():
    """Mean gradient 0.1 of rows that float32 cannot hold; the radius is a few of its roundings, and not many."""
    plan = given_plan((1, 1), rows=((0.1,), (0.1,)), start=(1.0,), n_steps=1)
    exact = ExactTraining(plan)
    (step,) = train(plan, by_reference)
    found = exact.follow(step)
    assert exact.state.parameters.value.tolist() == [0.95]
    assert found.error == abs(float(np.float32(0.95)) - 0.95)
    assert 2.0**-24 < exact.state.parameters.radius[0] < 20 * 2.0**-24


@pytest.mark.parametrize("radius", [1e-6, 1e-3, 0.03])
def test_gradients_anywhere_within_the_radius_are_within_theirs(radius):
    """Also where the radius reaches over the corner of a rectified output."""
    network, generator = DigitsNetwork([6, 5], 40, seed=2), np.random.default_rng(5)
    start = network.start(DTYPES["float64"])
    size = radius * generator.random(len(start))
    batches = [Batch(0, np.arange(12))]
    mean, magnitude = network.around(Around(start, size), batches, 2.0**-53)
    reached = 0.0
    for _ in range(40):
        near = start + size * generator.choice([-1.0, 1.0, 0.3], len(start))
        error = np.abs(network.gradient(near, batches[0]).gradient - mean.value)
        assert (error <= mean.radius + 1e-12 * magnitude).all()
        reached = max(reached, float((error / np.maximum(mean.radius, 1e-300)).max()))
    assert reached > 0.02  # so the radius is not just large


def anywhere(around, generator):
    """Somewhere within a radius, mostly at its ends."""
    return around.value + around.radius * generator.choice([-1.0, 1.0, 0.3], around.value.shape)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=lambda optimizer: optimizer.name)
def test_an_optimizer_goes_no_further_than_its_radius_says_and_almost_as_far(optimizer):
    """One thing in doubt at a time: parameters, gradient (also around zero), each array of its memory."""
    generator, zero = np.random.default_rng(4), np.zeros(4)
    values = {
        "parameters": np.array([1.0, -1.0, 0.5, 0.0]),
        "gradient": np.array([1.0, -2.0, 0.3, 1e-6]),
        "velocity": np.array([0.5, 1.0, -0.7, 0.0]),
        "mean": np.array([0.5, 1.0, -0.7, 0.0]),
        "square": np.array([1.0, 2.0, 3.0, 1e-3]),
    }
    for doubtful in ("parameters", "gradient", *optimizer.start(zero)):
        held = {
            name: Around(value, 0.1 * np.abs(value) + 1e-5 if name == doubtful else zero)
            for name, value in values.items()
        }
        memory = {name: held[name] for name in optimizer.start(zero)}
        state = ExactState(held["parameters"], memory, 4)
        told, _ = REACHES[optimizer.name](state, held["gradient"], optimizer.settings, 2.0**-53)
        reached = np.zeros(4)
        for _ in range(200):
            now = {name: anywhere(around, generator) for name, around in held.items()}
            own = {name: now[name] for name in memory}
            new, _ = optimizer.update(now["parameters"], now["gradient"], own, 5)
            reached = np.maximum(reached, np.abs(new - told.value) / told.radius)
        assert (reached <= 1).all(), doubtful
        # What a gradient does to mean and square cancels for the most part.
        assert (reached > (0.1 if doubtful == "gradient" else 0.8)).all(), doubtful


def test_no_step_of_adam_is_larger_than_any_gradients_make_it():
    """In doubt whether it is zero: either sign, and no more than a learning rate in the first step."""
    optimizer = make_optimizer("adam", 0.25)
    zero = Around.exactly(np.zeros(1))
    state = ExactState(zero, {"mean": zero, "square": zero}, 0)
    told, _ = REACHES["adam"](state, Around(np.zeros(1), np.ones(1)), optimizer.settings, 2.0**-53)
    assert told.radius[0] == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize("rate", [1e30, 1e300])
def test_what_leaves_the_range_of_its_type_is_no_matter_of_rounding(rate):
    plan = given_plan((1, 1), rows=((1e20,), (1e20,)), n_steps=2, optimizer="sgd")
    plan = replace(plan, optimizer=make_optimizer("sgd", rate))
    assert distances(plan) == [None, None]


def test_where_nothing_is_known_of_rounding_nothing_is_said():
    class Unknown(DigitsNetwork):
        def around(self, parameters, batches, unit):
            return None

    assert distances(digits_plan(model=Unknown([6], 90, seed=3))) == [None] * 6
