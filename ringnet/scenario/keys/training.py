"""The keys of a training: the model whose gradients the all-reduce carries, and what is done with their mean."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag

from ringnet.documents.document import Path
from ringnet.scenario.keys.base import LIST, ONE, NotEmpty, Settings, list_or_one
from ringnet.scenario.keys.kinds import Line, NamesIn, Number, OneOf, Whole
from ringnet.training import OnNonfinite

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
