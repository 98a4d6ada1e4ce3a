"""The keys of a training: the model whose gradients the all-reduce carries, and what is done with their mean."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Discriminator, Field, Tag

from ringnet.scenario.keys.base import LIST, ONE, NotEmpty, Settings, list_or_one
from ringnet.scenario.keys.kinds import Line, Number, OneOf, Whole

#: Models that ringnet makes itself.
MODELS = ("given", "digits")
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


class TrainingKeys(Settings):
    """Steps of a training, each with an all-reduce of gradients."""

    model: ModelKeys | None = Field(
        default=None,
        description="What is trained: its gradients go through the network, and every step is verified.",
        examples=[{"name": "digits", "hidden": [32], "examples": 1000}],
    )
