"""Synchronous training: one consistent step, right for unequal batches, against one process that sees them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import InputError, VerificationError
from ringnet.payload.bounds import gamma
from ringnet.payload.dtypes import DTYPES
from ringnet.training import make_optimizer
from ringnet.training.models import Batch, DigitsNetwork, GivenGradients, digit_images, in_order_product
from ringnet.training.own_models import OwnModel
from ringnet.training.trainer import train
from ringnet.training.whole_batch import gradient_bound
from ringnet.training.wrong_ways import Ways
from tests.trainings import NETWORK, by_reference, digits_plan, given_plan

FLOATS = ("float64", "float32", "bfloat16", "float16")


@pytest.mark.parametrize("reduce", ["sum", "mean", "weighted-mean"])
@pytest.mark.parametrize(("batch", "mean"), [((1, 1), 4.0), ((1, 3), 5.0), ((0, 2), 6.0), ((3, 0), 2.0)])
def test_gradients_2_and_6_combine_by_their_counts_whatever_the_network_returns(reduce, batch, mean):
    (first, second) = train(given_plan(batch, reduce=reduce), by_reference)
    for step, after in ((first, 10 - mean / 2), (second, 10 - mean)):
        assert [array.tolist() for array in step.arrays["combined"]] == [[mean], [mean]]
        assert [array.tolist() for array in step.arrays["parameter"]] == [[after], [after]]
    returned = {"sum": mean * sum(batch), "mean": mean * sum(batch) / 2, "weighted-mean": mean}[reduce]
    assert first.arrays["received"][0].tolist() == [returned]


def test_every_number_of_two_steps_by_hand():
    plan = given_plan(optimizer="momentum", decay=0.75)
    plan = replace(plan, optimizer=make_optimizer("momentum", 0.5, momentum=0.5))
    told = [
        {name: [array.tolist() for array in arrays] for name, arrays in step.arrays.items()}
        for step in train(plan, by_reference)
    ]
    assert told[1] == {
        "gradient": [[2.0], [6.0]],
        "sent": [[2.0], [18.0]],
        "received": [[20.0], [20.0]],
        "combined": [[5.0], [5.0]],
        "parameter": [[3.75], [3.75]],
        "velocity": [[7.5], [7.5]],
        "average": [[7.96875], [7.96875]],
    }


def test_an_epoch_ends_with_empty_batches_of_those_who_have_less():
    plan = digits_plan(n_steps=0)
    assert plan.steps == range(4)
    counts = [[batch.n for batch in plan.batches(step)] for step in range(5)]
    assert counts == [[16, 8, 8, 0], [16, 8, 2, 0], [16, 8, 0, 0], [2, 6, 0, 0], [16, 8, 8, 0]]
    seen = np.concatenate([batch.examples for step in range(4) for batch in plan.batches(step)])
    assert sorted(seen) == list(range(90))


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=5).filter(
        lambda workers: any(has and takes for has, takes in workers)
    ),
    st.sampled_from(FLOATS),
    st.sampled_from(FLOATS[:2]),
    st.sampled_from(["sum", "mean", "weighted-mean"]),
    st.integers(1, 4),
)
def test_any_split_is_within_the_bound_of_one_process_and_alike_everywhere(workers, wire, master, reduce, microbatches):
    split, batch = zip(*workers, strict=True)
    plan = digits_plan(split=split, batch=batch, wire=DTYPES[wire], master=DTYPES[master])
    plan = replace(plan, reduce=reduce, microbatches=microbatches, n_steps=3)
    for step in train(plan, by_reference):
        assert step.difference is None
        assert step.distance.share <= 1


@pytest.mark.parametrize("wire", FLOATS)
def test_the_bound_finds_an_error_of_a_few_roundings(wire):
    # An element of the size of the mean magnitude that is off by what a lost contribution or a wrong count makes.
    plan = digits_plan(wire=DTYPES[wire], n_steps=1)

    def forgetful(sent, reduction):
        return by_reference([*sent[:2], np.zeros_like(sent[2]), *sent[3:]], reduction)

    (step,) = train(plan, forgetful)
    assert step.distance.share > 1
    counts, ones = np.array([16, 8, 8]), np.ones(1)
    kinds = {"wire": DTYPES[wire], "master": DTYPES["float32"], "microbatches": 1, "scale": 1 / 32}
    roundings = 3 + 2 if wire in FLOATS[2:] else 3 + 2 + 16 + 1 + 8
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(wire, 2.0**-24)
    assert gradient_bound(ones, counts, **kinds)[0] < 2.2 * roundings * unit


@pytest.mark.parametrize("microbatches", [2, 3, 7, 20])
def test_microbatches_are_one_batch_within_rounding(microbatches):
    plan, batch = digits_plan(), Batch(0, np.arange(16))
    parameters = NETWORK.start(DTYPES["float32"])
    one = plan.local_gradient(parameters, batch)
    cut = replace(plan, microbatches=microbatches).local_gradient(parameters, batch)
    error = np.abs(one.gradient.astype(float) - cut.gradient)
    assert (error <= 2 * gamma(16 + microbatches + 4, 2.0**-24) * one.magnitude).all()
    assert cut.loss == pytest.approx(one.loss, rel=1e-12, abs=0)
    if microbatches == 7:
        assert error.max() > 0  # so there is something that is bounded


def test_the_gradient_is_the_slope_of_the_loss():
    parameters = NETWORK.start(DTYPES["float64"])
    batch, rng = Batch(0, np.arange(40)), np.random.default_rng(1)
    found = NETWORK.gradient(parameters, batch).gradient
    for element in rng.choice(len(parameters), 25, replace=False):
        aside = np.zeros_like(parameters)
        aside[element] = 1e-6
        rise = NETWORK.gradient(parameters + aside, batch).loss - NETWORK.gradient(parameters - aside, batch).loss
        assert rise / 2e-6 == pytest.approx(found[element], rel=1e-5, abs=1e-8)


def test_an_example_has_the_same_gradient_in_every_batch():
    parameters = NETWORK.start(DTYPES["float32"])
    layers = {"weight0": parameters[: 64 * 6].reshape(64, 6)}
    images = NETWORK._images.astype(np.float32)
    whole = in_order_product(images, layers["weight0"])
    assert (in_order_product(images[17:18], layers["weight0"]) == whole[17]).all()


def test_a_network_learns_digits():
    network = DigitsNetwork([24], 300, seed=1)
    plan = digits_plan(model=network, split=(100, 100, 100), batch=(20, 20, 20), n_steps=60)
    *_, last = train(plan, by_reference)
    assert network.accuracy(network.start(DTYPES["float32"])) < 0.3
    assert network.accuracy(last.parameters) > 0.7


def test_pictures_are_the_same_everywhere():
    images, labels = digit_images(5, seed=7)
    assert labels.tolist() == [3, 9, 3, 1, 8]
    assert (images[0] * 16).astype(int).sum() == 182


# --------------------------------------------------------------------------------------------- wrong ways


def parted(plan, **changes):
    """How far each way is from the right one after the last step."""
    plan = replace(plan, **changes)
    ways, found = Ways(plan), []
    for step in train(plan, by_reference):
        found = ways.follow(step)
    return {one.way: one.parted for one in found}


def test_by_hand_each_wrong_way_parts_by_what_it_must():
    found = parted(given_plan(n_steps=1))
    # 4 instead of 5; the same for SGD whoever averages; 20 instead of 5, each times the learning rate of a half.
    assert found == {"one process": 0.0, "unweighted mean": 0.5, "averaged updates": 0.0, "as returned": 7.5}


def test_with_equal_counts_the_mean_of_means_is_right():
    assert parted(given_plan((2, 2)))["unweighted mean"] == 0.0
    assert parted(given_plan((1, 3)))["unweighted mean"] > 0.0


def test_what_is_linear_may_be_averaged_afterwards_and_adam_may_not():
    linear = parted(digits_plan(optimizer=make_optimizer("sgd", 0.02)))
    assert linear["averaged updates"] < 1e-6
    assert linear["unweighted mean"] > 1e-3
    assert parted(digits_plan())["averaged updates"] > 1e-2


def test_one_process_parts_by_rounding_only():
    assert parted(digits_plan(optimizer=make_optimizer("sgd", 0.02)))["one process"] < 1e-6


def test_a_moving_average_once_a_microbatch_forgets_too_fast():
    once = parted(given_plan((2, 2), decay=0.5, microbatches=1))
    assert "average each microbatch" not in once
    # From 10 the parameters go to 8 and 6: once a step the average is 9, 7.5; twice a step 8.5, 6.625.
    assert parted(given_plan((2, 2), decay=0.5, microbatches=2))["average each microbatch"] == 0.875


def test_what_a_weighted_mean_returns_is_right_as_it_is():
    assert "as returned" not in parted(given_plan(reduce="weighted-mean"))


# --------------------------------------------------------------------------------------------- bad numbers


class Bad(GivenGradients):
    """Worker 1 has a gradient that is no number in the second of three parameters, in its second step."""

    calls = 0

    def gradient(self, parameters, batch):
        found = super().gradient(parameters, batch)
        if batch.worker == 1:
            type(self).calls += 1
            if type(self).calls == 2:
                found.gradient[1] = np.nan
        return found


def bad_plan(**changes):
    Bad.calls = 0
    rows = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    return given_plan((1, 1), model=Bad(rows, np.zeros(3)), n_steps=3, **changes)


def test_a_gradient_that_is_no_number_stops_with_layer_and_worker():
    steps = train(bad_plan(), by_reference)
    next(steps)
    with pytest.raises(VerificationError) as caught:
        next(steps)
    assert str(caught.value) == "step 1: the gradient of worker 1 is nan in layer parameters, element 1"


def test_or_all_workers_skip_the_step():
    before, skipped, after = train(bad_plan(on_nonfinite="skip"), by_reference)
    assert skipped.nonfinite == "the gradient of worker 1 is nan in layer parameters, element 1"
    assert skipped.distance is None
    assert (skipped.parameters == before.parameters).all()
    assert (after.parameters == 2 * before.parameters).all()


def test_what_a_short_type_cannot_hold_is_said_to_overflow():
    huge = given_plan((1, 1), rows=((6e4,), (6e4,)), wire=DTYPES["float16"])
    with pytest.raises(VerificationError, match="sum of gradients overflows float16 at worker 0 in layer parameters"):
        next(train(huge, by_reference))
    more = replace(huge, batch=(1, 2))
    with pytest.raises(VerificationError, match="what is sent, in float16, of worker 1 is inf in layer"):
        next(train(more, by_reference))


def test_a_worker_that_received_something_else_is_found():
    def unlike(sent, reduction):
        received = [array.copy() for array in by_reference(sent, reduction)]
        received[1][0] *= np.float32(1.001)
        return received

    step = next(train(given_plan(), unlike))
    assert (step.difference.worker, step.difference.what, step.difference.element) == (1, "parameter", 0)


# --------------------------------------------------------------------------------------------- own models


def own(gradients, parameters=None):
    parameters = {"w": np.zeros((2, 3)), "b": np.ones(3)} if parameters is None else parameters
    return OwnModel(gradients, parameters, 10, "my.py:f")


def test_a_model_of_ones_own_is_called_with_names_shapes_and_numbers_of_examples():
    seen = []

    def gradients(parameters, examples):
        seen.append(({name: array.shape for name, array in parameters.items()}, examples.tolist()))
        return 2.5, {"b": [1, 2, 3], "w": np.full((2, 3), 7.0)}

    model = own(gradients)
    found = model.gradient(model.start(DTYPES["float32"]), Batch(0, np.array([4, 5])))
    assert seen == [({"w": (2, 3), "b": (3,)}, [4, 5])]
    assert (found.loss, found.gradient.tolist()) == (2.5, [7.0] * 6 + [1.0, 2.0, 3.0])
    assert found.gradient.dtype == np.float32
    model.gradient(model.start(DTYPES["float32"]), Batch(0, np.array([], dtype=np.int64)))
    assert len(seen) == 1  # nobody is asked about no examples


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "my.py:f returns something else; got NoneType; right would be: (loss, {name: gradient})"),
        (
            (1.0, {"w": np.zeros((2, 3))}),
            "returns gradients of other parameters; got w; right would be: w, b",
        ),
        (
            (1.0, {"w": np.zeros(6), "b": np.zeros(3)}),
            "returns a wrong gradient of w; got float64, shape (6,); right would be: shape (2, 3)",
        ),
        (("much", {"w": np.zeros((2, 3)), "b": np.zeros(3)}), "returns a loss that is no number; got str"),
    ],
)
def test_what_a_function_returns_wrongly_is_said(returned, message):
    model = own(lambda parameters, examples: returned)
    with pytest.raises(InputError) as caught:
        model.gradient(model.start(DTYPES["float32"]), Batch(0, np.arange(2)))
    assert message in str(caught.value)


@pytest.mark.parametrize("parameters", [{}, [1.0], {"w": np.array(["a"])}, {"w": np.zeros(0)}])
def test_a_model_without_parameters_is_refused(parameters):
    with pytest.raises(InputError):
        own(lambda parameters, examples: None, parameters)
