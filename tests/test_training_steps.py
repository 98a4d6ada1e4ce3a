"""The time of a step: computation over communication, against formulas and on random models."""

from __future__ import annotations

import numpy as np
import pytest

from ringnet.training.buckets import gradient_buckets
from ringnet.training.layers import TimedLayer
from ringnet.training.steps import (
    STRATEGIES,
    StepShape,
    WorkerPace,
    fsdp_step,
    timed_step,
)


def shape_of(backward_s, *, n_workers=4, cap=4, forward_s=0.5, size=1, **more):
    layers = tuple(
        TimedLayer(f"layer {number}", ((size,),), "", 0.0, forward_s, one_s)
        for number, one_s in enumerate(reversed(backward_s))
    )
    return StepShape(layers, gradient_buckets(layers, 4, cap, cap), n_workers, **more)


def run(shape, strategy="ddp", cost_s=lambda one: 1.0, slowness=None, noise=0.0, seed=0):
    program = STRATEGIES[strategy].program(shape)
    pace = WorkerPace(slowness or (1.0,) * shape.n_workers, noise, seed)
    return timed_step(program, next(pace.draws(program, 1)), cost_s)


@pytest.mark.parametrize("n_layers", [1, 2, 7, 24])
def test_all_is_hidden_but_the_last_bucket_where_computation_is_slow(n_layers):
    found = run(shape_of([3.0] * n_layers), cost_s=lambda one: 1.0)
    assert found.step_s == pytest.approx(n_layers * 3.5 + 1.0, rel=1e-12, abs=0)
    assert found.hidden_s().sum(axis=0) == pytest.approx([n_layers - 1.0] * 4, rel=1e-12, abs=0)


@pytest.mark.parametrize("n_layers", [1, 2, 7, 24])
def test_where_communication_is_slow_the_stream_is_never_idle(n_layers):
    """It starts with the first bucket and goes on to the end: forward, one backward, all collectives."""
    found = run(shape_of([1.0] * n_layers), cost_s=lambda one: 5.0)
    assert found.step_s == pytest.approx(n_layers * 0.5 + 1.0 + n_layers * 5.0, rel=1e-12, abs=0)
    assert found.hidden_s().sum(axis=0) == pytest.approx([n_layers - 1.0] * 4, rel=1e-12, abs=0)


def test_nothing_is_hidden_with_one_bucket():
    found = run(shape_of([1.0, 2.0, 3.0], cap=1000), cost_s=lambda one: 0.25 * one.n_elements)
    assert found.step_s == pytest.approx(1.5 + 6.0 + 0.75, rel=1e-12, abs=0)
    assert found.hidden_s().tolist() == [[0.0] * 4]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_communication_there_is_computation_alone(strategy):
    shape = shape_of([1.0, 2.0, 3.0], microbatches=3, update_s=0.4)
    found = run(shape, strategy, cost_s=lambda one: 0.0)
    update_s = 0.4 if strategy == "ddp" else 0.1
    assert found.step_s == pytest.approx(3 * 7.5 + update_s, rel=1e-12, abs=0)
    assert found.compute_s == pytest.approx([found.step_s] * 4, rel=1e-12, abs=0)
    assert shape.single_s == pytest.approx(22.9, rel=1e-12, abs=0)


def test_the_issue_example_by_hand():
    """Eight layers of 50 ms, each all-reduced in 0.119 s: the stream goes on from the first to the end."""
    found = run(shape_of([0.05] * 8, forward_s=0.0, n_workers=3), cost_s=lambda one: 0.119)
    assert found.step_s == pytest.approx(0.05 + 8 * 0.119, rel=1e-12, abs=0)


def test_a_slow_worker_holds_up_every_collective_and_the_others_wait():
    found = run(shape_of([1.0, 1.0], n_workers=2), slowness=(1.0, 3.0), cost_s=lambda one: 0.5)
    assert found.ready_s.tolist() == [6.0, 9.0]
    assert found.step_s == 9.5
    assert found.compute_s.tolist() == [3.0, 9.0]
    # Worker 0 has nothing to compute through either; worker 1 hides the first.
    assert found.hidden_s().tolist() == [[0.0, 0.5], [0.0, 0.0]]


def test_gradients_of_microbatches_are_combined_once():
    found = run(shape_of([1.0, 1.0], microbatches=4), cost_s=lambda one: 0.5)
    assert len(found.done_s) == 2
    assert found.step_s == pytest.approx(4 * 3.0 + 0.5, rel=1e-12, abs=0)


def test_zero_1_gathers_what_was_updated():
    found = run(shape_of([1.0, 1.0], update_s=0.8), "zero-1", cost_s=lambda one: 0.5)
    kinds = [one.collective for one in found.program.collectives]
    assert kinds == ["reduce-scatter"] * 2 + ["all-gather"] * 2
    assert found.step_s == pytest.approx(1.0 + 2.0 + 0.5 + 0.2 + 1.0, rel=1e-12, abs=0)


