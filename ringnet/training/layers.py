"""A model as the time of a step sees it: a list of layers, each with shapes of parameters and times.

Layers stand in the order in which a module registers them, which is that of the forward pass; the backward pass goes
through them the other way round. Well-known models are made by formula, others from a table or from a PyTorch module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ringnet.errors import Fault, InputError

#: The backward pass of a layer computes two gradients, of its input and of its parameters: twice the forward work.
BACKWARD_WORK = 2.0

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TimedLayer:
    """One layer of a model.

    Parameters
    ----------
    name : str
    shapes : tuple of tuple of int
        Of its parameters, in the order in which they are registered; empty for a layer without any.
    block : str
        What is gathered together where parameters are sharded; the layer's own name if left out.
    forward_flops : float
        Floating-point operations of one example's forward pass.
    forward_s, backward_s : float
        How long both passes take for the batch of one worker.
    """

    name: str
    shapes: tuple[Shape, ...]
    block: str = ""
    forward_flops: float = 0.0
    forward_s: float = 0.0
    backward_s: float = 0.0

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements of each parameter."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def n_parameters(self) -> int:
        """Elements of all its parameters."""
        return sum(self.sizes)

    @property
    def unit(self) -> str:
        """Name of what it is gathered with."""
        return self.block or self.name


def count_parameters(layers: Sequence[TimedLayer]) -> int:
    """Return the number of a model's parameters.

    >>> count_parameters(preset_layers("gpt2-small"))
    124439808
    """
    return sum(layer.n_parameters for layer in layers)


def timed_by_rate(
    layers: Sequence[TimedLayer], batch: int, flops_per_s: float, backward_work: float = BACKWARD_WORK
) -> tuple[TimedLayer, ...]:
    """Return the layers with times from their operations and a rate.

    Parameters
    ----------
    layers : sequence of TimedLayer
    batch : int
        Examples of one worker.
    flops_per_s : float
        Operations that a worker gets through in a second: the peak times the share of it that is reached.
    backward_work : float
        Of the backward pass, in forward passes.
    """
    seconds = [layer.forward_flops * batch / flops_per_s for layer in layers]
    return tuple(
        replace(layer, forward_s=one_s, backward_s=backward_work * one_s)
        for layer, one_s in zip(layers, seconds, strict=True)
    )


def timed_by_share(layers: Sequence[TimedLayer], forward_s: float, backward_s: float) -> tuple[TimedLayer, ...]:
    """Return the layers with measured times of the whole model shared out: by operations, or by parameters.

    >>> [layer.backward_s for layer in timed_by_share([TimedLayer("a", ((3,),)), TimedLayer("b", ((1,),))], 1, 2)]
    [1.5, 0.5]
    """
    by_flops = [layer.forward_flops for layer in layers]
    shares = by_flops if any(by_flops) else [float(layer.n_parameters) for layer in layers]
    total = sum(shares)
    if not total:
        raise InputError(Fault("no layer has operations or parameters to share the time out by"))
    return tuple(
        replace(layer, forward_s=forward_s * share / total, backward_s=backward_s * share / total)
        for layer, share in zip(layers, shares, strict=True)
    )


def module_layers(module: Any, times_s: Mapping[str, tuple[float, float]] | None = None) -> tuple[TimedLayer, ...]:
    """Return the layers of a PyTorch module: names and shapes of its parameters, in the order of registration.

    Parameters
    ----------
    module : object
        Whatever has ``named_parameters()``, which yields names and arrays with a ``shape`` (and, of those that are not
        trained, a ``requires_grad`` that is false).
    times_s : mapping, optional
        Seconds of the forward and of the backward pass by the name of the layer, as a profile has them.

    Raises
    ------
    InputError
        The module has no parameters, or a time is of no layer.
    """
    shapes: dict[str, list[Shape]] = {}
    for name, parameter in module.named_parameters():
        if getattr(parameter, "requires_grad", True):
            shapes.setdefault(name.rpartition(".")[0] or name, []).append(tuple(int(size) for size in parameter.shape))
    if not shapes:
        raise InputError(Fault("the module has no parameters that are trained"))
    times = dict(times_s or {})
    if unknown := [name for name in times if name not in shapes]:
        raise InputError(Fault("the module has no such layer", value=unknown[0], right=", ".join(shapes)))
    return tuple(
        TimedLayer(name, tuple(own), name.rpartition(".")[0], 0.0, *times.get(name, (0.0, 0.0)))
        for name, own in shapes.items()
    )


# ------------------------------------------------------------------------------------------------- convolutional


@dataclass(frozen=True)
class _ResNet:
    """He and others (2015), as torchvision registers it; 1000 classes, images of 224 x 224."""

    blocks: tuple[int, int, int, int]
    bottleneck: bool

    def layers(self, sequence: int | None) -> Iterator[TimedLayer]:
        """Yield the layers, in order."""
        yield from _convolution(("conv1", "bn1", "stem"), 7, 3, 64, 112)
        channels, expansion = 64, 4 if self.bottleneck else 1
        for stage, (n_blocks, side) in enumerate(zip(self.blocks, (56, 28, 14, 7), strict=True)):
            width = 64 << stage
            for number in range(n_blocks):
                name, first = f"layer{stage + 1}.{number}", number == 0
                before = side * 2 if first and stage else side
                yield from self._block(name, channels, width, before, side)
                if first and (stage or channels != width * expansion):
                    yield from _convolution(
                        (f"{name}.downsample.0", f"{name}.downsample.1", name),
                        1,
                        channels,
                        width * expansion,
                        side,
                    )
                channels = width * expansion
        yield TimedLayer("fc", ((1000, channels), (1000,)), "fc", 2.0 * channels * 1000)

    def _block(self, name: str, channels: int, width: int, before: int, side: int) -> Iterator[TimedLayer]:
        sizes = [(1, width, before), (3, width, side), (1, 4 * width, side)]
        for number, (kernel, out, at) in enumerate(
            sizes if self.bottleneck else [(3, width, side), (3, width, side)], start=1
        ):
            yield from _convolution((f"{name}.conv{number}", f"{name}.bn{number}", name), kernel, channels, out, at)
            channels = out


def _convolution(names: tuple[str, str, str], kernel: int, channels: int, out: int, side: int) -> Iterator[TimedLayer]:
    """Yield a convolution without bias, and its normalisation; ``side`` is that of what comes out."""
    name, norm, block = names
    flops = 2.0 * kernel**2 * channels * out * side**2
    yield TimedLayer(name, ((out, channels, kernel, kernel),), block, flops)
    yield TimedLayer(norm, ((out,), (out,)), block)


# --------------------------------------------------------------------------------------------------- transformers


def _linear(name: str, block: str, n_in: int, n_out: int, tokens: int, *, bias: bool = True) -> TimedLayer:
    shapes = ((n_out, n_in), (n_out,)) if bias else ((n_out, n_in),)
    return TimedLayer(name, shapes, block, 2.0 * tokens * n_in * n_out)


def _norm(name: str, block: str, width: int) -> TimedLayer:
    return TimedLayer(name, ((width,), (width,)), block)


def _with_attention(layer: TimedLayer, tokens: int, width: int) -> TimedLayer:
    """Return the projection behind the attention, with what scores and their use cost: two products of the sequence."""
    return replace(layer, forward_flops=layer.forward_flops + 4.0 * tokens**2 * width)


@dataclass(frozen=True)
class _Bert:
    """Devlin and others (2018): the encoder and its pooler, without a task on top."""

    n_layers: int
    width: int
    sequence: int = 512
    vocabulary: int = 30_522

    def layers(self, sequence: int | None) -> Iterator[TimedLayer]:
        """Yield the layers, in order."""
        width, tokens = self.width, sequence or self.sequence
        tables = {"word": self.vocabulary, "position": 512, "token_type": 2}
        for name, rows in tables.items():
            yield TimedLayer(f"embeddings.{name}_embeddings", ((rows, width),), "embeddings")
        yield _norm("embeddings.LayerNorm", "embeddings", width)
        for number in range(self.n_layers):
            block = f"encoder.layer.{number}"
            for part in ("query", "key", "value"):
                yield _linear(f"{block}.attention.self.{part}", block, width, width, tokens)
            output = _linear(f"{block}.attention.output.dense", block, width, width, tokens)
            yield _with_attention(output, tokens, width)
            yield _norm(f"{block}.attention.output.LayerNorm", block, width)
            yield _linear(f"{block}.intermediate.dense", block, width, 4 * width, tokens)
            yield _linear(f"{block}.output.dense", block, 4 * width, width, tokens)
            yield _norm(f"{block}.output.LayerNorm", block, width)
        yield _linear("pooler.dense", "pooler", width, width, 1)


@dataclass(frozen=True)
class _Gpt2:
    """Radford and others (2019); the table of words serves as the last layer too."""

    n_layers: int
    width: int
    sequence: int = 1024
    vocabulary: int = 50_257

    def layers(self, sequence: int | None) -> Iterator[TimedLayer]:
        """Yield the layers, in order."""
        width, tokens = self.width, sequence or self.sequence
        yield TimedLayer("wte", ((self.vocabulary, width),), "embeddings")
        yield TimedLayer("wpe", ((1024, width),), "embeddings")
        for number in range(self.n_layers):
            block = f"h.{number}"
            yield _norm(f"{block}.ln_1", block, width)
            yield _linear(f"{block}.attn.c_attn", block, width, 3 * width, tokens)
            output = _linear(f"{block}.attn.c_proj", block, width, width, tokens)
            yield _with_attention(output, tokens, width)
            yield _norm(f"{block}.ln_2", block, width)
            yield _linear(f"{block}.mlp.c_fc", block, width, 4 * width, tokens)
            yield _linear(f"{block}.mlp.c_proj", block, 4 * width, width, tokens)
        yield _norm("ln_f", "head", width)
        yield TimedLayer("lm_head", (), "head", 2.0 * tokens * width * self.vocabulary)


@dataclass(frozen=True)
class _Llama:
    """Touvron and others (2023) and after; ``kv_width`` is smaller where heads share keys and values."""

    n_layers: int
    width: int
    hidden: int
    kv_width: int
    vocabulary: int
    sequence: int

    def layers(self, sequence: int | None) -> Iterator[TimedLayer]:
        """Yield the layers, in order."""
        width, tokens = self.width, sequence or self.sequence
        yield TimedLayer("embed_tokens", ((self.vocabulary, width),), "embeddings")
        for number in range(self.n_layers):
            block = f"layers.{number}"
            for part, n_out in (("q", width), ("k", self.kv_width), ("v", self.kv_width)):
                yield _linear(f"{block}.self_attn.{part}_proj", block, width, n_out, tokens, bias=False)
            output = _linear(f"{block}.self_attn.o_proj", block, width, width, tokens, bias=False)
            yield _with_attention(output, tokens, width)
            for part in ("gate", "up"):
                yield _linear(f"{block}.mlp.{part}_proj", block, width, self.hidden, tokens, bias=False)
            yield _linear(f"{block}.mlp.down_proj", block, self.hidden, width, tokens, bias=False)
            for part in ("input", "post_attention"):
                yield TimedLayer(f"{block}.{part}_layernorm", ((width,),), block)
        yield TimedLayer("norm", ((width,),), "head")
        yield _linear("lm_head", "head", width, self.vocabulary, tokens, bias=False)


class ModelPreset(NamedTuple):
    """A model made by formula: its layers by the tokens of an example, and the count of parameters as published.

    ``sequence`` is how many tokens an example has unless somebody says otherwise; None where an example is an image.
    """

    layers: Callable[[int | None], Iterator[TimedLayer]]
    n_parameters: int
    sequence: int | None
    longest: int | None
    source: str


#: Models by name.
MODEL_PRESETS: dict[str, ModelPreset] = {
    "resnet-18": ModelPreset(_ResNet((2, 2, 2, 2), False).layers, 11_689_512, None, None, "torchvision resnet18"),
    "resnet-50": ModelPreset(_ResNet((3, 4, 6, 3), True).layers, 25_557_032, None, None, "torchvision resnet50"),
    "bert-large": ModelPreset(_Bert(24, 1024).layers, 335_141_888, 512, 512, "bert-large-uncased"),
    "gpt2-small": ModelPreset(_Gpt2(12, 768).layers, 124_439_808, 1024, 1024, "gpt2"),
    "gpt2-xl": ModelPreset(_Gpt2(48, 1600).layers, 1_557_611_200, 1024, 1024, "gpt2-xl"),
    "llama-7b": ModelPreset(
        _Llama(32, 4096, 11_008, 4096, 32_000, 4096).layers, 6_738_415_616, 4096, None, "Llama 2 7B"
    ),
    "llama-8b": ModelPreset(
        _Llama(32, 4096, 14_336, 1024, 128_256, 8192).layers, 8_030_261_248, 8192, None, "Llama 3 8B"
    ),
    "llama-70b": ModelPreset(
        _Llama(80, 8192, 28_672, 1024, 128_256, 8192).layers, 70_553_706_496, 8192, None, "Llama 3 70B"
    ),
}


def preset_layers(name: str, sequence: int | None = None) -> tuple[TimedLayer, ...]:
    """Return the layers of a model made by formula.

    Parameters
    ----------
    name : str
        One of `MODEL_PRESETS`.
    sequence : int, optional
        Tokens of an example, for a model of language.
    """
    return tuple(MODEL_PRESETS[name].layers(sequence))
