"""The keys of a training and of a training step: what is learnt, by which layers, and how long these take."""

from typing import Annotated, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag

from ringnet.documents.document import Path
from ringnet.scenario.keys.base import (
    LIST,
    ONE,
    NotEmpty,
    PlaceNumber,
    Seconds,
    Settings,
    SomeSeconds,
    SomeSize,
    WorkerNumber,
    list_or_one,
)
from ringnet.scenario.keys.kinds import Line, NamesIn, Number, OneOf, Quantity, Whole
from ringnet.training import OnNonfinite
from ringnet.training.buckets import BUCKET_CAP_BYTES, FIRST_BUCKET_BYTES

#: Where a scenario says what it trains.
MODEL: Path = ("training", "model")
#: Models that ringnet makes itself.
MODELS = ("given", "digits")
#: The largest number below one of those that people write.
_BELOW_ONE = 0.999999999
#: Types of the parameters and of the optimizer's state.
MASTER_DTYPES = ("float32", "float64")

_Element: TypeAlias = Annotated[float, Number(2, least=-(2.0**1000))]
_Row: TypeAlias = Annotated[tuple[_Element, ...], NotEmpty]
_Counts: TypeAlias = Annotated[
    Annotated[int, Whole(1, example=32), Tag(ONE)]
    | Annotated[tuple[Annotated[int, Whole(0, example=32)], ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]


class ModelKeys(Settings):
    """What is trained: gradients that are given, a small network on digits, or a function of yours."""

    name: Annotated[str, OneOf(MODELS, "model")] | None = Field(
        default=None,
        description="given: each worker has the same gradient at every step, to be read; digits: a small network "
        "that learns digits drawn by formula.",
    )
    python: Annotated[str, Line("my.py:gradients", 1000)] | None = Field(
        default=None,
        description="A function of yours instead, run only with `--allow-python`: `my.py:gradients`.",
        examples=["my.py:gradients"],
    )
    gradients: Annotated[tuple[_Row, ...], NotEmpty] | None = Field(
        default=None,
        description="Of given: the mean gradient of each worker's examples, a row for each worker.",
        examples=[[[2], [6]]],
    )
    parameters: _Row | None = Field(
        default=None, description="Of given: the parameters at the start; zeros if left out.", examples=[[10]]
    )
    hidden: Annotated[tuple[Annotated[int, Whole(1, 4096, example=32)], ...], NotEmpty] | None = Field(
        default=None, description="Of digits: the widths of the hidden layers: `[32]`.", examples=[[32]]
    )
    examples: Annotated[int, Whole(1, 1_000_000, example=1000)] | None = Field(
        default=None, description="How many examples there are in all; not for given.", examples=[1000]
    )


class OptimizerKeys(Settings):
    """What makes a step of the combined gradient; each optimizer has the keys that PyTorch gives it."""

    name: Annotated[str, OneOf(NamesIn("ringnet.training.optimizers", "OPTIMIZERS"), "optimizer")] = Field(
        default="sgd", description="sgd, momentum (SGD with a velocity), adam or adamw."
    )
    learning_rate: Annotated[float, Number(0.01)] = Field(default=0.01, description="How far a step goes.")
    momentum: Annotated[float, Number(0.9, most=1)] | None = Field(
        default=None, description="Of momentum: what is kept of the velocity; 0.9 if left out."
    )
    beta1: Annotated[float, Number(0.9, most=_BELOW_ONE)] | None = Field(
        default=None, description="Of adam and adamw: what is kept of the mean; 0.9 if left out."
    )
    beta2: Annotated[float, Number(0.999, most=_BELOW_ONE)] | None = Field(
        default=None, description="Of adam and adamw: what is kept of the mean square; 0.999 if left out."
    )
    epsilon: Annotated[float, Number(1e-8)] | None = Field(
        default=None, description="Of adam and adamw: added to the root; 1e-8 if left out."
    )
    weight_decay: Annotated[float, Number(0.01)] | None = Field(
        default=None, description="0 if left out, of adamw 0.01."
    )


class TrainingKeys(Settings):
    """Steps of a training, each with an all-reduce of gradients."""

    model: ModelKeys | None = Field(
        default=None,
        description="What is trained: its gradients go through the network, and every step is verified.",
        examples=[{"name": "digits", "hidden": [32], "examples": 1000}],
    )
    split: Annotated[tuple[Annotated[int, Whole(0, example=32)], ...], NotEmpty] | None = Field(
        default=None,
        description="How many of the examples each worker has, 0 for none; alike if left out: `[400, 300, 300]`.",
        examples=[[400, 300, 300]],
    )
    batch: _Counts = Field(
        default=32,
        description="Examples that a worker takes in a step, while it has some: a number, or one for each worker.",
        examples=[32, [1, 3]],
    )
    microbatches: Annotated[int, Whole(1, 1024, example=4)] = Field(
        default=1,
        description="A worker's batch is cut into so many, whose gradients are added up before the one all-reduce.",
    )
    steps: Annotated[int, Whole(1, 10_000, example=20)] | None = Field(
        default=None, description="How many steps; one epoch if left out, of given gradients one step."
    )
    optimizer: OptimizerKeys = Field(
        default=OptimizerKeys.model_construct(),
        description="What makes a step of the combined gradient.",
        examples=[{"name": "adam", "learning_rate": 0.01}],
    )
    moving_average: Annotated[float, Number(0.99, most=_BELOW_ONE)] | None = Field(
        default=None,
        description="A moving average of the parameters after each step keeps so much of itself: `0.99`.",
    )
    master_dtype: Annotated[str, OneOf(MASTER_DTYPES, "dtype")] = Field(
        default="float32",
        description="Type of parameters, optimizer and gradients; the scenario's dtype is what is all-reduced.",
    )
    on_nonfinite: Annotated[OnNonfinite, OneOf(get_args(OnNonfinite), "way out")] = Field(
        default="stop",
        description="Where a gradient is infinite or no number: stop the run, or skip the step at all workers.",
    )


_Places: TypeAlias = Annotated[tuple[PlaceNumber, ...], NotEmpty]


class StepKeys(Settings):
    """A step of a training in time: `ringnet step` reads it."""

    model: Annotated[str, OneOf(NamesIn("ringnet.training.layers", "MODEL_PRESETS"), "model")] | None = Field(
        default=None, description="A model that is made by formula: `gpt2-small`.", examples=["gpt2-small"]
    )
    layers: Annotated[str, Line("layers.csv", 1000)] | None = Field(
        default=None,
        description="A table of layers instead: CSV with name, parameters, forward and backward.",
        examples=["layers.csv"],
    )
    python: Annotated[str, Line("my.py:model", 1000)] | None = Field(
        default=None,
        description="A function of yours instead, which returns a PyTorch module; run only with `--allow-python`.",
        examples=["my.py:model"],
    )
    batch: Annotated[int, Whole(1, 10**9, example=8)] = Field(
        default=1, description="Examples of one worker in one pass.", examples=[8]
    )
    sequence: Annotated[int, Whole(1, 10**7, example=1024)] | None = Field(
        default=None,
        description="Tokens of an example, of models of language; as published if left out.",
        examples=[1024],
    )
    rate_flops: Annotated[float, Quantity("flops")] | None = Field(
        default=None,
        description="Operations that a worker gets through in a second, from which times follow: `150 TFLOP/s`.",
        examples=["150 TFLOP/s"],
    )
    forward_s: SomeSeconds | None = Field(
        default=None, description="Instead of a rate: one forward pass of all layers, as measured: `40 ms`."
    )
    backward_s: SomeSeconds | None = Field(default=None, description="With forward: one backward pass: `80 ms`.")
    strategy: Annotated[str, OneOf(NamesIn("ringnet.training.steps", "STRATEGIES"), "strategy")] = Field(
        default="ddp",
        description="ddp: gradients are all-reduced; zero-1: optimizer states are sharded; fsdp: parameters, too.",
    )
    bucket_cap_bytes: SomeSize = Field(
        default=BUCKET_CAP_BYTES,
        description="A bucket of gradients closes when it holds as much: `25 MiB`.",
        examples=["25 MiB"],
    )
    first_bucket_bytes: SomeSize = Field(
        default=FIRST_BUCKET_BYTES,
        description="The same of the first bucket: `1 MiB`. PyTorch from 2.4 on takes the cap where one is given.",
        examples=["1 MiB"],
    )
    prefetch: Annotated[int, Whole(0, 1000, example=1)] = Field(
        default=1, description="Of fsdp: blocks that are gathered ahead of the one at work."
    )
    microbatches: Annotated[int, Whole(1, 10_000, example=4)] = Field(
        default=1, description="Passes whose gradients are added up before they are combined."
    )
    update_s: Seconds = Field(default=0.0, description="What the optimizer takes for all parameters: `5 ms`.")
    slow_workers: dict[WorkerNumber, Annotated[float, Number(1.5)]] = Field(
        default={},
        description="Workers that take so many times as long: `{3: 1.5}`.",
        examples=[{"3": 1.5}],
    )
    noise: Annotated[float, Number(0.05, most=10)] = Field(
        default=0.0,
        description="Standard deviation of each computation as a share of its time, drawn by the scenario's seed.",
    )
    steps: Annotated[int, Whole(1, 10_000, example=20)] = Field(
        default=1,
        description="With noise: steps that are drawn, of which the mean is told; `repeat` in its place tells how they "
        "are spread, too.",
    )
    groups: tuple[_Places, ...] = Field(
        default=(),
        description="Other groups that take the same step on the same links at the same time, each a list of places.",
        examples=[[[4, 5, 6, 7]]],
    )