@pytest.mark.parametrize(("prefetch", "step_s"), [(0, 11.0), (1, 8.5)])
def test_fsdp_gathers_blocks_ahead_of_the_one_at_work(prefetch, step_s):
    """Two blocks, every collective 1 s, forward 0.5 s, backward 2 s.

    Ahead: gathers end at 1 and 2; forward 1 to 1.5 and 2 to 2.5; the backward gathers end at 3.5 and 4.5; backward 3.5
    to 5.5 and 5.5 to 7.5; the last reduce-scatter ends at 8.5. Not ahead, all stands in a row: gather, forward, gather,
    forward, gather, backward, reduce-scatter, gather, backward, reduce-scatter.
    """
    found = run(shape_of([2.0, 2.0], prefetch=prefetch), "fsdp", cost_s=lambda one: 1.0)
    names = [one.name for one in found.program.collectives]
    assert names[:2] == ["forward layer 0", "forward layer 1"]
    assert names[-1] == "gradients layer 0"
    assert found.step_s == pytest.approx(step_s, rel=1e-12, abs=0)


def test_fsdp_gathers_each_block_twice_for_every_microbatch_and_reduces_once():
    program = fsdp_step(shape_of([1.0] * 5, microbatches=3, prefetch=2))
    kinds = [one.collective for one in program.collectives]
    assert (kinds.count("all-gather"), kinds.count("reduce-scatter")) == (30, 5)


def test_noise_is_right_in_the_mean_and_the_same_for_one_seed():
    program = STRATEGIES["ddp"].program(shape_of([1.0] * 10))
    steps = [*WorkerPace((1.0,) * 4, noise=0.2, seed=3).draws(program, 400)]
    again = [*WorkerPace((1.0,) * 4, noise=0.2, seed=3).draws(program, 400)]
    assert np.array_equal(steps, again)
    factors = np.array(steps)[:, program.seconds > 0] / program.seconds[program.seconds > 0][:, None]
    assert factors.mean() == pytest.approx(1.0, abs=0.005)
    assert factors.std() == pytest.approx(0.2, abs=0.005)


def random_step(generator):
    n_layers, n_workers = int(generator.integers(1, 12)), int(generator.integers(1, 6))
    layers = tuple(
        TimedLayer(
            f"layer {number}",
            tuple((int(size),) for size in generator.integers(0, 9, generator.integers(0, 4))),
            f"block {number // generator.integers(1, 4)}",
            0.0,
            *generator.choice([0.0, 0.3, 1.0, 2.5], 2).tolist(),
        )
        for number in range(n_layers)
    )
    cap, first = generator.integers(1, 80, 2).tolist()
    shape = StepShape(
        layers,
        gradient_buckets(layers, 4, cap, first),
        n_workers,
        int(generator.integers(1, 4)),
        int(generator.integers(0, 4)),
        float(generator.choice([0.0, 0.7])),
    )
    return shape, tuple(generator.choice([1.0, 1.5, 3.0], n_workers).tolist())


def test_random_steps_keep_the_accounts():
    """A thousand: exposed and hidden make up the communication, and no step is shorter than what it is made of."""
    generator = np.random.default_rng(12)
    for number in range(1000):
        shape, slowness = random_step(generator)
        rate, fixed_s = generator.choice([0.05, 0.4, 3.0]), generator.choice([0.0, 0.2])
        found = run(
            shape,
            (*STRATEGIES,)[number % 3],
            cost_s=lambda one, rate=rate, fixed_s=fixed_s: fixed_s + rate * one.n_elements,
            slowness=slowness,
            noise=0.3 * (number % 2),
            seed=number,
        )
        taken, hidden, tiny = found.done_s - found.sent_s, found.hidden_s(), 1e-12 * (1 + found.step_s)
        assert taken.sum() == pytest.approx(found.communication_s, rel=1e-12, abs=0)
        assert (hidden >= 0).all()
        assert (hidden <= taken[:, None] + tiny).all()
        idle = found.step_s - found.compute_s - (taken[:, None] - hidden).sum(axis=0)
        assert (idle >= -tiny).all()
        assert found.step_s >= found.compute_s.max() - tiny
        assert found.step_s >= found.communication_s - tiny
        assert (found.sent_s >= found.ready_s).all()
        assert (found.sent_s[1:] >= found.done_s[:-1]).all()
        # The other way: every computation with every collective.
        starts = np.maximum(found.starts_s[:, None], found.sent_s[:, None])
        ends = np.minimum(found.ends_s[:, None], found.done_s[:, None])
        assert np.abs(np.maximum(ends - starts, 0.0).sum(axis=0) - hidden).max(initial=0.0) <= tiny
