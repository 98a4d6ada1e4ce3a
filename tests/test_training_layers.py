"""Models as lists of layers, and the buckets that their gradients are sent in."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ringnet.errors import InputError
from ringnet.training.buckets import bucket_of_each, gradient_buckets
from ringnet.training.layers import (
    MODEL_PRESETS,
    TimedLayer,
    count_parameters,
    module_layers,
    preset_layers,
    timed_by_rate,
    timed_by_share,
)

MIB = 2**20


@pytest.mark.parametrize("name", MODEL_PRESETS)
def test_models_have_the_parameters_that_were_published(name):
    assert count_parameters(preset_layers(name)) == MODEL_PRESETS[name].n_parameters


@pytest.mark.parametrize(
    ("name", "giga_flops"),
    [("resnet-18", 2 * 1.814), ("resnet-50", 2 * 4.089), ("gpt2-small", 291.6), ("bert-large", 335.0)],
)
def test_the_work_of_an_example_is_what_others_count(name, giga_flops):
    """Published multiply-adds of an image of 224 x 224; of GPT-2 the formula 24 n s w^2 + 4 n s^2 w + 2 s w v."""
    assert sum(layer.forward_flops for layer in preset_layers(name)) == pytest.approx(giga_flops * 1e9, rel=2e-3)


@pytest.mark.parametrize(
    ("cap_mib", "sizes"), [(25, [2052000, 28852224, 15853824]), (35, [2052000, 38297600, 6408448])]
)
def test_buckets_of_resnet_18_to_the_byte(cap_mib, sizes):
    """As in issue 48880 of PyTorch."""
    found = gradient_buckets(preset_layers("resnet-18"), 4, cap_mib * MIB)
    assert [4 * bucket.n_elements for bucket in found] == sizes
    assert sum(bucket.n_tensors for bucket in found) == 62


def test_a_bucket_is_complete_with_its_last_layer_backwards():
    layers = [TimedLayer(name, ((size,),)) for name, size in (("a", 3), ("b", 5), ("c", 2))]
    found = gradient_buckets(layers, 4, cap_bytes=24, first_bytes=8)
    assert [(bucket.layers, bucket.n_elements) for bucket in found] == [((2,), 2), ((1, 0), 8)]
    assert found[1].last_layer == 0


def test_buckets_are_those_of_torch():
    torch = pytest.importorskip("torch", reason="needs PyTorch: the rule is compared with its own function")
    generator = np.random.default_rng(5)
    for _ in range(200):
        sizes = generator.integers(1, 5_000, generator.integers(1, 60)).tolist()
        limits = sorted(generator.integers(1, 40_000, 2).tolist())
        theirs, _ = torch.distributed._compute_bucket_assignment_by_size([torch.empty(size) for size in sizes], limits)
        assert bucket_of_each([4 * size for size in sizes], limits) == theirs


def test_every_tensor_is_in_one_bucket_and_only_the_last_may_be_short():
    generator = np.random.default_rng(6)
    for _ in range(200):
        sizes = generator.integers(0, 5_000, generator.integers(0, 60)).tolist()
        first, cap = generator.integers(1, 40_000, 2).tolist()
        found = bucket_of_each(sizes, (first, cap))
        assert [number for bucket in found for number in bucket] == list(range(len(sizes)))
        for place, bucket in enumerate(found):
            limit, n_bytes = (cap if place else first), sum(sizes[number] for number in bucket)
            assert n_bytes >= limit or place == len(found) - 1
            assert n_bytes - sizes[bucket[-1]] < limit


@pytest.mark.parametrize("limits", [(), (0,), (1024, 0)])
def test_a_bucket_without_a_limit_is_refused(limits):
    with pytest.raises(InputError, match="above zero"):
        bucket_of_each([1, 2], limits)


def _module(*parameters):
    def named_parameters():
        return [(name, SimpleNamespace(shape=shape, requires_grad=trained)) for name, shape, trained in parameters]

    return SimpleNamespace(named_parameters=named_parameters)


def test_a_module_is_taken_by_names_and_shapes():
    module = _module(
        ("0.weight", (3, 2), True),
        ("0.bias", (3,), True),
        ("head.weight", (9, 9), False),
        ("scale", (), True),
    )
    found = module_layers(module, {"0": (1.0, 2.0)})
    assert [(layer.name, layer.shapes) for layer in found] == [("0", ((3, 2), (3,))), ("scale", ((),))]
    assert count_parameters(found) == 10
    assert found[0].backward_s == 2.0
    with pytest.raises(InputError, match="no such layer"):
        module_layers(module, {"1": (1.0, 2.0)})
    with pytest.raises(InputError, match="no parameters"):
        module_layers(_module())


def test_a_module_of_torch_is_taken_as_it_is():
    torch = pytest.importorskip("torch", reason="needs PyTorch: a module of its own is read")
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    assert [layer.shapes for layer in module_layers(module)] == [((3, 4), (3,)), ((2, 3), (2,))]


def test_times_come_from_a_rate_or_are_shared_out():
    layers = preset_layers("gpt2-small")
    timed = timed_by_rate(layers, batch=8, flops_per_s=100e12)
    forward_s = sum(layer.forward_s for layer in timed)
    assert forward_s == pytest.approx(8 * 291.648e9 / 100e12, rel=1e-4)
    assert sum(layer.backward_s for layer in timed) == pytest.approx(2 * forward_s)
    shared = timed_by_share(layers, 1.0, 3.0)
    assert sum(layer.backward_s for layer in shared) == pytest.approx(3.0)
    with pytest.raises(InputError):
        timed_by_share([TimedLayer("a", ())], 1.0, 3.0)
